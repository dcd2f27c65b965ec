import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import approx_fprime, minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from support.oracle import pair_differences, ramp, ramp_objective
from support.rounds import last
from support.small_sets import CASES, blocks_of, small

from aucdist import PairwiseHingeClassifier, PairwiseRampClassifier
from aucdist.pairs import RampLBFGS, top_negatives
from aucdist.pairs.loss import RAMP
from aucdist.pairs.penalty import L2
from aucdist.pairs.problem import PairObjective
from aucdist.pairs.smooth import SmoothPairProblem, hinge_minima
from aucdist.pairs.top_negatives import TopNegatives
from aucdist.solvers import lbfgs
from aucdist.solvers.base import Status, solve
from aucdist.solvers.lbfgs import Point
from aucdist.solvers.signs import blocked, project_onto_cone


@pytest.mark.nojit
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


@pytest.mark.parametrize("lam", [0.3, 1e-2])
def test_ends_where_scipy_does(lam):
    X, y = small(n_pos=12, n_neg=40)
    solution = solve(RampLBFGS().rounds(blocks_of(X, y), lam, tol=1e-10), tol=0.0, max_passes=500)
    assert solution.certificate.status is Status.STATIONARY
    assert solution.certificate.dual == 0.0
    peer = minimize(ramp_objective, np.zeros(4), args=(X, y, lam), jac=True, method="BFGS", options={"gtol": 1e-9})
    assert solution.certificate.primal == pytest.approx(peer.fun, rel=1e-8)
    np.testing.assert_allclose(solution.w, peer.x, rtol=1e-4, atol=1e-6)


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
    X, y = CASES["a grid of thirds"]
    X = 3.0 * X  # whole numbers, which tie exactly
    w = np.array([1.0, -2.0, 0.5])
    point = SmoothPairProblem(blocks_of(X, y), PairObjective(RAMP, penalty=L2(1e-12))).evaluate(1e4 * w)
    assert point.value - 0.5e-12 * 1e8 * (w @ w) == pytest.approx(1.0 - roc_auc_score(y, X @ w), rel=1e-6)


def test_without_a_tolerance_it_ends_where_rounding_does():
    X, y = small()
    solution = solve(RampLBFGS().rounds(blocks_of(X, y), 0.1), tol=0.0, max_passes=1000)
    assert solution.certificate.status in (Status.MAX_STEPS, Status.STATIONARY)
    assert np.linalg.norm(ramp_objective(solution.w, X, y, 0.1)[1]) < 1e-6


# ---- the ramp over a cone of signs: stationary by plain Python, within the cone, and no worse than SciPy's bounded des


SIGNS = np.array([1, -1, 0, 2, -1], dtype=np.int8)


def value_and_gradient(w, X, y, lam):
    """Return the objective and its gradient, pair after pair in plain Python."""
    Z = pair_differences(X, y)
    losses = [ramp(float(m)) for m in Z @ w]
    return lam / 2 * w @ w + np.mean([v for v, _ in losses]), lam * w + np.mean(
        [s * z for (_, s), z in zip(losses, Z, strict=True)], axis=0
    )


@pytest.mark.parametrize(("seed", "lam"), [*zip(range(8), [1e-1, 1e-2] * 4, strict=True)])
def test_the_end_is_stationary_within_the_cone(seed, lam):
    X, y = small(8, 15, d=5, seed=seed)
    solution = solve(
        RampLBFGS().rounds(blocks_of(X, y, 1 + seed % 3), lam, tol=1e-9, signs=SIGNS), tol=0.0, max_passes=500
    )
    np.testing.assert_array_equal(solution.w, project_onto_cone(solution.w, SIGNS))
    value, gradient = value_and_gradient(solution.w, X, y, lam)
    assert solution.certificate.primal == pytest.approx(value, rel=1e-12)
    assert solution.certificate.status in (Status.STATIONARY, Status.MAX_STEPS)
    assert np.abs(np.where(blocked(solution.w, gradient, SIGNS), 0.0, gradient)).max() < 1e-3
    assert solution.certificate.dual == 0.0  # nothing is proved
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


# ---- the ramp over the highest-scoring negatives against plain Python -------------------------


CLASSES = [(7, 22), (22, 7)]


def top_ramp_objective(w, X, y, lam, top_weight, weight=None):
    """Return the objective, row after row in plain Python."""
    v = np.ones(len(y)) if weight is None else weight
    scores, left, total = X @ w, top_weight, 0.0
    for j in sorted(np.flatnonzero(y < 0), key=lambda j: -scores[j]):
        part = min(left, v[j])
        total += part * sum(v[i] * ramp(scores[i] - scores[j])[0] for i in np.flatnonzero(y > 0))
        left -= part
    return 0.5 * lam * float(w @ w) + total / (v[y > 0].sum() * top_weight)


@pytest.mark.parametrize(("most", "weighted"), [(3, True), (10**6, False)])
@pytest.mark.parametrize("classes", CLASSES)
def test_value_and_gradient_of_the_top_match_differences(monkeypatch, most, classes, weighted):
    monkeypatch.setattr(top_negatives, "MAX_GATHERED", most)
    X, y = small(*classes)
    r = np.random.default_rng(0)
    weight = r.uniform(0.5, 2.0, len(y)) if weighted else None
    top_weight = 0.3 * (weight[y < 0].sum() if weighted else classes[1])
    problem = SmoothPairProblem(
        blocks_of(X, y, 3, weight), PairObjective(RAMP, top_negatives=TopNegatives(0.3), penalty=L2(0.1))
    )
    for _ in range(5):
        w = r.normal(size=4)
        point = problem.evaluate(w)
        assert point.value == pytest.approx(top_ramp_objective(w, X, y, 0.1, top_weight, weight), rel=1e-12)
        slopes = approx_fprime(w, top_ramp_objective, 1e-7, X, y, 0.1, top_weight, weight)
        np.testing.assert_allclose(point.gradient, slopes, rtol=1e-4, atol=1e-6)


def test_ties_at_the_boundary_count_in_part():
    X, y = np.array([[1.0], [0.5], [0.0], [0.0], [0.0], [-1.0]]), np.array([1, 1, -1, -1, -1, -1])
    for sign in (1, -1):  # either class the smaller one
        rows, labels = sign * X, sign * y
        problem = SmoothPairProblem(
            blocks_of(rows, labels, 2),
            PairObjective(RAMP, top_negatives=TopNegatives(max_false_positives=2), penalty=L2(0.1)),
        )
        w = np.array([1.1])
        expected = top_ramp_objective(w, rows, labels, 0.1, 2.0)
        assert problem.evaluate(w).value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("classes", CLASSES)
def test_whole_share_is_all_pairs(classes):
    X, y = small(*classes)
    w = np.random.default_rng(1).normal(size=4)
    point = SmoothPairProblem(
        blocks_of(X, y), PairObjective(RAMP, top_negatives=TopNegatives(1.0), penalty=L2(0.1))
    ).evaluate(w)
    value, gradient = ramp_objective(w, X, y, 0.1)
    assert point.value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(point.gradient, gradient, rtol=1e-9, atol=1e-12)


def test_the_bounds_on_rounding_grow_with_the_curvature_of_the_loss():
    problem = SmoothPairProblem(blocks_of(*small()), PairObjective(RAMP, penalty=L2(0.1)))
    point = problem.evaluate(np.zeros(4))
    once = problem.errors(point)
    problem.loss = type("Steep", (type(RAMP),), {"curvature": 2.0})()
    np.testing.assert_allclose(problem.errors(point), 2.0 * np.array(once), rtol=0.05)


def test_rounds_improve_on_both_starts():
    X, y = small(15, 60, shift=1.0, d=3)
    blocks = blocks_of(X, y, 2)
    starts, passes = hinge_minima(blocks, PairObjective(RAMP, top_negatives=TopNegatives(0.2), penalty=L2(1e-2)))
    final = last(RampLBFGS().rounds(blocks, 1e-2, max_fpr=0.2))
    assert final.passes > passes
    for w in starts:
        assert final.primal <= top_ramp_objective(w, X, y, 1e-2, 12.0) + 1e-12
    assert final.primal == pytest.approx(top_ramp_objective(final.w, X, y, 1e-2, 12.0), rel=1e-10)


def test_no_weights_near_are_much_better_where_the_fit_is_stationary():
    X, y = small(40, 400, shift=0.8, d=2)
    solution = solve(RampLBFGS().rounds(blocks_of(X, y), 1e-1, max_fpr=0.2, tol=1e-3), tol=1e-3, max_passes=500)
    assert solution.certificate.status is Status.STATIONARY
    assert solution.last.majorant_gap <= 1e-3
    for step in np.random.default_rng(0).normal(size=(50, 2)):
        nearby = top_ramp_objective(solution.w + 0.03 * step, X, y, 1e-1, 80.0)
        assert nearby >= solution.certificate.primal * (1 - 1.1e-3)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_estimator_goes_on_where_the_hinge_collapses():
    r = np.random.default_rng(0)
    y = np.repeat([1, -1], [60, 600])
    X = r.normal(size=(660, 3))
    X[:30, 0] += 4.0  # half of the positives can be found, the others are like negatives
    hinge = PairwiseHingeClassifier(lam=1e-2, max_fpr=0.02).fit(X, y)
    model = PairwiseRampClassifier(lam=1e-2, max_fpr=0.02).fit(X, y)
    assert hinge.certificate_.dual > 0.95
    assert abs(model.coef_[0, 0]) > 2 * abs(model.coef_[0, 1:]).max()
    recall = (model.decision_function(X[:30]) > np.quantile(model.decision_function(X[60:]), 0.98)).mean()
    assert recall > 0.8
