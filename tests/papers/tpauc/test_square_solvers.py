"""What the solvers of the pairwise square have in common, and those that go to the minimum."""

import itertools
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from support.rounds import rounds_of
from support.small_sets import blocks_of
from support.square_twins import problem, square_gradient, square_minimiser, square_value

from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks
from aucdist.papers.tpauc.descent import SVRG, SubspaceDescent, moments_of
from aucdist.papers.tpauc.exact import Exact
from aucdist.solvers.base import Status, solve

exact = rounds_of(Exact)
svrg = rounds_of(SVRG)


@pytest.fixture(params=["moments", "passes", "svrg"])
def minimise(request, monkeypatch):
    """A solver that goes to the minimum; `exact` goes by moments, and with many features by passes over the rows."""
    if request.param == "passes":
        monkeypatch.setattr("aucdist.papers.tpauc.exact.MOST_FEATURES", 0)
    return partial(svrg, seed=2) if request.param == "svrg" else exact


CASES = {
    "few positives": problem(8, 60)[:2],
    "one of each": problem(1, 1)[:2],
    "one positive": problem(1, 9)[:2],
    "one negative": problem(9, 1)[:2],
    "ties and duplicates": (np.array([[0.0], [0.0], [1.0], [1.0], [2.0], [2.0]]), np.array([1, -1, 1, -1, 1, -1])),
    "the same row everywhere": (np.ones((6, 2)), np.array([1, -1, -1, 1, -1, -1])),
    "a constant feature": (np.column_stack([problem()[0], np.full(32, 5.0)]), problem()[1]),
    "more features than rows": problem(5, 7, 20)[:2],
}


@pytest.mark.parametrize(("case", "lam"), [*zip(CASES, [1e-2, 1.0] * 4, strict=True)])
def test_every_round_is_certified_by_all_pairs(case, lam, minimise):
    X, y = CASES[case]
    ones = np.ones(len(y))
    best = square_minimiser(X, y, lam, ones)
    lowest = square_value(best, X, y, lam, ones)
    rounds = minimise(blocks_of(X, y), lam)
    seen = []
    solution = solve(rounds, tol=1e-9, max_passes=400, callback=seen.append)
    assert solution.certificate.status is Status.CONVERGED
    assert solution.certificate.primal == pytest.approx(square_value(solution.w, X, y, lam, ones), rel=1e-12)
    np.testing.assert_allclose(solution.w, best, atol=2e-5)
    assert all(record["dual"] <= lowest * (1 + 1e-12) for record in seen)
    assert (np.diff([record["primal"] for record in seen]) <= 1e-12).all()


@pytest.mark.parametrize("minimise", ["passes"], indirect=True)
def test_conjugate_gradients_end_after_as_many_steps_as_features(minimise):
    X, y, _ = problem(20, 40, 6)
    solution = solve(minimise(blocks_of(X, y), 1e-3), tol=1e-11, max_passes=400)
    assert solution.certificate.status is Status.CONVERGED
    assert solution.passes <= 2 + 6


@pytest.mark.parametrize("n_moves", [1, 10])
def test_what_is_kept_of_the_scores_does_not_drift(n_moves):
    """Value and gradient come from scores that moved along with the weights: after many rounds as good as new ones."""
    X, y, weight = problem(60, 540, 30, shift=0.2, weighted=True)
    X = X * np.logspace(0, 3, 30)
    blocks = blocks_of(X, y, 5, weight)
    descent = SubspaceDescent(blocks, moments_of(blocks), 1e-4, np.zeros(30), n_moves)
    rounds = list(itertools.islice(descent.rounds(lambda g: g, passes=0, per_round=1), 80))
    assert rounds[-1].primal < 0.9 * rounds[0].primal
    assert descent.primal == pytest.approx(square_value(descent.w, X, y, 1e-4, weight), rel=1e-12)
    np.testing.assert_allclose(descent.gradient, square_gradient(descent.w, X, y, 1e-4, weight), atol=1e-9)


@pytest.mark.parametrize("n_blocks", [7, 60])
def test_many_blocks_same_optimum(n_blocks, minimise):
    X, y, weight = problem(30, 270, 8, weighted=True)
    solution = solve(minimise(blocks_of(X, y, n_blocks, weight), 1e-2), tol=1e-11, max_passes=400)
    assert solution.certificate.status is Status.CONVERGED
    np.testing.assert_allclose(solution.w, square_minimiser(X, y, 1e-2, weight), atol=1e-6)


def test_svrg_with_blocks_of_one_class_empty_blocks_and_a_feature_in_one_block_only():
    X, y, _ = problem(40, 160, 5)
    X = np.column_stack([X, np.arange(200) < 3])
    parts = [np.flatnonzero(y > 0), np.arange(0), np.flatnonzero(y < 0)]
    blocks = LocalBlocks([Block.of(X, y).take(part, index=i) for i, part in enumerate(parts)])
    solution = solve(svrg(blocks, 1e-2, seed=0), tol=1e-12, max_passes=400)
    np.testing.assert_allclose(solution.w, square_minimiser(X, y, 1e-2, np.ones(200)), atol=1e-6)


def test_sparse_and_float32_are_dense(minimise):
    X, y, _ = problem(12, 50, 6)
    forms = (sp.csr_matrix(X.astype(np.float32)), X)
    other, dense = (solve(minimise(blocks_of(form, y), 1e-2), tol=1e-13, max_passes=300).w for form in forms)
    np.testing.assert_allclose(other, dense, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("minimise", ["passes", "svrg"], indirect=True)
def test_start_is_used(minimise):
    X, y, _ = problem()
    best = square_minimiser(X, y, 1e-2, np.ones(len(y)))
    first = next(minimise(blocks_of(X, y), 1e-2, best))
    np.testing.assert_array_equal(first.w, best)
    assert first.primal - first.dual < 1e-15


def test_svrg_ends_where_the_weights_no_longer_change():
    X, y, _ = problem()
    solution = solve(svrg(blocks_of(X, y), 1e-2, seed=0), tol=0.0, max_passes=10_000)
    assert solution.passes < 300
