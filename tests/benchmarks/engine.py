"""The suites `engine` and `workers`: the overhead of a reduction, and the speedup of a second worker."""

import statistics
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from support.scratch_room import start_anew

from aucdist.data.block import Block, into_blocks
from aucdist.data.dataset import Schema
from aucdist.data.shards.manifest import read_shard, write_shards
from aucdist.data.shards.sharding import simulate
from aucdist.engine.blocks import Blocks, LocalBlocks, Summary
from aucdist.errors import RunError
from aucdist.kernels.rows import accumulate, project
from aucdist.pairs.cutting_planes import AllPairs
from aucdist.solvers.base import solve
from benchmarks.common import Row, read_train_and_test, seconds_of


def engine(slow_peers: bool) -> Iterator[Row]:
    """Time reductions with an empty step on 16 blocks by carrier, and a fit on KDD Cup 99 on each."""
    from aucdist.engine.dask import DaskBlocks, local_client

    kilobyte, megabyte = np.zeros(2**7), np.zeros(2**17)
    small = into_blocks(_small(), 16)
    yield _timed("one process", "1 KB", LocalBlocks(small), kilobyte)
    yield _timed("one process, two threads", "1 KB", LocalBlocks(small, n_jobs=2), kilobyte)
    with local_client(2) as client:
        blocks = DaskBlocks.load(client, partial(_small_block, 16), 16)
        for size, sent in (("1 KB", kilobyte), ("1 MB", megabyte)):
            yield _timed("two workers", size, blocks, sent)
            yield _timed("two workers, tasks in place of calls", size, _AsTasks(client, blocks), sent)
    yield from _streamed()
    yield from _fits()


def _timed(carrier: str, size: str, blocks: "Blocks | _AsTasks", sent: np.ndarray) -> Row:
    """Time reductions whose arguments and, of each part, whose summary have a size."""
    for _ in range(10):
        blocks.reduce(_echo, sent)
    cpu = time.process_time()
    seconds = [seconds_of(lambda: blocks.reduce(_echo, sent)) for _ in range(100)]
    return {
        "carrier": carrier, "of": size, "ms (least of 100)": 1e3 * min(seconds),
        "ms (median)": 1e3 * statistics.median(seconds), "CPU ms, client and scheduler": 10 * (time.process_time() - cpu),
    }  # fmt: skip


class _AsTasks:
    """The cheapest reduction by tasks: one for each part, sent and gathered by the client."""

    def __init__(self, client: Any, blocks: Any):
        self._client, self._parts = client, blocks._parts.futures

    def reduce(self, step: Any, sent: np.ndarray) -> None:
        self._client.gather([self._client.submit(_add_to, part, sent, pure=False) for part in self._parts])


def _add_to(part: Any, sent: np.ndarray) -> np.ndarray:
    return sent + len(part.numbers)


def _streamed() -> Iterator[Row]:
    """Time a pass over eight shards of 250 000 rows: in memory, mapped from copies on the local disk, and decoded each time."""
    shards = [_simulated_block(250_000, index) for index in range(8)]
    names = tuple(f"f{i}" for i in range(shards[0].n_features))
    with tempfile.TemporaryDirectory(dir=tempfile.gettempdir()) as folder:
        write_shards(shards, Schema(names, "y", ("1",), ("-1",), {}), folder)
        loader, base = partial(read_shard, folder), 0.0
        for carrier, stream, limit in (
            ("in memory", False, None),
            ("copies on the local disk", True, None),
            ("decoded each time", True, 0),
        ):
            start_anew(limit)
            blocks = LocalBlocks.load(loader, len(shards), stream=stream)
            blocks.reduce(_products, 1)
            one_pass = partial(blocks.reduce, _products, 1)
            seconds = min(seconds_of(one_pass) for _ in range(10))
            base = base or seconds
            yield {
                "carrier": carrier, "of": "a pass over 2 000 000 x 54 rows", "seconds": seconds,
                "times rows in memory": seconds / base,
            }  # fmt: skip
        start_anew()


def _fits() -> Iterator[Row]:
    """Fit KDD Cup 99 at lam 1e-3 in four blocks on each carrier: the weights are the same to the last bit."""
    from aucdist.engine.dask import DaskBlocks, local_client

    rows = into_blocks(read_train_and_test("kddcup99")[0], 4)
    weights, base = set(), 0.0
    solve(AllPairs().rounds(LocalBlocks(rows), 1e-3), tol=1e-3, max_passes=100)  # compiles what late passes need, too

    def fitted(carrier: str, blocks: Blocks) -> Row:
        nonlocal base
        solve(AllPairs().rounds(blocks, 1e-3), tol=1.0, max_passes=1)
        cpu, start = time.process_time(), time.perf_counter()
        fit = solve(AllPairs().rounds(blocks, 1e-3), tol=1e-3, max_passes=100)
        seconds = time.perf_counter() - start
        base = base or seconds
        weights.add(fit.w.tobytes())
        if len(weights) > 1:
            raise RunError(f"{carrier}: other weights than before")
        return {
            "carrier": carrier, "of": "KDD, lam 1e-3", "seconds": seconds, "over one process": seconds / base,
            "passes": fit.passes, "CPU s of this process": time.process_time() - cpu,
        }  # fmt: skip

    for _ in range(3):
        yield fitted("one process", LocalBlocks(rows))
        yield fitted("one process, two threads", LocalBlocks(rows, n_jobs=2))
        with local_client(2) as client:
            futures = [client.submit(_as_it_is, f, pure=False) for f in client.scatter(rows, hash=False)]
            yield fitted("two workers", DaskBlocks.of_futures(client, futures))


def _as_it_is(block: Block) -> Block:
    return block


def workers(slow_peers: bool) -> Iterator[Row]:
    """Compare two workers, and two threads, with one on 4 million rows, for a fit and for plain products with X."""
    from aucdist.engine.dask import DaskBlocks, local_client

    n_blocks, load = 16, partial(_simulated_block, 250_000)
    seconds: dict[tuple[str, str, int], float] = {}

    def timed(carrier: str, n: int, blocks: Blocks) -> Row:
        blocks.reduce(_products, 1)
        seconds["products", carrier, n] = seconds_of(partial(blocks.reduce, _products, 30))
        solve(AllPairs().rounds(blocks, 1e-3), tol=1.0, max_passes=2)
        passes: list[int] = []
        seconds["fit", carrier, n] = seconds_of(partial(_record_passes, blocks, passes))
        return {
            carrier: n, "rows": 250_000 * n_blocks, "passes": passes[0], "fit s": seconds["fit", carrier, n],
            "30 products s": seconds["products", carrier, n],
        }  # fmt: skip

    for n in (1, 2):
        with local_client(n) as client:
            yield timed("workers", n, DaskBlocks.load(client, load, n_blocks))
    for n in (1, 2):
        yield timed("threads", n, LocalBlocks.load(load, n_blocks, n_jobs=n))
    for carrier in ("workers", "threads"):
        gain = {what: seconds[what, carrier, 1] / seconds[what, carrier, 2] for what in ("fit", "products")}
        yield {
            f"fit, 1 over 2 {carrier}": gain["fit"],
            f"products, 1 over 2 {carrier}": gain["products"],
            "share": gain["fit"] / gain["products"],
        }


def _record_passes(blocks: Blocks, passes: list[int]) -> None:
    passes.append(solve(AllPairs().rounds(blocks, 1e-3), tol=1e-3, max_passes=100).passes)


def _simulated_block(rows: int, index: int) -> Block:
    return simulate(rows, 54, 0.02, seed=0, index=index)


def _products(block: Block, memory: None, times: int) -> tuple[None, Summary]:
    w, out, back = np.ones(block.n_features), np.empty(block.n_samples), np.zeros(block.n_features)
    every = np.arange(block.n_samples)
    for _ in range(times):
        project(block.rows, w, out)
        accumulate(block.rows, every, out, back)
    return None, {"total": float(back.sum())}


def _small() -> Block:
    return simulate(1600, 4, 0.1, seed=0)


def _small_block(n_blocks: int, index: int) -> Block:
    return into_blocks(_small(), n_blocks)[index]


def _echo(block: Block, memory: None, sent: np.ndarray) -> tuple[None, Summary]:
    return None, {"sent": sent}
