import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from support.oracle import ramp_objective

from aucdist import PairwiseHingeClassifier, PairwiseRampClassifier

# At a larger lam, since weights are as precise as the square root of gap / lam: on some processors repeated rows and weights
# differed by 2e-7 at the default.


def test_fitted_attributes(data):
    X, y = data
    model = PairwiseRampClassifier(lam=1e-2).fit(X, y)
    c, (value, gradient) = model.certificate_, ramp_objective(model.coef_[0], X, y, 1e-2)
    assert (c.status, c.dual, c.relative_gap) == ("stationary", 0.0, 1.0)
    assert c.primal == pytest.approx(value, rel=1e-10)
    assert model.majorant_gap_ == pytest.approx(gradient @ gradient / (2e-2 * value), rel=1e-6)
    assert model.majorant_gap_ <= 1e-3
    assert model.intercept_.tolist() == [-model.raw_threshold]
    assert model.n_passes_ == model.history_["passes"].iloc[-1]
    assert roc_auc_score(y, model.decision_function(X)) > 0.85
    assert not hasattr(model, "predict_proba")


def test_rows_that_cannot_be_ranked_do_not_count(data):
    X, y = data
    far = np.flatnonzero(y > 0)[:6]
    X[far] -= 5.0
    hinge, ramp = (kind(lam=1e-3).fit(X, y) for kind in (PairwiseHingeClassifier, PairwiseRampClassifier))
    areas = [roc_auc_score(y, model.decision_function(X)) for model in (hinge, ramp)]
    assert areas[1] > areas[0] + 0.03


def test_not_converged_warns(data):
    with pytest.warns(ConvergenceWarning, match=r"after 2 passes.*max_passes was reached"):
        model = PairwiseRampClassifier(lam=1e-4, max_passes=2).fit(*data)
    assert model.certificate_.status == "max-passes"
    with pytest.warns(ConvergenceWarning, match="the solver took all its steps"):
        PairwiseRampClassifier(lam=1e-2, tol=0.0).fit(*data)
