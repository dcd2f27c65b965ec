"""What the solvers over single pairs share: the minority on every block, and who takes how many steps.

A block pairs its own rows of the larger class with all rows of the smaller one, the minority, so that every pair belongs to one
block. The minority is collected once and sent to the blocks. Where there are several blocks and it takes more than
`minority_bytes`, it goes round in equal parts instead: one part, the same for every block, in each round.
"""

import itertools
import numbers
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
from aucdist.solvers.base import Round

MINORITY_BYTES = 2**28
"""Unless something else is asked for: 256 MiB."""

COMBINATIONS = ("add", "average")
ALL = "all"

CHUNK = 2**14
"""Pairs drawn at a time: what stays in a core's second-level cache."""

LIMIT = 2**63


@dataclass(frozen=True)
class ResumableRound(Round):
    """A round that a later fit can go on from.

    Attributes
    ----------
    resume : callable
        ``resume()`` returns what the solver takes as its start; to be called before the next round.
    """

    resume: Callable[[], Any]


@dataclass(frozen=True)
class Memory:
    """What a block keeps.

    Attributes
    ----------
    which : ndarray of shape (n_majority,), int64
        Its rows of the larger class.
    minority : DenseRows or CsrRows, or None
        The part of the minority at hand.
    first : int
        That part's first row, counted through the minority.
    done : ndarray of shape (n_parts,), int64
        Steps taken so far with each part.
    own : object
        What the solver adds; None at first.
    """

    which: np.ndarray
    minority: Rows | None
    first: int
    done: np.ndarray
    own: Any = None

    def rows(self, block: Block, sign: int) -> PairRows:
        """Return the block's pairs as the kernels read them."""
        return PairRows(self.minority, block.rows, len(self.which), sign)

    def draws(self, draw: Callable[..., None], key: int, part: int, n_steps: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the pairs of the next steps, some thousands at a time, and how many of the steps come before them.

        The array is written anew each time.
        """
        begin, buffer = int(self.done[part]), np.empty((min(n_steps, CHUNK), 3), dtype=np.int64)
        for taken in range(0, n_steps, CHUNK):
            drawn = buffer[: n_steps - taken]
            draw(key, begin + taken, n_rows(self.minority), self.which, drawn)
            yield taken, drawn

    def after(self, part: int, n_steps: int, own: Any) -> "Memory":
        """Return the memory after so many steps with a part."""
        done = self.done.copy()
        done[part] += n_steps
        return replace(self, done=done, own=own)


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def sort_rows(block: Block, memory: None, sign: int) -> tuple[Memory, Summary]:
    """Find the rows of the larger class, and say how much memory those of the smaller one take."""
    mine, rows = block.y == sign, block.rows
    if isinstance(rows, CsrRows):
        size = int(np.diff(rows.offsets)[mine].sum()) * (rows.values.itemsize + rows.indices.itemsize)
    else:
        size = int(mine.sum()) * rows.values.itemsize * block.n_features
    return Memory(np.flatnonzero(~mine), None, 0, np.zeros(0, dtype=np.int64)), {"bytes": size}


def collect(
    block: Block, memory: Memory, sign: int, first: int, end: int, offsets: np.ndarray
) -> tuple[Memory, Summary]:
    """Send the block's rows among those numbered first, ..., end - 1 in the minority."""
    mine = np.flatnonzero(block.y == sign)
    ranks = offsets[block.index] + np.arange(len(mine))
    return memory, {"X": [block.X[mine[(ranks >= first) & (ranks < end)]]]}


def receive(
    block: Block, memory: Memory, fields: tuple[Any, ...], first: int, before: np.ndarray
) -> tuple[Memory, Summary]:
    """Keep a part of the minority, given by the fields of its rows, in place of the last one."""
    rows = DenseRows(*fields) if len(fields) == 1 else CsrRows(*fields)
    done = memory.done if len(memory.done) else before
    return replace(memory, minority=rows, first=first, done=done), {}


# ---- the client's side ------------------------------------------------------------------------------------------------


class Pairing:
    """Blocks whose pairs are drawn by themselves.

    Parameters
    ----------
    blocks : Blocks
    minority_bytes : int
        The most that the minority's rows may take on a block, if there are several.
    before : int
        Steps of earlier fits, whose pairs are not to be drawn again.

    Attributes
    ----------
    sign : int
        1 where the minority is positive, -1 where it is negative.
    n_pairs : int
    n_working : int
        Blocks that have pairs.
    offsets, majority_offsets : ndarray of shape (n_blocks + 1,), int64
        Rows of the smaller and of the larger class before each block.
    n_parts : int
        Of the minority.
    part : int
        The one at hand; -1 before the first.
    """

    def __init__(self, blocks: Blocks, minority_bytes: int, before: int = 0):
        self.blocks = blocks.without_memory()
        self.sign = 1 if blocks.n_pos <= blocks.n_neg else -1
        self.n_pairs = blocks.n_pos * blocks.n_neg
        n_pos, n_rows_of = np.array([(i.n_pos, i.n_samples) for i in blocks.infos], dtype=np.int64).T
        own, others = (n_pos, n_rows_of - n_pos) if self.sign > 0 else (n_rows_of - n_pos, n_pos)
        self.n_working = int((others > 0).sum())
        self.offsets, self.majority_offsets = np.cumsum([0, *own]), np.cumsum([0, *others])
        size = self.blocks.reduce(sort_rows, self.sign)["bytes"]
        parts = -(-size // minority_bytes) if blocks.n_blocks > 1 else 1
        self.n_parts = min(int(self.offsets[-1]), max(1, parts))
        self.part = -1
        self._before = before

    def bring(self, part: int) -> None:
        """Send a part of the minority to the blocks, unless they have it."""
        if part == self.part:
            return
        first, end = (int(self.offsets[-1]) * p // self.n_parts for p in (part, part + 1))
        parts = self.blocks.reduce(collect, self.sign, first, end, self.offsets)["X"]
        stack: Callable[..., Any] = sp.vstack if sp.issparse(parts[0]) else np.concatenate
        rows = as_rows(parts[0] if len(parts) == 1 else stack(parts))
        self.blocks.reduce(receive, tuple(rows), first, np.full(self.n_parts, self._before))
        self.part = part

    def shares(self, n_steps: int) -> np.ndarray:
        """Return each block's part of the steps, by its number of pairs: int64 of shape (n_blocks,)."""
        total = int(self.majority_offsets[-1])
        return np.diff([n_steps * int(before) // total for before in self.majority_offsets])

    def reduce(self, step: Step, *args: Any) -> Summary:
        """Run a step on the blocks."""
        return self.blocks.reduce(step, *args)


@dataclass(frozen=True)
class Combination:
    """How the blocks' changes become one.

    Attributes
    ----------
    sigma : float
        By how much a block overstates its own changes while it works: they are to be safe to add up.
    gamma : float
        The share of its changes that it keeps.
    alone : bool
        There is one block only: the sequential algorithm.
    """

    sigma: float
    gamma: float
    alone: bool

    @classmethod
    def of(cls, combine: str, pairing: Pairing) -> "Combination":
        """Return the rule for the blocks that have pairs; combine is one of `COMBINATIONS`."""
        k = pairing.n_working
        sigma, gamma = (float(k), 1.0) if combine == "add" else (1.0, 1.0 / k)
        return cls(sigma, gamma, pairing.blocks.n_blocks == 1)

    def moved(self, mine: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Return the block's term of a sum over blocks, when its own copy of the sum went from before to after."""
        return after if self.alone else mine + (self.gamma / self.sigma) * (after - before)


def key_of(block: Block, seed: int, part: int) -> int:
    """Return the key of the block's pairs with a part of the minority."""
    return block_seed(seed, part, block.index)


def check(blocks: Blocks, steps: int | str | None, epochs: int | None, minority_bytes: int, before: int) -> None:
    """Refuse what the solvers over single pairs cannot use.

    Raises
    ------
    InputError
        As `check_options`; and if rows have weights, or pairs or steps, those before included, would be 2**63 or more.
    """
    check_options(steps, epochs, minority_bytes)
    if blocks.has_weights:
        raise InputError("solvers over single pairs take no sample weights")
    n_pairs = blocks.n_pos * blocks.n_neg
    wanted = n_pairs if steps == ALL else int(steps or 0) + (epochs or 0) * blocks.n_samples
    if max(n_pairs, before + wanted) >= LIMIT:
        raise InputError(f"{n_pairs} pairs and {before + wanted} steps: both are numbered below 2**63")


def check_options(steps: int | str | None, epochs: int | None, minority_bytes: int | None) -> None:
    """Refuse options out of range, without the data.

    Raises
    ------
    InputError
        If both `steps` and `epochs` are given, or anything is not a number above 0 (or, for `steps`, ``"all"``).
    """
    if steps is not None and epochs is not None:
        raise InputError("steps and epochs both say how long to go on: give one of them")
    if steps != ALL:
        _check_count("steps", steps, f"or {ALL!r}, ")
    _check_count("epochs", epochs)
    _check_count("minority_bytes", minority_bytes)


def _check_count(name: str, value: object, also: str = "") -> None:
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if value is not None and not (whole and 1 <= value < LIMIT):  # type: ignore[operator]
        raise InputError(f"{name} is {value!r}; an integer above 0 and below 2**63, {also}is needed")


def plan(blocks: Blocks, steps: int | str | None, epochs: int | None) -> Iterator[int]:
    """Yield the steps of each round.

    An epoch is n_samples steps, and a round is an epoch. So many `steps` are one round where there is one block; several blocks
    have to hear of each other, and take rounds of n_samples, the last one shorter. With neither it goes on for ever.
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
