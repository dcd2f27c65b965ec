"""The pairwise square over pairs within groups and of grades, beside every pair counted by itself."""

import numpy as np
import pytest
import scipy.sparse as sp
from support.grouped_pairs import mean_loss, square
from support.grouped_problem import some_problems

from aucdist import PairwiseSquareClassifier
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.maps import BinExpander
from aucdist.papers.tpauc import Exact
from aucdist.solvers.base import solve
from aucdist.solvers.pairs.groups import pair_groups


def best_square(X, pairs, lam):
    """Return the least of lam/2 |w|^2 + mean square, by least squares over all pairs."""
    first, second, mass = pairs
    root = np.sqrt(mass)
    A = np.vstack([(X[first] - X[second]) * root[:, None], np.sqrt(lam / 2) * np.eye(X.shape[1])])
    b = np.concatenate([root, np.zeros(X.shape[1])])
    w = np.linalg.lstsq(A, b, rcond=None)[0]
    return float(np.sum((A @ w - b) ** 2))


def test_minimum_over_all_pairs_by_themselves():
    for p in some_problems(range(150)):
        found = solve(Exact().rounds(p.blocks(), p.lam, **p.options), tol=1e-9, max_passes=10)
        c = found.certificate
        primal = 0.5 * p.lam * found.w @ found.w + mean_loss(square, found.w, p.X, p.pairs)
        best = best_square(p.X, p.pairs, p.lam)
        assert c.primal == pytest.approx(primal, abs=c.rounding, rel=1e-9)
        assert primal <= best * (1 + 1e-8) + c.rounding
        assert c.dual - c.rounding <= best * (1 + 1e-12)


def test_signs_keep_the_bound_true():
    r = np.random.default_rng(1)
    for p in some_problems(range(40)):
        signs = r.integers(-1, 2, p.X.shape[1]).astype(np.int8)
        found = solve(Exact().rounds(p.blocks(), p.lam, signs=signs, **p.options), tol=1e-6, max_passes=10)
        assert ((found.w == 0) | (np.sign(found.w) == signs) | (signs == 0)).all()
        c = found.certificate
        for _ in range(30):
            w = np.abs(r.normal(size=len(signs))) * np.where(signs == 0, r.choice([-1, 1], len(signs)), signs)
            value = 0.5 * p.lam * w @ w + mean_loss(square, w, p.X, p.pairs)
            assert c.dual - c.rounding <= value


def far_apart(n_groups=30):
    """Groups whose rows lie a million times as far from those of others as from each other."""
    r = np.random.default_rng(2)
    group = r.integers(0, n_groups, 600)
    y = np.where(r.random(600) < 0.4, 1, -1)
    near = r.normal(size=(600, 3)) + 0.8 * (y[:, None] > 0)
    return near, near + 2.0**20 * r.integers(-4, 5, (n_groups, 3))[group], y, group


def test_groups_that_lie_far_apart_lose_no_digits():
    near, far, y, group = far_apart()
    one, other = (
        solve(Exact().rounds(LocalBlocks.of(X, y, groups=group, n_blocks=3), 1e-3), tol=1e-6, max_passes=9)
        for X in (near, far)
    )
    np.testing.assert_allclose(one.w, other.w, rtol=1e-7)
    assert other.certificate.rounding < 1e-4 * other.certificate.primal


def test_sparse_rows_codes_and_paths():
    near, _, y, group = far_apart()
    dense, sparse = (PairwiseSquareClassifier(lam=1e-2).fit(X, y, groups=group) for X in (near, sp.csr_matrix(near)))
    np.testing.assert_allclose(dense.coef_, sparse.coef_, rtol=1e-9)
    binned = PairwiseSquareClassifier(lam=1e-2, features="bins").fit(near, y, groups=group)
    by_hand = PairwiseSquareClassifier(lam=1e-2).fit(BinExpander().fit(near).transform(near), y, groups=group)
    np.testing.assert_allclose(binned.coef_, by_hand.coef_, rtol=1e-6, atol=1e-9)
    blocks = LocalBlocks.of(near, y, groups=group, n_blocks=2)
    path = PairwiseSquareClassifier().path(blocks, lams=[1e-2, 1e-1])
    np.testing.assert_allclose(path[0], dense.coef_[0], rtol=1e-9)


def test_too_many_features_or_sums(monkeypatch):
    r = np.random.default_rng(3)
    blocks = LocalBlocks.of(r.normal(size=(8, 1001)), np.tile([1, -1], 4), groups=np.repeat([0, 1], 4), n_blocks=1)
    with pytest.raises(InputError, match="1001 x 1001"):
        next(Exact().rounds(blocks, 1.0))
    monkeypatch.setattr("aucdist.papers.tpauc.exact.MOST_SUMS", 3)
    small = LocalBlocks.of(r.normal(size=(8, 2)), np.tile([1, -1], 4), groups=np.repeat([0, 1], 4), n_blocks=1)
    with pytest.raises(InputError, match="2 groups of 2 features"):
        next(Exact().rounds(small, 1.0))
    assert pair_groups(small).n_groups == 2
