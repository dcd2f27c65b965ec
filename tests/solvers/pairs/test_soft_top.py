"""Cuts that count the negatives near the threshold in part: their parts, and the optimum that they lead to."""

import numpy as np
import pytest
from support.small_sets import blocks_of, small
from support.top_optima import top_optimum

from aucdist.solvers.base import Status, solve
from aucdist.solvers.pairs.cutting_planes import CuttingPlanes
from aucdist.solvers.pairs.objective import PairObjective
from aucdist.solvers.pairs.top_negatives import TopNegatives, soften, soften_in_blocks, threshold_of


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("width", [1e-3, 0.3, 2.0, 50.0])
def test_the_parts_weigh_what_is_wanted(width, offset):
    r = np.random.default_rng(0)
    scores, weights = offset + r.normal(size=40).round(1), r.uniform(0.5, 2.0, 40)
    soft = soften(threshold_of(scores, weights, 7.5), scores, weights, 7.5, width)
    parts = soft.parts(scores)
    assert ((parts >= 0.0) & (parts <= 1.0)).all()
    assert parts @ weights == pytest.approx(7.5, rel=1e-5)
    assert parts @ weights <= 7.5 * (1.0 + 1e-6)


def test_no_width_or_equal_scores_leave_the_hard_threshold():
    for scores, width in ((np.arange(9.0), 0.0), (np.full(9, 1e17), 1.0)):
        assert soften(threshold_of(scores, np.ones(9), 3.0), scores, np.ones(9), 3.0, width) is None


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("width", [1e-3, 0.3, 5.0])
def test_the_threshold_over_blocks_is_that_of_all_rows(width, weighted):
    X, y = small(5, 60, d=3)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    cuts = CuttingPlanes(blocks_of(X, y, 3, weight), PairObjective(subset=TopNegatives(0.3))).cuts
    w = np.array([1.0, -0.5, 0.3])
    cuts.score(w)
    scores, weights = X[y < 0] @ w, weight[y < 0]
    target = 0.3 * weights.sum()
    hard = threshold_of(scores, weights, target)
    found, exact = (
        soften_in_blocks(cuts.blocks, hard, target, width, 1.0), soften(hard, scores, weights, target, width)
    )  # fmt: skip
    assert found.score == pytest.approx(exact.score, abs=0.1 * width)
    assert found.parts(scores) @ weights == pytest.approx(0.3 * weights.sum(), rel=0.02)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [(5, 24), (24, 5)])  # the negatives are the larger class, and the anchors
def test_soft_cuts_reach_the_optimum_and_never_pass_it(classes, weighted):
    X, y = small(*classes, d=8)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    best = top_optimum(X, y, 1e-2, 0.3 * weight[y < 0].sum(), weight)
    one, other = (CuttingPlanes(blocks_of(X, y, n, weight), PairObjective(subset=TopNegatives(0.3))) for n in (1, 3))
    found = solve(one.rounds(1e-2), tol=1e-6, max_passes=900)
    assert found.certificate.status is Status.CONVERGED
    assert found.certificate.primal == pytest.approx(best, rel=2e-6)
    assert found.certificate.dual <= best * (1 + 1e-7)
    again = solve(other.rounds(1e-2), tol=1e-6, max_passes=900)
    assert again.certificate.primal == pytest.approx(best, rel=2e-6)


def test_a_band_within_the_rounding_of_the_scores_is_none():
    """All rows at the threshold would count nothing, by rounding alone, and the cut would be of no rows."""
    scores = np.array([1e15, 1e15, 1e15 - 0.125, 1e15 - 0.25])
    hard = threshold_of(scores, np.ones(4), 2.0)
    for width in 10.0 ** np.arange(-4, 1):
        soft = soften(hard, scores, np.ones(4), 2.0, width)
        assert soft is None or soft.parts(scores).sum() >= 1.0
    assert soften(hard, scores, np.ones(4), 2.0, 1e-4) is None
