"""Blocks on a Dask cluster. The only file that imports `distributed`."""

import copy
import ssl
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from typing import Any

import dask
import numpy as np
from dask.core import literal
from dask.sizeof import sizeof
from distributed import Client, Future, KilledWorker, LocalCluster, Security, get_client
from distributed.client import FutureCancelledError
from distributed.system import MEMORY_LIMIT

from aucdist.data.block import Block
from aucdist.data.storage.retries import patient
from aucdist.engine.blocks import Blocks, Loader, LocalBlocks, Step, StoredBlock, Summary, info_of, load
from aucdist.engine.merge import MergeTree, Node
from aucdist.engine.spans import in_one_span, let_go
from aucdist.engine.steps import run_step
from aucdist.errors import ClusterLost, InputError, RunError

SMALL_ARGUMENTS = 2**18
"""Arguments up to so many bytes in all go with each part's task; larger ones travel once to each worker."""


class DaskBlocks(Blocks):
    """Blocks in the memory of a cluster's workers, or read there for each step.

    Blocks that lie together are one part: a step runs as one task per part, which keeps (memory, summary) of its blocks on the
    worker, and one more that sends the summaries. So a round costs the scheduler two tasks per worker, however many the
    blocks. Dask keeps the chain of steps behind every part, so when a worker dies the survivors load its blocks again from
    their source and repeat its steps: time is lost, not a bit of the answer.

    Parameters
    ----------
    client : distributed.Client
    blocks : sequence of Future
        Of `Block` or `StoredBlock`, each to be had again from its own task graph.
    stream : bool, default=False
        Whether they are stored, and so may be dealt out evenly wherever they were read first.
    """

    @in_one_span()
    def __init__(self, client: Client, blocks: Sequence[Future], *, stream: bool = False):
        self._client = client
        super().__init__(_gather(client, client.map(info_of, blocks, pure=False), "load"))
        self._indices = _lying_together(client, blocks)
        if stream:
            _level(self._indices)
        self._parts = [client.submit(_Part, part, *(blocks[i] for i in part), pure=False) for part in self._indices]
        self._states: list[Future | None] = [None] * len(self._parts)

    @classmethod
    def load(cls, client: Client, loader: Loader, n_blocks: int, *, stream: bool = False) -> "DaskBlocks":
        """Load block after block on the workers that will hold them, or with `stream` read them there for each step anew.

        The numbers are the same either way.

        Parameters
        ----------
        client : distributed.Client
        loader : callable
            ``loader(index) -> Block``, picklable; it runs again where a worker was lost, and must return the same block.
        n_blocks : int
            A property of the data, never of the cluster: the answer's last bits depend on it.
        stream : bool, default=False
            Reading takes memory for some four blocks on each thread: one in work, and the next while it is made.
        """
        # Not bound to workers by address: when all of them were lost at once, Dask would wait for the old addresses for ever,
        # even with allow_other_workers. It deals tasks of equal cost out evenly by itself.
        first = StoredBlock.first_read if stream else load
        with in_one_span():
            futures = client.map(first, [loader] * n_blocks, range(n_blocks), pure=False)
        return cls(client, futures, stream=stream)

    def without_memory(self) -> "DaskBlocks":
        """Return the same blocks with empty memory."""
        other = copy.copy(self)
        other._states = [None] * len(self._parts)
        return other

    @in_one_span()
    def reduce(self, step: Step, *args: Any) -> Summary:
        """Run the step on the workers that hold the blocks."""
        if self._client.status not in ("running", "connecting"):  # it would wait for ever
            raise ClusterLost(f"the scheduler was lost before step '{step.__name__}'")
        # One graph, one message: the client sends at most one every 10 ms.
        name = f"aucdist-{step.__name__}-{uuid.uuid4().hex}"
        large = _nbytes(args) * len(self._parts) > SMALL_ARGUMENTS
        # Literally: what is a task by its look, a tuple with a function at its head, Dask would run.
        as_they_are = (literal(args),)
        graph: dict[Any, Any] = {(name, "args"): as_they_are} if large else {}
        shared = (name, "args") if large else as_they_are
        states, summaries = [], []
        for i, (part, state) in enumerate(zip(self._parts, self._states, strict=True)):
            states.append((name, "state", i))
            summaries.append((name, "summary", i))
            graph[states[-1]] = (_run, step, part, state, shared)
            graph[summaries[-1]] = (_summaries, states[-1])
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "10GB"}):
            futures = self._client.get(graph, states + summaries, sync=False)
        told = _gather(self._client, futures[len(states) :], step.__name__)
        self._states = futures[: len(states)]  # but what they were, if the step failed
        return MergeTree(node for nodes in told for node in nodes).total()

    @in_one_span()
    def exchange(self, cut: Step, join: Callable[..., Block], n_blocks: int) -> "DaskBlocks":
        """Return new blocks, each made of one piece of every block; the pieces go from worker to worker."""
        client = self._client
        cuts = [client.submit(_cut, cut, part, n_blocks, pure=False) for part in self._parts]
        sent = [[client.submit(_pieces, pieces, b, pure=False) for pieces in cuts] for b in range(n_blocks)]
        return DaskBlocks(
            client,
            [client.submit(_join, join, self._indices, b, n_blocks, *sent[b], pure=False) for b in range(n_blocks)],
        )


class _Part:
    """Blocks that one worker works on one after the other."""

    def __init__(self, numbers: Sequence[int], *blocks: Block | StoredBlock):
        self.numbers, self.blocks = numbers, blocks


class _State:
    """What a step left of a part: each block's memory, which stays, and the merged summaries, which go to the client."""

    def __init__(self, memory: list[Any], nodes: list[Node]):
        self.memory, self.nodes = memory, nodes


def _lying_together(client: Client, blocks: Sequence[Future]) -> list[list[int]]:
    """Return the indices of the blocks by worker and, within it, by thread."""
    holders = client.who_has(list(blocks))
    threads = client.nthreads()
    by_worker: dict[str, list[int]] = {}
    for i, block in enumerate(blocks):
        by_worker.setdefault(min(holders[block.key]), []).append(i)
    parts = []
    for worker, indices in sorted(by_worker.items()):
        n = max(1, min(len(indices), threads.get(worker, 1)))
        parts += [indices[k::n] for k in range(n)]
    return parts


def _level(parts: list[list[int]]) -> None:
    """Move blocks from long parts to short ones, until they differ by one at most."""
    while len(longest := max(parts, key=len)) > len(shortest := min(parts, key=len)) + 1:
        shortest.append(longest.pop())


def blocks_from_collections(
    X: Any, y: Any, weight: Any = None, *, encode: Callable[[np.ndarray], np.ndarray]
) -> Blocks:
    """Make blocks of Dask collections, one per chunk of rows; on the current client's workers, or here if there is no client.

    Parameters
    ----------
    X : dask Array or DataFrame of shape (n_samples, n_features)
    y, weight : dask Array or Series of shape (n_samples,)
        Chunked as X is, or re-chunked to it.
    encode : callable
        Turns a chunk's labels into -1 and +1.
    """
    parts = [dask_chunks(X)] + [dask_chunks(a, like=X) for a in (y, weight) if a is not None]
    lengths = dask.compute(*(dask.delayed(len)(part) for part in parts[1]))
    offsets = np.cumsum([0, *lengths])
    made = [
        dask.delayed(_make_block)(*chunks, encode=encode, index=i, first=int(offsets[i]))
        for i, chunks in enumerate(zip(*parts, strict=True))
    ]
    try:
        client = get_client()
    except ValueError:
        return LocalBlocks(dask.compute(*made))
    return DaskBlocks(client, client.compute(made))


def dask_chunks(collection: Any, like: Any = None) -> list[Any]:
    """Return a Dask collection's chunks of rows as delayed objects.

    Parameters
    ----------
    collection : dask Array, DataFrame or Series
        Columns in one piece, or put into one.
    like : dask collection, optional
        Rows are chunked as in this one.

    Raises
    ------
    InputError
        If the rows cannot be matched.
    """
    if hasattr(collection, "to_dask_array"):
        collection = collection.to_dask_array()
    if collection.ndim == 2:
        collection = collection.rechunk({1: -1})
    if like is not None:
        wanted = like.to_dask_array() if hasattr(like, "to_dask_array") else like
        known = not np.isnan(np.array(wanted.chunks[0] + collection.chunks[0], dtype=float)).any()
        if known and wanted.shape[0] != collection.shape[0]:
            raise InputError(f"X has {wanted.shape[0]} rows, but y or the weights have {collection.shape[0]}")
        if known and wanted.chunks[0] != collection.chunks[0]:
            collection = collection.rechunk({0: wanted.chunks[0]})
        if wanted.numblocks[0] != collection.numblocks[0]:
            raise InputError(
                f"X has {wanted.numblocks[0]} partitions, but y or the weights have {collection.numblocks[0]}, and their "
                "lengths are not known: call compute_chunk_sizes() on both"
            )
    return list(collection.to_delayed().ravel())


def memory_of_workers(client: Client) -> list[tuple[int, int]]:
    """Return each worker's memory limit in bytes (0: none) and its threads."""
    workers = client.scheduler_info()["workers"].values()
    return [(int(worker["memory_limit"] or 0), int(worker["nthreads"])) for worker in workers]


def memory_here() -> int:
    """Return the bytes of memory that this process may use, where a container's limit counts."""
    return int(MEMORY_LIMIT)


@contextmanager
def local_client(workers: int = 2, threads: int = 1, memory_limit: str = "auto") -> Iterator[Client]:
    """Start a cluster of worker processes on this machine for as long as the context lasts.

    Parameters
    ----------
    workers, threads : int
        Processes, and threads in each.
    memory_limit : str
        Per process, as in ``"2GiB"``; ``"auto"`` shares out the machine's memory.
    """
    settings = {
        # Blocks have their places; moving them for a few milliseconds of balance costs more than it gains.
        "distributed.scheduler.work-stealing": False,
        # Ctrl-C is for this process, which ends the workers in order; by themselves they would print tracebacks.
        "distributed.worker.preload": ["import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"],
    }
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=workers, threads_per_worker=threads, memory_limit=memory_limit, processes=True,
            dashboard_address="127.0.0.1:0", silence_logs="ERROR",
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        client.wait_for_workers(workers)
        _send_at_once(client)
        yield client


@contextmanager
def connect(address: str, timeout: float = 10.0, tls: tuple[str, str, str] | None = None) -> Iterator[Client]:
    """Connect to a running scheduler.

    Parameters
    ----------
    address : str
        As in ``"tcp://scheduler:8786"``, or ``"tls://..."``.
    timeout : float
        Seconds.
    tls : (str, str, str), optional
        Files: the authority that both sides trust, and this side's certificate and its key. Needed for ``tls://``.

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
            raise InputError(f"{address}: no encrypted connection: {_reason(refused)}") from error
        raise InputError(f"no Dask scheduler answers at {address} within {timeout:g} s") from error
    with client:
        let_go(client)
        _send_at_once(client)
        yield client


def map_on_workers(client: Client, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    """Call a function on many things on the workers, and yield the results in order, which are small.

    Parameters
    ----------
    client : distributed.Client
    function : callable
        Picklable; it runs again where a worker was lost. It may wait for a store that is out for a while.
    items : sequence
    """
    with in_one_span():
        futures = client.map(_patiently, [function] * len(items), list(items), pure=False)[::-1]
    try:
        while futures:
            yield _gather(client, [futures.pop()], "map_on_workers")[0]
    finally:
        client.cancel(futures)  # after a fault in one of them nobody waits for the others


def _reason(error: ssl.SSLError) -> str:
    """Return why TLS failed, out of ``[SSL: NAME] reason (_ssl.c:1006)``."""
    return str(error).split("] ")[-1].split(" (_ssl")[0]


def _send_at_once(client: Client) -> None:
    """Let the client send every millisecond rather than every ten: a round is a few short messages, each waited for."""
    client.scheduler_comm.interval = 0.001


def _gather(client: Client, futures: list[Future], what: str) -> list[Any]:
    try:
        return client.gather(futures)
    except FutureCancelledError as error:  # nobody here cancels what is waited for
        raise ClusterLost(f"the scheduler was lost in step '{what}'") from error
    except KilledWorker as error:
        raise RunError(
            f"workers died again and again in step '{what}'; the usual reason is memory: give each worker more"
        ) from error


def _patiently(function: Callable[[Any], Any], item: Any) -> Any:
    with patient():
        return function(item)


def _make_block(
    X: Any, y: Any, weight: Any = None, *, encode: Callable[[np.ndarray], np.ndarray], index: int, first: int
) -> Block:
    ids = np.arange(first, first + len(y))
    return Block.of(X, encode(np.asarray(y)), weight=weight, row_id=ids, index=index)


def _run(step: Step, part: _Part, state: _State | None, shared: tuple[Any, ...]) -> _State:
    memory = [None] * len(part.blocks) if state is None else state.memory
    after, tree = run_step(step, part.blocks, memory, shared, part.numbers)
    return _State(after, tree.nodes())


def _cut(cut: Step, part: _Part, n_blocks: int) -> list[list[Any]]:
    nothing = [None] * len(part.blocks)
    return run_step(_keep_pieces, part.blocks, nothing, (cut, n_blocks), part.numbers)[0]


def _keep_pieces(block: Block, memory: None, cut: Step, n_blocks: int) -> tuple[list[Any], Summary]:
    return cut(block, memory, n_blocks)[1]["pieces"][0], {}


def _pieces(cuts: list[list[Any]], index: int) -> list[Any]:
    return [pieces[index] for pieces in cuts]


def _join(join: Callable[..., Block], indices: list[list[int]], index: int, n_blocks: int, *parts: list[Any]) -> Block:
    by_block = {
        i: piece for part, pieces in zip(indices, parts, strict=True) for i, piece in zip(part, pieces, strict=True)
    }
    return join([by_block[i] for i in range(len(by_block))], index, n_blocks)


def _summaries(state: _State) -> list[Node]:
    return state.nodes


def _nbytes(thing: Any) -> int:
    """Bytes of the arrays in a block, a dataclass, or nested lists, tuples and dicts of them."""
    if isinstance(thing, np.ndarray):
        return thing.nbytes
    if isinstance(thing, dict):
        return sum(map(_nbytes, thing.values()))
    if isinstance(thing, list | tuple):
        return sum(map(_nbytes, thing))
    if is_dataclass(thing) or isinstance(thing, _Part | _State):
        return sum(map(_nbytes, vars(thing).values()))
    return 64


# Dask would take each of these for a few bytes, and let a worker run out of memory.
for _type in (Block, _Part, _State):
    sizeof.register(_type)(_nbytes)
