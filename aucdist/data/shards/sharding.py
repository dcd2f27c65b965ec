"""From any data set to shards: rows in random order, each shard with its share of the positives, in bounded memory.

The rows of each class are numbered in the order of the source, and a permutation (`aucdist.data.shards.job`)
gives each its position among the rows of its class. The positions of both classes, one class after the other, are dealt out to
the shards in turn. So every worker knows where its rows belong, and the bytes of a shard depend on the source, the options
and the seed, not on parts or workers.

1. `survey` has every part parsed once and makes the job.
2. `route` takes what was parsed of one part, sorts its rows by shard and writes them to the work folder: one file for each part.
3. `gather` takes the rows of one shard out of all of these files, and writes the shard.
4. `finish` merges the statistics, commits the manifest and removes the files of the work folder.

The work folder is beside the shards and is named after everything that decides the result, so that the same command resumes a
run that was killed. Its files say how far a run has come, and never where anything is read, written or removed: that comes from
the command alone, so a work folder that was copied or planted leads nowhere else. Of several equal runs at once each does
all of the work, and those that end later find the shards of the first.
"""

import functools
import hashlib
import io
import itertools
import json
import math
import operator
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from aucdist.data.checked import Count, T, parse_checked
from aucdist.data.formats.parts import StoredPart
from aucdist.data.shards.block_file import (
    ColumnStatistics,
    from_table,
    statistics_of_table,
    statistics_to_parquet,
    to_table,
)
from aucdist.data.shards.job import JOB, ShardJob, read_job, write_job
from aucdist.data.shards.manifest import CURRENT, FORMAT, Manifest, Shard, below, commit, read_manifest
from aucdist.data.shards.reading import PART_BYTES, Hold, ParallelMap, fingerprint_of, index_of, open_parts
from aucdist.data.shards.shard import verify_shard, write_shard
from aucdist.data.sources.source import Dtype, Source
from aucdist.data.split import scrambled
from aucdist.data.storage import files
from aucdist.data.storage.arrow_files import absolute
from aucdist.data.storage.urls import carried
from aucdist.errors import InputError

WORK, IN_PROGRESS = "_sharding-", "in-progress"
OURS = re.compile(r"in-progress|job\.json|part-\d{5,}\.(arrow|json)|(shard|statistics)-\d{5,}\.(json|parquet)")
"""The names of all files that a run writes into its work folder: no others are removed."""


@dataclass(frozen=True)
class Request:
    """A data set to shard, with the options.

    Attributes
    ----------
    target : str
        The folder of the shards: a path or an fsspec URL.
    rows_per_shard : int or None
        At most so many rows in a shard; None: as many as take 64 MiB in memory.
    seed : int
        Of the order of the rows.
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
        return below(self.target, f"{WORK}{self.key[:16]}")


def request(
    source: Source, target: str, *, rows_per_shard: int | None = None, dtype: Dtype | None = None, seed: int = 0
) -> Request:
    """Check the options of sharding, and whether the target can be written to.

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
    files.refuse_link(made.work)
    files.write_bytes(below(made.work, IN_PROGRESS), b"these files belong to a run that has not ended\n")
    return made


def leftovers(asked: Request) -> list[str]:
    """Return the work folders of other runs to the same target that have not ended: they were killed, or are still running."""
    names = files.names_in(asked.target)
    return [below(asked.target, name) for name in names if name.startswith(WORK) and not asked.work.endswith(name)]


def is_in_progress(asked: Request) -> bool:
    """Tell whether an earlier run has started the same work, and not finished it."""
    return files.exists(below(asked.work, JOB))


def finished(asked: Request, each: ParallelMap = map) -> Manifest | None:
    """Return the manifest if an earlier run has done all of this request, and every shard still has its checksum."""
    manifest = _committed(asked.target, asked.key)
    if manifest is None:
        return None
    if any(list(each(functools.partial(verify_shard, manifest.url), range(len(manifest.shards))))):
        return None
    _remove_work(asked.work)
    return manifest


def _committed(target: str, key: str) -> Manifest | None:
    """Return the manifest that counts if it has this key or one that begins so."""
    if not files.exists(below(target, CURRENT)):
        return None
    manifest = read_manifest(target)
    return manifest if str(manifest.origin.get("key", "")).startswith(key) else None


def _committed_beside(work: str) -> Manifest | None:
    """Return the manifest of an equal run that has ended meanwhile, if there is one."""
    target, _, name = work.rpartition("/")
    return _committed(target, name.removeprefix(WORK))


def survey(
    asked: Request, *, each: ParallelMap = map, hold: Hold = list, n_parts: int | None = None, name: str = ""
) -> ShardJob:
    """Survey the data set and make the job, or resume the one that an earlier run has made.

    Parameters
    ----------
    each, hold, n_parts, name
        As for `open_parts`. None of them changes a shard.

    Raises
    ------
    InputError
        As `open_parts`.
    """
    source = asked.source
    manifest = read_manifest(files.require(str(source.source))).url if source.format_of().is_sharded else ""
    urls = carried(*source.urls(), manifest)
    if known := _resumed(asked, urls, manifest):
        return known
    reader, items = open_parts(source, each=each, hold=hold, n_parts=n_parts, name=name)
    rows = reader.n_samples
    n_shards = math.ceil(rows / asked.rows_per_shard if asked.rows_per_shard else reader.memory / PART_BYTES)
    origin = {
        "sources": source.format_of().describe_files(source), "reading": source.fingerprint_keys(), "classes": reader.classes,
        "rows_per_shard": asked.rows_per_shard, "seed": asked.seed, "key": asked.key,
    }  # fmt: skip
    job = ShardJob(asked.work, reader, max(1, min(n_shards, rows)), asked.seed, origin, urls, items)
    write_job(job, asked.key)
    return job


def _resumed(asked: Request, urls: tuple[str, ...], manifest: str) -> ShardJob | None:
    """Return the job of an earlier run of the same request; None if there is none that is sound and reads the same files."""
    try:
        job, key = read_job(below(asked.work, JOB), urls)
        elsewhere = {part.url for part in job.reader.parts} - set(asked.source.format_of().part_urls(asked.source))
    except InputError:
        return None
    if key != asked.key or job.seed != asked.seed or job.reader.manifest != manifest or elsewhere:
        return None
    return job


@functools.lru_cache(maxsize=2)  # its folder is named after what decides it
def _job_at(url: str, urls: tuple[str, ...] = ()) -> ShardJob:
    return read_job(url, urls)[0]


def _read_record(url: str, kind: type[T]) -> T | None:
    """Return what an earlier run has written of a step; None if that is missing or damaged, so that the step is done again."""
    try:
        return parse_checked(files.read_bytes(url), kind, files.shown(url)) if files.exists(url) else None
    except InputError:
        return None


def route(url: str, item: int | StoredPart, urls: tuple[str, ...] = ()) -> list[int]:
    """Write the rows of one part to the work folder, sorted by shard.

    Parameters
    ----------
    url : str
        That of the job.
    item : int or StoredPart
        The part: its number, or one of `ShardJob.items`.
    urls : tuple of str
        Of the job.

    Returns
    -------
    list of int, n_shards + 1 of them
        Where the rows of each shard start in the file: an Arrow stream for each. Empty if an equal run has ended meanwhile.
    """
    try:
        return _routed(_job_at(url, urls), item)
    except InputError:
        if _committed_beside(url.rpartition("/")[0]) is None:
            raise
        return []


def _routed(job: ShardJob, item: int | StoredPart) -> list[int]:
    index = index_of(item)
    record, file = below(job.work, f"part-{index:05d}.json"), _part(job, index)
    known = _read_record(record, list[Count])
    known = known if known and len(known) == job.n_shards + 1 and known == sorted(known) else None
    if known and files.exists(file) and files.stat(file).size == known[-1]:
        return known
    block = job.reader.read(item)
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
    files.write_bytes(file, out.getvalue())
    files.write_bytes(record, json.dumps(starts).encode())
    return starts


def _part(job: ShardJob, index: int) -> str:
    return below(job.work, f"part-{index:05d}.arrow")


def gather(url: str, item: tuple[int, Sequence[Sequence[int]]]) -> Shard:
    """Write one shard, unless it is there with the checksum that an earlier run noted.

    Parameters
    ----------
    url : str
        That of the job.
    item : tuple
        The shard's number, and of each part's file the first byte of its rows and the one after the last.
    """
    try:
        return _gathered(_job_at(url), item)
    except InputError:
        manifest = _committed_beside(url.rpartition("/")[0])
        if manifest is None or item[0] >= len(manifest.shards):
            raise
        return manifest.shards[item[0]]


def _gathered(job: ShardJob, item: tuple[int, Sequence[Sequence[int]]]) -> Shard:
    index, ranges = item
    record = below(job.work, f"shard-{index:05d}.json")
    known = _read_record(record, Shard)
    if known and _has_checksum(below(job.target, known.file), known.sha256) and files.exists(_statistics(job, index)):
        return known
    tables = [_rows_of(_part(job, i), first, stop) for i, (first, stop) in enumerate(ranges) if stop > first]
    if sum(table.num_rows for table in tables) != len(range(index, job.reader.n_samples, job.n_shards)):
        raise InputError(
            f"{files.shown(job.work)}: rows of shard {index} are missing; remove the folder and start again"
        )
    block = from_table(pa.concat_tables(tables), job.reader.form, index)
    del tables
    block = block.take(np.argsort(scrambled(block.row_id, job.seed)), index=index)
    shard = write_shard(block, job.target, index)
    files.write_bytes(_statistics(job, index), statistics_to_parquet(None, ColumnStatistics.of(block)))
    files.write_bytes(record, json.dumps(asdict(shard)).encode())
    return shard


def _has_checksum(url: str, sha256: str) -> bool:
    return files.exists(url) and hashlib.sha256(files.read_bytes(url)).hexdigest() == sha256


def _rows_of(url: str, first: int, stop: int) -> pa.Table:
    try:
        return pa.ipc.open_stream(files.read_range(url, first, stop)).read_all()
    except (pa.ArrowException, OSError) as e:
        raise InputError(f"{files.shown(url)} is damaged: remove its folder and start again ({e})") from None


def items_of(job: ShardJob, starts: Sequence[Sequence[int]]) -> list[tuple[int, list[tuple[int, int]]]]:
    """Return the items that `gather` takes, one for each shard, from what `route` returned of each part."""
    if not all(starts):  # an equal run has ended meanwhile: every shard is there
        return [(k, []) for k in range(job.n_shards)]
    return [(k, [(of_part[k], of_part[k + 1]) for of_part in starts]) for k in range(job.n_shards)]


def _statistics(job: ShardJob, index: int) -> str:
    return below(job.work, f"statistics-{index:05d}.parquet")


def _statistics_of(job: ShardJob, n_shards: int) -> Iterator[ColumnStatistics]:
    for index in range(n_shards):
        url = _statistics(job, index)
        try:
            found = statistics_of_table(pq.ParquetFile(pa.BufferReader(files.read_bytes(url))).read(use_threads=False))
        except (pa.ArrowException, OSError) as e:
            raise InputError(f"{files.shown(url)} is damaged: remove its folder and start again ({e})") from None
        if found is None or len(found.mean) != job.reader.form.n_features:
            raise InputError(f"{files.shown(url)} is damaged: remove its folder and start again")
        yield found


def finish(job: ShardJob, shards: Sequence[Shard]) -> Manifest:
    """Make the shards the data set of the target, and remove the files of the work folder.

    Parameters
    ----------
    shards : sequence of Shard
        All of them, in order.
    """
    manifest = _committed(job.target, job.origin["key"])
    if manifest is None or list(manifest.shards) != list(shards):
        try:
            statistics = functools.reduce(operator.add, _statistics_of(job, len(shards)))
        except InputError:
            manifest = _committed(job.target, job.origin["key"])  # an equal run has ended, and removed the files
            if manifest is None:
                raise
        else:
            manifest = commit(
                job.target, job.reader.schema, job.reader.form, shards, statistics=statistics, origin=job.origin
            )
    _remove_work(job.work)
    return manifest


def _remove_work(work: str) -> None:
    """Remove the files of a work folder, and the folder itself if nothing else is in it."""
    files.refuse_link(work)
    files.remove_files(work, [name for name in files.names_in(work) if OURS.fullmatch(name)])


def shard_data(asked: Request, *, each: ParallelMap = map, n_parts: int | None = None) -> Manifest:
    """Shard a data set from start to end; parameters and errors as `survey`."""
    if known := finished(asked, each):
        return known
    job = survey(asked, each=each, n_parts=n_parts)
    starts = list(each(functools.partial(route, job.url, urls=job.urls), job.items))
    return finish(job, list(each(functools.partial(gather, job.url), items_of(job, starts))))
