"""Several classes, and labels: each model is that of its class against the rest, to the last bit."""

import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support.linear_models import fit_counting

import aucdist
from aucdist.data.block import Block
from aucdist.data.label_sets import LabelSets
from aucdist.engine.blocks import LocalBlocks
from aucdist.engine.view import ClassBlocks
from aucdist.errors import InputError
from aucdist.estimators.fitting import fit_rows

ALL = [
    aucdist.PairwiseHingeClassifier(),
    aucdist.PairwiseHingeClassifier(penalty="l1", lam=1e-2),
    aucdist.PairwiseHingeClassifier(features="bins", tol=1e-2),
    aucdist.PairwiseHingeClassifier(features="leaves", tol=1e-2),
    aucdist.PairwiseSquareClassifier(calibration="logit", monotone="auto"),
    aucdist.PairwiseRampClassifier(),
    aucdist.UnivariateRankingClassifier(calibration="isotonic"),
    aucdist.HingeClassifier(random_state=0, class_weight="balanced"),
    aucdist.HingeClassifier(solver="scd", random_state=0, max_passes=30),
    aucdist.LinkClassifier(link="logit"),
    aucdist.MarginMeanClassifier(random_state=0),
    aucdist.MarginMeanClassifier(random_state=0, kernel="rbf"),
]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    rows = np.flatnonzero(y < 4)[:300]
    return X[rows] / 16.0, np.array(["nought", "one", "two", "three"])[y[rows]]


@pytest.fixture(scope="module")
def topics(digits):
    """An indicator matrix: rows have none, one or several of three labels."""
    y = digits[1]
    return np.column_stack([y == "one", np.isin(y, ["one", "two"]), y == "three"]).astype(int)


def fitted(model, X, y, **more):
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        warnings.simplefilter("ignore", aucdist.SeparationWarning)
        return pickle.loads(pickle.dumps(model)).fit(X, y, **more)


def weights_of(model):
    return model.coef_ if hasattr(model, "coef_") else model.dual_coef_


@pytest.mark.parametrize("model", ALL, ids=str)
def test_each_class_has_the_bits_of_its_own_fit(model, digits, topics):
    (X, y), topics = (array[:160] for array in digits), topics[:160]
    together, labels = fitted(model, X, y), fitted(model, X, topics)
    assert together.classes_.tolist() == ["nought", "one", "three", "two"]
    for k, name in enumerate(together.classes_):
        alone = fitted(model, X, y == name)
        mine = together.estimators_[k]
        np.testing.assert_array_equal(weights_of(mine), weights_of(alone))
        assert together.intercept_[k] == alone.intercept_[0]
        assert together.certificates_[k] == alone.certificate_
        assert len(together.histories_[k]) == len(alone.history_)
        spread = 1.0 if hasattr(alone, "probability_") else together.spreads_[k]
        np.testing.assert_array_equal(together.decision_function(X)[:, k], alone.decision_function(X) / spread)
        if name == "one":
            np.testing.assert_array_equal(weights_of(labels.estimators_[0]), weights_of(alone))
            np.testing.assert_array_equal(labels.decision_function(X)[:, 0], alone.decision_function(X))
            np.testing.assert_array_equal(labels.predict(X)[:, 0], alone.predict(X))
    assert together.score(X, y) > 0.9
    assert labels.predict(X).shape == (160, 3)
    assert together.n_passes_ == sum(model.n_passes_ for model in together.estimators_)


def test_scores_are_in_units_of_their_spread(digits):
    X, y = digits
    model = aucdist.PairwiseHingeClassifier().fit(X, y)
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores.std(axis=0), 1.0)
    np.testing.assert_array_equal(model.predict(X), model.classes_[scores.argmax(axis=1)])
    np.testing.assert_allclose(scores * model.spreads_, X @ model.coef_.T + model.intercept_, atol=1e-12)
    assert model.thresholds_.shape == (4,)


@pytest.mark.parametrize(
    "model", [aucdist.LinkClassifier(), aucdist.PairwiseHingeClassifier(calibration="logit", lam=0.1, tol=0.1)], ids=str
)
def test_probabilities(model, digits, topics):
    (X, y), topics = (array[:160] for array in digits), topics[:160]
    of_classes, of_labels = fitted(model, X, y), fitted(model, X, topics)
    probabilities = of_classes.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(of_classes.predict(X), of_classes.classes_[probabilities.argmax(axis=1)])
    each = np.column_stack([fitted(model, X, label).predict_proba(X)[:, 1] for label in topics.T])
    np.testing.assert_array_equal(of_labels.predict_proba(X), each)


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("model", [aucdist.PairwiseHingeClassifier(), aucdist.LinkClassifier(link="logit")], ids=str)
def test_any_threads_and_any_views_have_the_bits_of_single_fits(model, n_jobs, digits):
    X, y = digits
    classes, codes = np.unique(y, return_inverse=True)
    ends = [0, 90, 200, 300]
    parts = [slice(*end) for end in itertools.pairwise(ends)]
    ones = np.ones(len(X))
    coded = [Block.of(X[part], ones[part], index=k, code=codes[part]) for k, part in enumerate(parts)]
    rows = ClassBlocks(LocalBlocks(coded, n_jobs=n_jobs), LabelSets.of_classes(classes))
    together = fitted(model, X[:8], [0, 1] * 4)  # what another fit left does not matter
    seen = []
    with warnings.catch_warnings(action="ignore", category=aucdist.SeparationWarning):
        counts = fit_counting(together, rows, callback=seen.append)
    assert {record["class"] for record in seen} == set(classes)
    for k, name in enumerate(classes):
        alone = pickle.loads(pickle.dumps(model))
        signs = np.where(y == name, 1, -1)
        blocks = [Block.of(X[part], signs[part], index=number) for number, part in enumerate(parts)]
        with warnings.catch_warnings(action="ignore", category=aucdist.SeparationWarning):
            own = fit_counting(alone, LocalBlocks(blocks))
        np.testing.assert_array_equal(together.coef_[k], alone.coef_[0])
        assert (counts[k] is None) == (own is None)


def test_weights_and_forms_of_labels(digits, topics):
    X, y = digits
    weight = np.arange(300) % 3
    some = weight > 0
    model = aucdist.PairwiseHingeClassifier(lam=1e-2)
    whole, part = fitted(model, X, y, sample_weight=weight), fitted(model, X[some], y[some], sample_weight=weight[some])
    np.testing.assert_array_equal(whole.coef_, part.coef_)
    dense = fitted(model, X, topics)
    table = pd.DataFrame(topics, columns=["ones", "small", "threes"])
    for form in (sp.csr_matrix(topics), sp.csc_array(topics), topics.astype(bool), topics.tolist(), table):
        np.testing.assert_array_equal(fitted(model, X, form).coef_, dense.coef_)
    assert fitted(model, pd.DataFrame(X), table).classes_.tolist() == ["ones", "small", "threes"]
    np.testing.assert_array_equal(fitted(model, sp.csr_matrix(X), y).classes_, np.unique(y))


def test_class_weight_is_of_the_rows_of_each_class(digits):
    X, y = digits
    model = aucdist.HingeClassifier(random_state=0, class_weight={"one": 5.0})
    together = fitted(model, X, y)
    alone = fitted(aucdist.HingeClassifier(random_state=0, class_weight={True: 5.0}), X, y == "one")
    np.testing.assert_array_equal(together.coef_[1], alone.coef_[0])
    with pytest.raises(InputError, match="unknown class in class_weight: 'four'"):
        aucdist.HingeClassifier(class_weight={"four": 1.0}).fit(X, y)


def test_scikit_learns_tools(digits, topics):
    X, y = digits
    pipeline = make_pipeline(StandardScaler(), aucdist.PairwiseHingeClassifier(lam=0.1, tol=0.1, calibration="logit"))
    scorers = {"area": "roc_auc_ovr", "own": lambda model, X, y: model.score(X, y)}
    folds = cross_validate(pipeline, X[:160], y[:160], scoring=scorers, cv=2, error_score="raise")
    assert folds["test_area"].min() > 0.95
    assert folds["test_own"].min() > 0.8
    ranked = make_pipeline(StandardScaler(), aucdist.PairwiseHingeClassifier(lam=0.1))
    assert cross_val_score(ranked, X, topics, scoring="roc_auc", cv=2, error_score="raise").min() > 0.95


def test_dask_arrays_are_scored(digits, topics):
    da = pytest.importorskip("dask.array")
    X, y = digits
    chunks = da.from_array(X, chunks=(100, 32))
    for labels in (y, topics):
        model = fitted(aucdist.LinkClassifier(link="logit"), X, labels)
        for method in ("decision_function", "predict", "predict_proba"):
            there = getattr(model, method)(chunks)
            here = getattr(model, method)(X)
            assert there.shape == here.shape
            np.testing.assert_array_equal(there.compute(), here)


def test_dask_arrays_are_fitted_chunk_by_chunk(digits, topics):
    da = pytest.importorskip("dask.array")
    X, y = digits
    chunks, weight = da.from_array(X, chunks=(100, 32)), np.arange(300) % 3 + 1.0
    for labels, sides in ((y, y[:, np.newaxis] == np.unique(y)), (topics, topics)):
        for more in ({}, {"sample_weight": weight}):
            model = aucdist.PairwiseHingeClassifier(tol=1e-2)
            model.fit(
                chunks, da.from_array(labels, chunks=100), **{k: da.from_array(v, chunks=100) for k, v in more.items()}
            )
            assert model.classes_.tolist() == (list(np.unique(y)) if labels is y else [0, 1, 2])
            for k, of_class in enumerate(model.estimators_):
                blocks = LocalBlocks.of(X, np.where(sides[:, k], 1, -1), more.get("sample_weight"), n_blocks=3)
                alone = aucdist.PairwiseHingeClassifier(tol=1e-2).fit(blocks)
                np.testing.assert_array_equal(of_class.coef_, alone.coef_)
                assert of_class.certificate_ == alone.certificate_
            assert model.predict(chunks).compute().tolist() == model.predict(X).tolist()
    with pytest.raises(ValueError, match="continuous"):
        aucdist.PairwiseHingeClassifier().fit(chunks, da.from_array(np.linspace(0.0, 1.0, 300), chunks=100))


def test_the_last_fit_is_what_counts(digits, topics):
    X, y = digits
    model = aucdist.PairwiseHingeClassifier().fit(X, y)
    for name in ("certificate_", "history_", "threshold_"):
        with pytest.raises(AttributeError, match=rf"a model for each class.*estimators_\[k\]\.{name}"):
            getattr(model, name)
    model.fit(X, y == "one")
    alone = aucdist.PairwiseHingeClassifier().fit(X, y == "one")
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    assert model.predict(X).tolist() == alone.predict(X).tolist()
    assert not hasattr(model, "certificates_")
    model.fit(X, topics)
    assert not hasattr(model, "certificate_")
    assert not hasattr(model, "history_")
    assert model.decision_function(X).shape == (300, 3)


class Scaled(aucdist.PairwiseHingeClassifier):
    def fit(self, X, y, **options):
        self.scale_ = np.abs(X).max(axis=0) + 1.0
        return super().fit(X / self.scale_, y, **options)


def test_what_a_subclass_sets_before_a_fit_stays(digits):
    X, y = digits
    model = Scaled().fit(X, y).fit(2.0 * X, y == "one")
    np.testing.assert_array_equal(model.scale_, np.abs(2.0 * X).max(axis=0) + 1.0)
    assert not hasattr(model, "estimators_")
    del model._of_last_fit  # as of an estimator that was pickled by an earlier version
    assert not hasattr(model.fit(X, y), "certificate_")


def test_counts_without_the_weights_of_the_rows_are_not_returned(digits):
    X, y = digits
    classes, codes = np.unique(y, return_inverse=True)
    block = Block.of(X, np.ones(len(X)), code=codes, weight=np.full(len(X), 2.0))
    rows = ClassBlocks(LocalBlocks([block]), LabelSets.of_classes(classes))
    model = aucdist.PairwiseHingeClassifier(solver="msgd", max_passes=2, random_state=0)
    assert [fit.counts for fit in fit_rows(model, rows, keep_counts=True)] == [None] * 4


def test_counts_of_several_classes_are_kept_only_for_those_who_ask(digits):
    """Of a thousand classes of a hundred thousand rows they would take two gigabytes until the end of `fit`."""
    model = aucdist.LinkClassifier(link="logit")
    assert [fit.counts for fit in fit_rows(model, *digits)] == [None] * 4
    assert all(len(fit.counts.values) > 100 for fit in fit_rows(model, *digits, keep_counts=True))


def test_lines_of_classes_are_fitted_side_by_side(digits):
    X, y = digits
    model = aucdist.PairwiseHingeClassifier(monotone="auto", tol=1e-2)
    side_by_side, one_by_one = fitted(clone(model).set_params(n_jobs=3), X, y), fitted(model, X, y)
    np.testing.assert_array_equal(side_by_side.coef_, one_by_one.coef_)
    directions = [[of_class.monotone_ for of_class in each.estimators_] for each in (side_by_side, one_by_one)]
    np.testing.assert_array_equal(*directions)


def test_two_classes_after_several_keep_their_feature_map(digits):
    X, y = digits
    model = aucdist.PairwiseHingeClassifier(features="bins").fit(X[:, :20], y).fit(X[:, :20], y == "one")
    alone = aucdist.PairwiseHingeClassifier(features="bins").fit(X[:, :20], y == "one")
    np.testing.assert_array_equal(model.decision_function(X[:, :20]), alone.decision_function(X[:, :20]))


def test_warm_starts_of_each_class(digits):
    X, y = digits
    model = aucdist.PairwiseHingeClassifier(warm_start=True, tol=1e-4).fit(X, y)
    first = [of_class.n_passes_ for of_class in model.estimators_]
    model.set_params(lam=1.1e-3).fit(X, y)
    assert sum(of_class.n_passes_ for of_class in model.estimators_) < sum(first)


def test_each_class_gets_a_threshold_of_its_own(digits, topics):
    X, y = digits
    for labels in (y, topics):
        model = fitted(aucdist.PairwiseHingeClassifier(tol=1e-2), X, labels)
        ranks = model.decision_function(X).argsort(axis=0)
        model.set_threshold(X=X, y=labels, fpr=0.05)
        for k, of_class in enumerate(model.estimators_):
            alone = fitted(
                aucdist.PairwiseHingeClassifier(tol=1e-2), X, y == model.classes_[k] if labels is y else labels[:, k]
            )
            alone.set_threshold(X=X, y=y == model.classes_[k] if labels is y else labels[:, k], fpr=0.05)
            assert of_class.raw_threshold == alone.raw_threshold == -model.intercept_[k]
        np.testing.assert_array_equal(model.decision_function(X).argsort(axis=0), ranks)
        with pytest.raises(InputError, match="one for each class in the order of classes_"):
            model.set_threshold(0.0)
        scores = model.decision_function(X)
        by = 0.1 * np.arange(1, 1 + scores.shape[1])
        model.set_threshold(by)
        np.testing.assert_allclose(model.decision_function(X), scores - by, atol=1e-12)
        assert not model.thresholds_.any()
    with pytest.raises(InputError, match="an indicator matrix of 0 and 1 with 3 columns"):
        model.set_threshold(X=X, y=y, fpr=0.05)
    of_noise = fitted(aucdist.PairwiseSquareClassifier(), X, np.arange(len(X)) % 3)
    said = r"class '0': precision is 1\.0, but on these rows no threshold has a precision above"
    with pytest.raises(InputError, match=said):
        of_noise.set_threshold(X=-X, y=np.arange(len(X)) % 3, precision=1.0)


def test_explanations_of_several_classes_are_refused(digits):
    X, y = digits
    model = aucdist.PairwiseHingeClassifier(features="bins", tol=1e-2).fit(X, y)
    for call in (lambda: model.explain(X), model.shapes, model.plot_shapes):
        said = r"is not defined for several classes, and this model has 4: use estimators_\[k\]\."
        with pytest.raises(InputError, match=said):
            call()
    of_class = model.estimators_[1]
    np.testing.assert_allclose(of_class.explain(X).sum(axis=1), of_class.decision_function(X))
    with pytest.raises(InputError, match="must have exactly two classes here; got 4"):
        aucdist.lam_path(aucdist.PairwiseHingeClassifier(), X, y, lams=[0.1])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.arange(5000) % 1500, "1500 values .*predicts classes, not numbers"),
        (np.column_stack([np.zeros(5000), np.arange(5000) % 2]), "class '0': the rows are of one class only"),
        (np.column_stack([np.arange(5000) % 3, np.arange(5000) % 2]), "not all 0 and 1"),
        (pd.DataFrame(np.eye(2, dtype=int)[np.arange(5000) % 2], columns=["a", "a"]), "two classes"),
        (sp.csr_matrix(np.ones((5000, 1))), "one column"),
    ],
)
def test_labels_that_cannot_be_fitted(labels, message):
    X = np.random.default_rng(0).normal(size=(5000, 2))
    with pytest.raises(InputError, match=message):
        aucdist.PairwiseHingeClassifier().fit(X, labels)


def test_a_class_that_cannot_be_calibrated_is_named(digits):
    X, y = digits
    y = np.where(np.arange(300) == 7, "rare", y)
    said = r"class 'rare': calibration scores each row by a model of other rows, and needs at least 2"
    with pytest.raises(InputError, match=said):
        aucdist.PairwiseHingeClassifier(calibration="logit", lam=0.1, tol=0.1).fit(X, y)


def test_one_warning_names_the_classes(digits):
    X, y = digits
    with pytest.warns(ConvergenceWarning) as caught:
        aucdist.PairwiseHingeClassifier(tol=1e-12, max_passes=3).fit(X, y)
    (warning,) = caught
    assert str(warning.message).startswith(
        "class 'nought': the fit ended after 3 passes, before the relative gap reached tol=1e-12"
    )
    assert str(warning.message).endswith("; and 1 classes more: 'two'")


def test_verbose_names_the_class(digits, capsys):
    X, y = digits
    aucdist.PairwiseHingeClassifier(verbose=1).fit(X, y)
    printed = capsys.readouterr().out
    for name in np.unique(y):
        assert f"[PairwiseHingeClassifier {name}] converged after" in printed
