import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from support.optima import optimum
from support.oracle import pairwise_objective
from support.small_sets import CASES, blocks_of, small

from aucdist.data.shards.simulate import simulate
from aucdist.engine.blocks import LocalBlocks
from aucdist.engine.serialize import deserialize, serialize
from aucdist.solvers.base import Status, solve
from aucdist.solvers.pairs import cell_cuts, cutting_planes, newton
from aucdist.solvers.pairs.cell_cuts import CellCuts
from aucdist.solvers.pairs.cuts import PairCuts
from aucdist.solvers.pairs.cutting_planes import AllPairs, CuttingPlanes
from aucdist.solvers.pairs.objective import PairObjective
from aucdist.solvers.pairs.penalty import L1


@pytest.fixture(autouse=True)
def small_tables(monkeypatch):
    # As plain Python each cut would fill 65,536 places.
    monkeypatch.setattr(cell_cuts, "PLACES", 256)


@pytest.mark.parametrize("n_cells", [4, 64])
@pytest.mark.parametrize(("case", "lam"), [*zip(CASES, [1e-2, 1.0] * 4, strict=False)])
def test_every_round_is_certified_by_counting(case, lam, n_cells, monkeypatch):
    monkeypatch.setattr(cell_cuts, "CELLS", n_cells)
    X, y = CASES[case]
    best = optimum(X, y, lam)
    for state in itertools.islice(CuttingPlanes(blocks_of(X, y), PairObjective(), kind=CellCuts).rounds(lam), 60):
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
    cells = solve(
        CuttingPlanes(blocks_of(X, y, n_blocks), PairObjective(), kind=CellCuts).rounds(1e-2), tol=1e-6, max_passes=300
    )
    assert cells.certificate.status is Status.CONVERGED
    assert cells.certificate.primal == pytest.approx(exact.certificate.primal, rel=2e-6)


def test_weights_and_sparse_rows():
    X, y = small(n_pos=8, n_neg=60, d=6)
    X[np.abs(X) < 0.5] = 0.0
    weight = np.random.default_rng(2).integers(1, 4, len(y)) * 1.0
    exact = solve(AllPairs().rounds(blocks_of(X, y, weight=weight), 1e-2), tol=1e-7, max_passes=300)
    cells = CuttingPlanes(blocks_of(sp.csr_array(X), y, 3, weight), PairObjective(), kind=CellCuts)
    found = solve(cells.rounds(1e-2), tol=1e-6, max_passes=300)
    assert found.certificate.status is Status.CONVERGED
    assert found.certificate.primal == pytest.approx(exact.certificate.primal, rel=2e-6)
    assert found.certificate.dual <= exact.certificate.primal * (1 + 1e-9)
    assert found.certificate.primal == pytest.approx(pairwise_objective(found.w, X, y, 1e-2, weight), rel=1e-6)


def test_l1():
    X, y = small(n_pos=12, n_neg=50)
    exact, cells = (
        solve(
            CuttingPlanes(blocks_of(X, y, 2), PairObjective(penalty=L1()), kind=kind).rounds(0.05),
            tol=1e-5,
            max_passes=300,
        )
        for kind in (PairCuts, CellCuts)
    )
    assert cells.certificate.status is Status.CONVERGED
    assert cells.certificate.primal == pytest.approx(exact.certificate.primal, rel=2e-5)
    np.testing.assert_array_equal(cells.w == 0.0, exact.w == 0.0)


def test_the_smaller_class_decides(monkeypatch):
    X, y = small(n_pos=12, n_neg=50)
    for most, kind in ((12, PairCuts), (11, CellCuts)):
        monkeypatch.setattr(cutting_planes, "MOST_ANCHORS", most)
        assert type(CuttingPlanes(blocks_of(X, y), PairObjective()).cuts) is kind


def test_separated_balanced_classes_do_not_stall(monkeypatch):
    # They did where cells without rows in doubt lost their edges: then they were merged, and the rows in doubt again.
    monkeypatch.setattr(cell_cuts, "CELLS", 64)
    blocks = LocalBlocks([simulate(2_000, 5, 0.5, seed=4, shift=5.0)])
    exact = solve(CuttingPlanes(blocks, PairObjective()).rounds(1e-3), tol=1e-3, max_passes=200)
    cells = solve(
        CuttingPlanes(blocks, PairObjective(), kind=CellCuts).rounds(1e-3), tol=1e-3, max_passes=3 * exact.passes
    )
    assert cells.certificate.status is Status.CONVERGED
    assert 0.0 < cells.certificate.slack < 1e-3 * cells.certificate.primal


def test_nothing_that_is_sent_grows_with_the_rows(monkeypatch):
    monkeypatch.setattr(cell_cuts, "CELLS", 64)
    monkeypatch.setattr(cell_cuts, "SAMPLE", 100)
    for name in ("FEWEST_ROWS", "MOST_ROWS"):
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
        *_, last = itertools.islice(CuttingPlanes(blocks, PairObjective(), kind=CellCuts).rounds(1e-3), 8)
        assert last.slack > 0.0
    assert (sent[32_000] < 4 * sent[2_000]).all()  # of sixteen times as many rows; how often rows are drawn differs


def test_cuts_that_are_taken_again_read_no_rows(monkeypatch):
    monkeypatch.setattr(cell_cuts, "CELLS", 8)
    monkeypatch.setattr(
        cell_cuts, "SLACK_OF_GAP", 0.0
    )  # never small enough, but where all scores of a cell are the same
    X, y = small(n_pos=30, n_neg=40)
    steps, reduce = [], LocalBlocks.reduce
    monkeypatch.setattr(LocalBlocks, "reduce", lambda *args: steps.append(args[1]) or reduce(*args))
    blocks = blocks_of(X, y)
    *_, last = itertools.islice(CuttingPlanes(blocks, PairObjective(), kind=CellCuts).rounds(1e-3), 5)
    assert last.passes == steps.count(cell_cuts.finish_by_cells) == 5
    assert steps.count(cell_cuts.take_cut) > 5
    reading = [step for step in steps if not getattr(step, "without_rows", False)]
    assert (
        len(reading) == 2 + 2 * last.passes
    )  # the columns' ranges, the rows that are drawn, then scores and gradients


def test_a_path_starts_from_what_is_known():
    X, y = small(n_pos=15, n_neg=80, d=6)
    cells = CuttingPlanes(blocks_of(X, y, 2), PairObjective(), kind=CellCuts)
    for lam in (1.0, 1e-1, 1e-2):
        found = solve(cells.rounds(lam), tol=1e-5, max_passes=300)
        best = optimum(X, y, lam)
        assert found.certificate.status is Status.CONVERGED
        assert found.certificate.dual <= best * (1 + 1e-9) <= found.certificate.primal * (1 + 2e-9)


def test_the_memory_of_a_block_can_be_kept_in_a_checkpoint():
    X, y = small(n_pos=12, n_neg=50)
    blocks = blocks_of(X, y, 2)
    cells = CuttingPlanes(blocks, PairObjective(), kind=CellCuts)
    for _ in itertools.islice(cells.rounds(1e-2), 3):
        pass
    for memory in cells.cuts.blocks._memory:
        again = deserialize(serialize(memory))
        for name, value in vars(memory).items():
            for one, other in zip(
                *((part if name == "runs" else [part]) for part in (getattr(again, name), value)), strict=True
            ):
                np.testing.assert_array_equal(one, other)
