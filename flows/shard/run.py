"""Sharding: the pipeline of its stages, which are plain functions here and Prefect tasks in `flows.shard.flow`."""

import functools
import time
from typing import Any

from aucdist.data.shards import sharding
from aucdist.data.shards.job import ShardJob
from aucdist.data.shards.manifest import Manifest
from aucdist.data.shards.reading import ParallelMap
from flows.compute.clusters import open_cluster
from flows.compute.s3_environment import s3_as_configured
from flows.compute.stages import StageRunner, Stages, call_stage
from flows.compute.workers import Workers
from flows.config.data import source_of
from flows.progress.console import RunObserver
from flows.run_folder.leftovers import leftover_line
from flows.shard.config import ShardConfig


def shard(config: ShardConfig, observer: RunObserver, run_stage: StageRunner = call_stage) -> dict[str, Any]:
    """Write a data set as shards.

    Raises InputError if the configuration or the data is wrong. A data set that is at the target then stays as it is.
    """
    start = time.perf_counter()
    stages = Stages(observer, run_stage)
    with (
        s3_as_configured(config.s3, config.cluster, observer),
        open_cluster(config.cluster, "shard-data", observer) as workers,
    ):
        parallel_map = workers.parallel_map(observer)
        request = sharding.request(
            source_of(config), config.target, rows_per_shard=config.rows_per_shard, dtype=config.dtype, seed=config.seed
        )
        if sharding.is_in_progress(request):
            observer.note(leftover_line([request.work], "this run resumes it"))
        if others := sharding.leftovers(request):
            observer.note(leftover_line(others, "the command that began it resumes it, and may still be running"))
        manifest = stages("look for finished shards", sharding.finished, request, parallel_map, retry=True)
        if manifest is None:
            job = stages("survey", survey, request, workers, parallel_map, config.name or "", retry=True)
            starts = stages("route", route, job, parallel_map, retry=True)
            shards = stages("write shards", gather, job, starts, parallel_map, retry=True)
            manifest = stages("commit", sharding.finish, job, shards, retry=True)
    return result_of(manifest, time.perf_counter() - start)


def survey(request: sharding.Request, workers: Workers, parallel_map: ParallelMap, name: str) -> ShardJob:
    """Parse every part once, to number the rows and to find classes, features and categories."""
    return sharding.survey(request, each=parallel_map, hold=workers.hold, name=name)


def route(job: ShardJob, parallel_map: ParallelMap) -> list[list[int]]:
    """Write the rows of every part to a temporary file, sorted by shard."""
    route_part = functools.partial(sharding.route, job.url, urls=job.urls)
    return list(parallel_map(route_part, job.items))


def gather(job: ShardJob, starts: list[list[int]], parallel_map: ParallelMap) -> list[Any]:
    """Write every shard."""
    return list(parallel_map(functools.partial(sharding.gather, job.url), sharding.items_of(job, starts)))


def result_of(manifest: Manifest, seconds: float) -> dict[str, Any]:
    """Return the size and type of a sharded data set, in types of JSON."""
    return {
        "target": manifest.folder,
        "manifest": manifest.url.rpartition("/")[2],
        "n_samples": manifest.n_samples,
        "n_features": manifest.n_features,
        **(
            {"classes": list(manifest.classes), "topics": manifest.topics}
            if manifest.classes
            else {"n_pos": manifest.n_pos, "n_neg": manifest.n_neg}
        ),
        "layout": manifest.layout,
        "dtype": manifest.dtype,
        "shards": len(manifest.shards),
        "bytes": sum(shard.size for shard in manifest.shards),
        "memory": sum(shard.memory for shard in manifest.shards),
        "seconds": seconds,
    }


def shard_lines(result: dict[str, Any]) -> list[str]:
    """Return what `aucdist shard` and `aucdist simulate` print."""
    if "classes" in result:
        said = f"{len(result['classes'])} {'topics' if result['topics'] else 'classes'}"
    else:
        said = f"{result['n_pos']} positive"
    return [
        f"{result['target']}: {result['n_samples']} rows ({said}) x {result['n_features']}, "
        f"{result['layout']} {result['dtype']}, {result['shards']} shards, {result['bytes'] / 1e6:.1f} MB"
    ]
