"""Minimise the pairwise hinge of few rows by an interior-point method, if other methods converge slowly.

Cutting planes converge slowly if a few thousand rows carry no information about most directions, or if all pairs of separable
rows end near the corner of the hinge. Then they need hundreds of cuts. But if there are few rows, the scores depend only on the
products ``K = X X'`` of the rows, and the dual variables, one for each pair, fit into a matrix. The dual problem is the
quadratic programme

    max over b of  sum b_ij - c'Kc / (2 lam),   0 <= b_ij <= W_ij,   c_i = sum over j of b_ij,   c_j = -(sum over i of b_ij),

where W_ij is the weight of a pair as a share of the weight of all pairs. Its minimiser is ``w = X'c / lam``. Mehrotra's
predictor-corrector method ("On the implementation of a primal-dual interior point method", SIAM J. Optim. 2, 1992) takes ten to
forty steps. Each costs one factorisation of a matrix of the size of K, because the variables of the pairs are eliminated first.
The results are points and dual points for the loop of `aucdist.pairs.cutting_planes`, whose certificate does not depend on how
they were found.

If only the highest-scoring negatives count (`aucdist.pairs.top_negatives`), the fraction u_j with which a negative counts is
another variable: ``0 <= b_ij <= W_ij u_j``, ``0 <= u_j <= 1`` and ``sum of v_j u_j <= q``, where v_j is the weight of a
negative and q the target. These unknowns stay in the system of equations. Rows that are in no pair that counts have b = 0, and
can be left out. The method first uses the rows that may count at the present weights. It then adds the rows that may count at
the weights that it found, and starts again, until there are no more rows to add."""

import math
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from numpy import ndarray
from scipy.linalg.lapack import dgetrf, dgetrs

from aucdist.data.block import as_dense, matrix_of_rows, rows_at, stacked
from aucdist.kernels.rows import accumulate
from aucdist.pairs.cuts import PairCuts
from aucdist.pairs.groups import rows_in_pairs
from aucdist.pairs.top_negatives import cutoff_of
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

PATIENCE_IN_STEPS = 8
"""The method ends after more than this many steps without a much smaller gap, because rounding prevents a smaller one. With 2, it
ended too early on 13 of 1,500 random problems of the highest negatives, and with 4 on one."""

GAP_REDUCTION = 0.1
"""The method returns a point each time the gap has fallen to this share of the gap before, so that a fit ends at the first point
that is close enough. With 592 rows and 765 columns of bins at lam 1e-4, 24 steps lead to a gap of 3 %, and 35 to the last one."""

SHARE_CHOSEN, MIN_CHOSEN = 1.5, 100.0
"""If only the highest-scoring negatives count, negatives are chosen up to a total weight of the first number times the target
plus the second number. With 3 times the target, 11 fits of leaves of page-blocks0 take as many passes, and 16 CPU seconds instead
of 10."""

MAX_CHOSEN = 700
"""The largest number of features, if there are fewer of them than rows, and twice the square root of the number of pairs.

With 1,500, as many of 114 fits converge in 85 CPU seconds in place of 74, and one of news20 takes 10 times as long.
"""

REACH = 2.0
"""Positives are chosen in addition if their scores are at most this much above all negatives. The scores of active pairs differ
by less than 1."""

ROUNDING = 1e-12
"""The fractions of negatives are reduced by this share, so that rounding does not make them infeasible."""

TO_BORDER = 0.995
"""The share of the distance to the boundary of the feasible set that a step takes."""

MIN_DENSITY, COLUMNS_AT_ONCE = 0.05, 1_000
"""If the share of values that are not 0 is at least the first number, products of rows are computed from dense columns, as many
at a time as the second number."""


def products_of_rows(X: ndarray | sp.csr_matrix) -> ndarray:
    """Return the products of the rows with each other, float64 of shape (n_rows, n_rows).

    Rows of bins may have many values that are not 0. BLAS multiplies these, in columns that are dense for a while, in a tenth of
    the time that a sparse product takes.
    """
    n, m = X.shape
    if isinstance(X, ndarray) or X.nnz < MIN_DENSITY * n * m:
        return as_dense(X @ X.T)
    X, products = X.tocsc(), np.zeros((n, n))
    for first in range(0, m, COLUMNS_AT_ONCE):
        columns = X[:, first : first + COLUMNS_AT_ONCE].toarray()
        products += columns @ columns.T
    return products


class FewRows:
    """All rows at the client, and the pairs of the rows that were chosen. If all negatives count, these are all pairs.

    Parameters
    ----------
    cuts : PairCuts
        The rows on the blocks, and their scores.
    """

    def __init__(self, cuts: PairCuts):
        self.parts, self._cuts = cuts.blocks.sum(draw_from_block, (1.0, 1.0)), cuts
        self.block, self.target = stacked(self.parts), cuts.negatives.target if cuts.negatives.is_top_only else 0.0
        self._chosen = np.full(self.block.n_samples, not self.target)
        self._pair()

    def choose(self, w: ndarray) -> int:
        """Add the rows that may be in a pair that counts near w, and return the number of chosen rows. It is 0 if too many."""
        if self.target:
            y, scores = self.block.y, self.block.scores(w)
            negatives = scores[y < 0]
            lowest = cutoff_of(negatives, self.block.weights()[y < 0], SHARE_CHOSEN * self.target + MIN_CHOSEN).score
            highest = max(negatives.max() + REACH, scores[y > 0].min())
            self._chosen |= np.where(y > 0, scores <= highest, scores >= lowest)
            n, n_pos = np.count_nonzero(self._chosen), np.count_nonzero(self._chosen & (y > 0))
            if max(min(n, self.block.n_features), 2.0 * np.sqrt(n_pos * (n - n_pos))) > MAX_CHOSEN:
                return 0
            self._pair()
        return len(self.rows)

    def _pair(self) -> None:
        """Set the pairs of the chosen rows."""
        weight, groups = self.block.weights(), self._cuts.groups
        factor = np.ones(1) if groups is None else groups.factor
        parts = []
        for label in (1, -1):
            rows, numbers = rows_in_pairs(self.block, label, groups)
            parts += [rows[self._chosen[rows]], numbers[self._chosen[rows]]]
        pos, pos_groups, neg, neg_groups = parts
        self.rows, self.n_pos, self.weights_neg = np.concatenate([pos, neg]), len(pos), weight[neg]
        i, j = np.nonzero(pos_groups[:, np.newaxis] == neg_groups)
        pairs = weight[pos[i]] * weight[neg[j]] * (factor[pos_groups[i]] / self._cuts.pair_weight)
        counted = pairs > 0.0  # the product of two small weights may be rounded to 0
        self.i, self.j, self.weights = i[counted], j[counted], pairs[counted]
        X = matrix_of_rows(rows_at(self.block.rows, self.rows))
        # Scores are `image @ products @ c`, or ``products @ c`` without an image. With few features, the former is cheaper.
        self.image = as_dense(X) if self.target and X.shape[1] < len(self.rows) else None
        with np.errstate(all="ignore"):
            self.products = products_of_rows(X) if self.image is None else self.image.T

    def solve(self, lam: float) -> Iterator[tuple[ndarray, float, ndarray]]:
        """Yield better and better minimisers for the penalty ``lam/2 |w|^2``, each with the offset and gradient of a dual point.

        A result is yielded when the gap has fallen to `GAP_REDUCTION` times that of the previous result, and at the end.
        Nothing is yielded if no step has finite weights and a dual value above 0.
        """
        with np.errstate(all="ignore"):
            K = self.products / lam
        # The variables, their distances from their upper bounds, and the multipliers of both bounds, which are all positive.
        u = np.full(len(self.weights_neg), 0.5 * self.target / self.weights_neg.sum() if self.target else 1.0)
        b = 0.5 * self.weights * u[self.j]
        distances = self._distances(b, u, 1.0)
        iterate = np.concatenate([distances, b.mean() / distances if self.target else np.ones(distances.shape)])
        lowest, highest, gap, yielded, in_vain = np.inf, 0.0, np.inf, np.inf, 0
        best = bound = np.zeros(0)
        for _ in range(MAX_STEPS):
            primal, dual, t, product = self._values(K, iterate)
            if primal < lowest:
                lowest, best = primal, self._feasible(iterate)
            if dual > highest:
                highest, bound = dual, self._feasible(iterate)
            before, gap = gap, lowest - highest
            in_vain = 0 if gap < 0.9 * before or not highest else in_vain + 1
            # By rounding, the dual value may exceed the objective.
            if in_vain > PATIENCE_IN_STEPS or not (product > 0.0 and gap > 0.0):
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

    def _distances(self, b: ndarray, u: ndarray, one: float) -> ndarray:
        """Return the distances of the variables from their upper bounds, or the changes of these for changes of the variables.

        Parameters
        ----------
        b, u : ndarray
            The variables of the pairs and of the negatives, or their changes.
        one : float
            1 for distances, 0 for their changes.

        Returns
        -------
        ndarray
        """
        W, v, q = self.weights, self.weights_neg, self.target
        if not q:
            return np.stack([b, one * W - b])
        total = np.array([u @ v])
        return np.stack([np.concatenate([b, u, total]), np.concatenate([W * u[self.j] - b, one - u, one * q - total])])

    def _feasible(self, iterate: ndarray) -> ndarray:
        """Return the variables of the pairs, moved to their bounds where rounding put them outside."""
        n, most = len(self.weights), self.weights
        if self.target:
            most = (1.0 - ROUNDING) * most * iterate[0, n + self.j]
        return np.clip(iterate[0, :n], 0.0, most)

    def _point(self, lam: float, best: ndarray, bound: ndarray) -> tuple[ndarray, float, ndarray]:
        return self._sum_of_rows(best) / lam, math.fsum(bound), -self._sum_of_rows(bound)

    def margins(self, scores: ndarray) -> ndarray:
        """Return the margin of each pair."""
        return scores[self.i] - scores[self.n_pos + self.j]

    def coefficients(self, b: ndarray) -> ndarray:
        """Return the coefficients of the rows that the variables of the pairs add up to, float64 of shape (n_rows,)."""
        n = self.n_pos
        return np.concatenate([np.bincount(self.i, b, n), -np.bincount(self.j, b, len(self.rows) - n)])

    def _matrix(self, b: ndarray) -> ndarray:
        """Return values of the pairs, float64 of shape (n_positives, n_negatives)."""
        matrix = np.zeros((self.n_pos, len(self.rows) - self.n_pos))
        matrix[self.i, self.j] = b
        return matrix

    def _scores(self, projected: ndarray) -> ndarray:
        """Return the scores, given `products` times the coefficients."""
        return projected if self.image is None else self.image @ projected

    @np.errstate(all="ignore")
    def _values(self, K: ndarray, iterate: ndarray) -> tuple[float, float, ndarray, float]:
        """Return the objective, the dual value, 1 minus the margin of each pair, and the mean product."""
        b = iterate[0, : len(self.weights)]
        c = self.coefficients(b)
        scores = self._scores(K @ c)
        t, half_square = 1.0 - self.margins(scores), 0.5 * float(c @ scores)
        loss, v = float(self.weights @ np.maximum(t, 0.0)), self.weights_neg
        if self.target:
            sums = np.bincount(self.j, self.weights * np.maximum(t, 0.0), len(v))
            loss = float(sums @ cutoff_of(sums / v, v, self.target).fractions(sums / v))
        return half_square + loss, float(b.sum()) - half_square, t, mean_product(iterate)

    @np.errstate(all="ignore")
    def _next(self, K: ndarray, iterate: ndarray, t: ndarray, product: float) -> ndarray | None:
        """Return the iterate after a step of the predictor-corrector method, or None if its matrix is singular."""
        n, W, v, distances, multipliers = self.n_pos, self.weights, self.weights_neg, iterate[:2], iterate[2:]
        n_pairs, ratios = len(W), multipliers / distances
        curvature = ratios[0] + ratios[1]
        scaling = 1.0 / curvature[:n_pairs]
        scaling_matrix = self._matrix(scaling)
        row_scaling = np.abs(self.coefficients(scaling))
        K_pos, K_neg = K[:, :n], K[:, n:]
        system = np.concatenate(
            [K_pos * row_scaling[:n] - K_neg @ scaling_matrix.T, K_neg * row_scaling[n:] - K_pos @ scaling_matrix],
            axis=1,
        )
        system = system if self.image is None else system @ self.image
        n = len(system)
        system[np.diag_indices(n)] += 1.0
        if self.target:
            # The fractions of the negatives are unknown as well. The rates are the derivatives of a pair's variable by them.
            rates = ratios[1, :n_pairs] * W * scaling
            of_fractions = np.bincount(self.j, ratios[0, :n_pairs] * W * rates, len(v)) + curvature[n_pairs:-1]
            gains = np.concatenate([self._matrix(rates), -np.diag(np.bincount(self.j, rates, len(v)))])
            below = gains.T if self.image is None else gains.T @ self.image
            square = np.diag(of_fractions) + curvature[-1] * np.outer(v, v)
            system = np.block([[system, -K @ gains], [below, square]])
        factor, pivots, failed = dgetrf(system)
        if failed:
            return None
        step = np.zeros((4, 1))
        # Mehrotra's predictor step towards the minimum; its length then determines the centring of the corrector step.
        for corrects in (False, True):
            reached = mean_product(iterate + longest_step(iterate, step) * step)
            target = product * (reached / product) ** 3 if corrects else 0.0
            rest = target - step[:2] * step[2:]
            low, high = rest / distances
            residual = t + low[:n_pairs] - high[:n_pairs]
            right = K @ self.coefficients(scaling * residual)
            if self.target:
                sums = np.bincount(self.j, W * high[:n_pairs] + rates * residual, len(v))
                right = np.append(right, sums + (low - high)[n_pairs:-1] + v * (low - high)[-1])
            solution, _ = dgetrs(factor, pivots, right)
            step_b, step_u = scaling * (residual - self.margins(self._scores(solution[:n]))), solution[n:]
            changes = self._distances(step_b + rates * step_u[self.j] if self.target else step_b, step_u, 0.0)
            step = np.concatenate([changes, (rest - multipliers * changes) / distances - multipliers])
        return iterate + TO_BORDER * longest_step(iterate, step) * step

    def _sum_of_rows(self, b: ndarray) -> ndarray:
        """Return the sum of the rows times their coefficients, each of which is rounded once for each of its groups.

        The sum is as deep as `aucdist.solvers.rounding` takes it for: over a block, and then over the blocks.
        """
        matrix = self._matrix(b)
        c = [math.fsum(row) for row in matrix] + [-math.fsum(row) for row in matrix.T]
        coefs, total, first = np.zeros(self.block.n_samples), np.zeros(self.block.n_features), 0
        np.add.at(coefs, self.rows, c)
        for part in self.parts:
            part_total = np.zeros(len(total))
            accumulate(part.rows, np.arange(part.n_samples), coefs[first : first + part.n_samples], part_total)
            total, first = total + part_total, first + part.n_samples
        return total


def mean_product(iterate: ndarray) -> float:
    """Return the mean product of the distance to a bound and its multiplier. It is 0 at the minimum."""
    return float(iterate[0] @ iterate[2] + iterate[1] @ iterate[3]) / (2 * iterate.shape[1])


def longest_step(iterate: ndarray, step: ndarray) -> float:
    """Return the largest share of a step, at most 1, with which all values stay above 0. Return NaN if a value is NaN."""
    return 1.0 / float(np.maximum(1.0, (-step / iterate).max()))
