import numpy as np
import pytest
from support.oracle import pairwise_objective
from support.rounds import last, rounds_of
from support.small_sets import FORMS, blocks_of

from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks, block_seed
from aucdist.kernels.random import below
from aucdist.pairs.cutting_planes import AllPairs
from aucdist.papers.sdcd.online import OAMGra, OAMInf, OAMSeq
from aucdist.solvers.base import solve

oam_inf, oam_seq, oam_gra = rounds_of(OAMInf), rounds_of(OAMSeq), rounds_of(OAMGra)
SOLVERS = {
    "oam-inf": lambda blocks, lam, **options: oam_inf(blocks, lam, **options),
    "oam-seq": lambda blocks, lam, **options: oam_seq(blocks, lam, **{"seed": 7, "buffer_size": 4} | options),
    "oam-gra": lambda blocks, lam, **options: oam_gra(blocks, lam, **{"seed": 7, "buffer_size": 4} | options),
}
every_solver = pytest.mark.parametrize("solver", SOLVERS)


def rows_of(n=60, d=5, seed=0, share=0.3):
    r = np.random.default_rng(seed)
    y = np.where(r.random(n) < share, 1, -1)
    X = r.normal(size=(n, d)) * (r.random((n, d)) < 0.7) + 0.5 * (y[:, None] > 0)
    return X.astype(np.float32).astype(np.float64), y


def twin(solver, X, y, lam, *, seed=7, capacity=4, weight=None, w=None):
    """The three algorithms in plain Python, on lists of rows."""
    c = np.ones(len(y)) if weight is None else weight
    largest = 1.0 / (lam * c[y > 0].sum() * c[y < 0].sum())
    w = np.zeros(X.shape[1]) if w is None else w.copy()
    state, buffers, seen = seed, {-1: [], 1: []}, {-1: 0, 1: 0}
    for t in range(len(y)):
        opponents = buffers[-y[t]]
        if opponents:
            bound = largest * max(1.0, seen[-y[t]] / len(opponents))
            at = w.copy()
            for o in opponents:
                z = y[t] * (X[t] - X[o])
                loss = 1.0 - (at if solver == "oam-gra" else w) @ z
                if loss > 0 and z @ z > 0:
                    step = np.inf if solver == "oam-gra" else loss / (z @ z)
                    w += min(step, bound * c[t] * c[o]) * z
        mine = buffers[y[t]]
        seen[y[t]] += 1
        if solver == "oam-inf" or len(mine) < capacity:
            mine.append(t)
        else:
            state, place_ = below(np.uint64(state), seen[y[t]])
            if place_ < capacity:
                mine[place_] = t
    return w


@pytest.mark.nojit
@every_solver
@pytest.mark.parametrize("lam", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize("weighted", [False, True])
def test_one_block_is_the_published_algorithm(solver, lam, weighted):
    X, y = rows_of()
    weight = np.random.default_rng(3).uniform(0.2, 3.0, len(y)) if weighted else None
    final = last(SOLVERS[solver](blocks_of(X, y, weight=weight), lam))
    expected = twin(solver, X, y, lam, weight=weight, seed=block_seed(7, 0, 0))
    np.testing.assert_allclose(final.w, expected, rtol=1e-12, atol=1e-12 * abs(expected).max())
    assert final.primal == pytest.approx(pairwise_objective(final.w, X, y, lam, weight), rel=1e-10)


@every_solver
def test_all_forms_of_rows_are_dense(solver):
    X, y = rows_of()
    dense = last(SOLVERS[solver](blocks_of(X, y), 1e-3)).w
    for form in FORMS.values():
        np.testing.assert_allclose(last(SOLVERS[solver](blocks_of(form(X), y), 1e-3)).w, dense, rtol=1e-11)


def test_a_buffer_that_holds_all_is_oam_inf():
    X, y = rows_of()
    unlimited = last(oam_inf(blocks_of(X, y), 1e-3))
    large = last(oam_seq(blocks_of(X, y), 1e-3, seed=1, buffer_size=len(y)))
    assert large.w.tolist() == unlimited.w.tolist()
    assert (unlimited.dual > 0, large.dual) == (True, 0.0)


@pytest.mark.parametrize("lam", [1.0, 1e-1, 1e-3])
def test_the_bound_of_oam_inf_is_one(lam):
    X, y = rows_of()
    optimum = solve(AllPairs().rounds(blocks_of(X, y), lam), tol=1e-6, max_passes=500).certificate
    rounds = list(oam_inf(blocks_of(X, y), lam, epochs=3))
    assert 0 < rounds[0].dual <= optimum.primal * (1 + 1e-9)
    assert len({r.dual for r in rounds}) == 1
    for options in ({"start": np.ones(5)}, {"n_pairs": 10}):
        assert last(oam_inf(blocks_of(X, y), lam, **options)).dual == 0.0
    assert last(oam_inf(blocks_of(X, y, 2), lam)).dual == 0.0


@every_solver
def test_epochs_go_on_from_the_last_weights_with_empty_buffers(solver):
    X, y = rows_of()
    rounds = list(SOLVERS[solver](blocks_of(X, y), 1e-3, epochs=3))
    w = None
    for epoch, state in enumerate(rounds):
        w = twin(solver, X, y, 1e-3, w=w, seed=block_seed(7, epoch, 0))
        np.testing.assert_allclose(state.w, w, rtol=1e-10, atol=1e-12)
    passes = [state.passes for state in rounds]
    assert passes == sorted(passes)


@every_solver
def test_blocks_are_averaged_by_their_rows(solver):
    X, y = rows_of(90)
    parts = [Block.of(X[:20], y[:20], index=0), Block.of(X[20:90], y[20:90], index=1)]
    w = last(SOLVERS[solver](LocalBlocks(parts), 1e-2)).w
    apart = [twin(solver, p.X, p.y, 1e-2, seed=block_seed(7, 0, p.index)) for p in parts]
    np.testing.assert_allclose(w, (20 * apart[0] + 70 * apart[1]) / 90, rtol=1e-11)


@every_solver
def test_a_block_of_one_class_has_no_say_but_its_share(solver):
    X, y = rows_of(40)
    alone = Block.of(X[y < 0][:10], y[y < 0][:10], index=1)
    both = last(SOLVERS[solver](LocalBlocks([Block.of(X, y), alone]), 1e-2)).w
    w = last(SOLVERS[solver](blocks_of(X, y), 1e-2)).w
    np.testing.assert_allclose(both, 0.8 * w, rtol=1e-13)


@every_solver
def test_rows_equal_in_both_classes(solver):
    X, y = np.ones((12, 3)), np.tile([1, -1, -1], 4)
    state = last(SOLVERS[solver](blocks_of(X, y), 1e-3))
    assert abs(state.w).max() < 1e-9
    assert state.primal == pytest.approx(1.0)


def test_n_pairs_is_the_k_of_the_steps():
    X, y = rows_of()
    k = int((y > 0).sum() * (y < 0).sum())
    for solver in SOLVERS.values():
        plain = last(solver(blocks_of(X, y), 1e-3)).w
        assert last(solver(blocks_of(X, y), 1e-3, n_pairs=k)).w.tolist() == plain.tolist()
        ten_times = last(solver(blocks_of(X, y), 1e-4, n_pairs=10 * k)).w
        np.testing.assert_allclose(ten_times, plain, rtol=1e-12)


@pytest.mark.parametrize("n_blocks", [1, 3])
def test_many_rows_are_learnt(n_blocks):
    """With 100 buffered rows a class, one pass comes near the best AUC objective of a set of 3000 rows."""
    X, y = rows_of(3000, seed=5)
    best = solve(AllPairs().rounds(blocks_of(X, y), 1e-2), tol=1e-3, max_passes=200).certificate.primal
    for solver, excess in (("oam-inf", 0.05), ("oam-seq", 0.15), ("oam-gra", 0.15)):
        options = {} if solver == "oam-inf" else {"buffer_size": 100}
        assert last(SOLVERS[solver](blocks_of(X, y, n_blocks), 1e-2, **options)).primal < (1 + excess) * best
