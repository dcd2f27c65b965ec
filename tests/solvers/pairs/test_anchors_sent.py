"""The anchors as they are sent: their scores and weights alone, from which each block computes the rest to the last bit."""

import pickle

import numpy as np
import pytest

from aucdist.engine.worker_part import pack
from aucdist.solvers.pairs.anchors import AnchorsOnLine, sorted_anchors
from aucdist.solvers.pairs.grouped_anchors import AnchorGroups, GroupedAnchorsOnLine

RANDOM = np.random.default_rng(5)
N = 3000
SCORES, WEIGHTS, CODES = RANDOM.normal(size=N), RANDOM.random(N), RANDOM.integers(0, 40, N).astype(np.int32)
STEPS = np.array([0.1, 0.5, 1.3])
ON_LINE = (SCORES, RANDOM.normal(size=N), STEPS, WEIGHTS)


@pytest.mark.parametrize("sort", [sorted_anchors, AnchorGroups(CODES, 40).sorted], ids=["all pairs", "groups"])
def test_anchors_that_arrive_search_as_those_that_were_sent(sort):
    anchors, _ = sort(SCORES, WEIGHTS, 3, centred=True)
    before = pickle.dumps(anchors)
    wanted = [*anchors.search(), *anchors.prefix_sums]
    assert pickle.dumps(anchors) == before  # what was computed is not sent
    arrived = pickle.loads(before)
    for one, of_client in zip([*arrived.search(), *arrived.prefix_sums], wanted, strict=True):
        assert np.asarray(one).tobytes() == np.asarray(of_client).tobytes()
    assert len(anchors.prefix_sums[0]) == anchors.n_gaps


@pytest.mark.parametrize("on_line", [AnchorsOnLine(*ON_LINE), GroupedAnchorsOnLine(*ON_LINE, CODES, 40)])
def test_anchors_on_a_line_are_sent_once_for_all_steps(on_line):
    wanted = on_line.at_steps
    sent = pickle.dumps(on_line)
    assert len(sent) < 30 * N
    for one, of_client in zip(pickle.loads(sent).at_steps, wanted, strict=True):
        np.testing.assert_array_equal(one, of_client)


def test_anchors_without_weights_travel_in_nine_bytes():
    anchors, _ = sorted_anchors(SCORES, np.ones(N))
    assert len(pack(anchors)) < 9 * N + 1000
