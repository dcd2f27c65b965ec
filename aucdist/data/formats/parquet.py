"""Parquet files of a user's own, with one feature in each column: only the columns and row groups that are needed are read.

In folders that are partitioned as Hive does, `year=2024/part.parquet` has a column `year` with one value.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from aucdist.data.dataset import Schema
from aucdist.data.formats.arrow_tables import size_of_texts
from aucdist.data.formats.base import FilePart
from aucdist.data.formats.source_fields import Condition, SourceFields
from aucdist.data.formats.table_form import TableForm
from aucdist.data.formats.tables import Table, table_of
from aucdist.data.formats.text import pick, unique
from aucdist.data.storage import files
from aucdist.data.storage.arrow_files import opened
from aucdist.data.storage.guard import ALWAYS_ALLOWED, SURELY_ALLOWED, TRUSTED, check_fits, check_growth
from aucdist.errors import InputError

NULL = "__HIVE_DEFAULT_PARTITION__"
"""The name of the folder of rows whose value is missing."""
INTEGER = re.compile(r"-?[0-9]{1,15}")
"""Integers that every float64 has. Other values are texts, and so are all of a column if one folder has a text. pyarrow takes
integers of 32 bits for numbers and others for texts."""


def path_values(url: str) -> dict[str, str]:
    """Return the columns that the folders of a file stand for: those named `key=value` that lie directly above it.

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
    >>> from aucdist.data.formats.parquet import path_values
    >>> path_values("s3://bucket/a=1/rows/year=2024/city=S%C3%A3o/part-0.parquet")
    {'year': '2024', 'city': 'São'}
    """
    found: dict[str, str] = {}
    for folder in reversed((urlsplit(url).path if files.is_web(url) else url).split("/")[:-1]):
        key, equals, value = folder.partition("=")
        if not (key and equals):
            break
        key = unquote(key)
        if key in found:
            raise InputError(f"{files.shown(url)}: two folders of its path have a value of {key!r}")
        found[key] = unquote(value)
    return dict(reversed(found.items()))


def typed(value: str) -> int | str | None:
    """Return the value of a folder: an integer, a text, or None where it is missing."""
    if value == NULL:
        return None
    return int(value) if INTEGER.fullmatch(value) else value


def text_columns(urls: Iterable[str]) -> tuple[str, ...]:
    """Return the columns that hold a text in the folders of at least one of some files, sorted."""
    values = ((name, typed(value)) for url in urls for name, value in path_values(url).items())
    return tuple(sorted({name for name, value in values if isinstance(value, str)}))


def folder_column(value: str, n_rows: int, *, as_text: bool = False) -> pa.Array:
    """Return a column that has the value of a folder in each of `n_rows` rows, integers as texts if need be."""
    of_row = typed(value)
    if as_text or isinstance(of_row, str):
        return pa.repeat(pa.scalar(None if of_row is None else value, pa.string()), n_rows)
    return pa.repeat(pa.scalar(of_row, pa.int64()), n_rows)


def can_hold(values: Mapping[str, str], conditions: Sequence[Condition], texts: Collection[str] = ()) -> bool:
    """Tell whether the conditions on the columns of folders hold; those on other columns are not looked at.

    `values`: as `path_values` returns them.
    `conditions`: as ``where`` of a source.
    `texts`: the columns whose values are texts, integers among them.
    Raises ArrowInvalid, ArrowNotImplementedError if a value cannot be compared with what a condition names.
    """
    for name, operator, operand in conditions:
        if name not in values:
            continue
        row = pa.table({name: folder_column(values[name], 1, as_text=name in texts)})
        if typed(values[name]) is None:
            row = pa.table({name: pa.array([None], pa.array(operand if isinstance(operand, list) else [operand]).type)})
        if not row.filter(pq.filters_to_expression([(name, operator, operand)])).num_rows:
            return False
    return True


def refuse_other_value(table: pa.Table, values: Mapping[str, str], where: str) -> None:
    """Do nothing if the columns of a file have the value of the folder with their name in all rows.

    Raises InputError if one has another.
    """
    for name in values.keys() & set(table.column_names):
        value = typed(values[name])
        for found in pc.unique(table[name]).to_pylist():
            if found != value and (found is None or str(found) != values[name]):
                raise InputError(
                    f"{where}, column {name!r}: the file has the value {str(found)[:80]!r}, but its folder says "
                    f"{values[name]!r}; rename the folders or the column, or list it under `drop`"
                )


# A column of one value, a million times over, takes a few bytes. Tables that mean something grow less than this.
MOST_GROWTH, MOST_GROWTH_OF_LARGE = 10_000, 1000
PANDAS_INDEX = re.compile(r"__index_level_\d+__")
"""Columns in which pandas and Arrow store the index of a data frame: row numbers, and no features."""


def parse_parquet(data: bytes, source: SourceFields, part: FilePart, schema: Schema | None) -> Table:
    """Read a Parquet file; numbers and booleans become numbers, float32 stays float32.

    `part`: names the file in errors; its folders may stand for columns, see `aucdist.data.formats.parquet.path_values`.
    `schema`: that of the training data, for a file that must be encoded like it.
    Raises InputError if the file is damaged, a column is neither of numbers nor declared categorical, a value is
        missing, not finite or of an unknown category, naming row (from 1) and column, or a column has another value
        than its folder.
    """
    with _sound(part.url):
        return _parsed(pq.ParquetFile(pa.BufferReader(data)), pa.BufferReader(data), source, part, schema)


def parse_arrow(table: pa.Table, where: str, source: SourceFields, schema: Schema | None) -> Table:
    """Return the columns of a table of Arrow, wherever it comes from. Other parameters and errors as `parse_parquet`."""
    form, read = _form(source, schema, table.column_names, where)
    if source.where is not None:
        for column, _, _ in source.where:
            pick(table.column_names, column, where, "where")
        with _conditions_explained(where):
            table = table.filter(_condition(source.where))
            where = f"{where}, where {source.where}"
    return table_of(table.select(read), form, where, lambda row, _: f"{where}, row {row + 1}")


def _form(source: SourceFields, schema: Schema | None, names: Sequence[str], where: str) -> tuple[TableForm, list[str]]:
    """Return the form of a table, and the columns that are read."""
    kept = [name for name in unique(names, where) if not PANDAS_INDEX.fullmatch(name)]
    form = TableForm.of(source, schema, names, where, kept)
    return form, list(dict.fromkeys(name for name in (*form.features, form.label, form.groups, form.cost) if name))


def parse_row_groups(source: SourceFields, part: FilePart, schema: Schema | None) -> Table:
    """Read the row groups of a part. Parameters and errors as `parse_parquet`."""
    with _sound(part.url), opened(part.url) as file:
        return _parsed(pq.ParquetFile(file, pre_buffer=True), file, source, part, schema)


def row_group_sizes(url: str, source: SourceFields, texts: Collection[str] = ()) -> dict[int, int]:
    """Return the bytes of each row group of a file, uncompressed, by its number.

    Row groups that cannot hold a row for `source.where`, by their statistics or by the folders of the file, are left out.
    Only the end of the file is read, which describes it.

    `texts`: the columns of folders that hold texts, see `aucdist.data.formats.parquet.text_columns`.
    Raises InputError if the file cannot be read or is damaged, or if the conditions do not go with its columns.
    """
    where = files.shown(url)
    with _sound(url), opened(url) as file:
        parquet = pq.ParquetFile(file)
        metadata = parquet.metadata
        names = parquet.schema_arrow.names
        needed = _needed_groups(file, source, range(metadata.num_row_groups), names, where, path_values(url), texts)
        return {i: metadata.row_group(i).total_byte_size for i in needed}


def column_types(url: str) -> dict[str, pa.DataType]:
    """Return the type of each column of a file, without those of its folders; errors as `row_group_sizes`."""
    with _sound(url), opened(url) as file:
        return {field.name: field.type for field in pq.read_schema(file)}


@contextmanager
def _sound(url: str) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as e:
        page = not files.is_web(url) and files.read_range(url, 0, min(64, files.stat(url).size)).lstrip()[:1] == b"<"
        said = "it holds a page of the web" if page else (str(e) or type(e).__name__).splitlines()[0]
        raise InputError(f"{files.shown(url)} is not a sound Parquet file: {said}") from None


def _condition(conditions: Sequence[Condition]) -> pc.Expression:
    return pq.filters_to_expression([tuple(c) for c in conditions])


def _needed_groups(
    file: pa.NativeFile,
    source: SourceFields,
    groups: Sequence[int],
    names: Sequence[str],
    where: str,
    folders: Mapping[str, str],
    texts: Collection[str],
) -> list[int]:
    """Return which of some row groups can hold rows; `names` are the columns of the file itself."""
    if source.where is None:
        return list(groups)
    added = {name: value for name, value in folders.items() if name not in names}
    for column, _, _ in source.where:
        pick([*names, *added], column, where, "where")
    with _conditions_explained(where):
        if not can_hold(added, source.where, texts):
            return []
        of_file = [c for c in source.where if c[0] not in added]
        if not of_file:
            return list(groups)
        condition = _condition(of_file)
        fragment = ds.ParquetFileFormat().make_fragment(file)
        found = {group.row_groups[0].id for group in fragment.split_by_row_group(filter=condition)}
    return [i for i in groups if i in found]


@contextmanager
def _conditions_explained(where: str) -> Iterator[None]:
    """Turn Arrow's errors about a condition that does not go with the columns into an `InputError`."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as e:
        raise InputError(f"{where}: `where` does not go with its columns: {str(e).splitlines()[0]}") from None


def _parsed(
    file: pq.ParquetFile, raw: pa.NativeFile, source: SourceFields, part: FilePart, schema: Schema | None
) -> Table:
    where, folders = files.shown(part.url), path_values(part.url)
    of_file = unique(file.schema_arrow.names, where)
    added = {name: value for name, value in folders.items() if name not in of_file}
    form, read = _form(source, schema, [*of_file, *added], where)
    asked = [column for column, _, _ in source.where or ()]
    wanted = range(part.start, file.num_row_groups if part.stop is None else part.stop)
    needed = _needed_groups(raw, source, wanted, of_file, where, folders, part.folder_texts)
    _refuse_bomb(file.metadata, needed, len({*read, *asked}), raw.size(), where)
    columns = [name for name in dict.fromkeys([*read, *asked]) if name not in added]
    if repeated := _repeated(file.metadata, needed, columns):
        file = pq.ParquetFile(raw, metadata=file.metadata, read_dictionary=repeated, pre_buffer=True)
    table = file.read_row_groups(needed, columns=columns, use_threads=False)
    check_growth(raw.size(), size_of_texts(table), where, "write it without compression", MOST_GROWTH_OF_LARGE)
    for name in repeated:
        as_stored = file.metadata.schema.to_arrow_schema().field(name).type
        table = table.set_column(table.column_names.index(name), name, table[name].cast(as_stored))
    refuse_other_value(table, folders, where)
    texts = {*part.folder_texts, *form.texts}
    for name in added:
        table = table.append_column(name, folder_column(added[name], table.num_rows, as_text=name in texts))
    first = sum(file.metadata.row_group(i).num_rows for i in range(part.start)) + 1
    if source.where is not None:
        with _conditions_explained(where):
            rest = [c for c in source.where if c[0] not in added]  # the folders were asked for the others
            table, first = table.filter(_condition(rest)) if rest else table, 1
            where = f"{where}, where {source.where}"
    return table_of(table.select(read), form, where, lambda row, _: f"{where}, row {row + first}")


def _refuse_bomb(metadata: pq.FileMetaData, groups: Sequence[int], n_columns: int, size: int, where: str) -> None:
    """Refuse what would fill the memory, before it does."""
    rows = sum(metadata.row_group(i).num_rows for i in groups)
    cells, limit = 8 * rows * n_columns, max(ALWAYS_ALLOWED, MOST_GROWTH * size)
    if cells > min(limit, max(SURELY_ALLOWED, MOST_GROWTH_OF_LARGE * size)):
        raise InputError(
            f"{where}: {size} bytes state {rows} rows of {n_columns} columns, which take more than {cells - 1} bytes in memory; "
            f"{TRUSTED}name the columns that are needed under `keep`, or write it without compression"
        )
    check_fits(cells, where)


def _repeated(metadata: pq.FileMetaData, groups: Sequence[int], columns: Collection[str]) -> list[str]:
    """Return the columns of texts in whose dictionaries a long one may stand for so many rows that they fill the memory."""
    found = set()
    for group in map(metadata.row_group, groups):
        for chunk in map(group.column, range(group.num_columns)):
            texts = chunk.physical_type == "BYTE_ARRAY" and chunk.has_dictionary_page
            if texts and chunk.num_values * chunk.total_uncompressed_size > ALWAYS_ALLOWED:
                found.add(chunk.path_in_schema)
    return sorted(found & set(columns))
