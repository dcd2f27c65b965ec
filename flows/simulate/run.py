"""Writes simulated rows as shards."""

import functools
import time
from typing import Any

from aucdist.data.shards.simulate import Simulation
from aucdist.data.storage.arrow_files import absolute
from flows.compute.clusters import open_cluster
from flows.compute.stages import Stages
from flows.config.cluster import ClusterConfig
from flows.progress.console import RunObserver
from flows.shard.run import result_of


def simulate(simulation: Simulation, target: str, cluster: ClusterConfig, observer: RunObserver) -> dict[str, Any]:
    """Write simulated rows as shards.

    `observer`: is called with stages and their progress.
    Returns as `flows.shard.run.result_of`.
    """
    start = time.perf_counter()
    stages, url = Stages(observer), absolute(target)
    with open_cluster(cluster, "simulate", observer) as workers:
        parallel_map = workers.parallel_map(observer)
        write = functools.partial(simulation.write, url)
        shards = stages("write shards", lambda: list(parallel_map(write, range(simulation.n_shards))))
    manifest = stages("commit", simulation.commit, url, shards)
    return result_of(manifest, time.perf_counter() - start)
