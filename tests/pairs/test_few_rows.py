"""The interior-point method where rows are few and features are more: against liblinear, and its dual points pair by pair."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, strategies as st
from support.grouped_pairs import best_hinge, hinge, mean_loss, pairs_of
from support.small_sets import blocks_of
from support.top_optima import top_hinge, top_optimum

from aucdist import PairwiseHingeClassifier
from aucdist.data.block import Block, into_blocks
from aucdist.engine.blocks import LocalBlocks
from aucdist.pairs import cutting_planes, few_rows as few_rows_module
from aucdist.pairs.cutting_planes import AllPairs, CuttingPlanes
from aucdist.pairs.few_rows import FewRows
from aucdist.pairs.problem import PairObjective
from aucdist.solvers.base import solve


def problem(seed, n_pos, n_neg, scale=1.0, *, ties=False, weighted=False, grouped=False):
    """Return more features than rows, labels, weights, groups, and all pairs."""
    r, n = np.random.default_rng(seed), n_pos + n_neg
    X = r.integers(-1, 2, (n, n + 5)).astype(float) if ties else r.normal(size=(n, n + 5))
    X *= scale ** r.uniform(-1.0, 1.0, X.shape[1])
    y = np.repeat([1, -1], [n_pos, n_neg]).astype(np.int8)
    weight = r.choice([0.5, 1.0, 3.0], n) if weighted else np.ones(n)
    group = np.arange(n) % 2 if grouped else np.zeros(n, dtype=int)
    return X, y, weight, group, pairs_of(y, group, weight)


@pytest.fixture
def soon(monkeypatch):
    """Let other methods count as stalled after two rounds, which small problems would end before."""
    monkeypatch.setattr(cutting_planes, "STALL_ROUNDS", 1)
    monkeypatch.setattr(cutting_planes, "STALL_SHARE", 0.0)
    monkeypatch.setattr(cutting_planes, "STALL_SHARE_OF_PLANES", 0.0)


def blocks(X, y, weight, group, n_blocks=1):
    block = Block.of(X, y, weight=weight, group=group if group.any() else None)
    return LocalBlocks(into_blocks(block, n_blocks))


def few_rows(rows, **options):
    """Return the rows as the interior-point method takes them."""
    return FewRows(CuttingPlanes(rows, PairObjective.of(rows, 1.0, **options)).cuts)


@given(
    seed=st.integers(0, 999), n_pos=st.integers(2, 12), n_neg=st.integers(2, 12), scale=st.sampled_from([1.0, 1e3, 1e6]),
    lam=st.sampled_from([1e-6, 1e-3, 1.0, 100.0]), ties=st.booleans(), weighted=st.booleans(), grouped=st.booleans(),
)  # fmt: skip
@example(seed=375, n_pos=2, n_neg=2, scale=1.0, lam=1e-6, ties=False, weighted=False, grouped=False)
def test_the_dual_point_is_one_and_near_the_minimum(seed, n_pos, n_neg, scale, lam, ties, weighted, grouped):
    X, y, weight, group, pairs = problem(seed, n_pos, n_neg, scale, ties=ties, weighted=weighted, grouped=grouped)
    few = few_rows(blocks(X, y, weight, group))
    assert sorted(few.weights) == pytest.approx(sorted(pairs[2]), rel=1e-12)
    minima = list(few.solve(lam))
    assert minima or scale > 1.0
    gaps = []
    for w, offset, gradient in minima:
        # A tangent from below: nowhere above the mean of the hinges.
        for v in (w, 0.5 * w, 2.0 * w, np.zeros(len(w)), -w):
            loss = mean_loss(hinge, v, X, pairs)
            reach = np.abs(v) @ np.abs(X).max(axis=0)
            assert offset + gradient @ v <= loss + 1e-13 * (1.0 + reach)
        primal = 0.5 * lam * w @ w + mean_loss(hinge, w, X, pairs)
        dual = offset - gradient @ gradient / (2.0 * lam)
        assert dual <= primal * (1 + 1e-9)
        gaps.append(primal - dual)
    if scale == 1.0:
        assert gaps[-1] <= 1e-6 * primal
        # Once the gap is 0 but for rounding, later points may be worse by as much: by 2e-9 in the example above.
        assert all(later <= 0.2 * gap + 1e-8 * primal for gap, later in itertools.pairwise(gaps[:-1]))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.usefixtures("soon")
def test_the_optimum_is_liblinears(seed):
    X, y, weight, group, pairs = problem(seed, 8, 15, weighted=seed % 2 == 0, grouped=seed % 3 == 0)
    lam = 10.0 ** (-(seed % 4))
    solution = solve(AllPairs().rounds(blocks(X, y, weight, group, 1 + seed % 3), lam), tol=1e-6, max_passes=50)
    certificate = solution.certificate
    assert certificate.status == "converged"
    assert solution.passes <= 12
    best = best_hinge(X, pairs, lam)  # up to 1e-4 above the optimum
    assert best * (1 - 1e-4) <= certificate.primal <= best * (1 + 1e-6)
    assert certificate.dual - certificate.rounding <= best


def test_all_kinds_of_rows_give_the_same():
    X, y, *_ = problem(3, 10, 20)
    solutions = [
        solve(AllPairs().rounds(blocks_of(form(X), y), 1e-2), tol=1e-7, max_passes=50)
        for form in (np.asarray, sp.csr_array)
    ]
    np.testing.assert_allclose(solutions[1].w, solutions[0].w, rtol=1e-6, atol=1e-9)
    r = np.random.default_rng(1)
    wide = r.normal(size=(60, 1000))
    model = PairwiseHingeClassifier(features="bins").fit(wide, wide[:, 0] > 0)
    assert model.certificate_.status == "converged"
    assert len(model.history_) <= 150  # 798 by cutting planes alone


@pytest.mark.usefixtures("soon")
def test_a_path_takes_few_passes_for_each_lam(monkeypatch):
    X, y, weight, group, _ = problem(4, 10, 20)
    rows = blocks(X, y, weight, group)
    path = CuttingPlanes(rows, PairObjective.of(rows, 1.0))
    for lam in (1.0, 1e-2, 1e-4):
        assert solve(path.rounds(lam), tol=1e-5, max_passes=50).passes <= 10
    monkeypatch.setattr(cutting_planes, "MAX_ROWS", 29)
    planes = CuttingPlanes(rows, PairObjective.of(rows, 1.0))
    assert solve(planes.rounds(1e-4), tol=1e-5, max_passes=50).passes > 10


def test_values_that_hide_the_minimum_leave_it_to_cutting_planes():
    X, y, weight, group, _ = problem(5, 6, 9)
    X[:, 0] *= 1e200
    few = few_rows(blocks(X, y, weight, group))
    assert list(few.solve(1.0)) == []


def test_products_beyond_float64_are_no_warning():
    X, y, weight, group, _ = problem(5, 6, 9)
    few = few_rows(blocks(1e152 * X, y, weight, group))
    assert np.isfinite(few.products).all()
    assert list(few.solve(1e-10)) == []  # a warning is an error here


def test_no_point_is_handed_over_once_rounding_hides_the_gap():
    X, y, weight, group, pairs = problem(29, 10, 20)
    minima = list(few_rows(blocks(X, y, weight, group)).solve(100.0))
    assert len(minima) <= 20  # 48 where steps went on
    _, offset, gradient = minima[-1]
    assert offset - gradient @ gradient / 200.0 == pytest.approx(best_hinge(X, pairs, 100.0), rel=1e-3)


def test_weights_whose_products_are_0_leave_their_pairs_out():
    X, y, *_ = problem(6, 4, 5)
    weight = np.where(np.arange(9) % 4 == 0, 1e-100, 1e100)
    few = few_rows(blocks(X, y, weight, np.zeros(9, dtype=int)))
    assert few.weights.min() > 0.0
    assert len(few.weights) < 20
    *_, (_, offset, _) = few.solve(1e-2)
    *_, (_, alone, _) = few_rows(blocks(X, y, (weight > 1.0) * 1.0, np.zeros(9, dtype=int))).solve(1e-2)
    assert offset == pytest.approx(alone)


@pytest.mark.parametrize("grade_weight", ["difference", "one"])
@pytest.mark.usefixtures("soon")
def test_grades_and_a_single_positive(grade_weight):
    X, *_ = problem(7, 6, 9)
    grades = np.arange(15) % 4
    pairs = pairs_of(grades, np.zeros(15, dtype=int), np.ones(15), grade_weight=grade_weight)
    rows = LocalBlocks(into_blocks(Block.of(X, np.where(grades > 0, 1, -1), grade=grades.astype(float)), 2))
    solution = solve(AllPairs().rounds(rows, 1e-2, grade_weight=grade_weight), tol=1e-6, max_passes=50)
    assert solution.certificate.status == "converged"
    best = best_hinge(X, pairs, 1e-2)
    assert best * (1 - 5e-3) <= solution.certificate.primal <= best * (1 + 1e-6)
    X, y, weight, group, pairs = problem(8, 1, 20)
    of_one_positive = solve(AllPairs().rounds(blocks(X, y, weight, group, 3), 1e-3), tol=1e-6, max_passes=50)
    assert of_one_positive.certificate.status == "converged"
    best = best_hinge(X, pairs, 1e-3)
    assert best * (1 - 5e-3) <= of_one_positive.certificate.primal <= best * (1 + 1e-6)


@pytest.mark.usefixtures("soon")
def test_blocks_and_threads_do_not_change_the_bits():
    X, y, *_ = problem(9, 30, 50)
    whole = Block.of(X, y)
    fits = [
        solve(AllPairs().rounds(LocalBlocks.split(whole, 4, threads), 1e-3), tol=1e-6, max_passes=50)
        for threads in (1, 3)
    ]
    assert fits[0].w.tobytes() == fits[1].w.tobytes()
    assert fits[0].certificate == fits[1].certificate


def test_too_many_values_stay_where_they_are(monkeypatch):
    X, y, weight, group, _ = problem(4, 10, 20)
    monkeypatch.setattr(cutting_planes, "MAX_VALUES", X.size - 1)
    monkeypatch.setattr(cutting_planes, "FewRows", None)
    planes = CuttingPlanes(rows := blocks(X, y, weight, group), PairObjective.of(rows, 1.0))
    assert solve(planes.rounds(1e-2), tol=1e-3, max_passes=300).certificate.status == "converged"


# ---- the highest-scoring negatives ----


@given(
    seed=st.integers(0, 999), n_pos=st.integers(1, 10), n_neg=st.integers(1, 12), n_features=st.sampled_from([2, 30]),
    lam=st.sampled_from([1e-4, 1e-2, 1.0]), ties=st.booleans(), weighted=st.booleans(),
    max_fpr=st.sampled_from([0.1, 0.4, 1.0]),
)  # fmt: skip
def test_dual_points_of_the_top_are_tangents_and_near_the_minimum(
    seed, n_pos, n_neg, n_features, lam, ties, weighted, max_fpr
):
    X, y, weight, group, _ = problem(seed, n_pos, n_neg, ties=ties, weighted=weighted)
    X, target = X[:, :n_features], max_fpr * weight[y < 0].sum()
    few = few_rows(blocks(X, y, weight, group), max_fpr=max_fpr)
    assert few.choose(np.zeros(X.shape[1])) == len(y)  # all scores are equal
    for w, offset, gradient in few.solve(lam):
        for v in (w, 0.5 * w, 2.0 * w, np.zeros(len(w)), -w):
            reach = np.abs(v) @ np.abs(X).max(axis=0)
            assert offset + gradient @ v <= top_hinge(X @ v, y, target, weight) + 1e-13 * (1.0 + reach)
        primal = 0.5 * lam * w @ w + top_hinge(X @ w, y, target, weight)
        gap = primal - (offset - gradient @ gradient / (2.0 * lam))
    # A few steps end at 2e-5 of the minimum, where rounding in their equations takes over.
    assert -1e-9 * primal <= gap <= 1e-4 * primal
    assert primal == pytest.approx(top_optimum(X, y, lam, target, weight), rel=1e-4, abs=5e-8)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.usefixtures("soon")
def test_rows_that_come_to_count_are_chosen_until_the_minimum_is_that_of_all(seed, monkeypatch):
    monkeypatch.setattr(few_rows_module, "MIN_CHOSEN", 0.0)
    monkeypatch.setattr(few_rows_module, "SHARE_CHOSEN", 1.0)
    X, y, weight, group, _ = problem(seed, 10, 40, weighted=seed % 2 == 0)
    X, target = X[:, : (5, 50)[seed // 2]], 0.1 * weight[y < 0].sum()
    solution = solve(AllPairs().rounds(blocks(X, y, weight, group, 2), 1e-2, max_fpr=0.1), tol=1e-6, max_passes=60)
    assert solution.certificate.status == "converged"
    best = top_optimum(X, y, 1e-2, target, weight)
    assert best * (1 - 1e-6) <= solution.certificate.primal <= best * (1 + 2e-6)
    assert solution.certificate.dual - solution.certificate.rounding <= best * (1 + 1e-6)


def test_separable_rows_at_the_top_take_few_passes():
    r = np.random.default_rng(0)
    X = (r.random((900, 120)) < 0.25).astype(float)
    y = np.where(X[:, :12].sum(axis=1) + r.normal(scale=0.3, size=900) > 4.5, 1, -1)
    solution = solve(AllPairs().rounds(blocks_of(X, y), 1e-3, max_fpr=0.01), tol=1e-3, max_passes=100)
    assert solution.certificate.status == "converged"
