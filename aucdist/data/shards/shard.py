"""Shards: blocks on disk as Parquet files, each named after its content. See `aucdist.data.shards.manifest` for the folder."""

import hashlib
import zlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.shards.block_file import ColumnStatistics, Form, from_parquet, nbytes, to_parquet
from aucdist.data.shards.manifest import Manifest, Shard, StoredFile, below, commit, read_manifest, read_statistics
from aucdist.data.storage import files
from aucdist.data.storage.files import read_buffer
from aucdist.errors import InputError
from aucdist.kernels.rows import CsrRows


def write_shards(blocks: Sequence[Block], schema: Schema, url: str) -> list[str]:
    """Write blocks as a sharded data set, each block as one shard.

    `blocks`: of one layout, type and number of features. A block without rows is legal.
    `url`: a folder: a path or an fsspec URL. A data set that is there already is replaced; its shards are not removed.
    Returns the URLs of the shards.
    Raises InputError if the blocks do not go together, or if the folder is not writable or cannot be reached.
    """
    if not blocks:
        raise InputError("there are no blocks to write")
    form = Form.of(blocks[0])
    if any(Form.of(block) != form for block in blocks):
        raise InputError("blocks of one data set must agree in layout, type, number of features and having weights")
    if len(schema.feature_names) != form.n_features:
        raise InputError(f"{len(schema.feature_names)} feature names for {form.n_features} features")
    manifest = commit(url, schema, form, [write_shard(block, url, i) for i, block in enumerate(blocks)])
    return [manifest.url_of(shard) for shard in manifest.shards]


def write_shard(block: Block, url: str, index: int) -> Shard:
    """Write one shard, and return its entry in the manifest that is still to be written.

    `index`: the shard's number among the others.
    Raises InputError if the folder is not writable or cannot be reached.
    """
    data, values_at = to_parquet(block)
    stored = StoredFile.of(data, f"shard-{index:05d}")
    files.write_bytes(below(url, stored.file), data)
    return Shard(
        stored.file, stored.size, stored.sha256, block.n_samples, n_pos(block), nbytes(block), zlib.crc32(data), values_at,
    )  # fmt: skip


def read_shard(url: str, index: int) -> Block:
    """Read one shard as a block.

    `url`: the folder of the data set, or one generation of it: `Manifest.url`. A fit reads shards more than once, and
        must name the generation, for the data set may be replaced meanwhile.
    `index`: the shard's number, which becomes the block's.
    Its arrays may be views of what Arrow decoded, and then are not writable.
    Raises InputError if there is no such shard, or if it is missing, truncated or altered.
    """
    manifest = read_manifest(url)
    shard, data = _stored(manifest, index)
    if len(data) != shard.size or zlib.crc32(data) != shard.crc32:
        raise _altered(manifest, shard)
    return _decoded(data, manifest, shard, index)


def verify_shard(url: str, index: int) -> str | None:
    """Read one shard, check it against all that the manifest states, and return what is wrong, if anything.

    Size, CRC-32 and SHA-256 are compared. Labels, weights, row ids and values must be possible ones, and the indices of CSR rows
    in order. Rows, positives, memory and the offset of the values must be those of the manifest, and the values must lie within
    the ranges of their columns.

    `url` and `index`: as for `read_shard`.
    """
    try:
        manifest = read_manifest(url)
        shard, data = _stored(manifest, index)
        if (len(data), zlib.crc32(data)) != (shard.size, shard.crc32) or (
            hashlib.sha256(data).hexdigest() != shard.sha256
        ):
            raise _altered(manifest, shard)
        block = _decoded(data, manifest, shard, index)
        fault = _fault(block, shard, manifest) or _fault_of_run(data, block, manifest, shard, index)
        statistics = read_statistics(manifest)
        if not fault and statistics is not None and not statistics.include(ColumnStatistics.of(block)):
            fault = "a value lies beyond the range of its column in the manifest"
        if fault:
            raise InputError(f"{files.shown(manifest.url_of(shard))}: {fault}")
    except InputError as e:
        return str(e)
    return None


def _fault(block: Block, shard: Shard, manifest: Manifest) -> str | None:
    """Return what is wrong with the rows of a block, if anything."""
    rows = block.rows
    if not np.isin(block.y, (-1, 1)).all():
        return "a label is neither -1 nor +1"
    if np.isinf(rows.values).any():
        return "a value is not finite"
    if block.weight is not None and not (np.isfinite(block.weight) & (block.weight >= 0)).all():
        return "a weight is negative or not finite"
    if block.grade is not None and not np.isfinite(block.grade).all():
        return "a grade is not finite"
    if block.cost is not None and not (np.isfinite(block.cost) & (block.cost >= 0)).all():
        return "a cost is negative or not finite"
    n_sets = len(manifest.schema.sets or manifest.schema.classes)
    if block.code is not None and not ((block.code >= 0) & (block.code < n_sets)).all():
        return f"the place of a row's set of classes is not among the {n_sets} of the manifest"
    if (block.row_id < 0).any() or len(np.unique(block.row_id)) < block.n_samples:
        return "row ids are negative, or two rows have the same"
    if nbytes(block) != shard.memory:
        return f"its rows take {nbytes(block)} bytes of memory, but the manifest states {shard.memory}"
    if isinstance(rows, CsrRows):
        step = np.diff(rows.indices.astype(np.int64))
        starts = rows.offsets[1:-1][(rows.offsets[1:-1] > 0) & (rows.offsets[1:-1] < len(rows.indices))]
        step[starts - 1] = 1
        if (step <= 0).any():
            return "the indices of a row do not ascend"
    return None


def _fault_of_run(data: pa.Buffer, block: Block, manifest: Manifest, shard: Shard, index: int) -> str | None:
    """Compare values that were read as one run of bytes with those that Parquet decodes."""
    if shard.values_at is None:
        return None
    try:
        decoded = from_parquet(data, manifest.form, index)
    except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError) as e:  # an InputError is a ValueError
        return f"the column of values cannot be decoded: {type(e).__name__}: {e}"
    same = np.array_equal(decoded.rows.values, block.rows.values, equal_nan=True)
    return None if same else f"the values at byte {shard.values_at} are not those of the column"


def n_pos(block: Block) -> int:
    """Return the number of positive rows."""
    return int((block.y == 1).sum())


def _stored(manifest: Manifest, index: int) -> tuple[Shard, pa.Buffer]:
    if not 0 <= index < len(manifest.shards):
        shown = files.shown(manifest.folder)
        raise InputError(f"{shown} has {len(manifest.shards)} shards, from 0; there is no number {index}")
    shard = manifest.shards[index]
    return shard, read_buffer(manifest.url_of(shard))


def _decoded(data: pa.Buffer, manifest: Manifest, shard: Shard, index: int) -> Block:
    where = files.shown(manifest.url_of(shard))
    try:
        block = from_parquet(data, manifest.form, index, shard.values_at)
    except InputError as e:
        raise InputError(f"{where}: {e}") from None
    except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError) as e:
        raise InputError(f"{where} cannot be read: {type(e).__name__}: {e}") from None
    if (block.n_samples, n_pos(block)) != (shard.rows, shard.positives):
        raise InputError(f"{where}: its rows or positives are not those in the manifest")
    return block


def _altered(manifest: Manifest, shard: Shard) -> InputError:
    return InputError(
        f"{files.shown(manifest.url_of(shard))} is truncated or altered: its size or checksum is not the one in the manifest"
    )
