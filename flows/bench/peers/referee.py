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

from aucdist.data.block import Block
from flows.bench.peers.contestant import BudgetPoint, Choice, ContestantTask, run_contestant, save_rows
from flows.bench.peers.system import System

LIMIT = 60.0
GRACE = 60.0
"""Seconds beyond both limits, for imports, reading the rows and the warm-up."""

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS")

OVER_TIME = "over time"


@dataclass
class Trial:
    """One run of a contestant on a data set.

    Attributes
    ----------
    note : str
        Why it did not run, or not to the end; else empty.
    warm_up : float or None
        Seconds of the first fit, on few rows.
    choice : Choice or None
        The value and how it was chosen; None in trials that take it from the first one.
    choice_seconds : float or None
    value : float or None
        The value of the fits.
    points : list of BudgetPoint
        A fit for each budget, ascending.
    scores : ndarray of shape (n_test,), or None
        The test scores of the last fit.
    peak : float or None
        MiB.
    """

    note: str = ""
    warm_up: float | None = None
    choice: Choice | None = None
    choice_seconds: float | None = None
    value: float | None = None
    points: list[BudgetPoint] = field(default_factory=list)
    scores: np.ndarray | None = None
    peak: float | None = None

    def cut_off(self, system: System) -> bool:
        """Return whether the time limit ended the choice or the fits of this trial."""
        return self.note == OVER_TIME or (self.choice is not None and self.choice.tried < len(system.grid))


def run_contest(
    train: Block,
    test: Block,
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
    train, test : Block
    systems : sequence of System
    folder : Path
        An empty folder for the rows.
    threads : int
        Threads of each system.
    repeats : int
        Trials of each system; the first one chooses the value for all.
    limit : float
        Seconds for the choice, and again for the fits.
    log : callable
        Takes a line of text after each trial.

    Returns
    -------
    dict
        The trials of each system, by its name.
    """
    for name, block in (("train", train), ("test", test)):
        save_rows(folder, name, block.X, block.y)
    trials: dict[str, list[Trial]] = {system.name: [] for system in systems}
    for repeat in range(repeats):
        for system in systems:
            earlier = trials[system.name]
            reason = system.reason_to_skip(not isinstance(train.X, np.ndarray), train.n_features)
            if repeat and earlier[0].note:
                continue  # it would end in the same way
            task = ContestantTask(system, str(folder), threads, limit, earlier[0].value if repeat else None)
            start = time.monotonic()
            trial = Trial(note=reason) if reason else _run_trial(task)
            earlier.append(trial)
            last = f"AUC {trial.points[-1].auc:.4f} in {trial.points[-1].seconds:.3g} s" if trial.points else ""
            outcome = ", ".join(part for part in (last, trial.note) if part)
            log(f"  {repeat + 1}: {system.name}: {outcome} ({time.monotonic() - start:.0f} s in all)")
    return trials


def _run_trial(task: ContestantTask) -> Trial:
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=run_contestant, args=(task, sender), daemon=True)
    with _environment(task.threads):
        process.start()
    sender.close()
    trial = Trial(value=task.value)
    _record_events(receiver, trial, time.monotonic() + 2 * task.limit + GRACE)
    process.kill()
    process.join()
    return trial


def _record_events(receiver: Connection, trial: Trial, deadline: float) -> None:
    while receiver.poll(max(0.0, deadline - time.monotonic())):
        try:
            event, content = receiver.recv()
        except EOFError:
            trial.note = "not run here: its process died"
            return
        match event:
            case "warm":
                trial.warm_up = content
            case "chosen":
                trial.choice, trial.choice_seconds = content
                trial.value = content[0].value
            case "fitted":
                point, trial.scores = content
                trial.points.append(point)
            case "absent":
                trial.note = "not installed"
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
