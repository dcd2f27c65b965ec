"""What the solvers of link functions share: value, gradient and bound of the objective, and second moments of the rows.

The objective is ``P(w, b) = mean over rows of loss(w.x + b) + lam/2 |w|^2``, means weighted by sample weights; where the
intercept is penalised, b^2 joins |w|^2. Fu & Liu (2018) have sums in place of the mean, so their lambda is n_samples times `lam`,
and an intercept that is penalised like a weight, as their x carries a 1.

Weights and intercept go as one vector ``theta``, the intercept last, and 0 where there is none.

**The bound.** Where the loss is convex, any slopes a_i between the loss's limits give a lower bound, Fenchel's: with v the mean
of a_i x_i it is ``-mean of loss*(a_i) - |v|^2 / (2 lam)``, provided that the mean of the a_i is 0 where an intercept is not
penalised. The slopes at theta give the largest bound nearby, and loss*(a_i) is there a_i s_i - loss(s_i). Their mean is not
quite 0; it becomes so by taking the slopes of one class, the heavier one, c times. That costs nothing to compute: loss* is
convex, and 0 at 0 (the least value of each loss is 0), so that loss*(c a) is at most c loss*(a). Without an intercept that needs
it this is ``P - |gradient|^2 / (2 lam)``. In the end all slopes are taken by the share that gives the largest bound.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary
from aucdist.kernels.link_rows import curvatures, evaluate_rows, sparse_moments
from aucdist.kernels.rows import CsrRows, accumulate
from aucdist.objectives.links import LinkLoss
from aucdist.solvers.base import Round
from aucdist.solvers.rounding import EPS, Rounding

MOST_FEATURES = 2000
"""Up to so many, matrices of second moments are taken: 32 MB each."""
CHUNK = 2**17
"""Bytes of rows that are worked on at a time: what stays in a core's cache between two uses."""

Solve = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class LinkRound(Round):
    """A round with what the link solvers report besides.

    Attributes
    ----------
    intercept : float
    gradient_norm : float
        Euclidean length of the objective's gradient by weights and intercept, at these.
    """

    intercept: float
    gradient_norm: float


@dataclass(frozen=True, eq=False)
class Point:
    """The objective at one theta.

    Attributes
    ----------
    theta : ndarray of shape (n_features + 1,), float64
    primal, dual : float
        Value, and the lower bound on all values that is known from here.
    gradient : ndarray of shape (n_features + 1,), float64
        0 in its last place where there is no intercept.
    primal_error, dual_error : float
        Bounds on their rounding errors.
    """

    theta: np.ndarray
    primal: float
    dual: float
    gradient: np.ndarray
    primal_error: float = 0.0
    dual_error: float = 0.0

    @property
    def gradient_norm(self) -> float:
        """Euclidean length of the gradient."""
        return float(np.linalg.norm(self.gradient))


@dataclass(frozen=True, eq=False)
class LinkProblem:
    """A link to be fitted to blocks.

    Attributes
    ----------
    blocks : Blocks
        Its memories are left alone by all methods.
    loss : LinkLoss
    lam : float
    fit_intercept, penalise_intercept : bool
    """

    blocks: Blocks
    loss: LinkLoss
    lam: float
    fit_intercept: bool = True
    penalise_intercept: bool = False

    @property
    def rounding(self) -> Rounding:
        """What bounds on rounding need to know of the rows."""
        return Rounding.of(self.blocks)

    @property
    def weight(self) -> float:
        """Total weight of the rows."""
        return self.blocks.weight_pos + self.blocks.weight_neg

    @property
    def penalty(self) -> np.ndarray:
        """What each place of theta is penalised by; 0 for an intercept that is not."""
        penalty = np.full(self.blocks.n_features + 1, self.lam)
        penalty[-1] *= self.fit_intercept and self.penalise_intercept
        return penalty

    def origin(self) -> np.ndarray:
        """Return the theta to begin at: no weights, and with an intercept the probability that is the share of positives."""
        theta = np.zeros(self.blocks.n_features + 1)
        if self.fit_intercept:
            theta[-1] = self.loss.link.score(self.blocks.weight_pos / self.weight)
        return theta

    def evaluate(self, theta: np.ndarray) -> Point:
        """Return the objective at theta; one pass."""
        found = self.blocks.reduce(evaluate, theta[:-1], float(theta[-1]), self.loss)
        gradients, sums, penalty = found["gradients"] / self.weight, found["sums"] / self.weight, self.penalty
        primal = float(sums[:, 0].sum() + 0.5 * (penalty * theta) @ theta)
        gradient = np.append(gradients.sum(axis=0), sums[:, 1].sum() * self.fit_intercept) + penalty * theta
        dual, error = self._bound(gradients, sums, theta) if self.loss.convex and np.isfinite(primal) else (0.0, 0.0)
        rounding, steepness = self.rounding, float(np.abs(sums[:, 1]).sum())
        score_error = rounding.score(theta[:-1]) + EPS * abs(float(theta[-1]))
        of_primal = steepness * score_error + 2.0 * rounding.over_rows * abs(primal)
        return Point(theta, primal, dual, gradient, of_primal, error)

    def _bound(self, gradients: np.ndarray, sums: np.ndarray, theta: np.ndarray) -> tuple[float, float]:
        """Return the bound, and how far rounding may have moved it.

        Slopes are what was computed, whatever the rounding of the scores, for any slopes give a bound; what counts is their sums.
        """
        share = np.ones(2)
        if self.fit_intercept and not self.penalise_intercept:
            slopes = np.abs(sums[:, 1])
            share = slopes.min() / np.maximum(slopes, np.finfo(float).tiny)
        conjugate = float(share @ (sums[:, 2] - sums[:, 0]))
        v = share @ gradients
        square = float(v @ v)
        if self.fit_intercept and self.penalise_intercept:
            square += float(sums[:, 1].sum() ** 2)
        # The largest of part * (-conjugate) - part^2 * square / (2 lam) for parts from 0 to 1.
        part = min(1.0, max(0.0, -conjugate * self.lam / square)) if square > 0.0 else 1.0
        bound = max(0.0, -part * conjugate - part * part * square / (2.0 * self.lam))
        rounding, steepness = self.rounding, float(np.abs(sums[:, 1]).sum())
        reach = rounding.reach(theta[:-1]) + abs(float(theta[-1]))
        of_sums = 3.0 * rounding.over_rows * (float(sums[:, 0].sum()) + steepness * (1.0 + reach))
        of_slopes = 3.0 * rounding.combination(part * steepness)
        return bound, of_sums + rounding.half_square(part * v, of_slopes) / self.lam

    def second_moments(self, theta: np.ndarray | None) -> np.ndarray:
        """Return the mean of ``c_i x_i x_i'``, where x carries a 1 for the intercept; a pass, of n_features^2 operations a row.

        Parameters
        ----------
        theta : ndarray of shape (n_features + 1,), or None
            c_i is the curvature of the row's loss there; with None it is 1.
        """
        total: np.ndarray = self.blocks.reduce(second_moments, theta, self.loss)["moments"] / self.weight
        return total

    def solver(self, moments: np.ndarray, damping: float = 0.0) -> Solve:
        """Return the function that solves ``(moments + penalty) step = gradient``, by one Cholesky factor."""
        matrix = moments + np.diag(self.penalty + damping)
        if not self.fit_intercept:
            matrix[-1] = matrix[:, -1] = 0.0
            matrix[-1, -1] = 1.0
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        return lambda gradient: np.asarray(cho_solve(factor, gradient, check_finite=False))


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def evaluate(block: Block, memory: object, w: np.ndarray, bias: float, loss: LinkLoss) -> tuple[object, Summary]:
    """Add up losses, slopes, slopes times scores, and gradients, of each class."""
    d = block.n_features
    gradients, sums = np.zeros((2, d)), np.zeros((2, 3))
    at_a_time = 256 if isinstance(block.rows, CsrRows) else _rows_at_a_time(d)
    picked, coefs = np.empty((2, at_a_time), dtype=np.int64), np.empty((2, at_a_time))
    evaluate_rows(
        block.rows, block.y, block.weights(), np.ascontiguousarray(w), bias, loss.terms, picked, coefs, gradients, sums
    )
    return memory, {"gradients": gradients, "sums": sums}


def second_moments(block: Block, memory: object, theta: np.ndarray | None, loss: LinkLoss) -> tuple[object, Summary]:
    """Add up the rows' products with themselves, each by its weight and its curvature at theta."""
    return memory, {"moments": weighted_moments(block, curvature_of(block, theta, loss))}


def curvature_of(block: Block, theta: np.ndarray | None, loss: LinkLoss) -> np.ndarray:
    """Return each row's weight times the curvature of its loss at theta, or its weight where theta is None."""
    if theta is None:
        return block.weights()
    out = np.empty(block.n_samples)
    w, bias = np.ascontiguousarray(theta[:-1]), float(theta[-1])
    curvatures(block.rows, block.y, block.weights(), w, bias, loss.terms, out)
    return out


def weighted_moments(block: Block, coefs: np.ndarray) -> np.ndarray:
    """Return the sum of ``coefs[i] x_i x_i'``, where x carries a 1 in its last place; no coefficient is negative."""
    d = block.n_features
    total = np.zeros((d + 1, d + 1))
    if isinstance(block.rows, CsrRows):
        sparse_moments(block.rows, coefs, total)
        accumulate(block.rows, np.arange(block.n_samples), coefs, total[d])
        total[d, d] = coefs.sum()
        return np.tril(total) + np.tril(total, -1).T
    step = _rows_at_a_time(d)
    root = np.sqrt(coefs)
    part = np.empty((step, d + 1))
    for first in range(0, block.n_samples, step):
        x = block.rows.values[first : first + step]
        n = len(x)
        np.multiply(x, root[first : first + n, np.newaxis], out=part[:n, :d])
        part[:n, d] = root[first : first + n]
        total += part[:n].T @ part[:n]  # one matrix with itself: half the work
    return total


def _rows_at_a_time(n_features: int) -> int:
    return min(max(CHUNK // (8 * (n_features + 1)), 64), 4096)
