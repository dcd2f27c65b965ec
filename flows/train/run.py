"""A training run: the pipeline of its stages, which are plain functions here and Prefect tasks in `flows.train.flow`."""

from functools import partial
from pathlib import Path
from typing import Any

from aucdist.model import load_model
from flows.compute.clusters import fixed_worker_set, open_cluster
from flows.compute.s3_environment import s3_as_configured
from flows.compute.stages import StageRunner, Stages, call_stage
from flows.compute.workers import Workers
from flows.config.data import refuse_for_classes
from flows.config.model import ModelConfig
from flows.progress.console import RunObserver
from flows.progress.metrics import REPORT, MetricsObserver
from flows.rows.rows import TrainTestRows
from flows.rows.source import RowSource, check_cost_column, check_costs_of_rows, check_monotone, open_source
from flows.run_folder.folder import RunFolder, run_folder, run_name, unfinished_runs
from flows.run_folder.publish import publish
from flows.run_folder.results import FittedRun, result_of
from flows.train.checkpoints import Checkpoints, open_checkpoints, retry_lost_cluster
from flows.train.config import TrainConfig
from flows.train.more_fits import baselines, choose_features, more_fits
from flows.train.stages import evaluate, fit, profile, start_from, usable_classes


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
) -> tuple[FittedRun, Checkpoints | None]:
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


def fit_rows(
    config: Any,
    model: ModelConfig,
    rows: TrainTestRows,
    workers: Workers,
    stages: Stages,
    observer: MetricsObserver,
    search: dict[str, Any] | None = None,
    start: str | None = None,
) -> tuple[FittedRun, Checkpoints | None]:
    """Partition the rows, fit and evaluate; each class that has enough rows, where there are several.

    `config`: of training or of a search, whose last stages these are.
    `search`: what chose the model's parameters.
    `start`: a model from whose weights the fit starts, of several classes for each class that it has.
    """
    blocks = stages("partition", rows.partition, config.cache, workers, observer)
    observer.about(rows.size())
    rows, blocks = usable_classes(rows.without_copies(), blocks, observer)
    check_costs_of_rows(blocks.train, config.operating_point)
    if model.chooses_features:
        missing, whole = config.data.impute == "keep", rows.groups_of_split(workers.parallel_map())
        model, search = stages("choose features", choose_features, model, blocks.train, missing, whole, observer)
    checkpoints = open_checkpoints(config, model, rows.fingerprint, blocks.train, observer)
    if start is not None and checkpoints is None:  # a fit that resumes begins as it began
        observer.note(start_from(model.built, load_model(start), rows))
    point = config.operating_point
    estimator, counts = stages("fit", fit, model, blocks.train, observer, checkpoints, point)
    evaluation = stages("evaluate", evaluate, estimator, counts, blocks, observer, point)
    seen = stages("profile", profile, estimator, rows, blocks)
    more = None
    if config.shapes.wanted:
        more = stages("shapes", more_fits, config.shapes, model, estimator, evaluation, blocks, observer)
    beside = stages("baselines", baselines, rows, observer) if getattr(config, "baselines", False) else []
    return FittedRun(config, rows, estimator, evaluation, stages.seconds, seen, search, more, beside), checkpoints


def publish_run(fitted: FittedRun, folder: RunFolder, stages: Stages, command: str) -> dict[str, Any]:
    """Write the run folder, and return the result of the run; `command` is what runs the configuration again."""
    result = result_of(fitted, folder.url)
    stages("publish", publish, fitted, result, folder, command, retry=True)
    return result
