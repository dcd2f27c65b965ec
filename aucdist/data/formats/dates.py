"""Columns of dates: each becomes some numbers, such as its year and its weekday."""

import itertools
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from aucdist.data.date_parts import PARTS
from aucdist.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ISO = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([T ]\d.*)?")

ZERO_DATE = re.compile(r"0000-00-00([T ]|$)|0{8}$")
"""How MySQL, among others, writes a date that is missing."""
CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
DAYS = (
    "%d.%m.%Y",
    "%Y/%m/%d",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d.%m.%y",
    "%m/%d/%y",
    "%d/%m/%y",
    "%Y%m%d",
    "%d-%b-%Y",
    "%d-%b-%y",
)
DATE_FORMATS = tuple(f"{day}{clock}" for day in DAYS for clock in CLOCKS) + tuple(
    f"%Y-%m-%d{clock}" for clock in CLOCKS[3:]
)
"""Spellings other than those of ISO 8601 that are common; of several that fit, the first."""


def parse_date(text: str, form: str | None) -> datetime | None:
    """Return the date of a text in a format of `strptime`, or of ISO 8601 where there is none; None if it is no date."""
    try:
        if form is not None:
            return datetime.strptime(text, form)  # a date without a time zone counts as one in UTC
        return datetime.fromisoformat(text) if ISO.fullmatch(text) else None
    except (ValueError, OverflowError):
        return None


def are_dates(texts: Iterable[str], missing: str) -> bool:
    """Tell whether texts are dates as ISO 8601 writes them, but for missing and zero ones. It stops at the first that is not."""
    present = (text for text in texts if text != missing and not ZERO_DATE.match(text))
    first = next(present, None)
    return first is not None and all(parse_date(text, None) for text in itertools.chain([first], present))


def refuse_dates(names: Sequence[str], texts: Mapping[str, "pd.Categorical"], missing: str, where: str) -> None:
    """Do nothing if no column that has been taken for categories, because its cells are not numbers, holds dates.

    Raises InputError if one does: each date would become a category of its own.
    """
    for name in names:
        if are_dates(texts[name].categories, missing):
            raise InputError(
                f"{where}, column {name!r}: it holds dates. Give `dates: {{{name}: [{', '.join(PARTS)}]}}` with the parts that "
                f"should become numbers, or leave it out by `drop: [{name}]`; each date becomes a category if `categorical` "
                "names the column"
            )


def problem_with_date(text: str, form: str | None) -> str | None:
    """Say what is wrong with a cell of a column of dates, if anything is, and by which `date_format` it would be a date."""
    if parse_date(text, form) is not None:
        return None
    expected = "a date as ISO 8601 writes it, such as 2025-01-31" if form is None else f"a date of the format {form!r}"
    fitting = next((other for other in DATE_FORMATS if parse_date(text, other) is not None), None)
    hint = (
        f"; give `date_format: '{fitting}'`" if fitting else "; other spellings need `date_format`" if not form else ""
    )
    return f"{text[:40]!r} is not {expected}{hint}"


def date_numbers(column: "pd.Categorical", parts: Sequence[str], form: str | None, missing: str) -> np.ndarray:
    """Return the parts of dates, float64 of shape (n_samples, n_parts); nan where the date is missing.

    `column`: texts that `problem_with_date` finds sound, and `missing`.
    `parts`: some of `PARTS`.
    `form`: as for `parse_date`.
    """
    rows = [
        [math.nan] * len(parts) if text == missing else _parts(parse_date(text, form), parts)
        for text in column.categories
    ]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(parts))[column.codes]


def _parts(date: datetime | None, parts: Iterable[str]) -> list[float]:
    assert date is not None
    utc = date if date.tzinfo else date.replace(tzinfo=UTC)
    values = {
        "year": date.year, "month": date.month, "weekday": date.weekday(), "hour": date.hour + date.minute / 60,
        "days": (utc - EPOCH) / timedelta(days=1),
    }  # fmt: skip
    return [float(values[part]) for part in parts]


def insert_dates(
    numbers: np.ndarray, features: Sequence[str], texts: Collection[str], dates: Mapping[str, np.ndarray],
    names: Mapping[str, Sequence[str]],
) -> tuple[np.ndarray, tuple[str, ...]]:  # fmt: skip
    """Return numbers and features with the parts of dates in the place of their columns.

    `numbers`, of shape (n_samples, n_numbers): the other features that are numbers, in order.
    `texts`: those of them that are categories or hashed.
    `dates`, of shape (n_samples, n_parts): for each column of dates its parts.
    """
    pieces, k = [numbers[:, :0]], 0
    found: list[str] = []
    for name in features:
        if name in dates:
            pieces.append(dates[name].astype(numbers.dtype))
        elif name not in texts:
            pieces.append(numbers[:, k : k + 1])
            k += 1
        found += names[name] if name in dates else [name]
    return np.concatenate(pieces, axis=1), tuple(found)
