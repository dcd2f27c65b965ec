"""The stages of training that a search shares: fit an estimator, evaluate it."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from aucdist.drift.digests import count_known, fit_digests
from aucdist.drift.profile import fit_columns
from aucdist.drift.traps import traps
from aucdist.engine.classes import AnyBlocks, ClassBlocks
from aucdist.errors import InputError
from aucdist.estimators.calibration import training_scores_unseen, will_need_unseen
from aucdist.estimators.pair_options import group_weight_of
from aucdist.estimators.scores import count_costs, count_scores, mapped_rows
from aucdist.metrics.costs import CostCounts
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.decisions import threshold_at
from aucdist.metrics.ranking import auc_interval
from flows.config.model import ModelConfig
from flows.config.operating_point import OperatingPointConfig
from flows.progress.console import RunObserver
from flows.progress.warned import warnings_to
from flows.rows.train_test import TrainTestBlocks, TrainTestRows
from flows.run_folder.groups import group_results
from flows.run_folder.results import Evaluation, RowsSeen
from flows.run_folder.scores import count_and_tabulate
from flows.train.checkpoints import CheckpointStore, ClassCheckpoints


def fit(
    model: ModelConfig,
    train: AnyBlocks,
    observer: RunObserver,
    checkpoints: CheckpointStore | ClassCheckpoints | None = None,
    operating_point: OperatingPointConfig | None = None,
) -> tuple[Any, Any]:
    """Return the fitted estimator, and the counts of the training scores where the fit needed them; of each class, if several.

    Rounds and warnings go to `observer`, and each round may write a checkpoint.
    `operating_point`: is set afterwards; what it needs of the calibration of two classes is kept.
    """
    estimator = model.built
    two_classes = not isinstance(train, ClassBlocks)  # of many classes the scores would take gigabytes
    if two_classes and operating_point is not None and operating_point.scores_unseen(estimator):
        will_need_unseen(estimator)

    def round_done(record: dict[str, Any]) -> None:
        observer.round(record, estimator.tol)
        if isinstance(checkpoints, ClassCheckpoints):
            checkpoints.round_done(record["class"], last=record["relative_gap"] <= estimator.tol)
        elif checkpoints is not None:
            checkpoints.round_done()

    with warnings_to(observer), nullcontext() if checkpoints is None else checkpoints.finish_round_on_sigterm():
        counts = estimator.fit_blocks(train if checkpoints is None else checkpoints.blocks, callback=round_done)
    return estimator, counts


def set_operating_point(estimator: Any, evaluation: Evaluation, wanted: dict[str, Any]) -> None:
    """Set the threshold of the estimator to what the training rows need, such as ``{"fpr": 0.001}``."""
    counts = next(known for known in (evaluation.unseen, evaluation.costs, evaluation.train) if known is not None)
    estimator.set_raw_threshold(_threshold(counts, wanted))


def _threshold(counts: ScoreCounts | CostCounts, wanted: dict[str, Any]) -> float:
    return counts.cheapest_threshold() if isinstance(counts, CostCounts) else threshold_at(counts, **wanted)


def set_operating_points(estimator: Any, counts: Sequence[ScoreCounts | CostCounts], wanted: dict[str, Any]) -> None:
    """Set the threshold of each class to what its training rows need."""
    found = []
    for name, of_class in zip(estimator.label_sets_.names(), counts, strict=True):
        try:
            found.append(_threshold(of_class, wanted))
        except InputError as error:
            raise InputError(f"class {name!r}: {error}") from None
    estimator.set_raw_threshold(found)


def evaluate(
    estimator: Any,
    train: ScoreCounts | None,
    blocks: TrainTestBlocks,
    observer: RunObserver,
    operating_point: OperatingPointConfig | None = None,
) -> Evaluation:
    """Count the scores of the test rows, and keep them, and those of the training rows unless the fit has counted them.

    Where the operating point uses the cost column, what training rows cost at each score is counted, too. Warnings go to
    `observer`.
    """
    costs = unseen = None
    if operating_point is not None:
        cost = operating_point.wanted["cost"] if operating_point.uses_cost_column else None
        costs = None if cost is None else count_costs(mapped_rows(estimator, blocks.train), estimator.coef_[0], cost)
        unseen = (
            training_scores_unseen(estimator, blocks.train, cost) if operating_point.scores_unseen(estimator) else None
        )
    group_weight = group_weight_of(estimator)
    if train is None:
        train = count_scores(mapped_rows(estimator, blocks.train), estimator.coef_[0])
    if blocks.test is None:
        return Evaluation(
            train, None, None, groups=group_results(blocks.train, [], group_weight), costs=costs, unseen=unseen
        )
    test, tables = count_and_tabulate(blocks.test, estimator)
    with warnings_to(observer):
        return Evaluation(
            train, test, auc_interval(test), tables, group_results(blocks.train, tables, group_weight), costs, unseen
        )


def profile(estimator: Any, rows: TrainTestRows, blocks: TrainTestBlocks) -> RowsSeen:
    """Count the training rows in bins of their columns, and keep digests of them: what `aucdist watch` compares new rows with."""
    seen = rows_seen(blocks, rows, estimator.coef_[0])
    found = traps(blocks.train, blocks.test, rows.schema, known=seen.test_known, checked=seen.test_checked)
    return replace(seen, traps=found)


def rows_seen(blocks: TrainTestBlocks, rows: TrainTestRows, coef: np.ndarray) -> RowsSeen:
    """Return the counts of the training rows in bins of their columns, and their digests; `coef` says which of many columns."""
    columns = fit_columns(blocks.train, rows.schema, rows.preprocessor, coef)
    digests = fit_digests(blocks.train)
    checked, known = (0, 0) if blocks.test is None else count_known(blocks.test, digests)
    return RowsSeen(columns, digests, checked, known)
