import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.duals import row_duals, watched
from support.hinge_twins import dual_sweep, exact_problem, hinge_value, l2_minimum
from support.rounds import rounds_of
from support.small_sets import FORMS, blocks_of
from support.square_twins import problem

from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks
from aucdist.papers.scd.dual import CDCD, SDCD
from aucdist.solvers.base import Status, solve

hinge_cdcd = rounds_of(CDCD)
hinge_sdcd = rounds_of(SDCD)

SOLVERS = [hinge_sdcd, hinge_cdcd]


def after(rounds, n):
    return next(itertools.islice(rounds, n - 1, None))


# ---- one block: the published algorithm ---------------------------------------------------------------------------------


@pytest.mark.nojit
def test_cdcd_is_sweep_after_sweep_of_the_twin():
    X, y, weight = problem(weighted=True)
    lam = 1e-2
    uppers, duals, w = weight / weight.sum() / (2 * lam), np.zeros(len(y)), np.zeros(4)
    blocks = watched(blocks_of(X, y, weight=weight))
    rounds = hinge_cdcd(blocks, lam)
    for state in itertools.islice(rounds, 6):
        duals, w = dual_sweep(X, y, uppers, duals, w, range(len(y)))
        np.testing.assert_allclose(state.w, w, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(row_duals(blocks)[0], duals, rtol=1e-11, atol=1e-13)
        assert state.dual == pytest.approx(2 * lam * (duals.sum() - 0.5 * w @ w), rel=1e-11)


@pytest.mark.nojit
@pytest.mark.parametrize("form", FORMS)
def test_cdcd_is_the_twin_to_the_bit(form):
    X, y = exact_problem()
    lam = 1e-2
    uppers, duals, w = np.full(32, 1 / 32 / (2 * lam)), np.zeros(32), np.zeros(2)
    for state in itertools.islice(hinge_cdcd(blocks_of(FORMS[form](X), y), lam), 20):
        duals, w = dual_sweep(X, y, uppers, duals, w, range(32))
        assert (state.w + 0.0).tobytes() == (w + 0.0).tobytes()  # -0 is 0
    assert w.any()


# ---- the minimum and the certificate ------------------------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("lam", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize("n_blocks", [1, 3])
def test_every_round_is_certified(solver, lam, n_blocks):
    X, y, weight = problem(8, 24, weighted=True)
    lowest, seen = l2_minimum(X, y, lam, weight), []
    for state in itertools.islice(solver(blocks_of(X, y, n_blocks, weight), lam), 60):
        assert state.primal == pytest.approx(hinge_value(state.w, X, y, lam, "l2", weight), rel=1e-12)
        assert state.dual <= lowest * (1 + 1e-9)
        assert state.primal >= lowest * (1 - 1e-6)
        seen.append(state.dual)
    assert (np.diff(seen) >= -1e-13).all()


@pytest.mark.nojit
@pytest.mark.parametrize("solver", SOLVERS)
def test_intercept_is_the_weight_of_a_column_of_ones(solver):
    X, y, weight = problem(10, 40, weighted=True)
    wide = np.column_stack([X, np.ones(len(y))])
    for n_blocks in (1, 3):
        first = after(solver(blocks_of(X, y, n_blocks, weight), 1e-2, intercept=True), 9)
        other = after(solver(blocks_of(wide, y, n_blocks, weight), 1e-2), 9)
        np.testing.assert_allclose(first.w, other.w, rtol=1e-9)
        assert (first.primal, first.dual) == pytest.approx((other.primal, other.dual), rel=1e-10)


@pytest.mark.nojit
def test_a_row_of_weight_two_is_two_rows():
    X, y, _ = problem(6, 18)
    twice = np.arange(24) % 3 == 0
    weighted = solve(hinge_sdcd(blocks_of(X, y, weight=1.0 + twice), 1e-2), tol=1e-10, max_passes=20_000)
    other = solve(
        hinge_sdcd(blocks_of(np.vstack([X, X[twice]]), np.append(y, y[twice])), 1e-2), tol=1e-10, max_passes=20_000
    )
    np.testing.assert_allclose(weighted.w, other.w, atol=1e-5)


@given(st.integers(0, 10_000), st.sampled_from([1e-2, 0.1, 1.0]), st.integers(1, 4))
@settings(max_examples=20)
def test_the_gap_closes(seed, lam, n_blocks):
    r = np.random.default_rng(seed)
    X, y, _ = problem(int(r.integers(1, 8)), int(r.integers(1, 12)), int(r.integers(1, 6)), seed=seed)
    X = np.vstack([X, X[:2], np.zeros_like(X[:1])])  # duplicates, of either class, and a row of zeros
    y = np.concatenate([y, -y[:1], y[1:2], [1]]) if len(y) > 1 else np.append(y, [1, -1])
    solution = solve(hinge_sdcd(blocks_of(X, y, n_blocks), lam, seed=seed), tol=1e-3, max_passes=20_000)
    assert solution.certificate.status is Status.CONVERGED


# ---- many blocks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n_blocks", [2, 6])
def test_many_blocks_same_minimum(solver, n_blocks):
    X, y, weight = problem(10, 50, weighted=True)
    solution = solve(solver(blocks_of(X, y, n_blocks, weight), 1e-2), tol=1e-5, max_passes=10_000)
    assert solution.certificate.status is Status.CONVERGED
    assert solution.certificate.primal == pytest.approx(l2_minimum(X, y, 1e-2, weight), rel=1.1e-5)


@pytest.mark.nojit
def test_blocks_of_one_class_and_empty_ones():
    X, y, _ = problem(10, 50)
    parts = [np.flatnonzero(y > 0), np.arange(0), np.flatnonzero(y < 0)]
    blocks = LocalBlocks([Block.of(X, y).take(part, index=i) for i, part in enumerate(parts)])
    solution = solve(hinge_sdcd(blocks, 1e-2), tol=1e-5, max_passes=5000)
    assert solution.certificate.primal == pytest.approx(l2_minimum(X, y, 1e-2), rel=1.1e-5)
