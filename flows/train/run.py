"""A run of training: the pipeline of its stages, which are plain functions here, and tasks in `flows.orchestration.flows`."""

from typing import Any

from aucdist.errors import ClusterLost
from aucdist.model import load_model
from flows.compute.clusters import Workers, fixed_worker_set, open_cluster, s3_as_configured
from flows.compute.stages import StageRunner, Stages
from flows.config.data import refuse_for_classes
from flows.config.model import ModelConfig
from flows.progress.console import RunObserver
from flows.progress.metrics import REPORT, MetricsObserver
from flows.rows.rows import TrainTestRows
from flows.rows.source import check_cost_column, check_costs_of_rows, check_monotone, named_groups, open_source
from flows.run_folder.folder import run_folder, run_name, unfinished_runs
from flows.run_folder.publish import publish
from flows.run_folder.results import FittedRun, result_of
from flows.train.checkpoints import Checkpoints, open_checkpoints
from flows.train.config import TrainConfig
from flows.train.more_fits import baselines, choose_features, more_fits
from flows.train.stages import evaluate, fit, profile, start_from, usable_classes


class TrainRun:
    """The stages of a training run, from the data to the run folder; a search chooses the model by folds first.

    `run_stage`: makes a Prefect task of each stage; by default stages are plain calls.
    `start`: a model whose weights the fit starts from, where its features are the same; of several classes for each class that
        it has.
    """

    command = "aucdist train"
    """Runs the configuration again."""

    def __init__(
        self, config: Any, observer: RunObserver, run_stage: StageRunner | None = None, start: str | None = None
    ) -> None:
        self.config, self.start = config, start
        self.name = self.new_name()
        self.observer = MetricsObserver(observer, self.name)
        self.stages = Stages(self.observer, run_stage)

    def new_name(self) -> str:
        """Return the name of the run folder."""
        return run_name(self.config.name, self.config.model)

    def open(self) -> Any:
        """Open the data, as far as that takes no workers."""
        return self.stages("open data", open_source, self.config.data, self.config.blocks, retry=True)

    def n_parts(self, opened: Any) -> int:
        """Return how many workers could be busy at a time."""
        return int(opened.n_blocks)

    def choose(self, opened: Any, workers: Workers) -> tuple[TrainTestRows, ModelConfig, dict[str, Any] | None]:
        """Return the encoded rows, the model to fit, and what chose its parameters."""
        rows: TrainTestRows = opened.prepare(workers, self.observer, self.stages)
        if rows.tables is not None:
            refuse_for_classes(self.config)  # the configuration does not say that shards have several
        check_monotone([getattr(self.config.model.built, "monotone", None)], rows.schema)
        return rows, self.config.model, None

    def run(self) -> dict[str, Any]:
        """Do all stages, and return what ``aucdist train --json`` prints.

        Raises InputError if the configuration or the data is wrong; nothing has been written then.
        Raises RunError if the run itself failed.
        """
        config, observer = self.config, self.observer
        if left := unfinished_runs(config.output, self.command):
            observer.note(left)
        described = getattr(config, "_described", None)
        for text in (
            (*described.warnings('--set "data.source.drop=[{}]"'), described.of_positive()) if described else ()
        ):
            observer.note(text)
        with s3_as_configured(config.s3, config.cluster, observer), run_folder(config.output, self.name) as folder:
            if described:
                (folder.draft / f"{config.name}.yaml").write_text(described.text, encoding="utf-8")
            opened = self.open()
            check_cost_column(config.data, config.operating_point)
            report = folder.draft / REPORT if config.performance_report else None
            checkpoint = getattr(config, "checkpoint", None)
            attempts = 1 if checkpoint is None else checkpoint.attempts
            for attempt in range(1, attempts + 1):
                try:
                    with (
                        open_cluster(config.cluster, self.name, observer) as workers,
                        fixed_worker_set(config.cluster, workers, self.n_parts(opened)),
                        observer.report_to(workers.client, report),
                    ):
                        fitted, checkpoints = self.fit(*self.choose(opened, workers), workers)
                    break
                except ClusterLost as error:  # the fit resumes from its last checkpoint
                    if attempt == attempts:
                        raise
                    observer.note(f"{error}; attempt {attempt + 1} of {attempts}")
            result = result_of(fitted, folder.url)
            self.stages("publish", publish, fitted, result, folder, self.command, retry=True)
            if checkpoints is not None:
                checkpoints.remove()
        return result

    def fit(
        self, rows: TrainTestRows, model: ModelConfig, search: dict[str, Any] | None, workers: Workers
    ) -> tuple[FittedRun, Checkpoints | None]:
        """Partition the rows, fit and evaluate; each class that has enough rows, where there are several."""
        config, observer, stages = self.config, self.observer, self.stages
        blocks = stages("partition", rows.partition, config.cache, workers, observer)
        observer.about(rows.size())
        rows, blocks = usable_classes(rows.without_copies(), blocks, observer)
        check_costs_of_rows(blocks.train, config.operating_point)
        if model.chooses_features:
            missing, whole = config.data.impute == "keep", rows.groups_of_split(workers.parallel_map())
            model, search = stages("choose features", choose_features, model, blocks.train, missing, whole, observer)
        checkpoints = open_checkpoints(config, model, rows.fingerprint, blocks.train, observer)
        if self.start is not None and checkpoints is None:  # a fit that resumes begins as it began
            observer.note(start_from(model.built, load_model(self.start), rows))
        point = config.operating_point
        estimator, counts = stages("fit", fit, model, blocks.train, observer, checkpoints, point)
        per_day = None if rows.per_day is None else rows.per_day[1]
        evaluation = stages("evaluate", evaluate, estimator, counts, blocks, observer, point, per_day)
        seen = stages("profile", profile, estimator, rows, blocks)
        more = None
        if config.shapes.has_fits:
            more = stages("shapes", more_fits, config.shapes, model, estimator, evaluation, blocks, observer)
        beside = stages("baselines", baselines, rows, observer) if getattr(config, "baselines", False) else []
        groups, audit = None, getattr(config, "audit", None)
        if audit is not None and evaluation.test_rows is not None:
            row_id = evaluation.test_rows["row_id"].to_numpy()
            groups = stages("groups", named_groups, config.data, audit.groups, row_id, retry=True)
        fitted = FittedRun(
            config, rows, estimator, evaluation, stages.seconds, seen, search, more, beside, groups or {}
        )
        return fitted, checkpoints


def train(
    config: TrainConfig, observer: RunObserver, run_stage: StageRunner | None = None, start: str | None = None
) -> dict[str, Any]:
    """Train a model, evaluate it and write the run folder; see `TrainRun`."""
    return TrainRun(config, observer, run_stage, start).run()
