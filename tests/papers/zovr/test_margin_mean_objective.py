import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import pdist
from scipy.special import betainc
from sklearn.metrics.pairwise import rbf_kernel
from support.margin_twins import problem, zeroth_order_estimate

from aucdist.objectives.gaussian import gaussian_kernel, median_distance
from aucdist.papers.zovr.solvers import random_directions


def share_of_ball_below(t, d):
    """Return how much of the unit ball in d dimensions lies below t along an axis."""
    tail = 0.5 * betainc((d + 1) / 2, 0.5, 1 - min(abs(t), 1) ** 2)
    return tail if t < 0 else 1 - tail


@pytest.mark.parametrize("d", [2, 5])
@pytest.mark.parametrize("margin", [0.7, 0.98, 1.03])
def test_the_estimate_is_the_gradient_of_the_smoothed_function_over_n_features(d, margin):
    """Equation (6) on one hinge, whose mean over a ball is known in closed form; within 4 standard errors."""
    mu = 0.1
    x = np.ones(d) / np.sqrt(d)
    w = margin * x
    smoothed_gradient = -x * share_of_ball_below((1 - margin) / mu, d)

    def loss(v):
        return max(0.0, 1.0 - float(x @ v))

    n = 20_000 if d > 2 else 8_000
    ways = random_directions((n, d), 3)
    each = np.array([zeroth_order_estimate(loss, w, u[np.newaxis], mu) for u in ways])
    error = each.std(axis=0, ddof=1) / np.sqrt(n)
    np.testing.assert_array_less(np.abs(each.mean(axis=0) - smoothed_gradient / d), 4 * error + 1e-12)
    np.testing.assert_allclose(zeroth_order_estimate(loss, w, ways, mu), each.mean(axis=0), rtol=1e-9, atol=1e-12)


def test_the_estimate_needs_values_only():
    """The count of wrong signs has no gradient anywhere that is not 0; its estimate points down all the same."""
    X, y = problem(200, 3)
    calls = []

    def mistakes(v):
        calls.append(v)
        return float(np.mean(y * (X @ v) <= 0))

    w = np.array([0.5, -1.0, 0.2])
    slope = zeroth_order_estimate(mistakes, w, random_directions((200, 3), 0), 0.3)
    assert len(calls) == 400
    assert mistakes(w - 2 * slope / np.linalg.norm(slope)) < mistakes(w)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, lambda X: X.astype(np.float32)])
def test_gaussian_kernel(form):
    r = np.random.default_rng(0)
    X, Z = r.integers(-3, 4, (6, 4)).astype(float), r.integers(-3, 4, (5, 4)).astype(float)
    X[0] = Z[0]
    found = gaussian_kernel(form(X), form(Z), 1.7)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, rbf_kernel(X, Z, gamma=1 / 1.7**2), rtol=1e-12)
    assert found[0, 0] == 1.0


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_median_distance_leaves_equal_rows_out(form):
    X = np.random.default_rng(0).normal(size=(15, 3))
    X[5:9] = X[4]
    apart = pdist(X)
    assert median_distance(form(X)) == pytest.approx(np.median(apart[apart > 0]), rel=1e-6)
    assert np.isnan(median_distance(form(np.ones((4, 2)))))
