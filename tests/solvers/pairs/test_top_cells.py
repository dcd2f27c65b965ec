"""The highest-scoring negatives with the anchors in cells: against plain Python, other programmes, and exact anchors."""

import itertools

import numba
import numpy as np
import pytest
from support.small_sets import blocks_of, small
from support.top_optima import top_hinge, top_optimum, top_optimum_l1

from aucdist.data.shards.simulate import simulate
from aucdist.engine.blocks import LocalBlocks
from aucdist.solvers.base import Status, solve
from aucdist.solvers.pairs import cell_cuts, top_negatives
from aucdist.solvers.pairs.cell_cuts import CellCuts
from aucdist.solvers.pairs.cuts import PairCuts
from aucdist.solvers.pairs.cutting_planes import CuttingPlanes
from aucdist.solvers.pairs.objective import PairObjective
from aucdist.solvers.pairs.penalty import L1, L2
from aucdist.solvers.pairs.top_negatives import TopNegatives, threshold_in_blocks, threshold_of
from aucdist.solvers.signs import project_onto_cone


@pytest.fixture(autouse=True)
def small_tables(monkeypatch):
    # As plain Python each cut would fill 65,536 places.
    monkeypatch.setattr(cell_cuts, "PLACES", 256)


OBJECTIVES = {L2: (top_optimum, lambda w: 0.5 * w @ w), L1: (top_optimum_l1, lambda w: np.abs(w).sum())}


def in_cells(blocks, subset, penalty=None):
    return CuttingPlanes(blocks, PairObjective(penalty=penalty or L2(), subset=subset), kind=CellCuts)


@pytest.mark.parametrize("n_cells", [4, 64])
@pytest.mark.parametrize("classes", [(6, 19), (19, 6)])  # the negatives are the larger class, and the anchors
@pytest.mark.parametrize(("kind", "weighted"), [(L2, True), (L1, False)])
def test_every_round_is_certified_by_counting(kind, classes, n_cells, weighted, monkeypatch):
    monkeypatch.setattr(cell_cuts, "CELLS", n_cells)
    optimum, penalty = OBJECTIVES[kind]
    X, y = small(*classes, seed=4)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    lam, wanted = 3e-2, 0.4 * weight[y < 0].sum()
    best = optimum(X, y, lam, wanted, weight)
    for state in itertools.islice(in_cells(blocks_of(X, y, 2, weight), TopNegatives(0.4), kind()).rounds(lam), 60):
        true = lam * penalty(state.w) + top_hinge(X @ state.w, y, wanted, weight)
        assert state.dual <= best * (1 + 1e-7) + 5e-8
        assert state.primal >= true * (1 - 1e-10)
        assert state.primal - state.slack <= true * (1 + 1e-10)
        if state.primal - state.dual <= 1e-5 * state.primal:
            break
    # With more cells than anchors each is alone in the end.
    assert n_cells == 4 or state.primal == pytest.approx(best, rel=1e-3)


@pytest.mark.parametrize(("n_blocks", "signs"), [(3, None), (1, np.array([1, -1, 0, 2], dtype=np.int8))])
@pytest.mark.parametrize("classes", [(60, 300), (300, 60)])
def test_exact_anchors_and_cells_have_one_optimum(classes, n_blocks, signs):
    X, y = small(*classes)
    subset, penalty = TopNegatives(0.2), L2(signs=signs)
    exact, cells = (
        solve(
            CuttingPlanes(blocks_of(X, y, n_blocks), PairObjective(penalty=penalty, subset=subset), kind=kind).rounds(
                1e-2
            ),
            tol=1e-5,
            max_passes=400,
        )
        for kind in (PairCuts, CellCuts)
    )
    assert cells.certificate.status is Status.CONVERGED
    assert cells.certificate.primal == pytest.approx(exact.certificate.primal, rel=2e-5)
    np.testing.assert_array_equal(cells.w, project_onto_cone(cells.w, signs))


@pytest.mark.skipif(
    numba.config.DISABLE_JIT, reason="4 000 rows are many for plain Python; the other tests run its kernels"
)
def test_few_cells_for_many_anchors_leave_little_slack(monkeypatch):
    monkeypatch.setattr(cell_cuts, "CELLS", 64)
    for positive in (0.2, 0.8):
        blocks = LocalBlocks([simulate(4_000, 5, positive, seed=0, shift=2.0)])
        subset = TopNegatives(0.2)
        exact = solve(CuttingPlanes(blocks, PairObjective(subset=subset)).rounds(1e-2), tol=1e-3, max_passes=200)
        cells = solve(in_cells(blocks, subset).rounds(1e-2), tol=1e-3, max_passes=3 * exact.passes)
        c = cells.certificate
        assert c.status is Status.CONVERGED
        assert 0.0 < c.slack < 1e-3 * c.primal
        assert c.primal - c.slack <= exact.certificate.primal * (1 + 2e-3)
        assert c.dual <= exact.certificate.primal


@pytest.mark.parametrize("most", [0, 5, 10**6])
def test_the_threshold_of_anchors_in_blocks_is_that_of_all(monkeypatch, most):
    monkeypatch.setattr(top_negatives, "MOST_GATHERED", most)
    X, y = small(40, 12)
    weight = np.random.default_rng(1).random(len(y))
    cuts = in_cells(blocks_of(X, y, 3, weight), TopNegatives(0.5)).cuts
    w = np.array([1.0, -0.5, 0.3, 2.0])
    cuts.score(w)
    scores, weights = X[y < 0] @ w, weight[y < 0]
    for wanted in (1e-9, 0.3, 0.4 * weights.sum(), weights.sum()):
        found = threshold_in_blocks(cuts.blocks, 12, wanted, 1.0, are_anchors=True)
        assert found.score == pytest.approx(threshold_of(scores, weights, wanted).score, rel=1e-12)
        assert (found.parts(scores) @ weights) == pytest.approx(wanted, abs=weights.max())
