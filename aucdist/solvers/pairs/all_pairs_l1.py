"""All pairs with an L1 penalty, which selects features: a proximal bundle method.

Minimises ``P(w) = lam |w|_1 + mean over all pairs of max(0, 1 - w.(x_i - x_j))``. The cuts are those of
`aucdist.solvers.pairs.cutting_planes`. A round takes cuts at the minimiser of their lower model plus ``lam |w|_1 + mu/2 |w -
c|^2``, c being the best point so far; the weight mu depends on how well the model predicted the value (after Kiwiel,
"Proximity control in bundle methods for convex nondifferentiable minimization", Mathematical Programming 46, 1990). There is no
line search, since a point between two others has the features of both.

The certificate: for dual variables a in [0, 1] of the pairs, the mean of a is a lower bound if no entry of their gradient is
larger than lam. Scaling the variables down scales both, so the variables of the last model always give a true bound, and a tight
one as c approaches the minimiser.
"""

from collections.abc import Iterator

import numpy as np

from aucdist.solvers.base import Round
from aucdist.solvers.pairs.cutting_planes import CuttingPlanes
from aucdist.solvers.rounding import EPS, higher

PREDICTED = 0.5
"""If at least this share of the predicted decrease was reached, the next point may be farther off."""

CLOSE = 0.03
"""If the predicted decrease is less than this share of the gap, the points are too close together."""

MOST_NULL_STEPS = 4
"""After so many rounds with hardly a decrease, the points come closer."""


class CuttingPlanesL1(CuttingPlanes):
    """`CuttingPlanes` with an L1 penalty; the parameters are the same."""

    def penalty(self, w: np.ndarray) -> float:
        """Return the penalty of the weights."""
        return self.lam * float(np.abs(w).sum())

    def bound_error(self, bound: float) -> float:
        """Return a bound on the rounding error of the bundle's bound, which the gradient's largest entry scales."""
        n_points = self.bundle.n_points
        slope_error = self.rounding.combination(2.0 * self.bundle.height, extra=2 * n_points)
        share = self.rounding.over_rows + EPS * n_points
        return bound * (share + float(slope_error.max(initial=0.0)) / self.lam)

    def rounds(self, lam: float) -> Iterator[Round]:
        """Solve for lam, from the best point and the cuts so far."""
        self.lam = lam
        dual, error, passes, null_steps = 0.0, 0.0, 0, 0
        if self.bundle.n_points == 0:
            self.take_cuts(0.0, self.best_scores, self.w)
            passes = 1
        mu = self._first_weight()
        while True:
            target, model, bound = self.bundle.sparse_proximal_point(lam, self.w, mu)
            dual, error = higher((dual, error), (bound, self.bound_error(bound)))
            yield Round(self.w.copy(), self.primal, dual, passes, primal_error=self.primal_error, dual_error=error)
            before = self.primal
            self.gap = (before - dual) / before
            predicted = before - model
            decrease = before - self.take_cuts(1.0, self.score(target), target)
            null_steps = null_steps + 1 if decrease < 0.1 * PREDICTED * predicted else 0
            if decrease >= PREDICTED * predicted or predicted < CLOSE * (before - dual):
                mu *= 0.5
            elif null_steps == MOST_NULL_STEPS:
                mu, null_steps = 2.0 * mu, 0
            passes += 1

    def _first_weight(self) -> float:
        """Return the weight mu with which a first step along the gradient would about halve the objective."""
        slope = np.maximum(np.abs(self.bundle.newest_gradient()) - self.lam, 0.0)
        return float(slope @ slope) / self.primal or self.lam
