"""Tables of Arrow from JSON lines, Arrow, spreadsheets, databases, Delta and Iceberg, each by a library of its own."""

import hashlib
import io
import numbers
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.json

from aucdist.data.storage.compression import ALWAYS_ALLOWED, MOST_GROWTH
from aucdist.data.storage.urls import shown
from aucdist.errors import InputError
from aucdist.extras import load_optional


def from_json_lines(data: bytes, where: str) -> pa.Table:
    """Return the objects of JSON lines; a key that an object lacks is missing there.

    Raises InputError if a line is no JSON object, or a key has values of several types.
    """
    try:
        return pa.json.read_json(pa.BufferReader(data), pa.json.ReadOptions(use_threads=False, block_size=2**26))
    except (pa.ArrowException, OSError) as e:
        raise InputError(f"{where}: not JSON objects, one on each line: {str(e).splitlines()[0]}") from None


def from_ipc(data: bytes, where: str) -> pa.Table:
    """Return the columns of a file or a stream of Arrow.

    Raises InputError if it is damaged.
    """
    open_one: Callable[[Any], Any] = pa.ipc.open_file if data.startswith(b"ARROW1") else pa.ipc.open_stream
    try:
        with open_one(pa.BufferReader(data)) as reader:
            table = reader.read_all()
        table.validate(full=True)
        return table
    except (pa.ArrowException, OSError) as e:
        raise InputError(f"{where} is not a sound Arrow file: {str(e).splitlines()[0]}") from None


def from_excel(data: bytes, where: str, sheet: str | None, n_skipped: int) -> pa.Table:
    """Return a sheet of a workbook, by default the first one.

    Raises InputError if openpyxl is not installed, the file is damaged or unpacks beyond all measure, or there is no
        such sheet.
    """
    load_optional("openpyxl")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            size = sum(member.file_size for member in packed.infolist())
        if size > max(ALWAYS_ALLOWED, MOST_GROWTH * len(data)):
            raise InputError(f"{where}: {len(data)} bytes unpack to {size}; if it is no trap, save it as CSV")
        frame = pd.read_excel(
            io.BytesIO(data), sheet_name=0 if sheet is None else sheet, skiprows=n_skipped, engine="openpyxl",
            keep_default_na=False, na_values=[""],
        )  # fmt: skip
    except InputError:
        raise
    except Exception as e:  # openpyxl raises whatever its XML parser, zipfile and NumPy do
        raise InputError(f"{where} cannot be read as a workbook: {str(e)[:200]}") from None
    return from_pandas(frame, where)


def from_query(url: str, query: str) -> pa.Table:
    """Return what a query of a database selects.

    `url`: as SQLAlchemy takes it, such as ``sqlite:////data/sales.db`` or
        ``postgresql+psycopg://user:password@host/sales``; or ``duckdb:///sales.duckdb``. The password is in no message.
    Raises InputError if a package is not installed, the database cannot be reached, or the query fails.
    """
    if url.startswith("duckdb:"):
        return _from_duckdb(url, query)
    sqlalchemy = load_optional("sqlalchemy")
    try:
        engine = sqlalchemy.create_engine(url)
    except Exception as e:  # a wrong URL, a driver that is not installed
        raise InputError(f"{shown(url)}: {_without_secrets(e, url)}") from None
    try:
        with engine.connect() as connection:
            return from_pandas(pd.read_sql(sqlalchemy.text(query), connection), shown(url))
    except (sqlalchemy.exc.SQLAlchemyError, pd.errors.DatabaseError) as e:
        raise InputError(f"{shown(url)}: the query failed: {_without_secrets(e, url)}") from None
    finally:
        engine.dispose()


def _from_duckdb(url: str, query: str) -> pa.Table:
    duckdb: Any = load_optional("duckdb")
    path = url.removeprefix("duckdb:").removeprefix("///")
    try:
        with duckdb.connect(path or ":memory:", read_only=bool(path)) as connection:
            return connection.sql(query).to_arrow_table()
    except duckdb.Error as e:
        raise InputError(f"{shown(url)}: the query failed: {_without_secrets(e, url)}") from None


def from_delta(url: str) -> pa.Table:
    """Return the newest version of a Delta table.

    Raises InputError if deltalake is not installed, or there is no sound table.
    """
    delta = load_optional("deltalake")
    try:
        return delta.DeltaTable(url).to_pyarrow_table()
    except Exception as e:  # of Rust, by many names
        raise InputError(f"{shown(url)} is not a sound Delta table: {_without_secrets(e, url)}") from None


def from_iceberg(url: str) -> pa.Table:
    """Return the current snapshot of an Iceberg table, by its metadata file.

    Raises InputError if pyiceberg is not installed, or there is no sound table.
    """
    tables = load_optional("pyiceberg.table")
    try:
        return tables.StaticTable.from_metadata(url).scan().to_arrow()
    except Exception as e:  # of stores and formats, by many names
        raise InputError(f"{shown(url)} is not a sound Iceberg table: {_without_secrets(e, url)}") from None


def digest_of(table: pa.Table) -> str:
    """Return a checksum of the columns, whatever the chunks they came in."""
    digest = hashlib.sha256(str(table.schema.remove_metadata()).encode())
    for name in table.column_names:
        for value in pa.chunked_array([table[name].combine_chunks()]).chunks:
            batch = pa.record_batch([value], names=[name])
            digest.update(batch.serialize())
    return digest.hexdigest()


def from_pandas(frame: pd.DataFrame, where: str) -> pa.Table:
    """Return a frame as a table of Arrow, without its index; a column of values of several types becomes one of texts."""
    frame = frame.rename(columns=str)
    names = list(frame.columns)
    for i, name in enumerate(names):
        if name in names[:i]:
            raise InputError(f"{where}: two columns are called {name!r}")
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


def _of_one_type(column: pd.Series) -> pd.Series:
    """Return a column of objects; if they are of several types as numbers, or else as texts."""
    missing = np.array([pd.api.types.is_scalar(value) and pd.isna(value) for value in column], dtype=bool)
    there = column[~missing]
    if len(set(map(type, there))) <= 1:
        return column
    if all(isinstance(value, numbers.Real) for value in there):
        return pd.to_numeric(column)
    return column.map(str).where(~missing, None)


def _without_secrets(error: Exception, url: str) -> str:
    """Return the first line of an error without the URL, which may hold a password."""
    text = (str(error).strip() or type(error).__name__).splitlines()[0][:300]
    _, at, _ = url.partition("://")[2].rpartition("@")
    password = url.partition("://")[2].rpartition("@")[0].partition(":")[2] if at else ""
    text = text.replace(url, shown(url))
    return text.replace(password, "***") if password else text
