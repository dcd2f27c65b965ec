"""Text tables (CSV, and the data part of KEEL files) to columns: numbers as a matrix, everything else as categories."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from aucdist.data.date_parts import DatePart, date_features
from aucdist.data.formats.dates import date_numbers, insert_dates, problem_with_date
from aucdist.data.formats.header import BLANKS
from aucdist.data.formats.spelling import SWAPPED, SWAPPED_TEXT
from aucdist.data.formats.table_form import MISSING_CATEGORY, REMEDY, UNKNOWN_CATEGORY, TableForm
from aucdist.data.formats.text import BEYOND_EXACT, REMEDY_EXACT, Text, not_utf8, problem_with_number, shown
from aucdist.data.group_numbers import numbers_of_texts
from aucdist.data.labels import Labels, listed
from aucdist.errors import InputError
from aucdist.kernels import cells as kernels

# Categoricals without missing values and without blanks around them, their categories in alphabetical order.
Texts = dict[str, pd.Categorical]


@dataclass(frozen=True, eq=False)
class Table:
    """The columns of a file, and which of them are what.

    `numbers`, of shape (n_samples, n_numbers), float32 or float64: the features that are numbers, in order. Finite, or
        nan where values may be missing.
    `texts`: the label and the categorical columns.
    `label`: the column with the classes.
    `features`: the columns that are features, in order.
    `categories`: the values of the categorical ones among them, in the order of their features.
    `hashed`: for those that are hashed the number of their features.
    `dates`: for each column of dates the parts that are among the numbers, where `features` has them as
        ``column.part``.
    `missing` and `unknown`: missing values, and categories that are not allowed, of the columns that have some.
    `group`: of shape (n_samples,), int64, or None.
    `cost`, of shape (n_samples,), float64, or None: of columns of groups and of costs, see `Block`.
    """

    numbers: np.ndarray
    texts: Texts
    label: str
    features: tuple[str, ...]
    categories: dict[str, tuple[str, ...]]
    hashed: dict[str, int] = field(default_factory=dict)
    dates: dict[str, tuple[DatePart, ...]] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)
    group: np.ndarray | None = None
    cost: np.ndarray | None = None

    @property
    def labels(self) -> Labels:
        """The class of each row."""
        column = self.texts[self.label]
        return Labels.of(column.codes, tuple(column.categories))


def parse_table(data: bytes, where: str, form: TableForm) -> Table:
    """Read lines of cells. Each number is that which Python's `float` makes of its text.

    `data`: UTF-8, without a header. Lines of blanks do not count, and there may be no others.
    Raises InputError if a line has too many or too few cells, a number is none or is not finite, a value is missing or
        not allowed, naming line and column.
    """
    text = Text.of(data if form.spelling.quote == "double" else data.translate(SWAPPED), where, form.first_line)
    n_lines, names = text.data.count(b"\n"), form.parsed_numbers
    numbers = np.empty((n_lines, len(names)), dtype=form.dtype)
    spans = np.empty((len(form.texts) + len(form.written), n_lines, 2), dtype=np.int64)
    hard = np.empty((len(text.data) // 17 + 1, 4), dtype=np.int64)  # memory that is not touched is not used
    most = float(np.finfo(form.dtype).max)
    n, n_hard, *fault = kernels.parse_cells(
        text.array, _separator(form), form.slots, most, form.missing, form.spelling.tokens, numbers, spans, hard
    )
    if fault[0] != kernels.SOUND:
        raise _fault(text, form, *fault)
    for row, slot, start, stop in hard[:n_hard]:
        raw = text.data[start:stop].strip(b'" \t')
        with np.errstate(over="ignore"):
            numbers[row, slot] = float(raw)
        if problem := problem_with_number(raw, numbers[row, slot]):
            remedy = REMEDY_EXACT if problem == BEYOND_EXACT else ""
            raise _bad_cell(text, start, names[slot], f"{shown(raw)} {problem}{remedy}")
    read = {name: _texts(text, spans[t, :n], name, form) for t, name in enumerate(form.texts)}
    for slot, name in enumerate(form.written):
        numbers[:n, slot] = _written_numbers(text, spans[len(form.texts) + slot, :n], name, form)
    if form.missing and len(form.spelling.missing_numbers):
        numbers[np.isin(numbers, form.spelling.missing_numbers)] = np.nan
    cost = numbers[:n, names.index(form.cost)].astype(np.float64) if form.cost else None
    return table_of(numbers[:n, : len(form.numbers)], read, form, cost)


@dataclass(frozen=True, eq=False)
class Cells:
    """The texts of a column, and how many of them are missing or of a category that is not allowed."""

    values: pd.Categorical
    missing: int = 0
    unknown: int = 0


def table_of(numbers: np.ndarray, cells: Mapping[str, Cells], form: TableForm, cost: np.ndarray | None = None) -> Table:
    """Return the columns of a file as a table; dates become numbers.

    `numbers`, of shape (n_samples, n_numbers): those of ``form.numbers``.
    `cells`: those of ``form.texts``.
    `cost`: of shape (n_samples,), float64.
    """
    texts = {name: column.values for name, column in cells.items() if name not in form.dates}
    group = None
    if form.groups:
        column = texts.pop(form.groups)
        group = numbers_of_texts(tuple(column.categories))[column.codes]
    if not form.label:
        texts[""] = unlabelled(len(numbers))
    categories = {
        name: tuple(sorted(form.allowed.get(name, texts[name].categories)))
        for name in form.features
        if name in form.categorical
    }
    missing = {name: column.missing for name, column in cells.items() if column.missing}
    if form.missing:
        counts = zip(form.numbers, np.isnan(numbers).sum(axis=0).tolist(), strict=True)
        missing |= {name: count for name, count in counts if count}
    unknown = {name: column.unknown for name, column in cells.items() if column.unknown}
    features = tuple(form.features)
    if form.dates:
        parts = {
            name: date_numbers(cells[name].values, of, form.date_format, MISSING_CATEGORY)
            for name, of in form.dates.items()
        }
        names = {name: date_features(name, of) for name, of in form.dates.items()}
        numbers, features = insert_dates(numbers, form.features, {*form.categorical, *form.hashed}, parts, names)
    return Table(
        numbers, texts, form.label, features, categories, dict(form.hashed), dict(form.dates), missing, unknown, group,
        cost,
    )  # fmt: skip


def infer_texts(data: bytes, where: str, form: TableForm) -> set[str]:
    """Return the columns with a cell that is not a number. A line of another length ends the search."""
    if not form.spelling.plain:
        return _written_texts(data, where, form)
    is_text = np.zeros(len(form.names), dtype=bool)
    data = data if form.spelling.quote == "double" else data.translate(SWAPPED)
    kernels.find_texts(Text.of(data, where).array, _separator(form), form.missing, form.spelling.tokens, is_text)
    return {name for name, found in zip(form.names, is_text, strict=True) if found}


def _written_texts(data: bytes, where: str, form: TableForm) -> set[str]:
    """Return the features with a cell that is no number, however numbers are written."""
    spelling = form.spelling
    others = {*form.hashed, *form.dates}
    names = [name for name in form.features if name not in others]
    every = replace(
        form,
        label="",
        groups="",
        cost="",
        features=names,
        categorical=names,
        hashed={},
        dates={},
        missing=True,
        allowed={},
    )
    table = parse_table(data, where, every)

    def is_number(text: str) -> bool:
        if text == MISSING_CATEGORY or spelling.is_missing_number(text):
            return form.missing
        return spelling.plain_number(text) is not None

    return {name for name in names if not all(map(is_number, table.texts[name].categories))} | others


def _written_numbers(text: Text, spans: np.ndarray, name: str, form: TableForm) -> np.ndarray:
    """Return a column of numbers that are written with a comma, in groups of digits, or with a currency."""
    codes, pieces = text.distinct(spans)
    values = np.empty(len(pieces), dtype=form.dtype)
    for code, raw in enumerate(pieces):
        try:
            cell = _unquoted(raw, form)
        except UnicodeDecodeError as e:
            raise _bad_cell(text, spans[np.argmax(codes == code), 0], name, not_utf8(raw[e.start])) from None
        plain = form.spelling.plain_number(cell)
        if plain is None and form.missing and form.spelling.is_missing_number(cell):
            values[code] = np.nan
            continue
        with np.errstate(over="ignore"):
            values[code] = np.nan if plain is None else float(plain)
        problem = _number_problem(cell, form) if plain is None else problem_with_number(plain.encode(), values[code])
        if problem:
            raise _bad_cell(text, spans[np.argmax(codes == code), 0], name, problem)
    return values[codes]


def _separator(form: TableForm) -> int:
    return kernels.BLANKS if form.separator == BLANKS else ord(form.separator)


def _texts(text: Text, spans: np.ndarray, name: str, form: TableForm) -> Cells:
    """Return a column of texts."""
    codes, pieces = text.distinct(spans)
    values: list[str] = []
    for code, raw in enumerate(pieces):
        try:
            value, problem = _unquoted(raw, form), None
        except UnicodeDecodeError as e:
            value, problem = "", not_utf8(raw[e.start])
        if problem is None:
            value, problem = admitted(value, name, form)
        if problem:
            raise _bad_cell(text, spans[np.argmax(codes == code), 0], name, problem)
        values.append(value)
    return cells_of(codes, values, name, form)


def admitted(value: str, name: str, form: TableForm) -> tuple[str, str | None]:
    """Return what a text of a column counts as, and what is wrong with it, if anything is."""
    is_label, allowed = name in (form.label, form.groups), form.allowed.get(name)
    is_missing = form.spelling.is_missing(value, label=is_label) and (not allowed or value not in allowed)
    if form.missing and not is_label and (value == MISSING_CATEGORY or is_missing):
        value, is_missing = MISSING_CATEGORY, False
        if name in form.dates:
            return value, None
    problem = problem_with(value, allowed, is_missing)
    if name in form.dates:
        return value, problem or problem_with_date(value, form.date_format)
    if problem and form.unknown != "error" and not is_label and not is_missing:
        return UNKNOWN_CATEGORY, None
    return value, problem


def cells_of(codes: np.ndarray, values: Sequence[str], name: str, form: TableForm) -> Cells:
    """Return a column of texts that `admitted` returned, some of which may be the same; `codes` are positions in them."""
    counts = np.bincount(codes, minlength=len(values))
    missing, unknown = (
        sum(int(count) for value, count in zip(values, counts, strict=True) if value == wanted)
        for wanted in (MISSING_CATEGORY, UNKNOWN_CATEGORY)
    )
    if unknown and form.unknown == "as-missing":
        if MISSING_CATEGORY not in form.allowed.get(name, ()):
            raise InputError(
                f"column {name!r} has {unknown} values of unknown categories, and `unknown: as-missing` makes missing values "
                "of them; but the training data had none in this column: take `unknown: ignore`"
            )
        values = [MISSING_CATEGORY if value == UNKNOWN_CATEGORY else value for value in values]
    return Cells(categorical(codes, values), missing, unknown)


def _unquoted(raw: bytes, form: TableForm) -> str:
    """Return the text of a cell."""
    value = raw.decode()
    if form.spelling.quote == "single":
        return (value[1:-1].replace('""', '"') if raw[:1] == b'"' else value).strip().translate(SWAPPED_TEXT)
    return (value[1:-1].replace('""', '"') if raw[:1] == b'"' else value).strip()


def categorical(codes: np.ndarray, values: Sequence[str]) -> pd.Categorical:
    """Return texts as a categorical. Some of the values may be the same."""
    ordered = sorted(set(values))
    position = {value: i for i, value in enumerate(ordered)}
    codes_of = np.array([position[value] for value in values], dtype=np.int32)
    return pd.Categorical.from_codes(codes_of[codes], categories=pd.Index(ordered, dtype=object))


def problem_with(value: str, allowed: Collection[str] | None, is_missing: bool) -> str | None:
    """Say what is wrong with a text, if anything is."""
    if is_missing:
        return f"the value is missing ({value!r}); {REMEDY}"
    if allowed is not None and value not in allowed:
        return f"unknown category {value[:80]!r}; known: {listed(allowed)}"
    return None


def unlabelled(n: int) -> pd.Categorical:
    """Return the labels of rows without any, that are only to be scored: one class."""
    return pd.Categorical.from_codes(np.zeros(n, dtype=np.int8), categories=pd.Index(["?"], dtype=object))


def _fault(text: Text, form: TableForm, fault: int, start: int, stop: int, column: int) -> InputError:
    """Return the error for what the kernel found."""
    if fault == kernels.OTHER_LENGTH:
        return InputError(f"{text.line(start)}: {column} cells, but there are {len(form.names)} columns")
    name, raw = form.names[column], text.data[start:stop]
    if fault == kernels.OPEN_QUOTE:
        return _bad_cell(text, start, name, "the quotes are not closed; a file with line breaks in cells must be read in one "
                         "part, as compressed files are")  # fmt: skip
    if fault == kernels.STRAY:
        return _bad_cell(
            text, start, name, f"there is something between the closing quote and the next cell: {shown(raw)}"
        )
    try:
        cell = _unquoted(raw, form)
    except UnicodeDecodeError as e:
        return _bad_cell(text, start, name, not_utf8(raw[e.start]))
    return _bad_cell(text, start, name, _number_problem(cell, form))


def _number_problem(cell: str, form: TableForm) -> str:
    if form.spelling.is_missing_number(cell):
        return f"the value is missing ({cell!r}); {REMEDY}"
    try:
        number = None if "_" in cell else float(cell)
    except ValueError:
        number = None
    if number is None:
        return f"{cell[:40]!r} is not a number; {_remedy_for(cell, form)}"
    if not form.spelling.plain:
        return f"{cell[:40]!r} is not a number as `decimal`, `thousands` and `symbols` say that numbers are written"
    return f"{cell[:40]!r} is " + (
        f"too large for {form.dtype}; read it as float64" if math.isfinite(number) else "not finite"
    )


def _remedy_for(cell: str, form: TableForm) -> str:
    """Return what helps where a cell is no number."""
    if form.spelling.plain and any(character.isdigit() for character in cell) and not cell[0].isalpha():
        return (
            "where numbers have a decimal comma, groups of digits or a currency say so (`decimal`, `thousands`, `symbols`; "
            "`aucdist init` finds them); if the column holds categories, list it under `categorical`"
        )
    return (
        "if the column holds categories, list it under `categorical`; if it stands for a missing value, list it under "
        "`missing_values`"
    )


def _bad_cell(text: Text, offset: int, name: str, problem: str) -> InputError:
    return InputError(f"{text.line(offset)}, column {name!r}: {problem}")
