"""Rows in the memory of this process."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from aucdist.data.block import Block, partition
from aucdist.data.dataset import Schema
from aucdist.data.formats.readers import read
from aucdist.data.preprocess import Preprocessor
from aucdist.data.shards.block_reader import ParallelMap
from aucdist.data.shards.manifest import read_manifest
from aucdist.data.shards.shard import write_shards
from aucdist.data.split import split
from aucdist.engine.blocks import Blocks, LocalBlocks
from aucdist.errors import InputError
from flows.compute.stages import StageRunner
from flows.compute.workers import Workers
from flows.config.data import CacheMode, DataConfig, source_of
from flows.progress.console import RunObserver
from flows.rows.base import TrainTestRows, check_both_classes
from flows.rows.encoding import Encoding
from flows.rows.lazy import LazyRows, sharded_rows

BYTES_PER_BLOCK = 64 * 2**20


@dataclass(frozen=True, eq=False)
class InMemoryRows:
    """Rows of this process; see `flows.rows.base.Rows`.

    Attributes
    ----------
    block : Block
        All rows, in their order.
    wanted_blocks : int, optional
        Blocks that they are partitioned into; by default one for each 64 MiB of values.
    """

    block: Block
    wanted_blocks: int | None = None

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.block.n_samples

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.block.n_features

    @property
    def n_pos(self) -> int:
        """Number of positive rows."""
        return int((self.block.y == 1).sum())

    @property
    def n_bytes(self) -> int:
        """Bytes that the features take in memory."""
        return sum(np.asarray(part).nbytes for part in self.block.rows)

    @property
    def n_blocks(self) -> int:
        """Number of blocks. It depends on the data alone, never on the workers."""
        return self.wanted_blocks or max(1, math.ceil(self.block.rows.values.nbytes / BYTES_PER_BLOCK))

    def blocks(self) -> Iterator[Block]:
        """Yield all rows as one block."""
        yield self.block

    def row_ids_and_labels(self, parallel_map: ParallelMap) -> tuple[np.ndarray, np.ndarray]:
        """Return id and label of every row, in their order."""
        return self.block.row_id, self.block.y

    def fit(self, encoding: Encoding, parallel_map: ParallelMap) -> Preprocessor:
        """Return what an encoding learns from the rows, in this process."""
        return encoding.fit([self.block])

    def transform(self, preprocessor: Preprocessor) -> "InMemoryRows":
        """Return the same rows with encoded features."""
        return replace(self, block=preprocessor.transform(self.block))

    def without_copies(self) -> "InMemoryRows":
        """Return these rows: there are none."""
        return self

    def for_workers(self, schema: Schema, workers: Workers, folder: str) -> LazyRows:
        """Return the same rows as blocks: written as shards for the workers of a client, else blocks of this process."""
        blocks = partition(self.block, self.n_blocks)
        if workers.client is not None:
            write_shards(blocks, schema, f"{workers.scratch}/{folder}")
            return sharded_rows(read_manifest(f"{workers.scratch}/{folder}"))
        return LazyRows(
            blocks.__getitem__, range(len(blocks)), self.n_samples, self.n_features, self.n_pos, self.n_bytes,
            math.ceil(self.n_bytes / len(blocks)),
        )  # fmt: skip

    def partition(self, part: str, schema: Schema, cache: CacheMode, workers: Workers, observer: RunObserver) -> Blocks:
        """Return the rows as blocks of the engine; see `flows.rows.base.Rows`.

        Raises
        ------
        InputError
            If they are to be streamed, but are in the memory of the only process there is.
        """
        if workers.client is None:
            if cache == "stream":
                raise InputError(
                    "cache: stream is for shards or for workers; here the rows are in this process already"
                )
            return LocalBlocks(partition(self.block, self.n_blocks), n_jobs=workers.n_jobs)
        written = self.for_workers(schema, workers, part)
        stream, why = written.choose_cache(cache, workers)
        if stream:
            observer.note(f"the {part} rows {why}")
        return written.load(workers, stream=stream)


@dataclass(frozen=True, eq=False)
class InMemorySource:
    """A data set that has been read into this process and split; see `flows.rows.base.RowSource`."""

    rows: TrainTestRows
    needs_workers = False

    @property
    def n_blocks(self) -> int:
        """Number of blocks that the training rows are partitioned into."""
        return self.rows.train.n_blocks

    def prepare(self, workers: Workers, observer: RunObserver, run_stage: StageRunner) -> TrainTestRows:
        """Return the training rows and test rows."""
        return self.rows


def read_rows(config: DataConfig, n_blocks: int | None = None, *, encode: bool = True) -> InMemorySource:
    """Read a data set into this process, split it, and encode its features, learning from the training rows alone.

    Parameters
    ----------
    config : DataConfig
    n_blocks : int, optional
        Blocks that its rows are partitioned into.
    encode : bool, default=True
        False leaves the features as they were read.

    Raises
    ------
    InputError
        If the data set cannot be read, split or encoded as configured.
    """
    source = source_of(config)
    if config.positive is not None:
        source = source.model_copy(update={"positive": config.positive})
    data = read(source, name=config.name or "")
    train, test = data.block, None
    if config.test is not None and config.test.fraction is not None:
        train, test = (data.block.take(which) for which in split(data.block, config.test.fraction, config.test.seed))
    elif config.test is not None:
        test = read(source_of(config.test), schema=data.schema, name=config.test.name or "").block
    train_rows, test_rows = (None if block is None else InMemoryRows(block, n_blocks) for block in (train, test))
    assert train_rows is not None
    check_both_classes(data.name, train_rows.n_pos, train_rows.n_samples - train_rows.n_pos)
    if n_blocks is not None and n_blocks > train_rows.n_samples:
        raise InputError(
            f"`blocks` is {n_blocks}, but {data.name} has {train_rows.n_samples} training rows: take at most as many"
        )
    rows = TrainTestRows(data.name, source, data.schema, data.fingerprint, train_rows, test_rows)
    return InMemorySource(rows.encode(config, map) if encode else rows)
