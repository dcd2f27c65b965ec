"""Read any data set as blocks, each of them by the process that works on it.

Sharded data sets know their blocks. Other files are split into parts, and parsed once before to number the rows and to learn the
classes, features and categories. `open_parts` keeps what was parsed on the local disk of the process that parsed it; `read` keeps
it in memory, and returns all rows as one block.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial, reduce
from itertools import accumulate
from operator import add
from typing import Any

import numpy as np

from aucdist.data.block import Block, stacked
from aucdist.data.dataset import Dataset, Schema
from aucdist.data.formats.base import FilePart, Survey, check_expectations, refuse_identifiers
from aucdist.data.formats.parts import StoredPart, check_features, decided, encode, parse_part, survey_part
from aucdist.data.labels import listed
from aucdist.data.own_files import CHECKED, REPAIR, Count, Sha256, parse_any, parse_checked, to_jsonable
from aucdist.data.shards.block_file import Form
from aucdist.data.shards.manifest import Manifest, below, manifest_of, read_schema, read_shard
from aucdist.data.sources import UNLABELLED, Source
from aucdist.data.storage import files
from aucdist.data.storage.urls import Url, carried
from aucdist.errors import InputError

Hold = Callable[[Sequence[Any]], Sequence[Any]]
"""Puts small objects where they will be used, and returns what a `ParallelMap` takes in place of each."""


ParallelMap = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
"""A `map` in this process or on workers, whose results come in order. Functions and items are sent to workers. If a
worker is lost, a function may run again."""


@dataclass(frozen=True)
class BlockReader:
    """A data set that is read block by block.

    Attributes
    ----------
    source : Source
        As it was given, with layout and type decided.
    form : Form
        What its blocks have in common.
    rows, positives : tuple of int
        The numbers of rows and of positives of each block.
    memory : int
        Bytes that all blocks take in memory.
    classes : dict of str to int
        Rows of each class; empty for shards, which know positives and negatives only.
    fingerprint : str
        SHA-256 (hexadecimal) that identifies this version of the data: of shards that of the manifest, else of the URLs, sizes
        and ETags of the files and of the options of reading.
    parts : tuple of FilePart
        Parts of files.
    manifest : str
        For shards: the URL of their generation.
    missing, unknown : dict of str to int
        For files: the missing values, and the values of categories that the training data did not have, of the columns
        that have some.
    """

    __pydantic_config__ = CHECKED

    source: Source
    schema: Schema
    form: Form
    rows: tuple[Count, ...]
    positives: tuple[Count, ...]
    memory: Count
    classes: dict[str, Count]
    fingerprint: Sha256
    parts: tuple[FilePart, ...] = ()
    manifest: str = ""
    missing: dict[str, Count] = field(default_factory=dict)
    unknown: dict[str, Count] = field(default_factory=dict)

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.rows)

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return sum(self.rows)

    @property
    def n_pos(self) -> int:
        """Number of positive rows."""
        return sum(self.positives)

    def is_of(self, source: Source, manifest: str) -> bool:
        """Tell whether the reader, which was in a file, reads nothing but what a source names, or the URL of its manifest."""
        urls = {part.url for part in self.parts}
        return self.manifest == manifest and urls <= set(source.format_of().part_urls(source))

    def read(self, item: int | StoredPart) -> Block:
        """Read a block, given its number or its stored part.

        Raises
        ------
        InputError
            If what is there is damaged, or has changed.
        """
        index = index_of(item)
        if self.manifest:
            return read_shard(self.manifest, index)
        part = self.parts[index]
        parsed = item.read() if isinstance(item, StoredPart) else parse_part(self.source, self.schema, part)
        return replace(encode(parsed, files.shown(part.url), self.source, self.schema, part.row or 0), index=index)

    def to_json(self) -> Any:
        """Return the reader in types of JSON."""
        return to_jsonable(self, BlockReader)

    def saved(self, folder: str) -> "SavedReader":
        """Write the reader into a folder that every worker can read, and return an object that reads blocks by this file.

        A description of thousands of parts would otherwise travel with the task of each of them.
        """
        data = json.dumps(self.to_json()).encode()
        url = below(folder, f"reader-{files.sha256_of(data)[:16]}.json")
        files.write_bytes(url, data)
        return SavedReader(url, carried(*self.source.urls(), self.manifest), self)


def index_of(item: int | StoredPart) -> int:
    """Return the number of a block, given this number or the stored part."""
    return item.index if isinstance(item, StoredPart) else item


def parse_reader(content: Any, where: str) -> BlockReader:
    """Return the reader that `BlockReader.to_json` described.

    Raises
    ------
    InputError
        If the content is not that of a reader.
    """
    reader = parse_checked(json.dumps(content).encode(), BlockReader, where, context=UNLABELLED)
    check_parts(reader, where)
    return reader


def check_parts(reader: BlockReader, where: str) -> None:
    """Raise an InputError if the blocks of a reader that was in a file do not go with its parts."""
    n_parts = len(reader.parts)
    if len(reader.rows) != len(reader.positives) or n_parts not in (0, len(reader.rows)):
        raise InputError(f"{where} is damaged: its numbers of blocks, parts and positives differ. {REPAIR}")
    if any(part.row is None for part in reader.parts):
        raise InputError(f"{where} is damaged: the rows of its parts are not numbered. {REPAIR}")


@dataclass(frozen=True)
class SavedReader:
    """Reads the blocks of a reader: ``saved(item) -> Block``. On a worker it reads the file first."""

    url: str
    secret_urls: tuple[Url, ...] = ()
    reader: BlockReader | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"url": self.url, "secret_urls": self.secret_urls, "reader": None}

    def __call__(self, item: int | StoredPart) -> Block:
        """Read a block; see `BlockReader.read`."""
        return (self.reader or _reader_at(self.url)).read(item)


@lru_cache(maxsize=4)  # the file is named after its content
def _reader_at(url: str) -> BlockReader:
    where = files.shown(url)
    return parse_reader(parse_any(files.read_bytes(url), where), where)


def read(source: Source, *, schema: Schema | None = None, name: str = "") -> Dataset:
    """Read a data set into memory.

    Parameters
    ----------
    source : Source
        What to read and how.
    schema : Schema, optional
        That of the training data: the rows are then encoded like them, with the same features and classes.
    name : str
        What to call the data set; by default its source.

    Returns
    -------
    Dataset
        Dense, or CSR for svmlight files of which at most half of the entries are not zero (`Source.layout` decides
        otherwise). float64, but float32 for Parquet files whose numbers are all float32 (`Source.dtype` decides otherwise).

    Raises
    ------
    InputError
        If a file is missing, empty, damaged or malformed, if a value is missing or not finite, if there is only one class,
        or if rows, features, classes or checksum are not the expected ones. Shards are refused: they are read block by block.
    """
    parts = source.format_of().whole_files(source)
    reader, items, _ = _surveyed(source, parts, map, _in_memory, schema, True, name)
    block = stacked([reader.read(item) for item in items])
    options = json.dumps(source.fingerprint_keys(), sort_keys=True)
    digests = " ".join(item.parsed.digest for item in items)
    fingerprint = files.sha256_of(f"{digests} {options}".encode())
    return Dataset(block, reader.schema, fingerprint, name or files.shown(str(source.source)))


def open_reader(
    source: Source,
    *,
    n_parts: int | None = None,
    schema: Schema | None = None,
    labelled: bool = True,
    name: str = "",
) -> BlockReader:
    """Return a reader of a data set's blocks, like `open_parts`, without keeping the parsed rows."""
    return open_parts(source, hold=None, n_parts=n_parts, schema=schema, labelled=labelled, name=name)[0]


def open_parts(
    source: Source,
    *,
    each: ParallelMap = map,
    hold: Hold | None = list,
    n_parts: int | None = None,
    schema: Schema | None = None,
    labelled: bool = True,
    name: str = "",
) -> tuple[BlockReader, Sequence[Any]]:
    """Return a reader of a data set's blocks, and keep the parsed rows on the local disk.

    Parameters
    ----------
    each : ParallelMap
        Makes the surveys of the parts; by default this process does, one after the other.
    hold : callable or None
        Puts the parts where `each` parses them and where they will be read; by default they are of this process. None keeps
        nothing of what was parsed.
    n_parts : int, optional
        About how many parts to split files into, by default one for every 64 MiB (of Parquet files: uncompressed). Shards are
        the blocks that they are.
    schema : Schema, optional
        That of the training data, for rows that are to be encoded like them.
    labelled : bool, default=True
        False for rows that are only scored, whose labels are not used.
    name : str
        What to call the data set in errors; by default its source.

    Returns
    -------
    reader : BlockReader
    items : sequence
        What stands for each block: ``reader.read(item)`` parses nothing for as long as its copy is there.
    """
    if manifest := manifest_of(source):
        stored, shards, name = read_schema(manifest), manifest.shards, name or files.shown(manifest.folder)
        check_expectations(source, name, {"rows": manifest.n_samples, "features": manifest.form.n_features})
        if schema is not None:
            check_features(stored.feature_names, schema, name)
        if schema is not None and labelled:
            if (stored.classes, stored.topics) != (schema.classes, schema.topics):
                raise InputError(
                    f"{name}: its classes are {listed(stored.classes or (*stored.positive, *stored.negative))}, but those "
                    f"of the training data are {listed(schema.classes or (*schema.positive, *schema.negative))}, or they "
                    "are topics in one of the two only: shard both with the same `labels` and `positive`"
                )
            if (stored.positive, stored.negative) != (schema.positive, schema.negative):
                raise InputError(
                    f"{name}: its classes are {', '.join(stored.positive)} against {', '.join(stored.negative)}, but "
                    f"those of the training data are {', '.join(schema.positive)} against {', '.join(schema.negative)}: "
                    "shard both with the same `positive`"
                )
        rows, positives = (tuple(getattr(shard, key) for shard in shards) for key in ("rows", "positives"))
        memory, digest = sum(shard.memory for shard in shards), digest_of(manifest)
        reader = BlockReader(source, stored, manifest.form, rows, positives, memory, {}, digest, (), manifest.url)
        return reader, range(len(shards))
    fingerprint = fingerprint_of(source)
    parts = source.format_of().split(source, n_parts)
    reader, items, surveys = _surveyed(source, parts, each, hold, schema, labelled, name)
    positive = reader.schema.positive
    if source.labels == "topics" and len(positive) > 1:  # a row of two of them is still one row
        n_pos = tuple(each(partial(_count_positives, reader), items))
    else:
        n_pos = tuple(sum(part.classes.get(name, 0) for name in positive) for part in surveys)
    return replace(reader, fingerprint=fingerprint, positives=n_pos), items


def _surveyed(
    source: Source,
    parts: Sequence[FilePart],
    each: ParallelMap,
    hold: Hold | None,
    schema: Schema | None,
    labelled: bool,
    name: str,
) -> tuple[BlockReader, Sequence[Any], list[Survey]]:
    """Survey all parts, and return their reader, the stored parts and the surveys."""

    def survey(source: Source) -> tuple[Sequence[Any], list[Survey]]:
        """Survey the parts of the source, and return the items to read and the surveys."""
        if hold is None:
            return range(len(parts)), list(each(partial(survey_part, source, schema), parts))
        items = hold([StoredPart(source, index, part, schema) for index, part in enumerate(parts)])
        return items, list(each(StoredPart.survey, items))

    items, surveys = survey(source)
    texts = {name for part in surveys for name in part.categories}
    if source.categorical == "auto" and any(set(part.categories) != texts for part in surveys):
        values = {name: {v for part in surveys for v in part.categories.get(name, ())} for name in sorted(texts)}
        # only while the types are guessed
        refuse_identifiers(source, surveys[0].where, values, sum(part.rows for part in surveys))
        # A column may look like numbers in one part and hold texts in another. Now the type is known for all parts.
        source = source.model_copy(update={"categorical": sorted(texts)})
        items, surveys = survey(source)
    total = reduce(add, surveys)
    source, schema = decided(source, total, schema, labelled, name or files.shown(str(source.source)))
    grouped = source.groups is not None or source.qid == "use"
    graded, costed, width = source.labels == "grades", source.cost_column is not None, len(schema.feature_names)
    form = Form(source.layout, str(source.dtype), width, False, grouped, graded, costed, bool(schema.classes))
    item = np.dtype(form.dtype).itemsize
    if form.layout == "dense":  # the bytes of values, labels and row ids
        memory = total.rows * (form.n_features * item + 9)
    else:
        memory = (total.stored or total.rows * form.n_features) * (item + 4) + total.rows * 17
    rows = tuple(part.rows for part in surveys)
    starts = accumulate(rows, initial=0)
    numbered = tuple(replace(part, row=start) for part, start in zip(parts, starts, strict=False))
    classes, missing, unknown = total.classes, total.missing, total.unknown
    reader = BlockReader(source, schema, form, rows, (), memory, classes, "", numbered, "", missing, unknown)
    return reader, items, surveys


def _in_memory(parts: Sequence[StoredPart]) -> Sequence[StoredPart]:
    """Parse the parts and keep their rows in memory."""
    for part in parts:
        part.parsed = part.make(part.item)
    return parts


def _count_positives(reader: BlockReader, item: int | StoredPart) -> int:
    return reader.read(item).n_pos


def fingerprint_of(source: Source) -> str:
    """Return a fingerprint of the version of a data set and of the way it is read; see `BlockReader`."""
    if manifest := manifest_of(source):
        return digest_of(manifest)
    content = json.dumps([source.format_of().describe_files(source), source.fingerprint_keys()], sort_keys=True)
    return files.sha256_of(content.encode())


def digest_of(manifest: Manifest) -> str:
    """Return a fingerprint of a sharded data set: the SHA-256 of its rows' and features' checksums."""
    content = json.dumps([manifest.features.sha256, *(shard.sha256 for shard in manifest.shards)])
    return files.sha256_of(content.encode())
