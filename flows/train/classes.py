"""What the stages of training do for several classes: fit each against the rest, evaluate each, and predict the test rows."""

from dataclasses import replace
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.data.label_sets import LabelSets
from aucdist.engine.blocks import Blocks, Summary
from aucdist.errors import InputError
from aucdist.estimators.calibration import out_of_fold
from aucdist.estimators.classes import predicted_classes
from aucdist.estimators.scores import count_costs, count_scores, mapped_rows, scores_of
from aucdist.metrics.counts import BoundedCounts, ScoreCounts
from aucdist.metrics.ranking import Interval, auc_interval
from aucdist.search.classes import LEAST_ROWS
from aucdist.search.folds import costs_of_rows, row_ids_and_labels
from flows.config.operating_point import OperatingPointConfig
from flows.progress.console import RunObserver
from flows.progress.warned import warnings_to
from flows.rows.train_test import TrainTestBlocks, TrainTestClasses, TrainTestRows
from flows.run_folder.classes import ClassEvaluation, ClassScores
from flows.run_folder.results import RowsSeen
from flows.train.stages import rows_seen, set_operating_points


def usable_classes(rows: TrainTestRows, train: Blocks, observer: RunObserver) -> TrainTestRows:
    """Return the rows with the classes that can be fitted; a note names those that are left out."""
    assert rows.tables is not None
    sets = rows.tables.train
    n = train.without_memory().reduce(_count_classes, sets)["n"]
    enough = np.minimum(n, train.n_samples - n) >= LEAST_ROWS
    if enough.all():
        return rows
    if not enough.any():
        raise InputError(f"no class has {LEAST_ROWS} training rows and as many others: there is nothing to fit")
    names = sets.names()
    for k in np.flatnonzero(~enough).tolist():
        observer.note(f"class {names[k]!r} has {n[k]} of {train.n_samples} training rows, and is left out")
    which = np.flatnonzero(enough).tolist()
    schema = replace(rows.schema, classes=tuple(names[k] for k in which))
    return replace(rows, schema=schema, tables=rows.tables.only(which))


def _count_classes(block: Block, memory: None, sets: LabelSets) -> tuple[None, Summary]:
    assert block.code is not None
    return None, {"n": sets.counts(block.code)}


def profile_each(estimator: Any, rows: TrainTestRows, blocks: TrainTestBlocks) -> RowsSeen:
    """Count the training rows in bins of their columns, and keep digests of them, as for two classes.

    Of wide data the columns are watched that move the scores of all classes most.
    """
    coef = np.zeros(0)
    if hasattr(estimator, "coef_"):
        coef = np.abs(estimator.coef_ / estimator.spreads_[:, np.newaxis]).sum(axis=0)
    return rows_seen(blocks, rows, coef)


def evaluate_each(
    estimator: Any,
    counts: list[ScoreCounts | None],
    blocks: TrainTestClasses,
    observer: RunObserver,
    operating_point: OperatingPointConfig | None = None,
) -> ClassEvaluation:
    """Count the scores of each class, set its threshold where an operating point is given, and predict the test rows.

    Warnings go to `observer`.
    """
    models, cost = estimator.estimators_, None
    if operating_point is not None and operating_point.uses_cost_column:
        cost = operating_point.wanted["cost"]
    train, costs, unseen = [], [], []
    for k, (one, known) in enumerate(zip(models, counts, strict=True)):
        rows = blocks.train.of_class(k)
        of_class = mapped_rows(one, rows)
        train.append(count_scores(of_class, one.coef_[0]) if known is None else known)
        if cost is not None:
            costs.append(count_costs(of_class, one.coef_[0], cost))
        if operating_point is not None and operating_point.scores_unseen(one):
            unseen.append(out_of_fold(one, rows, cost))
    if operating_point is not None:
        set_operating_points(estimator, unseen or costs or train, operating_point.wanted)
    if blocks.test is None:
        return ClassEvaluation(train, [None] * len(models), [None] * len(models), None, costs, out_of_fold=bool(unseen))
    test: list[ScoreCounts | None] = []
    intervals: list[Interval | None] = []
    columns = []
    with warnings_to(observer):
        for k, one in enumerate(models):
            rows = blocks.test.of_class(k).without_memory()
            found = rows.reduce(_score_rows, one.coef_[0], getattr(one, "feature_map_", None))
            of_class = found["counts"].counts
            both = of_class.n_pos > 0 and of_class.n_neg > 0
            intervals.append(auc_interval(of_class) if both else None)
            test.append(of_class if both else None)
            columns.append(np.concatenate(found["scores"]))
    row_id, code = row_ids_and_labels(blocks.test.blocks)
    matrix = np.column_stack(columns)
    shown = (matrix + [one.decision_intercept for one in models]) / estimator.spreads_
    costs_of_test = None if cost is None else costs_of_rows(blocks.test.blocks)
    scores = ClassScores(row_id, code, matrix, predicted_classes(estimator, shown), costs_of_test)
    return ClassEvaluation(train, test, intervals, scores, costs, out_of_fold=bool(unseen))


def _score_rows(block: Block, memory: None, w: np.ndarray, fitted: Any) -> tuple[None, Summary]:
    scores = scores_of(block.X, w, fitted=fitted)
    counts = BoundedCounts.from_scores(block.y, scores, block.weight)
    return None, {"counts": counts, "scores": [scores]}
