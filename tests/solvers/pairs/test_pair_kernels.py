import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support.oracle import active_coefficients, pairwise_hinge

from aucdist.kernels.codes import search_index
from aucdist.solvers.pairs.kernels import cut, n_active
from aucdist.solvers.pairs.loss import HINGE, NO_SHIFT, AnchorGroups, one_run

pytestmark = pytest.mark.nojit

# Thirds: 1/3 + 2/3 and their neighbours round differently in s_j <= s_i - 1 and in s_i >= s_j + 1.
THIRDS = st.integers(-9, 9).map(lambda k: k / 3.0)
WILD = st.floats(-1e6, 1e6) | THIRDS | st.sampled_from([0.0, -0.0, 1e-300, 1e300, -1e300])


def scores_of(elements, least=1):
    return hnp.arrays(np.float64, st.integers(least, 12), elements=elements)


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


def loss_and_row_slopes(pos, neg, w_pos, w_neg, shifts=NO_SHIFT):
    """Return hinge sum, active weight, coefficients of the positives and of the negatives, and the rows in the band."""
    at, order = AnchorGroups(None).sorted(pos, w_pos)
    coefs, histogram = np.empty(len(neg)), np.zeros(len(pos) + 1)
    active, total, doubt, n_band = cut((neg, w_neg, one_run(len(neg))), shifts, at.search, at.doubt, coefs, histogram)
    assert doubt == 0.0
    return total, active, -HINGE.anchor_slopes(histogram, at, w_pos, order), coefs, n_band


@given(scores_of(THIRDS), scores_of(THIRDS))
def test_cut_agrees_with_counting_all_pairs(pos, neg):
    scores, y = np.concatenate([pos, neg]), np.repeat([1, -1], [len(pos), len(neg)])
    total, active, of_pos, of_neg, _ = loss_and_row_slopes(pos, neg, np.ones(len(pos)), np.ones(len(neg)))
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
    total, active, of_pos, of_neg, _ = loss_and_row_slopes(scores[pos], scores[neg], weight[pos], weight[neg])
    slow = active_coefficients(scores, y, weight)
    np.testing.assert_allclose(of_pos, slow[pos], rtol=1e-13)
    np.testing.assert_allclose(-of_neg, slow[neg], rtol=1e-13)
    assert active == pytest.approx(of_pos.sum(), rel=1e-13)
    mass = weight[pos].sum() * weight[neg].sum()
    np.testing.assert_allclose(total / mass, pairwise_hinge(scores, y, weight), rtol=1e-12, atol=1e-14)


@given(scores_of(THIRDS), scores_of(THIRDS), st.sampled_from([1 / 3, 0.3, 2.0]), st.sampled_from([3, 5]))
def test_a_cut_of_a_stair_is_the_sum_of_its_steps(pos, neg, h, n_steps):
    shifts = h * ((2 * np.arange(n_steps) + 1 - n_steps) / n_steps)
    total, active, of_pos, of_neg, n_band = loss_and_row_slopes(pos, neg, np.ones(len(pos)), np.ones(len(neg)), shifts)
    alpha = np.array([[[a - (b + s) < 1.0 for s in shifts] for b in neg] for a in pos])
    np.testing.assert_array_equal(of_pos, alpha.sum(axis=(1, 2)))
    np.testing.assert_array_equal(of_neg, alpha.sum(axis=(0, 2)))
    assert active == alpha.sum()
    assert n_band == (alpha[:, :, -1] & ~alpha[:, :, 0]).any(axis=0).sum()
    np.testing.assert_allclose(total, np.maximum(0.0, 1.0 - (pos[:, None] - neg)).sum(), rtol=1e-12, atol=1e-12)
