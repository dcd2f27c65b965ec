"""Requests that travel together: each gets its own answer, and threads that run chains at the same time get their own sums."""

import asyncio

import numpy as np
from support.chains import N_BLOCKS, load

from aucdist.engine.batches import RequestBatches
from aucdist.engine.blocks import LocalBlocks
from aucdist.engine.dask import DaskBlocks
from aucdist.engine.steps import in_threads


def start(block, memory):
    return 0.0, {}


def add_dots(block, memory, values):
    memory = memory + float(values[: block.n_features] @ block.X.sum(axis=0))
    return memory, {"memory": [memory]}


def test_requests_that_come_while_one_is_under_way_are_one_message():
    sent = []

    async def main():
        batches, gate = RequestBatches(), asyncio.Event()

        async def send(requests):
            sent.append(list(requests))
            await gate.wait()
            if "bad" in requests:
                raise OSError("lost")
            return [request.upper() for request in requests]

        asked = [asyncio.create_task(batches.ask("worker", "a", send))]
        while not sent:
            await asyncio.sleep(0)
        asked += [asyncio.create_task(batches.ask("worker", text, send)) for text in ("b", "c", "d")]
        await asyncio.sleep(0)
        asked[2].cancel()  # nobody waits for it any more
        gate.set()
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert found[:2] == ["A", "B"]
        assert isinstance(found[2], asyncio.CancelledError)
        assert found[3] == "D"
        failed = await asyncio.gather(
            *(batches.ask("worker", text, send) for text in ("x", "bad", "y")), return_exceptions=True
        )
        assert [type(one) for one in failed] == [OSError, OSError, OSError]
        assert await batches.ask("worker", "z", send) == "Z"

    asyncio.run(main())
    assert sent == [["a"], ["b", "d"], ["x", "bad", "y"], ["z"]]


def test_what_nobody_waits_for_is_given_up():
    async def main():
        batches, ended = RequestBatches(), []

        async def send(requests):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ended.append(requests)
                raise

        asked = asyncio.create_task(batches.ask("worker", "a", send))
        await asyncio.sleep(0.01)
        asked.cancel()
        await asyncio.sleep(0.01)
        assert ended == [["a"]]
        assert not batches._waiting

    asyncio.run(main())


def test_threads_run_chains_at_the_same_time(client):
    there = DaskBlocks.load(client, load, N_BLOCKS)
    here = LocalBlocks([load(i) for i in range(N_BLOCKS)])

    def chain(blocks, seed):
        own, r = blocks.without_memory(), np.random.default_rng(seed)
        own.reduce(start)
        return [own.reduce(add_dots, r.normal(size=2000))["memory"] for _ in range(6)]

    found = [None] * 8

    def work(k):
        found[k] = chain(there, k)

    in_threads(work, 8, 8)
    assert found == [chain(here, k) for k in range(8)]
    assert not there._parts._batches._waiting
