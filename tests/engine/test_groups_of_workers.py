"""Where workers are many, the client calls some, and each of these calls the others of its group: same bits, same errors."""

import os
import signal

import numpy as np
import pytest
from support.chains import N_BLOCKS, VALUES, add, load, rows

from aucdist.data.block import partition
from aucdist.engine import worker_calls
from aucdist.engine.blocks import LocalBlocks
from aucdist.engine.dask import DaskBlocks, local_client
from aucdist.engine.worker_calls import Parts, group_size

N_WORKERS = 5


def add_wide(block, memory, value, wide):
    """Do as `add`, with arguments and summaries that travel beside the message."""
    total, summary = add(block, memory, value)
    return total, {**summary, "wide": wide + total}


def fail_on(block, memory, index):
    if block.index == index:
        raise ZeroDivisionError(f"block {index} divides by zero")
    return memory, {"n": block.n_samples}


def wide_chain_of(blocks, between=lambda: None):
    found = []
    for value in VALUES:
        summary = blocks.reduce(add_wide, value, np.full(40_000, value))
        found.append({**summary, "wide": summary["wide"].tobytes()})
        between()
    return found


EXPECTED = wide_chain_of(LocalBlocks(partition(rows(), N_BLOCKS)))


@pytest.fixture
def relayed(monkeypatch):
    """The groups that were called through one of their workers, and whether that worked."""
    monkeypatch.setattr(worker_calls, "MOST_DIRECT", 2)
    found = []
    real = Parts._relay

    async def relay(self, addresses, group, chain, forget):
        answer = await real(self, addresses, group, chain, forget)
        found.append((len(group), "nodes" in answer))
        return answer

    monkeypatch.setattr(Parts, "_relay", relay)
    return found


@pytest.fixture
def client():
    with local_client(N_WORKERS, threads=1, memory_limit="1GiB") as client:
        yield client


@pytest.mark.parametrize(("n", "size"), [(1, 1), (32, 1), (33, 6), (36, 6), (100, 10), (1000, 32), (1024, 32)])
def test_groups_are_about_as_many_as_their_parts(n, size):
    assert group_size(n) == size


def test_groups_give_the_bits_of_one_process(client, relayed):
    blocks = DaskBlocks.load(client, load, N_BLOCKS)
    assert wide_chain_of(blocks) == EXPECTED
    # The first step finds out where the parts are, by a call to each.
    assert sorted(relayed) == sorted([(3, True), (2, True)] * (len(VALUES) - 1))


def test_an_error_of_a_step_is_that_of_its_block(client, relayed):
    blocks = DaskBlocks.load(client, load, N_BLOCKS)
    blocks.reduce(add_wide, 1.0, np.zeros(1))
    for index in (0, N_BLOCKS - 1):
        with pytest.raises(ZeroDivisionError, match=f"block {index} divides by zero"):
            blocks.reduce(fail_on, index)
    assert (3, False) in relayed
    assert wide_chain_of(blocks.without_memory()) == EXPECTED


@pytest.mark.parametrize("place", [0, 1, 4])  # the first of a group calls the others
def test_a_worker_that_is_killed_changes_no_bit(client, relayed, place):
    blocks = DaskBlocks.load(client, load, N_BLOCKS)
    before = iter([False, False, True, False, False])

    def kill():
        if next(before):
            ((address, *_),) = client.who_has([blocks._parts.futures[place]]).values()
            os.kill(client.run(os.getpid, workers=[address])[address], signal.SIGKILL)

    assert wide_chain_of(blocks, kill) == EXPECTED
    assert len(relayed) >= 4
