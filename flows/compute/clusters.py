"""Where a run's workers are: the kinds of clusters, and a client of each for as long as it is needed."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aucdist.data.storage.files import remove
from aucdist.errors import InputError
from flows.config.cluster import Adaptive, AddressConfig, ClusterConfig, KubernetesConfig, LocalClusterConfig, NoCluster


@contextmanager
def cluster(config: ClusterConfig, name: str) -> Iterator[tuple[Any, str]]:
    """Give a Dask client (None: this process) and a place for shards that its workers can read; both end here.

    Parameters
    ----------
    config : ClusterConfig
    name : str
        Of the run; names the place, and a cluster that is made for it.

    Raises
    ------
    InputError
        If the cluster cannot be reached or made, or runs other versions.
    RunError
        If workers do not come in time.
    """
    if isinstance(config, LocalClusterConfig):
        from aucdist.engine.dask import local_client

        with (
            tempfile.TemporaryDirectory(prefix="aucdist-") as scratch,
            local_client(config.workers, config.threads, config.memory_limit) as client,
        ):
            yield client, scratch
    elif isinstance(config, AddressConfig):
        with _connected(config) as client, _scratch(config.scratch, name) as scratch:
            yield client, scratch
    elif isinstance(config, KubernetesConfig):
        from flows.compute.kubernetes.lifecycle import dask_cluster

        with _scratch(config.scratch, name) as scratch, dask_cluster(config, name) as client:
            yield client, scratch
    else:
        yield None, ""


@contextmanager
def fixed(config: ClusterConfig, client: Any, n_blocks: int) -> Iterator[None]:
    """Keep the set of workers as it is while rows are placed and a model is fitted to them.

    A cluster that scales by its load first gets one worker for each block, within its limits. The others stay as they are.

    Parameters
    ----------
    config : ClusterConfig
    client : distributed.Client or None
        As `cluster` gave it.
    n_blocks : int
        Blocks of the rows.

    Raises
    ------
    RunError
        If workers do not come in time.
    """
    if isinstance(config, NoCluster | LocalClusterConfig):
        yield
        return
    from aucdist.engine.workers import keep_workers, wait_for_workers

    n_workers = len(client.nthreads())
    if isinstance(config, KubernetesConfig) and isinstance(config.workers, Adaptive):
        n_workers = min(max(n_blocks, config.workers.minimum), config.workers.maximum)
    with keep_workers(client, n_workers):
        wait_for_workers(client, n_workers, config.timeout)
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
