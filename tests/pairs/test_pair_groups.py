"""Pairs within groups and of rows with grades, beside every pair counted by itself."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from support.grouped_pairs import best_hinge, best_hinge_l1, hinge, mean_loss, ramp
from support.grouped_problem import Problem, some_problems
from support.rounds import rounds_of
from support.seeds import searched

from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.pairs import AllPairs, RampLBFGS
from aucdist.pairs.groups import pair_groups
from aucdist.pairs.loss import RAMP
from aucdist.pairs.problem import PairProblem, pairwise_objective
from aucdist.solvers.base import solve

all_pairs, pair_ramp = rounds_of(AllPairs), rounds_of(RampLBFGS)


@pytest.mark.parametrize("first", searched(range(0, 120, 40), quick=1))
def test_hinge_over_all_pairs_by_themselves(first):
    problems = some_problems(range(first, first + 40))
    assert len(problems) >= 35
    away = []
    for p in problems:
        solution = solve(all_pairs(p.blocks(), p.lam, **p.options), tol=1e-6, max_passes=2000)
        c = solution.certificate
        primal = 0.5 * p.lam * solution.w @ solution.w + mean_loss(hinge, solution.w, p.X, p.pairs)
        assert c.primal == pytest.approx(primal, abs=c.rounding + 1e-15, rel=1e-12)
        best = best_hinge(p.X, p.pairs, p.lam)
        assert c.dual - c.rounding <= best
        assert c.status == "converged"
        assert c.primal <= best * (1 + 2e-6)
        away.append((best - c.primal) / best)
    assert np.quantile(away, 0.75) < 1e-5  # where liblinear comes to its end, both agree


def test_rows_of_one_class_make_pairs_by_their_grades():
    (p,) = some_problems([105])
    assert p.blocks().weight_neg == 0.0
    c = solve(all_pairs(p.blocks(), p.lam, **p.options), tol=1e-6, max_passes=2000).certificate
    best = best_hinge(p.X, p.pairs, p.lam)
    assert c.status == "converged"
    assert c.dual - c.rounding <= best
    assert c.primal <= best * (1 + 2e-6)


def test_l1_beside_a_linear_programme():
    for p in some_problems(range(30)):
        c = solve(all_pairs(p.blocks(), p.lam, penalty="l1", **p.options), tol=1e-5, max_passes=1000).certificate
        best = best_hinge_l1(p.X, p.pairs, p.lam)
        assert c.dual - c.rounding <= best * (1 + 1e-9)
        assert best * (1 - 1e-9) <= c.primal
        if c.status == "converged":
            assert c.primal <= best * (1 + 2e-5)


def test_l1_and_signs_have_true_bounds():
    r = np.random.default_rng(1)
    for p in some_problems(range(20)):
        signs = r.integers(-1, 2, p.X.shape[1]).astype(np.int8)
        l1 = solve(all_pairs(p.blocks(), p.lam, penalty="l1", **p.options), tol=1e-4, max_passes=300)
        cone = solve(all_pairs(p.blocks(), p.lam, signs=signs, **p.options), tol=1e-4, max_passes=300)
        for fit, penalty in ((l1, lambda w: np.abs(w).sum()), (cone, lambda w: 0.5 * w @ w)):
            c = fit.certificate
            points = [fit.w, np.zeros(len(fit.w)), *(fit.w * r.uniform(0, 2, len(fit.w)) for _ in range(30))]
            values = [p.lam * penalty(w) + mean_loss(hinge, w, p.X, p.pairs) for w in points]
            assert values[0] == pytest.approx(c.primal, abs=c.rounding + 1e-15, rel=1e-12)
            assert c.dual - c.rounding <= min(values)
        assert ((cone.w == 0) | (np.sign(cone.w) == signs) | (signs == 0)).all()


def test_ramp_value_and_slope():
    r = np.random.default_rng(2)
    for p in some_problems(range(30)):
        X = p.X / max(1.0, np.abs(p.X).max())
        p.X = X
        blocks = p.blocks()
        problem = PairProblem(blocks, RAMP, pair_groups(blocks, **p.options))
        w = r.normal(size=X.shape[1])
        total, slopes = problem.sweep(w)
        value, slope = total / problem.pair_weight, problem.gradient(slopes)
        assert value == pytest.approx(mean_loss(ramp, w, X, p.pairs), rel=1e-10, abs=1e-12)
        for j in range(len(w)):
            step = 1e-6 * (np.arange(len(w)) == j)
            up, down = (mean_loss(ramp, w + s * step, X, p.pairs) for s in (1, -1))
            assert slope[j] == pytest.approx((up - down) / 2e-6, abs=2e-5)


def test_ramp_comes_to_a_stationary_point():
    for p in some_problems(range(12)):
        solution = solve(pair_ramp(p.blocks(), p.lam, tol=1e-4, **p.options), tol=1e-4, max_passes=500)
        assert solution.certificate.status in ("stationary", "max-steps")
        value = 0.5 * p.lam * solution.w @ solution.w + mean_loss(ramp, solution.w, p.X, p.pairs)
        assert solution.certificate.primal == pytest.approx(value, rel=1e-9, abs=solution.certificate.rounding)


@given(st.integers(1000, 10**6), st.integers(1, 6))
def test_blocks_do_not_change_the_value(seed, n_blocks):
    p = Problem(seed)
    if p.pairs is None:
        return
    w, values = np.random.default_rng(seed).normal(size=p.X.shape[1]), []
    for blocks in (p.blocks(1), p.blocks(n_blocks)):
        values.append(pairwise_objective(blocks, w, p.lam, groups=pair_groups(blocks, **p.options)))
    assert values[0] == pytest.approx(values[1], rel=1e-12)


def test_one_group_is_all_pairs():
    r = np.random.default_rng(3)
    X, y = r.normal(size=(300, 4)), np.where(r.random(300) < 0.2, 1, -1)
    plain = solve(all_pairs(LocalBlocks.of(X, y, n_blocks=3), 1e-3), tol=1e-6, max_passes=1000)
    grouped = solve(
        all_pairs(LocalBlocks.of(X, y, groups=np.full(300, 9), n_blocks=3), 1e-3), tol=1e-6, max_passes=1000
    )
    assert plain.certificate.primal == pytest.approx(grouped.certificate.primal, rel=1e-6)
    np.testing.assert_allclose(plain.w, grouped.w, rtol=1e-3)


def test_an_offset_of_each_group_is_not_seen():
    """What is added to all rows of a group changes no pair within it."""
    r = np.random.default_rng(4)
    group = r.integers(0, 30, 400)
    X, y = r.integers(-8, 9, (400, 3)).astype(float), np.where(r.random(400) < 0.3, 1, -1)
    moved = X + r.integers(-50, 50, (30, 3))[group]
    original, other = (
        solve(all_pairs(LocalBlocks.of(Z, y, groups=group, n_blocks=2), 1e-2), tol=1e-6, max_passes=500)
        for Z in (X, moved)
    )
    np.testing.assert_allclose(original.w, other.w, rtol=1e-3)


def test_groups_of_one_class_count_nothing():
    r = np.random.default_rng(5)
    X, y, group = r.normal(size=(90, 3)), np.where(r.random(90) < 0.5, 1, -1), np.repeat([1, 2, 3], 30)
    y[group == 2] = 1
    groups = pair_groups(LocalBlocks.of(X, y, groups=group, n_blocks=4))
    assert (groups.n_groups, groups.n_without_pairs, groups.keys.tolist()) == (2, 1, [1, 3])
    left = group != 2
    all_rows, some_rows = (
        solve(all_pairs(LocalBlocks.of(X[at], y[at], groups=group[at], n_blocks=1), 1e-2), tol=1e-9, max_passes=50)
        for at in (np.ones(90, dtype=bool), left)
    )
    np.testing.assert_allclose(all_rows.w, some_rows.w, rtol=1e-9)


def test_no_pair_at_all():
    with pytest.raises(InputError, match="none of the 2 groups has rows of two classes"):
        next(all_pairs(LocalBlocks.of(np.eye(4), [1, 1, -1, -1], groups=["a", "a", "b", "b"], n_blocks=1), 1.0))


def test_grades_that_are_measurements():
    block = Block.of(np.eye(100), np.where(np.arange(100) > 0, 1, -1), grade=np.arange(100.0))
    with pytest.raises(InputError, match="100 different grades"):
        next(all_pairs(LocalBlocks([block]), 1.0))


def test_a_top_share_with_groups_is_refused():
    blocks = LocalBlocks.of(np.eye(4), [1, -1, 1, -1], groups=[0, 0, 1, 1], n_blocks=1)
    for rounds in (all_pairs, pair_ramp):
        with pytest.raises(InputError, match="max_fpr"):
            next(rounds(blocks, 1.0, max_fpr=0.1))


def test_many_rows_to_an_anchor():
    r = np.random.default_rng(7)
    y = np.where(r.random(60_000) < 0.01, 1, -1)
    X, group = r.normal(size=(60_000, 4)) + 0.7 * (y[:, None] > 0), r.integers(0, 800, 60_000)
    blocks = LocalBlocks.of(X, y, groups=group, n_blocks=3)
    solution = solve(all_pairs(blocks, 1e-3), tol=1e-3, max_passes=60)
    assert solution.certificate.status == "converged"
    value = pairwise_objective(blocks, solution.w, 1e-3, groups=pair_groups(blocks))
    assert solution.certificate.primal == pytest.approx(value, rel=1e-12)
