"""A model of the time of a fit by `AllPairs`: reductions x (compute + latency + bytes / bandwidth), and its constants."""

import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from aucdist.engine.blocks import Blocks, Step, Summary
from aucdist.engine.worker_part import LONG, as_integers

REDUCTIONS_PER_PASS = 3


@dataclass(frozen=True)
class Traffic:
    """Bytes between the client and the workers.

    Attributes
    ----------
    arguments : int
        Bytes of the arguments of all steps, counted once; every worker receives them.
    gathered : int
        Bytes of the lists in all summaries, which are concatenated.
    summed : int
        Bytes of the other values in the summaries of one block, which are added up: on each worker, as far as the tree over
        the blocks goes there.
    """

    arguments: int = 0
    gathered: int = 0
    summed: int = 0

    def __add__(self, other: "Traffic") -> "Traffic":
        """Return the bytes of both."""
        return Traffic(self.arguments + other.arguments, self.gathered + other.gathered, self.summed + other.summed)


@dataclass(frozen=True)
class Workload:
    """The work of a fit, independent of the machines.

    Attributes
    ----------
    rows, features, blocks, passes : int
    reductions : int
    in_memory, sent : Traffic
        What travels, as it lies in memory and as it is sent: counts of rows as small integers.
    client : float
        CPU seconds of the client between the reductions.
    """

    rows: int
    features: int
    blocks: int
    passes: int
    reductions: int = 0
    in_memory: Traffic = Traffic()
    sent: Traffic = Traffic()
    client: float = 0.0


@dataclass(frozen=True)
class ClusterSize:
    """The machines of a fit.

    Attributes
    ----------
    workers, cores : int
        Worker processes with one thread each, and how many of them can compute at the same time.
    bandwidth : float
        Bytes per second that each host can send and receive at the same time.
    delay : float
        Seconds of latency between hosts.
    """

    workers: int
    cores: int
    bandwidth: float = math.inf
    delay: float = 0.0


class Constants(NamedTuple):
    """The constants of a machine.

    Attributes
    ----------
    row, value : float
        Seconds for one row in one pass, and besides for each of its values, on one core.
    reduction, worker : float
        Seconds of a reduction, and of each worker in it.
    byte : float
        Seconds to serialize and deserialize what takes a byte in memory, without the network.
    wire : float
        Bytes on the network for each counted byte that is sent.
    trips : float
        Network delays in a reduction.
    """

    row: float
    value: float
    reduction: float
    worker: float
    byte: float
    wire: float
    trips: float


@dataclass(frozen=True)
class Run:
    """A measured fit."""

    workload: Workload
    cluster: ClusterSize
    seconds: float


# ---- counting ---------------------------------------------------------------------------------------------------------


class CountingBlocks(Blocks):
    """Blocks that count arguments and summaries, as `Workload` does, and their CPU seconds.

    Parameters
    ----------
    blocks : Blocks
    """

    def __init__(self, blocks: Blocks):
        super().__init__(blocks.infos)
        self._blocks = blocks
        self._ranges = blocks.ranges  # found once for a data set, so it is no part of a fit's work
        self.reductions, self.seconds = 0, 0.0
        self.in_memory, self.sent = Traffic(), Traffic()

    def without_memory(self) -> "CountingBlocks":
        """Return these blocks with empty memory, so that the counts of a fit are found here."""
        self._blocks = self._blocks.without_memory()
        return self

    def reduce(self, step: Step, *args: Any) -> Summary:
        """Run the step and count."""
        start = time.process_time()
        summary = self._blocks.reduce(step, *args)
        self.seconds += time.process_time() - start
        self.reductions += 1
        lists = [value for value in summary.values() if isinstance(value, list)]
        others = [value for value in summary.values() if not isinstance(value, list)]
        self.in_memory += Traffic(*(byte_count(things) for things in (args, lists, others)))
        self.sent += Traffic(*(byte_count(things, sent=True) for things in (args, lists, others)))
        return summary


def byte_count(thing: Any, *, sent: bool = False) -> int:
    """Return the bytes of arrays and numbers in nested tuples, lists and dataclasses: in memory, or as they are sent."""
    if isinstance(thing, np.ndarray):
        return int(_as_sent(thing).nbytes if sent else thing.nbytes)
    if isinstance(thing, list | tuple):
        return sum(byte_count(one, sent=sent) for one in thing)
    if is_dataclass(thing):
        return sum(byte_count(getattr(thing, one.name), sent=sent) for one in fields(thing))
    return 8


def _as_sent(values: np.ndarray) -> np.ndarray:
    """Return an array as `aucdist.engine.worker_part` sends it."""
    may_be_counts = values.dtype == np.float64 and values.size >= LONG and values.flags.c_contiguous
    integers = as_integers(values) if may_be_counts else None
    return values if integers is None else integers


def count_work(blocks: Blocks, fit: Callable[[Blocks], int]) -> Workload:
    """Run a fit, which returns its passes, on blocks of this process, and return its work."""
    counts, start = CountingBlocks(blocks), time.process_time()
    passes = fit(counts)
    own = time.process_time() - start - counts.seconds
    return Workload(
        blocks.n_samples, blocks.n_features, blocks.n_blocks, passes, counts.reductions, counts.in_memory, counts.sent, own,
    )  # fmt: skip


def expected_work(rows: int, features: int, blocks: int, passes: int, anchors: int) -> Workload:
    """Return what `count_work` would count of rows of weight 1, without making the data and without the client's seconds.

    Parameters
    ----------
    rows, features, blocks, passes : int
    anchors : int
        Rows of the smaller class.
    """
    shape = rows, features, blocks, passes, anchors
    reductions = 1 + 2 * passes + passes - 1
    in_memory, sent = expected_traffic(*shape, weight=8, count=8), expected_traffic(*shape, weight=1, count=4)
    return Workload(rows, features, blocks, passes, reductions, in_memory, sent)


def expected_traffic(
    rows: int, features: int, blocks: int, passes: int, anchors: int, *, weight: int, count: int
) -> Traffic:
    """Return the traffic of a fit, if weights and counts of rows take so many bytes each; parameters as of `expected_work`.

    Sent counts fill four bytes at most, below 2**31, and small ones less.
    """
    n, steps = 8, passes - 1

    def size(values: int, of_each: int) -> int:
        return values * (of_each if values >= LONG else n)

    seek = n * (features + 1)
    cut = n * (anchors + 5) + size(anchors, weight)
    finish = size(anchors, count) + n * (blocks + 1 + 1)
    gradients = n * features
    cut_summary = size(anchors + 1, count) + n * 4
    weights = blocks * size(anchors // blocks, weight) + n * (anchors % blocks)
    return Traffic(
        n * (features + 3) + passes * (cut + finish) + steps * seek,
        weights + (1 + steps) * n * anchors,
        passes * (cut_summary + gradients),
    )


# ---- the model --------------------------------------------------------------------------------------------------------


def nodes_sent(blocks: int, workers: int) -> int:
    """Return how many nodes of the tree over the blocks the workers send: the sums of its largest branches in their blocks."""
    bounds = [blocks * i // workers for i in range(workers + 1)]
    found = 0
    for first, end in itertools.pairwise(bounds):
        while first < end:
            fits = 1 << ((end - first).bit_length() - 1)
            first += min(fits, first & -first) if first else fits
            found += 1
    return found


def workers_called(workload: Workload, cluster: ClusterSize) -> int:
    """Return how many workers have a block: the others are not called."""
    return min(cluster.workers, workload.blocks)


def bytes_moved(workload: Workload, traffic: Traffic, cluster: ClusterSize) -> int:
    """Return the bytes that the client sends and receives in a fit.

    Parameters
    ----------
    traffic : Traffic
        Of the workload: `in_memory` or `sent`.
    """
    workers = workers_called(workload, cluster)
    return workers * traffic.arguments + traffic.gathered + nodes_sent(workload.blocks, workers) * traffic.summed


def terms(workload: Workload, cluster: ClusterSize) -> np.ndarray:
    """Return the factor of each of `Constants`.

    On the network, one host sends the arguments to all workers, one after the other, and receives what they send.
    """
    workers = workers_called(workload, cluster)
    rows = workload.rows * workload.passes / min(workers, cluster.cores)
    in_memory, sent = (bytes_moved(workload, traffic, cluster) for traffic in (workload.in_memory, workload.sent))
    calls = workload.reductions * workers
    return np.array(
        [rows, rows * workload.features, workload.reductions, calls, in_memory, sent / cluster.bandwidth,
         workload.reductions * cluster.delay]
    )  # fmt: skip


def fit_constants(runs: Sequence[Run]) -> Constants:
    """Return the nonnegative constants with the least sum of squared relative errors."""
    rows = np.array([terms(run.workload, run.cluster) / run.seconds for run in runs])
    goal = np.array([1.0 - run.workload.client / run.seconds for run in runs])
    scale = np.where(rows.max(axis=0) > 0, rows.max(axis=0), 1.0)
    found, _ = nnls(rows / scale, goal)
    return Constants(*map(float, found / scale))


def predict(constants: Constants, workload: Workload, cluster: ClusterSize) -> dict[str, float]:
    """Return the predicted seconds of a fit for compute, latency, bytes and the client's own work."""
    row, value, reduction, worker, byte, wire, trips = (np.array(constants) * terms(workload, cluster)).tolist()
    return {
        "compute": row + value, "latency": reduction + worker + trips, "bytes": byte + wire, "client": workload.client,
    }  # fmt: skip


def total(constants: Constants, workload: Workload, cluster: ClusterSize) -> float:
    """Return the predicted seconds of a fit."""
    return sum(predict(constants, workload, cluster).values())
