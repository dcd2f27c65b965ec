"""The suite `scale`: the cost of more rows and more workers, and the predictions of a model (`scale_model`).

tests/infra/limited_network.py, which needs root, compares the model with measurements over slow networks.
"""

import multiprocessing
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from aucdist.data.block import Block
from aucdist.data.shards.manifest import read_manifest
from aucdist.data.shards.simulate import Simulation
from aucdist.data.storage.scratch import LIMIT
from aucdist.engine.blocks import Blocks, LocalBlocks, Summary
from aucdist.solvers.base import solve
from aucdist.solvers.pairs.cell_cuts import CELLS, CellCuts
from aucdist.solvers.pairs.cutting_planes import AllPairs, CuttingPlanes
from aucdist.solvers.pairs.objective import PairObjective
from benchmarks.common import Row, seconds_of
from benchmarks.memory import peak_memory
from benchmarks.scale_model import (
    ClusterSize,
    Constants,
    Run,
    Workload,
    count_work,
    expected_work,
    fit_constants,
    nodes_sent,
    predict,
    total,
)
from flows.rows.rows import Rows

FEATURES, SHARE, LAM, PASSES = 20, 1e-3, 1e-3, 6
SIZES, LARGE = (100_000, 1_000_000), (10_000_000, 100_000_000)
ON_WORKERS = (1_000_000, 10_000_000)
"""The sizes that two workers fit as well."""

CASES = {
    "many rows": (Simulation(2_000_000, 20, 1e-3, rows_per_shard=125_000), True),
    "many anchors": (Simulation(400_000, 20, 0.05, rows_per_shard=25_000), True),
    "few rows": (Simulation(40_000, 20, 0.01, rows_per_shard=10_000), True),
    "many anchors, few blocks": (Simulation(400_000, 20, 0.2, rows_per_shard=100_000), False),
    "wide": (Simulation(600_000, 60, 5e-3, rows_per_shard=50_000), True),
    "narrow": (Simulation(1_500_000, 8, 5e-3, rows_per_shard=125_000), False),
    "twice as wide": (Simulation(300_000, 120, 5e-3, rows_per_shard=25_000), False),
}
"""Data of measured runs, and whether the model is fitted to them; it predicts the others."""

BANDWIDTH, DELAY = 1.25e9, 1e-4
"""The network of the predictions: 10 Gbit/s, 0.1 ms."""

WIRE, TRIPS = 0.939, 2.29
"""Measured by tests/infra/limited_network.py, because a single machine has no network."""

WORKERS = (2, 4, 8, 16)
"""So many worker processes are called, to see what each of them costs the client."""

HALVES, MANY = 4_000_000, 1_000_000

MEMORY_FOR_ROWS = 16e9
"""A predicted worker with more bytes of rows than this reads them anew in each pass."""

BYTES_OF_A_ROW = 36
"""The memory of a block for each row without a weight during a fit: place, two scores, slope, and a score that moves."""


def scale(slow_peers: bool) -> Iterator[Row]:
    """Measure growing data, calls of workers, and the model on 1, 2 and 4 workers; with `slow_peers` up to 1e8 rows."""
    ns_per_streamed_value = 0.0
    for rows in SIZES + (LARGE if slow_peers else ()):
        for row in growth(rows, on_workers=rows in ON_WORKERS):
            if row.get("growth") == "one process":
                ns_per_streamed_value = row["ns for a row and pass"] / FEATURES
            yield row
    seconds_per_worker = 0.0
    for row in calls(WORKERS if slow_peers else WORKERS[:2]):
        seconds_per_worker = max(0.0, 1e-3 * row.get("ms of the client for a worker", 0.0))
        yield row
    runs = list(measure_runs(local_clusters()))
    constants = fit_constants([run for name, run in runs if CASES[name][1]])
    yield constants_row(constants)
    for name, run in runs:
        yield prediction_row(name, run, constants, CASES[name][1])
    remote_constants = constants._replace(worker=seconds_per_worker, wire=WIRE, trips=TRIPS)
    yield from predict_large_fit(remote_constants, ns_per_streamed_value, client_seconds_per_anchor())


# ---- growth -----------------------------------------------------------------------------------------------------------


def growth(rows: int, *, share: float = SHARE, on_workers: bool = False) -> Iterator[Row]:
    """Measure time and memory per row of fits that read the rows anew in each step, in a new process and on two workers."""
    simulation = Simulation(rows, FEATURES, share)
    with tempfile.TemporaryDirectory(prefix="aucdist-scale-") as folder:
        free, copies = shutil.disk_usage(folder).free, int(1.2 * rows * (4 * FEATURES + 9))
        if free < 2 * copies:
            said = f"{2e-9 * copies:.1f} GB of disk needed for the rows and their copies, {free / 1e9:.1f} are free"
            yield {"rows": rows, "note": f"not run here: {said}"}
            return
        _in_new_process(_write, simulation, folder)
        fits: list[Callable[..., Row]] = [_in_one_process] + [_on_two_workers] * on_workers
        for fit in fits:
            with mock.patch.dict(os.environ, {LIMIT: str(copies)}):  # otherwise a full disk decides what is measured
                row = _in_new_process(fit, folder)
            yield {
                "growth": row.pop("where"), "rows": rows, "anchors": round(share * rows), "shards": simulation.n_shards,
                **row,
                "ns for a row and pass": 1e9 * row["seconds"] / rows / PASSES,
                "bytes for a row": row["more MiB"] * 2**20 / rows,
            }  # fmt: skip


def _in_new_process(work: Callable[..., Any], *args: Any) -> Any:
    """Call a function in a new process and return its result."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *args).result()


def _write(simulation: Simulation, folder: str) -> None:
    simulation.commit(folder, [simulation.write(folder, i) for i in range(simulation.n_shards)])


def _in_one_process(folder: str) -> Row:
    fit_passes(LocalBlocks([_small_block(1, 0)]))  # compiles the kernels
    rows = Rows.of_shards(read_manifest(folder))
    before = peak_memory()
    blocks = LocalBlocks.load(rows.loader, rows.n_blocks, stream=True)
    cpu = time.process_time()
    seconds = seconds_of(partial(fit_passes, blocks))
    cpu = time.process_time() - cpu
    return {
        "where": "one process",
        "seconds": seconds,
        "CPU s": cpu,
        "base MiB": before,
        "more MiB": peak_memory() - before,
    }


def _on_two_workers(folder: str) -> Row:
    from aucdist.engine.dask import DaskBlocks, local_client

    rows = Rows.of_shards(read_manifest(folder))
    with local_client(2) as client:
        compile_on_workers(client, 2)
        before = sum(client.run(peak_memory).values())
        blocks = DaskBlocks.load(client, rows.loader, rows.n_blocks, stream=True)
        seconds = seconds_of(partial(fit_passes, blocks))
        peak = sum(client.run(peak_memory).values())
    return {"where": "two workers", "seconds": seconds, "base MiB": before, "more MiB": peak - before}


def fit_passes(blocks: Blocks) -> int:
    """Run the fit of all measurements and return the number of its passes."""
    start = np.zeros(blocks.n_features)  # otherwise large data would start from a sample, and the passes would differ
    return solve(AllPairs().rounds(blocks, LAM, start), tol=0.0, max_passes=PASSES).passes


# ---- calls of workers -------------------------------------------------------------------------------------------------


def calls(worker_counts: Sequence[int]) -> Iterator[Row]:
    """Time reductions with an empty step: on two workers with growing numbers of blocks, then on growing numbers of workers.

    The scheduler, which has no part in a reduction, and the client are one process here. The last row has what one more worker
    costs this process.
    """
    for n_blocks in (10, 100, 1000):
        seconds, own = _empty_reduction(2, n_blocks)
        yield {"empty reduction of blocks": n_blocks, "workers": 2, "ms": 1e3 * seconds, "ms of the client": 1e3 * own}
    by_count = []
    for n_workers in worker_counts:
        seconds, own = _empty_reduction(n_workers, 4 * max(worker_counts))
        by_count.append(own)
        yield {"empty reduction on workers": n_workers, "ms": 1e3 * seconds, "ms of the client": 1e3 * own}
    slope, _ = np.polyfit(worker_counts, by_count, 1)
    yield {"ms of the client for a worker": 1e3 * float(slope)}


def _empty_reduction(n_workers: int, n_blocks: int) -> tuple[float, float]:
    """Return elapsed and CPU seconds of an empty reduction in this process."""
    from aucdist.engine.dask import DaskBlocks, local_client

    with local_client(n_workers) as client:
        blocks = DaskBlocks.load(client, partial(_small_block, n_blocks), n_blocks)
        blocks.reduce(_empty_step)
        own, times = time.process_time(), 20
        seconds = min(seconds_of(partial(blocks.reduce, _empty_step)) for _ in range(times))
        return seconds, (time.process_time() - own) / times


def _small_block(n_blocks: int, index: int) -> Block:
    return Simulation(1000 * n_blocks, FEATURES, 0.3, rows_per_shard=1000).block(index)


def _empty_step(block: Block, memory: None) -> tuple[None, Summary]:
    return None, {"n": block.n_samples}


# ---- the model --------------------------------------------------------------------------------------------------------


def local_clusters() -> list[ClusterSize]:
    """Return 1, 2 and 4 workers on this machine."""
    return [ClusterSize(workers, os.cpu_count() or 1) for workers in (1, 2, 4)]


def measure_runs(clusters: list[ClusterSize]) -> Iterator[tuple[str, Run]]:
    """Count the work of each case in this process, then measure it on each cluster."""
    from aucdist.engine.dask import local_client

    workloads = all_workloads()
    for cluster in clusters:
        with local_client(cluster.workers) as client:
            compile_on_workers(client, cluster.workers)
            yield from measure_on(client, cluster, workloads)


def all_workloads() -> dict[str, Workload]:
    """Return the work of each case."""
    return {name: count_workload(simulation) for name, (simulation, _) in CASES.items()}


def count_workload(simulation: Simulation) -> Workload:
    """Return the work of the fit to simulated rows."""
    blocks = LocalBlocks.load(simulation.block, simulation.n_shards)
    fit_passes(blocks)
    return count_work(blocks, fit_passes)


def compile_on_workers(client: Any, workers: int) -> None:
    """Compile the kernels of the fit on every worker."""
    from aucdist.engine.dask import DaskBlocks

    fit_passes(DaskBlocks.load(client, partial(_small_block, 2 * workers), 2 * workers))


def measure_on(
    client: Any, cluster: ClusterSize, workloads: dict[str, Workload], times: int = 3
) -> Iterator[tuple[str, Run]]:
    """Measure each case on a cluster with the rows in memory; the fastest of several fits counts."""
    from aucdist.engine.dask import DaskBlocks

    for name, workload in workloads.items():
        simulation = CASES[name][0]
        blocks = DaskBlocks.load(client, simulation.block, simulation.n_shards)
        seconds = min(seconds_of(partial(fit_passes, blocks)) for _ in range(times))
        yield name, Run(workload, cluster, seconds)


def constants_row(constants: Constants) -> Row:
    """Return the constants of the model as a row."""
    return {
        "model": "ns a row and a value", "row": 1e9 * constants.row, "value": 1e9 * constants.value,
        "ms a reduction": 1e3 * constants.reduction, "ms a worker and reduction": 1e3 * constants.worker,
        "ns a byte": 1e9 * constants.byte, "wire": constants.wire, "trips": constants.trips,
    }  # fmt: skip


def prediction_row(name: str, run: Run, constants: Constants, fitted_to: bool) -> Row:
    """Return the measured and the predicted seconds of a run."""
    prediction = total(constants, run.workload, run.cluster)
    return {
        "fit": name, "workers": run.cluster.workers, "measured s": run.seconds, "model s": prediction,
        "model/measured": prediction / run.seconds, "held out": not fitted_to,
    }  # fmt: skip


def client_seconds_per_anchor() -> float:
    """Return the CPU seconds of the client for each row of the smaller class (anchor), measured where both classes are equal."""
    workload = count_workload(Simulation(HALVES, 2, 0.5, rows_per_shard=HALVES // 4))
    return workload.client / (HALVES / 2 * PASSES)


def cells_workload(features: int) -> Workload:
    """Return the work of a fit in cells, counted on a million rows: what is sent does not grow with them."""
    simulation = Simulation(MANY, features, 0.01, rows_per_shard=MANY // 4)

    def fit(blocks: Blocks) -> int:
        start = np.zeros(features)
        return solve(
            CuttingPlanes(blocks, PairObjective(), start, kind=CellCuts).rounds(LAM), tol=0.0, max_passes=PASSES
        ).passes

    blocks = LocalBlocks.load(simulation.block, simulation.n_shards)
    fit(blocks)  # compiles the kernels
    return count_work(blocks, fit)


def predict_large_fit(constants: Constants, ns_per_streamed_value: float, client_seconds: float) -> Iterator[Row]:
    """Predict a pass over 1e10 rows, with the anchors in cells, as built, and with the score of each anchor.

    Parameters
    ----------
    constants : Constants
        With the client's own time for each worker, because the workers themselves run in parallel.
    ns_per_streamed_value : float
        Nanoseconds for one value of one row in a pass that reads the rows anew.
    client_seconds : float
        CPU seconds of the client for each anchor that it sorts.
    """
    rows, features, anchors = 10**10, 50, 10**7
    blocks = Simulation(rows, features, 0.5).n_shards
    scores = expected_work(rows, features, blocks, PASSES, anchors)
    designs = {
        "as built: cells": (replace(cells_workload(features), rows=rows, blocks=blocks), CELLS),
        "each anchor's score": (
            replace(scores, client=client_seconds * anchors * PASSES), anchors
        ),
    }  # fmt: skip
    for workers in (10, 100, 1000):
        cluster = ClusterSize(workers, workers, BANDWIDTH, DELAY)
        for design, (workload, kept) in designs.items():
            sent = workload.sent
            bytes_by_worker = 4 * features * rows / workers
            nodes = nodes_sent(blocks, workers)
            known = constants
            if bytes_by_worker > MEMORY_FOR_ROWS:
                known = constants._replace(row=0.0, value=1e-9 * ns_per_streamed_value)
            parts = predict(known, workload, cluster)
            passes = workload.passes
            yield {
                "design": design, "workers": workers, "s a pass": sum(parts.values()) / passes,
                **{f"{name} s": seconds / passes for name, seconds in parts.items()},
                "GB to the client": (sent.gathered + nodes * sent.summed) / passes / 1e9,
                "GB from the client": workers * sent.arguments / passes / 1e9,
                "GB of rows a worker": bytes_by_worker / 1e9,
                "GB else a worker": (BYTES_OF_A_ROW * rows / workers + 8 * kept * (5 + nodes / workers)) / 1e9,
            }  # fmt: skip
