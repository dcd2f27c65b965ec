"""Sharded data sets: each shard is a block, which the workers read."""

from dataclasses import dataclass

from aucdist.data.shards.block_reader import open_reader
from aucdist.data.shards.manifest import read_manifest
from aucdist.data.storage.files import shown
from aucdist.errors import InputError
from flows.compute.stages import StageRunner
from flows.compute.workers import Workers
from flows.config.data import DataConfig, source_of
from flows.progress.console import RunObserver
from flows.rows.base import TrainTestRows, check_both_classes
from flows.rows.lazy import LazyRows, sharded_rows
from flows.rows.lazy_split import split_and_encode


@dataclass(frozen=True, eq=False)
class ShardSource:
    """A sharded data set whose manifest has been read; see `flows.rows.base.RowSource`.

    Attributes
    ----------
    rows : TrainTestRows
        Not encoded, and with a test fraction still among the training rows.
    train : LazyRows
        Its training rows.
    config : DataConfig
    wanted_blocks : int or None
        Must be None: the shards are the blocks.
    encode : bool
    """

    rows: TrainTestRows
    train: LazyRows
    config: DataConfig
    wanted_blocks: int | None
    encode: bool
    needs_workers = True

    @property
    def n_blocks(self) -> int:
        """Number of shards.

        Raises
        ------
        InputError
            If another number of blocks was asked for.
        """
        n = self.train.n_blocks
        if self.wanted_blocks is not None:
            raise InputError(
                f"`blocks` is {self.wanted_blocks}, but {self.rows.name} is sharded: its {n} shards are the blocks"
            )
        return n

    def prepare(self, workers: Workers, observer: RunObserver, run_stage: StageRunner) -> TrainTestRows:
        """Return the training rows and test rows; see `flows.rows.base.RowSource`."""
        rows: TrainTestRows = run_stage(
            "split and scale", split_and_encode,
            self.rows, self.train, self.config, self.encode, workers.parallel_map(observer),
        )  # fmt: skip
        return rows


def open_shards(config: DataConfig, n_blocks: int | None = None, *, encode: bool = True) -> ShardSource:
    """Read the manifest of a sharded data set, and that of its test set if it has one of its own.

    Raises
    ------
    InputError
        If there are no such shards, or if they cannot be used as configured.
    """
    source = source_of(config)
    if config.positive is not None:
        raise InputError("the classes of shards were chosen when they were written: leave `positive` out")
    reader = open_reader(source, name=config.name or "")
    name = config.name or shown(str(source.source))
    check_both_classes(name, reader.n_pos, reader.n_samples - reader.n_pos)
    test = None
    if config.test is not None and config.test.fraction is None:
        test_source = source_of(config.test)
        if not test_source.format_of().is_sharded:
            raise InputError("the training data are shards, so a test set of its own has to be sharded too")
        test = sharded_rows(read_manifest(open_reader(test_source, schema=reader.schema).manifest))
    train = sharded_rows(read_manifest(reader.manifest))
    rows = TrainTestRows(name, source, reader.schema, reader.fingerprint, train, test)
    return ShardSource(rows, train, config, n_blocks, encode)
