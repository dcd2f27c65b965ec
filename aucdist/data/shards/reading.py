"""Read any data set as blocks. Each block is read by the process that works on it.

The blocks of a sharded data set are its shards. Other files are split into parts, which are parsed once before, to number the
rows and to find the classes, features and categories. `open_rows` may keep the parsed rows on the local disk of the process
that parsed them. `read` keeps them in memory, and returns all rows as one block.
"""

import json
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial, reduce
from itertools import accumulate
from operator import add
from typing import Annotated, Any, TypeVar

import numpy as np
from pydantic import Field

from aucdist.data.block import Block, stacked
from aucdist.data.dataset import Dataset, Schema
from aucdist.data.formats.base import FilePart, Parsed, Survey, check_expectations, check_not_identifiers
from aucdist.data.formats.parts import StoredPart, check_features, encode, resolve_source_and_schema
from aucdist.data.labels import listed
from aucdist.data.own_files import NO_MORE_KEYS, Count, Sha256, json_digest, read_as, read_json, write_json
from aucdist.data.shards.block_file import BlockSchema
from aucdist.data.shards.manifest import Manifest, manifest_of, read_manifest, read_schema, read_shard
from aucdist.data.sources import Source
from aucdist.data.storage import files
from aucdist.data.storage.urls import Url, secret_urls
from aucdist.errors import InputError

KeptParts = TypeVar("KeptParts", bound=Sequence[Any])
PlaceOnWorkers = Callable[[Sequence[Any]], Sequence[Any]]
"""A function that sends small objects to the workers, and returns what a `ParallelMap` accepts in place of each object."""


ParallelMap = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
"""A `map` in this process or on workers, whose results come in order. Functions and items are sent to workers. If a
worker is lost, a function may run again."""


@dataclass(frozen=True)
class BlockReader:
    """A data set that is read block by block.

    Attributes
    ----------
    source : Source
        The source, with `layout` and `dtype` resolved.
    block_schema : BlockSchema
        The properties that all blocks share.
    rows, positives : tuple of int
        The numbers of rows and of positives of each block.
    memory : int
        The number of bytes of all blocks in memory.
    classes : dict of str to int
        The number of rows of each class. Empty for shards, which only count positive and negative rows.
    fingerprint : str
        The SHA-256 (hexadecimal) that identifies this version of the data. For shards, it is that of the manifest. For files,
        it is computed from their URLs, sizes and ETags and the options of reading.
    parts : tuple of FilePart
        The parts of files.
    manifest : str
        For shards, the URL of their generation.
    missing, unknown : dict of str to int
        For files, the number of missing values, and of values of categories that the training data did not have, for each
        column that has some.
    kept : tuple
        The stored parts that `open_rows` kept, which are never written to a file.
    """

    __pydantic_config__ = NO_MORE_KEYS

    source: Source
    schema: Schema
    block_schema: Annotated[BlockSchema, read_as("block_schema", "form")]
    rows: tuple[Count, ...]
    positives: tuple[Count, ...]
    memory: Count
    classes: dict[str, Count]
    fingerprint: Sha256
    parts: tuple[FilePart, ...] = ()
    manifest: str = ""
    missing: dict[str, Count] = field(default_factory=dict)
    unknown: dict[str, Count] = field(default_factory=dict)
    kept: Annotated[tuple[Any, ...], Field(max_length=0, exclude=True)] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        """Raise an InputError if a reader from a file has different numbers of blocks and parts."""
        if len(self.rows) != len(self.positives) or len(self.parts) not in (0, len(self.rows)):
            raise InputError("its numbers of blocks, parts and positives differ")

    @property
    def items(self) -> Sequence[Any]:
        """The argument of `read` for each block: the stored part, or the number of the block."""
        return self.kept or range(self.n_blocks)

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

    @property
    def largest_block(self) -> int:
        """The number of bytes of the largest block in memory. It is approximate for parts of files."""
        if self.manifest:
            return max(shard.memory for shard in read_manifest(self.manifest).shards)
        return int(max(self.rows) / self.n_samples * self.memory)

    def is_of(self, source: Source) -> bool:
        """Return whether a reader from a file reads only URLs that a source names, or its manifest."""
        urls, sharded = {part.url for part in self.parts}, manifest_of(source)
        return self.manifest == (sharded.url if sharded else "") and urls <= set(source.format_of().part_urls())

    def read(self, item: int | StoredPart) -> Block:
        """Read a block, given its number or its stored part.

        Raises
        ------
        InputError
            If the data are damaged or have changed.
        """
        index = index_of(item)
        if self.manifest:
            return read_shard(self.manifest, index)
        parsed = (
            item.read()
            if isinstance(item, StoredPart)
            else self.source.format_of(self.schema).read_part(self.parts[index])
        )
        return self.encode(parsed, index)

    def encode(self, parsed: Parsed, index: int) -> Block:
        """Return a parsed part as a block."""
        part = self.parts[index]
        return replace(encode(parsed, part.where, self.source, self.schema, part.row), index=index)

    @property
    def secret_urls(self) -> tuple[Url, ...]:
        """The URLs with secrets. They are never written to a file, but are sent with each task."""
        return secret_urls(*self.source.urls(), self.manifest)

    def without_copies(self) -> "BlockReader":
        """Return the same reader without stored parts."""
        return replace(self, kept=())

    def saved(self, folder: str) -> "SavedReader":
        """Write the reader to a folder that every worker can read, and return an object that reads blocks by this file.

        Otherwise, a description of thousands of parts would be sent with the task of each of them.
        """
        # The name is unique, so that the run may remove the file.
        url = f"{folder}/reader-{uuid.uuid4().hex[:16]}.json"
        write_json(url, self)
        return SavedReader(url, self.secret_urls)


def index_of(item: int | StoredPart) -> int:
    """Return the number of a block, given this number or the stored part."""
    return item.index if isinstance(item, StoredPart) else item


@dataclass(frozen=True)
class SavedReader:
    """A function that reads blocks: ``saved(item) -> Block``. Each process first loads the file of the reader.

    Attributes
    ----------
    url : str
        The URL of the file.
    secret_urls : tuple of Url
        The URLs with secrets, which are sent with the object because the file does not contain them.
    """

    url: str
    secret_urls: tuple[Url, ...]

    def __call__(self, item: int | StoredPart) -> Block:
        """Read a block. See `BlockReader.read`."""
        return _reader_at(self.url).read(item)


_reader_at = lru_cache(maxsize=4)(partial(read_json, kind=BlockReader))  # A file of this name is written only once.


def read(source: Source, *, schema: Schema | None = None, name: str = "") -> Dataset:
    """Read a data set into memory.

    Parameters
    ----------
    source : Source
        The files, and how they are read.
    schema : Schema, optional
        The schema of the training data, if the rows are to be encoded like them, with the same features and classes.
    name : str
        The name of the data set, by default its source.

    Returns
    -------
    Dataset
        The rows are CSR for svmlight files in which at most half of the entries are nonzero, and dense otherwise. They are
        float32 for Parquet files whose numbers are all float32, and float64 otherwise. `Source.layout` and `Source.dtype`
        override this.

    Raises
    ------
    InputError
        If a file is missing, empty, damaged or malformed, if a value is missing or not finite, if there is only one class, or
        if rows, features, classes or checksum are not the expected ones. Shards are an error, because they are read block by
        block.
    """
    source = source.pinned()
    parts = source.format_of().whole_files()

    def parse(source: Source) -> tuple[list[Parsed], list[Survey]]:
        """Parse all parts, and return the parsed rows and the surveys."""
        parsed = [source.format_of(schema).read_part(part) for part in parts]
        return parsed, [part.survey for part in parsed]

    reader, parsed = _survey(source, parts, parse, schema, True, name)
    block = stacked([reader.encode(part, index) for index, part in enumerate(parsed)])
    options = json.dumps(source.keys_for_fingerprint(), sort_keys=True)
    fingerprint = files.sha256_of(f"{' '.join(part.digest for part in parsed)} {options}".encode())
    return Dataset(block, reader.schema, fingerprint, name or source.display_name)


def open_rows(
    source: Source,
    *,
    each: ParallelMap = map,
    place_on_workers: PlaceOnWorkers = list,
    n_parts: int | None = None,
    schema: Schema | None = None,
    labelled: bool = True,
    name: str = "",
) -> BlockReader:
    """Return a reader of a data set's blocks.

    Parameters
    ----------
    each : ParallelMap
        A function like `map` that makes the surveys of the parts that `place_on_workers` has placed. By default, this process
        makes them, one after the other.
    place_on_workers : callable, default=list
        Places the parts on the workers that parse and later read them, and keeps the parsed rows on their local disks as long
        as the reader keeps the parts. ``list`` uses this process.
    n_parts : int, optional
        About how many parts to split files into, by default one for every 64 MiB (uncompressed for Parquet files). Shards are
        not split.
    schema : Schema, optional
        The schema of the training data, if the rows are to be encoded like them.
    labelled : bool, default=True
        False for rows that are only scored, so that their labels are not used.
    name : str
        The name of the data set in error messages, by default its source.

    Returns
    -------
    BlockReader
    """
    if manifest := manifest_of(source):
        stored, shards, name = read_schema(manifest), manifest.shards, name or files.shown(manifest.folder)
        check_expectations(source, name, {"rows": manifest.n_samples, "features": manifest.block_schema.n_features})
        if schema is not None:
            check_features(stored.feature_names, schema, name)
            if labelled:
                here, trained = (
                    (of.topics, [of.classes] if of.classes else [of.positive, of.negative]) for of in (stored, schema)
                )
                if here != trained:
                    raise InputError(
                        f"{name} has the {'topics' if here[0] else 'classes'} {' against '.join(map(listed, here[1]))}, but the "
                        f"training data have the {'topics' if trained[0] else 'classes'} "
                        f"{' against '.join(map(listed, trained[1]))}: shard both with the same `labels` and `positive`"
                    )
        rows, positives = (tuple(getattr(shard, key) for shard in shards) for key in ("rows", "positives"))
        return BlockReader(
            source, stored, manifest.block_schema, rows, positives, sum(shard.memory for shard in shards), {},
            shards_digest(manifest),
            (), manifest.url,
        )  # fmt: skip
    source = source.pinned()
    fingerprint = fingerprint_of(source)
    parts = source.format_of().split(n_parts)

    def survey(source: Source) -> tuple[Sequence[Any], list[Survey]]:
        """Survey all parts, and return the stored parts and the surveys."""
        kept = place_on_workers([StoredPart(source, index, part, schema) for index, part in enumerate(parts)])
        return kept, list(each(StoredPart.survey, kept))

    reader, kept = _survey(source, parts, survey, schema, labelled, name)
    return replace(reader, fingerprint=fingerprint, kept=tuple(kept))


def _survey(
    source: Source,
    parts: Sequence[FilePart],
    survey: Callable[[Source], tuple[KeptParts, list[Survey]]],
    schema: Schema | None,
    labelled: bool,
    name: str,
) -> tuple[BlockReader, KeptParts]:
    """Return the reader of all parts without a fingerprint, and the stored parts.

    Parameters
    ----------
    source : Source
        The source of the rows.
    parts : sequence of FilePart
        The parts of the source.
    survey : callable
        ``survey(source)`` returns what it keeps of the parts, and their surveys.
    schema : Schema or None
        The features and classes that the rows must have, or None to find them.
    labelled : bool
        Whether the rows have labels.
    name : str
        The name of the data set.
    """
    kept, surveys = survey(source)
    texts = {name for part in surveys for name in part.categories}
    if source.categorical == "auto" and any(set(part.categories) != texts for part in surveys):
        values = {name: {v for part in surveys for v in part.categories.get(name, ())} for name in sorted(texts)}
        # A second survey is needed only if types were detected.
        check_not_identifiers(source, surveys[0].where, values, sum(part.rows for part in surveys))
        # A column may have only numbers in one part and strings in another. The merged survey decides the type for all parts.
        source = source.model_copy(update={"categorical": sorted(texts)})
        kept, surveys = survey(source)
    total = reduce(add, surveys)
    source, schema = resolve_source_and_schema(source, total, schema, labelled, name or source.display_name)
    grouped = source.groups is not None or source.qid == "use"
    graded, costed, width = source.labels == "grades", source.cost_column is not None, len(schema.feature_names)
    block_schema = BlockSchema(
        source.layout, str(source.dtype), width, False, grouped, graded, costed, bool(schema.classes)
    )
    item = np.dtype(block_schema.dtype).itemsize
    if block_schema.layout == "dense":  # a row has values, a label and a row id
        memory = total.rows * (block_schema.n_features * item + 9)
    else:
        memory = (total.stored or total.rows * block_schema.n_features) * (item + 4) + total.rows * 17
    rows = tuple(part.rows for part in surveys)
    starts = accumulate(rows, initial=0)
    numbered = tuple(replace(part, row=start) for part, start in zip(parts, starts, strict=False))
    positives = tuple(part.n_rows_of(schema.positive) for part in surveys)
    return BlockReader(
        source, schema, block_schema, rows, positives, memory, total.classes, "", numbered, "", total.missing,
        total.unknown
    ), kept  # fmt: skip


def fingerprint_of(source: Source) -> str:
    """Return a fingerprint of the version of a data set and of the options of reading: see `BlockReader`."""
    if manifest := manifest_of(source):
        return shards_digest(manifest)
    return json_digest([source.format_of().describe_files(), source.keys_for_fingerprint()])


def shards_digest(manifest: Manifest) -> str:
    """Return a fingerprint of a sharded data set: the SHA-256 of the checksums of its rows and features."""
    return json_digest([manifest.features.sha256, *(shard.sha256 for shard in manifest.shards)])
