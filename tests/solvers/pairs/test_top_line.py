"""The line search over the highest-scoring negatives: its slopes at every step are those of plain Python."""

import numpy as np
import pytest
import scipy.sparse as sp
from support.small_sets import blocks_of

from aucdist.kernels.top import LINE_BITS, keys
from aucdist.solvers.base import Status, solve
from aucdist.solvers.pairs import top
from aucdist.solvers.pairs.cutting_planes import STEPS, CuttingPlanes
from aucdist.solvers.pairs.penalty import L2
from aucdist.solvers.pairs.top import TopShare, top_on_line

SCALES = (1e-8, 1e-3, 1.0, 1e5, 1e8)


def rows(seed, n_pos, n_neg, scale=1.0, offset=0.0):
    r = np.random.default_rng(seed)
    X = r.normal(size=(n_pos + n_neg, 3))
    y = np.repeat([1, -1], [n_pos, n_neg])
    X[y > 0] += 0.7
    X[:, 1] *= 1.0 + np.abs(r.standard_cauchy(len(y)))  # a few rows lie far out
    return scale * (X + offset), y, r.uniform(0.5, 2.0, len(y))


def slope(before, after, step, y, weight, wanted):
    """Return the derivative of the mean hinge over the highest-scoring negatives by the step, row after row."""
    scores, left, total = before + step * (after - before), wanted, 0.0
    positives = np.flatnonzero(y > 0)
    for j in sorted(np.flatnonzero(y < 0), key=lambda j: -scores[j]):
        part = min(left, weight[j])
        for i in positives:
            if scores[i] - scores[j] < 1.0:
                total += part * weight[i] * (after[j] - before[j] - after[i] + before[i])
        left -= part
    return total / (weight[y > 0].sum() * wanted)


def line_slopes(state, monkeypatch):
    """Return the list to which every line search adds its slopes, the penalty's part left out."""
    found, real = [], state.cuts.slopes_at

    def spy(*args):
        found.append(real(*args))
        return found[-1].copy()

    monkeypatch.setattr(state.cuts, "slopes_at", spy)
    return found


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_slopes_far_from_the_last_cut(monkeypatch, scale, share):
    X, y, weight = rows(1, 12, 150, scale)
    state = CuttingPlanes(blocks_of(X, y, 3, weight), share=TopShare(share))
    state.penalty = L2(1e-3)
    found = line_slopes(state, monkeypatch)
    state.take_cuts(0.0, state.best_scores, state.w)  # at w = 0, where all scores are 0
    way = np.array([0.9, -0.3, 0.4]) / scale
    state.gap = 1e-3
    state._line_search(state.score(way), way)
    wanted = share * weight[y < 0].sum()
    after = X @ way
    expected = [slope(np.zeros(len(y)), after, step, y, weight, wanted) for step in STEPS]
    np.testing.assert_allclose(found[-1], expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", ["dense", "csr", "offset"])
@pytest.mark.parametrize("lam", [1e-5, 1e-2])
def test_slopes_of_every_early_round(monkeypatch, kind, lam):
    X, y, weight = rows(2, 10, 120, offset=1e3 if kind == "offset" else 0.0)
    state = CuttingPlanes(blocks_of(sp.csr_array(X) if kind == "csr" else X, y, 2, weight), share=TopShare(0.05))
    found, wanted = line_slopes(state, monkeypatch), 0.05 * weight[y < 0].sum()
    lines, real = [], state._line_search

    def remember(at_target, way):
        lines.append((X @ state.w, X @ (state.w + way)))
        return real(at_target, way)

    monkeypatch.setattr(state, "_line_search", remember)
    rounds = state.rounds(lam)
    for _ in range(9):
        next(rounds)
    assert len(found) == len(lines) == 8
    for line, (before, after) in zip(found, lines, strict=True):
        expected = [slope(before, after, step, y, weight, wanted) for step in STEPS]
        # Which pairs are active at a bend, and which row is at the boundary, may be decided by rounding.
        close = np.isclose(line, expected, rtol=1e-6, atol=1e-6)
        assert close.mean() > 0.9, (line, expected)


def test_ties_at_the_boundary_count_in_part():
    X, y = np.zeros((40, 1)), np.repeat([1, -1], [4, 36])
    X[4:14, 0] = 1.0  # ten negatives are ahead, all with one score
    state = CuttingPlanes(blocks_of(X, y), share=TopShare(max_false_positives=5))
    state.score(np.array([2.0]))
    found = top_on_line(state.cuts.blocks, np.array([0.5, 1.0]), 1, 5 / 36)
    np.testing.assert_allclose(found.fractions, 0.5)
    assert found.shift < LINE_BITS  # they cannot be told apart by any bit


@pytest.mark.parametrize("light", [0.0, 0.01, 10.0])
@pytest.mark.parametrize(("n_blocks", "stride"), [(3, 1), (1, 3)])
def test_what_counts_weighs_what_is_wanted(monkeypatch, light, n_blocks, stride):
    monkeypatch.setattr(top, "LIGHT", light)
    X, y, weight = rows(3, 8, 200)
    first, last = np.array([0.1, 0.2, 0.3]), np.array([1.0, -2.0, 0.5])
    state = CuttingPlanes(blocks_of(X, y, n_blocks, weight), first, share=TopShare(0.1))
    state.score(last)
    found = top_on_line(state.cuts.blocks, STEPS, stride, 0.1)
    X, weight = X[y < 0][::stride], weight[y < 0][::stride]
    assert found.wanted == pytest.approx(0.1 * weight.sum())
    start, end, of_scores = X @ first, X @ last, np.empty(len(X), dtype=np.int64)
    for step, boundary, fraction in zip(STEPS, found.boundaries, found.fractions, strict=True):
        keys(start + step * (end - start), of_scores)
        cells = of_scores >> found.shift
        parts = np.where(cells > boundary, 1.0, np.where(cells == boundary, fraction, 0.0))
        assert parts @ weight == pytest.approx(found.wanted, rel=1e-9)
        assert found.shift < LINE_BITS or weight[cells == boundary].sum() <= light * found.wanted


def test_the_way_back_from_far_off_is_saved_where_the_minimum_is_near_zero(monkeypatch):
    r = np.random.default_rng(0)
    y = np.repeat([1, -1], [150, 450])
    X = r.normal(size=(600, 12)) + 0.15 * (y[:, None] > 0)
    near, far = (CuttingPlanes(blocks_of(X, y, 2), share=TopShare(0.2)) for _ in range(2))
    monkeypatch.setattr(far, "_first_weight", lambda: 0.0)
    ends = [solve(state.rounds(1e-3), tol=1e-3, max_passes=100) for state in (near, far)]
    assert [end.certificate.status for end in ends] == [Status.CONVERGED] * 2
    assert 3 * ends[0].passes < 2 * ends[1].passes


def test_more_cuts_than_of_all_pairs():
    X, y = np.random.default_rng(0).normal(size=(10_000, 2)), np.repeat([1, -1], [2_500, 7_500])
    blocks = blocks_of(X, y, 2)
    assert CuttingPlanes(blocks).cuts.n_components == 1
    assert CuttingPlanes(blocks, share=TopShare(0.1)).cuts.n_components == 8
    assert CuttingPlanes(blocks_of(X, -y, 2), share=TopShare(0.1)).cuts.n_components == 1
