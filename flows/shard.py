"""The commands `shard`, which writes a data set as shards, and `simulate`, which writes simulated rows as shards."""

import functools
from typing import Annotated, Literal

from aucdist.data.shards import sharding
from aucdist.data.shards.manifest import Manifest
from aucdist.data.shards.sharding import Simulation
from aucdist.data.storage.files import absolute, local_path
from aucdist.data.storage.guard import check_disk
from aucdist.errors import Json, counted
from flows.compute.clusters import Stages, open_cluster, started
from flows.config.cluster import ClusterOption, S3Option
from flows.config.data import DataRef, source_of
from flows.config.loading import AtLeastOne, Cli, CountOption, NameArgument, Natural, PathOrUrl, Share, Strict
from flows.progress import RunObserver


class ShardConfig(DataRef):
    """A data set to be written as shards."""

    target: Annotated[PathOrUrl, Cli(place=3)]
    """The folder or URL of the shards. A data set that exists there is replaced."""
    rows_per_shard: CountOption = None
    """The largest number of rows in a shard. By default it is the number that takes 64 MiB in memory."""
    dtype: Literal["float32", "float64"] | None = None
    """The type of the values, float32 or float64. By default it is float64, or float32 if all numbers of a table are
    float32."""
    seed: Natural = 0
    """The seed of the order of the rows."""
    cluster: ClusterOption
    """Where the rows are read and written: a file in configs/cluster, or a path. By default it is this process."""
    s3: S3Option
    """How s3:// URLs are reached."""


def shard(config: ShardConfig, observer: RunObserver) -> Json:
    """Write a data set as shards.

    Raises InputError if the configuration or the data is wrong. A data set that is at the target then stays as it is.
    """
    with started(config, "shard-data", observer) as (stages, workers):
        parallel_map = workers.parallel_map(observer)
        request = sharding.request(
            source_of(config), config.target, rows_per_shard=config.rows_per_shard, dtype=config.dtype, seed=config.seed
        )
        manifest = stages("look for finished shards", sharding.finished, request, parallel_map)
        if manifest is None:
            job = stages(
                "survey",
                sharding.survey,
                request,
                each=parallel_map,
                place_on_workers=workers.place,
                name=config.name or "",
            )
            starts = stages("route", sharding.route_all, job, parallel_map)
            shards = stages("write shards", sharding.gather_all, job, starts, parallel_map)
            manifest = stages("commit", sharding.finish, job, shards)
    return shard_result(manifest, stages.elapsed())


def shard_result(manifest: Manifest, seconds: float) -> Json:
    """Return the size and type of a sharded data set, as JSON values."""
    return {
        "target": manifest.folder,
        "manifest": manifest.url.rpartition("/")[2],
        "n_samples": manifest.n_samples,
        "n_features": manifest.form.n_features,
        **(
            {"classes": list(manifest.schema.classes), "topics": manifest.schema.topics}
            if manifest.schema.classes
            else {"n_pos": manifest.n_pos, "n_neg": manifest.n_neg}
        ),
        **manifest.sizes(),
        "seconds": seconds,
    }


def shard_lines(result: Json) -> list[str]:
    """Return what `aucdist shard` and `aucdist simulate` print."""
    contents = (
        f"{len(result['classes'])} {'topics' if result['topics'] else 'classes'}"
        if "classes" in result
        else f"{result['n_pos']:,} positive"
    )
    return [
        f"{result['target']}: {counted(result['n_samples'], 'row')} ({contents}) x {result['n_features']}, "
        f"{result['layout']} {result['dtype']}, {counted(result['shards'], 'shard')}, {result['bytes'] / 1e6:.1f} MB"
    ]


class SimulateConfig(Strict):
    """Simulated rows of two Gaussians."""

    target: NameArgument
    """The folder or URL of the shards. A data set that exists there is replaced."""
    rows: AtLeastOne = 1_000_000
    """The number of rows."""
    features: AtLeastOne = 50
    """The number of features."""
    positive_share: Share = 0.02
    """The probability that a row is positive."""
    rows_per_shard: CountOption = None
    """The number of rows in a shard; the last shard may have fewer. By default it is the number that takes 64 MiB."""
    dtype: Literal["float32", "float64"] = "float32"
    """The type of the values, float32 or float64."""
    seed: int = 0
    """The seed of the rows, and of the direction between the classes."""
    shift: float = 1.2
    """The distance between the class means, in standard deviations."""
    cluster: ClusterOption
    """Where the rows are made: a file in configs/cluster, or a path. By default it is this process."""


def simulate(config: SimulateConfig, observer: RunObserver) -> Json:
    """Write simulated rows as shards, and return what ``aucdist shard --json`` prints of them.

    Raises InputError, before anything is written, if a local disk has no space for the rows.
    """
    simulation = Simulation(**config.model_dump(exclude={"target", "cluster"}))
    stages, url = Stages(observer), absolute(config.target)
    if (folder := local_path(url)) is not None:
        check_disk(
            config.rows * simulation.row_bytes, folder, f"cannot write {config.rows:,} rows", "folder or fewer --rows"
        )
    with open_cluster(config.cluster, "simulate", observer) as workers:
        parallel_map = workers.parallel_map(observer)
        write = functools.partial(simulation.write, url)
        shards = stages("write shards", lambda: list(parallel_map(write, range(simulation.n_shards))))
    return shard_result(stages("commit", simulation.commit, url, shards), stages.elapsed())
