"""The clock and the data of the suites."""

import time
from collections.abc import Callable, Collection
from typing import Any

from aucdist.data.block import Block, each_of
from aucdist.data.preprocess import fit_preprocessor
from aucdist.data.shards.reading import read
from aucdist.data.sources import find_source
from aucdist.data.split import split
from aucdist.errors import unknown

Row = dict[str, Any]
TEST_SHARE, SEED = 0.3, 0
MAX_DENSE = 1000
"""Rows of svmlight files with at most so many features become dense, and are standardised; others have unit length."""


def seconds_of(work: Callable[[], Any]) -> float:
    """Return the seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def fastest(work: Callable[[], Any], times: int = 5) -> float:
    """Return the seconds of the fastest of several calls, after one warm-up call."""
    work()
    return min(seconds_of(work) for _ in range(times))


def split_and_scale(name: str, seed: int = SEED) -> tuple[Block, Block]:
    """Return the training and test rows of a set of the catalog: split by class, and scaled by the training rows."""
    data = read(find_source(name))
    block, scale = data.block, "standard"
    if hasattr(block.X, "toarray"):
        if block.n_features <= MAX_DENSE:
            block = Block.of(block.X.toarray(), block.y)
        else:
            scale = "unit-row"
    train, test = (block.take(which) for which in split(block, TEST_SHARE, seed))
    scaling = fit_preprocessor(
        each_of([train]), data.schema.feature_names, log1p=None, scale=scale, categories=data.schema.categories
    )
    return scaling.transform(train), scaling.transform(test)


def chosen_names(only: str | None, known: Collection[str], what: str = "data set") -> list[str]:
    """Return the names in a text with commas; all for None, an InputError for one that is not known."""
    names = list(known) if only is None else [name.strip() for name in only.split(",")]
    for name in names:
        if name not in known:
            raise unknown(what, name, known)
    return names


def read_train_and_test(name: str) -> tuple[Block, Block]:
    """Return the training and test rows of a configuration in configs/train, split and scaled as it says."""
    from flows.config.loading import load_config
    from flows.rows.source import read_rows
    from flows.train.config import TrainConfig

    rows = read_rows(load_config(TrainConfig, "train", name, (), None).data)
    assert rows.test is not None
    return rows.train.block, rows.test.block
