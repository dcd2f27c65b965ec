"""The suite `data`: the speed of parsing, sharding, and opening shards."""

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from support.sharded import shard_data

from aucdist.data.shards.manifest import Manifest, read_shard
from aucdist.data.shards.sharding import Simulation, request
from aucdist.data.sources import find_source
from aucdist.kernels.rows import project
from benchmarks.common import Row
from benchmarks.data_parsers import parsers

RUNS = 5


def data(slow_peers: bool) -> Iterator[Row]:
    """Measure parsing of text, opening of shards, and sharding, in CPU seconds."""
    yield from parsers(slow_peers)
    yield from opening()


def opening() -> Iterator[Row]:
    """Measure the opening of shards against pyarrow on the same files, and sharding from the source to the manifest."""
    with tempfile.TemporaryDirectory(prefix="aucdist-bench-") as folder:
        simulation = Simulation(1_300_000, 50, 0.02, dtype="float32")
        shards = [simulation.write(f"{folder}/simulated", i) for i in range(simulation.n_shards)]
        yield _opening_speed("simulated 1300000 x 50, dense float32", simulation.commit(f"{folder}/simulated", shards))
        for name in ("kddcup99", "news20"):
            asked = request(find_source(name), f"{folder}/{name}", dtype="float32")
            start = time.process_time()
            manifest = shard_data(asked)
            seconds = time.process_time() - start
            rows = manifest.n_samples
            yield {"what": f"sharding {name}", "rows": rows, "seconds": seconds, "rows/s": rows / seconds}
            yield _opening_speed(f"{name}, {manifest.block_schema.layout} float32", manifest)


def _opening_speed(name: str, manifest: Manifest) -> Row:
    """Return the speeds of pyarrow, which reads the files, and of a pass, which opens them and computes X w, on a warm disk."""
    files = [Path(manifest.url_of(shard)) for shard in manifest.shards]
    w = np.ones(manifest.block_schema.n_features)

    def read_all() -> None:
        for file in files:
            pq.read_table(file, use_threads=False)

    def one_pass() -> None:
        for index in range(len(files)):
            block = read_shard(manifest.url, index)
            project(block.rows, w, np.empty(block.n_samples))

    one_pass()
    # Alternating, so that other work on the machine affects both.
    seconds = np.array([[_cpu_seconds(work) for work in (read_all, one_pass)] for _ in range(RUNS)]).min(axis=0)
    gigabytes = sum(shard.memory for shard in manifest.shards) / 1e9
    return {
        "what": f"opening {name}", "GB in memory": gigabytes, "pyarrow GB/s": gigabytes / seconds[0],
        "open and pass GB/s": gigabytes / seconds[1], "share": seconds[0] / seconds[1],
    }  # fmt: skip


def _cpu_seconds(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
