"""A real S3 server that is killed while a fit reads from it."""

import os
import signal
import subprocess
import time
import urllib.request
import uuid
from functools import partial
from pathlib import Path

import boto3
import pytest
from support.s3_servers import LAB, need_real, new_bucket, new_connections, point_to

from aucdist.data.block import into_blocks
from aucdist.data.dataset import Schema
from aucdist.data.shards.manifest import read_shard, write_shards
from aucdist.data.shards.sharding import simulate
from aucdist.data.storage import scratch
from aucdist.engine.blocks import LocalBlocks
from aucdist.engine.dask import DaskBlocks, local_client
from aucdist.pairs.cutting_planes import AllPairs
from aucdist.solvers.base import solve

LAB_DATA = Path(os.environ.get("LAB_DIR", Path.home() / ".cache/aucdist-labs/s3")) / "ceph"
N_BLOCKS = 6
SECONDS = 10


@pytest.fixture
def bucket(monkeypatch):
    endpoint, credentials = need_real()
    if not (LAB / "up.sh").is_file():
        pytest.skip(f"the server cannot be restarted: there is no {LAB}/up.sh (AUCDIST_LABS names the folder above)")
    if not (LAB_DATA / "client.rgw.a.pid").is_file():
        pytest.skip(f"the server at {endpoint} is not the lab's: {LAB_DATA} has no number of its process (LAB_DIR)")
    point_to(monkeypatch, endpoint, *credentials)
    name = f"outage-{uuid.uuid4().hex[:12]}"
    client = boto3.session.Session().client("s3")
    with new_connections(), new_bucket(client, name):
        yield name
        deadline = time.monotonic() + 300
        while not answers(endpoint) and time.monotonic() < deadline:
            time.sleep(0.2)
    client.close()


def answers(endpoint):
    try:
        return urllib.request.urlopen(endpoint, timeout=1).status == 200
    except OSError:
        return False


def load(url, order, index):
    """Read a block; where there is an order to do so, kill the server first, in the middle of the pass."""
    if index == N_BLOCKS // 2 and order.is_file():
        order.unlink()
        # The server alone, not the store behind it: on a busy machine that may take minutes to serve again (`make faults`
        # kills both).
        os.kill(int((LAB_DATA / "client.rgw.a.pid").read_text()), signal.SIGKILL)
        subprocess.Popen(
            ["sh", "-c", f"sleep {SECONDS}; until {LAB}/up.sh; do sleep 1; done"],
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    return read_shard(url, index)


@pytest.mark.s3
def test_a_server_killed_during_a_pass_costs_time_only(bucket, tmp_path, monkeypatch):
    monkeypatch.setenv(scratch.LIMIT, "0")  # each pass reads the server
    order, down = tmp_path / "kill", []
    blocks = into_blocks(simulate(6000, 8, 0.1, seed=1), N_BLOCKS)
    write_shards(blocks, Schema(tuple("abcdefgh"), "y", ("1",), ("-1",), {}), f"s3://{bucket}/rows")

    def callback(record):
        if record["round"] == 3:
            order.touch()
        if record["round"] > 3:
            down.append(record["seconds"])

    def outcome(blocks, callback=None):
        solution = solve(AllPairs().rounds(blocks, 1e-2), tol=1e-4, max_passes=100, callback=callback)
        return solution.w.tobytes(), solution.certificate

    expected = outcome(LocalBlocks(blocks))
    with local_client(2, memory_limit="1GiB") as client:
        loader = partial(load, f"s3://{bucket}/rows", Path(order))
        streamed = DaskBlocks.load(client, loader, N_BLOCKS, stream=True)
        pids = set(client.run(os.getpid).values())
        assert outcome(streamed, callback) == expected
        assert set(client.run(os.getpid).values()) == pids
    assert not order.exists()
    assert down[0] > SECONDS
