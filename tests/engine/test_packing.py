"""What travels between client and workers: every bit arrives, and counts travel in few bytes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucdist.engine.worker_part import LONG, pack, unpack

VALUES = st.sampled_from([0.0, -0.0, 1.0, -1.0, 255.0, 256.0, -32769.0, 2.0**31, 2.0**53, 0.5, np.inf, np.nan])


@given(st.lists(VALUES, min_size=1, max_size=3), st.integers(0, 2 * LONG), st.integers(1, 2 * LONG))
def test_every_bit_arrives(values, place, n):
    sent = np.arange(float(n))
    sent[place % n :][: len(values)] = values[: n - place % n]
    for array in (sent, sent[::-1], sent.reshape(1, -1), np.asfortranarray(np.outer(sent, [1.0, 2.0]))):
        found = unpack(pack({"a": [array]}))["a"][0]
        assert found.tobytes() == array.tobytes()
        assert found.dtype == array.dtype
        assert found.flags.f_contiguous == array.flags.f_contiguous or not array.flags.contiguous
        assert found.flags.writeable


@pytest.mark.parametrize(("most", "share"), [(200, 1 / 8), (60_000, 1 / 4), (2**31 - 1, 1 / 2), (2**40, 1)])
def test_counts_travel_in_few_bytes(most, share):
    counts = np.zeros((24, 1000))
    counts[3, 7] = most
    assert len(pack(counts)) == pytest.approx(share * counts.nbytes, rel=0.01)
