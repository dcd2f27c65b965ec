"""Read Parquet files, and convert pandas and Arrow tables.

Only the needed columns and row groups of a Parquet file are read.

In Hive-partitioned folders, `year=2024/part.parquet` has a column `year` with one value.
"""

import contextlib
import hashlib
import numbers
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.json
import pyarrow.parquet as pq

from aucdist.data.dataset import Schema
from aucdist.data.formats.base import FilePart, Parsed
from aucdist.data.formats.source_fields import RowFilter, SourceFields
from aucdist.data.formats.table_options import TableOptions
from aucdist.data.formats.tables import parse_table
from aucdist.data.formats.text import check_names, resolve_column
from aucdist.data.storage import files
from aucdist.data.storage.guard import ALWAYS_ALLOWED, SURELY_ALLOWED, TRUSTED, check_fits, check_growth
from aucdist.errors import InputError, as_input_error, first_line

if TYPE_CHECKING:
    import pandas as pd

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
"""The folder name that Hive uses for a missing value."""
EXACT_INTEGER = re.compile(r"-?[0-9]{1,15}")
"""The largest integer up to which every integer is a float64. Other values are read as strings, and then all values of the column
are strings. pyarrow reads 32-bit integers as numbers and others as strings."""
MAX_GROWTH = 10_000
"""The largest size of a table in memory, as a multiple of the size of its file. A column that repeats one value a million times
takes only a few bytes in a file. Real tables grow less than this."""
MAX_GROWTH_OF_LARGE = 1000
"""The same limit for tables that are large in memory."""


def size_of_texts(table: pa.Table) -> int:
    """Return the bytes of all strings after dictionaries are expanded.

    One long string in a dictionary may stand for many rows.
    """
    size = 0
    for column in table.columns:
        if pa.types.is_dictionary(column.type):
            for chunk in column.chunks:
                with contextlib.suppress(pa.ArrowNotImplementedError):  # the values are not strings
                    size += pc.sum(pc.binary_length(chunk.dictionary).take(chunk.indices)).as_py() or 0
        elif pa.types.is_string_view(column.type):
            for chunk in column.chunks:  # each value takes 16 bytes, which begin with its length
                lengths = np.frombuffer(chunk.buffers()[1], np.int32)[::4]
                size += int(lengths[chunk.offset : chunk.offset + len(chunk)].sum(dtype=np.int64))
    return size


def table_digest(table: pa.Table) -> str:
    """Return a checksum of the columns that does not depend on their chunks."""
    digest = hashlib.sha256(str(table.schema.remove_metadata()).encode())
    for name in table.column_names:
        for value in pa.chunked_array([table[name].combine_chunks()]).chunks:
            digest.update(pa.record_batch([value], names=[name]).serialize())
    return digest.hexdigest()


def from_pandas(frame: "pd.DataFrame", where: str) -> pa.Table:
    """Return a DataFrame as an Arrow table without its index. Columns with values of several types become texts."""
    import pandas as pd

    frame = frame.rename(columns=str)
    names = check_names(list(frame.columns), where)
    for name, kind in zip(names, frame.dtypes, strict=True):
        if isinstance(kind, pd.SparseDtype):
            frame[name] = frame[name].astype(kind.subtype)
        elif isinstance(kind, pd.CategoricalDtype):
            values = frame[name].cat.categories
            if isinstance(values.dtype, pd.IntervalDtype):
                frame[name] = frame[name].cat.rename_categories(str)
            elif pd.api.types.is_object_dtype(values.dtype) and len(set(map(type, values))) > 1:
                frame[name] = _of_one_type(frame[name].astype(object))
        elif pd.api.types.is_object_dtype(kind):
            frame[name] = _of_one_type(frame[name])
    return pa.Table.from_pandas(frame, preserve_index=False)


def _of_one_type(column: "pd.Series") -> "pd.Series":
    """Convert a column of objects of several types to numbers if possible, and to strings otherwise."""
    import pandas as pd

    missing = np.array([pd.api.types.is_scalar(value) and pd.isna(value) for value in column], dtype=bool)
    present = column[~missing]
    if len(set(map(type, present))) <= 1:
        return column
    if all(isinstance(value, numbers.Real) for value in present):
        return pd.to_numeric(column)
    return column.map(str).where(~missing, None)


def path_values(url: str) -> dict[str, str]:
    """Return the columns that the folders above a file encode as `key=value`.

    Returns
    -------
    dict of str to str
        The value of each column, from the outermost folder to the innermost.

    Raises
    ------
    InputError
        If two of the folders name the same column.

    Examples
    --------
    >>> from aucdist.data.formats.arrow_tables import path_values
    >>> path_values("s3://bucket/a=1/rows/year=2024/city=S%C3%A3o/part-0.parquet")
    {'year': '2024', 'city': 'São'}
    """
    values: dict[str, str] = {}
    for folder in reversed((urlsplit(url).path if files.is_web(url) else url).split("/")[:-1]):
        key, equals, value = folder.partition("=")
        if not (key and equals):
            break
        key = unquote(key)
        if key in values:
            raise InputError(f"{files.shown(url)}: two folders of its path have a value of {key!r}: rename one of them")
        values[key] = unquote(value)
    return dict(reversed(values.items()))


def typed(value: str) -> int | str | None:
    """Return the value in a folder name: an integer, a text, or None if it is missing."""
    if value == HIVE_NULL:
        return None
    return int(value) if EXACT_INTEGER.fullmatch(value) else value


def text_columns(urls: Iterable[str]) -> tuple[str, ...]:
    """Return the partition columns that have a text in the path of at least one file, sorted."""
    return tuple(
        sorted({name for url in urls for name, value in path_values(url).items() if isinstance(typed(value), str)})
    )


def folder_values(part: FilePart, names: Sequence[str], texts: Collection[str] = ()) -> dict[str, pa.Scalar]:
    """Return the value of each partition column that is not in the file itself: a text, an integer, or null.

    Parameters
    ----------
    part : FilePart
        The part of a file.
    names : sequence of str
        The columns of the file.
    texts : collection of str, default=()
        Columns whose integers are strings, in addition to those of the part.
    """
    values = {}
    for name, value in path_values(part.url).items():
        known = typed(value)
        as_text = isinstance(known, str) or name in part.folder_texts or name in texts
        if name not in names:
            text = None if known is None else value
            values[name] = pa.scalar(text, pa.string()) if as_text else pa.scalar(known, pa.int64())
    return values


def parse_parquet(source: SourceFields, part: FilePart, schema: Schema | None, data: bytes | None = None) -> Parsed:
    """Read a Parquet file, or some of its row groups. Numbers and booleans become numbers; float32 stays float32.

    Parameters
    ----------
    source : SourceFields
        The source of the rows.
    part : FilePart
        Names the file in errors; its folders may stand for columns, see `aucdist.data.formats.arrow_tables.path_values`.
    schema : Schema or None
        The schema of the training data, if the file must be encoded like them.
    data : bytes, optional
        The content of the file, if it has been read.

    Raises
    ------
    InputError
        If the file is damaged, a column is neither of numbers nor declared categorical, a value is missing, not finite or
        of an unknown category, naming row (from 1) and column, or a column has another value than its folder.
    """
    with _parquet_file(part, data) as (file, parquet):
        stored = _names(parquet, part.url)
        names = check_names(stored, part.where, source)
        options, stored_as = TableOptions.of(source, schema, names, part.where), dict(zip(names, stored, strict=True))
        read, texts = ([stored_as[name] for name in columns] for columns in (options.columns, options.texts))
        table, first, where = _matching(parquet, file, source, part, read, texts)
        table = table.select(read).rename_columns(options.columns)
        return parse_table(table, options, where, lambda row, _: f"{where}, row {row + first}")


def parse_arrow(table: pa.Table, where: str, source: SourceFields, schema: Schema | None) -> Parsed:
    """Parse the columns of an Arrow table. The other parameters and the errors are those of `parse_parquet`."""
    names = check_names(table.column_names, where, source)
    options = TableOptions.of(source, schema, names, where)
    table = filtered(table, source, where).rename_columns(names)
    where += f", where {source.where}" * (source.where is not None)
    return parse_table(table, options, where, lambda row, _: f"{where}, row {row + 1}")


def filtered(table: pa.Table, source: SourceFields, where: str, of_folders: Collection[str] = ()) -> pa.Table:
    """Return the rows that meet the conditions of a source, except for conditions on partition columns."""
    conditions = [condition for condition in source.where or () if condition[0] not in of_folders]
    if not conditions:
        return table
    with _conditions_explained(where):
        return table.filter(_condition(conditions, table.column_names, where))


def read_row_groups(source: SourceFields, part: FilePart) -> pa.Table:
    """Return all columns of the row groups of a part, including partition columns. Errors are those of `parse_parquet`."""
    with _parquet_file(part) as (file, parquet):
        table = _matching(parquet, file, source, part, _names(parquet, part.url), ())[0]
        table.validate(full=True)  # checks that strings are UTF-8, and that indices are within their dictionaries
        return table


def row_group_sizes(source: SourceFields, part: FilePart) -> dict[int, int]:
    """Return the uncompressed bytes of each row group of a file, by its number.

    Row groups are left out if, by their statistics or by the folders of the file, they cannot have a row for `source.where`.
    Only the metadata at the end of the file is read.

    Parameters
    ----------
    source : SourceFields
        The source of the rows.
    part : FilePart
        The whole file.

    Raises
    ------
    InputError
        If the file cannot be read or is damaged, or if the conditions cannot be evaluated for the types of its columns.
    """
    with _parquet_file(part) as (file, parquet):
        needed = _needed_groups(parquet, file, source, part)
        return {i: parquet.metadata.row_group(i).total_byte_size for i in needed}


@contextmanager
def _parquet_file(part: FilePart, data: bytes | None = None) -> Iterator[tuple[pa.NativeFile, pq.ParquetFile]]:
    """Open a Parquet file, or the bytes of one. Exceptions of Arrow become InputErrors."""

    def say(e: BaseException) -> str:
        """Describe what is wrong with the file."""
        page = not files.is_web(part.url) and files.read_range(part.url, 0, 64).lstrip()[:1] == b"<"
        return "it is a web page" if page else first_line(e)

    kinds = pa.ArrowException, OSError, UnicodeDecodeError
    with (
        as_input_error(f"{part.where} is not a valid Parquet file", *kinds, say=say),
        files.opened(part.url) if data is None else pa.BufferReader(data) as file,
    ):
        yield file, pq.ParquetFile(file, pre_buffer=True, page_checksum_verification=True)


def _condition(conditions: Sequence[RowFilter], names: Sequence[str], where: str) -> pc.Expression:
    """Return conditions on columns as an Arrow expression."""
    for column, _, _ in conditions:
        resolve_column(names, column, where, "where")
    return pq.filters_to_expression([tuple(c) for c in conditions])


def _needed_groups(file: pq.ParquetFile, raw: pa.NativeFile, source: SourceFields, part: FilePart) -> list[int]:
    """Return the row groups of a part that may have rows which meet the conditions of the source."""
    groups = range(part.start, file.num_row_groups if part.stop is None else part.stop)
    if source.where is None:
        return list(groups)
    where, guarantee, columns = part.where, ds.scalar(True), file.schema_arrow
    for name, value in folder_values(part, columns.names).items():
        guarantee &= ds.field(name) == value if value.is_valid else ds.field(name).is_null()
        columns = columns.append(pa.field(name, value.type))
    with _conditions_explained(where):
        fragment = ds.ParquetFileFormat().make_fragment(raw, partition_expression=guarantee)
        split = fragment.split_by_row_group(_condition(source.where, columns.names, where), columns)
        needed = {group.row_groups[0].id for group in split}
    return [i for i in groups if i in needed]


def _conditions_explained(where: str) -> AbstractContextManager[None]:
    """Convert errors of Arrow about a condition that does not fit the columns to InputErrors."""
    return as_input_error(
        f"{where}: `where` cannot be evaluated for the types of its columns",
        pa.ArrowInvalid,
        pa.ArrowNotImplementedError,
    )


def _names(file: pq.ParquetFile, url: str) -> list[str]:
    """Return the columns of a file, followed by its partition columns."""
    return list(dict.fromkeys([*check_names(file.schema_arrow.names, files.shown(url)), *path_values(url)]))


def _matching(
    file: pq.ParquetFile, raw: pa.NativeFile, source: SourceFields, part: FilePart, read: Sequence[str],
    texts: Collection[str],
) -> tuple[pa.Table, int, str]:  # fmt: skip
    """Return the rows of a part that meet the source's conditions, the number of the first row, and their location for errors.

    Parameters
    ----------
    file : pq.ParquetFile
        The opened Parquet file.
    raw : pyarrow.NativeFile
        The same file as a stream of bytes.
    source : SourceFields
        The source of the rows.
    part : FilePart
        The part of a file.
    read : sequence of str
        The columns.
    texts : collection of str
        The columns whose values in the names of folders are strings.
    """
    where, added = part.where, folder_values(part, file.schema_arrow.names, texts)
    conditions_on = [column for column, _, _ in source.where or ()]
    needed = _needed_groups(file, raw, source, part)
    n_rows, n_columns = sum(file.metadata.row_group(i).num_rows for i in needed), len({*read, *conditions_on})
    cells = 8 * n_rows * n_columns
    if cells > min(max(ALWAYS_ALLOWED, MAX_GROWTH * raw.size()), max(SURELY_ALLOWED, MAX_GROWTH_OF_LARGE * raw.size())):
        raise InputError(
            f"{where}: the file has {raw.size()} bytes and claims {n_rows} rows of {n_columns} columns, which would take {cells} "
            f"bytes in memory; {TRUSTED}name the columns that are needed under `keep`, or write it without compression"
        )
    check_fits(cells, where)
    columns = [name for name in dict.fromkeys([*read, *conditions_on]) if name not in added]
    # One long string in a dictionary may stand for so many rows that expanding the column would fill the memory.
    chunks = (group.column(j) for group in map(file.metadata.row_group, needed) for j in range(group.num_columns))
    repeated = sorted(
        {
            chunk.path_in_schema
            for chunk in chunks
            if chunk.physical_type == "BYTE_ARRAY" and chunk.has_dictionary_page
            if chunk.num_values * chunk.total_uncompressed_size > ALWAYS_ALLOWED
        }
        & set(columns)
    )
    if repeated:
        file = pq.ParquetFile(
            raw, metadata=file.metadata, read_dictionary=repeated, pre_buffer=True, page_checksum_verification=True
        )
    table = file.read_row_groups(needed, columns=columns, use_threads=False)
    check_growth(raw.size(), size_of_texts(table), where, "write it without compression", MAX_GROWTH_OF_LARGE)
    for name in repeated:
        as_stored = file.metadata.schema.to_arrow_schema().field(name).type
        table = table.set_column(table.column_names.index(name), name, table[name].cast(as_stored))
    for name, value in path_values(part.url).items():
        for other in pc.unique(table[name]).to_pylist() if name in table.column_names else ():
            if other != typed(value) and (other is None or str(other) != value):
                raise InputError(
                    f"{where}, column {name!r}: the file has the value {str(other)[:80]!r}, but its folder says {value!r}; "
                    "rename the folders or the column, or list it under `drop`"
                )
    for name, scalar in added.items():
        table = table.append_column(name, pa.repeat(scalar, table.num_rows))
    first = sum(file.metadata.row_group(i).num_rows for i in range(part.start)) + 1
    if source.where is not None:
        # Conditions on partition columns were checked before.
        table, first = filtered(table, source, where, added), 1
        where = f"{where}, where {source.where}"
    return table, first, where
