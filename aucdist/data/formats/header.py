"""The first row of a text table, and the names of columns."""

import csv
from collections.abc import Iterator, Sequence

from aucdist.data.formats.text import not_utf8
from aucdist.errors import InputError, unknown

BLANKS = r"\s+"
"""The separator that stands for one or more blanks."""


def unique(names: Sequence[str], where: str) -> list[str]:
    """Return the column names, which must differ and may not be empty."""
    seen: set[str] = set()
    for i, name in enumerate(names, 1):
        if not name:
            raise InputError(f"{where}: column {i} has no name{hint(names)}")
        if name in seen:
            raise InputError(f"{where}: two columns are called {name!r}{hint(names)}")
        seen.add(name)
    return list(names)


def pick(names: Sequence[str], column: str | int | None, where: str, key: str) -> str:
    """Return the name of a column given by name or by position."""
    if isinstance(column, int):
        if not -len(names) <= column < len(names):
            raise InputError(f"{where}: `{key}` is column {column}, but there are {len(names)} columns, from 0")
        return names[column]
    if column not in names:
        raise InputError(f"{where}: {unknown(f'column in `{key}`', column, names)}{hint(names)}")
    return str(column)


def hint(names: Sequence[str]) -> str:
    """Return what helps where the first row seems to be one of values; nothing where it does not."""
    if not any(_is_number(name) for name in names):
        return ""
    return (
        ". The first line looks like values: if the file has no header, say `header: false` (--set header=false); columns are "
        "then called x1, x2, ..., and may be given by position, as in `label: -1`"
    )


def looks_like_values(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a first row is one of values, and not of names.

    Names differ from each other, are not all numbers, and do not stand below themselves; an index that pandas wrote has none.

    `first`: the cells of the first row.
    """
    named = [cell for cell in first if cell]
    numbers = [_is_number(cell) for cell in named]
    if not any(numbers):
        return False  # a first line of words is taken for names, whatever stands below
    if all(numbers) or len(set(named)) < len(named):
        return True
    return any(
        cell and not _is_number(cell) and any(len(row) > j and row[j] == cell for row in rows)
        for j, cell in enumerate(first)
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def first_row(
    data: bytes, where: str, separator: str, *, start: int = 0, encoding: str = "utf-8", quote: str = '"'
) -> tuple[int, list[str], int]:
    """Return the cells of the first row from `start` on, the number of the line after it, and where that line starts.

    Raises InputError if there is none, if it is not UTF-8, or if it cannot be cut into cells.
    """
    read = start

    def lines() -> Iterator[str]:
        nonlocal read
        while read < len(data):
            start, read = read, data.find(b"\n", read) + 1 or len(data)
            yield data[start:read].decode(encoding)

    found: Iterator[str] = lines()
    if separator == BLANKS:
        found, separator = (" ".join(line.split()) for line in found), " "
    reader = csv.reader(found, delimiter=separator, quotechar=quote, skipinitialspace=True, strict=True)
    try:
        for cells in reader:
            if len(cells) > 1 or any(cell.strip() for cell in cells):
                return data.count(b"\n", 0, read) + 1, [cell.strip() for cell in cells], read
    except (UnicodeDecodeError, csv.Error) as e:
        said = not_utf8(e.object[e.start]) if isinstance(e, UnicodeDecodeError) else str(e)
        if "new-line character" in said:
            said = "lines end in CR alone; LF or CR LF are expected"
        line = data.count(b"\n", 0, max(0, read - 1)) + 1
        raise InputError(f"{where}, line {line}: {said}") from None
    raise InputError(f"{where} has no rows")
