"""The results of a run: the object that ``--json`` prints, and the details that only `metrics.json` has.

Two classes are treated like several. An evaluation has a list of classes, and for two classes this list has one entry.
"""

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy import ndarray

from aucdist.data.own_files import jsonable
from aucdist.drift.leaks import RowDigests, Warned
from aucdist.drift.profile import Profile
from aucdist.engine.blocks import Blocks
from aucdist.engine.view import AnyBlocks
from aucdist.errors import InputError, Json
from aucdist.estimators.monotone import directions_as_parameter
from aucdist.estimators.scores import predicted_classes
from aucdist.metrics import average_precision_difference
from aucdist.metrics.compare import auc_test
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.decisions import (
    CostCounts,
    Costs,
    DecisionCosts,
    adjust_for_ties,
    confusion,
    expected_cost,
    expected_cost_interval,
    g_mean,
    mean_cost,
    mean_cost_difference,
    operating_point,
    precision,
    precision_at_k,
    recall,
    recall_at_k,
    threshold_at,
)
from aucdist.metrics.groups import GroupWeight
from aucdist.metrics.guarantees import Guarantee, guaranteed_threshold
from aucdist.metrics.intervals import Estimate
from aucdist.metrics.named import REPORTED_WITHIN_GROUPS, ScoredGroups, find_metric
from aucdist.metrics.ranking import auc, auc_error, average_precision, average_precision_interval
from aucdist.pairs.groups import pair_groups
from flows.config.model import OperatingPointConfig
from flows.rows.rows import TrainTestRows
from flows.run_folder.folder import DECISION, digests, table_counts, versions
from flows.run_folder.run_warnings import run_warnings

STAGES = {
    "data": ("open data", "look at the files", "split and scale", "partition"),
    "search": ("search", "choose features"),
    "fit": ("fit",),
    "evaluate": ("evaluate",),
}
"""The stages of a run whose seconds are added up in the results."""
Bands = list[tuple[ndarray, ndarray]]
"""For each shape of a model, the lowest and the highest value in each bin among several fits."""


class ClassEvaluation(NamedTuple):
    """The scores of the model of one class against the rest.

    Attributes
    ----------
    train : ScoreCounts
        The counts of the scores of the training rows.
    test : ScoreCounts or None
        The counts of the scores of the test rows. None without test rows, or if these are all positive or all negative.
    interval : Estimate or None
        The confidence interval of the AUC of the reported rows; None if they are weighted.
    threshold_counts : ScoreCounts
        The counts of the scores of the rows that set the threshold. These are the threshold rows, or the training rows with
        out-of-fold scores, or the training rows with the scores of the model itself, for example if the rows have costs.
    costs : CostCounts or None
        The costs of the training rows, if the operating point uses the cost column.
    guarantee : Guarantee or None
        The guarantee of the threshold, if one was requested.
    """

    train: ScoreCounts
    test: ScoreCounts | None
    interval: Estimate | None
    threshold_counts: ScoreCounts
    costs: CostCounts | None
    guarantee: Guarantee | None

    @property
    def reported(self) -> tuple[str, ScoreCounts]:
        """The name and the counts of the rows that reports show: the test rows, or else the training rows."""
        return ("training", self.train) if self.test is None else ("test", self.test)


class ScoredTestRows(NamedTuple):
    """The test rows with the scores of the saved model. Arrays have the shape (n_test, n_classes), for two classes (n_test, 1).

    Attributes
    ----------
    table : pyarrow.Table
        The table that `flows.run_folder.folder.score_test_rows` returns.
    members : ndarray
        Whether each row has each class, bool.
    scores : ndarray
        The scores of the saved model. A row with a score above 0 is predicted positive.
    predicted : ndarray
        Whether each class is predicted for each row, bool.
    """

    table: pa.Table
    members: ndarray
    scores: ndarray
    predicted: ndarray

    @property
    def confusions(self) -> ndarray:
        """The number of rows of each class that are predicted to be of each class, int64 of shape (n_classes, n_classes)."""
        return np.asarray(self.members.T.astype(np.int64) @ self.predicted.astype(np.int64))


def scored_rows(estimator: Any, rows: AnyBlocks, table: pa.Table, scores: ndarray) -> ScoredTestRows:
    """Return the test rows with the scores and predictions of a fitted estimator.

    `table` and `scores` are what `score_test_rows` returned for `rows`.
    """
    scores = (scores + [model.decision_intercept for model in estimator.class_models]) / estimator.class_spreads
    if rows.sets is None:
        return ScoredTestRows(table, table["y"].to_numpy()[:, np.newaxis] > 0, scores, scores > 0)
    predicted = predicted_classes(estimator, scores)
    predicted = predicted > 0 if predicted.ndim == 2 else predicted[:, np.newaxis] == estimator.classes_
    return ScoredTestRows(table, rows.sets.indicator(table["code"].to_numpy()), scores, predicted)


class Evaluation(NamedTuple):
    """The evaluation of a fitted estimator.

    Attributes
    ----------
    classes : list of ClassEvaluation
        The evaluation of each class. For two classes, the list has one entry.
    test : ScoredTestRows or None
        The scored test rows, or None without test rows.
    groups : dict or None
        The result of `group_results`.
    set_on : str
        The rows that set the threshold: ``training``, ``out_of_fold`` or ``threshold_rows``.
    warned : list of Warned
        Kind and text of each warning.
    """

    classes: list[ClassEvaluation]
    test: ScoredTestRows | None
    groups: Json | None
    set_on: str
    warned: list[Warned]


class Baseline(NamedTuple):
    """Another model that was fitted to the training rows of a run.

    Attributes
    ----------
    name : str
        The name of the model.
    scores : ndarray
        The scores of the test rows, in the order of their ids.
    seconds : float
        The time of its fit.
    """

    name: str
    scores: ndarray
    seconds: float


class FittedRun(NamedTuple):
    """A fitted estimator, the rows it was fitted to, and its evaluation.

    Attributes
    ----------
    config : object
        The configuration of the run or of the search.
    rows : TrainTestRows
        The training rows and test rows.
    estimator : object
        The fitted estimator.
    evaluation : Evaluation
        The evaluation of the estimator.
    seconds : dict of str to float
        The time of each stage.
    profile : Profile
        The numbers of training rows in each bin, which `aucdist watch` compares new rows with.
    digests : RowDigests
        The digests by which training rows are recognised among other rows.
    warned : list of Warned
        Kind and text of the warnings of the fit and of the evaluation.
    leaks : list of Warned
        Warnings about the rows; see `aucdist.drift.leaks`.
    search : dict or None
        The search that chose the parameters, in the form of ``aucdist cv --json``; None if there was none.
    free : dict or None
        The first result of `flows.train.run.extra_fits`, the fit without monotonic constraints.
    bands : Bands or None
        The second result of `flows.train.run.extra_fits`, the bands around the shapes.
    baselines : sequence of Baseline
        Other models of the same rows.
    named_groups : mapping of str to ndarray
        Values of the columns that name groups of test rows, see `flows.rows.source.named_groups`.
    """

    config: Any
    rows: TrainTestRows
    estimator: Any
    evaluation: Evaluation
    seconds: dict[str, float]
    profile: Profile
    digests: RowDigests
    warned: list[Warned]
    leaks: list[Warned]
    search: Json | None
    free: Json | None
    bands: Bands | None
    baselines: Sequence[Baseline]
    named_groups: Mapping[str, ndarray]


def run_result(fitted: FittedRun, run: str) -> Json:
    """Return the object that ``aucdist train --json`` prints. Scripts of users depend on its keys.

    The numbers of rows and classes are those of the training rows, because the certificate is about their pairs. For several
    classes, the means of the AUC are over the classes that the rows have: unweighted (macro), or weighted by the rows of each
    class.

    Parameters
    ----------
    fitted : FittedRun
        The fitted run.
    run : str
        The URL of the run folder.
    """
    estimator, rows, seconds = fitted.estimator, fitted.rows, fitted.seconds
    train, classes = rows.train, [_result_of_class(fitted, k) for k in range(len(fitted.evaluation.classes))]
    result: Json = {
        "run": run,
        "estimator": type(estimator).__name__,
        "solver": estimator.resolved_solver.name,
        "n_samples": train.n_samples,
        "n_features": train.n_features,
    }
    if rows.schema.classes:
        tested = [row for row in classes if row["test_auc"] is not None]
        areas, weights = ([row[name] for row in tested] for name in ("test_auc", "test_pos"))
        accuracy, test, topics = None, fitted.evaluation.test, rows.schema.topics
        if test is not None and not topics:
            accuracy = float(np.trace(test.confusions)) / max(len(test.members), 1)
        metrics = {
            "train_auc": float(np.mean([row["train_auc"] for row in classes])),
            "test_auc": float(np.mean(areas)) if tested else None,
            "test_auc_weighted": float(np.average(areas, weights=weights)) if tested else None,
            "test_accuracy": accuracy,
        }
        result |= {"topics": topics, "metrics": metrics, "classes": classes}
    else:
        (only,) = classes
        result |= {"n_pos": train.n_pos, "n_neg": train.n_samples - train.n_pos}
        names, interval = ("train_auc", "test_auc", "test_auc_interval", "test_average_precision"), None
        if (test_counts := fitted.evaluation.classes[0].test) is not None:
            result |= {"n_test_pos": test_counts.rows_pos, "n_test_neg": test_counts.rows_neg}
            with warnings.catch_warnings(action="ignore"):  # the evaluation has already warned about few rows
                interval = average_precision_interval(test_counts)
        result |= {
            "metrics": {name: only[name] for name in names} | {f"{names[-1]}_interval": _limits(interval)},
            "certificate": only["certificate"],
            "groups": fitted.evaluation.groups,
            "operating_point": only.get("operating_point"),
            "decisions": only.get("decisions"),
            "baselines": _baselines(fitted) or None,
        }
    result["passes"] = estimator.n_passes_
    result["warnings"] = run_warnings(fitted)
    result["seconds"] = {
        name: sum(seconds.get(stage, 0.0) for stage in stages)
        for name, stages in STAGES.items()
        if fitted.search or name != "search"
    }
    return jsonable({key: value for key, value in result.items() if value is not None})


def _limits(interval: Any) -> list[float] | None:
    return interval and [interval.low, interval.high]


def _baselines(fitted: FittedRun) -> list[Json]:
    """Return the metrics of the baselines on the test rows, and how they differ from those of the model.

    ``rates`` are the recall and the precision if a baseline flags as many rows as the model. Without an operating point, it flags
    as many rows as are positive. ``differences`` (baseline minus model) are those of the AUC, of the average precision and of
    this recall. They are not tested if rows are weighted, or if there are fewer than two rows of a class.
    """
    (evaluation,), scored = fitted.evaluation.classes, fitted.evaluation.test
    if scored is None or evaluation.test is None:
        return []
    rows = scored.table.to_pandas().assign(score=scored.scores[:, 0]).sort_values("row_id")
    y, model_scores = rows[["y", "score"]].to_numpy().T
    table, results = confusion(evaluation.test, fitted.estimator.raw_threshold), []
    k = table["tp"] + table["fn" if fitted.config.operating_point is None else "fp"]
    at_k = {"recall": recall_at_k, "precision": precision_at_k}
    for name, scores, seconds in fitted.baselines:
        counts, differences = table_counts(rows.assign(score=scores)), {}
        if not counts.weighted and min(counts.rows_pos, counts.rows_neg) > 1:
            positives = np.ones(counts.rows_pos)
            orders = (np.argsort(-column, kind="stable") for column in (model_scores, scores))
            missed = [np.argsort(order)[y > 0] >= k for order in orders]
            differences = {
                "test_auc": asdict(auc_test(y, scores, model_scores)),
                "average_precision": asdict(average_precision_difference(y, scores, model_scores)),
                "recall": asdict(mean_cost_difference(positives > 0, missed, positives)),
            }
        results.append(
            {
                "name": name,
                "test_auc": auc(counts),
                "average_precision": average_precision(counts),
                "rates": {key: rate(counts, k) if k else 0.0 for key, rate in at_k.items()},
                "differences": differences,
                "seconds": seconds,
            }
        )
    return results


def _result_of_class(fitted: FittedRun, k: int) -> Json:
    """Return the results of a class. For two classes, it is the positive class."""
    model, measured, test = fitted.estimator.class_models[k], fitted.evaluation.classes[k], fitted.evaluation.test
    tested = measured.test
    test_pos = 0 if tested is None else int(tested.n_pos)
    recalled = precise = None
    if test is not None:
        predicted = test.predicted[:, k]
        right, flagged = (int(which.sum()) for which in (test.members[:, k] & predicted, predicted))
        recalled, precise = right / test_pos if test_pos else None, right / flagged if flagged else None
    result = {
        "name": (fitted.rows.schema.classes or ("",))[k],
        "n_pos": int(measured.train.n_pos),
        "n_neg": int(measured.train.n_neg),
        "train_auc": auc(measured.train),
        "test_pos": test_pos,
        "test_auc": tested and auc(tested),
        "test_auc_interval": tested and _limits(measured.interval),
        "test_average_precision": tested and average_precision(tested),
        "recall": recalled,
        "precision": precise,
        "threshold": 0.0,
        "certificate": model.certificate_.as_dict(),
        "passes": model.n_passes_,
    }
    target = fitted.config.operating_point
    # The rates at the threshold are those on the test rows, or else on the training rows. Weighted rows have no intervals.
    requirement, threshold = {} if target is None else target.options, model.raw_threshold
    which, counts = measured.reported
    point = point_of(counts, threshold, requirement, which, fitted.rows.per_day.get(which))
    point |= threshold_origin(fitted.evaluation.set_on, measured.threshold_counts, measured.guarantee)
    if target is None and not counts.weighted:
        point["r_precision"] = recall_at_k(counts, counts.rows_pos)
    if (costs := measured.costs) is not None:
        point["expected_cost"] = {
            "value": costs.mean(threshold),
            "interval": None,
            "without_model": costs.without_model,
        }
        if tested is not None and test is not None:
            # the mean cost of a test row; without a model that of flagging no row or all rows, whichever is cheaper
            rows, positive = test.table, test.members[:, k]
            wrong = (test.scores[:, k] > 0) != positive
            row_costs = Costs(**requirement["cost"]).of_rows(positive, rows["cost"].to_numpy())
            point["expected_cost"] = {
                "value": mean_cost(wrong, row_costs, None),
                "interval": _limits(DecisionCosts.of(positive, wrong, row_costs).interval()),
                "without_model": min(mean_cost(each, row_costs, None) for each in (positive, ~positive)),
            }
    return result | {"decisions" if target is None else "operating_point": point}


def point_of(counts: ScoreCounts, threshold: float, requirement: Json, rows: str, per_day: float | None) -> Json:
    """Return the rates at a threshold, each with a 95 % interval unless rows are weighted.

    Parameters
    ----------
    counts : ScoreCounts
        The counts of scores.
    threshold : float
        The threshold.
    requirement : dict
        The requirement, as `OperatingPointConfig.options`.
    rows : str
        The name of the rows.
    per_day : float or None
        The number of these rows in a day, if it is known.
    """
    table, n_rows = confusion(counts, threshold), counts.n_pos + counts.n_neg
    flagged = table["tp"] + table["fp"]
    rates: Json = {
        "recall": recall(table),
        "fpr": table["fp"] / counts.n_neg,
        "precision": precision(table),
        "alerts": flagged / n_rows,
    }
    intervals = None if counts.weighted else operating_point(counts, threshold)
    point: Json = {"target": requirement, "threshold": 0.0, "rows": rows} | {
        name: {"value": value, "interval": _limits(getattr(intervals, name, None))} for name, value in rates.items()
    }
    if intervals is not None:
        point |= {"n_alerts": int(flagged), "n_rows": int(n_rows), "n_pos": counts.rows_pos}
    if per_day is not None:
        point["alerts_per_day"] = rates["alerts"] * per_day
    if "cost" in requirement and not (costs := Costs(**requirement["cost"])).differ_by_row:
        # Without a model, the cost is that of flagging no row or all rows, whichever is cheaper.
        spread = None if counts.weighted else expected_cost_interval(counts, threshold, **vars(costs))
        point["expected_cost"] = {
            "value": expected_cost(counts, threshold, **vars(costs)),
            "interval": _limits(spread),
            "without_model": min(costs.miss * counts.n_pos, costs.false_positive * counts.n_neg) / n_rows,
        }
    return point


def threshold_by(
    config: OperatingPointConfig,
    counts: ScoreCounts | CostCounts,
    per_day: float | None,
    fitted: ScoreCounts | None = None,
) -> tuple[float, Guarantee | None]:
    """Return the threshold that meets a requirement on rows, on the scale of their scores, and its guarantee if requested.

    Parameters
    ----------
    config : OperatingPointConfig
        The operating point.
    counts : ScoreCounts or CostCounts
        The counts of the scores of the rows that set the threshold, or their costs at each score.
    per_day : float or None
        The number of these rows per day, if it is known.
    fitted : ScoreCounts, optional
        If `counts` has out-of-fold scores, the counts of the same rows' scores by the model itself, see `adjust_for_ties`.

    Raises
    ------
    InputError
        If no threshold meets the requirement, or if alerts are counted per day and `per_day` is not known.
    """
    if isinstance(counts, CostCounts):
        return counts.cheapest_threshold(), None
    requirement = config.requirement(per_day)
    guarantee = None if config.confidence is None else guaranteed_threshold(counts, config.confidence, **requirement)
    threshold = threshold_at(counts, **requirement) if guarantee is None else guarantee.threshold
    if fitted is not None:
        threshold = adjust_for_ties(fitted, threshold, *requirement.popitem())
    return threshold, guarantee


def threshold_origin(rows: str, counts: ScoreCounts, guarantee: Guarantee | None) -> Json:
    """Describe how the threshold of an operating point was set, as JSON values.

    Parameters
    ----------
    rows : str
        The name of the rows that set the threshold.
    counts : ScoreCounts
        The counts of their scores.
    guarantee : Guarantee or None
        The guarantee of the threshold, if one was requested.
    """
    facts: Json = {"set_on": rows, "out_of_fold": rows == "out_of_fold"}
    if guarantee is not None:
        facts["guarantee"] = {key: value for key, value in asdict(guarantee).items() if key != "threshold"} | {
            "meets_target": guarantee.meets_target, "n_pos": counts.rows_pos, "n_neg": counts.rows_neg
        }  # fmt: skip
    return facts


def details_of(fitted: FittedRun) -> Json:
    """Return the content that ``metrics.json`` has in addition to `run_result`."""
    details: Json = {
        "name": fitted.config.name,
        "data": fitted.rows.identity,
        "versions": versions(),
        "digests": digests(),
        "score": DECISION,
    }
    if not fitted.rows.schema.classes:
        evaluation, per_day = fitted.evaluation, fitted.rows.per_day
        class_evaluation, threshold = evaluation.classes[0], fitted.estimator.raw_threshold
        threshold_counts = class_evaluation.threshold_counts
        details |= {
            "threshold": 0.0,
            "details": {
                part: confusion_details(counts, threshold)
                for part in ("train", "test")
                if (counts := getattr(class_evaluation, part)) is not None
            },
            "interval": asdict(interval) if class_evaluation.test and (interval := class_evaluation.interval) else None,
            "threshold_rows": {  # facts about the rows that set the threshold, which their counts do not have
                "rows": "training" if threshold_counts is class_evaluation.train else evaluation.set_on,
                "n_pos": threshold_counts.rows_pos,
                "n_neg": threshold_counts.rows_neg,
                "weighted": threshold_counts.weighted,
                "shift": threshold_counts.shift,
                "per_day": per_day.get("training"),
                "test_per_day": per_day.get("test"),
            },
        }
    if (directions := getattr(fitted.estimator, "monotone_", None)) is not None:
        words = directions_as_parameter(directions) or {}
        details["monotone"] = {fitted.rows.schema.feature_names[j]: word for j, word in words.items()}
    extra = {"free": fitted.free, "search": fitted.search}
    return jsonable(details | {name: value for name, value in extra.items() if value is not None})


def confusion_details(counts: ScoreCounts, threshold: float) -> Json:
    """Return ``details`` of training or test rows for ``metrics.json``."""
    table = confusion(counts, threshold)
    return {
        "auc_error": auc_error(counts),
        "n_pos": counts.n_pos,
        "n_neg": counts.n_neg,
        "average_precision": average_precision(counts),
        "g_mean": g_mean(table),
        "confusion": table,
    }


def group_results(
    train: Blocks, test_rows: pa.Table | None, scores: ndarray | None, group_weight: GroupWeight
) -> Json | None:
    """Return the entry ``groups`` of ``aucdist train --json``.

    Parameters
    ----------
    train : Blocks
        The training rows.
    test_rows : pyarrow.Table or None
        The table of the test rows, see `ScoredTestRows`.
    scores : ndarray or None
        The scores of the test rows.
    group_weight : {"pairs", "groups"}
        How groups are weighted in the objective, and in the AUC within groups.

    Returns
    -------
    dict or None
        None if rows have neither groups nor grades. ``grouped`` and ``graded`` say which of the two they have. ``group_weight``
        is the argument. ``with_pairs`` and ``without_pairs`` are the numbers of groups of training rows with and without pairs.
        ``metrics`` are those within the groups of test rows: ``value``, ``interval`` (95 %, from resampling groups), and the
        numbers of groups for which the metric is defined (``groups``) and is not defined (``without``).
    """
    pairs_in = pair_groups(train)
    if pairs_in is None:
        return None
    counts: Json = {
        "grouped": train.has_groups, "graded": train.has_grades, "group_weight": group_weight,
        "with_pairs": len(pairs_in.keys), "without_pairs": pairs_in.n_without_pairs, "metrics": {},
    }  # fmt: skip
    if test_rows is None or scores is None or "group" not in test_rows.column_names:
        return counts
    if "grade" in test_rows.column_names:
        grades = test_rows["grade"].to_numpy()
        y = grades - min(0.0, float(grades.min()))
    else:
        y = np.maximum(test_rows["y"].to_numpy(), 0)
    rows = ScoredGroups(y, scores[:, 0], test_rows["group"].to_numpy(), group_weight=group_weight)
    with suppress(InputError):  # raised if no group has a pair
        counts["metrics"] = {
            name: {
                "value": metric.mean, "interval": _limits(metric.interval()), "groups": len(metric.values),
                "without": metric.n_without,
            }
            for name in REPORTED_WITHIN_GROUPS
            for metric in (find_metric(name).evaluate(rows),)
        }  # fmt: skip
    return counts
