"""A training run, composed of its stages once: plainly here, as Prefect tasks in `flows.train_auc`."""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from aucdist.data.files import open_fs
from flows.config import AddressConfig, ClusterConfig, LocalClusterConfig, TrainConfig
from flows.console import Watch
from flows.publish import publish
from flows.results import Trained, result_of
from flows.runs import run_folder, run_name
from flows.stages import evaluate, fit, open_data, place_rows

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

    estimator = config.model.built
    name = run_name(config.name, estimator.solver, estimator.lam)
    with run_folder(config.output, name) as folder:
        opened = staged("open data", open_data, config.data)
        with cluster(config.cluster, name) as (client, scratch):
            placed = staged("place", place_rows, opened, config.blocks, client, scratch)
            fitted = staged("fit", fit, config.model, placed.train, watch)
            scored = staged("evaluate", evaluate, fitted, placed, watch)
        trained = Trained(config, opened, fitted, scored, seconds)
        result = result_of(trained, folder.url)
        staged("publish", publish, trained, result, folder)
    return result


@contextmanager
def cluster(config: ClusterConfig, name: str) -> Iterator[tuple[Any, str]]:
    """Give a Dask client (None: this process) and a place for shards that its workers can read; both end here."""
    if isinstance(config, LocalClusterConfig):
        from aucdist.engine.dask import local_client

        with (
            tempfile.TemporaryDirectory(prefix="aucdist-") as scratch,
            local_client(config.workers, config.threads, config.memory_limit) as client,
        ):
            yield client, scratch
    elif isinstance(config, AddressConfig):
        from aucdist.engine.dask import connect

        with connect(config.address) as client, _scratch(f"{config.scratch.rstrip('/')}/{name}") as scratch:
            yield client, scratch
    else:
        yield None, ""


@contextmanager
def _scratch(url: str) -> Iterator[str]:
    fs, path = open_fs(url)
    try:
        yield url
    finally:
        if fs.exists(path):
            fs.rm(path, recursive=True)
