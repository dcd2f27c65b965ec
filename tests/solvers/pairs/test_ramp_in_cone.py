"""The ramp over a cone of signs: stationary by plain Python, within the cone, and no worse than SciPy's bounded descent."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from support.oracle import pair_differences, ramp
from support.small_sets import blocks_of, small

from aucdist import PairwiseRampClassifier
from aucdist.errors import InputError
from aucdist.solvers import lbfgs
from aucdist.solvers.base import Status, solve
from aucdist.solvers.lbfgs import Point
from aucdist.solvers.pairs import RampLBFGS
from aucdist.solvers.pairs.loss import RAMP
from aucdist.solvers.pairs.objective import PairObjective
from aucdist.solvers.pairs.penalty import L2
from aucdist.solvers.pairs.smooth import SmoothPairProblem
from aucdist.solvers.signs import blocked, project_onto_cone

SIGNS = np.array([1, -1, 0, 2, -1], dtype=np.int8)


def value_and_gradient(w, X, y, lam):
    """Return the objective and its gradient, pair after pair in plain Python."""
    Z = pair_differences(X, y)
    found = [ramp(float(m)) for m in Z @ w]
    return lam / 2 * w @ w + np.mean([v for v, _ in found]), lam * w + np.mean(
        [s * z for (_, s), z in zip(found, Z, strict=True)], axis=0
    )


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("lam", [1e-1, 1e-2])
def test_the_end_is_stationary_within_the_cone(seed, lam):
    X, y = small(8, 15, d=5, seed=seed)
    found = solve(
        RampLBFGS().rounds(blocks_of(X, y, 1 + seed % 3), lam, tol=1e-9, signs=SIGNS), tol=0.0, max_passes=500
    )
    np.testing.assert_array_equal(found.w, project_onto_cone(found.w, SIGNS))
    value, gradient = value_and_gradient(found.w, X, y, lam)
    assert found.certificate.primal == pytest.approx(value, rel=1e-12)
    assert found.certificate.status in (Status.STATIONARY, Status.FINISHED)
    assert np.abs(np.where(blocked(found.w, gradient, SIGNS), 0.0, gradient)).max() < 1e-3
    assert found.certificate.dual == 0.0  # nothing is proved
    # As low as a bounded descent by SciPy that starts in the same place.
    bounds = [(0, None), (None, 0), (None, None), (0, 0), (None, 0)]
    other = minimize(value_and_gradient, np.zeros(5), (X, y, lam), jac=True, method="L-BFGS-B", bounds=bounds)
    assert value <= other.fun * (1 + 1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_the_majorant_gap_is_the_most_that_the_majorant_falls(seed):
    r = np.random.default_rng(seed)
    X, y = small(6, 11, d=5, seed=seed)
    problem = SmoothPairProblem(blocks_of(X, y), PairObjective(RAMP, penalty=L2(0.1, SIGNS)))
    point = problem.evaluate(project_onto_cone(r.normal(size=5), SIGNS))
    most = problem.majorant_gap(point) * point.value
    ways = [project_onto_cone(point.w + 3.0 * r.normal(size=5), SIGNS) - point.w for _ in range(2000)]
    assert most >= max(-point.gradient @ way - 0.05 * way @ way for way in ways)
    assert most >= 0.0


def test_without_signs_the_steps_are_the_same_to_the_bit():
    X, y = small(9, 23)
    plain = solve(RampLBFGS().rounds(blocks_of(X, y), 1e-2, tol=1e-6), tol=0.0, max_passes=100)
    free = solve(
        RampLBFGS().rounds(blocks_of(X, y), 1e-2, tol=1e-6, signs=np.zeros(4, dtype=np.int8)), tol=0.0, max_passes=100
    )
    np.testing.assert_allclose(free.w, plain.w, rtol=1e-6)


@given(st.integers(0, 10**6))
def test_a_convex_quadratic_is_minimised_over_the_cone(seed):
    r = np.random.default_rng(seed)
    n = int(r.integers(1, 8))
    A, q, signs = r.normal(size=(n + 2, n)), r.normal(size=n), r.choice([-1, 0, 1, 2], n).astype(np.int8)
    H = A.T @ A + 1e-2 * np.eye(n)

    def evaluate(w):
        return Point(w, float(0.5 * w @ H @ w - q @ w), H @ w - q)

    points = [point for point, _ in lbfgs.descend(evaluate, evaluate(np.zeros(n)), signs)]
    end = points[-1]
    np.testing.assert_array_equal(end.w, project_onto_cone(end.w, signs))
    assert np.abs(np.where(blocked(end.w, end.gradient, signs), 0.0, end.gradient)).max() <= 1e-5
    assert all(after.value <= before.value for before, after in itertools.pairwise(points))


@pytest.mark.parametrize("share", [{}, {"max_fpr": 0.3}, {"max_false_positives": 40}])
def test_scores_never_fall_in_a_feature_that_increases(share):
    r = np.random.default_rng(0)
    X = r.normal(size=(600, 3))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] > r.normal(size=600)).astype(int)
    model = PairwiseRampClassifier(
        features="bins", lam=1e-2, max_passes=150, monotone={0: "increasing", 2: "decreasing"}, **share
    )
    with pytest.warns(ConvergenceWarning) if share else np.errstate():
        model.fit(X, y)
    assert not (model.feature_map_.signs(model.monotone_) * model.coef_[0] < 0).any()
    rows = np.repeat(X[:1], 400, axis=0)
    rows[:, 0] = np.linspace(-4, 4, 400)
    assert (np.diff(model.decision_function(rows)) >= 0).all()
    assert model.decision_function(rows)[-1] > model.decision_function(rows)[0]


def test_a_direction_that_is_none_is_refused():
    with pytest.raises(InputError, match=r"direction of 0 in monotone 'up'.*increasing, decreasing"):
        PairwiseRampClassifier(monotone={0: "up"}).fit(np.eye(4), [0, 1, 0, 1])
