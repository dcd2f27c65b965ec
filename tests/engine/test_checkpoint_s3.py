"""Checkpoints on S3: a fit goes on from them, two are kept, and nothing stays in the end."""

import uuid

import numpy as np
import pytest
from support.s3_servers import SERVERS, bucket_on

from aucdist.data.block import into_blocks
from aucdist.data.shards.sharding import simulate
from aucdist.engine.blocks import LocalBlocks
from aucdist.engine.checkpoint import Journal
from aucdist.pairs.cutting_planes import AllPairs
from aucdist.solvers.base import solve

BUCKET = f"checkpoints-{uuid.uuid4().hex[:12]}"


@pytest.fixture(params=SERVERS)
def client(request):
    with bucket_on(request.param, BUCKET) as client:
        yield client


def names(client):
    return [item["Key"] for item in client.list_objects_v2(Bucket=BUCKET).get("Contents", [])]


def test_a_fit_goes_on_from_s3(client):
    blocks = LocalBlocks(into_blocks(simulate(400, 5, 0.2, seed=2), 3))

    def journal():
        return Journal(f"s3://{BUCKET}/fits/mine", {"data": 1}, blocks, lambda text: None)

    def fit(journal, passes):
        rounds = AllPairs().rounds(journal.blocks, 1e-3)
        callback = lambda record: journal.round_done(1, np.inf)  # noqa: E731
        return solve(rounds, tol=0.0, max_passes=passes, callback=callback)

    undisturbed = solve(AllPairs().rounds(blocks, 1e-3), tol=0.0, max_passes=12)
    fit(journal(), 6)
    assert len([name for name in names(client) if "checkpoint-" in name]) == 2
    again = journal()
    assert again.rounds > 0
    assert np.array_equal(fit(again, 12).w, undisturbed.w)
