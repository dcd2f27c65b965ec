"""The stages from encoded rows to a run folder, of two classes or several: those of a training run, and the last of a search."""

from typing import Any

from aucdist.class_models import load_any_model
from flows.compute.stages import Stages
from flows.compute.workers import Workers
from flows.config.model import ModelConfig
from flows.progress.metrics import MetricsObserver
from flows.rows.costs import check_costs_of_rows
from flows.rows.train_test import TrainTestBlocks, TrainTestClasses, TrainTestRows
from flows.run_folder.classes import FittedClasses, publish_classes, result_of_classes
from flows.run_folder.folder import RunFolder
from flows.run_folder.publish import publish
from flows.run_folder.results import FittedRun, result_of
from flows.train.checkpoints import CheckpointStore, ClassCheckpoints, open_checkpoints
from flows.train.classes import evaluate_each, profile_each, usable_classes
from flows.train.feature_choice import choose_features
from flows.train.shapes import more_fits
from flows.train.stages import evaluate, fit, profile, set_operating_point
from flows.train.warm_start import start_each_from, start_from


def fit_rows(
    config: Any,
    model: ModelConfig,
    rows: TrainTestRows,
    workers: Workers,
    stages: Stages,
    observer: MetricsObserver,
    search: dict[str, Any] | None = None,
    start: str | None = None,
) -> tuple[FittedRun | FittedClasses, CheckpointStore | ClassCheckpoints | None]:
    """Partition the rows, fit and evaluate; each class that has enough rows, where there are several.

    `config`: of training or of a search.
    `search`: what chose the model's parameters.
    `start`: a model from whose weights the fit starts, of several classes for each class that it has.
    """
    blocks = stages("partition", rows.partition, config.cache, workers, observer)
    observer.about(rows.size())
    rows, several = rows.without_copies(), rows.tables is not None
    labelled: TrainTestBlocks | TrainTestClasses = blocks
    if several:
        rows = usable_classes(rows, blocks.train, observer)
        labelled = rows.with_classes(blocks)
    check_costs_of_rows(labelled.train, config.operating_point)
    if model.chooses_features:
        missing = config.data.impute == "keep"
        choice = stages("choose features", choose_features, model, labelled.train, missing, observer)
        model, search = choice.model, choice.search
    checkpoints = open_checkpoints(config, model, rows.fingerprint, labelled.train, observer)
    if start is not None and checkpoints is None:  # a fit that resumes begins as it began
        begin = start_each_from if several else start_from
        observer.note(begin(model.built, load_any_model(start), rows))
    point = config.operating_point
    estimator, counts = stages("fit", fit, model, labelled.train, observer, checkpoints, point)
    evaluation = stages(
        "evaluate", evaluate_each if several else evaluate, estimator, counts, labelled, observer, point
    )
    seen = stages("profile", profile_each if several else profile, estimator, rows, blocks)
    if several:
        return FittedClasses(config, rows, estimator, evaluation, stages.seconds, seen, search), checkpoints
    more = None
    if config.shapes.wanted:
        more = stages("shapes", more_fits, config.shapes, model, estimator, evaluation, blocks, observer)
    if point is not None:
        set_operating_point(estimator, evaluation, point.wanted)
    return FittedRun(config, rows, estimator, evaluation, stages.seconds, seen, search, more), checkpoints


def publish_run(fitted: FittedRun | FittedClasses, folder: RunFolder, stages: Stages, command: str) -> dict[str, Any]:
    """Write the run folder, and return the result of the run; `command` is what runs the configuration again."""
    if isinstance(fitted, FittedClasses):
        result = result_of_classes(fitted, folder.url)
        stages("publish", publish_classes, fitted, result, folder, command, retry=True)
    else:
        result = result_of(fitted, folder.url)
        stages("publish", publish, fitted, result, folder, command, retry=True)
    return result
