import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from support.oracle import pairwise_objective

from aucdist import PairwiseHingeClassifier
from aucdist.data.block import Block, into_blocks
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.estimators.linear import lam_path


def test_fitted_attributes(data):
    X, y = data
    model = PairwiseHingeClassifier(lam=1e-2).fit(X, y)
    c = model.certificate_
    assert c.status == "converged"
    assert c.relative_gap <= 1e-3
    assert c.relative_gap == pytest.approx((c.primal - c.dual) / c.primal)
    assert c.primal == pytest.approx(pairwise_objective(model.coef_[0], X, y, 1e-2), rel=1e-10)
    assert model.coef_.shape == (1, 5)
    assert model.intercept_.tolist() == [-model.raw_threshold]
    assert model.n_features_in_ == 5
    assert model.n_passes_ == model.history_["passes"].iloc[-1]
    assert not hasattr(model, "predict_proba")


def test_threshold_maximises_g_mean(data):
    X, y = data
    model = PairwiseHingeClassifier(lam=1e-2).fit(X, y)

    def g_mean(predicted):
        return np.sqrt((predicted[y > 0] > 0).mean() * (predicted[y < 0] < 0).mean())

    scores = X @ model.coef_[0]
    best = max(g_mean(np.where(scores > t, 1, -1)) for t in np.sort(scores))
    assert g_mean(model.predict(X)) == pytest.approx(best)


@pytest.mark.parametrize(
    "form",
    [sp.csr_matrix, sp.csr_array, sp.coo_array, sp.csc_matrix, pd.DataFrame, np.asfortranarray, np.ndarray.tolist],
)
def test_every_form_of_X_gives_the_same_model(data, form):
    X, y = data
    plain = PairwiseHingeClassifier(lam=1e-2, tol=1e-6).fit(X, y)
    other = PairwiseHingeClassifier(lam=1e-2, tol=1e-6).fit(form(X), y)
    tolerance = {"rtol": 1e-4, "atol": 1e-6} if sp.issparse(form(X)) else {"rtol": 0}  # dense: the same rows
    np.testing.assert_allclose(other.coef_, plain.coef_, **tolerance)


def test_float32_is_not_widened_but_summed_in_float64(data):
    X, y = data
    X32 = X.astype(np.float32)
    narrow = PairwiseHingeClassifier(lam=1e-2, tol=1e-6).fit(X32, y)
    wide = PairwiseHingeClassifier(lam=1e-2, tol=1e-6).fit(X32.astype(np.float64), y)
    np.testing.assert_array_equal(narrow.coef_, wide.coef_)


@pytest.mark.parametrize(
    ("labels", "positive"), [(("no", "yes"), "yes"), ((0, 1), 1), ((False, True), True), ((3.0, -2.0), 3.0)]
)
def test_the_larger_label_is_positive(data, labels, positive):
    X, y = data
    named = np.where(y > 0, max(labels), min(labels))
    model = PairwiseHingeClassifier(lam=1e-2).fit(X, named)
    assert model.classes_[1] == positive
    assert roc_auc_score(named == positive, model.decision_function(X)) > 0.8


def test_fit_on_blocks(data):
    X, y = data
    blocks = LocalBlocks(into_blocks(Block.of(X, y), 3))
    model = PairwiseHingeClassifier(lam=1e-2).fit(blocks)
    assert model.classes_.tolist() == [-1, 1]
    assert model.certificate_.primal == pytest.approx(pairwise_objective(model.coef_[0], X, y, 1e-2), rel=1e-10)
    with pytest.raises(InputError, match="contain their own labels"):
        PairwiseHingeClassifier().fit(blocks, y)


def test_not_converged_warns_with_the_numbers(data):
    X, y = data
    with pytest.warns(ConvergenceWarning, match=r"after 2 passes.*the gap is.*primal.*dual.*max_passes"):
        model = PairwiseHingeClassifier(lam=1e-4, max_passes=2).fit(X, y)
    assert model.certificate_.status == "max-passes"


def test_blocks_of_one_class_are_refused(data):
    X, _ = data
    with pytest.raises(InputError, match="one class only"):
        PairwiseHingeClassifier().fit(LocalBlocks([Block.of(X, np.ones(400))]))


def test_a9a(data_dir):
    import lzma

    with lzma.open(data_dir / "libsvm" / "a9a.xz") as train, lzma.open(data_dir / "libsvm" / "a9a.t.xz") as test:
        X, y = load_svmlight_file(train, n_features=123)
        X_test, y_test = load_svmlight_file(test, n_features=123)
    with warnings.catch_warnings(action="error"):
        model = PairwiseHingeClassifier(lam=1e-3).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-3
    assert model.n_passes_ <= 9  # it takes 7
    assert roc_auc_score(y_test, model.decision_function(X_test)) >= 0.899


def test_the_history_is_a_table_of_the_last_fit(data):
    model = PairwiseHingeClassifier(lam=1e-2)
    with pytest.raises(AttributeError, match="PairwiseHingeClassifier instance is not fitted yet"):
        _ = model.history_
    first = model.fit(*data).history_
    first["mine"] = 0.0
    assert model.history_.columns.tolist() == ["round", "passes", "seconds", "primal", "dual", "relative_gap"]
    assert len(model.set_params(tol=0.5).fit(*data).history_) < len(first)


# ---- path --------------------------------------------------------------------------------------


@pytest.fixture
def rare():
    r = np.random.default_rng(0)
    y = np.where(r.random(500) < 0.1, "rare", "common")
    X = r.normal(size=(500, 8)) + 0.6 * (y == "rare")[:, None]
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(8)]), y


def test_models_are_those_of_single_fits_for_fewer_passes(rare):
    X, y = rare
    lams = [1e-3, 1.0, 1e-2, 1e-1]
    models = lam_path(PairwiseHingeClassifier(tol=1e-5), X, y, lams=lams)
    single = [PairwiseHingeClassifier(lam=lam, tol=1e-5).fit(X, y) for lam in lams]
    assert [m.lam for m in models] == lams
    for of_path, other in zip(models, single, strict=True):
        assert of_path.certificate_.relative_gap <= 1e-5
        assert of_path.certificate_.primal == pytest.approx(other.certificate_.primal, rel=2e-5)
        assert of_path.classes_.tolist() == other.classes_.tolist()
        assert of_path.feature_names_in_.tolist() == other.feature_names_in_.tolist()
        np.testing.assert_allclose(of_path.decision_function(X), other.decision_function(X), atol=0.05)
    assert sum(m.n_passes_ for m in models) < sum(m.n_passes_ for m in single)


def test_a_path_ends_where_it_is_told_to(rare):
    X, y = rare
    models = lam_path(PairwiseHingeClassifier(), X, y, lams=[1e-3, 1e-1, 1.0], stop=lambda model: model.lam <= 1e-1)
    assert [model.lam for model in models] == [1e-1, 1.0]


def test_bad_input(rare):
    X, y = rare
    with pytest.raises(InputError, match="lams is empty"):
        lam_path(PairwiseHingeClassifier(), X, y, lams=[])
    with pytest.raises(InputError, match=r"lam must be .*; got -1"):
        lam_path(PairwiseHingeClassifier(), X, y, lams=[1e-2, -1])
    with pytest.raises(InputError, match="needs solver 'all-pairs'"):
        lam_path(PairwiseHingeClassifier(solver="sdcd"), X, y, lams=[1e-2])
