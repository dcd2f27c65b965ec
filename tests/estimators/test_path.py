import numpy as np
import pandas as pd
import pytest

from aucdist import PairwiseHingeClassifier
from aucdist.errors import InputError
from aucdist.estimators.linear import lam_path


@pytest.fixture
def data():
    r = np.random.default_rng(0)
    y = np.where(r.random(500) < 0.1, "rare", "common")
    X = r.normal(size=(500, 8)) + 0.6 * (y == "rare")[:, None]
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(8)]), y


def test_models_are_those_of_single_fits_for_fewer_passes(data):
    X, y = data
    lams = [1e-3, 1.0, 1e-2, 1e-1]
    models = lam_path(PairwiseHingeClassifier(tol=1e-5), X, y, lams=lams)
    single = [PairwiseHingeClassifier(lam=lam, tol=1e-5).fit(X, y) for lam in lams]
    assert [m.lam for m in models] == lams
    for one, other in zip(models, single, strict=True):
        assert one.certificate_.relative_gap <= 1e-5
        assert one.certificate_.primal == pytest.approx(other.certificate_.primal, rel=2e-5)
        assert one.classes_.tolist() == other.classes_.tolist()
        assert one.feature_names_in_.tolist() == other.feature_names_in_.tolist()
        np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=0.05)
    assert sum(m.n_passes_ for m in models) < sum(m.n_passes_ for m in single)


def test_a_path_ends_where_it_is_told_to(data):
    X, y = data
    models = lam_path(PairwiseHingeClassifier(), X, y, lams=[1e-3, 1e-1, 1.0], stop=lambda model: model.lam <= 1e-1)
    assert [model.lam for model in models] == [1e-1, 1.0]


def test_bad_input(data):
    X, y = data
    with pytest.raises(InputError, match="lams is empty"):
        lam_path(PairwiseHingeClassifier(), X, y, lams=[])
    with pytest.raises(InputError, match="lam is -1"):
        lam_path(PairwiseHingeClassifier(), X, y, lams=[1e-2, -1])
    with pytest.raises(InputError, match="needs solver 'all-pairs'"):
        lam_path(PairwiseHingeClassifier(solver="sdcd"), X, y, lams=[1e-2])
