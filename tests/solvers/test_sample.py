import functools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from support.rounds import rounds_of

from aucdist.data.block import Block, into_blocks
from aucdist.data.split import split
from aucdist.engine.blocks import LocalBlocks
from aucdist.maps.binning import sample_by_class
from aucdist.pairs import RampLBFGS
from aucdist.pairs.cutting_planes import MIN_NOISE, AllPairs
from aucdist.papers.gev.solvers import Newton
from aucdist.probability.links import Link, LinkLoss
from aucdist.search.folds import masked_blocks
from aucdist.solvers import sample
from aucdist.solvers.base import REACHED, solve

newton = rounds_of(Newton)

N, D = 3000, 5
SOLVERS = {
    "all_pairs": AllPairs().rounds,
    "newton": functools.partial(newton, loss=LinkLoss(Link("logit", 0.0), "calibrated")),
    "pair_ramp": functools.partial(RampLBFGS().rounds, tol=1e-6),
}


def rows(n=N, weighted=False):
    r = np.random.default_rng(3)
    y = np.where(r.random(n) < 0.1, 1, -1)
    X = r.normal(size=(n, D)) + 0.5 * (y[:, None] > 0)
    return Block.of(X, y, weight=r.integers(0, 3, n) / 2.0 if weighted else None)


def dealt(block, n_blocks=1):
    return LocalBlocks(into_blocks(block, n_blocks))


@pytest.fixture
def large(monkeypatch):
    """Take the rows above for large data."""
    monkeypatch.setattr(sample, "MIN_ROWS_TO_SAMPLE", 1000)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("n_blocks", [2, 7])
def test_blocks_do_not_change_the_sample(n_blocks, form):
    block = rows()
    block = block.with_X(form(block.X))
    whole, many = sample.draw_sample(dealt(block)), sample.draw_sample(dealt(block, n_blocks))
    assert 100 < whole.n_samples < 300
    assert np.all(np.diff(whole.row_id) > 0)
    np.testing.assert_array_equal(many.row_id, whole.row_id)
    np.testing.assert_array_equal(many.weight, whole.weight)
    np.testing.assert_array_equal(sp.csr_matrix(many.X).toarray(), sp.csr_matrix(block.X).toarray()[whole.row_id])


def test_weights_stand_for_the_rows_left_out():
    block = rows(20_000, weighted=True)
    drawn = sample.draw_sample(dealt(block))
    assert np.all(block.weight[drawn.row_id] > 0)
    for label in (-1, 1):
        of_sample = drawn.weight[drawn.y == label].sum()
        assert of_sample == pytest.approx(block.weight[block.y == label].sum(), rel=0.1)


def test_a_small_class_is_there_as_a_whole():
    block = rows()
    few = block.take(np.sort(np.concatenate([np.flatnonzero(block.y < 0), np.flatnonzero(block.y > 0)[:20]])))
    drawn = sample.draw_sample(dealt(few))
    np.testing.assert_array_equal(drawn.row_id[drawn.y > 0], few.row_id[few.y > 0])
    assert np.all(drawn.weight[drawn.y > 0] == 1.0)


@pytest.mark.parametrize("groups", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_rows_that_were_split_by_any_seed_are_drawn(seed, groups):
    block = rows(40_000)
    block = replace(block, group=block.row_id // 4) if groups else block
    dealt_train = dealt(block.take(split(block, 0.3, seed)[0]))
    drawn = (
        sample.draw_sample(dealt_train, whole_groups=groups),
        sample_by_class(dealt_train, 300, whole_groups=groups),
    )
    for some in drawn:
        assert 30 < some.n_pos < some.n_samples - 30


def test_small_data_start_without_a_sample(monkeypatch):
    monkeypatch.setattr(sample, "draw_sample", None)  # a call fails
    for rounds in SOLVERS.values():
        assert solve(rounds(dealt(rows(300)), 1e-2), tol=1e-2, max_passes=100).certificate.status in REACHED


@pytest.mark.usefixtures("large")
def test_no_sample_where_features_outnumber_its_rows(monkeypatch):
    monkeypatch.setattr(sample, "draw_sample", None)
    block = rows()
    wide = dealt(block.with_X(sp.hstack([block.X, sp.csr_matrix((N, N // 32))], format="csr")))
    for rounds in SOLVERS.values():
        assert next(rounds(wide, 1e-2)).passes == 1


@pytest.mark.usefixtures("large")
def test_cuts_begin_at_zero_where_a_sample_would_follow_chance():
    blocks = dealt(rows())
    least = MIN_NOISE * sample.noise(sample.draw_sample(blocks))
    for lam, near in ((0.9 * least, False), (1.1 * least, True)):
        first = next(AllPairs().rounds(blocks, lam))
        assert bool(first.w.any()) == near
        assert (first.passes > 2) == near


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(("n_blocks", "weighted"), [(1, True), (3, False)])
@pytest.mark.parametrize("rounds", SOLVERS.values(), ids=SOLVERS)
def test_the_optimum_is_the_same_from_a_sample(rounds, weighted, n_blocks):
    blocks = dealt(rows(weighted=weighted), n_blocks)
    cold = np.zeros(D + (rounds is SOLVERS["newton"]))
    known, solution = (solve(rounds(blocks, 1e-3, start), tol=1e-6, max_passes=2000) for start in (cold, None))
    assert known.certificate.status in REACHED
    assert solution.certificate.status is known.certificate.status
    assert solution.certificate.primal == pytest.approx(known.certificate.primal, rel=2e-6)
    np.testing.assert_allclose(solution.w, known.w, atol=5e-3)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("rounds", SOLVERS.values(), ids=SOLVERS)
def test_the_first_round_is_near_and_says_what_it_took(rounds):
    blocks = dealt(rows())
    cold = np.zeros(D + (rounds is SOLVERS["newton"]))
    far, near = (next(rounds(blocks, 1e-3, start)) for start in (cold, None))
    best = solve(rounds(blocks, 1e-3), tol=1e-6, max_passes=2000).certificate.primal
    assert near.primal - best < 0.2 * (far.primal - best)
    assert near.dual <= best
    assert near.passes >= far.passes + 2  # to draw, and on the sample


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("rounds", SOLVERS.values(), ids=SOLVERS)
def test_masked_rows_are_not_drawn(rounds):
    block = rows()
    kept = np.arange(N) % 3 != 0
    of_mask = solve(rounds(masked_blocks(dealt(block), kept), 1e-3), tol=1e-3, max_passes=500)
    alone = solve(rounds(dealt(block.take(kept)), 1e-3), tol=1e-3, max_passes=500)
    np.testing.assert_allclose(of_mask.w, alone.w, rtol=1e-12)
    assert of_mask.passes == alone.passes


def in_groups(n_groups=2400, n=6 * N):
    r = np.random.default_rng(5)
    group = r.integers(0, n_groups, n)
    y = np.where(r.random(n) < 0.2, 1, -1)
    return Block.of(r.normal(size=(n, D)) + 0.5 * (y[:, None] > 0), y, group=group)


def test_groups_are_drawn_whole():
    block = in_groups()
    whole, many = (sample.draw_sample(dealt(block, k), whole_groups=True) for k in (1, 4))
    np.testing.assert_array_equal(whole.row_id, many.row_id)
    np.testing.assert_array_equal(whole.row_id, np.flatnonzero(np.isin(block.group, whole.group)))
    assert 90 < len(np.unique(whole.group)) < 220


@pytest.mark.parametrize("name", ["all_pairs", "pair_ramp"])
@pytest.mark.parametrize(("n_groups", "options"), [(2400, {}), (2400, {"group_weight": "groups"}), (300, {})])
def test_a_fit_within_groups_starts_from_a_sample_of_them(name, n_groups, options, large, monkeypatch):
    drawn, draw = [], sample.draw_sample
    monkeypatch.setattr(sample, "draw_sample", lambda *args, **kwargs: drawn.append(kwargs) or draw(*args, **kwargs))
    blocks, tol = dealt(in_groups(n_groups), 2), 1e-4 if name == "all_pairs" else 0.0
    warm, cold = (
        solve(SOLVERS[name](blocks, 1e-2, start, **options), tol=tol, max_passes=300).certificate
        for start in (None, np.zeros(D))
    )
    assert drawn == ([{"whole_groups": True}] if n_groups == 2400 else [])  # of few groups no sample is drawn
    assert warm.status in REACHED
    assert warm.primal == pytest.approx(cold.primal, rel=2e-4)
