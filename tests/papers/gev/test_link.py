import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from support import link_twins as twin
from support.rounds import last, rounds_of
from support.small_sets import blocks_of

from aucdist.data.block import Block
from aucdist.errors import InputError
from aucdist.papers.epochs import LabelledRows
from aucdist.papers.gev import shape as bayes, solvers as module
from aucdist.papers.gev.kernels import log_likelihood
from aucdist.papers.gev.problem import LinkProblem
from aucdist.papers.gev.shape import bayes_shape, effective_size, map_shape
from aucdist.papers.gev.solvers import Gradient, Lipschitz, Newton
from aucdist.probability.link_kernels import loss_and_slope
from aucdist.probability.links import Link, LinkLoss
from aucdist.solvers.base import Status, solve

gradient = rounds_of(Gradient)
lipschitz = rounds_of(Lipschitz)
newton = rounds_of(Newton)

SOLVERS = {"lipschitz": lipschitz, "newton": newton, "gradient": gradient}
LINKS = [Link("gev", -0.4), Link("gev", 0.0), Link("gev", 0.3), Link("logit"), Link("probit"), Link("cloglog")]
CONVEX = [loss for link in LINKS for name in ("calibrated", "likelihood") if (loss := LinkLoss(link, name)).convex]
INTERCEPTS = [{}, {"penalise_intercept": True}, {"fit_intercept": False}]


def data(n=90, d=3, seed=0):
    r = np.random.default_rng(seed)
    X = r.normal(size=(n, d)) * (r.random((n, d)) < 0.7)
    return X, np.where(X[:, 0] + 0.8 * r.normal(size=n) > 0.8, 1, -1)


def objective(theta, X, y, lam, loss, weight=None, fit_intercept=True, penalise_intercept=False):
    """Return the objective, row by row."""
    weight = np.ones(len(y)) if weight is None else weight
    scores = X @ theta[:-1] + theta[-1]
    losses = [loss_and_slope(loss.terms, s, label > 0)[0] for s, label in zip(scores, y, strict=True)]
    square = theta[:-1] @ theta[:-1] + penalise_intercept * theta[-1] ** 2
    return float(weight @ losses / weight.sum() + 0.5 * lam * square)


def best(X, y, lam, loss, fit_intercept=True, **options):
    """Return the least value of a convex objective, by a general-purpose minimiser."""
    free = np.append(np.ones(X.shape[1]), float(fit_intercept))
    optimum = minimize(
        lambda t: objective(t * free, X, y, lam, loss, **options), np.zeros(X.shape[1] + 1),
        method="BFGS", options={"gtol": 1e-7},
    )  # fmt: skip
    return optimum.fun


@pytest.mark.parametrize(("both", "options"), [(loss, INTERCEPTS[i % 3]) for i, loss in enumerate(CONVEX)], ids=str)
def test_every_round_is_certified(both, options):
    X, y = data()
    least = best(X, y, 1e-2, both, **options)
    for name, solver in SOLVERS.items():
        if name == "lipschitz" and both.largest_curvature is None:
            continue
        for state in itertools.islice(solver(blocks_of(X, y, 2), 1e-2, loss=both, **options), 25):
            theta = np.append(state.w, state.intercept)
            assert state.primal == pytest.approx(objective(theta, X, y, 1e-2, both, **options), rel=1e-12)
            assert 0.0 <= state.dual <= least * (1 + 1e-9)
            assert state.primal >= least * (1 - 1e-9)
            assert options.get("fit_intercept", True) or state.intercept == 0.0
        if name == "newton":
            assert state.primal - state.dual <= 1e-12


def test_lipschitz_without_momentum_is_algorithm_one():
    """Sums in place of means, an intercept penalised like a weight: as printed, with the inverse written out."""
    X, y = data()
    xi, lam, n = 0.2, 0.7, len(y)
    link = Link("gev", xi)
    x, label = np.column_stack([X, np.ones(n)]), (y > 0).astype(float)
    inverse = np.linalg.inv(link.steepest * x.T @ x + lam * np.eye(4))
    beta, before = np.array([0.1, -0.2, 0.3, 0.05]), np.inf
    ours = lipschitz(
        blocks_of(X, y, 3), lam / n, beta.copy(), loss=LinkLoss(link), penalise_intercept=True, momentum=False
    )
    for state in itertools.islice(ours, 20):
        np.testing.assert_allclose(np.append(state.w, state.intercept), beta, rtol=1e-12)
        assert state.primal < before
        before = state.primal
        z = x.T @ (link.probabilities(x @ beta)[0] - label) + lam * beta
        beta = beta - inverse @ z


def test_newton_steps_by_the_inverse_hessian():
    X, y = data()
    link, lam, n = Link("gev", -0.2), 0.05, len(y)
    x, label = np.column_stack([X, np.ones(n)]), (y > 0).astype(float)
    beta = np.array([0.1, -0.2, 0.3, -0.5])
    penalty = np.diag([lam, lam, lam, 0.0])
    ours = newton(blocks_of(X, y, 2), lam, beta.copy(), loss=LinkLoss(link))
    h = 1e-6
    for state in itertools.islice(ours, 5):
        np.testing.assert_allclose(np.append(state.w, state.intercept), beta, rtol=1e-7, atol=1e-9)
        u = x @ beta
        bend = (link.probabilities(u + h)[0] - link.probabilities(u - h)[0]) / (2 * h)
        slope = x.T @ (link.probabilities(u)[0] - label) / n + penalty @ beta
        beta = beta - np.linalg.solve((x.T * bend) @ x / n + penalty, slope)


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("link", [Link("gev", 0.3), Link("cloglog")], ids=str)
def test_blocks_and_sparse_rows_change_rounding_alone(name, link):
    X, y = data()
    rounds = [
        list(itertools.islice(SOLVERS[name](blocks, 1e-2, loss=LinkLoss(link)), 6))
        for blocks in (blocks_of(X, y), blocks_of(X, y, 7), blocks_of(sp.csr_matrix(X), y, 40))
    ]
    for others in zip(*rounds, strict=True):
        for state in others[1:]:
            np.testing.assert_allclose(state.w, others[0].w, rtol=1e-9, atol=1e-12)
            assert state.primal == pytest.approx(others[0].primal, rel=1e-12)
            assert state.dual == pytest.approx(others[0].dual, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("solver", [newton, gradient])
@pytest.mark.parametrize("xi", [0.4, 1.5])
def test_likelihood_that_is_not_convex_ends_where_the_gradient_vanishes(solver, xi):
    X, y = data()
    loss = LinkLoss(Link("gev", xi), "likelihood")
    solution = solve(solver(blocks_of(X, y), 1e-2, loss=loss, gradient_tol=1e-8), tol=1e-6, max_passes=3000)
    assert (solution.certificate.dual, solution.certificate.status) == (0.0, Status.STATIONARY)
    theta = np.append(solution.w, solution.last.intercept)
    h = 1e-6 * np.eye(4)
    slopes = [(objective(theta + e, X, y, 1e-2, loss) - objective(theta - e, X, y, 1e-2, loss)) / 2e-6 for e in h]
    assert np.linalg.norm(slopes) < 1e-6
    assert solution.last.gradient_norm <= 1e-8
    assert (np.diff(solution.history["primal"]) <= 1e-13).all()


@pytest.mark.parametrize("name", ["lipschitz", "newton"])
def test_more_features_than_a_matrix_is_taken_for(name, monkeypatch):
    monkeypatch.setattr(module, "MAX_FEATURES", 2)
    X, y = data()
    loss = LinkLoss(Link("gev", 0.2))
    exact = best(X, y, 1e-2, loss)
    for blocks in (blocks_of(X, y, 2), blocks_of(sp.csr_matrix(X), y)):
        solution = solve(SOLVERS[name](blocks, 1e-2, loss=loss), tol=1e-9, max_passes=3000)
        assert solution.certificate.status is Status.CONVERGED
        assert solution.certificate.primal == pytest.approx(exact, rel=1e-8)


@pytest.mark.parametrize("name", SOLVERS)
def test_a_start_is_used_and_one_that_cannot_be_is_not(name):
    X, y = data()
    loss = LinkLoss(Link("gev", 0.3))
    cold = solve(SOLVERS[name](blocks_of(X, y), 1e-2, loss=loss), tol=1e-9, max_passes=3000)
    start = np.append(cold.w, cold.last.intercept)
    assert next(SOLVERS[name](blocks_of(X, y), 1e-2, start, loss=loss)).primal == cold.certificate.primal
    if name != "lipschitz":
        # Rows whose label cannot be at these scores: the fit begins without weights.
        state = next(
            SOLVERS[name](
                blocks_of(X, y), 1e-2, np.array([90.0, 0, 0, 0]), loss=LinkLoss(Link("gev", -0.5), "likelihood")
            )
        )
        assert (state.w == 0).all()


def test_momentum_saves_rounds():
    X, y = data(n=300, d=8)
    loss = LinkLoss(Link("gev", 0.2))
    with_it, without = (
        solve(lipschitz(blocks_of(X, y), 1e-3, loss=loss, momentum=momentum), tol=1e-6, max_passes=5000).passes
        for momentum in (True, False)
    )
    assert with_it < 0.6 * without


def test_lipschitz_refuses_a_curvature_without_bound():
    X, y = data()
    for link in ("gev", "cloglog"):
        with pytest.raises(InputError, match="a loss whose curvature has a bound"):
            next(lipschitz(blocks_of(X, y), 1e-2, loss=LinkLoss(Link(link), "likelihood")))


def test_bound_holds_anywhere_even_far_off():
    X, y = data()
    r = np.random.default_rng(3)
    for link, options in itertools.product([Link("gev", -0.9), Link("gev", 0.9), Link("probit")], INTERCEPTS):
        loss = LinkLoss(link)
        least = best(X, y, 1e-2, loss, **options)
        problem = LinkProblem(blocks_of(X, y), loss, 1e-2, **options)
        for _ in range(30):
            theta = r.normal(size=4) * r.choice([0.1, 1.0, 10.0])
            theta[-1] *= options.get("fit_intercept", True)
            point = problem.evaluate(theta)
            assert 0.0 <= point.dual <= least * (1 + 1e-9)
            if options:  # the plain bound of strong convexity is no better
                plain = point.primal - point.gradient @ point.gradient / 2e-2
                assert point.dual >= plain - 1e-9 * abs(plain)


# ---- gev shape ---------------------------------------------------------------------------------


FREE = {"fit_intercept": False, "penalise_intercept": False, "most_xi": np.inf}
FIXED = {"fit_intercept": True, "penalise_intercept": True, "most_xi": np.inf}


def drawn(n, xi, seed):
    """Rows whose labels follow the link: the paper's synthetic data."""
    r = np.random.default_rng(seed)
    X = r.normal(size=(n, 2))
    return X, np.where(r.random(n) < Link("gev", xi).probabilities(X @ [1.0, 1.0])[0], 1, -1)


def log_posterior(unknowns, X, y, flat_intercept=False):
    """Return the logarithm of the posterior, row by row."""
    w, bias, xi = unknowns[:-2], unknowns[-2], unknowns[-1]
    total = -0.5 * (w @ w + xi * xi + (0 if flat_intercept else bias * bias))
    for score, label in zip(X @ w + bias, y, strict=True):
        p = twin.gev(xi, float(score))[0 if label > 0 else 1]
        total += float(twin.mp.log(p)) if p > 0 else -math.inf
    return total


@pytest.mark.parametrize("flat", [True, False])
def test_map_is_the_mode(flat):
    X, y = drawn(60, 0.2, 1)
    mode = last(map_shape(blocks_of(X, y, 3), **(FIXED | {"penalise_intercept": not flat}), settled=1e-10))
    at = np.append(mode.theta, mode.xi)
    assert mode.measures["log_posterior"] == pytest.approx(log_posterior(at, X, y, flat), rel=1e-10)
    better = minimize(
        lambda t: -log_posterior(t, X, y, flat),
        at,
        method="Nelder-Mead",
        options={"maxiter": 150, "initial_simplex": None},
    )
    assert -better.fun <= mode.measures["log_posterior"] + 1e-6
    np.testing.assert_allclose(better.x, at, atol=5e-3)


def test_map_rises_and_does_not_depend_on_blocks():
    X, y = drawn(300, -0.1, 2)
    single, many = (list(map_shape(blocks_of(X, y, n), **FIXED)) for n in (1, 11))
    assert (np.diff([s.measures["log_posterior"] for s in single]) >= 0).all()
    assert len(single) == len(many)
    for a, b in zip(single, many, strict=True):
        assert a.xi == pytest.approx(b.xi, abs=1e-9)
        np.testing.assert_allclose(a.theta, b.theta, atol=1e-9)


def test_map_counts_weights_as_rows():
    X, y = drawn(150, 0.3, 3)
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    again = np.repeat(np.arange(len(y)), weight.astype(int))
    weighted, other = (
        last(map_shape(blocks, **FREE)) for blocks in (blocks_of(X, y, weight=weight), blocks_of(X[again], y[again]))
    )
    assert weighted.xi == pytest.approx(other.xi, abs=1e-8)
    assert weighted.theta[-1] == 0.0


@pytest.mark.parametrize("xi", [-0.1, 0.5])
def test_map_finds_the_shape_of_the_papers_data(xi):
    spread = {}
    for n in (100, 1000):
        shapes = [last(map_shape(blocks_of(*drawn(n, xi, seed)), **FREE)).xi for seed in range(40)]
        spread[n] = np.std(shapes)
        if n == 1000:
            assert abs(np.mean(shapes) - xi) < 0.1
    assert spread[1000] < 0.6 * spread[100]


# ---- chains -----------------------------------------------------------------------------------------------------------


def test_samples_follow_the_posterior():
    """One feature, no intercept: the posterior's mean of xi by adding up a grid."""
    r = np.random.default_rng(5)
    X = r.normal(size=(40, 1))
    y = np.where(r.random(40) < Link("gev", 0.2).probabilities(X[:, 0])[0], 1, -1)
    data = LabelledRows.of(Block.of(X, y))
    grid = [(w, xi) for w in np.linspace(-1.5, 5, 131) for xi in np.linspace(-1, 4, 126)]
    level = np.array([log_likelihood(data, np.array([w, 0.0, xi])) - 0.5 * (w * w + xi * xi) for w, xi in grid])
    density = np.exp(level - level.max())
    exact = float(density @ [xi for _, xi in grid] / density.sum())
    chain = next(bayes_shape(blocks_of(X, y), np.array([0.5, 0.0, 0.1]), seed=1, n_samples=20_000, n_rounds=1, **FREE))
    assert chain.xi == pytest.approx(exact, abs=4 * 0.7 / math.sqrt(chain.measures["effective_samples"]))
    assert 0.1 < chain.measures["acceptance"] < 0.6
    assert chain.measures["effective_samples"] > 500


def test_bayes_finds_the_shape_and_its_seed_decides():
    X, y = drawn(500, 0.2, 6)
    mode = last(map_shape(blocks_of(X, y), **FIXED))
    start = np.append(mode.theta, mode.xi)
    first, again, other = (
        list(bayes_shape(blocks_of(X, y), start, seed=seed, n_samples=400, n_rounds=5, **FIXED)) for seed in (1, 1, 2)
    )
    assert [s.xi for s in first] == [s.xi for s in again]
    assert first[-1].xi != other[-1].xi
    assert first[-1].xi == pytest.approx(mode.xi, abs=0.15)
    np.testing.assert_allclose(first[-1].theta, mode.theta, atol=0.3)
    assert set(first[-1].measures) == {"log_likelihood", "acceptance", "effective_samples"}


@pytest.mark.nojit
def test_an_intercept_that_is_not_there_stays_0_and_the_shape_below_its_limit():
    X, y = drawn(100, 0.5, 7)
    options = FREE | {"most_xi": 0.2}
    chain = next(bayes_shape(blocks_of(X, y), np.array([1.0, 1.0, 0.0, 0.1]), seed=0, n_samples=100, **options))
    assert chain.theta[-1] == 0.0
    assert chain.xi < 0.2


@pytest.mark.parametrize(("penalised", "precision"), [(True, 1.0), (False, 0.0)])
def test_an_intercept_without_a_penalty_has_a_flat_prior(monkeypatch, penalised, precision):
    X, y = drawn(60, 0.3, 3)
    seen, run = [], bayes.run_chain
    monkeypatch.setattr(bayes, "run_chain", lambda rows, task, *more: seen.append(task[1]) or run(rows, task, *more))
    start = np.array([1.0, 1.0, 0.2, 0.1])
    next(bayes_shape(blocks_of(X, y), start, seed=0, n_samples=100, **FIXED | {"penalise_intercept": penalised}))
    np.testing.assert_array_equal(seen[0], [1.0, 1.0, precision, 1.0])


@pytest.mark.parametrize(("n", "d"), [(10, 101), (50_000, 99)])
def test_too_much_to_sample(n, d):
    X = np.zeros((n, d), dtype=np.float32)
    y = np.where(np.arange(n) % 2, 1, -1)
    with pytest.raises(InputError, match=r"xi='bayes' .* up to 100 features .* xi='map'"):
        next(bayes_shape(blocks_of(X, y), np.zeros(d + 2), seed=0, **FREE))


def test_effective_size_of_an_autoregression():
    r = np.random.default_rng(0)
    for rho in (0.0, 0.5, 0.9):
        x, noise = np.zeros(40_000), r.normal(size=40_000)
        for i in range(1, len(x)):
            x[i] = rho * x[i - 1] + noise[i]
        assert effective_size(x) == pytest.approx(len(x) * (1 - rho) / (1 + rho), rel=0.15)
    assert effective_size(np.ones(10)) == 1.0
