"""The referee: starts each contestant in a process of its own, one after the other, and writes down what it tells."""

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
from flows.bench.peers.contest import Task, compete, keep
from flows.bench.peers.system import System

LIMIT = 60.0
GRACE = 60.0
"""Beyond both limits, for imports, reading the rows and warming up."""

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass
class Turn:
    """What a contestant did with a data set, once.

    Attributes
    ----------
    note : str
        Why it did not, or not to the end; else empty.
    tried : int or None
        From how many values it chose: all of them, unless that took too long.
    by_folds : float or None
        The mean AUC over the folds at the value.
    rungs : list of (budget, seconds, AUC, gap)
    scores : ndarray of shape (n_test,), or None
        Of the last rung.
    """

    note: str = ""
    warm: float | None = None
    value: float | None = None
    tried: int | None = None
    by_folds: float | None = None
    choice: float | None = None
    rungs: list[tuple[int, float, float, float | None]] = field(default_factory=list)
    scores: np.ndarray | None = None
    peak: float | None = None


def contest(
    train: Block,
    test: Block,
    systems: Sequence[System],
    folder: Path,
    *,
    threads: int,
    repeats: int,
    limit: float = LIMIT,
    hear: Callable[[str], None] = lambda text: None,
) -> dict[str, list[Turn]]:
    """Give every system its turns with a data set, all of them one after the other in each repeat.

    Parameters
    ----------
    train, test : Block
    systems : sequence of System
    folder : Path
        An empty folder for the rows.
    threads : int
        What each system may use.
    repeats : int
        The value is chosen in the first, and kept.
    limit : float
        Seconds for the choice, and again for the ladder.
    hear : callable
        Hears of each turn as it ends.

    Returns
    -------
    dict
        By the system's name, a turn for each repeat.
    """
    for name, block in (("train", train), ("test", test)):
        keep(folder, name, block.X, block.y)
    turns: dict[str, list[Turn]] = {system.name: [] for system in systems}
    for repeat in range(repeats):
        for system in systems:
            before = turns[system.name]
            reason = system.why_not(not isinstance(train.X, np.ndarray), train.n_features)
            if repeat and before[0].note:
                continue  # it would meet the same end
            task = Task(system, str(folder), threads, limit, before[0].value if repeat else None)
            start = time.monotonic()
            turn = Turn(note=reason) if reason else _turn(task)
            turns[system.name].append(turn)
            last = f"AUC {turn.rungs[-1][2]:.4f} in {turn.rungs[-1][1]:.3g} s" if turn.rungs else ""
            told = ", ".join(part for part in (last, turn.note) if part)
            hear(f"  {repeat + 1}: {system.name}: {told} ({time.monotonic() - start:.0f} s in all)")
    return turns


def _turn(task: Task) -> Turn:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=compete, args=(task, theirs), daemon=True)
    with _environment(task.threads):
        process.start()
    theirs.close()
    turn = Turn(value=task.value)
    _listen(ours, turn, time.monotonic() + 2 * task.limit + GRACE)
    process.kill()
    process.join()
    return turn


def _listen(told: Connection, turn: Turn, deadline: float) -> None:
    while told.poll(max(0.0, deadline - time.monotonic())):
        try:
            what, said = told.recv()
        except EOFError:
            turn.note = "not run here: its process died"
            return
        match what:
            case "ready":
                turn.warm = said
            case "chosen":
                turn.value, turn.tried, turn.by_folds, turn.choice = said
            case "rung":
                turn.rungs.append(said[0])
                turn.scores = said[1]
            case "absent":
                turn.note = "not installed"
                return
            case "failed":
                turn.note = f"not run here: {said}"
                return
            case "over":
                turn.note = "over time"
            case "done":
                turn.peak = said
                return
    turn.note = "over time"


@contextmanager
def _environment(threads: int) -> Iterator[None]:
    """Let processes that start now see the number of threads, and one that imports CUDA's find no device."""
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
