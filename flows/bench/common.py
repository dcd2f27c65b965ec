"""What the suites share: the clock and the data."""

import time
from collections.abc import Callable, Iterator
from typing import Any

from aucdist.data.block import Block

Row = dict[str, Any]
Suite = Callable[..., Iterator[Row]]
"""Takes whether to run what takes minutes, too, and by name what else it knows."""


def seconds_of(work: Callable[[], Any]) -> float:
    """Return how long a piece of work takes, once."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def fastest(work: Callable[[], Any], times: int = 5) -> float:
    """Return the shortest of several times, after one that does not count."""
    work()
    return min(seconds_of(work) for _ in range(times))


def real(name: str) -> tuple[Block, Block]:
    """Return training and test rows as the configuration of this name in configs/train parts and scales them."""
    from flows.rows.in_memory import read_rows
    from flows.train.config import load_train

    rows = read_rows(load_train(name, [], None).data).rows
    assert rows.test is not None
    return next(rows.train.blocks()), next(rows.test.blocks())
