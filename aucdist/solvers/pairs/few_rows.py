"""The minimum where rows are few and features are more: an interior-point method on the dual variables of all pairs.

A few hundred rows say nothing of most directions, and cutting planes need hundreds of cuts where all pairs of separable rows end
near the corner of the hinge. But the scores then depend on the products ``K = X X'`` of the rows alone, and the dual variables,
one for each pair, fit into a matrix. The dual problem is the quadratic programme

    max over b of  sum b_ij - c'Kc / (2 lam),   0 <= b_ij <= W_ij,   c_i = sum over j of b_ij,   c_j = -(sum over i of b_ij),

W_ij being the share of all pairs that a pair weighs. Its minimiser is ``w = X'c / lam``. Mehrotra's predictor-corrector method
("On the implementation of a primal-dual interior point method", SIAM J. Optim. 2, 1992) takes about ten steps. Each costs one
factorisation of a matrix of the size of K, since the variables of the pairs are eliminated first. The result is a start and a
dual point for the loop of `aucdist.solvers.pairs.cutting_planes`, whose certificate does not rely on how they were found.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dgetrf, dgetrs

from aucdist.data.block import stacked
from aucdist.data.code_rows import matrix_of_rows
from aucdist.engine.blocks import Blocks
from aucdist.kernels.rows import accumulate
from aucdist.solvers.pairs.groups import PairGroups
from aucdist.solvers.sample import draw_from_block

MOST_ROWS, MOST_PAIRS = 2_000, 2**20
"""With 2 000 rows a step takes some seconds, and the arrays of a million pairs some 300 MB."""

MOST_STEPS, PRECISION = 50, 1e-8
"""The most steps, and the relative gap at which they end. Rounding may hide a smaller one."""

TO_BORDER = 0.995
"""A step goes this share of the way to the border of what is feasible."""


@dataclass(frozen=True, eq=False)
class Interior:
    """Dual variables within their bounds, float64 of shape (n_pairs,) each, or a step of them.

    Attributes
    ----------
    b, room : ndarray
        The variables, and how far they are below their upper bounds.
    low, high : ndarray
        The multipliers of both bounds.
    """

    b: np.ndarray
    room: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def distance(self) -> float:
        """Return the mean product of a distance to a bound and its multiplier, which is 0 at the minimum."""
        return float(self.b @ self.low + self.room @ self.high) / (2 * len(self.b))

    def longest(self, step: "Interior") -> float:
        """Return how much of a step, at most all of it, stays within the bounds."""
        most = max(
            float((-change / value).max())
            for value, change in zip(vars(self).values(), vars(step).values(), strict=True)
        )
        return 1.0 / max(1.0, most)

    def moved(self, step: "Interior", share: float) -> "Interior":
        """Return the variables after a share of a step."""
        return Interior(
            *(value + share * change for value, change in zip(vars(self).values(), vars(step).values(), strict=True))
        )


class FewRows:
    """All rows at the client, and the pairs of them.

    Parameters
    ----------
    blocks : Blocks
    groups : PairGroups or None
        Which rows make pairs, as of `aucdist.solvers.pairs.objective.PairObjective`.
    mass : float
        The total weight of all pairs.
    """

    def __init__(self, blocks: Blocks, groups: PairGroups | None, mass: float):
        self.block = stacked(blocks.sum(draw_from_block, (1.0, 1.0))["parts"])
        weight, factor = self.block.weights(), np.ones(1) if groups is None else groups.factor
        if groups is None:
            pos, neg = (np.flatnonzero(self.block.y == label) for label in (1, -1))
            of_pos, of_neg = np.zeros(len(pos), dtype=int), np.zeros(len(neg), dtype=int)
        else:
            (pos, of_pos), (neg, of_neg) = (groups.rows_of(self.block, label) for label in (1, -1))
        self.rows, self.n_pos = np.concatenate([pos, neg]), len(pos)
        self.i, self.j = np.nonzero(of_pos[:, np.newaxis] == of_neg)
        self.weights = weight[pos[self.i]] * weight[neg[self.j]] * (factor[of_pos[self.i]] / mass)
        X = matrix_of_rows(self.block.rows)[self.rows]
        with np.errstate(all="ignore"):
            products = X @ X.T
        self.products = products if isinstance(products, np.ndarray) else products.toarray()

    def solve(self, lam: float) -> tuple[np.ndarray, float, np.ndarray] | None:
        """Return about the minimiser for a penalty ``lam/2 |w|^2``, and the height and the gradient of a dual point.

        None where values are so large that rounding hides the minimum.
        """
        with np.errstate(all="ignore"):
            primal, dual = self._dual_variables(lam)
        if primal is None or dual is None:
            return None
        return self._sum_of_rows(primal) / lam, math.fsum(dual), -self._sum_of_rows(dual)

    def margins(self, scores: np.ndarray) -> np.ndarray:
        """Return the margin of each pair."""
        return scores[self.i] - scores[self.n_pos + self.j]

    def coefficients(self, b: np.ndarray) -> np.ndarray:
        """Return the coefficients of the rows that the variables of the pairs add up to, float64 of shape (n_rows,)."""
        n = self.n_pos
        return np.concatenate([np.bincount(self.i, b, n), -np.bincount(self.j, b, len(self.rows) - n)])

    def _dual_variables(self, lam: float) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return the variables whose weights have the lowest objective, and those with the highest dual value."""
        K, W, n, n_rows = self.products / lam, self.weights, self.n_pos, len(self.rows)
        lowest, highest, best, bound = np.inf, 0.0, None, None
        now = Interior(0.5 * W, 0.5 * W, np.ones(len(W)), np.ones(len(W)))
        for _ in range(MOST_STEPS):
            c = self.coefficients(now.b)
            scores = K @ c
            t, half_square = 1.0 - self.margins(scores), 0.5 * float(c @ scores)
            primal, dual = half_square + float(W @ np.maximum(t, 0.0)), float(now.b.sum()) - half_square
            if primal < lowest:
                lowest, best = primal, np.minimum(now.b, W)
            if dual > highest:
                highest, bound = dual, np.minimum(now.b, W)
            distance = now.distance()
            if lowest - highest <= PRECISION * lowest or not 0.0 < distance < np.inf:
                break
            soft = 1.0 / (now.low / now.b + now.high / now.room)
            between = np.zeros((n, n_rows - n))
            between[self.i, self.j] = soft
            laplacian = np.diag(np.abs(self.coefficients(soft)))
            laplacian[:n, n:], laplacian[n:, :n] = -between, -between.T
            factor, pivots, failed = dgetrf(np.eye(n_rows) + K @ laplacian, overwrite_a=True)
            if failed:
                break
            step = Interior(*np.zeros((4, 1)))
            # First straight to the minimum; then, from how far that goes, to the middle between the bounds, corrected.
            for target in (0.0, np.nan):
                if target != 0.0:
                    target = distance * (now.moved(step, now.longest(step)).distance() / distance) ** 3
                of_low, of_high = target - step.b * step.low, target - step.room * step.high
                residual = t + of_low / now.b - of_high / now.room
                change, _ = dgetrs(factor, pivots, K @ self.coefficients(soft * residual))
                b = soft * (residual - self.margins(change))
                step = Interior(
                    b, -b, (of_low - now.low * b) / now.b - now.low, (of_high + now.high * b) / now.room - now.high
                )
            now = now.moved(step, TO_BORDER * now.longest(step))
        return best, bound

    def _sum_of_rows(self, b: np.ndarray) -> np.ndarray:
        """Return the sum of the rows times their coefficients, each of which is rounded once."""
        of_pairs = np.zeros((self.n_pos, len(self.rows) - self.n_pos))
        of_pairs[self.i, self.j] = b
        c = [math.fsum(of_row) for of_row in of_pairs] + [-math.fsum(of_row) for of_row in of_pairs.T]
        coefs, total = np.zeros(self.block.n_samples), np.zeros(self.block.n_features)
        np.add.at(coefs, self.rows, c)
        accumulate(self.block.rows, np.arange(len(coefs)), coefs, total)
        return total
