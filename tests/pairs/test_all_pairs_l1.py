import itertools
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from support.optima import optimum_l1
from support.oracle import pair_differences
from support.small_sets import CASES, blocks_of

from aucdist import PairwiseHingeClassifier
from aucdist.errors import InputError
from aucdist.estimators.linear import lam_path
from aucdist.pairs.cutting_planes import AllPairs
from aucdist.solvers.base import Status, solve

all_pairs_l1 = partial(AllPairs().rounds, penalty="l1")


def small(n_pos=9, n_neg=23, d=5, seed=0):
    r = np.random.default_rng(seed)
    y = np.repeat([1, -1], [n_pos, n_neg])
    X = r.normal(size=(len(y), d))
    X[:, 0] += 1.2 * (y > 0)
    order = r.permutation(len(y))
    return X[order], y[order]


def objective(w, X, y, lam):
    """The objective by counting every pair."""
    return lam * np.abs(w).sum() + np.maximum(0.0, 1.0 - pair_differences(X, y) @ w).mean()


@pytest.mark.parametrize(("case", "lam"), [*zip(CASES, [1e-2, 1e-3] * 3, strict=False), ("few positives", 0.3)])
def test_every_round_is_certified_by_counting(case, lam):
    X, y = CASES[case]
    best = optimum_l1(X, y, lam)
    for state in itertools.islice(all_pairs_l1(blocks_of(X, y), lam), 200):
        assert state.primal == pytest.approx(objective(state.w, X, y, lam), rel=1e-10)
        assert state.dual <= best * (1 + 1e-9) + 1e-12
        assert state.primal >= best * (1 - 1e-9)
        if state.primal - state.dual <= 1e-6 * state.primal:
            break
    assert state.primal == pytest.approx(best, rel=2e-6)
    assert state.dual == pytest.approx(best, rel=2e-6)


def test_features_are_left_out_exactly():
    X, y = small(n_pos=20, n_neg=60, d=8, seed=1)
    solution = solve(all_pairs_l1(blocks_of(X, y), 0.05), tol=1e-6, max_passes=300)
    assert solution.w[0] > 0.0
    assert np.count_nonzero(solution.w) < 8


def test_lam_beyond_the_largest_that_matters_gives_zero():
    X, y = small()
    largest = np.abs(pair_differences(X, y).mean(axis=0)).max()
    solution = solve(all_pairs_l1(blocks_of(X, y), 1.001 * largest), tol=1e-9, max_passes=50)
    assert solution.certificate.status is Status.CONVERGED
    assert not solution.w.any()
    assert solve(all_pairs_l1(blocks_of(X, y), 0.99 * largest), tol=1e-3, max_passes=50).w.any()


@pytest.mark.parametrize("n_blocks", [2, 40])
def test_many_blocks_and_sparse_rows_same_optimum(n_blocks):
    X, y = small(n_pos=12, n_neg=50)
    X[np.abs(X) < 0.3] = 0.0
    best = optimum_l1(X, y, 1e-2)
    for form in (X, sp.csr_array(X)):
        solution = solve(all_pairs_l1(blocks_of(form, y, n_blocks), 1e-2), tol=1e-6, max_passes=300)
        assert solution.certificate.primal == pytest.approx(best, rel=2e-6)


def test_estimator_and_path():
    X, y = small(n_pos=30, n_neg=90, d=8)
    model = PairwiseHingeClassifier(penalty="l1", lam=0.02, tol=1e-5).fit(X, y)
    assert model.certificate_.primal == pytest.approx(optimum_l1(X, y, 0.02), rel=2e-5)
    dense, sparse = lam_path(PairwiseHingeClassifier(penalty="l1"), X, y, lams=[1e-3, 0.1])
    assert np.count_nonzero(sparse.coef_) < np.count_nonzero(dense.coef_)
    with pytest.raises(InputError, match="Allowed: l2, l1, group-l1"):
        PairwiseHingeClassifier(penalty="l0").fit(X, y)
    with pytest.raises(InputError, match="penalty applies to solver all-pairs"):
        PairwiseHingeClassifier(penalty="l1", solver="msgd").fit(X, y)
