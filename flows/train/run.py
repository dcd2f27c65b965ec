"""A training run: the pipeline of its stages, which are plain functions here and Prefect tasks in `flows.train.flow`."""

from functools import partial
from pathlib import Path
from typing import Any

from flows.compute.clusters import fixed_worker_set, open_cluster
from flows.compute.s3_environment import s3_as_configured
from flows.compute.stages import StageRunner, Stages, call_stage
from flows.config.data import refuse_for_classes
from flows.progress.console import RunObserver
from flows.progress.metrics import REPORT, MetricsObserver
from flows.rows.costs import check_cost_column
from flows.rows.directions import check_monotone
from flows.rows.source import RowSource, open_source
from flows.run_folder.classes import FittedClasses
from flows.run_folder.folder import run_folder, run_name
from flows.run_folder.leftovers import unfinished_runs
from flows.run_folder.results import FittedRun
from flows.train.checkpoints import CheckpointStore, ClassCheckpoints, retry_lost_cluster
from flows.train.config import TrainConfig
from flows.train.fit_rows import fit_rows, publish_run


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
    if described := config._described:
        for text in (*described.warnings(f"{config.name}.yaml"), described.of_positive()):
            observer.note(text)
    with s3_as_configured(config.s3, config.cluster, observer), run_folder(config.output, name) as folder:
        if described:
            (folder.draft / f"{config.name}.yaml").write_text(described.text, encoding="utf-8")
        source = stages("open data", open_source, config.data, config.blocks, retry=True)
        check_cost_column(config.data, config.operating_point)
        report = folder.draft / REPORT if config.performance_report else None
        work = partial(_train_on_cluster, config, name, source, stages, observer, report, start)
        fitted, checkpoints = retry_lost_cluster(config, work, observer)
        result = publish_run(fitted, folder, stages, "aucdist train")
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
    with (
        open_cluster(config.cluster, name, observer) as workers,
        fixed_worker_set(config.cluster, workers, source.n_blocks),
        observer.report_to(workers.client, report),
    ):
        rows = source.prepare(workers, observer, stages)
        if rows.tables is not None:
            refuse_for_classes(config)  # the configuration does not say that shards have several
        check_monotone([getattr(config.model.built, "monotone", None)], rows.schema)
        return fit_rows(config, config.model, rows, workers, stages, observer, start=start)
