"""Subspace descent on the pairwise square, and the variance-reduced gradients that use it.

Each round computes a direction from the gradient and moves to the minimum of the objective in the subspace spanned by that
direction and the last few moves. If the direction is the gradient divided by a fixed positive diagonal and one move is
remembered, this is the preconditioned conjugate gradient method, which `exact` takes beyond `MAX_FEATURES` features. For any
other direction the objective never rises. The blocks keep their rows' scores and how the scores moved, so a round costs one
product X z and one product X'c. Value and gradient are exact over all pairs.

`SVRG` is after Johnson & Zhang, "Accelerating stochastic gradient descent using predictive variance reduction" (NIPS 2013),
with three differences:

* Only the rows' own terms are sampled, in proportion to their curvature, which is the factor times the squared distance to the
  class mean. Each row is drawn as often as this says, rounded up or down (systematic sampling), in a random order. The term of
  the class means and the penalty are the same for all rows and enter every step in full.
* The result of an epoch is the average of the weights over its second half, so the steps can be as long as the mean curvature
  allows.
* The result is used as a direction: the weights move to the minimum in the subspace of this direction and the last moves.

With one block this is SVRG. With several, each block runs an epoch over its own rows with the gradient of all rows. The results
are averaged feature by feature, and each block counts by its curvature along the feature, because a block whose rows lack a
feature carries no information about it. Small or dissimilar blocks cost more rounds but reach the same minimum.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy import ndarray

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary, block_seed
from aucdist.kernels.random import uniform01
from aucdist.papers.epochs import random_order
from aucdist.papers.tpauc.kernels import SquareTerms, square_epoch
from aucdist.papers.tpauc.moments import (
    PairMoments,
    PerClass,
    class_moments,
    lower_bound,
    products_with,
    row_factors,
    squared_distances,
)
from aucdist.parameters import frozen
from aucdist.solvers.base import Round, Solver
from aucdist.solvers.rounding import EPS, Rounding, higher

Direction = Callable[[ndarray], ndarray]

MAX_ERROR = 1e-11
"""The largest change of scores by rounding, as a share of the objective. If rounding may have changed them by more, the scores
are computed again."""

N_MOVES = 10
"""The number of moves that are remembered. They correct the result of an epoch, which is random and slightly biased
with many blocks."""


@frozen
class SquareDescentMemory:
    """The scores that a block keeps between rounds, and how they changed.

    Parameters
    ----------
    share : ndarray of shape (n_rows,), float64
        The weight of each row, divided by the weight of its class over all blocks.
    scores : ndarray of shape (n_rows,), float64
        The scores of the rows at the current weights.
    moves : ndarray of shape (n_directions, n_rows), float64
        The change of the scores along each direction, the newest direction first.
    extra : object
        What the solver that uses the descent keeps in addition.
    """

    share: ndarray
    scores: ndarray
    moves: ndarray
    extra: Any = None


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def score_square_rows(
    block: Block, memory: SquareDescentMemory | None, w: ndarray, weights: PerClass, means: PerClass, n_moves: int
) -> tuple[SquareDescentMemory, Summary]:
    """Compute the scores at w, and return what `move_scores` returns.

    Parameters
    ----------
    block : Block
        The rows.
    memory : SquareDescentMemory or None
        None if there are no scores yet. Otherwise, the new scores replace the old ones, and the moves stay.
    w : ndarray of shape (n_features,), float64
        The weights.
    weights : tuple (float, float)
        The total weights of the classes, the negative class first.
    means : tuple (float, float)
        The scores of the class means at w.
    n_moves : int
        The number of moves that are remembered.
    """
    scores = block.scores(w)
    if memory is None:
        memory = SquareDescentMemory(row_factors(block, weights, 1), scores, np.zeros((n_moves, block.n_samples)))
    memory = replace(memory, scores=scores)
    return memory, _within_classes(block, memory, means)


def move_scores(
    block: Block, memory: SquareDescentMemory, step: ndarray, means: PerClass
) -> tuple[SquareDescentMemory, Summary]:
    """Move the scores along the directions, and return their within-class variance and S w at the new weights.

    `means` holds the scores of the class means at the new weights.
    """
    move = step @ memory.moves
    memory = replace(memory, scores=memory.scores + move, moves=np.vstack([move, memory.moves[1:-1]]))
    return memory, _within_classes(block, memory, means)


def _within_classes(block: Block, memory: SquareDescentMemory, means: PerClass) -> Summary:
    """Return the block's part of w'S w and of S w, with S the sum of the two class covariances."""
    centred = memory.scores - np.where(block.y > 0, means[1], means[0])
    coefs = memory.share * centred
    return {"variance": float(coefs @ centred), "covariance_w": block.sums(coefs)}


def score_direction(
    block: Block, memory: SquareDescentMemory, z: ndarray, means: ndarray
) -> tuple[SquareDescentMemory, Summary]:
    """Compute the change of the scores along a new direction z, and return the covariance matrix of all changes.

    `means` has one row per direction: the change of the scores of the class means, negative class first.
    """
    moves = np.vstack([block.scores(z), memory.moves])
    centred = moves - np.where(block.y > 0, means[:, 1:], means[:, :1])
    return replace(memory, moves=moves), (centred * memory.share) @ centred.T


# ---- rounds: run by the client ----------------------------------------------------------------------------------------


def moments_of_pairs(blocks: Blocks, *, full: bool = False) -> PairMoments:
    """Return the moments of all pairs, by one reduction. Unless `full`, only the diagonal of the covariance is computed."""
    classes = {"neg": -1, "pos": 1}
    moments = blocks.sum(lambda block: {name: class_moments(block, y, full=full) for name, y in classes.items()})
    return PairMoments.of(**moments)


def within_class_covariance(blocks: Blocks, moments: PairMoments, w: ndarray) -> tuple[float, ndarray]:
    """Return w'S w, which is the within-class variance of the scores, and S w, by one pass."""
    means = moments.scores_of_means(w)
    summary = blocks.sum(lambda block: score_square_rows(block, None, w, moments.weights, means, 0)[1])
    return summary["variance"], summary["covariance_w"]


def errors_of_square(
    rounding: Rounding, w: ndarray, lam: float, primal: float, slope: ndarray, moments: PairMoments, drift: float = 0.0
) -> tuple[float, float]:  # fmt: skip
    """Return bounds on the rounding errors of the objective, and of the lower bound that its gradient gives.

    The class means are sums over rows, so the score of a mean is off by the rounding of such a sum. A score's distance from its
    class's mean has this error as well, and so do the products of distances and values in the gradient.

    Parameters
    ----------
    rounding : Rounding
        The sizes of the rows.
    w : ndarray
        The weights.
    lam : float
        The regularisation strength.
    primal : float
        The objective at w.
    slope : ndarray of shape (n_features,)
        The gradient at w.
    moments : PairMoments
        The moments. If they have full scatter matrices, the value is computed from these.
    drift : float, default=0.0
        A bound on the additional error of scores that are sums of moves.
    """
    miss = abs(1.0 - float(w @ moments.difference))
    deviation = np.sqrt(2.0 * max(primal, 0.0))  # The variance is at most the objective.
    if moments.covariance.ndim == 2:  # columns that nearly cancel in the scores do not cancel in scatter matrices
        deviation = max(deviation, float(np.sqrt(np.maximum(np.diag(moments.covariance), 0.0)) @ np.abs(w)))
    error = rounding.score(w) + rounding.over_rows * rounding.largest_score(w) + drift
    sums = rounding.over_rows + rounding.over_columns
    value_error = 4.0 * miss * error + 2.0 * (deviation + error) * error + 2.0 * sums * (primal + deviation**2)
    slope_error = (2.0 * (4.0 * error + 4.0 * sums * deviation + 2.0 * sums * miss)) * rounding.largest
    slope_error = slope_error + 2.0 * EPS * lam * np.abs(w)
    value_error += rounding.penalty(w, 0.5 * lam * float(w @ w))
    return value_error, value_error + rounding.half_square(slope, slope_error) / lam


def certified_round(blocks: Blocks, moments: PairMoments, w: ndarray, lam: float, passes: int) -> Round:
    """Return w as a round, with its exact objective over all pairs and the lower bound from its gradient, by one pass.

    If w has diverged, the objective is not finite.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        variance, covariance_w = within_class_covariance(blocks, moments, w)
        primal, slope = moments.value_and_gradient(w, variance, covariance_w, lam)
        primal_error, dual_error = errors_of_square(Rounding.of(blocks), w, lam, primal, slope, moments)
        bound = lower_bound(primal, slope, lam)
        return Round(w, primal, bound, passes, primal_error=primal_error, dual_error=dual_error)


class SubspaceDescent:
    """The state of a descent: weights, objective and gradient. The scores stay with the blocks.

    Parameters
    ----------
    blocks : Blocks
        The rows.
    moments : PairMoments
        The moments of both classes.
    lam : float
        The regularisation strength.
    w : ndarray of shape (n_features,), float64
        The weights to start from.
    n_moves : int, default=1
        The number of last moves that are remembered. Each takes one number per row and one per feature.
    """

    def __init__(self, blocks: Blocks, moments: PairMoments, lam: float, w: ndarray, n_moves: int = 1):
        self.rounding = Rounding.of(blocks)
        self.blocks, self.moments, self.lam, self.w = blocks.without_memory(), moments, lam, w
        self.moves = np.zeros((n_moves, len(w)))
        self._errors = np.zeros(n_moves)
        self._score()

    def rounds(self, direction: Direction, passes: float, per_round: float) -> Iterator[Round]:
        """Yield a round at the current weights, then one after each move, until the weights no longer change.

        Parameters
        ----------
        direction : callable
            Takes the gradient and returns the direction to search along, both of shape (n_features,).
        passes, per_round : float
            The passes spent before the first round, and the passes of each round.
        """
        dual = (0.0, 0.0)
        while True:
            primal_error, error = self._bounds()
            if primal_error > MAX_ERROR * self.primal and self._drift > self.rounding.score(self.w):
                self._score()
                passes += 1
                primal_error, error = self._bounds()
            dual = higher(dual, (lower_bound(self.primal, self.gradient, self.lam), error))
            yield Round(
                self.w.copy(), self.primal, dual[0], math.ceil(passes), primal_error=primal_error, dual_error=dual[1]
            )
            before = self.w
            self._move(direction(self.gradient))
            passes += per_round
            if np.array_equal(before, self.w):
                return

    def _bounds(self) -> tuple[float, float]:
        return errors_of_square(self.rounding, self.w, self.lam, self.primal, self.gradient, self.moments, self._drift)

    def _move(self, z: ndarray) -> None:
        """Move to the minimum in the subspace of z and the last moves."""
        directions = np.vstack([z, self.moves])
        covariance = self.blocks.reduce(score_direction, z, directions @ self.moments.means.T)
        between = directions @ self.moments.difference
        curvature = 2.0 * (covariance + np.outer(between, between)) + self.lam * (directions @ directions.T)
        # All directions are scaled, because the moves are 0 in the first rounds and tiny in the last ones.
        size = np.sqrt(np.diag(curvature))
        size[size == 0.0] = 1.0
        slopes = directions @ self.gradient
        step = -np.linalg.lstsq(curvature / np.outer(size, size), slopes / size, rcond=None)[0] / size
        self.moves = np.vstack([step @ directions, self.moves[:-1]])
        # This bounds how far the scores of the blocks are from those at w. Weights and moves that were once large leave errors
        # that the present weights and moves do not show.
        direction_errors = np.append(self.rounding.score(directions[0]), self._errors)
        reach = np.array([self.rounding.largest_score(direction) for direction in directions])
        move_error = float(np.abs(step) @ (direction_errors + 2.0 * (len(step) + 1) * EPS * reach))
        self._errors = np.append(move_error, self._errors[:-1])
        self._drift += move_error + EPS * (
            self.rounding.largest_score(self.w) + self.rounding.largest_score(self.w + self.moves[0])
        )
        self.w = self.w + self.moves[0]
        self._take(self.blocks.reduce(move_scores, step, self.moments.scores_of_means(self.w)))

    def _score(self) -> None:
        """Compute the scores, the objective and the gradient at the weights."""
        moments, self._drift = self.moments, 0.0
        means = moments.scores_of_means(self.w)
        self._take(self.blocks.reduce(score_square_rows, self.w, moments.weights, means, len(self.moves)))

    def _take(self, summary: Summary) -> None:
        """Set the objective and the gradient, given the variance of the scores within the classes."""
        variance, covariance_w = summary["variance"], summary["covariance_w"]
        self.primal, self.gradient = self.moments.value_and_gradient(self.w, variance, covariance_w, self.lam)


@frozen
class RowSampling:
    """The sampling probabilities and step lengths of a block's rows.

    Parameters
    ----------
    edges : ndarray of shape (n_rows,), float64
        How often the rows up to each row are drawn in an epoch, on average: running sums of n_rows times the probabilities.
    factors : ndarray of shape (n_rows,), float64
        The curvature factor of each row, divided by its sampling probability.
    products : ndarray of shape (n_rows, 2), float64
        Inner products of the rows with the two class means.
    curvature : ndarray of shape (n_features,), float64
        The block's share of the objective's second derivative along each feature.
    eta : float
        Length of the steps.
    """

    edges: ndarray
    factors: ndarray
    products: ndarray
    curvature: ndarray
    eta: float

    def draw(self, seed: int) -> ndarray:
        """Return n_rows rows in random order. Each occurs n_rows times its probability often, rounded up or down."""
        counts = np.diff(np.floor(self.edges + uniform01(seed)[1]), prepend=0.0).astype(np.int64)
        return np.repeat(np.arange(len(counts)), counts)[random_order(seed, len(counts))]


def prepare_sampling(
    block: Block, memory: SquareDescentMemory, moments: PairMoments, n_samples: int, lam: float
) -> tuple[SquareDescentMemory, Summary]:
    """Compute the sampling probabilities of the rows. The moments and `n_samples` are those of all rows."""
    n, means = block.n_samples, moments.means
    products = products_with(block, means)
    spreads = memory.share * n_samples * squared_distances(block, means, products)
    mean = spreads.sum() / max(n, 1)
    edges = np.cumsum(spreads if mean > 0.0 else np.ones(n))
    edges = np.minimum(edges * (n / edges[-1:]), n)
    edges[-1:] = n  # rounding can make the last edge smaller than n
    # A row's probability is its spread / (n mean), so this is 2 r_t / (n probability). Rows that are never drawn need no
    # factor.
    factors = 2.0 * memory.share * n_samples * mean / np.where(spreads > 0.0, spreads, np.inf)
    difference = moments.difference
    eta = 1.0 / (2.0 * mean + 2.0 * (difference @ difference) + lam)
    curvature = n / n_samples * (2.0 * difference**2 + lam)
    for label, mean_of_all, weight in zip((-1, 1), means, moments.weights, strict=True):
        class_sums = class_moments(block, label, full=False)
        curvature += 2.0 * (class_sums.scatter + class_sums.weight * (class_sums.mean - mean_of_all) ** 2) / weight
    return replace(memory, extra=RowSampling(edges, factors, products, curvature, eta)), curvature


def svrg_epoch(
    block: Block, memory: SquareDescentMemory, means: ndarray, slope: ndarray, lam: float, seeds: tuple[int, int]
) -> Summary:
    """Run an epoch over the block's rows, from the weights whose gradient is `slope`, and return the change of the weights."""
    n, sampling, u = block.n_samples, memory.extra, np.zeros(block.n_features)
    if n:
        basis = np.vstack([means, slope])
        products = np.hstack([sampling.products, products_with(block, slope[np.newaxis])])
        terms = SquareTerms(sampling.factors, products, basis, basis @ basis.T, sampling.eta, lam, n // 2)
        order = sampling.draw(block_seed(*seeds, block.index))
        square_epoch(block.rows, order, block.y, terms, u.copy(), u)
    return u * sampling.curvature


class SVRG(Solver):
    """Stochastic variance-reduced gradients, with an epoch of n_samples steps in each round (Johnson & Zhang, NIPS 2013)."""

    name = "svrg"
    objective = "pairwise square"
    is_random = True

    def rounds(self, blocks: Blocks, lam: float, start: ndarray | None = None, *, seed: int) -> Iterator[Round]:
        """Yield the weights after each epoch, their exact objective, and the best lower bound so far.

        A round counts as 2 3/4 passes: 1 for the search and the gradient, and 1 3/4 for the epoch. An epoch takes two inner
        products for each row and adds the row to one vector, or in its second half to two.

        Parameters
        ----------
        blocks : Blocks
            The rows, of both classes.
        lam : float
            The regularisation strength.
        start : ndarray of shape (n_features,), optional
            The weights to start from.
        seed : int
            The seed of the rows that are drawn.

        Yields
        ------
        Round
        """
        moments = moments_of_pairs(blocks)
        w = np.zeros(blocks.n_features) if start is None else start.astype(np.float64)
        descent = SubspaceDescent(blocks, moments, lam, w, N_MOVES)
        curvature = descent.blocks.reduce(prepare_sampling, moments, blocks.n_samples, lam)
        epochs = 0

        def direction(slope: ndarray) -> ndarray:
            """Return the direction of an epoch of SVRG."""
            nonlocal epochs
            epochs += 1
            reached: ndarray = descent.blocks.reduce(svrg_epoch, moments.means, slope, lam, (seed, epochs))
            return reached / curvature

        yield from descent.rounds(direction, passes=4, per_round=2.75)
