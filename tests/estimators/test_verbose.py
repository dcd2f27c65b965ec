"""`verbose` prints rounds, changes nothing else, and leaves silence where it is 0."""

import re

import numpy as np
import pytest
from sklearn.base import clone
from support.fits import fitted

from aucdist import lam_path
from aucdist.estimators import ESTIMATORS, PairwiseHingeClassifier

LINE = re.compile(r"\[(\w+)\] round (\d+)  passes \d+  primal \S+  dual \S+  gap \d\.\d\de[+-]\d+")


def rows():
    r = np.random.default_rng(0)
    X = r.normal(size=(120, 4))
    return X, X[:, 0] + r.normal(size=120) > 0.8


def printed(capsys):
    *rounds, last = capsys.readouterr().out.splitlines()
    matches = [LINE.fullmatch(line) for line in rounds]
    assert all(matches)
    return [int(match[2]) for match in matches], {match[1] for match in matches}, last


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_prints_its_rounds_and_fits_the_same(name, capsys):
    silent = fitted(ESTIMATORS[name](random_state=0, max_passes=30), *rows())
    assert capsys.readouterr().out == ""
    loud = fitted(clone(silent).set_params(verbose=2), *rows())
    numbers, names, last = printed(capsys)
    assert names == {name}
    assert numbers[-len(loud.history_) :] == loud.history_["round"].tolist()
    assert last.startswith(f"[{name}] {loud.certificate_.status} after {loud.n_passes_} passes")
    assert np.array_equal(loud.decision_function(rows()[0]), silent.decision_function(rows()[0]))


def test_a_path_prints_the_rounds_of_each_model(capsys):
    first, second = lam_path(PairwiseHingeClassifier(verbose=2), *rows(), lams=[1e-2, 1e-1])
    said = capsys.readouterr().out.splitlines()
    assert len(said) == len(first.history_) + len(second.history_) + 2
    assert said[0].startswith("[PairwiseHingeClassifier lam 0.1] round 1 ")


def test_level_1_leaves_out_rounds_and_prints_the_last(capsys):
    seen = []
    model = PairwiseHingeClassifier(lam=1e-7, tol=0.0, max_passes=43, verbose=1)
    fitted(model, *rows(), callback=lambda record: seen.append(record["round"]))
    rounds = len(model.history_)
    assert seen == list(range(1, rounds + 1))
    expected = [n for n in (*range(1, 11), 20, 30, 40) if n <= rounds]
    assert printed(capsys)[0] == expected + [rounds] * (expected[-1] != rounds)
    assert rounds > 20


def test_fits_of_the_calibration_are_silent(capsys):
    model = fitted(PairwiseHingeClassifier(calibration="logit", verbose=True), *rows())
    numbers, _, _ = printed(capsys)
    assert numbers[0] == 1
    assert len(set(numbers)) == len(numbers) <= len(model.history_)
