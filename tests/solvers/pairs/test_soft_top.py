"""Cuts that count the negatives near the threshold in part: their parts, their slack, and the optimum that they lead to."""

import numpy as np
import pytest
from support.small_sets import blocks_of, small
from support.top_optima import top_optimum

from aucdist.solvers.base import Status, solve
from aucdist.solvers.pairs.cutting_planes import CuttingPlanes
from aucdist.solvers.pairs.soft_top import SLACK, Band, Softener
from aucdist.solvers.pairs.top import TopShare, threshold_of

pytestmark = pytest.mark.nojit


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("width", [1e-3, 0.3, 2.0, 50.0])
def test_the_parts_weigh_what_is_wanted_and_their_slack_is_that_of_the_sums(width, offset):
    r = np.random.default_rng(0)
    scores, weights = offset + r.normal(size=40).round(1), r.uniform(0.5, 2.0, 40)
    band = Band(scores, weights, 7.5)
    soft, slack = band.soften(width)
    parts = soft.parts(scores)
    assert ((parts >= 0.0) & (parts <= 1.0)).all()
    assert parts @ weights == pytest.approx(7.5, rel=1e-5)
    assert parts @ weights <= 7.5 * (1.0 + 1e-6)
    lost = (band.hard.parts(scores) - parts) * weights @ (scores - band.hard.score)
    assert slack == pytest.approx(lost / 7.5, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("gap", [1e-6, 1e-3, 0.1, 10.0])
def test_the_width_follows_the_gap_and_the_slope(gap):
    r = np.random.default_rng(1)
    softener = Softener()
    for _ in range(8):
        band = Band(r.normal(size=500), np.ones(500), 25.0)
        soft = softener.threshold(band, gap)
        assert soft is not None
        _, slack = band.soften(soft.high - soft.low)
        softener.record(0.5 * slack)
        assert softener.slope <= 1.0
    assert 0.5 * slack <= 1.01 * SLACK * gap


def test_no_gap_or_equal_scores_leave_the_hard_threshold():
    one, equal = Band(np.arange(9.0), np.ones(9), 3.0), Band(np.ones(9), np.ones(9), 3.0)
    assert Softener().threshold(one, 0.0) is None
    assert Softener().threshold(one, np.inf) is None
    assert Softener().threshold(equal, 1.0) is None


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [(5, 24), (24, 5)])
def test_the_line_search_takes_the_slopes_of_soft_cuts(classes, weighted):
    X, y = small(*classes, d=8)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    planes = CuttingPlanes(blocks_of(X, y, 3, weight), share=TopShare(0.3))
    rounds = planes.rounds(1e-2)
    for _ in range(6):
        next(rounds)
    width = planes.share._softener.width_of_cut
    assert width > 0.0
    start, target, steps = planes.w, np.random.default_rng(1).normal(size=8), np.array([0.1, 0.5, 1.3])
    at_target = planes.score(target)
    found = planes.cuts.slopes_at(steps, planes.best_scores, at_target, 1, 1)
    pos, neg, wanted = y > 0, y < 0, 0.3 * weight[y < 0].sum()
    for step, slope in zip(steps, found, strict=True):
        scores, change = X @ (start + step * (target - start)), X @ (target - start)
        parts = weight[neg] * Band(scores[neg], weight[neg], wanted).soften(width)[0].parts(scores[neg])
        active = scores[pos][:, np.newaxis] - scores[neg] < 1.0
        of_pairs = active * (change[neg] - change[pos][:, np.newaxis])
        expected = weight[pos] @ of_pairs @ parts / (weight[pos].sum() * wanted)
        assert slope == pytest.approx(expected, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [(5, 24), (24, 5)])  # the negatives are the larger class, and the anchors
def test_soft_cuts_reach_the_optimum_and_never_pass_it(classes, weighted):
    X, y = small(*classes, d=8)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    best = top_optimum(X, y, 1e-2, 0.3 * weight[y < 0].sum(), weight)
    one, other = (CuttingPlanes(blocks_of(X, y, n, weight), share=TopShare(0.3)) for n in (1, 3))
    assert one.cuts.is_soft
    assert one.cuts.n_components == 1
    found = solve(one.rounds(1e-2), tol=1e-6, max_passes=900)
    assert found.certificate.status is Status.CONVERGED
    assert found.certificate.primal == pytest.approx(best, rel=2e-6)
    assert found.certificate.dual <= best * (1 + 1e-7)
    again = solve(other.rounds(1e-2), tol=1e-6, max_passes=900)
    assert again.certificate.primal == pytest.approx(best, rel=2e-6)


def test_a_band_within_the_rounding_of_the_scores_is_none():
    """All rows at the threshold would count nothing, by rounding alone, and the cut would be of no rows."""
    scores = np.array([1e15, 1e15, 1e15 - 0.125, 1e15 - 0.25])
    band = Band(scores, np.ones(4), 2.0)
    for width in 10.0 ** np.arange(-4, 1):
        soft, slack = band.soften(width)
        assert slack == np.inf or soft.parts(scores).sum() >= 1.0
    assert band.soften(1e-4)[1] == np.inf


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("width", [0.0, 0.2])
def test_the_thresholds_on_a_line_are_those_of_all_rows(width, weighted):
    r = np.random.default_rng(2)
    start, end = r.normal(size=(2, 300)).round(2)
    weights = r.uniform(0.5, 2.0, 300) if weighted else np.ones(300)
    softener, steps, wanted = Softener(), np.array([0.01, 0.3, 0.9, 1.3]), 0.1 * weights.sum()
    softener.width_of_cut = width
    for step, found in zip(steps, softener.thresholds_on_line(start, end, weights, steps, wanted), strict=True):
        scores = start + step * (end - start)
        if width:
            expected = Band(scores, weights, wanted).soften(width)[0]
            assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-9)
        else:
            expected = threshold_of(scores, weights, wanted)
            assert found.score == expected.score
            assert found.fraction == pytest.approx(expected.fraction, rel=1e-9)


def test_cuts_stay_soft_as_long_as_the_objective_falls():
    """With a small lam the bound is 0 for many rounds, and the relative gap stays 1; these are no rounds without progress."""
    X, y = small(6, 40, d=30)
    planes, before = CuttingPlanes(blocks_of(X, y, 2), share=TopShare(0.1)), np.inf
    fell = []
    for found in planes.rounds(1e-4):
        if found.dual > 0.0:
            break
        if found.primal < before:
            fell.append(planes._softness)
        before = found.primal
    assert fell == [1.0, 1.0, 1.0]
