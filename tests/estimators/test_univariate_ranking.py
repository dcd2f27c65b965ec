import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from support import square_twins as twin
from support.rounds import rounds_of

from aucdist import UnivariateRankingClassifier
from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks
from aucdist.maps import BinExpander
from aucdist.papers.tpauc.online import UnivariateLBFGS

univariate_lbfgs = rounds_of(UnivariateLBFGS)

SOLVERS = ["uni-exp", "uni-squ"]


@pytest.fixture
def data(data):
    return data[0] + 2.0, data[1]  # away from zero: without a bias the losses would spend the weights on it


@pytest.mark.parametrize("solver", SOLVERS)
def test_fitted_attributes(data, solver):
    X, y = data
    with pytest.warns(ConvergenceWarning):
        model = (
            UnivariateRankingClassifier()
            .set_params(lam=1e-2, solver=solver, solver__eta=1e-3, solver__epochs=20)
            .fit(X, y)
        )
    c = model.certificate_
    w = model.coef_[0]
    biases = np.linspace(-6.0, 1.0, 2001)
    values = [twin.univariate_value(w, b, X, y, 1e-2, np.ones(400), solver == "uni-exp") for b in biases]
    assert c.primal == pytest.approx(min(values), rel=1e-4)
    assert c.primal <= min(values)
    assert 0.0 <= c.dual < c.primal
    assert model.n_passes_ == 20
    assert roc_auc_score(y, model.decision_function(X)) > 0.85


def test_the_default_converges_to_an_independent_optimum(data):
    X, y = data
    model = UnivariateRankingClassifier(lam=0.05, tol=1e-8).fit(X, y)
    assert model.certificate_.status == "converged"
    share = np.where(y > 0, 0.5 / (y > 0).sum(), 0.5 / (y < 0).sum())

    def objective(v):
        return share @ np.exp(-y * (X @ v[:5] + v[5])) + 0.025 * v[:5] @ v[:5]

    best = minimize(objective, np.zeros(6), method="BFGS", options={"gtol": 1e-9})
    assert model.certificate_.primal == pytest.approx(best.fun, rel=1e-7)
    assert model.certificate_.dual <= best.fun
    np.testing.assert_allclose(model.coef_[0], best.x[:5], atol=1e-4)


def test_the_default_learns_codes_as_it_does_their_columns(data):
    X, y = data
    expander = BinExpander(bins=8)
    model = UnivariateRankingClassifier(features=expander).fit(X, y)
    assert model.certificate_.status == "converged"
    columns = UnivariateRankingClassifier().fit(expander.fit(X, y).transform(X), y)
    assert model.certificate_.primal == pytest.approx(columns.certificate_.primal, rel=1e-3)


def test_weights_whose_losses_overflow_are_no_start(data):
    X, y = data
    blocks = LocalBlocks([Block.of(X, y)])
    first = next(univariate_lbfgs(blocks, 1e-2, np.full(5, -1e4)))
    assert first.passes == 2
    np.testing.assert_array_equal(first.w, np.zeros(5))


@pytest.mark.parametrize("solver", SOLVERS)
def test_many_epochs_converge(data, solver):
    model = UnivariateRankingClassifier().set_params(
        lam=0.5, solver=solver, tol=2e-2, solver__eta=2e-4, solver__epochs=900, random_state=0
    )
    assert model.fit(*data).certificate_.status == "converged"
