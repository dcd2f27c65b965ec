import numpy as np
import pytest
from support.small_sets import FORMS
from support.square_twins import problem

from aucdist.data.block import Block, partition
from aucdist.papers.tpauc.moments import (
    ClassMoments,
    PairMoments,
    class_moments,
)


def classes(blocks, full=True):
    return [sum((class_moments(b, label, full=full) for b in blocks), ZERO) for label in (-1, 1)]


def known(blocks, full=True):
    return PairMoments.of(*classes(blocks, full))


ZERO = ClassMoments(0.0, np.zeros(1), np.zeros(1))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_blocks", [1, 3, 40])
def test_moments_are_those_of_the_rows(form, weighted, n_blocks, monkeypatch):
    monkeypatch.setattr("aucdist.papers.tpauc.moments.CHUNK", 20)
    monkeypatch.setattr("aucdist.papers.tpauc.moments.FEWEST_ROWS", 1)
    X, y, weight = problem(weighted=weighted)
    blocks = partition(Block.of(FORMS[form](X), y, weight=weight if weighted else None), n_blocks)
    for label, k in ((-1, 0), (1, 1)):
        mass, rows = weight[y == label], X[y == label]
        scatter = np.cov(rows.T, aweights=mass, bias=True) * mass.sum()
        for full in (True, False):
            found = classes(blocks, full)[k]
            assert found.weight == pytest.approx(mass.sum())
            np.testing.assert_allclose(found.mean, mass @ rows / mass.sum(), rtol=1e-13)
            np.testing.assert_allclose(found.scatter, scatter if full else np.diag(scatter), rtol=1e-12, atol=1e-13)


def test_moments_far_from_zero_keep_their_digits():
    X, y, _ = problem()
    near, far = known([Block.of(X, y)]), known(partition(Block.of(X + 1e7, y), 3))
    np.testing.assert_allclose(far.covariance, near.covariance, rtol=1e-7, atol=1e-8)
