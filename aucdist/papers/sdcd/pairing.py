"""Draw pairs of a row of the smaller class (the minority) and a row of the larger class, for all solvers that sample pairs.

A block pairs its rows of the larger class with all rows of the minority, so that every pair belongs to one block. The rows of the
minority are collected once and sent to all blocks. If there are several blocks and the minority takes more than
`minority_bytes`, it is sent in equal parts: in each round one part, the same for every block.

Both classes lie group by group (`aucdist.pairs.groups`), rows with grades as often as they are in one; without groups,
all rows are one. A group may have rows in several blocks.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from aucdist.data.block import Block, stacked
from aucdist.engine.blocks import Blocks, Summary, block_seed
from aucdist.errors import InputError
from aucdist.kernels.rows import CsrRows, Rows
from aucdist.pairs.groups import PairGroups
from aucdist.pairs.loss import runs_of
from aucdist.papers.sdcd.kernels import ONES, PairPlaces, PairRows, draw_any, draw_in_order
from aucdist.parameters import LARGEST_INTEGER, Constraints, count, keyword_parameters
from aucdist.solvers.base import Solver
from aucdist.solvers.rounding import EPS, Rounding

MINORITY_BYTES = 2**28
"""The default of `minority_bytes`: 256 MiB."""

COMBINATIONS = ("add", "average")
ALL = "all"

CHUNK = 2**14
"""The number of pairs that are drawn at a time. They fit into the second-level cache of a core."""


@dataclass(frozen=True)
class SamplingMemory:
    """The memory of a block between rounds.

    Attributes
    ----------
    majority : ndarray of shape (n_majority,), int64
        The positions of its rows of the larger class.
    own : ndarray of int64
        The positions of its rows of the smaller class.
    codes : ndarray of shape (n_majority,), int32
        The number of the group of each row of the larger class, ascending.
    minority : DenseRows or CsrRows, or None
        The part of the minority that was sent last.
    first : int
        The number of that part's first row among all rows of the minority.
    steps_taken : dict of int to int
        With each part of the minority.
    places : PairPlaces
        Where the pairs with that part are; None before the first.
    weights : tuple of ndarray
        The weights of the part of the minority, and of the larger class; of length 0 if each pair has the weight 1.
    state : object
        What the solver adds; None at first.
    """

    majority: np.ndarray
    own: np.ndarray
    codes: np.ndarray
    minority: Rows | None = None
    first: int = 0
    steps_taken: dict[int, int] = field(default_factory=dict)
    places: PairPlaces = None
    weights: tuple[np.ndarray, np.ndarray] = (ONES, ONES)
    state: Any = None

    def rows(self, block: Block, sign: int) -> PairRows:
        """Return the block's pairs in the form that the kernels read."""
        return PairRows(self.minority, block.rows, len(self.majority), sign, *self.weights)

    def taken_with(self, part: int) -> int:
        """Return the number of steps that the block has taken with a part of the minority."""
        return self.steps_taken.get(part, 0)

    def after(self, turn: "Turn", block: Block, state: Any) -> "SamplingMemory":
        """Return the memory after the block's steps of a round."""
        taken = self.taken_with(turn.part) + int(turn.shares[block.index])
        return replace(self, steps_taken=self.steps_taken | {turn.part: taken}, state=state)


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def find_majority(block: Block, memory: None, sign: int, groups: PairGroups | None) -> tuple[SamplingMemory, Summary]:
    """Find the rows of both classes that are in pairs; return their numbers, and the bytes of the smaller class."""
    rows, weights = block.rows, (ONES, ONES)
    if groups is None:
        own, majority = (np.flatnonzero(block.y == label) for label in (sign, -sign))
        own_codes, codes = (np.zeros(len(positions), dtype=np.int32) for positions in (own, majority))
    else:
        (own, own_codes), (majority, codes) = (groups.rows_of(block, label) for label in (sign, -sign))
        weights = (ONES, block.weights()[majority] * groups.factor[codes])
    if isinstance(rows, CsrRows):
        size = int(np.diff(rows.offsets)[own].sum()) * (rows.values.itemsize + rows.indices.itemsize)
    else:
        size = len(own) * rows.values.itemsize * block.n_features
    summary = {"bytes": size, "sizes": [(len(own), len(majority))], "codes": [own_codes]}
    return SamplingMemory(majority, own, codes, weights=weights), summary


def collect_minority(
    block: Block, memory: SamplingMemory, ranks: np.ndarray, first: int, end: int, offsets: np.ndarray
) -> Summary:
    """Return the block's rows whose numbers in the minority are first, ..., end - 1."""
    numbers = ranks[offsets[block.index] : offsets[block.index + 1]]
    return {"rows": [block.take(memory.own[(numbers >= first) & (numbers < end)])]}


def receive_minority(
    block: Block, memory: SamplingMemory, rows: Rows, weights: np.ndarray, first: int, starts: np.ndarray
) -> tuple[SamplingMemory, Summary]:
    """Replace the part of the minority by another one, and return the number of pairs with it.

    Parameters
    ----------
    weights : ndarray
        The weights of its rows; of length 0 if each pair has the weight 1.
    starts : ndarray of shape (n_groups + 1,), int64
        Where its rows of each group begin and end.
    """
    bounds, codes = runs_of(memory.codes)
    n_minority = starts[codes + 1] - starts[codes]
    before = np.append(0, np.cumsum(np.diff(bounds) * n_minority))
    places = PairPlaces(before, bounds, starts[codes], n_minority, memory.majority)
    memory = replace(memory, minority=rows, first=first, places=places, weights=(weights, memory.weights[1]))
    return memory, {"n_pairs": [int(places.before[-1])]}


# ---- the client's side ------------------------------------------------------------------------------------------------


class Pairing:
    """Blocks with the state that is needed to draw single pairs.

    Parameters
    ----------
    minority_bytes : int
        The most bytes that rows of the minority may take on a block, if there are several blocks.
    groups : PairGroups, optional
        Where pairs are within groups, or of rows with grades or weights.

    Attributes
    ----------
    sign : int
        1 where the minority is positive, -1 where it is negative.
    mass : float
        The weight of all pairs; their number if each has the weight 1.
    n_working : int
        The number of blocks that have pairs.
    offsets, majority_offsets : ndarray of shape (n_blocks + 1,), int64
        The numbers of rows of the smaller and of the larger class before each block.
    n_parts : int
        The number of parts of the minority.
    part : int
        The part that the blocks have; -1 before the first.
    """

    def __init__(self, blocks: Blocks, minority_bytes: int, groups: PairGroups | None = None):
        self.blocks, self.groups = blocks.without_memory(), groups
        self.sign = (1 if blocks.n_pos <= blocks.n_neg else -1) if groups is None else groups.sign
        self.mass = blocks.n_pos * blocks.n_neg if groups is None else groups.mass
        summary = self.blocks.reduce(find_majority, self.sign, groups)
        minority, majority = np.array(summary["sizes"], dtype=np.int64).T
        self.n_working = int((majority > 0).sum())
        self.offsets, self.majority_offsets = np.cumsum([0, *minority]), np.cumsum([0, *majority])
        parts = -(-summary["bytes"] // minority_bytes) if blocks.n_blocks > 1 else 1
        self.n_parts = min(int(self.offsets[-1]), max(1, parts))
        self.part = -1
        codes = np.concatenate(summary["codes"])
        self._ranks = np.empty(len(codes), dtype=np.int64)
        self._ranks[np.argsort(codes, kind="stable")] = np.arange(len(codes))
        self._starts = np.append(0, np.cumsum(np.bincount(codes)))

    def send_minority(self, part: int) -> None:
        """Send a part of the minority to the blocks, unless they have it."""
        if part == self.part:
            return
        first, end = (int(self.offsets[-1]) * p // self.n_parts for p in (part, part + 1))
        summary = self.blocks.reduce(collect_minority, self._ranks, first, end, self.offsets)
        order = np.argsort(self._ranks[(self._ranks >= first) & (self._ranks < end)])
        minority = stacked(summary["rows"]).take(order)
        weights = ONES if self.groups is None else minority.weights()
        starts = np.clip(self._starts - first, 0, end - first)
        sizes = self.blocks.reduce(receive_minority, minority.rows, weights, first, starts)["n_pairs"]
        self._pairs_before, self.part = np.cumsum([0, *sizes]), part

    def steps(self, seed: int, scale: float, combine: str = "add", **kind: bool) -> "PairSteps":
        """Return the steps on these blocks; `combine` is one of `COMBINATIONS`, and `kind` has the rest of `PairSteps`."""
        k = float(self.n_working)
        sigma, gamma = (k, 1.0) if combine == "add" else (1.0, 1.0 / k)
        return PairSteps(seed, self.sign, scale, sigma, gamma, self.blocks.n_blocks == 1, **kind)

    def shares(self, n_steps: int) -> np.ndarray:
        """Return how many of the steps each block takes, in proportion to its pairs with the part sent: int64, (n_blocks,)."""
        total = int(self._pairs_before[-1])
        return np.diff([n_steps * int(before) // total for before in self._pairs_before])


@dataclass(frozen=True)
class PairSteps:
    """The parameters of the steps of all rounds, and how the changes that the blocks make are combined.

    Attributes
    ----------
    scale : float
        lam, times the weight of all pairs for steps in the dual.
    sigma : float
        The factor by which a block overstates its own changes while it works, so that all changes can be added up.
    gamma : float
        The share of its changes that a block retains.
    alone : bool
        Whether there is one block only, which is the sequential algorithm.
    shuffled : bool
        Whether pairs are taken in a random order, or else drawn independently of each other.
    average : bool
        Whether the average over the steps is kept.
    """

    seed: int
    sign: int
    scale: float
    sigma: float
    gamma: float
    alone: bool
    shuffled: bool = False
    average: bool = False

    def moved(self, own_part: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Return a block's term of a sum over blocks after its copy of the sum has changed from `before` to `after`."""
        return after if self.alone else own_part + (self.gamma / self.sigma) * (after - before)

    def draws(self, block: Block, memory: SamplingMemory, turn: "Turn") -> Iterator[tuple[int, np.ndarray]]:
        """Yield the pairs of the block's steps of a round, `CHUNK` at a time, after the number of steps before them.

        The same array is overwritten each time.
        """
        n_steps, key = int(turn.shares[block.index]), block_seed(self.seed, turn.part, block.index)
        first, buffer = memory.taken_with(turn.part), np.empty((min(n_steps, CHUNK), 3), dtype=np.int64)
        for taken in range(0, n_steps, CHUNK):
            drawn = buffer[: n_steps - taken]
            (draw_in_order if self.shuffled else draw_any)(key, first + taken, memory.places, drawn)
            yield taken, drawn


@dataclass(frozen=True)
class Turn:
    """The part of the minority, and the steps, of the blocks in a round.

    Attributes
    ----------
    number : int
        From 1.
    part : int
        The part of the minority.
    shares : ndarray of shape (n_blocks,), int64
        The steps that each block takes.
    taken : int
        The steps of all rounds so far, these included.
    passes : int
        What they cost: two rows are read for a step, and looking at the objective takes half a pass a round.
    """

    number: int
    part: int
    shares: np.ndarray
    taken: int
    passes: int


@keyword_parameters
class PairSolver(Solver):
    """A solver that draws pairs, as many as `steps` or `epochs` say.

    Parameters
    ----------
    steps : int, "all" or None, default=None
        Pairs to draw in all: T. ``"all"`` is the number of pairs, the paper's choice: n_pos * n_neg without groups.
    epochs : int or None, default=None
        The same in units of n_samples pairs.
    minority_bytes : int, default=268435456
        The rows of the smaller class are sent to every block; where there are several blocks and the rows take more than
        this, they are sent in parts.
    """

    objective = "pairwise hinge"
    random = True
    takes_start = False
    _parameter_constraints: ClassVar[Constraints] = {
        "steps": count(words=(ALL,), optional=True),
        "epochs": count(optional=True),
        "minority_bytes": count(),
    }
    default_epochs: ClassVar[int | None] = None
    """The number of epochs if neither `steps` nor `epochs` is given; None for no limit."""

    steps: int | str | None = None
    epochs: int | None = None
    minority_bytes: int = MINORITY_BYTES

    def check_parameters(self) -> None:
        """Check the solver's own parameters, of which only one may set the number of pairs."""
        super().check_parameters()
        if self.steps is not None and self.epochs is not None:
            raise InputError("steps and epochs both set the number of pairs: give one of them")

    def turns(self, blocks: Blocks, groups: PairGroups | None = None) -> tuple[Pairing, Iterator[Turn]]:
        """Return the blocks whose pairs are drawn, and their rounds, which send the minority that each needs.

        With `epochs`, a round is an epoch of n_samples steps. With `steps`, one block takes all of them in one round; several
        blocks exchange their changes after every n_samples steps, and the last round is shorter.

        Parameters
        ----------
        groups : PairGroups, optional
            Where pairs are within groups, or of rows with grades or weights.
        """
        n_pairs, epochs, n = blocks.n_pos * blocks.n_neg, self.epochs, blocks.n_samples
        if groups is not None:  # pairs that differ by several grades are counted once for each grade between them
            n_pairs = sum(int(p) * int(n) for p, n in groups.counts.T)
        if self.steps is None and epochs is None:
            epochs = self.default_epochs
        total: float = math.inf if epochs is None else epochs * n
        if self.steps is not None:
            total = n_pairs if self.steps == ALL else int(self.steps)
        numbered = 0 if total == math.inf else int(total)
        if max(n_pairs, numbered) >= LARGEST_INTEGER:
            raise InputError(
                f"there are {n_pairs} pairs and {numbered} steps, but both are numbered below 2**63: lower `epochs`"
            )
        pairing = Pairing(blocks, self.minority_bytes, groups)

        def turns() -> Iterator[Turn]:
            """Yield the turns, each with its number of steps."""
            size, n_left, taken = total if self.steps is not None and blocks.n_blocks == 1 else n, total, 0
            for number in itertools.count(1):
                if n_left <= 0:
                    return
                n_steps = int(min(size, n_left))
                n_left, taken = n_left - n_steps, taken + n_steps
                part = (number - 1) % pairing.n_parts
                pairing.send_minority(part)
                passes = math.ceil(2 * taken / n + 0.5 * number)
                yield Turn(number, part, pairing.shares(n_steps), taken, passes)

        return pairing, turns()


def dual_error_of_steps(rounding: Rounding, w: np.ndarray, active: float, lam: float, steps: int) -> float:
    """Return a bound on the rounding error of the dual value of the hinge's pairs.

    The weights are what the steps have added up, while the value is that of the variables they left: each step may have rounded
    an entry of w, which is never larger than ``2 active largest / lam``.

    Parameters
    ----------
    w : ndarray of shape (n_features,)
    active : float
        The mean of the variables.
    steps : int
        So many led there.
    """
    relative = EPS * (steps + len(w))
    away = (4.0 * relative * active) * rounding.largest  # of lam w
    return relative * active + rounding.half_square(lam * w, away) / lam
