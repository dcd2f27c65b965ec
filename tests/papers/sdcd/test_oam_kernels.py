"""What the solver's tests cannot see: the reservoirs, and what is counted."""

import numpy as np
from scipy import stats

from aucdist.papers.sdcd.kernels import Buffers, add_to_reservoir


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
