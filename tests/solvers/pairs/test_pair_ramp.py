import itertools

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.metrics import roc_auc_score
from support.oracle import ramp_objective
from support.small_sets import blocks_of, small

from aucdist.solvers.base import Status, solve
from aucdist.solvers.pairs import RampLBFGS
from aucdist.solvers.pairs.loss import RAMP
from aucdist.solvers.pairs.objective import PairObjective
from aucdist.solvers.pairs.penalty import L2
from aucdist.solvers.pairs.smooth import SmoothPairProblem

CASES = {
    "few positives": small(),
    "few negatives": small(n_pos=19, n_neg=6),
    "one of each": small(n_pos=1, n_neg=1),
    "ties": (np.random.default_rng(5).integers(-4, 5, (24, 3)) / 3.0, np.tile([1, -1, -1], 8)),
    "far apart": small(shift=9.0),
}


@pytest.mark.parametrize("n_blocks", [1, 3, 40])
@pytest.mark.parametrize("case", CASES)
def test_value_and_gradient_are_those_of_all_pairs(case, n_blocks):
    X, y = CASES[case]
    r = np.random.default_rng(1)
    weight = r.integers(1, 4, len(y)) / 2.0
    problem = SmoothPairProblem(blocks_of(X, y, n_blocks, weight), PairObjective(RAMP, penalty=L2(0.1)))
    for scale in (0.0, 0.3, 5.0):
        w = scale * r.normal(size=X.shape[1])
        point, (value, gradient) = problem.evaluate(w), ramp_objective(w, X, y, 0.1, weight)
        assert point.value == pytest.approx(value, rel=1e-11)
        np.testing.assert_allclose(point.gradient, gradient, rtol=1e-9, atol=1e-11)


def test_gradient_by_finite_differences():
    X, y = small()
    problem, w, h = (
        SmoothPairProblem(blocks_of(X, y), PairObjective(RAMP, penalty=L2(0.1))),
        np.array([0.3, -0.4, 0.8, 0.1]),
        1e-6,
    )
    slopes = [(problem.evaluate(w + e).value - problem.evaluate(w - e).value) / (2 * h) for e in h * np.eye(4)]
    np.testing.assert_allclose(problem.evaluate(w).gradient, slopes, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("lam", [0.3, 1e-2])
def test_ends_where_scipy_does(lam):
    X, y = small(n_pos=12, n_neg=40)
    found = solve(RampLBFGS().rounds(blocks_of(X, y), lam, tol=1e-10), tol=0.0, max_passes=500)
    assert found.certificate.status is Status.STATIONARY
    assert found.certificate.dual == 0.0
    peer = minimize(ramp_objective, np.zeros(4), args=(X, y, lam), jac=True, method="BFGS", options={"gtol": 1e-9})
    assert found.certificate.primal == pytest.approx(peer.fun, rel=1e-8)
    np.testing.assert_allclose(found.w, peer.x, rtol=1e-4, atol=1e-6)


def test_every_round_is_lower_and_says_how_much_is_left():
    X, y = small(n_pos=12, n_neg=40)
    lam, before = 1e-2, np.inf
    for state in itertools.islice(RampLBFGS().rounds(blocks_of(X, y), lam, tol=1e-6), 200):
        value, gradient = ramp_objective(state.w, X, y, lam)
        assert state.primal == pytest.approx(value, rel=1e-12)
        assert state.primal < before
        assert state.majorant_gap == pytest.approx(gradient @ gradient / (2 * lam * value), rel=1e-6)
        assert state.stationary == (state.majorant_gap <= 1e-6)
        if state.stationary:
            break
        before = state.primal
    assert state.stationary


def test_no_convex_majorant_goes_lower_than_the_gap_says():
    X, y = small()
    lam, w = 0.05, np.array([0.3, -0.4, 0.8, 0.1])
    Z = (X[y > 0][:, None, :] - X[y < 0][None, :, :]).reshape(-1, 4)

    def square(t):
        return 0.5 * np.maximum(0.0, t) ** 2

    tangent = np.maximum(0.0, -(Z @ w)) @ -Z

    def majorant(u):
        m = Z @ u
        concave = square(-(Z @ w)).sum() + tangent @ (u - w)
        return 0.5 * lam * u @ u + (square(1.0 - m) + square(-1.0 - m)).mean() - 2.0 * concave / len(Z)

    problem = SmoothPairProblem(blocks_of(X, y), PairObjective(RAMP, penalty=L2(lam)))
    point = problem.evaluate(w)
    assert majorant(w) == pytest.approx(point.value, rel=1e-12)
    for u in np.random.default_rng(2).normal(size=(50, 4)):
        assert majorant(u) >= problem.evaluate(u).value - 1e-12
    least = minimize(majorant, w, method="BFGS", options={"gtol": 1e-9}).fun
    assert point.value * (1.0 - problem.majorant_gap(point)) <= least < point.value


def test_long_weights_count_the_auc():
    X, y = CASES["ties"]
    X = 3.0 * X  # whole numbers, which tie exactly
    w = np.array([1.0, -2.0, 0.5])
    point = SmoothPairProblem(blocks_of(X, y), PairObjective(RAMP, penalty=L2(1e-12))).evaluate(1e4 * w)
    assert point.value - 0.5e-12 * 1e8 * (w @ w) == pytest.approx(1.0 - roc_auc_score(y, X @ w), rel=1e-6)


@pytest.mark.parametrize("n_blocks", [2, 40])
def test_many_blocks_same_optimum(n_blocks):
    X, y = small(n_pos=12, n_neg=50)
    one, many = (
        solve(RampLBFGS().rounds(blocks_of(X, y, k), 1e-2, tol=1e-8), tol=0.0, max_passes=300) for k in (1, n_blocks)
    )
    assert one.certificate.status is many.certificate.status is Status.STATIONARY
    np.testing.assert_allclose(many.w, one.w, rtol=1e-6, atol=1e-9)


def test_a_start_is_used_and_a_stationary_one_is_the_end():
    X, y = small(n_pos=12, n_neg=50)
    cold = solve(RampLBFGS().rounds(blocks_of(X, y), 1e-2, tol=1e-6), tol=0.0, max_passes=300)
    warm = solve(RampLBFGS().rounds(blocks_of(X, y), 1e-2, cold.w, tol=1e-5), tol=0.0, max_passes=300)
    assert (warm.passes, warm.certificate.primal) == (1, pytest.approx(cold.certificate.primal, rel=1e-12))


def test_without_a_tolerance_it_ends_where_rounding_does():
    X, y = small()
    found = solve(RampLBFGS().rounds(blocks_of(X, y), 0.1), tol=0.0, max_passes=1000)
    assert found.certificate.status in (Status.FINISHED, Status.STATIONARY)
    assert np.linalg.norm(ramp_objective(found.w, X, y, 0.1)[1]) < 1e-6


def test_one_far_row_does_not_turn_the_weights():
    X, y = small(n_pos=20, n_neg=60, d=2, shift=1.5)
    X[np.flatnonzero(y < 0)[0]] = [60.0, -60.0]
    found = solve(RampLBFGS().rounds(blocks_of(X, y), 1e-2, tol=1e-4), tol=0.0, max_passes=300)
    others = np.ones(len(y), dtype=bool)
    others[np.flatnonzero(y < 0)[0]] = False
    assert roc_auc_score(y[others], X[others] @ found.w) > 0.9
