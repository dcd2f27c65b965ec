"""Data sets that no process holds: shards, whose rows are read where they are worked on, block by block."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from aucdist.data.block import Block
from aucdist.data.preprocess import Preprocessor
from aucdist.data.shards.block_reader import ParallelMap
from aucdist.data.shards.manifest import Manifest
from aucdist.data.shards.shard import read_shard
from aucdist.data.split import scrambled
from aucdist.engine.blocks import Loader, load
from aucdist.errors import InputError

CELLS = 2**16  # of the histogram in which the last test row of a class is looked for


@dataclass(frozen=True, eq=False)
class Remote:
    """Rows to be had by reading.

    Attributes
    ----------
    loader : callable
        ``loader(index) -> Block``; it travels.
    n_blocks, n_samples, n_features, n_pos : int
    memory, largest : int
        Bytes that all blocks take in memory, and the largest of them.
    """

    loader: Loader
    n_blocks: int
    n_samples: int
    n_features: int
    n_pos: int
    memory: int
    largest: int


def remote(manifest: Manifest) -> Remote:
    """Return the rows of a sharded data set."""
    sizes = [shard.memory for shard in manifest.shards]
    return Remote(
        partial(read_shard, manifest.url), len(sizes), manifest.n_samples, manifest.n_features, manifest.n_pos,
        sum(sizes), max(sizes),
    )  # fmt: skip


def size_of(rows: Block | Remote) -> dict[str, int]:
    """Return how many rows and features there are, and how many bytes they take in memory."""
    n_bytes = rows.memory if isinstance(rows, Remote) else sum(np.asarray(part).nbytes for part in rows.rows)
    return {"rows": rows.n_samples, "features": rows.n_features, "bytes": n_bytes}


def blocks_of(rows: Block | Remote) -> Iterator[Block]:
    """Yield rows block by block, wherever they are."""
    if isinstance(rows, Block):
        yield rows
        return
    for index in range(rows.n_blocks):
        yield load(rows.loader, index)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Reads blocks and prepares their features: ``prepared(index) -> Block``."""

    loader: Loader
    preprocessor: Preprocessor

    def __call__(self, index: int) -> Block:
        """Read and prepare a block."""
        return self.preprocessor.transform(self.loader(index))


def prepared(rows: Remote, preprocessor: Preprocessor) -> Remote:
    """Return the same rows with their features prepared each time they are read."""
    return replace(rows, loader=Prepared(rows.loader, preprocessor))


# ---- a share of each class for the test --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Side:
    """Reads the rows of one side of a split: ``side(index) -> Block``.

    Attributes
    ----------
    loader : callable
    seed : int
    limits : (int, int)
        The greatest random number of a test row, of the negative and of the positive class.
    test : bool
        Which side.
    """

    loader: Loader
    seed: int
    limits: tuple[int, int]
    test: bool

    def __call__(self, index: int) -> Block:
        """Read a block, and leave out the other side's rows."""
        block = self.loader(index)
        limits = np.array(self.limits, dtype=np.uint64)[(block.y == 1).astype(np.intp)]
        is_test = scrambled(block.row_id, self.seed) <= limits
        return block.take(np.flatnonzero(is_test == self.test), index=index)


def split_remote(rows: Remote, test_fraction: float, seed: int, each: ParallelMap) -> tuple[Remote, Remote]:
    """Choose the test rows that `aucdist.data.split.split` would choose of all rows together, in two readings.

    Parameters
    ----------
    rows : Remote
    test_fraction : float
        Share of each class, between 0 and 1.
    seed : int
    each : Each
        Reads the blocks.

    Returns
    -------
    train, test : Remote
    """
    n_test = np.zeros(2, dtype=np.int64)
    for label, n in enumerate((rows.n_samples - rows.n_pos, rows.n_pos)):
        if n < 2:
            called = ("negative", "positive")[label]
            raise InputError(f"{n} {called} rows; a split into training and test rows needs at least two")
        n_test[label] = min(max(round(test_fraction * n), 1), n - 1)
    blocks = range(rows.n_blocks)
    below = np.cumsum(sum(each(partial(_histogram, rows.loader, seed), blocks)), axis=1)
    cells = [int(np.searchsorted(below[k], n_test[k])) for k in (0, 1)]  # in which the last test row of each class lies
    found = list(each(partial(_in_cells, rows.loader, seed, cells), blocks))
    limits = []
    for k in (0, 1):
        before = int(below[k][cells[k] - 1]) if cells[k] else 0
        numbers = np.sort(np.concatenate([part[k] for part in found]))
        limits.append(int(numbers[n_test[k] - before - 1]))
    side = Side(rows.loader, seed, (limits[0], limits[1]), False)
    share = int(n_test.sum()) / rows.n_samples
    return (
        _part(rows, side, rows.n_samples - int(n_test.sum()), rows.n_pos - int(n_test[1]), 1.0 - share),
        _part(rows, replace(side, test=True), int(n_test.sum()), int(n_test[1]), share),
    )


def _part(rows: Remote, side: Side, n_samples: int, n_pos: int, share: float) -> Remote:
    return replace(
        rows, loader=side, n_samples=n_samples, n_pos=n_pos, memory=int(share * rows.memory), largest=rows.largest
    )


def _histogram(loader: Loader, seed: int, index: int) -> np.ndarray:
    """Return how many rows of either class have a random number in each cell; int64 of shape (2, CELLS)."""
    block = loader(index)
    cells = _cells(scrambled(block.row_id, seed))
    return np.stack([np.bincount(cells[block.y == label], minlength=CELLS) for label in (-1, 1)])


def _in_cells(loader: Loader, seed: int, wanted: list[int], index: int) -> list[np.ndarray]:
    """Return the random numbers of the rows in the cell that is wanted of either class."""
    block = loader(index)
    numbers = scrambled(block.row_id, seed)
    cells = _cells(numbers)
    return [numbers[(block.y == label) & (cells == cell)] for label, cell in zip((-1, 1), wanted, strict=True)]


def _cells(numbers: np.ndarray) -> np.ndarray:
    return (numbers >> np.uint64(48)).astype(np.intp)
