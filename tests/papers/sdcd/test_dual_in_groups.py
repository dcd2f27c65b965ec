"""Dual coordinate descent on pairs within groups, of grades and of rows with weights, beside every pair by itself."""

import itertools

import numpy as np
import pytest
from support.duals import pair_duals, watched
from support.grouped_pairs import best_hinge, hinge, mean_loss
from support.grouped_problem import some_problems
from support.rounds import last, rounds_of

from aucdist.engine.blocks import LocalBlocks, block_seed
from aucdist.pairs.groups import pair_groups, smaller_class
from aucdist.papers.sdcd.dual import SDCD, SDCDPerm
from aucdist.papers.sdcd.kernels import PairPlaces, draw_any, draw_in_order
from aucdist.solvers.base import solve

sdcd, sdcd_perm = rounds_of(SDCD), rounds_of(SDCDPerm)
SOLVERS = [sdcd, sdcd_perm]


def sides(p):
    """Return for each class the rows that are in pairs, as often as they are in a group: block, position, group, weight.

    Those of the smaller class are ordered by group, those of the larger one so in each block, as the solver numbers them.
    """
    blocks = p.blocks()
    groups = pair_groups(blocks, **p.options, weighted=True)
    rows_of_class = {}
    for label in (1, -1):
        rows = []
        for b in blocks._blocks:
            positions, codes = groups.rows_of(b, label)
            factor = groups.factor[codes] if label != smaller_class(groups) else 1.0
            weight = b.weights()[positions] * factor
            rows += [
                (b.X[i], g, v) for i, g, v in zip(positions, codes, np.broadcast_to(weight, len(codes)), strict=True)
            ]
        rows_of_class[label] = sorted(rows, key=lambda row: row[1]) if label == smaller_class(groups) else rows
    return groups, rows_of_class[1], rows_of_class[-1]


def by_definition(duals, p):
    """Return w and the dual value of dual variables, and what each pair weighs, pair by pair."""
    groups, pos, neg = sides(p)
    w, total, most = np.zeros(p.X.shape[1]), 0.0, np.zeros(duals.shape)
    for (i, (x, g, u)), (j, (z, h, v)) in itertools.product(enumerate(pos), enumerate(neg)):
        most[i, j] = u * v if g == h else 0.0
        total += duals[i, j]
        w += duals[i, j] * (x - z)
    w /= p.lam * groups.pair_weight
    return w, total / groups.pair_weight - 0.5 * p.lam * w @ w, most


@pytest.mark.parametrize("solver", SOLVERS)
def test_one_block_is_the_algorithm_with_the_pairs_of_one_group(solver):
    for p in some_problems(range(12)):
        p.n_blocks = 1
        groups, pos, neg = sides(p)
        few, many = (pos, neg) if smaller_class(groups) > 0 else (neg, pos)
        codes, of_few = np.array([g for _, g, _ in many]), [g for _, g, _ in few]
        bounds = np.flatnonzero(np.diff(codes, prepend=-1, append=-1))
        begin = np.searchsorted(of_few, codes[bounds[:-1]])
        n_minority = np.searchsorted(of_few, codes[bounds[:-1]], side="right") - begin
        sizes = n_minority * np.diff(bounds)
        places = PairPlaces(np.append(0, np.cumsum(sizes)), bounds, begin, n_minority, np.arange(len(many)))
        drawn = np.empty((200, 3), dtype=np.int64)
        draw = draw_in_order if solver is sdcd_perm else draw_any
        draw(block_seed(5, 0, 0), 0, places, drawn)
        scale = p.lam * groups.pair_weight
        w, beta = np.zeros(p.X.shape[1]), np.zeros((len(few), len(many)))
        for i, j, _ in drawn:
            (x, g, u), (z, h, v) = few[i], many[j]
            assert g == h
            step = smaller_class(groups) * (x - z)
            square = step @ step
            up = scale * (1 - step @ w) / square if square > 0 else np.inf
            new = min(max(beta[i, j] + up, 0.0), u * v)
            w = w + (new - beta[i, j]) * step / scale
            beta[i, j] = new
        blocks = watched(p.blocks())
        state = last(solver(blocks, p.lam, seed=5, steps=200, **p.options))
        np.testing.assert_allclose(state.w, w, rtol=1e-9, atol=1e-11 * np.abs(w).max(initial=0.0))
        duals = pair_duals(blocks, smaller_class(groups)).toarray()
        np.testing.assert_allclose(
            duals if smaller_class(groups) > 0 else duals.T, beta, rtol=1e-8, atol=1e-11 * beta.max()
        )


@pytest.mark.parametrize("solver", SOLVERS)
def test_duals_are_feasible_and_rising_and_w_is_theirs(solver):
    for p, combine in zip(some_problems(range(200, 216)), itertools.cycle(("add", "average")), strict=False):
        before, blocks = 0.0, watched(p.blocks())
        for state in solver(blocks, p.lam, seed=2, epochs=4, combine=combine, **p.options):
            duals = pair_duals(blocks, smaller_class(sides(p)[0])).toarray()
            w, dual, most = by_definition(duals, p)
            assert (duals >= 0).all()
            assert (duals <= most * (1 + 1e-14)).all()
            np.testing.assert_allclose(state.w, w, rtol=1e-9, atol=1e-11 * np.abs(w).max(initial=0.0))
            assert state.dual == pytest.approx(max(dual, before), rel=1e-9)
            assert dual >= before * (1 - 1e-12)
            before = dual


def test_certificates_beside_every_pair_by_itself():
    problems, closed = some_problems(range(300, 370)), 0
    for p, solver in zip(problems, itertools.cycle(SOLVERS), strict=False):
        solution = solve(solver(p.blocks(), p.lam, seed=1, **p.options), tol=1e-3, max_passes=100)
        c, w = solution.certificate, solution.w
        primal = 0.5 * p.lam * w @ w + mean_loss(hinge, w, p.X, p.pairs)
        assert c.primal == pytest.approx(primal, abs=c.rounding + 1e-15, rel=1e-12)
        closed += c.status == "converged"
        if c.primal - c.dual < 0.02 * c.primal:
            best = best_hinge(p.X, p.pairs, p.lam)
            assert c.dual - c.rounding <= best
            if c.status == "converged":
                assert c.primal <= best * (1 + 1.1e-3)
    assert closed > 0.4 * len(problems)


def test_every_sweep_takes_each_pair_once():
    before, bounds = np.array([0, 6, 6, 14, 16]), np.array([0, 3, 4, 8, 9])
    places = PairPlaces(before, bounds, np.array([5, 9, 0, 3]), np.array([2, 0, 2, 2]), np.arange(9) * 10)
    drawn = np.empty((48, 3), dtype=np.int64)
    draw_in_order(7, 0, places, drawn)
    pairs = {(5 + i, j) for i in range(2) for j in range(3)} | {(i, j) for i in range(2) for j in range(4, 8)}
    pairs |= {(3, 8), (4, 8)}
    for sweep in drawn.reshape(3, 16, 3):
        assert {(i, j) for i, j, _ in sweep.tolist()} == pairs
        np.testing.assert_array_equal(sweep[:, 2], 10 * sweep[:, 1])
    any_pair = np.empty((3200, 3), dtype=np.int64)
    draw_any(7, 0, places, any_pair)
    _, counts = np.unique(any_pair[:, :2], axis=0, return_counts=True)
    assert len(counts) == 16
    assert counts.min() > 140


def test_all_steps_are_one_sweep_over_the_pairs_of_groups():
    r = np.random.default_rng(0)
    X, y, group = r.normal(size=(60, 3)), np.where(r.random(60) < 0.4, 1, -1), r.integers(0, 7, 60)
    blocks = watched(LocalBlocks.of(X, y, groups=group, n_blocks=1))
    n_pairs = sum((y[group == g] > 0).sum() * (y[group == g] < 0).sum() for g in range(7))
    last(sdcd_perm(blocks, 1e3, seed=0, steps="all"))
    assert pair_duals(blocks).nnz == n_pairs
