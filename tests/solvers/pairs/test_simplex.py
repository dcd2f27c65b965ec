"""The active-set methods: against the conditions of optimality, and against each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucdist.solvers.pairs import simplex_kernels as simplex

# Where entries are near dependent a pivot is as small as the ridge, and what it divides may be infinite: it counts as rounding.
# Plain Python warns of it.
pytestmark = [
    pytest.mark.nojit,
    pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning"),
]


def first(n):
    """Return the point where the first entry is all."""
    return (np.arange(n) == 0) * 1.0


def check(H, a, b):
    """Assert that b is feasible, and that no entry would gain more by rising than those that are above 0."""
    assert b.min() >= 0.0
    np.testing.assert_allclose(b.sum(), 1.0, rtol=1e-6)
    gain, scale = a - H @ b, np.abs(a).max() + np.abs(H).max()
    assert gain.max() <= gain[b > 1e-6].min() + 2e-6 * scale


@given(st.integers(0, 10**7))
def test_both_methods_find_the_maximum(seed):
    r = np.random.default_rng(seed)
    n, d = int(r.integers(1, 30)), int(r.integers(1, 9))
    G = r.normal(size=(n, d)) * 10.0 ** r.integers(-3, 4)
    if r.random() < 0.5:
        G[r.integers(0, n, 5)] = G[r.integers(0, n, 5)]
    if r.random() < 0.3:
        G[r.random(n) < 0.3] = 0.0
    H = G @ G.T
    scale = np.abs(H).max() + 1e-3
    start, values = first(n), []
    if r.random() < 0.5:  # a start with several entries
        start = r.random(n) * (r.random(n) < 0.5) + first(n)
        start /= start.sum()
    a = scale * r.normal(size=n)
    for few in (64, 0):
        b = start.copy()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(simplex, "FEW_POINTS", few)
            simplex.maximise(H, a, b)
        check(H, a, b)
        values.append(a @ b - 0.5 * b @ H @ b)
    assert values[0] == pytest.approx(values[1], rel=1e-6, abs=1e-6 * scale)


@pytest.mark.parametrize("few", [64, 0])
@pytest.mark.parametrize("size", [1e-40, 1e-12, 1e12, 1e40])
def test_scales_far_apart_end_in_a_feasible_point(size, few, monkeypatch):
    monkeypatch.setattr(simplex, "FEW_POINTS", few)
    r = np.random.default_rng(0)
    G = r.normal(size=(22, 3)) * np.array([1.0, 1e-6, 1e6])
    b = first(22)
    for _ in range(5):
        simplex.maximise(size * (G @ G.T), r.normal(size=22), b)
        assert b.min() >= 0.0
        np.testing.assert_allclose(b.sum(), 1.0, rtol=1e-6)
        b /= b.sum()


@pytest.mark.parametrize("seed", range(5))
def test_the_factor_is_that_of_the_free_entries(seed):
    r = np.random.default_rng(seed)
    G, a, c = r.normal(size=(32, 40)), 40.0 * r.normal(size=32), 3.0
    H = G @ G.T
    U, free = np.zeros((32, 32)), np.arange(32)
    problem, factor = (H, a, 1e-12, c), (U, np.zeros((32, 2)), np.zeros(32))
    for k in range(20):
        simplex._append(problem, free, k, factor)
    for p, added in ((3, 20), (17, 21), (0, 22)):
        simplex._remove(free, 20, p, U)
        free[19] = added
        simplex._append(problem, free, 19, factor)
    kept = free[:20]
    factor = np.triu(U[:20, :20])
    np.testing.assert_allclose(factor.T @ factor, H[np.ix_(kept, kept)] + c, rtol=1e-9, atol=1e-9)
