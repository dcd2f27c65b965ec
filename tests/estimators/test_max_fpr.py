"""Training for the top of the list: `max_fpr` and `max_false_positives` of the estimators."""

import numpy as np
import pytest
from support.top_optima import top_hinge

from aucdist import CollapseWarning, PairwiseHingeClassifier, lam_path
from aucdist.errors import InputError
from aucdist.metrics import partial_roc_auc_score


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
    plain, top = PairwiseHingeClassifier().fit(X, y), PairwiseHingeClassifier(max_fpr=0.05).fit(X, y)
    scored = [partial_roc_auc_score(y, model.decision_function(X), max_fpr=0.05) for model in (plain, top)]
    assert scored[1] > scored[0]
    assert top.certificate_.status == "converged"
    w = top.coef_[0]
    expected = 0.5e-3 * w @ w + top_hinge(X @ w, y, 0.05 * (y < 0).sum())
    assert top.certificate_.primal == pytest.approx(expected, rel=1e-9)


def test_a_number_of_negatives_is_a_share():
    X, y = two_kinds_of_negatives()
    by_share = PairwiseHingeClassifier(max_fpr=20 / (y < 0).sum()).fit(X, y)
    by_number = PairwiseHingeClassifier(max_false_positives=20).fit(X, y)
    assert by_number.certificate_.primal == pytest.approx(by_share.certificate_.primal, rel=1e-3)


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_path_is_certified(penalty):
    X, y = two_kinds_of_negatives()
    models = lam_path(PairwiseHingeClassifier(max_fpr=0.1, penalty=penalty), X, y, lams=[1e-1, 1e-2])
    for model in models:
        assert model.certificate_.relative_gap <= 1e-3
        w = model.coef_[0]
        penalty_of = model.lam * (np.abs(w).sum() if penalty == "l1" else 0.5 * w @ w)
        expected = penalty_of + top_hinge(X @ w, y, 0.1 * (y < 0).sum())
        assert model.certificate_.primal == pytest.approx(expected, rel=1e-9)


def test_a_collapsed_minimum_is_said():
    X, y = hopeless()
    with pytest.warns(CollapseWarning, match=r"near w = 0.*PairwiseRampClassifier"):
        PairwiseHingeClassifier(max_fpr=0.02, lam=1e-2).fit(X, y)


def test_features_are_binned():
    X, y = two_kinds_of_negatives()
    model = PairwiseHingeClassifier(max_fpr=0.05, features="bins", lam=1e-2).fit(X, y)
    assert model.certificate_.status == "converged"
    expanded = model.decision_function(X)
    w = model.coef_[0]
    expected = 0.5e-2 * w @ w + top_hinge(expanded, y, 0.05 * (y < 0).sum())
    assert model.certificate_.primal == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_fpr": 0.0}, "max_fpr is 0.0; a number above 0 and at most 1 or None"),
        ({"max_fpr": 1.5}, "max_fpr is 1.5"),
        ({"max_false_positives": 2.5}, "max_false_positives is 2.5; an integer at least 1"),
        ({"max_fpr": 0.1, "max_false_positives": 3}, "both say which negatives count"),
        ({"max_fpr": 0.1, "solver": "sdcd"}, "max_fpr applies to solver all-pairs"),
        ({"max_false_positives": 10_000}, "max_false_positives is 10000; it must be at most .* 270"),
    ],
)
def test_bad_input(parameters, message):
    with pytest.raises(InputError, match=message):
        PairwiseHingeClassifier(**parameters).fit(*hopeless())
