"""All pairs with the sum of the weights' sizes as penalty, which leaves features out: a proximal bundle method.

Minimises ``P(w) = lam |w|_1 + mean over all pairs of max(0, 1 - w.(x_i - x_j))``. The cuts are those of
`aucdist.solvers.pairs.all_pairs`. A round looks at the minimiser of their lower model plus ``lam |w|_1 + mu/2 |w -
c|^2``, c being the best point so far, and takes the cuts there; the weight mu follows how well the model foretold the
value (after Kiwiel, "Proximity control in bundle methods for convex nondifferentiable minimization", Mathematical
Programming 46, 1990). There is no line search: a point between two others would have the features of both.

The certificate: for pairs' dual variables a in [0, 1] the mean of a is a lower bound wherever the gradient they add up to
is at most lam in every feature. Scaling them down scales both, so the last model's variables give a true bound always, and
a tight one as c becomes the minimiser.
"""

from collections.abc import Iterator

import numpy as np

from aucdist.engine.blocks import Blocks
from aucdist.solvers.base import Round
from aucdist.solvers.pairs.all_pairs import AllPairs
from aucdist.solvers.rounding import EPS, higher

FORETOLD = 0.5
"""Where at least this share of the decrease foretold came true, the next point may lie farther off."""

CLOSE = 0.03
"""Where the decrease foretold is less than this share of the gap, the points lie too close together to learn from."""

VAIN = 4
"""After so many rounds with hardly a decrease the points come closer."""


def all_pairs_l1(blocks: Blocks, lam: float, start: np.ndarray | None = None) -> Iterator[Round]:
    """Solve by proximal cutting planes over all pairs.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be there.
    lam : float
    start : ndarray of shape (n_features,), optional
        Where to begin; zero by default.

    Yields
    ------
    Round
        The best weights so far, their exact objective, the best bound so far.
    """
    return AllPairsL1(blocks, start).rounds(lam)


class AllPairsL1(AllPairs):
    """What `AllPairs` is, for the other penalty; the parameters are the same."""

    def penalty(self, w: np.ndarray) -> float:
        """Return what the weights cost."""
        return self.lam * float(np.abs(w).sum())

    def bound_error(self, bound: float) -> float:
        """Return a bound on the rounding error of the bundle's bound, which the gradient's largest entry scales."""
        n_points = self.bundle.n_points
        slope_error = self.rounding.combination(2.0 * self.bundle.active, extra=2 * n_points)
        share = self.rounding.over_rows + EPS * n_points
        return bound * (share + float(slope_error.max(initial=0.0)) / self.lam)

    def rounds(self, lam: float) -> Iterator[Round]:
        """Solve for lam, from the best point and the cuts there are."""
        self.lam = lam
        dual, error, passes, vain = 0.0, 0.0, 0, 0
        if self.bundle.n_points == 0:
            self.take_cuts(0.0, self.best_scores, self.w)
            passes = 1
        mu = self._first_weight()
        while True:
            target, model, bound = self.bundle.near_sparse(lam, self.w, mu)
            dual, error = higher((dual, error), (bound, self.bound_error(bound)))
            yield Round(self.w.copy(), self.primal, dual, passes, primal_error=self.primal_error, dual_error=error)
            before = self.primal
            foretold = before - model
            decrease = before - self.take_cuts(1.0, self.score(target), target)
            vain = vain + 1 if decrease < 0.1 * FORETOLD * foretold else 0
            if decrease >= FORETOLD * foretold or foretold < CLOSE * (before - dual):
                mu *= 0.5
            elif vain == VAIN:
                mu, vain = 2.0 * mu, 0
            passes += 1

    def _first_weight(self) -> float:
        """Return the weight with which a first step along the gradient would about halve the objective."""
        slope = np.maximum(np.abs(self.bundle.newest_gradient()) - self.lam, 0.0)
        return float(slope @ slope) / self.primal or self.lam
