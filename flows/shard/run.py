"""Sharding a data set, composed of its stages once: plainly here, as Prefect tasks in `flows.shard.flow`."""

import functools
import time
from collections.abc import Callable
from typing import Any

from aucdist.data.shards import sharding
from aucdist.data.shards.block_reader import ParallelMap
from aucdist.data.shards.manifest import Manifest
from aucdist.data.shards.simulate import Simulation
from aucdist.data.storage.arrow_files import absolute
from flows.compute.map_items import parallel_map
from flows.compute.s3_environment import s3_as_configured
from flows.config.cluster import ClusterConfig
from flows.progress.console import RunObserver
from flows.shard.config import ShardConfig
from flows.train.run import Run, call, cluster
from flows.train.stages import source_named


def shard(config: ShardConfig, observer: RunObserver, run: Run = call) -> dict[str, Any]:
    """Write a data set as shards.

    Parameters
    ----------
    config : ShardConfig
    watch : Watch
        Hears of stages and their progress.
    run : callable
        Takes the name of a stage, the stage and its arguments, and runs it.

    Returns
    -------
    dict
        What ``aucdist shard --json`` prints.

    Raises
    ------
    InputError
        If the configuration or the data is wrong. The data set that is there already, if any, stays.
    """
    start = time.perf_counter()

    def staged(name: str, stage: Callable[..., Any], *args: Any) -> Any:
        observer.stage(name)
        return run(name, stage, *args)

    source = source_named(config.name, config.source)
    with s3_as_configured(config.s3, config.cluster, observer), cluster(config.cluster, "shard-data") as (client, _):
        each = parallel_map(client, observer)
        asked = sharding.request(
            source, config.target, rows_per_shard=config.rows_per_shard, dtype=config.dtype, seed=config.seed
        )
        if others := sharding.leftovers(asked):
            observer.note(f"{', '.join(others)}: of runs that have not ended; remove what none of them will go on with")
        manifest = staged("look for finished shards", sharding.finished, asked, each)
        if manifest is None:
            job = staged("survey", survey, asked, each, config.name or "")
            starts = staged("route", route, job, each)
            shards = staged("write shards", gather, job, starts, each)
            manifest = staged("commit", sharding.finish, job, shards)
    return result_of(manifest, time.perf_counter() - start)


def survey(asked: sharding.Request, each: ParallelMap, name: str) -> sharding.Job:
    """Read every part once, to number the rows and to learn classes, features and categories."""
    return sharding.survey(asked, each=each, name=name)


def route(job: sharding.Job, each: ParallelMap) -> list[list[int]]:
    """Write the rows of every part aside, sorted by shard."""
    return list(each(functools.partial(sharding.route, job.url, urls=job.urls), range(job.reader.n_blocks)))


def gather(job: sharding.Job, starts: list[list[int]], each: ParallelMap) -> list[Any]:
    """Write every shard."""
    return list(each(functools.partial(sharding.gather, job.url), sharding.items_of(job, starts)))


def simulate(
    simulation: Simulation, target: str, cluster_config: ClusterConfig, observer: RunObserver
) -> dict[str, Any]:
    """Write simulated rows as shards; parameters and result as `shard`."""
    start = time.perf_counter()
    observer.stage("write shards")
    place = absolute(target)
    with cluster(cluster_config, "simulate") as (client, _):
        write = functools.partial(simulation.write, place)
        shards = list(parallel_map(client, observer)(write, range(simulation.n_shards)))
    observer.stage("commit")
    return result_of(simulation.commit(place, shards), time.perf_counter() - start)


def told(result: dict[str, Any]) -> str:
    """Return what `result_of` found in one line."""
    return (
        f"{result['target']}: {result['n_samples']} rows ({result['n_pos']} positive) x {result['n_features']}, "
        f"{result['layout']} {result['dtype']}, {result['shards']} shards, {result['bytes'] / 1e6:.1f} MB"
    )


def result_of(manifest: Manifest, seconds: float) -> dict[str, Any]:
    """Return what a sharded data set consists of, in a few numbers."""
    return {
        "target": manifest.folder,
        "manifest": manifest.url.rpartition("/")[2],
        "n_samples": manifest.n_samples,
        "n_features": manifest.n_features,
        "n_pos": manifest.n_pos,
        "n_neg": manifest.n_neg,
        "layout": manifest.layout,
        "dtype": manifest.dtype,
        "shards": len(manifest.shards),
        "bytes": sum(shard.size for shard in manifest.shards),
        "memory": sum(shard.memory for shard in manifest.shards),
        "seconds": seconds,
    }
