import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from support.hinge_twins import hinge_value, l1_minimum, l2_minimum
from support.square_twins import problem

from aucdist.papers.scd.primal import DualPoint, penalty_of, shares_of

pytestmark = pytest.mark.nojit


def point(a, X, y, weight):
    m = weight / weight.sum() * a
    halves = [y < 0, y > 0]
    return DualPoint(np.array([m[k].sum() for k in halves]), np.stack([m[k] @ X[k] for k in halves]))


@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("lam", [0.3, 1e-2, 1e-4])
def test_no_dual_point_is_above_the_minimum(penalty, intercept, lam):
    X, y, weight = problem(8, 22, 5, weighted=True)
    if penalty == "l1":
        lowest = l1_minimum(X, y, lam, weight, intercept=intercept)[0]
    else:
        lowest = l2_minimum(X, y, lam, weight, intercept=intercept)
    best, r = 0.0, np.random.default_rng(0)
    for trial in range(300):
        a = r.random(len(y)) ** r.choice([0.2, 1.0, 5.0]) if trial else np.ones(len(y))
        bound = point(a, X, y, weight).lower_bound(penalty, lam, intercept=intercept)
        assert bound <= lowest * (1 + 1e-9)
        best = max(best, bound)
    assert best > 0.0


@pytest.mark.parametrize("intercept", [False, True])
def test_l1_bound_at_the_programmes_own_dual_is_its_value(intercept):
    X, y, weight = problem(12, 30, 4, weighted=True)
    lam, m = 0.02, weight / weight.sum()
    lowest = l1_minimum(X, y, lam, weight, intercept=intercept)[0]
    Z = (m * y)[:, None] * X
    equal = {"A_eq": (m * y)[None, :], "b_eq": [0.0]} if intercept else {}
    a = linprog(-m, np.vstack([Z.T, -Z.T]), np.full(8, lam), bounds=[(0, 1)] * len(y), **equal).x
    bound = point(a, X, y, weight).lower_bound("l1", lam, intercept=intercept)
    assert bound == pytest.approx(lowest, rel=1e-8)


@pytest.mark.parametrize("lam", [0.3, 1e-2])
def test_l2_bound_takes_the_best_length(lam):
    X, y, weight = problem(8, 22, 5)
    p = point(np.linspace(0.2, 1.0, len(y)), X, y, weight)
    shorter = [DualPoint(s * p.totals, s * p.sums) for s in np.linspace(0.0, 1.0, 1001)]
    values = [s.totals.sum() - ((s.sums[1] - s.sums[0]) ** 2).sum() / (4 * lam) for s in shorter]
    assert p.lower_bound("l2", lam, intercept=False) == pytest.approx(max(values), rel=1e-5)
    assert p.lower_bound("l2", lam, intercept=False) >= max(values)


@given(st.integers(0, 10_000), st.floats(0.0, 1.0))
@settings(max_examples=50, deadline=None)
def test_points_add_and_mix_like_their_variables(seed, share):
    X, y, weight = problem(5, 9, 3, seed=seed % 7, weighted=True)
    r = np.random.default_rng(seed)
    a, b = r.random((2, len(y)))
    mixed = point(a, X, y, weight).towards(point(b, X, y, weight), share)
    meant = point(a + share * (b - a), X, y, weight)
    np.testing.assert_allclose(mixed.sums, meant.sums, atol=1e-14)
    np.testing.assert_allclose(mixed.totals, meant.totals, atol=1e-14)
    both = point(a, X, y, weight) + point(b, X, y, weight)
    np.testing.assert_allclose(both.gradient(), point(a + b, X, y, weight).gradient(), atol=1e-14)


def test_gradient_is_that_of_the_loss():
    X, y, weight = problem(8, 22, 5, weighted=True)
    w, b, h = np.random.default_rng(1).normal(size=5), 0.3, 1e-6
    active = (y * (X @ w + b) < 1.0).astype(float)
    gradient = point(active, X, y, weight).gradient()
    for j, step in enumerate(np.eye(6) * h):
        up = hinge_value(w + step[:5], X, y, 0.0, "l1", weight, b + step[5])
        down = hinge_value(w - step[:5], X, y, 0.0, "l1", weight, b - step[5])
        assert gradient[j] == pytest.approx((up - down) / (2 * h), abs=1e-8)


def test_shares_add_up_to_one():
    neg, pos = shares_of(40.0, 5.0, (1.0, 3.0))
    assert 40.0 * neg + 5.0 * pos == pytest.approx(1.0)
    assert pos == pytest.approx(3.0 * neg)


def test_penalties():
    w = np.array([1.0, -2.0, 0.0])
    assert penalty_of(w, "l1", 0.5) == 1.5
    assert penalty_of(w, "l2", 0.5) == 2.5


def test_a_point_of_one_class_gives_nothing_where_an_intercept_is_free():
    p = DualPoint(np.array([0.0, 0.5]), np.array([[0.0, 0.0], [0.1, 0.2]]))
    for penalty in ("l1", "l2"):
        assert p.lower_bound(penalty, 0.1, intercept=True) == 0.0
