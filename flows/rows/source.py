"""Opens the rows of a data set: read into this process, shards, or files whose parts the workers read."""

from collections.abc import Callable
from dataclasses import dataclass

from aucdist.data.dataset import Schema
from aucdist.data.formats.parts import split_source
from aucdist.data.formats.readers import read
from aucdist.data.label_sets import LabelSets
from aucdist.data.shards.block_reader import ParallelMap, default_parts, open_parts, open_reader
from aucdist.data.shards.manifest import read_manifest
from aucdist.data.sources.catalog import refuse_absent
from aucdist.data.sources.source import Source
from aucdist.data.storage.files import shown
from aucdist.errors import InputError
from flows.compute.stages import StageRunner
from flows.compute.workers import Workers
from flows.config.data import DataConfig, source_of
from flows.progress.console import RunObserver
from flows.rows.rows import Rows
from flows.rows.train_test import ClassTables, TrainTestRows

MOST_BLOCKS = 2**16


@dataclass(frozen=True, eq=False)
class RowSource:
    """A data set that has been opened, as far as that takes no workers.

    `n_blocks`: number of blocks that the training rows are partitioned into.
    `needs_workers`: whether the rows are read by the workers, and not in this process.
    `rows`: where workers are needed neither split nor encoded; None for files that have not been read.
    `survey`: of such files: ``survey(workers, parallel_map) -> TrainTestRows``, which parses all of them once.
    """

    n_blocks: int
    needs_workers: bool
    config: DataConfig
    encode: bool
    rows: TrainTestRows | None = None
    survey: Callable[[Workers, ParallelMap], TrainTestRows] | None = None

    def prepare(self, workers: Workers, observer: RunObserver, run_stage: StageRunner) -> TrainTestRows:
        """Return the training rows and test rows.

        `workers`: read the rows, unless this process has them.
        `observer`: is called with the progress of the reading.
        `run_stage`: runs the stages that this takes.
        """
        rows, parallel_map = self.rows, workers.parallel_map(observer)
        if self.survey is not None:
            rows = run_stage("survey", self.survey, workers, parallel_map, retry=True)
        if self.needs_workers:
            rows = run_stage("split and scale", split_and_encode, rows, self.config, self.encode, parallel_map)
        assert rows is not None
        return rows


def open_source(config: DataConfig, n_blocks: int | None = None, encode: bool = True) -> RowSource:
    """Open a data set as far as that takes no workers: files are read into this process, unless the workers are to read them.

    `n_blocks`: blocks that its rows are partitioned into; by default one for each 64 MiB. Shards are the blocks that
        they are.
    `encode`: whether the features are encoded as configured, learning from all training rows. A search leaves that to
        its folds.
    Raises InputError if the data set cannot be opened as configured.
    """
    refuse_absent(ref.name for ref in (config, config.test) if ref is not None and ref.name is not None)
    if n_blocks is not None and n_blocks > MOST_BLOCKS:
        raise InputError(
            f"`blocks` is {n_blocks}; at most {MOST_BLOCKS} are possible, and some for each worker are enough"
        )
    if config.direct:
        return open_file_parts(config, n_blocks, encode=encode)
    sharded = source_of(config).format_of().is_sharded
    rows = open_shards(config, n_blocks) if sharded else read_rows(config, n_blocks, encode=encode)
    return RowSource(rows.train.n_blocks, sharded, config, encode, rows)


def split_and_encode(rows: TrainTestRows, config: DataConfig, encode: bool, parallel_map: ParallelMap) -> TrainTestRows:
    """Split off the test fraction, if there is one, and encode the features; False leaves them as they were read."""
    rows = rows.split(config, parallel_map)
    return rows.encode(config, parallel_map) if encode else rows


def read_rows(config: DataConfig, n_blocks: int | None = None, *, encode: bool = True) -> TrainTestRows:
    """Read a data set into this process, split it, and encode its features, learning from the training rows alone.

    Raises InputError if the data set cannot be read, split or encoded as configured.
    """
    source = _with_positive(config)
    data = read(source, name=config.name or "")
    test, test_schema = None, data.schema
    if config.test is not None and config.test.fraction is None:
        own = read(source_of(config.test), schema=data.schema, name=config.test.name or "")
        test, test_schema = Rows.of_block(own.block, n_blocks), own.schema
    train = Rows.of_block(data.block, n_blocks)
    tables = _tables(data.schema, test_schema)
    rows = TrainTestRows(data.name, source, data.schema, data.fingerprint, train, test, tables=tables)
    rows.check_classes()
    rows = rows.split(config, map)
    if n_blocks is not None and n_blocks > rows.train.n_samples:
        raise InputError(
            f"`blocks` is {n_blocks}, but {data.name} has {rows.train.n_samples} training rows: take at most as many"
        )
    return rows.encode(config, map) if encode else rows


def open_shards(config: DataConfig, n_blocks: int | None = None) -> TrainTestRows:
    """Read the manifest of a sharded data set, and that of its test set if it has one of its own.

    Raises InputError if there are no such shards, or if they cannot be used as configured.
    """
    source = source_of(config)
    if config.positive is not None:
        raise InputError("the classes of shards were chosen when they were written: leave `positive` out")
    reader = open_reader(source, name=config.name or "")
    name = config.name or shown(str(source.source))
    if n_blocks is not None:
        raise InputError(f"`blocks` is {n_blocks}, but {name} is sharded: its {reader.n_blocks} shards are the blocks")
    test, test_schema = None, reader.schema
    if config.test is not None and config.test.fraction is None:
        test_source = source_of(config.test)
        if not test_source.format_of().is_sharded:
            raise InputError("the training data are shards, so a test set of its own has to be sharded too")
        of_test = open_reader(test_source, schema=reader.schema)
        test, test_schema = Rows.of_shards(read_manifest(of_test.manifest)), of_test.schema
    train = Rows.of_shards(read_manifest(reader.manifest))
    tables = _tables(reader.schema, test_schema)
    rows = TrainTestRows(name, source, reader.schema, reader.fingerprint, train, test, tables=tables)
    rows.check_classes()
    return rows


def open_file_parts(config: DataConfig, n_blocks: int | None = None, *, encode: bool = True) -> RowSource:
    """Divide the files of the training data into about `n_blocks` parts, by default one for each 64 MiB.

    Raises InputError if there is nothing to read, or if the files cannot be reached.
    """
    source = _with_positive(config)
    if source.format_of().is_sharded:
        raise InputError("shards are always read directly: leave `direct` out")
    n_parts = len(split_source(source, n_blocks or default_parts(source)))

    def survey(workers: Workers, parallel_map: ParallelMap) -> TrainTestRows:
        """Parse every part once, where it will be used, to number the rows and to find classes, features and categories."""
        own = None if config.test is None or config.test.fraction is not None else config.test
        reader, items = open_parts(
            source, each=parallel_map, hold=workers.hold, n_parts=n_parts, name=config.name or ""
        )
        train, test, test_schema = Rows.of_parts(reader, items, workers.scratch), None, reader.schema
        if own is not None:
            of_test, items = open_parts(
                source_of(own), each=parallel_map, hold=workers.hold, schema=reader.schema, name=own.name or ""
            )
            test, test_schema = Rows.of_parts(of_test, items, workers.scratch), of_test.schema
        name, tables = config.name or shown(str(source.source)), _tables(reader.schema, test_schema)
        return TrainTestRows(name, source, reader.schema, reader.fingerprint, train, test, tables=tables)

    return RowSource(n_parts, True, config, encode, survey=survey)


def _tables(train: Schema, test: Schema) -> ClassTables | None:
    """Return the tables of sets of classes, where each class is fitted against the rest."""
    return ClassTables(LabelSets.of_schema(train), LabelSets.of_schema(test)) if train.classes else None


def _with_positive(config: DataConfig) -> Source:
    """Return the source of the training data, with the positive class that the configuration names."""
    source = source_of(config)
    return source if config.positive is None else source.model_copy(update={"positive": config.positive})
