"""What solvers of single pairs share: they draw pairs of a row of the smaller class, the minority, and one of the larger class.

A block pairs its rows of the larger class with all rows of the minority, so that every pair belongs to one block. The rows of the
minority are collected once and sent to all blocks. If there are several blocks and the minority takes more than
`minority_bytes`, it is sent in equal parts: in each round one part, the same for every block.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from aucdist.data.block import Block, as_rows, n_rows
from aucdist.engine.blocks import Blocks, Step, Summary, block_seed
from aucdist.errors import InputError
from aucdist.kernels.pair_rows import PairRows
from aucdist.kernels.rows import CsrRows, DenseRows, Rows
from aucdist.parameters import Constraints, Number
from aucdist.solvers.base import Round

MINORITY_BYTES = 2**28
"""The default of `minority_bytes`: 256 MiB."""

COMBINATIONS = ("add", "average")
ALL = "all"

CHUNK = 2**14
"""Pairs drawn at a time: as many as stay in a core's second-level cache."""

LIMIT = 2**63


def _count(words: tuple[str, ...] = (), *, optional: bool) -> Number:
    return Number("above 0 and below 2**63", lambda v: 1 <= v < LIMIT, whole=True, words=words, optional=optional)


SAMPLING_CONSTRAINTS: Constraints = {
    "steps": _count((ALL,), optional=True),
    "epochs": _count(optional=True),
    "minority_bytes": _count(optional=False),
}


@dataclass(frozen=True)
class ResumableRound(Round):
    """A round from which a later fit can go on.

    Attributes
    ----------
    resume : callable
        ``resume()`` returns what the solver takes as its `start`. Call it before the next round.
    """

    resume: Callable[[], Any]


@dataclass(frozen=True)
class SamplingMemory:
    """What a block remembers between rounds.

    Attributes
    ----------
    majority : ndarray of shape (n_majority,), int64
        The positions of its rows of the larger class.
    minority : DenseRows or CsrRows, or None
        The part of the minority that was sent last.
    first : int
        The number of that part's first row among all rows of the minority.
    steps_taken : ndarray of shape (n_parts,), int64
        With each part of the minority.
    state : object
        What the solver adds; None at first.
    """

    majority: np.ndarray
    minority: Rows | None
    first: int
    steps_taken: np.ndarray
    state: Any = None

    def rows(self, block: Block, sign: int) -> PairRows:
        """Return the block's pairs as the kernels take them."""
        return PairRows(self.minority, block.rows, len(self.majority), sign)

    def draws(self, draw: Callable[..., None], key: int, part: int, n_steps: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the pairs of the next steps, `CHUNK` at a time, after the number of steps before them.

        The same array is overwritten each time.
        """
        first_step, buffer = int(self.steps_taken[part]), np.empty((min(n_steps, CHUNK), 3), dtype=np.int64)
        for taken in range(0, n_steps, CHUNK):
            drawn = buffer[: n_steps - taken]
            draw(key, first_step + taken, n_rows(self.minority), self.majority, drawn)
            yield taken, drawn

    def after(self, part: int, n_steps: int, state: Any) -> "SamplingMemory":
        """Return the memory after so many steps with a part of the minority."""
        steps_taken = self.steps_taken.copy()
        steps_taken[part] += n_steps
        return replace(self, steps_taken=steps_taken, state=state)


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def find_majority(block: Block, memory: None, sign: int) -> tuple[SamplingMemory, Summary]:
    """Find the rows of the larger class, and return how many bytes those of the smaller one take."""
    mine, rows = block.y == sign, block.rows
    if isinstance(rows, CsrRows):
        size = int(np.diff(rows.offsets)[mine].sum()) * (rows.values.itemsize + rows.indices.itemsize)
    else:
        size = int(mine.sum()) * rows.values.itemsize * block.n_features
    return SamplingMemory(np.flatnonzero(~mine), None, 0, np.zeros(0, dtype=np.int64)), {"bytes": size}


def collect_minority(
    block: Block, memory: SamplingMemory, sign: int, first: int, end: int, offsets: np.ndarray
) -> tuple[SamplingMemory, Summary]:
    """Return the block's rows among those that have the numbers first, ..., end - 1 in the minority."""
    mine = np.flatnonzero(block.y == sign)
    ranks = offsets[block.index] + np.arange(len(mine))
    return memory, {"X": [block.X[mine[(ranks >= first) & (ranks < end)]]]}


def receive_minority(
    block: Block, memory: SamplingMemory, fields: tuple[Any, ...], first: int, before: np.ndarray
) -> tuple[SamplingMemory, Summary]:
    """Replace the part of the minority by another one, which is given by the fields of its rows."""
    rows = DenseRows(*fields) if len(fields) == 1 else CsrRows(*fields)
    steps_taken = memory.steps_taken if len(memory.steps_taken) else before
    return replace(memory, minority=rows, first=first, steps_taken=steps_taken), {}


# ---- the client's side ------------------------------------------------------------------------------------------------


class Pairing:
    """Blocks whose pairs are drawn one by one.

    Parameters
    ----------
    blocks : Blocks
    minority_bytes : int
        The most bytes that rows of the minority may take on a block, if there are several blocks.
    before : int
        Steps of earlier fits. The pairs that they drew are not drawn again.

    Attributes
    ----------
    sign : int
        1 where the minority is positive, -1 where it is negative.
    n_pairs : int
    n_working : int
        The number of blocks that have pairs.
    offsets, majority_offsets : ndarray of shape (n_blocks + 1,), int64
        The numbers of rows of the smaller and of the larger class before each block.
    n_parts : int
        The number of parts of the minority.
    part : int
        The part that the blocks have; -1 before the first.
    """

    def __init__(self, blocks: Blocks, minority_bytes: int, before: int = 0):
        self.blocks = blocks.without_memory()
        self.sign = 1 if blocks.n_pos <= blocks.n_neg else -1
        self.n_pairs = blocks.n_pos * blocks.n_neg
        n_pos, n_rows_of = np.array([(i.n_pos, i.n_samples) for i in blocks.infos], dtype=np.int64).T
        minority, majority = (n_pos, n_rows_of - n_pos) if self.sign > 0 else (n_rows_of - n_pos, n_pos)
        self.n_working = int((majority > 0).sum())
        self.offsets, self.majority_offsets = np.cumsum([0, *minority]), np.cumsum([0, *majority])
        size = self.blocks.reduce(find_majority, self.sign)["bytes"]
        parts = -(-size // minority_bytes) if blocks.n_blocks > 1 else 1
        self.n_parts = min(int(self.offsets[-1]), max(1, parts))
        self.part = -1
        self._before = before

    def send_minority(self, part: int) -> None:
        """Send a part of the minority to the blocks, unless they have it."""
        if part == self.part:
            return
        first, end = (int(self.offsets[-1]) * p // self.n_parts for p in (part, part + 1))
        parts = self.blocks.reduce(collect_minority, self.sign, first, end, self.offsets)["X"]
        stack: Callable[..., Any] = sp.vstack if sp.issparse(parts[0]) else np.concatenate
        rows = as_rows(parts[0] if len(parts) == 1 else stack(parts))
        self.blocks.reduce(receive_minority, tuple(rows), first, np.full(self.n_parts, self._before))
        self.part = part

    def shares(self, n_steps: int) -> np.ndarray:
        """Return how many of the steps each block takes, in proportion to its pairs: int64 of shape (n_blocks,)."""
        total = int(self.majority_offsets[-1])
        return np.diff([n_steps * int(before) // total for before in self.majority_offsets])

    def reduce(self, step: Step, *args: Any) -> Summary:
        """Run a step on the blocks."""
        return self.blocks.reduce(step, *args)


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


def check_sampling(blocks: Blocks, steps: int | str | None, epochs: int | None, before: int) -> None:
    """Check that a solver of single pairs can use the data and the number of pairs.

    Raises
    ------
    InputError
        If rows have weights, or pairs or steps, those before included, would be 2**63 or more.
    """
    if blocks.has_weights:
        raise InputError("solvers of single pairs take no sample weights")
    n_pairs = blocks.n_pos * blocks.n_neg
    wanted = n_pairs if steps == ALL else int(steps or 0) + (epochs or 0) * blocks.n_samples
    if max(n_pairs, before + wanted) >= LIMIT:
        raise InputError(f"{n_pairs} pairs and {before + wanted} steps: both are numbered below 2**63")


def check_steps(steps: int | str | None, epochs: int | None) -> None:
    """Raise an InputError if both `steps` and `epochs` are given."""
    if steps is not None and epochs is not None:
        raise InputError("steps and epochs both set the number of pairs: give one of them")


def round_sizes(blocks: Blocks, steps: int | str | None, epochs: int | None) -> Iterator[int]:
    """Yield the number of steps of each round.

    With `epochs`, a round is an epoch of n_samples steps. With `steps`, one block takes all of them in one round; several blocks
    exchange their changes after every n_samples steps, and the last round is shorter. With neither there is no end.
    """
    epoch = blocks.n_samples
    if steps is None:
        yield from itertools.repeat(epoch) if epochs is None else itertools.repeat(epoch, epochs)
        return
    left = blocks.n_pos * blocks.n_neg if steps == ALL else int(steps)
    while left > 0:
        size = left if blocks.n_blocks == 1 else min(left, epoch)
        yield size
        left -= size
