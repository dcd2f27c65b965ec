"""Solvers over pairs on a real cluster."""

import numpy as np
import pytest
import scipy.sparse as sp
from support.rounds import rounds_of

from aucdist.data.block import Block, partition
from aucdist.engine.blocks import LocalBlocks
from aucdist.engine.dask import DaskBlocks
from aucdist.papers.sdcd.dual import SDCD, SDCDPerm
from aucdist.papers.sdcd.online import MSGD
from aucdist.solvers.base import solve
from aucdist.solvers.pairs import top_negatives
from aucdist.solvers.pairs.cutting_planes import AllPairs

N_BLOCKS = 3
sdcd, sdcd_perm, msgd = rounds_of(SDCD), rounds_of(SDCDPerm), rounds_of(MSGD)


def parts(sparse):
    r = np.random.default_rng(0)
    y = np.where(r.random(2000) < 0.1, 1, -1)
    X = r.normal(size=(2000, 7)) * (r.random((2000, 7)) < 0.5) + 0.5 * (y[:, None] > 0)
    return partition(Block.of(sp.csr_matrix(X) if sparse else X, y), N_BLOCKS)


def load_dense(index):
    return parts(False)[index]


def test_dual_variables_come_and_go(client):
    states = []
    for blocks in (LocalBlocks(parts(False)), DaskBlocks.load(client, load_dense, N_BLOCKS)):
        *_, first = sdcd(blocks, 1e-1, seed=0, epochs=2)
        *_, second = sdcd(blocks, 1e-2, first.resume(), seed=0, epochs=1)
        states.append((second.w.tobytes(), second.dual, second.resume().duals.toarray().tobytes()))
    assert states[0] == states[1]


@pytest.mark.parametrize("most", [100, 10**6])
def test_highest_scoring_negatives_are_the_same_on_workers(client, monkeypatch, most):
    monkeypatch.setattr(top_negatives, "MOST_GATHERED", most)
    here, there = LocalBlocks(parts(False)), DaskBlocks.load(client, load_dense, N_BLOCKS)
    one, other = (
        solve(AllPairs().rounds(blocks, 1e-2, max_fpr=0.1), tol=1e-3, max_passes=300) for blocks in (here, there)
    )
    assert one.w.tobytes() == other.w.tobytes()
    assert one.certificate == other.certificate
