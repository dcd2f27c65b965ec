"""A training run, composed of its stages once: plainly here, as Prefect tasks in `flows.train.flow`."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from flows.compute.clusters import cluster as cluster
from flows.compute.clusters import fixed
from flows.compute.lazy_rows import size_of
from flows.compute.map_items import parallel_map
from flows.compute.s3_environment import s3_as_configured
from flows.progress.console import RunObserver
from flows.progress.metrics import REPORT, MetricsObserver
from flows.train.checkpoints import CheckpointStore, keep, retry_lost_cluster
from flows.train.config import TrainConfig
from flows.train.file_parts import cut, survey
from flows.train.publish import publish
from flows.train.results import Trained, result_of
from flows.train.run_folder import run_folder, run_name
from flows.train.stages import (
    Scored,
    evaluate,
    fit,
    is_sharded,
    open_data,
    open_shards,
    place_rows,
    place_shards,
    split_and_scale,
)

Run = Callable[..., Any]


def call(name: str, stage: Callable[..., Any], *args: Any) -> Any:
    """Run a stage as the plain function it is."""
    return stage(*args)


def train(config: TrainConfig, observer: RunObserver, run: Run = call) -> dict[str, Any]:
    """Train, evaluate and write the run folder.

    Parameters
    ----------
    config : TrainConfig
    watch : Watch
        Hears of stages and rounds.
    run : callable
        Takes the name of a stage, the stage and its arguments, and runs it.

    Returns
    -------
    dict
        What ``aucdist train --json`` prints.

    Raises
    ------
    InputError
        If the configuration or the data is wrong; nothing has been written then.
    RunError
        If the run itself failed.
    """
    seconds: dict[str, float] = {}

    def staged(name: str, stage: Callable[..., Any], *args: Any) -> Any:
        observer.stage(name)
        start = time.perf_counter()
        value = run(name, stage, *args)
        seconds[name] = time.perf_counter() - start
        return value

    name = run_name(config.name, config.model.built)
    observer = MetricsObserver(observer, name)
    with s3_as_configured(config.s3, config.cluster, observer), run_folder(config.output, name) as folder:
        if config.data.direct:
            found = staged("open data", cut, config.data, config.blocks)
        else:
            found = staged("open data", open_shards if is_sharded(config.data) else open_data, config.data)
        report = folder.aside / REPORT if config.performance_report else None
        work = partial(_on_its_cluster, config, name, found, staged, observer, report)
        opened, kept, fitted, scored = retry_lost_cluster(config, work, observer)
        trained = Trained(config, opened, fitted, scored, seconds)
        result = result_of(trained, folder.url)
        staged("publish", publish, trained, result, folder)
        if kept is not None:
            kept.remove()
    return result


def _on_its_cluster(
    config: TrainConfig,
    name: str,
    found: Any,
    staged: Callable[..., Any],
    observer: MetricsObserver,
    report: Path | None,
) -> tuple[Any, CheckpointStore | None, Any, Scored]:
    """Do what needs workers: place the rows, fit, and count the scores."""
    n_blocks = found.n_blocks(config.blocks)
    with (
        cluster(config.cluster, name) as (client, scratch),
        fixed(config.cluster, client, n_blocks),
        observer.on(client, report),
    ):
        opened = found
        if config.data.direct:
            opened = staged("survey", survey, found, config.data, parallel_map(client, observer), scratch)
        if config.data.direct or is_sharded(config.data):
            opened = staged("split and scale", split_and_scale, opened, config.data, parallel_map(client, observer))
            placed = staged("place", place_shards, opened, config.cache, client, observer)
        else:
            placed = staged("place", place_rows, opened, config.blocks, client, scratch, config.cache, observer)
        observer.about(size_of(opened.train))
        kept = keep(config, opened.fingerprint, placed.train, observer)
        fitted = staged("fit", fit, config.model, placed.train, observer, kept)
        return opened, kept, fitted, staged("evaluate", evaluate, fitted, placed, observer)
