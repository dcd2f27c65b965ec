import itertools
import pickle

import numpy as np
import pytest
from support.optima import optimum
from support.oracle import pairwise_objective
from support.rounds import leave_newton_steps
from support.small_sets import CASES, blocks_of, small

from aucdist.engine.worker_part import pack
from aucdist.pairs.cutting_planes import AllPairs
from aucdist.pairs.loss import sort_anchors
from aucdist.solvers.base import solve


@pytest.mark.parametrize(("case", "lam"), [*zip(CASES, [1e-2, 1e-3, 1.0, 1e-3, 1e-2, 1.0, 1e-3], strict=True)])
@pytest.mark.parametrize("second_order", [True, False])
def test_every_round_is_certified_by_counting(second_order, case, lam, monkeypatch):
    if not second_order:
        leave_newton_steps(monkeypatch)
    X, y = CASES[case]
    best = optimum(X, y, lam)
    bounds = []
    for state in itertools.islice(AllPairs().rounds(blocks_of(X, y), lam), 60):
        assert state.primal == pytest.approx(pairwise_objective(state.w, X, y, lam), rel=1e-10)
        assert state.dual <= best * (1 + 1e-9) + 1e-12
        assert state.primal >= best * (1 - 1e-7)
        bounds.append(state.dual)
        if state.primal - state.dual <= 1e-7 * state.primal:
            break
    assert (np.diff(bounds) >= 0).all()
    assert state.primal == pytest.approx(best, rel=2e-6)


def test_loop_stops_for_each_of_its_reasons():
    X, y = small()
    seen = []
    converged = solve(AllPairs().rounds(blocks_of(X, y), 1e-2), tol=1e-3, max_passes=300, callback=seen.append)
    assert converged.certificate.status == "converged"
    assert converged.certificate.relative_gap <= 1e-3
    assert list(converged.history.columns) == ["round", "passes", "seconds", "primal", "dual", "relative_gap"]
    assert converged.history.to_dict("records") == seen
    used_up = solve(AllPairs().rounds(blocks_of(X, y), 1e-2), tol=0.0, max_passes=3)
    assert used_up.certificate.status == "max-passes"
    assert used_up.passes == 3
    ended = solve(itertools.islice(AllPairs().rounds(blocks_of(X, y), 1e-2), 2), tol=0.0, max_passes=300)
    assert ended.certificate.status == "max-steps"


# ---- the anchors as they are sent: their scores and weights alone, from which each block computes the rest to the last


RANDOM = np.random.default_rng(5)
N = 3000
SCORES, WEIGHTS, CODES = RANDOM.normal(size=N), RANDOM.random(N), RANDOM.integers(0, 40, N).astype(np.int32)


@pytest.mark.parametrize("groups", [None, (CODES, 40)], ids=["all pairs", "groups"])
def test_anchors_that_arrive_search_as_those_that_were_sent(groups):
    anchors, _ = sort_anchors(SCORES, WEIGHTS, groups, 3, centred=True)
    before = pickle.dumps(anchors)
    sent = anchors.search
    assert pickle.dumps(anchors) == before  # what was computed is not sent
    arrived = pickle.loads(before)
    for of_worker, of_client in zip(arrived.search, sent, strict=True):
        assert np.asarray(of_worker).tobytes() == np.asarray(of_client).tobytes()
    assert len(anchors.prefix_sums[0]) == anchors.n_gaps


def test_anchors_without_weights_travel_in_nine_bytes():
    anchors, _ = sort_anchors(SCORES, np.ones(N))
    assert len(pack(anchors)) < 9 * N + 1000
