import numpy as np
import pytest
import scipy.sparse as sp
from support import square_twins as twin
from support.square_twins import FORMS, class_means, problem

from aucdist.data.block import Block
from aucdist.papers.tpauc.descent import SquareDescentMemory, prepare_sampling
from aucdist.papers.tpauc.kernels import SquareTerms, square_epoch
from aucdist.papers.tpauc.moments import PairMoments, class_moments


@pytest.fixture(params=FORMS)
def form(request):
    return FORMS[request.param]


def run(X, y, order, factors, g, eta, lam, u, average_from, form=np.asarray, means=None):
    means = class_means(X, y, np.ones(len(y)))[0] if means is None else means
    basis, out = np.vstack([means, g]), np.full(X.shape[1], np.nan)
    block = Block.of(form(X), y)
    terms = SquareTerms(factors, X @ basis.T, basis, basis @ basis.T, eta, lam, average_from)
    square_epoch(block.rows, order, block.y, terms, u.copy(), out)
    return out


@pytest.fixture
def case():
    X, y, _ = problem(d=6)
    r = np.random.default_rng(1)
    return X, y, r.integers(0, len(y), 50), r.uniform(0.0, 3.0, len(y)), r.normal(size=6)


@pytest.mark.nojit
@pytest.mark.parametrize("average_from", [0, 20, 49, 50])
def test_epoch_is_the_plain_one(case, form, average_from):
    X, y, order, factors, g = case
    start = np.random.default_rng(2).normal(size=6)
    after = twin.square_epoch(X, y, class_means(X, y, np.ones(len(y)))[0], order, factors, g, 0.02, 0.3, start)
    expected = after[-1] if average_from == 50 else after[average_from:].mean(axis=0)
    found = run(X, y, order, factors, g, 0.02, 0.3, start, average_from, form)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("eta", "average_from"), [(2.0, 10), (2.0, 50), (3.3, 10), (3.3, 50), (1 / 0.3, 50), (4.0, 50)]
)
def test_a_scale_that_vanishes_is_not_lost(case, eta, average_from):
    X, y, order, factors, g = case
    # Rows, means and g so small that only the penalty matters: the scale falls by up to 1 - eta lam = 0 at each step.
    X, g, start = 1e-3 * X, 1e-3 * g, np.ones(6)
    order = np.concatenate([order, np.tile(order, 30)])
    after = twin.square_epoch(X, y, class_means(X, y, np.ones(len(y)))[0], order, factors, g, eta, 0.3, start)
    expected = after[-1] if average_from == 50 else after[average_from:].mean(axis=0)
    found = run(X, y, order, factors, g, eta, 0.3, start, len(order) if average_from == 50 else average_from)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_step_costs_its_non_zeros():
    """At this width, a million steps that touched every feature would take the better part of an hour."""
    d, n, r = 1_355_191, 20_000, np.random.default_rng(0)
    X = sp.csr_matrix(
        (r.normal(size=5 * n), r.integers(0, d, 5 * n).astype(np.int32), np.arange(0, 5 * n + 1, 5)), (n, d)
    )
    y = np.where(r.random(n) < 0.2, 1, -1)
    block = Block.of(X, y)
    means = np.stack([np.asarray(X[y == label].mean(axis=0)).ravel() for label in (-1, 1)])
    basis, out = np.vstack([means, -2.0 * (means[1] - means[0])]), np.empty(d)
    order = r.integers(0, n, 1_000_000)
    products = np.ascontiguousarray(X @ basis.T)
    terms = SquareTerms(np.ones(n), products, basis, basis @ basis.T, 1e-3, 1e-2, len(order))
    square_epoch(block.rows, order, block.y, terms, np.zeros(d), out)
    scores = X @ out
    assert scores[y > 0].mean() > 0.1 > 0.0 > scores[y < 0].mean()


def test_rows_are_drawn_by_their_curvature():
    X, y, weight = problem(60, 240, 3, weighted=True)
    block = Block.of(X, y, weight=weight)
    moments = PairMoments.of(*(class_moments(block, label, full=False) for label in (-1, 1)))
    share = weight / np.where(y > 0, weight[y > 0].sum(), weight[y < 0].sum())
    share[7] = 0.0
    memory = SquareDescentMemory(share, np.zeros(300), np.zeros((1, 300)))
    sampling = prepare_sampling(block, memory, moments, 300, 0.1)[0].extra
    size = share * ((X - moments.means[(y > 0).astype(int)]) ** 2).sum(axis=1)
    expected = 300 * size / size.sum()
    drawn = [sampling.draw(2**40 + 2**20 * seed) for seed in range(400)]
    counts = np.array([np.bincount(order, minlength=300) for order in drawn])
    assert (counts.sum(axis=1) == 300).all()
    assert ((np.floor(expected - 1e-9) <= counts) & (counts <= np.ceil(expected + 1e-9))).all()
    np.testing.assert_allclose(counts.mean(axis=0), expected, atol=0.12)
    np.testing.assert_allclose(sampling.factors[expected > 0] * expected[expected > 0], 600 * share[expected > 0])
    assert (drawn[0] != np.sort(drawn[0])).any()
    np.testing.assert_array_equal(sampling.draw(5), sampling.draw(5))


def test_rows_without_curvature_are_drawn_once_each():
    block = Block.of(np.ones((6, 2)), np.array([1, -1, 1, -1, -1, 1]))
    moments = PairMoments.of(*(class_moments(block, label, full=False) for label in (-1, 1)))
    memory = SquareDescentMemory(np.full(6, 1 / 3), np.zeros(6), np.zeros((1, 6)))
    sampling = prepare_sampling(block, memory, moments, 6, 0.1)[0].extra
    assert sorted(sampling.draw(3)) == list(range(6))
