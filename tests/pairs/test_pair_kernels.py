import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp
from support.oracle import active_coefficients, pairwise_hinge
from support.small_sets import blocks_of, small

from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks
from aucdist.kernels.codes import search_index
from aucdist.pairs.bundle import Bundle
from aucdist.pairs.cutting_planes import CuttingPlanes
from aucdist.pairs.kernels import cut_groups, n_active
from aucdist.pairs.loss import HINGE, one_slice, sort_anchors
from aucdist.pairs.penalty import L2
from aucdist.pairs.problem import PairObjective

pytestmark = pytest.mark.nojit

# Thirds: 1/3 + 2/3 and their neighbours round differently in s_j <= s_i - 1 and in s_i >= s_j + 1.
THIRDS = st.integers(-9, 9).map(lambda k: k / 3.0)
WILD = st.floats(-1e6, 1e6) | THIRDS | st.sampled_from([0.0, -0.0, 1e-300, 1e300, -1e300])


def scores_of(elements, least=1):
    return hnp.arrays(np.float64, st.integers(least, 12), elements=elements)


@given(scores_of(WILD), WILD)
def test_search_agrees_with_counting(anchors, score):
    anchors = np.sort(anchors)
    table = np.empty(9, dtype=np.int32)
    low, scale = search_index(anchors, table)
    assert n_active(anchors, table, low, scale, score) == sum(a - score < 1.0 for a in anchors)


def loss_and_row_slopes(pos, neg, w_pos, w_neg, shifts=HINGE.shifts):
    """Return hinge sum, active weight, coefficients of the positives and of the negatives, and the rows in the band."""
    at, order = sort_anchors(pos, w_pos)
    coefs, histogram = np.empty(len(neg)), np.zeros(len(pos) + 1)
    active, total, slack, n_band = cut_groups(
        (neg, w_neg, one_slice(len(neg))), shifts, at.search, at.row_slack, coefs, histogram
    )
    assert slack == 0.0
    return total, active, -HINGE.anchor_slopes(histogram, at, order), coefs, n_band


@given(scores_of(THIRDS), scores_of(THIRDS))
def test_cut_agrees_with_counting_all_pairs(pos, neg):
    scores, y = np.concatenate([pos, neg]), np.repeat([1, -1], [len(pos), len(neg)])
    total, active, of_pos, of_neg, _ = loss_and_row_slopes(pos, neg, np.ones(len(pos)), np.ones(len(neg)))
    slow = active_coefficients(scores, y)
    np.testing.assert_array_equal(np.concatenate([of_pos, -of_neg]), slow)
    # One dual point: what the positives have the negatives have, to the last pair.
    assert of_pos.sum() == of_neg.sum() == active == slow[y > 0].sum()
    np.testing.assert_allclose(total / (len(pos) * len(neg)), pairwise_hinge(scores, y), rtol=1e-12, atol=1e-13)


@given(scores_of(THIRDS), scores_of(THIRDS), st.sampled_from([1 / 3, 0.3, 2.0]), st.sampled_from([3, 5]))
def test_a_cut_of_a_stair_is_the_sum_of_its_steps(pos, neg, h, n_steps):
    shifts = h * ((2 * np.arange(n_steps) + 1 - n_steps) / n_steps)
    total, active, of_pos, of_neg, n_band = loss_and_row_slopes(pos, neg, np.ones(len(pos)), np.ones(len(neg)), shifts)
    alpha = np.array([[[a - (b + s) < 1.0 for s in shifts] for b in neg] for a in pos])
    np.testing.assert_array_equal(of_pos, alpha.sum(axis=(1, 2)))
    np.testing.assert_array_equal(of_neg, alpha.sum(axis=(0, 2)))
    assert active == alpha.sum()
    assert n_band == (alpha[:, :, -1] & ~alpha[:, :, 0]).any(axis=0).sum()
    np.testing.assert_allclose(total, np.maximum(0.0, 1.0 - (pos[:, None] - neg)).sum(), rtol=1e-12, atol=1e-12)


# ---- edges that decide a certificate: ties of floating point, points that were not kept, points that were dropped


@pytest.mark.parametrize("seed", range(6))
def test_active_anchors_are_those_of_the_predicate_next_to_every_tie(seed):
    rng = np.random.default_rng(seed)
    for _ in range(100):
        anchors = np.sort(rng.normal(size=12) * 10.0 ** rng.integers(-3, 16))
        table = np.empty(int(rng.integers(2, 40)), dtype=np.int32)
        low, scale = search_index(anchors, table)
        # Next to an anchor, and next to the edges of the cells that a search begins with.
        edges = low + np.arange(len(table)) / scale if scale > 0 else anchors[:1]
        ties = np.concatenate([anchors, edges]) - 1.0
        for score in (*ties, *np.nextafter(ties, np.inf), *np.nextafter(ties, -np.inf)):
            assert n_active(anchors, table, low, scale, score) == np.count_nonzero(anchors - score < 1.0)


def test_a_cell_that_begins_too_late_is_corrected():
    # The search begins in the cell after the one where it should: 1 is added to the score before the least anchor is
    # subtracted, and that sum rounds up, where the predicate subtracts first.
    rng, late = np.random.default_rng(11), 0
    for _ in range(3000):
        anchors = np.sort(rng.integers(-40, 40, 9) * (1 / 3))
        table = np.empty(int(rng.integers(3, 70)), dtype=np.int32)
        low, scale = search_index(anchors, table)
        if scale == 0.0:
            continue
        for anchor in anchors:
            for score in (anchor - 1.0, np.nextafter(anchor - 1.0, -np.inf), np.nextafter(anchor - 1.0, np.inf)):
                truth = np.count_nonzero(anchors - score < 1.0)
                cell = min(max(int((score + 1.0 - low) * scale), 0), len(table) - 2)
                late += table[cell] > truth
                assert n_active(anchors, table, low, scale, score) == truth
    assert late > 0  # else nothing was corrected


def started(weight=None, lam=1e-2):
    X, y = small(n_pos=8, n_neg=20)
    blocks = blocks_of(X, y) if weight is None else LocalBlocks([Block.of(X, y, weight=weight)])
    state = CuttingPlanes(blocks, PairObjective())
    rounds = state.rounds(lam)
    next(rounds), next(rounds)
    return X, y, state


def test_a_point_that_is_worse_does_not_become_the_best_one():
    _, _, state = started()
    best, current, primal = state.best, state.cuts.current, state.value_at(state.best)
    far = 50.0 * np.ones_like(best.w)
    state.cuts.score(far)
    state.accept(state.cuts.cut(1.0, far, state.gap_left))
    assert state.value > primal
    assert state.best is best
    assert state.cuts.current is current
    # On the way back to the present point, from the scores that the blocks keep of it.
    state.cuts.pair_half_width = 0.0
    state.accept(state.cuts.cut(0.0, current.w, state.gap_left))
    assert state.value == state.value_at(current)


@pytest.mark.parametrize("h", [0.0, 0.5])
@pytest.mark.parametrize("lam", [1e-3, 1e-1, 10.0])
def test_a_line_search_ends_where_the_objective_turns(lam, h):
    weight = np.random.default_rng(3).uniform(0.2, 30, 28)
    X, y, state = started(weight, lam)
    state.cuts.pair_half_width, w = h, state.cuts.current.w
    state.accept(state.cuts.cut(0.0, w, state.gap_left), move_anyway=True)
    move = -np.linspace(0.5, 1.5, len(w)) * (state.cuts.current.gradient + lam * w)
    move /= np.linalg.norm(move)
    rows, _ = state.samples.for_band(h or 1.0, anew=False)
    step, slope = state._line_search(rows, move)
    assert slope < 0.0
    around = np.linspace(-1, 1, 41) * h if h else [0.0]
    values = [
        0.5 * lam * p @ p + np.mean([smoothed(X @ p, y, weight, shift) for shift in around])
        for p in (w + s * move for s in np.linspace(0, 2.0, 201))
    ]
    best, least = np.linspace(0, 2.0, 201)[np.argmin(values)], np.min(values)
    there = np.interp(step, np.linspace(0, 2.0, 201), values)
    assert abs(step - best) < 0.1 or there - least < 0.05 * (values[0] - least)


def smoothed(scores, y, weight, shift):
    """Return the mean hinge where each pair costs so much more."""
    pos, neg = y > 0, y < 0
    hinges = np.maximum(0.0, 1.0 + shift - (scores[pos][:, np.newaxis] - scores[neg]))
    return weight[pos] @ hinges @ weight[neg] / (weight[pos].sum() * weight[neg].sum())


def test_a_dropped_point_leaves_a_feasible_combination(monkeypatch):
    monkeypatch.setattr("aucdist.pairs.bundle.IDLE_ROUNDS", 2)
    bundle = Bundle(2)
    bundle.add(1.0, np.array([3.0, 0.0]))
    bundle.proximal_point(L2(), np.zeros(2), 1.0)  # all weight on the first point
    for k in range(8):  # which is idle while only `best_combination` is asked for
        bundle.add(2.0 + k, np.array([0.01 * k, 0.02]))
        bundle.best_combination(L2())
    w = bundle.proximal_point(L2(), np.zeros(2), 1.0)
    assert np.isfinite(w).all()
    assert bundle.n_points < 9
