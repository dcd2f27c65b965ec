"""The suites, and how one is run.

How to add a suite: write a generator of rows with the name of the suite, in one module, and add a row to `SUITES`. The module
may also have a string ``CONDITIONS``, which is stated with the results. A module is imported when its suite is run, because some
import packages that are slow to load or optional.
"""

import importlib
import inspect
import platform
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from aucdist.errors import InputError, unknown
from aucdist.extras import load_optional
from benchmarks.common import Row

Log = Callable[[str], None]

SUITES = {
    "pairwise": "benchmarks.pairwise",
    "engine": "benchmarks.engine",
    "workers": "benchmarks.engine",
    "data": "benchmarks.data",
    "cv": "benchmarks.cv",
    "groups": "benchmarks.groups",
    "hinge": "benchmarks.hinge",
    "link": "benchmarks.link",
    "peers": "benchmarks.peers.suite",
    "top": "benchmarks.peers.top",
    "curves": "benchmarks.peers.curves",
    "passes": "benchmarks.peers.passes",
    "monotone": "benchmarks.monotone",
    "shapes": "benchmarks.shapes",
    "trees": "benchmarks.trees",
    "auto": "benchmarks.auto",
    "rare": "benchmarks.rare",
    "lam": "benchmarks.lam",
    "readme": "benchmarks.readme",
    "thresholds": "benchmarks.thresholds",
    "top_passes": "benchmarks.top_passes",
}
"""The module of each suite."""

PACKAGES = {"link": ("statsmodels",)}
"""The optional packages without which a suite cannot run; `peers` has a row for each system that is not installed."""

CURVE = "curve"
"""A column of points, which lines of text leave out."""


@dataclass(frozen=True)
class Suite:
    """A suite whose module is loaded.

    `rows`: takes whether to run the peers that take minutes, and options by name; yields the rows of the table.
    """

    name: str
    rows: Callable[..., Iterator[Row]]
    conditions: str | None = None


def load_suite(name: str) -> Suite:
    """Return a suite by its name.

    Raises InputError for an unknown suite, or a package that is not installed.
    """
    if name not in SUITES:
        raise unknown("suite", name, SUITES)
    for package in PACKAGES.get(name, ()):
        load_optional(package)
    module = importlib.import_module(SUITES[name])
    return Suite(name, getattr(module, name), getattr(module, "CONDITIONS", None))


def bench(
    suite: Suite, *, slow_peers: bool, log: Log, keep: Callable[[pd.DataFrame], None] | None = None, **options: Any
) -> pd.DataFrame:
    """Run a suite with one BLAS thread and return its table, with the conditions of the run in its `attrs`.

    `slow_peers`: also run the peers that take minutes.
    `log`: takes a line of text for each row.
    `keep`: takes the table so far after each row, so that a run that is cut off keeps what it has.
    `options`: options of the suite; None means that an option is not given.
    Raises InputError for an option that the suite does not take, or absent data.
    """
    from threadpoolctl import threadpool_limits

    options = {name: value for name, value in options.items() if value is not None}
    for name in options.keys() - inspect.signature(suite.rows).parameters.keys():
        raise InputError(f"the suite {suite.name} does not take --{name}")
    conditions = f"{platform.machine()}, Python {platform.python_version()}, {_threads(options)}"
    conditions = "; ".join([conditions, *filter(None, [suite.conditions])])
    log(f"{conditions}; warm-up before the clock starts")
    rows = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that stops at its limit counts with what it reached
        for row in suite.rows(slow_peers, **options):
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
