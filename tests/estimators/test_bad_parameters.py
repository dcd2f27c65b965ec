"""Parameters that cannot be, for each estimator: the message names the parameter, its value and what is possible."""

import numpy as np
import pytest

import aucdist
from aucdist.errors import InputError
from aucdist.estimators import ESTIMATORS
from aucdist.sampling import DistanceUnderSampler

X = np.random.default_rng(0).normal(size=(400, 4))
Y = np.where(np.arange(400) < 60, 1, -1)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"solver": "sdcx"}, "unknown solver 'sdcx'"),
        ({"lam": 0}, "lam must be .*; got 0"),
        ({"lam": -1.0}, "above 0"),
        ({"lam": np.inf}, "finite"),
        ({"tol": -1e-3}, "tol must be .*; got -0.001"),
        ({"max_passes": 0}, "max_passes must be .*; got 0"),
        ({"max_passes": 2.5}, "an integer"),
        ({"max_passes": True}, "max_passes must be .*; got True"),
        ({"random_state": -1}, "random_state must be an integer of at least 0.*; got -1"),
        ({"random_state": True}, "random_state must be .*; got True"),
        ({"random_state": "zero"}, "random_state must be .*; got 'zero'"),
        *(({"n_jobs": wrong}, r"n_jobs must be an integer other than 0") for wrong in (0, 1.5, True, "all")),
        *(
            ({"verbose": wrong}, r"verbose must be an integer at least 0, True or False")
            for wrong in (-1, 0.5, "yes", None)
        ),
    ],
)
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


REFUSED = {
    aucdist.PairwiseHingeClassifier: [
        ({"lam": "1/n"}, "a number above 0"),
        ({"lam": 10**20}, "write it as a float, such as lam=1e20"),
        ({"lam": 10**400}, "lam is an integer of 1329 bits, and at most 63 are possible"),
        ({"max_passes": 10**30}, "max_passes is an integer of 100 bits, and at most 63 are possible"),
        ({"solver__steps": 10}, "steps applies to solver sdcd, sdcd-perm, msgd, but 'all-pairs' has no parameters"),
        ({"solver__average": False}, "average applies to solver sdcd, sdcd-perm, but 'all-pairs' has no parameters"),
        (
            {"solver": "msgd", "solver__combine": "add"},
            "combine applies to solver sdcd, sdcd-perm, but 'msgd' has epochs, steps",
        ),
        ({"solver": "oam-inf", "solver__steps": 1}, "steps applies to"),
        ({"solver": "sdcd", "solver__steps": 10, "solver__epochs": 2}, "give one of them"),
        ({"solver": "sdcd", "solver__steps": -1}, "steps must be .*; got -1"),
        ({"solver": "msgd", "solver__steps": "most"}, "steps must be .*; got 'most'"),
        ({"solver": "msgd", "solver__steps": 2**63}, "at most 63 are possible"),
        ({"solver": "oam-seq", "solver__epochs": 0}, "epochs must be .*; got 0"),
        ({"solver": "oam-seq", "solver__buffer_size": 0}, "buffer_size must be .*; got 0"),
        ({"solver": "oam-gra", "solver__n_pairs": -2.0}, "n_pairs must be .*; got -2.0"),
        ({"solver": "sdcd", "solver__combine": "Average"}, "unknown combine 'Average'. Did you mean 'average'"),
        ({"solver": "sdcd", "solver__average": 1}, "average must be .*; got 1"),
        ({"calibration": "platt"}, "unknown calibration 'platt'. Allowed: gev, logit, isotonic"),
        ({"prior": 0.1}, "or leave prior out"),
        ({"calibration": "logit", "prior": 0.0}, "prior must be a number above 0 and below 1.*; got 0.0"),
        ({"max_fpr": 0.0}, "max_fpr must be a number above 0 and at most 1 or None.*; got 0.0"),
        ({"max_fpr": 1.5}, "max_fpr must be .*; got 1.5"),
        ({"max_false_positives": 2.5}, "max_false_positives must be an integer at least 1.*; got 2.5"),
        ({"max_fpr": 0.1, "max_false_positives": 3}, "both say which negatives count"),
        ({"max_fpr": 0.1, "solver": "sdcd"}, "max_fpr applies to solver all-pairs"),
        ({"max_false_positives": 10_000}, "max_false_positives must be at most .* 340.*; got 10000"),
    ],
    aucdist.PairwiseSquareClassifier: [
        ({"solver__eta": 0.1}, "eta applies to solver tpauc, opauc, but 'exact' has no parameters"),
        ({"solver": "svrg", "solver__epochs": 2}, "epochs applies to"),
        ({"solver": "opauc", "solver__factor": "print"}, "factor applies to solver tpauc"),
        ({"solver": "tpauc", "solver__rank": 5}, "rank applies to solver opauc"),
        ({"solver": "tpauc", "solver__factor": "printed"}, "unknown factor 'printed'. Did you mean 'print'"),
        ({"solver": "tpauc", "solver__eta": 0.0}, "eta must be .*; got 0.0"),
        ({"solver": "tpauc", "solver__eta": np.nan}, "eta must be .*; got nan"),
        ({"solver": "opauc", "solver__epochs": 0}, "epochs must be .*; got 0"),
        ({"solver": "opauc", "solver__epochs": 1.5}, "an integer"),
        ({"solver": "opauc", "solver__rank": 0}, "rank must be .*; got 0"),
        (
            {"solver": "opauc", "solver__rank": "whole"},
            "rank must be an integer at least 1, 'full' or None.*; got 'whole'",
        ),
    ],
    aucdist.UnivariateRankingClassifier: [
        ({"solver": "uni-exp", "solver__eta": -1.0}, "eta must be .*; got -1.0"),
        ({"solver": "uni-squ", "solver__epochs": True}, "epochs must be .*; got True"),
        ({"solver__epochs": 3}, "epochs applies to solver uni-exp, uni-squ"),
    ],
    aucdist.HingeClassifier: [
        ({"penalty": "l3"}, "unknown penalty 'l3'"),
        ({"penalty": "l1"}, "solver 'sdcd' does not support penalty='l1': use solver scd or comid or rda or psa"),
        ({"penalty": "l1", "solver": "pegasos"}, "solver 'pegasos' does not support penalty='l1'"),
        (
            {"solver": "psa"},
            "solver 'psa' does not support penalty='l2': use solver sdcd or cdcd or scd or comid or rda or pegasos",
        ),
        ({"penalty": "l1", "solver": "psa"}, "'psa' needs `radius`"),
        ({"penalty": "l1", "solver": "psa", "solver__radius": 0.0}, "radius must be .*; got 0.0"),
        ({"solver__radius": 1.0}, "radius applies to solver psa"),
        ({"solver__eta": 1.0}, "eta applies to solver scd, comid, rda, psa"),
        ({"solver": "scd", "solver__eta": np.inf}, "eta must be .*; got inf"),
        ({"solver__average": True}, "average applies to solver scd, comid, rda, psa, pegasos"),
        ({"solver": "scd", "solver__average": 1}, "average must be .*; got 1"),
        ({"fit_intercept": "yes"}, "fit_intercept must be .*; got 'yes'"),
        ({"lam": "1/m"}, "lam must be a number above 0 and finite or '1/n'; got '1/m'"),
        ({"class_weight": "even"}, "class_weight must be a dict of classes, 'balanced' or None.*; got 'even'"),
        ({"class_weight": {2: 1.0}}, "unknown class in class_weight: '?2"),
        ({"class_weight": {1: 0.0}}, "class_weight of 1 must be .*; got 0.0"),
    ],
    aucdist.LinkClassifier: [
        ({"link": "gumbel"}, "unknown link 'gumbel'"),
        ({"loss": "hinge"}, "unknown loss 'hinge'. Allowed: calibrated, likelihood"),
        ({"xi": -1.5}, "xi must be at least -1.*; got -1.5"),
        ({"xi": np.nan}, "xi must be .*; got nan"),
        ({"xi": True}, "xi must be .*; got True"),
        ({"xi": 1.0}, "below 1"),
        ({"xi": "mode"}, "xi must be a number at least -1, 'map', 'bayes' or None.*; got 'mode'"),
        ({"link": "logit", "xi": 0.1}, "only link 'gev' has a shape: set xi=None"),
        ({"link": "logit", "xi": "map"}, "only link 'gev' has a shape"),
        ({"solver": "lipschitz", "loss": "likelihood"}, "the likelihood of gev has none: use solver='newton'"),
        ({"solver": "lipschitz", "link": "cloglog", "loss": "likelihood"}, "the likelihood of cloglog has none"),
        ({"prior": 1.0}, "prior must be .*; got 1.0"),
        ({"solver__momentum": 1, "solver": "lipschitz"}, "momentum must be True or False.*; got 1"),
        ({"solver__momentum": True, "solver": "newton"}, "momentum applies to solver lipschitz"),
        ({"fit_intercept": None}, "fit_intercept must be .*; got None"),
        ({"fit_intercept": False, "penalise_intercept": True}, "but fit_intercept is False: set fit_intercept=True or"),
        ({"shape_rounds": 5, "xi": 0.1}, "shape_rounds applies only to xi='map' and xi='bayes': set shape_rounds=None"),
        ({"shape_rounds": 0}, "shape_rounds must be .*; got 0"),
        ({"shape_samples": 100}, "shape_samples applies only to xi='bayes': set shape_samples=None"),
        ({"shape_samples": 1, "xi": "bayes"}, "shape_samples must be .*; got 1"),
    ],
    aucdist.MarginMeanClassifier: [
        ({"kernel": "poly"}, "unknown kernel 'poly'.*linear, rbf"),
        ({"scale": "minmax"}, "unknown scale 'minmax'"),
        ({"sampler": "smote"}, "sampler must be .*fit_resample.*; got 'smote'"),
        ({"sampler": 3}, "sampler must be .*; got 3"),
        ({"sampler": Keeps()}, "the sampler left 340 negative and 0 positive rows"),
        ({"sampler": DistanceUnderSampler(n_bins=1)}, "n_bins must be .*; got 1"),
        ({"lam1": -1}, "lam1 must be .*; got -1"),
        ({"solver": "zovr", "solver__mu": 0.0}, "mu must be .*; got 0.0"),
        ({"solver": "zovr", "solver__n_directions": 0}, "n_directions must be .*; got 0"),
        ({"solver__n_inner": 1.5}, "n_inner must be .*; got 1.5"),
        ({"solver__n_outer": 0}, "n_outer must be .*; got 0"),
        ({"solver": "svrg", "solver__mu": 0.1}, "mu applies to solver zovr, zo-sgd"),
        ({"sigma": 1.0}, "sigma applies only to kernel='rbf': set sigma=None"),
        ({"gram_bytes": 100}, "gram_bytes applies only to kernel='rbf'"),
        ({"kernel": "rbf", "sigma": 0.0}, "sigma must be .*; got 0.0"),
        ({"kernel": "rbf", "sigma": "mean"}, "sigma must be .*; got 'mean'"),
        (
            {"kernel": "rbf", "sampler": None, "gram_bytes": 3199},
            r"400 values for each of 1\) takes 3200 bytes, and gram_bytes",
        ),
    ],
}


@pytest.mark.parametrize(
    ("kind", "parameters", "message"), [(kind, *row) for kind, rows in REFUSED.items() for row in rows]
)
def test_what_some_refuse(kind, parameters, message):
    with pytest.raises(InputError, match=message):
        kind().set_params(**parameters).fit(X, Y)
