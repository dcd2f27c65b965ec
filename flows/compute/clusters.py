"""The kinds of clusters: each is opened for a run, with a client and scratch space, and released when the run ends."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aucdist.data.storage.files import remove
from aucdist.errors import InputError
from flows.compute.workers import Workers
from flows.config.cluster import (
    Adaptive,
    AddressConfig,
    ClusterConfig,
    FitClusterConfig,
    KubernetesConfig,
    LocalClusterConfig,
    NoCluster,
    ThreadsHere,
)
from flows.progress.console import RunObserver


@contextmanager
def open_cluster(
    config: ClusterConfig | FitClusterConfig, name: str, observer: RunObserver | None = None
) -> Iterator[Workers]:
    """Connect to a cluster, or start one, and yield its workers; afterwards the cluster and its scratch folder are released.

    `name`: of the run; names the scratch folder, and a cluster that is started for it.
    `observer`: is called with a remark for each worker that is lost.
    Raises InputError if the cluster cannot be reached or started, or runs other versions.
    Raises RunError if workers do not come in time.
    """
    with _started(config, name) as workers:
        if workers.client is None or observer is None:
            yield workers
            return
        from aucdist.engine.workers import report_lost_workers

        with report_lost_workers(workers.client, observer.note):
            yield workers


@contextmanager
def _started(config: ClusterConfig | FitClusterConfig, name: str) -> Iterator[Workers]:
    if isinstance(config, LocalClusterConfig):
        from aucdist.engine.dask import local_client

        with (
            tempfile.TemporaryDirectory(prefix="aucdist-") as scratch,
            local_client(config.workers, config.threads, config.memory_limit) as client,
        ):
            yield Workers(client, scratch)
    elif isinstance(config, AddressConfig):
        with _connected(config) as client, _scratch(config.scratch, name) as scratch:
            yield Workers(client, scratch)
    elif isinstance(config, KubernetesConfig):
        from flows.compute.kubernetes.lifecycle import dask_cluster

        with _scratch(config.scratch, name) as scratch, dask_cluster(config, name) as client:
            yield Workers(client, scratch)
    else:
        yield Workers(n_jobs=config.n_jobs if isinstance(config, ThreadsHere) else 1)


@contextmanager
def fixed_worker_set(config: ClusterConfig | FitClusterConfig, workers: Workers, n_blocks: int) -> Iterator[None]:
    """Keep the number of workers constant while rows are partitioned and a model is fitted to them.

    A cluster that scales by its load is first scaled to one worker for each block, within its limits. Others stay as they are.

    Raises RunError if workers do not come in time.
    """
    if isinstance(config, NoCluster | LocalClusterConfig):
        yield
        return
    from aucdist.engine.workers import keep_workers, wait_for_workers

    n_workers = len(workers.client.nthreads())
    if isinstance(config, KubernetesConfig) and isinstance(config.workers, Adaptive):
        n_workers = min(max(n_blocks, config.workers.minimum), config.workers.maximum)
    with keep_workers(workers.client, n_workers):
        wait_for_workers(workers.client, n_workers, config.timeout)
        yield


@contextmanager
def _connected(config: AddressConfig) -> Iterator[Any]:
    from aucdist.engine.dask import connect
    from aucdist.engine.workers import check_versions, wait_for_workers

    tls = None if config.tls is None else (config.tls.ca, config.tls.cert, config.tls.key)
    for file in tls or ():
        if not Path(file).is_file():
            raise InputError(f"cluster.tls: no file {file}")
    with connect(config.address, config.timeout, tls) as client:
        wait_for_workers(client, config.workers, config.timeout)
        check_versions(client)
        yield client


@contextmanager
def _scratch(parent: str, name: str) -> Iterator[str]:
    url = f"{parent.rstrip('/')}/{name}"
    try:
        yield url
    finally:
        remove(url)
