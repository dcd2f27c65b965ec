"""The stages of a training run, as plain functions: open data, place, fit, evaluate, publish."""

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from aucdist.data.block import Block, partition
from aucdist.data.dataset import Dataset, Schema
from aucdist.data.formats.readers import read
from aucdist.data.preprocess import Preprocessor, fit_preprocessor
from aucdist.data.shards.block_reader import ParallelMap, open_reader
from aucdist.data.shards.manifest import read_manifest
from aucdist.data.shards.shard import write_shards
from aucdist.data.sources.catalog import find
from aucdist.data.sources.source import Source
from aucdist.data.split import split
from aucdist.data.storage.files import shown
from aucdist.engine.blocks import Blocks, LocalBlocks
from aucdist.errors import InputError
from aucdist.estimators.scores import count_scores
from aucdist.metrics.auc import Interval, auc_interval
from aucdist.metrics.counts import ScoreCounts
from flows.compute.cache import Cache, rooms_of, streams
from flows.compute.lazy_rows import Remote, prepared, remote, split_remote
from flows.config.data import DataConfig
from flows.progress.console import RunObserver
from flows.train.checkpoints import CheckpointStore
from flows.train.config import ModelConfig

BYTES_PER_BLOCK = 64 * 2**20


RowsT = TypeVar("RowsT", Block, Remote)


@dataclass(frozen=True, eq=False)
class Opened(Generic[RowsT]):
    """Data, split and encoded: in the memory of this process, or to be read block by block."""

    name: str
    source: Source
    train: RowsT
    test: RowsT | None
    schema: Schema
    preprocessor: Preprocessor
    fingerprint: str

    @property
    def n_pos(self) -> int:
        """Number of positive training rows."""
        return self.train.n_pos if isinstance(self.train, Remote) else int((self.train.y == 1).sum())

    def n_blocks(self, wanted: int | None) -> int:
        """Return the number of blocks of the training rows, given what was asked for."""
        if not isinstance(self.train, Remote):
            return wanted or default_blocks(self.train.rows.values.nbytes)
        if wanted is not None:
            raise InputError(
                f"`blocks` is {wanted}, but {self.name} is sharded: its {self.train.n_blocks} shards are the blocks"
            )
        return self.train.n_blocks


@dataclass(frozen=True, eq=False)
class Placed:
    """The same rows as blocks, wherever these are."""

    train: Blocks
    test: Blocks | None


@dataclass(frozen=True, eq=False)
class Scored:
    """How the scores of the rows fall, and the interval of the test AUC."""

    train: ScoreCounts
    test: ScoreCounts | None
    interval: Interval | None


def open_data(config: DataConfig) -> Opened[Block]:
    """Read, split and encode the data. Nothing is learnt from the test rows."""
    return encoded(read_data(config), config)


def read_data(config: DataConfig) -> Opened[Block]:
    """Read and split the data; nothing is done to the features yet."""
    source = source_named(config.name, config.source)
    if source.format_of().is_sharded:
        raise InputError("shards are read block by block, which only `aucdist train` does")
    if config.positive is not None:
        source = source.model_copy(update={"positive": config.positive})
    data = read(source, name=config.name or "")
    train, test = _kept_apart(data, config)
    if min((train.y == 1).sum(), (train.y == -1).sum()) == 0:
        raise InputError(f"{data.name}: the training rows are all of one class; both are needed")
    nothing = Preprocessor((), "none", None, None)
    return Opened(data.name, source, train, test, data.schema, nothing, data.fingerprint)


def encoded(opened: Opened[Block], config: DataConfig) -> Opened[Block]:
    """Do to the features what the configuration says; it is learnt from the training rows."""
    preprocessor = fitted([opened.train], opened.schema, config)
    test = None if opened.test is None else preprocessor.transform(opened.test)
    return replace(opened, train=preprocessor.transform(opened.train), test=test, preprocessor=preprocessor)


def is_sharded(config: DataConfig) -> bool:
    """Tell whether the training data are shards, which are opened by `open_shards`."""
    return source_named(config.name, config.source).format_of().is_sharded and not config.direct


def open_shards(config: DataConfig) -> Opened[Remote]:
    """Look into the manifests; a share kept for the test is still among the training rows: see `split_and_scale`."""
    source = source_named(config.name, config.source)
    if config.positive is not None:
        raise InputError("the classes of shards were settled when they were written: leave `positive` out")
    opening = open_reader(source, name=config.name or "")
    name = config.name or shown(str(source.source))
    if 0 in (opening.n_pos, opening.n_samples - opening.n_pos):
        raise InputError(f"{name}: the training rows are all of one class; both are needed")
    test = None
    if config.test is not None and config.test.fraction is None:
        apart = source_named(config.test.name, config.test.source)
        if not apart.format_of().is_sharded:
            raise InputError("the training data are shards, so a test set of its own has to be sharded too")
        test = remote(read_manifest(open_reader(apart, schema=opening.schema).manifest))
    preprocessor = Preprocessor((), "none", None, None)
    return Opened(
        name, source, remote(read_manifest(opening.manifest)), test, opening.schema, preprocessor, opening.fingerprint
    )


def split_and_scale(opened: Opened[Remote], config: DataConfig, each: ParallelMap) -> Opened[Remote]:
    """Split off the share for the test, and learn the scaling of the training rows, by reading them where they lie."""
    train, test = opened.train, opened.test
    if config.test is not None and config.test.fraction is not None:
        train, test = split_remote(train, config.test.fraction, config.test.seed, each)
    preprocessor = fitted(range(train.n_blocks), opened.schema, config, load=train.loader, each=each)
    test = None if test is None else prepared(test, preprocessor)
    return replace(opened, train=prepared(train, preprocessor), test=test, preprocessor=preprocessor)


def fitted(rows: Sequence[Any], schema: Schema, config: DataConfig, **how: Any) -> Preprocessor:
    """Learn from training rows what the configuration says is done to the features."""
    return fit_preprocessor(
        rows, schema.feature_names, log1p=config.log1p, scale=config.scale, categories=schema.categories,
        impute=config.impute, **how,
    )  # fmt: skip


def source_named(name: str | None, source: Source | None) -> Source:
    """Return the one of both that a configuration has: a data set of the catalog, or a source written out."""
    return find(name) if name is not None else source  # type: ignore[return-value]  # the configuration has one of them


def _kept_apart(data: Dataset, config: DataConfig) -> tuple[Block, Block | None]:
    """Return the training rows and the test rows."""
    if config.test is None:
        return data.block, None
    if config.test.fraction is not None:
        train, test = split(data.block, config.test.fraction, config.test.seed)
        return data.block.take(train), data.block.take(test)
    source = source_named(config.test.name, config.test.source)
    return data.block, read(source, schema=data.schema, name=config.test.name or "").block


def default_blocks(n_bytes: int) -> int:
    """Return the number of blocks for values of so many bytes. It depends on the data alone, never on the workers."""
    return max(1, math.ceil(n_bytes / BYTES_PER_BLOCK))


def place_shards(opened: Opened[Remote], cache: Cache, client: Any, observer: RunObserver) -> Placed:
    """Read the blocks on the workers of `client`, or (None) in this process, and keep them if there is room."""

    def placed(rows: Remote, part: str) -> Blocks:
        stream, why = streams(cache, rows.memory, rows.largest, rooms_of(client))
        observer.note(f"the {part} rows {why}")
        return _blocks(rows, stream, client)

    train = placed(opened.train, "training")
    return Placed(train, None if opened.test is None else placed(opened.test, "test"))


def place_rows(
    opened: Opened[Block], n_blocks: int | None, client: Any, scratch: str, cache: Cache, observer: RunObserver
) -> Placed:
    """Deal the rows out to blocks: in this process, or on the workers of `client`, which read them from `scratch`."""
    if client is None and cache == "stream":
        raise InputError("cache: stream is for shards or for workers; here the rows are in this process already")

    def placed(block: Block, part: str) -> Blocks:
        blocks = partition(block, n_blocks or default_blocks(block.rows.values.nbytes))
        if client is None:
            return LocalBlocks(blocks)
        write_shards(blocks, opened.schema, f"{scratch}/{part}")
        rows = remote(read_manifest(f"{scratch}/{part}"))
        stream, why = streams(cache, rows.memory, rows.largest, rooms_of(client))
        if stream:
            observer.note(f"the {part} rows {why}")
        return _blocks(rows, stream, client)

    train = placed(opened.train, "training")
    return Placed(train, None if opened.test is None else placed(opened.test, "test"))


def _blocks(rows: Remote, stream: bool, client: Any) -> Blocks:
    if client is None:
        return LocalBlocks.load(rows.loader, rows.n_blocks, stream=stream)
    from aucdist.engine.dask import DaskBlocks

    return DaskBlocks.load(client, rows.loader, rows.n_blocks, stream=stream)


def fit(model: ModelConfig, train: Blocks, observer: RunObserver, kept: CheckpointStore | None = None) -> Any:
    """Fit the estimator; rounds and warnings go to `observer`, and each round to what keeps the fit."""
    estimator = model.built

    def round_done(record: dict[str, float]) -> None:
        observer.round(record, estimator.tol)
        if kept is not None:
            kept.round_done()

    with noted(observer), nullcontext() if kept is None else kept.until_the_round_ends():
        estimator.fit(train if kept is None else kept.blocks, callback=round_done)
    return estimator


def evaluate(estimator: Any, placed: Placed, observer: RunObserver) -> Scored:
    """Count the scores of the training rows and of the test rows; warnings go to `observer`."""
    w = estimator.coef_[0]  # without the intercept, which could round two scores into one
    train = count_scores(placed.train, w)
    if placed.test is None:
        return Scored(train, None, None)
    test = count_scores(placed.test, w)
    with noted(observer):
        return Scored(train, test, auc_interval(test))


@contextmanager
def noted(observer: RunObserver) -> Iterator[None]:
    """Hand warnings to `observer`, as text, in place of Python's own lines with paths in them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        observer.note(f"{warning.category.__name__}: {warning.message}")
