"""A training run: the pipeline of its stages, which are plain functions here and Prefect tasks in `flows.train.flow`."""

from functools import partial
from pathlib import Path
from typing import Any

from aucdist.class_models import load_any_model
from flows.compute.clusters import fixed_worker_set, open_cluster
from flows.compute.s3_environment import s3_as_configured
from flows.compute.stages import StageRunner, Stages, call_stage
from flows.config.data import refuse_for_classes
from flows.progress.console import RunObserver
from flows.progress.metrics import REPORT, MetricsObserver
from flows.rows.costs import check_cost_column
from flows.rows.directions import check_monotone
from flows.rows.source import RowSource, open_source
from flows.run_folder.classes import FittedClasses, publish_classes, result_of_classes
from flows.run_folder.folder import run_folder, run_name
from flows.run_folder.leftovers import unfinished_runs
from flows.run_folder.publish import publish
from flows.run_folder.results import FittedRun, result_of
from flows.train.checkpoints import CheckpointStore, ClassCheckpoints, open_checkpoints, retry_lost_cluster
from flows.train.classes import fit_classes
from flows.train.config import TrainConfig
from flows.train.feature_choice import choose_features
from flows.train.shapes import more_fits
from flows.train.stages import evaluate, fit, profile, set_operating_point
from flows.train.warm_start import start_from


def train(
    config: TrainConfig, observer: RunObserver, run_stage: StageRunner = call_stage, start: str | None = None
) -> dict[str, Any]:
    """Train a model, evaluate it and write the run folder.

    `observer`: is called with stages and rounds.
    `start`: a model whose weights the fit starts from, where its features are the same.
    Returns what ``aucdist train --json`` prints.
    Raises InputError if the configuration or the data is wrong; nothing has been written then.
    Raises RunError if the run itself failed.
    """
    name = run_name(config.name, config.model)
    observer = MetricsObserver(observer, name)
    stages = Stages(observer, run_stage)
    if left := unfinished_runs(config.output, "aucdist train"):
        observer.note(left)
    with s3_as_configured(config.s3, config.cluster, observer), run_folder(config.output, name) as folder:
        source = stages("open data", open_source, config.data, config.blocks, retry=True)
        check_cost_column(config.data, config.operating_point)
        report = folder.draft / REPORT if config.performance_report else None
        work = partial(_train_on_cluster, config, name, source, stages, observer, report, start)
        fitted, checkpoints = retry_lost_cluster(config, work, observer)
        if isinstance(fitted, FittedClasses):
            result = result_of_classes(fitted, folder.url)
            stages("publish", publish_classes, fitted, result, folder, retry=True)
        else:
            result = result_of(fitted, folder.url)
            stages("publish", publish, fitted, result, folder, retry=True)
        if checkpoints is not None:
            checkpoints.remove()
    return result


def _train_on_cluster(
    config: TrainConfig,
    name: str,
    source: RowSource,
    stages: Stages,
    observer: MetricsObserver,
    report: Path | None,
    start: str | None,
) -> tuple[FittedRun | FittedClasses, CheckpointStore | ClassCheckpoints | None]:
    """Run the stages that need workers: partition the rows, fit and evaluate."""
    n_blocks = source.n_blocks
    with (
        open_cluster(config.cluster, name, observer) as workers,
        fixed_worker_set(config.cluster, workers, n_blocks),
        observer.report_to(workers.client, report),
    ):
        rows = source.prepare(workers, observer, stages)
        if rows.tables is not None:
            refuse_for_classes(config)  # the configuration does not say that shards have several
        check_monotone([getattr(config.model.built, "monotone", None)], rows.schema)
        blocks = stages("partition", rows.partition, config.cache, workers, observer)
        observer.about(rows.size())
        rows = rows.without_copies()
        if rows.tables is not None:
            return fit_classes(config, config.model, rows, blocks, stages, observer, start=start)
        model, search = config.model, None
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
            args = (config.shapes, model, estimator, evaluation, blocks, observer)
            more = stages("shapes", more_fits, *args)
    if config.operating_point is not None:
        set_operating_point(estimator, evaluation, config.operating_point.wanted)
    return FittedRun(config, rows, estimator, evaluation, stages.seconds, seen, search, more), checkpoints
