import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from support import square_twins as twin

from aucdist import UnivariateRankingClassifier
from aucdist.errors import InputError

SOLVERS = ["uni-exp", "uni-squ"]


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [UnivariateRankingClassifier(solver=solver) for solver in SOLVERS],
    expected_failed_checks=lambda model: dict.fromkeys(
        ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"),
        "a fixed number of steps: one step of weight two is not two steps of weight one",
    ),
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture
def data():
    r = np.random.default_rng(0)
    y = np.where(r.random(400) < 0.15, 1, -1)
    # Away from zero: without a bias the losses would spend the weights on it.
    return r.normal(size=(400, 5)) + 0.8 * (y[:, None] > 0) + 2.0, y


@pytest.mark.parametrize("solver", SOLVERS)
def test_fitted_attributes(data, solver):
    X, y = data
    with pytest.warns(ConvergenceWarning):
        model = UnivariateRankingClassifier(lam=1e-2, solver=solver, eta=1e-3, epochs=20).fit(X, y)
    c = model.certificate_
    w = model.coef_[0]
    biases = np.linspace(-6.0, 1.0, 2001)
    values = [twin.univariate_value(w, b, X, y, 1e-2, np.ones(400), solver == "uni-exp") for b in biases]
    assert c.primal == pytest.approx(min(values), rel=1e-4)
    assert c.primal <= min(values)
    assert 0.0 <= c.dual < c.primal
    assert model.n_passes_ == 20
    assert roc_auc_score(y, model.decision_function(X)) > 0.85


@pytest.mark.parametrize("solver", SOLVERS)
def test_many_epochs_converge(data, solver):
    model = UnivariateRankingClassifier(lam=0.5, solver=solver, tol=2e-2, eta=2e-4, epochs=900, random_state=0)
    assert model.fit(*data).certificate_.status == "converged"


@pytest.mark.parametrize("solver", SOLVERS)
def test_partial_fit_learns_as_batches_come(data, solver):
    X, y = data
    model = UnivariateRankingClassifier(solver=solver, lam=1e-2, eta=0.002)
    for _ in range(15):
        for first in range(0, 400, 50):
            model.partial_fit(X[first : first + 50], y[first : first + 50], classes=[-1, 1])
    assert roc_auc_score(y, model.decision_function(X)) > 0.85
    recalls = [(model.predict(X)[y == label] == label).mean() for label in (-1, 1)]
    assert min(recalls) > 0.6
    with pytest.raises(InputError, match="diverged"):
        model.set_params(eta=1e3).partial_fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"solver": "uni"}, "unknown solver 'uni'"),
        ({"eta": -1.0}, "eta is -1.0"),
        ({"epochs": True}, "epochs is True"),
    ],
)
def test_bad_parameters(data, parameters, message):
    with pytest.raises(InputError, match=message):
        UnivariateRankingClassifier(**parameters).fit(*data)
