"""The measures that searches, comparisons and bootstrap intervals know by name."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from aucdist.errors import InputError, unknown
from aucdist.metrics.costs import COST_COLUMN, CostCounts
from aucdist.metrics.decisions import (
    COSTS,
    balanced_accuracy,
    check_cost,
    confusion,
    g_mean,
    precision_at_k,
    precision_at_recall,
    recall_at_fpr,
    recall_at_k,
    recall_at_precision,
)
from aucdist.metrics.groups import GroupWeight, OfGroups, auc_of_groups, ndcg_of_groups
from aucdist.metrics.partial import (
    MIN_TPR,
    SHARE,
    partial_auc,
    shrunk_partial_auc,
    two_way_partial_auc,
)
from aucdist.metrics.probability import brier, calibration_loss, log_loss
from aucdist.metrics.ranking import auc, average_precision
from aucdist.parameters import above_0

WITHIN_GROUPS = ("group_auc", "ndcg")
"""Measures of the rows of each group; the others are of all rows together."""

EXPECTED_COST = "expected_cost"

MEANING = {
    "max_fpr": "the largest false positive rate",
    "min_tpr": "the least true positive rate",
    "min_precision": "the least precision",
    "min_recall": "the least recall",
    "k": "a number of rows",
    "false_alarm": "what a false alarm costs",
    "miss": "what a miss costs",
}
"""What the parameters of measures are."""

LIMITS = {"min_tpr": MIN_TPR, "k": above_0()}
"""What values of a parameter are allowed. Parameters that are not named here are shares."""


@dataclass(frozen=True, eq=False)
class ScoredGroups:
    """Labels or grades, scores, groups and weights of rows: arrays of shape (n_samples,); no weights are one each.

    In the AUC a group weighs what `group_weight` says: its pairs, or each the same.
    """

    y: np.ndarray
    scores: np.ndarray
    groups: np.ndarray
    weight: np.ndarray | None = None
    group_weight: GroupWeight = "pairs"


@dataclass(frozen=True)
class Measure:
    """A named measure, as a function of counts, or within groups of `ScoredGroups`.

    Attributes
    ----------
    name : str
    of : callable
        ``of(counts, threshold)``; only decisions use the threshold. Within groups it returns `OfGroups`, else a number.
    needs : {"ranking", "decision", "probability", "groups", "costs"}
        The kind of counts: of scores, of scores with a threshold, or of probabilities of the positive class; or `ScoredGroups`
        in place of counts; or `CostCounts` and the threshold that costs least on the training rows.
    largest : float
        No value is above this, so that no interval is; inf where values have no bound.
    sign : int
        1 if larger is better, -1 if smaller is.
    cost : dict
        ``false_alarm`` and ``miss`` of a measure of costs: numbers, or `aucdist.metrics.costs.COST_COLUMN`.
    """

    name: str
    of: Callable[[Any, float], Any]
    needs: Literal["ranking", "decision", "probability", "groups", "costs"]
    largest: float = 1.0
    sign: int = 1
    cost: dict[str, Any] = field(default_factory=dict)


def group_auc(rows: ScoredGroups) -> OfGroups:
    """Return the AUC within each group."""
    return auc_of_groups(
        rows.y, rows.scores, groups=rows.groups, sample_weight=rows.weight, group_weight=rows.group_weight
    )


def ndcg(rows: ScoredGroups, k: float) -> OfGroups:
    """Return the NDCG of the first k rows of each group.

    Raises
    ------
    InputError
        If a grade is negative, or no group has a grade above 0.
    """
    return ndcg_of_groups(rows.y, rows.scores, groups=rows.groups, sample_weight=rows.weight, k=int(k))


def _without_threshold(function: Callable[..., Any], **parameters: float) -> Callable[[Any, float], Any]:
    """Return a function of counts as one of counts and a threshold."""
    return lambda counts, threshold: function(counts, **parameters)


MEASURES = {
    measure.name: measure
    for measure in (
        Measure("auc", _without_threshold(auc), "ranking"),
        Measure("average_precision", _without_threshold(average_precision), "ranking"),
        Measure("g_mean", lambda counts, threshold: g_mean(confusion(counts, threshold)), "decision"),
        Measure(
            "balanced_accuracy", lambda counts, threshold: balanced_accuracy(confusion(counts, threshold)), "decision"
        ),
        Measure("brier_loss", _without_threshold(brier), "probability", sign=-1),
        Measure("log_loss", _without_threshold(log_loss), "probability", largest=math.inf, sign=-1),
        Measure("calibration_loss", _without_threshold(calibration_loss), "probability", sign=-1),
        Measure("group_auc", _without_threshold(group_auc), "groups"),
    )
}

WITH_PARAMETERS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "partial_auc": (partial_auc, ("max_fpr",)),
    "shrunk_partial_auc": (shrunk_partial_auc, ("max_fpr",)),
    "two_way_partial_auc": (two_way_partial_auc, ("min_tpr", "max_fpr")),
    "recall_at_fpr": (recall_at_fpr, ("max_fpr",)),
    "recall_at_precision": (recall_at_precision, ("min_precision",)),
    "precision_at_recall": (precision_at_recall, ("min_recall",)),
    "recall_at_k": (recall_at_k, ("k",)),
    "precision_at_k": (precision_at_k, ("k",)),
    "ndcg": (ndcg, ("k",)),
    EXPECTED_COST: (CostCounts.mean, COSTS),
}
"""Measures of the top of a ranking, of each group or of costs, and what they need. Their full names end with it:
partial_auc@0.01."""


def find_measure(name: str) -> Measure:
    """Return the measure of this name, such as ``"auc"``, ``"partial_auc@0.01"`` or ``"two_way_partial_auc@0.5,0.1"``.

    Raises
    ------
    InputError
        If there is no such measure, or it lacks a parameter, or that is out of its range.
    """
    kind, _, text = name.partition("@")
    if kind in WITH_PARAMETERS:
        function, parameters = WITH_PARAMETERS[kind]
        texts = text.split(",") if text else []
        for parameter in parameters[len(texts) :]:
            raise InputError(f"metric {kind!r} needs {parameter}, {MEANING[parameter]}")
        try:
            values: dict[str, Any] = {
                p: v if v == COST_COLUMN and kind == EXPECTED_COST else float(v)
                for p, v in zip(parameters, texts, strict=True)
            }
        except ValueError:
            raise InputError(f"metric {name!r}: {text!r} is not {' and '.join(parameters)}") from None
        if kind == EXPECTED_COST:
            check_cost({p: 1.0 if v == COST_COLUMN else v for p, v in values.items()})
            return Measure(name, function, "costs", largest=math.inf, sign=-1, cost=values)
        for parameter, value in values.items():
            LIMITS.get(parameter, SHARE).check(parameter, value)
        needs: Literal["groups", "ranking"] = "groups" if kind in WITHIN_GROUPS else "ranking"
        return Measure(name, _without_threshold(function, **values), needs)
    if name not in MEASURES:
        raise unknown("metric", name, [*MEASURES, *WITH_PARAMETERS])
    return MEASURES[name]


def measure_name(metric: str, **parameters: float | str | None) -> str:
    """Return the full name of a measure, for `find_measure`.

    Parameters
    ----------
    **parameters : float, str or None
        The parameters that the measure needs, by the names in `MEANING`. A cost may be `aucdist.metrics.costs.COST_COLUMN`.

    Raises
    ------
    InputError
        If the measure lacks a parameter, or does not take one.
    """
    needed = WITH_PARAMETERS[metric][1] if metric in WITH_PARAMETERS else ()
    for name, value in parameters.items():
        if value is not None and name not in needed:
            takes = " and ".join(kind for kind, (_, names) in WITH_PARAMETERS.items() if name in names)
            raise InputError(f"{name} applies to metric {takes}, not to {metric!r}: leave it out")
        if value is None and name in needed:
            raise InputError(f"metric {metric!r} needs {name}, {MEANING[name]}")
    values = (v if (v := parameters[name]) == COST_COLUMN else float(v or 0.0) for name in needed)
    return f"{metric}@{','.join(str(v).removesuffix('.0') for v in values)}" if needed else metric
