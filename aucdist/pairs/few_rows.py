"""Minimise the pairwise hinge of few rows by an interior-point method, if cutting planes converge slowly.

A few thousand rows carry no information about most directions, and cutting planes need hundreds of cuts where all pairs of
separable rows end near the corner of the hinge. But the scores then depend on the products ``K = X X'`` of the rows alone, and
the dual variables, one for each pair, fit into a matrix. The dual problem is the quadratic programme

    max over b of  sum b_ij - c'Kc / (2 lam),   0 <= b_ij <= W_ij,   c_i = sum over j of b_ij,   c_j = -(sum over i of b_ij),

W_ij being the share of all pairs that a pair weighs. Its minimiser is ``w = X'c / lam``. Mehrotra's predictor-corrector method
("On the implementation of a primal-dual interior point method", SIAM J. Optim. 2, 1992) takes ten to forty steps. Each costs one
factorisation of a matrix of the size of K, since the variables of the pairs are eliminated first. The results are points and
dual points for the loop of `aucdist.pairs.cutting_planes`, whose certificate does not rely on how they were found.
"""

import math
from collections.abc import Iterator

import numpy as np
from scipy.linalg.lapack import dgetrf, dgetrs

from aucdist.data.block import matrix_of_rows, stacked
from aucdist.engine.blocks import Blocks
from aucdist.kernels.rows import accumulate
from aucdist.pairs.groups import PairGroups
from aucdist.solvers.sample import draw_from_block

MAX_ROWS = 4_000
"""The largest number of rows with which the interior-point method is used. A step takes about 1 and 3 CPU seconds with 2,000 and
3,000 rows. It grows like the cube of the number of rows, which gives about 7 seconds with 4,000. On 3,000 normal rows of
8,000 columns, cutting planes alone had a gap of 0.45 after 300 passes. The arrays of all pairs of 4,000 rows take 0.2
gigabytes."""

MAX_VALUES = 2**26
"""The largest number of values of all rows with which it is used. They are sent to the client, and take at most half a
gigabyte."""

MAX_STEPS = 50
"""The largest number of steps."""

PATIENCE_IN_STEPS = 2
"""The method ends after this many steps without a much smaller gap, because rounding prevents a smaller one."""

GAP_REDUCTION = 0.1
"""A point is handed over each time the gap is this share of the one before, so that a fit ends at the first that is near enough.
With 592 rows and 765 columns of bins at lam 1e-4, 24 steps lead to a gap of 3 %, and 35 to the last one."""

TO_BORDER = 0.995
"""A step goes this share of the way to the boundary of the feasible set."""


class FewRows:
    """All rows at the client, and the pairs of them.

    Parameters
    ----------
    blocks : Blocks
    groups : PairGroups or None
        Which rows make pairs, as in `aucdist.pairs.problem.PairObjective`.
    mass : float
        The total weight of all pairs.
    """

    def __init__(self, blocks: Blocks, groups: PairGroups | None, mass: float):
        self.parts = blocks.sum(draw_from_block, (1.0, 1.0))["parts"]
        self.block = stacked(self.parts)
        weight, factor = self.block.weights(), np.ones(1) if groups is None else groups.factor
        if groups is None:
            pos, neg = (np.flatnonzero(self.block.y == label) for label in (1, -1))
            pos_groups, neg_groups = np.zeros(len(pos), dtype=int), np.zeros(len(neg), dtype=int)
        else:
            (pos, pos_groups), (neg, neg_groups) = (groups.rows_of(self.block, label) for label in (1, -1))
        self.rows, self.n_pos = np.concatenate([pos, neg]), len(pos)
        i, j = np.nonzero(pos_groups[:, np.newaxis] == neg_groups)
        pairs = weight[pos[i]] * weight[neg[j]] * (factor[pos_groups[i]] / mass)
        counted = pairs > 0.0  # the product of two small weights may be 0
        self.i, self.j, self.weights = i[counted], j[counted], pairs[counted]
        X = matrix_of_rows(self.block.rows)
        with np.errstate(all="ignore"):
            products = X @ X.T
        self.products = (products if isinstance(products, np.ndarray) else products.toarray())[
            np.ix_(self.rows, self.rows)
        ]

    def solve(self, lam: float) -> Iterator[tuple[np.ndarray, float, np.ndarray]]:
        """Yield better and better minimisers for the penalty ``lam/2 |w|^2``, each with the height and gradient of a dual point.

        A result is yielded when the gap has fallen to `GAP_REDUCTION` times that of the previous result, and at the end. Nothing
        is yielded if no step has finite weights and a dual value above 0.
        """
        W = self.weights
        with np.errstate(all="ignore"):
            K = self.products / lam
        # The variables, the slacks of their upper bounds, and the multipliers of both bounds. All of them are positive.
        iterate = np.stack([0.5 * W] * 2 + [np.ones(len(W))] * 2)
        lowest, highest, gap, yielded, in_vain = np.inf, 0.0, np.inf, np.inf, 0
        best = bound = np.zeros(0)
        for _ in range(MAX_STEPS):
            primal, dual, t, product = self._values(K, iterate)
            if primal < lowest:
                lowest, best = primal, np.clip(iterate[0], 0.0, W)
            if dual > highest:
                highest, bound = dual, np.clip(iterate[0], 0.0, W)
            before, gap = gap, lowest - highest
            in_vain = 0 if gap < 0.9 * before or not highest else in_vain + 1
            if in_vain > PATIENCE_IN_STEPS or not (
                product > 0.0 and gap > 0.0
            ):  # rounding can lift the dual value above the objective
                break
            if len(bound) and gap <= GAP_REDUCTION * min(yielded, lowest):
                yielded = gap
                yield self._point(lam, best, bound)
            next_iterate = self._next(K, iterate, t, product)
            if next_iterate is None:
                break
            iterate = next_iterate
        if len(best) and len(bound) and gap < yielded:
            yield self._point(lam, best, bound)

    def _point(self, lam: float, best: np.ndarray, bound: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        return self._sum_of_rows(best) / lam, math.fsum(bound), -self._sum_of_rows(bound)

    def margins(self, scores: np.ndarray) -> np.ndarray:
        """Return the margin of each pair."""
        return scores[self.i] - scores[self.n_pos + self.j]

    def coefficients(self, b: np.ndarray) -> np.ndarray:
        """Return the coefficients of the rows that the variables of the pairs add up to, float64 of shape (n_rows,)."""
        n = self.n_pos
        return np.concatenate([np.bincount(self.i, b, n), -np.bincount(self.j, b, len(self.rows) - n)])

    @np.errstate(all="ignore")
    def _values(self, K: np.ndarray, iterate: np.ndarray) -> tuple[float, float, np.ndarray, float]:
        """Return the objective, the dual value, 1 less the margin of each pair, and the mean product."""
        b = iterate[0]
        c = self.coefficients(b)
        scores = K @ c
        t, half_square = 1.0 - self.margins(scores), 0.5 * float(c @ scores)
        primal = half_square + float(self.weights @ np.maximum(t, 0.0))
        return primal, float(b.sum()) - half_square, t, mean_product(iterate)

    @np.errstate(all="ignore")
    def _next(self, K: np.ndarray, iterate: np.ndarray, t: np.ndarray, product: float) -> np.ndarray | None:
        """Return the end of a step of the predictor-corrector method; None if its matrix is singular."""
        n, n_rows = self.n_pos, len(self.rows)
        b, to_upper, low, high = iterate
        scaling = 1.0 / (low / b + high / to_upper)
        scaling_matrix = np.zeros((n, n_rows - n))
        scaling_matrix[self.i, self.j] = scaling
        row_scaling = np.abs(self.coefficients(scaling))
        K_pos, K_neg = K[:, :n], K[:, n:]
        system = np.concatenate(
            [K_pos * row_scaling[:n] - K_neg @ scaling_matrix.T, K_neg * row_scaling[n:] - K_pos @ scaling_matrix],
            axis=1,
        )
        system[np.diag_indices(n_rows)] += 1.0
        factor, pivots, failed = dgetrf(system)
        if failed:
            return None
        step = np.zeros((4, 1))
        # Mehrotra's predictor step towards the minimum; its length then determines the centring of the corrector step.
        for corrects in (False, True):
            reached = mean_product(iterate + longest_step(iterate, step) * step)
            target = product * (reached / product) ** 3 if corrects else 0.0
            rest_low, rest_high = target - step[0] * step[2], target - step[1] * step[3]
            residual = t + rest_low / b - rest_high / to_upper
            change, _ = dgetrs(factor, pivots, K @ self.coefficients(scaling * residual))
            step_b = scaling * (residual - self.margins(change))
            step = np.stack(
                [
                    step_b,
                    -step_b,
                    (rest_low - low * step_b) / b - low,
                    (rest_high + high * step_b) / to_upper - high,
                ]
            )
        return iterate + TO_BORDER * longest_step(iterate, step) * step

    def _sum_of_rows(self, b: np.ndarray) -> np.ndarray:
        """Return the sum of the rows times their coefficients, each of which is rounded once for each of its groups.

        The sum is as deep as `aucdist.solvers.rounding` takes it for: over a block, and then over the blocks.
        """
        matrix = np.zeros((self.n_pos, len(self.rows) - self.n_pos))
        matrix[self.i, self.j] = b
        c = [math.fsum(row) for row in matrix] + [-math.fsum(row) for row in matrix.T]
        coefs, total, first = np.zeros(self.block.n_samples), np.zeros(self.block.n_features), 0
        np.add.at(coefs, self.rows, c)
        for part in self.parts:
            part_total = np.zeros(len(total))
            accumulate(part.rows, np.arange(part.n_samples), coefs[first : first + part.n_samples], part_total)
            total, first = total + part_total, first + part.n_samples
        return total


def mean_product(iterate: np.ndarray) -> float:
    """Return the mean product of a distance to a bound and its multiplier, which is 0 at the minimum."""
    return float(iterate[0] @ iterate[2] + iterate[1] @ iterate[3]) / (2 * iterate.shape[1])


def longest_step(iterate: np.ndarray, step: np.ndarray) -> float:
    """Return the largest share of a step, at most 1, that keeps all values above 0; NaN if a value is NaN."""
    return 1.0 / float(np.maximum(1.0, (-step / iterate).max()))
