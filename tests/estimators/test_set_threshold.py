"""`set_threshold` with rows and a requirement: what `predict` flags meets it exactly, for every kind of score."""

import numpy as np
import pytest

from aucdist import HingeClassifier, LinkClassifier, MarginMeanClassifier, PairwiseHingeClassifier

RANDOM = np.random.default_rng(0)
Y = np.where(RANDOM.random(400) < 0.3, "yes", "no")
X = np.round(RANDOM.normal(size=(400, 3)) + 1.2 * (Y == "yes")[:, None], 1)
MODELS = [
    PairwiseHingeClassifier(tol=1e-2),
    PairwiseHingeClassifier(tol=1e-2, features="bins", calibration="logit"),
    LinkClassifier(),
    HingeClassifier(lam=0.01, tol=1e-2),
    MarginMeanClassifier(kernel="rbf", random_state=0, max_passes=20),
]


def flagged(model):
    return model.predict(X) == "yes"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_predictions_meet_the_requirement(model):
    model.fit(X, Y)
    positive = Y == "yes"
    scores = model._scores_without_intercept(X)
    model.set_threshold(X=X, y=Y, fpr=0.1)
    assert flagged(model)[~positive].mean() <= 0.1
    # One more distinct score would flag too many.
    following = scores[~flagged(model)].max()
    assert (scores >= following)[~positive].mean() > 0.1
    model.set_threshold(X=X, y=Y, recall=0.8)
    assert flagged(model)[positive].mean() >= 0.8
    for miss in (5, np.arange(len(Y)) % 7):
        model.set_threshold(X=X, y=Y, cost={"false_alarm": 1, "miss": miss})
        of_row = np.where(positive, miss, 1)
        assert of_row[flagged(model) != positive].sum() == min(
            of_row[(scores > cut) != positive].sum() for cut in [-1e9, *scores]
        )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_scores_above_the_threshold_are_those_that_predict_flags(model):
    model.fit(X, Y)
    for k in range(20):
        scores = model.decision_function(X)
        assert ((scores > model.threshold_) == flagged(model)).all()
        given = np.sort(scores)[-10 * (k + 1)] * (1.0 if k % 2 else 1.0 + 1e-16)
        model.set_threshold(given)  # a score of a row: exactly the rows above it, whatever the rounding of the shift
        np.testing.assert_array_equal(flagged(model), scores > given)
        assert model.threshold_ == 0.0
    model.set_threshold(X=X, y=Y, alerts=0.1)
    assert ((model.decision_function(X) > model.threshold_) == flagged(model)).all()


def test_probabilities_and_ranking_stay():
    model = MODELS[1].fit(X, Y)
    before, order = model.predict_proba(X), np.argsort(model.decision_function(X), kind="stable")
    model.set_threshold(X=X, y=Y, precision=0.9)
    assert (Y == "yes")[flagged(model)].mean() >= 0.9
    np.testing.assert_allclose(model.predict_proba(X), before, atol=1e-12)
    np.testing.assert_array_equal(np.argsort(model.decision_function(X), kind="stable"), order)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "give either a threshold, or X, y and one of fpr, alerts, precision, recall, cost"),
        ({"threshold": 0.0, "recall": 0.5}, "give either a threshold"),
        ({"X": X, "y": Y}, "give either a threshold"),
        ({"X": X, "y": Y, "recall": 0.5, "fpr": 0.1}, "give either a threshold"),
        ({"recall": 0.5}, "give either a threshold"),
        ({"X": X, "y": np.where(Y == "yes", "maybe", "no"), "recall": 0.5}, r"y has .*'maybe'.* at position \d+"),
        ({"X": X[:, :2], "y": Y, "recall": 0.5}, "2 features"),
        ({"X": X, "y": Y, "recall": 2}, "recall is 2"),
    ],
)
def test_wrong_calls_change_nothing(given, said):
    model = PairwiseHingeClassifier(tol=1e-2).fit(X, Y)
    before = model.intercept_
    with pytest.raises(ValueError, match=said):  # an InputError is one
        model.set_threshold(**given)
    assert model.intercept_ is before
