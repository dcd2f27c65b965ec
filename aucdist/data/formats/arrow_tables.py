"""Tables of Arrow from JSON lines, Arrow, spreadsheets, databases, Delta and Iceberg, each by a library of its own."""

import contextlib
import hashlib
import io
import json
import numbers
import struct
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from aucdist.data.checked import parse_any
from aucdist.data.storage.guard import check_growth, check_regular, check_sheet, size_of_arrow
from aucdist.data.storage.urls import SCHEME, hide_error, reveal, shown
from aucdist.errors import InputError
from aucdist.extras import load_optional


def from_json_lines(data: bytes, where: str) -> pa.Table:
    """Return the objects of JSON lines, or of one JSON array; a key that an object lacks is missing there.

    Raises InputError if a line is no JSON object, or a key has values of several types.
    """
    if data.lstrip()[:1] == b"[":
        data = b"".join(json.dumps(item).encode() + b"\n" for item in parse_any(data, where))
    try:
        str(data, "utf-8")  # Arrow does not look
        return pa.json.read_json(pa.BufferReader(data), pa.json.ReadOptions(use_threads=False, block_size=2**26))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as e:
        raise InputError(
            f"{where}: not JSON objects in UTF-8, one on each line or in one array: {str(e).splitlines()[0]}"
        ) from None


def from_ipc(data: bytes, where: str) -> pa.Table:
    """Return the columns of a file or a stream of Arrow.

    Raises InputError if it is damaged.
    """
    # A file is a stream between two marks. Its end says once more where batches are, and need not be read.
    stream = pa.py_buffer(data)[8 if data.startswith(b"ARROW1") else 0 :]
    try:
        check_growth(len(data), size_of_arrow(stream), where, "write it as Parquet")
        with pa.ipc.open_stream(stream) as reader:
            table = reader.read_all()
        table.validate(full=True)
        check_growth(len(data), size_of_texts(table), where, "write it as Parquet")
        return table
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, struct.error) as e:
        raise InputError(f"{where} is not a sound Arrow file: {str(e).splitlines()[0]}") from None


def size_of_texts(table: pa.Table) -> int:
    """Return the bytes that texts take once each row has its own: in a dictionary one long text may stand for many rows."""
    size = 0
    for column in table.columns:
        if pa.types.is_dictionary(column.type):
            for chunk in column.chunks:
                with contextlib.suppress(pa.ArrowNotImplementedError):  # values that are no texts
                    size += pc.sum(pc.binary_length(chunk.dictionary).take(chunk.indices)).as_py() or 0
        elif pa.types.is_string_view(column.type):
            for chunk in column.chunks:  # each value begins with its length, and takes 16 bytes
                lengths = np.frombuffer(chunk.buffers()[1], np.int32)[::4]
                size += int(lengths[chunk.offset : chunk.offset + len(chunk)].sum(dtype=np.int64))
    return size


def from_excel(data: bytes, where: str, sheet: str | None, n_skipped: int) -> pa.Table:
    """Return a sheet of a workbook, by default the first one.

    Raises InputError if openpyxl is not installed, the file is damaged or unpacks beyond all measure, or there is no
        such sheet.
    """
    openpyxl = load_optional("openpyxl")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            size = sum(member.file_size for member in packed.infolist())
        check_growth(len(data), size, where, "save it as CSV")
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True)
        with contextlib.closing(book), book[sheet or book.sheetnames[0]]._get_source() as xml:
            check_sheet(xml, where)
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
    """Return what a query of a database selects. The database is opened for reading only.

    `url`: as SQLAlchemy takes it, such as ``sqlite:////data/sales.db`` or
        ``postgresql+psycopg://user:password@host/sales``; or ``duckdb:///sales.duckdb``. The password is in no message.
    Raises InputError if a package is not installed, the database cannot be reached, the query is anything but one SELECT, or it
        fails.
    """
    if not SCHEME.match(url):
        raise InputError("a database is named by a URL, such as sqlite:////data/sales.db or duckdb:///sales.duckdb")
    try:
        return _from_duckdb(url, query) if url.startswith("duckdb:") else _from_sqlalchemy(url, query)
    except (InputError, MemoryError):
        raise
    except Exception as e:  # of drivers, by many names
        raise InputError(f"{shown(url)}: the query failed: {hide_error(e, url)}") from None


READ_ONLY = {
    "mysql": "SET SESSION TRANSACTION READ ONLY", "mariadb": "SET SESSION TRANSACTION READ ONLY",
    "oracle": "SET TRANSACTION READ ONLY", "sqlite": "PRAGMA query_only = ON",
}  # fmt: skip
"""What is said first to databases of some kinds; PostgreSQL is told by SQLAlchemy. Nothing is ever committed."""


def _from_sqlalchemy(url: str, query: str) -> pa.Table:
    sqlalchemy = load_optional("sqlalchemy")
    address = sqlalchemy.make_url(reveal(url))
    kind, path = address.get_backend_name(), address.database
    if kind == "sqlite" and path and path != ":memory:":
        if not path.startswith("file:"):
            if not Path(path).is_file():  # else SQLite makes one
                check_regular(Path(path), path)
                raise InputError(f"{shown(url)}: unable to open database file: there is none")
            path = f"file:{quote(str(Path(path).absolute()))}"
        if address.get_driver_name() == "pysqlite":
            address = address.set(database=path).update_query_dict({"mode": "ro", "uri": "true"})
    engine = sqlalchemy.create_engine(address)
    try:
        with engine.connect() as connection:
            if kind == "postgresql":
                connection = connection.execution_options(postgresql_readonly=True)
            elif kind in READ_ONLY:
                connection.exec_driver_sql(READ_ONLY[kind])
            return from_pandas(pd.read_sql(sqlalchemy.text(query), connection), shown(url))
    finally:
        engine.dispose()


def _from_duckdb(url: str, query: str) -> pa.Table:
    duckdb: Any = load_optional("duckdb")
    path = reveal(url).removeprefix("duckdb:").removeprefix("///")
    check_regular(Path(path), url)
    with duckdb.connect(path or ":memory:", read_only=bool(path)) as connection:
        statements = connection.extract_statements(query)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise InputError("`query` must be one SELECT: the database is only read")
        return connection.sql(query).to_arrow_table()


def from_delta(url: str) -> pa.Table:
    """Return the newest version of a Delta table.

    Raises InputError if deltalake is not installed, or there is no sound table.
    """
    delta = load_optional("deltalake")
    try:
        return delta.DeltaTable(reveal(url)).to_pyarrow_table()
    except Exception as e:  # of Rust, by many names
        raise InputError(f"{shown(url)} is not a sound Delta table: {hide_error(e, url)}") from None


def from_iceberg(url: str) -> pa.Table:
    """Return the current snapshot of an Iceberg table, by its metadata file.

    Raises InputError if pyiceberg is not installed, or there is no sound table.
    """
    tables = load_optional("pyiceberg.table")
    try:
        return tables.StaticTable.from_metadata(reveal(url)).scan().to_arrow()
    except Exception as e:  # of stores and formats, by many names
        raise InputError(f"{shown(url)} is not a sound Iceberg table: {hide_error(e, url)}") from None


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
