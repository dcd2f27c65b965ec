"""The search of `features: auto`: its measure is what is trained for, and its settings are those of the rows."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from aucdist import LinkClassifier, PairwiseHingeClassifier, lam_path
from aucdist.errors import InputError
from aucdist.search.auto import ALL_PAIRS, LAMS, LAMS_OF_TOP, auto_search, trained_max_fpr
from aucdist.search.candidates import LEAVES, LEAVES_OF_TOP, complexity

SIZE = {"n_pos": 500, "n_neg": 2000, "n_features": 6}


@pytest.mark.parametrize(
    ("given", "metric"),
    [
        ({}, "auc"),
        ({"max_fpr": 0.05}, "shrunk_partial_auc@0.05"),
        ({"max_false_positives": 20}, "shrunk_partial_auc@0.01"),
        ({"max_false_positives": 1999}, "shrunk_partial_auc@0.9995"),
    ],
)
def test_the_measure_is_the_one_that_is_trained_for(given, metric):
    search = auto_search(PairwiseHingeClassifier(**given), **SIZE)
    assert (search.metric, search.rule, search.n_folds) == (metric, "best" if given else "simplest", 5)
    assert sorted({point["lam"] for point in search.points}, reverse=True) == list(LAMS if not given else LAMS_OF_TOP)
    tried = [point["features"] for point in search.points]
    assert [one for one in tried if one in (LEAVES, *LEAVES_OF_TOP)][:: 2 if given else 5] == list(
        LEAVES_OF_TOP if given else [LEAVES]
    )


@pytest.mark.parametrize(("name", "value"), [("max_fpr", 0.05), ("max_false_positives", 20)])
def test_the_top_is_fitted_over_all_pairs_as_well(name, value):
    points = auto_search(PairwiseHingeClassifier(**{name: value}), **SIZE).points
    over_all = [point for point in points if point[name] is None]
    assert [point["features"] for point in over_all[::2]] == list(ALL_PAIRS)
    assert {point[name] for point in points} == {value, None}
    assert {tuple(sorted(point)) for point in points} == {("features", "lam", name, "monotone")}


def test_the_top_of_few_rows_has_forests_and_that_of_directions_those_without_a_score():
    few = auto_search(PairwiseHingeClassifier(max_fpr=0.05), **SIZE | {"n_pos": 100}).points
    assert LEAVES_OF_TOP[0] in [point["features"] for point in few]
    directed = auto_search(PairwiseHingeClassifier(max_fpr=0.05, monotone={0: "increasing"}), **SIZE).points
    tried = [point["features"] for point in directed]
    assert LEAVES in tried
    assert not any(one in tried for one in LEAVES_OF_TOP)


def test_sizes_and_given_values_are_kept():
    search = auto_search(PairwiseHingeClassifier(max_fpr=0.1, tol=0.05), **SIZE | {"n_pos": 3}, lam=0.3)
    assert {point["lam"] for point in search.points} == {0.3}
    assert (search.n_folds, search.tol) == (3, 0.05)
    assert auto_search(PairwiseHingeClassifier(max_fpr=0.1), **SIZE).tol == 3e-2
    assert auto_search(LinkClassifier(tol=1e-6), **SIZE).tol == 3e-2
    assert trained_max_fpr(LinkClassifier(), 10) is None
    assert trained_max_fpr(PairwiseHingeClassifier(max_false_positives=20), 10) == 1.0


def test_probability_models_try_smaller_lam_where_positives_are_rare():
    rare = auto_search(LinkClassifier(), n_pos=84, n_neg=99_916, n_features=6)
    assert sorted({point["lam"] for point in rare.points}) == [3.4e-8, 3.4e-7, 3.4e-6]
    balanced = auto_search(LinkClassifier(), n_pos=500, n_neg=500, n_features=6)
    assert sorted({point["lam"] for point in balanced.points}) == [1e-5, 1e-4, 1e-3]
    assert {point["lam"] for point in auto_search(LinkClassifier(lam=0.3), lam=0.3, **SIZE).points} == {0.3}


def test_of_two_forests_the_smaller_one_is_the_simpler():
    order = [complexity(one) for one in ({"map": "bins", "pairs": 40}, "leaves", {"map": "leaves"}, LEAVES)]
    assert order == sorted(order)
    assert order[1] == order[2] < order[3]


def test_python_chooses_features_by_the_same_search():
    r = np.random.default_rng(0)
    X = r.standard_normal((160, 2))
    y = (X[:, 0] ** 2 + 0.3 * r.standard_normal(160) > 1.5).astype(int)  # no line ranks these
    model = PairwiseHingeClassifier(features="auto", tol=1e-2).fit(X, y)
    assert model.chosen_["features"] is not None
    assert (model.features, model.lam) == ("auto", 1e-3)
    alone = PairwiseHingeClassifier(tol=1e-2).set_params(**model.chosen_).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), alone.decision_function(X))
    assert roc_auc_score(y, model.decision_function(X)) > 0.9
    with pytest.raises(InputError, match="name a feature map here"):
        lam_path(model, X, y, lams=[1e-2])
    model.set_params(features=None).fit(X, y)
    assert not hasattr(model, "chosen_")
    assert not hasattr(model, "feature_map_")
