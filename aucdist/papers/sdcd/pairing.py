"""What solvers of drawn pairs share: a pair is a row of the smaller class, the minority, and one of the larger class.

A block pairs its rows of the larger class with all rows of the minority, so that every pair belongs to one block. The rows of the
minority are collected once and sent to all blocks. If there are several blocks and the minority takes more than
`minority_bytes`, it is sent in equal parts: in each round one part, the same for every block.

Where pairs are within groups, or of rows with grades or weights (`aucdist.solvers.pairs.groups`), both classes lie group by
group, rows with grades as often as they are in one. A group may have rows in several blocks.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from aucdist.data.block import Block, as_rows, n_rows
from aucdist.engine.blocks import Blocks, Summary, block_seed
from aucdist.errors import InputError
from aucdist.kernels.pair_rows import ONES, PairRows
from aucdist.kernels.rows import CsrRows, DenseRows, Rows
from aucdist.papers.sdcd.kernels import PairPlaces
from aucdist.parameters import Constraints, Number
from aucdist.solvers.base import Solver
from aucdist.solvers.pairs.groups import PairGroups
from aucdist.solvers.pairs.loss import runs_of

MINORITY_BYTES = 2**28
"""The default of `minority_bytes`: 256 MiB."""

COMBINATIONS = ("add", "average")
ALL = "all"

CHUNK = 2**14
"""Pairs drawn at a time: as many as stay in a core's second-level cache."""

LIMIT = 2**63


def _count(words: tuple[str, ...] = (), *, optional: bool) -> Number:
    return Number("above 0 and below 2**63", lambda v: 1 <= v < LIMIT, whole=True, words=words, optional=optional)


@dataclass(frozen=True)
class SamplingMemory:
    """What a block remembers between rounds.

    Attributes
    ----------
    majority : ndarray of shape (n_majority,), int64
        The positions of its rows of the larger class.
    own : ndarray of int64
        The positions of its rows of the smaller class.
    codes : ndarray of shape (n_majority,), int32, or None
        The number of the group of each row of the larger class, ascending, where pairs are within groups.
    minority : DenseRows or CsrRows, or None
        The part of the minority that was sent last.
    first : int
        The number of that part's first row among all rows of the minority.
    steps_taken : ndarray of shape (n_parts,), int64
        With each part of the minority.
    pairs : int or PairPlaces
        The number of rows in the part of the minority; where pairs are within groups, where they are.
    weights : tuple of ndarray
        Of the part of the minority, and of the larger class; of length 0 where each pair weighs one.
    state : object
        What the solver adds; None at first.
    """

    majority: np.ndarray
    own: np.ndarray
    codes: np.ndarray | None = None
    minority: Rows | None = None
    first: int = 0
    steps_taken: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    pairs: int | PairPlaces = 0
    weights: tuple[np.ndarray, np.ndarray] = (ONES, ONES)
    state: Any = None

    @property
    def n_pairs(self) -> int:
        """The number of the block's pairs with the part of the minority."""
        places = self.pairs
        return int(places.before[-1]) if isinstance(places, PairPlaces) else places * len(self.majority)

    def rows(self, block: Block, sign: int) -> PairRows:
        """Return the block's pairs as the kernels take them."""
        return PairRows(self.minority, block.rows, len(self.majority), sign, *self.weights)

    def draws(self, draw: Callable[..., None], key: int, part: int, n_steps: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the pairs of the next steps, `CHUNK` at a time, after the number of steps before them.

        The same array is overwritten each time.
        """
        first_step, buffer = int(self.steps_taken[part]), np.empty((min(n_steps, CHUNK), 3), dtype=np.int64)
        for taken in range(0, n_steps, CHUNK):
            drawn = buffer[: n_steps - taken]
            draw(key, first_step + taken, self.pairs, self.majority, drawn)
            yield taken, drawn

    def after(self, part: int, n_steps: int, state: Any) -> "SamplingMemory":
        """Return the memory after so many steps with a part of the minority."""
        steps_taken = self.steps_taken.copy()
        steps_taken[part] += n_steps
        return replace(self, steps_taken=steps_taken, state=state)


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def find_majority(block: Block, memory: None, sign: int, groups: PairGroups | None) -> tuple[SamplingMemory, Summary]:
    """Find the rows of both classes that are in pairs; return how many they are, and the bytes that the smaller one takes."""
    rows, codes = block.rows, {}
    if groups is None:
        rows_in_pairs = SamplingMemory(np.flatnonzero(block.y != sign), np.flatnonzero(block.y == sign))
    else:
        (own, own_codes), (majority, of_majority) = (groups.rows_of(block, label) for label in (sign, -sign))
        weight = block.weights()[majority] * groups.factor[of_majority]
        rows_in_pairs = SamplingMemory(majority, own, of_majority, weights=(ONES, weight))
        codes = {"codes": [own_codes]}
    if isinstance(rows, CsrRows):
        size = int(np.diff(rows.offsets)[rows_in_pairs.own].sum()) * (rows.values.itemsize + rows.indices.itemsize)
    else:
        size = len(rows_in_pairs.own) * rows.values.itemsize * block.n_features
    return rows_in_pairs, {"bytes": size, "sizes": [(len(rows_in_pairs.own), len(rows_in_pairs.majority))], **codes}


def collect_minority(
    block: Block, memory: SamplingMemory, ranks: np.ndarray | None, first: int, end: int, offsets: np.ndarray
) -> tuple[SamplingMemory, Summary]:
    """Return the block's rows among those that have the numbers first, ..., end - 1 in the minority, and their weights."""
    mine = slice(offsets[block.index], offsets[block.index + 1])
    numbers = np.arange(mine.start, mine.stop) if ranks is None else ranks[mine]
    chosen = memory.own[(numbers >= first) & (numbers < end)]
    summary = {"X": [block.X[chosen]]}
    return memory, summary if ranks is None else {**summary, "weights": [block.weights()[chosen]]}


def receive_minority(
    block: Block, memory: SamplingMemory, fields: tuple[Any, ...], first: int, before: np.ndarray,
    grouped: tuple[np.ndarray, np.ndarray] | None,
) -> tuple[SamplingMemory, Summary]:  # fmt: skip
    """Replace the part of the minority by another one, and return the number of pairs with it.

    Parameters
    ----------
    fields : tuple of ndarray
        Those of its rows.
    before : ndarray of shape (n_parts,), int64
        The steps that earlier fits took with each part.
    grouped : tuple of ndarray or None
        Where pairs are within groups: its weights, and where the rows of each group begin and end.
    """
    rows = DenseRows(*fields) if len(fields) == 1 else CsrRows(*fields)
    steps_taken = memory.steps_taken if len(memory.steps_taken) else before
    pairs: int | PairPlaces = n_rows(rows)
    weights = memory.weights
    if grouped is not None:
        assert memory.codes is not None
        (of_minority, starts), (bounds, codes) = grouped, runs_of(memory.codes)
        sizes = np.diff(bounds) * (starts[codes + 1] - starts[codes])
        pairs, weights = PairPlaces(np.append(0, np.cumsum(sizes)), bounds, starts[codes]), (of_minority, weights[1])
    memory = replace(memory, minority=rows, first=first, steps_taken=steps_taken, pairs=pairs, weights=weights)
    return memory, {"n_pairs": [memory.n_pairs]}


# ---- the client's side ------------------------------------------------------------------------------------------------


class Pairing:
    """Blocks whose pairs are drawn one by one.

    Parameters
    ----------
    minority_bytes : int
        The most bytes that rows of the minority may take on a block, if there are several blocks.
    before : int
        Steps of earlier fits. The pairs that they drew are not drawn again.
    groups : PairGroups, optional
        Where pairs are within groups, or of rows with grades or weights.

    Attributes
    ----------
    sign : int
        1 where the minority is positive, -1 where it is negative.
    mass : float
        The weight of all pairs; their number where each weighs one.
    n_working : int
        The number of blocks that have pairs.
    offsets, majority_offsets : ndarray of shape (n_blocks + 1,), int64
        The numbers of rows of the smaller and of the larger class before each block.
    n_parts : int
        The number of parts of the minority.
    part : int
        The part that the blocks have; -1 before the first.
    """

    def __init__(self, blocks: Blocks, minority_bytes: int, before: int = 0, groups: PairGroups | None = None):
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
        self._before, self._ranks = before, None
        if groups is not None:
            codes = np.concatenate(summary["codes"])
            self._ranks = np.empty(len(codes), dtype=np.int64)
            self._ranks[np.argsort(codes, kind="stable")] = np.arange(len(codes))
            self._starts = np.append(0, np.cumsum(np.bincount(codes, minlength=groups.n_groups)))

    def send_minority(self, part: int) -> None:
        """Send a part of the minority to the blocks, unless they have it."""
        if part == self.part:
            return
        first, end = (int(self.offsets[-1]) * p // self.n_parts for p in (part, part + 1))
        summary, grouped = self.blocks.reduce(collect_minority, self._ranks, first, end, self.offsets), None
        parts = summary["X"]
        stack: Callable[..., Any] = sp.vstack if sp.issparse(parts[0]) else np.concatenate
        X = parts[0] if len(parts) == 1 else stack(parts)
        if self._ranks is not None:
            order = np.argsort(self._ranks[(self._ranks >= first) & (self._ranks < end)])
            X = X.tocsr()[order] if sp.issparse(X) else X[order]
            grouped = np.concatenate(summary["weights"])[order], np.clip(self._starts - first, 0, end - first)
        fields = tuple(as_rows(X))
        sizes = self.blocks.reduce(receive_minority, fields, first, np.full(self.n_parts, self._before), grouped)[
            "n_pairs"
        ]
        self._pairs_before, self.part = np.cumsum([0, *sizes]), part

    def shares(self, n_steps: int) -> np.ndarray:
        """Return how many of the steps each block takes, in proportion to its pairs with the part sent: int64, (n_blocks,)."""
        total = int(self._pairs_before[-1])
        return np.diff([n_steps * int(before) // total for before in self._pairs_before])


@dataclass(frozen=True)
class Combination:
    """How the changes that the blocks make are combined.

    Attributes
    ----------
    sigma : float
        The factor by which a block overstates its own changes while it works, so that all changes can be added up.
    gamma : float
        The share of its changes that a block retains.
    alone : bool
        Whether there is one block only, which is the sequential algorithm.
    """

    sigma: float
    gamma: float
    alone: bool

    @classmethod
    def of(cls, combine: str, pairing: Pairing) -> "Combination":
        """Return the rule for these blocks; `combine` is one of `COMBINATIONS`."""
        k = pairing.n_working
        sigma, gamma = (float(k), 1.0) if combine == "add" else (1.0, 1.0 / k)
        return cls(sigma, gamma, pairing.blocks.n_blocks == 1)

    def moved(self, mine: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Return a block's term of a sum over blocks after its copy of the sum has changed from `before` to `after`."""
        return after if self.alone else mine + (self.gamma / self.sigma) * (after - before)


def pair_key(block: Block, seed: int, part: int) -> int:
    """Return the key of the random numbers that draw a block's pairs with a part of the minority."""
    return block_seed(seed, part, block.index)


def number_of_pairs(blocks: Blocks, groups: PairGroups | None = None) -> int:
    """Return how many pairs there are, those of several grades counted once for each grade between them."""
    return blocks.n_pos * blocks.n_neg if groups is None else sum(int(p) * int(n) for p, n in groups.counts.T)


@dataclass(frozen=True)
class Turn:
    """What the blocks have for a round.

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
    resumes = True
    _parameter_constraints: ClassVar[Constraints] = {
        "steps": _count((ALL,), optional=True),
        "epochs": _count(optional=True),
        "minority_bytes": _count(optional=False),
    }
    default_epochs: ClassVar[int | None] = None
    """The epochs where neither number is given; None for no end."""

    def __init__(
        self, *, steps: int | str | None = None, epochs: int | None = None, minority_bytes: int = MINORITY_BYTES
    ):
        self.steps = steps
        self.epochs = epochs
        self.minority_bytes = minority_bytes

    def check_parameters(self) -> None:
        """Check the solver's own parameters, of which only one may set the number of pairs."""
        super().check_parameters()
        if self.steps is not None and self.epochs is not None:
            raise InputError("steps and epochs both set the number of pairs: give one of them")

    def turns(self, blocks: Blocks, before: int, groups: PairGroups | None = None) -> tuple[Pairing, Iterator[Turn]]:
        """Return the blocks whose pairs are drawn, and their rounds, which send the minority that each needs.

        With `epochs`, a round is an epoch of n_samples steps. With `steps`, one block takes all of them in one round; several
        blocks exchange their changes after every n_samples steps, and the last round is shorter.

        Parameters
        ----------
        before : int
            Steps of earlier fits. The pairs that they drew are not drawn again.
        groups : PairGroups, optional
            Where pairs are within groups, or of rows with grades or weights.
        """
        n_pairs, epochs, n = number_of_pairs(blocks, groups), self.epochs, blocks.n_samples
        if self.steps is None and epochs is None:
            epochs = self.default_epochs
        total: float = math.inf if epochs is None else epochs * n
        if self.steps is not None:
            total = n_pairs if self.steps == ALL else int(self.steps)
        numbered = before + (0 if total == math.inf else int(total))
        if max(n_pairs, numbered) >= LIMIT:
            raise InputError(f"{n_pairs} pairs and {numbered} steps: both are numbered below 2**63")
        pairing = Pairing(blocks, self.minority_bytes, before, groups)

        def turns() -> Iterator[Turn]:
            size, left, taken = total if self.steps is not None and blocks.n_blocks == 1 else n, total, 0
            for number in itertools.count(1):
                if left <= 0:
                    return
                n_steps = int(min(size, left))
                left, taken = left - n_steps, taken + n_steps
                part = (number - 1) % pairing.n_parts
                pairing.send_minority(part)
                passes = math.ceil(2 * taken / n + 0.5 * number)
                yield Turn(number, part, pairing.shares(n_steps), taken, passes)

        return pairing, turns()
