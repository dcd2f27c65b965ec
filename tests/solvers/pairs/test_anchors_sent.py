"""The anchors as they are sent: their scores and weights alone, from which each block computes the rest to the last bit."""

import pickle

import numpy as np
import pytest

from aucdist.engine.worker_part import pack
from aucdist.solvers.pairs.loss import AnchorGroups

RANDOM = np.random.default_rng(5)
N = 3000
SCORES, WEIGHTS, CODES = RANDOM.normal(size=N), RANDOM.random(N), RANDOM.integers(0, 40, N).astype(np.int32)


@pytest.mark.parametrize(
    "sort", [AnchorGroups(None).sorted, AnchorGroups(CODES, 40).sorted], ids=["all pairs", "groups"]
)
def test_anchors_that_arrive_search_as_those_that_were_sent(sort):
    anchors, _ = sort(SCORES, WEIGHTS, 3, centred=True)
    before = pickle.dumps(anchors)
    wanted = anchors.search
    assert pickle.dumps(anchors) == before  # what was computed is not sent
    arrived = pickle.loads(before)
    for one, of_client in zip(arrived.search, wanted, strict=True):
        assert np.asarray(one).tobytes() == np.asarray(of_client).tobytes()
    assert len(anchors.prefix_sums[0]) == anchors.n_gaps


def test_anchors_without_weights_travel_in_nine_bytes():
    anchors, _ = AnchorGroups(None).sorted(SCORES, np.ones(N))
    assert len(pack(anchors)) < 9 * N + 1000
