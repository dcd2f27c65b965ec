"""Formats that become tables of Arrow: Parquet, which is read by row groups, and what other libraries read whole.

JSON lines, Arrow, Excel, queries of databases, Delta and Iceberg are one piece for each file or query.
"""

import json
import math
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from aucdist.data.formats.base import OF_COLUMNS, FileFormat, FilePart, TableFormat, version_of
from aucdist.data.formats.source_fields import SourceFields
from aucdist.data.storage import files
from aucdist.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from aucdist.data.dataset import Schema
    from aucdist.data.formats.base import Parsed


SELECT = re.compile(r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(?:select|with|values|from|table)\b", re.IGNORECASE | re.DOTALL)
CHANGES = re.compile(r"\binto\b|\bdelete\s+from\b|\bupdate\s+\S+\s+set\b", re.IGNORECASE)
TEXTS = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")


class ArrowFileFormat(TableFormat, FileFormat):
    """A format of files, each of which becomes a table of Arrow."""

    fields = OF_COLUMNS | {"where"}
    needs_label = True

    @abstractmethod
    def to_arrow(self, data: bytes, where: str, source: SourceFields) -> "pa.Table":
        """Return the columns in the bytes of a file."""

    def parse(self, data: bytes, source: SourceFields, part: FilePart, schema: "Schema | None") -> "Parsed":
        """Return the columns."""
        from aucdist.data.formats.parquet import parse_arrow

        where = files.shown(part.url)
        return parse_arrow(self.to_arrow(data, where, source), where, source, schema)


class JsonLinesFormat(ArrowFileFormat):
    """Files with one JSON object on each line, or with one array of them."""

    name = "jsonl"
    suffixes: ClassVar = {".jsonl": {}, ".ndjson": {}, ".json": {}}

    def to_arrow(self, data: bytes, where: str, source: SourceFields) -> "pa.Table":
        """Return the columns: the keys of all objects."""
        from aucdist.data.formats.arrow_tables import from_json_lines

        return from_json_lines(data, where)


class ArrowFormat(ArrowFileFormat):
    """Files and streams of Arrow, which Feather files are, too."""

    name = "arrow"
    suffixes: ClassVar = {".arrow": {}, ".feather": {}, ".ipc": {}}

    def to_arrow(self, data: bytes, where: str, source: SourceFields) -> "pa.Table":
        """Return the columns."""
        from aucdist.data.formats.arrow_tables import from_ipc

        return from_ipc(data, where)


class ExcelFormat(ArrowFileFormat):
    """Workbooks of spreadsheets, of which one sheet is read."""

    name = "excel"
    fields = OF_COLUMNS | {"where", "sheet", "skip_lines"}
    suffixes: ClassVar = {".xlsx": {}}

    def to_arrow(self, data: bytes, where: str, source: SourceFields) -> "pa.Table":
        """Return the columns of a sheet."""
        from aucdist.data.formats.arrow_tables import from_excel

        return from_excel(data, where, source.sheet, source.skip_lines)


class LoadedFormat(TableFormat):
    """A format whose rows a library fetches by a URL, so that there are no files to be read one by one."""

    fields = OF_COLUMNS - {"sha256"} | {"where"}
    needs_label = True

    @abstractmethod
    def load(self, url: str, source: SourceFields) -> "pa.Table":
        """Return the rows at a URL."""

    def describe_files(self, source: SourceFields) -> list[dict[str, Any]]:
        """Return each URL, without its password."""
        return [{"url": files.shown(url)} for url in source.urls()]

    def read_part(
        self, source: SourceFields, part: FilePart, schema: "Schema | None", digests: list[str] | None = None
    ) -> "tuple[Parsed, int]":
        """Return all rows at a URL."""
        from aucdist.data.formats.arrow_tables import digest_of
        from aucdist.data.formats.parquet import parse_arrow

        table = self.load(part.url, source)
        if digests is not None:
            digests.append(digest_of(table))
        return parse_arrow(table, files.shown(part.url), source, schema), 0


class SqlFormat(LoadedFormat):
    """What a query of a database returns."""

    name = "sql"
    fields = LoadedFormat.fields | {"query"}

    def check(self, source: SourceFields) -> None:
        """Refuse a source without a query, or with one that does anything but select."""
        super().check(source)
        if source.query is None:
            raise InputError(
                "format 'sql' needs `query`: what is selected, with ORDER BY so that rows keep their numbers"
            )
        refuse_other_statements(source.query)

    def load(self, url: str, source: SourceFields) -> "pa.Table":
        """Return the rows of the query."""
        from aucdist.data.formats.arrow_tables import from_query

        return from_query(url, str(source.query))


def refuse_other_statements(query: str) -> None:
    """Do nothing if a query is one SELECT.

    Databases differ in what ends a text or a comment, so a semicolon is allowed only at the end, and in a text that all of them
    read alike.
    Raises InputError if it is another statement, or several.
    """
    query = query.strip().rstrip(";")
    if not SELECT.match(query):
        raise InputError("`query` must be one SELECT: the database is only read")
    code = TEXTS.sub("''", query)
    unclear = any(sign in query for sign in ("\\", "$", "--", "/*", "#"))
    if ";" in (query if unclear else code):
        raise InputError("`query` must be one SELECT, without a semicolon inside: the database is only read")
    if CHANGES.search(code):
        raise InputError("`query` must be a SELECT, without INTO, DELETE or UPDATE: the database is only read")


class DeltaFormat(LoadedFormat):
    """Tables of Delta Lake, by the URL of their folder."""

    name = "delta"

    def load(self, url: str, source: SourceFields) -> "pa.Table":
        """Return the rows of the newest version."""
        from aucdist.data.formats.arrow_tables import from_delta

        return from_delta(url)


class IcebergFormat(LoadedFormat):
    """Tables of Iceberg, by the URL of a metadata file."""

    name = "iceberg"

    def load(self, url: str, source: SourceFields) -> "pa.Table":
        """Return the rows of the current snapshot."""
        from aucdist.data.formats.arrow_tables import from_iceberg

        return from_iceberg(url)


class ParquetFormat(TableFormat, FileFormat):
    """Parquet files."""

    name = "parquet"
    fields = OF_COLUMNS | {"where"}
    suffixes: ClassVar = {".parquet": {}, ".pq": {}}
    needs_label = True

    def n_bytes(self, source: SourceFields) -> int:
        """Return the bytes of the row groups, uncompressed."""
        local = [part for part in self.whole_files(source) if not files.is_web(part.url)]
        return sum(sum(sizes.values()) for sizes in _row_group_sizes(local, source).values())

    def whole_files(self, source: SourceFields) -> list[FilePart]:
        """Return each file as one part, which knows the columns of folders that hold texts."""
        from aucdist.data.formats.parquet import text_columns

        urls = self.part_urls(source)
        texts = text_columns(urls)
        return [FilePart(url, folder_texts=texts) for url in urls]

    def split(self, source: SourceFields, n: int) -> list[FilePart]:
        """Return ranges of row groups, but whole files where the source has a `sha256`."""
        if source.sha256 is not None:
            return super().split(source, n)
        return _ranges(_row_group_sizes(self.whole_files(source), source), n)

    def parse(self, data: bytes, source: SourceFields, part: FilePart, schema: "Schema | None") -> "Parsed":
        """Return the columns."""
        from aucdist.data.formats.parquet import parse_parquet

        return parse_parquet(data, source, part, schema)

    def digest_of_path(self, url: str) -> str:
        """Return the columns that the folders of a file stand for, if there are any."""
        from aucdist.data.formats.parquet import path_values

        values = path_values(url)
        return json.dumps(values) if values else ""

    def read_range(self, source: SourceFields, part: FilePart, schema: "Schema | None") -> "tuple[Parsed, int]":
        """Return what is in some row groups."""
        from aucdist.data.formats.parquet import parse_row_groups

        return parse_row_groups(source, part, schema), 0


def _row_group_sizes(parts: Sequence[FilePart], source: SourceFields) -> dict[FilePart, dict[int, int]]:
    from aucdist.data.formats.parquet import row_group_sizes

    return {part: row_group_sizes(part.url, source, part.folder_texts) for part in parts}


def _ranges(sizes: Mapping[FilePart, Mapping[int, int]], n: int) -> list[FilePart]:
    """Return ranges of row groups that follow each other, each of about an n-th of all bytes."""
    share = max(1, math.ceil(sum(sum(of_file.values()) for of_file in sizes.values()) / n))
    found: list[FilePart] = []
    in_part = 0
    for part, of_file in sizes.items():
        file = replace(part, version=version_of(part.url))
        for i, size in of_file.items():
            if found and (found[-1].url, found[-1].stop) == (part.url, i) and in_part + size <= share:
                found[-1] = replace(found[-1], stop=i + 1)
                in_part += size
            else:
                found.append(replace(file, start=i, stop=i + 1))
                in_part = size
    return found or [replace(file, stop=0)]
