"""The workers of a run, and the clusters that they belong to.

A function is called on many items on the workers. Blocks of rows stay in the memory of the workers, or are streamed. Each kind
of cluster is opened for a run, with a client and scratch space, and released when the run ends. S3 is configured by environment
variables of this process and of the workers that it starts.

The module also runs, times and reports the stages of a run, and keeps results of tasks on disk.
"""

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
from numba.core.event import install_timer

from aucdist import __version__
from aucdist.data.own_files import json_digest, jsonable, read_sealed, write_sealed
from aucdist.data.shards.reading import ParallelMap
from aucdist.data.storage.faults import long_retries
from aucdist.data.storage.files import remove, store
from aucdist.data.storage.urls import reveal
from aucdist.engine.steps import number_of_threads
from aucdist.errors import InputError, Json
from aucdist.kernels import rows
from aucdist.kernels.compiling import kernel_folder
from flows.config.cluster import (
    Adaptive,
    ClusterConfig,
    KubernetesConfig,
    LocalClusterConfig,
    NoCluster,
    S3Config,
    api_configured,
)
from flows.config.data import CacheMode
from flows.progress import RunObserver

SHARE_FOR_ROWS = 0.5
"""The share of a worker's memory that rows may take. Dask spills to disk from a share of 0.6, and solvers need some memory,
too."""
BLOCKS_WHILE_STREAMING = 4
"""The number of blocks in the memory of a streaming thread: the current one, and the next one as a file, decompressed and
parsed."""
CREDENTIALS = {
    "aws_access_key_id": "AWS_ACCESS_KEY_ID",
    "aws_secret_access_key": "AWS_SECRET_ACCESS_KEY",
    "aws_session_token": "AWS_SESSION_TOKEN",
    "profile_name": "AWS_PROFILE",
}
"""The keys of a block with credentials, and the environment variables that they are stored in."""
REGION, ENDPOINT = "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_S3"


@dataclass(frozen=True)
class Workers:
    """The workers of a run: this process, or those of a Dask cluster.

    Attributes
    ----------
    client : object
        The Dask client, or None if this process does all work.
    scratch : str
        A folder or URL that every worker can read and write. It is empty without a client.
    n_jobs : int
        Without a client, the number of threads that work on blocks; -1 means one for each core.
    """

    client: Any = None
    scratch: str = ""
    n_jobs: int = 1

    def parallel_map(self, observer: RunObserver | None = None) -> ParallelMap:
        """Return a `map` over the workers (or in this process) with results in order.

        Parameters
        ----------
        observer : RunObserver, optional
            The observer that the number of finished items is reported to after each of them.
        """

        def parallel_map(function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
            results: Iterator[Any]
            if self.client is None:
                # The retries last long, because storage may not answer for a while.
                results = map(long_retries()(function), items)
            else:
                from aucdist.engine.dask import map_on_workers

                results = map_on_workers(self.client, function, items)
            for i, result in enumerate(results, 1):
                if observer is not None:
                    observer.tasks(i, len(items))
                yield result

        return parallel_map

    def place(self, items: Sequence[Any]) -> Sequence[Any]:
        """Send small objects to the workers, and return handles for `parallel_map`. Without workers, return the objects."""
        if self.client is None:
            return list(items)
        from aucdist.engine.dask import scatter_items

        return scatter_items(self.client, items)


# ---- keep rows or stream them ------------------------------------------------------------------------------------------


def choose_cache(
    mode: CacheMode, n_bytes: int, largest_block: int, worker_memory: Sequence[tuple[int, int]]
) -> tuple[bool, str]:
    """Decide whether blocks are streamed, and give the reason.

    Parameters
    ----------
    mode : CacheMode
        {"auto", "memory", "stream"}, the setting of the run.
    n_bytes, largest_block : int
        The number of bytes that all blocks take in memory, and that of the largest block.
    worker_memory : sequence of tuple (int, int)
        For each worker, its memory limit in bytes (0 without a limit) and its number of threads.

    Returns
    -------
    tuple (bool, str)
        Whether blocks are streamed, and the reason: the rest of a sentence whose subject is the rows.

    Raises
    ------
    InputError
        If a worker has too little memory even to stream.
    """
    from dask.utils import format_bytes

    limited = all(limit for limit, _ in worker_memory)
    total = sum(limit for limit, _ in worker_memory)
    n_workers = f"{len(worker_memory)} worker{'s' * (len(worker_memory) != 1)}"
    text = f"{format_bytes(n_bytes)} of rows, {format_bytes(total) if limited else 'no limit'} of memory on {n_workers}"
    if mode == "memory" or (mode == "auto" and (not limited or n_bytes <= SHARE_FOR_ROWS * total)):
        return False, f"are kept in memory ({text})"
    tightest, threads = min(worker_memory, key=lambda worker: (worker[0] or float("inf")) / worker[1])
    needed = BLOCKS_WHILE_STREAMING * largest_block * threads
    if tightest and needed > SHARE_FOR_ROWS * tightest:
        raise InputError(
            f"a worker with {format_bytes(tightest)} of memory and {threads} thread{'s' * (threads != 1)} cannot hold "
            f"{BLOCKS_WHILE_STREAMING} blocks of up to {format_bytes(largest_block)} for each thread, because rows may take "
            f"{100 * SHARE_FOR_ROWS:.0f} % of the memory: write smaller shards (rows_per_shard), or give the workers more memory"
        )
    return True, f"are streamed ({text})"


def worker_memory(client: Any) -> list[tuple[int, int]]:
    """Return the memory limit of each worker in bytes (0 without a limit) and its number of threads.

    If `client` is None, these are the numbers of this process.
    """
    from aucdist.engine.dask import memory_here, memory_of_workers

    return [(memory_here(), 1)] if client is None else memory_of_workers(client)


def threads_that_fit(n_jobs: int, largest_block: int) -> int:
    """Return how many threads stream blocks of a size without exceeding the memory of this process.

    It is at most the number of threads that `n_jobs` means.
    """
    from aucdist.engine.dask import memory_here

    fit = int(SHARE_FOR_ROWS * memory_here() // (BLOCKS_WHILE_STREAMING * max(largest_block, 1)))
    return max(1, min(number_of_threads(n_jobs), fit))


@contextmanager
def open_cluster(config: ClusterConfig, name: str, observer: RunObserver | None = None) -> Iterator[Workers]:
    """Connect to a cluster or start one, and yield its workers. Afterwards, release the cluster and its scratch folder.

    Parameters
    ----------
    config : ClusterConfig
        The configuration of the cluster.
    name : str
        The name of the run. The scratch folder and a cluster that is started for the run are named after it.
    observer : RunObserver, optional
        The observer that the loss of a worker is reported to.

    Raises
    ------
    InputError
        If the cluster cannot be reached or started, or runs other versions of packages.
    RunError
        If workers do not come in time.
    """
    if isinstance(config, NoCluster):
        yield Workers(n_jobs=config.n_jobs)
        return
    from aucdist.engine.dask import connect, local_client
    from aucdist.engine.workers import check_versions, report_lost_workers, wait_for_workers

    with ExitStack() as stack:
        if isinstance(config, LocalClusterConfig):
            scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="aucdist-"))
            client = stack.enter_context(local_client(config.workers, config.threads, config.memory_limit))
        else:
            scratch = f"{config.scratch.rstrip('/')}/{name}"
            if isinstance(config, KubernetesConfig):
                from flows.compute.kubernetes import dask_cluster

                stack.callback(remove, scratch)
                client = stack.enter_context(dask_cluster(config, name))
            else:
                tls = None if config.tls is None else (config.tls.ca, config.tls.cert, config.tls.key)
                for file in tls or ():
                    if not Path(file).is_file():
                        raise InputError(f"cluster.tls: there is no file {file}: correct the path")
                client = stack.enter_context(connect(config.address, config.timeout, tls))
                wait_for_workers(client, config.workers, config.timeout)
                check_versions(client)
                stack.callback(remove, scratch)
        if observer is not None:
            stack.enter_context(report_lost_workers(client, observer.note))
        yield Workers(client, scratch)


@contextmanager
def fixed_worker_set(config: ClusterConfig, workers: Workers, n_blocks: int) -> Iterator[None]:
    """Keep the number of workers constant while rows are partitioned and a model is fitted to them.

    A cluster that scales with its load is first scaled to one worker for each block, within its limits. Other clusters are not
    changed.

    Raises
    ------
    RunError
        If workers do not come in time.
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
def s3_as_configured(config: Any, observer: RunObserver) -> Iterator[None]:
    """Set the environment variables of an S3 configuration while the context lasts.

    Parameters
    ----------
    config : object
        A configuration with `s3` and perhaps `cluster`. Workers that are already running, or run in pods, have their own
        environment.
    observer : RunObserver
        Reports the progress of the run.

    Raises
    ------
    InputError
        If the Prefect block with the credentials does not exist or has none.
    """
    changes, cluster = environment_of(config.s3), getattr(config, "cluster", None)
    if changes and not isinstance(cluster, NoCluster | LocalClusterConfig | None):
        observer.note("`s3` configures this process: the workers use their own environment for S3")
    before = {name: os.environ.get(name) for name in changes}
    _set_environment(changes)
    try:
        yield
    finally:
        _set_environment(before)


def environment_of(config: S3Config) -> dict[str, str | None]:
    """Return the environment variables to set. A value of None means that the variable is removed."""
    changes: dict[str, str | None] = {}
    if config.block is not None:
        # The credentials of a Prefect block are stored nowhere else.
        if not api_configured():
            raise InputError(
                f"s3.block is {config.block!r}, but no Prefect server is configured: set PREFECT_API_URL, or leave `block` out"
            )
        from prefect.client.orchestration import get_client
        from prefect.exceptions import ObjectNotFound

        kind, _, block = config.block.partition("/")
        try:
            with get_client(sync_client=True) as client:
                content: Json = client.read_block_document_by_name(block, kind, include_secrets=True).data
        except ObjectNotFound:
            raise InputError(
                f"s3.block is {config.block!r}, but the Prefect server has no such block: create it, or correct the name"
            ) from None
        if kind == "secret":
            value = content.get("value")
            with suppress(json.JSONDecodeError):
                value = json.loads(value) if isinstance(value, str) else value
            if not isinstance(value, dict):
                raise InputError(
                    f"s3.block is {config.block!r}, but that secret must be a JSON object with the keys {', '.join(CREDENTIALS)}"
                )
            content = value
        more = {
            REGION: content.get("region_name"),
            ENDPOINT: (content.get("aws_client_parameters") or {}).get("endpoint_url"),
        }
        variables = {variable: content.get(key) for key, variable in CREDENTIALS.items()}
        if not any(variables.values()):
            raise InputError(
                f"s3.block is {config.block!r}, but that block has no credentials: give it one of {', '.join(CREDENTIALS)}"
            )
        changes |= variables | {variable: value for variable, value in more.items() if value}
    elif config.profile is not None:
        # Keys in the environment would take precedence over the profile.
        changes |= dict.fromkeys(CREDENTIALS.values()) | {"AWS_PROFILE": config.profile}
    named = {
        ENDPOINT: reveal(config.endpoint or ""),
        REGION: config.region,
        "AUCDIST_S3_ANONYMOUS": ",".join(config.anonymous),
        "AUCDIST_S3_REQUESTER_PAYS": ",".join(config.requester_pays),
    }
    return changes | {name: value for name, value in named.items() if value}


def _set_environment(changes: Mapping[str, str | None]) -> None:
    for name, value in changes.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    if changes:
        # s3fs caches connections, and these were made with the old environment.
        fsspec.get_filesystem_class("s3").clear_instance_cache()


COMPILING = "compiling kernels, once per machine"


class Stages:
    """The stages of one run.

    Attributes
    ----------
    observer : RunObserver
        Runs the stages. The name of each stage is reported to it when the stage starts.
    seconds : dict of str to float
        The wall time of each stage so far, in the order in which they ran. If a stage ran twice, it is that of the second time.
        The time in which this process compiled kernels is listed separately, under `COMPILING`.
    """

    def __init__(self, observer: RunObserver):
        self._observer, self._start = observer, time.perf_counter()
        if not any(kernel_folder(rows.__file__).rglob("*.nbi")):
            observer.note(f"{COMPILING}: this run takes some seconds longer")
        self.seconds: dict[str, float] = {}

    def __call__(self, name: str, stage: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
        """Run a stage, ``stage(*args, **options)``, and return its result."""
        self._observer.stage(name)
        start = time.perf_counter()
        with install_timer("numba:compile", lambda seconds: None) as compiling:
            result = self._observer.run_stage(name, stage, *args, **options)
        compiled = compiling.duration if compiling.done else 0.0
        self.seconds[name] = time.perf_counter() - start - compiled
        if compiled:
            self.seconds[COMPILING] = self.seconds.get(COMPILING, 0.0) + compiled
        return result

    def elapsed(self) -> float:
        """Return the seconds since the run started."""
        return time.perf_counter() - self._start


@contextmanager
def started(config: Any, name: str, observer: RunObserver) -> Iterator[tuple[Stages, Workers]]:
    """Configure S3 and open the cluster of a command while the context lasts. Yield the stages and the workers.

    Parameters
    ----------
    config : object
        A configuration with `cluster` and `s3`.
    name : str
        The name of the run.
    observer : RunObserver
        Reports the progress of the run.

    Raises
    ------
    InputError, RunError
        In the same cases as by `open_cluster` and `s3_as_configured`.
    """
    stages = Stages(observer)
    with s3_as_configured(config, observer), open_cluster(config.cluster, name, observer) as workers:
        yield stages, workers


class ResultCache:
    """A content-addressed cache of results below a folder.

    The name of a result has a label and a digest of the version of aucdist, of `common` and of its task. If the configuration,
    the data or the version changes, the results that depend on the change are computed again, and no others.

    Parameters
    ----------
    url : str
        A path or a URL. The folder is created with the first result.
    *common : object
        The values that the results of all tasks depend on, as JSON values.

    Raises
    ------
    InputError
        If the folder cannot be listed.
    """

    def __init__(self, url: str, *common: Any):
        self._url, self._common = url, common
        with store(url, "read") as (fs, path):
            stored = fs.find(path) if fs.exists(path) else []
            self._files = {file.removeprefix(path).lstrip("/") for file in stored}

    def get(self, label: str, task: Any) -> Any:
        """Return the result of a task, or None if it is not in the cache or is damaged there.

        Parameters
        ----------
        label : str
            A readable prefix of the file's name. It may contain folders.
        task : object
            The other values that the result depends on, as JSON values.
        """
        file = self._file(label, task)
        if file not in self._files:
            return None
        try:
            return read_sealed(f"{self._url}/{file}")
        except InputError:  # the file is damaged, so the result is computed again and replaced
            return None

    def put(self, label: str, task: Any, result: Any) -> None:
        """Store the result of a task. See `get`."""
        write_sealed(f"{self._url}/{self._file(label, task)}", jsonable(result))

    def _file(self, label: str, task: Any) -> str:
        return f"{label}-{json_digest([__version__, *self._common, task])[:16]}.json"
