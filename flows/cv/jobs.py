"""The jobs of a search.

A job fits a path of settings on one fold and scores the held-out rows: here, in threads or on workers.
"""

import queue
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from aucdist.data.block import Block, EachBlock, each_of
from aucdist.data.label_sets import LabelSets
from aucdist.engine.blocks import Blocks, Loader, LocalBlocks, block_seed
from aucdist.engine.view import AnyBlocks
from aucdist.errors import InputError, Json, error_text
from aucdist.estimators.calibration import select_rows
from aucdist.estimators.display import RankingWarning
from aucdist.metrics.named import Metric
from aucdist.search.choice import FoldScore
from aucdist.search.fold_scores import score_job
from aucdist.search.folds import Fold, FoldMasks
from aucdist.search.schedule import FitJob
from flows.rows.rows import FeatureEncoding, with_classes

CONCURRENT_FITS = 4
"""The number of fits that use the blocks at the same time. While one waits for the network, others compute."""
JobResults = Iterator[tuple[int, list[FoldScore]]]
_BLOCKS: dict[str, list[Block]] = {}
"""All rows of the search that this process works for."""


@dataclass(frozen=True)
class JobSettings:
    """The settings that all jobs of a search share.

    Attributes
    ----------
    estimator : object
        The unfitted estimator, with the parameters that no setting changes.
    metric : Metric
        The metric that compares settings.
    encoding : FeatureEncoding or None
        The encoding that each fold learns, or None if the rows are already encoded.
    seed : int
        The seed of the folds. The seeds of random solvers are derived from it, unless the estimator has one.
    names : tuple of str
        The names of the features.
    sets : LabelSets or None
        The classes that are each fitted against the rest, or None for two classes.
    """

    estimator: Any
    metric: Metric
    encoding: FeatureEncoding | None
    seed: int
    names: tuple[str, ...]
    sets: LabelSets | None

    def named(self, blocks: Blocks) -> AnyBlocks:
        """Return all rows of the search with the names of their features. For several classes, also with their classes."""
        blocks.feature_names = self.names or None
        return with_classes(blocks, self.sets)

    def estimator_of(self, job: FitJob) -> Any:
        """Return the unfitted estimator of a job. It gets the seed of the fold unless it has one."""
        estimator = clone(self.estimator).set_params(max_passes=job.max_passes)
        if estimator.random_state is None:
            inner = 0 if job.fold.inner is None else 1 + job.fold.inner
            seed = block_seed(block_seed(self.seed, job.fold.repeat, job.fold.fold), inner, 0) % 2**31
            estimator.set_params(random_state=seed)
        return estimator


def fit_job(job: FitJob, masks: FoldMasks, settings: JobSettings, rows: AnyBlocks, each: EachBlock) -> list[FoldScore]:
    """Run a job on the original blocks, where rows outside the fold have weight 0.

    Parameters
    ----------
    job : FitJob
        The job.
    masks : FoldMasks
        The rows of the fold.
    settings : JobSettings
        The settings of all jobs of the search.
    rows : AnyBlocks
        All rows of the search.
    each : EachBlock
        Applies a function to each block of rows. By means of it, the encoding learns from the training rows of the fold.

    Returns
    -------
    list of FoldScore
        One result for each setting, see `aucdist.search.fold_scores.score_settings`.
    """
    preprocessor = None
    if settings.encoding is not None:
        preprocessor = settings.encoding.fit(
            lambda function: each(lambda block: function(select_rows(block, masks.train)))
        )
    return score_job(settings.estimator_of(job), job, masks, rows, settings.metric, preprocessor)


def fit_on_worker(
    job: FitJob, masks: FoldMasks, settings: JobSettings, search: str, loader: Loader, items: Sequence[Any]
) -> list[FoldScore]:
    """Run a job on a worker that has all rows. The first job of a search reads them, and they stay in memory for the other jobs.

    Parameters
    ----------
    job : FitJob
        As for `fit_job`.
    masks : FoldMasks
        As for `fit_job`.
    settings : JobSettings
        As for `fit_job`.
    search : str
        A name of the search that no other search has.
    loader : Loader
        ``loader(item) -> Block``.
    items : sequence
        The argument of `loader` for each block.
    """
    if search not in _BLOCKS:
        _BLOCKS.clear()
        _BLOCKS[search] = [loader(item) for item in items]
    blocks = _BLOCKS[search]
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, RankingWarning):  # the results contain these warnings
            warnings.simplefilter("ignore", category)
        return fit_job(job, masks, settings, settings.named(LocalBlocks(blocks)), each_of(blocks))


def attempt(work: Any, job: FitJob, *args: Any) -> list[FoldScore]:
    """Run a job and return its results. An error becomes the result, together with whether a retry could help."""
    try:
        return work(job, *args)
    except Exception as e:
        return failed(job, e)


def failed(job: FitJob, e: Exception) -> list[FoldScore]:
    """Return the results of a job that failed."""
    return [{"error": error_text(e), "again": not isinstance(e, InputError)}] * len(job.settings)


# ---- running jobs ------------------------------------------------------------------------------------------------------


def run_in_threads(jobs: Sequence[FitJob], do: Callable[[FitJob], list[FoldScore]]) -> JobResults:
    """Run several jobs at a time in threads of this process, with steps on the workers. A failed job is retried once.

    Parameters
    ----------
    jobs : sequence of FitJob
        The jobs.
    do : callable
        Called with a job. Runs it and returns its results.

    Yields
    ------
    tuple (int, list of dict)
        The position of a job and its results, in the order in which jobs finish.
    """
    with ThreadPoolExecutor(CONCURRENT_FITS) as pool:
        yield from _as_done(jobs, lambda job, _: pool.submit(do, job))


def run_on_workers(
    jobs: Sequence[FitJob],
    sides_of: Callable[[Fold], FoldMasks],
    work: Callable[..., list[FoldScore]],
    *args: Any,
    client: Any,
) -> JobResults:
    """Run jobs as tasks on the workers of a Dask client. A failed job is retried once, on another worker if there is one.

    If a worker dies, Dask itself gives its job to another worker.

    Parameters
    ----------
    jobs : sequence of FitJob
        The jobs.
    sides_of : callable
        Called with a fold. Returns the rows of the fold.
    work : callable
        Called as ``work(job, masks, *args)``. Runs a job and returns its results.
    *args : object
        Further arguments of `work`.
    client : object
        The Dask client.

    Yields
    ------
    tuple (int, list of dict)
        The position of a job and its results, in the order in which jobs finish.
    """

    def submit(job: FitJob, before: Any) -> Any:
        options: Json = {}
        if before is not None:
            (used,) = client.who_has([before]).values()
            others = [address for address in client.scheduler_info(n_workers=-1)["workers"] if address not in used]
            options = {"workers": others or None, "allow_other_workers": True}
        return client.submit(attempt, work, job, sides_of(job.fold), *args, pure=False, **options)

    yield from _as_done(jobs, submit)


def _as_done(jobs: Sequence[FitJob], submit: Callable[[FitJob, Any], Any]) -> JobResults:
    """Yield the results of jobs as they finish.

    Parameters
    ----------
    jobs : sequence of FitJob
        The jobs.
    submit : callable
        Called as ``submit(job, before)``. Returns a future of the job. `before` is the future of its first attempt, or None.
    """
    done: queue.SimpleQueue[int] = queue.SimpleQueue()
    running: dict[int, tuple[Any, bool]] = {}

    def start(i: int, before: Any) -> None:
        future = submit(jobs[i], before)
        running[i] = future, before is not None
        future.add_done_callback(lambda _: done.put(i))

    try:
        for i in range(len(jobs)):
            start(i, None)
        while running:
            i = done.get()
            future, retried = running.pop(i)
            try:
                results = future.result()
            except Exception as e:  # several workers were lost, one after the other, or the cluster is gone
                results = failed(jobs[i], e)
            if not retried and any(result.get("again", False) for result in results):
                start(i, future)
            else:
                yield i, results
    finally:
        for future, _ in running.values():
            future.cancel()
