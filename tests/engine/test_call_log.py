"""The calls that a client may have to repeat: its memory for them does not grow with a fit, and a lost worker changes no bit."""

import gc
import os
import signal

import numpy as np
import pytest
from support.chains import N_BLOCKS, load

from aucdist import PairwiseHingeClassifier
from aucdist.engine import calls
from aucdist.engine.blocks import LocalBlocks, without_rows
from aucdist.engine.calls import Call, CallFile, CallLog
from aucdist.engine.dask import DaskBlocks, local_client
from aucdist.engine.view import ViewBlocks

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
def client():
    """A client of workers that the test may kill."""
    with local_client(2, threads=1, memory_limit="1GiB") as client:
        yield client


def in_memory(blocks):
    return sum(call.n_bytes for call in blocks._chain)


@pytest.mark.parametrize("view", [False, True])
def test_many_large_calls_take_little_memory_and_are_repeated_from_the_file(client, monkeypatch, view):
    monkeypatch.setattr(calls, "MOST_BYTES", 6 * 8 * LARGE)
    there = DaskBlocks.load(client, load, N_BLOCKS)
    here = LocalBlocks([load(i) for i in range(N_BLOCKS)])
    blocks, expected = (ViewBlocks(b, same, keep="memory") if view else b for b in (there, here))
    chain = blocks._now if view else blocks
    for b in (blocks, expected):
        b.reduce(start)
    r = np.random.default_rng(0)
    for number in range(20):
        values = r.normal(size=LARGE)
        assert blocks.reduce(add_dots, values) == expected.reduce(add_dots, values)
        assert in_memory(chain) <= 6 * 8 * LARGE + 2**16
        if number == 15:  # its part has to be made again: by all calls, most of which lie in the file
            (address,) = client.who_has([chain._parts.futures[0]]).values()
            os.kill(client.run(os.getpid, workers=[address[0]])[address[0]], signal.SIGKILL)
    assert sum(call._place is not None for call in chain._chain) >= 14


@pytest.mark.parametrize("view", [False, True])
def test_a_step_that_leaves_the_memory_as_it_is_need_not_be_repeated(client, view):
    there = DaskBlocks.load(client, load, N_BLOCKS)
    blocks = ViewBlocks(there, same, keep="memory") if view else there
    chain = blocks._now if view else blocks
    blocks.reduce(start)
    blocks.reduce(add_dots, np.ones(LARGE))
    n, values = len(chain._chain), np.full(LARGE, 2.0)
    found = [blocks.reduce(scaled, values)["memory"] for _ in range(5)]
    assert found == 5 * found[:1]
    assert len(chain._chain) == n
    after = blocks.reduce(add_dots, values)["memory"]
    (address,) = client.who_has([chain._parts.futures[0]]).values()
    os.kill(client.run(os.getpid, workers=[address[0]])[address[0]], signal.SIGKILL)
    assert blocks.reduce(scaled, values)["memory"] == [2.0 * value for value in after]


def test_calls_of_a_fit_stay_within_their_bytes(client, monkeypatch):
    monkeypatch.setattr(calls, "MOST_BYTES", 2**17)
    r = np.random.default_rng(0)
    y = np.where(np.arange(6000) % 2, 1, -1)
    X = r.normal(size=(6000, 5)) + 0.3 * y[:, None]
    most = []

    class Counting(CallLog):
        def add(self, call):
            super().add(call)
            most.append(self.n_bytes)

    monkeypatch.setattr(calls, "CallLog", Counting)
    blocks = LocalBlocks.of(X, y, n_blocks=4)._blocks
    there = DaskBlocks.of_futures(client, client.scatter(list(blocks)))
    model = PairwiseHingeClassifier(lam=1e-4, tol=1e-4).fit(there)
    assert model.n_passes_ > 10
    assert max(most) <= 2**17 + 2**17  # the newest call, too, whatever it takes
    np.testing.assert_array_equal(
        model.coef_, PairwiseHingeClassifier(lam=1e-4, tol=1e-4).fit(LocalBlocks(blocks)).coef_
    )


def test_the_file_ends_with_the_last_call_in_it(monkeypatch):
    monkeypatch.setattr(calls, "MOST_BYTES", 100)
    log, kept = CallLog(), []
    for number in range(5):
        kept.append(Call(start, (np.full(20, number),)))
        log.add(kept[-1])
    assert [call._place is not None for call in kept] == [True, True, True, True, False]
    before = Call(start, (np.full(20, 2),)).data
    assert kept[2].data == before
    assert isinstance(log._file(), CallFile)
    del kept[:-1]
    gc.collect()
    assert log._file() is None
    assert log.n_bytes == kept[0].n_bytes
