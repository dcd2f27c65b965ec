"""The stages of training for several classes: fit each against the rest, evaluate each, and predict the test rows."""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary
from aucdist.engine.classes import ClassBlocks
from aucdist.estimators.classes import predicted_classes
from aucdist.estimators.scores import count_scores, mapped_rows, scores_of
from aucdist.metrics.counts import BoundedCounts, ScoreCounts
from aucdist.metrics.ranking import Interval, auc_interval
from flows.compute.stages import Stages
from flows.config.model import ModelConfig
from flows.progress.console import RunObserver
from flows.progress.warned import warnings_to
from flows.rows.train_test import ClassLabels, TrainTestBlocks, TrainTestClasses, TrainTestRows
from flows.run_folder.classes import ClassEvaluation, ClassScores, FittedClasses
from flows.train.checkpoints import ClassCheckpoints, open_class_checkpoints
from flows.train.stages import set_operating_points

LEAST_ROWS = 2
"""Training rows of a class, and of its rest, without which it is left out."""


def fit_classes(
    config: Any,
    model: ModelConfig,
    rows: TrainTestRows,
    blocks: TrainTestBlocks,
    stages: Stages,
    observer: RunObserver,
    search: dict[str, Any] | None = None,
) -> tuple[FittedClasses, ClassCheckpoints | None]:
    """Run the stages: fit each class that has enough rows, and evaluate; `search` is what chose the model's parameters."""
    rows = usable_classes(rows, observer)
    of_classes = rows.with_classes(blocks)
    checkpoints = open_class_checkpoints(config, model, rows.fingerprint, of_classes.train, observer)
    estimator, counts = stages("fit", fit_each, model, of_classes.train, observer, checkpoints)
    point = getattr(config, "operating_point", None)
    wanted = None if point is None else point.wanted
    evaluation = stages("evaluate", evaluate_each, estimator, counts, of_classes, observer, wanted)
    return FittedClasses(config, rows, estimator, evaluation, stages.seconds, search), checkpoints


def usable_classes(rows: TrainTestRows, observer: RunObserver) -> TrainTestRows:
    """Return the rows with the classes that can be fitted; a note names those that are left out."""
    assert rows.labels is not None
    labels, (row_id, _) = rows.labels, rows.train.row_ids_and_labels(map)
    n = labels.train.sets.counts(labels.train.codes[row_id])
    enough = np.minimum(n, len(row_id) - n) >= LEAST_ROWS
    if enough.all():
        return rows
    names = labels.train.sets.names()
    for k in np.flatnonzero(~enough).tolist():
        observer.note(f"class {names[k]!r} has {n[k]} of {len(row_id)} training rows, and is left out")
    which = np.flatnonzero(enough).tolist()
    schema = replace(rows.schema, classes=tuple(names[k] for k in which))
    return replace(rows, schema=schema, labels=ClassLabels(labels.train.only(which), labels.test.only(which)))


def fit_each(
    model: ModelConfig, train: ClassBlocks, observer: RunObserver, checkpoints: ClassCheckpoints | None = None
) -> tuple[Any, list[ScoreCounts | None]]:
    """Return the fitted estimator, and for each class the counts of the training scores where the fit needed them.

    Rounds and warnings go to `observer`, and each round may write a checkpoint.
    """
    estimator = model.built

    def round_done(record: dict[str, Any]) -> None:
        observer.round(record, estimator.tol)
        if checkpoints is not None:
            checkpoints.round_done(record["class"], last=record["relative_gap"] <= estimator.tol)

    with warnings_to(observer), nullcontext() if checkpoints is None else checkpoints.finish_round_on_sigterm():
        rows = train if checkpoints is None else replace(train, follow=checkpoints.follow)
        counts = estimator.fit_class_blocks(rows, callback=round_done)
    return estimator, counts


def evaluate_each(
    estimator: Any,
    counts: list[ScoreCounts | None],
    blocks: TrainTestClasses,
    observer: RunObserver,
    wanted: dict[str, Any] | None = None,
) -> ClassEvaluation:
    """Count the scores of each class, set its threshold where one is `wanted`, and predict the test rows.

    Warnings go to `observer`.
    """
    models = estimator.estimators_
    train = [
        count_scores(mapped_rows(one, blocks.train.of_class(k)), one.coef_[0]) if known is None else known
        for k, (one, known) in enumerate(zip(models, counts, strict=True))
    ]
    if wanted is not None:
        set_operating_points(estimator, train, wanted)
    if blocks.test is None:
        return ClassEvaluation(train, [None] * len(models), [None] * len(models), None)
    test: list[ScoreCounts | None] = []
    intervals: list[Interval | None] = []
    columns = []
    with warnings_to(observer):
        for k, one in enumerate(models):
            of_class, row_id, scores = _test_scores(blocks.test.of_class(k), one)
            both = of_class.n_pos > 0 and of_class.n_neg > 0
            intervals.append(auc_interval(of_class) if both else None)
            test.append(of_class if both else None)
            columns.append(scores)
    matrix = np.column_stack(columns)
    shown = (matrix + [one.decision_intercept for one in models]) / estimator.spreads_
    return ClassEvaluation(train, test, intervals, ClassScores(row_id, matrix, predicted_classes(estimator, shown)))


def _test_scores(blocks: Blocks, one: Any) -> tuple[ScoreCounts, np.ndarray, np.ndarray]:
    found = blocks.without_memory().reduce(_score_rows, one.coef_[0], getattr(one, "feature_map_", None))
    return found["counts"].counts, np.concatenate(found["row_id"]), np.concatenate(found["scores"])


def _score_rows(block: Block, memory: None, w: np.ndarray, fitted: Any) -> tuple[None, Summary]:
    scores = scores_of(block.X, w, fitted=fitted)
    counts = BoundedCounts.from_scores(block.y, scores, block.weight)
    return None, {"counts": counts, "row_id": [block.row_id], "scores": [scores]}
