"""Where the rows of a search lie: in this process, or in blocks that are read by whoever works on them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from aucdist.data.block import Block, partition
from aucdist.data.dataset import Schema
from aucdist.data.preprocess import Preprocessor
from aucdist.data.shards.shard import read_shard, write_shards
from aucdist.engine.blocks import Blocks, Loader, LocalBlocks
from flows.compute.lazy_rows import Remote
from flows.config.data import DataConfig
from flows.train.stages import fitted


@dataclass(frozen=True)
class Encoding:
    """What is done to the features of a fold; it learns from the fold's training rows."""

    data: DataConfig
    schema: Schema

    def fitted(self, train: Any, **how: Any) -> Preprocessor:
        """Learn from blocks of training rows; `how` as in `aucdist.data.preprocess.fit_preprocessor`."""
        return fitted(train, self.schema, self.data, **how)


@dataclass(frozen=True, eq=False)
class Kept:
    """Reads blocks, and keeps some of their rows: ``kept(index) -> Block``."""

    loader: Loader
    side: np.ndarray

    def __call__(self, index: int) -> Block:
        """Read a block and keep its rows of this side."""
        return kept(self.loader(index), self.side)


def kept(block: Block, side: np.ndarray) -> Block:
    """Return the rows of a block that are on a side, which has a place for every ``row_id``."""
    return block.take(side[block.row_id], index=block.index)


class Held:
    """Rows that are in this process, dealt out to blocks.

    Parameters
    ----------
    block : Block
    n_blocks : int
    """

    def __init__(self, block: Block, n_blocks: int):
        self.blocks = partition(block, n_blocks)
        self.n_blocks = n_blocks
        self.n_bytes = sum(part.rows.values.nbytes for part in self.blocks)

    def learnt(self, encoding: Encoding, side: np.ndarray) -> Preprocessor:
        """Return what an encoding learns from the rows of one side."""
        return encoding.fitted([kept(block, side) for block in self.blocks])

    def loader(self, schema: Schema, url: str) -> Loader:
        """Write the blocks where workers can read them, and return what reads them."""
        write_shards(self.blocks, schema, url)
        return partial(read_shard, url)


class Apart:
    """Rows that are read block by block.

    Parameters
    ----------
    rows : Remote
    client : distributed.Client or None
        On whose workers they are read.
    """

    def __init__(self, rows: Remote, client: Any):
        self._rows, self._client = rows, client
        self.n_blocks, self.n_bytes = rows.n_blocks, rows.memory

    @property
    def blocks(self) -> list[Block]:
        """All blocks, read into this process."""
        return [self._rows.loader(index) for index in range(self.n_blocks)]

    def learnt(self, encoding: Encoding, side: np.ndarray) -> Preprocessor:
        """Return what an encoding learns from the rows of one side; they are read once more."""
        return encoding.fitted(range(self.n_blocks), load=Kept(self._rows.loader, side), each=each_on(self._client))

    def loader(self, schema: Schema, url: str) -> Loader:
        """Return what reads the blocks."""
        return self._rows.loader


Store = Held | Apart


def placed(store: Store, loader: Loader | None, client: Any) -> Blocks:
    """Return the blocks, in the memory of the workers that will work on them."""
    if client is None or loader is None:
        return LocalBlocks(store.blocks)
    from aucdist.engine.dask import DaskBlocks

    return DaskBlocks.load(client, loader, store.n_blocks)


def each_on(client: Any) -> Callable[..., Iterable[Any]]:
    """Return what calls a function on many things, on the workers of a client or (None) in this process."""
    if client is None:
        return map
    from aucdist.engine.dask import map_on_workers

    return partial(map_on_workers, client)


def ids_and_labels(rows: Remote, client: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return number and label of every row, 9 bytes each; the rows are read once."""
    parts = list(each_on(client)(partial(_ids_and_labels, rows.loader), range(rows.n_blocks)))
    row_id, y = (np.concatenate(column) for column in zip(*parts, strict=True))
    return row_id, y


def _ids_and_labels(loader: Loader, index: int) -> tuple[np.ndarray, np.ndarray]:
    block = loader(index)
    return block.row_id, block.y
