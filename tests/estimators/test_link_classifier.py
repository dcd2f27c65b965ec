import importlib
import warnings

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from aucdist import LinkClassifier, SeparationWarning
from aucdist.data.block import Block, into_blocks
from aucdist.engine.blocks import LocalBlocks
from aucdist.estimators.fitting import fit_rows
from aucdist.probability.links import Link

SOLVERS = ["lipschitz", "newton", "gradient"]


def drawn(n=600, d=4, seed=0, link=None, bias=-1.0):
    link = Link("gev", 0.2) if link is None else link
    r = np.random.default_rng(seed)
    X = r.normal(size=(n, d))
    p = link.probabilities(X @ np.linspace(1, -0.5, d) + bias)[0]
    return X, np.where(r.random(n) < p, 1, -1)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("link", ["gev", "logit", "probit", "cloglog"])
def test_fitted_attributes(link, solver):
    X, y = drawn()
    model = LinkClassifier(link=link, solver=solver, lam=1e-2).fit(X, y)
    p = model.predict_proba(X)
    g = Link(link, getattr(model, "xi_", 0.0))
    np.testing.assert_allclose(p[:, 1], g.probabilities(X @ model.coef_[0] + model.intercept_[0])[0], rtol=1e-9)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
    scores = model.decision_function(X)
    np.testing.assert_array_equal(scores > 0, p[:, 1] > 0.5)
    np.testing.assert_array_equal(model.predict(X), np.where(p[:, 1] > 0.5, 1, -1))
    np.testing.assert_allclose(scores, X @ model.coef_[0] - model.raw_threshold, atol=1e-12)
    assert hasattr(model, "xi_") == hasattr(model, "xi_trace_") == (link == "gev")
    assert model.certificate_.status == "converged"
    assert model.gradient_norm_ < 1e-3
    assert model.n_passes_ == model.history_["passes"].iloc[-1]
    assert roc_auc_score(y, scores) > 0.75
    # An intercept without a penalty makes the mean probability the share of positives where the loss is calibrated.
    assert p[:, 1].mean() == pytest.approx((y > 0).mean(), abs=1e-3)


@pytest.fixture
def sm():
    return importlib.import_module("statsmodels.api")  # half a second, for all processes that collect tests


@pytest.mark.parametrize(("link", "name"), [("logit", "Logit"), ("cloglog", "CLogLog"), ("probit", "Probit")])
@pytest.mark.parametrize("weighted", [False, True])
def test_likelihood_is_that_of_statsmodels(link, name, weighted, sm):
    family = sm.families.Binomial(link=getattr(sm.families.links, name)())
    X, y = drawn(link=Link(link), bias=-0.7)
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float) if weighted else None
    peer = sm.GLM((y + 1) // 2, sm.add_constant(X), family=family, freq_weights=weight)
    exact = peer.fit(tol=1e-14, maxiter=200).params
    model = LinkClassifier(link=link, loss="likelihood", solver="newton", lam=1e-13, tol=1e-10)
    model.fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_[0], exact[1:], rtol=1e-6, atol=1e-8)
    assert model.intercept_[0] == pytest.approx(exact[0], rel=1e-6)


def test_gev_without_shape_is_the_log_log_link(sm):
    X, y = drawn(bias=0.2)
    peer = sm.GLM((y + 1) // 2, sm.add_constant(X), family=sm.families.Binomial(link=sm.families.links.LogLog()))
    exact = peer.fit(tol=1e-14, maxiter=200).params
    for xi in (0.0, 1e-9, -1e-9):
        model = LinkClassifier(xi=xi, loss="likelihood", solver="newton", lam=1e-13, tol=1e-9)
        with warnings.catch_warnings(
            action="ignore", category=ConvergenceWarning
        ):  # the shape just above 0 has no bound
            model.fit(X, y)
        np.testing.assert_allclose(model.coef_[0], exact[1:], rtol=1e-6)
        assert model.intercept_[0] == pytest.approx(exact[0], rel=1e-6)


@pytest.mark.parametrize("xi", ["map", "bayes"])
def test_shape_is_found(xi):
    X, y = drawn(n=1500, d=2, bias=0.0)
    more = {"shape_samples": 400, "random_state": 1} if xi == "bayes" else {}
    model = LinkClassifier(xi=xi, lam=1e-3, fit_intercept=False, **more).fit(X, y)
    assert model.xi_ == pytest.approx(0.2, abs=0.35)
    assert model.xi_ == model.xi_trace_["xi"].iloc[-1]
    assert model.xi_trace_["round"].tolist() == list(range(1, len(model.xi_trace_) + 1))
    if xi == "bayes":
        assert len(model.xi_trace_) == 10
        assert model.xi_trace_["acceptance"].between(0.1, 0.7).all()
        assert (model.xi_trace_["effective_samples"] > 10).all()
    again = clone(model).set_params(shape_rounds=4).fit(X, y)
    assert len(again.xi_trace_) == 4


def test_by_product_saves_rounds():
    X, y = drawn(n=2000, d=6)
    warm = LinkClassifier(lam=1 / 2000, penalise_intercept=True, solver="lipschitz").fit(X, y)
    cold = clone(warm).set_params(xi=warm.xi_).fit(X, y)
    assert warm.n_passes_ < cold.n_passes_
    np.testing.assert_allclose(warm.coef_, cold.coef_, atol=1e-2)


def test_shape_below_one_for_the_calibrated_loss():
    X, y = drawn(n=100, d=2, seed=3, link=Link("gev", 0.9), bias=0.0)
    assert LinkClassifier(loss="likelihood", solver="newton", lam=1e-2, fit_intercept=False, tol=1e-5).fit(X, y).xi_ > 1
    with pytest.warns(UserWarning, match="shape xi of the link gev reached .* Use link='logit' unless"):
        assert LinkClassifier(lam=1e-2, fit_intercept=False).fit(X, y).xi_ == 0.99


def test_prior_of_undersampled_rows():
    """Of the negatives a tenth is left: the corrected odds are those of all rows, exactly."""
    X, y = drawn(n=4000)
    r = np.random.default_rng(2)
    left = (y > 0) | (r.random(4000) < 0.1)
    share = (y[left] > 0).mean()
    prior = float((y > 0).mean())
    plain = LinkClassifier(link="logit", lam=1e-3).fit(X[left], y[left])
    model = LinkClassifier(link="logit", lam=1e-3, prior=prior).fit(X[left], y[left])
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    odds = plain.predict_proba(X)[:, 1] / plain.predict_proba(X)[:, 0]
    expected_odds = odds * (prior / (1 - prior)) / (share / (1 - share))
    p = model.predict_proba(X)
    np.testing.assert_allclose(p[:, 1] / p[:, 0], expected_odds, rtol=1e-10)
    np.testing.assert_array_equal(model.predict(X) > 0, p[:, 1] > 0.5)
    assert p[:, 1].mean() == pytest.approx(prior, rel=0.1)
    assert plain.predict_proba(X)[:, 1].mean() > 1.5 * prior


def test_separated_classes_have_a_finite_answer_and_a_warning():
    X = np.concatenate([np.linspace(-2, -1, 30), np.linspace(1, 2, 10)])[:, np.newaxis]
    y = np.repeat([-1, 1], [30, 10])
    for link in ("gev", "logit", "probit", "cloglog"):
        with pytest.warns(SeparationWarning, match=r"lam=0.01"):
            model = LinkClassifier(link=link, lam=1e-2).fit(X, y)
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.predict_proba(X)).all()
    zero_one = model.predict_proba(np.array([[-1e6], [1e6]]))
    assert zero_one.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_a_likelihood_without_a_bound_ends_by_its_gradient():
    X, y = drawn()
    model = LinkClassifier(xi=0.4, loss="likelihood", solver="newton", lam=1e-2).fit(X, y)
    assert (model.certificate_.dual, model.certificate_.status) == (0.0, "stationary")
    assert model.gradient_norm_ <= 1e-6
    with pytest.warns(ConvergenceWarning, match="max_passes was reached"):
        clone(model).set_params(max_passes=4).fit(X, y)


def test_many_sparse_features():
    r = np.random.default_rng(0)
    y = np.where(r.random(300) < 0.2, 1, -1)
    X = sp.random_array((300, 3000), density=0.01, rng=r, format="csr") + sp.csr_array(
        (y[:, None] > 0) * (np.arange(3000) < 2) * r.random((300, 3000))
    )
    with pytest.warns(SeparationWarning):
        first, other = (LinkClassifier(lam=1e-2, xi=0.1, solver=solver, tol=1e-5).fit(X, y) for solver in SOLVERS[:2])
    assert first.certificate_.status == other.certificate_.status == "converged"
    np.testing.assert_allclose(first.predict_proba(X), other.predict_proba(X), atol=1e-2)


def test_warm_start_goes_on():
    X, y = drawn()
    model = LinkClassifier(xi=0.1, warm_start=True).fit(X, y)
    cold = model.n_passes_
    assert model.fit(X, y).n_passes_ == 1 < cold
    model.set_params(fit_intercept=False).fit(X, y)
    assert model.intercept_[0] == 0.0


def test_forms_of_input():
    X, y = drawn()
    named = np.where(y > 0, "yes", "no")
    model = LinkClassifier(xi=0.1, lam=1e-2, tol=1e-10).fit(X, named)
    assert model.classes_.tolist() == ["no", "yes"]
    assert set(model.predict(X)) == {"no", "yes"}
    for other in (
        LinkClassifier(xi=0.1, lam=1e-2, tol=1e-10).fit(LocalBlocks(into_blocks(Block.of(X, y), 4))),
        LinkClassifier(xi=0.1, lam=1e-2, tol=1e-10).fit(sp.csr_array(X), y),
        LinkClassifier(xi=0.1, lam=1e-2, tol=1e-10).fit(
            da.from_array(X, chunks=(250, 2)), da.from_array(y, chunks=100)
        ),
    ):
        np.testing.assert_allclose(other.predict_proba(X), model.predict_proba(X), atol=1e-6)
    lazy = model.predict_proba(da.from_array(X, chunks=(100, 4)))
    np.testing.assert_allclose(lazy.compute(), model.predict_proba(X), rtol=1e-12)
    assert lazy.shape == (600, 2)
    seen = []
    LinkClassifier(xi=0.1).fit(X, y, callback=seen.append)
    assert seen[-1]["relative_gap"] <= 1e-6


@pytest.mark.parametrize(
    ("scores", "weight", "separated"),
    [
        ([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 1], True),
        ([1.0, 3.0, 3.0, 4.0], [1, 1, 1, 1], False),
        ([1.0, 3.5, 3.0, 4.0], [1, 0, 1, 1], True),
        ([1.0, 2.0, 0.0, 4.0], [1, 2, 0, 1], True),
        ([1.0, 2.0, 0.0, 4.0], [1, 2, 1, 1], False),
    ],
)
@pytest.mark.parametrize("n_blocks", [1, 3])
def test_a_warning_says_that_no_row_of_weight_lies_on_the_wrong_side(scores, weight, separated, n_blocks):
    block = Block.of(np.array(scores)[:, None], np.array([-1, -1, 1, 1]), weight=np.array(weight, dtype=float))
    (fit,) = fit_rows(LinkClassifier(link="logit", lam=0.1), LocalBlocks(into_blocks(block, n_blocks)))
    assert any(isinstance(warning, SeparationWarning) for warning in fit.warnings) is separated


def test_the_default_lam_does_not_flatten_the_probabilities_of_rare_events():
    def rows(seed, n):
        r = np.random.RandomState(seed)
        X = r.randn(n, 4)
        p = expit(X @ [1.2, -0.8, 0.5, 0] - 8.1)
        return X, (r.rand(n) < p).astype(int), p

    X, y, _ = rows(3, 100_000)
    X_test, _, true = rows(99, 200_000)
    model = LinkClassifier(link="logit").fit(X, y)
    assert model.lam_ == pytest.approx(4e-3 * y.mean() * (1.0 - y.mean()), rel=1e-12)
    p = model.predict_proba(X_test)[:, 1]
    top = np.argsort(-p)[:2000]
    assert p[top].mean() == pytest.approx(true[top].mean(), rel=0.05)  # .0193; lam=1e-3 gives .0045
    assert LinkClassifier(link="logit", lam=1e-3).fit(X, y).lam_ == 1e-3


def test_the_default_lam_is_1e_3_for_balanced_classes_and_counts_weights():
    X, _ = drawn(200)
    y = np.tile([1, -1], 100)
    assert LinkClassifier(link="logit").fit(X, y).lam_ == pytest.approx(1e-3, rel=1e-15)
    weighted = LinkClassifier(link="logit").fit(X, y, sample_weight=np.where(y > 0, 1.0, 3.0))
    assert weighted.lam_ == pytest.approx(0.75e-3, rel=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("link", ["gev", "logit", "probit", "cloglog"])
def test_a_class_of_almost_all_weight_is_fitted(link):
    """The share of its weight is rounded to 1, whose score would be infinite."""
    X, y = np.arange(8.0)[:, np.newaxis] - 3.5, np.arange(8) % 2
    model = LinkClassifier(link=link, xi=0.0 if link == "gev" else None, lam=1e-3, prior=0.5, max_passes=5)
    assert np.isfinite(model.fit(X, y, sample_weight=np.where(y > 0, 1e20, 1.0)).predict_proba(X)).all()
