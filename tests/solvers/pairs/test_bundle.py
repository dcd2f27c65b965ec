import numpy as np
import pytest
from scipy.optimize import minimize

from aucdist.solvers.pairs.bundle import Bundle, maximise
from aucdist.solvers.pairs.coupled_bundle import CoupledBundle

pytestmark = pytest.mark.nojit


def reference(H, a, group, b0):
    """Return the best value that scipy's SLSQP finds."""
    sums = [{"type": "eq", "fun": lambda b, g=g: b[group == g].sum() - 1, "jac": lambda b, g=g: (group == g) * 1.0}
            for g in range(group.max() + 1)]  # fmt: skip
    found = minimize(
        lambda b: 0.5 * b @ H @ b - a @ b, b0, jac=lambda b: H @ b - a, bounds=[(0, None)] * len(a), constraints=sums,
        method="SLSQP", options={"maxiter": 1000, "ftol": 1e-14},
    )  # fmt: skip
    return -found.fun


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("n_groups", "rank"), [(1, 3), (1, 30), (4, 5), (7, 40)])
def test_agrees_with_a_generic_solver(seed, n_groups, rank):
    r = np.random.default_rng(seed)
    group = np.tile(np.arange(n_groups), 6)
    F = r.normal(size=(len(group), rank))
    F[-1] = F[0]  # a point that came twice
    H, a = F @ F.T, r.normal(size=len(group))
    start = (np.arange(len(group)) < n_groups) * 1.0
    b = maximise(H, a, group, start)
    assert (b >= 0).all()
    np.testing.assert_allclose(np.bincount(group, b), 1.0, rtol=1e-12)
    value = a @ b - 0.5 * b @ H @ b
    assert value >= reference(H, a, group, start) - 1e-7
    # optimal: within a group no point has a better reduced gain than those in use
    gain = a - H @ b
    for g in range(n_groups):
        used = (group == g) & (b > 0)
        assert gain[group == g].max() <= gain[used].min() + 1e-7


def test_bound_comes_from_the_weights_it_returns():
    r = np.random.default_rng(0)
    bundle = Bundle(2, 5)
    for _ in range(4):
        bundle.add(r.random(2), r.normal(size=(2, 5)))
    w, bound = bundle.best_combination(0.3)
    assert bound == pytest.approx(bundle.b @ bundle._heights - 0.15 * w @ w, rel=1e-14)
    np.testing.assert_allclose(-0.3 * w, bundle.b @ bundle._gradients, rtol=1e-12)


def test_bound_never_falls_and_idle_points_go():
    r = np.random.default_rng(1)
    bundle = Bundle(1, 3, idle_rounds=5)
    bounds = []
    for _ in range(60):
        bundle.add(r.random(1), r.normal(size=(1, 3)))
        bounds.append(bundle.best_combination(1.0)[1])
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

    w = bundle.proximal_point(lam, centre, mu)
    assert all(model(w) <= model(w + 1e-3 * r.normal(size=3)) for _ in range(200))


@pytest.mark.parametrize("coupled", [False, True])
def test_a_zero_point_is_kept_once(coupled):
    r = np.random.default_rng(5)
    bundle, lam = (CoupledBundle if coupled else Bundle)(3, 6, idle_rounds=5), 0.1
    bounds, points = [], []
    for _ in range(20):
        heights, gradients, shares = r.random(3), r.normal(size=(3, 6)), np.array([0.5, 0.3, 0.2])
        heights[1:], gradients[1:] = 0.0, 0.0  # no pair of the last two groups is active
        points.append((heights, gradients, shares))
        added = bundle.add_with_shares(*points[-1]) if coupled else bundle.add(*points[-1][:2])
        assert added is None or added.tolist() == ([0, 1, 2] if len(points) == 1 else [0])
        bounds.append(bundle.best_combination(lam)[1])
    assert bundle.n_points <= 2 + 20
    assert sorted(set(bundle._group.tolist())) == [0, 1, 2]
    assert (np.diff(bounds) >= -1e-10).all()
    # The bound is that of the points of the first group alone: the others have none to offer but zero.
    alone = Bundle(1, 6, idle_rounds=5)
    for heights, gradients, _ in points:
        alone.add(heights[:1], gradients[:1])
        expected = alone.best_combination(lam)[1]
    assert bounds[-1] == pytest.approx(expected, rel=1e-6)
    heights, gradients, shares = np.ones(3), r.normal(size=(3, 6)), np.full(3, 1 / 3)
    if coupled:
        bundle.add_with_shares(heights, gradients, shares)
        assert len(bundle._shares) == bundle.n_points
    else:
        assert bundle.add(heights, gradients).tolist() == [0, 1, 2]
