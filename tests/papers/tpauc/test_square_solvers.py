"""What the solvers of the pairwise square have in common, and those that go to the minimum."""

import itertools
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from support.grouped_pairs import mean_loss, square
from support.grouped_problem import some_problems
from support.rounds import rounds_of
from support.small_sets import FORMS, blocks_of
from support.square_twins import problem, square_gradient, square_minimiser, square_value

from aucdist import PairwiseSquareClassifier, lam_path
from aucdist.data.block import Block, into_blocks
from aucdist.data.column_statistics import Moments
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.maps import BinExpander
from aucdist.pairs.groups import pair_groups
from aucdist.papers.tpauc.descent import SVRG, SubspaceDescent, moments_of_pairs
from aucdist.papers.tpauc.exact import Exact
from aucdist.papers.tpauc.moments import PairMoments, class_moments
from aucdist.solvers.base import Status, solve

exact = rounds_of(Exact)
svrg = rounds_of(SVRG)


@pytest.fixture(params=["moments", "passes", "svrg"])
def minimise(request, monkeypatch):
    """A solver that goes to the minimum; `exact` goes by moments, and with many features by passes over the rows."""
    if request.param == "passes":
        monkeypatch.setattr("aucdist.papers.tpauc.exact.MAX_FEATURES", 0)
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


def test_the_moments_are_taken_by_the_first_round():
    # `solve` lets BLAS have one thread, so what comes before it would depend on the number of threads.
    blocks = blocks_of(*problem()[:2])
    blocks.reduce = None
    rounds = Exact().rounds(blocks, 1.0)
    with pytest.raises(TypeError):
        next(rounds)


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
    descent = SubspaceDescent(blocks, moments_of_pairs(blocks), 1e-4, np.zeros(30), n_moves)
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


def test_sparse_rows_give_the_same_weights(minimise):
    X, y, _ = problem(12, 50, 6)
    forms = (sp.csr_matrix(X), X)
    other, dense = (solve(minimise(blocks_of(form, y), 1e-2), tol=1e-13, max_passes=300).w for form in forms)
    np.testing.assert_allclose(other, dense, rtol=1e-6, atol=1e-8)


def test_svrg_ends_where_the_weights_no_longer_change():
    X, y, _ = problem()
    solution = solve(svrg(blocks_of(X, y), 1e-2, seed=0), tol=0.0, max_passes=10_000)
    assert solution.passes < 300


# ---- the pairwise square over pairs within groups and of grades, beside every pair counted by itself ----


def best_square(X, pairs, lam):
    """Return the least of lam/2 |w|^2 + mean square, by least squares over all pairs."""
    first, second, mass = pairs
    root = np.sqrt(mass)
    A = np.vstack([(X[first] - X[second]) * root[:, None], np.sqrt(lam / 2) * np.eye(X.shape[1])])
    b = np.concatenate([root, np.zeros(X.shape[1])])
    w = np.linalg.lstsq(A, b, rcond=None)[0]
    return float(np.sum((A @ w - b) ** 2))


def test_minimum_over_all_pairs_by_themselves():
    for p in some_problems(range(150)):
        solution = solve(Exact().rounds(p.blocks(), p.lam, **p.options), tol=1e-9, max_passes=10)
        c = solution.certificate
        primal = 0.5 * p.lam * solution.w @ solution.w + mean_loss(square, solution.w, p.X, p.pairs)
        best = best_square(p.X, p.pairs, p.lam)
        assert c.primal == pytest.approx(primal, abs=c.rounding, rel=1e-9)
        assert primal <= best * (1 + 1e-8) + c.rounding
        assert c.dual - c.rounding <= best * (1 + 1e-12)


def test_signs_keep_the_bound_true():
    r = np.random.default_rng(1)
    for p in some_problems(range(40)):
        signs = r.integers(-1, 2, p.X.shape[1]).astype(np.int8)
        solution = solve(Exact().rounds(p.blocks(), p.lam, signs=signs, **p.options), tol=1e-6, max_passes=10)
        assert ((solution.w == 0) | (np.sign(solution.w) == signs) | (signs == 0)).all()
        c = solution.certificate
        for _ in range(30):
            w = np.abs(r.normal(size=len(signs))) * np.where(signs == 0, r.choice([-1, 1], len(signs)), signs)
            value = 0.5 * p.lam * w @ w + mean_loss(square, w, p.X, p.pairs)
            assert c.dual - c.rounding <= value


def far_apart(n_groups=30):
    """Groups whose rows lie a million times as far from those of others as from each other."""
    r = np.random.default_rng(2)
    group = r.integers(0, n_groups, 600)
    y = np.where(r.random(600) < 0.4, 1, -1)
    near = r.normal(size=(600, 3)) + 0.8 * (y[:, None] > 0)
    return near, near + 2.0**20 * r.integers(-4, 5, (n_groups, 3))[group], y, group


def test_groups_that_lie_far_apart_lose_no_digits():
    near, far, y, group = far_apart()
    of_near, other = (
        solve(Exact().rounds(LocalBlocks.of(X, y, groups=group, n_blocks=3), 1e-3), tol=1e-6, max_passes=9)
        for X in (near, far)
    )
    np.testing.assert_allclose(of_near.w, other.w, rtol=1e-7)
    assert other.certificate.rounding < 1e-4 * other.certificate.primal


def test_sparse_rows_codes_and_paths():
    near, _, y, group = far_apart()
    dense, sparse = (PairwiseSquareClassifier(lam=1e-2).fit(X, y, groups=group) for X in (near, sp.csr_matrix(near)))
    np.testing.assert_allclose(dense.coef_, sparse.coef_, rtol=1e-9)
    binned = PairwiseSquareClassifier(lam=1e-2, features="bins").fit(near, y, groups=group)
    by_hand = PairwiseSquareClassifier(lam=1e-2).fit(BinExpander().fit(near).transform(near), y, groups=group)
    np.testing.assert_allclose(binned.coef_, by_hand.coef_, rtol=1e-6, atol=1e-9)
    blocks = LocalBlocks.of(near, y, groups=group, n_blocks=2)
    path = lam_path(PairwiseSquareClassifier(), blocks, lams=[1e-2, 1e-1])
    np.testing.assert_allclose(path[0].coef_, dense.coef_, rtol=1e-9)


def test_too_many_features_or_sums(monkeypatch):
    r = np.random.default_rng(3)
    blocks = LocalBlocks.of(r.normal(size=(8, 1001)), np.tile([1, -1], 4), groups=np.repeat([0, 1], 4), n_blocks=1)
    with pytest.raises(InputError, match="1001 x 1001"):
        next(Exact().rounds(blocks, 1.0))
    monkeypatch.setattr("aucdist.papers.tpauc.exact.MAX_SUMS", 3)
    small = LocalBlocks.of(r.normal(size=(8, 2)), np.tile([1, -1], 4), groups=np.repeat([0, 1], 4), n_blocks=1)
    with pytest.raises(InputError, match="2 groups of 2 features"):
        next(Exact().rounds(small, 1.0))
    assert pair_groups(small).n_groups == 2


# ---- pairwise square objective ---------------------------------------------------------------


def classes(blocks, full=True):
    return [sum((class_moments(b, label, full=full) for b in blocks), ZERO) for label in (-1, 1)]


def known(blocks, full=True):
    return PairMoments.of(*classes(blocks, full))


ZERO = Moments(0.0, np.zeros(1), np.zeros(1))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_blocks", [1, 3, 40])
def test_moments_are_those_of_the_rows(form, weighted, n_blocks, monkeypatch):
    monkeypatch.setattr("aucdist.papers.tpauc.moments.CENTRED_AT_ONCE", 20)
    monkeypatch.setattr("aucdist.papers.tpauc.moments.MIN_ROWS", 1)
    X, y, weight = problem(weighted=weighted)
    blocks = into_blocks(Block.of(FORMS[form](X), y, weight=weight if weighted else None), n_blocks)
    for label, k in ((-1, 0), (1, 1)):
        mass, rows = weight[y == label], X[y == label]
        scatter = np.cov(rows.T, aweights=mass, bias=True) * mass.sum()
        for full in (True, False):
            moments = classes(blocks, full)[k]
            assert moments.weight == pytest.approx(mass.sum())
            np.testing.assert_allclose(moments.mean, mass @ rows / mass.sum(), rtol=1e-13)
            np.testing.assert_allclose(moments.scatter, scatter if full else np.diag(scatter), rtol=1e-12, atol=1e-13)


def test_moments_far_from_zero_keep_their_digits():
    X, y, _ = problem()
    near, far = known([Block.of(X, y)]), known(into_blocks(Block.of(X + 1e7, y), 3))
    np.testing.assert_allclose(far.covariance, near.covariance, rtol=1e-7, atol=1e-8)
