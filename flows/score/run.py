"""Batch scoring, composed of its stages once: plainly here, as Prefect tasks in `flows.score.flow`."""

import functools
import time
from collections.abc import Callable
from typing import Any

from aucdist import batch_scoring as scoring
from aucdist.data.shards.block_reader import ParallelMap
from aucdist.data.sources.source import Source
from flows.compute.map_items import parallel_map
from flows.compute.s3_environment import s3_as_configured
from flows.progress.console import RunObserver
from flows.score.config import ScoreConfig
from flows.train.run import Run, call, cluster
from flows.train.stages import source_named


def score(config: ScoreConfig, observer: RunObserver, run: Run = call) -> dict[str, Any]:
    """Score the rows of a data set.

    Parameters
    ----------
    config : ScoreConfig
    watch : Watch
        Hears of stages and their progress.
    run : callable
        Takes the name of a stage, the stage and its arguments, and runs it.

    Returns
    -------
    dict
        What ``aucdist score --json`` prints.

    Raises
    ------
    InputError
        If the configuration, the model or the data is wrong.
    """
    start = time.perf_counter()

    def staged(name: str, stage: Callable[..., Any], *args: Any) -> Any:
        observer.stage(name)
        return run(name, stage, *args)

    source = source_named(config.name, config.source)
    with s3_as_configured(config.s3, config.cluster, observer), cluster(config.cluster, "score") as (client, _):
        each = parallel_map(client, observer)
        begun = staged("survey", begin, config, source, each)
        parts = staged("score", score_parts, begun, each)
        result = staged("commit", scoring.finish, begun, parts)
    return {**result, "seconds": time.perf_counter() - start}


def begin(config: ScoreConfig, source: Source, each: ParallelMap) -> scoring.Scoring:
    """Check that the rows have the features of the model, and number them."""
    return scoring.begin(config.model, source, config.output, each=each, name=config.name or "")


def score_parts(begun: scoring.Scoring, each: ParallelMap) -> list[dict[str, Any]]:
    """Write the scores, part by part."""
    work = functools.partial(scoring.score_part, begun.url, begun.key, urls=begun.urls)
    return list(each(work, range(begun.reader.n_blocks)))
