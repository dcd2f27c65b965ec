"""A training run, composed of its stages once: plainly here, as Prefect tasks in `flows.train_auc`."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from flows.checkpoints import Keep, keep, unless_lost
from flows.clusters import cluster as cluster
from flows.clusters import fixed
from flows.config import TrainConfig
from flows.console import Watch
from flows.direct import cut, survey
from flows.each import each_of
from flows.observer import REPORT, Observer
from flows.publish import publish
from flows.remote import size_of
from flows.results import Trained, result_of
from flows.runs import run_folder, run_name
from flows.s3 import s3_as_configured
from flows.stages import Scored, evaluate, fit, is_sharded, open_data, open_shards, place_rows, place_shards, settle

Run = Callable[..., Any]


def call(name: str, stage: Callable[..., Any], *args: Any) -> Any:
    """Run a stage as the plain function it is."""
    return stage(*args)


def train(config: TrainConfig, watch: Watch, run: Run = call) -> dict[str, Any]:
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
        watch.stage(name)
        start = time.perf_counter()
        value = run(name, stage, *args)
        seconds[name] = time.perf_counter() - start
        return value

    name = run_name(config.name, config.model.built)
    watch = Observer(watch, name)
    with s3_as_configured(config.s3, config.cluster, watch), run_folder(config.output, name) as folder:
        if config.data.direct:
            found = staged("open data", cut, config.data, config.blocks)
        else:
            found = staged("open data", open_shards if is_sharded(config.data) else open_data, config.data)
        report = folder.aside / REPORT if config.performance_report else None
        work = partial(_on_its_cluster, config, name, found, staged, watch, report)
        opened, kept, fitted, scored = unless_lost(config, work, watch)
        trained = Trained(config, opened, fitted, scored, seconds)
        result = result_of(trained, folder.url)
        staged("publish", publish, trained, result, folder)
        if kept is not None:
            kept.remove()
    return result


def _on_its_cluster(
    config: TrainConfig, name: str, found: Any, staged: Callable[..., Any], watch: Observer, report: Path | None
) -> tuple[Any, Keep | None, Any, Scored]:
    """Do what needs workers: place the rows, fit, and count the scores."""
    n_blocks = found.n_blocks(config.blocks)
    with (
        cluster(config.cluster, name) as (client, scratch),
        fixed(config.cluster, client, n_blocks),
        watch.on(client, report),
    ):
        opened = found
        if config.data.direct:
            opened = staged("survey", survey, found, config.data, each_of(client, watch), scratch)
        if config.data.direct or is_sharded(config.data):
            opened = staged("split and scale", settle, opened, config.data, each_of(client, watch))
            placed = staged("place", place_shards, opened, config.cache, client, watch)
        else:
            placed = staged("place", place_rows, opened, config.blocks, client, scratch, config.cache, watch)
        watch.about(size_of(opened.train))
        kept = keep(config, opened.fingerprint, placed.train, watch)
        fitted = staged("fit", fit, config.model, placed.train, watch, kept)
        return opened, kept, fitted, staged("evaluate", evaluate, fitted, placed, watch)
