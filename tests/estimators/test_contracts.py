"""The checks that scikit-learn and imbalanced-learn ship, on every public estimator, map and sampler, in each way of fitting.

A check that an estimator cannot pass stands beside it, with the reason.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from unittest import SkipTest

import pytest
from imblearn.utils.estimator_checks import parametrize_with_checks as checks_of_samplers
from sklearn.utils.estimator_checks import estimator_checks_generator
from support.tables import table_beside

import aucdist
from aucdist.estimators import ESTIMATORS
from aucdist.maps import MAPS, BinExpander, LeafExpander, NystroemMap
from aucdist.sampling import MWMOTE, DistanceUnderSampler

WEIGHTS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
STEPS = dict.fromkeys(WEIGHTS, "a fixed number of steps: one step of weight two is not two steps of weight one")
CHANCE = dict.fromkeys(WEIGHTS, "rows are drawn at random: one of weight two is not two of weight one")
EQUAL = {"check_sample_weights_not_overwritten": "no weights, other than equal ones"}
FOLDS = dict.fromkeys(WEIGHTS, "a row of weight two is in one fold, and two rows may be in two") | {
    "check_classifiers_train": "predict finds the best G-mean; the probability one half would find none of the rare"
}
EXACT = {"check_classifiers_multilabel_output_format_predict_proba": "probabilities of exactly 0 or 1 are possible"}


def estimators() -> Iterator[tuple[Any, dict[str, str]]]:
    """Yield estimators and maps, each with the checks that it cannot pass and why: a setting for each way of fitting."""
    hinge, margin = aucdist.HingeClassifier(max_passes=60), aucdist.MarginMeanClassifier
    yield hinge, STEPS
    yield aucdist.HingeClassifier(penalty="l1", solver="scd", max_passes=60), {}
    yield aucdist.HingeClassifier(max_passes=60).set_params(penalty="l1", solver="psa", solver__radius=2.0), {}
    yield aucdist.PairwiseHingeClassifier(), {}
    for solver in ("sdcd", "msgd"):
        pairs = aucdist.PairwiseHingeClassifier().set_params(solver=solver, solver__epochs=4)
        yield pairs, CHANCE | (EQUAL if solver == "msgd" else {})
    yield aucdist.PairwiseHingeClassifier(features={"map": "bins", "bins": 4}), {}
    yield aucdist.PairwiseRampClassifier(lam=1e-2, tol=1e-15), {}
    for solver in ("exact", "svrg", "tpauc", "opauc"):
        yield aucdist.PairwiseSquareClassifier(solver=solver, tol=1e-13), STEPS if solver in ("tpauc", "opauc") else {}
    yield aucdist.PairwiseSquareClassifier(calibration="isotonic"), FOLDS | EXACT
    for solver in ("lbfgs", "uni-exp"):
        yield aucdist.UnivariateRankingClassifier(solver=solver), {} if solver == "lbfgs" else STEPS
    # At a larger lam, since weights are as precise as the square root of gap / lam, and first-order steps end within that.
    yield aucdist.LinkClassifier(xi=0.2, solver="lipschitz", lam=0.1, tol=1e-13), {}
    yield aucdist.LinkClassifier(link="cloglog", loss="likelihood", solver="newton", tol=1e-13), {}
    yield aucdist.LinkClassifier(lam=0.1, solver="newton", tol=1e-13), {}
    yield margin(), CHANCE
    yield margin().set_params(solver="zovr", solver__n_outer=5), CHANCE
    yield margin().set_params(kernel="rbf", solver="svrg", solver__n_outer=5), CHANCE
    yield BinExpander(), {}
    yield BinExpander(basis="one-hot", linear="drop", sparse_output=False), {}
    yield BinExpander(interactions=2, bins=8), {}
    yield NystroemMap(), {}
    yield NystroemMap(landmarks=5, linear="drop"), {}
    yield LeafExpander(trees=5), {}


def estimators_of_all_classes() -> list[tuple[Any, dict[str, str]]]:
    """Return the estimators above, and those of classes that are not among them, with their defaults."""
    named = list(estimators())
    classes = [*ESTIMATORS.values(), *MAPS.values()]
    return named + [(cls(), {}) for cls in classes if cls not in {type(model) for model, _ in named}]


OF_THE_CLASS = {check for checks in table_beside(__file__).values() for check in checks}
"""Checks of code that all settings of a class share. The others are about data and fits, and run for each setting."""


CHECKED = estimators_of_all_classes()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(len(CHECKED)), ids=[str(model) for model, _ in CHECKED])
def test_scikit_learn(number: int) -> None:
    """All checks of the first estimator of a class, and those of data and fits for the others."""
    model, failing = CHECKED[number]
    others = type(model) in {type(earlier) for earlier, _ in CHECKED[:number]}
    n_done = 0
    for estimator, check in estimator_checks_generator(model):
        if check.func.__name__ not in (failing.keys() | OF_THE_CLASS if others else failing):
            with suppress(SkipTest):
                check(estimator)
                n_done += 1
    assert n_done > (15 if others else 40)


SAMPLERS = checks_of_samplers([MWMOTE(random_state=0), DistanceUnderSampler(random_state=0)])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("estimator", "check_contract"), list(SAMPLERS.args[1]), **SAMPLERS.kwargs
)  # its own is a generator
def test_imbalanced_learn(estimator: Any, check_contract: Any) -> None:
    check_contract(estimator)
