"""The process of one contestant: on each split it chooses a value by cross-validation, then fits with one budget after the other.

The process sends every result to the referee at once, so that the results of a contestant that is stopped are not lost.
"""

import importlib
import resource
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.peers.system import FittedModel, System

FOLDS, SEED = 3, 0
CHOICE_ROWS = 50_000
"""At most so many training rows choose the value, the same ones for all systems."""
WARM_UP_ROWS = 300

QUICK, TIMES = 0.2, 5
"""A fit of less than so many seconds is repeated, so many times in all; the median counts."""

UNCHANGED_FITS = 2
"""A system that does not report its end has converged after so many budgets in turn that change no score.

One is too few, because a step may take more than a small budget.
"""


@dataclass(frozen=True)
class ContestantTask:
    """The task of a process.

    Attributes
    ----------
    system : System
    folder : str
        The folder of `save_rows`.
    threads : int
    limit : float
        Seconds for the choice on a split, and again for its fits; checked between fits.
    values : tuple of (float or None)
        For each split the value chosen before; None to choose one.
    """

    system: System
    folder: str
    threads: int
    limit: float
    values: tuple[float | None, ...]


class BudgetPoint(NamedTuple):
    """A fit from the start with one budget: its seconds, its test AUC, and its certified gap if it has one."""

    budget: int
    seconds: float
    auc: float
    gap: float | None


class Choice(NamedTuple):
    """The chosen value, how many values were tried before the deadline, and the mean AUC over the folds at the value."""

    value: float
    tried: int
    mean_auc: float | None


def save_rows(folder: Path, name: str, X: Any, y: np.ndarray) -> None:
    """Write rows for the processes of the contestants."""
    if sp.issparse(X):
        sp.save_npz(folder / f"{name}-X.npz", X, compressed=False)
    else:
        np.save(folder / f"{name}-X.npy", X)
    np.save(folder / f"{name}-y.npy", y)


def load_rows(folder: Path, name: str) -> tuple[Any, np.ndarray]:
    """Return the rows that `save_rows` wrote."""
    y = np.load(folder / f"{name}-y.npy", allow_pickle=False)
    sparse = folder / f"{name}-X.npz"
    if sparse.exists():
        return sp.csr_matrix(sp.load_npz(sparse)), y
    return np.load(folder / f"{name}-X.npy", allow_pickle=False), y


def run_contestant(task: ContestantTask, referee: Connection) -> None:
    """Run a task and send its events.

    These are absent; or else warm, for each split the events split, chosen and, for each budget, fitted, then done; or failed.
    After a split that the limit cut off comes the event over and no further split: a system that takes seconds on the few rows
    of a data set with several splits would take most of the time of a run.
    """
    warnings.simplefilter("ignore")  # a fit that stops at its budget counts with what it reached
    tempfile.tempdir = task.folder  # temporary files of a system are removed together with the rows
    system = task.system
    try:
        importlib.import_module(system.package)
    except ImportError:
        referee.send(("absent", system.package))
        return
    try:
        for number in range(len(task.values)):
            X, y = load_rows(Path(task.folder), f"train-{number}")
            if number == 0:
                referee.send(("warm", _warm_up(task, X, y)))
            if not _run_split(task, number, X, y, referee):
                referee.send(("over", None))
                break
        referee.send(("done", peak_memory()))
    except Exception as error:
        text = str(error).strip().splitlines() or [""]
        referee.send(("failed", f"{type(error).__name__}: {text[0][:150]}"))


def _warm_up(task: ContestantTask, X: Any, y: np.ndarray) -> float:
    """Return the seconds of a fit of few rows, and fit all: together they compile what a system compiles."""
    start = time.perf_counter()
    system, few = task.system, stratified_subset(y, WARM_UP_ROWS)
    X_few, y_few = X[few], y[few]
    model = system.fit(_prepare(system, X_few, y_few), y_few, system.grid[0], system.budgets[0], task.threads)
    model.scores(X_few)
    seconds = time.perf_counter() - start
    system.fit(_prepare(system, X, y), y, system.grid[0], system.budgets[0], task.threads)
    return seconds


def _run_split(task: ContestantTask, number: int, X: Any, y: np.ndarray, referee: Connection) -> bool:
    """Choose a value on the training rows of a split, unless it is known, and fit; return False if the limit ends the task here.

    A choice that was cut off ends it before a further split, but not before the fits of its own split.
    """
    system, value = task.system, task.values[number]
    is_last = number + 1 == len(task.values)
    may_go_on = True
    referee.send(("split", value))
    if value is None:
        start = time.perf_counter()
        choice = choose_value(system, X, y, task.threads, start + task.limit)
        referee.send(("chosen", (choice, time.perf_counter() - start)))
        value, may_go_on = choice.value, is_last or choice.tried == len(system.grid)
    return _fit_budgets(task, number, value, X, y, referee) and may_go_on


def _fit_budgets(task: ContestantTask, number: int, value: float, X: Any, y: np.ndarray, referee: Connection) -> bool:
    """Fit from the start with one budget after the other, until a fit has converged; return False if the time is over before."""
    system, (X_test, y_test) = task.system, load_rows(Path(task.folder), f"test-{number}")
    rows, deadline = _prepare(system, X, y), time.perf_counter() + task.limit
    previous, unchanged = None, 0
    for budget in system.budgets:
        if time.perf_counter() > deadline:
            return False
        model, seconds = _median_time(partial(system.fit, rows, y, value, budget, task.threads))
        scores = _finite_scores(model, X_test)
        referee.send(("fitted", (BudgetPoint(budget, seconds, roc_auc(y_test, scores), model.gap), scores)))
        # Constant scores belong to a fit that has not started, however often they repeat.
        same = previous is not None and np.ptp(scores) > 0 and np.array_equal(previous, scores)
        previous, unchanged = scores, unchanged + 1 if same else 0
        if model.ended or (model.ended is None and unchanged == UNCHANGED_FITS):
            break
    return True


def _median_time(fit: Callable[[], FittedModel]) -> tuple[FittedModel, float]:
    """Return the fitted model and its median time."""
    times: list[float] = []
    while not times or (len(times) < TIMES and times[0] < QUICK):
        start = time.perf_counter()
        model = fit()
        times.append(time.perf_counter() - start)
    return model, statistics.median(times)


def choose_value(
    system: System, X: Any, y: np.ndarray, threads: int, deadline: float, clock: Callable[[], float] = time.perf_counter
) -> Choice:
    """Return the value of the grid with the highest mean AUC over folds of at most `CHOICE_ROWS` rows.

    Values are tried from the middle of the sorted grid outwards, whatever its order. After the deadline the best value tried so
    far counts; the middle one, with a mean AUC of None, if none was finished. Of equal values the larger one is taken.

    Parameters
    ----------
    system : System
    X : array of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    threads : int
    deadline : float
        On the clock.
    clock : callable
        Returns seconds.
    """
    from sklearn.model_selection import StratifiedKFold

    rows = stratified_subset(y, CHOICE_ROWS)
    X, y = X[rows], y[rows]
    n_folds = min(FOLDS, int((y == 1).sum()), int((y == -1).sum()))
    folds = list(StratifiedKFold(n_folds, shuffle=True, random_state=SEED).split(y, y))
    finished: list[tuple[float, float]] = []
    order = middle_out(system.grid)
    for value in order:
        areas = []
        for train, validation in folds:
            if clock() > deadline:
                return _best_choice(finished, order[0])
            prepared = _prepare(system, X[train], y[train])
            model = system.fit(prepared, y[train], value, system.choice_budget, threads)
            areas.append(roc_auc(y[validation], _finite_scores(model, X[validation])))
        finished.append((float(np.mean(areas)), value))
    return _best_choice(finished, order[0])


def _best_choice(finished: Sequence[tuple[float, float]], default: float) -> Choice:
    if not finished:
        return Choice(default, 0, None)
    mean_auc, value = max(finished)
    return Choice(value, len(finished), mean_auc)


def middle_out(grid: Sequence[float]) -> list[float]:
    """Return the values of a grid from the middle of their order outwards."""
    ordered = sorted(grid)
    middle = len(ordered) // 2
    return [ordered[i] for i in sorted(range(len(ordered)), key=lambda i: (abs(i - middle), i))]


def stratified_subset(y: np.ndarray, size: int) -> np.ndarray:
    """Return about `size` random positions at most, ascending: each class by its share, but two of each at least."""
    random, parts = np.random.default_rng(SEED), []
    for label in (-1, 1):
        of_class = np.flatnonzero(y == label)
        n = min(len(of_class), max(2, round(size * len(of_class) / len(y))))
        parts.append(random.permutation(of_class)[:n])
    return np.sort(np.concatenate(parts))


def roc_auc(y: np.ndarray, scores: np.ndarray) -> float:
    """Return scikit-learn's AUC."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(y, scores))


def _prepare(system: System, X: Any, y: np.ndarray) -> Any:
    return X if system.prepare is None else system.prepare(X, y)


def _finite_scores(model: FittedModel, X: Any) -> np.ndarray:
    scores = np.asarray(model.scores(X), dtype=np.float64).ravel()
    if not np.isfinite(scores).all():
        raise ArithmeticError("scores that are not finite")
    return scores


def peak_memory() -> float:
    """Return the peak memory of this process, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss would include the memory of the parent at the start of this process
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 1024)
