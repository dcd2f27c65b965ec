"""`aucdist bench peers`: ours beside the systems that one would use instead, each in a process of its own.

The referee (`referee`, `contest`, `table`) knows no contestant; a contestant (`linear`, `others`) is a function that fits, and
knows neither data nor clock. All get the same rows, scaled alike, and choose one value (lam, or the size of trees) from five
by the same three folds. Then they fit with growing budgets, each time from the start, which gives time against AUC.

What is not installed has a row that says so. ``pip install 'aucdist[peers]'`` brings all but libauc. The lock has
`aucdist[bench]`, without liblinear-official and scikit-survival, which may need a compiler; its xgboost is xgboost-cpu, the same
without NVIDIA's libraries. libauc's losses and optimizers run with ``pip install torch tqdm`` and ``pip install --no-deps
libauc``, without its other requirements (torchvision, opencv, transformers and more); its DualSampler does not, so batches are
drawn here as it draws them. All of them ran on Python 3.11; where a system cannot take the rows (dense rows only, or too many
features for a matrix of features by features) its row says so.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from aucdist.errors import InputError, unknown
from flows.bench.common import Row
from flows.bench.peers import linear, others
from flows.bench.peers.referee import LIMIT, contest
from flows.bench.peers.sets import sets
from flows.bench.peers.table import Played, table

SYSTEMS = linear.SYSTEMS + others.SYSTEMS


def peers(
    slow_peers: bool, *, only: str | None = None, threads: int = 1, repeats: int = 3, limit: float = LIMIT
) -> Iterator[Row]:
    """Let all systems compete on all data sets; who is at it is told on stderr, the rows come at the end.

    Parameters
    ----------
    slow_peers : bool
        Also ten million simulated rows.
    only : str, optional
        Names of data sets, with commas between them; None for all.
    threads : int
        For each system.
    repeats : int
        Turns of each system with each data set; ratios of times are medians of the turns' ratios.
    limit : float
        Seconds that each system has for its choice, and again for its ladder of budgets.

    Raises
    ------
    InputError
        For a name that is none of a data set, or a number below 1.
    """
    for name, value in (("threads", threads), ("repeats", repeats), ("limit", limit)):
        if value < 1:
            raise InputError(f"--{name} is {value}; at least 1 is needed")
    known = sets(slow_peers)
    chosen = list(known) if only is None else [name.strip() for name in only.split(",")]
    for name in chosen:
        if name not in known:
            raise unknown("data set", name, known)
    played = []
    for name in chosen:
        train, test = known[name]()
        _hear(f"{name}: {train.n_samples} x {train.n_features} to train, {test.n_samples} to test, threads {threads}")
        folder = Path(tempfile.mkdtemp(prefix="aucdist-bench-"))
        try:
            turns = contest(train, test, SYSTEMS, folder, threads=threads, repeats=repeats, limit=limit, hear=_hear)
        except KeyboardInterrupt:
            _hear(f"interrupted in {name}: the table is of the sets before")
            break
        finally:
            shutil.rmtree(folder)
        played.append(Played(name, train.n_samples, test.y, turns))
        del train, test
    yield from table(played, SYSTEMS)


def _hear(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def picture(found: pd.DataFrame) -> str:
    """Return time against AUC as an SVG file, a panel for each data set."""
    from flows.bench.peers.picture import drawn

    return drawn(found)
