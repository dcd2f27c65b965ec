"""From any data set to shards: rows in random order, each shard with its share of the positives, in bounded memory.

The rows of each class are numbered in the order of the source, and a permutation (`aucdist.data.shards.permutation`)
gives each its place among the rows of its class. The places of both classes, one after the other, are dealt out to the
shards in turn. So every worker knows where its rows belong, and the bytes of a shard depend on the source, the options
and the seed, not on parts or workers.

1. `survey` has every part read once and makes the job.
2. `route` reads one part again, sorts its rows by shard and writes them aside: one file for each part.
3. `gather` takes the rows of one shard out of all of these files, and writes the shard.
4. `finish` merges the statistics, commits the manifest and removes what lay aside.

What each step has done lies in a folder beside the shards, named after everything that decides the result, so that a run that
was killed goes on where it was.
"""

import functools
import hashlib
import io
import itertools
import json
import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from aucdist.data.block import Block
from aucdist.data.shards.block_file import from_table as block_from_table
from aucdist.data.shards.block_file import to_table
from aucdist.data.shards.block_reader import PART_BYTES, BlockReader, ParallelMap, fingerprint_of, open_reader
from aucdist.data.shards.manifest import CURRENT, FORMAT, Manifest, Shard, below, commit, read_manifest
from aucdist.data.shards.permutation import permuted
from aucdist.data.shards.shard import verify_shard, write_shard
from aucdist.data.shards.statistics import Statistics, from_table, to_parquet
from aucdist.data.sources.redaction import secret_urls, unveiled, veiled
from aucdist.data.sources.source import Dtype, Source
from aucdist.data.split import scrambled
from aucdist.data.storage import files
from aucdist.data.storage.arrow_files import absolute
from aucdist.errors import InputError

ASIDE, JOB = "_sharding-", "job.json"


@dataclass(frozen=True)
class Job:
    """What every worker must know to do its part.

    Attributes
    ----------
    target, aside : str
        The folders of the shards, and of what is in the making.
    opening : Opening
        The data set.
    n_shards, seed : int
    origin : dict
        What the manifest will say of the rows' origin.
    urls : tuple of str
        Those with passwords, which are no part of the file: see `aucdist.data.sources.redaction`.
    """

    target: str
    aside: str
    opening: BlockReader
    n_shards: int
    seed: int
    origin: dict[str, Any]
    urls: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        """Where it lies for the workers."""
        return below(self.aside, JOB)

    def shards_of(self, block: Block, index: int) -> np.ndarray:
        """Return the shard of each row of a part.

        Parameters
        ----------
        block : Block
            The part.
        index : int
            Its number: the rows of the parts before it, class by class, are counted first.

        Returns
        -------
        ndarray of shape (n_samples,), int64
        """
        opening, n_neg = self.opening, self.opening.n_samples - self.opening.n_pos
        pos_before = sum(opening.positives[:index])
        shards = np.empty(block.n_samples, dtype=np.int64)
        for label, n, before, first in (
            (-1, n_neg, sum(opening.rows[:index]) - pos_before, 0),
            (1, opening.n_pos, pos_before, n_neg),
        ):
            of_class = np.flatnonzero(block.y == label)
            numbers = before + np.arange(len(of_class))
            shards[of_class] = (first + permuted(numbers, n, 2 * self.seed + (label > 0))) % self.n_shards
        return shards


@dataclass(frozen=True)
class Request:
    """What is to be sharded, and how.

    Attributes
    ----------
    source : Source
    target : str
        The folder of the shards: a path or an fsspec URL.
    rows_per_shard : int or None
        At most so many rows in a shard; None: as many as take 64 MiB in memory.
    seed : int
        Of the order of the rows.
    key : str
        What tells this version of the source and these options from others.
    """

    source: Source
    target: str
    rows_per_shard: int | None
    seed: int
    key: str

    @property
    def aside(self) -> str:
        """The folder of what is in the making."""
        return below(self.target, f"{ASIDE}{self.key[:16]}")


def request(
    source: Source, target: str, *, rows_per_shard: int | None = None, dtype: Dtype | None = None, seed: int = 0
) -> Request:
    """Check what is asked for.

    Parameters
    ----------
    source, target, rows_per_shard, seed
        As the attributes of `Request`.
    dtype : str, optional
        ``float32`` or ``float64``; by default as `source` says.

    Raises
    ------
    InputError
        If an option is wrong, if the source is not there, or if the target cannot be written to.
    """
    if rows_per_shard is not None and rows_per_shard < 1:
        raise InputError(f"rows_per_shard is {rows_per_shard}; at least 1 is needed")
    if dtype is not None and source.format_of().is_sharded:
        raise InputError("shards keep their type: give `dtype` where the original data are sharded")
    if dtype is not None:
        source = source.model_copy(update={"dtype": dtype})
    key = json.dumps([FORMAT, fingerprint_of(source), rows_per_shard, seed])
    target = absolute(target)
    made = Request(source, target, rows_per_shard, seed, hashlib.sha256(key.encode()).hexdigest())
    files.write_bytes(below(made.aside, "begun"), b"what lies here belongs to a run that has not ended\n")
    return made


def leftovers(asked: Request) -> list[str]:
    """Return the folders of other runs to the same target that have not ended: they were killed, or are still running."""
    names = files.names_in(asked.target)
    return [name for name in names if name.startswith(ASIDE) and not asked.aside.endswith(name)]


def finished(asked: Request, each: ParallelMap = map) -> Manifest | None:
    """Return the manifest if an earlier run has done all that is asked, and every shard still has its checksum."""
    if not files.exists(below(asked.target, CURRENT)):
        return None
    manifest = read_manifest(asked.target)
    if manifest.origin.get("key") != asked.key:
        return None
    if any(list(each(functools.partial(verify_shard, manifest.url), range(len(manifest.shards))))):
        return None
    files.remove(asked.aside)
    return manifest


def survey(asked: Request, *, each: ParallelMap = map, n_parts: int | None = None, name: str = "") -> Job:
    """Survey the data set and make the job, or take up the one that an earlier run has made.

    Parameters
    ----------
    asked : Request
    each, n_parts, name
        As for `open_reader`. None of them changes a shard.

    Raises
    ------
    InputError
        As `open_reader`.
    """
    of_shards = asked.source.format_of().is_sharded
    urls = secret_urls(asked.source, read_manifest(files.locate(str(asked.source.source))).url if of_shards else "")
    if known := _read_json(below(asked.aside, JOB)):
        return _job(known, urls)
    opening = open_reader(asked.source, each=each, n_parts=n_parts, name=name)
    rows = opening.n_samples
    n_shards = math.ceil(rows / asked.rows_per_shard if asked.rows_per_shard else opening.memory / PART_BYTES)
    origin = {
        "sources": asked.source.format_of().describe_files(asked.source), "reading": asked.source.reading(),
        "classes": opening.classes,
        "rows_per_shard": asked.rows_per_shard, "seed": asked.seed, "key": asked.key,
    }  # fmt: skip
    job = Job(asked.target, asked.aside, opening, max(1, min(n_shards, rows)), asked.seed, origin, urls)
    content = vars(job) | {"opening": opening.to_json()}
    del content["urls"]
    files.write_bytes(job.url, json.dumps(veiled(content, urls)).encode())
    return job


def _job(content: dict[str, Any], urls: tuple[str, ...]) -> Job:
    known = unveiled(content, urls)
    return Job(**known | {"opening": BlockReader.from_json(known["opening"]), "urls": urls})


@functools.lru_cache(maxsize=2)  # its folder is named after what decides it
def _job_at(url: str, urls: tuple[str, ...] = ()) -> Job:
    return _job(json.loads(files.read_bytes(url)), urls)


def _read_json(url: str) -> Any:
    """Return what is in a file, or None where there is none."""
    return json.loads(files.read_bytes(url)) if files.exists(url) else None


def route(url: str, index: int, urls: tuple[str, ...] = ()) -> list[int]:
    """Write the rows of one part aside, sorted by shard.

    Parameters
    ----------
    url : str
        That of the job.
    index : int
        The part.
    urls : tuple of str
        Of the job.

    Returns
    -------
    list of int, n_shards + 1 of them
        Where the rows of each shard start in the file: an Arrow stream for each.
    """
    job = _job_at(url, urls)
    record = below(job.aside, f"part-{index:05d}.json")
    if known := _read_json(record):
        return list(known)
    block = job.opening.read(index)
    shards = job.shards_of(block, index)
    order = np.argsort(shards, kind="stable")
    table = to_table(block.take(order))
    edges = np.searchsorted(shards[order], np.arange(job.n_shards + 1)).tolist()
    out, starts = io.BytesIO(), [0]
    for first, last in itertools.pairwise(edges):
        if last > first:
            with pa.ipc.new_stream(out, table.schema) as stream:
                stream.write_table(table.slice(first, last - first))
        starts.append(out.tell())
    files.write_bytes(_part(job, index), out.getvalue())
    files.write_bytes(record, json.dumps(starts).encode())
    return starts


def _part(job: Job, index: int) -> str:
    return below(job.aside, f"part-{index:05d}.arrow")


def gather(url: str, item: tuple[int, Sequence[Sequence[int]]]) -> Shard:
    """Write one shard, unless it is there with the checksum that an earlier run noted.

    Parameters
    ----------
    url : str
        That of the job.
    item : tuple
        The shard's number, and of each part's file the first byte of its rows and the one after the last.
    """
    job, (index, ranges) = _job_at(url), item
    record = below(job.aside, f"shard-{index:05d}.json")
    if known := _read_json(record):
        shard = Shard(**known)
        place = below(job.target, shard.file)
        if files.exists(place) and hashlib.sha256(files.read_bytes(place)).hexdigest() == shard.sha256:
            return shard
    tables = [
        pa.ipc.open_stream(files.read_range(_part(job, i), first, stop)).read_all()
        for i, (first, stop) in enumerate(ranges)
        if stop > first
    ]
    block = block_from_table(pa.concat_tables(tables), job.opening.form, index)
    del tables
    block = block.take(np.argsort(scrambled(block.row_id, job.seed)), index=index)
    shard = write_shard(block, job.target, index)
    files.write_bytes(_statistics(job, index), to_parquet(None, Statistics.of(block)))
    files.write_bytes(record, json.dumps(asdict(shard)).encode())
    return shard


def items_of(job: Job, starts: Sequence[Sequence[int]]) -> list[tuple[int, list[tuple[int, int]]]]:
    """Return what `gather` must be told of each shard, from what `route` returned of each part."""
    return [(k, [(of_part[k], of_part[k + 1]) for of_part in starts]) for k in range(job.n_shards)]


def _statistics(job: Job, index: int) -> str:
    return below(job.aside, f"statistics-{index:05d}.parquet")


def _statistics_of(job: Job, shards: Sequence[Shard]) -> Iterator[Statistics]:
    for index, shard in enumerate(shards):
        table = pq.read_table(pa.BufferReader(files.read_bytes(_statistics(job, index))))
        yield from_table(table, shard.rows - shard.positives, shard.positives)  # type: ignore[misc]  # never None


def finish(job: Job, shards: Sequence[Shard]) -> Manifest:
    """Make the shards the data set at the target, and remove what lay aside.

    Parameters
    ----------
    job : Job
    shards : sequence of Shard
        All of them, in order.
    """
    statistics = functools.reduce(operator.add, _statistics_of(job, shards))
    manifest = commit(
        job.target, job.opening.schema, job.opening.form, shards, statistics=statistics, origin=job.origin
    )
    files.remove(job.aside)
    return manifest


def shard_data(asked: Request, *, each: ParallelMap = map, n_parts: int | None = None) -> Manifest:
    """Shard a data set from start to end; parameters and errors as `survey`."""
    if known := finished(asked, each):
        return known
    job = survey(asked, each=each, n_parts=n_parts)
    starts = list(each(functools.partial(route, job.url, urls=job.urls), range(job.opening.n_blocks)))
    return finish(job, list(each(functools.partial(gather, job.url), items_of(job, starts))))
