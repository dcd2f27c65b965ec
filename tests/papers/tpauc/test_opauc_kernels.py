import numpy as np
import pytest
import scipy.sparse as sp
from support.square_twins import FORMS, opauc_steps, problem

from aucdist.data.block import Block
from aucdist.papers.tpauc.kernels import opauc_full, opauc_sketched


def nothing(d, m, seed):
    return np.array([seed], dtype=np.uint64), np.zeros((2, d, m)), np.zeros((2, m)), np.zeros((2, 2, m, m))


@pytest.mark.nojit
@pytest.mark.parametrize("form", FORMS)
def test_whole_statistics_are_the_rows_seen(form):
    X, y, weight = problem(d=6, weighted=True)
    block, order, w = (
        Block.of(FORMS[form](X), y, weight=weight),
        np.random.default_rng(1).permutation(len(y)),
        np.zeros(6),
    )
    statistics = np.zeros(2), np.zeros((2, 6)), np.zeros((2, 6, 6))
    for part in (order[:11], order[11:]):
        opauc_full(block.rows, part, block.y, weight, 0.03, 0.2, *statistics, w)
    np.testing.assert_allclose(w, opauc_steps(X, y, weight, order, 0.03, 0.2), rtol=1e-12)
    np.testing.assert_allclose(statistics[0], [weight[y < 0].sum(), weight[y > 0].sum()])


@pytest.mark.nojit
@pytest.mark.parametrize("form", FORMS)
def test_sketched_statistics_are_the_rows_seen(form):
    X, y, weight = problem(d=6, weighted=True)
    block, order, w = (
        Block.of(FORMS[form](X), y, weight=weight),
        np.random.default_rng(1).permutation(len(y)),
        np.zeros(6),
    )
    statistics, lengths = nothing(6, 1 + 4, 3), (X**2).sum(axis=1)
    for part in (order[:11], order[11:]):
        opauc_sketched(block.rows, part, block.y, weight, lengths, 0.03, 0.2, *statistics, w)
    np.testing.assert_allclose(w, opauc_steps(X, y, weight, order, 0.03, 0.2, rank=4, seed=3), rtol=1e-11)
    _, sketch, totals, gram = statistics
    np.testing.assert_allclose(gram[0, 1], sketch[0].T @ sketch[1], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(gram[1, 1], sketch[1].T @ sketch[1], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(totals[:, 0], [weight[y < 0].sum(), weight[y > 0].sum()])


@pytest.mark.nojit
@pytest.mark.parametrize("eta", [5.0, 4.999999, 4.9])
def test_a_scale_that_vanishes_is_not_lost(eta):
    X, y, weight = problem(d=6)
    X = 1e-3 * X
    order = np.tile(np.arange(len(y)), 4)
    block, w = Block.of(X, y), np.zeros(6)
    opauc_sketched(block.rows, order, block.y, weight, (X**2).sum(axis=1), eta, 0.2, *nothing(6, 5, 3), w)
    np.testing.assert_allclose(w, opauc_steps(X, y, weight, order, eta, 0.2, rank=4, seed=3), rtol=1e-9)


def test_the_sketch_is_right_on_average():
    X, y, weight = problem(40, 60, 3)
    block = Block.of(X, y)
    found = np.zeros((2, 3, 3))
    for seed in range(200):
        _, sketch, totals, gram = nothing(3, 11, seed)
        draws = np.array([seed], dtype=np.uint64)
        opauc_sketched(
            block.rows, np.arange(100), block.y, weight, (X**2).sum(axis=1), 1e-6, 1.0, draws, sketch, totals, gram,
            np.zeros(3),
        )  # fmt: skip
        for k in range(2):
            centred = sketch[k, :, 1:] - np.outer(sketch[k, :, 0], totals[k, 1:]) / totals[k, 0]
            found[k] += centred @ centred.T / (10 * totals[k, 0]) / 200
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
    opauc_sketched(
        block.rows, r.integers(0, n, 100_000), block.y, np.ones(n), lengths, 1e-3, 1e-2, *nothing(d, 3, 0), w
    )
    assert (X[y > 0] @ w).mean() > (X[y < 0] @ w).mean()
