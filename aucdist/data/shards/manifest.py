"""A sharded data set: its shards, its manifest with their checksums, and how a new data set replaces an old one.

The folder of a data set has

* ``shard-00000-<digest>.parquet``, ...: the rows;
* ``features-<digest>.parquet``: a row for each feature, with its name (earlier versions also wrote statistics);
* ``manifest-<digest>.json``: a generation of the data set, with the checksums of the files above;
* ``CURRENT``: the name of the manifest in use.

Every file but ``CURRENT`` is named after its content and written once. So a process that reads a data set while it is replaced
still reads the old data set to its end. A generation is committed by creating its manifest and then pointing ``CURRENT`` to it.
"""

import functools
import io
import json
import re
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.formats.source_fields import SourceFields
from aucdist.data.own_files import NO_MORE_KEYS, Count, FileName, Sha256, parse_any, parse_checked
from aucdist.data.shards.block_file import (
    BlockSchema,
    block_bytes,
    from_parquet,
    to_parquet,
)
from aucdist.data.storage import files
from aucdist.errors import InputError, Json, as_input_error
from aucdist.kernels.rows import CsrRows

FORMAT = 2
SHARD_AGAIN = "Copy the shards again, or run `aucdist shard` again"
CURRENT = "CURRENT"
MANIFEST_NAME = re.compile(r"manifest-([0-9a-f]{16})\.json")
SHARD_NAME = re.compile(r".*/shard-\d{5}-[0-9a-f]{16}\.parquet")


@dataclass(frozen=True)
class StoredFile:
    """A file of a data set: its name in the folder, its size in bytes, and its SHA-256."""

    __pydantic_config__ = NO_MORE_KEYS

    file: FileName
    size: Count
    sha256: Sha256

    @classmethod
    def of(cls, data: bytes, stem: str, suffix: str = "parquet") -> "StoredFile":
        """Name a file after its content."""
        digest = files.sha256_of(data)
        return cls(f"{stem}-{digest[:16]}.{suffix}", len(data), digest)


@dataclass(frozen=True)
class Shard(StoredFile):
    """A file of rows.

    Attributes
    ----------
    rows : int
        The number of rows.
    positives : int
        The number of positive rows.
    memory : int
        The number of bytes of its block in memory.
    crc32 : int
        A checksum that is quick enough to be compared each time the shard is read.
    values_at : int or None
        The offset of uncompressed dense values in data sets of older versions. It is not used.
    """

    rows: Count
    positives: Count
    memory: Count
    crc32: Count
    values_at: Count | None = None


@dataclass(frozen=True)
class Manifest:
    """The description of a sharded data set. In the file, the fields of `block_schema` and `schema` are at the top level.

    Attributes
    ----------
    format : int
        The version of the layout on disk.
    block_schema : BlockSchema
        The properties that all blocks share.
    schema : Schema
        The schema without the names of the features, which are in a separate file (`read_schema`).
    n_samples, n_pos, n_neg : int
        The total numbers of rows, of positive rows and of negative rows.
    origin : dict
        The origin of the rows, as JSON values: sources with their sizes and ETags, options of reading, the seed and so on.
    features : StoredFile
        The file with the names of the features.
    shards : tuple of Shard
        The shards, in the order of the blocks.
    url : str
        The URL of this generation. It is not in the file.
    """

    __pydantic_config__ = NO_MORE_KEYS

    format: int
    block_schema: BlockSchema
    schema: Schema
    n_samples: Count
    n_pos: Count
    n_neg: Count
    origin: Json
    features: StoredFile
    shards: tuple[Shard, ...]
    url: str = field(default="", compare=False)

    @property
    def folder(self) -> str:
        """The folder of the data set."""
        return self.url.rpartition("/")[0]

    def sizes(self) -> Json:
        """Return the layout, the type of the values, and the number of shards and their bytes, as JSON values."""
        return {
            "layout": self.block_schema.layout,
            "dtype": self.block_schema.dtype,
            "shards": len(self.shards),
            "bytes": sum(shard.size for shard in self.shards),
            "memory": sum(shard.memory for shard in self.shards),
        }

    def url_of(self, stored: StoredFile) -> str:
        """Return the URL of a file of the data set."""
        return f"{self.folder}/{stored.file}"


def commit(
    url: str,
    schema: Schema,
    block_schema: BlockSchema,
    shards: Sequence[Shard],
    *,
    origin: Json | None = None,
) -> Manifest:
    """Write the manifest of shards that have been written. This makes them the data set of a folder.

    Raises
    ------
    InputError
        If the folder is not writable or cannot be reached.
    """
    out = io.BytesIO()
    pq.write_table(pa.table({"name": pa.array(schema.feature_names, pa.string())}), out, compression="zstd")
    data = out.getvalue()
    features = StoredFile.of(data, "features")
    files.write_bytes(f"{url}/{features.file}", data)
    manifest = Manifest(
        FORMAT, block_schema, replace(schema, feature_names=()), *_totals(shards), origin or {}, features, tuple(shards)
    )
    content = asdict(manifest)
    content |= content.pop("block_schema") | content.pop("schema")
    for key in ("url", "feature_names", "dates", "grouped", "graded", "costed", "coded", "classes", "topics", "sets"):
        if not content[key]:
            del content[key]  # older versions cannot read this key
    data = json.dumps(content, indent=1).encode()
    name = StoredFile.of(data, "manifest", "json").file
    if not files.create_bytes(f"{url}/{name}", data):
        raise InputError(f"{files.shown(url)}/{name} is damaged; remove it, and start again")
    files.write_bytes(f"{url}/{CURRENT}", f"{name}\n".encode())
    return replace(manifest, url=f"{url}/{name}")


def _totals(shards: Sequence[Shard]) -> tuple[int, int, int]:
    """Return the numbers of all rows, of positive rows and of negative rows."""
    n_samples, n_pos = (sum(getattr(shard, key) for shard in shards) for key in ("rows", "positives"))
    return n_samples, n_pos, n_samples - n_pos


def manifest_of(source: SourceFields) -> Manifest | None:
    """Return the manifest of a sharded source, or None for other sources."""
    return read_manifest(files.require(str(source.source))) if source.is_sharded else None


def read_manifest(url: str) -> Manifest:
    """Read the manifest of a sharded data set.

    Parameters
    ----------
    url : str
        The folder, which means its current generation, or the `Manifest.url` of one generation.

    Raises
    ------
    InputError
        If there is no manifest, or if it is damaged, has another version, or names files outside its folder.
    """
    url = url.rstrip("/")
    if MANIFEST_NAME.fullmatch(url.rpartition("/")[2]):
        return _generation(url)
    pointer = files.read_bytes(f"{url}/{CURRENT}").decode(errors="replace").strip()
    if not MANIFEST_NAME.fullmatch(pointer):
        raise InputError(
            f"{files.shown(url)}/{CURRENT} is damaged: {pointer[:80]!r} is not the name of a manifest. {SHARD_AGAIN}"
        )
    return _generation(f"{url}/{pointer}")


@functools.lru_cache(maxsize=4)  # reading any block needs the manifest, and a generation never changes
def _generation(url: str) -> Manifest:
    where = files.shown(url)
    data = files.read_bytes(url)
    if MANIFEST_NAME.fullmatch(url.rpartition("/")[2])[1] != files.sha256_of(data)[:16]:  # type: ignore[index]
        raise InputError(f"{where} is damaged: its checksum is not the one in its name. {SHARD_AGAIN}")
    version = parse_checked(data, _Version, where).format
    if version > FORMAT:
        raise InputError(
            f"{where} has format {version}; this aucdist reads up to {FORMAT}. Install a newer version of aucdist"
        )
    if version != FORMAT:
        raise InputError(f"{where} has format {version}, which is too old to be read; shard the data again")
    content: Json = parse_any(data, where)
    content["feature_names"] = ()
    for key, kind in {"block_schema": BlockSchema, "schema": Schema}.items():
        content[key] = {f.name: content.pop(f.name) for f in fields(kind) if f.name in content}
    manifest = replace(parse_checked(json.dumps(content).encode(), Manifest, where), url=url)
    shards = manifest.shards
    if _totals(shards) != (manifest.n_samples, manifest.n_pos, manifest.n_neg):
        raise InputError(f"{where} is damaged: the totals are not the sums over the shards. {SHARD_AGAIN}")
    if not shards:
        raise InputError(f"{where} is damaged: it has no shards. {SHARD_AGAIN}")
    return manifest


class _Version(BaseModel):
    format: int


def read_schema(manifest: Manifest) -> Schema:
    """Read the names of the features and classes of a data set.

    Raises
    ------
    InputError
        If the file with the features is missing or altered, or if its names are damaged.
    """
    url = manifest.url_of(manifest.features)
    data, where = files.read_bytes(url), files.shown(url)
    if files.sha256_of(data) != manifest.features.sha256:
        raise InputError(f"{where} is truncated or altered: its checksum is not the one in the manifest. {SHARD_AGAIN}")
    with as_input_error(f"{where} is not a valid Parquet file", pa.ArrowException, OSError):
        table = pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)
    if table.num_rows != manifest.block_schema.n_features:
        raise InputError(
            f"{where} has {table.num_rows} features, but the manifest says {manifest.block_schema.n_features}. {SHARD_AGAIN}"
        )
    if "name" not in table.column_names or table["name"].type != pa.string() or table["name"].null_count:
        raise InputError(f"{where} is damaged: it has no column of names. {SHARD_AGAIN}")
    names = tuple(table["name"].to_pylist())
    if len(set(names)) < len(names) or "" in names:
        raise InputError(f"{where} is damaged: two features have the same name, or one has none. {SHARD_AGAIN}")
    return replace(manifest.schema, feature_names=names)


def write_shards(blocks: Sequence[Block], schema: Schema, url: str) -> Manifest:
    """Write blocks as a sharded data set, each block as one shard.

    Parameters
    ----------
    blocks : sequence of Block
        At least one block. All have the same layout, type and number of features. A block may have no rows.
    schema : Schema
        The names of features and classes.
    url : str
        A folder, as a path or an fsspec URL. An existing data set is replaced, but its shards are not removed.

    Returns
    -------
    Manifest
        The manifest.

    Raises
    ------
    InputError
        If the folder is not writable or cannot be reached.
    """
    url = url.rstrip("/")
    return commit(
        url, schema, BlockSchema.of(blocks[0]), [write_shard(block, url, i) for i, block in enumerate(blocks)]
    )


def write_shard(block: Block, url: str, index: int) -> Shard:
    """Write one shard, and return its entry in the manifest that is still to be written.

    Parameters
    ----------
    block : Block
        The rows.
    url : str
        The folder of the shards, a path or URL.
    index : int
        The number of the shard.

    Raises
    ------
    InputError
        If the folder is not writable or cannot be reached.
    """
    data = to_parquet(block)
    stored = StoredFile.of(data, f"shard-{index:05d}")
    files.write_bytes(f"{url}/{stored.file}", data)
    return Shard(
        **vars(stored), rows=block.n_samples, positives=block.n_pos, memory=block_bytes(block), crc32=zlib.crc32(data)
    )


def read_shard(url: str, index: int, *, by_sha256: bool = False) -> Block:
    """Read one shard as a block. Its arrays may be views of what Arrow decoded, and are then read-only.

    Parameters
    ----------
    url : str
        The folder of the data set, or one generation of it (`Manifest.url`). A fit reads shards more than once and must name
        the generation, because the data set may be replaced meanwhile.
    index : int
        The number of the shard, which becomes that of the block.
    by_sha256 : bool, default=False
        Whether to compare the SHA-256 as well, and not only the size and the CRC-32.

    Returns
    -------
    Block

    Raises
    ------
    InputError
        If there is no such shard, or if it is missing, truncated or altered.
    """
    manifest = read_manifest(url)
    if not 0 <= index < len(manifest.shards):
        raise InputError(
            f"there is no shard {index} in {files.shown(manifest.folder)}: its {len(manifest.shards)} shards are numbered from 0"
        )
    shard = manifest.shards[index]
    data, where = files.read_buffer(manifest.url_of(shard)), files.shown(manifest.url_of(shard))
    is_intact = (len(data), zlib.crc32(data)) == (shard.size, shard.crc32)
    if not is_intact or (by_sha256 and files.sha256_of(data) != shard.sha256):
        raise InputError(
            f"{where} is truncated or altered: its size or checksum is not the one in the manifest. {SHARD_AGAIN}"
        )
    try:
        block = from_parquet(data, manifest.block_schema, index)
    except InputError as e:
        raise InputError(f"{where} is damaged: {e}. {SHARD_AGAIN}") from None
    except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError) as e:
        raise InputError(f"{where} cannot be read: {type(e).__name__}: {e}. {SHARD_AGAIN}") from None
    if (block.n_samples, block.n_pos) != (shard.rows, shard.positives):
        raise InputError(
            f"{where} is damaged: its numbers of rows and positives are not those in the manifest. {SHARD_AGAIN}"
        )
    return block


def verify_shard(url: str, index: int) -> str | None:
    """Read one shard, compare it with the manifest, and return what is wrong, if anything.

    Size, CRC-32 and SHA-256 are compared. Labels, weights, row ids and values must be valid, and the indices of CSR rows must
    ascend. The numbers of rows, positives and bytes must be those of the manifest.

    Parameters
    ----------
    url : str
        As for `read_shard`.
    index : int
        As for `read_shard`.
    """
    try:
        manifest = read_manifest(url)
        block, shard = read_shard(manifest.url, index, by_sha256=True), manifest.shards[index]
        fault = _fault(block, shard, manifest)
        return f"{files.shown(manifest.url_of(shard))}: {fault}. {SHARD_AGAIN}" if fault else None
    except InputError as e:
        return str(e)


def _fault(block: Block, shard: Shard, manifest: Manifest) -> str | None:
    """Describe what is wrong with the rows of a block. Return None if they are valid."""
    rows = block.rows
    if not np.isin(block.y, (-1, 1)).all():
        return "a label is neither -1 nor +1"
    if np.isinf(rows.values).any():
        return "a value is not finite"
    for name in ("weight", "cost"):
        values = getattr(block, name)
        if values is not None and not (np.isfinite(values) & (values >= 0)).all():
            return f"a {name} is negative or not finite"
    if block.grade is not None and not np.isfinite(block.grade).all():
        return "a grade is not finite"
    n_sets = len(manifest.schema.sets or manifest.schema.classes)
    if block.code is not None and not ((block.code >= 0) & (block.code < n_sets)).all():
        return f"the number of a row's set of classes is not among the {n_sets} of the manifest"
    if (block.row_id < 0).any() or len(np.unique(block.row_id)) < block.n_samples:
        return "row ids are negative, or two rows have the same"
    if block_bytes(block) != shard.memory:
        return f"its rows take {block_bytes(block)} bytes of memory, but the manifest states {shard.memory}"
    if isinstance(rows, CsrRows):
        step = np.diff(rows.indices.astype(np.int64))
        starts = rows.offsets[1:-1][(rows.offsets[1:-1] > 0) & (rows.offsets[1:-1] < len(rows.indices))]
        step[starts - 1] = 1
        if (step <= 0).any():
            return "the indices of a row do not ascend"
    return None
