import itertools

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from aucdist import PairwiseSquareClassifier, UnivariateRankingClassifier
from aucdist.solvers.base import Round, solve


@pytest.mark.parametrize(
    "model",
    [
        PairwiseSquareClassifier().set_params(solver="tpauc", solver__eta=1e3),
        PairwiseSquareClassifier().set_params(solver="opauc", solver__eta=1e3),
        UnivariateRankingClassifier().set_params(solver="uni-squ", solver__eta=1e3),
        UnivariateRankingClassifier().set_params(solver="uni-exp", solver__eta=1e3),
    ],
    ids=lambda model: model.solver,
)
def test_steps_that_diverge_leave_the_weights_of_the_last_finite_round(model):
    r = np.random.default_rng(0)
    y = np.where(r.random(400) < 0.15, 1, -1)
    X = r.normal(size=(400, 5)) + 0.8 * (y[:, None] > 0)
    with pytest.warns(ConvergenceWarning, match="diverged.*eta is too long"):
        model.fit(X, y)
    assert model.certificate_.status == "diverged"
    assert model.certificate_.primal == 1.0
    assert not model.coef_.any()
    assert len(model.history_) == 1


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_the_round_before_is_the_outcome(bad):
    rounds = [Round(np.full(2, k), primal, 0.0, k) for k, primal in enumerate((1.0, 0.9, bad, 0.1))]
    found = solve(itertools.islice(rounds, 4), tol=0.0, max_passes=10)
    assert found.certificate.status == "diverged"
    assert (found.certificate.primal, found.passes, found.w[0]) == (0.9, 1, 1.0)
    assert found.history["round"].tolist() == [1, 2]
