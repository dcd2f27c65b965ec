"""The active-set method: against the conditions of optimality."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucdist.solvers.pairs.bundle import maximise


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
def test_it_finds_the_maximum(seed):
    r = np.random.default_rng(seed)
    n, d = int(r.integers(1, 30)), int(r.integers(1, 9))
    G = r.normal(size=(n, d)) * 10.0 ** r.integers(-3, 4)
    if r.random() < 0.5:
        G[r.integers(0, n, 5)] = G[r.integers(0, n, 5)]
    if r.random() < 0.3:
        G[r.random(n) < 0.3] = 0.0
    H = G @ G.T
    scale = np.abs(H).max() + 1e-3
    start = first(n)
    if r.random() < 0.5:  # a start with several entries
        start = r.random(n) * (r.random(n) < 0.5) + first(n)
        start /= start.sum()
    a = scale * r.normal(size=n)
    check(H, a, maximise(H, a, start))


@pytest.mark.parametrize("size", [1e-40, 1e-12, 1e12, 1e40])
def test_scales_far_apart_end_in_a_feasible_point(size):
    r = np.random.default_rng(0)
    G = r.normal(size=(22, 3)) * np.array([1.0, 1e-6, 1e6])
    b = first(22)
    for _ in range(5):
        b = maximise(size * (G @ G.T), r.normal(size=22), b)
        assert b.min() >= 0.0
        np.testing.assert_allclose(b.sum(), 1.0, rtol=1e-6)
