"""A model of what a fit by `all_pairs` takes: reductions x (compute + latency + bytes / bandwidth), and its few constants."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from aucdist.engine.blocks import Blocks, Step, Summary
from aucdist.solvers.pairs.all_pairs import STEPS, number_of_groups
from aucdist.solvers.pairs.anchors import MAX_CELLS

REDUCTIONS_PER_PASS = 4


@dataclass(frozen=True)
class Load:
    """What a fit asks for, whatever works on it.

    Attributes
    ----------
    rows, features, blocks, passes : int
    reductions : int
    arguments : int
        Bytes of all steps' arguments, each counted once; every worker gets them.
    summaries : int
        Bytes of what all blocks say in all steps.
    client : float
        Seconds of a core for the client's own work between the reductions.
    """

    rows: int
    features: int
    blocks: int
    passes: int
    reductions: int = 0
    arguments: int = 0
    summaries: int = 0
    client: float = 0.0


@dataclass(frozen=True)
class Place:
    """Where a fit runs.

    Attributes
    ----------
    workers, cores : int
        Worker processes of one thread, and how many of them can compute at once.
    bandwidth : float
        Bytes a second that each host sends and, at the same time, receives.
    delay : float
        Seconds from one host to another.
    """

    workers: int
    cores: int
    bandwidth: float = math.inf
    delay: float = 0.0


class Constants(NamedTuple):
    """What the machine decides.

    Attributes
    ----------
    value : float
        Seconds for one value of one row in one pass, on one core.
    reduction, worker : float
        Seconds of a reduction, and of each worker in it.
    byte : float
        Seconds to pack, hand over and unpack a byte, whatever the network.
    wire : float
        Bytes that the network carries for each that is counted.
    trips : float
        Delays that a reduction waits for.
    """

    value: float
    reduction: float
    worker: float
    byte: float
    wire: float
    trips: float


@dataclass(frozen=True)
class Run:
    """A fit that was measured."""

    load: Load
    place: Place
    seconds: float


# ---- counting ---------------------------------------------------------------------------------------------------------


class Counted(Blocks):
    """Blocks that count what goes to them and comes from them, and the seconds of a core that they take.

    Parameters
    ----------
    blocks : Blocks
    """

    def __init__(self, blocks: Blocks):
        super().__init__(blocks.infos)
        self._blocks = blocks
        self.reductions = self.arguments = self.summaries = 0
        self.seconds = 0.0

    def without_memory(self) -> "Counted":
        """Return these, emptied: a fit asks once, and its counts are looked for here."""
        self._blocks = self._blocks.without_memory()
        return self

    def reduce(self, step: Step, *args: Any) -> Summary:
        """Run the step, and count."""
        start = time.process_time()
        said = self._blocks.reduce(step, *args)
        self.seconds += time.process_time() - start
        self.reductions += 1
        self.arguments += weight(args)
        # Lists were put one behind the other; all else has the size of one block's.
        self.summaries += sum(weight(v) * (1 if isinstance(v, list) else self.n_blocks) for v in said.values())
        return said


def weight(thing: Any) -> int:
    """Return the bytes of the arrays and numbers in a tree of tuples, lists and dataclasses."""
    if isinstance(thing, np.ndarray):
        return int(thing.nbytes)
    if isinstance(thing, list | tuple):
        return sum(map(weight, thing))
    if is_dataclass(thing):
        return sum(map(weight, vars(thing).values()))
    return 8


def counted(blocks: Blocks, fit: Callable[[Blocks], int]) -> Load:
    """Run a fit, which returns its passes, and return what it asks for; the blocks are in this process."""
    counts, start = Counted(blocks), time.process_time()
    passes = fit(counts)
    own = time.process_time() - start - counts.seconds
    return Load(
        blocks.n_samples, blocks.n_features, blocks.n_blocks, passes, counts.reductions, counts.arguments, counts.summaries, own,
    )  # fmt: skip


def expected(rows: int, features: int, blocks: int, passes: int, anchors: int, looked_at: int) -> Load:
    """Return what `counted` would count for data that nobody has to make; without the client's seconds.

    Parameters
    ----------
    rows, features, blocks, passes : int
    anchors : int
        Rows of the smaller class.
    looked_at : int
        How many of them the line search takes.
    """
    groups, n = number_of_groups(anchors, rows - anchors, features), 8
    cells = [min(2 * m, MAX_CELLS) + 1 for m in (anchors, looked_at)]
    seek = n * (features + 1)
    search = len(STEPS) * (n * (looked_at + 2 * (looked_at + 1) + 2) + 4 * cells[1] + n) + n
    cut = n + n * (anchors + 2 * (anchors + 1) + 3) + 4 * cells[0]
    finish = n * (groups * anchors + blocks + 1 + 1)
    gradients = n * groups * features
    said_cut = n * (groups * (anchors + 1) + groups + 2) + gradients
    steps = passes - 1
    return Load(
        rows, features, blocks, passes, 1 + 2 * passes + 2 * steps,
        n * (features + 2) + passes * (cut + finish) + steps * (seek + search),
        2 * n * anchors + passes * blocks * (said_cut + gradients) + steps * (n * anchors + blocks * n * (len(STEPS) + 1)),
    )  # fmt: skip


# ---- the model --------------------------------------------------------------------------------------------------------


def terms(load: Load, place: Place) -> np.ndarray:
    """Return what each of `Constants` is taken times.

    What is counted on the wire: the arguments go to one worker and from there to the others, one after the other through its
    cable, or from the scheduler to all, which is as much; the summaries come in by the scheduler's cable.
    """
    values = load.rows * load.features * load.passes / min(place.workers, place.cores)
    moved = place.workers * load.arguments + load.summaries
    return np.array(
        [values, load.reductions, load.reductions * place.workers, moved, moved / place.bandwidth,
         load.reductions * place.delay]
    )  # fmt: skip


def fitted(runs: Sequence[Run]) -> Constants:
    """Return the constants, none below 0, with the least sum of squares of the relative errors."""
    rows = np.array([terms(run.load, run.place) / run.seconds for run in runs])
    goal = np.array([1.0 - run.load.client / run.seconds for run in runs])
    scale = np.where(rows.max(axis=0) > 0, rows.max(axis=0), 1.0)
    found, _ = nnls(rows / scale, goal)
    return Constants(*map(float, found / scale))


def predicted(constants: Constants, load: Load, place: Place) -> dict[str, float]:
    """Return the seconds of a fit by what they go to: compute, latency, bytes and the client's own work."""
    value, reduction, worker, byte, wire, trips = (np.array(constants) * terms(load, place)).tolist()
    return {
        "compute": value, "latency": reduction + worker + trips, "bytes": byte + wire, "client": load.client,
    }  # fmt: skip


def total(constants: Constants, load: Load, place: Place) -> float:
    """Return the seconds of a fit."""
    return sum(predicted(constants, load, place).values())
