"""Run a search from end to end.

Rows are opened without the columns of groups and time, and divided into folds. Results of jobs are read from the cache, or the
jobs are run. The best setting is chosen, and its model is fitted.
"""

import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from aucdist.data.own_files import jsonable
from aucdist.data.shards.manifest import manifest_of
from aucdist.data.storage.guard import total_memory
from aucdist.errors import InputError, Json, RunError
from aucdist.estimators.display import RankingWarning
from aucdist.search.choice import FoldScore, Setting, choose, search_summary
from aucdist.search.fold_scores import check_metric
from aucdist.search.folds import Folds, SearchedClasses, searched_classes, smallest_class
from aucdist.search.schedule import FitJob, fit_settings, halve
from aucdist.selection import check_groups_whole, duplicates, factorize, names_of_numbers, take_column
from flows.compute.clusters import ResultCache, Stages, Workers, worker_memory
from flows.config.data import DataConfig, check_keys_for_classes, source_of
from flows.config.model import ModelConfig
from flows.cv.config import CvConfig
from flows.cv.jobs import JobResults, JobSettings, attempt, fit_job, fit_on_worker, run_in_threads, run_on_workers
from flows.progress import RunObserver, warnings_to
from flows.rows.rows import FeatureEncoding, LazyRows, TrainTestRows
from flows.rows.source import RowSource, check_monotone, open_source
from flows.run_folder.folder import timestamped
from flows.train.run import Opened, fit_and_publish


class SearchRows(NamedTuple):
    """The data of a search.

    Attributes
    ----------
    rows : TrainTestRows
        The rows as they were read, before they are encoded.
    data : DataConfig
        The configuration of the data.
    folds : Folds
        The folds of the training rows.
    grouped : bool
        Whether the source says which rows form a group.
    lowest_grade : float or None
        The lowest grade of all rows, or None if labels are not grades.
    classes : SearchedClasses or None
        The classes, if each is fitted against the rest.
    """

    rows: TrainTestRows
    data: DataConfig
    folds: Folds
    grouped: bool
    lowest_grade: float | None
    classes: SearchedClasses | None

    @property
    def size(self) -> dict[str, int]:
        """``n_pos``, ``n_neg`` and ``n_features`` of the training rows.

        For several classes, these are the numbers of the smallest class.
        """
        train = self.rows.train
        if self.classes is None:
            return {"n_pos": train.n_pos, "n_neg": train.n_samples - train.n_pos, "n_features": train.n_features}
        n_pos, n_neg = smallest_class(self.classes.sets, self.folds.y, self.folds.n_folds)
        return {"n_pos": n_pos, "n_neg": n_neg, "n_features": train.n_features}

    @property
    def fold_encoding(self) -> FeatureEncoding | None:
        """The encoding that each fold learns from its own training rows, or None if nothing has to be learnt."""
        encoding = FeatureEncoding(self.data, self.rows.schema)
        return encoding if encoding.learns else None

    def training_rows(self, workers: Workers) -> LazyRows:
        """Return all training rows. They are encoded, unless the folds learn the encoding."""
        if self.fold_encoding is not None:
            return self.rows.train
        return replace(self.rows, test=None, calibration=None).encode(self.data, workers.parallel_map()).train


def open_search(config: CvConfig, observer: RunObserver) -> tuple[RowSource, SearchRows | None]:
    """Open the data of a search as far as possible without workers.

    Neither the encoding nor the choice of parameters uses the held-out rows of a fold or the test rows.

    Returns
    -------
    tuple (RowSource, SearchRows or None)
        The source, and its rows divided into folds if this process has them. Errors are then raised before a cluster starts.

    Raises
    ------
    InputError
        If the data or the folds cannot be made as configured.
    """
    data, by_time = config.data, config.folds.time
    if by_time is not None and data.test is not None and data.test.time in (by_time, by_time.removesuffix(".days")):
        # The column is removed when the folds are made.
        data = data.model_copy(update={"test": data.test.model_copy(update={"keep": True})})
    source = open_source(data, config.blocks, encode=False)
    if source.rows is None:
        if config.folds.groups is not None or config.folds.time is not None or config.folds.duplicates == "together":
            raise InputError(
                "folds by groups, time or duplicates need all rows in one process: read files, not shards, and leave out `direct`"
            )
        return source, None
    search_rows = make_folds(source.rows, config, Workers(), observer)
    # Errors about all rows are raised here.
    FeatureEncoding(config.data, search_rows.rows.schema).fit(search_rows.rows.train.each(map))
    return source, search_rows


def make_folds(rows: TrainTestRows, config: CvConfig, workers: Workers, observer: RunObserver) -> SearchRows:
    """Return the rows, divided into folds."""
    settings, groups, time, names = config.folds, None, None, None
    if settings.groups is not None:
        schema = rows.schema
        rows, in_train, in_test = _take_column(rows, settings.groups)
        values, side = np.concatenate((in_train, in_test)), np.repeat([0, 1], [len(in_train), len(in_test)])
        group_numbers, names = factorize(values), names_of_numbers(values, schema, settings.groups)
        check_groups_whole(group_numbers, side, "training and test rows", names)
        groups = group_numbers[: len(in_train)]
    elif settings.duplicates == "together":
        groups = duplicates(rows.train.block)
        observer.note(f"{len(groups):,} training rows, {int(groups.max()) + 1:,} of them different")
    if settings.time is not None:
        rows, time, _ = _take_column(rows, settings.time)
    row_id, y, whole = rows.train.gather_columns(workers.parallel_map(), "row_id", "label", "group")
    source = source_of(config.data)
    if manifest := manifest_of(source):
        grouped, graded = manifest.block_schema.grouped, manifest.block_schema.graded
    else:
        grouped, graded = source.groups is not None or source.qid == "use", source.labels == "grades"
    lowest = float(rows.schema.negative[0]) if graded else None
    check_metric(config.named_metric, grouped, lowest)
    in_split = config.data.test is not None and config.data.test.groups is not None
    if grouped or in_split:
        if groups is not None:
            origin = "the source's groups" if grouped else "the groups of the split"
            raise InputError(f"{origin} are kept whole in folds: leave out `folds.groups` and `duplicates: together`")
        groups = whole
        rows = rows if grouped else rows.without_groups(config.data)
    sets = rows.sets
    strata = None if sets is None else y
    folds = Folds(
        row_id, y, settings.number, settings.repeats, settings.seed, config.nested, groups, time, settings.gap_rows,
        settings.gap_time, strata, names,
    )  # fmt: skip
    folds.check()
    classes = None if sets is None else searched_classes(sets, y, folds, observer.note)
    return SearchRows(rows, config.data, folds, grouped, lowest, classes)


def _take_column(rows: TrainTestRows, name: str) -> tuple[TrainTestRows, np.ndarray, np.ndarray]:
    """Remove a column from the rows. Return the rows, and the values of the column on the training rows and on the test rows."""
    values: dict[str, np.ndarray] = {"test": np.zeros(0)}
    changes: Json = {}
    for name_of_part in ("train", "calibration", "test"):
        if (part := getattr(rows, name_of_part)) is not None:
            values[name_of_part], block, changes["schema"] = take_column(part.block, rows.schema, name)
            changes[name_of_part] = LazyRows.of_block(block, part.requested_blocks)
    return replace(rows, **changes), values["train"], values["test"]


COPIES = 3  # a task has all rows in memory, and the encoded training rows and held-out rows of its fold


def cross_validate(config: CvConfig, observer: RunObserver) -> Json:
    """Score the grid on the folds, choose, fit the chosen setting to all training rows, and write the run folder.

    Results of jobs are cached below ``cv-<name>/tasks``. A search that was interrupted resumes from them.

    Returns
    -------
    dict
        The results of the folds. ``refit`` has the same content as the result of ``aucdist train --json``.

    Raises
    ------
    InputError
        If the configuration, the data or the folds are wrong. In this case, nothing has been written.
    RunError
        If every setting failed. The results of finished jobs are then in the cache.
    """
    result, summary = fit_and_publish(
        config, timestamped(f"{config.name}-cv"), "aucdist cv", open_search_rows, observer
    )
    return {"run": result["run"], **(summary or {}), "refit": result}


def open_search_rows(config: CvConfig, observer: RunObserver, stages: Stages) -> Opened:
    """Open the rows of a search. Its model is chosen by folds of the training rows."""
    source, opened = stages("open data", open_search, config, observer)

    def prepare(workers: Workers) -> tuple[TrainTestRows, ModelConfig, Json | None]:
        """Score the grid on the folds and choose.

        Return all training rows with their encoding, the chosen model, and the search.
        """
        search_rows = opened
        if search_rows is None:
            rows = source.prepare(workers, observer, stages)
            search_rows = stages("make folds", make_folds, rows, config, workers, observer)
        if search_rows.classes is not None:
            check_keys_for_classes(config)  # that shards have several classes is only known after they were opened
        full = config.with_candidates(search_rows.size, observer.note, search_rows.grouped, search_rows.lowest_grade)
        directions = [getattr(full.model.built, "monotone", None), *(p.get("monotone") for p in full.settings)]
        check_monotone(directions, search_rows.rows.schema)
        parameters, summary = stages("search", search, full, search_rows, workers, observer)
        rows = stages("encode", search_rows.rows.encode, config.data, workers.parallel_map(observer))
        return rows, config.model.with_parameters(parameters), summary

    return max(source.n_blocks, config.folds.number * config.folds.repeats), prepare


# ---- the search --------------------------------------------------------------------------------------------------------


def search(config: CvConfig, rows: SearchRows, workers: Workers, observer: RunObserver) -> tuple[Setting, Json]:
    """Score every setting on every fold, and choose.

    Returns
    -------
    tuple (Setting, dict)
        The chosen parameters, and the part of the result of ``aucdist cv --json`` about the search, as JSON values.

    Raises
    ------
    RunError
        If every setting failed.
    """
    start = time.perf_counter()
    metric, folds = config.named_metric, rows.folds
    train = rows.training_rows(workers)
    placement, reason = _placement(config, train.n_bytes, workers.client)
    if workers.client is not None:
        observer.note(f"placement: {placement}, {reason}")
    runner = JobRunner(config, rows, train, placement, workers, observer)
    sets = [folds.outer()] + [folds.inner(fold) for fold in folds.outer() if config.nested is not None]
    model, halving = config.model.built, config.halving
    with warnings_to(observer, ignored=(ConvergenceWarning, RankingWarning)):  # the results contain these
        if halving is not None:
            tables = [
                halve(model, config.settings, sets[0], metric, runner.run, (halving.first_passes, halving.factor))
            ]
        else:
            tables = fit_settings(model, config.settings, sets, model.max_passes, runner.run)
    outer, *inner = tables
    nested: list[Json] | None = None
    if config.nested is not None:  # each fold's training rows choose a setting, which is scored on the held-out rows
        nested = []
        for k, (fold, inner_rows) in enumerate(zip(folds.outer(), inner, strict=True)):
            choice: Json = {"repeat": fold.repeat, "fold": fold.fold, "parameters": None, "value": None}
            with suppress(RunError):  # raised if every setting failed
                i = choose(inner_rows, metric, config.rule)
                choice |= {"parameters": inner_rows[i].parameters, "value": outer[i].values[k]}
            nested.append(choice)
    summary = search_summary(outer, folds, metric, config.rule, rows.classes, nested) | {
        "folds": config.folds.model_dump(mode="json", exclude_none=True),
        "placement": placement,
        "tasks": {"all": runner.n_jobs, "kept": runner.n_cached, "failed": sum(bool(row.errors) for row in outer)},
        "seconds": time.perf_counter() - start,
    }
    return summary["best"], jsonable(summary)


def _placement(config: CvConfig, n_bytes: int, client: Any) -> tuple[str, str]:
    """Return whether folds are tasks or masks, and the reason. Without workers, they are masks."""
    if client is None or config.placement != "auto":
        return "masks" if client is None else config.placement, "as configured"
    memory = min((limit or total_memory()) / n_threads for limit, n_threads in worker_memory(client))  # of one task
    needed = f"a task needs about {COPIES * n_bytes / 2**20:,.0f} MiB of {memory / 2**20:,.0f}"
    return ("tasks", needed) if COPIES * n_bytes <= memory / 2 else ("masks", f"{needed}, more than half")


class JobRunner:
    """Reads the results of jobs from the cache or runs them, stores the results, and reports progress.

    Parameters
    ----------
    config : CvConfig
        The configuration of the search.
    rows : SearchRows
        The rows and folds of the search.
    train : LazyRows
        All training rows, as returned by `SearchRows.training_rows`.
    placement : str
        {"tasks", "masks"}, where the fits of folds run.
    workers : Workers
        The workers.
    observer : RunObserver
        Reports the progress of the run.
    """

    def __init__(
        self, config: CvConfig, rows: SearchRows, train: LazyRows, placement: str, workers: Workers, observer: RunObserver
    ):  # fmt: skip
        self._rows, self._train, self._placement = rows, train, placement
        self._workers, self._observer = workers, observer
        self._n_failed = 0
        names, sets = tuple(rows.rows.schema.feature_names), None if rows.classes is None else rows.classes.sets
        self._settings = JobSettings(
            config.model.built, config.named_metric, rows.fold_encoding, config.folds.seed, names, sets
        )
        # The values that the results of all jobs depend on. More repeats do not invalidate cached results, nor do newer keys.
        fold_settings = config.folds.model_dump(mode="json", exclude={"repeats"})
        common = {
            "fingerprint": rows.rows.fingerprint,
            "data": config.data.model_dump(mode="json", exclude={"name", "source"}),
            "folds": {key: value for key, value in fold_settings.items() if value or not key.startswith("gap_")},
            "blocks": train.n_blocks,
            "masks": True,  # earlier versions fitted copies of the rows of a fold, with other results
            "model": {"estimator": type(config.model.built).__name__, **config.model.built.plain_params()},
            "metric": config.named_metric.name,
            "nested": config.nested,
        }
        if rows.classes is not None:  # with more repeats, more classes may be left out
            common["classes"] = rows.classes.sets.names()
        self._cache = ResultCache(f"{config.output.rstrip('/')}/cv-{config.name}/tasks", common)
        self.n_jobs = self.n_cached = 0

    def run(self, jobs: list[FitJob]) -> list[list[FoldScore]]:
        """Return the results of all jobs, in the order of the jobs."""
        results: dict[int, list[FoldScore]] = {
            i: cached for i, job in enumerate(jobs) if (cached := self._cache.get(*_cache_key(job))) is not None
        }
        missing = [i for i in range(len(jobs)) if i not in results]
        self.n_jobs, self.n_cached = self.n_jobs + len(jobs), self.n_cached + len(results)
        self._observer.tasks(len(results), len(jobs), self._n_failed)
        start = time.monotonic()
        for k, answers in self._execute([jobs[i] for i in missing]) if missing else ():
            job = jobs[missing[k]]
            results[missing[k]] = answers
            if (error := answers[0].get("error")) is None:
                self._cache.put(*_cache_key(job), answers)
            else:
                fold = job.fold
                inner = "" if fold.inner is None else f", inner fold {fold.inner + 1}"
                where = f"fold {fold.fold + 1} of repeat {fold.repeat + 1}{inner}"  # users count from 1
                self._observer.note(f"failed: {where}: {error}")
                self._n_failed += 1
            n_left = len(jobs) - len(results)
            seconds_left = (time.monotonic() - start) / (len(missing) - n_left) * n_left
            self._observer.tasks(len(results), len(jobs), self._n_failed, seconds_left=seconds_left)
        return [results[i] for i in range(len(jobs))]

    @cached_property
    def _execute(self) -> Callable[[list[FitJob]], JobResults]:
        """The function that runs jobs. It is created when the first job runs, because this may write rows for the workers."""
        workers, settings, masks = self._workers, self._settings, self._rows.folds.masks
        rows = self._train.for_workers(self._rows.rows.schema, workers, "search")
        if self._placement == "tasks":
            args = (settings, uuid.uuid4().hex, rows.loader, rows.items)
            return lambda jobs: run_on_workers(jobs, masks, fit_on_worker, *args, client=workers.client)
        blocks, each = settings.named(rows.load(workers)), rows.each(workers.parallel_map())

        def do(job: FitJob) -> list[FoldScore]:
            return attempt(fit_job, job, masks(job.fold), settings, blocks, each)

        if workers.client is None:
            return lambda jobs: enumerate(map(do, jobs))
        return lambda jobs: run_in_threads(jobs, do)


def _cache_key(job: FitJob) -> tuple[str, Any]:
    inner = "" if job.fold.inner is None else f"-{job.fold.inner}"
    return f"{job.fold.repeat}-{job.fold.fold}{inner}", jsonable(job._asdict())
