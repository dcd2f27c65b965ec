"""The format `csv`: text files of cells between separators, with or without a header."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from aucdist.data.formats.base import OF_COLUMNS, TableFormat
from aucdist.data.formats.lines import LineFormat, first_line_with_text
from aucdist.data.formats.source_fields import SourceFields
from aucdist.data.storage import files
from aucdist.errors import InputError

if TYPE_CHECKING:
    from aucdist.data.dataset import Schema
    from aucdist.data.formats.base import Parsed


class CsvFormat(TableFormat, LineFormat):
    """CSV files, and others with a separator of their own."""

    name = "csv"
    fields = OF_COLUMNS | {"header", "columns", "separator"}
    suffixes: ClassVar = {".csv": {}, ".tsv": {"separator": "tab"}}
    needs_label = True

    def check(self, source: SourceFields) -> None:
        """Refuse names of columns for files that have a header, and a column that is to be read in two ways."""
        super().check(source)
        if source.columns is not None and source.header:
            raise InputError("`columns` names the columns of a file without a header: give `header: false` with it")

    def read_header(
        self, url: str, start: int, stat: files.Stat, source: SourceFields
    ) -> tuple[int, tuple[str, ...], int]:
        """Return where the rows start, the columns, and the number of the first line of rows."""
        from aucdist.data.formats.delimited import csv_head

        names, after, line = csv_head(first_line_with_text(url, start, stat), files.shown(url), source)
        return start + after, tuple(names), line

    def parse(
        self,
        data: bytes,
        where: str,
        source: SourceFields,
        schema: "Schema | None",
        *,
        columns: Sequence[str] = (),
        first_line: int = 1,
    ) -> "Parsed":
        """Return the columns."""
        from aucdist.data.formats.delimited import parse_csv

        return parse_csv(data, where, source, schema, columns=columns, first_line=first_line)
