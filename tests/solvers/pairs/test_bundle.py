import numpy as np
import pytest
from scipy.optimize import minimize

from aucdist.kernels import simplex
from aucdist.solvers.pairs.bundle import Bundle, maximise
from aucdist.solvers.pairs.coupled_bundle import NEAR, ROUNDED, CoupledBundle, find_price
from aucdist.solvers.pairs.penalty import L2

pytestmark = pytest.mark.nojit


def reference(H, a, component, b0, shares=None):
    """Return the best value that scipy's SLSQP finds, within the budget if there are shares."""
    sums = [{"type": "eq", "fun": lambda b, g=g: b[component == g].sum() - 1, "jac": lambda b, g=g: (component == g) * 1.0}
            for g in range(component.max() + 1)]  # fmt: skip
    if shares is not None:
        sums.append({"type": "ineq", "fun": lambda b: 1 - b @ shares, "jac": lambda b: -shares})
    found = minimize(
        lambda b: 0.5 * b @ H @ b - a @ b, b0, jac=lambda b: H @ b - a, bounds=[(0, None)] * len(a), constraints=sums,
        method="SLSQP", options={"maxiter": 1000, "ftol": 1e-14},
    )  # fmt: skip
    return -found.fun


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("n_components", "rank"), [(1, 3), (1, 30), (4, 5), (7, 40)])
def test_agrees_with_a_generic_solver(seed, n_components, rank):
    r = np.random.default_rng(seed)
    component = np.tile(np.arange(n_components), 6)
    F = r.normal(size=(len(component), rank))
    F[-1] = F[0]  # a point that came twice
    H, a = F @ F.T, r.normal(size=len(component))
    start = (np.arange(len(component)) < n_components) * 1.0
    b = maximise(H, a, component, start)
    assert (b >= 0).all()
    np.testing.assert_allclose(np.bincount(component, b), 1.0, rtol=1e-12)
    value = a @ b - 0.5 * b @ H @ b
    assert value >= reference(H, a, component, start) - 1e-7
    # optimal: within a component no point has a better reduced gain than those in use
    gain = a - H @ b
    for g in range(n_components):
        used = (component == g) & (b > 0)
        assert gain[component == g].max() <= gain[used].min() + 1e-7


def test_bound_comes_from_the_weights_it_returns():
    r = np.random.default_rng(0)
    bundle = Bundle(2, 5)
    for _ in range(4):
        bundle.add(r.random(2), r.normal(size=(2, 5)))
    w, bound = bundle.best_combination(L2(0.3))
    assert bound == pytest.approx(bundle.b @ bundle._heights - 0.15 * w @ w, rel=1e-14)
    np.testing.assert_allclose(-0.3 * w, bundle.b @ bundle._gradients, rtol=1e-12)


def test_bound_never_falls_and_idle_points_go():
    r = np.random.default_rng(1)
    bundle = Bundle(1, 3, idle_rounds=5)
    bounds = []
    for _ in range(60):
        bundle.add(r.random(1), r.normal(size=(1, 3)))
        bounds.append(bundle.best_combination(L2())[1])
    assert (np.diff(bounds) >= -1e-9).all()
    assert len(bundle.b) < 30


def test_near_minimises_the_model_with_the_proximal_term():
    r = np.random.default_rng(2)
    bundle, cuts = Bundle(1, 3), [(r.random(1), r.normal(size=(1, 3))) for _ in range(6)]
    for cut in cuts:
        bundle.add(*cut)
    centre, lam, mu = r.normal(size=3), 0.2, 0.7

    def model(w):
        return lam / 2 * w @ w + mu / 2 * (w - centre) @ (w - centre) + max(a[0] + g[0] @ w for a, g in cuts)

    w = bundle.proximal_point(L2(lam), centre, mu)
    assert all(model(w) <= model(w + 1e-3 * r.normal(size=3)) for _ in range(200))


@pytest.mark.parametrize("coupled", [False, True])
def test_a_zero_point_is_kept_once(coupled):
    r = np.random.default_rng(5)
    bundle, lam = (CoupledBundle if coupled else Bundle)(3, 6, idle_rounds=5), 0.1
    bounds, points = [], []
    for _ in range(20):
        heights, gradients, shares = r.random(3), r.normal(size=(3, 6)), np.array([0.5, 0.3, 0.2])
        heights[1:], gradients[1:] = 0.0, 0.0  # no pair of the last two components is active
        points.append((heights, gradients, shares))
        added = bundle.add(*points[-1])
        assert added.tolist() == ([0, 1, 2] if len(points) == 1 else [0])
        bounds.append(bundle.best_combination(L2(lam))[1])
    assert bundle.n_points <= 2 + 20
    assert sorted(set(bundle._component.tolist())) == [0, 1, 2]
    assert (np.diff(bounds) >= -1e-10).all()
    # The bound is that of the points of the first component alone: the others have none to offer but zero.
    alone = Bundle(1, 6, idle_rounds=5)
    for heights, gradients, _ in points:
        alone.add(heights[:1], gradients[:1])
        expected = alone.best_combination(L2(lam))[1]
    assert bounds[-1] == pytest.approx(expected, rel=1e-6)
    heights, gradients, shares = np.ones(3), r.normal(size=(3, 6)), np.full(3, 1 / 3)
    if coupled:
        bundle.add(heights, gradients, shares)
        assert len(bundle._shares) == bundle.n_points
    else:
        assert bundle.add(heights, gradients).tolist() == [0, 1, 2]


def problem_with_shares(seed, n_components=3, n_rounds=8):
    r = np.random.default_rng(seed)
    component = np.tile(np.arange(n_components), n_rounds)
    F = r.normal(size=(len(component), 12))
    shares = r.random((n_rounds, n_components))
    return F @ F.T, r.normal(size=len(component)), component, (shares / shares.sum(axis=1, keepdims=True)).ravel()


@pytest.mark.parametrize("seed", range(8))
def test_the_combination_within_the_budget_agrees_with_a_generic_solver(seed):
    H, a, component, shares = problem_with_shares(seed)
    bundle = CoupledBundle(3, 1)
    bundle._shares, bundle._component = shares, component
    start = (np.arange(len(component)) < 3) * 1.0
    b = bundle._maximise("best", H, a, start)
    assert b @ shares <= 1.0 + ROUNDED
    np.testing.assert_allclose(np.bincount(component, b), 1.0, rtol=1e-12)
    expected = reference(H, a, component, start, shares)
    assert expected - 1e-5 <= a @ b - 0.5 * b @ H @ b <= expected + 1e-7


@pytest.mark.parametrize("seed", range(8))
def test_slopes_are_those_of_the_combination(seed):
    H, a, component, shares = problem_with_shares(seed)
    start = (np.arange(len(component)) < 3) * 1.0
    b = maximise(H, a, component, start)
    moved = maximise(H, a + 1e-6 * shares, component, b)
    assert ((moved > 0) == (b > 0)).all()  # else this test would ask too much
    np.testing.assert_allclose((moved - b) / 1e-6, simplex.slopes(H, shares, component, 3, b), atol=1e-6)


def counted_search(H, a, component, shares, price, b):
    """Return what `find_price` returns, and how many prices it tried."""
    tried = []

    def at(price, start):
        tried.append(price)
        return maximise(H, a - price * shares, component, start)

    def slope(b):
        return -simplex.slopes(H, shares, component, 3, b) @ shares

    b, price = find_price(at, slope, shares, price, b)
    assert 1.0 - 2 * NEAR <= b @ shares <= 1.0 + ROUNDED
    return b, price, len(tried)


def test_the_price_is_found_by_few_trials():
    """Between two corners the shares are linear in the price; chords alone took 109 trials and, from near, 43."""
    from_afar, from_near = 0, 0
    for seed in range(8):
        H, a, component, shares = problem_with_shares(seed, n_rounds=20)
        # Points of large shares gain most, and prices are far below 1, as they are.
        H, a = 0.02 * H, 0.02 * a + 0.2 * shares
        b, price, n = counted_search(H, a, component, shares, 0.0, (np.arange(len(component)) < 3) * 1.0)
        from_afar += n
        a = a + 1e-3 * np.cos(np.arange(len(a)))  # as a round changes the problem
        from_near += counted_search(H, a, component, shares, price, b)[2]
    assert from_afar <= 75
    assert from_near <= 28
