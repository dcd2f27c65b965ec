import numpy as np
import pytest
from scipy.optimize import linprog
from support.hinge_twins import hinge_value, l1_minimum, l2_minimum
from support.square_twins import problem

from aucdist.papers.scd.primal import lower_bound, penalty_of, shares_of


def point(a, X, y, weight):
    m = weight / weight.sum() * a
    ones = np.column_stack([X, np.ones(len(y))])
    return np.stack([m[k] @ ones[k] for k in (y < 0, y > 0)])


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
        bound = lower_bound(point(a, X, y, weight), penalty, lam, intercept=intercept)
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
    bound = lower_bound(point(a, X, y, weight), "l1", lam, intercept=intercept)
    assert bound == pytest.approx(lowest, rel=1e-8)


@pytest.mark.parametrize("lam", [0.3, 1e-2])
def test_l2_bound_takes_the_best_length(lam):
    X, y, weight = problem(8, 22, 5)
    p = point(np.linspace(0.2, 1.0, len(y)), X, y, weight)
    shorter = [s * p for s in np.linspace(0.0, 1.0, 1001)]
    values = [s[:, -1].sum() - ((s[1] - s[0])[:-1] ** 2).sum() / (4 * lam) for s in shorter]
    assert lower_bound(p, "l2", lam, intercept=False) == pytest.approx(max(values), rel=1e-5)
    assert lower_bound(p, "l2", lam, intercept=False) >= max(values)


def test_gradient_is_that_of_the_loss():
    X, y, weight = problem(8, 22, 5, weighted=True)
    w, b, h = np.random.default_rng(1).normal(size=5), 0.3, 1e-6
    active = (y * (X @ w + b) < 1.0).astype(float)
    negative, positive = point(active, X, y, weight)
    gradient = negative - positive
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
    p = np.array([[0.0, 0.0, 0.0], [0.1, 0.2, 0.5]])
    for penalty in ("l1", "l2"):
        assert lower_bound(p, penalty, 0.1, intercept=True) == 0.0
