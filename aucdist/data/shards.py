"""Shards: blocks on disk as Parquet files, and a manifest that says what must be in them.

A shard is named after its content and the manifest is written last, so that whoever reads a data set while it is being
replaced finds either the old one or the new one.
"""

import hashlib
import io
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from aucdist.data import files
from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.errors import InputError
from aucdist.kernels.rows import CsrRows, DenseRows, Rows

FORMAT = 1
MANIFEST = "manifest.json"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
MAX_STORED = 2**31 - 1  # Arrow counts the entries of a list column in 32 bits


@dataclass(frozen=True)
class Shard:
    """One file of a data set: its name in the folder, rows, positives among them, size in bytes, and SHA-256."""

    file: str
    rows: int
    positives: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What a sharded data set consists of.

    Attributes
    ----------
    format : int
        Version of the layout on disk.
    layout : str
        ``dense`` or ``csr``.
    dtype : str
        ``float32`` or ``float64``.
    n_samples, n_features, n_pos, n_neg : int
        Totals.
    schema : Schema
    shards : tuple of Shard
        In the order of the blocks.
    """

    format: int
    layout: str
    dtype: str
    n_samples: int
    n_features: int
    n_pos: int
    n_neg: int
    schema: Schema
    shards: tuple[Shard, ...]


def write_shards(blocks: Sequence[Block], schema: Schema, url: str) -> list[str]:
    """Write blocks as a sharded data set, each block as one shard.

    Parameters
    ----------
    blocks : sequence of Block
        Of one layout, type and number of features. A block without rows is legal.
    schema : Schema
    url : str
        A folder: a path or an fsspec URL. A data set that is there already is replaced; its shards stay behind.

    Returns
    -------
    list of str
        The URLs of the shards.

    Raises
    ------
    InputError
        If the blocks do not go together, or if the place is not writable or cannot be reached.
    """
    if not blocks:
        raise InputError("there are no blocks to write")
    if len(schema.feature_names) != blocks[0].n_features:
        raise InputError(f"{len(schema.feature_names)} feature names for {blocks[0].n_features} features")
    kinds = {(type(b.rows), b.rows.values.dtype, b.n_features, b.weight is None) for b in blocks}
    if len(kinds) > 1:
        raise InputError("blocks of one data set must agree in layout, type, number of features and having weights")
    shards = []
    for i, block in enumerate(blocks):
        data = _to_parquet(block)
        digest = hashlib.sha256(data).hexdigest()
        shard = Shard(f"shard-{i:05d}-{digest[:16]}.parquet", block.n_samples, _n_pos(block), len(data), digest)
        files.write_bytes(_below(url, shard.file), data)
        shards.append(shard)
    n_samples, n_pos = (sum(getattr(shard, key) for shard in shards) for key in ("rows", "positives"))
    manifest = Manifest(
        FORMAT, "csr" if isinstance(blocks[0].rows, CsrRows) else "dense", str(blocks[0].rows.values.dtype),
        n_samples, blocks[0].n_features, n_pos, n_samples - n_pos, schema, tuple(shards),
    )  # fmt: skip
    files.write_bytes(_below(url, MANIFEST), json.dumps(asdict(manifest), indent=1).encode())
    return [_below(url, shard.file) for shard in shards]


def read_manifest(url: str) -> Manifest:
    """Read the manifest of a sharded data set.

    Parameters
    ----------
    url : str
        The folder.

    Raises
    ------
    InputError
        If there is none, or if it is damaged, of a newer version, or names files outside its folder.
    """
    where = files.shown(_below(url, MANIFEST))
    try:
        content = json.loads(files.read_bytes(_below(url, MANIFEST)))
        version = content["format"]
        if isinstance(version, int) and version > FORMAT:
            raise InputError(f"{where} has format {version}; this aucdist reads up to {FORMAT}. Install a newer one")
        if version != FORMAT:
            raise ValueError(f"{version!r} is no format")
        manifest = _manifest(content)
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise InputError(f"{where} is damaged: {type(e).__name__}: {e}") from None
    for shard in manifest.shards:
        if not NAME.fullmatch(shard.file):
            raise InputError(f"{where}: {shard.file!r} is not the name of a file in its folder")
    return manifest


def _manifest(content: dict[str, Any]) -> Manifest:
    shards = tuple(Shard(**shard) for shard in content["shards"])
    manifest = Manifest(**content | {"schema": Schema.from_json(content["schema"]), "shards": shards})
    totals = (sum(s.rows for s in shards), sum(s.positives for s in shards))
    if totals != (manifest.n_samples, manifest.n_pos) or manifest.n_neg != manifest.n_samples - manifest.n_pos:
        raise ValueError("the totals are not the sums over the shards")
    if manifest.layout not in ("dense", "csr") or len(manifest.schema.feature_names) != manifest.n_features:
        raise ValueError("layout or number of features is wrong")
    return manifest


def read_shard(url: str, index: int) -> Block:
    """Read one shard as a block.

    Parameters
    ----------
    url : str
        The folder of the data set.
    index : int
        The shard's place in it, which becomes the block's.

    Returns
    -------
    Block
        Its arrays are views of the file's bytes where these have the right form, and then not writable.

    Raises
    ------
    InputError
        If there is no such shard, or if it is missing, truncated or altered.
    """
    manifest = read_manifest(url)
    if not 0 <= index < len(manifest.shards):
        raise InputError(f"{files.shown(url)} has {len(manifest.shards)} shards, from 0; there is no number {index}")
    shard = manifest.shards[index]
    where = files.shown(_below(url, shard.file))
    data = files.read_bytes(_below(url, shard.file))
    if len(data) != shard.bytes or hashlib.sha256(data).hexdigest() != shard.sha256:
        raise InputError(f"{where} is truncated or altered: its size or checksum is not the one in {MANIFEST}")
    table = pq.read_table(pa.BufferReader(data), use_threads=False)
    rows = (
        _csr_rows(table, manifest.n_features) if manifest.layout == "csr" else _dense_rows(table, manifest.n_features)
    )
    weight = _array(table, "weight") if "weight" in table.column_names else None
    block = Block(rows, _array(table, "label"), _array(table, "row_id"), weight, index)
    if (block.n_samples, _n_pos(block), str(rows.values.dtype)) != (shard.rows, shard.positives, manifest.dtype):
        raise InputError(f"{where}: its rows, positives or type are not those in {MANIFEST}")
    return block


def _to_parquet(block: Block) -> bytes:
    def column(name: str, values: pa.Array) -> tuple[pa.Field, pa.Array]:
        return pa.field(name, values.type, nullable=False), values

    columns = [column("label", pa.array(block.y)), column("row_id", pa.array(block.row_id))]
    if block.weight is not None:
        columns.append(column("weight", pa.array(block.weight)))
    values = pa.array(np.ascontiguousarray(block.rows.values).reshape(-1))
    item = pa.field("item", values.type, nullable=False)
    if isinstance(block.rows, CsrRows):
        if len(values) > MAX_STORED:
            raise InputError(f"a block has {len(values)} stored values, more than {MAX_STORED}; use more blocks")
        offsets = pa.array(block.rows.offsets.astype(np.int32))
        indices = pa.field("item", pa.int32(), nullable=False)
        columns.append(column("indices", pa.ListArray.from_arrays(offsets, block.rows.indices, pa.list_(indices))))
        columns.append(column("values", pa.ListArray.from_arrays(offsets, values, pa.list_(item))))
    else:
        kind = pa.list_(item, block.n_features)
        columns.append(column("values", pa.FixedSizeListArray.from_arrays(values, type=kind)))
    table = pa.Table.from_arrays([values for _, values in columns], schema=pa.schema([field for field, _ in columns]))
    out = io.BytesIO()
    # One row group, so that a column comes back in one piece; 0/1 features shrink well even by the fastest codec.
    pq.write_table(table, out, row_group_size=max(1, block.n_samples), use_dictionary=False, compression="lz4")
    return out.getvalue()


def _dense_rows(table: pa.Table, n_features: int) -> Rows:
    values = _whole(table, "values").flatten().to_numpy(zero_copy_only=False)
    return DenseRows(values.reshape(table.num_rows, n_features))


def _csr_rows(table: pa.Table, n_features: int) -> Rows:
    indices, values = _whole(table, "indices"), _whole(table, "values")
    offsets = indices.offsets.to_numpy().astype(np.int64)
    return CsrRows(
        values.flatten().to_numpy(zero_copy_only=False), indices.flatten().to_numpy(zero_copy_only=False),
        offsets - offsets[0], n_features,
    )  # fmt: skip


def _array(table: pa.Table, name: str) -> np.ndarray:
    return _whole(table, name).to_numpy(zero_copy_only=False)


def _whole(table: pa.Table, name: str) -> pa.Array:
    """Return a column as one array: where it is in one piece, that piece itself."""
    column = table[name]
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _n_pos(block: Block) -> int:
    return int((block.y == 1).sum())


def _below(url: str, name: str) -> str:
    return f"{url.rstrip('/')}/{name}"
