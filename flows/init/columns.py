"""Find out what the columns of a table contain: numbers, categories, dates or identifiers."""

import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aucdist.data.dataset import PARTS
from aucdist.data.formats.source_fields import MAX_DETECTED, MIN_DISTINCT
from aucdist.data.formats.table_options import COMPACT_DAY, DATE_FORMATS, Spelling, parse_date
from aucdist.data.formats.tables import as_arrow, as_numpy, distinct
from aucdist.drift import columns as single
from aucdist.errors import counted

Kind = Literal["number", "categorical", "hashed", "dates", "drop"]
MOSTLY = 0.9
"""The share of cells that must be numbers (or dates) for a column of numbers (or dates). The other cells count as missing."""
SYMBOLS = (
    *"$€£¥₹₽₩%‰", "USD", "EUR", "GBP", "CHF", "JPY", "CAD", "AUD", "Fr.", "kr", "zł", "R$", "US$",
)  # fmt: skip
NUMBER_STYLES = ((".", None), (".", ","), (".", "'"), (".", "space"), (",", None), (",", "."), (",", "space"))
"""Decimal and thousands separators that are tried. If several fit equally well, the first is used."""
HASHED_INTO = 256
N_SHOWN = 5
MAX_WORDS = 5
"""The largest number of words that stand for missing numbers."""
MAX_TYPING_ERRORS = 50
"""The largest number of different numbers that are written wrongly."""
MAX_WORD_LENGTH = 100
MAX_RARE_SHARE = 0.02
"""The largest share of cells that are not numbers and may all be typing errors."""
MAX_LEADING_ZEROS = 0.05
"""The largest share of integers with a leading zero in a column of numbers. With more, the integers are identifiers."""
MIN_ROWS_EACH = 1.5
"""The smallest mean number of rows of a category. Texts with fewer rows are not categories."""
CODES = "if its numbers are codes, list it under `categorical`"
FREE_TEXT = "free text, of whose words columns can be made"
MIN_BLANKS = 3
"""The mean number of spaces from which strings that are all different are free text. With fewer spaces, they are identifiers."""
NEARLY_EMPTY = 0.01
"""The largest share of cells that are not empty in a column that is nearly empty."""
FAR = 2
"""A 0 may mark missing values if its distance to the next number is more than this multiple of the largest distance between other
neighbours."""
TEST_SHARE = 0.2
"""The share of rows that become test rows if rows have dates."""
MIN_SPAN_DAYS = {"month": 365, "weekday": 7}
"""The number of days that the other rows have to span for a part of a date to become a feature. Otherwise new rows have months or
weekdays that no training row has, and `aucdist watch` raises an alarm for each batch."""
MIN_NUMBERS = 3
"""The number of distinct numbers from which there are questions about a column of numbers."""
MIN_LATE = 5
"""The number of rows of each class among the last rows from which these are proposed as test rows."""
PLACEHOLDERS = re.compile(
    r"-{1,3}|\.{1,3}|\*\*?|#|x|n\.a\.?|na\.|n/d|nd|n\.d\.|n/v|k\. ?a\.|none|nil|unknown|missing|not available|not applicable|"
    r"no data|undefined|\\n|#(div/0|value|ref|num)!|\(null\)|\[null\]",
    re.IGNORECASE,
)
"""Words that stand for a missing number."""
INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
TYPING_ERROR = re.compile(r"[^\w\s]*\s*[\d.,]*\d.*|\D*")
"""A number with other characters around it (>100, 12 cm, 1.99.), or a text without digits. An identifier such as A12 is
neither."""
DATE = re.compile(r"\d{1,4}[-./ ]([A-Za-z]{3}|\d{1,2})[-./ ]\d{1,4}([T ].*)?")
AMOUNT = re.compile(r"[(+-]?[^\w(]{0,3}(?!0\d)\d{1,3}([.,'\s]?\d{3})*([.,]\d+)?[^\w.,]{0,3}")
"""An amount in any style, such as 1.042,21, (1,234.50), € 1 234 or 12.50-."""
ZERO_CELL = re.compile(r"0[0 :./T-]*")
YEARS = (1900, 2100)
UNNAMED = re.compile(r"Unnamed: \d+")
"""The names that pandas gives to columns without a name, such as an index or stray cells."""


@dataclass
class ColumnGuess:
    """The content of a column.

    Attributes
    ----------
    name : str
        The name of the column.
    kind : Kind
        How the column is used.
    comment : str
        A description of its values, or why it is dropped.
    missing : int
        The number of rows without a value.
    n_values : int
        The number of distinct cells. Empty ones count as well.
    parts : tuple of str
        For dates, the parts that become features.
    date_format : str or None
        For dates, their format; None means ISO 8601.
    words : tuple of str
        Texts that mark missing numbers or dates, in addition to the default ones.
    leak : str
        The reason why the column seems to reveal the label, empty if it does not.
    late : tuple (int, int)
        For dates, the number of the last rows that would become test rows, and the number of positive rows among them.
    otherwise : Kind or None
        For an identifier, how the column is used if no other column is left.
    question : str
        What a user should check, in words that follow the name of the column.
    """

    name: str
    kind: Kind
    comment: str
    missing: int = 0
    n_values: int = 0
    parts: tuple[str, ...] = ()
    date_format: str | None = None
    words: tuple[str, ...] = ()
    leak: str = ""
    late: tuple[int, int] = (0, 0)
    otherwise: Kind | None = None
    question: str = ""


def contents_of(
    table: pa.Table, positive: np.ndarray, spelling: Spelling | None = None, words: tuple[str, ...] = (),
    date_format: str | None = None,
) -> tuple[list[ColumnGuess], Spelling]:  # fmt: skip
    """Return what the columns of a table contain, and the spelling of numbers.

    A source has only one date format, so columns of dates in a second format are left out.

    Parameters
    ----------
    table : pyarrow.Table
        The table, whose columns are strings or dictionaries of strings. A null is an empty string.
    positive : ndarray of shape (n_rows,), bool
        Whether each row is of the positive class.
    spelling : Spelling, optional
        The spelling of numbers. By default it is detected.
    words : tuple of str, default=()
        The words for missing values that the source names.
    date_format : str, optional
        The format of dates, if the source names it.
    """
    if not table.num_columns:
        return [], spelling or Spelling()
    empty = pa.StringArray.from_buffers(1, pa.py_buffer(bytes(8)), pa.py_buffer(b""))
    dictionaries, rows, of_rows = [], [], []
    for column in table.columns:
        codes, values = distinct(column)
        trimmed = pc.utf8_trim_whitespace(pa.concat_arrays([values.cast(pa.string()), empty])).dictionary_encode()
        places = as_numpy(trimmed.indices)[codes]
        counts = np.bincount(places)
        used = np.flatnonzero(counts)
        dictionaries.append(trimmed.dictionary.take(as_arrow(used)))
        rows.append(counts[used])
        of_rows.append((np.cumsum(counts > 0, dtype=np.int32) - 1)[places])
    texts, sizes = pa.concat_arrays(dictionaries), list(map(len, rows))
    strings, always = texts.to_pylist(), Spelling(missing=words)
    missing = np.array([*map(always.is_missing, strings)], bool)
    missing_number = missing | np.array([*map(always.is_missing_number, strings)], bool)
    if spelling is None:
        spelling = _spelling(texts, missing_number, np.repeat(np.arange(len(sizes)), sizes), np.concatenate(rows))
    number = numbers_in(texts, spelling)
    missing_number |= np.isin(number, always.missing_numbers)
    number = np.where(missing_number, np.nan, number)
    positives = [np.bincount(cells[positive], minlength=size) for cells, size in zip(of_rows, sizes, strict=True)]
    parts = (
        np.split(values, np.cumsum(sizes)[:-1])
        for values in (np.array(strings, object), number, missing, missing_number)
    )
    formats = (None, *DATE_FORMATS) if date_format is None else (date_format,)
    by_column = zip(table.column_names, of_rows, rows, positives, *parts, strict=True)
    columns = [Cells._make((*cells, formats)).column() for cells in by_column]
    dates = [column for column in columns if column.kind == "dates"]
    first = next((column for column in dates if column.date_format != COMPACT_DAY), None)
    for column in dates:
        if first is not None and column.date_format != first.date_format:
            column.kind = "number" if column.date_format == COMPACT_DAY else "drop"
            column.comment = f"dates written in another way ({column.date_format or 'ISO 8601'})"
    return columns, spelling


class Cells(NamedTuple):
    """The distinct cells of a column, and what each of them may be.

    Attributes
    ----------
    name : str
        The name of the column.
    of_rows : ndarray
        For each row, the position of its cell among the distinct cells.
    rows, positives : ndarray
        For each distinct cell, the number of rows that have it, and the number of positive rows among them.
    texts : ndarray
        The distinct cells as strings, without surrounding spaces.
    number : ndarray
        The distinct cells as numbers; NaN for cells that are not numbers.
    missing, missing_number : ndarray
        Whether each distinct cell marks a missing string or a missing number.
    date_formats : tuple of str or None
        The formats of dates that are tried. None stands for ISO 8601.
    """

    name: str
    of_rows: np.ndarray
    rows: np.ndarray
    positives: np.ndarray
    texts: np.ndarray
    number: np.ndarray
    missing: np.ndarray
    missing_number: np.ndarray
    date_formats: tuple[str | None, ...]

    def column(self) -> ColumnGuess:
        """Return what the column contains."""
        rows, present = self.rows, ~self.missing
        if (n_present := present.sum()) == 0 or n_present == len(present) == 1:
            comment = f"one value: {self.texts[0]}" if n_present else "no values"
            return ColumnGuess(self.name, "drop", comment, rows[self.missing].sum())
        column = self._number() or self._dates() or self._text()
        column.n_values, numeric = len(rows), (column.otherwise or column.kind) in ("number", "dates")
        absent = np.isin(self.texts, column.words) | (self.missing_number if numeric else self.missing)
        column.missing = rows[absent].sum()
        if (filled := rows[present].sum()) <= NEARLY_EMPTY * rows.sum():
            holds = f"; {column.comment}" * (column.kind != "drop")
            column.comment = f"nearly empty: {counted(filled, 'cell')} of {rows.sum():,} with a value{holds}"
        if UNNAMED.fullmatch(self.name) and column.otherwise is None:
            column.comment = f"it had no name in the table that pandas wrote; {column.comment}"
            column.kind, column.otherwise = "drop", column.kind
        column.comment = "; ".join(filter(None, (column.comment, column.question)))
        if column.kind in ("number", "categorical"):
            area, k = single.auc_and_revealing_value(
                self.number if column.kind == "number" else None, rows, self.positives
            )
            if area >= single.SUSPICIOUS_AUC:
                column.leak = f"AUC {area:.4f} alone"
            elif k is not None:
                said = f"{counted(rows[k], 'row')} with {self.texts[k] or '(missing)'}"
                column.leak = f"{self.positives[k]:,} of {said} are positive"
            if column.leak:
                column.comment = f"{column.leak}: drop it if it becomes known only after the label; {column.comment}"
        return column

    def _number(self) -> ColumnGuess | None:
        """Return the description of a column of numbers, or None if the column does not contain numbers. Some may be missing."""
        name, rows, values = self.name, self.rows, self.number
        is_number = ~np.isnan(values)
        other = ~is_number & ~self.missing_number
        finite = [INFINITE.fullmatch(text) is None for text in self.texts[other]]
        words, n_others = self.texts[other][finite].tolist(), rows[other][finite].sum()
        present = rows[is_number].sum()
        if not present or not _may_be_missing(words, n_others, present + n_others, is_number.sum()):
            return None
        values = values[is_number]
        different = np.unique(values)
        low, high, several = different[0], different[-1], len(different) >= MIN_NUMBERS
        if not all(finite) or not np.isfinite(high - low):  # for example 1e999
            return ColumnGuess(name, "drop", "some values are not finite")
        others, question = _others(words, n_others), single.missing_value_warning(different) if several else ""
        if (values == np.floor(values)).all():
            texts = self.texts[is_number].tolist()
            n_zeros = sum(text[0] == "0" and text[1:2].isdigit() for text in texts)
            if n_zeros > MAX_LEADING_ZEROS * len(texts) or (n_zeros > 0 and len(set(map(len, texts))) == 1):
                return None  # these are identifiers: leading zeros are frequent, or all cells have the same length
            if YEARS[0] * 10_000 < low and high < YEARS[1] * 10_000 and several:
                dates = [parse_date(text, COMPACT_DAY) for text in texts]
                if all(dates):
                    return self._of_dates(is_number, dates, COMPACT_DAY, words, others)
            if single.is_identifier(name, different, present):
                exact = max(-low, high) <= 2**53  # larger integers have no exact float64
                return ColumnGuess(
                    name, "drop", _identifier(name, len(values), present, "numbers"), words=tuple(words),
                    otherwise="number" if exact else None,
                )  # fmt: skip
            if several and len(values) <= single.MAX_FLAG_VALUES:
                others += f"; {CODES}"
            elif several and len(values) >= single.NEARLY_UNIQUE * present:
                question = (
                    f"has {len(values):,} different whole numbers in {counted(present, 'row')}: is it an identifier?"
                )
            elif several and single.may_be_entity(
                name, len(values), present, codes=single.are_even(values, rows[is_number])
            ):
                question = _entities(name, len(values), present, "numbers")
        if len(different) > single.MAX_FLAG_VALUES and low == 0 and different[1] > FAR * np.diff(different[1:]).max():
            zeros = rows[self.number == 0].sum()
            question = (
                f"has the value 0 in {counted(zeros, 'row')}, and the next larger value is {different[1]:.6g}: does 0 "
                "mean missing?"
            )
        return ColumnGuess(
            name, "number", f"{low:.6g} to {high:.6g}{others}", words=tuple(words),
            question=question,
        )  # fmt: skip

    def _dates(self) -> ColumnGuess | None:
        """Return the description of a column of dates, or None if the column does not contain dates."""
        present = ~self.missing
        texts, rows = self.texts[present].tolist(), self.rows[present]
        first_texts = texts[:20]
        if 2 * sum(DATE.fullmatch(text) is not None for text in first_texts) < len(first_texts):
            return None
        for form in self.date_formats:
            if 2 * sum(parse_date(text, form) is not None for text in first_texts) < len(first_texts):
                continue
            dates = [parse_date(text, form) for text in texts]
            others = [text for text, date in zip(texts, dates, strict=True) if date is None]
            n_others = rows[[date is None for date in dates]].sum()
            most = 0.5 if all(ZERO_CELL.fullmatch(text) for text in others) else 1.0 - MOSTLY
            if len(others) <= MAX_TYPING_ERRORS and n_others <= most * rows.sum():
                return self._of_dates(present, dates, form, others, _others(others, n_others))
        return None

    def _of_dates(
        self, present: np.ndarray, dates: list[datetime | None], form: str | None, words: list[str], others: str
    ) -> ColumnGuess:
        """Return the description of a column of dates.

        `dates` are those of the cells in `present`. `others` is what the comment says about `words`.
        """
        known = [date for date in dates if date is not None]
        known_days = [date.date() for date in known]
        timed = any((date.hour, date.minute) != (0, 0) for date in known)
        rows, positives = (counts[present] for counts in (self.rows, self.positives))
        days = np.array([np.nan if date is None else date.toordinal() for date in dates])
        order = np.argsort(-days, kind="stable")  # cells without a date come last
        last = order[np.cumsum(rows[order]) <= TEST_SHARE * rows[~np.isnan(days)].sum()]
        before = np.delete(days, last)
        span = np.nanmax(before) - np.nanmin(before) + 1
        left_out = {part for part, least in MIN_SPAN_DAYS.items() if span < least} | (set() if timed else {"hour"})
        return ColumnGuess(
            self.name, "dates", f"{min(known_days)} to {max(known_days)}{others}",
            parts=tuple(part for part in PARTS if part not in left_out), date_format=form, words=tuple(words),
            late=(rows[last].sum(), positives[last].sum()),
        )  # fmt: skip

    def _text(self) -> ColumnGuess:
        name, there = self.name, ~self.missing
        rows = self.rows[there]
        n, present, texts = len(rows), rows.sum(), self.texts[there]
        others = np.isnan(self.number[there])
        amounts = others & [AMOUNT.fullmatch(text) is not None for text in texts]
        if n > single.MAX_FLAG_VALUES and rows[amounts].sum() >= MOSTLY * rows[others].sum() > 0:
            example = texts[amounts][0]
            return ColumnGuess(
                name, "drop", "",
                question=f"has amounts in another number style, such as {example}: write all columns of the file in one style",
            )  # fmt: skip
        if (
            n > max(MIN_DISTINCT, present // 2)
            or (n >= 3 and n == present)
            or (n >= 5 and present <= MIN_ROWS_EACH * n)
        ):
            is_free = "".join(texts).count(" ") >= MIN_BLANKS * n
            said = FREE_TEXT if is_free else "an identifier or names"
            return ColumnGuess(name, "drop", f"{n:,} different strings in {counted(present, 'row')}: {said}")
        if single.is_entity(name, n, present):
            return ColumnGuess(
                name, "drop", _identifier(name, n, present, "strings"),
                otherwise="hashed" if n > MAX_DETECTED else "categorical",
            )  # fmt: skip
        codes = all(any(map(str.isdigit, text)) for text in texts)
        question = _entities(name, n, present, "strings") if single.may_be_entity(name, n, present, codes=codes) else ""
        if n > MAX_DETECTED:
            return ColumnGuess(name, "hashed", f"{n:,} different strings", question=question)
        often = sorted(zip(texts.tolist(), rows.tolist(), strict=True), key=lambda cell: (-cell[1], cell[0]))
        shown = ", ".join(f"{text} {n_rows:,}" for text, n_rows in often[:N_SHOWN])
        return ColumnGuess(name, "categorical", f"{n}: {shown}{', ...' * (n > N_SHOWN)}", question=question)


def numbers_in(texts: pa.StringArray, spelling: Spelling) -> np.ndarray:
    """Return the values of the strings that are numbers in a spelling, float64. The value of other strings is NaN."""
    return as_numpy(pc.utf8_ltrim(spelling.plain_numbers(texts), "+").cast(pa.float64()))


def _spelling(texts: pa.StringArray, missing: np.ndarray, column: np.ndarray, rows: np.ndarray) -> Spelling:
    """Return the spelling of numbers that fits most columns.

    Parameters
    ----------
    texts : pyarrow.StringArray
        The text of each cell.
    missing : ndarray of shape (n_cells,), bool
        Whether the cell marks a missing value.
    column, rows : ndarray
        The column of the cell, and the number of rows that have it.
    """
    present = ~missing
    n_present = np.bincount(column[present], rows[present])

    def fit(spelling: Spelling) -> tuple[int, int]:
        """Return the number of columns in which most cells are numbers, and the number of these cells."""
        numbers = present & ~np.isnan(numbers_in(texts, spelling))
        n_numbers = np.bincount(column[numbers], rows[numbers], len(n_present))
        mostly = (n_numbers >= MOSTLY * n_present) & (n_present > 0)
        return mostly.sum(), n_numbers[mostly].sum()

    others = present & np.isnan(numbers_in(texts, Spelling()))
    if not as_numpy(pc.match_substring_regex(texts, r"\d"))[others].any():
        return Spelling()
    best = max(
        (
            Spelling((), decimal, thousands, symbols)
            for symbols in ((), SYMBOLS)
            for decimal, thousands in NUMBER_STYLES
        ), key=fit
    )  # fmt: skip
    if not best.symbols:
        return best
    bare = np.isnan(numbers_in(texts, replace(best, symbols=())))
    written = texts.take(as_arrow(np.flatnonzero(~np.isnan(numbers_in(texts, best)) & bare)))
    needed = [
        symbol
        for symbol in sorted(SYMBOLS)
        if np.isnan(numbers_in(written, replace(best, symbols=tuple({*SYMBOLS} - {symbol})))).any()
    ]
    return replace(best, symbols=tuple(needed))


def _others(texts: list[str], n_rows: int) -> str:
    """Describe the cells of a column that are not numbers or not dates."""
    return (
        f", but for {', '.join(map(repr, texts[:N_SHOWN]))}{', ...' * (len(texts) > N_SHOWN)} in {counted(n_rows, 'row')}"
        if texts
        else ""
    )


def _entities(name: str, n: int, present: int, kind: str) -> str:
    return (
        f"has {n:,} different {kind}, about {counted(round(present / n), 'row')} each: if they name customers, accounts or the "
        f"like, leave it out with `drop`, or keep their rows together with --groups {name}"
    )


def _identifier(name: str, n: int, present: int, kind: str) -> str:
    return (
        f"{n:,} different {kind} in {counted(present, 'row')}: an identifier"
        f"{f'; --groups {name} keeps its rows together' if n < single.NEARLY_UNIQUE * present else ''}"
    )


def _may_be_missing(others: list[str], n_others: int, present: int, n_numbers: int) -> bool:
    """Return whether the cells of a column that are not numbers probably mark missing values.

    Parameters
    ----------
    others : list of str
        The distinct cells that are not numbers.
    n_others : int
        The number of rows that have one of these cells.
    present : int
        The number of rows with a cell that is not empty.
    n_numbers : int
        The number of distinct cells that are numbers.
    """
    if any(len(text) > MAX_WORD_LENGTH for text in others) or len(others) > MAX_TYPING_ERRORS:
        return False
    if all(map(PLACEHOLDERS.fullmatch, others)) and len(others) <= MAX_WORDS:
        return True
    digits = any(map(str.isdigit, "".join(others)))
    if not digits and len(others) == 1 and n_numbers > 20 and 2 * n_others < present:
        return True
    if n_others > max(1, (1.0 - MOSTLY) * present):
        return False
    if not digits and len(others) <= MAX_WORDS:
        return True
    rare = n_others <= max(1, MAX_RARE_SHARE * present)
    errors = all(map(TYPING_ERROR.fullmatch, others))
    return (n_numbers > 10 and (errors or rare)) or (n_numbers >= 3 and errors and rare)
