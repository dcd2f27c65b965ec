import numpy as np
import pytest
import scipy.sparse as sp
from support.square_twins import opauc_steps, problem

from aucdist.data.block import Block
from aucdist.papers.epochs import LabelledRows
from aucdist.papers.tpauc.kernels import SketchedStatistics, opauc_sketched


def nothing(d, m, seed):
    draws = np.array([seed], dtype=np.uint64)
    return SketchedStatistics(draws, np.zeros((d, 2 * m)), np.zeros(2 * m), np.zeros((2 * m, 2 * m)))


@pytest.mark.nojit
@pytest.mark.parametrize("eta", [5.0, 4.999999, 4.9])
def test_a_scale_that_vanishes_is_not_lost(eta):
    X, y, weight = problem(d=6)
    X = 1e-3 * X
    order = np.tile(np.arange(len(y)), 4)
    block, w = Block.of(X, y), np.zeros(6)
    opauc_sketched(LabelledRows.of(block), (X**2).sum(axis=1), order, (eta, 0.2), nothing(6, 5, 3), w)
    np.testing.assert_allclose(w, opauc_steps(X, y, weight, order, eta, 0.2, rank=4, seed=3), rtol=1e-9)


def test_the_sketch_is_right_on_average():
    X, y, _ = problem(40, 60, 3)
    block = Block.of(X, y)
    found = np.zeros((2, 3, 3))
    for seed in range(200):
        _, sketch, totals, _ = statistics = nothing(3, 11, seed)
        opauc_sketched(LabelledRows.of(block), (X**2).sum(axis=1), np.arange(100), (1e-6, 1.0), statistics, np.zeros(3))
        for k in range(2):
            whole, sums = sketch[:, 11 * k : 11 * k + 11], totals[11 * k : 11 * k + 11]
            centred = whole[:, 1:] - np.outer(whole[:, 0], sums[1:]) / sums[0]
            found[k] += centred @ centred.T / (10 * sums[0]) / 200
    np.testing.assert_allclose(found[0], np.cov(X[y < 0].T, bias=True), atol=0.05)
    np.testing.assert_allclose(found[1], np.cov(X[y > 0].T, bias=True), atol=0.05)


def test_a_sketched_step_costs_its_non_zeros():
    """At this width, a hundred thousand steps that touched every feature would take an hour."""
    d, n, r = 1_355_191, 20_000, np.random.default_rng(0)
    X = sp.csr_matrix(
        (r.normal(size=5 * n), r.integers(0, d, 5 * n).astype(np.int32), np.arange(0, 5 * n + 1, 5)), (n, d)
    )
    y = np.where(r.random(n) < 0.2, 1, -1)
    block, w = Block.of(X, y), np.zeros(d)
    lengths = np.asarray(X.power(2).sum(axis=1)).ravel()
    opauc_sketched(LabelledRows.of(block), lengths, r.integers(0, n, 100_000), (1e-3, 1e-2), nothing(d, 3, 0), w)
    assert (X[y > 0] @ w).mean() > (X[y < 0] @ w).mean()
