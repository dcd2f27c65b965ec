"""Soft thresholds of the highest-scoring negatives: the mean hinge, the parts, and what Newton steps know of them."""

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.small_sets import blocks_of, small
from support.top_optima import top_hinge, top_optimum

from aucdist.solvers.pairs import top_negatives
from aucdist.solvers.pairs.cutting_planes import NARROWING, SHARE_OF_GAP, AllPairs, CuttingPlanes
from aucdist.solvers.pairs.newton import NARROWEST
from aucdist.solvers.pairs.objective import PairObjective
from aucdist.solvers.pairs.top_negatives import MeanHinge, TopNegatives, soften, threshold_of, weigh_bands

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
        assert at[j] == pytest.approx(
            mean_over(positives, [smoothed_hinge(s, h) for s in t]),
            rel=1e-9,
            abs=h + error if h < 1e-6 else 2.0 * h * of_slopes + 10 * error,
        )
        assert mean_over(positives, ends[0]) - of_slopes <= slopes[j] <= mean_over(positives, ends[1]) + of_slopes
        expected = mean_over(positives, changes * ends[0])
        spread = mean_over(positives, ends[1] - ends[0])
        assert moved[j] == pytest.approx(expected, abs=spread + of_slopes)


@given(classes(), st.floats(0.01, 1.0), st.sampled_from([1e-6, 1e-2, 0.5, 2.0, 100.0]))
@settings(deadline=None)
def test_the_parts_are_those_of_a_dual_point_whatever_the_scores(drawn, share, width):
    (positives, (scores, weights)), h = drawn
    target = share * weights.sum()
    if target == 0.0:
        return
    hard = threshold_of(scores, weights, target)
    soft = soften(hard, MeanHinge(*positives, h), target, width, partial(weigh_bands, scores, weights))
    parts = (soft or hard).parts(scores)
    assert ((parts >= 0.0) & (parts <= 1.0)).all()
    assert (np.diff(parts[np.argsort(scores, kind="stable")]) >= 0.0).all()
    assert 0.5 * target <= parts @ weights
    if max(np.abs(scores).max(), np.abs(positives[0]).max()) <= 10.0:
        assert parts @ weights == pytest.approx(target, rel=1e-6)


# ---- what Newton steps know of the threshold ----


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
    for _ in range(200):  # bisection: where the parts weigh the target
        start = 0.5 * (low + high)
        parts = np.clip((means - start) / width, 0.0, 1.0)
        low, high = (start, high) if parts @ weight[negatives] > target else (low, start)
    gradient = np.zeros(len(w))
    for j, part in zip(negatives, parts, strict=True):
        for i in positives:
            active = np.clip((1.0 - w @ (X[i] - X[j]) + h) / (2.0 * h), 0.0, 1.0)
            gradient -= part * weight[j] * weight[i] * active * (X[i] - X[j]) / (target * weight[positives].sum())
    return gradient


def at_a_point(X, y, weight, w, h, width, n_blocks=1):
    """Return the solver at w, and its drawn rows there, which are all."""
    planes = CuttingPlanes(blocks_of(X, y, n_blocks, weight), PairObjective(subset=TopNegatives(0.4)), w)
    planes._half_width, planes._width = h, width
    planes.add_cut(0.0, planes.here.w, follow=True)
    return planes, planes.sample.at(planes.here.w, planes.scores, h, planes.cut, anew=False)[0]


def drawn_problem(classes, alike):
    """Return rows, weights and a point where what Newton steps know is exact.

    There either all pairs are active, or all positives have the same features and their pairs are active in part.
    """
    X, y = small(*classes, d=3, shift=0.1)
    if alike:
        X[y > 0] = [0.2, -0.1, 0.3]
    w = np.array([0.4, -0.3, 0.5]) if alike else np.array([0.02, -0.03, 0.05])
    return X, y, np.random.default_rng(2).uniform(0.5, 2.0, len(y)), w, 1.5 if alike else 0.3


@pytest.mark.parametrize("classes", [(6, 40), (40, 6)])  # the negatives are the larger class, and the anchors
def test_ahead_is_the_difference_of_the_gradients(classes):
    X, y, weight, w, h = drawn_problem(classes, alike=False)  # all pairs are active
    before, after = 0.4, 0.36
    _, sample = at_a_point(X, y, weight, w, h, before)
    expected = smoothed_gradient(X, y, weight, w, h, 0.4, after) - smoothed_gradient(X, y, weight, w, h, 0.4, before)
    np.testing.assert_allclose(sample.pairs(h, after).ahead(), expected, rtol=1e-3, atol=1e-6)
    assert not sample.pairs(h, before).ahead().any()
    assert not sample.pairs(h, 0.0).ahead().any()


@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("classes", [(6, 40), (40, 6)])
def test_the_second_derivative_is_that_of_the_smoothed_mean(classes, alike):
    X, y, weight, w, h = drawn_problem(classes, alike)
    width = 0.35  # no part is so near 0 or 1 that only one of the two bands is there
    _, sample = at_a_point(X, y, weight, w, h, width)
    pairs, step = sample.pairs(h, width), 1e-6

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
    allowed = SHARE_OF_GAP * 0.1 * planes.objective(planes.best)
    for pairs, threshold, h, width in [
        (0.5 * allowed, 2.0 * allowed, 0.3, 0.2),
        (4.0 * allowed, 0.5 * allowed, 0.075, 0.4),
        (1e9 * allowed, 0.0, 0.3 * NARROWING, 0.4),
    ]:
        planes._half_width, planes._width = 0.3, 0.4
        planes.smoothing_gap, planes.threshold_gap = pairs + threshold, threshold
        planes._narrow_band()
        assert (planes._half_width, planes._width) == (pytest.approx(h), pytest.approx(width))
    planes._half_width, planes._width, planes.threshold_gap = 0.0, NARROWEST, 1.0
    planes._narrow_band()
    assert (planes._half_width, planes._width) == (0.0, NARROWEST)


def test_what_smoothing_adds_is_told_apart():
    X, y = small(6, 40)
    w = np.full(4, 0.3)
    whole, pairs, threshold = (at_a_point(X, y, None, w, *widths)[0] for widths in ((0.3, 0.4), (0.3, 0.0), (0.0, 0.4)))
    assert pairs.threshold_gap == pytest.approx(0.0, abs=1e-12)
    assert pairs.smoothing_gap > 1e-4
    assert threshold.smoothing_gap == pytest.approx(threshold.threshold_gap) != 0.0
    assert 1e-4 < whole.threshold_gap < whole.smoothing_gap


# ---- rounds, with parts of negatives in every cut ----


@pytest.mark.parametrize("gathered", [10**6, 7])  # 7: thresholds by reductions, and a part of the positives
@pytest.mark.parametrize("classes", [(5, 24), (24, 5)])  # the negatives are the larger class, and the anchors
@pytest.mark.parametrize("seed", range(3))
def test_every_round_in_blocks_is_certified(classes, seed, gathered, monkeypatch):
    monkeypatch.setattr(top_negatives, "MOST_GATHERED", gathered)
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
