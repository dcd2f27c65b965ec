"""Edges that decide a certificate: ties of floating point, points that were not kept, points that were dropped."""

import itertools

import numpy as np
import pytest
from support.oracle import pairwise_objective
from support.small_sets import blocks_of, small
from support.top_optima import top_hinge

from aucdist.data.block import Block
from aucdist.data.shards.simulate import simulate
from aucdist.engine.blocks import LocalBlocks
from aucdist.kernels.pairs import n_active, search_index
from aucdist.solvers.pairs import cutting_planes
from aucdist.solvers.pairs.bundle import Bundle
from aucdist.solvers.pairs.cutting_planes import STEPS, CuttingPlanes
from aucdist.solvers.pairs.penalty import L2
from aucdist.solvers.pairs.top import TopShare


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
    state = CuttingPlanes(blocks)
    rounds = state.rounds(lam)
    next(rounds), next(rounds)
    return X, y, state


def test_a_point_that_is_worse_does_not_become_the_best_one():
    _, _, state = started()
    primal, far = state.primal, 50.0 * np.ones_like(state.w)
    assert state.take_cuts(1.0, state.score(far), far) > primal
    assert state.primal == primal
    # On the way back to the best point, from the scores that the blocks keep of it.
    assert state.take_cuts(0.0, state.best_scores, state.w) == primal


@pytest.mark.parametrize("lam", [1e-3, 1e-1, 10.0])
def test_a_line_search_ends_where_the_objective_turns(lam):
    weight = np.random.default_rng(3).uniform(0.2, 30, 28)
    X, y, state = started(weight, lam)
    target = state.w + np.array([0.7, -0.4, 0.5, 0.2][: X.shape[1]] + [0.1] * max(0, X.shape[1] - 4))
    way = target - state.w
    state.gap = 1e-3
    step = state._line_search(state.score(target), way)
    values = [pairwise_objective(state.w + s * way, X, y, lam, weight) for s in np.linspace(0, 1.3, 521)]
    best = 1.3 * np.argmin(values) / 520
    k = np.clip(np.searchsorted(STEPS, best), 0, len(STEPS) - 1)
    assert STEPS[max(k - 1, 0)] - 3e-3 <= step <= STEPS[min(k + 1, len(STEPS) - 1)] + 3e-3


@pytest.mark.parametrize("classes", [(8, 20), (20, 8)])
@pytest.mark.parametrize("share", [0.3, 0.6])
@pytest.mark.parametrize("lam", [1e-3, 0.1])
def test_a_line_search_over_the_top_ends_where_the_objective_turns(classes, share, lam):
    X, y = small(n_pos=classes[0], n_neg=classes[1])
    state = CuttingPlanes(blocks_of(X, y), share=TopShare(share))
    rounds = state.rounds(lam)
    next(rounds), next(rounds)
    way = np.array([0.7, -0.4, 0.5, 0.2][: X.shape[1]] + [0.1] * max(0, X.shape[1] - 4))
    state.take_cuts(0.0, state.best_scores, state.w)  # cells of scores are counted around the threshold of the last cut
    state.gap = 1e-3
    step = state._line_search(state.score(state.w + way), way)
    wanted = share * classes[1]
    points = [state.w + s * way for s in np.linspace(0, 1.3, 521)]
    best = 1.3 * np.argmin([0.5 * lam * w @ w + top_hinge(X @ w, y, wanted) for w in points]) / 520
    k = np.clip(np.searchsorted(STEPS, best), 0, len(STEPS) - 1)
    assert STEPS[max(k - 1, 0)] - 3e-3 <= step <= STEPS[min(k + 1, len(STEPS) - 1)] + 3e-3


def test_a_dropped_point_leaves_a_feasible_combination():
    bundle = Bundle(1, 2, idle_rounds=2)
    bundle.add(np.array([1.0]), np.array([[3.0, 0.0]]))
    bundle.proximal_point(L2(), np.zeros(2), 1.0)  # all weight on the first point
    for k in range(8):  # which is idle while only `best_combination` is asked for
        bundle.add(np.array([2.0 + k]), np.array([[0.01 * k, 0.02]]))
        bundle.best_combination(L2())
    w = bundle.proximal_point(L2(), np.zeros(2), 1.0)
    assert np.isfinite(w).all()
    assert bundle.n_points < 9


def test_a_line_search_takes_more_rows_after_a_cut_that_found_no_lower_value(monkeypatch):
    # Its sample has its own minimum: 581 012 rows with 5 % positives, cut by cells, stood still there at lam 1e-4.
    monkeypatch.setattr(cutting_planes, "FEW_ROWS", 10)
    monkeypatch.setattr(cutting_planes, "SHARE_OF_ROWS", 1e-9)
    planes = CuttingPlanes(LocalBlocks([simulate(4_000, 5, 0.3, seed=0)]))
    list(itertools.islice(planes.rounds(1e-2), 3))
    used, slopes_at = [], planes.cuts.slopes_at
    monkeypatch.setattr(planes.cuts, "slopes_at", lambda *args: used.append(args[3:]) or slopes_at(*args))
    planes.gap, way = 0.1, -planes.w
    at_zero = np.zeros_like(planes.best_scores)
    for _ in range(5):
        planes._line_search(at_zero, way)
        planes.take_cuts(1.0, planes.score(9.0 * planes.w), 9.0 * planes.w)  # far above the best value
    strides = [stride for stride, _ in used]
    assert strides[0] > strides[1] > strides[2] > strides[3] == strides[4]
    assert strides[3] == strides[0] // 8  # a stride is a whole number of rows
