"""Blocks on a Dask cluster. Only this module, `worker_part` and `worker_calls` import `distributed`."""

import copy
import itertools
import signal
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from operator import attrgetter
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pandas as pd
from distributed import Client, Future, KilledWorker, LocalCluster, Security, get_client, get_worker, wait
from distributed.client import FutureCancelledError
from distributed.system import MEMORY_LIMIT
from numpy import ndarray

from aucdist.data.block import Block
from aucdist.data.column_statistics import check_finite
from aucdist.data.labels import group_numbers
from aucdist.data.storage import scratch
from aucdist.data.storage.scratch import AnonymousFile
from aucdist.engine.blocks import Blocks, Loader, LocalBlocks, Step, Summary, load, load_all
from aucdist.engine.worker_calls import SECONDS_WITHOUT_WORKERS, Call, KeptState, Parts, lost_workers_error
from aucdist.engine.worker_part import Part
from aucdist.engine.workers import wait_for_workers
from aucdist.errors import ClusterLost, InputError

RESTART_SECONDS = 10.0
"""The number of seconds for which the closing of a local cluster waits for a worker process that has died and is restarted."""
MARKS_PER_WORKER = 4
"""The number of empty tasks that are submitted for each worker, so that each worker gets at least one of them."""


class DaskBlocks(Blocks):
    """Blocks in the memory of a cluster's workers, or read by the workers for each step.

    The blocks of one worker are one part. Dask places and keeps the parts, and computes them again from their source
    if a worker is lost. Steps are not tasks of Dask. The client calls a handler on each worker
    (`aucdist.engine.worker_part`), which runs the step on its part with the worker's threads and sends the merged
    summaries. If a worker is lost, its steps are repeated. This takes time but does not change the result.

    Parameters
    ----------
    parts : sequence of Future
        Futures of `Part`, each of which can be recomputed from its own task graph. Together, they have the blocks 0, 1, 2, ...
    """

    def __init__(self, client: Client, parts: Sequence[Future]):
        infos = dict(itertools.chain(*_gather(client, client.map(attrgetter("infos"), parts, pure=False), "load")))
        super().__init__([infos[number] for number in range(len(infos))])
        self._parts = Parts(client, parts)
        self._chain: list[Call] = []
        self._held: KeptState | None = None

    @classmethod
    def load(
        cls, client: Client, loader: Loader, n_blocks: int, *, stream: bool = False, items: Sequence[Any] | None = None
    ) -> "DaskBlocks":
        """Load the blocks on the workers. Adjacent blocks are loaded on the same worker.

        With `stream`, the workers read them again for each step. The results are the same.

        Parameters
        ----------
        loader : callable
            ``loader(item) -> Block``, picklable. It runs again if a worker is lost, and must then return the same block.
        n_blocks : int
            The number of blocks. It must not depend on the cluster, because the last bits of results depend on it.
        stream : bool, default=False
            Whether the rows stay in files and are read in each step. Reading needs memory for about four blocks per thread.
        items : sequence, optional
            The argument of the loader for each block, by default its number. Items that `scatter_items` returned are already on
            the right workers.
        """
        # Tasks are not bound to the addresses of workers: if all workers were lost, Dask would wait for the old addresses
        # forever, even with allow_other_workers. Dask balances tasks of equal cost without this.
        block_items: Sequence[Any] = range(n_blocks) if items is None else items
        return cls(
            client,
            [
                client.submit(
                    _load_part, loader, list(neighbours), stream, [block_items[i] for i in neighbours], pure=False
                )
                for neighbours in _neighbours(client, n_blocks)
            ],
        )

    @classmethod
    def of_futures(cls, client: Client, blocks: Sequence[Future]) -> "DaskBlocks":
        """Make one part of the blocks on each worker.

        Parameters
        ----------
        blocks : sequence of Future
            Futures of `Block`, each of which can be recomputed from its own task graph.
        """
        together = dict[str, list[int]]()
        for i, home in enumerate(_homes(client, blocks)):
            together.setdefault(home, []).append(i)
        parts = [
            client.submit(Part, numbers, [blocks[i] for i in numbers], pure=False) for numbers in together.values()
        ]
        return cls(client, parts)

    def without_memory(self) -> "DaskBlocks":
        """Return the same blocks with empty memory."""
        other = copy.copy(self)
        other._chain, other._held = [], None
        return other

    def fork(self) -> "DaskBlocks":
        """Return the same blocks with the memory they have now."""
        other = copy.copy(self)
        other._chain = list(self._chain)
        return other

    def reduce(self, step: Step, *args: Any) -> Summary:
        """Run the step on the workers that hold the blocks."""
        call = Call(step, args, self._chain[0].file if self._chain else AnonymousFile())
        chain = [*self._chain, call]
        held = KeptState(self._parts, call.state)  # if the step fails, the workers that finished it drop this state
        total, changed = self._parts.run(chain)
        if changed:  # if not, the new state equals the previous one, and the workers drop it
            call.keep()
            self._chain, self._held = chain, held
        return total


def scatter_items(client: Client, items: Sequence[Any]) -> list[Future]:
    """Put small objects on the workers, and return futures. Adjacent objects are put on the same worker.

    Tasks that take an object run on its worker, so the next task can use what the object keeps. If a worker is lost,
    Dask puts its objects on other workers.
    """
    runs = _neighbours(client, len(items))
    # Dask schedules tasks that depend on fewer than five others as if they depended on none.
    marks = client.map(int, range(max(5, MARKS_PER_WORKER * len(runs))), pure=False)
    by_worker = dict(zip(_homes(client, marks), marks, strict=True))
    homes = [mark for _, mark in sorted(by_worker.items())]
    return [
        client.submit(_keep, items[i], homes[k % len(homes)], pure=False) for k, run in enumerate(runs) for i in run
    ]


def _homes(client: Client, futures: Sequence[Future]) -> list[str]:
    """Wait for futures, and return the address of the worker that has each of them, or "" if no worker has it any more."""
    with client.as_current():  # the client may not be Dask's default client
        wait(futures)
    holders = client.who_has(list(futures))
    return [min(holders[future.key], default="") for future in futures]


def _keep(item: Any, home: int) -> Any:
    scratch.use_folder(Path(get_worker().local_directory))
    return item


def _neighbours(client: Client, n: int) -> list[range]:
    """Divide the numbers from 0 to n - 1 into one range of consecutive numbers for each worker."""
    n_parts = max(1, min(len(client.nthreads()), n))
    return [range(n * i // n_parts, n * (i + 1) // n_parts) for i in range(n_parts)]


def _load_part(loader: Loader, numbers: list[int], stream: bool, items: list[Any]) -> Part:
    scratch.use_folder(Path(get_worker().local_directory))
    return Part(numbers, load_all(loader, numbers, items, stream, get_worker().state.nthreads))


def blocks_from_collections(
    X: Any,
    columns: Mapping[str, Any],
    encode: Callable[[ndarray], ndarray],
    *,
    several: bool,
    graded: bool,
    may_miss: bool,
) -> Blocks:
    """Make blocks of Dask collections, one for each chunk of rows.

    The blocks are made on the workers of the current client, or in this process if there is no client.

    Parameters
    ----------
    X : dask Array or DataFrame of shape (n_samples, n_features)
        The features.
    columns : mapping of dask Arrays or Series of shape (n_samples,)
        ``y``, and ``weight`` and ``groups`` if there are any. If their chunks differ from those of X, they are rechunked.
    encode : callable
        Turns a chunk's labels into -1 and +1; with `several` classes, into the numbers of sets of them.
    graded : bool
        Whether labels are grades, which the blocks keep.
    may_miss : bool
        Whether values may be missing.
    """
    are_frames = all(hasattr(collection, "to_dask_array") for collection in (X, *columns.values()))
    chunks: Any  # delayed rows, with the keyword arguments of `_make_block`
    if are_frames:
        if any(column.npartitions != X.npartitions for column in columns.values()):
            raise InputError(
                f"X has {X.npartitions} partitions, but "
                f"{', '.join(f'{name} has {column.npartitions}' for name, column in columns.items())}: take all of them from "
                "one DataFrame"
            )
        # All collections are in one expression, because Dask may merge the partitions of separate ones differently.
        packed = X.map_partitions(
            _packed,
            *columns.values(),
            names=tuple(columns),
            meta=X._meta,
            enforce_metadata=False,
            align_dataframes=False,
        )
        chunks = list(packed.to_delayed())
    else:
        chunks = _chunks_of_arrays(X, columns)
    try:
        client = get_client()
    except ValueError:
        client = None
    chunks = dask.persist(*chunks) if client is None else client.persist(chunks)
    lengths = dask.compute(*(dask.delayed(len)(chunk["y"]) for chunk in chunks))
    offsets = np.cumsum([0, *lengths]).tolist()
    made = [
        dask.delayed(_make_block)(chunk, encode, several, graded, may_miss, index, first)
        for index, (chunk, first) in enumerate(zip(chunks, offsets, strict=False))
    ]
    return LocalBlocks(dask.compute(*made)) if client is None else DaskBlocks.of_futures(client, client.compute(made))


def _packed(X: Any, *columns: Any, names: tuple[str, ...]) -> dict[str, Any]:
    for name, column in zip(names, columns, strict=True):
        if len(column) != len(X):
            raise InputError(
                f"a partition of X has {len(X)} rows, but that of {name} has {len(column)}: take both from one "
                "DataFrame"
            )
    values = X.to_numpy()
    if values.dtype == object:  # columns have several types, or a type with its own missing value
        values = X.to_numpy(np.float64, na_value=np.nan)
    return {"X": values, **dict(zip(names, columns, strict=True))}


def _chunks_of_arrays(X: Any, columns: Mapping[str, Any]) -> list[Any]:
    """Return delayed chunks of rows of Arrays, which are rechunked to match if lengths are known."""
    X = _unsplit_rows(X)
    pieces = {"X": list(X.to_delayed().ravel())}
    for name, column in columns.items():
        column = _unsplit_rows(column)
        if not np.isnan(np.array(X.chunks[0] + column.chunks[0], dtype=float)).any():
            if X.shape[0] != column.shape[0]:
                raise InputError(
                    f"X has {X.shape[0]} rows, but {name} has {column.shape[0]} values: give one value for each row"
                )
            column = column.rechunk({0: X.chunks[0]})
        elif X.numblocks[0] != column.numblocks[0]:
            raise InputError(
                f"X has {X.numblocks[0]} chunks, but {name} has {column.numblocks[0]}, and the lengths of the chunks are not "
                "known: take both from one DataFrame, or call compute_chunk_sizes() on the arrays"
            )
        pieces[name] = list(column.to_delayed().ravel())
    return [dask.delayed(dict)(**dict(zip(pieces, chunk, strict=True))) for chunk in zip(*pieces.values(), strict=True)]


def _unsplit_rows(collection: Any) -> Any:
    """Return a collection as an Array whose chunks have all columns."""
    array = collection.to_dask_array() if hasattr(collection, "to_dask_array") else collection
    return array.rechunk({1: -1}) if array.ndim == 2 else array


def distinct_labels(y: Any) -> list[ndarray]:
    """Return the distinct labels of each chunk of a Dask collection, or the distinct rows of an indicator matrix."""
    y = y if hasattr(y, "to_dask_array") else _unsplit_rows(y)
    return list(dask.compute(*(dask.delayed(_distinct)(chunk) for chunk in np.ravel(y.to_delayed()))))


def _distinct(chunk: Any) -> ndarray:
    """Return the distinct labels of a chunk, with missing labels, which have no order, at the end.

    For a matrix, return distinct rows.
    """
    values = np.asarray(chunk)
    if values.dtype != object or values.ndim > 1:
        return np.unique(values, axis=0)
    missing = np.asarray(pd.isna(values))
    return np.concatenate([np.unique(values[~missing], axis=0), values[missing][:1]])


def memory_of_workers(client: Client) -> list[tuple[int, int]]:
    """Return the memory limit of each worker in bytes (0 means none) and its number of threads.

    If there is no worker at the moment, wait for the first one.

    Raises
    ------
    RunError
        If no worker connects in time.
    """
    while not (workers := client.scheduler_info(n_workers=-1)["workers"].values()):
        wait_for_workers(client, 1, SECONDS_WITHOUT_WORKERS)
    return [(int(worker["memory_limit"] or 0), int(worker["nthreads"])) for worker in workers]


def memory_here() -> int:
    """Return how many bytes of memory this process may use. The limit of a container counts."""
    return int(MEMORY_LIMIT)


@contextmanager
def local_cluster(workers: int = 2, threads: int = 1, memory_limit: str = "auto") -> Iterator[LocalCluster]:
    """Start a cluster of worker processes on this machine for as long as the context lasts.

    Parameters
    ----------
    workers, threads : int
        The number of processes, and of threads in each.
    memory_limit : str
        The memory of each process, as in ``"2GiB"``. ``"auto"`` divides the memory of the machine.
    """
    # Blocks stay on their workers, because moving them to balance the load costs more than it gains. The setting ends with the
    # context, because other clusters of this process have their own.
    resource_tracker.ensure_running()  # it unblocks SIGINT when it starts, so start it first
    # Only this process handles Ctrl-C, and then ends the workers in order. Workers that handle it print tracebacks, and a
    # cluster that is interrupted while it starts cannot be closed. The processes and threads that start here block SIGINT
    # permanently.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with dask.config.set({"distributed.scheduler.work-stealing": False}):
            cluster = LocalCluster(
                n_workers=workers, threads_per_worker=threads, memory_limit=memory_limit, processes=True,
                dashboard_address="127.0.0.1:0", silence_logs="CRITICAL",
            )  # fmt: skip
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    with cluster:
        cluster.wait_for_workers(workers)
        try:
            yield cluster
        finally:
            # Closing a nanny that restarts its worker raises an error, which would hide that of the run.
            ends = time.monotonic() + RESTART_SECONDS
            while len(cluster.scheduler.workers) < len(cluster.worker_spec) and time.monotonic() < ends:
                time.sleep(0.02)


@contextmanager
def local_client(workers: int = 2, threads: int = 1, memory_limit: str = "auto") -> Iterator[Client]:
    """Start a cluster as `local_cluster` does, and yield a client of it."""
    with local_cluster(workers, threads, memory_limit) as cluster, Client(cluster) as client:
        yield client


@contextmanager
def connect(address: str, timeout: float = 10.0, tls: tuple[str, str, str] | None = None) -> Iterator[Client]:
    """Connect to a running scheduler.

    Parameters
    ----------
    address : str
        The address of the scheduler, as in ``"tcp://scheduler:8786"`` or ``"tls://..."``.
    timeout : float
        The number of seconds to wait.
    tls : tuple (str, str, str), optional
        The files of the certificate authority that both sides trust, of this side's certificate, and of its key. Required for
        ``tls://``.

    Raises
    ------
    InputError
        If nothing answers at the address, or one side does not trust the other.
    """
    security = None
    if tls is not None:
        ca, cert, key = tls
        security = Security(require_encryption=True, tls_ca_file=ca, tls_client_cert=cert, tls_client_key=key)
    try:
        client = Client(address, timeout=timeout, security=security)
    except OSError as error:
        refused = error if isinstance(error, ssl.SSLError) else error.__cause__
        if isinstance(refused, ssl.SSLError):
            reason = str(refused).split("] ")[-1].split(" (_ssl")[0]  # from ``[SSL: NAME] reason (_ssl.c:1006)``
            raise InputError(f"{address} allows no encrypted connection: {reason}") from error
        raise InputError(
            f"no Dask scheduler answers at {address} within {timeout:g} s: start it, or correct the address"
        ) from error
    with client:
        yield client


def map_on_workers(client: Client, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    """Map a function over items on the workers, and yield the results, which are small, in order.

    Parameters
    ----------
    function : callable
        A picklable function. It runs again if a worker is lost, and may wait for a store that does not answer for a while.
    """
    futures = client.map(load, [function] * len(items), list(items), pure=False)[::-1]
    try:
        while futures:
            yield _gather(client, [futures.pop()], "map_on_workers")[0]
    finally:
        client.cancel(futures)  # after an error in one of them, the results of the others are not needed


def _gather(client: Client, futures: list[Future], subject: str) -> list[Any]:
    try:
        return client.gather(futures)
    except FutureCancelledError as error:  # aucdist never cancels futures that it waits for
        raise ClusterLost(f"the scheduler was lost in step '{subject}': run again") from error
    except KilledWorker as error:
        raise lost_workers_error(subject) from error


def _make_block(
    chunk: dict[str, Any],
    encode: Callable[[ndarray], ndarray],
    several: bool,
    graded: bool,
    may_miss: bool,
    index: int,
    first: int,
) -> Block:
    values = np.asarray(chunk["y"])
    ids, labels = np.arange(first, first + len(values)), encode(values)
    block = Block.of(
        chunk["X"], np.ones(len(ids), dtype=np.int8) if several else labels, weight=chunk.get("weight"), row_id=ids,
        index=index, group=group_numbers(chunk.get("groups"), first), grade=values.astype(np.float64) if graded else None,
        code=labels if several else None,
    )  # fmt: skip
    check_finite(block.rows, first, may_miss=may_miss)
    return block
