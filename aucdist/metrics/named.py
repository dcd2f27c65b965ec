"""The metrics that searches, comparisons, reports and bootstrap intervals know by name.

A new metric needs a row of `NAMED_METRICS`, and the other changes that "A metric" in ARCHITECTURE.md lists. The row determines
the errors, the columns and headings of reports, and whether `features: auto` may choose by the metric.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from numpy import ndarray

from aucdist.errors import InputError, unknown
from aucdist.metrics.decisions import (
    COST_COLUMN,
    CostCounts,
    Costs,
    balanced_accuracy,
    confusion,
    g_mean,
    precision_at_k,
    precision_at_recall,
    recall_at_fpr,
    recall_at_k,
    recall_at_precision,
)
from aucdist.metrics.groups import GroupWeight, group_auc, group_ndcg, group_recall
from aucdist.metrics.partial import MIN_TPR, SHARE, partial_auc, shrunk_partial_auc, two_way_partial_auc
from aucdist.metrics.probability import brier, calibration_loss, log_loss
from aucdist.metrics.ranking import auc, average_precision
from aucdist.parameters import SWITCH, above_0

COST_RANGE = above_0(words=(COST_COLUMN,))

PARAMETERS = {
    "max_fpr": ("the largest false positive rate", SHARE),
    "min_tpr": ("the least true positive rate", MIN_TPR),
    "min_precision": ("the least precision", SHARE),
    "min_recall": ("the least recall", SHARE),
    "k": ("a number of rows", above_0()),
    "false_positive": ("what a false positive costs", COST_RANGE),
    "miss": ("what a miss costs", COST_RANGE),
}
"""The descriptions and the allowed values of the parameters of metrics."""


class ScoredGroups(NamedTuple):
    """Labels or grades, scores, groups and weights of rows, each an array of shape (n_samples,).

    If the weights are None, each row has the weight 1. `group_weight` says how groups are weighted in the mean AUC: by the
    weight of their pairs, or equally.
    """

    y: ndarray
    scores: ndarray
    groups: ndarray
    weight: ndarray | None = None
    group_weight: GroupWeight = "pairs"


@dataclass(frozen=True)
class Metric:
    """A named metric.

    Attributes
    ----------
    kind : str
        The key of the metric in `NAMED_METRICS`, such as ``partial_auc``.
    title : str
        The name of the metric within a sentence of a report, with the names of parameters in braces.
    function : callable
        Computes the metric from the input that `needs` names, and from the parameters by name. For ``groups``, it returns a
        `GroupMetric`, and otherwise a number.
    needs : {"ranking", "decision", "probability", "groups", "costs"}
        The input of the function. ``ranking``: counts of scores. ``decision``: counts of scores and a threshold, from which the
        function gets a table of `confusion`. ``probability``: counts of probabilities of the positive class. ``groups``:
        `ScoredGroups`. ``costs``: `CostCounts` and a threshold.
    parameter_names : tuple of str
        The names of the parameters, which are keys of `PARAMETERS`.
    largest : float
        The largest value that the metric can have, which also limits intervals; inf if there is no limit.
    sign : int
        1 if larger values are better, -1 if smaller values are.
    least_grade : float
        The smallest grade for which the metric is defined.
    values : tuple of float or str
        The values of the parameters, in the order of `parameter_names`: see `find_metric`.
    """

    kind: str
    title: str
    function: Callable[..., Any]
    needs: Literal["ranking", "decision", "probability", "groups", "costs"] = "ranking"
    parameter_names: tuple[str, ...] = ()
    largest: float = 1.0
    sign: int = 1
    least_grade: float = -math.inf
    values: tuple[float | str, ...] = ()

    @property
    def name(self) -> str:
        """The full name, for `find_metric`. It ends with the parameters, as in ``two_way_partial_auc@0.5,0.1``."""
        return f"{self.kind}@{','.join(self._texts)}" if self.values else self.kind

    @property
    def phrase(self) -> str:
        """The title with the values of the parameters, for use within a sentence."""
        # The lengths may differ: a metric without values has a complete title if the title names no parameter.
        return self.title.format(**dict(zip(self.parameter_names, self._texts, strict=False)))

    @property
    def heading(self) -> str:
        """The phrase with a capital letter, for use in tables and above figures."""
        return self.phrase[0].upper() + self.phrase[1:]

    @property
    def _texts(self) -> list[str]:
        return [str(value).removesuffix(".0") for value in self.values]

    @property
    def costs(self) -> Costs:
        """The costs of wrong decisions, for a metric that needs costs."""
        return Costs(*self.values)

    def evaluate(self, rows: Any, threshold: float = 0.0) -> Any:
        """Return the metric of the input that `needs` names. Only metrics of decisions and costs use the threshold."""
        if self.needs == "costs":
            return self.function(rows, threshold)
        parameters: dict[str, Any] = dict(zip(self.parameter_names, self.values, strict=True))
        if self.needs == "decision":
            return self.function(confusion(rows, threshold), **parameters)
        if self.needs != "groups":
            return self.function(rows, **parameters)
        if self.kind == "group_auc":
            parameters["group_weight"] = rows.group_weight
        return self.function(rows.y, rows.scores, groups=rows.groups, sample_weight=rows.weight, **parameters)


NAMED_METRICS = {
    metric.kind: metric
    for metric in (
        Metric("auc", "AUC", auc),
        Metric("average_precision", "average precision", average_precision),
        Metric("g_mean", "G-mean", g_mean, "decision"),
        Metric("balanced_accuracy", "balanced accuracy", balanced_accuracy, "decision"),
        Metric("brier_loss", "Brier score", brier, "probability", sign=-1),
        Metric("log_loss", "log-loss", log_loss, "probability", largest=math.inf, sign=-1),
        Metric("calibration_loss", "calibration loss", calibration_loss, "probability", sign=-1),
        Metric("group_auc", "AUC within groups", group_auc, "groups"),
        Metric("partial_auc", "partial AUC at FPR ≤ {max_fpr}", partial_auc, parameter_names=("max_fpr",)),
        Metric("shrunk_partial_auc", "shrunk partial AUC at FPR ≤ {max_fpr}", shrunk_partial_auc, parameter_names=("max_fpr",)),
        Metric(
            "two_way_partial_auc", "two-way partial AUC at TPR ≥ {min_tpr} and FPR ≤ {max_fpr}", two_way_partial_auc,
            parameter_names=("min_tpr", "max_fpr"),
        ),
        Metric("recall_at_fpr", "recall at FPR ≤ {max_fpr}", recall_at_fpr, parameter_names=("max_fpr",)),
        Metric(
            "recall_at_precision", "recall at precision ≥ {min_precision}", recall_at_precision,
            parameter_names=("min_precision",),
        ),
        Metric("precision_at_recall", "precision at recall ≥ {min_recall}", precision_at_recall, parameter_names=("min_recall",)),
        Metric("recall_at_k", "recall of the first {k}", recall_at_k, parameter_names=("k",)),
        Metric("precision_at_k", "precision of the first {k}", precision_at_k, parameter_names=("k",)),
        Metric(
            "group_ndcg", "NDCG of the first {k} of each group", group_ndcg, "groups",
            parameter_names=("k",), least_grade=0.0,
        ),
        Metric("group_recall", "recall of the first {k} of each group", group_recall, "groups", parameter_names=("k",)),
        Metric(
            "expected_cost", "expected cost of a row", CostCounts.mean, "costs", parameter_names=("false_positive", "miss"),
            largest=math.inf, sign=-1,
        ),
    )
}  # fmt: skip
"""All metrics by their kind. `find_metric` returns a metric with the values of its parameters."""

WITHIN_GROUPS = tuple(kind for kind, metric in NAMED_METRICS.items() if metric.needs == "groups")
"""The metrics that are computed within groups. All other metrics are computed over all rows together."""
REPORTED_WITHIN_GROUPS = ("group_auc", "group_ndcg@5", "group_ndcg@10", "group_recall@5", "group_recall@10")
"""The full names of the metrics within groups that a report shows."""
OTHER_NAMES = (
    dict.fromkeys(["pr_auc", "auc_pr", "auprc", "aucpr", "ap"], "average_precision")
    | dict.fromkeys(["roc_auc", "auc_roc", "auroc"], "auc")
    | {"cross_entropy": "log_loss"}
)
"""Names that other libraries use for some of the metrics, for suggestions."""
OLD_METRIC_NAMES = {"ndcg": "group_ndcg", "false_alarm": "false_positive"}
"""The names of metrics and parameters in 0.4.0, which are still read."""


def find_metric(metric: str, **parameters: float | str | None) -> Metric:
    """Return a metric with its parameters.

    Parameters
    ----------
    metric : str
        A key of `NAMED_METRICS`, or a full name that ends with the parameters, such as ``"partial_auc@0.01"`` or
        ``"two_way_partial_auc@0.5,0.1"``.
    **parameters : float, str or None
        The parameters of the metric, by the names in `PARAMETERS`. Those that the metric does not have are None. A cost may be
        `aucdist.metrics.decisions.COST_COLUMN`.

    Raises
    ------
    InputError
        If there is no such metric, or it lacks a parameter or does not take one, or a value is out of its range.
    """
    kind, at, text = metric.partition("@")
    named = NAMED_METRICS.get(OLD_METRIC_NAMES.get(kind, kind))
    if named is None or (at and not named.parameter_names):
        raise unknown("metric", metric, NAMED_METRICS, OTHER_NAMES)
    chosen = {key: value for key, value in parameters.items() if value is not None}
    for key in chosen:
        if key not in PARAMETERS:
            raise unknown("parameter of a metric:", key, PARAMETERS)
        if at:
            raise InputError(f"metric {metric!r} has its parameters after @: leave {key} out")
        if key not in named.parameter_names:
            takers = " and ".join(other.kind for other in NAMED_METRICS.values() if key in other.parameter_names)
            raise InputError(f"{key} applies to metric {takers}, not to {metric!r}: leave {key} out")
    if text:
        words, texts = (COST_COLUMN,) if named.needs == "costs" else (), text.split(",")
        try:
            values = [value if value in words else float(value) for value in texts]
            chosen = dict(zip(named.parameter_names[: len(values)], values, strict=True))
        except ValueError:
            raise InputError(
                f"metric {metric!r}: after @ it needs a number for each of {', '.join(named.parameter_names)}; got {text!r}"
            ) from None
    for key in named.parameter_names:
        meaning, allowed = PARAMETERS[key]
        if key not in chosen:
            raise InputError(f"metric {kind!r} needs {key}, {meaning}")
        allowed.check(key, chosen[key])
    return replace(
        named,
        values=tuple(value if isinstance(value := chosen[key], str) else float(value) for key in named.parameter_names),
    )


class SearchOptions(NamedTuple):
    """The options of ``{"map": "auto", ...}``: the full name of the metric, or None for the default, and `readable`."""

    metric: str | None
    readable: bool


def search_options(features: Any) -> SearchOptions:
    """Return the options of ``features="auto"``.

    Parameters
    ----------
    features : object
        The parameter `features` of an estimator or a configuration.

    Raises
    ------
    InputError
        If `readable` is not true or false, there is no such metric, or it lacks a parameter or does not take one.
    """
    options = features if isinstance(features, Mapping) else {}
    parameters: dict[str, Any] = {
        OLD_METRIC_NAMES.get(str(key), str(key)): value for key, value in options.items() if key != "map"
    }
    metric, readable = parameters.pop("metric", None), parameters.pop("readable", False)
    SWITCH.check("`readable` of `features: auto`", readable)
    for key in parameters:
        if key not in PARAMETERS:
            raise unknown("option of `features: auto`:", key, ["metric", "readable", *PARAMETERS])
    if metric is None and not parameters:
        return SearchOptions(None, readable)
    metrics = [m.kind for m in NAMED_METRICS.values() if m.needs not in ("decision", "probability")]
    if OLD_METRIC_NAMES.get(metric, metric) not in metrics:
        raise unknown("metric of `features: auto`:", metric, metrics, OTHER_NAMES)
    return SearchOptions(find_metric(metric, **parameters).name, readable)
