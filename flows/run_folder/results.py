"""The results of a run: the object that ``--json`` prints, and the details that `metrics.json` has beyond it.

Two classes are one of several: an evaluation has a list of classes, of which a run of two classes has one.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from aucdist.drift.leaks import RowDigests
from aucdist.drift.profile import Profile
from aucdist.engine.blocks import Blocks
from aucdist.errors import InputError, Json
from aucdist.estimators.classes import predicted_classes
from aucdist.estimators.monotone import directions_as_parameter
from aucdist.metrics.costs import CostCounts, DecisionCosts, mean_cost
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.decisions import (
    Costs,
    confusion,
    expected_cost,
    expected_cost_interval,
    g_mean,
    operating_point,
    precision,
    recall,
)
from aucdist.metrics.groups import GroupWeight, measures_of_groups
from aucdist.metrics.guarantees import Guarantee
from aucdist.metrics.ranking import Interval, auc, auc_error, average_precision
from aucdist.solvers.pairs.groups import pair_groups
from flows.json_values import jsonable
from flows.rows.rows import TrainTestRows
from flows.run_folder.scores import DECISION
from flows.versions import digests, versions

DATA_STAGES = ("open data", "survey", "split and scale", "partition")
Bands = list[tuple[np.ndarray, np.ndarray]]
"""The lowest and the highest value in each bin of each shape of a model, of several fits."""


@dataclass(frozen=True, eq=False)
class ClassEvaluation:
    """How the model of one class against the rest scores the rows.

    `train` and `test`: counts of the scores; `test` is None without test rows, or where these are all on one side.
    `interval`: of the test AUC.
    `costs`: of the training rows, where the cost column says what wrong decisions cost.
    `unseen`: of the rows that set the threshold where the model has not seen them: of the calibration rows, or of the training
        rows scored by models of the other folds.
    `guarantee`: what the threshold promises, if that was asked for.
    """

    train: ScoreCounts
    test: ScoreCounts | None = None
    interval: Interval | None = None
    costs: CostCounts | None = None
    unseen: ScoreCounts | CostCounts | None = None
    guarantee: Guarantee | None = None

    @property
    def shown(self) -> tuple[str, ScoreCounts]:
        """The rows whose scores reports show: the test rows, or else the training rows."""
        return ("training", self.train) if self.test is None else ("test", self.test)

    @property
    def setters(self) -> ScoreCounts | CostCounts:
        """The rows that set the threshold."""
        return next(counts for counts in (self.unseen, self.costs, self.train) if counts is not None)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How a fitted estimator scores the rows.

    `test_rows` and `scores`, of shape (n_test, n_classes): what `flows.run_folder.scores.score_test_rows` returns; None without
        test rows.
    `groups`: what `group_results` returns.
    `set_on`: the rows that set the threshold: ``training``, ``out_of_fold`` or ``calibration``.
    """

    classes: list[ClassEvaluation]
    test_rows: pa.Table | None
    scores: np.ndarray | None
    groups: Json | None
    set_on: str


@dataclass(frozen=True, eq=False)
class FittedRun:
    """A fitted estimator, the rows it was fitted to, and its evaluation.

    `profile` and `digests`: what the model keeps of its training rows: how many lie in each bin, and by what a row is known
        again.
    `leaks`: what should be known before anybody relies on the test; see `aucdist.drift.leaks`.
    `search`: where folds chose the parameters, what was tried, as ``aucdist cv --json`` prints it.
    `free` and `bands`: what `flows.train.more_fits.extra_fits` returns; None without such fits.
    `baselines`: what `flows.train.more_fits.baselines` returns.
    `named_groups`: values of the columns that name groups of test rows, see `flows.rows.source.named_groups`.
    """

    config: Any
    rows: TrainTestRows
    estimator: Any
    evaluation: Evaluation
    seconds: dict[str, float]
    profile: Profile
    digests: RowDigests
    leaks: tuple[str, ...]
    search: Json | None
    free: Json | None
    bands: Bands | None
    baselines: Sequence[Json]
    named_groups: Mapping[str, np.ndarray]

    @property
    def several(self) -> bool:
        """Whether each of several classes was fitted against the rest."""
        return bool(self.estimator.has_several_classes)

    @property
    def models(self) -> Sequence[Any]:
        """The fitted model of each class against the rest; of two classes the estimator itself."""
        return self.estimator.class_models

    @cached_property
    def members(self) -> np.ndarray:
        """Which classes the test rows have, bool of shape (n_test, n_classes)."""
        table = self.evaluation.test_rows
        assert table is not None
        if self.rows.test_sets is None:
            return table["y"].to_numpy()[:, np.newaxis] > 0
        return np.asarray(self.rows.test_sets.indicator(table["code"].to_numpy()).toarray())

    @cached_property
    def scores(self) -> np.ndarray:
        """The scores of the test rows as the saved model gives them, of shape (n_test, n_classes): above 0 is positive."""
        assert self.evaluation.scores is not None
        intercepts = [model.decision_intercept for model in self.models]
        return (self.evaluation.scores + intercepts) / self.estimator.class_spreads

    @cached_property
    def predicted(self) -> np.ndarray:
        """Which of several classes the test rows are predicted to be of, bool of shape (n_test, n_classes)."""
        classes = predicted_classes(self.estimator, self.scores)
        return classes > 0 if classes.ndim == 2 else classes[:, np.newaxis] == self.estimator.classes_

    @cached_property
    def confusions(self) -> np.ndarray | None:
        """How many test rows of each of several classes are predicted to be of each: int64 of shape (n_classes, n_classes)."""
        if self.evaluation.scores is None or not self.several:
            return None
        return np.asarray(self.members.T.astype(np.int64) @ self.predicted.astype(np.int64))


def result_of(fitted: FittedRun, run: str) -> Json:
    """Return the object that ``aucdist train --json`` prints; scripts rely on its keys.

    Rows and classes are those of the training rows, over whose pairs the certificate holds. For several classes the means of AUC
    are over those that the rows have, each alike (macro) or weighted by its rows.

    `run`: the URL of the run folder.
    """
    estimator, train, seconds = fitted.estimator, fitted.rows.train, fitted.seconds
    classes = [_result_of_class(fitted, k) for k in range(len(fitted.models))]
    if fitted.several:
        tested = [(row["test_auc"], row["test_pos"]) for row in classes if row["test_auc"] is not None]
        areas, accuracy, topics = [area for area, _ in tested], None, fitted.rows.schema.topics
        if fitted.confusions is not None and not topics:
            accuracy = float(np.trace(fitted.confusions)) / max(len(fitted.members), 1)
        measured = {
            "topics": topics,
            "metrics": {
                "train_auc": float(np.mean([row["train_auc"] for row in classes])),
                "test_auc": float(np.mean(areas)) if tested else None,
                "test_auc_weighted": (float(np.average(areas, weights=[n for _, n in tested])) if tested else None),
                "test_accuracy": accuracy,
            },
            "classes": classes,
        }
    else:
        of_two = {name: classes[0][name] for name in ("train_auc", "test_auc", "test_auc_interval")}
        measured = {"n_pos": train.n_pos, "n_neg": train.n_samples - train.n_pos, "metrics": of_two}
        measured["certificate"] = classes[0]["certificate"]
    result = {
        "run": run,
        "estimator": type(estimator).__name__,
        "solver": estimator.resolved_solver.name,
        "n_samples": train.n_samples,
        "n_features": train.n_features,
        **measured,
        "passes": estimator.n_passes_,
        "seconds": {
            "data": sum(seconds.get(stage, 0.0) for stage in DATA_STAGES),
            "fit": seconds["fit"],
            "evaluate": seconds["evaluate"],
        },
    }
    if not fitted.several:
        if fitted.evaluation.groups is not None:
            result["groups"] = fitted.evaluation.groups
        if "operating_point" in classes[0]:
            result["operating_point"] = classes[0]["operating_point"]
        if fitted.baselines:
            result["baselines"] = fitted.baselines
    return jsonable(result)


def _ends(interval: Any) -> list[float] | None:
    return None if interval is None else [interval.low, interval.high]


def _result_of_class(fitted: FittedRun, k: int) -> Json:
    model, of_class = fitted.models[k], fitted.evaluation.classes[k]
    test, test_pos = of_class.test, int(0 if of_class.test is None else of_class.test.n_pos)
    recalled = precise = None
    if fitted.confusions is not None:
        right, flagged = float(fitted.confusions[k, k]), int(fitted.predicted[:, k].sum())
        recalled, precise = right / test_pos if test_pos else None, right / flagged if flagged else None
    return {
        "name": (fitted.rows.schema.classes or ("",))[k],
        "n_pos": int(of_class.train.n_pos),
        "n_neg": int(of_class.train.n_neg),
        "train_auc": auc(of_class.train),
        "test_pos": test_pos,
        "test_auc": None if test is None else auc(test),
        "test_auc_interval": _ends(of_class.interval),
        "recall": recalled,
        "precision": precise,
        "threshold": 0.0,
        "certificate": model.certificate_.as_dict(),
        "passes": model.n_passes_,
    } | ({} if (point := _operating_point(fitted, k)) is None else {"operating_point": point})


def _operating_point(fitted: FittedRun, k: int) -> Json | None:
    """Return what the threshold of a class finds on the test rows, or else on the training rows; None if none was asked for.

    Weighted rows have no intervals.
    """
    config = fitted.config.operating_point
    if config is None:
        return None
    evaluation, of_class, requirement = fitted.evaluation, fitted.evaluation.classes[k], config.options
    threshold = float(fitted.models[k].raw_threshold)
    which, counts = of_class.shown
    point = point_of(counts, threshold, requirement, which, fitted.rows.per_day.get(which))
    point |= how_set(evaluation.set_on, of_class.setters, of_class.guarantee)
    if (costs := of_class.costs) is not None:
        rows, scores = evaluation.test_rows, evaluation.scores
        if of_class.test is None or rows is None or scores is None:
            cost = {"value": costs.mean(threshold), "interval": None, "without_model": costs.without_model}
        else:
            positive = fitted.members[:, k]
            wrong = (scores[:, k] > threshold) != positive
            cost = _cost_of_rows(rows, positive, wrong, Costs(**requirement["cost"]))
        point["expected_cost"] = cost
    return point


def _cost_of_rows(rows: pa.Table, positive: np.ndarray, wrong: np.ndarray, costs: Costs) -> Json:
    """Return the mean cost of a test row, where rows have a cost of their own, as ``expected_cost``.

    `positive` and `wrong`, of shape (n_test,), bool: which rows are positive, and which are decided wrongly.
    Returns ``value``; ``interval``, of 95 %, None for weighted rows; ``without_model``: that of the cheaper one of flagging no
        row and all rows.
    """
    weight = rows["weight"].to_numpy() if "weight" in rows.column_names else None
    of_row = costs.of_rows(positive, rows["cost"].to_numpy())
    return {
        "value": mean_cost(wrong, of_row, weight),
        "interval": None if weight is not None else _ends(DecisionCosts.of(positive, wrong, of_row).interval()),
        "without_model": min(mean_cost(which, of_row, weight) for which in (positive, ~positive)),
    }


def point_of(counts: ScoreCounts, threshold: float, requirement: Json, rows: str, per_day: float | None) -> Json:
    """Return what a threshold finds on rows, each rate with its interval of 95 %; weighted rows have none.

    `requirement`: the requirement, as `OperatingPointConfig.options`.
    `rows`: which ones they are.
    `per_day`: how many of them there are in a day, if that is known.
    """
    table = confusion(counts, threshold)
    rates: Json = {
        "recall": recall(table),
        "fpr": table["fp"] / counts.n_neg,
        "precision": precision(table),
        "alerts": (table["tp"] + table["fp"]) / (counts.n_pos + counts.n_neg),
    }
    intervals = None if counts.weighted else operating_point(counts, threshold)
    point: Json = {"wanted": requirement, "threshold": 0.0, "rows": rows} | {
        name: {"value": value, "interval": _ends(getattr(intervals, name, None))} for name, value in rates.items()
    }
    if per_day is not None:
        point["alerts_per_day"] = rates["alerts"] * per_day
    if "cost" in requirement and not (costs := Costs(**requirement["cost"])).differ_by_row:
        # Without a model, the cost is that of flagging no row or all rows, whichever is cheaper.
        without = min(costs.miss * counts.n_pos, costs.false_alarm * counts.n_neg) / (counts.n_pos + counts.n_neg)
        spread = None if counts.weighted else expected_cost_interval(counts, threshold, **vars(costs))
        value = expected_cost(counts, threshold, **vars(costs))
        point["expected_cost"] = {"value": value, "interval": _ends(spread), "without_model": without}
    return point


def how_set(rows: str, counts: ScoreCounts | CostCounts, guarantee: Guarantee | None) -> Json:
    """Return what an operating point says of how its threshold was set, in types of JSON.

    `rows`: which ones set it; `counts`: of these rows.
    `guarantee`: what it promises, if that was asked for.
    """
    said: Json = {"set_on": rows, "out_of_fold": rows == "out_of_fold"}
    if guarantee is None:
        return said
    assert isinstance(counts, ScoreCounts)
    about = {key: value for key, value in asdict(guarantee).items() if key != "threshold"}
    return said | {"guarantee": about | {"holds": guarantee.holds, "n_pos": counts.rows_pos, "n_neg": counts.rows_neg}}


def details_of(fitted: FittedRun) -> Json:
    """Return what ``metrics.json`` has beyond `result_of`."""
    details: Json = {
        "name": fitted.config.name,
        "data": {"name": fitted.rows.name, "fingerprint": fitted.rows.fingerprint},
        "versions": versions(),
        "digests": digests(),
        "score": DECISION,
    }
    if not fitted.several:
        evaluation, per_day = fitted.evaluation, fitted.rows.per_day
        of_class, threshold = evaluation.classes[0], fitted.estimator.raw_threshold
        setters = setters_of(fitted)
        interval = of_class.interval and asdict(of_class.interval)
        details |= {
            "threshold": 0.0,
            "details": {
                part: detail_of(counts, threshold)
                for part, counts in (("train", of_class.train), ("test", of_class.test))
                if counts is not None
            },
            "interval": interval and {"auc": interval.pop("value"), **interval},
            "threshold_rows": {  # what must be known beside the counts of the rows that set the threshold
                "rows": evaluation.set_on if setters is of_class.setters else "training",
                "n_pos": setters.rows_pos,
                "n_neg": setters.rows_neg,
                "weighted": setters.weighted,
                "shift": setters.shift,
                "per_day": per_day.get("training"),
                "test_per_day": per_day.get("test"),
            },
        }
    if (directions := getattr(fitted.estimator, "monotone_", None)) is not None:
        words = directions_as_parameter(directions) or {}
        details["monotone"] = {fitted.rows.schema.feature_names[j]: word for j, word in words.items()}
    if fitted.free is not None:
        details["free"] = fitted.free
    return jsonable(details)


def setters_of(fitted: FittedRun) -> ScoreCounts:
    """Return the counts of the rows that set the threshold of two classes; where they count costs, of the training rows."""
    counts = fitted.evaluation.classes[0].setters
    return counts if isinstance(counts, ScoreCounts) else fitted.evaluation.classes[0].train


def detail_of(counts: ScoreCounts, threshold: float) -> Json:
    """Return what ``metrics.json`` says of training or test rows: ``details``."""
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
    train: Blocks, test_rows: pa.Table | None, scores: np.ndarray | None, group_weight: GroupWeight
) -> Json | None:
    """Return the entry ``groups`` of ``aucdist train --json``; None where rows have neither groups nor grades.

    `test_rows` and `scores`: as of `Evaluation`.
    `group_weight`, {"pairs", "groups"}: what a group weighs in the objective, and in the AUC within groups.
    Returns ``grouped`` and ``graded``: which of both they have; ``group_weight``. ``with_pairs`` and ``without_pairs``:
        the groups of training rows. ``measures``: of the test rows' groups ``value``, ``interval`` (95 %, from
        resampling groups), and ``groups`` and ``without``, those that have the measure and those that have none.
    """
    pairs_in = pair_groups(train)
    if pairs_in is None:
        return None
    counts: Json = {"grouped": train.has_groups, "graded": train.has_grades, "group_weight": group_weight}
    counts |= {"with_pairs": len(pairs_in.keys), "without_pairs": pairs_in.n_without_pairs, "measures": {}}
    if test_rows is None or scores is None or "group" not in test_rows.column_names:
        return counts
    if "grade" in test_rows.column_names:
        grades = test_rows["grade"].to_numpy()
        y = grades - min(0.0, float(grades.min()))
    else:
        y = np.maximum(test_rows["y"].to_numpy(), 0)
    measures = measures_of_groups(y, scores[:, 0], test_rows["group"].to_numpy(), group_weight)
    with suppress(InputError):  # no group has a pair
        counts["measures"] = {
            name: {
                "value": of.mean, "interval": list(of.interval()), "groups": len(of.values), "without": of.n_without,
            }
            for name, of in measures
        }  # fmt: skip
    return counts
