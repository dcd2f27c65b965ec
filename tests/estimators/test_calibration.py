import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from support.fits import fitted

import aucdist
from aucdist.data.block import Block, into_blocks
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.estimators.calibration import N_FOLDS, SEED, isotonic, link_map, out_of_fold
from aucdist.estimators.fitting import fit_rows
from aucdist.estimators.linear import lam_path
from aucdist.metrics import brier_score_loss, calibration_loss
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.decisions import threshold_at
from aucdist.probability.links import Link
from aucdist.selection import fold_numbers

KINDS = ["gev", "logit", "isotonic"]
MODELS = [
    aucdist.PairwiseHingeClassifier,
    aucdist.PairwiseRampClassifier,
    aucdist.PairwiseSquareClassifier,
    aucdist.UnivariateRankingClassifier,
]


def drawn(n=3000, seed=0, share=0.08):
    """Two normal classes: the probability of a row is the logistic function of a linear score."""
    r = np.random.default_rng(seed)
    y = np.where(r.random(n) < share, 1, -1)
    return r.normal(size=(n, 4)) + [1.0, 0.7, 0.0, 0.0] * (y[:, np.newaxis] > 0), y


@pytest.mark.parametrize(("estimator", "kind"), [*zip(MODELS, [*KINDS, "gev"], strict=True), (MODELS[0], "isotonic")])
def test_probabilities_can_be_trusted(estimator, kind):
    X, y = drawn()
    new, labels = drawn(20_000, seed=1)
    exact = 1 / (1 + np.exp(-(new @ [1.0, 0.7, 0, 0] - 0.5 * 1.49 + np.log(0.08 / 0.92))))
    model = fitted(estimator(calibration=kind, lam=1e-2, random_state=0), X, y)
    p = model.predict_proba(new)[:, 1]
    assert calibration_loss(labels, p) < 1e-3
    assert brier_score_loss(labels, p) < brier_score_loss(labels, exact) + 1.5e-3
    order = np.argsort(model.decision_function(new))
    assert (np.diff(p[order]) >= 0).all()
    assert p.mean() == pytest.approx(0.08, abs=0.01)


def test_estimators_without_calibration_have_no_probabilities():
    X, y = drawn(200)
    for estimator in (*MODELS, aucdist.HingeClassifier):
        assert not hasattr(estimator(), "predict_proba")
    model = aucdist.PairwiseHingeClassifier(calibration="logit").fit(X, y)
    assert hasattr(model, "predict_proba")
    assert not hasattr(model.set_params(calibration=None), "predict_proba")


def test_scores_are_those_of_models_that_had_not_seen_the_row():
    X, y = drawn(400)
    model = aucdist.PairwiseSquareClassifier(lam=1e-2, calibration="logit").fit(X, y)
    fold = fold_numbers(np.arange(400), y, N_FOLDS, SEED)
    scores = np.empty(400)
    for number in range(N_FOLDS):
        seen = fold != number
        part, of_all = aucdist.PairwiseSquareClassifier(lam=1e-2).fit(X[seen], y[seen]).coef_[0], X @ model.coef_[0]
        own = X[seen] @ part
        scores[~seen] = (X[~seen] @ part - own.mean()) * (of_all.std() / own.std()) + of_all.mean()
    expected = ScoreCounts.from_scores(y, scores)
    for blocks in (LocalBlocks([Block.of(X, y)]), LocalBlocks(into_blocks(Block.of(X, y), 7))):
        counts = out_of_fold(model, blocks)
        np.testing.assert_allclose(counts.values, expected.values, rtol=1e-9)
        np.testing.assert_array_equal(counts.pos, expected.pos)


def test_thresholds_of_scores_that_a_model_had_not_seen_flag_as_many_new_rows():
    """Sixty positives are fitted closely. Without common units, the thresholds are off by twice as much, and mostly too high."""
    rng, errors = np.random.default_rng(0), []
    for _ in range(5):
        X = rng.normal(size=(21_200, 4))
        y = np.where(X[:, 0] + X[:, 1] ** 2 + rng.normal(size=len(X)) > 4.3, 1, -1)
        few, new = np.r_[np.flatnonzero(y > 0)[:60], np.flatnonzero(y < 0)[:1140]], np.flatnonzero(y < 0)[1140:]
        model = aucdist.PairwiseHingeClassifier(features={"map": "bins", "interactions": 3}, lam=1e-4, tol=1e-2)
        model.fit(X[few], y[few])
        threshold = threshold_at(out_of_fold(model, LocalBlocks([Block.of(X[few], y[few])])), fpr=0.05)
        errors.append(np.mean(model.decision_function(X[new]) - model.decision_intercept > threshold) - 0.05)
    assert np.abs(errors).mean() < 0.009
    assert np.mean(errors) == pytest.approx(0.0, abs=0.005)


def test_a_fit_returns_the_scores_that_its_calibration_was_fitted_to():
    X, y = drawn(400)
    blocks = LocalBlocks([Block.of(X, y)])
    model = aucdist.PairwiseSquareClassifier(lam=1e-2, calibration="logit")
    (fit,) = fit_rows(model, blocks)
    expected = out_of_fold(model, blocks)
    np.testing.assert_array_equal(fit.out_of_fold_counts.values, expected.values)
    np.testing.assert_array_equal(fit.out_of_fold_counts.pos, expected.pos)
    (fit,) = fit_rows(model.set_params(calibration=None), blocks)
    assert fit.out_of_fold_counts is None
    assert not hasattr(model, "probability_")


def test_logit_is_logistic_regression_of_the_scores():
    X, y = drawn(1000)
    scores = X @ [3.0, 1.0, 0.0, 0.0] + 17.0
    logit = link_map(ScoreCounts.from_scores(y, scores), "logit")
    standardised = (scores - scores.mean()) / scores.std()
    peer = LogisticRegression(C=1.0, tol=1e-12).fit(standardised[:, None], y)
    np.testing.assert_allclose(logit(scores), peer.predict_proba(standardised[:, None]), rtol=1e-6)


def test_isotonic_is_scikit_learns():
    X, y = drawn(1000)
    scores = np.round(X[:, 0], 1)
    weight = np.random.default_rng(0).integers(1, 3, 1000).astype(float)
    step_map = isotonic(ScoreCounts.from_scores(y, scores, weight))
    peer = IsotonicRegression(out_of_bounds="clip").fit(scores, y > 0, sample_weight=weight)
    grid = np.linspace(-6, 6, 400)
    np.testing.assert_allclose(step_map(grid)[:, 1], peer.predict(grid), atol=1e-12)


def test_logit_is_near_scikit_learns_calibration():
    X, y = drawn()
    model = aucdist.PairwiseSquareClassifier(lam=1e-2, calibration="logit").fit(X, y)
    peer = CalibratedClassifierCV(
        aucdist.PairwiseSquareClassifier(lam=1e-2), method="sigmoid", ensemble=False, cv=5
    ).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=0.02)
    assert CalibratedClassifierCV(FrozenEstimator(model)).fit(X, y).predict_proba(X).shape == (3000, 2)


def test_prior_of_undersampled_rows_is_exact():
    X, y = drawn(8_000)
    kept = (y > 0) | (np.random.default_rng(0).random(len(y)) < 0.1)
    prior = 0.08
    share = (y[kept] > 0).mean()
    for kind in KINDS:
        plain = aucdist.PairwiseSquareClassifier(lam=1e-2, calibration=kind).fit(X[kept], y[kept])
        model = clone(plain).set_params(prior=prior).fit(X[kept], y[kept])
        p, q = plain.predict_proba(X).T[::-1]
        up, down = p * prior / share, q * (1 - prior) / (1 - share)
        np.testing.assert_allclose(model.predict_proba(X)[:, 1], up / (up + down), rtol=1e-9)
        assert model.predict_proba(X)[:, 1].mean() == pytest.approx(prior, rel=0.1)
        np.testing.assert_array_equal(model.predict(X), plain.predict(X))


def test_equal_scores():
    y = np.where(np.arange(40) % 4, -1, 1)
    for kind in KINDS:
        model = aucdist.PairwiseSquareClassifier(calibration=kind).fit(np.ones((40, 1)), y)
        np.testing.assert_allclose(model.predict_proba(np.ones((3, 1)))[:, 1], 0.25, atol=0.01)


def test_a_path_is_calibrated():
    X, y = drawn(500)
    for model in lam_path(aucdist.PairwiseHingeClassifier(calibration="logit"), X, y, lams=[1e-1, 1e-2]):
        alone = aucdist.PairwiseHingeClassifier(calibration="logit", lam=model.lam).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), atol=2e-2)


def test_too_few_rows():
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.where(np.arange(30) < 2, 1, -1)
    assert aucdist.PairwiseSquareClassifier(calibration="logit").fit(X, y).predict_proba(X).shape == (30, 2)
    y[0] = -1
    with pytest.raises(InputError, match="needs at least 2 rows of each class, but one class has 1"):
        aucdist.PairwiseSquareClassifier(calibration="logit").fit(X, y)


def test_dask_arrays_have_the_probabilities_of_their_rows():
    model, X = aucdist.PairwiseSquareClassifier(lam=1e-2, calibration="isotonic").fit(*drawn(1200)), drawn(50)[0]
    lazy = model.predict_proba(da.from_array(X, chunks=(20, 4)))
    np.testing.assert_array_equal(lazy.compute(), model.predict_proba(X))


def test_map_of_a_shape():
    """Scores whose probabilities are a GEV link's: the map finds slope and offset."""
    r = np.random.default_rng(0)
    scores = r.normal(3.0, 10.0, size=40_000)
    exact = Link("gev", 0.3).probabilities(0.1 * scores - 0.9)[0]
    gev = link_map(ScoreCounts.from_scores(np.where(r.random(40_000) < exact, 1, -1), scores), "gev")
    assert gev.link.xi == pytest.approx(0.3, abs=0.1)
    np.testing.assert_allclose(gev(scores)[:, 1], exact, atol=0.02)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_unit_of_weights_changes_no_probability():
    X, y = drawn(400)
    weight = np.random.default_rng(0).random(400)
    model = aucdist.PairwiseHingeClassifier(calibration="logit")
    first, second = (fitted(model, X, y, weight * unit).predict_proba(X[:5]) for unit in (1.0, 1e-3))
    np.testing.assert_allclose(first, second, atol=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_of_weight_0_may_be_the_last_ones():
    X, y = drawn(400)
    weight = np.r_[np.ones(390), np.zeros(10)]
    blocks = LocalBlocks([Block.of(X, y, weight=weight)])
    of_blocks = fitted(aucdist.PairwiseHingeClassifier(calibration="logit"), blocks)
    of_arrays = fitted(aucdist.PairwiseHingeClassifier(calibration="logit"), X, y, weight)
    np.testing.assert_allclose(of_blocks.predict_proba(X[:5]), of_arrays.predict_proba(X[:5]), rtol=1e-6)


def test_positives_of_one_group_cannot_be_calibrated():
    X, y = drawn(400)
    groups = np.where(y > 0, 0, np.arange(400) % 5)
    said = r"needs at least 2 groups with rows of each class.* 1: add rows, or leave out `calibration`"
    with pytest.raises(InputError, match=said):
        aucdist.PairwiseHingeClassifier(calibration="logit").fit(X, y, groups=groups)
