"""Examine single columns: how well they rank the rows, whether a value reveals the label, whether they are identifiers.

Everything is computed from counts of the distinct values of a column.
"""

import re

import numpy as np
from numpy import ndarray

from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.ranking import auc

SUSPICIOUS_AUC = 0.99
"""The AUC from which a single column is reported."""
MIN_CLASS_ROWS = 20
"""The smallest number of rows of a class, or of a category that has a share of its own."""
NEARLY_ALL = 0.95
"""The share of positive rows from which a value reveals the label."""
MAX_FLAG_VALUES = 10
"""The largest number of values of a numeric flag, whose single values are examined."""
MIN_ROWS = 10
"""The smallest number of rows of a class that one column separates, and of a value that may reveal the label. A column of noise
that separates ten rows of each class has a probability of 1e-5."""
MIN_POSITIVE_SHARE = 0.05
"""The smallest share of all positives that such a value has."""
MAX_CHANCE = 1e-4
"""The largest probability that all rows of such a value are positive by chance."""
NEARLY_UNIQUE = 0.9
"""The share of distinct values among the rows from which integers are an identifier, if the column's name says so or the integers
are dense."""
MAX_SPAN = 1.25
"""The largest range of numbers that count the rows, as a multiple of the number of rows. Some rows may have been deleted."""
ID_NAME = r"(.*[_ .-])?({words})|.*[a-z]({camel})"
IDENTIFIER = re.compile(
    ID_NAME.format(words="id|uuid|guid|key|index|row|nr|no|number", camel="(?-i:I[dD]|Nr|No|Number|Key)"), re.IGNORECASE
)
"""Names of columns that number or name rows, if their values are distinct."""
ENTITY = re.compile(ID_NAME.format(words="id|uuid|guid", camel="(?-i:I[dD])"), re.IGNORECASE)
"""Names of columns that name the entity a row belongs to, such as a user or a machine. Their values may repeat."""
ACCOUNT = re.compile(
    ID_NAME.format(
        words=r"nr|no|number|\w*nummer|customer|client|account|user|member|patient|card|iban|kunde|konto",
        camel="(?-i:Nr|No|Number|Customer|Client|Account|User)",
    ),
    re.IGNORECASE,
)
"""Names of columns that may name an entity. Other columns, such as `floor_no`, match as well."""
ANY = re.compile(".*", re.DOTALL)
MIN_ENTITIES = 100
"""The number of values from which the user is asked about columns with other names."""
MAX_UNEVEN = 0.05
"""The largest deviation of the values of a column from an even distribution between their smallest and their largest, if the
column has integers that name an entity. In 17 tables, quantities deviate by 0.13 and more."""
MAX_ROWS_EACH = 20
"""The number of rows per value from which a named entity may be a category. With fewer rows, its values are seen too rarely."""


SENTINEL = re.compile("-[19]|-?9{2,6}")
"""Numbers that often mark missing values."""


def auc_of_column(values: ndarray, rows: ndarray, positives: ndarray) -> float:
    """Return the AUC of a single column of numbers, in the direction in which it is above one half.

    If a class has few rows, it is 0.5.

    If values are missing (NaN), it is the larger one of two AUCs: that of the values that exist, and that of whether a value is
    missing.
    """
    present = ~np.isnan(values)
    area = _either_way(values[present], rows[present], positives[present])
    return area if present.all() else max(area, _either_way(present.astype(np.float64), rows, positives))


def _either_way(values: ndarray, rows: ndarray, positives: ndarray) -> float:
    n_pos = positives.sum()
    if min(n_pos, rows.sum() - n_pos) < MIN_ROWS:
        return 0.5
    area = auc(ScoreCounts.of_values(values, positives, rows - positives))
    return max(area, 1.0 - area)


def auc_and_revealing_value(
    values: ndarray | None, rows: ndarray, positives: ndarray, negatives_for_one: float = 1.0
) -> tuple[float, int | None]:
    """Return the AUC of a single column, and the position of a value that reveals the label, or None if there is no such value.

    An example of such a value is a failure mode, which only failures have. If there are several, the most frequent one is
    returned.

    Nearly all rows with the value are positive.

    Parameters
    ----------
    values : ndarray of shape (n_values,), or None
        The distinct numbers. Only columns with few of them, such as flags, are searched for such a value: see
        `MAX_FLAG_VALUES`. None for categories, which are ranked by their share of positive rows.
    rows, positives : ndarray of shape (n_values,)
        The numbers of rows and of positive rows with each value.
    negatives_for_one : float, default=1.0
        The number of negative rows for which each one stands, if the rows are a sample.
    """
    ranking = values
    if ranking is None:  # the share of positive rows in each category; categories with few rows count as one category
        few, ranking = rows < MIN_CLASS_ROWS, positives / np.maximum(rows, 1)
        ranking[few] = positives[few].sum() / max(rows[few].sum(), 1)
    area = auc_of_column(ranking, rows, positives)
    n_pos = positives.sum()
    prevalence = n_pos / max(rows.sum(), 1)
    if n_pos < MIN_CLASS_ROWS or prevalence > 0.5 or (values is not None and len(rows) > MAX_FLAG_VALUES):
        return area, None
    negatives = (rows - positives + (negatives_for_one > 1.0)) * negatives_for_one
    enough = max(MIN_ROWS, MIN_POSITIVE_SHARE * n_pos, np.log(MAX_CHANCE) / np.log(prevalence))
    reveals = (positives >= enough * NEARLY_ALL) & (positives >= NEARLY_ALL * (positives + negatives))
    return area, int(np.argmax(np.where(reveals, rows, 0))) if reveals.any() else None


def missing_value_warning(values: ndarray) -> str:
    """Return a warning about a number that lies far apart from all others and may mark missing values, or an empty string.

    Parameters
    ----------
    values : ndarray
        The distinct values, ascending.
    """
    for k in (0, -1):
        value, others = values[k], np.delete(values, k)
        is_far = np.abs(others - value).min() > np.ptp(others)
        if SENTINEL.fullmatch(f"{value:g}") and (
            is_far or (value < 0.0 <= others[0] and len(others) > MAX_FLAG_VALUES)
        ):
            return (
                f"has the number {value:g} far from its other numbers: if it says that a value is missing, list it under "
                "`missing_values`, which holds for all columns"
            )
    return ""


def is_identifier(name: str, values: ndarray, n_rows: int) -> bool:
    """Return whether integers are identifiers of the rows, which have no information about new rows.

    Parameters
    ----------
    name : str
        The name of the column.
    values : ndarray
        The distinct values.
    n_rows : int
        The number of rows with a value.
    """
    low, high, n = float(values.min()), float(values.max()), len(values)
    if max(-low, high) > 2**53:
        return True
    if n < 3:
        return False
    if n < NEARLY_UNIQUE * n_rows:
        return is_entity(name, n, n_rows)
    span = high - low + 1.0
    return IDENTIFIER.fullmatch(name) is not None or span <= (MAX_SPAN * n_rows if n_rows >= MIN_CLASS_ROWS else n_rows)


def is_entity(name: str, n_values: int, n_rows: int, names: re.Pattern[str] = ENTITY) -> bool:
    """Return whether a column identifies the entity of each row, such as a user, with few rows for each value."""
    return names.fullmatch(name) is not None and n_values >= 10 and n_rows <= MAX_ROWS_EACH * n_values


def may_be_entity(name: str, n_values: int, n_rows: int, *, codes: bool) -> bool:
    """Return whether a column may identify the entity of each row, by its name or because its values look like `codes`."""
    return is_entity(name, n_values, n_rows, ANY if codes and n_values >= MIN_ENTITIES else ACCOUNT)


def are_even(values: ndarray, rows: ndarray) -> bool:
    """Return whether rows are spread evenly from the smallest to the largest of several integers, as with identifiers."""
    order = np.argsort(values)
    share = np.cumsum(rows[order]) / rows.sum()
    return bool(np.abs(share - (values[order] - values.min()) / np.ptp(values)).max() < MAX_UNEVEN)
