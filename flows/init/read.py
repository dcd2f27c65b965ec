"""Read the first rows of a file as strings, to find out what each column contains."""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from aucdist.data.formats.base import HEAD_BYTES, FilePart, Survey
from aucdist.data.formats.csv_and_keel import QUOTES, SEPARATORS, csv_head, csv_text, separator_of
from aucdist.data.formats.registry import ArrowFileFormat, LoadedFormat
from aucdist.data.formats.tables import distinct
from aucdist.data.formats.text import as_utf8, check_names, first_row, found_encoding, looks_like_values, resolve_column
from aucdist.data.sources import Source
from aucdist.data.storage import files
from aucdist.data.storage.guard import BOM, packing_of, unpacked
from aucdist.errors import InputError

MAX_BYTES = 2**24
MAX_FILES = 64
MAX_CELLS = 4_000_000
"""The largest number of cells of an Arrow table that are read."""
MAX_ROWS_BELOW = 200
"""The largest number of rows that are compared with the first one to tell values from names."""
MAX_BYTES_BELOW = 2**18
"""The largest number of bytes of these rows."""
MAX_LINES = 50
"""The largest number of lines from which the layout is detected."""
MAX_HEAD_BYTES = 2**18
"""The largest number of bytes from which the layout is detected."""
MAX_SKIPPED = 30
CANDIDATES = (",", ";", "tab", "|", "space")
COMMA_IN_NUMBER = re.compile(r"[+-]?\d+,\d+")
COMMENTS = (b"#", b"%", b"//", b";;")
NAMES_SEPARATOR = re.compile(rb"\s*\"?sep=.?\"?\s*", re.IGNORECASE)
"""The first line of some CSV files for Excel, which states the separator."""


class FirstRows(NamedTuple):
    """The first rows of a file.

    Attributes
    ----------
    source : Source
        The source, with the keys of the layout that were detected.
    columns : pyarrow.Table
        The cells of the rows.
    location : callable
        Called with the row (counted from 0) and the column of a cell. Returns a description of its location in the file.
    share : float
        The share of the rows of the source, estimated from bytes. It is 1.0 if these are all rows.
    n_files : int
        The number of files of the source.
    """

    source: Source
    columns: pa.Table
    location: Callable[[int, str], str]
    share: float
    n_files: int = 1


def first_rows(source: Source) -> FirstRows:
    """Read the first rows of a source.

    Raises
    ------
    InputError
        If the file cannot be read, or has no such label column.
    """
    urls = source.format_of().part_urls()
    if source.format != "csv":
        return _of_arrow(source, urls)
    data, share = head_of(urls[0])
    where = files.shown(urls[0])
    source, data = with_layout(source, data, where)
    if "header" not in source.model_fields_set and _has_no_header(data, where, source):
        source = source.model_copy(update={"header": False})
    names, start, line = csv_head(data, where, source)
    if isinstance(source.label, str) and source.label not in names and re.fullmatch(r"-?\d{1,9}", source.label):
        # A position that was given on the command line.
        source = source.model_copy(update={"label": int(source.label)})
    resolve_column(names, source.label, where, "label")  # raises an error before all cells are read
    text = csv_text(data[start:], where, source, names, line)
    columns = text.read(names, (), ())
    if source.header:
        # A row may repeat the column names, and its label would count as a class.
        is_header = np.ones(columns.num_rows, dtype=bool)
        for name in names:
            codes, texts = distinct(columns[name])
            cells = texts.to_pylist()
            is_header &= codes == (cells.index(name) if name in cells else -1)
            if not is_header.any():
                break
        else:
            location = text.location(int(np.argmax(is_header)), names[0])
            raise InputError(f"{location}: the header is repeated here, as if two files were joined: remove the line")
    return FirstRows(source, columns, text.location, share / len(urls))


def head_of(url: str) -> tuple[bytes, float]:
    """Return the first lines of a file, and their share of its bytes. The share is 1.0 if these are all lines."""
    if files.is_web(url) or files.stat(url).size <= MAX_BYTES or packing_of(url, files.read_range(url, 0, HEAD_BYTES)):
        data = unpacked(files.read_bytes(url), url)
        size = len(data)
    else:
        data, size = files.read_range(url, 0, MAX_BYTES + 1).removeprefix(BOM), files.stat(url).size
    if len(data) <= MAX_BYTES:
        return data, 1.0
    if found_encoding(data[: 2**16]) == "utf-16":
        return unpacked(files.read_bytes(url), url), 1.0  # in UTF-16, a line break has two bytes
    data = data[: data.rfind(b"\n", 0, MAX_BYTES) + 1]
    return data, len(data) / size


def survey_first_rows(source: Source) -> tuple[Survey, float, dict[str, str]]:
    """Survey the first rows of an svmlight or KEEL file.

    Returns
    -------
    tuple (Survey, float, dict of str to str)
        The survey, the share of the rows as in `FirstRows`, and for each column with only one value the reason why it is
        dropped.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    url, *others = files.files_of(source.source)
    data, share = head_of(url)
    if source.format in ("keel", "arff") and "missing" not in source.model_fields_set:
        source = source.model_copy(update={"missing": "keep"})
    # Both formats read files.
    parsed = source.format_of().parse(data, FilePart(url))  # type: ignore[attr-defined]
    surveyed: Survey = parsed.survey
    numbers = [name for name in surveyed.columns if name not in parsed.texts]
    cells = {name: texts.codes for name, texts in parsed.texts.items()} | dict(zip(numbers, parsed.X.T, strict=False))
    constant = {name: "one value" for name, x in cells.items() if (x == x[:1]).all()}
    constant |= {name: "no values" for name, n in surveyed.missing.items() if n == surveyed.rows}
    return surveyed, share / (1 + len(others)), constant


def _has_no_header(data: bytes, where: str, source: Source) -> bool:
    """Return whether the first line of a file contains values."""
    separator, start = separator_of(source), csv_head(data, where, source.model_copy(update={"header": False}))[1]
    rows: list[list[str]] = []
    last = start + MAX_BYTES_BELOW
    while len(rows) <= MAX_ROWS_BELOW and (start < last or len(rows) < 2) and data[start : start + 2**20].strip():
        _, cells, start = first_row(data, where, separator, start=start, quote=QUOTES[source.quote])
        rows.append(cells)
    return looks_like_values(rows[0], rows[1:])


def _of_arrow(source: Source, urls: list[str]) -> FirstRows:
    """Read the first rows of a source whose format is read as an Arrow table."""
    from aucdist.data.formats.arrow_tables import filtered, path_values, read_row_groups, row_group_sizes, text_columns

    file_format, share, read_urls, where = source.format_of(), 1.0, urls[:1], files.shown(urls[0])
    if source.format == "parquet":
        if path_values(urls[0]):  # a partition column has only one value in each file
            n_files = min(len(urls), MAX_FILES)
            read_urls = [urls[i * len(urls) // n_files] for i in range(n_files)]
        tables, texts, n_bytes, all_bytes = [], text_columns(urls), 0, 0
        for url in read_urls:
            part = FilePart(url, folder_texts=texts)
            sizes = row_group_sizes(source, part)
            totals = itertools.accumulate(sizes.values())
            groups = [group for group, total in zip(sizes, totals, strict=True) if total <= MAX_BYTES // len(read_urls)]
            groups = groups or list(sizes)[:1]
            n_bytes, all_bytes = n_bytes + sum(sizes[i] for i in groups), all_bytes + sum(sizes.values())
            tables.append(read_row_groups(source, replace(part, stop=max(groups, default=-1) + 1)))
        table, share = pa.concat_tables(tables, promote_options="permissive"), n_bytes / all_bytes if all_bytes else 1.0
    elif isinstance(file_format, LoadedFormat):
        table = file_format.table(urls[0])
    else:
        assert isinstance(file_format, ArrowFileFormat)
        table = file_format.table(unpacked(files.read_bytes(urls[0]), urls[0]), where)
    table = filtered(table, source, where)
    table = table.rename_columns(check_names(table.column_names, where, source))
    most = max(1000, MAX_CELLS // max(1, table.num_columns))
    return FirstRows(
        source, table.slice(0, most), lambda row, name: f"{where}, row {row + 1}",
        share * len(read_urls) / len(urls) * min(1.0, most / max(1, table.num_rows)), len(read_urls),
    )  # fmt: skip


# ---- layout ------------------------------------------------------------------------------------------------------------


def with_layout(source: Source, data: bytes, where: str) -> tuple[Source, bytes]:
    """Detect the keys of the layout that a source does not give. Return the source, and the bytes as UTF-8.

    Parameters
    ----------
    source : Source
        The source of a CSV file. Keys that it gives are not detected.
    data : bytes
        The first lines of the file.
    where : str
        The name of the data in error messages.

    Raises
    ------
    InputError
        If the bytes are not text in the encoding.
    """
    if "encoding" not in source.model_fields_set:
        source = _decided(source, "encoding", found_encoding(data))
    data = as_utf8(data, where, source)
    if b"\n" not in data and b"\r" in data.strip():
        raise InputError(
            f"{where}: lines end in CR alone, but LF or CR LF is needed: convert them, as by tr '\\r' '\\n' < old > new"
        )
    head = data[: max(data.find(b"\n"), data.rfind(b"\n", 0, MAX_HEAD_BYTES))] if len(data) > MAX_HEAD_BYTES else data
    lines = head.split(b"\n", MAX_LINES + MAX_SKIPPED)[: MAX_LINES + MAX_SKIPPED]
    filled = [line for line in lines if line.strip()]
    cell = rb"(?:^|[,;|\t])\s*%s[^'\"\n]*%s\s*(?=[,;|\t\r]|$)"
    single = sum(re.search(cell % (b"'", b"'"), line) is not None for line in filled)
    if single > 0.5 * len(filled) and not any(re.search(cell % (b'"', b'"'), line) for line in filled):
        source = _decided(source, "quote", "single")
    separators = (source.separator,) if "separator" in source.model_fields_set else CANDIDATES
    shapes = [_fit_of_separator(lines, separator, source, where) for separator in separators]
    _, separator, skipped = max(shapes, key=lambda shape: shape[0])
    return _decided(_decided(source, "separator", separator), "skip_lines", skipped), data


def _decided(source: Source, key: str, value: object) -> Source:
    """Return a source with a value for a key that it does not give. A default does not count as given."""
    is_open = key not in source.model_fields_set and getattr(source, key) != value
    return source.model_copy(update={key: value}) if is_open else source


def _fit_of_separator(lines: Sequence[bytes], separator: str, source: Source, where: str) -> tuple[float, str, int]:
    """Return how well a separator fits the lines, the separator, and the number of lines before the first row."""
    skipped = source.skip_lines
    rows = [_cells(line, separator, source, where) for line in _joined_lines(lines[skipped:], source)]
    counts = [len(cells) for cells in rows]
    usual = Counter(count for count in counts if count).most_common(1)
    if not usual or usual[0][0] < 2:
        return (0.0, separator, 0)
    width, often = usual[0]
    share = often / max(1, sum(count > 0 for count in counts))
    first = next(i for i, count in enumerate(counts) if count == width)
    before = [count for count in counts[:first] if count]
    preamble = "skip_lines" not in source.model_fields_set and before and max(before) < width - 1
    above = [line.strip() for line in lines[skipped : skipped + first]]
    if any(above) and all(not line or line.startswith(COMMENTS) or NAMES_SEPARATOR.fullmatch(line) for line in above):
        preamble = True
    # If another separator fits as well, a comma inside numbers is a decimal comma.
    decimal = separator != "," and any(COMMA_IN_NUMBER.fullmatch(cell.strip()) for row in rows for cell in row)
    fit = (2.0 if share > 0.9 else share) * (100.0 if decimal and share > 0.9 else 1.0)
    fit *= 0.5 if separator == "space" else 1.0
    return (fit * (1.0 + 0.001 * width), separator, first if preamble else 0)


def _joined_lines(lines: Sequence[bytes], source: Source) -> list[bytes]:
    """Return lines in which each row with line breaks inside quotes is one line.

    The lines that were joined to the line before are replaced by empty lines. Names of columns from spreadsheets may have line
    breaks.
    """
    quote = QUOTES[source.quote].encode()
    is_open = re.compile(rb"(?:^|[,;|\t])[ ]*%s(?:[^%s]|%s)*$" % (quote, quote, 2 * quote))
    rows = list(lines)
    for i in range(len(rows)):
        for j in range(i + 1, len(rows)):
            if not is_open.search(rows[i]):
                break
            rows[i], rows[j] = rows[i] + b"\n" + rows[j], b""
    return rows


def _cells(line: bytes, separator: str, source: Source, where: str) -> list[str]:
    """Return the cells of a line. There are none if the line is blank, states the separator, or cannot be split."""
    if not line.strip() or NAMES_SEPARATOR.fullmatch(line):
        return []
    try:
        return first_row(line, where, SEPARATORS.get(separator, separator), quote=QUOTES[source.quote])[1]
    except InputError:
        return []
