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
from aucdist.data.formats.survey import FEW, MAX_GUESSED
from aucdist.data.formats.table_form import MISSING_CATEGORY
from aucdist.kernels.cells import MISSING_NUMBER

Kind = Literal["number", "categorical", "hashed", "dates", "drop"]
HASHED_INTO = 256
MOSTLY = 0.9
"""If so large a share of a column's rows are numbers, the others are taken for faults of the file."""
SHOWN = 5
IDENTIFIER = re.compile(r"(.*[_ .-])?(id|uuid|guid|key|index|row|nr|no|number)|.*[a-z]I[dD]", re.IGNORECASE)
TIMES = ("", " %H:%M", " %H:%M:%S")
DATE_FORMATS = tuple(f"{day}{time}" for day in ("%d.%m.%Y", "%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y") for time in TIMES)
"""Spellings other than those of ISO 8601 that are recognised; of several that fit, the first."""


@dataclass(frozen=True)
class Column:
    """What a column holds.

    Attributes
    ----------
    name : str
    kind : str
        What becomes of it: ``number``, ``categorical``, ``hashed``, ``dates`` or ``drop``.
    comment : str
        What its values are, or why it is dropped.
    missing : int
        Rows without a value.
    parts : tuple of str
        Of a column of dates what it becomes.
    date_format : str or None
        Of a column of dates; None: as in ISO 8601.
    """

    name: str
    kind: Kind
    comment: str
    missing: int = 0
    parts: tuple[str, ...] = ()
    date_format: str | None = None


def columns_of(texts: Mapping[str, pd.Categorical], names: Sequence[str]) -> list[Column]:
    """Return what the columns hold.

    Parameters
    ----------
    texts : mapping of str to Categorical
        The cells of each column, missing ones as `MISSING_CATEGORY`.
    names : sequence of str
        The columns that are looked at.
    """
    return _with_one_date_format([_column(name, texts[name]) for name in names])


def _column(name: str, cells: pd.Categorical) -> Column:
    rows = np.bincount(cells.codes, minlength=len(cells.categories)).tolist()
    counts = dict(zip(cells.categories, rows, strict=True))
    missing = counts.pop(MISSING_CATEGORY, 0)
    if len(counts) == 0 or (len(counts) == 1 and not missing):
        return Column(name, "drop", f"one value: {next(iter(counts))}" if counts else "no values", missing)
    found = _dates(name, list(counts)) or _number(name, cells, counts, missing) or _text(name, counts, len(cells))
    if found.kind == "number":
        missing += sum(count for text, count in counts.items() if text.lower() in MISSING_NUMBER)
    return replace(found, missing=missing)


def _dates(name: str, values: Sequence[str]) -> Column | None:
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
            return Column(name, "dates", f"{days[0]} to {days[-1]}", parts=parts, date_format=form)
    return None


def _number(name: str, cells: pd.Categorical, counts: dict[str, int], missing: int) -> Column | None:
    """Return a column of numbers, or one of texts of which most are numbers; None if it is neither."""
    values = {text: _value(text) for text in counts if text.lower() not in MISSING_NUMBER}
    others = [text for text, value in values.items() if value is None]
    if others:
        rows, present = sum(counts[text] for text in others), len(cells) - missing
        if rows > (1.0 - MOSTLY) * present or len(others) > SHOWN or rows == present:
            return None
        what = ", ".join(map(repr, others))
        return Column(name, "drop", f"numbers, but for {what} in {rows:,} rows: leave these cells empty, and use it")
    numbers = [value for value in values.values() if value is not None]
    if not numbers:
        return None
    if not all(map(math.isfinite, numbers)):
        return Column(name, "drop", "some values are not finite")
    if _is_identifier(name, cells, values):
        return Column(name, "drop", f"{len(numbers):,} different numbers in as many rows: an identifier")
    instead = [text for text in counts if text.lower() in MISSING_NUMBER]
    absent = f", and {', '.join(map(repr, instead))} where there is none" if instead else ""
    return Column(name, "number", f"{min(numbers):.6g} to {max(numbers):.6g}{absent}")


def _value(text: str) -> float | None:
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


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


def _text(name: str, counts: dict[str, int], n_rows: int) -> Column:
    n = len(counts)
    if n > max(FEW, n_rows // 2):
        return Column(name, "drop", f"{n:,} different texts in {n_rows:,} rows: an identifier or a free text")
    if n > MAX_GUESSED:
        return Column(name, "hashed", f"{n:,} different texts")
    often = sorted(counts, key=lambda text: (-counts[text], text))
    shown = ", ".join(f"{text} {counts[text]:,}" for text in often[:SHOWN])
    return Column(name, "categorical", f"{n}: {shown}" + (", ..." if n > SHOWN else ""))


def _with_one_date_format(columns: Sequence[Column]) -> list[Column]:
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
