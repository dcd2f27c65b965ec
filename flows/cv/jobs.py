"""The jobs of a search: fit a path of settings on one fold and score the held-out rows, here, in threads, or on workers."""

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
"""The number of fits that share the blocks at a time: while one waits for the network, others compute."""
JobResults = Iterator[tuple[int, list[FoldScore]]]
_BLOCKS: dict[str, list[Block]] = {}
"""All rows of the search that this process works for."""


@dataclass(frozen=True)
class JobSettings:
    """The settings that all jobs of a search share.

    Attributes
    ----------
    estimator : object
        Unfitted, with the parameters that no setting changes.
    metric : Metric
    encoding : FeatureEncoding or None
        None if the rows are already encoded.
    seed : int
        Of the folds; random solvers get theirs from it, unless the estimator has one.
    names : tuple of str
    sets : LabelSets or None
        The classes that are each fitted against the rest; None for two classes.
    """

    estimator: Any
    metric: Metric
    encoding: FeatureEncoding | None
    seed: int
    names: tuple[str, ...]
    sets: LabelSets | None

    def named(self, blocks: Blocks) -> AnyBlocks:
        """Return all rows of the search with the names of their features, and with their classes if there are several."""
        blocks.feature_names = self.names or None
        return with_classes(blocks, self.sets)

    def estimator_of(self, job: FitJob) -> Any:
        """Return the unfitted estimator of a job, with the seed of its fold unless it has one."""
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
    masks : FoldMasks
        The rows of the fold.
    settings : JobSettings
    rows : AnyBlocks
        All rows of the search.
    each : EachBlock
        Applies a function to each of their blocks; the encoding learns by it from the training rows of the fold.

    Returns
    -------
    list of FoldScore
        One for each setting; see `aucdist.search.fold_scores.score_settings`.
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
    """Run a job on a worker that has all rows. The first job of a search reads them, and they stay for the others.

    Parameters
    ----------
    job : FitJob
        As for `fit_job`.
    masks : FoldMasks
        As for `fit_job`.
    settings : JobSettings
        As for `fit_job`.
    search : str
        A name that no other search has.
    loader : Loader
        ``loader(item) -> Block``.
    items : sequence
        Its argument for each block.
    """
    if search not in _BLOCKS:
        _BLOCKS.clear()
        _BLOCKS[search] = [loader(item) for item in items]
    blocks = _BLOCKS[search]
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, RankingWarning):  # the results contain it
            warnings.simplefilter("ignore", category)
        return fit_job(job, masks, settings, settings.named(LocalBlocks(blocks)), each_of(blocks))


def attempt(work: Any, job: FitJob, *args: Any) -> list[FoldScore]:
    """Run a job and return its results. An error is recorded as the result, with whether a retry could help."""
    try:
        return work(job, *args)
    except Exception as e:
        return failed(job, e)


def failed(job: FitJob, e: Exception) -> list[FoldScore]:
    """Return the results of a job that failed."""
    return [{"error": error_text(e), "again": not isinstance(e, InputError)}] * len(job.settings)


# ---- where jobs run ----------------------------------------------------------------------------------------------------


def run_in_threads(jobs: Sequence[FitJob], do: Callable[[FitJob], list[FoldScore]]) -> JobResults:
    """Run several jobs at a time in threads of this process, with steps on the workers. A failed job is retried once.

    `do`: returns the results of a job.
    Yields (int, list of dict): the position of a job and its results, as they are done.
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

    A job whose worker dies is given to another one by Dask itself.

    `sides_of`: returns the rows of a fold.
    `work`: ``work(job, sides, *args)``.
    Yields (int, list of dict): the position of a job and its results, as they are done.
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
    submit : callable
        ``submit(job, before)`` returns a future of the job; `before` is that of its first attempt, or None.
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
