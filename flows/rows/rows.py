"""Training and test rows, which are split and encoded alike whether this process has them or workers read them in blocks."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from aucdist.data.block import Block, EachBlock, concatenate_columns, into_blocks
from aucdist.data.dataset import Schema, date_features
from aucdist.data.label_sets import LabelSets
from aucdist.data.labels import listed
from aucdist.data.preprocess import AS_READ, WITHOUT_FILL, Preprocessor, fit_preprocessor
from aucdist.data.shards.manifest import read_shard, write_shards
from aucdist.data.shards.reading import BlockReader, ParallelMap, open_rows
from aucdist.data.sources import Source, parse_source
from aucdist.data.split import Split, TimeSplit, find_split, find_time_split
from aucdist.engine.blocks import Blocks, Loader, LocalBlocks, load
from aucdist.engine.view import AnyBlocks, ClassBlocks
from aucdist.errors import InputError, Json, unknown
from aucdist.parameters import frozen
from flows.compute.clusters import Workers, choose_cache, threads_that_fit, worker_memory
from flows.config.data import CacheMode, DataConfig, TestConfig, not_in_order
from flows.progress import RunObserver

GROWING_PARTS = ("days", "year")
"""Parts of dates that only increase, so that new rows have values that no training row has."""
BYTES_PER_BLOCK = 64 * 2**20
CALIBRATION_SEED = 1
"""A seed that differs from the seed of the test rows, so that both choices are independent."""


@dataclass(frozen=True)
class FeatureEncoding:
    """The configured encoding of features, before it is fitted to training rows."""

    config: DataConfig
    schema: Schema

    def fit(self, each: EachBlock) -> Preprocessor:
        """Return the encoding that is learnt from the blocks of training rows.

        See `aucdist.data.preprocess.fit_preprocessor`.
        """
        return fit_preprocessor(
            each, self.schema.feature_names, log1p=self.config.log1p, scale=self.config.scale,
            categories=self.schema.categories, impute=self.config.impute,
        )  # fmt: skip

    @property
    def learns(self) -> bool:
        """Whether the encoding of a row depends on other rows."""
        return self.config.scale not in ("none", "unit-row") or self.config.impute not in WITHOUT_FILL


@frozen
class LazyRows:
    """Training or test rows: a function that reads each block, and facts about all rows that are known without reading them.

    Parameters
    ----------
    loader : Loader
        ``loader(item) -> Block``. It is sent to the workers.
    items : sequence
        The argument of the loader for each block: its number, a reference to what was kept when it was parsed, or the block
        itself.
    n_samples, n_features, n_pos : int
        The number of rows, features and positive rows. Positive rows are only counted for two classes.
    n_bytes, largest_block : int
        The bytes that all blocks take in memory, and the bytes of the largest block.
    n_blocks : int
        The number of blocks that the rows are partitioned into. It depends on the data and the configuration, and never on the
        workers.
    requested_blocks : int or None
        For rows in this process, the number of blocks that was asked for. By default, there is one for each 64 MiB of values.
    """

    loader: Loader
    items: Sequence[Any]
    n_samples: int
    n_features: int
    n_pos: int
    n_bytes: int
    largest_block: int
    n_blocks: int
    requested_blocks: int | None = None

    @classmethod
    def of_block(cls, block: Block, requested_blocks: int | None = None) -> "LazyRows":
        """Return rows that are in the memory of this process, given as a block."""
        n_bytes = sum(np.asarray(part).nbytes for part in block.rows)
        n_blocks = requested_blocks or max(1, math.ceil(block.rows.values.nbytes / BYTES_PER_BLOCK))
        return cls(
            _itself, [block], block.n_samples, block.n_features, block.n_pos, n_bytes, math.ceil(n_bytes / n_blocks),
            n_blocks, requested_blocks,
        )  # fmt: skip

    @classmethod
    def of_reader(cls, reader: BlockReader, scratch: str = "") -> "LazyRows":
        """Return the rows of a reader of shards or of parts of files.

        Parameters
        ----------
        reader : BlockReader
            The rows.
        scratch : str, default=""
            A folder that every worker can read. It is empty if this process reads the parts of files.
        """
        loader: Loader = reader.without_copies().read
        if reader.manifest:
            loader = partial(read_shard, reader.manifest)
        elif scratch:
            loader = reader.saved(scratch)
        return cls(
            loader, reader.items, reader.n_samples, reader.block_schema.n_features, reader.n_pos, reader.memory,
            reader.largest_block, reader.n_blocks,
        )  # fmt: skip

    @property
    def in_this_process(self) -> bool:
        """Whether this process has the rows."""
        return self.loader is _itself

    @property
    def block(self) -> Block:
        """All rows in their order, if they are in the memory of this process."""
        assert self.in_this_process
        (block,) = self.items
        return block

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks. This process reads them."""
        for item in self.items:
            yield load(self.loader, item)

    def gather_columns(self, parallel_map: ParallelMap, *names: str) -> tuple[Any, ...]:
        """Return the named attributes of all rows, block by block. The rows are read once.

        Examples are ``row_id`` (int64), ``group`` (int64) and ``label``, which is int8, or for several classes the number of
        the row's set of classes (int32). An attribute that the rows do not have is None.
        """
        return concatenate_columns(self.each(parallel_map)(lambda block: tuple(getattr(block, name) for name in names)))

    def split(
        self, test: TestConfig, schema: Schema, n_classes: int | None, parallel_map: ParallelMap
    ) -> tuple["LazyRows", "LazyRows", Split | TimeSplit]:
        """Return training rows, test rows, and a description of the split, see `aucdist.data.split`.

        Raises
        ------
        InputError
            If there is no such column of times, or if the training rows or the test rows would lack a class.
        """
        split: Split | TimeSplit
        each = self.each(parallel_map)
        if test.time is not None:
            split = find_time_split(each, _time_feature(test.time, schema), test.last, test.gap)
        else:
            assert test.fraction is not None
            names = f"negative ({listed(schema.negative)})", f"positive ({listed(schema.positive)})"
            split = find_split(each, test.fraction, test.seed, n_classes=n_classes, names=names)

        def side(is_on_side: Callable[[Block], np.ndarray], counts: tuple[int, ...]) -> LazyRows:
            n = sum(counts)
            return self._changed(
                lambda block: block.take(is_on_side(block), index=block.index),
                n_samples=n,
                n_pos=counts[-1] if n_classes is None else 0,
                n_bytes=int(n / self.n_samples * self.n_bytes),
            )

        return side(split.is_train, split.n_train), side(split.is_test, split.n_test), split

    def with_features(self, kept: Sequence[int]) -> "LazyRows":
        """Return the same rows with some of their features, given by their positions."""
        n_bytes, largest = (int(len(kept) / self.n_features * size) for size in (self.n_bytes, self.largest_block))
        return self._changed(
            lambda block: block.with_X(block.X[:, list(kept)]),
            n_features=len(kept),
            n_bytes=n_bytes,
            largest_block=largest,
        )

    def without_groups(self) -> "LazyRows":
        """Return the same rows without groups that only the split needed."""
        return self._changed(partial(replace, group=None))

    def transform(self, preprocessor: Preprocessor) -> "LazyRows":
        """Return the same rows with encoded features.

        Rows that this process has are encoded at once. Other rows are encoded each time they are read.
        """
        return self._changed(preprocessor.transform)

    def without_copies(self) -> "LazyRows":
        """Return the same rows without copies of parsed parts. If the rows are needed again, the files are read again."""
        return self if self.in_this_process else replace(self, items=range(self.n_blocks))

    def for_workers(self, schema: Schema, workers: Workers, folder: str) -> "LazyRows":
        """Return the same rows in blocks that all workers can read.

        If necessary, the blocks are written to `folder` in the scratch space of the workers.
        """
        if not self.in_this_process:
            return self
        blocks = into_blocks(self.block, self.n_blocks)
        if workers.client is None:
            return replace(self, items=blocks)
        url = f"{workers.scratch}/{folder}"
        write_shards(blocks, schema, url)
        return LazyRows.of_reader(open_rows(parse_source({"source": url, "format": "shards"}, url)))

    def partition(self, part: str, schema: Schema, cache: CacheMode, workers: Workers, observer: RunObserver) -> Blocks:
        """Return the rows as blocks of the engine on the workers.

        `part` ("training" or "test") is the name of the rows in remarks.

        Raises
        ------
        InputError
            If the rows are to be streamed, but are in the memory of this process and there are no workers.
        """
        rows = self.for_workers(schema, workers, part)
        if rows.in_this_process:
            if cache == "stream":
                raise InputError(
                    "cache: stream is for shards or for workers, but the rows are in this process already: leave `cache` out"
                )
            return rows.load(workers)
        stream, reason = choose_cache(cache, rows.n_bytes, rows.largest_block, worker_memory(workers.client))
        observer.note(f"the {part} rows {reason}")
        blocks = rows.load(workers, stream=stream)
        read_anew = sum(not (info.lasting or info.copied) for info in blocks.infos)
        if read_anew:
            observer.note(
                f"{read_anew} of {blocks.n_blocks} blocks of the {part} rows have no copy on the local disk and are decoded "
                "again in each pass. Copies may fill four fifths of the disk; set AUCDIST_SCRATCH_BYTES to allow more"
            )
        return blocks

    def load(self, workers: Workers, *, stream: bool = False) -> Blocks:
        """Load the blocks on the workers. With `stream`, they are read again for each step instead."""
        n_blocks = len(self.items)
        if workers.client is None:
            n_jobs = threads_that_fit(workers.n_jobs, self.largest_block) if stream else workers.n_jobs
            return LocalBlocks.load(self.loader, n_blocks, stream=stream, n_jobs=n_jobs, items=self.items)
        from aucdist.engine.dask import DaskBlocks

        return DaskBlocks.load(workers.client, self.loader, n_blocks, stream=stream, items=self.items)

    def _changed(self, change: Callable[[Block], Block], **sizes: Any) -> "LazyRows":
        """Apply a function to each block: at once if this process has the rows, and otherwise each time they are read.

        Parameters
        ----------
        change : callable
            The function, which takes and returns a block.
        **sizes : object
            The attributes of `LazyRows` that change for rows that are not read yet.
        """
        if not self.in_this_process:
            return replace(self, loader=partial(load_and_apply, self.loader, change), **sizes)
        return LazyRows.of_block(change(self.block), self.requested_blocks)

    def each(self, parallel_map: ParallelMap) -> EachBlock:
        """Return a function that applies another function to each block, in the process that has the rows."""
        run = map if self.in_this_process else parallel_map
        return lambda function: run(partial(load_and_apply, self.loader, function), self.items)


def load_and_apply(loader: Loader, function: Callable[[Block], Any], item: Any) -> Any:
    """Read a block, and return the result of a function that is applied to it."""
    return function(loader(item))


def _time_feature(time: str, schema: Schema) -> int:
    """Return the position of the time of a split among the features.

    The time is a column of numbers, or the days of a column of dates.
    """
    for name in (time, f"{time}.days"):
        if name in schema.feature_names:
            return schema.feature_names.index(name)
    if time in schema.dates:
        raise InputError(f"to split by the dates of {time!r}, list `days` among its parts under `dates`")
    parts = {feature for name, date_parts in schema.dates.items() for feature in date_features(name, date_parts)}
    columns = [name for name in schema.columns() if name not in {*schema.categories, *schema.hashed, *parts}]
    if time in schema.columns():
        raise not_in_order(time)
    raise unknown("column in `test.time`:", time, [*schema.dates, *columns])


def _itself(block: Block) -> Block:
    return block


def with_classes(blocks: Blocks, sets: LabelSets | None) -> AnyBlocks:
    """Return rows with their classes if there are several."""
    return blocks if sets is None else ClassBlocks(blocks, sets)


class TrainTestBlocks(NamedTuple):
    """Training rows and test rows as blocks of the engine, of two classes or of several."""

    train: AnyBlocks
    test: AnyBlocks | None
    calibration: AnyBlocks | None = None


@frozen
class TrainTestRows:
    """Training and test rows of a data set, with the same encoding.

    Parameters
    ----------
    name : str
        The name of the data set.
    source : Source
        The source of the rows.
    schema : Schema
        The names of features and classes.
    fingerprint : str
        A text that differs between versions of the data.
    train : LazyRows
        The training rows.
    test : LazyRows or None
        The test rows, if there are any.
    test_source : Source or None
        The source of the test rows, if they are a separate data set.
    preprocessor : Preprocessor
        The encoding that `train` and `test` have.
    sets, test_sets : LabelSets or None
        For several classes, the sets of classes that training rows and test rows have. Test rows may have more sets.
    grouped : LazyRows or None
        The training rows with one feature and with their groups, if groups only matter for the split and the folds.
    calibration : LazyRows or None
        The threshold rows, which are not used for the fit but set the threshold.
    per_day : mapping of str to float
        The number of ``test`` rows and of ``training`` rows per day, if rows are split by a column of dates.
    note : str
        A remark about the split for users, empty if there is none.
    """

    name: str
    source: Source
    schema: Schema
    fingerprint: str
    train: LazyRows
    test: LazyRows | None
    test_source: Source | None = None
    preprocessor: Preprocessor = AS_READ
    sets: LabelSets | None = None
    test_sets: LabelSets | None = None
    grouped: LazyRows | None = None
    calibration: LazyRows | None = None
    per_day: Mapping[str, float] = field(default_factory=dict)
    note: str = ""

    @property
    def identity(self) -> Json:
        """The values that identify the data: their name, their fingerprint, and the version of the table that was read."""
        version = self.source.version
        return {"name": self.name, "fingerprint": self.fingerprint} | ({} if version is None else {"version": version})

    def split(self, config: DataConfig, parallel_map: ParallelMap) -> "TrainTestRows":
        """Split off the test rows and the threshold rows, and remove the column of times that the rows were split by."""
        n_classes, rows, test = None, self, config.test
        if self.sets is not None:
            n_classes = self.sets.n_classes if self.sets.exclusive else 1
        if test is not None and not test.is_separate_data_set:
            train, held_out, facts = self.train.split(test, self.schema, n_classes, parallel_map)
            rows = replace(rows, train=train, test=held_out)
            if isinstance(facts, TimeSplit):
                dated = str(test.time).removesuffix(".days") in self.schema.dates
                rows = replace(rows, note=facts.note, per_day=facts.per_day if dated else {})
        if config.threshold_rows is not None:
            split = TestConfig(fraction=config.threshold_rows, seed=CALIBRATION_SEED)
            if test is not None and test.time is not None:
                split = TestConfig(time=test.time, last=config.threshold_rows, gap=test.gap)
            train, calibration, _ = rows.train.split(split, self.schema, n_classes, parallel_map)
            rows = replace(rows, train=train, calibration=calibration)
        if test is None or test.time is None or test.keep:
            return rows
        time, schema = test.time, self.schema
        growing = {time, *date_features(time.removesuffix(".days"), GROWING_PARTS)} & set(schema.feature_names)
        kept = [j for j, name in enumerate(schema.feature_names) if name not in growing]
        if not kept:
            raise InputError(
                f"{time!r} splits the rows and is the only column, so nothing would be left to learn from: keep other "
                "columns"
            )
        return replace(rows._with(lambda side: side.with_features(kept)), schema=schema.without(growing))

    def without_groups(self, config: DataConfig) -> "TrainTestRows":
        """Return the rows without groups that only the split needed, so that pairs are not restricted to groups."""
        if config.test is None or config.test.groups is None:
            return self
        return replace(self._with(LazyRows.without_groups), grouped=self.train.with_features([0]))

    def groups_of_split(self, parallel_map: ParallelMap) -> np.ndarray | None:
        """Return the group of each training row (int64), indexed by row id, if the split kept groups whole.

        Otherwise, return None.
        """
        if self.grouped is None:
            return None
        row_id, groups = self.grouped.gather_columns(parallel_map, "row_id", "group")
        by_id = np.full(int(row_id.max()) + 1, -1, dtype=np.int64)
        by_id[row_id] = groups
        return by_id

    def encode(self, config: DataConfig, parallel_map: ParallelMap) -> "TrainTestRows":
        """Return the rows with encoded features. The encoding is learnt from the training rows only."""
        preprocessor = FeatureEncoding(config, self.schema).fit(self.train.each(parallel_map))
        return replace(self._with(lambda rows: rows.transform(preprocessor)), preprocessor=preprocessor)

    def _with(self, change: Callable[[LazyRows], LazyRows]) -> "TrainTestRows":
        """Apply a function to the training rows, the test rows and the threshold rows."""
        test, calibration = (rows and change(rows) for rows in (self.test, self.calibration))
        return replace(self, train=change(self.train), test=test, calibration=calibration)

    def partition(self, cache: CacheMode, workers: Workers, observer: RunObserver) -> TrainTestBlocks:
        """Partition the rows into blocks, which are in the workers' memory or streamed, depending on `cache`."""
        if self.note:
            observer.note(self.note)

        def blocks_of(part: str, rows: LazyRows, sets: LabelSets | None) -> AnyBlocks:
            return with_classes(rows.partition(part, self.schema, cache, workers, observer), sets)

        train = blocks_of("training", self.train, self.sets)
        train.all_blocks().feature_names = self.schema.feature_names
        test = None if self.test is None else blocks_of("test", self.test, self.test_sets)
        calibration = None if self.calibration is None else blocks_of("calibration", self.calibration, self.sets)
        return TrainTestBlocks(train, test, calibration)

    def without_copies(self) -> "TrainTestRows":
        """Return the rows without copies of parsed parts, which are not needed after blocks have been made."""
        return replace(self._with(LazyRows.without_copies), grouped=self.grouped and self.grouped.without_copies())

    def size(self) -> dict[str, int]:
        """Return the number of training rows and of features, and the bytes that they take in memory."""
        return {"rows": self.train.n_samples, "features": self.train.n_features, "bytes": self.train.n_bytes}
