import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score
from support.fits import fitted
from support.square_twins import square_minimiser, square_value

from aucdist import PairwiseSquareClassifier, lam_path
from aucdist.data.block import Block, into_blocks
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError

SOLVERS = ["exact", "svrg", "tpauc", "opauc"]


def fit(solver, X, y, **parameters):
    return fitted(PairwiseSquareClassifier().set_params(solver=solver, random_state=0, **parameters), X, y)


@pytest.mark.parametrize("solver", SOLVERS)
def test_fitted_attributes(data, solver):
    X, y = data
    model = fit(solver, X, y, lam=1e-2)
    c = model.certificate_
    ones = np.ones(400)
    best = square_value(square_minimiser(X, y, 1e-2, ones), X, y, 1e-2, ones)
    assert c.primal == pytest.approx(square_value(model.coef_[0], X, y, 1e-2, ones), rel=1e-10)
    assert c.dual <= best * (1 + 1e-12)
    assert c.primal >= best * (1 - 1e-12)
    assert c.relative_gap == pytest.approx((c.primal - c.dual + c.rounding) / c.primal, rel=1e-6)
    assert model.intercept_.tolist() == [-model.raw_threshold]
    assert model.n_passes_ == model.history_["passes"].iloc[-1]
    assert roc_auc_score(y, model.decision_function(X)) > 0.85
    assert not hasattr(model, "predict_proba")


def test_exact_is_exact_in_one_pass(data):
    X, y = data
    model = fit("exact", X, y, lam=1e-2, tol=1e-10)
    assert (model.certificate_.status, model.n_passes_) == ("converged", 1)
    np.testing.assert_allclose(model.coef_[0], square_minimiser(X, y, 1e-2, np.ones(400)), rtol=1e-9)


def test_path_is_a_fit_for_each_lam(data):
    X, y = data
    lams = [1.0, 1e-2, 1e-4]
    model = PairwiseSquareClassifier()
    of_blocks = lam_path(model, LocalBlocks([Block.of(X, y)]), lams=lams)
    for of_rows, same, lam in zip(lam_path(model, X, y, lams=lams), of_blocks, lams, strict=True):
        np.testing.assert_array_equal(of_rows.coef_, fit("exact", X, y, lam=lam).coef_)
        np.testing.assert_array_equal(same.coef_, of_rows.coef_)
    weight = np.arange(400) % 3
    (without,) = lam_path(model, X[weight > 0], y[weight > 0], lams=[0.1], sample_weight=weight[weight > 0])
    (weighted,) = lam_path(model, X, y, lams=[0.1], sample_weight=weight)
    np.testing.assert_allclose(weighted.coef_, without.coef_, rtol=1e-10)
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize(
    ("parameters", "lams", "message"),
    [
        ({"solver": "svrg"}, [1.0], "lam_path needs solver 'exact', not 'svrg'"),
        ({}, [1.0, 0.0], "lam must be .*; got 0.0"),
        ({}, ["a"], "lam must be .*; got 'a'"),
    ],
)
def test_path_refuses(data, parameters, lams, message):
    with pytest.raises(InputError, match=message):
        lam_path(PairwiseSquareClassifier().set_params(**parameters), *data, lams=lams)


@pytest.mark.parametrize("solver", SOLVERS)
def test_constant_features_and_classes_of_one_row(solver):
    r = np.random.default_rng(0)
    X, y = np.column_stack([np.full(30, 4.0), r.normal(size=30)]), np.repeat([1, -1], [1, 29])
    X[0, 1] = 5.0
    model = fit(solver, X, y)
    assert abs(model.coef_[0, 0]) < 1e-9
    assert model.decision_function(X)[0] == model.decision_function(X).max()


@pytest.mark.parametrize("solver", SOLVERS)
def test_more_features_than_the_closed_form_takes(solver):
    r = np.random.default_rng(0)
    y = np.where(r.random(300) < 0.3, 1, -1)
    X = sp.random_array((300, 3000), density=0.01, rng=r, format="csr") + sp.csr_array(
        0.5 * (y[:, None] > 0) * (np.arange(3000) < 2)
    )
    model = fit(solver, X, y, lam=1e-2)
    assert roc_auc_score(y, model.decision_function(X)) > 0.95
    blocks = LocalBlocks(into_blocks(Block.of(X, y), 2))
    assert roc_auc_score(y, fit(solver, blocks, None, lam=1e-2).decision_function(X)) > 0.95
