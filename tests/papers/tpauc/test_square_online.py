"""TPAUC, OPAUC and the univariate losses: solvers that take each row once."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from support import square_twins as twin
from support.rounds import rounds_of
from support.small_sets import FORMS
from support.square_twins import class_means, problem, square_gradient, square_minimiser, square_value

from aucdist.data.block import Block, into_blocks
from aucdist.engine.blocks import LocalBlocks, block_seed
from aucdist.errors import InputError
from aucdist.papers.epochs import random_order
from aucdist.papers.tpauc import OPAUC, TPAUC, UniExp, UniSqu, online

SEED, ETA, LAM = 7, 0.03, 0.2
tpauc, opauc, uni_exp, uni_squ = (rounds_of(solver) for solver in (TPAUC, OPAUC, UniExp, UniSqu))


def one_block(X, y, weight=None, form=np.asarray):
    return LocalBlocks([Block.of(form(X), y, weight=weight)])


def drawn_order(n, epoch=1, index=0):
    return random_order(block_seed(SEED, epoch, index), n)


@pytest.mark.nojit
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("factor", ["corrected", "print"])
def test_tpauc_is_the_published_algorithm(form, factor):
    X, y, weight = problem(d=6, weighted=True)
    start, end = tpauc(one_block(X, y, weight, FORMS[form]), LAM, seed=SEED, eta=ETA, factor=factor)
    expected = twin.tpauc_steps(X, y, weight, drawn_order(32), ETA, LAM, None if factor == "corrected" else "print")
    np.testing.assert_allclose(end.w, expected, rtol=1e-11)
    assert (start.passes, end.passes) == (1, 2)
    assert (start.primal, start.w.any()) == (1.0, False)
    assert end.primal == pytest.approx(square_value(end.w, X, y, LAM, weight), rel=1e-12)
    slope = square_gradient(end.w, X, y, LAM, weight)
    assert end.dual == pytest.approx(max(0.0, end.primal - slope @ slope / (2 * LAM)), abs=1e-12)


@pytest.mark.nojit
def test_tpauc_goes_on_from_a_start_and_epoch_after_epoch():
    X, y, _ = problem()
    first, second = list(tpauc(one_block(X, y), LAM, seed=SEED, eta=ETA, epochs=2))[1:]
    assert (first.passes, second.passes) == (2, 3)
    start = next(tpauc(one_block(X, y), LAM, first.w, seed=SEED))
    assert start.primal == pytest.approx(first.primal, rel=1e-12)
    np.testing.assert_array_equal(start.w, first.w)
    again = list(tpauc(one_block(X, y), LAM, first.w, seed=SEED, eta=ETA))[1]
    assert np.abs(again.w - second.w).max() > 1e-6  # another epoch, another order


@pytest.mark.nojit
def test_tpauc_averages_blocks_by_their_rows():
    X, y, _ = problem(d=3)
    blocks = [Block.of(X[:20], y[:20], index=0), Block.of(X[20:], y[20:], index=1)]
    *_, end = tpauc(LocalBlocks(blocks), LAM, seed=SEED, eta=ETA)
    means, mass = class_means(X, y, np.ones(32))
    c, expected = means[1] - means[0], np.zeros(3)
    for block in blocks:
        n, w = block.n_samples, np.zeros(3)
        for i in drawn_order(n, index=block.index):
            k = int(block.y[i] > 0)
            x = block.X[i] - means[k]
            w = w - ETA * (LAM * w + 2.0 * 32 / mass[k] * (w @ x) * x + 2.0 * (w @ c) * c - 2.0 * c)
        expected += n / 32 * w
    np.testing.assert_allclose(end.w, expected, rtol=1e-11)


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e-3])
def test_default_steps_never_diverge(scale):
    X, y, weight = problem(3, 60, d=6)
    X[0] *= 30.0
    blocks = one_block(scale * X, y, weight)
    for rounds in (tpauc(blocks, 1e-6, seed=0, epochs=40), opauc(blocks, 1e-6, seed=0, epochs=40)):
        values = [state.primal for state in rounds]
        assert values[-1] < 1.0
        assert max(values) < 1.1
    squares = [state.primal for state in uni_squ(blocks, 1e-6, seed=0, epochs=40)]
    assert squares[-1] < max(squares) <= 1.5


def test_many_epochs_of_tpauc_go_near_the_minimum():
    X, y, weight = problem(60, 200, 4)
    best = square_value(square_minimiser(X, y, LAM, weight), X, y, LAM, weight)
    *_, corrected = tpauc(one_block(X, y), LAM, seed=0, eta=1e-3, epochs=60)
    *_, printed = tpauc(one_block(X, y), LAM, seed=0, eta=1e-3, epochs=60, factor="print")
    assert best < corrected.primal < 1.01 * best
    assert printed.primal > 1.1 * best


@pytest.mark.nojit
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rank", ["full", 3])
def test_opauc_is_the_published_algorithm(form, rank):
    X, y, weight = problem(d=6, weighted=True)
    start, end = opauc(one_block(X, y, weight, FORMS[form]), LAM, seed=SEED, eta=ETA, rank=rank)
    sketch = {} if rank == "full" else {"rank": rank, "seed": block_seed(SEED, 0, 0)}
    expected = twin.opauc_steps(X, y, weight, drawn_order(32), ETA, LAM, **sketch)
    np.testing.assert_allclose(end.w, expected, rtol=1e-11)
    assert (start.passes, end.passes) == (0, 1)
    assert end.primal == pytest.approx(square_value(end.w, X, y, LAM, weight), rel=1e-12)


@pytest.mark.nojit
def test_opauc_sketches_where_whole_statistics_do_not_fit(monkeypatch):
    monkeypatch.setattr(online, "MAX_FEATURES", 5)
    monkeypatch.setattr(online, "SKETCH_RANK", 3)
    for d, expected in ((5, "full"), (6, 3)):
        X, y, _ = problem(d=d)
        ends = [list(opauc(one_block(X, y), LAM, seed=SEED, eta=ETA, rank=rank))[-1].w for rank in (None, expected)]
        np.testing.assert_array_equal(*ends)
    with pytest.raises(InputError, match=r"6 x 6.*up to 5 features.*solver='tpauc' or 'exact'"):
        next(opauc(one_block(X, y), LAM, seed=0, rank="full"))


LOSSES = {"uni-exp": (uni_exp, True), "uni-squ": (uni_squ, False)}


@pytest.mark.nojit
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("solver", LOSSES)
def test_univariate_is_online_gradient_descent(form, solver):
    rounds, exponential = LOSSES[solver]
    X, y, weight = problem(d=6, weighted=True)
    start, end = rounds(one_block(X, y, weight, FORMS[form]), LAM, seed=SEED, eta=ETA)
    factors = 16.0 * weight / np.where(y > 0, weight[y > 0].sum(), weight[y < 0].sum())
    expected, _ = twin.univariate_steps(X, y, factors, drawn_order(32), ETA, LAM, exponential)
    np.testing.assert_allclose(end.w, expected, rtol=1e-11)
    assert (start.passes, end.passes) == (0, 1)


@pytest.mark.nojit
@pytest.mark.parametrize("solver", LOSSES)
def test_univariate_value_is_the_least_over_the_bias(solver):
    rounds, exponential = LOSSES[solver]
    X, y, weight = problem(weighted=True)
    w = np.random.default_rng(0).normal(size=4)

    def least(w):
        args = (X, y, LAM, weight, exponential)
        return minimize_scalar(lambda b: twin.univariate_value(w, b, *args), tol=1e-14).fun

    def bound(w):
        step = 1e-5 * np.eye(4)
        slope = np.array([(least(w + e) - least(w - e)) / 2e-5 for e in step])
        return least(w) - slope @ slope / (2 * LAM)

    for weights in (w, 0.1 * w):
        state = next(rounds(LocalBlocks(into_blocks(Block.of(X, y, weight=weight), 3)), LAM, weights, seed=0))
        assert state.primal == pytest.approx(least(weights), rel=1e-10)
        assert state.dual == pytest.approx(max(0.0, bound(weights)), abs=1e-6)


def test_univariate_square_has_the_minimiser_of_the_pairwise_square():
    """Up to the scale: at lam it is the pairwise square's at 2 lam, times two over one plus twice what is left of it."""
    X, y, weight = problem(60, 200, 4)
    pairs = square_minimiser(X, y, 0.4, weight)
    *_, end = uni_squ(one_block(X, y), 0.2, seed=0, eta=1e-3, epochs=400)
    assert pairs @ end.w / np.linalg.norm(pairs) / np.linalg.norm(end.w) > 0.9999


@pytest.mark.nojit
def test_univariate_exponential_is_the_root_of_the_mean_over_pairs():
    X, y, _ = problem()
    w = np.array([0.3, -0.2, 0.1, 0.4])
    state = next(uni_exp(one_block(X, y), LAM, w, seed=0))
    scores = X @ w
    pairs = np.exp(scores[y < 0][None, :] - scores[y > 0][:, None]).mean()
    assert state.primal == pytest.approx(np.sqrt(pairs) + 0.5 * LAM * w @ w, rel=1e-12)
