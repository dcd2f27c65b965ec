"""Newton steps on the smoothed pairs: their second derivative and slopes against plain Python, and the optimum they lead to."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from support.code_sets import random_codes, slow_matrix
from support.grouped_pairs import best_hinge, pairs_of
from support.optima import optimum
from support.oracle import pairwise_objective
from support.rounds import leave_newton_steps
from support.seeds import searched
from support.small_sets import blocks_of, small

from aucdist.data.block import Block, into_blocks
from aucdist.data.shards.sharding import simulate
from aucdist.engine.blocks import LocalBlocks
from aucdist.maps import BinExpander
from aucdist.pairs import newton
from aucdist.pairs.cutting_planes import AllPairs, CuttingPlanes
from aucdist.pairs.groups import pair_groups
from aucdist.pairs.penalty import L2
from aucdist.pairs.problem import PairObjective
from aucdist.solvers.base import Status, solve

SIGNS = np.array([1, 0, -1], dtype=np.int8)


def at_a_point(block, w, h, **options):
    """Return a solver at w, and its drawn rows there: all of them, as they are few."""
    planes = CuttingPlanes(LocalBlocks([block]), PairObjective(**options), w)
    planes.cuts.pair_half_width = h
    planes.accept(planes.cuts.cut(0.0, w, planes.gap_left), move_anyway=True)
    return planes, planes.samples.for_band(h, anew=False)[0]


def pairs_in_plain_python(X, y, weight, group):
    for i in np.flatnonzero(y > 0):
        for j in np.flatnonzero(y < 0):
            if group[i] == group[j]:
                yield i, j, weight[i] * weight[j]


@pytest.mark.nojit
@pytest.mark.parametrize(("classes", "form"), [((8, 15), np.asarray), ((15, 8), sp.csr_array), ((8, 15), None)])
@pytest.mark.parametrize("grouped", [False, True])
def test_the_second_derivative_and_the_slopes_are_those_of_all_pairs(grouped, classes, form):
    X, y = small(*classes, d=4)
    r, h, w = np.random.default_rng(0), 0.4, np.array([0.3, -0.2, 0.5, 0.1])
    if form is None:
        codes = random_codes(len(y), 1)
        X = slow_matrix(codes)
        w = 0.3 * r.normal(size=X.shape[1])
    weight, move = r.uniform(0.5, 2.0, len(y)), r.normal(size=len(w))
    group = r.integers(0, 3, len(y)) if grouped else np.zeros(len(y), dtype=int)
    block = Block.of(X if form is None else form(X), y, weight=weight, group=group if grouped else None)
    if form is None:
        block = replace(block, rows=codes)
    groups = pair_groups(LocalBlocks([block])) if grouped else None
    _, sample = at_a_point(block, w, h, groups=groups)
    H, mass, slopes = np.zeros((len(w), len(w))), 0.0, np.zeros(2)
    for i, j, m in pairs_in_plain_python(X, y, weight, group):
        d = X[i] - X[j]
        mass += m
        if abs(1.0 - d @ w) < h:
            H += m * np.outer(d, d) / (2.0 * h)
        for k, step in enumerate((0.0, 0.7)):
            slopes[k] -= m * np.clip((1.0 - d @ (w + step * move) + h) / (2.0 * h), 0.0, 1.0) * (d @ move)
    assert H.any()
    pairs = newton.Pairs(sample, h, 0.0)
    np.testing.assert_allclose(pairs.matrix(), H / mass, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(pairs.product(move), H @ move / mass, rtol=1e-9, atol=1e-12)
    along = sample.slope_along(move, h, h)
    np.testing.assert_allclose([along(0.0), along(0.7)], slopes / mass, rtol=1e-8, atol=1e-10)


def test_rows_drawn_stand_for_all():
    block = simulate(6_000, 5, 0.3, seed=0)
    w = np.full(5, 0.3)
    exact, drawn = (at_a_point(block, w, 0.3) for _ in range(2))
    exact[0].samples.n_to_draw, drawn[0].samples.n_to_draw = 10**6, 1_000
    (whole, same), (half, other) = (planes.samples.for_band(0.3, anew=True) for planes, _ in (exact, drawn))
    assert whole is same
    assert set(half.rows.row_id.tolist()) != set(other.rows.row_id.tolist())
    H = newton.Pairs(whole, 0.3, 0.0).matrix()
    assert np.linalg.norm(newton.Pairs(half, 0.3, 0.0).matrix() - H) < 0.15 * np.linalg.norm(H)


def test_the_matrix_is_made_of_fewer_columns_of_codes_than_of_numbers():
    X, y = np.random.default_rng(0).integers(0, 2, (60, 200)).astype(float), np.repeat([1, -1], 30)

    def is_dense(block):
        return at_a_point(block, np.zeros(block.n_features), 0.5)[1].is_dense

    assert is_dense(Block.of(X, y))
    for d in (200, 50):
        codes = BinExpander().fit(X[:, :d]).map_.map_block(Block.of(X[:, :d], y))
        assert codes.n_features == d
        assert is_dense(codes) == (d == 50)


@pytest.mark.parametrize("signs", [None, SIGNS])
def test_conjugate_gradients_and_the_matrix_give_the_same_step(signs, monkeypatch):
    monkeypatch.setattr(newton, "CG_TOL", 1e-10)
    X, y = small(30, 60, d=3)
    w = np.array([0.3, 0.1, -0.2])
    _, sample = at_a_point(Block.of(X, y), w, 0.5)
    gradient = np.array([0.2, -0.1, 0.3])
    steps = []
    for most_products in (0.0, newton.MAX_PRODUCTS):
        monkeypatch.setattr(newton, "MAX_PRODUCTS", most_products)
        assert sample.is_dense == (most_products > 0.0)
        steps.append(newton.newton_step(newton.Pairs(sample, 0.5, 0.0), gradient, w, L2(1e-2, signs), 0.0))
    np.testing.assert_allclose(*steps, rtol=1e-6, atol=1e-9)
    if signs is not None:
        assert ((w + steps[0]) * signs >= 0.0).all()


@pytest.mark.parametrize("first", searched(range(0, 300, 25), quick=2))
def test_the_optimum_is_that_of_an_independent_programme(first):
    for seed in range(first, first + 25):
        r = np.random.default_rng(seed)
        X, y = small(int(r.integers(1, 9)), int(r.integers(1, 25)), d=int(r.integers(1, 5)), seed=seed)
        if seed % 3 == 0:
            X = np.round(X)  # ties
        lam = 10.0 ** r.uniform(-3, 0)
        solution = solve(AllPairs().rounds(blocks_of(X, y), lam), tol=1e-4, max_passes=400)
        best = optimum(X, y, lam)
        assert solution.certificate.status is Status.CONVERGED
        assert solution.certificate.dual <= best * (1 + 1e-7) + 1e-12
        assert best * (1 - 1e-6) <= solution.certificate.primal <= best * (1 + 1.01e-4) + 1e-9


@pytest.mark.parametrize("signs", [None, np.array([1, -1, 0, 2, 0], dtype=np.int8)])
@pytest.mark.parametrize("share", [None, 0.1])
def test_bits_depend_on_neither_threads_nor_chance(share, signs):
    rows = simulate(9_000, 5, 0.2, seed=1)

    def fit(n_jobs):
        rounds = AllPairs().rounds(LocalBlocks(into_blocks(rows, 4), n_jobs=n_jobs), 1e-3, max_fpr=share, signs=signs)
        return solve(rounds, tol=1e-4, max_passes=200)

    one_thread, two, again = map(fit, (1, 2, 2))
    assert one_thread.certificate.status is Status.CONVERGED
    assert one_thread.w.tobytes() == two.w.tobytes() == again.w.tobytes()
    assert one_thread.certificate == two.certificate


def test_it_takes_fewer_passes_than_cutting_planes(monkeypatch):
    blocks = LocalBlocks([simulate(9_000, 10, 0.1, seed=2)])
    newton_steps = solve(AllPairs().rounds(blocks, 1e-4), tol=1e-3, max_passes=300)
    leave_newton_steps(monkeypatch)
    planes = solve(AllPairs().rounds(blocks, 1e-4), tol=1e-3, max_passes=300)
    assert newton_steps.certificate.status is planes.certificate.status is Status.CONVERGED
    assert newton_steps.passes < 0.7 * planes.passes


def test_groups_are_drawn_whole():
    r = np.random.default_rng(4)
    group, y = np.repeat(np.arange(600), 10), np.where(r.random(6000) < 0.3, 1, -1)
    X = r.normal(size=(6000, 3)) + 0.5 * (y[:, None] > 0)
    block = Block.of(X, y, group=group)
    blocks = LocalBlocks([block])
    planes = CuttingPlanes(blocks, PairObjective(groups=pair_groups(blocks)))
    planes.samples.n_to_draw = 400
    solution = solve(planes.rounds(1e-3), tol=1e-3, max_passes=100)
    drawn, _ = planes.samples.samples  # two, as not all rows are drawn
    sizes = np.bincount(drawn.group_numbers)
    assert set(sizes[sizes > 0]) == {10}
    assert solution.certificate.status is Status.CONVERGED
    first = slice(0, 400)
    pairs = pairs_of(y[first], group[first], np.ones(400))
    few = solve(AllPairs().rounds(LocalBlocks([block.between(0, 400)]), 0.1), tol=1e-6, max_passes=300)
    assert few.certificate.primal == pytest.approx(best_hinge(X[first], pairs, 0.1), rel=1e-4)


@pytest.mark.parametrize("scales", list(itertools.product([1e-8, 1.0, 1e8], repeat=2)))
def test_no_bound_is_above_the_optimum_at_hostile_scales(scales):
    X, y = small(9, 30, d=2)
    X = X * np.array(scales)
    for state in itertools.islice(AllPairs().rounds(blocks_of(X, y), 1e-2), 40):
        true = pairwise_objective(state.w, X, y, 1e-2)
        assert abs(state.primal - true) <= state.primal_error + 1e-9 * true
        assert state.dual - state.dual_error <= true + state.primal_error
