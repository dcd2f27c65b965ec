import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from support.duals import pair_duals, watched
from support.optima import optimum
from support.oracle import pairwise_objective
from support.rounds import last, rounds_of
from support.small_sets import CASES, all_pairs_of, blocks_of, small

from aucdist.data.block import Block, into_blocks
from aucdist.engine.blocks import LocalBlocks, block_seed
from aucdist.errors import InputError
from aucdist.pairs.cutting_planes import AllPairs
from aucdist.papers.sdcd.dual import SDCD, SDCDPerm
from aucdist.papers.sdcd.kernels import draw_any, draw_in_order
from aucdist.papers.sdcd.online import MSGD
from aucdist.solvers.base import solve

sdcd, sdcd_perm = rounds_of(SDCD), rounds_of(SDCDPerm)
SOLVERS = [sdcd, sdcd_perm]
msgd = rounds_of(MSGD)


def classes_of(blocks):
    """Return the rows of each class in the order of the blocks."""
    parts = blocks._blocks
    dense = [b.X.toarray() if sp.issparse(b.X) else np.asarray(b.X, dtype=np.float64) for b in parts]
    return [np.concatenate([X[b.y == label] for X, b in zip(dense, parts, strict=True)]) for label in (1, -1)]


def weights_of(duals, blocks, lam):
    """Return w(a) by its definition."""
    pos, neg = classes_of(blocks)
    a = duals.toarray()
    return (a.sum(axis=1) @ pos - a.sum(axis=0) @ neg) / (lam * a.size)


def dual_value(duals, blocks, lam):
    w = weights_of(duals, blocks, lam)
    return duals.toarray().mean() - 0.5 * lam * (w @ w)


# ---- one block: the published algorithm ---------------------------------------------------------------------------------


def algorithm(X, y, lam, n_steps, seed, shuffled):
    """Algorithms 1 and 2 as they are printed, with the pairs that the solver draws."""
    pos, neg = X[y > 0], X[y < 0]
    drawn = np.empty((n_steps, 3), dtype=np.int64)
    mirrored = len(pos) > len(neg)
    sizes = (len(neg), len(pos)) if mirrored else (len(pos), len(neg))
    places = all_pairs_of(sizes[0], np.arange(sizes[1]))
    (draw_in_order if shuffled else draw_any)(block_seed(seed, 0, 0), 0, places, drawn)
    w, alpha, k = np.zeros(X.shape[1]), np.zeros((len(pos), len(neg))), len(pos) * len(neg)
    path = []
    for i, j in drawn[:, [1, 0] if mirrored else [0, 1]]:
        z = pos[i] - neg[j]
        new = min(max(alpha[i, j] + lam * k * (1 - z @ w) / (z @ z), 0.0), 1.0)
        w = w + (new - alpha[i, j]) * z / (lam * k)
        alpha[i, j] = new
        path.append((w, alpha.mean()))
    return w, alpha, path


@pytest.mark.nojit
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("sizes", "lam"), [((9, 23), 1e-3), ((19, 6), 1.0), ((1, 1), 1.0), ((1, 5), 1e-3)])
def test_one_block_is_the_published_algorithm(solver, sizes, lam):
    X, y = small(*sizes)
    blocks = watched(blocks_of(X, y))
    state = last(solver(blocks, lam, seed=5, steps=500))
    w, alpha, _ = algorithm(X, y, lam, 500, 5, solver is sdcd_perm)
    np.testing.assert_allclose(state.w, w, rtol=1e-12, atol=1e-12 * np.abs(w).max())
    np.testing.assert_allclose(pair_duals(blocks).toarray(), alpha, rtol=1e-11, atol=1e-12)
    assert state.primal == pytest.approx(pairwise_objective(w, X, y, lam), rel=1e-10)
    assert state.dual == pytest.approx(alpha.mean() - 0.5 * lam * (w @ w), rel=1e-10)


@pytest.mark.nojit
def test_all_steps_are_one_sweep_over_all_pairs():
    X, y = small()
    blocks = watched(blocks_of(X, y))
    last(sdcd_perm(blocks, 1e3, seed=0, steps="all"))
    assert pair_duals(blocks).nnz == 9 * 23  # at so large a lam each pair's first step makes it 1


@pytest.mark.nojit
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n_blocks", [1, 3])
def test_average_is_that_of_lemma_1(solver, n_blocks):
    X, y = small()
    blocks = blocks_of(X, y, n_blocks)
    states = list(solver(blocks, 1e-2, seed=3, epochs=9, average=True))
    best = optimum(X, y, 1e-2)
    for state in states:
        assert state.primal == pytest.approx(pairwise_objective(state.w, X, y, 1e-2), rel=1e-10)
        assert 0 <= state.dual <= best <= state.primal
    if n_blocks == 1:
        n = len(y)
        for number, first in ((1, 0), (3, 1), (4, 3), (9, 7)):  # averages begin with rounds 1, 2, 4, 8
            path = algorithm(X, y, 1e-2, 9 * n, 3, solver is sdcd_perm)[2][first * n : number * n]
            w, a = np.mean([p[0] for p in path], axis=0), np.mean([p[1] for p in path])
            np.testing.assert_allclose(states[number - 1].w, w, rtol=1e-10)
        assert states[-1].dual == pytest.approx(a - 0.5e-2 * (w @ w), rel=1e-10)


# ---- the optimum --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("case", "lam"), [*zip(CASES, [0.1, 1.0] * 3, strict=False)])
def test_optimum(case, lam, solver):
    X, y = CASES[case]
    best = optimum(X, y, lam)
    certificate = solve(solver(blocks_of(X, y), lam, seed=1), tol=1e-7, max_passes=4000).certificate
    assert certificate.relative_gap <= 1e-6
    assert certificate.primal == pytest.approx(best, rel=1e-6)
    assert certificate.dual <= best * (1 + 1e-9)


@pytest.mark.parametrize(
    ("solver", "n_blocks", "lam", "combine"),
    [(sdcd, 3, 0.1, "add"), (sdcd_perm, 3, 0.1, "average"), (sdcd_perm, 2, 1.0, "add"), (sdcd, 3, 1.0, "add")],
)
def test_many_blocks_same_optimum(solver, n_blocks, lam, combine):
    X, y = small()
    solution = solve(solver(blocks_of(X, y, n_blocks), lam, seed=1, combine=combine), tol=1e-6, max_passes=6000)
    assert solution.certificate.relative_gap <= 1e-6
    assert solution.certificate.primal == pytest.approx(optimum(X, y, lam), rel=1e-6)


# ---- w and the dual variables belong together ---------------------------------------------------------------------------


@pytest.mark.parametrize("combine", ["add", "average"])
def test_a_block_that_loses_its_duals_leaves_a_feasible_dual_and_the_right_w(combine):
    X, y = small()
    blocks = watched(blocks_of(X, y, 3))
    rounds = sdcd(blocks, 0.1, seed=2, combine=combine)
    before = last(itertools.islice(rounds, 5))
    memory = blocks.working._memory
    memory[1] = replace(memory[1], state=None)
    best = optimum(X, y, 0.1)
    for state in itertools.islice(rounds, 400):
        duals = pair_duals(blocks)
        assert ((duals.data > 0) & (duals.data <= 1)).all()
        np.testing.assert_allclose(state.w, weights_of(duals, blocks, 0.1), rtol=1e-9)
        assert before.dual <= state.dual <= best
    assert state.primal == pytest.approx(best, rel=1e-4)


@pytest.mark.nojit
@pytest.mark.parametrize(("sizes", "n_blocks"), [((9, 23), 1), ((19, 6), 3), ((9, 23), 3)])
def test_w_is_that_of_the_duals(sizes, n_blocks):
    X, y = small(*sizes)
    blocks = watched(blocks_of(X, y, n_blocks))
    state = last(sdcd(blocks, 0.1, epochs=30, seed=2))
    np.testing.assert_allclose(state.w, weights_of(pair_duals(blocks), blocks, 0.1), rtol=1e-10)
    assert state.dual == pytest.approx(dual_value(pair_duals(blocks), blocks, 0.1), rel=1e-10)


# ---- forms of the data --------------------------------------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize("solver", [*SOLVERS, msgd])
@pytest.mark.parametrize("n_blocks", [1, 3])
def test_sparse_rows_give_the_same_weights(solver, n_blocks):
    X, y = small(d=6)
    X[np.abs(X) < 0.5] = 0.0
    plain = last(solver(blocks_of(X, y, n_blocks), 1e-2, seed=0, epochs=20))
    other = last(solver(blocks_of(sp.csr_array(X), y, n_blocks), 1e-2, seed=0, epochs=20))
    np.testing.assert_allclose(other.w, plain.w, rtol=1e-11)
    assert other.primal == pytest.approx(plain.primal, rel=1e-11)


@pytest.mark.nojit
def test_pairs_beyond_32_bits():
    n, r = 70_000, np.random.default_rng(0)
    y = np.repeat([1, -1], n)
    X = r.normal(size=(2 * n, 1)) + (y[:, None] > 0)
    blocks = watched(blocks_of(X, y))
    state = last(sdcd_perm(blocks, 1e-3, seed=0, steps=4000))
    duals = pair_duals(blocks)
    assert duals.shape == (n, n)
    assert duals.nnz > 1000
    w = (X[y > 0][duals.row, 0] - X[y < 0][duals.col, 0]) @ duals.data / (1e-3 * n * n)
    assert state.w[0] == pytest.approx(w, rel=1e-10)
    assert (duals.row.astype(np.int64) * n + duals.col).max() > 2**32


# ---- rounds -------------------------------------------------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("n_blocks", "length", "sizes"),
    [
        (1, {"epochs": 3}, [32, 32, 32]), (1, {"steps": 70}, [70]), (1, {"steps": "all"}, [9 * 23]),
        (3, {"epochs": 2}, [32, 32]), (3, {"steps": 70}, [32, 32, 6]), (3, {"steps": "all"}, [32] * 6 + [15]),
    ],
)  # fmt: skip
def test_rounds_and_passes(n_blocks, length, sizes):
    states = list(sdcd(blocks_of(*small(), n_blocks), 1e-2, seed=0, **length))
    taken = np.cumsum(sizes)
    expected = np.ceil(2 * taken / 32 + 0.5 * np.arange(1, len(sizes) + 1))
    assert [s.passes for s in states] == expected.tolist()


# ---- bad input ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps must be an integer at least 1.*; got 0"),
        ({"steps": 2.5}, "steps must be .*; got 2.5"),
        ({"epochs": -1}, "epochs must be .*; got -1"),
        ({"epochs": 2**60}, r"207 pairs and .* steps, but at most 2\*\*63 of each"),
    ],
)
def test_bad_input_is_refused_before_any_work(options, message):
    with pytest.raises(InputError, match=message):
        next(sdcd(blocks_of(*small()), 1e-2, seed=0, **options))


# ---- pair sgd --------------------------------------------------------------------------------


def drawn_pairs(n, seed, n_minority, n_majority, block=0):
    drawn = np.empty((n, 3), dtype=np.int64)
    draw_any(block_seed(seed, 0, block), 0, all_pairs_of(n_minority, np.arange(n_majority)), drawn)
    return drawn[:, :2]


def descent(pairs, pos, neg, lam):
    """The published steps, one pair at a time."""
    w = np.zeros(4)
    for t, (i, j) in enumerate(pairs, start=1):
        z = pos[i] - neg[j]
        w = (1 - 1 / t) * w + min(max(lam * t * (1 - z @ w) / (z @ z), 0), 1) * z / (lam * t)
    return w


@pytest.mark.nojit
@pytest.mark.parametrize("sizes", [(9, 23), (19, 6), (1, 1)])
@pytest.mark.parametrize("lam", [1.0, 1e-3])
def test_one_block_is_the_published_algorithm_of_msgd(sizes, lam):
    X, y = small(*sizes)
    pairs = drawn_pairs(500, 5, min(sizes), max(sizes))
    w = descent(pairs[:, ::-1] if sizes[0] > sizes[1] else pairs, X[y > 0], X[y < 0], lam)
    state = last(msgd(blocks_of(X, y), lam, seed=5, steps=500))
    np.testing.assert_allclose(state.w, w, rtol=1e-12, atol=1e-12 * np.abs(w).max())
    assert state.primal == pytest.approx(pairwise_objective(w, X, y, lam), rel=1e-10)
    assert state.dual == 0.0


@pytest.mark.parametrize("n_blocks", [1, 2, 5])
def test_msgd_nears_the_optimum(n_blocks):
    X, y = small()
    best = solve(AllPairs().rounds(blocks_of(X, y), 0.1), tol=1e-8, max_passes=300).certificate.primal
    states = list(msgd(blocks_of(X, y, n_blocks), 0.1, seed=1, epochs=300))
    assert best <= states[-1].primal <= best * 1.01
    assert states[-1].primal < states[2].primal


@pytest.mark.nojit
@pytest.mark.parametrize("n_blocks", [2, 5, 40])
def test_the_first_round_averages_the_blocks(n_blocks):
    X, y = small()
    parts = into_blocks(Block.of(X, y), n_blocks)
    minority = np.concatenate([p.X[p.y > 0] for p in parts])
    counts, total = np.cumsum([0] + [int((p.y < 0).sum()) for p in parts]), np.zeros(4)
    for p in parts:
        majority = p.X[p.y < 0]
        n = 32 * counts[p.index + 1] // 23 - 32 * counts[p.index] // 23
        total += n * descent(drawn_pairs(n, 4, 9, len(majority), p.index), minority, majority, 0.1)
    state = last(msgd(LocalBlocks(parts), 0.1, seed=4, epochs=1))
    np.testing.assert_allclose(state.w, total / 32, rtol=1e-11)


@pytest.mark.nojit
def test_equal_rows_in_both_classes_leave_w_at_zero():
    state = last(msgd(blocks_of(np.ones((6, 2)), np.array([1, -1, -1, 1, -1, -1])), 1.0, seed=0, epochs=2))
    assert (state.w.tolist(), state.primal) == ([0.0, 0.0], 1.0)


@pytest.mark.nojit
def test_rounds_and_passes_of_msgd():
    states = list(msgd(blocks_of(*small()), 1e-2, seed=0))
    assert len(states) == MSGD.default_epochs
    assert [s.passes for s in states] == np.ceil(2.5 * np.arange(1, MSGD.default_epochs + 1)).tolist()
    assert [s.passes for s in msgd(blocks_of(*small(), 3), 1e-2, seed=0, steps=40)] == [3, 4]
    assert last(msgd(blocks_of(*small()), 1e-2, seed=0, steps="all")).passes == np.ceil(2 * 9 * 23 / 32 + 0.5)


def test_bad_input_is_refused_before_any_work_of_msgd():
    with pytest.raises(InputError, match=r"epochs must be .*; got -1"):
        next(msgd(blocks_of(*small()), 1e-2, seed=0, epochs=-1))
