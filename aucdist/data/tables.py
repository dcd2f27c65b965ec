"""Text tables (CSV, and the data part of KEEL files) to columns: numbers as float64, everything else as categories."""

import csv
import io
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from aucdist.data.classes import listed
from aucdist.errors import InputError, unknown

# Numbers are arrays of finite floats; texts are categoricals without missing values and without blanks around them.
Numbers = dict[str, np.ndarray]
Texts = dict[str, pd.Categorical]
BLANKS = r"\s+"
MISSING = ("", "?", "<null>", "nan")


@dataclass(frozen=True)
class TableForm:
    """How lines of cells are to be read.

    Attributes
    ----------
    names : sequence of str
        The columns, in order.
    texts : collection of str
        Those that are not numbers.
    separator : str
        One character, or `BLANKS`.
    first_line : int
        Number of the first of the lines in its file.
    allowed : mapping of str to collection of str
        For a column of texts the values that it may have; a column that is not here may have any.
    """

    names: Sequence[str]
    texts: Collection[str]
    separator: str = ","
    first_line: int = 1
    allowed: Mapping[str, Collection[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """The columns of a file, and which of them are what.

    Attributes
    ----------
    numbers : dict of str to ndarray
    texts : dict of str to Categorical
        The label and the categorical columns.
    label : str
        The column with the classes.
    features : tuple of str
        The columns that are features, in order.
    categories : dict of str to tuple of str
        The values of the categorical ones among them, in the order of their features.
    """

    numbers: Numbers
    texts: Texts
    label: str
    features: tuple[str, ...]
    categories: dict[str, tuple[str, ...]]


def unique(names: Sequence[str], where: str) -> list[str]:
    """Return the column names, which must differ and may not be empty."""
    seen: set[str] = set()
    for i, name in enumerate(names, 1):
        if not name:
            raise InputError(f"{where}: column {i} has no name")
        if name in seen:
            raise InputError(f"{where}: two columns are called {name!r}")
        seen.add(name)
    return list(names)


def pick(names: Sequence[str], column: str | int | None, where: str, key: str) -> str:
    """Return the name of a column given by name or by position."""
    if isinstance(column, int):
        if not -len(names) <= column < len(names):
            raise InputError(f"{where}: `{key}` is column {column}, but there are {len(names)} columns, from 0")
        return names[column]
    if column not in names:
        raise InputError(f"{where}: {unknown(f'column in `{key}`', column, names)}")
    return str(column)


def parse_table(data: bytes, where: str, form: TableForm) -> tuple[Numbers, Texts]:
    """Read lines of cells.

    Parameters
    ----------
    data : bytes
        UTF-8, without a header. Empty lines do not count.
    where : str
        Names the file in errors.
    form : TableForm

    Returns
    -------
    numbers, texts : dict of str to ndarray, and to Categorical
        The columns, each of shape (n_samples,).

    Raises
    ------
    InputError
        If a line has too many or too few cells, a number is none or is not finite, a value is missing or not allowed:
        at the first such cell, naming line and column.
    """
    # pandas takes the width from the first line, and drops what is beyond the names.
    line, cells, _ = first_row(data, where, form)
    _count_cells(line, cells, where, form)
    try:
        # Floats are exact from pandas 3.1 on. What is missing must not become NaN behind our back.
        frame = pd.read_csv(
            io.BytesIO(data), sep=form.separator, header=None, names=list(form.names), index_col=False,
            skipinitialspace=True, keep_default_na=False,
            dtype={name: "category" if name in form.texts else np.float64 for name in form.names},
        )  # fmt: skip
    except (ValueError, OverflowError) as e:  # pandas' own errors of parsing are ValueErrors
        find_fault(data, where, form)
        raise InputError(f"{where}: {str(e).strip()}") from None
    numbers = {name: frame[name].to_numpy() for name in form.names if name not in form.texts}
    texts = {name: trimmed(frame[name].array) for name in form.names if name in form.texts}
    sound = all(np.isfinite(column).all() for column in numbers.values())
    if not sound or not all(_sound(column, form.allowed.get(name)) for name, column in texts.items()):
        find_fault(data, where, form)
        raise InputError(f"{where}: a value is missing or not finite")
    return numbers, texts


def infer_texts(data: bytes, where: str, form: TableForm) -> set[str]:
    """Return the columns with a cell that is not a number.

    Raises
    ------
    InputError
        If the lines differ in length.
    """
    try:
        frame = pd.read_csv(
            io.BytesIO(data), sep=form.separator, header=None, names=list(form.names), index_col=False,
            skipinitialspace=True, keep_default_na=False, low_memory=False,
        )  # fmt: skip
    except (ValueError, OverflowError) as e:
        find_fault(data, where, TableForm(form.names, form.names, form.separator, form.first_line))
        raise InputError(f"{where}: {str(e).strip()}") from None
    return {name for name in form.names if not pd.api.types.is_numeric_dtype(frame[name].dtype)}


def trimmed(values: pd.Categorical) -> pd.Categorical:
    """Return the same texts without blanks around them, their categories in alphabetical order."""
    texts = [str(c).strip() for c in values.categories]
    ordered = sorted(set(texts))
    position = {text: i for i, text in enumerate(ordered)}
    codes = np.array([position[text] for text in texts] + [-1], dtype=np.int32)[values.codes]
    return pd.Categorical.from_codes(codes, categories=pd.Index(ordered, dtype=object))


def is_missing(text: str) -> bool:
    """Tell whether a cell says that its value is missing."""
    return text.lower() in MISSING


def _sound(column: pd.Categorical, allowed: Collection[str] | None) -> bool:
    if (column.codes < 0).any() or any(is_missing(text) for text in column.categories):
        return False
    return allowed is None or set(column.categories) <= set(allowed)


def find_fault(data: bytes, where: str, form: TableForm) -> None:
    """Go through a table cell by cell and raise at the first that is wrong. Slow: for files thought to have one."""
    for line, cells in rows_of(data, where, form):
        _count_cells(line, cells, where, form)
        for name, cell in zip(form.names, cells, strict=True):
            problem = _problem(name, cell.strip(), form)
            if problem:
                raise InputError(f"{where}, line {line}, column {name!r}: {problem}")


def _count_cells(line: int, cells: list[str], where: str, form: TableForm) -> None:
    if len(cells) != len(form.names):
        raise InputError(f"{where}, line {line}: {len(cells)} cells, but there are {len(form.names)} columns")


def _problem(name: str, cell: str, form: TableForm) -> str | None:
    if is_missing(cell):
        return f"the value is missing ({cell!r}); remove the row or fill it in"
    if name in form.texts:
        known = form.allowed.get(name)
        return None if known is None or cell in known else f"unknown category {cell!r}; known: {listed(known)}"
    try:
        number = None if "_" in cell else float(cell)
    except ValueError:
        number = None
    if number is None:
        return f"{cell[:40]!r} is not a number; if the column holds categories, list it under `categorical`"
    return None if math.isfinite(number) else f"{cell!r} is not finite"


def first_row(data: bytes, where: str, form: TableForm) -> tuple[int, list[str], int]:
    """Return the number of the first line that is not empty, its cells, and where the next line starts.

    Raises
    ------
    InputError
        If there is none.
    """
    end = data.find(b"\n", len(data) - len(data.lstrip())) + 1 or len(data)
    for line, cells in rows_of(data[:end], where, form):
        return line, cells, end
    raise InputError(f"{where} has no rows")


def rows_of(data: bytes, where: str, form: TableForm) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line that is not empty, and its cells.

    Raises
    ------
    InputError
        If the text is not UTF-8 or cannot be cut into cells, naming the line.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as e:
        line = data.count(b"\n", 0, e.start) + form.first_line
        raise InputError(f"{where}, line {line}: not UTF-8 text (byte {data[e.start]:#x})") from None
    if form.separator == BLANKS:
        lines = ((i, line.split()) for i, line in enumerate(text.split("\n"), form.first_line))
        yield from ((i, cells) for i, cells in lines if cells)
        return
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=form.separator, skipinitialspace=True)
    try:
        for cells in reader:
            if len(cells) > 1 or any(cell.strip() for cell in cells):
                yield reader.line_num + form.first_line - 1, cells
    except csv.Error as e:
        raise InputError(f"{where}, line {reader.line_num + form.first_line - 1}: {e}") from None
