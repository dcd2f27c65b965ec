"""The suite `link`: link functions by three solvers, against statsmodels and scikit-learn."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import numpy as np
from scipy.sparse import issparse
from support.rounds import rounds_of

from aucdist.data.block import Block
from aucdist.data.shards.sharding import simulate
from aucdist.engine.blocks import Blocks, LocalBlocks
from aucdist.papers.gev.problem import MAX_FEATURES, LinkProblem, LinkRound
from aucdist.papers.gev.shape import map_shape
from aucdist.papers.gev.solvers import Gradient, Lipschitz, Newton
from aucdist.probability.links import Link, LinkLoss
from aucdist.solvers.base import Solution, solve
from benchmarks.common import Row, read_train_and_test

gradient = rounds_of(Gradient)
lipschitz = rounds_of(Lipschitz)
newton = rounds_of(Newton)

DATA = ("digits", "covtype-20k", "a9a", "news20", "kddcup99")
LAM, XI, GOAL = 1e-3, 0.1, 1e-6
SYSTEMS: dict[str, tuple[Any, dict[str, Any], int]] = {
    "newton": (newton, {}, 1000),
    "lipschitz": (lipschitz, {}, 1000),
    "lipschitz, as published": (lipschitz, {"momentum": False}, 300),
    "gradient": (gradient, {}, 100),
}
"""Solver, options, and the limit of its passes."""
UNPENALISED = 1e-12


def link(slow_peers: bool) -> Iterator[Row]:
    """Time fits to a gap of 1e-6 at one lam, single rounds, and likelihood fits against statsmodels at the same optimum."""
    warm = LocalBlocks([simulate(500, 5, 0.2, seed=0)])
    for solver, options, _ in SYSTEMS.values():
        for name in ("gev", "logit"):
            solve(solver(warm, LAM, loss=LinkLoss(Link(name)), **options), tol=1e-3, max_passes=9)
    list(map_shape(warm, fit_intercept=True, penalise_intercept=False, most_xi=0.9))
    for name in DATA:
        train, _ = read_train_and_test(name)
        yield from _compare_solvers(name, LocalBlocks([train]))
        yield from _compare_scikit_learn(name, train)
        if name == "a9a" or (slow_peers and train.n_features <= MAX_FEATURES):
            yield from _compare_statsmodels(name, train)


def _compare_solvers(name: str, blocks: Blocks) -> Iterator[Row]:
    options: dict[str, Any] = {"fit_intercept": True, "penalise_intercept": False, "most_xi": 0.99}
    shapes, seconds = _with_seconds(lambda: list(map_shape(blocks, **options)))
    yield {"data": name, "system": "xi by map", "seconds": seconds, "rounds": len(shapes), "xi": shapes[-1].xi}
    for system, (solver, options, most) in SYSTEMS.items():
        rounds = solver(blocks, LAM, loss=LinkLoss(Link("gev", XI)), **options)
        solution, seconds = _solve_with_seconds(rounds, GOAL, most)
        yield {"data": name, "system": f"gev, {system}"} | _solution_row(solution, seconds)


def _solve_with_seconds(rounds: Any, tol: float, most: int) -> tuple[Solution, float]:
    return _with_seconds(lambda: solve(rounds, tol=tol, max_passes=most))


def _with_seconds(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    outcome = work()
    return outcome, time.perf_counter() - start


def _solution_row(solution: Solution, seconds: float) -> Row:
    at, n = solution.history["seconds"], len(solution.history)
    return {
        "seconds": seconds, "passes": solution.passes, "rounds": n,
        "ms per round": 1e3 * (at.iloc[-1] - at.iloc[0]) / (n - 1) if n > 1 else None,
        "relative gap": solution.certificate.relative_gap,
    }  # fmt: skip


def _compare_statsmodels(name: str, train: Block) -> Iterator[Row]:
    """Compare maximum likelihood without a penalty, on features with one optimum."""
    import statsmodels.api as sm

    features = identified_features(train)
    X: Any = train.X
    blocks, label = LocalBlocks([train.with_X(X[:, features])]), (train.y > 0).astype(np.float64)
    X = dense(X[:, features])
    about = f"{name}, {len(features)} features that leave one optimum"
    for kind, family in (("logit", sm.families.links.Logit()), ("cloglog", sm.families.links.CLogLog())):
        loss = LinkLoss(Link(kind), "likelihood")
        solution, ours = _solve_with_seconds(newton(blocks, UNPENALISED, loss=loss, gradient_tol=1e-8), 0.0, 200)
        model = sm.GLM(label, sm.add_constant(X, has_constant="add"), family=sm.families.Binomial(link=family))
        fit, theirs = _with_seconds(model.fit)
        apart = np.abs(np.append(solution.w, cast(LinkRound, solution.last).intercept) - np.roll(fit.params, -1)).max()
        yield {
            "data": about, "system": f"{kind}, likelihood, newton", "seconds": ours,
            "mean loss": solution.certificate.primal,
        }  # fmt: skip
        yield {
            "data": about, "system": f"{kind}, statsmodels GLM", "seconds": theirs, "mean loss": -fit.llf / len(label),
            "times ours": theirs / ours, "largest difference of coefficients": apart,
        }  # fmt: skip


def dense(X: Any) -> np.ndarray:
    """Return a matrix as a dense array."""
    return np.asarray(X.toarray() if issparse(X) else X)


def identified_features(block: Block, fewest: int = 10) -> np.ndarray:
    """Return the positions of features with which a likelihood without a penalty has one finite optimum.

    It excludes features that differ from their median in fewer than `fewest` rows of a class, because they may separate the
    classes, and features that are linear combinations of others.
    """
    from scipy.linalg import qr

    X = dense(block.X)
    unusual = np.median(X, axis=0) != X
    enough = np.minimum(unusual[block.y > 0].sum(axis=0), unusual[block.y < 0].sum(axis=0)) >= fewest
    candidates = np.flatnonzero(enough)
    centred = X[:, candidates] - X[:, candidates].mean(axis=0)
    _, r, order = qr(centred.T @ centred, pivoting=True)
    size = np.abs(np.diag(r))
    return np.asarray(np.sort(candidates[order[size > 1e-8 * size[0]]]))


def _compare_scikit_learn(name: str, train: Block) -> Iterator[Row]:
    """Compare logistic regression with its penalty, at the same objective."""
    from sklearn.linear_model import LogisticRegression

    blocks, loss = LocalBlocks([train]), LinkLoss(Link("logit"))
    fit, ours = _solve_with_seconds(newton(blocks, LAM, loss=loss), GOAL, 200)
    yield {"data": name, "system": "logit, newton"} | _solution_row(fit, ours) | {"objective": fit.certificate.primal}
    for solver in ("lbfgs", "newton-cholesky"):
        if solver == "newton-cholesky" and train.n_features > MAX_FEATURES:
            continue
        peer = LogisticRegression(C=1.0 / (LAM * train.n_samples), solver=solver, max_iter=1000, tol=1e-6)
        X = dense(train.X) if solver == "newton-cholesky" else train.X
        _, seconds = _with_seconds(partial(peer.fit, X, train.y))
        reached = LinkProblem(blocks, loss, LAM).evaluate(np.append(peer.coef_[0], peer.intercept_)).primal
        yield {
            "data": name, "system": f"logit, LogisticRegression({solver})", "seconds": seconds, "objective": reached,
            "times ours": seconds / ours,
        }  # fmt: skip
