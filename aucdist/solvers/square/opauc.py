"""OPAUC: one pass over the rows, each meeting all earlier rows of the other class through their mean and covariance.

After Gao, Jin, Zhu & Zhou, "One-pass AUC optimization" (ICML 2013), for ``lam/2 |w|^2 + mean pairwise square``; they halve the
square, so a step of theirs with eta and lam is one of ours with eta/2 and 2 lam. The covariances are whole up to
`MOST_FEATURES` features. Beyond, they are sketched by random projections: theirs of Gaussian numbers, ours of signs, which
have the same mean and a smaller variance.

One block is the published algorithm, in an order drawn anew for each epoch; further epochs go on with the statistics of the
first. With several blocks each keeps statistics of its own rows, and the weights are averaged, each block counting by its rows.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary, block_seed
from aucdist.errors import InputError
from aucdist.kernels.opauc import learn_dense, learn_sketched
from aucdist.kernels.square_epochs import shuffle
from aucdist.objectives.pairwise_square import VALUE_AT_ZERO
from aucdist.solvers.base import Round
from aucdist.solvers.rounding import Rounding
from aucdist.solvers.square.descent import measured, moments_of
from aucdist.solvers.square.exact import MOST_FEATURES
from aucdist.solvers.square.rows import squared_lengths

RANK = 50
"""Of the sketch, as in the paper."""


@dataclass(frozen=True, eq=False)
class Whole:
    """Statistics of the rows seen, class -1 first: what they weigh, their sums, the sums of their outer products."""

    counts: np.ndarray
    sums: np.ndarray
    squares: np.ndarray

    def learn(self, block: Block, order: np.ndarray, w: np.ndarray, eta: float, lam: float) -> None:
        """Learn the rows in this order; w and the statistics are updated."""
        weights = block.weights()
        learn_dense(block.rows, order, block.y, weights, eta, lam, self.counts, self.sums, self.squares, w)

    def means(self) -> np.ndarray:
        """Return the class means, of shape (2, n_features); 0 for a class not seen."""
        return self.sums / np.where(self.counts > 0.0, self.counts, 1.0)[:, np.newaxis]


@dataclass(frozen=True, eq=False)
class Sketched:
    """Statistics of the rows seen, as in `learn_sketched`: state of the draws, sketches, sums of the signs, Gram matrices."""

    draws: np.ndarray
    sketch: np.ndarray
    totals: np.ndarray
    gram: np.ndarray

    def learn(self, block: Block, order: np.ndarray, w: np.ndarray, eta: float, lam: float) -> None:
        """Learn the rows in this order; w and the statistics are updated."""
        learn_sketched(
            block.rows, order, block.y, block.weights(), squared_lengths(block), eta, lam,
            self.draws, self.sketch, self.totals, self.gram, w,
        )  # fmt: skip

    def means(self) -> np.ndarray:
        """Return the class means, of shape (2, n_features); 0 for a class not seen."""
        counts = self.totals[:, 0]
        return self.sketch[:, :, 0] / np.where(counts > 0.0, counts, 1.0)[:, np.newaxis]


def nothing_seen(n_features: int, rank: int | str | None, seed: int) -> Whole | Sketched:
    """Return the statistics of no rows.

    Parameters
    ----------
    n_features : int
    rank : int, "full" or None
        Of the sketch; ``"full"`` for whole covariances; None for these up to `MOST_FEATURES` features, else `RANK`.
    seed : int
        Of the sketch.

    """
    if rank is None:
        rank = "full" if n_features <= MOST_FEATURES else RANK
    if isinstance(rank, str):
        d = n_features
        return Whole(np.zeros(2), np.zeros((2, d)), np.zeros((2, d, d)))
    m = 1 + rank
    draws = np.array([seed], dtype=np.uint64)
    return Sketched(draws, np.zeros((2, n_features, m)), np.zeros((2, m)), np.zeros((2, 2, m, m)))


def check_rank(rank: int | str | None, n_features: int) -> None:
    """Refuse whole covariances of too many features.

    Raises
    ------
    InputError
        It names what works.
    """
    if isinstance(rank, str) and n_features > MOST_FEATURES:
        raise InputError(
            f"rank='full' keeps two matrices of {n_features} x {n_features} numbers; it is for up to {MOST_FEATURES} features. "
            "Leave rank out for a sketch, or use solver='tpauc' or 'exact', which need neither"
        )


def opauc(
    blocks: Blocks, lam: float, start: np.ndarray | None = None, *,
    seed: int, eta: float | None = None, epochs: int = 1, rank: int | str | None = None,
) -> Iterator[Round]:  # fmt: skip
    """Learn every row once per epoch.

    Parameters
    ----------
    blocks : Blocks
    lam : float
    start : ndarray of shape (n_features,), optional
        Zero by default.
    seed : int
        Of the order of the rows and of the sketch.
    eta : float, optional
        The steps' length; by default `longest_step`.
    epochs : int
    rank : int, "full" or None
        As in `nothing_seen`.

    Yields
    ------
    Round
        The start, then the weights after each epoch; their exact objective and its bound. The passes are the algorithm's own;
        those that evaluate come on top.
    """
    check_rank(rank, blocks.n_features)
    known, rounding = moments_of(blocks), Rounding.of(blocks)
    w = np.zeros(blocks.n_features) if start is None else start.astype(np.float64)
    yield Round(w, VALUE_AT_ZERO, 0.0, 0) if start is None else measured(blocks, known, w, lam, 0, rounding)
    own = blocks.fresh()
    if eta is None:
        eta = longest_step(max(own.reduce(longest_row)["longest"]), lam)
    for number in range(1, epochs + 1):
        w = own.reduce(epoch, w, eta, lam, rank, (seed, number), blocks.n_samples)["w"]
        yield measured(blocks, known, w, lam, number, rounding)


def longest_step(longest: float, lam: float) -> float:
    """Return a step that is sure not to diverge, for rows of squared length up to `longest`.

    A row is at most twice their length from a mean, and a covariance is at most their square.
    """
    return 1.0 / (10.0 * longest + lam)


def longest_row(block: Block, memory: None) -> tuple[None, Summary]:
    """Find the longest row: weight times squared length."""
    return None, {"longest": [float((block.weights() * squared_lengths(block)).max(initial=0.0))]}


def epoch(
    block: Block, memory: Whole | Sketched | None, w: np.ndarray, eta: float, lam: float, rank: int | str | None,
    seeds: tuple[int, int], n_samples: int,
) -> tuple[Whole | Sketched, Summary]:  # fmt: skip
    """Go through the block's rows once, in an order of the epoch's own."""
    fresh = block_seed(seeds[0], 0, block.index)
    seen = nothing_seen(block.n_features, rank, fresh) if memory is None else copy.deepcopy(memory)
    order, w = np.empty(block.n_samples, dtype=np.int64), w.copy()
    shuffle(block_seed(*seeds, block.index), order)
    seen.learn(block, order, w, eta, lam)
    return seen, {"w": block.n_samples / n_samples * w}


@dataclass(frozen=True, eq=False)
class Stream:
    """What is remembered of rows that come in batches.

    Attributes
    ----------
    w : ndarray of shape (n_features,), float64
    seen : Whole or Sketched
    longest : float
        Of the rows so far: weight times squared length.
    """

    w: np.ndarray
    seen: Whole | Sketched
    longest: float = 0.0

    @property
    def threshold(self) -> float:
        """Midway between the class means' scores."""
        return float(self.seen.means().mean(axis=0) @ self.w)


def begin(w: np.ndarray, rank: int | str | None, seed: int) -> Stream:
    """Return what is remembered of no rows, at weights w, float64 of shape (n_features,); `rank` as in `nothing_seen`.

    Raises
    ------
    InputError
        As in `check_rank`.
    """
    check_rank(rank, len(w))
    return Stream(w, nothing_seen(len(w), rank, seed))


def learn(stream: Stream, block: Block, lam: float, *, eta: float | None = None) -> Stream:
    """Learn the rows of a batch in their order. The statistics of `stream` go over to the stream returned.

    Parameters
    ----------
    stream : Stream
    block : Block
    lam, eta
        As in `opauc`; the default eta is of all rows so far.
    """
    longest = max(stream.longest, *longest_row(block, None)[1]["longest"])
    eta = longest_step(longest, lam) if eta is None else eta
    w = stream.w.copy()
    stream.seen.learn(block, np.arange(block.n_samples), w, eta, lam)
    return replace(stream, w=w, longest=longest)
