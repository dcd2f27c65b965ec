"""Text files: their encoding, first row, column names and pieces of bytes, and errors that name line and column."""

import codecs
import math
import re
from collections.abc import Collection, Iterator, Sequence

from aucdist.data.formats.source_fields import SourceFields
from aucdist.errors import InputError, shortened, unknown

SHOWN_OF_TEXT = 40  # the number of characters of an invalid text that a message shows
MAX_LISTED = 1000  # the number of characters of the names of columns that a message lists
MAX_DIGITS = 400  # a float64 cannot have more digits
MAX_OF_ROW = 2**18  # the largest number of bytes of a row without its last line
UNDECODED = re.compile("[\udc80-\udcff]")
"""The surrogates that stand for bytes that are invalid in the encoding."""
BEYOND_EXACT = "is an integer beyond 2**53 that no float64 has"
REMEDY_EXACT = "; leave the column out, or list it under `categorical` or `hashed`"
BYTE_ORDER_MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
OTHER_FORMATS = {
    b"PAR1": "is a Parquet file: name its format, as in --set format=parquet, or let its name end in .parquet",
    b"ARROW1": "is an Arrow file: name its format, as in --set format=arrow, or let its name end in .arrow",
    b"PK\3\4": "is a workbook: let its name end in .xlsx, or save it as CSV",
    b"\xd0\xcf\x11\xe0": "is a workbook of Excel 2003 or older, which is not read: save it as .xlsx or CSV",
}
"""The formats of files that contain NUL characters, by the bytes at their beginning, and the remedy if text is expected."""
BLANKS = r"\s+"
"""The separator that stands for one or more spaces."""


def not_utf8(text: str) -> str | None:
    """Return what is wrong with the first byte of a text that is not UTF-8, and what to do. Return None if the text is UTF-8."""
    if (undecoded := UNDECODED.search(text)) is None:
        return None
    byte = ord(undecoded[0]) - 0xDC00
    other = "`encoding: utf-16`" if byte in (0xFE, 0xFF) else "`encoding: cp1252`, latin-1 or utf-16"
    return f"not UTF-8 text (byte {byte:#x}); if the file is written in another encoding, say so with {other}"


def excerpt(raw: bytes) -> str:
    """Return an invalid text for a message."""
    return repr(raw[: 4 * SHOWN_OF_TEXT].decode(errors="replace")[:SHOWN_OF_TEXT])


def describe_bad_number(raw: bytes, value: float) -> str | None:
    """Return what is wrong with a number of many digits, if anything.

    Parameters
    ----------
    raw : bytes
        The text of the number, which Python's `float` can read.
    value : float
        The number that was read.
    """
    if not math.isfinite(value):
        return "is not finite"
    if raw.lstrip(b"+-").isdigit() and len(raw) < MAX_DIGITS and int(raw) != int(float(raw)):
        return BEYOND_EXACT
    return None


def as_utf8(data: bytes, where: str, source: SourceFields, first_line: int = 1) -> bytes:
    """Decode text from the encoding of a source, and return it as UTF-8.

    Parameters
    ----------
    data : bytes
        The content of a file, or whole lines of it.
    where : str
        The name of the data in error messages.
    source : SourceFields
        The source of the rows.
    first_line : int, default=1
        The number of the first line, for error messages.

    Raises
    ------
    InputError
        If the bytes do not have that encoding, or if they are UTF-8 and the source states another encoding. The message names
        the line.
    """
    encoding: str = source.encoding
    for begin, reason in OTHER_FORMATS.items():
        if data.startswith(begin) and b"\0" in data:
            raise InputError(f"{where} {reason}")
    if encoding == "utf-8":
        return data
    if encoding == "utf-16":
        encoding = BYTE_ORDER_MARKS.get(data[:2]) or ("utf-16-be" if data[:1] == b"\0" else "utf-16-le")
    elif not data.isascii() and is_text_in("utf-8", data):
        raise InputError(f"{where} is UTF-8 text, but `encoding` is {encoding}: set it to utf-8 (--set encoding=utf-8)")
    try:
        return data.decode(encoding).removeprefix("\ufeff").encode()
    except UnicodeError as e:
        if not isinstance(e, UnicodeDecodeError):  # half of a surrogate pair in UTF-16 cannot be encoded
            raise InputError(
                f"{where} is not {source.encoding} text: {e}. Set `encoding` to utf-8, utf-16, latin-1 or cp1252"
            ) from None
        line = first_line + data.count(b"\n", 0, e.start)
        raise InputError(
            f"{where}, line {line}: this is not {source.encoding} text (byte {data[e.start]:#x}). Set `encoding` to "
            "utf-8, utf-16, latin-1 or cp1252"
        ) from None


def is_text_in(encoding: str, data: bytes) -> bool:
    """Return whether bytes are text in an encoding."""
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def found_encoding(head: bytes) -> str:
    """Guess the encoding of a file by its first lines, and return its name as a source states it."""
    pairs = head[: 2**12]
    if head[:2] in BYTE_ORDER_MARKS or max(pairs[0::2].count(0), pairs[1::2].count(0)) > len(pairs) // 4:
        return "utf-16"
    if is_text_in("utf-8", head):
        return "utf-8"
    in_cp1252_only = any(0x80 <= byte <= 0x9F for byte in set(head))  # in latin-1, these are control characters
    return "cp1252" if in_cp1252_only and is_text_in("cp1252", head) else "latin-1"


def check_names(names: Sequence[str], where: str, source: SourceFields | None = None) -> list[str]:
    """Return the column names as the source calls them: see `called`. Raise an InputError for names that are equal or empty."""
    seen: set[str] = set()
    for i, name in enumerate(names, 1):
        if not name:
            raise InputError(f"{where}: column {i} has no name{header_advice(names)}")
        if name in seen:
            raise InputError(f"{where}: two columns are called {name!r}{header_advice(names)}")
        seen.add(name)
    return list(names) if source is None else match_names(names, source.named_columns(), where)


def match_names(names: Sequence[str], expected: Collection[str], where: str) -> list[str]:
    """Return column names. A name that differs from an expected one only by spaces around it is replaced by the expected name.

    Raises
    ------
    InputError
        If an expected name could mean several columns.
    """
    columns = list(names)
    for name in sorted(set(expected).difference(names)):
        alike = [i for i, other in enumerate(columns) if other.strip() == name.strip() and other not in expected]
        if len(alike) > 1:
            raise InputError(
                f"{where}: column {name!r} could be {' or '.join(repr(columns[i]) for i in alike)}, which differ only by "
                "spaces: rename one"
            )
        for i in alike:
            columns[i] = name
    return columns


def resolve_column(names: Sequence[str], column: str | int | None, where: str, key: str) -> str:
    """Return the name of a column given by name or by position."""
    if isinstance(column, int):
        if not -len(names) <= column < len(names):
            raise InputError(
                f"{where}: `{key}` is column {column}, but there are {len(names)} columns, numbered from 0: give a "
                "smaller number, or the name of the column"
            )
        return names[column]
    if column not in names:
        fault: object = unknown(f"column in `{key}`:", column, names)
        if column is None:
            fault = f"name the label column, as in --label COLUMN{from_last(names)}"
        raise InputError(f"{where}: {fault}{header_advice(names)}")
    return str(column)


def from_last(names: Sequence[str]) -> str:
    """Return a sentence that lists columns, the last one first, because it is often the label."""
    return f". The columns, the last one first, are: {shortened(', '.join(names[::-1]), MAX_LISTED)}"


def header_advice(names: Sequence[str]) -> str:
    """Return advice for an error if the first row seems to have values or a title, or to be a web page. It may be empty."""
    if names and names[0].lower().startswith(("<!doctype", "<html")):
        return ". It is a web page, and not a table: check the address, and whether it needs a login"
    # Pandas calls columns of a sheet without names so.
    if 0 < len(names) <= 2 * sum(name.startswith("Unnamed: ") for name in names):
        return (
            ". The first line has cells without a name: if it is a title, skip it by `skip_lines` (--set skip_lines=1)"
        )
    if len(names) == 1 and re.search(r"[;\t|]", names[0]):
        return ". It seems to hold several columns: name their separator, as in --set 'separator=;'"
    if not any(map(is_number, names)):
        return ""
    return (
        ". The first line looks like values: if the file has no header, say `header: false` (--set header=false); columns are "
        "then called x1, x2, ..., and may be given by position, as in `label: -1`"
    )


def looks_like_values(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a first row contains values instead of names.

    Names differ from each other, are not all numbers, and do not occur again in their column. An index that pandas wrote has no
    name.

    Parameters
    ----------
    first : sequence of str
        The cells of the first row.
    rows : sequence of sequence of str
        The cells of the rows that follow.
    """
    named = [cell for cell in first if cell]
    numbers = [is_number(cell) for cell in named]
    if not any(numbers):
        return False  # a first row of words always counts as names
    if all(numbers) or len(set(named)) < len(named):
        return True
    return any(
        cell and not is_number(cell) and any(len(row) > j and row[j] == cell for row in rows)
        for j, cell in enumerate(first)
    )


def is_number(text: str) -> bool:
    """Return whether a string is a number as Python writes it. The number need not be finite."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def rows_of_cells(
    text: str, where: str, separator: str, quote: str, line: int, names: Sequence[str] = ()
) -> Iterator[tuple[list[tuple[int, str]], int]]:
    """Yield the cells of each row with their lines, and the position of the next row in the text.

    Parameters
    ----------
    text : str
        The text, which ends in a line break. Blank lines are ignored.
    where : str
        The name of the data in error messages.
    separator : str
        One character, or `BLANKS`. A cell in quotes may contain separators, line breaks and doubled quotes.
    quote : str
        The character of quotes.
    line : int
        The number of the first line.
    names : sequence of str, default=()
        The columns, if they are known.

    Raises
    ------
    InputError
        If quotes are not closed, or if they are wrong and a row has more cells than there are columns.
    """
    at, q, sep = 0, re.escape(quote), re.escape(separator)
    if separator == BLANKS:
        blank, other, ends = r"[ \t\v\f\r]", r"[^ \t\v\f\r\n]*+", r"([ \t\v\f\r]*+\n|[ \t\v\f\r]++)"
    else:
        blank = r"[ \t\v\f\r]" if separator != "\t" else r"[ \v\f\r]"
        other, ends = rf"[^{sep}\n]*+", rf"{blank}*+({sep}|\n)"
    quoted_cell = rf"{q}([^{q}]*+(?:{q}{q}[^{q}]*+)*+){q}"
    beginning = re.compile(rf"{blank}*+{quoted_cell}")
    cell = re.compile(rf"{blank}*+(?:{quoted_cell}|((?!{q}){other})){ends}")
    blank_line = re.compile(rf"{blank}*+\n")
    while at < len(text):
        if skipped := blank_line.match(text, at):
            at, line = skipped.end(), line + 1
            continue
        cells: list[tuple[int, str]] = []
        end = ""
        while not end.endswith("\n"):
            match = cell.match(text, at)
            if match is None:
                if names and len(cells) >= len(names):
                    raise InputError(
                        f"{where}, line {line}: the row has more than {len(names)} cells: check its quotes"
                    )
                column = repr(names[len(cells)]) if names else len(cells) + 1
                reason = "the quotes are not closed; a file with line breaks in cells must be read in one part, so compress it"
                if quoted := beginning.match(text, at):
                    rest_of_cell = excerpt(quoted[0].strip().encode(errors="surrogateescape"))
                    reason = f"there is something between the closing quote and the next cell: {rest_of_cell}"
                raise InputError(f"{where}, line {line}, column {column}: {reason}")
            in_quotes, plain, end = match.groups()
            cells.append((line, (plain if in_quotes is None else in_quotes.replace(2 * quote, quote)).strip()))
            at, line = match.end(), line + match[0].count("\n")
        yield cells, at


def first_row(
    data: bytes, where: str, separator: str, *, start: int = 0, encoding: str = "utf-8", quote: str
) -> tuple[int, list[str], int]:
    """Return the cells of the first row from `start` on, the number of the line after it, and the offset of this line.

    Raises
    ------
    InputError
        If there is no row, it is not UTF-8, or it cannot be divided into cells.
    """
    stop = data.find(b"\n", start + MAX_OF_ROW)
    text = data[start : stop if stop >= 0 else len(data)].decode(encoding, "surrogateescape") + "\n"
    for cells, end in rows_of_cells(text, where, separator, quote, data.count(b"\n", 0, start) + 1):
        names = [name for _, name in cells]
        joined = "".join(names)
        problem = not_utf8(joined)
        if problem is None and "\0" in joined:
            problem = (
                "NUL characters, which tables in text do not have: name what the file is by `format`, as in --set "
                "format=parquet, or by `encoding`, as in --set encoding=utf-16; UTF-32 is not read"
            )
        elif problem is None and "\r" in joined and b"\n" not in data:
            problem = "lines end in CR alone, but LF or CR LF is needed: convert them, as by tr '\\r' '\\n' < old > new"
        if problem:
            raise InputError(f"{where}, line {cells[0][0]}: {problem}")
        if any(names) or len(names) > 1:
            read = min(start + len(text[:end].encode(encoding, "surrogateescape")), len(data))
            return data.count(b"\n", 0, read) + 1, names, read
    raise InputError(f"{where} has no rows: name a file with at least one row")
