"""The referee: runs each contestant in a process of its own, one after the other, and records the results."""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from aucdist.extras import EXTRAS
from benchmarks.peers.contestant import BudgetPoint, Choice, ContestantTask, run_contestant, save_rows
from benchmarks.peers.data_sets import TrainAndTest
from benchmarks.peers.system import System

LIMIT = 60.0
GRACE = 60.0
"""Seconds beyond both limits of a split, for imports, reading the rows and the warm-up."""

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS")

OVER_TIME = "over time"


@dataclass
class SplitResult:
    """What a contestant did on one split into training and test rows.

    Attributes
    ----------
    value : float or None
        The value of the fits.
    choice : Choice or None
        The value and how it was chosen; None in trials that take it from the first one.
    choice_seconds : float or None
    points : list of BudgetPoint
        A fit for each budget, ascending.
    scores : ndarray of shape (n_test,), or None
        The test scores of the last fit.
    """

    value: float | None = None
    choice: Choice | None = None
    choice_seconds: float | None = None
    points: list[BudgetPoint] = field(default_factory=list)
    scores: np.ndarray | None = None


@dataclass
class Trial:
    """One run of a contestant on all splits of a data set.

    Attributes
    ----------
    note : str
        Why it did not run, or not to the end of the last split; else empty.
    warm_up : float or None
        Seconds of the first fit, on few rows.
    splits : list of SplitResult
        The splits that the contestant came to, in their order.
    peak : float or None
        MiB.
    """

    note: str = ""
    warm_up: float | None = None
    splits: list[SplitResult] = field(default_factory=list)
    peak: float | None = None

    @property
    def first(self) -> SplitResult:
        """The first split, or an empty result if the contestant did not come to it."""
        return self.splits[0] if self.splits else SplitResult()

    @property
    def values_tried(self) -> int | None:
        """How many values the shortest choice tried; None without a choice."""
        return min((split.choice.tried for split in self.splits if split.choice is not None), default=None)

    def cut_off(self, system: System) -> bool:
        """Return whether the time limit ended a choice or the fits of this trial."""
        tried = self.values_tried
        return self.note == OVER_TIME or (tried is not None and tried < len(system.grid))


def run_contest(
    splits: Sequence[TrainAndTest],
    systems: Sequence[System],
    folder: Path,
    *,
    threads: int,
    repeats: int,
    limit: float = LIMIT,
    log: Callable[[str], None] = lambda line: None,
) -> dict[str, list[Trial]]:
    """Run all systems on a data set, one after the other in each repeat.

    Parameters
    ----------
    splits : sequence of (Block, Block)
        Training and test rows of each split of the data set.
    systems : sequence of System
    folder : Path
        An empty folder for the rows.
    threads : int
        Threads of each system.
    repeats : int
        Trials of each system; the first one chooses the values of all, one for each split.
    limit : float
        Seconds for the choice on a split, and again for its fits. After a split that was cut off a system runs no further one.
    log : callable
        Takes a line of text after each trial.

    Returns
    -------
    dict
        The trials of each system, by its name.
    """
    for number, (train, test) in enumerate(splits):
        save_rows(folder, f"train-{number}", train.X, train.y)
        save_rows(folder, f"test-{number}", test.X, test.y)
    X = splits[0][0].X
    trials: dict[str, list[Trial]] = {system.name: [] for system in systems}
    for repeat in range(repeats):
        for system in systems:
            earlier = trials[system.name]
            reason = system.reason_to_skip(not isinstance(X, np.ndarray), X.shape[1])
            if repeat and earlier[0].note:
                continue  # it would end in the same way
            values = tuple(s.value for s in earlier[0].splits) if repeat else (None,) * len(splits)
            task = ContestantTask(system, str(folder), threads, limit, values)
            start = time.monotonic()
            trial = Trial(note=reason) if reason else _run_trial(task)
            earlier.append(trial)
            log(f"  {repeat + 1}: {system.name}: {_outcome(trial)} ({time.monotonic() - start:.0f} s in all)")
    return trials


def _outcome(trial: Trial) -> str:
    last = [split.points[-1] for split in trial.splits if split.points]
    fits = [f"AUC {' '.join(f'{p.auc:.4f}' for p in last)} in {' '.join(f'{p.seconds:.3g}' for p in last)} s"]
    return ", ".join([*(fits if last else []), *([trial.note] if trial.note else [])])


def _run_trial(task: ContestantTask) -> Trial:
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=run_contestant, args=(task, sender), daemon=True)
    with _environment(task.threads):
        process.start()
    sender.close()
    trial = Trial()
    _record_events(receiver, trial, task.limit)
    process.kill()
    process.join()
    return trial


def _record_events(receiver: Connection, trial: Trial, limit: float) -> None:
    """Record what a contestant sends, until it ends or its time is over; each split after the first has that time anew."""
    deadline = time.monotonic() + 2 * limit + GRACE
    while receiver.poll(max(0.0, deadline - time.monotonic())):
        try:
            event, content = receiver.recv()
        except EOFError:
            trial.note = "not run here: its process died"
            return
        match event:
            case "warm":
                trial.warm_up = content
            case "split":
                if trial.splits:
                    deadline = time.monotonic() + 2 * limit + GRACE
                trial.splits.append(SplitResult(content))
            case "chosen":
                split = trial.splits[-1]
                split.choice, split.choice_seconds = content
                split.value = split.choice.value
            case "fitted":
                split = trial.splits[-1]
                point, split.scores = content
                split.points.append(point)
            case "absent":
                trial.note = _not_installed(content)
                return
            case "failed":
                trial.note = f"not run here: {content}"
                return
            case "over":
                trial.note = OVER_TIME
            case "done":
                trial.peak = content
                return
    trial.note = OVER_TIME


def _not_installed(package: str) -> str:
    extra = EXTRAS.get(package)
    return "not installed" if extra is None else f"not installed: pip install '.[{extra}]'"


@contextmanager
def _environment(threads: int) -> Iterator[None]:
    """Set the number of threads for processes that start now, and hide CUDA devices from them."""
    settings = {**dict.fromkeys(THREADS, str(threads)), "CUDA_VISIBLE_DEVICES": ""}
    before = {key: os.environ.get(key) for key in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value
