"""One span for all that we send to a cluster, so that a cluster that serves run after run does not grow.

Dask opens a span for every graph that comes to an idle cluster and keeps all spans while the scheduler lives, each with the
groups of its tasks; and every worker keeps figures for each (dask/distributed, issue 7977). Elsewhere graphs are few. Here every
round is one, and a standing cluster grew by about half a MiB a run for it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask

NAME = "aucdist"


@contextmanager
def in_one_span() -> Iterator[None]:
    """Put all tasks that are sent within the context in one span, the same for all clients. Nothing else is to happen within."""
    # As `distributed.span` does; but that would open a new one each time.
    with dask.annotate(span={"name": (NAME,), "ids": (NAME,)}):
        yield


def let_go(client: Any) -> None:
    """Let go the groups of tasks that have ended.

    Parameters
    ----------
    client : distributed.Client
    """
    client.run_on_scheduler(_let_go)


def _let_go(dask_scheduler: Any) -> None:
    """Take out of our span the groups whose tasks the scheduler itself has forgotten."""
    extension = dask_scheduler.extensions.get("spans")
    span = extension and extension.spans.get(NAME)
    if span:
        there = dask_scheduler.task_groups
        span.groups = {group for group in span.groups if there.get(group.name) is group}
