"""The objective of the link solvers: value, gradient and lower bound, and the second moments of the rows.

The objective is ``P(w, b) = mean over rows of loss(w.x + b) + lam/2 |w|^2``, where sample weights weight the mean. If the
intercept is penalised, b^2 is added to |w|^2. Fu & Liu (2018) take sums in place of the mean, so their lambda is n_samples
times `lam`, and they penalise the intercept like a weight, because their x contains a 1.

Weights and intercept are one vector ``theta``. Its last entry is the intercept, which is 0 if there is none.

**The bound.** If the loss is convex, any slopes a_i in the range of the loss's derivative give a lower bound by Fenchel
duality. With v the mean of a_i x_i it is ``-mean of loss*(a_i) - |v|^2 / (2 lam)``. If the intercept is not penalised, the mean
of the a_i must be 0. The slopes at theta are used. For these, loss*(a_i) is a_i s_i - loss(s_i), where s_i is the score. Their
mean is not exactly 0, so the slopes of the class with the larger sum are multiplied by a factor c < 1 that makes it 0. The
bound stays easy to compute: loss* is convex and 0 at 0 (the minimum of each loss is 0), so loss*(c a) is at most c loss*(a). If
the mean need not be 0, the bound is ``P - |gradient|^2 / (2 lam)``. Finally all slopes are multiplied by the factor in [0, 1]
that gives the largest bound.

**Signs of weights.** Over a cone (`aucdist.solvers.signs`), the minimum of ``v.w + lam/2 |w|^2`` is ``-lam/2 |w|^2`` at the
projection of ``-v / lam``, so the projection of ``-v`` replaces v in the bound. The gradient is that of the weights
that may change.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy import ndarray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from aucdist.data.block import Block, outer_products as second_moments_of_codes
from aucdist.engine.blocks import Blocks, Summary
from aucdist.kernels.rows import CsrRows, DenseRows
from aucdist.papers.epochs import LabelledRows
from aucdist.papers.gev.kernels import curvatures, evaluate_rows, sparse_moments
from aucdist.parameters import frozen
from aucdist.probability.links import LinkLoss
from aucdist.solvers.base import Round
from aucdist.solvers.rounding import EPS, Rounding
from aucdist.solvers.signs import blocked, project_onto_cone

MAX_FEATURES = 2000
"""Matrices of second moments are used up to this many features; they take 32 MB each."""
ROW_BYTES = 2**17
"""The number of bytes of rows that are processed at a time, so that they stay in the cache of a core between two
uses."""

MOMENT_ROWS = 1024
"""The number of rows whose products are summed at a time. With fewer rows, adding up the products takes most of the
time."""

Solve = Callable[[ndarray], ndarray]


@frozen
class LinkRound(Round):
    """Value, lower bound and gradient of the objective at one theta, and the passes that led to it.

    Parameters
    ----------
    theta : ndarray of shape (n_features + 1,), float64
        The weights and the intercept.
    gradient : ndarray of shape (n_features + 1,), float64
        The gradient of the objective by theta. The last entry is 0 if there is no intercept.
    """

    theta: ndarray
    gradient: ndarray

    @property
    def intercept(self) -> float:
        """The intercept, which is 0 if there is none."""
        return float(self.theta[-1])

    @property
    def gradient_norm(self) -> float:
        """Euclidean length of the gradient."""
        return float(np.linalg.norm(self.gradient))


@frozen
class LinkProblem:
    """The objective of a link over the rows of some blocks.

    Parameters
    ----------
    blocks : Blocks
        The rows. No method changes the memories of the blocks.
    loss : LinkLoss
        The link and the loss by which it is fitted.
    lam : float
        The paper's lambda divided by n_samples.
    fit_intercept, penalise_intercept : bool
        The paper penalises the intercept like a weight.
    signs : ndarray of shape (n_features,), int8, or None
        The signs of the weights.
    """

    blocks: Blocks
    loss: LinkLoss
    lam: float
    fit_intercept: bool = True
    penalise_intercept: bool = False
    signs: ndarray | None = None

    @cached_property
    def rounding(self) -> Rounding:
        """The sizes of the rows on which bounds on rounding errors depend."""
        return Rounding.of(self.blocks)

    @cached_property
    def weight(self) -> float:
        """Total weight of the rows."""
        return self.blocks.weight_pos + self.blocks.weight_neg

    @cached_property
    def penalty(self) -> ndarray:
        """The penalty of each entry of theta. It is 0 for an intercept that is not penalised."""
        penalty = np.full(self.blocks.n_features + 1, self.lam)
        penalty[-1] *= self.fit_intercept and self.penalise_intercept
        return penalty

    def origin(self) -> ndarray:
        """Return the initial theta: weights of 0, and an intercept whose probability is the share of positives."""
        theta = np.zeros(self.blocks.n_features + 1)
        if self.fit_intercept:
            theta[-1] = self.loss.link.score(self.blocks.weight_pos / self.weight)
        return theta

    def inside(self, theta: ndarray) -> ndarray:
        """Return the projection of theta onto the cone."""
        return theta if self.signs is None else np.append(project_onto_cone(theta[:-1], self.signs), theta[-1])

    def fixed(self, point: LinkRound) -> ndarray:
        """Return which entries of theta stay at 0, bool of shape (n_features + 1,)."""
        return np.append(blocked(point.theta[:-1], point.gradient[:-1], self.signs), False)

    def evaluate(self, theta: ndarray) -> LinkRound:
        """Return value, lower bound and gradient of the objective at theta, by one pass."""
        summary = self.blocks.sum(evaluate, theta, self.loss)
        gradients, sums = summary["gradients"] / self.weight, summary["sums"] / self.weight
        slope = self.penalty * theta
        primal = float(sums[0, 0] + sums[1, 0] + 0.5 * slope @ theta)
        gradient = slope.copy()
        gradient[:-1] += gradients[0] + gradients[1]
        gradient[-1] += (sums[0, 1] + sums[1, 1]) * self.fit_intercept
        gradient[:-1][blocked(theta[:-1], gradient[:-1], self.signs)] = 0.0
        rounding, steepness = self.rounding, float(np.abs(sums[:, 1]).sum())
        dual, dual_error = 0.0, 0.0
        if self.loss.convex and np.isfinite(primal):
            # Any slopes give a valid bound, so errors of the scores do not matter. Only their sums have an error that counts.
            factors = np.ones(2)
            if self.fit_intercept and not self.penalise_intercept:
                slopes = np.abs(sums[:, 1])
                factors = slopes.min() / np.maximum(slopes, np.finfo(float).tiny)
            conjugate = float(factors @ (sums[:, 2] - sums[:, 0]))
            v = project_onto_cone(-(factors @ gradients), self.signs)
            square = float(v @ v)
            if self.fit_intercept and self.penalise_intercept:
                square += float(sums[:, 1].sum() ** 2)
            # the maximum of part * (-conjugate) - part^2 * square / (2 lam) over parts from 0 to 1
            part = min(1.0, max(0.0, -conjugate * self.lam / square)) if square > 0.0 else 1.0
            dual = max(0.0, -part * conjugate - part * part * square / (2.0 * self.lam))
            reach = rounding.largest_score(theta[:-1]) + abs(float(theta[-1]))
            sums_error = 3.0 * rounding.over_rows * (float(sums[:, 0].sum()) + steepness * (1.0 + reach))
            slopes_error = 3.0 * rounding.combination(part * steepness)
            dual_error = sums_error + rounding.half_square(part * v, slopes_error) / self.lam
        score_error = rounding.score(theta[:-1]) + EPS * abs(float(theta[-1]))
        primal_error = steepness * score_error + 2.0 * rounding.over_rows * abs(primal)
        return LinkRound(
            theta[:-1], primal, dual, 1, theta, gradient, primal_error=primal_error, dual_error=dual_error
        )  # fmt: skip

    def second_moments(self, theta: ndarray | None) -> ndarray:
        """Return the mean of ``c_i x_i x_i'``, where x ends with a 1 for the intercept.

        This takes one pass, with n_features^2 operations per row.

        Parameters
        ----------
        theta : ndarray of shape (n_features + 1,), or None
            c_i is the curvature of the row's loss at theta, or 1 if theta is None.
        """
        total: ndarray = self.blocks.sum(second_moments, theta, self.loss) / self.weight
        return total

    def solver(self, moments: ndarray, fixed: ndarray | None = None) -> Solve:
        """Return a function that solves ``(moments + penalty) step = gradient`` with one Cholesky factor.

        Entries of the step that are `fixed` are 0, as those of the gradient must be.
        """
        matrix = moments + np.diag(self.penalty)
        if fixed is not None and fixed.any():
            matrix[fixed] = matrix[:, fixed] = 0.0
            matrix[fixed, fixed] = 1.0
        if not self.fit_intercept:
            matrix[-1] = matrix[:, -1] = 0.0
            matrix[-1, -1] = 1.0
        try:
            factor = cho_factor(matrix, lower=True, check_finite=False)
        except LinAlgError:
            return _solve_at_one_scale(matrix)
        return lambda gradient: np.asarray(cho_solve(factor, gradient, check_finite=False))


def _solve_at_one_scale(matrix: ndarray) -> Solve:
    """Return a function that solves a system which rounding made indefinite, by scaling it and adding to its diagonal.

    The addition makes steps shorter. They remain descent directions.
    """
    scale = 1.0 / np.sqrt(np.maximum(np.diag(matrix), np.finfo(float).tiny))
    system, more = matrix * np.outer(scale, scale), 1e-15
    while True:
        try:
            factor = cho_factor(system + more * np.eye(len(system)), lower=True)
        except LinAlgError:
            more *= 10.0
        else:
            return lambda gradient: np.asarray(scale * cho_solve(factor, scale * gradient, check_finite=False))


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def evaluate(block: Block, theta: ndarray, loss: LinkLoss) -> Summary:
    """Return the sums of losses, slopes, slopes times scores, and gradients of each class."""
    d = block.n_features
    gradients, sums = np.zeros((2, d)), np.zeros((2, 3))
    at_a_time = min(max(ROW_BYTES // (8 * (d + 1)), 64), 4096) if isinstance(block.rows, DenseRows) else 256
    evaluate_rows(LabelledRows.of(block), theta, loss.terms, at_a_time, gradients, sums)
    return {"gradients": gradients, "sums": sums}


def second_moments(block: Block, theta: ndarray | None, loss: LinkLoss) -> Summary:
    """Return the sum of the rows' outer products, each times its weight and its curvature at theta. Each row ends with a 1."""
    coefs, d = curvature_of(block, theta, loss), block.n_features
    total = np.zeros((d + 1, d + 1))
    if not isinstance(block.rows, DenseRows):
        if isinstance(block.rows, CsrRows):
            sparse_moments(block.rows, coefs, total)
            total += np.tril(total, -1).T
        else:
            total[:d, :d] = second_moments_of_codes(block.rows, coefs)
        total[d, :d] = total[:d, d] = block.sums(coefs)
        total[d, d] = coefs.sum()
        return total
    root = np.sqrt(coefs)
    part = np.empty((min(MOMENT_ROWS, block.n_samples), d + 1))
    for first in range(0, block.n_samples, MOMENT_ROWS):
        x = block.rows.values[first : first + MOMENT_ROWS]
        n = len(x)
        np.multiply(x, root[first : first + n, np.newaxis], out=part[:n, :d])
        part[:n, d] = root[first : first + n]
        total += part[:n].T @ part[:n]  # BLAS computes only half of the product of a matrix with itself
    return total


def curvature_of(block: Block, theta: ndarray | None, loss: LinkLoss) -> ndarray:
    """Return each row's weight times the curvature of its loss at theta, or its weight if theta is None."""
    if theta is None:
        return block.weights()
    out = block.scores(theta[:-1]) + theta[-1]
    curvatures(block.y, block.weights(), loss.terms, out)
    return out
