"""Estimators with a feature map: the same model as of the mapped matrix, wherever the rows are."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from support.fits import fitted
from support.small_sets import blocks_of

from aucdist import (
    MarginMeanClassifier,
    PairwiseHingeClassifier,
    PairwiseRampClassifier,
    PairwiseSquareClassifier,
    lam_path,
)
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.estimators import ESTIMATORS
from aucdist.maps import BinExpander, LeafExpander, NystroemMap
from aucdist.search.folds import masked_blocks

BINS = {"map": "bins", "bins": 12}
OTHERS = [(name, s) for name, kind in ESTIMATORS.items() for s, row in kind.solvers.items() if not row.accepts_codes]


def rows(n=300, seed=0):
    r = np.random.default_rng(seed)
    X = np.column_stack((r.normal(size=(n, 2)), r.integers(0, 2, n), r.exponential(size=n)))
    return X, np.where(np.abs(X[:, 0]) + 0.3 * X[:, 3] + 0.3 * r.normal(size=n) > 1.6, 1, -1)


def model(name, solver, **more):
    options = {"LinkClassifier": {"link": "logit"}}.get(name, {})
    if solver == "psa":
        options = {"penalty": "l1", "solver__radius": 3.0}
    return ESTIMATORS[name]().set_params(solver=solver, **options, **more)


# Every solver that takes codes: tests/maps/test_solvers_on_codes.py.
@pytest.mark.parametrize(
    ("name", "solver"), [("PairwiseHingeClassifier", "all-pairs"), ("PairwiseSquareClassifier", "exact")]
)
def test_codes_give_the_model_of_the_matrix(name, solver):
    X, y = rows()
    coded = fitted(model(name, solver, features=BINS, tol=1e-11), X, y)
    expander = BinExpander(bins=12).fit(X)
    plain = fitted(model(name, solver, tol=1e-11), expander.transform(X), y)
    assert coded.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-10)
    assert coded.certificate_.dual == pytest.approx(plain.certificate_.dual, rel=1e-10, abs=1e-12)
    np.testing.assert_allclose(coded.coef_, plain.coef_, rtol=1e-4, atol=1e-5)
    other, _ = rows(seed=1)
    scores = coded.decision_function(other) - coded.decision_intercept
    expected = plain.decision_function(expander.transform(other)) - plain.decision_intercept
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)
    assert coded.n_features_in_ == 4
    assert coded.coef_.shape == (1, coded.feature_map_.n_features_out)


@pytest.mark.parametrize(("name", "solver"), OTHERS)
def test_other_solvers_refuse_codes_in_a_line(name, solver):
    with pytest.raises(InputError, match=f"solver '{solver}' does not support features=.*bin numbers.*make_pipeline"):
        model(name, solver, features="bins").fit(*rows())


def test_the_models_of_a_solver_that_refuses_codes_take_dense_maps():
    X, y = rows()
    for kind, solver in ((MarginMeanClassifier, "svrg"), (PairwiseHingeClassifier, "sdcd")):
        model = fitted(kind(solver=solver, features=NystroemMap(landmarks=40), random_state=0), X, y)
        other, truth = rows(seed=2)
        assert roc_auc_score(truth, model.decision_function(other)) > 0.9


@pytest.mark.parametrize("features", ["bins", NystroemMap(landmarks=50), LeafExpander(trees=20)])
def test_a_map_lets_a_linear_model_bend(features):
    if isinstance(features, LeafExpander):
        pytest.importorskip("lightgbm")
    (X, y), (other, truth) = rows(600), rows(600, seed=3)
    line = fitted(PairwiseHingeClassifier(), X, y)
    bent = fitted(PairwiseHingeClassifier(features=features), X, y)
    value = roc_auc_score(truth, bent.decision_function(other))
    assert value > roc_auc_score(truth, line.decision_function(other)) + 0.1
    assert bent.certificate_.relative_gap <= 1e-3


def test_missing_values_and_data_frames_and_sparse_rows():
    X, y = rows()
    X[::6, 3] = np.nan
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = fitted(PairwiseHingeClassifier(features=BINS), frame, y)
    np.testing.assert_array_equal(model.feature_names_in_, list("abcd"))
    scores = model.decision_function(frame)
    assert roc_auc_score(y, scores) > 0.9
    np.testing.assert_array_equal(model.decision_function(frame.astype(np.float64)), scores)
    as_sparse = sp.csr_matrix(np.nan_to_num(X, nan=-1.0))
    again = fitted(PairwiseHingeClassifier(features=BINS), as_sparse, y)
    np.testing.assert_array_equal(again.decision_function(as_sparse), again.decision_function(as_sparse.toarray()))
    with pytest.raises(ValueError, match="NaN"):
        PairwiseHingeClassifier().fit(X, y)


def test_a_masked_fold_fits_its_own_edges_and_gives_the_bits_of_its_rows_alone():
    X, y = rows()
    kept = np.random.default_rng(5).random(300) < 0.6
    blocks = blocks_of(X, y, 3)
    masked = fitted(PairwiseHingeClassifier(features={"map": "bins", "bins": 200}), masked_blocks(blocks, kept))
    alone = LocalBlocks([block.take(kept[block.row_id], index=block.index) for block in blocks._blocks])
    plain = fitted(PairwiseHingeClassifier(features={"map": "bins", "bins": 200}), alone)
    np.testing.assert_array_equal(masked.coef_, plain.coef_)
    assert masked.certificate_ == plain.certificate_
    everything = fitted(PairwiseHingeClassifier(features={"map": "bins", "bins": 200}), blocks)
    assert len(masked.feature_map_.bins[0].edges) < len(everything.feature_map_.bins[0].edges)


def test_probabilities_come_from_models_that_never_saw_the_row():
    X, y = rows(400)
    model = fitted(PairwiseHingeClassifier(features=BINS, calibration="logit"), X, y)
    other, truth = rows(400, seed=8)
    p = model.predict_proba(other)[:, 1]
    assert roc_auc_score(truth, p) == pytest.approx(roc_auc_score(truth, model.decision_function(other)))
    assert p[truth > 0].mean() > 0.45
    assert p[truth < 0].mean() < 0.2


def test_a_path_along_lam_has_one_map():
    X, y = rows()
    estimator = PairwiseHingeClassifier(features=BINS)
    models = lam_path(estimator, X, y, lams=[1e-3, 1e-1])
    assert models[0].feature_map_ is models[1].feature_map_
    for lam, model in zip([1e-3, 1e-1], models, strict=True):
        alone = fitted(clone(estimator).set_params(lam=lam), X, y)
        assert model.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=2e-3)
        np.testing.assert_allclose(model.decision_function(X), alone.decision_function(X), atol=0.2)


def test_a_warm_start_keeps_the_map():
    X, y = rows()
    estimator = fitted(PairwiseHingeClassifier(features=BINS, warm_start=True), X, y)
    known = estimator.feature_map_
    passes = estimator.n_passes_
    fitted(estimator, X, y)
    assert estimator.feature_map_ is known
    assert estimator.n_passes_ < passes
    fitted(estimator.set_params(warm_start=False), X, y)
    assert estimator.feature_map_ is not known
    fitted(estimator.set_params(features=None), X, y)
    assert not hasattr(estimator, "feature_map_")


def test_works_in_tools_of_scikit_learn():
    X, y = rows()
    search = GridSearchCV(
        PairwiseHingeClassifier(features=BinExpander()), {"features__bins": [2, 30]}, scoring="roc_auc", cv=3
    )
    assert search.fit(X, y).best_params_ == {"features__bins": 30}
    pipeline = make_pipeline(BinExpander(bins=12), PairwiseHingeClassifier(solver="sdcd", random_state=0))
    assert roc_auc_score(y, fitted(pipeline, X, y).decision_function(X)) > 0.9


# ---- what it says -----------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::aucdist.CollapseWarning")
@pytest.mark.parametrize("kind", [PairwiseHingeClassifier, PairwiseRampClassifier])
@pytest.mark.parametrize("features", ["bins", "leaves"])
@pytest.mark.parametrize("top", [{}, {"max_fpr": 0.5}, {"max_false_positives": 1}])
def test_a_map_without_functions_gives_equal_scores(kind, features, top):
    """A constant column has no bins, and few rows no leaves."""
    fit = kind(features=features, **top).fit(np.ones((12, 2)), np.arange(12) % 2)
    assert fit.coef_.shape == (1, 0)
    assert not np.ptp(fit.decision_function(np.ones((12, 2))))


def test_explanations_add_up_to_the_score():
    X, y = rows()
    X[::6, 3] = np.nan
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = PairwiseHingeClassifier(features={"map": "bins", "interactions": 2}).fit(frame, y)
    table = model.explain(frame)
    assert list(table.columns[:4]) == list("abcd")
    assert table.columns[-1] == "constant"
    np.testing.assert_allclose(table.sum(axis=1), model.decision_function(frame), rtol=1e-9, atol=1e-9)
    shapes = model.shapes()
    assert [shape.feature for shape in shapes.shapes] == [0, 1, 2, 3]
    assert max(shapes.shapes, key=lambda shape: shape.spread).feature == 0


def test_a_linear_model_is_explained_by_its_weights():
    X, y = rows()
    model = fitted(PairwiseHingeClassifier(), X, y)
    for form in (X, sp.csr_matrix(X)):
        table = model.explain(form)
        np.testing.assert_allclose(table.sum(axis=1), model.decision_function(X), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(table["x1"], X[:, 1] * model.coef_[0, 1])
    with pytest.raises(InputError, match="features='bins'"):
        model.shapes()


def test_what_mixes_features_is_not_explained():
    X, y = rows()
    model = fitted(PairwiseHingeClassifier(features="nystroem"), X, y)
    with pytest.raises(InputError, match="mixes all features"):
        model.explain(X)


@pytest.mark.parametrize("features", ["bin", {"map": "bins", "bins": 1}, 3])
def test_a_wrong_map_is_refused_before_the_data_are_read(features):
    with pytest.raises(InputError, match=r"feature map|bins must be .*; got 1|features must be .*; got 3"):
        PairwiseHingeClassifier(features=features).check_parameters()


def test_a_path_of_squares_maps_the_rows():
    X, y = rows()
    (model,) = lam_path(PairwiseSquareClassifier(features="bins"), X, y, lams=[1.0])
    np.testing.assert_array_equal(model.coef_, PairwiseSquareClassifier(features="bins", lam=1.0).fit(X, y).coef_)
