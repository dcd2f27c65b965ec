"""The active-set method on a factor: against the conditions of optimality, for one right-hand side after another."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aucdist.kernels import simplex
from aucdist.kernels.simplex_factor import Maximiser

# Where entries are near dependent a pivot is as small as the ridge, and what it divides may be infinite: it counts as rounding.
# Plain Python warns of it.
pytestmark = [
    pytest.mark.nojit,
    pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning"),
]


def problem(r):
    """Return points of several components, with duplicates, zeros, few dimensions and scales apart."""
    n_components, d = int(r.integers(1, 5)), int(r.integers(1, 9))
    component = np.concatenate([np.arange(n_components), r.integers(0, n_components, int(r.integers(0, 25)))])
    G = r.normal(size=(len(component), d)) * 10.0 ** r.integers(-3, 4)
    if r.random() < 0.5:
        G[r.integers(0, len(G), 5)] = G[r.integers(0, len(G), 5)]
    if r.random() < 0.3:
        G[r.random(len(G)) < 0.3] = 0.0
    return G @ G.T, component, n_components


def check(H, a, component, b):
    """Assert that b is feasible, and that no entry would gain more by rising than those that are above 0."""
    assert b.min() >= 0.0
    np.testing.assert_allclose(np.bincount(component, b), 1.0, rtol=1e-6)
    gain, scale = a - H @ b, np.abs(a).max() + np.abs(H).max()
    for g in range(component.max() + 1):
        mine = component == g
        assert gain[mine].max() <= gain[mine & (b > 1e-6)].min() + 2e-6 * scale


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**7))
def test_one_right_hand_side_after_another(seed):
    r = np.random.default_rng(seed)
    H, component, n_components = problem(r)
    maximiser, b = Maximiser(H, component, n_components), (np.arange(len(component)) < n_components) * 1.0
    for _ in range(4):
        scale = np.abs(H).max() + 1e-3
        a = scale * r.normal(size=len(component))
        maximiser.maximise(a, b)
        check(H, a, component, b)
        fresh = (np.arange(len(component)) < n_components) * 1.0
        simplex.maximise(H, a, component, n_components, fresh)
        assert a @ b - 0.5 * b @ H @ b == pytest.approx(a @ fresh - 0.5 * fresh @ H @ fresh, rel=1e-6, abs=1e-6 * scale)
        if r.random() < 0.5:  # a start that is not the last maximiser
            b = r.random(len(component)) * (r.random(len(component)) < 0.5) + (np.arange(len(component)) < n_components)
            b /= np.bincount(component, b)[component]


@pytest.mark.parametrize("seed", range(5))
def test_the_factor_is_that_of_the_free_entries(seed):
    r = np.random.default_rng(seed)
    component = np.concatenate([np.arange(2), r.integers(0, 2, 30)])
    G = r.normal(size=(32, 40))
    H, b = G @ G.T, (np.arange(32) < 2) * 1.0
    maximiser = Maximiser(H, component, 2)
    for _ in range(6):
        maximiser.maximise(40.0 * r.normal(size=32), b)
        free, n = maximiser._free[: maximiser._n_free], maximiser._n_free
        U = np.triu(maximiser._work[0][:n, :n])
        same = component[free][:, None] == component[free][None, :]
        c = np.trace(H) / 32
        np.testing.assert_allclose(U.T @ U, H[np.ix_(free, free)] + c * same, rtol=1e-9, atol=1e-9)
        assert set(free) == set(np.flatnonzero(b > 0.0))


@pytest.mark.parametrize("size", [1e-40, 1e-12, 1e12, 1e40])
def test_scales_far_apart_end_in_a_feasible_point(size):
    r = np.random.default_rng(0)
    component = np.concatenate([np.arange(2), r.integers(0, 2, 20)])
    G = r.normal(size=(22, 3)) * np.array([1.0, 1e-6, 1e6])
    H, b = size * (G @ G.T), (np.arange(22) < 2) * 1.0
    maximiser = Maximiser(H, component, 2)
    for _ in range(5):
        maximiser.maximise(r.normal(size=22), b)
        assert b.min() >= 0.0
        np.testing.assert_allclose(np.bincount(component, b), 1.0, rtol=1e-6)
        b /= np.bincount(component, b)[component]
