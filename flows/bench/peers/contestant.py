"""What happens in the process of one contestant: it chooses its value, then climbs the ladder of budgets.

The process tells the referee what it reaches as it goes, so that one that is stopped has told what it had.
"""

import importlib
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from flows.bench.peers.system import Fitted, System

FOLDS, SEED = 3, 0
CV_ROWS = 50_000
"""The value is chosen on at most so many of the training rows, the same for all."""
WARM_ROWS = 300

QUICK, TIMES = 0.2, 5
"""A fit of less than so many seconds is repeated at once, so many times in all; the median counts."""


@dataclass(frozen=True)
class Task:
    """What a process is to do.

    Attributes
    ----------
    system : System
    folder : str
        Where `keep` put the rows.
    threads : int
    limit : float
        Seconds for the choice, and again for the ladder; looked at between fits.
    value : float or None
        What was chosen before; None to choose.
    """

    system: System
    folder: str
    threads: int
    limit: float
    value: float | None


def keep(folder: Path, name: str, X: Any, y: np.ndarray) -> None:
    """Put rows where the processes find them."""
    if sp.issparse(X):
        sp.save_npz(folder / f"{name}-X.npz", X, compressed=False)
    else:
        np.save(folder / f"{name}-X.npy", X)
    np.save(folder / f"{name}-y.npy", y)


def kept(folder: Path, name: str) -> tuple[Any, np.ndarray]:
    """Return rows that `keep` put there."""
    y = np.load(folder / f"{name}-y.npy", allow_pickle=False)
    sparse = folder / f"{name}-X.npz"
    if sparse.exists():
        return sp.csr_matrix(sp.load_npz(sparse)), y
    return np.load(folder / f"{name}-X.npy", allow_pickle=False), y


def compete(task: Task, told: Connection) -> None:
    """Run a task, and tell: absent or ready, then chosen, rung after rung, done; or failed."""
    warnings.simplefilter("ignore")  # those that stop at their budget are shown for what they reached
    tempfile.tempdir = task.folder  # what a system writes goes when the rows go
    system = task.system
    try:
        importlib.import_module(system.package)
    except ImportError:
        told.send(("absent", None))
        return
    try:
        X, y = kept(Path(task.folder), "train")
        start = time.perf_counter()
        few = subset(y, WARM_ROWS)
        Xf, yf = X[few], y[few]
        system.fit(_formed(system, Xf, yf), yf, system.grid[0], system.budgets[0], task.threads).scores(Xf)
        told.send(("ready", time.perf_counter() - start))
        value = task.value
        if value is None:
            start = time.perf_counter()
            value, tried, by_folds = chosen(system, X, y, task.threads, start + task.limit)
            told.send(("chosen", (value, tried, by_folds, time.perf_counter() - start)))
        _climb(task, value, X, y, told)
        told.send(("done", peak()))
    except Exception as error:
        text = str(error).strip().splitlines() or [""]
        told.send(("failed", f"{type(error).__name__}: {text[0][:150]}"))


def _climb(task: Task, value: float, X: Any, y: np.ndarray, told: Connection) -> None:
    """Fit with one budget after the other, each from the start, until a fit says that it ended before its budget.

    Of who does not tell, until three in turn give the same scores: two is too few, for a step may take more than a small budget.
    """
    system, (X_test, y_test) = task.system, kept(Path(task.folder), "test")
    form, deadline = _formed(system, X, y), time.perf_counter() + task.limit
    before, same = None, 0
    for budget in system.budgets:
        if time.perf_counter() > deadline:
            told.send(("over", None))
            return
        fitted, seconds = _timed(partial(system.fit, form, y, value, budget, task.threads))
        scores = _scored(fitted, X_test)
        told.send(("rung", ((budget, seconds, area(y_test, scores), fitted.gap), scores)))
        # Scores that are all one number are those of a fit that has not begun, however often they come.
        stands = before is not None and np.ptp(scores) > 0 and np.array_equal(before, scores)
        before, same = scores, same + 1 if stands else 0
        if fitted.ended or (fitted.ended is None and same == 2):
            return


def _timed(fit: Callable[[], Fitted]) -> tuple[Fitted, float]:
    """Return what is fitted, and the seconds that it takes."""
    taken: list[float] = []
    while not taken or (len(taken) < TIMES and taken[0] < QUICK):
        start = time.perf_counter()
        fitted = fit()
        taken.append(time.perf_counter() - start)
    return fitted, statistics.median(taken)


def chosen(system: System, X: Any, y: np.ndarray, threads: int, deadline: float) -> tuple[float, int, float]:
    """Return the value with the best mean AUC over the folds, how many were tried before the deadline, and that AUC."""
    from sklearn.model_selection import StratifiedKFold

    rows = subset(y, CV_ROWS)
    X, y = X[rows], y[rows]
    n_folds = min(FOLDS, int((y == 1).sum()), int((y == -1).sum()))
    cuts = list(StratifiedKFold(n_folds, shuffle=True, random_state=SEED).split(y, y))
    best = (-1.0, system.grid[len(system.grid) // 2])
    for tried, value in enumerate(system.grid):
        areas = []
        for train, held in cuts:
            if time.perf_counter() > deadline:
                return best[1], tried, best[0]
            form = _formed(system, X[train], y[train])
            fitted = system.fit(form, y[train], value, system.usual, threads)
            areas.append(area(y[held], _scored(fitted, X[held])))
        best = max(best, (float(np.mean(areas)), value))
    return best[1], len(system.grid), best[0]


def subset(y: np.ndarray, most: int) -> np.ndarray:
    """Return at most about so many positions at random, each class by its share, and two of each at least; ascending."""
    random, parts = np.random.default_rng(SEED), []
    for label in (-1, 1):
        of_class = np.flatnonzero(y == label)
        n = min(len(of_class), max(2, round(most * len(of_class) / len(y))))
        parts.append(random.permutation(of_class)[:n])
    return np.sort(np.concatenate(parts))


def area(y: np.ndarray, scores: np.ndarray) -> float:
    """Return scikit-learn's AUC."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(y, scores))


def _formed(system: System, X: Any, y: np.ndarray) -> Any:
    return X if system.form is None else system.form(X, y)


def _scored(fitted: Fitted, X: Any) -> np.ndarray:
    scores = np.asarray(fitted.scores(X), dtype=np.float64).ravel()
    if not np.isfinite(scores).all():
        raise ArithmeticError("scores that are not finite")
    return scores


def peak() -> float:
    """Return the most memory that this process ever held, in MiB."""
    import resource
    import sys

    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss would begin with what the parent held when it started this process
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (2**20 if sys.platform == "darwin" else 1024)
