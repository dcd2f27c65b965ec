"""Folders of Parquet files that are partitioned as Hive does: `year=2024/part.parquet` has a column `year` with one value."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from aucdist.data.formats.source_fields import Condition
from aucdist.data.storage import files
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
    >>> from aucdist.data.formats.hive import path_values
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
