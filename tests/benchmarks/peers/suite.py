"""`aucdist bench peers`: our systems and those that one would use instead, each in a process of its own.

The referee (`referee`, `contestant`, `table`) knows no contestant; a contestant (`linear`, `others`) is a function that fits and
knows neither data nor clock. All get the same rows with the same scaling, and choose one value (lam, or the size of trees) from
five by the same three folds, on at most 50 000 of the training rows (`contestant.CHOICE_ROWS`; the column `choice rows` states
how many). Then they fit all training rows with growing budgets, each time from the start, which gives time against AUC.

With few rows, the budget that comes near the best AUC depends on which rows a random split makes test rows. So data sets with
fewer than 10 000 training rows (`data_sets.FEW_ROWS`) and without test rows of their own are split several times, and time
against AUC is that of the mean AUC over the splits. One process runs a system on all splits of a data set, so that it imports
and compiles once.

A system that is not installed has a row that says so. ``pip install '.[peers]'`` installs all but libauc. The lock file
has `aucdist[bench]`, without liblinear-official and scikit-survival, which may need a compiler; its xgboost is xgboost-cpu, the
same without NVIDIA's libraries. libauc's losses and optimizers run with ``pip install torch tqdm`` and ``pip install --no-deps
libauc``, without its other requirements (torchvision, opencv, transformers and more); its DualSampler does not, so the adapter
draws batches in the same way. All of them ran on Python 3.11. Where a system cannot take the rows (dense rows only, or too many
features for a matrix of features by features), its row says so; skglm gets dense float32 rows as float64.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from aucdist.errors import InputError
from benchmarks.common import Row, chosen_names
from benchmarks.peers import linear, others
from benchmarks.peers.contestant import CHOICE_ROWS
from benchmarks.peers.data_sets import FEW_ROWS, data_sets
from benchmarks.peers.referee import LIMIT, run_contest
from benchmarks.peers.table import Contest, result_rows

SYSTEMS = linear.SYSTEMS + others.SYSTEMS
CONDITIONS = (
    f"every system chooses its value by three folds of at most {CHOICE_ROWS} training rows; a data set with fewer than "
    f"{FEW_ROWS} training rows is split several times, unless its test rows are fixed"
)
"""Stated in the first line of the output."""


def peers(
    slow_peers: bool,
    *,
    only: str | None = None,
    threads: int = 1,
    repeats: int = 3,
    splits: int = 5,
    limit: float = LIMIT,
) -> Iterator[Row]:
    """Run all systems on all data sets. Progress goes to stderr; the rows come at the end.

    Parameters
    ----------
    slow_peers : bool
        Also use ten million simulated rows.
    only : str, optional
        Names of data sets, separated by commas; None for all.
    threads : int
        Threads of each system.
    repeats : int
        Trials of each system on each data set; ratios of times are medians of the trials' ratios.
    splits : int
        Random splits of a data set with fewer than `data_sets.FEW_ROWS` training rows; others have one.
    limit : float
        Seconds that each system has on each split for its choice, and again for its fits.

    Raises
    ------
    InputError
        For an unknown data set, or a number below 1.
    """
    for name, value in (("threads", threads), ("repeats", repeats), ("splits", splits), ("limit", limit)):
        if value < 1:
            raise InputError(f"--{name} must be at least 1; got {value}")
    known = data_sets(slow_peers)
    chosen = chosen_names(only, known)
    contests = []
    for name in chosen:
        rows = known[name](splits)
        train, test = rows[0]
        shape = f"{train.n_samples} x {train.n_features} to train, {test.n_samples} to test"
        _log(f"{name}: {shape}, splits {len(rows)}, threads {threads}")
        folder = Path(tempfile.mkdtemp(prefix="aucdist-bench-"))
        try:
            trials = run_contest(rows, SYSTEMS, folder, threads=threads, repeats=repeats, limit=limit, log=_log)
        except KeyboardInterrupt:
            _log(f"interrupted in {name}: the table has the data sets before it")
            break
        finally:
            shutil.rmtree(folder)
        contests.append(Contest(name, train.n_samples, test.y, trials, len(rows)))
        del rows, train, test
    yield from result_rows(contests, SYSTEMS)


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
