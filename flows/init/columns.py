"""What the columns of a table hold, as far as their values tell it: numbers, categories, dates, identifiers."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from aucdist.data.date_parts import PARTS
from aucdist.data.formats.dates import parse_date
from aucdist.data.formats.spelling import PLAIN, Spelling
from aucdist.data.formats.survey import FEW, MAX_GUESSED
from aucdist.data.formats.table_form import MISSING_CATEGORY
from flows.init.spelling import words_for_missing

Kind = Literal["number", "categorical", "hashed", "dates", "drop"]
HASHED_INTO = 256
INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
SHOWN = 5
IDENTIFIER = re.compile(r"(.*[_ .-])?(id|uuid|guid|key|index|row|nr|no|number)|.*[a-z]I[dD]", re.IGNORECASE)
TIMES = ("", " %H:%M", " %H:%M:%S")
DATE_FORMATS = tuple(f"{day}{time}" for day in ("%d.%m.%Y", "%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y") for time in TIMES)
"""Spellings other than those of ISO 8601 that are recognised; of several that fit, the first."""


@dataclass(frozen=True)
class ColumnGuess:
    """What a column holds.

    `kind`: what becomes of it: ``number``, ``categorical``, ``hashed``, ``dates`` or ``drop``.
    `comment`: what its values are, or why it is dropped.
    `parts`: of a column of dates what it becomes.
    `date_format`: of a column of dates; None: as in ISO 8601.
    `words`: of a column of numbers what stands for missing ones, besides what always does.
    `auc`: how well the column alone ranks the rows.
    """

    name: str
    kind: Kind
    comment: str
    missing: int = 0
    parts: tuple[str, ...] = ()
    date_format: str | None = None
    words: tuple[str, ...] = ()
    auc: float = 0.5


def columns_of(
    texts: Mapping[str, pd.Categorical], names: Sequence[str], spelling: Spelling = PLAIN
) -> list[ColumnGuess]:
    """Return what the columns hold.

    `texts`: the cells of each column, missing ones as `MISSING_CATEGORY`.
    `names`: the columns that are looked at.
    """
    return _with_one_date_format([_column(name, texts[name], spelling) for name in names])


def _column(name: str, cells: pd.Categorical, spelling: Spelling) -> ColumnGuess:
    rows = np.bincount(cells.codes, minlength=len(cells.categories)).tolist()
    counts = dict(zip(cells.categories, rows, strict=True))
    missing = counts.pop(MISSING_CATEGORY, 0)
    if len(counts) == 0 or (len(counts) == 1 and not missing):
        return ColumnGuess(name, "drop", f"one value: {next(iter(counts))}" if counts else "no values", missing)
    found = _dates(name, list(counts)) or _number(name, cells, counts, spelling) or _text(name, counts, len(cells))
    if found.kind == "number":
        missing += sum(count for text, count in counts.items() if spelling.plain_number(text) is None)
    return replace(found, missing=missing)


def _dates(name: str, values: Sequence[str]) -> ColumnGuess | None:
    """Return a column of dates, or None if it is none."""
    for form in (None, *DATE_FORMATS):
        if parse_date(values[0], form) is None:
            continue
        dates = [parse_date(value, form) for value in values]
        present = [date for date in dates if date is not None]
        if len(present) == len(dates):
            days = sorted(date.date() for date in present)
            timed = any((date.hour, date.minute) != (0, 0) for date in present)
            parts = tuple(part for part in PARTS if timed or part != "hour")
            return ColumnGuess(name, "dates", f"{days[0]} to {days[-1]}", parts=parts, date_format=form)
    return None


def _number(name: str, cells: pd.Categorical, counts: dict[str, int], spelling: Spelling) -> ColumnGuess | None:
    """Return a column of numbers, some of which may be missing; None if it is none."""
    finite = {text: n for text, n in counts.items() if not INFINITE.fullmatch(text)}
    words = words_for_missing(finite, spelling)
    if words is None:
        return None
    if len(finite) < len(counts):
        return ColumnGuess(name, "drop", "some values are not finite")
    values = {text: _value(text, spelling) for text in counts}
    numbers = [value for value in values.values() if value is not None]
    if not all(map(math.isfinite, numbers)):  # 1e999
        return ColumnGuess(name, "drop", "some values are not finite")
    if len(numbers) == len(values) and _is_identifier(name, cells, values):
        return ColumnGuess(name, "drop", f"{len(numbers):,} different numbers in as many rows: an identifier")
    instead = [text for text, value in values.items() if value is None]
    rows = sum(counts[text] for text in instead)
    absent = f", but for {', '.join(map(repr, instead))} in {rows:,} rows" if instead else ""
    return ColumnGuess(name, "number", f"{min(numbers):.6g} to {max(numbers):.6g}{absent}", words=tuple(words))


def _value(text: str, spelling: Spelling) -> float | None:
    plain = spelling.plain_number(text)
    return None if plain is None else float(plain)


def _is_identifier(name: str, cells: pd.Categorical, values: Mapping[str, float | None]) -> bool:
    """Tell whether whole numbers that all differ count the rows, are named like an identifier, or exceed what float64 has."""
    if not all(value is not None and value.is_integer() for value in values.values()):
        return False
    if any(value is not None and abs(value) > 2**53 for value in values.values()):
        return True
    if len(values) < len(cells):
        return False
    ordered = np.array([values[text] for text in cells.categories])[cells.codes]
    return bool(IDENTIFIER.fullmatch(name)) or bool((np.abs(np.diff(ordered)) == 1).all())


def _text(name: str, counts: dict[str, int], n_rows: int) -> ColumnGuess:
    n = len(counts)
    if n > max(FEW, n_rows // 2):
        return ColumnGuess(name, "drop", f"{n:,} different texts in {n_rows:,} rows: an identifier or a free text")
    if n > MAX_GUESSED:
        return ColumnGuess(name, "hashed", f"{n:,} different texts")
    often = sorted(counts, key=lambda text: (-counts[text], text))
    shown = ", ".join(f"{text} {counts[text]:,}" for text in often[:SHOWN])
    return ColumnGuess(name, "categorical", f"{n}: {shown}" + (", ..." if n > SHOWN else ""))


def _with_one_date_format(columns: Sequence[ColumnGuess]) -> list[ColumnGuess]:
    """Return the columns without those whose dates have another format than the first: a source has one."""
    formats = [column.date_format for column in columns if column.kind == "dates"]
    if len(set(formats)) < 2:
        return list(columns)
    return [
        replace(column, kind="drop", parts=(), comment=f"dates written in another way ({column.date_format or 'ISO 8601'})")
        if column.kind == "dates" and column.date_format != formats[0]
        else column
        for column in columns
    ]  # fmt: skip
