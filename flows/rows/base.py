"""Training and test rows in one shape, wherever they are: in this process, in shards, or in the parts of files."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.preprocess import Preprocessor
from aucdist.data.shards.block_reader import ParallelMap
from aucdist.data.sources.source import Source
from aucdist.engine.blocks import Blocks
from aucdist.errors import InputError
from flows.compute.stages import StageRunner
from flows.compute.workers import Workers
from flows.config.data import CacheMode, DataConfig
from flows.progress.console import RunObserver
from flows.rows.encoding import AS_READ, Encoding
from flows.rows.lazy import LazyRows


class Rows(Protocol):
    """Training or test rows. `flows.rows.in_memory.InMemoryRows` has them, `flows.rows.lazy.LazyRows` reads them in blocks."""

    @property
    def n_samples(self) -> int:
        """Number of rows."""

    @property
    def n_features(self) -> int:
        """Number of features."""

    @property
    def n_pos(self) -> int:
        """Number of positive rows."""

    @property
    def n_bytes(self) -> int:
        """Bytes that the rows take in memory."""

    @property
    def n_blocks(self) -> int:
        """Number of blocks that the rows are partitioned into."""

    def blocks(self) -> Iterator[Block]:
        """Yield the rows, block by block, in this process."""

    def row_ids_and_labels(self, parallel_map: ParallelMap) -> tuple[np.ndarray, np.ndarray]:
        """Return id (int64) and label (int8) of every row: 9 bytes each."""

    def fit(self, encoding: Encoding, parallel_map: ParallelMap) -> Preprocessor:
        """Return what an encoding learns from the rows."""

    def transform(self, preprocessor: Preprocessor) -> "Rows":
        """Return the same rows with encoded features."""

    def without_copies(self) -> "Rows":
        """Return the same rows without the copies of what was parsed: whoever needs the rows again reads the files."""

    def for_workers(self, schema: Schema, workers: Workers, folder: str) -> LazyRows:
        """Return the same rows as blocks that all workers can read, from `folder` of their scratch space if need be."""

    def partition(self, part: str, schema: Schema, cache: CacheMode, workers: Workers, observer: RunObserver) -> Blocks:
        """Return the rows as blocks of the engine, on the workers; `part` ("training", "test") names them in notes."""


@dataclass(frozen=True, eq=False)
class TrainTestBlocks:
    """Training rows and test rows as blocks of the engine."""

    train: Blocks
    test: Blocks | None


@dataclass(frozen=True, eq=False)
class TrainTestRows:
    """Training and test rows of a data set, with the same encoding.

    Attributes
    ----------
    name : str
    source : Source
    schema : Schema
    fingerprint : str
        Tells this version of the data from others.
    train : Rows
    test : Rows or None
    preprocessor : Preprocessor
        The encoding that `train` and `test` have.
    """

    name: str
    source: Source
    schema: Schema
    fingerprint: str
    train: Rows
    test: Rows | None
    preprocessor: Preprocessor = AS_READ

    def encode(self, config: DataConfig, parallel_map: ParallelMap) -> "TrainTestRows":
        """Return the rows with their features encoded as configured; the encoding is learnt from the training rows alone."""
        preprocessor = self.train.fit(Encoding(config, self.schema), parallel_map)
        test = None if self.test is None else self.test.transform(preprocessor)
        return replace(self, train=self.train.transform(preprocessor), test=test, preprocessor=preprocessor)

    def partition(self, cache: CacheMode, workers: Workers, observer: RunObserver) -> TrainTestBlocks:
        """Partition the rows into blocks: in the workers' memory, or streamed, as `cache` says."""
        train = self.train.partition("training", self.schema, cache, workers, observer)
        train.feature_names = self.schema.feature_names
        if self.test is None:
            return TrainTestBlocks(train, None)
        return TrainTestBlocks(train, self.test.partition("test", self.schema, cache, workers, observer))

    def without_copies(self) -> "TrainTestRows":
        """Return the rows without the copies of what was parsed, which the blocks that were made of them do not need."""
        test = None if self.test is None else self.test.without_copies()
        return replace(self, train=self.train.without_copies(), test=test)

    def size(self) -> dict[str, int]:
        """Return the number of training rows and of features, and the bytes that they take in memory."""
        return {"rows": self.train.n_samples, "features": self.train.n_features, "bytes": self.train.n_bytes}


class RowSource(Protocol):
    """A data set that has been opened, as far as that takes no workers.

    There are three: `flows.rows.in_memory.InMemorySource`, `flows.rows.shards.ShardSource` and
    `flows.rows.file_parts.FilePartSource`; `flows.rows.source.open_source` chooses.

    Attributes
    ----------
    needs_workers : bool
        Whether the rows are read by the workers, and not in this process.
    """

    needs_workers: bool

    @property
    def n_blocks(self) -> int:
        """Number of blocks that the training rows are partitioned into.

        Raises
        ------
        InputError
            If the data set cannot have the number that was asked for.
        """

    def prepare(self, workers: Workers, observer: RunObserver, run_stage: StageRunner) -> TrainTestRows:
        """Return the training rows and test rows.

        Parameters
        ----------
        workers : Workers
            Read the rows, unless this process has them.
        observer : RunObserver
            Is called with the progress of the reading.
        run_stage : StageRunner
            Runs the stages that this takes.
        """


def check_both_classes(name: str, n_pos: int, n_neg: int) -> None:
    """Check that training rows have both classes.

    Raises
    ------
    InputError
        If they have not.
    """
    if 0 in (n_pos, n_neg):
        raise InputError(f"{name}: the training rows are all of one class; both are needed")
