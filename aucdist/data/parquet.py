"""Parquet files of a user's own, with one feature in each column."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from aucdist.data.classes import listed
from aucdist.data.source import Source
from aucdist.data.tables import Table, is_missing, pick, trimmed, unique
from aucdist.errors import InputError


def parse_parquet(data: bytes, where: str, source: Source, known: Mapping[str, tuple[str, ...]] | None) -> Table:
    """Read a Parquet file; numbers and booleans become numbers, float32 stays float32.

    Parameters
    ----------
    data : bytes
    where : str
        Names the file in errors.
    source : Source
    known : mapping or None
        The categories of the training data, for a file that must be encoded like it.

    Raises
    ------
    InputError
        If the file is damaged, a column is neither of numbers nor declared categorical, or a value is missing, not
        finite or of an unknown category, naming row (from 1) and column.
    """
    try:
        table = pq.read_table(pa.BufferReader(data))
    except (pa.ArrowException, OSError) as e:
        raise InputError(f"{where} is not a sound Parquet file: {e}") from None
    names = unique(table.column_names, where)
    if table.num_rows == 0:
        raise InputError(f"{where} has no rows")
    label = pick(names, source.label, where, "label")
    if known is not None:
        texts = set(known) & set(names)
    elif source.categorical == "auto":
        texts = {name for name in names if not _is_number(table.schema.field(name).type)}
    else:
        texts = {pick(names, column, where, "categorical") for column in source.categorical}
    texts.discard(label)
    for name in names:
        _refuse_nulls(table[name], where, name)
    numbers = {name: _numbers(table[name], where, name) for name in names if name not in texts | {label}}
    columns = {name: _texts(table[name], where, name) for name in texts | {label}}
    features = tuple(name for name in names if name != label)
    found = {name: tuple(columns[name].categories) for name in features if name in texts}
    for name, values in found.items():
        allowed = values if known is None else known[name]
        new = [value for value in values if value not in allowed]
        if new:
            raise InputError(f"{where}, column {name!r}: unknown category {new[0]!r}; known: {listed(allowed)}")
    return Table(numbers, columns, label, features, found if known is None else dict(known))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _refuse_nulls(column: pa.ChunkedArray, where: str, name: str) -> None:
    if column.null_count:
        row = pc.index(column.is_null(), True).as_py() + 1
        raise InputError(f"{where}, row {row}, column {name!r}: the value is missing; remove the row or fill it in")


def _texts(column: pa.ChunkedArray, where: str, name: str) -> pd.Categorical:
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())  # so that `positive: true` of a YAML file, which is 1, finds its class
    values = trimmed(pd.Categorical(column.to_pandas().astype(object)))
    for code, text in enumerate(values.categories):
        if is_missing(text):
            row = int(np.argmax(values.codes == code)) + 1
            raise InputError(f"{where}, row {row}, column {name!r}: the value is missing ({text!r})")
    return values


def _numbers(column: pa.ChunkedArray, where: str, name: str) -> np.ndarray:
    if not _is_number(column.type):
        raise InputError(
            f"{where}, column {name!r}: its type is {column.type}, not a number; if the column holds categories, "
            "list it under `categorical`"
        )
    values = column.cast(pa.float32() if pa.types.is_float32(column.type) else pa.float64(), safe=False).to_numpy()
    bad = ~np.isfinite(values)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"{where}, row {row + 1}, column {name!r}: {values[row]} is not finite")
    return values
