"""Parquet files of a user's own, with one feature in each column: only the columns and row groups that are needed are read."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from aucdist.data.dataset import Schema
from aucdist.data.formats.dates import refuse_dates
from aucdist.data.formats.delimited import categorical_in, cost_in, dates_in, features_in, groups_in, hashed_in
from aucdist.data.formats.header import pick, unique
from aucdist.data.formats.hive import can_hold, folder_column, path_values, refuse_other_value
from aucdist.data.formats.part import FilePart
from aucdist.data.formats.source_fields import Condition, SourceFields
from aucdist.data.formats.spelling import Spelling
from aucdist.data.formats.table_form import MISSING_CATEGORY, REMEDY, TableForm
from aucdist.data.formats.tables import Cells, Table, admitted, cells_of, table_of
from aucdist.data.formats.text import BEYOND_EXACT, REMEDY_EXACT
from aucdist.data.storage import files
from aucdist.data.storage.arrow_files import opened
from aucdist.data.storage.compression import ALWAYS_ALLOWED
from aucdist.errors import InputError

# A column of one value, a million times over, takes a few bytes. Tables that mean something grow less than this.
MOST_GROWTH = 10_000
PANDAS_INDEX = re.compile(r"__index_level_\d+__")
"""Columns in which pandas and Arrow store the index of a data frame: row numbers, and no features."""


def parse_parquet(data: bytes, source: SourceFields, part: FilePart, schema: Schema | None) -> Table:
    """Read a Parquet file; numbers and booleans become numbers, float32 stays float32.

    `part`: names the file in errors; its folders may stand for columns, see `aucdist.data.formats.hive.path_values`.
    `schema`: that of the training data, for a file that must be encoded like it.
    Raises InputError if the file is damaged, a column is neither of numbers nor declared categorical, a value is
        missing, not finite or of an unknown category, naming row (from 1) and column, or a column has another value
        than its folder.
    """
    with _sound(files.shown(part.url)):
        return _parsed(pq.ParquetFile(pa.BufferReader(data)), pa.BufferReader(data), source, part, schema)


def parse_arrow(table: pa.Table, where: str, source: SourceFields, schema: Schema | None) -> Table:
    """Return the columns of a table of Arrow, wherever it comes from. Other parameters and errors as `parse_parquet`."""
    names = unique(table.column_names, where)
    label = None if source.label is None else pick(names, source.label, where, "label")
    columns = [name for name in names if not PANDAS_INDEX.fullmatch(name)]
    features = features_in(source, schema, names if source.keep else columns, label, where)
    groups, cost = groups_in(source, names, where), cost_in(source, names, where)
    if source.where is not None:
        for column, _, _ in source.where:
            pick(names, column, where, "where")
        with _conditions_explained(where):
            table = table.filter(_condition(source.where))
            where = f"{where}, where {source.where}"
    read = list(dict.fromkeys([*features, *(name for name in (label, groups, cost) if name)]))
    return _table(table.select(read), where, source, schema, label, features, 1, groups, cost)


def parse_row_groups(source: SourceFields, part: FilePart, schema: Schema | None) -> Table:
    """Read the row groups of a part. Parameters and errors as `parse_parquet`."""
    with _sound(files.shown(part.url)), opened(part.url) as file:
        return _parsed(pq.ParquetFile(file, pre_buffer=True), file, source, part, schema)


def row_group_sizes(url: str, source: SourceFields, texts: Collection[str] = ()) -> dict[int, int]:
    """Return the bytes of each row group of a file, uncompressed, by its number.

    Row groups that cannot hold a row for `source.where`, by their statistics or by the folders of the file, are left out.
    Only the end of the file is read, which describes it.

    `texts`: the columns of folders that hold texts, see `aucdist.data.formats.hive.text_columns`.
    Raises InputError if the file cannot be read or is damaged, or if the conditions do not go with its columns.
    """
    where = files.shown(url)
    with _sound(where), opened(url) as file:
        parquet = pq.ParquetFile(file)
        metadata = parquet.metadata
        names = parquet.schema_arrow.names
        needed = _needed_groups(file, source, range(metadata.num_row_groups), names, where, path_values(url), texts)
        return {i: metadata.row_group(i).total_byte_size for i in needed}


@contextmanager
def _sound(where: str) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except (pa.ArrowException, OSError) as e:
        raise InputError(f"{where} is not a sound Parquet file: {e}") from None


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
    names = [*of_file, *added]
    label = None if source.label is None else pick(names, source.label, where, "label")
    columns = [name for name in names if not PANDAS_INDEX.fullmatch(name)]
    features = features_in(source, schema, names if source.keep else columns, label, where)
    groups, cost = groups_in(source, names, where), cost_in(source, names, where)
    read = list(dict.fromkeys([*features, *(name for name in (label, groups, cost) if name)]))
    asked = [column for column, _, _ in source.where or ()]
    wanted = range(part.start, file.num_row_groups if part.stop is None else part.stop)
    needed = _needed_groups(raw, source, wanted, of_file, where, folders, part.folder_texts)
    _refuse_bomb(file.metadata, needed, len({*read, *asked}), raw.size(), where)
    columns = [name for name in dict.fromkeys([*read, *asked]) if name not in added]
    table = file.read_row_groups(needed, columns=columns, use_threads=False)
    refuse_other_value(table, folders, where)
    texts = {*part.folder_texts, label, groups, *categorical_in(source, schema, features, where)}
    texts |= {*hashed_in(source, schema, features, where), *dates_in(source, schema, features, where)}
    for name in added:
        table = table.append_column(name, folder_column(added[name], table.num_rows, as_text=name in texts))
    first = sum(file.metadata.row_group(i).num_rows for i in range(part.start)) + 1
    if source.where is not None:
        with _conditions_explained(where):
            rest = [c for c in source.where if c[0] not in added]  # the folders were asked for the others
            table, first = table.filter(_condition(rest)) if rest else table, 1
            where = f"{where}, where {source.where}"
    return _table(table.select(read), where, source, schema, label, features, first, groups, cost)


def _refuse_bomb(metadata: pq.FileMetaData, groups: Sequence[int], n_columns: int, size: int, where: str) -> None:
    """Refuse what would fill the memory, before it does."""
    rows = sum(metadata.row_group(i).num_rows for i in groups)
    limit = max(ALWAYS_ALLOWED, MOST_GROWTH * size)
    if 8 * rows * n_columns > limit:
        raise InputError(
            f"{where}: {size} bytes state {rows} rows of {n_columns} columns, which take more than {limit} bytes in "
            "memory; if it is no trap, name the columns that are needed under `keep`, or write it without compression"
        )


def _table(
    table: pa.Table,
    where: str,
    source: SourceFields,
    schema: Schema | None,
    label: str | None,
    features: tuple[str, ...],
    first: int,
    groups: str = "",
    cost: str = "",
) -> Table:
    """Turn columns into numbers and texts; `first` is the number of the first row, for errors."""
    form = TableForm(
        table.column_names,
        label or "",
        features,
        hashed=hashed_in(source, schema, features, where),
        dates=dates_in(source, schema, features, where),
        date_format=source.date_format,
        allowed=schema.categories if schema else {},
        missing=source.missing == "keep",
        unknown=source.unknown,
        spelling=Spelling.of(source),
        groups=groups,
        cost=cost,
    )
    guess = schema is None and source.categorical == "auto"
    if guess:
        texts = {name for name in features if not is_number(table.schema.field(name).type)}
        form = replace(form, categorical=texts - {*form.hashed, *form.dates, cost})
    else:
        form = replace(form, categorical=categorical_in(source, schema, features, where))
    free = set(features) if form.missing else set()
    for name in table.column_names:
        if name not in free and table[name].null_count:
            row = pc.index(table[name].is_null(), True).as_py() + first
            raise InputError(f"{where}, row {row}, column {name!r}: the value is missing; {REMEDY}")
    numbers = [_numbers(table[name], where, name, first, name in free, form.spelling) for name in form.numbers]
    cells = {name: _texts(table[name], where, name, first, form) for name in form.texts}
    costs = _numbers(table[cost], where, cost, first, cost in free, form.spelling).astype(np.float64) if cost else None
    found = table_of(np.column_stack(numbers) if numbers else np.empty((table.num_rows, 0)), cells, form, costs)
    if guess:
        refuse_dates(sorted(form.categorical), found.texts, MISSING_CATEGORY, where)
    return found if schema is None else replace(found, categories=dict(schema.categories))


def is_number(kind: pa.DataType) -> bool:
    """Tell whether the values of a type are numbers or booleans."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _texts(column: pa.ChunkedArray, where: str, name: str, first: int, form: TableForm) -> Cells:
    may_miss = form.missing and name not in (form.label, form.groups)
    if name in form.dates and pa.types.is_temporal(column.type):
        form = replace(form, date_format=None)  # that is for texts
    column = _as_texts(column, where, name)
    if may_miss:
        column = column.cast(pa.string()).fill_null(MISSING_CATEGORY)
    raw = pd.Categorical(column.to_pandas().astype(object))
    if (raw.codes < 0).any():  # nan, which is no null
        row = int(np.argmax(raw.codes < 0)) + first
        raise InputError(f"{where}, row {row}, column {name!r}: the value is missing ('nan'); {REMEDY}")
    values = []
    for code, category in enumerate(raw.categories):
        value, problem = admitted(str(category).strip(), name, form)
        if problem:
            raise InputError(f"{where}, row {int(np.argmax(raw.codes == code)) + first}, column {name!r}: {problem}")
        values.append(value)
    return cells_of(raw.codes, values, name, form)


def _as_texts(column: pa.ChunkedArray, where: str, name: str) -> pa.ChunkedArray:
    """Return a column of labels or categories with values that have a text."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_boolean(kind):
        return column.cast(pa.int8())  # so that `positive: true` of a YAML file, which is 1, finds its class
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return column.cast(pa.string())
    if not is_plain(column.type):
        raise InputError(
            f"{where}, column {name!r}: its type is {column.type}; labels and categories are texts, numbers or booleans"
        )
    return column


def is_plain(kind: pa.DataType) -> bool:
    """Tell whether the values of a type can be labels or categories: texts, numbers, booleans, dates and times."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if is_number(kind) or is_text(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return True
    return bool(pa.types.is_decimal(kind) or pa.types.is_temporal(kind))


def is_text(kind: pa.DataType) -> bool:
    """Tell whether the values of a type are texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _numbers(
    column: pa.ChunkedArray, where: str, name: str, first: int, may_miss: bool, spelling: Spelling
) -> np.ndarray:
    if not is_number(column.type):
        raise InputError(
            f"{where}, column {name!r}: its type is {column.type}, not a number; if the column holds categories, "
            "list it under `categorical`"
        )
    kind = pa.float32() if pa.types.is_float32(column.type) else pa.float64()
    values: Any = (column if column.type == kind else column.cast(kind, safe=False)).to_numpy()
    if column.type in (pa.int64(), pa.uint64()):
        _refuse_inexact(column.fill_null(0).to_numpy(), where, name, first)
    if may_miss and len(spelling.missing_numbers):
        values = np.where(np.isin(values, spelling.missing_numbers), np.nan, values).astype(values.dtype)
    bad = np.isinf(values) if may_miss else ~np.isfinite(values)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"{where}, row {row + first}, column {name!r}: {values[row]} is not finite")
    return values


def _refuse_inexact(integers: np.ndarray, where: str, name: str, first: int) -> None:
    """Refuse integers that no float64 has: they would become others silently."""
    if len(integers) == 0 or -(2**53) <= integers.min() <= integers.max() <= 2**53:
        return
    floats = integers.astype(np.float64)
    within = floats < (2.0**63 if integers.dtype == np.int64 else 2.0**64)  # else rounding left the type
    changed = ~within | (np.where(within, floats, 0.0).astype(integers.dtype) != integers)
    if changed.any():
        row = int(np.argmax(changed))
        raise InputError(f"{where}, row {row + first}, column {name!r}: {integers[row]} {BEYOND_EXACT}{REMEDY_EXACT}")
