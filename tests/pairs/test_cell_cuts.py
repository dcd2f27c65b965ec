import itertools
import pickle
from dataclasses import asdict
from unittest import mock

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from support.optima import optimum
from support.oracle import pairwise_objective
from support.small_sets import CASES, blocks_of, small
from support.top_optima import top_hinge, top_optimum, top_optimum_l1

from aucdist.data.serialization import deserialize, serialize
from aucdist.data.shards.sharding import simulate
from aucdist.engine.blocks import LocalBlocks
from aucdist.engine.steps import first_argument
from aucdist.pairs import cell_cuts, cuts, cutting_planes, newton, top_negatives
from aucdist.pairs.cell_cuts import CellCuts
from aucdist.pairs.cuts import PairCuts
from aucdist.pairs.cutting_planes import MAX_ANCHORS as ALL, AllPairs, CuttingPlanes
from aucdist.pairs.penalty import L1, L2
from aucdist.pairs.problem import PairObjective, add_up_gradient, sweep_pairs
from aucdist.pairs.top_negatives import TopNegatives, cutoff_in_blocks, cutoff_of
from aucdist.solvers.base import Status, solve
from aucdist.solvers.signs import project_onto_cone


@pytest.fixture(autouse=True)
def small_tables(monkeypatch):
    # As plain Python each cut would fill 65,536 places.
    monkeypatch.setattr(cell_cuts, "SEARCH_PLACES", 256)


def planes(blocks, most_anchors=0, **objective):
    with mock.patch.object(cutting_planes, "MAX_ANCHORS", most_anchors):
        return CuttingPlanes(blocks, PairObjective(**objective))


@pytest.mark.parametrize("n_cells", [4, 64])
@pytest.mark.parametrize(("case", "lam"), [*zip(CASES, [1e-2, 1.0] * 4, strict=False)])
def test_every_round_is_certified_by_counting(case, lam, n_cells, monkeypatch):
    monkeypatch.setattr(cell_cuts, "CELLS", n_cells)
    X, y = CASES[case]
    best = optimum(X, y, lam)
    for state in itertools.islice(planes(blocks_of(X, y)).rounds(lam), 60):
        true = pairwise_objective(state.w, X, y, lam)
        assert state.dual <= best * (1 + 1e-9) + 1e-12
        assert state.primal >= true * (1 - 1e-10)
        assert state.primal - state.slack <= true * (1 + 1e-10)
        if state.primal - state.dual <= 1e-6 * state.primal:
            break
    # With more cells than anchors each is alone in the end.
    assert n_cells == 4 or state.primal == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize("n_blocks", [3, 40])
def test_many_blocks_same_optimum(n_blocks):
    X, y = small(n_pos=12, n_neg=50)
    exact = solve(AllPairs().rounds(blocks_of(X, y), 1e-2), tol=1e-6, max_passes=300)
    cells = solve(planes(blocks_of(X, y, n_blocks)).rounds(1e-2), tol=1e-6, max_passes=300)
    assert cells.certificate.status is Status.CONVERGED
    assert cells.certificate.primal == pytest.approx(exact.certificate.primal, rel=2e-6)


def test_weights_and_sparse_rows():
    X, y = small(n_pos=8, n_neg=60, d=6)
    X[np.abs(X) < 0.5] = 0.0
    weight = np.random.default_rng(2).integers(1, 4, len(y)) * 1.0
    exact = solve(AllPairs().rounds(blocks_of(X, y, weight=weight), 1e-2), tol=1e-7, max_passes=300)
    solution = solve(planes(blocks_of(sp.csr_array(X), y, 3, weight)).rounds(1e-2), tol=1e-6, max_passes=300)
    assert solution.certificate.status is Status.CONVERGED
    assert solution.certificate.primal == pytest.approx(exact.certificate.primal, rel=2e-6)
    assert solution.certificate.dual <= exact.certificate.primal * (1 + 1e-9)
    assert solution.certificate.primal == pytest.approx(pairwise_objective(solution.w, X, y, 1e-2, weight), rel=1e-6)


def test_the_smaller_class_decides():
    X, y = small(n_pos=12, n_neg=50)
    for most, kind in ((12, PairCuts), (11, CellCuts)):
        assert type(planes(blocks_of(X, y), most).cuts) is kind


def test_separated_balanced_classes_do_not_stall(monkeypatch):
    # They did where cells without rows in doubt lost their edges: then they were merged, and the rows in doubt again.
    monkeypatch.setattr(cell_cuts, "CELLS", 64)
    blocks = LocalBlocks([simulate(2_000, 5, 0.5, seed=4, shift=5.0)])
    exact = solve(planes(blocks, ALL).rounds(1e-3), tol=1e-3, max_passes=200)
    cells = solve(planes(blocks).rounds(1e-3), tol=1e-3, max_passes=3 * exact.passes)
    assert cells.certificate.status is Status.CONVERGED
    assert 0.0 < cells.certificate.slack < 1e-3 * cells.certificate.primal


def test_nothing_that_is_sent_grows_with_the_rows(monkeypatch):
    monkeypatch.setattr(cell_cuts, "CELLS", 64)
    monkeypatch.setattr(cell_cuts, "ANCHORS_DRAWN", 100)
    for name in ("MIN_ROWS_DRAWN", "MAX_ROWS_DRAWN"):
        monkeypatch.setattr(newton, name, 100)
    reduce, sent = LocalBlocks.reduce, {}

    def counted(blocks, step, *args):
        summary = reduce(blocks, step, *args)
        sizes = np.array([len(pickle.dumps(things)) for things in (args, summary)])
        sent[blocks.n_samples] = sent.get(blocks.n_samples, 0) + sizes
        return summary

    monkeypatch.setattr(LocalBlocks, "reduce", counted)
    for n in (2_000, 32_000):
        blocks = LocalBlocks([simulate(n, 5, 0.5, seed=0)])
        *_, last = itertools.islice(planes(blocks).rounds(1e-3), 8)
        assert last.slack > 0.0
    assert (sent[32_000] < 4 * sent[2_000]).all()  # of sixteen times as many rows; how often rows are drawn differs


def test_cuts_that_are_taken_again_read_no_rows(monkeypatch):
    monkeypatch.setattr(cell_cuts, "CELLS", 8)
    # Never small enough, but where all scores of a cell are the same.
    monkeypatch.setattr(cuts, "SLACK_OF_GAP", 0.0)
    X, y = small(n_pos=30, n_neg=40)
    steps, reduce = [], LocalBlocks.reduce
    monkeypatch.setattr(LocalBlocks, "reduce", lambda *args: steps.append(args[1]) or reduce(*args))
    blocks = blocks_of(X, y)
    *_, last = itertools.islice(planes(blocks).rounds(1e-3), 5)
    assert last.passes == steps.count(add_up_gradient) == 5
    assert steps.count(sweep_pairs) > 5
    reading = [step for step in steps if first_argument(step) != "number"]
    # The columns' ranges, the rows that are drawn, then scores and gradients.
    assert len(reading) == 2 + 2 * last.passes


def test_a_path_starts_from_what_is_known():
    X, y = small(n_pos=15, n_neg=80, d=6)
    cells = planes(blocks_of(X, y, 2))
    for lam in (1.0, 1e-1, 1e-2):
        solution = solve(cells.rounds(lam), tol=1e-5, max_passes=300)
        best = optimum(X, y, lam)
        assert solution.certificate.status is Status.CONVERGED
        assert solution.certificate.dual <= best * (1 + 1e-9) <= solution.certificate.primal * (1 + 2e-9)


def test_the_memory_of_a_block_can_be_kept_in_a_checkpoint():
    X, y = small(n_pos=12, n_neg=50)
    blocks = blocks_of(X, y, 2)
    cells = planes(blocks)
    for _ in itertools.islice(cells.rounds(1e-2), 3):
        pass
    for memory in cells.cuts.blocks._memory:
        np.testing.assert_equal(asdict(deserialize(serialize(memory))), asdict(memory))


# ---- the highest-scoring negatives with the anchors in cells -----------------------------------


OBJECTIVES = {L2: (top_optimum, lambda w: 0.5 * w @ w), L1: (top_optimum_l1, lambda w: np.abs(w).sum())}


@pytest.mark.parametrize("n_cells", [4, 64])
@pytest.mark.parametrize("classes", [(6, 19), (19, 6)])  # the negatives are the larger class, and the anchors
@pytest.mark.parametrize(("kind", "weighted"), [(L2, True), (L1, False)])
def test_every_round_of_the_highest_negatives_is_certified_by_counting(kind, classes, n_cells, weighted, monkeypatch):
    monkeypatch.setattr(cell_cuts, "CELLS", n_cells)
    optimum, penalty = OBJECTIVES[kind]
    X, y = small(*classes, seed=4)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    lam, top_weight = 3e-2, 0.4 * weight[y < 0].sum()
    best = optimum(X, y, lam, top_weight, weight)
    cells = planes(blocks_of(X, y, 2, weight), top_negatives=TopNegatives(0.4), penalty=kind())
    for state in itertools.islice(cells.rounds(lam), 60):
        true = lam * penalty(state.w) + top_hinge(X @ state.w, y, top_weight, weight)
        assert state.dual <= best * (1 + 1e-7) + 5e-8
        assert state.primal >= true * (1 - 1e-10)
        assert state.primal - state.slack <= true * (1 + 1e-10)
        if state.primal - state.dual <= 1e-5 * state.primal:
            break
    # With more cells than anchors each is alone in the end.
    assert n_cells == 4 or state.primal == pytest.approx(best, rel=1e-3)


TOP, SIGNED = TopNegatives(0.2), L2(signs=np.array([1, -1, 0, 2], dtype=np.int8))


@pytest.mark.parametrize(
    ("classes", "n_blocks", "penalty", "top_negatives", "lam"),
    [
        ((12, 50), 2, L1(), None, 0.05),
        ((60, 300), 3, L2(), TOP, 1e-2),
        ((300, 60), 3, L2(), TOP, 1e-2),
        ((60, 300), 1, SIGNED, TOP, 1e-2),
        ((300, 60), 1, SIGNED, TOP, 1e-2),
    ],
)
def test_exact_anchors_and_cells_have_one_optimum(classes, n_blocks, penalty, top_negatives, lam):
    X, y = small(*classes)
    both = (planes(blocks_of(X, y, n_blocks), most, penalty=penalty, top_negatives=top_negatives) for most in (ALL, 0))
    exact, cells = (solve(each.rounds(lam), tol=1e-5, max_passes=400) for each in both)
    assert cells.certificate.status is Status.CONVERGED
    assert cells.certificate.primal == pytest.approx(exact.certificate.primal, rel=2e-5)
    if penalty is SIGNED:
        np.testing.assert_array_equal(cells.w, project_onto_cone(cells.w, penalty.signs))
    if top_negatives is None:
        np.testing.assert_array_equal(cells.w == 0.0, exact.w == 0.0)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="4 000 rows are many for plain Python, and others run its kernels")
def test_few_cells_for_many_anchors_leave_little_slack(monkeypatch):
    monkeypatch.setattr(cell_cuts, "CELLS", 64)
    for positive in (0.2, 0.8):
        blocks = LocalBlocks([simulate(4_000, 5, positive, seed=0, shift=2.0)])
        exact = solve(planes(blocks, ALL, top_negatives=TopNegatives(0.2)).rounds(1e-2), tol=1e-3, max_passes=200)
        cells = solve(
            planes(blocks, top_negatives=TopNegatives(0.2)).rounds(1e-2), tol=1e-3, max_passes=3 * exact.passes
        )
        c = cells.certificate
        assert c.status is Status.CONVERGED
        assert 0.0 < c.slack < 1e-3 * c.primal
        assert c.primal - c.slack <= exact.certificate.primal * (1 + 2e-3)
        assert c.dual <= exact.certificate.primal


@pytest.mark.parametrize("most", [0, 5, 10**6])
def test_the_cutoff_of_anchors_in_blocks_is_that_of_all(monkeypatch, most):
    monkeypatch.setattr(top_negatives, "MAX_GATHERED", most)
    X, y = small(40, 12)
    weight = np.random.default_rng(1).random(len(y))
    of_cells = planes(blocks_of(X, y, 3, weight), top_negatives=TopNegatives(0.5)).cuts
    w = np.array([1.0, -0.5, 0.3, 2.0])
    of_cells.score(w)
    scores, weights = X[y < 0] @ w, weight[y < 0]
    for top_weight in (1e-9, 0.3, 0.4 * weights.sum(), weights.sum()):
        cutoff = cutoff_in_blocks(of_cells.blocks, 12, top_weight, 1.0, are_anchors=True)
        assert cutoff.score == pytest.approx(cutoff_of(scores, weights, top_weight).score, rel=1e-12)
        assert (cutoff.fractions(scores) @ weights) == pytest.approx(top_weight, abs=weights.max())
