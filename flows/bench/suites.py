"""A run of a suite.

A suite is a generator of rows that has its own name in a module, and a line in `SUITES`; a function `picture` beside it draws
the table, as the text of an SVG file. Modules are loaded when their suite is asked for: some import what is slow to load.
"""

import importlib
import inspect
import platform
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pandas as pd

from aucdist.errors import InputError, unknown
from flows.bench.common import Suite

Say = Callable[[str], None]

SUITES = {
    "pairwise": "pairwise",
    "engine": "engine",
    "workers": "engine",
    "cv": "cv",
    "coverage": "cv",
    "data": "data",
    "sampling": "sampling",
    "hinge": "hinge",
    "link": "link",
    "peers": "peers.suite",
    "limits": "limits",
    "scale": "scale",
}
"""The module of each suite, below `flows.bench`."""

CURVE = "curve"
"""A column of points for the picture, too long for a line."""


def _module(suite: str) -> ModuleType:
    if suite not in SUITES:
        raise unknown("suite", suite, SUITES)
    return importlib.import_module(f"flows.bench.{SUITES[suite]}")


def picture(suite: str, found: pd.DataFrame) -> str | None:
    """Return the suite's table as the text of an SVG file; None if it draws none."""
    draw: Callable[[pd.DataFrame], str] | None = getattr(_module(suite), "picture", None)
    return None if draw is None else draw(found)


def bench(suite: str, *, slow_peers: bool, say: Say, **options: Any) -> pd.DataFrame:
    """Run a suite with one BLAS thread, and return its table; in its `attrs` are the conditions, for a page.

    Parameters
    ----------
    suite : str
        A key of `SUITES`.
    slow_peers : bool
        Also run the peers that take minutes.
    say : callable
        Hears each row as it comes.
    **options
        What the suite takes besides; None is not given.

    Raises
    ------
    InputError
        For an unknown suite, an option that it does not take, or data that are not there.
    """
    from threadpoolctl import threadpool_limits

    run: Suite = getattr(_module(suite), suite)
    options = {name: value for name, value in options.items() if value is not None}
    for name in options.keys() - inspect.signature(run).parameters.keys():
        raise InputError(f"the suite {suite} does not take --{name}")
    conditions = f"{platform.machine()}, Python {platform.python_version()}, {_threads(options)}"
    say(f"{conditions}; warm-up before the clock starts")
    rows = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers that stop at max_iter are shown for what they reached
        for row in run(slow_peers, **options):
            shown = {k: v for k, v in row.items() if k != CURVE and v is not None and v != ""}
            say("  ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in shown.items()))
            rows.append(row)
    found = pd.DataFrame(rows)
    found.attrs["conditions"] = conditions
    return found


def _threads(options: dict[str, Any]) -> str:
    return "one thread" if options.get("threads", 1) == 1 else f"{options['threads']} threads for each system"
