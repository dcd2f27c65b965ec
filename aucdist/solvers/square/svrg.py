"""Stochastic variance reduced gradients for the pairwise square.

After Johnson & Zhang, "Accelerating stochastic gradient descent using predictive variance reduction" (NIPS 2013), with three
differences:

* Only the rows' own terms are sampled, in proportion to their curvature (factor times squared distance to the class mean). The
  term of the class means and the penalty are the same for all rows and enter every step in full.
* The result of an epoch is the average of the weights over its second half, so the steps can be as long as the mean curvature
  allows.
* The result is used as a direction: the weights move to the minimum in the subspace of this direction and the last moves
  (`aucdist.solvers.square.descent`).

With one block this is SVRG. With several, each block runs an epoch over its own rows with the gradient of all rows. The results
are averaged feature by feature, and each block counts by its curvature along the feature, because a block whose rows lack a
feature carries no information about it. Small or dissimilar blocks cost more rounds but reach the same minimum.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary, block_seed
from aucdist.kernels.square_epochs import alias_table, draw_rows, square_epoch
from aucdist.objectives.pairwise_square import class_moments
from aucdist.solvers.base import Round, Solver
from aucdist.solvers.square.descent import SquareDescentMemory, SubspaceDescent, moments_of
from aucdist.solvers.square.rows import products_with, squared_distances

N_MOVES = 10
"""Moves that are remembered. They correct the result of an epoch, which is random and slightly biased with many blocks."""


@dataclass(frozen=True, eq=False)
class RowSampling:
    """The sampling probabilities and step lengths of a block's rows.

    Attributes
    ----------
    accept, other : ndarray of shape (n_rows,)
        The alias table of the sampling probabilities.
    factors : ndarray of shape (n_rows,), float64
        The curvature factor of each row, divided by its sampling probability.
    products : ndarray of shape (n_rows, 2), float64
        Inner products of the rows with the two class means.
    curvature : ndarray of shape (n_features,), float64
        The block's share of the objective's second derivative along each feature.
    eta : float
        Length of the steps.
    """

    accept: np.ndarray
    other: np.ndarray
    factors: np.ndarray
    products: np.ndarray
    curvature: np.ndarray
    eta: float


def prepare_sampling(
    block: Block,
    memory: SquareDescentMemory,
    means: np.ndarray,
    weights: tuple[float, float],
    n_samples: int,
    lam: float,
) -> tuple[SquareDescentMemory, Summary]:
    """Compute the sampling probabilities of the rows. `weights` holds the total weights of the negatives and the positives."""
    n = block.n_samples
    products = products_with(block, means)
    own = memory.share * n_samples * squared_distances(block, means, products)
    mean = own.sum() / max(n, 1)
    accept, other = np.ones(n), np.arange(n)
    if mean > 0.0:
        alias_table(own, accept, other)
    # A row's probability is own / (n mean), so this is 2 r_t / (n probability). Rows that are never drawn need no factor.
    factors = 2.0 * memory.share * n_samples * mean / np.where(own > 0.0, own, np.inf)
    difference = means[1] - means[0]
    eta = 1.0 / (2.0 * mean + 2.0 * (difference @ difference) + lam)
    curvature = n / n_samples * (2.0 * difference**2 + lam)
    for label, mean_of_all, weight in zip((-1, 1), means, weights, strict=True):
        mine = class_moments(block, label, full=False)
        curvature += 2.0 * (mine.scatter + mine.weight * (mine.mean - mean_of_all) ** 2) / weight
    sampling = RowSampling(accept, other, factors, products, curvature, eta)
    return replace(memory, extra=sampling), {"curvature": curvature}


def svrg_epoch(
    block: Block, memory: SquareDescentMemory, means: np.ndarray, slope: np.ndarray, lam: float, seeds: tuple[int, int]
) -> tuple[SquareDescentMemory, Summary]:
    """Run an epoch over the block's rows, from the weights whose gradient is `slope`, and return the change of the weights."""
    n, sampling = block.n_samples, memory.extra
    order, u = np.empty(n, dtype=np.int64), np.zeros(block.n_features)
    if n:
        draw_rows(block_seed(*seeds, block.index), sampling.accept, sampling.other, order)
        basis = np.vstack([means, slope])
        products = np.hstack([sampling.products, products_with(block, slope[np.newaxis])])
        square_epoch(
            block.rows, order, block.y, sampling.factors, products, basis, basis @ basis.T, sampling.eta, lam, u.copy(),
            n // 2, u,
        )  # fmt: skip
    return memory, {"reached": u * sampling.curvature}


class SVRG(Solver):
    """Stochastic variance-reduced gradients, an epoch of n_samples steps per round."""

    name = "svrg"
    objective = "pairwise square"
    random = True

    def rounds(self, blocks: Blocks, lam: float, start: np.ndarray | None = None, *, seed: int) -> Iterator[Round]:
        """Yield the weights after each epoch, their exact objective, and the best lower bound so far.

        A round counts as 2 3/4 passes: 1 for the search and the gradient, and 1 3/4 for the epoch, which takes two inner products
        per row and adds the row to one vector, or in its second half to two.
        """
        moments = moments_of(blocks)
        w = np.zeros(blocks.n_features) if start is None else start.astype(np.float64)
        descent = SubspaceDescent(blocks, moments, lam, w, N_MOVES)
        means = np.stack([moments.neg.mean, moments.pos.mean])
        weights = (moments.neg.weight, moments.pos.weight)
        curvature = descent.blocks.reduce(prepare_sampling, means, weights, blocks.n_samples, lam)["curvature"]
        epochs = 0

        def direction(slope: np.ndarray) -> np.ndarray:
            nonlocal epochs
            epochs += 1
            reached: np.ndarray = descent.blocks.reduce(svrg_epoch, means, slope, lam, (seed, epochs))["reached"]
            return reached / curvature

        yield from descent.rounds(direction, passes=4, per_round=2.75)
