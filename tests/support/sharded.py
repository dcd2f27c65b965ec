"""Sharding from start to end in one call, as the command does it stage by stage."""

from aucdist.data.shards import sharding
from aucdist.data.shards.manifest import Manifest
from aucdist.data.shards.reading import ParallelMap


def shard_data(asked: sharding.Request, *, each: ParallelMap = map, n_parts: int | None = None) -> Manifest:
    """Shard a data set; parameters and errors as `aucdist.data.shards.sharding.survey`."""
    if known := sharding.finished(asked, each):
        return known
    job = sharding.survey(asked, each=each, n_parts=n_parts)
    starts = sharding.route_all(job, each)
    return sharding.finish(job, sharding.gather_all(job, starts, each))
