"""The stages from encoded rows to a run folder, of two classes or several: those of a training run, and the last of a search."""

from typing import Any

from aucdist.class_models import load_any_model
from flows.compute.stages import Stages
from flows.compute.workers import Workers
from flows.config.model import ModelConfig
from flows.progress.metrics import MetricsObserver
from flows.rows.train_test import TrainTestBlocks, TrainTestRows
from flows.run_folder.classes import FittedClasses, publish_classes, result_of_classes
from flows.run_folder.folder import RunFolder
from flows.run_folder.publish import publish
from flows.run_folder.results import FittedRun, result_of
from flows.train.checkpoints import CheckpointStore, ClassCheckpoints, open_checkpoints
from flows.train.classes import fit_classes
from flows.train.feature_choice import choose_features
from flows.train.shapes import more_fits
from flows.train.stages import evaluate, fit, profile, set_operating_point
from flows.train.warm_start import start_from


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
    rows = rows.without_copies()
    if rows.tables is not None:
        return fit_classes(config, model, rows, blocks, stages, observer, search, start)
    return _fit_two_classes(config, model, rows, blocks, stages, observer, search, start)


def _fit_two_classes(
    config: Any,
    model: ModelConfig,
    rows: TrainTestRows,
    blocks: TrainTestBlocks,
    stages: Stages,
    observer: MetricsObserver,
    search: dict[str, Any] | None,
    start: str | None,
) -> tuple[FittedRun, CheckpointStore | None]:
    if model.chooses_features:
        missing = config.data.impute == "keep"
        choice = stages("choose features", choose_features, model, blocks.train, missing, observer)
        model, search = choice.model, choice.search
    checkpoints = open_checkpoints(config, model, rows.fingerprint, blocks.train, observer)
    if start is not None and checkpoints is None:  # a fit that resumes begins as it began
        observer.note(start_from(model.built, load_any_model(start), rows))
    estimator, counts = stages("fit", fit, model, blocks.train, observer, checkpoints)
    evaluation = stages("evaluate", evaluate, estimator, counts, blocks, observer, config.operating_point)
    seen = stages("profile", profile, estimator, rows, blocks)
    more = None
    if config.shapes.wanted:
        more = stages("shapes", more_fits, config.shapes, model, estimator, evaluation, blocks, observer)
    if config.operating_point is not None:
        set_operating_point(estimator, evaluation, config.operating_point.wanted)
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
