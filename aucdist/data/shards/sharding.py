"""Shard a data set: write its rows in random order to files that each have the same share of positives, in bounded memory.

The rows of each class are numbered in the order of the source, and a permutation (`shuffled_places`) gives the position of each
row among the rows of its class. The positions of one class, and then those of the other, are assigned to the shards in turn.
Each worker therefore knows to which shard its rows belong, and the bytes of a shard depend on the source, the options and the
seed, but not on parts or workers.

1. `survey` parses every part once and makes the job.
2. `route` sorts the parsed rows of one part by shard and writes them to the work folder, in one file for each part.
3. `gather` reads the rows of one shard from all of these files, and writes the shard.
4. `finish` commits the manifest and removes the files of the work folder.

The work folder is beside the shards and is named after everything that determines the result, so that the same command resumes
a run that was killed. Its files say how far a run has come. They never say where anything is read, written or removed. This
comes from the command only, so that a work folder which was copied or forged can do no harm. If several equal runs work at
once, each does all of the work, and those that end later find the shards of the first.

The module also simulates rows, for benchmarks and for data sets larger than memory.
"""

import functools
import io
import itertools
import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from pydantic import Field

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.formats.base import PART_BYTES
from aucdist.data.formats.parts import StoredPart
from aucdist.data.own_files import NO_MORE_KEYS, Count, T, json_digest, read_json, write_json
from aucdist.data.shards.block_file import BlockSchema, from_table, to_table
from aucdist.data.shards.manifest import (
    CURRENT,
    FORMAT,
    Manifest,
    Shard,
    commit,
    read_manifest,
    verify_shard,
    write_shard,
)
from aucdist.data.shards.reading import BlockReader, ParallelMap, fingerprint_of, index_of, open_rows
from aucdist.data.sources import Dtype, Source
from aucdist.data.storage import files
from aucdist.data.storage.urls import Url
from aucdist.errors import InputError, Json, as_input_error
from aucdist.kernels.random import hash_ids

ROUNDS = 6
JOB = "job.json"
WORK, IN_PROGRESS = "_sharding-", "in-progress"
OWN_FILES = re.compile(r"in-progress|job\.json|part-\d{5,}\.(arrow|json)|(shard|statistics)-\d{5,}\.(json|parquet)")
"""The file names that a run, or one of an earlier version, uses in its work folder. Only these files are removed."""


def shuffled_places(numbers: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Return the position of each number in a random order of 0, ..., n - 1.

    A Feistel network over the bits of a number is a permutation for any round function. If its result is not below n, the
    network is applied again, until it is (cycle walking, as in Black and Rogaway, "Ciphers with arbitrary finite domains",
    2002). The round function is a hash, because no cipher is needed. At most three of four results are not below n, so that the
    network is applied four times on average in the worst case.

    Parameters
    ----------
    numbers : ndarray
        Numbers from 0 to n - 1.
    n : int
        The number of positions, at most 2**62.
    seed : int
        The seed of the random numbers.

    Returns
    -------
    ndarray
        Numbers from 0 to n - 1, int64. Different numbers have different positions.
    """
    half = np.uint64(max(1, ((n - 1).bit_length() + 1) // 2))
    keys = hash_ids(np.arange(ROUNDS), seed)
    mask = (np.uint64(1) << half) - np.uint64(1)
    positions = numbers.astype(np.uint64)
    walking = np.arange(len(positions))
    while len(walking):
        left, right = positions[walking] >> half, positions[walking] & mask
        for key in keys:  # each round swaps the halves, and mixes one with a hash of the other
            left, right = right, left ^ (hash_ids(right ^ key, 0) & mask)
        positions[walking] = (left << half) | right
        walking = walking[positions[walking] >= np.uint64(n)]
    return positions.astype(np.int64)


@dataclass(frozen=True)
class ShardJob:
    """The settings of a sharding that every worker needs.

    Attributes
    ----------
    work : str
        The work folder, which is in the folder of the shards.
    reader : BlockReader
        The rows.
    n_shards : int
        The number of shards.
    seed : int
        The seed of the random numbers.
    origin : dict
        The origin of the rows, for the manifest, and the key of the request.
    """

    __pydantic_config__ = NO_MORE_KEYS

    work: str
    reader: BlockReader
    n_shards: Annotated[int, Field(ge=1, le=10**6)]
    seed: int
    origin: Json

    @property
    def target(self) -> str:
        """The folder of the shards."""
        return self.work.rpartition("/")[0]

    @property
    def url(self) -> str:
        """The file from which workers read the job."""
        return f"{self.work}/{JOB}"


def read_job(url: str) -> ShardJob:
    """Return the job of a file.

    Raises
    ------
    InputError
        If the file is missing or damaged.
    """
    return replace(read_json(url, ShardJob), work=url.rpartition("/")[0])


@dataclass(frozen=True)
class Request:
    """A data set to shard, with the options.

    Attributes
    ----------
    target : str
        The folder of the shards: a path or an fsspec URL.
    rows_per_shard : int or None
        The largest number of rows in a shard; None means the number that takes 64 MiB in memory.
    seed : int
        The seed of the order of the rows.
    key : str
        SHA-256 that identifies this version of the source and these options.
    """

    source: Source
    target: str
    rows_per_shard: int | None
    seed: int
    key: str

    @property
    def work(self) -> str:
        """The work folder."""
        return f"{self.target}/{WORK}{self.key[:16]}"


def request(
    source: Source, target: str, *, rows_per_shard: int | None = None, dtype: Dtype | None = None, seed: int = 0
) -> Request:
    """Check the options of sharding, and whether the target can be written to.

    Parameters
    ----------
    source, target, rows_per_shard, seed
        As the attributes of `Request`.
    dtype : str, optional
        ``float32`` or ``float64``. By default, it is that of `source`.

    Raises
    ------
    InputError
        If an option is wrong, if the source does not exist, or if the target cannot be written to.
    """
    if rows_per_shard is not None and rows_per_shard < 1:
        raise InputError(f"rows_per_shard must be at least 1; got {rows_per_shard}")
    if dtype is not None:
        if source.is_sharded:
            raise InputError(
                "`dtype` cannot change the type of values that are in shards already: give it for the original data"
            )
        source = source.model_copy(update={"dtype": dtype})
    source = source.pinned()
    key = json_digest([FORMAT, fingerprint_of(source), rows_per_shard, seed])
    made = Request(source, files.absolute(target), rows_per_shard, seed, key)
    files.check_not_link(made.work)
    files.write_bytes(f"{made.work}/{IN_PROGRESS}", b"these files belong to a run that has not ended\n")
    return made


def finished(settings: Request, each: ParallelMap = map) -> Manifest | None:
    """Return the manifest if an earlier run has completed this request, and every shard still has its checksum."""
    manifest = _committed(settings.target, settings.key)
    if manifest is None or any(list(each(functools.partial(verify_shard, manifest.url), range(len(manifest.shards))))):
        return None
    _remove_work(settings.work)
    return manifest


def _committed(target: str, key: str) -> Manifest | None:
    """Return the current manifest if its key begins with this one."""
    if not files.exists(f"{target}/{CURRENT}"):
        return None
    manifest = read_manifest(target)
    return manifest if str(manifest.origin.get("key", "")).startswith(key) else None


def _committed_beside(job: str) -> Manifest | None:
    """Return the manifest if an equal run has ended meanwhile, or else None. `job` is the URL of the job."""
    target, name, _ = job.rsplit("/", 2)
    return _committed(target, name.removeprefix(WORK))


def survey(settings: Request, **opening: Any) -> ShardJob:
    """Survey the data set and create the job, or resume the job that an earlier run has created.

    Parameters
    ----------
    **opening
        As for `open_rows`: how the survey is made, the number of parts, and the name of the data. They do not change the shards.

    Raises
    ------
    InputError
        As `open_rows`.
    """
    source = settings.source
    with suppress(InputError):  # there is no earlier run, or its job is damaged
        known = read_job(f"{settings.work}/{JOB}")
        same = (known.origin.get("key"), known.seed) == (settings.key, settings.seed)
        if same and known.reader.is_of(source):
            return known
    reader = open_rows(source, **opening)
    rows = reader.n_samples
    n_shards = math.ceil(rows / settings.rows_per_shard if settings.rows_per_shard else reader.memory / PART_BYTES)
    origin = ({} if source.version is None else {"version": source.version}) | {
        "sources": source.format_of().describe_files(), "reading": source.keys_for_fingerprint(), "classes": reader.classes,
        "rows_per_shard": settings.rows_per_shard, "seed": settings.seed, "key": settings.key,
    }  # fmt: skip
    job = ShardJob(settings.work, reader, max(1, min(n_shards, rows)), settings.seed, origin)
    write_json(job.url, replace(job, work=""))  # The work folder is never read from the file.
    return job


# The job can be cached, because the folder is named after everything that determines it.
_job_at = functools.lru_cache(maxsize=2)(read_job)


def _read_record(url: str, kind: type[T]) -> T | None:
    """Return the record of a step of an earlier run. If it is missing or damaged, return None, and the step must be repeated."""
    with suppress(InputError):
        return read_json(url, kind)
    return None


def route(url: str, item: int | StoredPart, urls: tuple[Url, ...] = ()) -> list[int]:
    """Write the rows of one part to the work folder, sorted by shard.

    Parameters
    ----------
    url : str
        The URL of the job.
    item : int or StoredPart
        The part: its number, or one of `BlockReader.items`.
    urls : tuple of Url
        `BlockReader.secret_urls` of the job's reader, so that this process knows their secrets.

    Returns
    -------
    list of int, of length n_shards + 1
        The offsets at which the rows of each shard, an Arrow stream, start in the file. Empty if an equal run has ended
        meanwhile.
    """
    try:
        job, index = _job_at(url), index_of(item)
        record, file = f"{job.work}/part-{index:05d}.json", _part_path(job, index)
        known = _read_record(record, list[Count])
        is_record = known and len(known) == job.n_shards + 1 and known == sorted(known)
        if known and is_record and files.exists(file) and files.stat(file).size == known[-1]:
            return known
        reader, block = job.reader, job.reader.read(item)
        shards = np.empty(block.n_samples, dtype=np.int64)
        # The rows are numbered after those of each class in the parts before this one.
        pos_before, n_neg = sum(reader.positives[:index]), reader.n_samples - reader.n_pos
        for label, n, before, start in (
            (-1, n_neg, sum(reader.rows[:index]) - pos_before, 0),
            (1, reader.n_pos, pos_before, n_neg),
        ):
            class_rows = np.flatnonzero(block.y == label)
            numbers = before + np.arange(len(class_rows))
            shards[class_rows] = (start + shuffled_places(numbers, n, 2 * job.seed + (label > 0))) % job.n_shards
        order = np.argsort(shards, kind="stable")
        table = to_table(block.take(order))
        edges = np.searchsorted(shards[order], np.arange(job.n_shards + 1)).tolist()
        out, starts = io.BytesIO(), [0]
        for first, last in itertools.pairwise(edges):
            if last > first:
                with pa.ipc.new_stream(out, table.schema) as stream:
                    stream.write_table(table.slice(first, last - first))
            starts.append(out.tell())
        files.write_bytes(file, out.getvalue())
        write_json(record, starts)
        return starts
    except InputError:
        if _committed_beside(url) is None:
            raise
        return []


def _part_path(job: ShardJob, index: int) -> str:
    return f"{job.work}/part-{index:05d}.arrow"


def gather(url: str, item: tuple[int, Sequence[Sequence[int]]]) -> Shard:
    """Write one shard, unless it exists with the checksum that an earlier run recorded.

    Parameters
    ----------
    url : str
        The URL of the job.
    item : tuple
        The number of the shard, and for each part the offsets at which the rows of the shard start and end in the file.
    """
    index, ranges = item
    try:
        job = _job_at(url)
        record = f"{job.work}/shard-{index:05d}.json"
        if known := _read_record(record, Shard):
            stored = f"{job.target}/{known.file}"
            if files.exists(stored) and files.sha256_of(files.read_bytes(stored)) == known.sha256:
                return known
        tables = []
        for i, (first, stop) in enumerate(ranges):
            if stop > first:
                damaged = f"{files.shown(_part_path(job, i))} is damaged: remove its folder and start again"
                with as_input_error(damaged, pa.ArrowException, OSError):
                    tables.append(pa.ipc.open_stream(files.read_range(_part_path(job, i), first, stop)).read_all())
        if sum(table.num_rows for table in tables) != len(range(index, job.reader.n_samples, job.n_shards)):
            raise InputError(
                f"{files.shown(job.work)}: rows of shard {index} are missing; remove the folder and start again"
            )
        block = from_table(pa.concat_tables(tables), job.reader.block_schema, index)
        del tables
        block = block.take(np.argsort(hash_ids(block.row_id, job.seed)), index=index)
        shard = write_shard(block, job.target, index)
        write_json(record, shard)
        return shard
    except InputError:
        manifest = _committed_beside(url)
        if manifest is None or index >= len(manifest.shards):
            raise
        return manifest.shards[index]


def finish(job: ShardJob, shards: Sequence[Shard]) -> Manifest:
    """Commit the shards as the data set of the target, and remove the files of the work folder.

    Parameters
    ----------
    shards : sequence of Shard
        All shards, in order.
    """
    manifest = _committed(job.target, job.origin["key"])
    if manifest is None or list(manifest.shards) != list(shards):
        manifest = commit(job.target, job.reader.schema, job.reader.block_schema, shards, origin=job.origin)
    _remove_work(job.work)
    return manifest


def _remove_work(work: str) -> None:
    """Remove the files of a work folder, and the folder itself if it has no other files."""
    files.check_not_link(work)
    files.remove_files(work, [name for name in files.names_in(work) if OWN_FILES.fullmatch(name)])


def route_all(job: ShardJob, each: ParallelMap) -> list[list[int]]:
    """Write the rows of every part to the work folder, sorted by shard, and return the results of `route`."""
    return list(each(functools.partial(route, job.url, urls=job.reader.secret_urls), job.reader.items))


def gather_all(job: ShardJob, starts: Sequence[Sequence[int]], each: ParallelMap) -> list[Shard]:
    """Write every shard, from the results of `route`."""
    starts = starts if all(starts) else ()  # if an equal run has ended meanwhile, every shard exists
    items = [(k, [(first_row_of[k], first_row_of[k + 1]) for first_row_of in starts]) for k in range(job.n_shards)]
    return list(each(functools.partial(gather, job.url), items))


def simulate(
    n_samples: int, n_features: int, positive_share: float, *, seed: int, shift: float = 1.2, index: int = 0
) -> Block:
    """Draw rows from two Gaussian distributions with identity covariance.

    Parameters
    ----------
    positive_share : float
        The probability that a row is positive, between 0 and 1.
    seed : int
        The seed of the direction between the class means and of the rows, which also depend on `index`.
    shift : float, default=1.2
        The distance between the class means. The best possible AUC is the normal distribution function at ``shift / sqrt(2)``.
    index : int, default=0
        The index of the block in the data set. It changes the rows and their ids, but not their distribution.

    Returns
    -------
    Block
        Dense, float64.

    """
    direction = np.random.default_rng(seed).normal(size=n_features)
    direction *= shift / np.linalg.norm(direction)
    r = np.random.default_rng((seed, index))
    positive = r.random(n_samples) < positive_share
    X = r.normal(size=(n_samples, n_features)) + positive[:, None] * direction
    return Block.of(X, np.where(positive, 1, -1), row_id=index * n_samples + np.arange(n_samples), index=index)


@dataclass(frozen=True)
class Simulation:
    """A sharded data set of simulated rows, written shard by shard, so that it may be larger than any memory.

    Attributes
    ----------
    positive_share : float
        As in `simulate`.
    rows_per_shard : int or None
        The number of rows of each shard. The last one may have fewer. None means the number that takes 64 MiB.
    dtype : str
        ``float32`` or ``float64``.
    shift : float
        As in `simulate`.
    """

    rows: int
    features: int
    positive_share: float
    rows_per_shard: int | None = None
    dtype: Dtype = "float32"
    seed: int = 0
    shift: float = 1.2

    @property
    def row_bytes(self) -> int:
        """The bytes of the values of a row. They are random and cannot be compressed."""
        return self.features * np.dtype(self.dtype).itemsize

    @property
    def per_shard(self) -> int:
        """The number of rows of each shard but the last one."""
        return self.rows_per_shard or max(1, PART_BYTES // self.row_bytes)

    @property
    def n_shards(self) -> int:
        """Number of shards."""
        return math.ceil(self.rows / self.per_shard)

    def block(self, index: int) -> Block:
        """Draw the rows of one shard."""
        first = index * self.per_shard
        n = min(self.per_shard, self.rows - first)
        block = simulate(n, self.features, self.positive_share, seed=self.seed, shift=self.shift, index=index)
        return replace(block.with_X(block.X.astype(self.dtype)), row_id=first + np.arange(n))

    def write(self, url: str, index: int) -> Shard:
        """Draw the rows of one shard, and write it into the folder."""
        return write_shard(self.block(index), url, index)

    def commit(self, url: str, shards: Sequence[Shard]) -> Manifest:
        """Write the manifest of all shards, which makes them the data set in the folder."""
        schema = Schema(tuple(f"x{i}" for i in range(1, self.features + 1)), "y", ("1",), ("-1",), {})
        block_schema = BlockSchema("dense", self.dtype, self.features, False)
        return commit(url, schema, block_schema, shards, origin={"simulated": asdict(self)})
