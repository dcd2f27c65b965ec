import numpy as np
import pytest
from hypothesis import given, strategies as st

from aucdist.pairs import bundle as bundle_module
from aucdist.pairs.bundle import FIRST_CAPACITY, Bundle, maximise
from aucdist.pairs.penalty import L2


def test_bound_never_falls_and_idle_points_go(monkeypatch):
    monkeypatch.setattr(bundle_module, "IDLE_ROUNDS", 5)
    r = np.random.default_rng(1)
    bundle = Bundle(3)
    bounds = []
    for _ in range(60):
        bundle.add(float(r.random()), r.normal(size=3))
        bounds.append(bundle.best_combination(L2())[1])
    assert (np.diff(bounds) >= -1e-9).all()
    assert len(bundle.weights) < 30


def test_near_minimises_the_model_with_the_proximal_term():
    r = np.random.default_rng(2)
    bundle, cuts = Bundle(3), [(float(r.random()), r.normal(size=3)) for _ in range(6)]
    for cut in cuts:
        bundle.add(*cut)
    centre, lam, mu = r.normal(size=3), 0.2, 0.7

    def model(w):
        return lam / 2 * w @ w + mu / 2 * (w - centre) @ (w - centre) + max(a + g @ w for a, g in cuts)

    w = bundle.proximal_point(L2(lam), centre, mu)
    assert all(model(w) <= model(w + 1e-3 * r.normal(size=3)) for _ in range(200))


def test_a_zero_point_is_kept_once(monkeypatch):
    monkeypatch.setattr(bundle_module, "IDLE_ROUNDS", 5)
    r = np.random.default_rng(5)
    bundle, bounds = Bundle(6), []
    for k in range(20):
        bundle.add(*((0.0, np.zeros(6)) if k % 2 else (r.random(), r.normal(size=6))))
        bounds.append(bundle.best_combination(L2(0.1))[1])
    assert np.count_nonzero((bundle._gradients == 0.0).all(axis=1)) == 1
    assert (np.diff(bounds) >= -1e-10).all()


def test_many_points_outgrow_the_room_for_them(monkeypatch):
    monkeypatch.setattr(bundle_module, "IDLE_ROUNDS", 1000)
    r, bundle = np.random.default_rng(6), Bundle(3)
    points = [(float(r.random()), r.normal(size=3)) for _ in range(FIRST_CAPACITY + 5)]
    for point in points:
        bundle.add(*point)
    np.testing.assert_array_equal(bundle._gradients, [g for _, g in points])
    np.testing.assert_allclose(bundle._gram, bundle._gradients @ bundle._gradients.T, rtol=1e-13, atol=1e-15)


def test_points_that_nearly_coincide_end_in_few_changes():
    r = np.random.default_rng(8)
    G = np.repeat(r.normal(size=(10, 3)), 8, axis=0) * 1e6 * (1.0 + 1e-15 * r.normal(size=(80, 1)))
    solved, solve = [], np.linalg.solve
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np.linalg, "solve", lambda A, x: solved.append(1) or solve(A, x))
        b = maximise(G @ G.T, r.random(80), (np.arange(80) == 0) * 1.0)
    assert b.sum() == pytest.approx(1.0)
    assert len(solved) < 100


def test_infinite_gradients_are_an_arithmetic_error():
    with pytest.raises(ArithmeticError, match="infinite gradients"):
        maximise(np.full((2, 2), np.inf), np.ones(2), np.array([1.0, 0.0]))


# ---- the active-set method: against the conditions of optimality ------------------------------


def first(n):
    """Return the point where the first entry is all."""
    return (np.arange(n) == 0) * 1.0


def assert_is_maximum(H, a, b):
    """Assert that b is feasible, and that no entry would gain more by rising than those that are above 0."""
    assert b.min() >= 0.0
    np.testing.assert_allclose(b.sum(), 1.0, rtol=1e-6)
    gain, scale = a - H @ b, np.abs(a).max() + np.abs(H).max()
    assert gain.max() <= gain[b > 1e-6].min() + 2e-6 * scale


@given(st.integers(0, 10**7))
def test_maximise_finds_the_maximum(seed):
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
    assert_is_maximum(H, a, maximise(H, a, start))


@pytest.mark.parametrize("size", [1e-40, 1e-12, 1e12, 1e40])
def test_scales_far_apart_end_in_a_feasible_point(size):
    r = np.random.default_rng(0)
    G = r.normal(size=(22, 3)) * np.array([1.0, 1e-6, 1e6])
    b = first(22)
    for _ in range(5):
        b = maximise(size * (G @ G.T), r.normal(size=22), b)
        assert b.min() >= 0.0
        np.testing.assert_allclose(b.sum(), 1.0, rtol=1e-6)
