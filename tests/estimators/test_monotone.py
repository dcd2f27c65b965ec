"""`monotone=`: no violation, the optimum of an independent solver, and a bound that holds."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog, lsq_linear, minimize
from sklearn.base import clone
from support.fits import fitted, mapping, violations
from support.tables import table_beside

from aucdist import LinkClassifier, PairwiseHingeClassifier, PairwiseSquareClassifier, lam_path
from aucdist.data.block import Block, into_blocks
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.pairs import cutting_planes
from aucdist.papers.gev.problem import LinkProblem
from aucdist.solvers.signs import FREE, ZERO, outside, project_onto_cone


def problem(seed: int, n: int = 120, d: int = 3, missing: float = 0.1):
    r = np.random.default_rng(seed)
    X = np.round(r.normal(size=(n, d)) * 10.0 ** r.integers(-2, 3, d), int(r.integers(0, 3)))
    y = np.where(np.arange(n) < max(2, int(n * r.uniform(0.05, 0.5))), 1, 0)
    X[:, 0] += y * r.normal()
    X[r.random((n, d)) < missing] = np.nan
    return X, y, r.choice([None, 1.0], 1)[0]


KINDS = [
    *((PairwiseHingeClassifier, {"max_passes": 60} | more) for more in ({}, {"penalty": "l1"}, {"max_fpr": 0.2})),
    (LinkClassifier, {}),
    (PairwiseSquareClassifier, {}),
]


@settings(max_examples=12)
@given(
    seed=st.integers(0, 10**6), bins=st.sampled_from([2, 3, 8, 64]), linear=st.sampled_from(["keep", "drop"]),
    pairs=st.sampled_from([0, 2]), lam=st.sampled_from([1.0, 1e-2, 1e-3]), weighted=st.booleans(),
    kind=st.sampled_from(KINDS),
)  # fmt: skip
def test_no_score_falls_where_it_must_rise(seed, bins, linear, pairs, lam, weighted, kind):
    X, y, _ = problem(seed)
    r = np.random.default_rng(seed)
    signs = r.choice([-1, 0, 1], 3)
    signs[0] = signs[0] or 1
    features, (estimator, options) = {"map": "bins", "bins": bins, "linear": linear, "interactions": pairs}, kind
    model = estimator(features=features, monotone=mapping(signs), lam=lam, **options)
    fitted(model, X, y, sample_weight=r.integers(1, 4, len(y)) if weighted else None)
    of_weights = model.feature_map_.signs(model.monotone_)
    assert not (np.where(of_weights == ZERO, 0, of_weights) * model.coef_[0] < 0.0).any()
    assert not model.coef_[0][of_weights == ZERO].any()
    assert violations(model, X, signs, r) == 0
    if estimator is not PairwiseHingeClassifier:
        assert model.certificate_.relative_gap <= model.tol or model.certificate_.status == "rounding"


def best_of_all(Z: np.ndarray, lam: float, signs: np.ndarray, penalty: str) -> float:
    """Minimise the hinge over all pairs by a general solver: a linear programme, or SLSQP with slack variables."""
    m, d = Z.shape
    low, high = np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf)
    if penalty == "l1":
        A = np.hstack([-Z, Z, -np.eye(m)])
        c = np.concatenate([np.full(2 * d, lam), np.full(m, 1.0 / m)])
        bounds = (
            [(0, None if s >= 0 else 0) for s in signs] + [(0, None if s <= 0 else 0) for s in signs] + [(0, None)] * m
        )
        return float(linprog(c, A, -np.ones(m), bounds=bounds).fun)
    start = np.concatenate([np.zeros(d), np.ones(m)])
    optimum = minimize(
        lambda v: 0.5 * lam * v[:d] @ v[:d] + v[d:].mean(), start,
        jac=lambda v: np.concatenate([lam * v[:d], np.full(m, 1.0 / m)]),
        bounds=[*zip(low, high, strict=True), *([(0.0, np.inf)] * m)], method="SLSQP",
        constraints={"type": "ineq", "fun": lambda v: Z @ v[:d] + v[d:] - 1.0, "jac": lambda v: np.hstack([Z, np.eye(m)])},
        options={"maxiter": 500, "ftol": 1e-12},
    )  # fmt: skip
    return float(optimum.fun)


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_the_optimum_is_that_of_a_general_solver(penalty):
    for seed in range(40 if penalty == "l1" else 12):
        r = np.random.default_rng(seed)
        X, y = r.normal(size=(14, 3)), np.where(np.arange(14) < 4, 1, 0)
        signs, lam = r.choice([-1, 0, 1], 3), float(10.0 ** r.uniform(-2, 0))
        signs[0] = signs[0] or -1
        model = PairwiseHingeClassifier(lam=lam, tol=1e-6, max_passes=5000, penalty=penalty, monotone=mapping(signs))
        fitted(model, X, y)
        Z = (X[y == 1][:, None] - X[y == 0][None]).reshape(-1, 3)
        best = best_of_all(Z, lam, signs, penalty)
        c = model.certificate_
        assert c.dual <= best + 1e-7
        assert c.primal >= best - 1e-7
        assert c.primal <= best * (1.0 + 2e-6) + 1e-7
        assert not (signs * model.coef_[0] < 0.0).any()


@given(st.integers(0, 10**6), st.sampled_from(["l2", "l1"]))
def test_the_bound_is_below_every_feasible_value(seed, penalty):
    r = np.random.default_rng(seed)
    X, y, _ = problem(seed, n=60, missing=0.0)
    signs = r.choice([-1, 1], 3)
    lam = float(10.0 ** r.uniform(-4, 1))
    model = PairwiseHingeClassifier(lam=lam, max_passes=30, penalty=penalty, monotone=mapping(signs))
    fitted(model, X, y)
    Z = (X[y == 1][:, None] - X[y == 0][None]).reshape(-1, 3)
    low = model.certificate_.dual - model.certificate_.rounding
    for scale in 10.0 ** r.uniform(-6, 2, 40):
        w = project_onto_cone(model.coef_[0] + scale * r.normal(size=3), signs)
        value = np.maximum(0.0, 1.0 - Z @ w).mean() + lam * (np.abs(w).sum() if penalty == "l1" else 0.5 * w @ w)
        assert low <= value * (1.0 + 1e-12)


def rows(n: int = 600):
    r = np.random.default_rng(0)
    X = r.normal(size=(n, 4))
    y = np.where(np.sin(2.0 * X[:, 0]) + X[:, 1] + r.normal(size=n) > 1.3, 1, -1)
    return X, y


def test_columns_far_from_0_keep_their_signs():
    X, y = rows()
    X[:, 0] = 1e9 + np.round(X[:, 0], 2)
    model = PairwiseHingeClassifier(monotone={0: "decreasing", 1: "increasing"}).fit(X, y)
    assert model.coef_[0, 0] == 0.0  # it would rise
    assert not np.signbit(model.coef_[0, 0])
    assert model.coef_[0, 1] > 0.0


def test_cells_of_anchors(monkeypatch):
    X, y = rows(3000)
    exact = PairwiseHingeClassifier(features="bins", monotone={0: "increasing"}).fit(X, y)
    monkeypatch.setattr(cutting_planes, "MAX_ANCHORS", 100)
    cells = PairwiseHingeClassifier(features="bins", monotone={0: "increasing"}).fit(X, y)
    assert not (cells.feature_map_.signs(cells.monotone_) * cells.coef_[0] < 0).any()
    assert cells.certificate_.dual <= exact.certificate_.primal
    assert cells.certificate_.primal - cells.certificate_.slack <= exact.certificate_.primal * (1.0 + 2e-3)


def test_a_path_keeps_the_signs():
    X, y = rows()
    lams = [1e-1, 1e-2, 1e-3]
    estimator = PairwiseHingeClassifier(features="bins", monotone={0: "decreasing"})
    for lam, model in zip(lams, lam_path(estimator, X, y, lams=lams), strict=True):
        signs = model.feature_map_.signs(model.monotone_)
        assert not (signs * model.coef_[0] < 0).any()
        alone = clone(estimator).set_params(lam=lam).fit(X, y)
        assert model.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=2e-3)


def test_auto_takes_the_directions_of_a_straight_line():
    X, y = rows()
    X = np.column_stack([X, -3.0 * X[:, 1], np.zeros(len(y))])
    X[::7, 2] = np.nan
    model = PairwiseHingeClassifier(features="bins", monotone="auto").fit(X, y)
    assert model.monotone_[1] == 1
    assert model.monotone_[4] == -1
    assert model.monotone_[5] == 0
    assert violations(model, X, model.monotone_, np.random.default_rng(0)) == 0
    sparse = PairwiseHingeClassifier(monotone="auto").fit(sp.csr_matrix(np.nan_to_num(X)), y)
    assert sparse.monotone_[1] == 1
    again = PairwiseHingeClassifier(features="bins", monotone="auto", calibration="logit").fit(X, y)
    np.testing.assert_array_equal(again.monotone_, model.monotone_)


def test_auto_leaves_a_feature_free_whose_direction_the_folds_disagree_on():
    X, y = rows()
    r = np.random.default_rng(5)
    noise = r.normal(size=(len(y), 20))
    noise -= y[:, None] * (noise.T @ y / len(y))  # no straight line on all rows sees them
    X = np.column_stack([X, noise])
    model = PairwiseHingeClassifier(monotone="auto").fit(X, y)
    assert model.monotone_[1] == 1
    assert (model.monotone_[4:] == 0).sum() >= 10
    again = PairwiseHingeClassifier(monotone="auto").fit(LocalBlocks(into_blocks(Block.of(X, y), 3)))
    np.testing.assert_array_equal(again.monotone_, model.monotone_)


def test_names_of_columns_also_with_calibration():
    X, y = rows()
    frame = pd.DataFrame(X, columns=list("abcd"))
    for calibration in (None, "logit"):
        model = PairwiseHingeClassifier(monotone={"a": "increasing", 2: "decreasing"}, calibration=calibration).fit(
            frame, y
        )
        assert model.monotone_.tolist() == [1, 0, -1, 0]


def test_a_constraint_that_leaves_nothing_ends_at_0():
    X, y = rows()
    with pytest.warns(UserWarning, match="all weights are 0"):
        model = PairwiseHingeClassifier(monotone={0: "decreasing"}).fit(X[:, :1], y)
    assert not model.coef_.any()
    assert model.certificate_.relative_gap <= 1e-3


@pytest.mark.parametrize(("options", "message"), table_beside(__file__))
def test_what_cannot_be_monotone_is_refused(options, message):
    X, y = rows()
    with pytest.raises(InputError, match=message):
        PairwiseHingeClassifier(**options).fit(pd.DataFrame(X, columns=list("abcd")), y)


def test_names_need_names():
    X, y = rows()
    with pytest.raises(InputError, match="give positions from 0 to 3, or a DataFrame"):
        PairwiseHingeClassifier(monotone={"a": "increasing"}).fit(X, y)


def test_projection_on_the_cone():
    signs = np.array([1, 1, -1, -1, FREE, ZERO], dtype=np.int8)
    w = np.array([2.0, -1.0, 3.0, -4.0, -5.0, 6.0])
    assert project_onto_cone(w, signs).tolist() == [2.0, 0.0, 0.0, -4.0, -5.0, 0.0]
    assert outside(w, signs).tolist() == [0.0, 1.0, 3.0, 0.0, 5.0, 0.0]
    assert project_onto_cone(w, None) is w


LINKS = [("logit", "calibrated"), ("probit", "calibrated"), ("cloglog", "likelihood"), ("gev", "calibrated")]


@pytest.mark.parametrize(("link", "loss"), LINKS)
@pytest.mark.parametrize("penalised", [False, True])
def test_links_have_the_optimum_of_a_general_solver(link, loss, penalised):
    for seed in range(12):
        r = np.random.default_rng(seed)
        X = r.normal(size=(80, 4))
        y = np.where(X[:, 0] - 0.5 * X[:, 1] + r.normal(size=80) > 0.8, 1, -1)
        signs, lam = r.choice([-1, 0, 1], 4), float(10.0 ** r.uniform(-3, 0))
        signs[0] = signs[0] or -1
        options = {"xi": -0.2} if link == "gev" else {}
        model = LinkClassifier(
            link=link, loss=loss, lam=lam, monotone=mapping(signs), tol=1e-9, penalise_intercept=penalised, **options
        )
        fitted(model, X, y)
        blocks = LocalBlocks([Block.of(X, y)])
        objective = LinkProblem(blocks, model.loss_at(getattr(model, "xi_", 0.0)), lam, True, penalised)
        free = minimize(
            lambda v, f=objective: f.evaluate(v).primal, np.zeros(5), jac=lambda v, f=objective: f.evaluate(v).gradient,
            bounds=[*((0 if s > 0 else None, 0 if s < 0 else None) for s in signs), (None, None)], method="L-BFGS-B",
            options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000},
        )  # fmt: skip
        c = model.certificate_
        assert c.dual - c.rounding <= free.fun
        assert c.primal <= free.fun * (1.0 + 1e-8)
        assert c.relative_gap <= 1e-9
        assert not (signs * model.coef_[0] < 0.0).any()


def test_links_by_conjugate_gradients(monkeypatch):
    X, y = rows()
    factor = LinkClassifier(link="logit", monotone={0: "decreasing", 1: "increasing"}, tol=1e-8).fit(X, y)
    monkeypatch.setattr("aucdist.papers.gev.solvers.MAX_FEATURES", 2)
    gradients = LinkClassifier(link="logit", monotone={0: "decreasing", 1: "increasing"}, tol=1e-8).fit(X, y)
    assert gradients.coef_[0, 0] == factor.coef_[0, 0] == 0.0
    assert gradients.certificate_.primal == pytest.approx(factor.certificate_.primal, rel=1e-7)


@given(st.integers(0, 10**6), st.integers(1, 12))
def test_squares_have_the_optimum_of_least_squares_with_bounds(seed, d):
    r = np.random.default_rng(seed)
    X = r.normal(size=(40, d)) @ r.normal(size=(d, d))
    y = np.where(np.arange(40) < 10, 1, -1)
    signs, lam = r.choice([-1, 0, 1], d), float(10.0 ** r.uniform(-4, 1))
    if not signs.any():
        signs[0] = 1
    model = PairwiseSquareClassifier(lam=lam, monotone=mapping(signs), tol=1e-9)
    fitted(model, X, y)
    Z = (X[y == 1][:, None] - X[y == -1][None]).reshape(-1, d)
    A = np.vstack([Z / np.sqrt(len(Z)), np.sqrt(0.5 * lam) * np.eye(d)])
    b = np.concatenate([np.full(len(Z), 1.0 / np.sqrt(len(Z))), np.zeros(d)])
    bounds = (np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf))
    best = 2.0 * lsq_linear(A, b, bounds, tol=1e-14).cost
    c = model.certificate_
    assert c.dual - c.rounding <= best * (1.0 + 1e-12)
    assert c.primal <= best * (1.0 + 1e-8)
    assert c.relative_gap <= 1e-8
    assert not (signs * model.coef_[0] < 0.0).any()


def test_squares_of_too_many_weights_are_refused(monkeypatch):
    monkeypatch.setattr("aucdist.papers.tpauc.exact.MAX_FEATURES", 3)
    with pytest.raises(InputError, match="for at most 3 features"):
        PairwiseSquareClassifier(monotone={0: "increasing"}).fit(*rows())
