"""The jobs of a search, in any process: fit a path of settings on one fold, and score the held-out rows."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from aucdist.data.block import Block, each_of
from aucdist.data.label_sets import LabelSets
from aucdist.data.shards.reading import ParallelMap
from aucdist.engine.blocks import Blocks, Loader, LocalBlocks, block_seed
from aucdist.engine.classes import AnyBlocks, ClassBlocks, of_all_classes, viewed
from aucdist.errors import InputError
from aucdist.estimators import ESTIMATORS
from aucdist.estimators.display import RankingWarning
from aucdist.metrics.measures import find_measure
from aucdist.search.choice import Result
from aucdist.search.fold import score_path
from aucdist.search.folds import Sides, masked_blocks
from aucdist.search.schedule import FitJob
from flows.cv.rows import fit_encoding, select_rows
from flows.rows.rows import Encoding, Rows


@dataclass(frozen=True)
class JobSettings:
    """What all jobs of a search have in common.

    `encoding`: None if the rows are already encoded.
    `seed`: of the folds; random solvers get theirs from it, unless `parameters` has one.
    `sets`: the classes that are each fitted against the rest; None for two classes.
    """

    estimator: str
    parameters: dict[str, Any]
    metric: str
    encoding: Encoding | None
    seed: int
    names: tuple[str, ...]
    sets: LabelSets | None = None


def fit_on_copies(job: FitJob, sides: Sides, settings: JobSettings, blocks: Sequence[Block]) -> list[Result]:
    """Do a job on copies of its rows, in this process.

    Returns one for each setting; see `aucdist.search.fold.score_path`.
    """
    train, held_out = ([select_rows(block, side) for block in blocks] for side in (sides.train, sides.held_out))
    if settings.encoding is not None:
        preprocessor = settings.encoding.fit(each_of(train))
        train, held_out = ([preprocessor.transform(block) for block in part] for part in (train, held_out))
    return _scored(job, settings, *(with_classes(LocalBlocks(side), settings.sets) for side in (train, held_out)))


def fit_on_masks(
    job: FitJob, sides: Sides, settings: JobSettings, rows: Rows, parallel_map: ParallelMap, blocks: AnyBlocks
) -> list[Result]:
    """Do a job on blocks that stay where they are: rows of the other side get weight 0.

    `job`, `sides` and `settings`: as for `fit_on_copies`.
    `rows`: the rows of the search, from which the encoding learns.
    `blocks`: the same rows, on the workers.
    """
    preprocessor = None
    if settings.encoding is not None:
        preprocessor = fit_encoding(settings.encoding, rows, sides.train, parallel_map)
    masks = (partial(masked_blocks, inside=side, prepare=preprocessor) for side in (sides.train, sides.held_out))
    return _scored(job, settings, *(viewed(blocks, mask) for mask in masks))


def fit_on_worker(
    job: FitJob, sides: Sides, settings: JobSettings, search: str, loader: Loader, items: Sequence[Any]
) -> list[Result]:
    """Do a job on copies of its rows, on a worker. The first job of a search reads all rows; they stay for the others.

    `job`, `sides` and `settings`: as for `fit_on_copies`.
    `search`: a name that no other search has.
    `loader`: ``loader(item) -> Block``.
    `items`: what it gets for each block.
    """
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, RankingWarning):  # the results say it
            warnings.simplefilter("ignore", category)
        return attempt(_fit_on_worker, job, sides, settings, search, loader, items)


def _fit_on_worker(
    job: FitJob, sides: Sides, settings: JobSettings, search: str, loader: Loader, items: Sequence[Any]
) -> list[Result]:
    if search not in _BLOCKS:
        _BLOCKS.clear()
        _BLOCKS[search] = [loader(item) for item in items]
    return fit_on_copies(job, sides, settings, _BLOCKS[search])


_BLOCKS: dict[str, list[Block]] = {}
"""All rows of the search that this process works for."""


def attempt(work: Any, job: FitJob, *args: Any) -> list[Result]:
    """Do a job and return its results; an error becomes its results, with whether a retry could help."""
    try:
        results: list[Result] = work(job, *args)
    except Exception as e:
        return failed(job, e)
    return results


def failed(job: FitJob, e: Exception) -> list[Result]:
    """Return the results of a job that failed."""
    wrong_input = isinstance(e, InputError)
    text = str(e) if wrong_input else f"{type(e).__name__}: {e}"
    return [{"error": text, "again": not wrong_input}] * len(job.points)


def with_classes(blocks: Blocks, sets: LabelSets | None) -> AnyBlocks:
    """Return rows with their classes, if there are several."""
    return blocks if sets is None else ClassBlocks(blocks, sets)


def _scored(job: FitJob, settings: JobSettings, train: AnyBlocks, held_out: AnyBlocks) -> list[Result]:
    of_all_classes(train).feature_names = settings.names or None
    estimator = ESTIMATORS[settings.estimator](**settings.parameters).set_params(max_passes=job.max_passes)
    if settings.parameters["random_state"] is None:
        inner = 0 if job.fold.inner is None else 1 + job.fold.inner
        seed = block_seed(block_seed(settings.seed, job.fold.repeat, job.fold.fold), inner, 0) % 2**31
        estimator.set_params(random_state=seed)
    return score_path(estimator, job.points, train, held_out, find_measure(settings.metric))
