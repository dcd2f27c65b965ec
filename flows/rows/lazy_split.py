"""The train/test split of rows that no process holds."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.data.shards.block_reader import ParallelMap
from aucdist.data.split import scrambled
from aucdist.engine.blocks import Loader
from aucdist.errors import InputError
from flows.config.data import DataConfig
from flows.rows.base import TrainTestRows
from flows.rows.lazy import LazyRows

N_BINS = 2**16  # of the histogram in which the last test row of a class is searched


def split_and_encode(
    rows: TrainTestRows, train: LazyRows, config: DataConfig, encode: bool, parallel_map: ParallelMap
) -> TrainTestRows:
    """Split off the test fraction, if there is one, and encode the features; the rows are read on the workers.

    Parameters
    ----------
    rows : TrainTestRows
        With a test set of its own, or none.
    train : LazyRows
        Its training rows.
    config : DataConfig
    encode : bool
        False leaves the features as they were read.
    parallel_map : ParallelMap
    """
    if config.test is not None and config.test.fraction is not None:
        train, test = split_lazy_rows(train, config.test.fraction, config.test.seed, parallel_map)
        rows = replace(rows, train=train, test=test)
    return rows.encode(config, parallel_map) if encode else rows


@dataclass(frozen=True)
class SplitLoader:
    """Reads the training rows, or the test rows, of blocks: ``loader(item) -> Block``.

    Attributes
    ----------
    loader : callable
    seed : int
    limits : (int, int)
        The greatest random number of a test row, of the negative and of the positive class.
    test : bool
        Whether to return the test rows.
    """

    loader: Loader
    seed: int
    limits: tuple[int, int]
    test: bool

    def __call__(self, item: Any) -> Block:
        """Read a block and return its rows of this side of the split."""
        block = self.loader(item)
        limits = np.array(self.limits, dtype=np.uint64)[(block.y == 1).astype(np.intp)]
        is_test = scrambled(block.row_id, self.seed) <= limits
        return block.take(np.flatnonzero(is_test == self.test), index=block.index)


def split_lazy_rows(
    rows: LazyRows, test_fraction: float, seed: int, parallel_map: ParallelMap
) -> tuple[LazyRows, LazyRows]:
    """Choose the test rows that `aucdist.data.split.split` would choose from all rows together, in two readings.

    Parameters
    ----------
    rows : LazyRows
    test_fraction : float
        Share of each class, between 0 and 1.
    seed : int
    parallel_map : ParallelMap
        Reads the blocks.

    Returns
    -------
    train, test : LazyRows

    Raises
    ------
    InputError
        If a class has fewer than two rows.
    """
    n_test = np.zeros(2, dtype=np.int64)
    for label, n in enumerate((rows.n_samples - rows.n_pos, rows.n_pos)):
        if n < 2:
            name = ("negative", "positive")[label]
            raise InputError(f"{n} {name} rows; a split into training and test rows needs at least two")
        n_test[label] = min(max(round(test_fraction * n), 1), n - 1)
    below = np.cumsum(sum(parallel_map(partial(_histogram, rows.loader, seed), rows.items)), axis=1)
    bins = [int(np.searchsorted(below[k], n_test[k])) for k in (0, 1)]  # which have the last test row of each class
    parts = list(parallel_map(partial(_numbers_in_bins, rows.loader, seed, bins), rows.items))
    limits = []
    for k in (0, 1):
        before = int(below[k][bins[k] - 1]) if bins[k] else 0
        numbers = np.sort(np.concatenate([part[k] for part in parts]))
        limits.append(int(numbers[n_test[k] - before - 1]))
    loader = SplitLoader(rows.loader, seed, (limits[0], limits[1]), False)
    share = int(n_test.sum()) / rows.n_samples
    return (
        replace(
            rows, loader=loader, n_samples=rows.n_samples - int(n_test.sum()), n_pos=rows.n_pos - int(n_test[1]),
            n_bytes=int((1.0 - share) * rows.n_bytes),
        ),
        replace(
            rows, loader=replace(loader, test=True), n_samples=int(n_test.sum()), n_pos=int(n_test[1]),
            n_bytes=int(share * rows.n_bytes),
        ),
    )  # fmt: skip


def _histogram(loader: Loader, seed: int, item: Any) -> np.ndarray:
    """Return how many rows of each class have a random number in each bin; int64 of shape (2, N_BINS)."""
    block = loader(item)
    bins = _bins(scrambled(block.row_id, seed))
    return np.stack([np.bincount(bins[block.y == label], minlength=N_BINS) for label in (-1, 1)])


def _numbers_in_bins(loader: Loader, seed: int, wanted: list[int], item: Any) -> list[np.ndarray]:
    """Return the random numbers of the rows in the wanted bin of each class."""
    block = loader(item)
    numbers = scrambled(block.row_id, seed)
    bins = _bins(numbers)
    return [numbers[(block.y == label) & (bins == cell)] for label, cell in zip((-1, 1), wanted, strict=True)]


def _bins(numbers: np.ndarray) -> np.ndarray:
    return (numbers >> np.uint64(48)).astype(np.intp)
