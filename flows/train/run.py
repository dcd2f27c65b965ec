"""A run of training: the pipeline of its stages, which are plain functions here, and tasks in `flows.orchestration.flows`."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from aucdist.errors import ClusterLost, Json
from aucdist.model import load_model
from flows.compute.clusters import Workers, fixed_worker_set, open_cluster, s3_as_configured
from flows.compute.stages import StageRunner, Stages
from flows.config.data import refuse_for_classes
from flows.config.model import ModelConfig
from flows.progress import REPORT, MetricsObserver, RunObserver
from flows.rows.rows import TrainTestRows
from flows.rows.source import check_cost_column, check_costs_of_rows, check_monotone, named_groups, open_source
from flows.run_folder.folder import fit_name, run_folder, timestamped, unfinished_runs
from flows.run_folder.publish import publish
from flows.run_folder.results import FittedRun, result_of
from flows.train.config import TrainConfig
from flows.train.more_fits import baselines, choose_feature_map, extra_fits
from flows.train.stages import Checkpoints, drop_small_classes, evaluate, fit, open_checkpoints, profile, starts_from


class ToFit(NamedTuple):
    """The encoded rows and the model that a run fits.

    `search`: where folds chose the parameters, what was tried, as ``aucdist cv --json`` prints it.
    `start`: a saved model whose weights the fit starts from, where its features are the same.
    """

    rows: TrainTestRows
    model: ModelConfig
    search: Json | None = None
    start: str | None = None


Prepare = Callable[[Workers], ToFit]
Opened = tuple[int, Prepare]
"""The data of a run, opened as far as that takes no workers: how many workers could be busy at a time, and what reads the rows.
"""


def train(
    config: TrainConfig, observer: RunObserver, run_stage: StageRunner | None = None, start: str | None = None
) -> Json:
    """Train a model, evaluate it, write the run folder, and return what ``aucdist train --json`` prints.

    Of several classes each that has enough rows is fitted.

    `run_stage`: makes a Prefect task of each stage; by default stages are plain calls.
    `start`: a model whose weights the fit starts from, where its features are the same; of several classes for each class that
        it has.
    Raises InputError if the configuration or the data is wrong; nothing has been written then.
    Raises RunError if the run itself failed.
    """
    name = timestamped(fit_name(config.name, config.model))
    return fit_and_publish(config, name, "aucdist train", partial(open_training_rows, start), observer, run_stage)[0]


def open_training_rows(start: str | None, config: TrainConfig, observer: RunObserver, stages: Stages) -> Opened:
    """Open the rows of a training run, whose model is that of the configuration."""
    source = stages("open data", open_source, config.data, config.blocks)

    def prepare(workers: Workers) -> ToFit:
        """Return the encoded rows, and the model of the configuration."""
        rows = source.prepare(workers, observer, stages)
        if rows.sets is not None:
            refuse_for_classes(config)  # the configuration does not say that shards have several
        check_monotone([getattr(config.model.built, "monotone", None)], rows.schema)
        return ToFit(rows, config.model, start=start)

    return source.n_blocks, prepare


def fit_and_publish(
    config: Any, name: str, command: str, open_run: Callable[[Any, RunObserver, Stages], Opened], observer: RunObserver,
    run_stage: StageRunner | None,
) -> tuple[Json, Json | None]:  # fmt: skip
    """Prepare rows and a model, fit and evaluate it, and write the run folder. Errors and `run_stage`: as `train`.

    `config`: a `TrainConfig` or a `flows.cv.config.CvConfig`.
    `name`: of the run folder.
    `command`: runs the configuration again.
    `open_run`: ``open_run(config, observer, stages)`` opens the data.
    Returns what ``aucdist train --json`` prints, and what folds have tried, where they chose parameters.
    """
    observer = MetricsObserver(observer, name)
    stages = Stages(observer, run_stage)
    if unfinished := unfinished_runs(config.output, command):
        observer.note(unfinished)
    described = config._described
    for text in (*described.warnings('--set "data.source.drop=[{}]"'), described.of_positive()) if described else ():
        observer.note(text)
    with s3_as_configured(config, observer), run_folder(config.output, name) as folder:
        if described:
            (folder.draft / f"{config.name}.yaml").write_text(described.text, encoding="utf-8")
        n_parts, prepare = open_run(config, observer, stages)
        check_cost_column(config.data, config.operating_point)
        report = folder.draft / REPORT if config.performance_report else None
        attempts = 1 if config.checkpoint is None else config.checkpoint.attempts
        for attempt in range(1, attempts + 1):
            try:
                with (
                    open_cluster(config.cluster, name, observer) as workers,
                    fixed_worker_set(config.cluster, workers, n_parts),
                    observer.report_to(workers.client, report),
                ):
                    fitted, checkpoints = fit_and_evaluate(config, prepare, workers, observer, stages)
                break
            except ClusterLost as error:  # the next attempt resumes from the last checkpoint
                if attempt == attempts:
                    raise
                observer.note(f"{error}; attempt {attempt + 1} of {attempts}")
        result = result_of(fitted, folder.url)
        stages("publish", publish, fitted, result, folder, command)
        if checkpoints is not None:
            checkpoints.remove()
    return result, fitted.search


def fit_and_evaluate(
    config: Any, prepare: Prepare, workers: Workers, observer: RunObserver, stages: Stages
) -> tuple[FittedRun, Checkpoints | None]:
    """Read rows, fit a model to them, evaluate it, and fit what else the report shows; all that takes the workers.

    Returns the run, and its checkpoints, which are to be removed once the run folder is complete.
    """
    rows, model, search, start = prepare(workers)
    point, row_id, groups = config.operating_point, np.zeros(0), {}
    if config.audit is not None and rows.test is not None:  # before the fit, so that a wrong name is reported early
        row_id = np.sort(rows.test.gathered(workers.parallel_map(observer), "row_id")[0])
        groups = stages("groups", named_groups, config.data, config.audit.groups, row_id)
    blocks = stages("partition", rows.partition, config.cache, workers, observer)
    observer.about(rows.size())
    rows, blocks = drop_small_classes(rows.without_copies(), blocks, observer)
    check_costs_of_rows(blocks.train, point)
    if model.chooses_features:
        missing, whole = config.data.impute == "keep", rows.groups_of_split(workers.parallel_map())
        model, search = stages("choose features", choose_feature_map, model, blocks.train, missing, whole, observer)
    checkpoints = open_checkpoints(config, model, rows.fingerprint, blocks.train, observer)
    starts = None
    if start is not None and checkpoints is None:  # a fit that resumes must have the start of its first attempt
        starts = starts_from(load_model(start), model.built, rows, observer)
    estimator, fits = stages("fit", fit, model, blocks.train, observer, checkpoints, starts)
    per_day = rows.per_day.get("training")
    evaluation = stages("evaluate", evaluate, estimator, fits, blocks, observer, point, per_day)
    training_profile, digests, leaks = stages("profile", profile, estimator, rows, blocks, evaluation)
    free = bands = None
    if config.shapes.requested:
        free, bands = stages("shapes", extra_fits, config.shapes, model, estimator, evaluation, blocks, observer)
    reached = stages("baselines", baselines, rows, observer) if config.baselines else []
    if groups and evaluation.test is not None:
        tested = np.searchsorted(row_id, evaluation.test.table["row_id"].to_numpy())
        groups = {name: values[tested] for name, values in groups.items()}
    fitted = FittedRun(
        config, rows, estimator, evaluation, stages.seconds, training_profile, digests, leaks, search, free, bands, reached,
        groups,
    )  # fmt: skip
    return fitted, checkpoints
