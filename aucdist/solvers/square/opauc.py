"""OPAUC: one pass over the rows; each row is paired with all earlier rows of the other class by their mean and covariance.

After Gao, Jin, Zhu & Zhou, "One-pass AUC optimization" (ICML 2013), for ``lam/2 |w|^2 + mean pairwise square``. The paper halves
the square, so its step with eta and lam is the step here with eta/2 and 2 lam. Up to `MOST_FEATURES` features the covariances are
full matrices. Beyond, random projections sketch them; the paper projects on Gaussian vectors, this module on random signs, which
give the same mean and a smaller variance.

With one block this is the published algorithm, in an order drawn anew for each epoch; further epochs keep the statistics of the
first. With several, each block keeps the statistics of its own rows, and the weights are averaged in proportion to the blocks'
numbers of rows.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary, block_seed
from aucdist.errors import InputError
from aucdist.kernels.opauc import opauc_full, opauc_sketched
from aucdist.kernels.square_epochs import shuffle
from aucdist.objectives.pairwise_square import VALUE_AT_ZERO
from aucdist.parameters import Constraints, above_0, count
from aucdist.solvers.base import Round, Solver
from aucdist.solvers.online import finite
from aucdist.solvers.rounding import Rounding
from aucdist.solvers.square.descent import certified_round, moments_of
from aucdist.solvers.square.exact import MOST_FEATURES
from aucdist.solvers.square.rows import squared_lengths

RANK = 50
"""Default rank of the sketch, as in the paper."""


@dataclass(frozen=True, eq=False)
class FullStatistics:
    """Weight, sum and sum of outer products of the rows so far, class -1 first."""

    counts: np.ndarray
    sums: np.ndarray
    squares: np.ndarray

    def step(self, block: Block, order: np.ndarray, w: np.ndarray, eta: float, lam: float) -> None:
        """Take one gradient step for each row, in this order; w and the statistics are updated in place."""
        weights = block.weights()
        opauc_full(block.rows, order, block.y, weights, eta, lam, self.counts, self.sums, self.squares, w)

    def means(self) -> np.ndarray:
        """Return the class means, of shape (2, n_features); 0 for a class without rows so far."""
        return self.sums / np.where(self.counts > 0.0, self.counts, 1.0)[:, np.newaxis]


@dataclass(frozen=True, eq=False)
class SketchedStatistics:
    """Sketches of the rows so far, as in `opauc_sketched`: random state, sketches, sums of the signs, Gram matrices."""

    draws: np.ndarray
    sketch: np.ndarray
    totals: np.ndarray
    gram: np.ndarray

    def step(self, block: Block, order: np.ndarray, w: np.ndarray, eta: float, lam: float) -> None:
        """Take one gradient step for each row, in this order; w and the statistics are updated in place."""
        opauc_sketched(
            block.rows, order, block.y, block.weights(), squared_lengths(block), eta, lam,
            self.draws, self.sketch, self.totals, self.gram, w,
        )  # fmt: skip

    def means(self) -> np.ndarray:
        """Return the class means, of shape (2, n_features); 0 for a class without rows so far."""
        counts = self.totals[:, 0]
        return self.sketch[:, :, 0] / np.where(counts > 0.0, counts, 1.0)[:, np.newaxis]


def empty_statistics(n_features: int, rank: int | str | None, seed: int) -> FullStatistics | SketchedStatistics:
    """Return the statistics before the first row.

    Parameters
    ----------
    rank : int, "full" or None
        The rank of the sketch, or ``"full"`` for full covariances. None means full covariances up to `MOST_FEATURES` features,
        and a sketch of rank `RANK` beyond.
    seed : int
        Seed of the sketch.
    """
    if rank is None:
        rank = "full" if n_features <= MOST_FEATURES else RANK
    if isinstance(rank, str):
        d = n_features
        return FullStatistics(np.zeros(2), np.zeros((2, d)), np.zeros((2, d, d)))
    m = 1 + rank
    draws = np.array([seed], dtype=np.uint64)
    return SketchedStatistics(draws, np.zeros((2, n_features, m)), np.zeros((2, m)), np.zeros((2, 2, m, m)))


def check_rank(rank: int | str | None, n_features: int) -> None:
    """Raise an error for full covariances of more than `MOST_FEATURES` features.

    Raises
    ------
    InputError
        The message names the alternatives.
    """
    if isinstance(rank, str) and n_features > MOST_FEATURES:
        raise InputError(
            f"rank='full' keeps two matrices of {n_features} x {n_features} numbers; it is for up to {MOST_FEATURES} features. "
            "Leave rank out for a sketch, or use solver='tpauc' or 'exact', which need neither"
        )


def longest_step(longest: float, lam: float) -> float:
    """Return a step length that is certain not to diverge, for rows of squared length up to `longest`.

    The distance of a row to a class mean is at most twice the longest row, and a covariance is at most its squared length.
    """
    return 1.0 / (10.0 * longest + lam)


def longest_row(block: Block, memory: None) -> tuple[None, Summary]:
    """Return the largest weight times squared length of a row."""
    return None, {"longest": [float((block.weights() * squared_lengths(block)).max(initial=0.0))]}


def opauc_epoch(
    block: Block, memory: FullStatistics | SketchedStatistics | None, w: np.ndarray, eta: float, lam: float,
    rank: int | str | None, seeds: tuple[int, int], n_samples: int,
) -> tuple[FullStatistics | SketchedStatistics, Summary]:  # fmt: skip
    """Take one step for each of the block's rows, in a random order, and return the block's part of the averaged weights."""
    sketch_seed = block_seed(seeds[0], 0, block.index)
    statistics = empty_statistics(block.n_features, rank, sketch_seed) if memory is None else copy.deepcopy(memory)
    order, w = np.empty(block.n_samples, dtype=np.int64), w.copy()
    shuffle(block_seed(*seeds, block.index), order)
    statistics.step(block, order, w, eta, lam)
    return statistics, {"w": block.n_samples / n_samples * w}


@dataclass(frozen=True, eq=False)
class OnePassState:
    """The state of OPAUC between two batches of rows.

    Attributes
    ----------
    w : ndarray of shape (n_features,), float64
    statistics : FullStatistics or SketchedStatistics
        Of the rows so far.
    longest : float
        The largest weight times squared length of a row so far.
    """

    w: np.ndarray
    statistics: FullStatistics | SketchedStatistics
    longest: float = 0.0

    @property
    def threshold(self) -> float:
        """The midpoint between the scores of the two class means."""
        return float(self.statistics.means().mean(axis=0) @ self.w)


def opauc_start(w: np.ndarray, rank: int | str | None, seed: int) -> OnePassState:
    """Return the state before the first batch, at weights w, float64 of shape (n_features,).

    `rank` and `seed` are those of `empty_statistics`.

    Raises
    ------
    InputError
        As in `check_rank`.
    """
    check_rank(rank, len(w))
    return OnePassState(w, empty_statistics(len(w), rank, seed))


def opauc_update(state: OnePassState, block: Block, lam: float, *, eta: float | None = None) -> OnePassState:
    """Return the state after one gradient step for each row of a batch, in the order of the rows.

    Parameters
    ----------
    state : OnePassState
        The state before the batch. Its statistics are updated in place and belong to the returned state.
    block : Block
        The batch.
    lam, eta
        As of `OPAUC`; the default eta comes from all rows so far.
    """
    longest = max(state.longest, *longest_row(block, None)[1]["longest"])
    eta = longest_step(longest, lam) if eta is None else eta
    w = state.w.copy()
    state.statistics.step(block, np.arange(block.n_samples), w, eta, lam)
    return replace(state, w=w, longest=longest)


class OPAUC(Solver):
    """One pass: one gradient step per row and epoch, from the means and covariances so far. See `aucdist.solvers.square.opauc`.

    Parameters
    ----------
    eta : float or None, default=None
        The steps' length. None takes the longest that is sure not to diverge, which is short; trying 2^-10 to 2^2 on features
        scaled to [-1, 1] is what the paper does.
    epochs : int, default=1
        How many times each row is taken.
    rank : int, "full" or None, default=None
        The rank to which covariances are sketched, or whole ones; None is whole up to 1000 features, and 50 beyond.
    """

    name = "opauc"
    objective = "pairwise square"
    random = True
    online = True
    _parameter_constraints: ClassVar[Constraints] = {
        "eta": above_0(optional=True),
        "epochs": count(),
        "rank": count(words=("full",), optional=True),
    }

    def __init__(self, *, eta: float | None = None, epochs: int = 1, rank: int | str | None = None):
        self.eta = eta
        self.epochs = epochs
        self.rank = rank

    def rounds(self, blocks: Blocks, lam: float, start: np.ndarray | None = None, *, seed: int) -> Iterator[Round]:
        """Yield the start, then the weights after each epoch, with their exact objective and its lower bound.

        Only the passes of the algorithm are counted; evaluating the objective takes additional passes.
        """
        check_rank(self.rank, blocks.n_features)
        moments, rounding = moments_of(blocks), Rounding.of(blocks)
        w = np.zeros(blocks.n_features) if start is None else start.astype(np.float64)
        yield (
            Round(w, VALUE_AT_ZERO, 0.0, 0) if start is None else certified_round(blocks, moments, w, lam, rounding, 0)
        )
        own = blocks.without_memory()
        eta = longest_step(max(own.reduce(longest_row)["longest"]), lam) if self.eta is None else self.eta
        for number in range(1, self.epochs + 1):
            w = own.reduce(opauc_epoch, w, eta, lam, self.rank, (seed, number), blocks.n_samples)["w"]
            yield certified_round(blocks, moments, w, lam, rounding, number)

    def learn(self, stream: Any, block: Block, lam: float, seed: int) -> tuple[OnePassState, float]:
        """Take a step for each row of a batch; parameters and returns as of `Solver.learn`."""
        if not isinstance(stream, OnePassState):
            stream = opauc_start(getattr(stream, "w", stream), self.rank, seed)
        stream = opauc_update(stream, block, lam, eta=self.eta)
        return finite(stream, self.eta), stream.threshold
