"""A run of training: the pipeline of its stages, which are plain functions here, and tasks in `flows.orchestration.flows`."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from aucdist.errors import ClusterLost, Json
from aucdist.model import load_model
from flows.compute.clusters import Workers, fixed_worker_set, open_cluster, s3_as_configured
from flows.compute.stages import StageRunner, Stages
from flows.config.data import refuse_for_classes
from flows.config.model import ModelConfig
from flows.progress.console import RunObserver
from flows.progress.metrics import REPORT, MetricsObserver
from flows.rows.rows import TrainTestBlocks, TrainTestRows
from flows.rows.source import check_cost_column, check_costs_of_rows, check_monotone, named_groups, open_source
from flows.run_folder.folder import fit_name, run_folder, timestamped, unfinished_runs
from flows.run_folder.publish import publish
from flows.run_folder.results import FittedRun, result_of
from flows.train.checkpoints import open_checkpoints
from flows.train.more_fits import baselines, choose_features, more_fits
from flows.train.stages import evaluate, fit, profile, start_from, usable_classes


class TrainRun:
    """What `train` does around the fit; for a search (`flows.cv.run.SearchRun`) folds choose the model first."""

    command = "aucdist train"
    """Runs the configuration again."""
    search: Json | None = None
    """Where folds chose the parameters, what was tried, as ``aucdist cv --json`` prints it."""
    groups: Mapping[str, np.ndarray] = MappingProxyType({})
    """The values of the columns that an audit reports on, of the test rows with the ids `groups_of`, ascending."""
    groups_of: np.ndarray

    def __init__(self, config: Any, observer: RunObserver, run_stage: StageRunner | None) -> None:
        self.config = config
        self.name = self.new_name()
        self.observer = MetricsObserver(observer, self.name)
        self.stages = Stages(self.observer, run_stage)

    def new_name(self) -> str:
        """Return the name of the run folder."""
        return timestamped(fit_name(self.config.name, self.config.model))

    def open(self) -> Any:
        """Open the data, as far as that takes no workers."""
        return self.stages("open data", open_source, self.config.data, self.config.blocks, retry=True)

    def n_parts(self, opened: Any) -> int:
        """Return how many workers could be busy at a time."""
        return opened.n_blocks

    def choose(self, opened: Any, workers: Workers) -> tuple[TrainTestRows, ModelConfig]:
        """Return the encoded rows, and the model to fit."""
        rows = opened.prepare(workers, self.observer, self.stages)
        if rows.sets is not None:
            refuse_for_classes(self.config)  # the configuration does not say that shards have several
        check_monotone([getattr(self.config.model.built, "monotone", None)], rows.schema)
        return rows, self.config.model

    def read_groups(self, rows: TrainTestRows, workers: Workers) -> None:
        """Read the columns that an audit reports on, before the fit, which a wrong name should not cost."""
        audit = getattr(self.config, "audit", None)
        if audit is not None and rows.test is not None:
            self.groups_of = np.sort(rows.test.row_ids_and_labels(workers.parallel_map(self.observer))[0])
            self.groups = self.stages(
                "groups", named_groups, self.config.data, audit.groups, self.groups_of, retry=True
            )

    def evaluate(
        self, estimator: Any, counts: Sequence[Any], rows: TrainTestRows, blocks: TrainTestBlocks, model: ModelConfig
    ) -> FittedRun:
        """Evaluate a fitted estimator, and fit what else the report shows; `counts`: as `fit` returned them."""
        config, observer, stages = self.config, self.observer, self.stages
        point, per_day = config.operating_point, rows.per_day.get("training")
        evaluation = stages("evaluate", evaluate, estimator, counts, blocks, observer, point, per_day)
        training_profile, digests, leaks = stages("profile", profile, estimator, rows, blocks, evaluation)
        free = bands = None
        if config.shapes.has_fits:
            free, bands = stages("shapes", more_fits, config.shapes, model, estimator, evaluation, blocks, observer)
        reached = stages("baselines", baselines, rows, observer) if getattr(config, "baselines", False) else []
        groups = {}
        if self.groups and evaluation.test_rows is not None:
            of_test = np.searchsorted(self.groups_of, evaluation.test_rows["row_id"].to_numpy())
            groups = {name: values[of_test] for name, values in self.groups.items()}
        return FittedRun(
            config,
            rows,
            estimator,
            evaluation,
            stages.seconds,
            training_profile,
            digests,
            leaks,
            self.search,
            free,
            bands,
            reached,
            groups,
        )

    def printed(self, result: Json) -> Json:
        """Return what ``--json`` prints of the result of the run."""
        return result


def train(
    config: Any, observer: RunObserver, run_stage: StageRunner | None = None, start: str | None = None,
    kind: type[TrainRun] = TrainRun,
) -> Json:  # fmt: skip
    """Train a model, evaluate it, write the run folder, and return what ``aucdist train --json`` prints.

    Of several classes each that has enough rows is fitted.

    `config`: a `TrainConfig`, or what another `kind` of run takes.
    `run_stage`: makes a Prefect task of each stage; by default stages are plain calls.
    `start`: a model whose weights the fit starts from, where its features are the same; of several classes for each class that
        it has.
    Raises InputError if the configuration or the data is wrong; nothing has been written then.
    Raises RunError if the run itself failed.
    """
    run = kind(config, observer, run_stage)
    observer, stages, point = run.observer, run.stages, config.operating_point
    if left := unfinished_runs(config.output, run.command):
        observer.note(left)
    described = getattr(config, "_described", None)
    for text in (*described.warnings('--set "data.source.drop=[{}]"'), described.of_positive()) if described else ():
        observer.note(text)
    with s3_as_configured(config, observer), run_folder(config.output, run.name) as folder:
        if described:
            (folder.draft / f"{config.name}.yaml").write_text(described.text, encoding="utf-8")
        opened = run.open()
        check_cost_column(config.data, point)
        report = folder.draft / REPORT if config.performance_report else None
        checkpoint = getattr(config, "checkpoint", None)
        attempts = 1 if checkpoint is None else checkpoint.attempts
        for attempt in range(1, attempts + 1):
            try:
                with (
                    open_cluster(config.cluster, run.name, observer) as workers,
                    fixed_worker_set(config.cluster, workers, run.n_parts(opened)),
                    run.observer.report_to(workers.client, report),
                ):
                    rows, model = run.choose(opened, workers)
                    run.read_groups(rows, workers)
                    blocks = stages("partition", rows.partition, config.cache, workers, observer)
                    observer.about(rows.size())
                    rows, blocks = usable_classes(rows.without_copies(), blocks, observer)
                    check_costs_of_rows(blocks.train, point)
                    if model.chooses_features:
                        missing, whole = config.data.impute == "keep", rows.groups_of_split(workers.parallel_map())
                        model, run.search = stages(
                            "choose features", choose_features, model, blocks.train, missing, whole, observer
                        )
                    checkpoints = open_checkpoints(config, model, rows.fingerprint, blocks.train, observer)
                    if start is not None and checkpoints is None:  # a fit that resumes begins as it began
                        observer.note(start_from(model.built, load_model(start), rows))
                    estimator, counts = stages("fit", fit, model, blocks.train, observer, checkpoints, point)
                    fitted = run.evaluate(estimator, counts, rows, blocks, model)
                break
            except ClusterLost as error:  # the fit resumes from its last checkpoint
                if attempt == attempts:
                    raise
                observer.note(f"{error}; attempt {attempt + 1} of {attempts}")
        result = result_of(fitted, folder.url)
        stages("publish", publish, fitted, result, folder, run.command, retry=True)
        if checkpoints is not None:
            checkpoints.remove()
    return run.printed(result)
