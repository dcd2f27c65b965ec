"""`partial_fit` of the online solvers."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import check_estimator_sparse_array, check_estimators_partial_fit_n_features

from aucdist import PairwiseHingeClassifier
from aucdist.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


every_solver = pytest.mark.parametrize("solver", ["oam-inf", "oam-seq", "oam-gra"])


@pytest.fixture
def data():
    r = np.random.default_rng(0)
    y = np.where(r.random(300) < 0.2, "rare", "common")
    return r.normal(size=(300, 4)) + 0.9 * (y[:, None] == "rare"), y


def model_of(solver, **options):
    small = {} if solver == "oam-inf" else {"solver__buffer_size": 10}
    return PairwiseHingeClassifier().set_params(lam=1e-2, solver=solver, random_state=3, **small, **options)


@every_solver
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
def test_batches_are_one_fit_to_the_last_bit(solver, form, weighted, data):
    X, y = data
    weight = np.random.default_rng(1).uniform(0.5, 2, 300) if weighted else np.ones(300)
    n_pairs = weight[y == "rare"].sum() * weight[y == "common"].sum()
    whole = model_of(solver).fit(form(X), y, sample_weight=weight)
    fed = model_of(solver, solver__n_pairs=n_pairs)
    for part in np.split(np.arange(300), [1, 2, 50, 51, 200]):
        fed.partial_fit(form(X[part]), y[part], classes=["common", "rare"], sample_weight=weight[part])
    # The k of `fit` is this very product, so not even the last bit may differ.
    assert fed.coef_.tolist() == whole.coef_.tolist()
    assert roc_auc_score(y == "rare", fed.decision_function(form(X))) > 0.8
    assert not hasattr(fed, "certificate_")


@every_solver
@pytest.mark.parametrize("weighted", [False, True])
def test_without_n_pairs_the_pairs_so_far_set_the_steps(solver, weighted, data):
    X, y = data
    weight = np.random.default_rng(1).uniform(0.5, 2, 300) if weighted else np.ones(300)
    free, given = model_of(solver), model_of(solver)
    for part in np.split(np.arange(300), [1, 60, 200]):
        so_far = slice(0, part[-1] + 1)
        pairs = np.prod([weight[so_far][y[so_far] == name].sum() for name in ("rare", "common")])
        given.set_params(solver__n_pairs=max(float(pairs), 1.0))
        for model in (free, given):
            model.partial_fit(X[part], y[part], classes=["common", "rare"], sample_weight=weight[part])
        np.testing.assert_allclose(free.coef_, given.coef_, rtol=1e-9)
    assert abs(free.coef_).max() > 0


@every_solver
def test_the_threshold_is_of_the_buffered_rows(solver, data):
    X, y = data
    fed = model_of(solver, solver__n_pairs=1000).partial_fit(X, y, classes=["common", "rare"])
    buffer = fed.stream_.buffer
    assert buffer.n_samples == (300 if solver == "oam-inf" else 20)
    scores = buffer.X @ fed.coef_[0]

    def g_mean(threshold):
        return (scores[buffer.y > 0] > threshold).mean() * (scores[buffer.y < 0] <= threshold).mean()

    assert g_mean(fed.raw_threshold) == pytest.approx(max(g_mean(t) for t in scores))
    assert fed.intercept_.tolist() == [-fed.raw_threshold]


def test_one_class_teaches_nothing_yet(data):
    X, y = data
    fed = model_of("oam-seq", solver__n_pairs=1000).partial_fit(
        X[y == "rare"], y[y == "rare"], classes=["common", "rare"]
    )
    assert fed.coef_.tolist() == [[0.0] * 4]
    assert fed.predict(X[:2]).tolist() == ["common"] * 2
    assert abs(fed.partial_fit(X, y).coef_).max() > 0


def test_after_fit_it_goes_on_from_its_weights(data):
    X, y = data
    model = model_of("oam-seq", solver__n_pairs=1000).fit(X, y)
    fitted = model.coef_.copy()
    model.partial_fit(X[:1], y[:1])  # one row meets nobody
    assert model.coef_.tolist() == fitted.tolist()
    assert not hasattr(model, "certificate_")
    model.partial_fit(X, y).fit(X, y)
    assert model.coef_.tolist() == fitted.tolist()
    assert model.partial_fit(X[:1], y[:1]).stream_.seen.sum() == 1


def test_only_online_solvers_have_it(data):
    assert not hasattr(PairwiseHingeClassifier(), "partial_fit")
    assert hasattr(clone(model_of("oam-gra")), "partial_fit")


@pytest.mark.parametrize(
    ("options", "classes", "said"),
    [
        ({"solver__n_pairs": 10}, None, "needs `classes`"),
        ({"solver__n_pairs": 10}, ["common", "rare", "other"], "Only binary"),
        ({"solver__n_pairs": 10}, ["common", "scarce"], "'rare' is not one of the classes"),
        (
            {"solver__n_pairs": 10, "solver__buffer_size": 5},
            ["common", "rare"],
            "buffer_size applies to solver oam-seq, oam-gra",
        ),
    ],
)
def test_bad_input(options, classes, said, data):
    X, y = data
    with pytest.raises(InputError, match=said):
        model_of("oam-inf", **options).partial_fit(X, y, classes=classes)


def test_later_batches_must_fit_the_first(data):
    X, y = data
    model = model_of("oam-inf", solver__n_pairs=1000).partial_fit(X, y, classes=["common", "rare"])
    with pytest.raises(ValueError, match="3 features"):
        model.partial_fit(X[:, :3], y)
    with pytest.raises(InputError, match="the first call had"):
        model.partial_fit(X, y, classes=["common", "scarce"])


def test_msgd_goes_on_with_the_size_of_its_steps(data):
    X, y = data
    model = PairwiseHingeClassifier().set_params(lam=1e-2, solver="msgd", random_state=3, solver__epochs=2)
    model.partial_fit(X[:100], y[:100], classes=["common", "rare"])
    assert model.stream_.steps == 200
    first = model.coef_.copy()
    model.partial_fit(X[100:101], y[100:101])  # one class teaches nothing
    assert (model.coef_.tolist(), model.stream_.steps) == (first.tolist(), 200)
    model.partial_fit(X[100:], y[100:])
    assert model.stream_.steps == 600
    assert np.linalg.norm(model.coef_ - first) < np.linalg.norm(first)
    assert roc_auc_score(y == "rare", model.decision_function(X)) > 0.85


def test_msgd_from_nothing_is_its_fit(data):
    X, y = data
    model = PairwiseHingeClassifier().set_params(lam=1e-2, solver="msgd", random_state=3, solver__steps="all")
    fed = clone(model).partial_fit(X, y, classes=["common", "rare"])
    assert roc_auc_score(y == "rare", fed.decision_function(X)) == pytest.approx(
        roc_auc_score(y == "rare", model.fit(X, y).decision_function(X)), abs=0.01
    )
    k = (y == "rare").sum() * (y == "common").sum()
    assert fed.stream_.steps == k
    assert model.partial_fit(X, y).stream_.steps == 2 * k


def test_msgd_does_not_go_on_from_weights_alone(data):
    X, y = data
    model = model_of("oam-inf", solver__n_pairs=1000).fit(X, y)
    with pytest.raises(InputError, match="cannot go on from weights alone"):
        model.set_params(solver="msgd").partial_fit(X, y)


@every_solver
@pytest.mark.parametrize("check", [check_estimators_partial_fit_n_features, check_estimator_sparse_array])
def test_scikit_learn_contract(solver, check):
    check("PairwiseHingeClassifier", model_of(solver, solver__n_pairs=1000))
