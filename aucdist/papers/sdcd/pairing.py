"""Draw pairs of a row of the smaller class (the minority) and a row of the larger class, for all solvers that sample pairs.

A block pairs its rows of the larger class with all rows of the minority, so that every pair belongs to one block. The rows of
the minority are collected once and sent to all blocks.

The rows of both classes are sorted by group (`aucdist.pairs.groups`). With grades, a row occurs once for each of its groups.
Without groups, all rows belong to one group. A group may have rows in several blocks."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy import ndarray

from aucdist.data.block import Block, stacked
from aucdist.engine.blocks import Blocks, Summary, block_seed
from aucdist.errors import InputError
from aucdist.kernels.rows import Rows
from aucdist.pairs.groups import PairGroups, rows_in_pairs, smaller_class
from aucdist.pairs.loss import group_slices
from aucdist.papers.sdcd.kernels import ONES, PairPlaces, PairRows, draw_any, draw_in_order
from aucdist.parameters import LARGEST_INTEGER, count, frozen, keyword_parameters
from aucdist.solvers.base import Round, Solver
from aucdist.solvers.rounding import EPS, Rounding

COMBINATIONS = ("add", "average")
ALL = "all"

PAIRS_AT_ONCE = 2**14
"""The number of pairs that are drawn at a time. They fit into the second-level cache of a core."""


@frozen
class SamplingMemory:
    """The memory of a block between rounds.

    Parameters
    ----------
    majority : ndarray of shape (n_majority,), int64
        The positions of the block's rows of the larger class.
    group_numbers : ndarray of shape (n_majority,), int32
        The number of the group of each row of the larger class, ascending.
    minority : Rows or None
        All rows of the smaller class.
    steps_taken : int
        The number of steps that the block has taken.
    places : PairPlaces
        The pairs of the block. None until the block has received the minority.
    weights : tuple (ndarray, ndarray)
        The weights of the minority, and of the larger class; of length 0 if each pair has the weight 1.
    state : object
        What the solver keeps in addition; None at first.
    """

    majority: ndarray
    group_numbers: ndarray
    minority: Rows | None = None
    steps_taken: int = 0
    places: PairPlaces = None
    weights: tuple[ndarray, ndarray] = (ONES, ONES)
    state: Any = None

    def rows(self, block: Block, sign: int) -> PairRows:
        """Return the block's pairs in the form that the kernels read."""
        return PairRows(self.minority, block.rows, len(self.majority), sign, *self.weights)

    def after(self, turn: "Turn", block: Block, state: Any) -> "SamplingMemory":
        """Return the memory after the block's steps of a round."""
        return replace(self, steps_taken=self.steps_taken + int(turn.steps_of_blocks[block.index]), state=state)


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def collect_minority(
    block: Block, memory: None, sign: int, groups: PairGroups | None
) -> tuple[SamplingMemory, Summary]:
    """Find the rows of both classes that are in pairs, and return those of the smaller class and the numbers of their groups."""
    (minority, minority_numbers), (majority, numbers) = (rows_in_pairs(block, label, groups) for label in (sign, -sign))
    weights = ONES if groups is None else block.weights()[majority] * groups.factor[numbers]
    return SamplingMemory(majority, numbers, weights=(ONES, weights)), [(block.take(minority), minority_numbers)]


def receive_minority(
    block: Block, memory: SamplingMemory, rows: Rows, weights: ndarray, starts: ndarray
) -> tuple[SamplingMemory, Summary]:
    """Keep all rows of the minority, and return the number of the block's pairs.

    Parameters
    ----------
    block : Block
        The rows.
    memory : SamplingMemory
        The memory of the block.
    rows : Rows
        The rows.
    weights : ndarray
        The weights of the rows; of length 0 if each pair has the weight 1.
    starts : ndarray of shape (n_groups + 1,), int64
        Where the rows of each group begin and end.
    """
    bounds, numbers = group_slices(memory.group_numbers)
    n_minority = starts[numbers + 1] - starts[numbers]
    before = np.append(0, np.cumsum(np.diff(bounds) * n_minority))
    places = PairPlaces(before, bounds, starts[numbers], n_minority, memory.majority)
    memory = replace(memory, minority=rows, places=places, weights=(weights, memory.weights[1]))
    return memory, [int(places.before[-1])]


# ---- the client's side ------------------------------------------------------------------------------------------------


class Pairing:
    """Blocks in the state that is needed to draw single pairs.

    Parameters
    ----------
    blocks : Blocks
        The rows, of both classes.
    groups : PairGroups, optional
        The pairs, if rows have groups, grades or weights.

    Attributes
    ----------
    sign : int
        1 if the minority is positive, -1 if it is negative.
    pair_weight : float
        The weight of all pairs, which is their number if all have the weight 1.
    n_working : int
        The number of blocks that have pairs.
    """

    def __init__(self, blocks: Blocks, groups: PairGroups | None = None):
        self.blocks = blocks.without_memory()
        self.sign = smaller_class(groups or blocks)
        self.pair_weight = blocks.n_pos * blocks.n_neg if groups is None else groups.pair_weight
        rows, numbers_of_rows = zip(*self.blocks.reduce(collect_minority, self.sign, groups), strict=True)
        numbers = np.concatenate(numbers_of_rows)
        minority = stacked(rows).take(np.argsort(numbers, kind="stable"))
        weights = ONES if groups is None else minority.weights()
        starts = np.append(0, np.cumsum(np.bincount(numbers)))
        sizes = self.blocks.reduce(receive_minority, minority.rows, weights, starts)
        self.n_working, self._pairs_before = np.count_nonzero(sizes), np.cumsum([0, *sizes])

    def steps(self, seed: int, scale: float, combine: str = "add", **kind: bool) -> "PairSteps":
        """Return the steps on these blocks. `combine` is one of `COMBINATIONS`, and `kind` has other values of `PairSteps`."""
        k = float(self.n_working)
        sigma, gamma = (k, 1.0) if combine == "add" else (1.0, 1.0 / k)
        return PairSteps(seed, self.sign, scale, sigma, gamma, self.blocks.n_blocks == 1, **kind)

    def steps_of_blocks(self, n_steps: int) -> ndarray:
        """Return how many of the steps each block takes, in proportion to its pairs: int64, of shape (n_blocks,)."""
        total = int(self._pairs_before[-1])
        return np.diff([n_steps * int(before) // total for before in self._pairs_before])


@frozen
class PairSteps:
    """The parameters of the steps of all rounds, and how the changes that the blocks make are combined.

    Parameters
    ----------
    seed : int
        The seed of the random numbers.
    sign : int
        The label of the minority, -1 or +1.
    scale : float
        lam. For steps in the dual, it is multiplied by the weight of all pairs.
    sigma : float
        The factor by which a block overstates its own changes while it works, so that all changes can be added up.
    gamma : float
        The share of its changes that a block retains.
    alone : bool
        Whether there is only one block, so that the algorithm is sequential.
    shuffled : bool
        Whether pairs are taken in a random order. Otherwise, they are drawn independently of each other.
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

    def moved(self, own_part: ndarray, before: ndarray, after: ndarray) -> ndarray:
        """Return a block's term of a sum over blocks after its copy of the sum has changed from `before` to `after`."""
        return after if self.alone else own_part + (self.gamma / self.sigma) * (after - before)

    def draws(self, block: Block, memory: SamplingMemory, turn: "Turn") -> Iterator[tuple[int, ndarray]]:
        """Yield the pairs of the block's steps of a round, `PAIRS_AT_ONCE` at a time, after the number of steps before them.

        The same array is overwritten each time.
        """
        n_steps, key = int(turn.steps_of_blocks[block.index]), block_seed(self.seed, 0, block.index)
        first, buffer = memory.steps_taken, np.empty((min(n_steps, PAIRS_AT_ONCE), 3), dtype=np.int64)
        for taken in range(0, n_steps, PAIRS_AT_ONCE):
            drawn = buffer[: n_steps - taken]
            (draw_in_order if self.shuffled else draw_any)(key, first + taken, memory.places, drawn)
            yield taken, drawn


@frozen
class Turn:
    """The steps of the blocks in a round.

    Parameters
    ----------
    number : int
        The number of the round, counted from 1.
    steps_of_blocks : ndarray of shape (n_blocks,), int64
        The steps that each block takes.
    taken : int
        The steps of all rounds so far, these included.
    passes : int
        The passes of these steps: two rows are read for a step, and computing the objective takes half a pass in each round.
    """

    number: int
    steps_of_blocks: ndarray
    taken: int
    passes: int


@keyword_parameters(steps=count(words=(ALL,), optional=True), epochs=count(optional=True))
class PairSolver(Solver):
    """A solver that draws pairs. `steps` or `epochs` says how many.

    Parameters
    ----------
    steps : int, "all" or None, default=None
        The number of pairs to draw in all: T. ``"all"`` is the number of pairs, the paper's choice: n_pos * n_neg without
        groups.
    epochs : int or None, default=None
        The number of pairs in units of n_samples.
    """

    objective = "pairwise hinge"
    is_random = True
    accepts_start = False
    default_epochs: ClassVar[int | None] = None
    """The number of epochs if neither `steps` nor `epochs` is given; None for no limit."""

    steps: int | str | None = None
    epochs: int | None = None

    def check_parameters(self) -> None:
        """Check the parameters of the solver. Only one of them may set the number of pairs."""
        super().check_parameters()
        if self.steps is not None and self.epochs is not None:
            raise InputError("steps and epochs both set the number of pairs: give one of them")

    def turns(self, blocks: Blocks, groups: PairGroups | None = None) -> tuple[Pairing, Iterator[Turn]]:
        """Return the blocks whose pairs are drawn, and their rounds.

        With `epochs`, a round is an epoch of n_samples steps. With `steps`, one block takes all of them in one round; several
        blocks exchange their changes after every n_samples steps, and the last round is shorter.

        Parameters
        ----------
        blocks : Blocks
            The rows.
        groups : PairGroups, optional
            The groups, if pairs are within groups or rows have grades or weights.
        """
        n_pairs, epochs, n = blocks.n_pos * blocks.n_neg, self.epochs, blocks.n_samples
        if groups is not None:  # a pair whose grades differ by several steps counts once for each step
            n_pairs = sum(int(p) * int(n) for p, n in groups.counts.T)
        if self.steps is None and epochs is None:
            epochs = self.default_epochs
        total: float = math.inf if epochs is None else epochs * n
        if self.steps is not None:
            total = n_pairs if self.steps == ALL else int(self.steps)
        numbered = 0 if total == math.inf else int(total)
        if max(n_pairs, numbered) >= LARGEST_INTEGER:
            raise InputError(
                f"there are {n_pairs} pairs and {numbered} steps, but at most 2**63 of each can be numbered: lower `epochs`"
            )
        pairing = Pairing(blocks, groups)

        def turns() -> Iterator[Turn]:
            """Yield the turns, each with its number of steps."""
            size, n_left, taken = total if self.steps is not None and blocks.n_blocks == 1 else n, total, 0
            for number in itertools.count(1):
                if n_left <= 0:
                    return
                n_steps = int(min(size, n_left))
                n_left, taken = n_left - n_steps, taken + n_steps
                passes = math.ceil(2 * taken / n + 0.5 * number)
                yield Turn(number, pairing.steps_of_blocks(n_steps), taken, passes)

        return pairing, turns()


def hinge_dual(rounding: Rounding, w: ndarray, active: float, lam: float, steps: int) -> tuple[float, float]:
    """Return the dual value of the hinge's pairs, and a bound on its rounding error.

    The weights are sums of steps, and the value is computed from the variables after these steps. Each step may have rounded an
    entry of w, which is never larger than ``2 active largest / lam``.

    Parameters
    ----------
    rounding : Rounding
        The sizes of the rows.
    w : ndarray
        The weights.
    active : float
        The mean of the variables.
    lam : float
        The regularisation strength.
    steps : int
        The number of steps that led to w.
    """
    relative = EPS * (steps + len(w))
    away = (4.0 * relative * active) * rounding.largest  # the error of lam w
    error = relative * active + rounding.half_square(lam * w, away) / lam
    return active - 0.5 * lam * float(w @ w), error


def pairwise_round(
    rounding: Rounding, w: ndarray, primal: float, passes: int, bound: tuple[float, float] = (0.0, 0.0)
) -> Round:
    """Return w as a round, given its exact objective over all pairs, and the lower bound with its rounding error."""
    error = rounding.pair_hinge(w, primal) + rounding.penalty(w, primal)
    return Round(w.copy(), primal, bound[0], passes, primal_error=error, dual_error=bound[1])
