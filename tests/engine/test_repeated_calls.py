"""The calls that a client may have to repeat: its memory for them does not grow with a fit, and a lost worker changes no bit."""

import gc
import os
import signal
import weakref

import numpy as np
import pytest
from support.chains import N_BLOCKS, load

from aucdist.data.storage.scratch import AnonymousFile
from aucdist.engine.blocks import LocalBlocks, without_rows
from aucdist.engine.dask import DaskBlocks, local_client
from aucdist.engine.steps import in_threads
from aucdist.engine.view import ViewBlocks
from aucdist.engine.worker_calls import MAX_CALL_BYTES, Call

LARGE = 2**18


def start(block, memory):
    return 0.0, {}


@without_rows
def scaled(number, memory, values):
    """Look at the memory, and leave it as it is."""
    return memory, {"memory": [memory * float(values[0])]}


def add_dots(block, memory, values):
    memory = memory + float(values[: block.n_features] @ block.X.sum(axis=0))
    return memory, {"memory": [memory]}


def same(block):
    return block


@pytest.fixture
def mortal():
    """A client of workers that the test may kill."""
    with local_client(2, threads=1, memory_limit="1GiB") as client:
        yield client


def in_memory(blocks):
    return sum(len(call._data or b"") for call in blocks._chain)


@pytest.mark.parametrize("view", [False, True])
def test_many_large_calls_take_little_memory_and_are_repeated_from_the_file(mortal, view):
    there = DaskBlocks.load(mortal, load, N_BLOCKS)
    here = LocalBlocks([load(i) for i in range(N_BLOCKS)])
    blocks, expected = (ViewBlocks(b, same, keep="memory") if view else b for b in (there, here))
    chain = blocks._with_memory if view else blocks
    for b in (blocks, expected):
        b.reduce(start)
    r = np.random.default_rng(0)
    for number in range(20):
        values = r.normal(size=LARGE)
        assert blocks.reduce(add_dots, values) == expected.reduce(add_dots, values)
        assert in_memory(chain) <= 3 * MAX_CALL_BYTES
        if number == 15:  # its part has to be made again: by all calls, most of which lie in the file
            (address,) = mortal.who_has([chain._parts.futures[0]]).values()
            os.kill(mortal.run(os.getpid, workers=[address[0]])[address[0]], signal.SIGKILL)
    assert sum(call._data is None for call in chain._chain) == 20


@pytest.mark.parametrize("view", [False, True])
def test_a_step_that_leaves_the_memory_as_it_is_need_not_be_repeated(mortal, view):
    there = DaskBlocks.load(mortal, load, N_BLOCKS)
    blocks = ViewBlocks(there, same, keep="memory") if view else there
    chain = blocks._with_memory if view else blocks
    blocks.reduce(start)
    blocks.reduce(add_dots, np.ones(LARGE))
    n, values = len(chain._chain), np.full(LARGE, 2.0)
    memories = [blocks.reduce(scaled, values)["memory"] for _ in range(5)]
    assert memories == 5 * memories[:1]
    assert len(chain._chain) == n
    after = blocks.reduce(add_dots, values)["memory"]
    (address,) = mortal.who_has([chain._parts.futures[0]]).values()
    os.kill(mortal.run(os.getpid, workers=[address[0]])[address[0]], signal.SIGKILL)
    assert blocks.reduce(scaled, values)["memory"] == [2.0 * value for value in after]


def test_the_file_ends_with_the_last_call_in_it(monkeypatch):
    monkeypatch.setattr("aucdist.engine.worker_calls.MAX_CALL_BYTES", 400)
    kept = [Call(start, (np.full(20, 1.0),), AnonymousFile())]
    kept += [Call(start, (np.full(size, 2.0),), kept[0].file) for size in (100, 200)]
    before = [call.data for call in kept]
    for call in kept:
        call.keep()
    assert [call._data is None for call in kept] == [False, True, True]
    assert [call.data for call in kept] == before
    file = weakref.ref(kept[0].file)
    del kept, call
    gc.collect()
    assert file() is None


def test_threads_run_chains_at_the_same_time(client):
    there = DaskBlocks.load(client, load, N_BLOCKS)
    here = LocalBlocks([load(i) for i in range(N_BLOCKS)])

    def chain(blocks, seed):
        own, r = blocks.without_memory(), np.random.default_rng(seed)
        own.reduce(start)
        return [own.reduce(add_dots, r.normal(size=2000))["memory"] for _ in range(6)]

    ends = [None] * 8

    def work(k):
        ends[k] = chain(there, k)

    in_threads(work, 8, 8)
    assert ends == [chain(here, k) for k in range(8)]
