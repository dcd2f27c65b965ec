"""The pairwise hinge over the highest-scoring negatives against subsets, programmes of other people, and plain Python."""

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.oracle import pairwise_objective
from support.seeds import searched
from support.small_sets import blocks_of, small
from support.top_optima import top_hinge, top_hinge_by_subsets, top_optimum, top_optimum_l1

from aucdist import PairwiseHingeClassifier
from aucdist.engine.blocks import LocalBlocks
from aucdist.pairs import top_negatives
from aucdist.pairs.cutting_planes import NARROWING, SHARE_OF_GAP, AllPairs, CuttingPlanes
from aucdist.pairs.newton import MIN_HALF_WIDTH, Pairs
from aucdist.pairs.problem import PairObjective
from aucdist.pairs.top_negatives import (
    Cutoff,
    MeanHinge,
    TopNegatives,
    cutoff_in_blocks,
    cutoff_of,
    smooth_cutoff,
    weigh_bands,
)
from aucdist.solvers.base import Round, Status, solve

N_PROBLEMS = 120


def objective(w, X, y, lam, top_weight, weight=None):
    return 0.5 * lam * float(w @ w) + top_hinge(X @ w, y, top_weight, weight)


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


@pytest.mark.parametrize("part", searched(range(6), quick=1))
def test_random_problems_against_a_quadratic_programme(part):
    for seed in range(part, N_PROBLEMS, 6):
        X, y, weight, subset, lam = random_problem(seed)
        top_weight = subset.max_fpr * weight[y < 0].sum()
        best = top_optimum(X, y, lam, top_weight, weight)
        blocks = blocks_of(X, y, 1 + seed % 2, weight)
        solution = solve(AllPairs().rounds(blocks, lam, max_fpr=subset.max_fpr), tol=1e-8, max_passes=1000)
        c = solution.certificate
        assert c.primal == pytest.approx(objective(solution.w, X, y, lam, top_weight, weight), rel=1e-10)
        assert c.primal == pytest.approx(best, rel=1e-6, abs=5e-8), seed
        assert c.dual <= best * (1 + 1e-7) + 5e-8, seed


@pytest.mark.parametrize("seed", searched(range(25), quick=5))
def test_l1_against_a_linear_programme(seed):
    X, y, weight, subset, lam = random_problem(seed)
    best = top_optimum_l1(X, y, lam, subset.max_fpr * weight[y < 0].sum(), weight)
    rounds = AllPairs().rounds(blocks_of(X, y, weight=weight), lam, penalty="l1", max_fpr=subset.max_fpr)
    c = solve(rounds, tol=1e-6, max_passes=1000).certificate
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
    top = solve(AllPairs().rounds(blocks_of(X, y), 1e-2, max_fpr=1.0), tol=1e-7, max_passes=500)
    other = solve(AllPairs().rounds(blocks_of(X, y), 1e-2), tol=1e-7, max_passes=500)
    np.testing.assert_allclose(top.w, other.w, rtol=1e-3)
    assert top.certificate.primal == pytest.approx(pairwise_objective(top.w, X, y, 1e-2), rel=1e-10)


@pytest.mark.nojit
@pytest.mark.parametrize("most", [0, 1, 5, 10**6])
@pytest.mark.parametrize("tied", [False, True])
def test_cutoff_in_blocks_is_that_of_all_rows(monkeypatch, most, tied):
    monkeypatch.setattr(top_negatives, "MAX_GATHERED", most)
    r = np.random.default_rng(1)
    X = r.integers(-3, 3, (70, 1)) / 7.0 if tied else r.normal(size=(70, 1))
    y, weight = np.repeat([1, -1], [10, 60]), r.random(70)
    problem = CuttingPlanes(blocks_of(X, y, 3, weight), PairObjective(top_negatives=TopNegatives(0.5)))
    problem.cuts.score(np.array([1.7]))
    scores, weights = 1.7 * X[10:, 0], weight[10:]
    for top_weight in (1e-9, 0.3, 5.0, 0.4 * weights.sum(), weights.sum()):
        cutoff = cutoff_in_blocks(problem.cuts.blocks, 60, top_weight)
        assert cutoff.score == cutoff_of(scores, weights, top_weight).score
        fractions = cutoff.fractions(scores)
        assert fractions @ weights == pytest.approx(top_weight)
        assert ((fractions == 0) == (scores < cutoff.score)).all()
        assert (fractions[scores > cutoff.score] == 1).all()


def test_rounded_sums_never_lead_beyond_a_row():
    assert cutoff_of(np.array([2.0, 1.0]), np.array([0.1, 0.2]), 0.3000001) == Cutoff(1.0, 1.0)
    assert cutoff_of(np.array([2.0, 1.0]), np.array([0.0, 0.0]), 0.0).fraction == 1.0


def test_more_leaves_than_rows_that_count() -> None:
    # Where a negative counted wholly or not at all, cutting planes used up 1,000 passes at a gap of .005.
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 8))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.7 * rng.standard_normal(3000) > 1
    leaves = {"map": "leaves", "trees": 60, "leaves": 31}
    model = PairwiseHingeClassifier(features=leaves, lam=1e-3, max_fpr=0.01, max_passes=400).fit(X, y)
    assert model.certificate_.status == "converged"


# ---- cuts that count the negatives near the cutoff in part: their fractions ---------------------


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("width", [1e-3, 0.3, 2.0, 50.0])
def test_the_fractions_weigh_what_is_wanted(width, offset):
    r = np.random.default_rng(0)
    scores, weights = offset + r.normal(size=40).round(1), r.uniform(0.5, 2.0, 40)
    hinge = MeanHinge(offset + r.normal(size=9), r.uniform(0.5, 2.0, 9), 0.3)
    smoothed = smooth_cutoff(cutoff_of(scores, weights, 7.5), hinge, 7.5, width, partial(weigh_bands, scores, weights))
    fractions = smoothed.fractions(scores)
    assert ((fractions >= 0.0) & (fractions <= 1.0)).all()
    assert (np.diff(fractions[np.argsort(scores)]) >= 0.0).all()
    assert fractions @ weights == pytest.approx(7.5, rel=1e-5 if offset else 1e-12)
    values, low, high = hinge(scores), hinge(scores).min() - width, hinge(scores).max()
    for _ in range(100):
        start = 0.5 * (low + high)
        exact = np.clip((values - start) / width, 0.0, 1.0)
        low, high = (start, high) if exact @ weights > 7.5 else (low, start)
    np.testing.assert_allclose(fractions, exact, atol=1.0 / 32.0)  # the bands that are tried are half as far apart


def test_no_width_leaves_the_hard_cutoff():
    scores, hinge = np.arange(9.0), MeanHinge(np.arange(3.0), np.ones(3), 0.3)
    exact, weigh = cutoff_of(scores, np.ones(9), 3.0), partial(weigh_bands, scores, np.ones(9))
    assert smooth_cutoff(exact, hinge, 3.0, 0.0, weigh) is None


@pytest.mark.parametrize("scores", [[1e15, 1e15, 1e15 - 0.125, 1e15 - 0.25], [1e17] * 4])
@pytest.mark.parametrize("positives", [0.0, 1e15])
def test_a_band_within_the_rounding_of_the_scores_counts_the_rows_or_is_none(scores, positives):
    """All rows at the cutoff would count nothing, by rounding alone, and the cut would be of no rows."""
    scores, weights, hinge = np.array(scores), np.ones(4), MeanHinge(np.full(2, positives), np.ones(2), 0.3)
    for width in 10.0 ** np.arange(-4, 1):
        smoothed = smooth_cutoff(
            cutoff_of(scores, weights, 2.0), hinge, 2.0, width, partial(weigh_bands, scores, weights)
        )
        assert smoothed is None or smoothed.fractions(scores).sum() >= 1.0


# ---- smoothed cutoffs of the highest-scoring negatives: the mean hinge, the fractions, and what Newton steps know of the ----


SCALES = st.sampled_from([1e-6, 1.0, 1e3, 1e8, 1e15])


@st.composite
def classes(draw):
    """Return scores and weights of positives and negatives: with ties, all equal, one row, weights of 0, huge numbers."""
    sides = []
    for _ in range(2):
        n, scale = draw(st.integers(1, 12)), draw(SCALES)
        places = st.integers(-3, 3) if draw(st.booleans()) else st.floats(-3.0, 3.0)
        scores = scale * np.array(draw(st.lists(places, min_size=n, max_size=n)), dtype=float)
        scores = np.full(n, scores[0]) if draw(st.integers(0, 5)) == 0 else scores
        weights = draw(st.lists(st.sampled_from([0.0, 1.0, 1.0, 2.5, 1e6]), min_size=n, max_size=n))
        sides.append((scores, np.array(weights)))
    return sides, draw(st.sampled_from([1e-9, 1e-3, 0.3, 2.0]))


def smoothed_hinge(t, h):
    return 0.0 if t <= -h else t if t >= h else (t + h) ** 2 / (4.0 * h)


def mean_over(positives, values):
    _, weights = positives
    return sum(w * v for w, v in zip(weights, values, strict=True)) / (weights.sum() or 1.0)


@given(classes())
@settings(deadline=None)
def test_the_mean_hinge_and_its_slopes_are_those_of_single_pairs(drawn):
    (positives, (negatives, _)), h = drawn
    hinge = MeanHinge(*positives, h)
    changes = np.cos(np.arange(len(positives[0])))
    # Running sums are rounded by the largest scores; within the band of a small h, their differences are divided by it.
    error = 1e-13 * (1.0 + np.abs(positives[0]).max() + np.abs(negatives).max())
    of_slopes = min(1.0, 1e-13 + error / h)
    at, slopes = hinge(negatives), hinge.derivative(negatives, 1.0, 0.0 * changes)
    moved = -hinge.derivative(negatives, 0.0, changes)
    for j, score in enumerate(negatives):
        t = 1.0 + score - positives[0]
        # A pair at an end of the band may fall on either side, by rounding: the limits of its slope.
        ends = [np.clip((t + e + h) / (2.0 * h), 0.0, 1.0) for e in (-error, error)]
        margin = h + error if h < 1e-6 else 2.0 * h * of_slopes + 10 * error
        value = mean_over(positives, [smoothed_hinge(s, h) for s in t])
        assert at[j] == pytest.approx(value, rel=1e-9, abs=margin)
        assert mean_over(positives, ends[0]) - of_slopes <= slopes[j] <= mean_over(positives, ends[1]) + of_slopes
        expected = mean_over(positives, changes * ends[0])
        spread = mean_over(positives, ends[1] - ends[0])
        assert moved[j] == pytest.approx(expected, abs=spread + of_slopes)


@given(classes(), st.floats(0.01, 1.0), st.sampled_from([1e-6, 1e-2, 0.5, 2.0, 100.0]))
@settings(deadline=None)
def test_the_fractions_are_those_of_a_dual_point_whatever_the_scores(drawn, share, width):
    (positives, (scores, weights)), h = drawn
    target = share * weights.sum()
    if target == 0.0:
        return
    exact = cutoff_of(scores, weights, target)
    smoothed = smooth_cutoff(exact, MeanHinge(*positives, h), target, width, partial(weigh_bands, scores, weights))
    fractions = (smoothed or exact).fractions(scores)
    assert ((fractions >= 0.0) & (fractions <= 1.0)).all()
    assert (np.diff(fractions[np.argsort(scores, kind="stable")]) >= 0.0).all()
    assert 0.5 * target <= fractions @ weights
    if max(np.abs(scores).max(), np.abs(positives[0]).max()) <= 10.0:
        assert fractions @ weights == pytest.approx(target, rel=1e-6)


# ---- what Newton steps know of the cutoff ----


def smoothed_gradient(X, y, weight, w, h, share, width):
    """Return the gradient of the mean of the smoothed hinge over the negatives as they count, by single pairs."""
    positives, negatives = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    means = np.array(
        [
            mean_over((positives, weight[positives]), [smoothed_hinge(1.0 - w @ (X[i] - X[j]), h) for i in positives])
            for j in negatives
        ]
    )
    target, low, high = share * weight[negatives].sum(), means.min() - width, means.max()
    for _ in range(200):  # bisection: where the fractions weigh the target
        start = 0.5 * (low + high)
        fractions = np.clip((means - start) / width, 0.0, 1.0)
        low, high = (start, high) if fractions @ weight[negatives] > target else (low, start)
    gradient = np.zeros(len(w))
    for j, part in zip(negatives, fractions, strict=True):
        for i in positives:
            active = np.clip((1.0 - w @ (X[i] - X[j]) + h) / (2.0 * h), 0.0, 1.0)
            gradient -= part * weight[j] * weight[i] * active * (X[i] - X[j]) / (target * weight[positives].sum())
    return gradient


def at_a_point(X, y, weight, w, h, width, n_blocks=1):
    """Return the solver at w, and its drawn rows there, which are all."""
    planes = CuttingPlanes(blocks_of(X, y, n_blocks, weight), PairObjective(top_negatives=TopNegatives(0.4)), w)
    planes.cuts.pair_half_width, planes.cuts.cutoff_width = h, width
    planes.accept(planes.cuts.cut(0.0, w, planes.gap_left), move_anyway=True)
    return planes, planes.samples.for_band(h, anew=False)[0]


def drawn_problem(classes, all_active):
    """Return rows, weights, a point and a half-width: all pairs are active there, or most of them are so in part."""
    X, y = small(*classes, d=3, shift=0.1)
    w = np.array([0.02, -0.03, 0.05]) if all_active else np.array([0.2, -0.15, 0.25])
    return X, y, np.random.default_rng(2).uniform(0.5, 2.0, len(y)), w, 0.3 if all_active else 1.5


@pytest.mark.parametrize("classes", [(6, 40), (40, 6)])  # the negatives are the larger class, and the anchors
def test_gradient_change_is_the_difference_of_the_gradients(classes):
    X, y, weight, w, h = drawn_problem(classes, all_active=True)
    before, after = 0.4, 0.36
    _, sample = at_a_point(X, y, weight, w, h, before)
    expected = smoothed_gradient(X, y, weight, w, h, 0.4, after) - smoothed_gradient(X, y, weight, w, h, 0.4, before)
    np.testing.assert_allclose(Pairs(sample, h, after).gradient_change(), expected, rtol=1e-3, atol=1e-6)
    assert not Pairs(sample, h, before).gradient_change().any()
    assert not Pairs(sample, h, 0.0).gradient_change().any()


@pytest.mark.parametrize("all_active", [True, False])
@pytest.mark.parametrize("classes", [(6, 40), (40, 6)])
def test_the_second_derivative_is_that_of_the_smoothed_mean(classes, all_active):
    X, y, weight, w, h = drawn_problem(classes, all_active)
    width = 0.35  # no part is so near 0 or 1 that only one of the two bands is there
    _, sample = at_a_point(X, y, weight, w, h, width)
    pairs, step = Pairs(sample, h, width), 1e-6

    def slope(v):
        return smoothed_gradient(X, y, weight, v, h, 0.4, width)

    H = np.array([(slope(w + e) - slope(w - e)) / (2.0 * step) for e in step * np.eye(3)])
    np.testing.assert_allclose(pairs.matrix(), H, rtol=2e-3, atol=1e-4)
    np.testing.assert_allclose(pairs.product(w), pairs.matrix() @ w, rtol=1e-9, atol=1e-12)
    along = sample.slope_along(w, h, width)
    for t in (0.0, 0.5):
        assert along(t) == pytest.approx(slope(w + t * w) @ w, rel=1e-3)


def test_each_band_narrows_by_its_own_part_of_the_gap():
    X, y = small(6, 40)
    planes = at_a_point(X, y, None, np.full(4, 0.3), 0.3, 0.4)[0]
    planes.gap = 0.1
    allowed = SHARE_OF_GAP * 0.1 * planes.value_at(planes.best)
    for pairs, cutoff, h, width in [
        (0.5 * allowed, 2.0 * allowed, 0.3, 0.2),
        (4.0 * allowed, 0.5 * allowed, 0.075, 0.4),
        (1e9 * allowed, 0.0, 0.3 * NARROWING, 0.4),
    ]:
        planes.cuts.pair_half_width, planes.cuts.cutoff_width = 0.3, 0.4
        planes.smoothing_gap, planes.cutoff_gap = pairs + cutoff, cutoff
        planes._narrow_band()
        assert (planes.cuts.pair_half_width, planes.cuts.cutoff_width) == (pytest.approx(h), pytest.approx(width))
    planes.cuts.pair_half_width, planes.cuts.cutoff_width, planes.cutoff_gap = 0.0, MIN_HALF_WIDTH, 1.0
    planes._narrow_band()
    assert (planes.cuts.pair_half_width, planes.cuts.cutoff_width) == (0.0, MIN_HALF_WIDTH)


def test_what_smoothing_adds_is_told_apart():
    X, y = small(6, 40)
    w = np.full(4, 0.3)
    whole, pairs, cutoff = (at_a_point(X, y, None, w, *widths)[0] for widths in ((0.3, 0.4), (0.3, 0.0), (0.0, 0.4)))
    assert pairs.cutoff_gap == pytest.approx(0.0, abs=1e-12)
    assert pairs.smoothing_gap > 1e-4
    assert cutoff.smoothing_gap == pytest.approx(cutoff.cutoff_gap) != 0.0
    assert 1e-4 < whole.cutoff_gap < whole.smoothing_gap


# ---- rounds, with fractions of negatives in every cut ----


@pytest.mark.parametrize("gathered", [10**6, 7])  # 7: cutoffs by reductions, and a part of the positives
@pytest.mark.parametrize("classes", [(5, 24), (24, 5)])  # the negatives are the larger class, and the anchors
@pytest.mark.parametrize("seed", range(2))
def test_every_round_in_blocks_is_certified(classes, seed, gathered, monkeypatch):
    monkeypatch.setattr(top_negatives, "MAX_GATHERED", gathered)
    X, y = small(*classes, seed=seed, shift=0.2)
    X = X if seed else np.round(X)  # ties
    weight = np.random.default_rng(seed).integers(1, 4, len(y)) / 2.0
    target, lam = 0.3 * weight[y < 0].sum(), 1e-2
    best = top_optimum(X, y, lam, target, weight)
    bounds = []
    for state in itertools.islice(AllPairs().rounds(blocks_of(X, y, 3, weight), lam, max_fpr=0.3), 60):
        assert state.primal == pytest.approx(
            0.5 * lam * state.w @ state.w + top_hinge(X @ state.w, y, target, weight), rel=1e-10
        )
        assert state.dual <= best * (1 + 1e-7) + 5e-8
        bounds.append(state.dual)
    assert np.diff(bounds).min() >= -1e-12  # the higher one after its rounding is taken off
    assert state.primal - state.dual <= 1e-4 * state.primal


@pytest.mark.parametrize(
    ("positives", "negatives", "h", "width", "target"),
    [
        ([-0.9, -234647406492952.1], [0.1, 0.1], 1e-8, 1.2707794441227288e-10, 0.02),
        ([-2.0, -2.311890742855406e17], [-1.0, -1.0, -1.0025, -1.0025, -1.005, -1.01], 1e-8, 1.734374080250999e-8, 1.0),
    ],
)
def test_a_band_narrower_than_the_rounding_of_the_mean_hinge_is_no_band(positives, negatives, h, width, target):
    """A positive at -1e15 makes the mean hinge so large that it does not rise over the band, which then had no scores."""
    scores, weights = np.array(negatives), np.ones(len(negatives))
    hinge, exact = MeanHinge(np.array(positives), np.ones(len(positives)), h), cutoff_of(scores, weights, target)
    assert smooth_cutoff(exact, hinge, target, width, partial(weigh_bands, scores, weights)) is None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scale", [1e13, 1e15, 1e17])
def test_the_highest_scoring_negatives_of_huge_values_are_fitted_within_the_bound(scale):
    r = np.random.default_rng(0)
    X = np.where(r.random((90, 2)) < 0.1, scale, 1.0) * r.normal(size=(90, 2))
    y = np.where(r.random(90) < 0.3, 1, -1)
    model = PairwiseHingeClassifier(max_fpr=0.2, max_passes=60).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.certificate_.dual <= model.certificate_.primal


def test_weights_of_0_end_a_fit_only_if_hardly_any_others_can_be_better():
    r = np.random.default_rng(3)
    X, y = r.standard_normal((400, 3)), np.repeat([1, -1], [80, 320])
    rounds = list(itertools.islice(AllPairs().rounds(LocalBlocks.of(X, y, n_blocks=1), 1e-3, max_fpr=0.05), 40))
    at_zero = [(state.unsettled, state.relative_gap > 1e-4) for state in rounds if not state.w.any()]
    assert {True, False} == {unsettled for unsettled, _ in at_zero}
    assert all(unsettled == is_far for unsettled, is_far in at_zero)
    assert not any(state.unsettled for state in rounds if state.w.any())


def test_an_unsettled_round_ends_a_fit_only_with_its_last_pass():
    rounds = [Round(np.full(1, w), 1.0, 0.9999, n, unsettled=w == 0.0) for n, w in enumerate([0.0, 0.0, 0.5], start=1)]
    assert solve(iter(rounds), tol=1e-3, max_passes=9).w == 0.5
    early = solve(iter(rounds), tol=1e-3, max_passes=2)
    assert (early.passes, early.certificate.status) == (2, Status.CONVERGED)
