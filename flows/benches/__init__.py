"""`aucdist bench`: our figures beside the peers', side by side in one process on this machine.

A suite is a generator of rows in a module of its own and a line in `SUITES`.
"""

import platform
import warnings
from collections.abc import Callable

import pandas as pd

from aucdist.errors import unknown
from flows.benches.common import Suite
from flows.benches.cv import coverage, cv
from flows.benches.data import data
from flows.benches.engine import engine, workers
from flows.benches.hinge import hinge
from flows.benches.link import link
from flows.benches.pairwise import pairwise
from flows.benches.sampling import sampling

Say = Callable[[str], None]

SUITES: dict[str, Suite] = {
    "pairwise": pairwise,
    "engine": engine,
    "workers": workers,
    "cv": cv,
    "coverage": coverage,
    "data": data,
    "sampling": sampling,
    "hinge": hinge,
    "link": link,
}


def bench(suite: str, *, slow_peers: bool, say: Say) -> pd.DataFrame:
    """Run a suite with one BLAS thread, and return its table.

    Parameters
    ----------
    suite : str
        A key of `SUITES`.
    slow_peers : bool
        Also run the peers that take minutes.
    say : callable
        Hears each row as it comes.

    Raises
    ------
    InputError
        For an unknown suite, or data that are not there.
    """
    from threadpoolctl import threadpool_limits

    if suite not in SUITES:
        raise unknown("suite", suite, SUITES)
    say(
        f"{platform.machine()}, Python {platform.python_version()}, one thread; kernels compiled before the clock starts"
    )
    rows = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers that stop at max_iter are shown for what they reached
        for row in SUITES[suite](slow_peers):
            say("  ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()))
            rows.append(row)
    return pd.DataFrame(rows)
