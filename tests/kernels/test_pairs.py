import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support.oracle import active_coefficients, pairwise_hinge

from aucdist.kernels.pairs import cut, hinge_sum, n_active, search_index, slopes_along
from aucdist.solvers.pairs.anchors import anchors_along, running_sums, sorted_anchors

pytestmark = pytest.mark.nojit

# Thirds: 1/3 + 2/3 and their neighbours round differently in s_j <= s_i - 1 and in s_i >= s_j + 1.
THIRDS = st.integers(-9, 9).map(lambda k: k / 3.0)
WILD = st.floats(-1e6, 1e6) | THIRDS | st.sampled_from([0.0, -0.0, 1e-300, 1e300, -1e300])


def scores_of(elements, least=1):
    return hnp.arrays(np.float64, st.integers(least, 12), elements=elements)


@settings(max_examples=200, deadline=None)
@given(scores_of(WILD), WILD)
def test_search_agrees_with_counting(anchors, score):
    anchors = np.sort(anchors)
    table = np.empty(9, dtype=np.int32)
    low, scale = search_index(anchors, table)
    assert n_active(anchors, table, low, scale, score) == sum(a - score < 1.0 for a in anchors)


def test_search_among_many_equal_anchors():
    anchors = np.sort(np.concatenate([np.zeros(1000), np.full(1000, 5.0), [1e9]]))
    table = np.empty(4001, dtype=np.int32)
    low, scale = search_index(anchors, table)
    found = [n_active(anchors, table, low, scale, s) for s in (-1.0, -0.5, 4.0, 4.5, 1e9)]
    assert found == [0, 1000, 1000, 2000, 2001]


def loss_and_row_slopes(pos, neg, w_pos, w_neg):
    """Return hinge sum, active weight, and coefficients of the positives and of the negatives."""
    at, order = sorted_anchors(pos, w_pos)
    coefs, histogram = np.empty(len(neg)), np.zeros(len(pos) + 1)
    active, total = cut(neg, w_neg, *at.search(), *at.prefix_sums, coefs, histogram)
    assert hinge_sum(neg, w_neg, *at.search(), *at.prefix_sums) == pytest.approx(total, rel=1e-14)
    of_pos = np.empty(len(pos))
    of_pos[order] = np.cumsum(histogram[::-1])[::-1][1:] * w_pos[order]
    return total, active, of_pos, coefs


@settings(max_examples=150, deadline=None)
@given(scores_of(THIRDS), scores_of(THIRDS))
def test_cut_agrees_with_counting_all_pairs(pos, neg):
    scores, y = np.concatenate([pos, neg]), np.repeat([1, -1], [len(pos), len(neg)])
    total, active, of_pos, of_neg = loss_and_row_slopes(pos, neg, np.ones(len(pos)), np.ones(len(neg)))
    slow = active_coefficients(scores, y)
    np.testing.assert_array_equal(np.concatenate([of_pos, -of_neg]), slow)
    # One dual point: what the positives have the negatives have, to the last pair.
    assert of_pos.sum() == of_neg.sum() == active == slow[y > 0].sum()
    np.testing.assert_allclose(total / (len(pos) * len(neg)), pairwise_hinge(scores, y), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("scores", [np.zeros(7), np.array([0.0, 0, 0, 1, 1, 1, 1]), np.arange(7) / 3.0])
def test_cut_with_weights(scores):
    y = np.array([1, -1, 1, -1, -1, 1, -1])
    weight = np.array([0.5, 1.0, 2.0, 3.0, 0.25, 1.0, 7.0])
    pos, neg = y > 0, y < 0
    total, active, of_pos, of_neg = loss_and_row_slopes(scores[pos], scores[neg], weight[pos], weight[neg])
    slow = active_coefficients(scores, y, weight)
    np.testing.assert_allclose(of_pos, slow[pos], rtol=1e-13)
    np.testing.assert_allclose(-of_neg, slow[neg], rtol=1e-13)
    assert active == pytest.approx(of_pos.sum(), rel=1e-13)
    mass = weight[pos].sum() * weight[neg].sum()
    np.testing.assert_allclose(total / mass, pairwise_hinge(scores, y, weight), rtol=1e-12, atol=1e-14)


@settings(max_examples=100, deadline=None)
@given(
    hnp.arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 9)), elements=st.floats(-1e100, 1e100)),
    st.integers(0, 9),
)
def test_anchors_of_many_points_are_those_of_each(points, seed):
    r = np.random.default_rng(seed)
    weights, change = r.random(points.shape), r.normal(size=points.shape[1])
    found = anchors_along(points, weights, change)
    for k, (scores, weight) in enumerate(zip(points, weights, strict=True)):
        anchors, order = sorted_anchors(scores, weight)
        for one, all_points in zip((*anchors.search(), anchors.prefix_sums[0]), found[:5], strict=True):
            np.testing.assert_array_equal(all_points[k], one)
        np.testing.assert_array_equal(found[5][k], running_sums((weight * change)[order]))


def test_slopes_are_the_derivative():
    r = np.random.default_rng(3)
    y = np.repeat([1, -1], [5, 9])
    start, end, weight = r.normal(size=14), r.normal(size=14), r.random(14)
    steps = np.array([0.1, 0.4, 1.2])
    pos, neg = y > 0, y < 0
    points = (start + steps[:, np.newaxis] * (end - start))[:, pos]
    along = anchors_along(points, np.tile(weight[pos], (3, 1)), (end - start)[pos])
    slopes = np.zeros(3)
    slopes_along(start[neg], end[neg], weight[neg], steps, 1, *along, slopes)

    def value(k):
        return pairwise_hinge(start + k * (end - start), y, weight) * weight[pos].sum() * weight[neg].sum()

    for k, slope in zip(steps, slopes, strict=True):
        assert slope == pytest.approx((value(k + 1e-7) - value(k - 1e-7)) / 2e-7, rel=1e-5)
