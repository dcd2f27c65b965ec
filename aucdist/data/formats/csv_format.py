"""The format `csv`: text files of cells between separators, with or without a header."""

from typing import TYPE_CHECKING, ClassVar

from aucdist.data.formats.base import OF_COLUMNS, TableFormat
from aucdist.data.formats.lines import LineFormat, after_line_break, first_line_with_text
from aucdist.data.formats.part import FilePart
from aucdist.data.formats.source_fields import SourceFields
from aucdist.data.storage import files
from aucdist.errors import InputError

if TYPE_CHECKING:
    from aucdist.data.dataset import Schema
    from aucdist.data.formats.base import Parsed


OF_CELLS = frozenset(
    {"header", "columns", "separator", "encoding", "decimal", "thousands", "symbols", "quote", "skip_lines"}
)
"""The keys that say how the lines of a file are written."""


class CsvFormat(TableFormat, LineFormat):
    """CSV files, and others with a separator of their own."""

    name = "csv"
    fields = OF_COLUMNS | OF_CELLS
    suffixes: ClassVar = {".csv": {}, ".tsv": {"separator": "tab"}}
    needs_label = True

    def check(self, source: SourceFields) -> None:
        """Refuse names of columns for files that have a header, and a column that is to be read in two ways."""
        super().check(source)
        if source.columns is not None and source.header:
            raise InputError("`columns` names the columns of a file without a header: give `header: false` with it")
        if source.decimal == source.thousands:
            raise InputError(f"`decimal` and `thousands` are both {source.decimal!r}: they must differ")

    def read_header(
        self, url: str, start: int, stat: files.Stat, source: SourceFields
    ) -> tuple[int, tuple[str, ...], int]:
        """Return where the rows start, the columns, and the number of the first line of rows."""
        from aucdist.data.formats.delimited import csv_head

        where, skip = files.shown(url), source.skip_lines
        for i in range(skip):
            start = after_line_break(url, start + 1, stat)
            if start == stat.size:
                raise InputError(f"{where} has {i + 1} lines, and `skip_lines` passes over {skip}")
        names, after, line = csv_head(first_line_with_text(url, start, stat), where, source, source.encoding, 0)
        return start + after, tuple(names), line + skip

    def parse(self, data: bytes, source: SourceFields, part: FilePart, schema: "Schema | None") -> "Parsed":
        """Return the columns."""
        from aucdist.data.formats.delimited import parse_csv

        return parse_csv(data, source, part, schema)
