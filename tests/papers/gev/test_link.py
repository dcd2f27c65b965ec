import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from support.rounds import rounds_of
from support.small_sets import blocks_of

from aucdist.data.block import Block
from aucdist.errors import InputError
from aucdist.objectives.link_kernels import loss_and_slope
from aucdist.objectives.links import Link, LinkLoss
from aucdist.papers.gev import solvers as module
from aucdist.papers.gev.problem import LinkProblem
from aucdist.papers.gev.solvers import Gradient, Lipschitz, Newton
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
    found = minimize(
        lambda t: objective(t * free, X, y, lam, loss, **options), np.zeros(X.shape[1] + 1),
        method="BFGS", options={"gtol": 1e-7},
    )  # fmt: skip
    return found.fun


@pytest.mark.parametrize("options", INTERCEPTS, ids=["free intercept", "penalised", "none"])
@pytest.mark.parametrize("both", CONVEX, ids=str)
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


def test_logit_is_logistic_regression():
    X, y = data()
    peer = LogisticRegression(C=1 / (1e-2 * len(y)), tol=1e-12, max_iter=10_000).fit(X, y)
    for loss in ("calibrated", "likelihood"):
        found = solve(newton(blocks_of(X, y), 1e-2, loss=LinkLoss(Link("logit"), loss)), tol=1e-14, max_passes=50)
        np.testing.assert_allclose(found.w, peer.coef_[0], rtol=1e-6)
        assert found.last.intercept == pytest.approx(peer.intercept_[0], rel=1e-6)


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("link", [Link("gev", 0.3), Link("cloglog")], ids=str)
def test_blocks_sparse_rows_and_single_precision_change_rounding_alone(name, link):
    X, y = data()
    X = X.astype(np.float32)
    rounds = [
        list(itertools.islice(SOLVERS[name](blocks, 1e-2, loss=LinkLoss(link)), 6))
        for blocks in (
            blocks_of(X.astype(np.float64), y),
            blocks_of(X.astype(np.float64), y, 7),
            blocks_of(sp.csr_matrix(X), y, 40),
        )
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
    found = solve(solver(blocks_of(X, y), 1e-2, loss=loss, gradient_tol=1e-8), tol=1e-6, max_passes=3000)
    assert (found.certificate.dual, found.certificate.status) == (0.0, Status.STATIONARY)
    theta = np.append(found.w, found.last.intercept)
    h = 1e-6 * np.eye(4)
    slopes = [(objective(theta + e, X, y, 1e-2, loss) - objective(theta - e, X, y, 1e-2, loss)) / 2e-6 for e in h]
    assert np.linalg.norm(slopes) < 1e-6
    assert found.last.gradient_norm <= 1e-8
    assert (np.diff(found.history["primal"]) <= 1e-13).all()


@pytest.mark.parametrize("name", ["lipschitz", "newton"])
def test_more_features_than_a_matrix_is_taken_for(name, monkeypatch):
    monkeypatch.setattr(module, "MOST_FEATURES", 2)
    X, y = data()
    loss = LinkLoss(Link("gev", 0.2))
    exact = best(X, y, 1e-2, loss)
    for blocks in (blocks_of(X, y, 2), blocks_of(sp.csr_matrix(X), y)):
        found = solve(SOLVERS[name](blocks, 1e-2, loss=loss), tol=1e-9, max_passes=3000)
        assert found.certificate.status is Status.CONVERGED
        assert found.certificate.primal == pytest.approx(exact, rel=1e-8)


def test_the_diagonal_bounds_the_second_moments():
    X, y = data(d=5)
    weight = np.random.default_rng(0).random(len(y))
    x = np.column_stack([X, np.ones(len(y))])
    diagonal = module.absolute_moments(Block.of(sp.csr_matrix(X), y, weight=weight))["bound"]
    assert np.linalg.eigvalsh(np.diag(diagonal) - (x.T * weight) @ x).min() >= -1e-10


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
