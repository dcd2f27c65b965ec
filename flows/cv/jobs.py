"""The jobs of a search, in any process: a path of settings on one cut of the rows."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Loader, LocalBlocks, block_seed
from aucdist.errors import InputError
from aucdist.estimators import ESTIMATORS
from aucdist.metrics.measures import find_measure
from aucdist.search.choice import Result
from aucdist.search.fold import score_path
from aucdist.search.masked import MaskedBlocks
from aucdist.search.schedule import Job
from aucdist.search.splits import Fold, Sides
from flows.cv.store import Encoding, Store, kept


@dataclass(frozen=True)
class How:
    """What the jobs of a search have in common.

    Attributes
    ----------
    estimator : str
    parameters : dict
    metric : str
    encoding : Encoding or None
        None where the rows are encoded already.
    seed : int
        Of the folds; random solvers get theirs from it, unless `parameters` has one.
    """

    estimator: str
    parameters: dict[str, Any]
    metric: str
    encoding: Encoding | None
    seed: int


def on_own_rows(job: Job, sides: Sides, how: How, blocks: Sequence[Block]) -> list[Result]:
    """Do a job on copies of its rows, in this process.

    Parameters
    ----------
    job : Job
    sides : Sides
    how : How
    blocks : sequence of Block
        All rows of the search.
    """
    train, held_out = ([kept(block, side) for block in blocks] for side in (sides.train, sides.held_out))
    if how.encoding is not None:
        prepare = how.encoding.fitted(train)
        train, held_out = ([prepare.transform(block) for block in part] for part in (train, held_out))
    return _scored(job, how, LocalBlocks(train), LocalBlocks(held_out))


def on_masked_rows(job: Job, sides: Sides, how: How, store: Store, placed: Blocks) -> list[Result]:
    """Do a job on blocks that stay where they are.

    Parameters
    ----------
    job, sides, how
        As `on_own_rows`.
    store : Store
        The rows of the search, from which the encoding learns.
    placed : Blocks
        The same rows, on whoever works on them.
    """
    prepare = None if how.encoding is None else store.learnt(how.encoding, sides.train)
    return _scored(job, how, *(MaskedBlocks(placed, side, prepare) for side in (sides.train, sides.held_out)))


def on_worker(job: Job, sides: Sides, how: How, name: str, loader: Loader, n_blocks: int) -> list[Result]:
    """Do a job on copies of its rows, on a worker: the first of a search reads all rows, which then stay for the others.

    Parameters
    ----------
    job, sides, how
        As `on_own_rows`.
    name : str
        Of the search, unlike any other's.
    loader : callable
    n_blocks : int
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the results say it
        return attempt(_on_worker, job, sides, how, name, loader, n_blocks)


def _on_worker(job: Job, sides: Sides, how: How, name: str, loader: Loader, n_blocks: int) -> list[Result]:
    if name not in _READ:
        _READ.clear()
        _READ[name] = [loader(index) for index in range(n_blocks)]
    return on_own_rows(job, sides, how, _READ[name])


_READ: dict[str, list[Block]] = {}


def attempt(work: Any, job: Job, *args: Any) -> list[Result]:
    """Do a job; what goes wrong becomes its results, and whether another try could help."""
    try:
        found: list[Result] = work(job, *args)
    except Exception as e:
        return failed(job, e)
    return found


def failed(job: Job, e: Exception) -> list[Result]:
    """Return the results of a job that came to nothing."""
    known = isinstance(e, InputError)
    return [{"error": str(e) if known else f"{type(e).__name__}: {e}", "again": not known}] * len(job.points)


def _scored(job: Job, how: How, train: Blocks, held_out: Blocks) -> list[Result]:
    estimator = ESTIMATORS[how.estimator](**how.parameters).set_params(max_passes=job.max_passes)
    if how.parameters["random_state"] is None:
        estimator.set_params(random_state=_seed(how.seed, job.cut))
    return score_path(estimator, job.points, train, held_out, find_measure(how.metric))


def _seed(seed: int, cut: Fold) -> int:
    return block_seed(block_seed(seed, cut.repeat, cut.fold), 0 if cut.inner is None else 1 + cut.inner, 0) % 2**31
