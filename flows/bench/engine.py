"""The suites `engine` and `workers`: the overhead of a reduction, and the speedup of a second worker."""

import statistics
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from aucdist.data.block import Block, partition
from aucdist.data.shards.simulate import simulate
from aucdist.engine.blocks import Blocks, LocalBlocks, Summary
from aucdist.kernels.rows import accumulate, project
from aucdist.solvers.base import solve
from aucdist.solvers.pairs.all_pairs import all_pairs
from flows.bench.common import Row, seconds_of


def engine(slow_peers: bool) -> Iterator[Row]:
    """Time reductions with an empty step: 16 blocks in this process and on two worker processes."""
    from aucdist.engine.dask import DaskBlocks, local_client

    def timed(name: str, blocks: Blocks, *args: Any) -> dict[str, Any]:
        for _ in range(10):
            blocks.reduce(_nothing, *args)
        seconds = [seconds_of(lambda: blocks.reduce(_nothing, *args)) for _ in range(100)]
        return {"engine": name, "ms per reduction (median of 100)": 1e3 * statistics.median(seconds)}

    yield timed("LocalBlocks", LocalBlocks(partition(_small(), 16)))
    with local_client(2) as client:
        blocks = DaskBlocks.load(client, partial(_small_block, 16), 16)
        yield timed("DaskBlocks, no arguments", blocks)
        yield timed("DaskBlocks, 1 MB of arguments", blocks, np.zeros(2**17))


def workers(slow_peers: bool) -> Iterator[Row]:
    """Compare two workers with one on 4 million rows, for a fit and for plain products with X."""
    from aucdist.engine.dask import DaskBlocks, local_client

    n_blocks, load = 16, partial(_simulated_block, 250_000)
    seconds: dict[tuple[str, int], float] = {}
    for n_workers in (1, 2):
        with local_client(n_workers) as client:
            blocks = DaskBlocks.load(client, load, n_blocks)
            blocks.reduce(_products, 1)
            seconds["products", n_workers] = seconds_of(partial(blocks.reduce, _products, 30))
            solve(all_pairs(blocks, 1e-3), tol=1.0, max_passes=2)
            found: list[int] = []
            seconds["fit", n_workers] = seconds_of(partial(_record_passes, blocks, found))
        yield {
            "workers": n_workers, "rows": 250_000 * n_blocks, "passes": found[0],
            "fit s": seconds["fit", n_workers], "30 products s": seconds["products", n_workers],
        }  # fmt: skip
    gain = {what: seconds[what, 1] / seconds[what, 2] for what in ("fit", "products")}
    yield {
        "fit, 1 over 2 workers": gain["fit"],
        "products, 1 over 2": gain["products"],
        "share": gain["fit"] / gain["products"],
    }


def _record_passes(blocks: Blocks, found: list[int]) -> None:
    found.append(solve(all_pairs(blocks, 1e-3), tol=1e-3, max_passes=100).passes)


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
    return partition(_small(), n_blocks)[index]


def _nothing(block: Block, memory: None, *args: Any) -> tuple[None, Summary]:
    return None, {"n": block.n_samples}
