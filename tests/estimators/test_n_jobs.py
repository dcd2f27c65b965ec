"""`n_jobs` of estimators: no bit depends on it, and the number of blocks depends on the number of rows alone."""

import numpy as np
import pytest
from sklearn.base import clone

from aucdist import estimators
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.estimators import (
    ESTIMATORS,
    LinkClassifier,
    PairwiseHingeClassifier,
    PairwiseRampClassifier,
    PairwiseSquareClassifier,
    UnivariateRankingClassifier,
    validation,
)

BY_SUMS = [
    PairwiseHingeClassifier(lam=1e-2),
    PairwiseHingeClassifier(lam=1e-2, penalty="l1"),
    PairwiseHingeClassifier(lam=1e-2, monotone="auto"),
    PairwiseRampClassifier(lam=1e-2),
    PairwiseSquareClassifier(lam=1e-2),
    LinkClassifier(lam=1e-2),
    UnivariateRankingClassifier(lam=1e-2, solver="lbfgs"),
]


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 5))
    return X, X[:, 0] + rng.normal(size=400) > 1.0


@pytest.fixture
def cut_at_50(monkeypatch):
    monkeypatch.setattr(validation, "LEAST_ROWS", 50)


@pytest.mark.parametrize("model", BY_SUMS, ids=repr)
def test_threads_change_no_bit_and_blocks_not_the_optimum(model, rows, monkeypatch):
    whole = clone(model).fit(*rows)
    monkeypatch.setattr(validation, "LEAST_ROWS", 50)
    cut = [clone(model).set_params(n_jobs=n_jobs).fit(*rows) for n_jobs in (None, 2, -1)]
    assert all(np.array_equal(cut[0].coef_, other.coef_) for other in cut[1:])
    assert all(cut[0].certificate_ == other.certificate_ for other in cut[1:])
    assert cut[0].certificate_.primal == pytest.approx(whole.certificate_.primal, rel=2e-3)
    of_blocks = clone(model).fit(LocalBlocks.of(rows[0], np.where(rows[1], 1, -1), n_blocks=8))
    assert np.array_equal(of_blocks.coef_, cut[0].coef_)


@pytest.mark.parametrize(
    ("model", "n_rows", "n_blocks"),
    [
        (PairwiseHingeClassifier(), 99, 1),
        (PairwiseHingeClassifier(), 100, 2),
        (PairwiseHingeClassifier(), 400, 8),
        (PairwiseHingeClassifier(solver="sdcd"), 400, 1),
        (PairwiseHingeClassifier(solver="oam-gra"), 400, 1),
    ],
)
def test_number_of_blocks(model, n_rows, n_blocks, rows, cut_at_50):
    X, y = (part[:n_rows] for part in rows)
    assert validation.training_blocks(model, X, y, None).n_blocks == n_blocks
    assert validation.training_blocks(clone(model).set_params(n_jobs=2), X, y, None).n_blocks == n_blocks


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_takes_it_and_refuses_what_is_no_number_of_threads(name, rows):
    kind = getattr(estimators, name)
    assert kind().n_jobs is None
    for wrong in (0, 1.5, True, "all"):
        with pytest.raises(InputError, match=r"n_jobs is .*None or an integer other than 0"):
            kind(n_jobs=wrong).fit(*rows)


def test_classes_side_by_side(rows):
    X, _ = rows
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    one, two = (PairwiseHingeClassifier(lam=1e-2, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    assert np.array_equal(one.coef_, two.coef_)


def test_calibration_takes_it(rows, cut_at_50):
    one, two = (
        PairwiseHingeClassifier(lam=1e-2, calibration="logit", n_jobs=n_jobs).fit(*rows) for n_jobs in (None, 2)
    )
    assert np.array_equal(one.predict_proba(rows[0]), two.predict_proba(rows[0]))


def test_blocks_bring_their_own(rows):
    blocks = LocalBlocks.of(rows[0], np.where(rows[1], 1, -1), n_blocks=2)
    with pytest.raises(
        InputError, match=r"n_jobs is 2, which is for arrays: blocks and the workers .* have threads of their own"
    ):
        PairwiseHingeClassifier(n_jobs=2).fit(blocks)
