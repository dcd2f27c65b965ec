"""All formats by name: a new one is a class here or in a module beside this one, and a row here.

Parquet is read by row groups. A format that another library reads as a whole has one part for each file or query.
"""

import json
import re
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

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
from aucdist.data.formats.source_fields import SourceFields
from aucdist.data.formats.text import found_encoding
from aucdist.data.labels import Labels
from aucdist.data.storage import files
from aucdist.data.storage.guard import check_fits
from aucdist.errors import InputError, unknown

if TYPE_CHECKING:
    import pyarrow as pa

    from aucdist.data.dataset import Schema

SELECT = re.compile(r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(?:select|with|values|from|table)\b", re.IGNORECASE | re.DOTALL)
CHANGES = re.compile(r"\binto\b|\bdelete\s+from\b|\bupdate\s+\S+\s+set\b", re.IGNORECASE)
TEXTS = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
DENSE_ABOVE = 0.5
"""Rows with a larger share of non-zero entries are read faster as dense rows, which hardly take more memory."""
ALWAYS_WIDE, WIDTH_PER_VALUE = 2**20, 10
"""The number of features that is always allowed, and the number of features that is allowed for each value that is not
zero. Without a limit, a file of one line could name feature 2 147 483 647."""
BYTES_PER_FEATURE = 150
"""The memory that the name, the weight and the statistics of a feature take."""
EMBEDDED = ("breast_cancer", "digits", "iris", "wine")
SVMLIGHT_ROW = re.compile(rb"\s*[+-]?[\w.]+(,[\w.]+)*(\s+qid:\d+)?(\s+\d+:[^\s:]+)+\s*(#.*)?")
FIRST_BYTES = {b"PAR1": "parquet", b"ARROW1": "arrow", b"PK\x03\x04": "excel", b"{": "jsonl", b"[": "jsonl"}


def to_arrow(reader: str, *arguments: Any) -> "pa.Table":
    """Return what a function of `aucdist.data.formats.arrow_tables`, named by a format, makes of its arguments."""
    from aucdist.data.formats import arrow_tables

    table: pa.Table = getattr(arrow_tables, reader)(*arguments)
    return table


class ArrowFileFormat(TableFormat, FileFormat):
    """A format of files, each of which becomes a table of Arrow.

    Attributes
    ----------
    reader : str
        The function of `aucdist.data.formats.arrow_tables` that makes one: ``reader(data, where, source)``.
    """

    fields = OF_COLUMNS | {"where"}
    reader: ClassVar[str]

    def parse(self, data: bytes, source: SourceFields, part: FilePart, schema: "Schema | None") -> Parsed:
        """Return the columns."""
        from aucdist.data.formats.arrow_tables import parse_arrow

        where = part.where
        return parse_arrow(to_arrow(self.reader, data, where, source), where, source, schema)


class JsonLinesFormat(ArrowFileFormat):
    """Files with one JSON object on each line, or with one array of them; the columns are the keys of all objects."""

    name, reader = "jsonl", "from_json_lines"
    suffixes: ClassVar = {".jsonl": {}, ".ndjson": {}, ".json": {}}


class ArrowFormat(ArrowFileFormat):
    """Files and streams of Arrow. Feather files are among them."""

    name, reader = "arrow", "from_ipc"
    suffixes: ClassVar = {".arrow": {}, ".feather": {}, ".ipc": {}}


class ExcelFormat(ArrowFileFormat):
    """Workbooks of spreadsheets, of which one sheet is read."""

    name, reader = "excel", "from_excel"
    fields = OF_COLUMNS | {"where", "sheet", "skip_lines"}
    suffixes: ClassVar = {".xlsx": {}}


class LoadedFormat(TableFormat):
    """A format whose rows a library fetches by a URL, so that there are no files to be read one by one.

    Attributes
    ----------
    reader : str
        The function of `aucdist.data.formats.arrow_tables` that fetches them as a table of Arrow: ``reader(url, source)``.
    """

    fields = OF_COLUMNS - {"sha256"} | {"where"}
    reader: ClassVar[str]

    def read_part(self, source: SourceFields, part: FilePart, schema: "Schema | None") -> Parsed:
        """Return all rows at a URL."""
        from aucdist.data.formats.arrow_tables import digest_of, parse_arrow

        table = to_arrow(self.reader, part.url, source)
        return replace(parse_arrow(table, part.where, source, schema), digest=digest_of(table))


class DeltaFormat(LoadedFormat):
    """The newest version of tables of Delta Lake, by the URL of their folder."""

    name, reader = "delta", "from_delta"


class IcebergFormat(LoadedFormat):
    """The current snapshot of tables of Iceberg, by the URL of a metadata file."""

    name, reader = "iceberg", "from_iceberg"


class SqlFormat(LoadedFormat):
    """What a query of a database returns."""

    name, reader = "sql", "from_query"
    fields = LoadedFormat.fields | {"query"}

    def check(self, source: SourceFields) -> None:
        """Refuse a source without a query, or with one that does anything but select.

        Databases differ in what ends a text or a comment, so a semicolon is allowed only at the end, and in a text that all of
        them read alike.
        """
        super().check(source)
        if source.query is None:
            raise InputError("format 'sql' needs `query`, such as SELECT age, clicked FROM clicks ORDER BY id")
        query = source.query.strip().rstrip(";")
        if not SELECT.match(query):
            raise InputError("`query` must be one SELECT: the database is only read")
        code = TEXTS.sub("''", query)
        unclear = any(sign in query for sign in ("\\", "$", "--", "/*", "#"))
        if ";" in (query if unclear else code):
            raise InputError("`query` must be one SELECT, without a semicolon inside: the database is only read")
        if CHANGES.search(code):
            raise InputError("`query` must be a SELECT, without INTO, DELETE or UPDATE: the database is only read")


class ParquetFormat(TableFormat, FileFormat):
    """Parquet files."""

    name = "parquet"
    fields = OF_COLUMNS | {"where"}
    suffixes: ClassVar = {".parquet": {}, ".pq": {}}

    def whole_files(self, source: SourceFields) -> list[FilePart]:
        """Return each file as one part, which knows the columns of folders that hold texts."""
        from aucdist.data.formats.arrow_tables import text_columns

        urls = self.part_urls(source)
        texts = text_columns(urls)
        return [FilePart(url, folder_texts=texts) for url in urls]

    def split(self, source: SourceFields, n: int | None) -> list[FilePart]:
        """Return ranges of row groups, each of about an n-th of all bytes, uncompressed; files with a `sha256` stay whole."""
        from aucdist.data.formats.arrow_tables import row_group_sizes

        parts = super().split(source, n)
        if source.sha256 is not None:
            return parts
        groups = [(part, i, size) for part in parts for i, size in row_group_sizes(source, part).items()]
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

    def parse(self, data: bytes, source: SourceFields, part: FilePart, schema: "Schema | None") -> Parsed:
        """Return the columns; the digest is that of the columns that the folders of the file stand for, if there are any."""
        from aucdist.data.formats.arrow_tables import parse_parquet, path_values

        values = path_values(part.url)
        return replace(parse_parquet(source, part, schema, data), digest=json.dumps(values) if values else "")

    def read_range(self, source: SourceFields, part: FilePart, schema: "Schema | None") -> Parsed:
        """Parse some row groups and return their rows."""
        from aucdist.data.formats.arrow_tables import parse_parquet

        return parse_parquet(source, part, schema)


class SvmlightFormat(LineFormat):
    """Files of svmlight and libsvm."""

    name = "svmlight"
    fields = UNSHARDED | {"n_features", "zero_based", "labels", "qid"}
    suffixes: ClassVar = {".svm": {}, ".svmlight": {}, ".libsvm": {}}

    def parse(self, data: bytes, source: SourceFields, part: FilePart, schema: "Schema | None") -> Parsed:
        """Return the rows as CSR."""
        from aucdist.data.formats.svmlight import parse_svmlight

        n_features = len(schema.feature_names) if schema else source.n_features
        return parse_svmlight(data, part.where, source, n_features, part.line or 1)

    def feature_names(self, source: SourceFields, survey: Survey) -> tuple[str, ...]:
        """Return the numbers of the features, up to the largest that occurs or that the source states."""
        if survey.width == 0:
            raise InputError(f"{survey.where}: no row has a feature: at least one value, such as 3:0.5, is needed")
        if source.n_features is None and survey.width > max(ALWAYS_WIDE, WIDTH_PER_VALUE * survey.stored):
            raise InputError(
                f"{survey.where}: the largest feature is number {survey.width}, but only {survey.stored} values are not "
                f"zero: a model of so many weights would fill the memory. If it is meant, give n_features: {survey.width}"
            )
        n_features = source.n_features or survey.width
        check_fits(n_features * BYTES_PER_FEATURE, f"{survey.where}: names of all features")
        return self._numbers(source, n_features)

    def _numbers(self, source: SourceFields, n_features: int) -> tuple[str, ...]:
        start = 0 if source.zero_based else 1
        return tuple(map(str, range(start, start + n_features)))

    def is_sparse(self, survey: Survey, n_features: int) -> bool:
        """Tell whether at most half of the entries are not zero."""
        return survey.stored <= DENSE_ABOVE * survey.rows * n_features

    def for_scoring(self, source: SourceFields, schema: "Schema") -> dict[str, Any]:
        """Refuse a model whose features have names."""
        if schema.feature_names != self._numbers(source, len(schema.feature_names)):
            raise InputError(
                f"{source.display_name}: the model was trained on features with names "
                f"({schema.feature_names[0]}, ...), but features of svmlight files have only numbers: give a table "
                "with these columns"
            )
        return {
            "qid": "ignore" if source.qid == "use" else source.qid,
            "labels": "numbers" if source.labels == "grades" else source.labels,
        }


class ShardsFormat(FileFormat):
    """Sharded data sets."""

    name = "shards"

    def check(self, source: SourceFields) -> None:
        """Refuse several sources."""
        if not isinstance(source.source, str):
            raise InputError("format 'shards' reads one folder: give `source` one path")

    def read_part(self, source: SourceFields, part: FilePart, schema: "Schema | None") -> NoReturn:
        """Refuse."""
        raise InputError("shards are blocks already: read them with aucdist.data.shards.reading.open_rows")


class EmbeddedFormat(Format):
    """Bundled data sets, by their names."""

    name = "embedded"
    fields = UNSHARDED

    def read_part(self, source: SourceFields, part: FilePart, schema: "Schema | None") -> Parsed:
        """Return all rows; their checksum is that of the numbers."""
        import numpy as np
        import sklearn.datasets

        if not isinstance(source.source, str):
            raise InputError("format 'embedded' reads one data set: give `source` one name")
        if source.source not in EMBEDDED:
            raise unknown("embedded data set", source.source, EMBEDDED)
        bunch = getattr(sklearn.datasets, f"load_{source.source}")()
        X = np.ascontiguousarray(bunch.data, dtype=np.float64)
        codes = np.asarray(bunch.target, dtype=np.int64)
        labels = Labels.of(codes, [str(c) for c in bunch.target_names])
        survey = Survey.of(source.source, labels, label="target", columns=tuple(map(str, bunch.feature_names)))
        return Parsed(survey, labels, X, digest=files.sha256_of(X.tobytes() + codes.tobytes()))


FORMATS: dict[str, Format] = {
    of.name: of
    for of in (
        SvmlightFormat(),
        CsvFormat(),
        KeelFormat(),
        ParquetFormat(),
        JsonLinesFormat(),
        ArrowFormat(),
        ExcelFormat(),
        SqlFormat(),
        DeltaFormat(),
        IcebergFormat(),
        EmbeddedFormat(),
        ShardsFormat(),
    )
}
COMMON_FIELDS = frozenset({"source", "format", "rows", "features", "title", "origin", "licence", "note"})
"""The keys that a source of any format may have."""


def formats_with(field: str) -> list[str]:
    """Return the names of the formats that take a key of a source."""
    return [name for name, of in FORMATS.items() if field in of.fields or field in COMMON_FIELDS]


def format_from_suffix(name: str) -> dict[str, Any]:
    """Return the keys of a source that the ending of a file's name decides, its format among them; none for another ending."""
    suffix = PurePosixPath(name).suffix.lower()
    for of in FORMATS.values():
        if suffix in of.suffixes:
            return {"format": of.name, **of.suffixes[suffix]}
    return {}


def format_from_bytes(head: bytes, where: str) -> dict[str, Any]:
    """Return the keys of a source that the first bytes of a file decide, its format among them.

    `head`: unpacked.
    Raises InputError if they are those of a web page, or of no format that is known.
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
            f"{where}: its name and its first bytes do not show its format; name one, as in --set format=csv"
        )
    lines = [
        line for line in head.split(b"\n")[:-1] or [head] if line.strip() and not line.lstrip().startswith((b"#", b"%"))
    ]
    if lines and lines[0].lstrip().lower().startswith((b"@relation", b"@attribute")):
        return {"format": "keel"}
    if lines and SVMLIGHT_ROW.fullmatch(lines[0]):
        return {"format": "svmlight"}
    return {"format": "csv"}
