"""The clock and the data of the suites."""

import time
from collections.abc import Callable, Iterator
from typing import Any

from aucdist.data.block import Block

Row = dict[str, Any]
Suite = Callable[..., Iterator[Row]]
"""Takes whether to run the peers that take minutes, and options by name; yields the rows of the table."""


def seconds_of(work: Callable[[], Any]) -> float:
    """Return the seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def fastest(work: Callable[[], Any], times: int = 5) -> float:
    """Return the seconds of the fastest of several calls, after one warm-up call."""
    work()
    return min(seconds_of(work) for _ in range(times))


def read_train_and_test(name: str) -> tuple[Block, Block]:
    """Return the training and test rows of a configuration in configs/train, split and scaled as it says."""
    from flows.rows.in_memory import read_rows
    from flows.train.config import load_train

    rows = read_rows(load_train(name, [], None).data).rows
    assert rows.test is not None
    return next(rows.train.blocks()), next(rows.test.blocks())
