import numpy as np
import pytest
import scipy.sparse as sp
from support import square_twins as twin
from support.small_sets import FORMS
from support.square_twins import class_means, opauc_steps, problem, univariate_steps

from aucdist.data.block import Block
from aucdist.papers.epochs import LabelledRows
from aucdist.papers.tpauc import kernels
from aucdist.papers.tpauc.descent import SquareDescentMemory, prepare_sampling
from aucdist.papers.tpauc.moments import PairMoments, class_moments


def nothing(d, m, seed):
    draws = np.array([seed], dtype=np.uint64)
    return kernels.SketchedStatistics(draws, np.zeros((d, 2 * m)), np.zeros(2 * m), np.zeros((2 * m, 2 * m)))


@pytest.mark.nojit
@pytest.mark.parametrize("eta", [5.0, 4.999999, 4.9])
def test_a_scale_that_vanishes_is_not_lost(eta):
    X, y, weight = problem(d=6)
    X = 1e-3 * X
    order = np.tile(np.arange(len(y)), 4)
    block, w = Block.of(X, y), np.zeros(6)
    kernels.opauc_sketched(LabelledRows.of(block), (X**2).sum(axis=1), order, (eta, 0.2), nothing(6, 5, 3), w)
    np.testing.assert_allclose(w, opauc_steps(X, y, weight, order, eta, 0.2, rank=4, seed=3), rtol=1e-9)


def wide_rows(n=20_000, d=1_355_191):
    r = np.random.default_rng(0)
    places = (r.normal(size=5 * n), r.integers(0, d, 5 * n).astype(np.int32), np.arange(0, 5 * n + 1, 5))
    return sp.csr_matrix(places, (n, d)), np.where(r.random(n) < 0.2, 1, -1), r


def test_a_sketched_step_costs_its_non_zeros():
    """At this width, a hundred thousand steps that touched every feature would take an hour."""
    X, y, r = wide_rows()
    n, d = X.shape
    block, w = Block.of(X, y), np.zeros(d)
    lengths = np.asarray(X.power(2).sum(axis=1)).ravel()
    kernels.opauc_sketched(
        LabelledRows.of(block), lengths, r.integers(0, n, 100_000), (1e-3, 1e-2), nothing(d, 3, 0), w
    )
    assert (X[y > 0] @ w).mean() > (X[y < 0] @ w).mean()


# ---- univariate kernel -------------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("exponential", [False, True])
# The last two shrink the weights by 1 - eta lam = 0, and by nearly so; the steps must be small not to diverge then.
@pytest.mark.parametrize(("eta", "size"), [(0.02, 1.0), (5.0, 1e-3), (4.9999, 1e-3)])
def test_an_epoch_of_a_univariate_loss_is_the_plain_one(form, exponential, eta, size):
    X, y, weight = problem(d=6, weighted=True)
    order, factors = np.random.default_rng(1).permutation(np.tile(np.arange(len(y)), 4)), size * weight
    block, w = Block.of(FORMS[form](X), y), np.zeros(7)
    kernels.univariate_epoch(block.rows, order, block.y, factors, kernels.UnivariateSteps(exponential, eta, 0.2), w)
    expected, expected_bias = univariate_steps(X, y, factors, order, eta, 0.2, exponential)
    np.testing.assert_allclose(w[:6], expected, rtol=1e-10, atol=1e-15)
    assert w[6] == pytest.approx(expected_bias, rel=1e-10)


# ---- square epochs -----------------------------------------------------------------------------


@pytest.fixture(params=FORMS)
def form(request):
    return FORMS[request.param]


def run(X, y, order, factors, g, eta, lam, u, average_from, form=np.asarray, means=None):
    means = class_means(X, y, np.ones(len(y)))[0] if means is None else means
    basis, out = np.vstack([means, g]), np.full(X.shape[1], np.nan)
    block = Block.of(form(X), y)
    terms = kernels.SquareTerms(factors, X @ basis.T, basis, basis @ basis.T, eta, lam, average_from)
    kernels.square_epoch(block.rows, order, block.y, terms, u.copy(), out)
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
    averaged = run(X, y, order, factors, g, 0.02, 0.3, start, average_from, form)
    np.testing.assert_allclose(averaged, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("eta", "average_from"), [(2.0, 10), (2.0, 50), (3.3, 10), (3.3, 50), (1 / 0.3, 50), (4.0, 50)]
)
def test_a_scale_of_an_epoch_that_vanishes_is_not_lost(case, eta, average_from):
    X, y, order, factors, g = case
    # Rows, means and g so small that only the penalty matters: the scale falls by up to 1 - eta lam = 0 at each step.
    X, g, start = 1e-3 * X, 1e-3 * g, np.ones(6)
    order = np.concatenate([order, np.tile(order, 30)])
    after = twin.square_epoch(X, y, class_means(X, y, np.ones(len(y)))[0], order, factors, g, eta, 0.3, start)
    expected = after[-1] if average_from == 50 else after[average_from:].mean(axis=0)
    averaged = run(X, y, order, factors, g, eta, 0.3, start, len(order) if average_from == 50 else average_from)
    np.testing.assert_allclose(averaged, expected, rtol=1e-9)


def test_a_step_costs_its_non_zeros():
    """At this width, a million steps that touched every feature would take the better part of an hour."""
    X, y, r = wide_rows()
    n, d = X.shape
    block = Block.of(X, y)
    means = np.stack([np.asarray(X[y == label].mean(axis=0)).ravel() for label in (-1, 1)])
    basis, out = np.vstack([means, -2.0 * (means[1] - means[0])]), np.empty(d)
    order = r.integers(0, n, 1_000_000)
    products = np.ascontiguousarray(X @ basis.T)
    terms = kernels.SquareTerms(np.ones(n), products, basis, basis @ basis.T, 1e-3, 1e-2, len(order))
    kernels.square_epoch(block.rows, order, block.y, terms, np.zeros(d), out)
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
