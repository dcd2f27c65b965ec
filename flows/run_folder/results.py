"""The results of a run: the object that ``--json`` prints, and the details that `metrics.json` has beyond it."""

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from aucdist.drift.digests import RowDigests
from aucdist.drift.profile import WatchedColumn
from aucdist.estimators.monotone import directions_as_parameter
from aucdist.metrics.costs import CostCounts
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.decisions import (
    confusion,
    expected_cost,
    expected_cost_interval,
    g_mean,
    operating_point,
    precision,
    recall,
)
from aucdist.metrics.ranking import Interval, auc, auc_error, average_precision
from flows.json_values import jsonable
from flows.rows.train_test import TrainTestRows
from flows.run_folder.costs import costed_rows, mean_cost_of_rows
from flows.versions import versions

DATA_STAGES = ("open data", "survey", "split and scale", "partition")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How a fitted estimator scores the rows.

    `train` and `test`: of the training rows, and of the test rows, where there are some.
    `interval`: of the test AUC.
    `scores`: the scores of the test rows, as `flows.run_folder.scores.count_and_tabulate` returns them.
    `groups`: what `flows.run_folder.groups.group_results` returns.
    `costs`: of the training rows, where the cost column says what wrong decisions cost.
    `unseen`: of the training rows, scored by models of the other folds, where they set the threshold.
    """

    train: ScoreCounts
    test: ScoreCounts | None
    interval: Interval | None
    scores: list[bytes] = field(default_factory=list)
    groups: dict[str, Any] | None = None
    costs: CostCounts | None = None
    unseen: ScoreCounts | CostCounts | None = None


@dataclass(frozen=True, eq=False)
class RowsSeen:
    """What a model keeps of its training rows.

    `columns`: how many rows lie in each bin.
    `digests`: by which a row is known again.
    `test_checked` and `test_known`: test rows that could be looked up among the digests, and how many were there.
    `traps`: what should be known before anybody relies on the test; see `aucdist.drift.traps`.
    """

    columns: tuple[WatchedColumn, ...]
    digests: RowDigests
    test_checked: int
    test_known: int
    traps: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class MoreFits:
    """What other fits say of a model: see `flows.train.shapes`.

    `free`: ``objective``, ``relative_gap``, ``passes``, ``train_auc`` and ``test_auc`` without directions; ``monotone``
        has those of the model.
    `bands`: the lowest and the highest value in each bin of each shape of the model.
    `n_halves`: fits that the bands are of.
    """

    free: dict[str, Any] | None
    bands: list[tuple[np.ndarray, np.ndarray]] | None
    n_halves: int | None


@dataclass(frozen=True, eq=False)
class FittedRun:
    """A fitted estimator, the rows it was fitted to, and its evaluation.

    `search`: where folds chose the parameters, what was tried, as ``aucdist cv --json`` prints it.
    `more`: where the configuration asks for more fits.
    """

    config: Any
    rows: TrainTestRows
    estimator: Any
    evaluation: Evaluation
    seconds: dict[str, float]
    seen: RowsSeen
    search: dict[str, Any] | None = None
    more: MoreFits | None = None


def result_of(fitted: FittedRun, run: str) -> dict[str, Any]:
    """Return the object that ``aucdist train --json`` prints; scripts rely on its keys.

    Rows and classes are those of the training rows, over whose pairs the certificate holds.

    `run`: the URL of the run folder.
    """
    estimator, train, seconds = fitted.estimator, fitted.rows.train, fitted.seconds
    certificate = estimator.certificate_
    test, interval = fitted.evaluation.test, fitted.evaluation.interval
    result: dict[str, Any] = jsonable(
        {
            "run": run,
            "estimator": type(estimator).__name__,
            "solver": estimator.resolved_solver.name,
            "n_samples": train.n_samples,
            "n_features": train.n_features,
            "n_pos": train.n_pos,
            "n_neg": train.n_samples - train.n_pos,
            "metrics": {
                "train_auc": auc(fitted.evaluation.train),
                "test_auc": None if test is None else auc(test),
                "test_auc_interval": None if interval is None else [interval.low, interval.high],
            },
            "certificate": {
                "primal": certificate.primal,
                "dual": certificate.dual,
                "relative_gap": certificate.relative_gap,
                "status": certificate.status.value,
                "rounding": certificate.rounding,
                "slack": certificate.slack,
            },
            "passes": estimator.n_passes_,
            "seconds": {
                "data": sum(seconds.get(stage, 0.0) for stage in DATA_STAGES),
                "fit": seconds["fit"],
                "evaluate": seconds["evaluate"],
            },
        }
    )
    if fitted.evaluation.groups is not None:
        result["groups"] = jsonable(fitted.evaluation.groups)
    wanted = getattr(fitted.config, "operating_point", None)
    if wanted is not None:
        threshold, costs = float(estimator.raw_threshold), fitted.evaluation.costs
        by_row = None
        if costs is not None:
            by_row = mean_cost_of_rows(costs, costed_rows(fitted.evaluation.scores), threshold, wanted.wanted["cost"])
        point = operating_point_of(fitted.evaluation, threshold, wanted.wanted, by_row)
        result["operating_point"] = jsonable(point | {"out_of_fold": fitted.evaluation.unseen is not None})
    return result


def operating_point_of(
    evaluation: Evaluation, threshold: float, wanted: dict[str, Any], by_row: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the performance of the threshold on the test rows, or else on the training rows; weighted rows have no intervals.

    `by_row`: where costs differ by row, what `flows.run_folder.costs.mean_cost_of_rows` returns.
    """
    counts = evaluation.train if evaluation.test is None else evaluation.test
    table = confusion(counts, threshold)
    rates: dict[str, Any] = {
        "recall": recall(table),
        "fpr": table["fp"] / counts.n_neg,
        "precision": precision(table),
        "alerts": (table["tp"] + table["fp"]) / (counts.n_pos + counts.n_neg),
    }
    found = None if counts.weighted else operating_point(counts, threshold)
    cost = {}
    if "cost" in wanted:
        cost["expected_cost"] = by_row or _expected_cost(counts, threshold, wanted["cost"])
    return {
        "wanted": wanted,
        "threshold": threshold,
        "rows": "training" if evaluation.test is None else "test",
        **{
            name: {
                "value": value,
                "interval": None if found is None else [getattr(found, name).low, getattr(found, name).high],
            }
            for name, value in rates.items()
        },
        **cost,
    }


def _expected_cost(counts: ScoreCounts, threshold: float, cost: dict[str, float]) -> dict[str, Any]:
    """Return the mean cost of a row, and that without a model: the cheaper one of flagging no row and all rows."""
    without = min(cost["miss"] * counts.n_pos, cost["false_alarm"] * counts.n_neg) / (counts.n_pos + counts.n_neg)
    spread = None if counts.weighted else expected_cost_interval(counts, threshold, **cost)
    return {
        "value": expected_cost(counts, threshold, **cost),
        "interval": None if spread is None else [spread.low, spread.high],
        "without_model": without,
    }


def details_of(fitted: FittedRun) -> dict[str, Any]:
    """Return what ``metrics.json`` has beyond `result_of`."""
    threshold, evaluation = fitted.estimator.raw_threshold, fitted.evaluation
    parts = {"train": evaluation.train, "test": evaluation.test}
    details: dict[str, Any] = jsonable(
        {
            "name": fitted.config.name,
            "data": {"name": fitted.rows.name, "fingerprint": fitted.rows.fingerprint},
            "threshold": threshold,
            "details": {part: _detail(counts, threshold) for part, counts in parts.items() if counts is not None},
            "interval": None if evaluation.interval is None else asdict(evaluation.interval),
            "versions": versions(),
        }
    )
    if (found := getattr(fitted.estimator, "monotone_", None)) is not None:
        words = directions_as_parameter(found) or {}
        details["monotone"] = {fitted.rows.schema.feature_names[j]: word for j, word in words.items()}
    if fitted.more is not None and fitted.more.free is not None:
        details["free"] = jsonable(fitted.more.free)
    return details


def _detail(counts: ScoreCounts, threshold: float) -> dict[str, Any]:
    table = confusion(counts, threshold)
    return {
        "auc_error": auc_error(counts),
        "n_pos": counts.n_pos,
        "n_neg": counts.n_neg,
        "average_precision": average_precision(counts),
        "g_mean": g_mean(table),
        "confusion": table,
    }
