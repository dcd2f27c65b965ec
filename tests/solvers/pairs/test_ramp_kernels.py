import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support.oracle import pairwise_ramp, ramp

from aucdist.solvers.pairs.loss import RAMP, AnchorGroups, ScoredRows, one_run

pytestmark = pytest.mark.nojit

# Thirds and wholes: margins of exactly -1, 0 and 1, and some that rounding puts beside them.
SCORES = st.integers(-9, 9).map(lambda k: k / 3.0) | st.floats(-20.0, 20.0)


def loss_and_row_slopes(anchors, others, of_anchors, of_others):
    """Return the weighted sum over all pairs, and the derivatives by anchor and by row."""
    at, order = AnchorGroups(None).sorted(anchors, of_anchors, 3)
    coefs, sums = np.full(len(others), np.nan), np.zeros((len(anchors) + 1, 3))
    total = RAMP.loss_and_row_slopes(ScoredRows(others, of_others, one_run(len(others))), at, coefs, sums)
    return total, RAMP.anchor_slopes(sums, at, of_anchors, order), coefs


def check(pos, neg, w_pos, w_neg):
    y = np.repeat([1, -1], [len(pos), len(neg)])
    total, of_pos, of_neg = loss_and_row_slopes(pos, neg, w_pos, w_neg)
    value, slopes = pairwise_ramp(np.concatenate([pos, neg]), y, np.concatenate([w_pos, w_neg]))
    mass = w_pos.sum() * w_neg.sum()
    assert total / mass == pytest.approx(value, rel=1e-11, abs=1e-11)
    np.testing.assert_allclose(np.concatenate([of_pos, of_neg]) / mass, slopes, rtol=1e-10, atol=1e-11)


@given(*[hnp.arrays(np.float64, st.integers(1, 12), elements=SCORES)] * 2)
def test_agrees_with_counting_all_pairs(pos, neg):
    check(pos, neg, np.ones(len(pos)), np.ones(len(neg)))


@pytest.mark.parametrize("shift", [-2.5, -1.0, 0.0, 0.5, 1.0, 3.0])
def test_with_weights(shift):
    r = np.random.default_rng(4)
    check(r.normal(size=30) + shift, r.normal(size=50), r.integers(1, 5, 30) / 2.0, r.random(50) + 0.1)


def test_the_ramp_has_no_corners_and_halves_ties():
    for margin in (-1.0, 0.0, 1.0):
        (left, slope_left), (right, slope_right) = ramp(margin - 1e-9), ramp(margin + 1e-9)
        assert left == pytest.approx(right, abs=1e-8)
        assert slope_left == pytest.approx(slope_right, abs=1e-8)
    assert [ramp(m)[0] for m in (-1.0, 0.0, 1.0)] == [1.0, 0.5, 0.0]
    assert loss_and_row_slopes(np.zeros(3), np.zeros(4), np.ones(3), np.ones(4))[0] == 6.0
