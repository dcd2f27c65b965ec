"""All formats by name. For a new format, add a class and a row here: see "A format" in ARCHITECTURE.md.

Parquet files are read by row groups. A format that another library reads as a whole has one part for each file or query.
"""

import contextlib
import io
import json
import re
import struct
import zipfile
from abc import abstractmethod
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote

from aucdist.data.formats.base import (
    OF_COLUMNS,
    UNSHARDED,
    FileFormat,
    FilePart,
    Format,
    LineFormat,
    Parsed,
    Survey,
    TableFormat,
    even_share,
)
from aucdist.data.formats.csv_and_keel import CsvFormat, KeelFormat
from aucdist.data.formats.text import found_encoding
from aucdist.data.labels import Labels
from aucdist.data.own_files import parse_any
from aucdist.data.storage import files
from aucdist.data.storage.guard import check_fits, check_growth, check_regular, check_sheet, collected, size_of_arrow
from aucdist.data.storage.urls import SCHEME, hide_error, reveal
from aucdist.errors import InputError, Json, as_input_error, unknown
from aucdist.extras import load_optional

if TYPE_CHECKING:
    import pyarrow as pa

    from aucdist.data.dataset import Schema

QUERY = re.compile(r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(?:select|with|values|from|table)\b", re.IGNORECASE | re.DOTALL)
CHANGING_CLAUSE = re.compile(r"\binto\b|\bdelete\s+from\b|\bupdate\s+\S+\s+set\b", re.IGNORECASE)
QUOTED_TEXT = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
DENSE_ABOVE = 0.5
"""Rows with a larger share of nonzero entries are stored as dense rows, which are faster and take hardly more memory."""
ALWAYS_ALLOWED_FEATURES = 2**20
"""The number of features that a sparse file may always have. Without a limit, a file of one line could name feature
2 147 483 647."""
FEATURES_PER_VALUE = 10
"""More features are allowed if there are at most this many for each value that is not zero."""
BYTES_PER_FEATURE = 150
"""The memory that the name, the weight and the statistics of a feature take."""
EMBEDDED = ("breast_cancer", "digits", "iris", "wine")
SVMLIGHT_ROW = re.compile(rb"\s*[+-]?[\w.]+(,[\w.]+)*(\s+qid:\d+)?(\s+\d+:[^\s:]+)+\s*(#.*)?")
ROWS_AT_ONCE = 2**16
"""The number of rows of a query result that are read at a time, so that the size is checked while they arrive."""
READ_ONLY = {
    "mysql": "SET SESSION TRANSACTION READ ONLY", "mariadb": "SET SESSION TRANSACTION READ ONLY",
    "oracle": "SET TRANSACTION READ ONLY", "sqlite": "PRAGMA query_only = ON",
}  # fmt: skip
"""The statement that makes a connection read-only, by kind of database. SQLAlchemy has an option for PostgreSQL."""
SUFFIXES = {
    ".csv": "csv", ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight", ".dat": "keel", ".arff": "arff",
    ".parquet": "parquet", ".pq": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".arrow": "arrow",
    ".feather": "arrow", ".ipc": "arrow", ".xlsx": "excel",
}  # fmt: skip
FIRST_BYTES = {b"PAR1": "parquet", b"ARROW1": "arrow", b"PK\x03\x04": "excel", b"{": "jsonl", b"[": "jsonl"}


class ArrowFileFormat(TableFormat, FileFormat):
    """A format of files that are converted to Arrow tables, one by one."""

    fields = OF_COLUMNS | {"where"}

    @abstractmethod
    def table(self, data: bytes, where: str) -> "pa.Table":
        """Return the table in a file.

        Parameters
        ----------
        data : bytes
            The decompressed content of the file.
        where : str
            The name of the file in error messages.

        Returns
        -------
        pyarrow.Table
        """

    def parse(self, data: bytes, part: FilePart) -> Parsed:
        """Return the columns."""
        from aucdist.data.formats.arrow_tables import parse_arrow, size_of_texts

        table = self.table(data, part.where)
        check_growth(len(data), table.nbytes + size_of_texts(table), part.where, "write it as Parquet")
        return parse_arrow(table, part.where, self.source, self.schema)


class JsonLinesFormat(ArrowFileFormat):
    """Files with one JSON object on each line, or with one array of objects. The columns are the keys of all objects."""

    def table(self, data: bytes, where: str) -> "pa.Table":
        """Return the columns. A key that an object does not have is a missing value.

        Raises
        ------
        InputError
            If a line is not a JSON object, or a key has values of several types.
        """
        import pyarrow as pa
        import pyarrow.json

        if data.lstrip()[:1] == b"[":
            data = b"".join(json.dumps(item).encode() + b"\n" for item in parse_any(data, where))
        message = f"{where}: not JSON objects in UTF-8, one on each line or in one array"
        with as_input_error(message, pa.ArrowException, OSError, UnicodeDecodeError):
            str(data, "utf-8")  # Arrow does not check the encoding
            options = pa.json.ReadOptions(use_threads=False, block_size=2**26)
            table = pa.json.read_json(pa.BufferReader(data), options)
            # Arrow would convert strings with a time zone to UTC.
            times = [pa.field(field.name, pa.string()) for field in table.schema if pa.types.is_timestamp(field.type)]
            if times:
                as_texts = pa.json.ParseOptions(explicit_schema=pa.schema(times))
                table = pa.json.read_json(pa.BufferReader(data), options, as_texts).select(table.column_names)
            return table


class ArrowFormat(ArrowFileFormat):
    """Arrow files and streams, including Feather files."""

    def table(self, data: bytes, where: str) -> "pa.Table":
        """Return the columns.

        Raises
        ------
        InputError
            If the file is damaged.
        """
        import pyarrow as pa

        # A file is a stream between two magic strings. Its footer, which repeats where the batches are, is not read.
        stream = pa.py_buffer(data)[8 if data.startswith(b"ARROW1") else 0 :]
        kinds = pa.ArrowException, OSError, ValueError, struct.error
        with as_input_error(f"{where} is not a valid Arrow file", *kinds):
            check_growth(len(data), size_of_arrow(stream), where, "write it as Parquet")
            with pa.ipc.open_stream(stream) as reader:
                table = reader.read_all()
            table.validate(full=True)
        return table


class ExcelFormat(ArrowFileFormat):
    """Excel workbooks, from which one sheet is read."""

    fields = OF_COLUMNS | {"where", "sheet", "skip_lines"}

    def table(self, data: bytes, where: str) -> "pa.Table":
        """Return a sheet, by default the first one.

        Raises
        ------
        InputError
            If openpyxl is not installed, the file is damaged or expands too much, or there is no such sheet.
        """
        openpyxl = load_optional("openpyxl")
        import pandas as pd

        from aucdist.data.formats.arrow_tables import from_pandas

        # openpyxl also raises the errors of its XML parser, of zipfile and of NumPy.
        with as_input_error(f"{where} cannot be read as a workbook", Exception, say=lambda e: str(e)[:200]):
            file = io.BytesIO(data)
            with zipfile.ZipFile(file) as packed:
                size = sum(member.file_size for member in packed.infolist())
            check_growth(len(data), size, where, "save it as CSV")
            book = openpyxl.load_workbook(file, read_only=True)
            with contextlib.closing(book), book[self.source.sheet or book.sheetnames[0]]._get_source() as xml:
                check_sheet(xml, where)
            frame = pd.read_excel(
                file, sheet_name=self.source.sheet or 0, skiprows=self.source.skip_lines, engine="openpyxl",
                keep_default_na=False, na_values=[""],
            )  # fmt: skip
        return from_pandas(frame, where)


class LoadedFormat(TableFormat):
    """A format whose rows a library fetches from a URL, so there are no files to read."""

    fields = OF_COLUMNS - {"sha256"} | {"where"}

    @abstractmethod
    def table(self, url: str) -> "pa.Table":
        """Fetch the rows.

        Raises
        ------
        InputError
            If the library is not installed, or the rows cannot be fetched.
        """

    def describe_files(self) -> list[Json]:
        """Return each URL with a digest of its rows, which is the only way to notice changes in every kind of database."""
        from aucdist.data.formats.arrow_tables import table_digest

        return [{"url": files.shown(url), "rows": table_digest(self.table(url))} for url in self.source.urls()]

    def read_part(self, part: FilePart) -> Parsed:
        """Return all rows at a URL."""
        from aucdist.data.formats.arrow_tables import parse_arrow, table_digest

        table = self.table(part.url)
        return replace(parse_arrow(table, part.where, self.source, self.schema), digest=table_digest(table))


def _fetched(url: str, fault: str) -> AbstractContextManager[None]:
    """Convert exceptions of drivers and clients to InputErrors without secrets."""
    return as_input_error(f"{files.shown(url)}{fault}", Exception, say=lambda e: hide_error(e, url))


class VersionedFormat(LoadedFormat):
    """A format of tables that keep earlier versions. A command reads one version of each table."""

    fields = LoadedFormat.fields | {"version"}

    @abstractmethod
    def open(self, url: str, version: int | None) -> tuple[int, Any]:
        """Return the number of a version, by default that of the newest one, and a function that reads its rows."""

    def pinned(self) -> Json:
        """Return the present versions of the tables, unless the source names versions."""
        if self.source.version is not None:
            return {}
        versions = []
        for url in self.source.urls():
            with _fetched(url, f" is not a valid {self.source.format.title()} table"):
                versions.append(self.open(reveal(url), None)[0])
        return {"version": versions if len(versions) > 1 else versions[0]}

    def table(self, url: str) -> "pa.Table":
        """Return the rows of a version, by default the newest."""
        version = self.source.version
        if isinstance(version, list):
            version = version[self.source.urls().index(url)]
        missing = "" if version is None else f", or has no version {version}"
        with _fetched(url, f" is not a valid {self.source.format.title()} table{missing}"):
            return self.open(reveal(url), version)[1]()


class DeltaFormat(VersionedFormat):
    """Delta Lake tables, by the URL of the folder."""

    def open(self, url: str, version: int | None) -> tuple[int, Any]:
        """Return the number of a version, and a function that reads its rows."""
        table = load_optional("deltalake").DeltaTable(url, version=version)
        return table.version(), table.to_pyarrow_table


class IcebergFormat(VersionedFormat):
    """Iceberg tables, by the URL of a metadata file or of a folder with a version hint. Their versions are snapshots."""

    def open(self, url: str, version: int | None) -> tuple[int, Any]:
        """Return the number of a snapshot, and a function that reads its rows."""
        table = load_optional("pyiceberg.table").StaticTable.from_metadata(url)
        if (snapshot := table.current_snapshot()) is None:
            raise ValueError("it has no snapshot yet: write rows to it first")
        return snapshot.snapshot_id, table.scan(snapshot_id=version).to_arrow


class SqlFormat(LoadedFormat):
    """The result of a database query."""

    fields = LoadedFormat.fields | {"query"}

    def check(self) -> None:
        """Raise an InputError if the source has no query, or a query that is not a single SELECT.

        Databases differ in how strings and comments end. So a semicolon is allowed only at the end, and in strings that all
        databases read in the same way.
        """
        super().check()
        if self.source.query is None:
            raise InputError("format 'sql' needs `query`, such as SELECT age, clicked FROM clicks ORDER BY id")
        query = self.source.query.strip().rstrip(";")
        if not QUERY.match(query):
            raise InputError("`query` must be one SELECT: aucdist does not write to databases")
        code = QUOTED_TEXT.sub("''", query)
        if ";" in (query if re.search(r"[\\$#]|--|/\*", query) else code):
            raise InputError(
                "`query` must be one SELECT, without a semicolon inside: aucdist does not write to databases"
            )
        if CHANGING_CLAUSE.search(code):
            raise InputError(
                "`query` must be a SELECT, without INTO, DELETE or UPDATE: aucdist does not write to databases"
            )

    def table(self, url: str) -> "pa.Table":
        """Return the result of the query. The database is opened for reading only.

        Parameters
        ----------
        url : str
            A URL of SQLAlchemy, such as ``sqlite:////data/sales.db`` or ``postgresql+psycopg://user:password@host/sales``, or
            ``duckdb:///sales.duckdb``. Messages do not show the password.

        Raises
        ------
        InputError
            If a package is not installed, the database cannot be reached, the query is anything but one SELECT, or it
            fails.
        """
        if not SCHEME.match(url):
            raise InputError("a database is named by a URL, such as sqlite:////data/sales.db or duckdb:///sales.duckdb")
        import pyarrow as pa

        from aucdist.data.formats.arrow_tables import from_pandas

        query, where = str(self.source.query), files.shown(url)
        with _fetched(url, ": the query failed"), contextlib.ExitStack() as stack:
            if url.startswith("duckdb:"):
                duckdb: Any = load_optional("duckdb")
                path = reveal(url).removeprefix("duckdb:").removeprefix("///")
                check_regular(Path(path), url)
                connection = stack.enter_context(duckdb.connect(path or ":memory:", read_only=bool(path)))
                statements = connection.extract_statements(query)
                if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                    raise InputError("`query` must be one SELECT: aucdist does not write to databases")
                reader = connection.sql(query).to_arrow_reader(ROWS_AT_ONCE)
                return pa.Table.from_batches(collected(reader, lambda batch: int(batch.nbytes), where), reader.schema)
            sqlalchemy = load_optional("sqlalchemy")
            import pandas as pd

            address = sqlalchemy.make_url(reveal(url))
            kind, path = address.get_backend_name(), address.database
            if kind == "sqlite" and path and path != ":memory:":
                if not path.startswith("file:"):
                    if not Path(path).is_file():  # SQLite would create the file
                        check_regular(Path(path), path)
                        raise InputError(f"{where}: there is no such database file: correct the path")
                    path = f"file:{quote(str(Path(path).absolute()))}"
                if address.get_driver_name() == "pysqlite":
                    address = address.set(database=path).update_query_dict({"mode": "ro", "uri": "true"})
            engine = sqlalchemy.create_engine(address)
            stack.callback(engine.dispose)
            connection = stack.enter_context(engine.connect())
            if kind == "postgresql":
                connection = connection.execution_options(postgresql_readonly=True)
            elif kind in READ_ONLY:
                connection.exec_driver_sql(READ_ONLY[kind])
            connection = connection.execution_options(stream_results=True)
            frames = pd.read_sql(sqlalchemy.text(query), connection, chunksize=ROWS_AT_ONCE)
            parts = collected(frames, lambda frame: int(frame.memory_usage(deep=True).sum()), where)
            return from_pandas(parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True), where)


class ParquetFormat(TableFormat, FileFormat):
    """Parquet files."""

    fields = OF_COLUMNS | {"where"}

    def whole_files(self) -> list[FilePart]:
        """Return each file as one part, with its partition columns that have strings."""
        from aucdist.data.formats.arrow_tables import text_columns

        urls = self.part_urls()
        texts = text_columns(urls)
        return [FilePart(url, folder_texts=texts) for url in urls]

    def split(self, n: int | None) -> list[FilePart]:
        """Return ranges of row groups, each with about an n-th of all uncompressed bytes. Files with a `sha256` are not split."""
        from aucdist.data.formats.arrow_tables import row_group_sizes

        parts = super().split(n)
        if self.source.sha256 is not None:
            return parts
        groups = [(part, i, size) for part in parts for i, size in row_group_sizes(self.source, part).items()]
        part_bytes = even_share(sum(size for _, _, size in groups), n)
        ranges: list[FilePart] = []
        in_range = 0
        for part, i, size in groups:
            if ranges and (ranges[-1].url, ranges[-1].stop) == (part.url, i) and in_range + size <= part_bytes:
                ranges[-1] = replace(ranges[-1], stop=i + 1)
                in_range += size
            else:
                ranges.append(replace(part, start=i, stop=i + 1))
                in_range = size
        return ranges or [replace(parts[-1], stop=0)]

    def parse(self, data: bytes | None, part: FilePart) -> Parsed:
        """Return the columns.

        The digest covers the partition columns, if there are any. `data` is None for some of the row groups.
        """
        from aucdist.data.formats.arrow_tables import parse_parquet, path_values

        values = path_values(part.url)
        return replace(parse_parquet(self.source, part, self.schema, data), digest=json.dumps(values) if values else "")

    def read_part(self, part: FilePart) -> Parsed:
        """Parse a file, or some of its row groups, and return their rows."""
        if part.stop is None:
            return super().read_part(part)
        part.check_version()  # the file may have changed while it was read
        parsed = self.parse(None, part)
        part.check_version()
        return parsed


class SvmlightFormat(LineFormat):
    """svmlight (libsvm) files."""

    fields = UNSHARDED | {"n_features", "zero_based", "labels", "qid"}

    def parse(self, data: bytes, part: FilePart) -> Parsed:
        """Return the rows as CSR."""
        from aucdist.data.formats.svmlight import parse_svmlight

        n_features = len(self.schema.feature_names) if self.schema else self.source.n_features
        return parse_svmlight(data, part.where, self.source, n_features, part.line)

    def feature_names(self, survey: Survey) -> tuple[str, ...]:
        """Return the numbers of the features, up to the largest one that occurs or that the source states."""
        if survey.width == 0:
            raise InputError(f"{survey.where}: no row has a feature: give at least one value, such as 3:0.5")
        if self.source.n_features is None and survey.width > max(
            ALWAYS_ALLOWED_FEATURES, FEATURES_PER_VALUE * survey.stored
        ):
            raise InputError(
                f"{survey.where}: the largest feature is number {survey.width}, but only {survey.stored} values are not "
                f"zero: a model with that many weights would fill the memory. If this is intended, set n_features: {survey.width}"
            )
        n_features = self.source.n_features or survey.width
        check_fits(n_features * BYTES_PER_FEATURE, f"{survey.where}: names of all features")
        return self._numbers(n_features)

    def _numbers(self, n_features: int) -> tuple[str, ...]:
        start = 0 if self.source.zero_based else 1
        return tuple(map(str, range(start, start + n_features)))

    def is_sparse(self, survey: Survey, n_features: int) -> bool:
        """Return whether at most half of the entries are nonzero."""
        return survey.stored <= DENSE_ABOVE * survey.rows * n_features

    def for_scoring(self, schema: "Schema") -> Json:
        """Return the changes of `Format.for_scoring`. Raise an InputError if the model's features have names."""
        if schema.feature_names != self._numbers(len(schema.feature_names)):
            raise InputError(
                f"{self.source.display_name}: the model was trained on features with names "
                f"({schema.feature_names[0]}, ...), but features of svmlight files have only numbers: give a table "
                "with these columns"
            )
        return {
            "qid": "ignore" if self.source.qid == "use" else self.source.qid,
            "labels": "numbers" if self.source.labels == "grades" else self.source.labels,
        }


class ShardsFormat(FileFormat):
    """Sharded data sets."""

    of_one = "format 'shards' reads one folder"

    def parse(self, data: bytes, part: FilePart) -> NoReturn:
        """Raise an InputError, because shards are read as blocks."""
        raise InputError("shards are blocks already: read them with aucdist.data.shards.reading.open_rows")


class EmbeddedFormat(Format):
    """Bundled data sets, by their names."""

    fields = UNSHARDED
    of_one = "format 'embedded' reads one data set"

    def read_part(self, part: FilePart) -> Parsed:
        """Return all rows. The digest is the checksum of their numbers."""
        import numpy as np
        import sklearn.datasets

        name = self.source.source
        if name not in EMBEDDED:
            raise unknown("embedded data set", name, EMBEDDED)
        bunch = getattr(sklearn.datasets, f"load_{name}")()
        X = np.ascontiguousarray(bunch.data, dtype=np.float64)
        class_numbers = np.asarray(bunch.target, dtype=np.int64)
        labels = Labels.of(class_numbers, [str(c) for c in bunch.target_names])
        survey = Survey.of(
            self.source.display_name, labels, label="target", columns=tuple(map(str, bunch.feature_names))
        )
        return Parsed(survey, labels, X, digest=files.sha256_of(X.tobytes() + class_numbers.tobytes()))


FORMATS: dict[str, type[Format]] = {
    "svmlight": SvmlightFormat,
    "csv": CsvFormat,
    "keel": KeelFormat,
    "arff": KeelFormat,
    "parquet": ParquetFormat,
    "jsonl": JsonLinesFormat,
    "arrow": ArrowFormat,
    "excel": ExcelFormat,
    "sql": SqlFormat,
    "delta": DeltaFormat,
    "iceberg": IcebergFormat,
    "embedded": EmbeddedFormat,
    "shards": ShardsFormat,
}
COMMON_FIELDS = frozenset({"source", "format", "rows", "features", "title", "origin", "licence", "note"})
"""The keys that a source of any format may have."""


def format_from_suffix(name: str) -> Json:
    """Return the keys of a source that the suffix of a file name determines, including its format.

    There are none for other suffixes.
    """
    suffix = PurePosixPath(name).suffix.lower()
    if suffix == ".tsv":
        return {"format": "csv", "separator": "tab"}
    return {"format": SUFFIXES[suffix]} if suffix in SUFFIXES else {}


def format_from_bytes(head: bytes, where: str) -> Json:
    """Return the keys of a source that the first bytes of a file determine, including its format.

    Parameters
    ----------
    head : bytes
        The first bytes after decompression.
    where : str
        The name of the data in error messages.

    Raises
    ------
    InputError
        If they are those of a web page or of an unknown format.
    """
    first = head.lstrip()
    if first[:1] == b"<":
        raise InputError(
            f"{where} is a web page ({first[:40].decode(errors='replace')!r}), and not a table: check the "
            "address, and whether it needs a login"
        )
    for begin, name in FIRST_BYTES.items():
        if first.startswith(begin):
            return {"format": name}
    if b"\0" in head and found_encoding(head) != "utf-16":
        raise InputError(
            f"{where}: its name and its first bytes do not show its format: name one, as in --set format=csv"
        )
    lines = [
        line for line in head.split(b"\n")[:-1] or [head] if line.strip() and not line.lstrip().startswith((b"#", b"%"))
    ]
    if lines and lines[0].lstrip().lower().startswith((b"@relation", b"@attribute")):
        return {"format": "keel"}
    if lines and SVMLIGHT_ROW.fullmatch(lines[0]):
        return {"format": "svmlight"}
    return {"format": "csv"}
