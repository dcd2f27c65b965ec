import numpy as np
import pytest
import scipy.sparse as sp
from support.oracle import pairwise_objective
from support.rounds import last, rounds_of
from support.small_sets import all_pairs_of, blocks_of, small

from aucdist.data.block import Block, partition
from aucdist.engine.blocks import LocalBlocks, block_seed
from aucdist.errors import InputError
from aucdist.papers.sdcd.kernels import draw_any
from aucdist.papers.sdcd.online import MSGD, DescentState
from aucdist.solvers.base import solve
from aucdist.solvers.pairs.cutting_planes import AllPairs

pytestmark = pytest.mark.nojit

msgd = rounds_of(MSGD)


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


@pytest.mark.parametrize("sizes", [(9, 23), (19, 6), (1, 1)])
@pytest.mark.parametrize("lam", [1.0, 1e-3])
def test_one_block_is_the_published_algorithm(sizes, lam):
    X, y = small(*sizes)
    pairs = drawn_pairs(500, 5, min(sizes), max(sizes))
    w = descent(pairs[:, ::-1] if sizes[0] > sizes[1] else pairs, X[y > 0], X[y < 0], lam)
    state = last(msgd(blocks_of(X, y), lam, seed=5, steps=500))
    np.testing.assert_allclose(state.w, w, rtol=1e-12, atol=1e-12 * np.abs(w).max())
    assert state.primal == pytest.approx(pairwise_objective(w, X, y, lam), rel=1e-10)
    assert state.dual == 0.0


@pytest.mark.parametrize(("n_blocks", "minority_bytes"), [(1, 2**28), (2, 2**28), (5, 2**28), (3, 100)])
def test_it_nears_the_optimum(n_blocks, minority_bytes):
    X, y = small()
    best = solve(AllPairs().rounds(blocks_of(X, y), 0.1), tol=1e-8, max_passes=300).certificate.primal
    states = list(msgd(blocks_of(X, y, n_blocks), 0.1, seed=1, epochs=300, minority_bytes=minority_bytes))
    assert best <= states[-1].primal <= best * 1.01
    assert states[-1].primal < states[2].primal


@pytest.mark.parametrize("n_blocks", [2, 5, 40])
def test_the_first_round_averages_the_blocks(n_blocks):
    X, y = small()
    parts = partition(Block.of(X, y), n_blocks)
    minority = np.concatenate([p.X[p.y > 0] for p in parts])
    counts, total = np.cumsum([0] + [int((p.y < 0).sum()) for p in parts]), np.zeros(4)
    for p in parts:
        majority = p.X[p.y < 0]
        n = 32 * counts[p.index + 1] // 23 - 32 * counts[p.index] // 23
        total += n * descent(drawn_pairs(n, 4, 9, len(majority), p.index), minority, majority, 0.1)
    state = last(msgd(LocalBlocks(parts), 0.1, seed=4, epochs=1))
    np.testing.assert_allclose(state.w, total / 32, rtol=1e-11)


@pytest.mark.parametrize("n_blocks", [1, 3])
def test_sparse_rows_of_float32_give_the_same_weights(n_blocks):
    X, y = small(d=6)
    X[np.abs(X) < 0.5] = 0.0
    forms = (X, sp.csr_array(X.astype(np.float32)))
    plain, other = (last(msgd(blocks_of(form, y, n_blocks), 1e-2, seed=0, epochs=9)).w for form in forms)
    np.testing.assert_allclose(other, plain, rtol=1e-11)


def test_equal_rows_in_both_classes_leave_w_at_zero():
    state = last(msgd(blocks_of(np.ones((6, 2)), np.array([1, -1, -1, 1, -1, -1])), 1.0, seed=0, epochs=2))
    assert (state.w.tolist(), state.primal) == ([0.0, 0.0], 1.0)


def test_rounds_and_passes():
    states = list(msgd(blocks_of(*small()), 1e-2, seed=0))
    assert len(states) == MSGD.default_epochs
    assert [s.passes for s in states] == np.ceil(2.5 * np.arange(1, MSGD.default_epochs + 1)).tolist()
    assert [s.passes for s in msgd(blocks_of(*small(), 3), 1e-2, seed=0, steps=40)] == [3, 4]
    assert last(msgd(blocks_of(*small()), 1e-2, seed=0, steps="all")).resume().steps == 9 * 23


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"minority_bytes": -1}, "minority_bytes is -1"),
        ({"start": np.zeros(4)}, "would discard weights alone.*warm_start=False"),
        ({"start": DescentState(np.zeros(3), 5)}, "of 3 features, but the data have 4"),
        ({"start": DescentState(np.zeros(4), 2**63 - 5)}, r"both are numbered below 2\*\*63"),
    ],
)
def test_bad_input_is_refused_before_any_work(options, message):
    with pytest.raises(InputError, match=message):
        next(msgd(blocks_of(*small()), 1e-2, seed=0, **options))
