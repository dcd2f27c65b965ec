"""A penalty without corners that is not L2: only line searches are for it."""

import numpy as np
import pytest
from support.small_sets import blocks_of, small

from aucdist.errors import InputError
from aucdist.pairs.cutting_planes import AllPairs
from aucdist.pairs.loss import RAMP
from aucdist.pairs.penalty import L1, L2, PENALTIES, Penalty
from aucdist.pairs.problem import PairObjective
from aucdist.pairs.smooth import pair_lbfgs
from aucdist.solvers.base import Status, solve

SCALES = np.array([0.1, 1.0, 10.0, 100.0])


class ScaledRidge(Penalty):
    """``lam/2 sum of scale_j w_j^2``, which is L2 of the features divided by the roots of the scales."""

    name = "scaled-ridge"
    has_corners = False
    precision = 1e-10

    def value(self, w):
        return 0.5 * self.lam * float(SCALES @ w**2)

    def minimiser(self, slope, centre, mu):
        return (mu * centre - slope) / (self.lam * SCALES + mu)

    def quadratic(self, points, slope, w, centre, mu):
        total = self.lam * SCALES + mu
        return points / total @ points.T, points @ (mu * centre / total)

    def bound(self, offset, slope, w):
        return float(offset - self.value(w))

    def bound_error(self, bound, w, bundle, rounding, weight_error):
        return 1e-12 * bundle.offset

    def steepest_square(self, gradient):
        return float(gradient @ gradient)

    def slope_along(self, w, move, step):
        return self.lam * float(SCALES * move @ (w + step * move))


@pytest.mark.parametrize("max_fpr", [None, 0.3])
def test_a_smooth_penalty_is_not_taken_for_l2(monkeypatch, max_fpr):
    monkeypatch.setitem(PENALTIES, ScaledRidge.name, ScaledRidge)
    monkeypatch.setattr(
        "aucdist.pairs.cutting_planes.newton_step", lambda *args, **kwargs: pytest.fail("a Newton step")
    )
    X, y = small(15, 60, d=4, seed=3)
    rounds = AllPairs().rounds(blocks_of(X, y), 0.01, penalty=ScaledRidge.name, max_fpr=max_fpr)
    scaled = solve(rounds, tol=1e-6, max_passes=500)
    monkeypatch.undo()
    l2 = solve(AllPairs().rounds(blocks_of(X / np.sqrt(SCALES), y), 0.01, max_fpr=max_fpr), tol=1e-6, max_passes=500)
    assert scaled.certificate.status is l2.certificate.status is Status.CONVERGED
    assert scaled.certificate.primal == pytest.approx(l2.certificate.primal, rel=2e-6)
    np.testing.assert_allclose(scaled.w, l2.w / np.sqrt(SCALES), atol=1e-2)


def test_smooth_losses_refuse_other_penalties():
    blocks = blocks_of(*small(5, 9, d=4))
    with pytest.raises(InputError, match="with the penalty 'l2', not with 'l1'"):
        next(pair_lbfgs(blocks, PairObjective(RAMP, penalty=L1(0.1))))
    assert next(pair_lbfgs(blocks, PairObjective(RAMP, penalty=L2(0.1)))).primal > 0.0
