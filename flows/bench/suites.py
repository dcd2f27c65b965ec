"""The suites, and how one is run.

How to add a suite: write a generator of rows with the name of the suite, in one module, and add a row to `SUITES`. The module may
also have a function ``figure(results)``, which returns the text of an SVG file, and a string ``CONDITIONS``, which is stated with
the results. A module is imported when its suite is run, because some import packages that are slow to load or optional.
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
from aucdist.extras import load_optional
from flows.bench.common import Suite

Log = Callable[[str], None]

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
    "top": "peers.top",
    "passes": "peers.passes",
    "limits": "limits",
    "scale": "scale",
    "trees": "trees",
}
"""The module of each suite, below `flows.bench`."""

PACKAGES = {"link": ("statsmodels",)}
"""The optional packages without which a suite cannot run; `peers` has a row for each system that is not installed."""

CURVE = "curve"
"""A column of points for the figure, which lines of text leave out."""


def _module(suite: str) -> ModuleType:
    if suite not in SUITES:
        raise unknown("suite", suite, SUITES)
    return importlib.import_module(f"flows.bench.{SUITES[suite]}")


def has_figure(suite: str) -> bool:
    """Return whether a suite has a figure."""
    return hasattr(_module(suite), "figure")


def figure(suite: str, results: pd.DataFrame) -> str | None:
    """Return the figure of a suite as the text of an SVG file; None if it has none."""
    draw: Callable[[pd.DataFrame], str] | None = getattr(_module(suite), "figure", None)
    return None if draw is None else draw(results)


def bench(
    suite: str, *, slow_peers: bool, log: Log, keep: Callable[[pd.DataFrame], None] | None = None, **options: Any
) -> pd.DataFrame:
    """Run a suite with one BLAS thread and return its table, with the conditions of the run in its `attrs`.

    Parameters
    ----------
    suite : str
        A key of `SUITES`.
    slow_peers : bool
        Also run the peers that take minutes.
    log : callable
        Takes a line of text for each row.
    keep : callable, optional
        Takes the table so far after each row, so that a run that is cut off keeps what it has.
    **options
        Options of the suite; None means that an option is not given.

    Raises
    ------
    InputError
        For an unknown suite, an option that it does not take, absent data, or a package that is not installed.
    """
    from threadpoolctl import threadpool_limits

    module = _module(suite)
    run: Suite = getattr(module, suite)
    options = {name: value for name, value in options.items() if value is not None}
    for package in PACKAGES.get(suite, ()):
        load_optional(package)
    for name in options.keys() - inspect.signature(run).parameters.keys():
        raise InputError(f"the suite {suite} does not take --{name}")
    conditions = f"{platform.machine()}, Python {platform.python_version()}, {_threads(options)}"
    conditions = "; ".join([conditions, *filter(None, [getattr(module, "CONDITIONS", None)])])
    log(f"{conditions}; warm-up before the clock starts")
    rows = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that stops at its limit counts with what it reached
        for row in run(slow_peers, **options):
            shown = {k: v for k, v in row.items() if k != CURVE and v is not None and v != ""}
            log("  ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in shown.items()))
            rows.append(row)
            if keep is not None:
                keep(pd.DataFrame(rows))
    results = pd.DataFrame(rows)
    results.attrs["conditions"] = conditions
    return results


def _threads(options: dict[str, Any]) -> str:
    threads = "one thread" if options.get("threads", 1) == 1 else f"{options['threads']} threads for each system"
    processes = options.get("processes", 1)
    return threads if processes == 1 else f"{threads}, {processes} processes side by side"
