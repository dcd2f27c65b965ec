"""A block as bytes: as Parquet in shards, and as a stream of Arrow while a shard is being made."""

import io
from dataclasses import dataclass
from itertools import compress
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field

from aucdist.data.block import ROW_COLUMNS, Block
from aucdist.data.formats.tables import one_array
from aucdist.data.own_files import NO_MORE_KEYS
from aucdist.errors import InputError
from aucdist.kernels.rows import CsrRows, DenseRows, Rows

MAX_STORED = 2**31 - 1  # Arrow counts the entries of a list column with 32 bits
BYTES_TRIED = 2**20  # the number of bytes that are compressed to estimate whether compression is worthwhile
MAX_COMPRESSED_SHARE = 0.7
ROWS_AT_ONCE = 4096
LIST_COLUMNS = ("indices", "values")
"""The columns with a list for each row."""


@dataclass(frozen=True)
class BlockSchema:
    """The properties that all blocks of a data set share.

    Attributes
    ----------
    layout : str
        ``dense`` or ``csr``.
    dtype : str
        ``float32`` or ``float64``.
    n_features : int
        The number of features.
    weighted : bool
        Whether rows have weights.
    grouped, graded, costed, coded : bool
        Whether rows have a group, a grade, a cost, and the number of their set of classes.
    """

    __pydantic_config__ = NO_MORE_KEYS

    layout: Annotated[str, Field(pattern="^(dense|csr)$")]
    dtype: Annotated[str, Field(pattern="^float(32|64)$")]
    n_features: Annotated[int, Field(ge=1, le=2**31 - 1)]
    weighted: bool
    grouped: bool = False
    graded: bool = False
    costed: bool = False
    coded: bool = False

    @classmethod
    def of(cls, block: Block) -> "BlockSchema":
        """Return the schema of a block."""
        layout = "csr" if isinstance(block.rows, CsrRows) else "dense"
        present = (getattr(block, name) is not None for name in ROW_COLUMNS)
        return cls(layout, str(block.rows.values.dtype), block.n_features, *present)

    @property
    def row_columns(self) -> list[str]:
        """The columns of `ROW_COLUMNS` that the rows have."""
        present = self.weighted, self.grouped, self.graded, self.costed, self.coded
        return list(compress(ROW_COLUMNS, present))

    def columns(self) -> pa.Schema:
        """Return the columns of a table of such a block."""
        item = pa.field("element", pa.from_numpy_dtype(self.dtype), nullable=False)
        index = pa.field("element", pa.int32(), nullable=False)
        kinds = {"label": pa.int8(), "row_id": pa.int64()}
        kinds |= {name: pa.from_numpy_dtype(ROW_COLUMNS[name]) for name in self.row_columns}
        if self.layout == "csr":
            kinds["indices"] = pa.list_(index)
        kinds["values"] = pa.list_(item) if self.layout == "csr" else pa.list_(item, self.n_features)
        return pa.schema([pa.field(name, kind, nullable=False) for name, kind in kinds.items()])


def block_bytes(block: Block) -> int:
    """Return the number of bytes that a block takes in memory."""
    arrays = (*block.rows, block.y, block.row_id, *(getattr(block, name) for name in ROW_COLUMNS))
    return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))


def to_table(block: Block) -> pa.Table:
    """Return a block as a table: label, row_id, weight, group, grade, cost and code (if any), indices (of CSR rows) and values.

    Raises
    ------
    InputError
        If a CSR block has more stored values than a list column may have.
    """
    schema = BlockSchema.of(block)
    columns = schema.columns()
    arrays = {"label": pa.array(block.y), "row_id": pa.array(block.row_id)}
    arrays |= {name: pa.array(getattr(block, name)) for name in schema.row_columns}
    values, kind = pa.array(np.ascontiguousarray(block.rows.values).reshape(-1)), columns.field("values").type
    if isinstance(block.rows, CsrRows):
        if len(values) > MAX_STORED:
            raise InputError(f"a block has {len(values)} stored values, more than {MAX_STORED}; use more blocks")
        offsets = pa.array(block.rows.offsets.astype(np.int32))
        arrays["indices"] = pa.ListArray.from_arrays(offsets, block.rows.indices, columns.field("indices").type)
        arrays["values"] = pa.ListArray.from_arrays(offsets, values, kind)
    else:
        arrays["values"] = pa.FixedSizeListArray.from_arrays(values, type=kind)
    return pa.Table.from_arrays(list(arrays.values()), schema=columns)


def to_parquet(block: Block) -> bytes:
    """Return a block as a Parquet file, whose bytes depend only on the block and on the version of Arrow that writes them."""
    sample = np.ascontiguousarray(block.rows.values).reshape(-1).view(np.uint8)[:BYTES_TRIED].tobytes()
    shrinks = len(pa.compress(sample, codec="lz4", asbytes=True)) < MAX_COMPRESSED_SHARE * len(sample)
    n, out = max(1, block.n_samples), io.BytesIO()
    # There is one row group, so that a column is read as one array. Even the fastest codec compresses 0/1 features well.
    pq.write_table(
        to_table(block), out, row_group_size=n, use_dictionary=False, compression="lz4" if shrinks else "none"
    )
    return out.getvalue()


def from_parquet(data: pa.Buffer, schema: BlockSchema, index: int) -> Block:
    """Return the block that `to_parquet` wrote.

    Parameters
    ----------
    data : pyarrow.Buffer
        The content of the file.
    schema : BlockSchema
        The properties that the block must have.
    index : int
        The number of the block in its data set.

    Raises
    ------
    InputError
        If the block has another schema.
    ArrowException, OSError
        If the bytes are not a Parquet file.
    """
    file = pq.ParquetFile(pa.BufferReader(data))
    if not file.schema_arrow.equals(schema.columns()):
        raise InputError(
            f"its columns are {_types_text(file.schema_arrow)}, but {_types_text(schema.columns())} are expected"
        )
    if schema.layout == "csr":
        return from_table(file.read(use_threads=False), schema, index)
    # While Arrow decodes a column of lists, it needs several times the memory of the values, and allocating new memory is slow.
    columns, end = schema.columns(), 0
    values = np.empty(file.metadata.num_rows * schema.n_features, schema.dtype)
    for batch in file.iter_batches(ROWS_AT_ONCE, columns=["values"], use_threads=False):
        begin, end = end, end + batch.num_rows * schema.n_features
        values[begin:end] = batch["values"].flatten()
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values), type=columns.field("values").type)
    return from_table(
        file.read(columns=columns.names[:-1], use_threads=False).append_column(columns.field("values"), lists),
        schema,
        index,
    )


def _types_text(columns: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in columns)


def from_table(table: pa.Table, schema: BlockSchema, index: int) -> Block:
    """Return the block of a table that `to_table` made. Its arrays are views of the table.

    Raises
    ------
    InputError
        If the indices of CSR rows do not fit the number of values or of features.
    """
    columns = {name: one_array(table[name]) for name in table.column_names}
    arrays = {
        name: column.to_numpy(zero_copy_only=False) for name, column in columns.items() if name not in LIST_COLUMNS
    }
    values = columns["values"].flatten().to_numpy(zero_copy_only=False)
    rows: Rows
    if schema.layout == "dense":
        rows = DenseRows(values.reshape(table.num_rows, schema.n_features))
    else:
        offsets, ends = (columns[name].offsets.to_numpy().astype(np.int64) for name in ("indices", "values"))
        features = columns["indices"].flatten().to_numpy(zero_copy_only=False)
        # Kernels do not check indices before they write.
        in_range = len(features) == 0 or 0 <= features.min() <= features.max() < schema.n_features
        if not in_range or not np.array_equal(np.diff(offsets), np.diff(ends)):
            raise InputError(f"its indices do not address {len(values)} values in rows of {schema.n_features} features")
        rows = CsrRows(values, features, offsets - offsets[0], schema.n_features)
    row_columns = {name: arrays[name] for name in schema.row_columns}
    return Block(rows, arrays["label"], arrays["row_id"], index=index, **row_columns)
