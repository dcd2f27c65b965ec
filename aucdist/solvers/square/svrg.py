"""Stochastic variance reduced gradients for the pairwise square.

After Johnson & Zhang, "Accelerating stochastic gradient descent using predictive variance reduction" (NIPS 2013), with three
choices of ours. Only the rows' own terms are drawn, in proportion to their curvature, factor times squared distance to the
class mean; the term of the class means and the penalty are the same for all rows and are taken whole. An epoch's outcome is the
average over its second half, which lets a step be as long as the mean curvature allows. And the outcome is taken as a direction:
the move goes to the minimum in the space of it and the last moves (`square_descent`).

One block is SVRG. With several, each block runs an epoch over its own rows with the gradient of all, and the outcomes are
averaged feature by feature, each block counting by its curvature along the feature: one whose rows lack a feature cannot
tell how far to go along it. Blocks that are small, or unlike each other, cost rounds, not the answer.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary, block_seed
from aucdist.kernels.square_epochs import alias_table, draw_rows, square_epoch
from aucdist.objectives.pairwise_square import class_moments
from aucdist.solvers.base import Round
from aucdist.solvers.square.descent import Descent, Memory, moments_of
from aucdist.solvers.square.rows import products_with, squared_distances

N_MOVES = 10
"""An epoch's outcome is random, and with many blocks a little off: the moves remembered make up for it."""


@dataclass(frozen=True, eq=False)
class Sampling:
    """How a block draws its rows.

    Attributes
    ----------
    accept, other : ndarray of shape (n_rows,)
        The alias table.
    factors : ndarray of shape (n_rows,), float64
        A drawn row's part of the curvature over its chance.
    products : ndarray of shape (n_rows, 2), float64
        With the class means.
    curvature : ndarray of shape (n_features,), float64
        The block's share of the objective's second derivative along each feature.
    eta : float
    """

    accept: np.ndarray
    other: np.ndarray
    factors: np.ndarray
    products: np.ndarray
    curvature: np.ndarray
    eta: float


def svrg(blocks: Blocks, lam: float, start: np.ndarray | None = None, *, seed: int) -> Iterator[Round]:
    """Descend by an epoch of variance-reduced steps per round, as many as there are rows.

    Parameters
    ----------
    blocks : Blocks
    lam : float
    start : ndarray of shape (n_features,), optional
        Zero by default.
    seed : int

    Yields
    ------
    Round
        The weights, their exact objective, the best bound so far. A round counts as 2 3/4 passes: 1 for search and gradient,
        and 1 3/4 for the epoch, which takes a row's products with two vectors and adds it to one or, in its second half, to two.
    """
    known = moments_of(blocks)
    w = np.zeros(blocks.n_features) if start is None else start.astype(np.float64)
    descent = Descent(blocks, known, lam, w, N_MOVES)
    means = np.stack([known.neg.mean, known.pos.mean])
    weights = (known.neg.weight, known.pos.weight)
    curvature = descent.blocks.reduce(prepare, means, weights, blocks.n_samples, lam)["curvature"]
    epochs = 0

    def direction(slope: np.ndarray) -> np.ndarray:
        nonlocal epochs
        epochs += 1
        outcome: np.ndarray = descent.blocks.reduce(epoch, means, slope, lam, (seed, epochs))["outcome"]
        return outcome / curvature

    yield from descent.rounds(direction, passes=4, per_round=2.75)


def prepare(
    block: Block, memory: Memory, means: np.ndarray, weights: tuple[float, float], n_samples: int, lam: float
) -> tuple[Memory, Summary]:
    """Find the rows' chances of being drawn. `weights` is what all negatives and all positives weigh."""
    n = block.n_samples
    products = products_with(block, means)
    own = memory.share * n_samples * squared_distances(block, means, products)
    mean = own.sum() / max(n, 1)
    accept, other = np.ones(n), np.arange(n)
    if mean > 0.0:
        alias_table(own, accept, other)
    # A row's chance is own / (n mean), so this is 2 r_t over n times the chance; rows that are never drawn need none.
    factors = 2.0 * memory.share * n_samples * mean / np.where(own > 0.0, own, np.inf)
    difference = means[1] - means[0]
    eta = 1.0 / (2.0 * mean + 2.0 * (difference @ difference) + lam)
    curvature = n / n_samples * (2.0 * difference**2 + lam)
    for label, mean_of_all, weight in zip((-1, 1), means, weights, strict=True):
        mine = class_moments(block, label, full=False)
        curvature += 2.0 * (mine.scatter + mine.weight * (mine.mean - mean_of_all) ** 2) / weight
    sampling = Sampling(accept, other, factors, products, curvature, eta)
    return replace(memory, extra=sampling), {"curvature": curvature}


def epoch(
    block: Block, memory: Memory, means: np.ndarray, slope: np.ndarray, lam: float, seeds: tuple[int, int]
) -> tuple[Memory, Summary]:
    """Run an epoch over the block's rows from the point with the gradient `slope`: how far it leads."""
    n, how = block.n_samples, memory.extra
    order, u = np.empty(n, dtype=np.int64), np.zeros(block.n_features)
    if n:
        draw_rows(block_seed(*seeds, block.index), how.accept, how.other, order)
        basis = np.vstack([means, slope])
        products = np.hstack([how.products, products_with(block, slope[np.newaxis])])
        square_epoch(
            block.rows, order, block.y, how.factors, products, basis, basis @ basis.T, how.eta, lam, u.copy(), n // 2, u
        )
    return memory, {"outcome": u * how.curvature}
