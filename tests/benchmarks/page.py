"""The page of a benchmark: its tables, and its figure if it has one."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

import pandas as pd

from aucdist.report.html import render_template
from aucdist.report.text import value_text

MAX_WIDTH = 125
"""Characters in a row of a table; a page of 1300 pixels shows as many."""
COLUMN_GAP, LONGEST_TEXT = 3, 24
"""Characters between two columns, and of a line of text before it is wrapped."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class BenchTable:
    """A table of the page; the first column has the names of the rows.

    `text_columns`: the columns without numbers.
    `rows`: the text of each cell, and whether it is text rather than a number.
    """

    columns: Sequence[str]
    text_columns: Set[str]
    rows: Sequence[Sequence[tuple[str, bool]]]


def render_bench_page(title: str, conditions: str, results: pd.DataFrame, figure: str | None) -> str:
    """Return the page as HTML. Equal arguments give equal text.

    `conditions`: the machine and the settings of the measurements.
    `results`: a row for each measurement; missing values become empty cells.
    `figure`: a standalone SVG file, as `plots.standalone_svg` returns it.
    """
    from markupsafe import Markup

    return render_template(
        Path(__file__).with_name("page.html"),
        title=title,
        conditions=conditions,
        tables=list(bench_tables(results)),
        figure=figure and Markup(figure),
    )


def bench_tables(results: pd.DataFrame) -> Iterator[BenchTable]:
    """Yield tables that together have every value of the results.

    Rows that have no number in common with those before them begin a new table. A table that is too wide for a page is split by
    its columns, and each part begins with the columns of text that name the rows.
    """
    records = results.to_dict("records")
    present = [{column: value for column, value in row.items() if not _is_missing(value)} for row in records]
    for rows in _groups([{str(column): value for column, value in row.items()} for row in present]):
        columns = [str(column) for column in results.columns if any(column in row for row in rows)]
        for part in _column_parts(columns, rows):
            of_text = {column for column in part if not any(_is_number(row.get(column)) for row in rows)}
            yield BenchTable(part, of_text, [[_cell(row.get(column)) for column in part] for row in rows])


def _is_missing(value: Any) -> bool:
    return value is None or value == "" or (pd.api.types.is_scalar(value) and bool(pd.isna(value)))


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _groups(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yield runs of rows that share a column of numbers with the rows of the run before them."""
    group: list[Row] = []
    numbers: set[str] = set()
    for row in rows:
        own = {column for column, value in row.items() if _is_number(value)}
        if group and own and numbers and not own & numbers:
            yield group
            group, numbers = [], set()
        group.append(row)
        numbers |= own
    if group:
        yield group


def _column_parts(columns: Sequence[str], rows: Sequence[Row]) -> Iterator[list[str]]:
    """Yield the columns of each part of a table, none wider than a page if that is possible."""
    widths = {column: _width(column, rows) for column in columns}
    names: list[str] = []
    for column in columns:
        if any(_is_number(row.get(column)) for row in rows):
            break
        names.append(column)
    names = names or list(columns[:1])
    part, width = list(names), sum(widths[column] for column in names)
    for column in columns[len(names) :]:
        if width + widths[column] > MAX_WIDTH and len(part) > len(names):
            yield part
            part, width = list(names), sum(widths[name] for name in names)
        part.append(column)
        width += widths[column]
    if len(part) > len(names) or len(columns) == len(names):
        yield part


def _width(column: str, rows: Sequence[Row]) -> int:
    """Return the characters of a column; headings are wrapped between words, and long texts anywhere."""
    texts = [_cell(row.get(column)) for row in rows]
    longest = max((min(len(text), LONGEST_TEXT) if is_text else len(text) for text, is_text in texts), default=0)
    return max(longest, *(len(word) for word in column.split())) + COLUMN_GAP


def _cell(value: Any) -> tuple[str, bool]:
    if value is None:
        return "", True
    return value_text(value), not _is_number(value)
