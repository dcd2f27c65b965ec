"""The format `csv`: text files of cells between separators, with or without a header."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from aucdist.data.formats.base import (
    OF_COLUMNS,
    FilePart,
    LineFormat,
    TableFormat,
    after_line_break,
    first_line_with_text,
)
from aucdist.data.formats.source_fields import SourceFields
from aucdist.data.formats.text import BLANKS, as_utf8, first_row, unique
from aucdist.data.storage import files
from aucdist.errors import InputError

if TYPE_CHECKING:
    from aucdist.data.dataset import Schema
    from aucdist.data.formats.base import Parsed
    from aucdist.data.formats.csv_text import CsvText

SEPARATORS = {"space": BLANKS, "tab": "\t"}
QUOTES = {"double": '"', "single": "'"}
MOST_BELOW = 2**20
"""Bytes of the row below a header."""
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
        where, skip = files.shown(url), source.skip_lines
        for i in range(skip):
            start = after_line_break(url, start + 1, stat)
            if start == stat.size:
                raise InputError(f"{where} has {i + 1} lines, and `skip_lines` passes over {skip}")
        head = first_line_with_text(url, start, stat)
        if start + len(head) < stat.size:
            stop = min(start + len(head) + MOST_BELOW, stat.size)
            head += files.read_range(url, start + len(head), stop, stat)
        names, after, line = csv_head(head, where, source, source.encoding, 0)
        return start + after, tuple(names), line + skip

    def parse(self, data: bytes, source: SourceFields, part: FilePart, schema: "Schema | None") -> "Parsed":
        """Return the columns. A range of a file, which has no header, brings their names."""
        from aucdist.data.formats.csv_text import parse_cells
        from aucdist.data.formats.table_form import TableForm

        where, first_line, names = files.shown(part.url), part.line or 1, list(part.columns)
        data = as_utf8(data, where, source, first_line)
        if not names:
            names, start, first_line = csv_head(data, where, source)
            data = data[start:]
        form = TableForm.of(source, schema, names, where)
        return parse_cells(csv_text(data, where, source, names, first_line), form)


def csv_text(data: bytes, where: str, source: SourceFields, names: Sequence[str], first_line: int) -> "CsvText":
    """Return the lines below the header of a CSV file, which are UTF-8, as a source says that they are written."""
    from aucdist.data.formats.csv_text import CsvText

    data = data if data.endswith(b"\n") else data + b"\n"
    return CsvText(data, where, names, separator_of(source), QUOTES[source.quote], source.decimal, first_line)


def separator_of(source: SourceFields) -> str:
    """Return what stands between the cells of a CSV file."""
    return SEPARATORS.get(source.separator, source.separator)


def with_names(cells: Sequence[str], first: Sequence[str] | None) -> list[str]:
    """Return the names of columns, from the cells of a header and of the row below it.

    Empty cells get names: ``index`` for the first, as pandas writes it, else x2, x3, ... So do row names, which R writes below a
    header that is one short. A name that comes again is called name.1, name.2, ...
    """
    if not any(cells):
        return list(cells)
    if first is not None and len(first) == len(cells) + 1 and first[-1]:
        cells = ["", *cells]
    made = ["index" if i == 1 and "index" not in cells else f"x{i}" for i in range(1, len(cells) + 1)]
    named = [cell or name for cell, name in zip(cells, made, strict=True)]
    seen: set[str] = set()
    for j, name in enumerate(named):
        again = 0
        while named[j] in seen or (again and named[j] in named[:j] + named[j + 1 :]):
            again += 1
            named[j] = f"{name}.{again}"
        seen.add(named[j])
    return named


def csv_head(
    data: bytes, where: str, source: SourceFields, encoding: str = "utf-8", n_skipped: int | None = None
) -> tuple[list[str], int, int]:
    """Return the column names of a CSV file, where its rows start, and the number of the line there.

    `data`: the header and the row below it, at least.
    `encoding`: of `data`.
    `n_skipped`: lines that are passed over first; by default those that the source says.
    """
    skip, start = source.skip_lines if n_skipped is None else n_skipped, 0
    for i in range(skip):
        start = data.find(b"\n", start) + 1
        if start == 0:
            raise InputError(f"{where} has {i + 1} lines, and `skip_lines` passes over {skip}")
    separator, quote = separator_of(source), QUOTES[source.quote]
    next_line, cells, end = first_row(data, where, separator, start=start, encoding=encoding, quote=quote)
    if not source.header:
        return unique(source.columns or [f"x{i}" for i in range(1, len(cells) + 1)], where), start, 1 + skip
    try:
        first = first_row(data[: end + MOST_BELOW], where, separator, start=end, encoding=encoding, quote=quote)[1]
    except InputError:  # no rows, or one that is named where it is read
        first = None
    return unique(with_names(cells, first), where), end, next_line
