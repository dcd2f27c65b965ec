"""The pairwise hinge over the highest-scoring negatives against subsets, programmes of other people, and plain Python."""

from functools import partial

import numpy as np
import pytest
from support.oracle import pairwise_objective
from support.seeds import searched
from support.small_sets import blocks_of, small
from support.top_optima import top_hinge, top_hinge_by_subsets, top_optimum, top_optimum_l1

from aucdist import PairwiseHingeClassifier
from aucdist.solvers.base import solve
from aucdist.solvers.pairs import top_negatives
from aucdist.solvers.pairs.cutting_planes import AllPairs, CuttingPlanes
from aucdist.solvers.pairs.objective import PairObjective
from aucdist.solvers.pairs.top_negatives import (
    MeanHinge,
    Threshold,
    TopNegatives,
    soften,
    threshold_in_blocks,
    threshold_of,
    weigh_bands,
)

N_PROBLEMS = 120


def objective(w, X, y, lam, wanted, weight=None):
    return 0.5 * lam * float(w @ w) + top_hinge(X @ w, y, wanted, weight)


def random_problem(seed):
    """Return rows with ties and weights, either class smaller, a subset and a lam."""
    r = np.random.default_rng(seed)
    n_pos, n_neg = r.integers(1, 8, 2)
    d = int(r.integers(1, 4))
    X = r.normal(size=(n_pos + n_neg, d)) if r.random() < 0.5 else 1.0 * r.integers(-2, 3, (n_pos + n_neg, d))
    y = np.repeat([1, -1], [n_pos, n_neg])
    X[y > 0] += r.random()
    weight = 1.0 * r.integers(1, 4, len(y)) if r.random() < 0.5 else np.ones(len(y))
    return X, y, weight, TopNegatives(float(r.choice([0.1, 0.3, 0.5, 1.0]))), 10.0 ** r.uniform(-2, 0)


@pytest.mark.parametrize("part", searched(range(3), quick=1))
def test_random_problems_against_a_quadratic_programme(part):
    for seed in range(part, N_PROBLEMS, 3):
        X, y, weight, subset, lam = random_problem(seed)
        wanted = subset.max_fpr * weight[y < 0].sum()
        best = top_optimum(X, y, lam, wanted, weight)
        blocks = blocks_of(X, y, 1 + seed % 2, weight)
        found = solve(AllPairs().rounds(blocks, lam, max_fpr=subset.max_fpr), tol=1e-8, max_passes=1000)
        c = found.certificate
        assert c.primal == pytest.approx(objective(found.w, X, y, lam, wanted, weight), rel=1e-10)
        assert c.primal == pytest.approx(best, rel=1e-6, abs=5e-8), seed
        assert c.dual <= best * (1 + 1e-7) + 5e-8, seed


@pytest.mark.parametrize("seed", searched(range(25), quick=10))
def test_l1_against_a_linear_programme(seed):
    X, y, weight, subset, lam = random_problem(seed)
    best = top_optimum_l1(X, y, lam, subset.max_fpr * weight[y < 0].sum(), weight)
    c = solve(
        AllPairs().rounds(blocks_of(X, y, weight=weight), lam, penalty="l1", max_fpr=subset.max_fpr),
        tol=1e-6,
        max_passes=1000,
    ).certificate
    assert c.dual <= best * (1 + 1e-9)
    assert c.primal == pytest.approx(best, rel=2e-6)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("n_neg", [4, 9])  # the larger class, and the smaller one
def test_value_is_the_largest_over_subsets(seed, n_neg):
    r = np.random.default_rng(seed)
    X, y = 1.0 * r.integers(-2, 3, (n_neg + 6, 2)), np.repeat([-1, 1], [n_neg, 6])
    w, k = r.normal(size=2), int(r.integers(1, n_neg))
    first = next(AllPairs().rounds(blocks_of(X, y, 2), 0.1, w, max_false_positives=k))
    assert first.primal == pytest.approx(0.05 * w @ w + top_hinge_by_subsets(X @ w, y, k), rel=1e-12)


def test_whole_share_is_all_pairs():
    X, y = small(12, 50)
    one = solve(AllPairs().rounds(blocks_of(X, y), 1e-2, max_fpr=1.0), tol=1e-7, max_passes=500)
    other = solve(AllPairs().rounds(blocks_of(X, y), 1e-2), tol=1e-7, max_passes=500)
    np.testing.assert_allclose(one.w, other.w, rtol=1e-3)
    assert one.certificate.primal == pytest.approx(pairwise_objective(one.w, X, y, 1e-2), rel=1e-10)


@pytest.mark.nojit
@pytest.mark.parametrize("most", [0, 1, 5, 10**6])
@pytest.mark.parametrize("tied", [False, True])
def test_threshold_in_blocks_is_that_of_all_rows(monkeypatch, most, tied):
    monkeypatch.setattr(top_negatives, "MOST_GATHERED", most)
    r = np.random.default_rng(1)
    X = r.integers(-3, 3, (70, 1)) / 7.0 if tied else r.normal(size=(70, 1))
    y, weight = np.repeat([1, -1], [10, 60]), r.random(70)
    problem = CuttingPlanes(blocks_of(X, y, 3, weight), PairObjective(subset=TopNegatives(0.5)))
    problem.cuts.score(np.array([1.7]))
    scores, weights = 1.7 * X[10:, 0], weight[10:]
    for wanted in (1e-9, 0.3, 5.0, 0.4 * weights.sum(), weights.sum()):
        found = threshold_in_blocks(problem.cuts.blocks, 60, wanted)
        assert found.score == threshold_of(scores, weights, wanted).score
        parts = found.parts(scores)
        assert parts @ weights == pytest.approx(wanted)
        assert ((parts == 0) == (scores < found.score)).all()
        assert (parts[scores > found.score] == 1).all()


def test_rounded_sums_never_lead_beyond_a_row():
    assert threshold_of(np.array([2.0, 1.0]), np.array([0.1, 0.2]), 0.3000001) == Threshold(1.0, 1.0)
    assert threshold_of(np.array([2.0, 1.0]), np.array([0.0, 0.0]), 0.0).fraction == 1.0


def test_more_leaves_than_rows_that_count() -> None:
    # Where a negative counted wholly or not at all, cutting planes used up 1,000 passes at a gap of .005.
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 8))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.7 * rng.standard_normal(3000) > 1
    leaves = {"map": "leaves", "trees": 60, "leaves": 31}
    model = PairwiseHingeClassifier(features=leaves, lam=1e-3, max_fpr=0.01, max_passes=400).fit(X, y)
    assert model.certificate_.status == "converged"


# ---- cuts that count the negatives near the threshold in part: their parts ---------------------


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("width", [1e-3, 0.3, 2.0, 50.0])
def test_the_parts_weigh_what_is_wanted(width, offset):
    r = np.random.default_rng(0)
    scores, weights = offset + r.normal(size=40).round(1), r.uniform(0.5, 2.0, 40)
    hinge = MeanHinge(offset + r.normal(size=9), r.uniform(0.5, 2.0, 9), 0.3)
    soft = soften(threshold_of(scores, weights, 7.5), hinge, 7.5, width, partial(weigh_bands, scores, weights))
    parts = soft.parts(scores)
    assert ((parts >= 0.0) & (parts <= 1.0)).all()
    assert (np.diff(parts[np.argsort(scores)]) >= 0.0).all()
    assert parts @ weights == pytest.approx(7.5, rel=1e-5 if offset else 1e-12)
    values, low, high = hinge(scores), hinge(scores).min() - width, hinge(scores).max()
    for _ in range(100):
        start = 0.5 * (low + high)
        exact = np.clip((values - start) / width, 0.0, 1.0)
        low, high = (start, high) if exact @ weights > 7.5 else (low, start)
    np.testing.assert_allclose(parts, exact, atol=1.0 / 32.0)  # the bands that are tried are half as far apart


def test_no_width_leaves_the_hard_threshold():
    scores, hinge = np.arange(9.0), MeanHinge(np.arange(3.0), np.ones(3), 0.3)
    assert (
        soften(threshold_of(scores, np.ones(9), 3.0), hinge, 3.0, 0.0, partial(weigh_bands, scores, np.ones(9))) is None
    )


@pytest.mark.parametrize("scores", [[1e15, 1e15, 1e15 - 0.125, 1e15 - 0.25], [1e17] * 4])
@pytest.mark.parametrize("positives", [0.0, 1e15])
def test_a_band_within_the_rounding_of_the_scores_counts_the_rows_or_is_none(scores, positives):
    """All rows at the threshold would count nothing, by rounding alone, and the cut would be of no rows."""
    scores, weights, hinge = np.array(scores), np.ones(4), MeanHinge(np.full(2, positives), np.ones(2), 0.3)
    for width in 10.0 ** np.arange(-4, 1):
        soft = soften(threshold_of(scores, weights, 2.0), hinge, 2.0, width, partial(weigh_bands, scores, weights))
        assert soft is None or soft.parts(scores).sum() >= 1.0
