"""`aucdist simulate`: simulated rows as shards."""

import functools
import time
from typing import Annotated, Any, Literal

from pydantic import Field

from aucdist.data.shards.simulate import Simulation
from aucdist.data.storage.arrow_files import absolute
from flows.compute.clusters import open_cluster
from flows.compute.stages import Stages
from flows.config.base import Cli, Strict
from flows.config.cluster import ClusterConfig, NoCluster
from flows.progress.console import RunObserver
from flows.shard.run import result_of


class SimulateConfig(Strict):
    """Simulated rows of two Gaussians."""

    target: Annotated[str, Cli(place=1)] = Field(
        description="A folder or URL for the shards; a data set that is there is replaced"
    )
    rows: Annotated[int, Cli()] = Field(default=1_000_000, description="Number of rows")
    features: Annotated[int, Cli()] = Field(default=50, description="Number of features")
    positive_share: Annotated[float, Cli()] = Field(default=0.02, description="Probability that a row is positive")
    rows_per_shard: Annotated[int | None, Cli(metavar="N")] = Field(
        default=None, description="Rows in a shard; the last shard may have fewer. By default 64 MiB of them"
    )
    dtype: Annotated[Literal["float32", "float64"], Cli()] = Field(default="float32", description="Type of the values")
    seed: Annotated[int, Cli()] = Field(
        default=0, description="Seed of the rows, and of the direction between the classes"
    )
    shift: Annotated[float, Cli()] = Field(
        default=1.2, description="Distance between the class means, in standard deviations"
    )
    cluster: Annotated[ClusterConfig, Cli()] = Field(default_factory=NoCluster, description="Where it runs")


def simulate(config: SimulateConfig, observer: RunObserver) -> dict[str, Any]:
    """Write simulated rows as shards, and return what ``aucdist shard --json`` prints of them."""
    start = time.perf_counter()
    simulation = Simulation(
        config.rows,
        config.features,
        config.positive_share,
        config.rows_per_shard,
        config.dtype,
        config.seed,
        config.shift,
    )
    stages, url = Stages(observer), absolute(config.target)
    with open_cluster(config.cluster, "simulate", observer) as workers:
        parallel_map = workers.parallel_map(observer)
        write = functools.partial(simulation.write, url)
        shards = stages("write shards", lambda: list(parallel_map(write, range(simulation.n_shards))))
    manifest = stages("commit", simulation.commit, url, shards)
    return result_of(manifest, time.perf_counter() - start)
