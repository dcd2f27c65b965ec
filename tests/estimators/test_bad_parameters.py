"""Parameters that cannot be, for each estimator: the message names the parameter, its value and what is possible."""

import numpy as np
import pytest
from support.tables import table_beside

from aucdist.errors import InputError
from aucdist.estimators import ESTIMATORS
from aucdist.sampling import DistanceUnderSampler

X = np.random.default_rng(0).normal(size=(400, 4))
Y = np.where(np.arange(400) < 60, 1, -1)
TABLE = table_beside(__file__)


@pytest.mark.parametrize(("parameters", "message"), TABLE["every"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_what_every_estimator_refuses(name, parameters, message):
    if name == "MarginMeanClassifier" and "lam" in parameters:
        parameters, message = {"lam2": parameters["lam"]}, message.replace("lam ", "lam2 ")
    with pytest.raises(InputError, match=message):
        ESTIMATORS[name]().set_params(**parameters).fit(X, Y)


class Keeps:
    """A sampler that keeps one class only."""

    def fit_resample(self, X, y):
        return X[y < 0], y[y < 0]


REFUSED = [
    *((name, *row) for name, rows in TABLE["some"].items() for row in rows),
    ("PairwiseHingeClassifier", {"lam": 10**400}, "lam is an integer of 1329 bits, and at most 63 are possible"),
    ("MarginMeanClassifier", {"sampler": Keeps()}, "the sampler left 340 negative and 0 positive rows"),
    ("MarginMeanClassifier", {"sampler": DistanceUnderSampler(n_bins=1)}, "n_bins must be .*; got 1"),
]


@pytest.mark.parametrize(("name", "parameters", "message"), REFUSED)
def test_wrong_parameters_of_single_estimators_are_refused(name, parameters, message):
    with pytest.raises(InputError, match=message):
        ESTIMATORS[name]().set_params(**parameters).fit(X, Y)
