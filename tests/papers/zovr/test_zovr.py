"""The solvers of the margin-mean objective."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import rbf_kernel
from support.margin_twins import factors, minimum, objective, offset, problem, svrg_twin, zeroth_order_twin
from support.rounds import last, rounds_of
from support.small_sets import blocks_of

from aucdist.data.block import Block, into_blocks
from aucdist.data.gaussian_kernel import gaussian_kernel, median_distance
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.kernels.random import fill_normal, stream
from aucdist.papers.zovr.solvers import SVRG, ZOSGD, ZOVR, MarginMeanProblem, random_directions
from aucdist.solvers.base import Status, solve

svrg = rounds_of(SVRG)
zo_sgd = rounds_of(ZOSGD)
zovr = rounds_of(ZOVR)

SOLVERS = [zovr, zo_sgd, svrg]
N_BLOCKS = 3


def gram_blocks(X, y, n_blocks=1):
    """Return blocks of the rows of X X', and the rows in the order of the blocks."""
    parts = into_blocks(Block.of(X, y), n_blocks)
    order = np.concatenate([part.row_id for part in parts])
    return LocalBlocks([part.with_X(part.X @ X[order].T) for part in parts]), order


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("lams", "n_directions", "kernel"), [((0.0, 2.0), 1, False), ((0.8, 5.0), 3, False), ((0.8, 5.0), 1, True)]
)
@pytest.mark.parametrize("solver", [zovr, zo_sgd])
def test_one_block_is_the_paper(solver, lams, n_directions, kernel):
    X, y = problem(12, 3)
    if kernel:
        X = rbf_kernel(X, X, gamma=0.5)
    final = last(
        solver(blocks_of(X, y), *lams, seed=5, gram=kernel, n_outer=3, n_inner=15, mu=0.1, n_directions=n_directions)
    )
    gram = X if kernel else None
    twin = zeroth_order_twin(
        X, y, *lams, seed=5, n_outer=3, n_inner=15, mu=0.1, n_directions=n_directions, reduced=solver is zovr, gram=gram
    )
    np.testing.assert_allclose(final.w, twin, rtol=1e-10, atol=1e-12)
    value = objective(twin, X, y, *lams, gram=gram) + offset(X, y, lams[0], gram)
    assert final.primal == pytest.approx(value, rel=1e-10)


@pytest.mark.nojit
def test_svrg_is_the_recursion_written_out():
    X, y = problem(12, 3)
    final = last(svrg(blocks_of(X, y), 0.8, 5.0, seed=5, n_outer=3, n_inner=20))
    np.testing.assert_allclose(final.w, svrg_twin(X, y, 0.8, 5.0, seed=5, n_outer=3, n_inner=20), rtol=1e-10)


@pytest.mark.nojit
@pytest.mark.parametrize("n_blocks", [1, N_BLOCKS])
def test_svrg_in_feature_space_is_svrg(n_blocks):
    """With inner products for a kernel, coefficients and weights are the same point."""
    X, y = problem(20, 3)
    plain = last(svrg(blocks_of(X, y, n_blocks), 0.8, 5.0, seed=5, n_outer=4))
    blocks, order = gram_blocks(X, y, n_blocks)
    kernel = last(svrg(blocks, 0.8, 5.0, seed=5, gram=True, n_outer=4))
    np.testing.assert_allclose(kernel.w @ X[order], plain.w, rtol=1e-9, atol=1e-11)
    assert kernel.primal == pytest.approx(plain.primal, rel=1e-9)
    assert kernel.dual == pytest.approx(plain.dual, rel=1e-9)


CASES = {
    "a few": problem(),
    "one of each": problem(2, 3, 0.5),
    "one positive": problem(9, 2, 0.1),
    "more features than rows": problem(12, 20),
    "the same row everywhere": (np.ones((6, 2)), np.array([1, -1, -1, 1, -1, -1])),
    "nothing but zeros": (np.zeros((6, 2)), np.array([1, -1, -1, 1, -1, -1])),
}


@pytest.mark.parametrize(
    ("case", "lams"), [*zip(CASES, [(0.0, 1.0), (0.5, 10.0), (20.0, 10.0)] * 2, strict=True), ("a few", (20.0, 10.0))]
)
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_round_is_certified(solver, case, lams):
    X, y = CASES[case]
    lowest = minimum(X, y, *lams) + offset(X, y, lams[0])
    dual = 0.0
    for state in solver(blocks_of(X, y), *lams, seed=1, n_outer=20):
        value = objective(state.w, X, y, *lams) + offset(X, y, lams[0])
        assert state.primal == pytest.approx(value, rel=1e-9, abs=1e-12)
        assert dual * (1 - 1e-12) <= state.dual <= lowest + 1e-9
        assert state.primal > 0
        dual = state.dual


@pytest.mark.parametrize("n_blocks", [1, N_BLOCKS])
@pytest.mark.parametrize(("solver", "within"), [(svrg, 1e-4), (zovr, 5e-2)])
def test_the_minimum_of_a_quadratic_programme(solver, within, n_blocks):
    X, y = problem(60, 4)
    lowest = minimum(X, y, 0.5, 10.0) + offset(X, y, 0.5)
    final = last(solver(blocks_of(X, y, n_blocks), 0.5, 10.0, seed=1, n_outer=150))
    assert lowest * (1 - 1e-9) <= final.primal <= lowest * (1 + within)
    assert final.dual >= lowest * (1 - 5 * within)


def test_an_optimum_of_zero_is_no_division_by_zero():
    """Where all margins are beyond 1 at lam1 c itself."""
    X, y = problem()
    state = MarginMeanProblem(blocks_of(X + 9.0 * y[:, None], y), 9.0, 1.0)
    state.w = 9.0 * state.centre
    newest = state.round(state.evaluate(state.w), 1.0)
    # No relative gap can be stated: the rounding errors of the hinges are larger than the objective.
    assert solve(iter([newest]), tol=1e-3, max_passes=9).certificate.status == Status.ROUNDING
    assert newest.primal < 1e-300


@pytest.mark.parametrize("gram", [False, True])
@pytest.mark.parametrize("solver", SOLVERS)
def test_dense_and_sparse_rows_and_a_gram_matrix_of_single_precision_agree(solver, gram):
    r = np.random.default_rng(3)
    X = (r.integers(-4, 5, (40, 5)) * (r.random((40, 5)) < 0.6)).astype(float)
    y = problem()[1]
    forms = [X, sp.csr_matrix(X)]
    if gram:
        forms = [X @ X.T, (X @ X.T).astype(np.float32)]
    first, *others = (last(solver(blocks_of(form, y), 0.5, 2.0, seed=0, gram=gram, n_outer=5)) for form in forms)
    for other in others:
        np.testing.assert_allclose(other.w, first.w, rtol=1e-9, atol=1e-11)
        assert other.dual == pytest.approx(first.dual, rel=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_weights_are_shares(solver):
    """Doubling all weights changes nothing; the objective of a row of weight 2 is that of two rows."""
    X, y = problem()
    weight = np.where(np.arange(40) % 3 == 0, 2.0, 1.0)
    once, two = (last(solver(blocks_of(X, y, 1, w), 0.5, 5.0, seed=0, n_outer=5)) for w in (weight, 2 * weight))
    np.testing.assert_allclose(once.w, two.w, rtol=1e-12)
    twice = np.repeat(np.arange(40), weight.astype(int))
    value = objective(once.w, X[twice], y[twice], 0.5, 5.0) + offset(X[twice], y[twice], 0.5)
    assert once.primal == pytest.approx(value, rel=1e-10)
    assert set(factors(y, weight)) == set(factors(y[twice]))


@pytest.mark.parametrize("solver", SOLVERS)
def test_rows_of_no_weight_and_blocks_without_rows_do_no_harm(solver):
    X, y = problem()
    plain = Block.of(X, y)
    parts = [plain, plain.take(np.zeros(40, dtype=bool), index=1)]
    final = last(solver(LocalBlocks(parts), 0.5, 5.0, seed=0, n_outer=5))
    assert np.isfinite(final.w).all()
    weight = np.r_[np.ones(40), np.zeros(10)]
    there = last(solver(blocks_of(np.vstack([X, X[:10]]), np.r_[y, y[:10]], 1, weight), 0.5, 5.0, seed=0, n_outer=150))
    lowest = minimum(X, y, 0.5, 5.0) + offset(X, y, 0.5)
    assert lowest * (1 - 1e-9) <= there.primal <= lowest * 1.02


# ---- margin mean objective ---------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, lambda X: X.astype(np.float32)])
def test_gaussian_kernel(form):
    r = np.random.default_rng(0)
    X, Z = r.integers(-3, 4, (6, 4)).astype(float), r.integers(-3, 4, (5, 4)).astype(float)
    X[0] = Z[0]
    kernel = gaussian_kernel(form(X), form(Z), 1.7)
    assert kernel.dtype == np.float64
    np.testing.assert_allclose(kernel, rbf_kernel(X, Z, gamma=1 / 1.7**2), rtol=1e-12)
    assert kernel[0, 0] == pytest.approx(1.0, rel=1e-14)


def test_kernel_of_rows_far_from_zero():
    r = np.random.default_rng(0)
    X, Z = r.normal(size=(6, 4)), r.normal(size=(5, 4))
    X, Z = X + 1e6, Z + 1e6
    squares = ((X[:, np.newaxis] - Z) ** 2).sum(axis=2)
    np.testing.assert_allclose(gaussian_kernel(X, Z, 1.7), np.exp(-squares / 1.7**2), rtol=1e-9)
    np.testing.assert_allclose(median_distance(X), np.median(pdist(X)), rtol=1e-9)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_median_distance_leaves_equal_rows_out(form):
    X = np.random.default_rng(0).normal(size=(15, 3))
    X[5:9] = X[4]
    apart = pdist(X)
    assert median_distance(form(X)) == pytest.approx(np.median(apart[apart > 0]), rel=1e-6)
    with pytest.raises(InputError, match="all rows are equal"):
        median_distance(form(np.ones((4, 2))))


# ---- zeroth order ------------------------------------------------------------------------------


def unit(n_directions, size):
    return random_directions((n_directions, size), 1)


@pytest.mark.nojit
def test_unit_vectors_are_normal_vectors_of_length_one():
    ways = unit(3, 5)
    for a in range(3):
        z = np.empty(5)
        fill_normal(np.uint64(stream(1, a)), z)
        np.testing.assert_allclose(ways[a], z / np.linalg.norm(z), rtol=1e-14)
    # A direction does not depend on how many there are.
    np.testing.assert_array_equal(unit(2, 5), ways[:2])


@pytest.mark.nojit
def test_unit_vectors_look_uniform():
    ways = unit(3000, 3)
    np.testing.assert_allclose(ways.mean(axis=0), 0, atol=4 * np.sqrt(1 / 3 / 3000))
    np.testing.assert_allclose(ways.T @ ways / 3000, np.eye(3) / 3, atol=0.03)
    # On the sphere in three dimensions a coordinate is uniform.
    assert abs((np.abs(ways[:, 0]) < 0.5).mean() - 0.5) < 4 * 0.5 / np.sqrt(3000)
