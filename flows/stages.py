"""The stages of a training run, as plain functions: open data, place, fit, evaluate, publish."""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from aucdist.data.block import Block, place
from aucdist.data.catalog import find
from aucdist.data.dataset import Dataset, Schema
from aucdist.data.preprocess import Preprocessor, fit_preprocessor
from aucdist.data.readers import read
from aucdist.data.shards import read_shard, write_shards
from aucdist.data.source import Source
from aucdist.data.split import split
from aucdist.engine.blocks import Blocks, LocalBlocks
from aucdist.errors import InputError
from aucdist.estimators.scores import count_scores
from aucdist.metrics.auc import Interval, auc_interval
from aucdist.metrics.counts import ScoreCounts
from flows.config import DataConfig, ModelConfig
from flows.console import Watch

BYTES_PER_BLOCK = 64 * 2**20


@dataclass(frozen=True, eq=False)
class Opened:
    """Data, split and encoded, in the memory of this process."""

    name: str
    source: Source
    train: Block
    test: Block | None
    schema: Schema
    preprocessor: Preprocessor
    fingerprint: str


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


def open_data(config: DataConfig) -> Opened:
    """Read, split and encode the data. Nothing is learnt from the test rows."""
    source = _source(config.name, config.source)
    if config.positive is not None:
        source = source.model_copy(update={"positive": config.positive})
    data = read(source, name=config.name or "")
    train, test = _kept_apart(data, config)
    if min((train.y == 1).sum(), (train.y == -1).sum()) == 0:
        raise InputError(f"{data.name}: the training rows are all of one class; both are needed")
    schema = data.schema
    preprocessor = fit_preprocessor(
        [train], schema.feature_names, log1p=config.log1p, scale=config.scale, categories=schema.categories
    )
    test = None if test is None else preprocessor.transform(test)
    return Opened(data.name, source, preprocessor.transform(train), test, schema, preprocessor, data.fingerprint)


def _source(name: str | None, source: Source | None) -> Source:
    return find(name) if name is not None else source  # type: ignore[return-value]  # the configuration has one of them


def _kept_apart(data: Dataset, config: DataConfig) -> tuple[Block, Block | None]:
    """Return the training rows and the test rows."""
    if config.test is None:
        return data.block, None
    if config.test.fraction is not None:
        train, test = split(data.block, config.test.fraction, config.test.seed)
        return data.block.take(train), data.block.take(test)
    source = _source(config.test.name, config.test.source)
    return data.block, read(source, schema=data.schema, name=config.test.name or "").block


def default_blocks(n_bytes: int) -> int:
    """Return the number of blocks for values of so many bytes. It depends on the data alone, never on the workers."""
    return max(1, math.ceil(n_bytes / BYTES_PER_BLOCK))


def place_rows(opened: Opened, n_blocks: int | None, client: Any, scratch: str) -> Placed:
    """Deal the rows out to blocks: in this process, or on the workers of `client`, which read them from `scratch`."""

    def placed(block: Block, part: str) -> Blocks:
        blocks = place(block, n_blocks or default_blocks(block.rows.values.nbytes))
        if client is None:
            return LocalBlocks(blocks)
        from aucdist.engine.dask import DaskBlocks

        url = f"{scratch}/{part}"
        write_shards(blocks, opened.schema, url)
        return DaskBlocks.load(client, partial(read_shard, url), len(blocks))

    return Placed(placed(opened.train, "train"), None if opened.test is None else placed(opened.test, "test"))


def fit(model: ModelConfig, train: Blocks, watch: Watch) -> Any:
    """Fit the estimator; rounds and warnings go to `watch`."""
    estimator = model.built
    with noted(watch):
        estimator.fit(train, callback=lambda record: watch.round(record, estimator.tol))
    return estimator


def evaluate(estimator: Any, placed: Placed, watch: Watch) -> Scored:
    """Count the scores of the training rows and of the test rows; warnings go to `watch`."""
    w = estimator.coef_[0]  # without the intercept, which could round two scores into one
    train = count_scores(placed.train, w)
    if placed.test is None:
        return Scored(train, None, None)
    test = count_scores(placed.test, w)
    with noted(watch):
        return Scored(train, test, auc_interval(test))


@contextmanager
def noted(watch: Watch) -> Iterator[None]:
    """Hand warnings to `watch`, as text, in place of Python's own lines with paths in them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        watch.note(f"{warning.category.__name__}: {warning.message}")
