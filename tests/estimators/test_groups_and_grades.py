"""Groups and grades through the estimators."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support.grouped_pairs import hinge, mean_loss, pairs_of

from aucdist import HingeClassifier, PairwiseHingeClassifier, PairwiseRampClassifier, PairwiseSquareClassifier
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError


def clicks(seed=0, n=400, n_users=30):
    """Rows of users whose click rates differ far more than their pages do."""
    r = np.random.default_rng(seed)
    user = r.integers(0, n_users, n)
    X = r.normal(size=(n, 4))
    X[:, 3] = r.normal(size=n_users)[user]  # what a user is
    p = 1 / (1 + np.exp(-(X[:, 0] - X[:, 1] + 3 * X[:, 3])))
    return X, (r.random(n) < p).astype(int), user


def test_objective_is_the_mean_over_pairs_of_one_user():
    X, y, user = clicks()
    for group_weight in (None, "pairs", "groups"):
        model = PairwiseHingeClassifier(lam=1e-2, group_weight=group_weight).fit(X, y, groups=user)
        pairs = pairs_of(y, user, np.ones(len(y)), group_weight=group_weight or "pairs")
        w = model.coef_[0]
        assert model.certificate_.primal == pytest.approx(5e-3 * w @ w + mean_loss(hinge, w, X, pairs), rel=1e-10)
        assert model.certificate_.status == "converged"


def test_what_a_user_is_has_no_weight():
    X, y, user = clicks()
    within, across = PairwiseHingeClassifier().fit(X, y, groups=user), PairwiseHingeClassifier().fit(X, y)
    assert abs(within.coef_[0, 3]) < 1e-12 < 1.0 < across.coef_[0, 3]


def test_names_numbers_and_blocks_of_groups_agree():
    X, y, user = clicks()
    names = np.array([f"user {u}" for u in user])
    by_number = PairwiseHingeClassifier(tol=1e-9).fit(X, y, groups=user)
    for groups in (user.astype(float), names, pd.Series(names), pd.Series(names, dtype="category"), list(names)):
        model = PairwiseHingeClassifier(tol=1e-9).fit(X, y, groups=groups)
        np.testing.assert_allclose(model.coef_, by_number.coef_, rtol=1e-6, atol=1e-9)
    blocks = LocalBlocks.of(X, np.where(y == 1, 1, -1), groups=names, n_blocks=4)
    np.testing.assert_allclose(
        PairwiseHingeClassifier(tol=1e-9).fit(blocks).coef_, by_number.coef_, rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize("estimator", [PairwiseHingeClassifier, PairwiseRampClassifier])
@pytest.mark.parametrize("grade_weight", ["difference", "one"])
def test_grades_order_rows(estimator, grade_weight):
    r = np.random.default_rng(1)
    X, query = r.normal(size=(600, 3)), r.integers(0, 40, 600)
    grade = np.digitize(X[:, 0] + 0.3 * r.normal(size=600) + r.normal(size=40)[query], [-1, 0, 1])
    model = estimator(lam=1e-3, grade_weight=grade_weight).fit(X, grade, groups=query)
    w = model.coef_[0]
    assert w[0] > 5 * np.abs(w[1:]).max()
    alone = estimator(lam=1e-3, grade_weight=grade_weight).fit(X, grade)  # one group of all
    assert alone.coef_[0, 0] > 0
    assert model.classes_.tolist() == [-1, 1]


def test_metadata_routing_through_a_pipeline():
    X, y, user = clicks()
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(StandardScaler(), PairwiseHingeClassifier().set_fit_request(groups=True))
        folds = cross_validate(model, X, y, params={"groups": user}, cv=GroupKFold(3), return_estimator=True)
        plain = PairwiseHingeClassifier().set_fit_request(groups=True)
        routed = make_pipeline(StandardScaler(), plain).fit(X, y, groups=user)
    assert all(abs(pipeline[-1].coef_[0, 3]) < 1e-9 for pipeline in folds["estimator"])
    by_hand = PairwiseHingeClassifier().fit(StandardScaler().fit_transform(X), y, groups=user)
    assert routed[-1].coef_.tobytes() == by_hand.coef_.tobytes()


def test_calibration_keeps_groups_whole():
    X, y, user = clicks()
    model = PairwiseHingeClassifier(calibration="logit").fit(X, y, groups=user)
    assert model.predict_proba(X).shape == (len(y), 2)


def test_maps_weights_and_penalties_compose():
    X, y, user = clicks()
    for options in ({"features": "bins"}, {"penalty": "l1"}, {"monotone": {0: "increasing"}}):
        model = PairwiseHingeClassifier(lam=1e-2, **options).fit(X, y, np.linspace(0.5, 2, len(y)), groups=user)
        assert model.certificate_.status == "converged"


@pytest.mark.parametrize(
    ("model", "labels", "options", "message"),
    [
        (HingeClassifier(), "y", {"groups": 1}, "HingeClassifier does not support groups. Use PairwiseHingeClassifier"),
        (PairwiseHingeClassifier(solver="msgd"), "y", {"groups": 1}, "solvers that do: all-pairs, sdcd, sdcd-perm$"),
        (PairwiseHingeClassifier(solver="msgd", grade_weight="one"), "y", {}, "grade_weight applies to solver all-pairs, sdcd"),
        (PairwiseHingeClassifier(group_weight="groups"), "y", {}, "no groups are given"),
        (PairwiseHingeClassifier(group_weight="rows"), "y", {"groups": 1}, "group_weight"),
        (PairwiseHingeClassifier(grade_weight="one"), "text", {}, "numbers"),
        (PairwiseHingeClassifier(grade_weight="one"), "same", {}, "all rows have the grade 1"),
        (PairwiseHingeClassifier(), "y", {"groups": 2}, "row 3"),
        (PairwiseHingeClassifier(max_fpr=0.1), "y", {"groups": 1}, "set both to None"),
        (PairwiseHingeClassifier(max_false_positives=5), "y", {"groups": 1}, "set both to None"),
    ],
)  # fmt: skip
def test_impossible_groups_and_labels_are_refused(model, labels, options, message):
    X, y, user = clicks()
    values = {"y": y, "text": np.where(y == 1, "yes", "no"), "same": np.ones(len(y))}[labels]
    groups = {None: None, 1: user, 2: np.where(np.arange(len(y)) == 3, np.nan, user)}[options.get("groups")]
    with pytest.raises(InputError, match=message):
        model.fit(X, values, groups=groups)


def test_one_group_for_each_row_is_needed():
    X, y, user = clicks()
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        PairwiseHingeClassifier().fit(X, y, groups=user[:-1])


@pytest.mark.parametrize(("with_client", "grade_weight"), [(False, None), (True, "difference")])
def test_dask_collections_with_groups(with_client, grade_weight, request):
    if with_client:
        request.getfixturevalue("client")
    X, clicked, user = clicks()
    y = clicked if grade_weight is None else np.digitize(X[:, 0] + X[:, 1] ** 2, [-1, 0, 1]) - 1.5
    weight = np.linspace(0.5, 2, len(y))
    for names in (user, np.array([f"user {u}" for u in user]), np.where(user == 3, 3.5, user)):
        model, plain = (PairwiseHingeClassifier(lam=1e-2, tol=1e-6, grade_weight=grade_weight) for _ in range(2))
        plain.fit(X, y, weight, groups=names)
        model.fit(da.from_array(X, chunks=(150, 2)), *(da.from_array(of, chunks=90) for of in (y, weight)),
                  groups=da.from_array(names, chunks=70))  # fmt: skip
        assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=2e-6)
        assert model.classes_.tolist() == plain.classes_.tolist()
        assert model.certificate_.status == "converged"


def test_dask_tables_with_groups_of_texts():
    X, y, user = clicks()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y, user=[f"user {u}" for u in user])
    frame["kind"] = frame["user"].astype("category")
    table = dd.from_pandas(frame, npartitions=3)
    plain = PairwiseHingeClassifier(tol=1e-6).fit(frame[list("abcd")], y, groups=user)
    for column in ("user", "kind"):
        model = PairwiseHingeClassifier(tol=1e-6).fit(table[list("abcd")], table["y"], groups=table[column])
        assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=2e-6)


@pytest.mark.parametrize(
    ("options", "change", "message"),
    [
        ({}, {"groups": lambda user: user}, "y, sample_weight and groups must be dask collections"),
        ({}, {"groups": lambda user: da.from_array(user[:-1])}, "but groups has 399 values"),
        ({}, {"groups": lambda user: da.from_array(np.where(np.arange(400) == 333, np.nan, user), 200)}, "group of row 333"),
        ({"grade_weight": "one"}, {"y": lambda y: da.from_array(np.ones(400))}, "all rows have the grade 1"),
        ({"grade_weight": "one"}, {"y": lambda y: da.from_array(np.full(400, "a"))}, "give numbers"),
        ({"grade_weight": "one"}, {"y": lambda y: da.from_array(np.ones((400, 2)))}, "not as a matrix"),
    ],
)  # fmt: skip
def test_dask_collections_that_cannot_be_fitted(options, change, message):
    X, y, user = clicks()
    collections = {"y": da.from_array(y), "groups": da.from_array(user)}
    collections |= {name: make(user if name == "groups" else y) for name, make in change.items()}
    with pytest.raises(InputError, match=message):
        PairwiseHingeClassifier(**options).fit(da.from_array(X), **collections)


@pytest.mark.parametrize("estimator", [PairwiseHingeClassifier, PairwiseSquareClassifier])
def test_a_lowest_grade_that_weighs_nothing_is_absent(estimator):
    r = np.random.default_rng(0)
    X, grade = r.standard_normal((30, 2)), np.arange(30) % 3
    weight = np.where(grade == 0, 0.0, 1.0)
    there = weight > 0
    plain = estimator(grade_weight="one").fit(X[there], grade[there])
    model = estimator(grade_weight="one").fit(X, grade, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-9)
    with pytest.raises(InputError, match="one class"):
        estimator(grade_weight="one").fit(X, grade, sample_weight=weight * (grade < 2))
