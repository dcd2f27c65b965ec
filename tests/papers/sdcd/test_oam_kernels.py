"""What the solver's tests cannot see: the reservoirs, and what is counted."""

import numpy as np
import pytest
from scipy import stats

from aucdist.data.block import as_rows
from aucdist.papers.epochs import LabelledRows
from aucdist.papers.sdcd.kernels import Buffers, add_to_reservoir, learn_at_once, learn_in_turn


def test_every_row_is_equally_likely_in_the_reservoir():
    counts = np.zeros(20)
    for seed in range(4000):
        buffers = Buffers.empty(5, seed * 2**40 + 1)
        for t in range(20):
            add_to_reservoir(t, 1, buffers)
        assert (buffers.filled.tolist(), buffers.seen.tolist()) == ([0, 5], [0, 20])
        assert len(set(buffers.held[1])) == 5
        counts[buffers.held[1]] += 1
    assert counts.sum() == 4000 * 5
    assert stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.nojit
@pytest.mark.parametrize("learner", [learn_in_turn, learn_at_once])
def test_what_is_read_and_stepped(learner):
    # Three negatives, then two positives that meet the last two of them (capacity 2, as place 0 or 1 may be overwritten).
    X = np.array([[0.0], [0.0], [0.0], [1.0], [1.0]])
    y = np.array([-1, -1, -1, 1, 1], dtype=np.int8)
    buffers, w = Buffers.empty(2, 0), np.zeros(1)
    read, steps = learner(LabelledRows(as_rows(X), y, np.ones(5)), w, buffers, 0.1)
    assert read == 5 + 2 + 2
    assert (buffers.filled.tolist(), buffers.seen.tolist()) == ([2, 2], [3, 2])
    # Every difference is 1 and no pair ever reaches the margin, so each of four steps is as large as C_t = C 3/2.
    assert steps == pytest.approx(4 * 0.15)
    assert w[0] == pytest.approx(0.6)


@pytest.mark.nojit
def test_a_step_goes_no_further_than_the_margin():
    X = np.array([[0.0, 0.0], [3.0, 4.0]])
    y = np.array([-1, 1], dtype=np.int8)
    w = np.zeros(2)
    _, steps = learn_in_turn(LabelledRows(as_rows(X), y, np.ones(2)), w, Buffers.empty(1, 0), 1e6)
    np.testing.assert_allclose(w, X[1] / 25)
    assert steps == pytest.approx(1 / 25)
