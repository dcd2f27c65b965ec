"""Decide how the columns of a table become features: which are numbers, strings or dates, and how their cells are written.

A cell may mark a missing value, or have a number with a comma, digit groups or a currency. It may also be a date, which becomes
one or several numbers, such as its year and its weekday.
"""

import itertools
import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from aucdist.data.dataset import PARTS, DatePart, Schema
from aucdist.data.formats.source_fields import SourceFields
from aucdist.data.formats.text import header_advice, is_number, resolve_column
from aucdist.data.labels import listed
from aucdist.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from aucdist.data.formats.base import Texts

ANY_CASE = ("", "?", "<null>", "nan")
"""Texts that mark a missing value in every column, in lower or upper case."""
AS_PANDAS = (
    "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA", "NULL", "None", "n/a",
    "null",
)  # fmt: skip
"""Other strings that pandas treats as missing. In columns of strings the case must match, so `none` is a category."""
NUMBER_AS_CATEGORY = re.compile(r"(-?)(0|[1-9]\d*)(?:\.(\d*))?", re.ASCII)
WORDS_OF_LABELS = tuple(word for word in AS_PANDAS if word != "None")
"""The strings that mark a missing label. `None` is not among them, because it may be the name of a class."""
SPACES = " \u00a0\u202f\u2009"
ACCOUNTING = r"^\(\s*([^()-]*\d[^()-]*?)\s*\)$"
"""A negative number as accountants write it: (1,234.50)."""
DASH = "^[\u2212\u2013](\\d)"
"""Minus signs other than the hyphen: the mathematical sign and dashes."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ISO_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([T ]\d.*)?")

ZERO_DATE = re.compile(r"0000-00-00([T ]|$)|0{8}$")
"""A missing date as MySQL and others write it."""
CLOCK_FORMATS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
DAY_FORMATS = (
    "%d.%m.%Y", "%Y-%m-%d", "%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y", "%m/%d/%y", "%d/%m/%y", "%d.%m.%y", "%d-%m-%Y", "%m-%d-%Y",
    "%Y.%m.%d", "%d-%b-%Y", "%d %b %Y", "%d-%b-%y",
)  # fmt: skip
DATE_FORMATS = tuple(day + clock for day in DAY_FORMATS for clock in CLOCK_FORMATS)
"""Common date formats other than ISO 8601, such as 2025-1-5. If several match, the first is suggested."""
COMPACT_DAY = "%Y%m%d"
COMPACT_FORMATS = tuple(COMPACT_DAY + clock for clock in CLOCK_FORMATS)
"""Date formats that are suggested only in error messages, because numbers of eight digits may be something else."""
PANDAS_INDEX = re.compile(r"__index_level_\d+__")
"""Columns in which pandas and Arrow store the index of a DataFrame. They are not features."""
MISSING_CATEGORY = "(missing)"
"""The category of missing values. With ``missing: keep``, a cell with this text counts as missing."""
UNKNOWN_CATEGORY = "\0unknown"
"""The category for values that the training data did not have. It cannot occur in a file."""
REMEDY = (
    "remove the row or fill it in. `missing: keep` accepts missing values in features, but not in the label. A saved model whose "
    "training rows had no missing value in this column needs `unknown: ignore` as well: `--set missing=keep --set unknown=ignore`"
)

REMEDY_OF_LABELS = "remove these rows or fill them in, because a training row needs its label"


@dataclass(frozen=True)
class Spelling:
    """How the cells of a table are written.

    Attributes
    ----------
    missing : tuple of str
        Strings that mark a missing value of a feature, in addition to `ANY_CASE` and `AS_PANDAS`.
    decimal : str
        The decimal separator of numbers.
    thousands : str or None
        The separator between groups of three digits: a character, or ``space``.
    symbols : tuple of str
        Symbols that may be written before or after a number, such as a currency or a per cent sign. They do not change the
        number.
    """

    missing: tuple[str, ...] = ()
    decimal: str = "."
    thousands: str | None = None
    symbols: tuple[str, ...] = ()

    @classmethod
    def of(cls, source: SourceFields) -> "Spelling":
        """Return the spelling that a source states."""
        return cls(tuple(source.missing_values), source.decimal, source.thousands, tuple(source.symbols))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The strings that mark a missing value of a feature. Those of `ANY_CASE` do so in upper and in lower case."""
        return tuple(dict.fromkeys((*AS_PANDAS, *self.missing)))

    @property
    def plain(self) -> bool:
        """Whether numbers are written as Python writes them."""
        return self.decimal == "." and self.thousands is None and not self.symbols

    def is_missing(self, text: str, *, label: bool = False) -> bool:
        """Return whether a cell of a text column, or of the label, marks a missing value."""
        return text.lower() in ANY_CASE or text in (WORDS_OF_LABELS if label else self.words)

    def is_missing_number(self, text: str) -> bool:
        """Return whether a cell of a column of numbers that is not a number marks a missing value."""
        return text.lower() in self.number_words

    @cached_property
    def number_words(self) -> frozenset[str]:
        """The strings, in lower case, that mark a missing number."""
        return frozenset(text.lower() for text in (*ANY_CASE, *self.words))

    @cached_property
    def missing_numbers(self) -> np.ndarray:
        """The numbers that mark a missing value, such as -999. They may be written as in the file or as Python writes them."""
        plain = self.plain_numbers(self.missing).to_pylist() if self.missing else []
        texts = [text if number is None else number for text, number in zip(self.missing, plain, strict=True)]
        return np.array([float(text) for text in texts if is_finite_number(text)])

    def plain_numbers(self, texts: "Sequence[str] | pa.StringArray") -> "pa.StringArray":
        """Return numbers in the form that Python's `float` reads, and null for strings that are not numbers.

        One symbol may be written before the digits and one after them, and a sign before or after the first of these. A minus
        sign may follow the fraction, as in 12.50-, which SAP writes.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        texts = pa.array(texts, pa.string())
        for pattern in (ACCOUNTING, DASH):
            texts = pc.replace_substring_regex(texts, pattern, r"-\1")
        if self.symbols:
            symbols = "|".join(map(re.escape, sorted(self.symbols, key=len, reverse=True)))
            texts = pc.replace_substring_regex(texts, rf"^([+-]?)(?:{symbols})[{SPACES}]*", r"\1")
            texts = pc.replace_substring_regex(texts, rf"[{SPACES}]*(?:{symbols})$", "")
        groups = SPACES if self.thousands == "space" else self.thousands or ""
        point = re.escape(self.decimal)
        texts = pc.replace_substring_regex(texts, rf"^(\d.*{point}\d+)-$", r"-\1")
        whole = rf"(?:[1-9]\d{{0,2}}(?:[{re.escape(groups)}]\d{{3}})+|\d+)" if groups else r"\d+"
        number = rf"^[+-]?(?:{whole}(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?$"
        are_numbers = pc.match_substring_regex(texts, number)
        for sign in groups:
            texts = pc.replace_substring(texts, sign, "")
        none = pa.nulls(1, pa.string())[0]  # with None, pyarrow would load pandas
        return pc.if_else(are_numbers, pc.replace_substring(texts, self.decimal, "."), none)


PLAIN = Spelling()


BOOLEANS = {"false": "0", "true": "1"}
"""The numbers for texts that mean booleans, in lower case. Boolean columns of Parquet become the same numbers."""


def category_key(text: str) -> str:
    """Return a key that equal categories share: their Unicode normal form NFC, or the value of a number (1 and 1.0, 0 and -0.0).

    Codes with leading zeros stay as they are. Booleans are numbers.
    """
    text = BOOLEANS.get(text.lower(), text)
    text = text if text.isascii() else unicodedata.normalize("NFC", text)
    if (number := NUMBER_AS_CATEGORY.fullmatch(text)) is None:
        return text
    whole, fraction = number[2], (number[3] or "").rstrip("0")
    value = f"{whole}.{fraction}" if fraction else whole
    return value if value == "0" else number[1] + value


def one_spelling_each(categories: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct categories in alphabetical order, each in the shortest of its spellings."""
    spellings: dict[str, str] = {}
    for text in sorted(set(categories), key=lambda text: (len(text), text)):
        spellings.setdefault(category_key(text), text)
    return tuple(sorted(spellings.values()))


def by_key(categories: Iterable[str]) -> dict[str, str]:
    """Return the category of each key, and of each category itself."""
    known = tuple(categories)
    return {category_key(text): text for text in reversed(known)} | {text: text for text in known}


def is_finite_number(text: str) -> bool:
    """Return whether a text is a number as Python writes it."""
    return is_number(text) and math.isfinite(float(text))


def parse_date(text: str, date_format: str | None) -> datetime | None:
    """Parse a date in a `strptime` format, or in ISO 8601 if `date_format` is None. Return None if the string is not a date."""
    try:
        if date_format is not None:
            return datetime.strptime(text, date_format)  # dates without a time zone are treated as UTC
        return datetime.fromisoformat(text) if ISO_DATE.fullmatch(text) else None
    except (ValueError, OverflowError):
        return None


def are_dates(texts: Iterable[str]) -> bool:
    """Return whether all strings are ISO 8601 dates, missing values or zero dates. Stop at the first one that is not."""
    dates = (parse_date(text, None) for text in texts if text != MISSING_CATEGORY and not ZERO_DATE.match(text))
    return next(dates, None) is not None and all(dates)


def check_not_dates(names: Sequence[str], texts: Mapping[str, "Texts"], where: str) -> None:
    """Raise an InputError if a column that was detected as categorical contains dates.

    Each date would become a category of its own.
    """
    for name in names:
        if are_dates(texts[name].categories):
            raise InputError(
                f"{where}, column {name!r}: it holds dates. Give `dates: {{{name}: [{', '.join(PARTS)}]}}` with the parts that "
                f"should become numbers, or leave it out with `drop: [{name}]`; each date becomes a category if `categorical` "
                "names the column"
            )


def problem_with_date(text: str, date_format: str | None) -> str | None:
    """Describe what is wrong with a cell of a date column, and which `date_format` would read it. Return None if it is valid."""
    if parse_date(text, date_format) is not None:
        return None
    expected = (
        f"a date of the format {date_format!r}" if date_format else "a date as ISO 8601 writes it, such as 2025-01-31"
    )
    fitting = next((other for other in (*DATE_FORMATS, *COMPACT_FORMATS) if parse_date(text, other) is not None), None)
    hint = (
        f"; give `date_format: '{fitting}'`"
        if fitting
        else ""
        if date_format
        else "; other spellings need `date_format`"
    )
    return f"{text[:40]!r} is not {expected}{hint}"


def date_numbers(column: "Texts", parts: Sequence[DatePart], date_format: str | None) -> np.ndarray:
    """Return the parts of dates, float64 of shape (n_samples, n_parts). They are NaN if the date is missing.

    Parameters
    ----------
    column : Texts
        Dates that `problem_with_date` accepts, and `MISSING_CATEGORY`.
    parts : sequence of DatePart
        Some of `PARTS`.
    date_format : str or None
        As for `parse_date`.
    """
    rows = []
    for text in column.categories:
        values = dict.fromkeys(PARTS, math.nan)
        if text != MISSING_CATEGORY and (date := parse_date(text, date_format)) is not None:
            since = (date if date.tzinfo else date.replace(tzinfo=UTC)) - EPOCH
            values = {
                "year": date.year, "month": date.month, "weekday": date.weekday(), "hour": date.hour + date.minute / 60,
                "days": since / timedelta(days=1),
            }  # fmt: skip
        rows.append([float(values[part]) for part in parts])
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(parts))[column.codes]


@dataclass(frozen=True)
class TableOptions:
    """How the columns of a table are read.

    Attributes
    ----------
    label : str
        The column with the classes. Empty if there is none.
    features : sequence of str
        The columns that are features, in their order. Columns with no role are ignored.
    categorical : collection of str
        The features that are categorical, which become one 0/1 feature for each value.
    guess : bool
        Whether features with a cell that is not a number are categorical as well.
    hashed : mapping of str to int
        The number of features of each hashed column.
    allowed : mapping of str to collection of str
        The values that a categorical column may have. Columns that are not listed may have any value.
    missing : bool
        Whether features may have missing values. They are NaN among numbers, and `MISSING_CATEGORY` among strings.
    dtype : str or None
        ``float64`` or ``float32``. None means the type in which the columns are stored.
    dates : mapping of str to tuple of DatePart
        The features that are dates, and the parts that become numbers.
    date_format : str or None
        How dates are written. None means ISO 8601.
    unknown : str
        What to do with a value that is not allowed: ``error``; ``ignore`` (it becomes `UNKNOWN_CATEGORY`); ``as-missing``.
    spelling : Spelling
        How numbers and missing values are written.
    groups : str
        The column with the group of each row. Empty if there is none.
    cost : str
        The column with the cost of a wrong decision on each row. Empty if there is none.
    """

    label: str
    features: Sequence[str]
    categorical: Collection[str] = ()
    guess: bool = False
    hashed: Mapping[str, int] = field(default_factory=dict)
    allowed: Mapping[str, Collection[str]] = field(default_factory=dict)
    missing: bool = False
    dtype: str | None = None
    dates: Mapping[str, tuple[DatePart, ...]] = field(default_factory=dict)
    date_format: str | None = None
    unknown: str = "error"
    spelling: Spelling = PLAIN
    groups: str = ""
    cost: str = ""

    @classmethod
    def of(cls, source: SourceFields, schema: Schema | None, names: Sequence[str], where: str) -> "TableOptions":
        """Return the options that a source describes.

        Parameters
        ----------
        source : SourceFields
            The source of the rows.
        schema : Schema or None
            The schema of the training data, if the rows are encoded like them.
        names : sequence of str
            The columns.
        where : str
            The name of the data in error messages.

        Raises
        ------
        InputError
            If a column does not exist.
        """
        role_columns = {"label": source.label, "groups": source.groups, "cost_column": source.cost_column}
        roles = {
            key: resolve_column(names, column, where, key) for key, column in role_columns.items() if column is not None
        }
        for key, other in itertools.combinations(roles, 2):
            if roles[key] == roles[other]:  # one key may have the name of the column, and the other its position
                raise InputError(
                    f"{where}: column {roles[key]!r} cannot be both `{key}` and `{other}`: name different columns"
                )
        label, groups, cost = (roles.get(key, "") for key in role_columns)
        kept = [name for name in names if not PANDAS_INDEX.fullmatch(name)]
        if source.keep is not None:
            absent = [name for name in source.keep if name not in names] if schema is not None else []
            if absent:
                raise InputError(
                    f"{where} has no column{'s' * (len(absent) > 1)} {listed(map(repr, absent))}, which the "
                    f"model needs; it has: {listed(names)}. Add what is missing, or use a model without it{header_advice(names)}"
                )
            kept = [resolve_column(names, name, where, "keep") for name in source.keep]
        not_features = {label, groups, *([] if source.keep else [cost])}
        not_features |= {resolve_column(names, name, where, "drop") for name in source.drop or ()}
        features = tuple(name for name in kept if name not in not_features)
        keys, dropped = (source, source.drop or ()) if schema is None else (schema, ())
        hashed = {
            resolve_column(features, column, where, "hashed"): n
            for column, n in keys.hashed.items()
            if column not in dropped
        }
        dates = {
            resolve_column(features, column, where, "dates"): tuple(parts)
            for column, parts in keys.dates.items()
            if column not in dropped
        }
        guess, categorical = schema is None and source.categorical == "auto", set[str]()
        if schema is not None:
            categorical = set(schema.categories) & set(features)
        elif source.categorical != "auto":
            categorical = {
                resolve_column(features, column, where, "categorical")
                for column in source.categorical
                if column not in dropped
            }
        return cls(
            label, features, categorical, guess, hashed, schema.categories if schema else {}, source.missing == "keep",
            source.dtype, dates, source.date_format, source.unknown, Spelling.of(source), groups, cost,
        )  # fmt: skip

    @cached_property
    def spellings(self) -> dict[str, dict[str, str]]:
        """The values of each column of `allowed`, by their keys and by the values themselves."""
        return {name: by_key(values) for name, values in self.allowed.items()}

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        return [name for name in dict.fromkeys((*self.features, self.label, self.groups, self.cost)) if name]

    @property
    def texts(self) -> list[str]:
        """The columns that are read as strings."""
        in_use = (*self.categorical, *self.hashed, *self.dates, self.label, self.groups)
        return sorted(set(in_use) - {""})

    @property
    def numbers(self) -> list[str]:
        """The columns that are read as numbers, in the order of the features."""
        texts = self.texts
        return [name for name in self.features if name not in texts]

    @property
    def parsed_numbers(self) -> list[str]:
        """The columns that are parsed as numbers: numeric features, and the costs if they are not a feature."""
        return list(dict.fromkeys([*self.numbers, self.cost] if self.cost else self.numbers))
