"""`set_threshold` with rows and a requirement: what `predict` flags meets it exactly, for every kind of score."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from support.linear_models import fit_counting
from support.top_optima import top_hinge

import aucdist
from aucdist import PairwiseHingeClassifier
from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.estimators.scores import count_scores
from aucdist.metrics import counts as counts_module, partial_roc_auc_score
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.decisions import confusion
from aucdist.metrics.ranking import auc, auc_error

RANDOM = np.random.default_rng(0)
Y = np.where(RANDOM.random(400) < 0.3, "yes", "no")
X = np.round(RANDOM.normal(size=(400, 3)) + 1.2 * (Y == "yes")[:, None], 1)
MODELS = [
    aucdist.PairwiseHingeClassifier(tol=1e-2),
    aucdist.PairwiseHingeClassifier(tol=1e-2, features="bins", calibration="logit"),
    aucdist.LinkClassifier(),
    aucdist.HingeClassifier(lam=0.01, tol=1e-2),
    aucdist.MarginMeanClassifier(kernel="rbf", random_state=0, max_passes=20),
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
        score = np.sort(scores)[-10 * (k + 1)] * (1.0 if k % 2 else 1.0 + 1e-16)
        model.set_threshold(score)  # a score of a row: exactly the rows above it, whatever the rounding of the shift
        np.testing.assert_array_equal(flagged(model), scores > score)
        assert model.threshold_ == 0.0
    model.set_threshold(X=X, y=Y, alerts=0.1)
    assert ((model.decision_function(X) > model.threshold_) == flagged(model)).all()


@pytest.mark.parametrize("weight", [None, np.arange(len(X)) % 3])
def test_a_share_of_alerts_needs_no_labels(weight):
    model = aucdist.PairwiseHingeClassifier(tol=1e-2).fit(X, Y)
    for more in ({"alerts": 0.1}, {"alerts": 7, "per": len(X)}, {"alerts": 0.0}):
        start = model.set_threshold(0.0)
        assert start is model
        cut = model.set_threshold(X=X, y=Y, sample_weight=weight, **more).raw_threshold
        assert model.set_threshold(X=X, sample_weight=weight, **more).raw_threshold == cut


def test_probabilities_and_ranking_stay():
    model = MODELS[1].fit(X, Y)
    before, order = model.predict_proba(X), np.argsort(model.decision_function(X), kind="stable")
    model.set_threshold(X=X, y=Y, precision=0.9)
    assert (Y == "yes")[flagged(model)].mean() >= 0.9
    np.testing.assert_allclose(model.predict_proba(X), before, atol=1e-12)
    np.testing.assert_array_equal(np.argsort(model.decision_function(X), kind="stable"), order)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            {},
            "give either a threshold as the first argument, or rows as X=X and one of fpr, alerts, precision, recall, cost, as "
            "in .*; this call has none$",
        ),
        ({"threshold": 0.0, "recall": 0.5}, "give either a threshold"),
        (
            {"X": X, "y": Y},
            r"give either a threshold.* as in set_threshold\(X=X, y=y, recall=0.8\); this call has X, y$",
        ),
        ({"X": X, "y": Y, "recal": 0.5}, "as in set_threshold.*; this call has X, y, recal$"),
        ({"threshold": X, "y": Y, "recall": 0.5}, "as in set_threshold.*; this call has threshold, y, recall$"),
        (
            {"X": X, "y": Y, "cost": {}, "confidence": 0.9},
            "one of fpr, alerts, precision, recall, as in .* cost, confiden",
        ),
        ({"X": X, "y": Y, "recall": 0.5, "fpr": 0.1}, "this call has X, y, fpr, recall$"),
        ({"recall": 0.5}, "this call has recall$"),
        ({"threshold": 0.5, "X": X, "y": Y}, "give either a threshold"),
        ({"threshold": np.inf}, "threshold must be a finite number"),
        ({"threshold": -np.inf}, "threshold must be a finite number"),
        ({"threshold": np.nan}, "threshold must be a finite number"),
        ({"threshold": np.finfo(float).max}, "threshold must be a finite number"),
        ({"X": X, "y": Y, "alerts": 0, "per": 0}, "alerts is 0 and per is 0"),
        ({"X": X, "y": Y, "per": 10, "recall": 0.5}, "alerts is None and per is 10: give a share"),
        ({"X": X, "per": "day", "alerts": 5}, "per is 'day': give a share from 0 to 1, or both as numbers of rows"),
        ({"X": X, "alerts": 50}, r"alerts is 50 and per is None: give a share from 0 to 1, .* per=len\(X\)"),
        ({"X": X, "alerts": 0.1, "confidence": 0.9}, "confidence needs the labels of X: pass y as well"),
        ({"X": X, "fpr": 0.1}, "fpr needs the labels of X: pass y as well"),
        ({"X": X, "y": np.where(Y == "yes", "maybe", "no"), "recall": 0.5}, r"y: the label at position \d+ .*: maybe"),
        ({"X": X[:, :2], "y": Y, "recall": 0.5}, "2 features"),
        ({"X": X, "y": Y, "recall": 2}, "recall must be .*; got 2"),
    ],
)
def test_wrong_calls_change_nothing(arguments, said):
    model = aucdist.PairwiseHingeClassifier(tol=1e-2).fit(X, Y)
    before = model.intercept_
    with pytest.raises(ValueError, match=said):  # an InputError is one
        model.set_threshold(**arguments)
    assert model.intercept_ is before
    with pytest.raises(InputError, match=r"this call has threshold, y, recall$"):
        model.set_threshold(X, Y, recall=0.5)
    with pytest.raises(InputError, match=r"first argument, or rows as X=X and .*; this call has threshold, alerts$"):
        model.set_threshold(X, alerts=0.1)


def test_of_a_model_of_grades_the_classes_are_the_lowest_grade_and_the_others():
    grade = np.arange(400) % 3
    model = aucdist.PairwiseHingeClassifier(tol=1e-2, grade_weight="one").fit(X, grade)
    with pytest.raises(InputError, match="with grade_weight: the lowest grade, and all others"):
        model.set_threshold(X=X, y=grade, fpr=0.1)
    model.set_threshold(X=X, y=np.where(grade > 0, 1, -1), fpr=0.1)
    assert (model.predict(X) > 0)[grade == 0].mean() <= 0.1


# ---- the counts of the training scores: which fits return them, and that they stay small ------


N = 600


def rows(weight: np.ndarray | None = None, n_blocks: int = 3) -> LocalBlocks:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(N, 4)), np.where(random.random(N) < 0.2, 1, -1).astype(np.int8)
    X[y > 0] += 0.7
    return LocalBlocks(
        [
            Block.of(X[i], y[i], row_id=i, weight=None if weight is None else weight[i], index=number)
            for number, i in enumerate(np.array_split(np.arange(N), n_blocks))
        ]
    )


def same(a: ScoreCounts, b: ScoreCounts) -> bool:
    return all(getattr(a, key).tobytes() == getattr(b, key).tobytes() for key in ("values", "pos", "neg"))


@pytest.mark.parametrize(
    "estimator",
    [aucdist.PairwiseHingeClassifier(), aucdist.MarginMeanClassifier(random_state=0), aucdist.LinkClassifier()],
)
def test_a_fit_returns_the_counts_of_its_scores(estimator):
    counts = fit_counting(estimator, rows())
    assert counts is not None
    assert same(counts, count_scores(rows(), estimator.coef_[0]))


def test_counts_without_the_weights_of_the_rows_are_not_returned():
    estimator = aucdist.PairwiseHingeClassifier(solver="msgd", max_passes=2, random_state=0)
    with pytest.warns(ConvergenceWarning):
        assert fit_counting(estimator, rows(np.full(N, 2.0))) is None


def test_many_scores_are_counted_in_cells_that_no_partition_changes(monkeypatch):
    monkeypatch.setattr(counts_module, "MAX_VALUES", 100)
    monkeypatch.setattr(counts_module, "MAX_CELLS", 64)
    estimator = aucdist.PairwiseHingeClassifier()
    counts = fit_counting(estimator, rows())
    assert counts.shift > 0
    assert len(counts.values) <= 64
    for n_blocks in (1, 2, 5, 60):
        assert same(counts, count_scores(rows(n_blocks=n_blocks), estimator.coef_[0]))
    whole = rows(n_blocks=1).reduce(_rows)
    X, y = whole["X"][0], whole["y"][0]
    predicted = np.where(estimator.predict(X) > 0, 1, -1)
    table = confusion(counts, estimator.raw_threshold)
    assert (table["tp"], table["fp"]) == (np.sum(predicted[y > 0] > 0), np.sum(predicted[y < 0] > 0))
    exact = ScoreCounts.from_scores(y, X @ estimator.coef_[0])
    assert 0 < abs(auc(counts) - auc(exact)) <= auc_error(counts)


def _rows(block, memory):
    return None, {"X": [block.X], "y": [block.y]}


# ---- training for the top of the list: `max_fpr` and `max_false_positives` of the estimators --


def two_kinds_of_negatives(n=900, seed=0):
    """Return rows where few negatives look like positives in the first feature, and the second one tells those apart."""
    r = np.random.default_rng(seed)
    y = np.where(r.random(n) < 0.1, 1, -1)
    X = r.normal(size=(n, 2))
    hard = (y < 0) & (r.random(n) < 0.05)
    X[:, 0] += 6.0 * ((y > 0) | hard)
    X[:, 1] += np.where(y > 0, 1.0, np.where(hard, -3.0, 6.0))
    return X, y


def hopeless(n=300):
    r = np.random.default_rng(1)
    y = np.repeat([1, -1], [n // 10, n - n // 10])
    return r.normal(size=(n, 2)), y


def test_partial_auc_is_better_than_that_of_all_pairs():
    X, y = two_kinds_of_negatives()
    plain, top = aucdist.PairwiseHingeClassifier().fit(X, y), aucdist.PairwiseHingeClassifier(max_fpr=0.05).fit(X, y)
    scored = [partial_roc_auc_score(y, model.decision_function(X), max_fpr=0.05) for model in (plain, top)]
    assert scored[1] > scored[0]
    assert top.certificate_.status == "converged"
    w = top.coef_[0]
    expected = 0.5e-3 * w @ w + top_hinge(X @ w, y, 0.05 * (y < 0).sum())
    assert top.certificate_.primal == pytest.approx(expected, rel=1e-9)


def test_a_number_of_negatives_is_a_share():
    X, y = two_kinds_of_negatives()
    by_share = aucdist.PairwiseHingeClassifier(max_fpr=20 / (y < 0).sum()).fit(X, y)
    by_number = aucdist.PairwiseHingeClassifier(max_false_positives=20).fit(X, y)
    assert by_number.certificate_.primal == pytest.approx(by_share.certificate_.primal, rel=1e-3)


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_path_is_certified(penalty):
    X, y = two_kinds_of_negatives()
    models = aucdist.lam_path(aucdist.PairwiseHingeClassifier(max_fpr=0.1, penalty=penalty), X, y, lams=[1e-1, 1e-2])
    for model in models:
        assert model.certificate_.relative_gap <= 1e-3
        w = model.coef_[0]
        penalty_of = model.lam * (np.abs(w).sum() if penalty == "l1" else 0.5 * w @ w)
        expected = penalty_of + top_hinge(X @ w, y, 0.1 * (y < 0).sum())
        assert model.certificate_.primal == pytest.approx(expected, rel=1e-9)


def test_a_collapsed_minimum_is_said():
    X, y = hopeless()
    with pytest.warns(aucdist.CollapseWarning, match=r"near w = 0.*PairwiseRampClassifier"):
        aucdist.PairwiseHingeClassifier(max_fpr=0.02, lam=1e-2).fit(X, y)


def test_features_are_binned():
    X, y = two_kinds_of_negatives()
    model = aucdist.PairwiseHingeClassifier(max_fpr=0.05, features="bins", lam=1e-2).fit(X, y)
    assert model.certificate_.status == "converged"
    expanded = model.decision_function(X)
    w = model.coef_[0]
    expected = 0.5e-2 * w @ w + top_hinge(expanded, y, 0.05 * (y < 0).sum())
    assert model.certificate_.primal == pytest.approx(expected, rel=1e-6)


def test_a_guarantee_on_the_rows_of_the_fit_gives_a_warning():
    r = np.random.default_rng(5)
    rows, y = r.normal(size=(800, 2)), r.random(800) < 0.3
    rows[:, 0] += y
    model = PairwiseHingeClassifier().fit(rows[:400], y[:400])
    with pytest.warns(UserWarning, match="the AUC of X is that of the training rows"):
        model.set_threshold(X=rows[:400], y=y[:400], recall=0.8, confidence=0.9)
    model.set_threshold(X=rows[400:], y=y[400:], recall=0.8, confidence=0.9)  # warnings are errors here
    model.set_threshold(X=rows[:400], y=y[:400], recall=0.8)
