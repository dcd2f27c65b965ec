"""The suite `scale`: what more rows and more workers cost, and what a model of it foretells: ARCHITECTURE.md, "Scale".

The model over slow networks is held against measurements by tests/infra/limited_network.py, which needs root.
"""

import multiprocessing
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.data.shards.manifest import read_manifest
from aucdist.data.shards.simulate import Simulation
from aucdist.engine.blocks import Blocks, LocalBlocks, Summary
from aucdist.solvers.base import solve
from aucdist.solvers.pairs.all_pairs import FEW_ROWS, STEPS, all_pairs
from flows.bench.common import Row, seconds_of
from flows.bench.peers.contest import peak
from flows.bench.scale_model import Constants, Load, Place, Run, counted, expected, fitted, predicted, total
from flows.rows.lazy import sharded_rows

FEATURES, SHARE, LAM, PASSES = 20, 1e-3, 1e-3, 6
SIZES, LARGE = (100_000, 1_000_000), (10_000_000, 100_000_000)
ON_WORKERS = (1_000_000, 10_000_000)
"""Those of the sizes that two workers get, too."""

CASES = {
    "many rows": (Simulation(2_000_000, 20, 1e-3, rows_per_shard=125_000), True),
    "many anchors": (Simulation(400_000, 20, 0.05, rows_per_shard=25_000), True),
    "few rows": (Simulation(40_000, 20, 0.01, rows_per_shard=10_000), True),
    "many anchors, few blocks": (Simulation(400_000, 20, 0.2, rows_per_shard=100_000), False),
    "wide": (Simulation(600_000, 60, 5e-3, rows_per_shard=50_000), False),
}
"""Data of measured runs, and whether the model is fitted to them; the others are foretold."""

BANDWIDTH, DELAY = 1.25e9, 1e-4
"""Of the network that predictions are for: 10 Gbit/s, 0.1 ms."""

WIRE, TRIPS = 1.14, 9.1
"""As tests/infra/limited_network.py found them; a machine by itself has no cable."""

FEW_PARTS, MOST_PARTS = 100, 1000
"""A thousand are five hundred threads on each of two workers: a minute in which nothing else gets done."""

HALVES = 4_000_000

KEPT = 16e9
"""Bytes of rows up to which a worker of the prediction keeps them."""

BYTES_OF_A_ROW = 56
"""What a block keeps of each row during a fit: its place, weight and three scores; and two more while a step changes them."""

DESIGNS = (
    ("as built", None, False),
    ("not built: summaries added up on each worker", None, True),
    ("not built: and anchors in 65536 cells", 2**16, True),
)


def scale(slow_peers: bool) -> Iterator[Row]:
    """Growth of the rows, the scheduler's speed, and the model on 1, 2 and 4 workers; to 1e8 rows if time is no matter."""
    streamed = 0.0
    for rows in SIZES + (LARGE if slow_peers else ()):
        for row in growth(rows, on_workers=rows in ON_WORKERS):
            if row.get("growth") == "one process":
                streamed = row["ns for a row and pass"] / FEATURES
            yield row
    of_a_worker = 0.0
    for row in scheduler(MOST_PARTS if slow_peers else FEW_PARTS):
        of_a_worker = 2 / row["tasks/s of the scheduler"]
        yield row
    runs = list(measured(local_places()))
    constants = fitted([run for name, run in runs if CASES[name][1]])
    yield told(constants)
    for name, run in runs:
        yield held(name, run, constants, CASES[name][1])
    there = constants._replace(worker=of_a_worker, wire=WIRE, trips=TRIPS)
    yield from future(there, streamed, client_of_an_anchor())


# ---- growth -----------------------------------------------------------------------------------------------------------


def growth(rows: int, *, share: float = SHARE, on_workers: bool = False) -> Iterator[Row]:
    """Fit rows that are read anew for each step, in a process of its own and on two workers: time and memory for a row."""
    simulation = Simulation(rows, FEATURES, share)
    with tempfile.TemporaryDirectory(prefix="aucdist-scale-") as folder:
        room, needed = shutil.disk_usage(folder).free, int(1.2 * rows * (4 * FEATURES + 9))
        if room < needed:
            yield {
                "rows": rows,
                "note": f"not run here: {needed / 1e9:.1f} GB of disk needed, {room / 1e9:.1f} are free",
            }
            return
        _apart(_write, simulation, folder)
        places: list[Callable[..., Row]] = [_in_one_process] + [_on_two_workers] * on_workers
        for fit in places:
            found = _apart(fit, folder)
            yield {
                "growth": found.pop("where"), "rows": rows, "anchors": round(share * rows), "shards": simulation.n_shards,
                **found,
                "ns for a row and pass": 1e9 * found["seconds"] / rows / PASSES,
                "bytes for a row": found["more MiB"] * 2**20 / rows,
            }  # fmt: skip


def _apart(work: Callable[..., Any], *args: Any) -> Any:
    """Do it in a process that has done nothing before."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *args).result()


def _write(simulation: Simulation, folder: str) -> None:
    simulation.commit(folder, [simulation.write(folder, i) for i in range(simulation.n_shards)])


def _in_one_process(folder: str) -> Row:
    fit_passes(LocalBlocks([_small(1, 0)]))  # compiles
    rows = sharded_rows(read_manifest(folder))
    before = peak()
    blocks = LocalBlocks.load(rows.loader, rows.n_blocks, stream=True)
    cpu = time.process_time()
    seconds = seconds_of(partial(fit_passes, blocks))
    cpu = time.process_time() - cpu
    return {"where": "one process", "seconds": seconds, "CPU s": cpu, "base MiB": before, "more MiB": peak() - before}


def _on_two_workers(folder: str) -> Row:
    from aucdist.engine.dask import DaskBlocks, local_client

    rows = sharded_rows(read_manifest(folder))
    with local_client(2) as client:
        warm(client, 2)
        before = sum(client.run(peak).values())
        blocks = DaskBlocks.load(client, rows.loader, rows.n_blocks, stream=True)
        seconds = seconds_of(partial(fit_passes, blocks))
        most = sum(client.run(peak).values())
    return {"where": "two workers", "seconds": seconds, "base MiB": before, "more MiB": most - before}


def fit_passes(blocks: Blocks) -> int:
    """Run the passes of the fit that is measured everywhere, and return how many there were."""
    start = np.zeros(blocks.n_features)  # else large data would begin on a sample, and passes would not be alike
    return solve(all_pairs(blocks, LAM, start), tol=0.0, max_passes=PASSES).passes


# ---- the scheduler ----------------------------------------------------------------------------------------------------


def scheduler(most: int) -> Iterator[Row]:
    """Reductions that do nothing, on two workers, of as many blocks, and of as many parts: what so many workers would ask.

    The scheduler and the client are one process here; its time on a core is what no worker can take from it.
    """
    for threads, what in ((1, "blocks"), (None, "parts")):
        for n in (n for n in (10, 100, 1000) if n <= (1000 if threads else most)):
            parts = 2 if threads else n
            seconds, own = _of_nothing(threads or n // 2, max(n, 2 * parts))
            yield {
                f"empty reduction of {what}": n, "tasks": 2 * parts, "ms": 1e3 * seconds,
                "ms of the scheduler": 1e3 * own, "tasks/s": 2 * parts / seconds, "tasks/s of the scheduler": 2 * parts / own,
            }  # fmt: skip


def _of_nothing(threads: int, n_blocks: int) -> tuple[float, float]:
    """Return the seconds of an empty reduction, and those of a core that this process takes; a part for each thread."""
    from aucdist.engine.dask import DaskBlocks, local_client

    with local_client(2, threads) as client:
        blocks = DaskBlocks.load(client, partial(_small, n_blocks), n_blocks)
        blocks.reduce(_nothing)
        own, times = time.process_time(), 10
        seconds = min(seconds_of(partial(blocks.reduce, _nothing)) for _ in range(times))
        return seconds, (time.process_time() - own) / times


def _small(n_blocks: int, index: int) -> Block:
    return Simulation(1000 * n_blocks, FEATURES, 0.3, rows_per_shard=1000).block(index)


def _nothing(block: Block, memory: None) -> tuple[None, Summary]:
    return None, {"n": block.n_samples}


# ---- the model --------------------------------------------------------------------------------------------------------


def local_places() -> list[Place]:
    """Return 1, 2 and 4 workers on this machine."""
    return [Place(workers, os.cpu_count() or 1) for workers in (1, 2, 4)]


def measured(places: list[Place]) -> Iterator[tuple[str, Run]]:
    """Count each case in this process, then measure it in each place."""
    from aucdist.engine.dask import local_client

    loads = all_loads()
    for place in places:
        with local_client(place.workers) as client:
            warm(client, place.workers)
            yield from measured_on(client, place, loads)


def all_loads() -> dict[str, Load]:
    """Return what each case asks for."""
    return {name: load_of(simulation) for name, (simulation, _) in CASES.items()}


def load_of(simulation: Simulation) -> Load:
    """Return what the fit of simulated rows asks for."""
    blocks = LocalBlocks.load(simulation.block, simulation.n_shards)
    fit_passes(blocks)
    return counted(blocks, fit_passes)


def warm(client: Any, workers: int) -> None:
    """Let every worker compile what a fit runs."""
    from aucdist.engine.dask import DaskBlocks

    fit_passes(DaskBlocks.load(client, partial(_small, 2 * workers), 2 * workers))


def measured_on(client: Any, place: Place, loads: dict[str, Load], times: int = 3) -> Iterator[tuple[str, Run]]:
    """Measure each case on a cluster, rows in the workers' memory: the shortest of so many times."""
    from aucdist.engine.dask import DaskBlocks

    for name, load in loads.items():
        simulation = CASES[name][0]
        blocks = DaskBlocks.load(client, simulation.block, simulation.n_shards)
        seconds = min(seconds_of(partial(fit_passes, blocks)) for _ in range(times))
        yield name, Run(load, place, seconds)


def told(constants: Constants) -> Row:
    """Return the constants as a row."""
    return {
        "model": "ns a value", "value": 1e9 * constants.value, "ms a reduction": 1e3 * constants.reduction,
        "ms a worker and reduction": 1e3 * constants.worker, "ns a byte": 1e9 * constants.byte, "wire": constants.wire,
        "trips": constants.trips,
    }  # fmt: skip


def held(name: str, run: Run, constants: Constants, fitted_to: bool) -> Row:
    """Return a run beside what the model says of it."""
    foretold = total(constants, run.load, run.place)
    return {
        "fit": name, "workers": run.place.workers, "measured s": run.seconds, "model s": foretold,
        "model/measured": foretold / run.seconds, "held out": not fitted_to,
    }  # fmt: skip


def client_of_an_anchor() -> float:
    """Return the seconds that the client itself works for each anchor that it sorts, where half of the rows are anchors."""
    load = load_of(Simulation(HALVES, 2, 0.5, rows_per_shard=HALVES // 4))
    return load.client / (HALVES / 2 * PASSES)


def future(constants: Constants, streamed: float, of_an_anchor: float) -> Iterator[Row]:
    """Tell what the model says of a pass over 1e10 rows, as it is and as it would be.

    Parameters
    ----------
    constants : Constants
        With the scheduler's own time for each worker: what the workers themselves do, so many do at once.
    streamed : float
        Nanoseconds of a value in a pass where rows are read anew.
    of_an_anchor : float
        Seconds of the client's own for each anchor that is sorted.
    """
    rows, features, anchors = 10**10, 50, 10**7
    blocks = Simulation(rows, features, 0.5).n_shards
    for workers in (10, 100, 1000):
        place = Place(workers, workers, BANDWIDTH, DELAY)
        for design, cells, merge in DESIGNS:
            sent, speakers = cells or anchors, workers if merge else blocks
            load = expected(
                rows, features, speakers, PASSES, sent, FEW_ROWS
            )  # so many of them the line search looks at
            load = replace(load, client=of_an_anchor * (sent + FEW_ROWS * len(STEPS)) * PASSES)
            held_by_worker = 4 * features * rows / workers
            copies = 5 + speakers / workers
            value = 1e-9 * streamed if held_by_worker > KEPT else constants.value
            parts = predicted(constants._replace(value=value), load, place)
            yield {
                "design": design, "workers": workers, "s a pass": sum(parts.values()) / PASSES,
                **{f"{name} s": seconds / PASSES for name, seconds in parts.items()},
                "GB at the client": load.summaries / PASSES / 1e9,
                "GB of rows a worker": held_by_worker / 1e9,
                "GB else a worker": (BYTES_OF_A_ROW * rows / workers + 8 * sent * copies) / 1e9,
                "GB a pass at the scheduler": load.arguments / PASSES / 1e9,
            }  # fmt: skip
