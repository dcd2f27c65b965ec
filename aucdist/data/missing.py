"""What stands in for missing numbers: statistics of the values that are there, which merge over blocks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from aucdist.data.block import Block, n_rows
from aucdist.errors import InputError
from aucdist.kernels.rows import CsrRows, Rows

IMPUTES = ("refuse", "keep", "mean", "median")
KEPT_BITS = 10
MEDIAN_ERROR = 2.0**-KEPT_BITS
"""A median lies below the true one in size, by at most this share of it; whole numbers up to 2**11 are exact. Numbers
below the smallest normal one (2.2e-308) have fewer bits: they may be off by as much as that share of 2.2e-308."""

DROPPED = 52 - KEPT_BITS  # of the 52 bits behind the point of a float64
CHUNK = 2**20  # values that are looked at at a time
KEYS = 1 << (64 - DROPPED)


@dataclass(frozen=True, eq=False)
class Means:
    """Number and sum of the values of each column that are there; they merge by ``+``. Both of shape (n_features,)."""

    count: np.ndarray
    total: np.ndarray

    def __add__(self, other: "Means") -> "Means":
        return Means(self.count + other.count, self.total + other.total)

    @classmethod
    def of(cls, rows: Rows) -> "Means":
        """Return the statistics of a block's rows."""
        d = _width(rows)
        found = cls(_zeros(rows), np.zeros(d))
        for column, value in _present(rows):
            found += cls(np.bincount(column, minlength=d), np.bincount(column, value, minlength=d))
        return found

    def fill(self) -> np.ndarray:
        """Return the mean of each column; nan where there is no value."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.total / self.count

    @property
    def error(self) -> float:
        """How far it may be off, as a share of the value."""
        return 0.0


@dataclass(frozen=True, eq=False)
class Medians:
    """A histogram of each column over cells of equal relative width, which merges by ``+`` whatever the order.

    A cell holds the floats that agree in sign, exponent and the first `KEPT_BITS` bits behind the point. Only cells that
    occur are stored: a column rarely has more than some thousands.

    `cell`, of shape (n_cells,), int64: column times `KEYS` plus the number of the cell in the order of the reals;
        ascending.
    `count`: of shape (n_cells,), int64.
    """

    cell: np.ndarray
    count: np.ndarray
    n_features: int

    def __add__(self, other: "Medians") -> "Medians":
        cells, place = np.unique(np.concatenate([self.cell, other.cell]), return_inverse=True)
        count = np.zeros(len(cells), dtype=np.int64)
        np.add.at(count, place, np.concatenate([self.count, other.count]))
        return Medians(cells, count, self.n_features)

    @classmethod
    def of(cls, rows: Rows) -> "Medians":
        """Return the histograms of a block's rows."""
        d, zeros = _width(rows), _zeros(rows)
        with_zeros = np.flatnonzero(zeros)
        found = cls(_cell(with_zeros, np.zeros(len(with_zeros), dtype=np.int64)), zeros[with_zeros], d)
        for column, value in _present(rows):
            size = np.abs(value).view(np.int64) >> DROPPED
            cells, count = np.unique(_cell(column, np.where(value < 0, -size, size)), return_counts=True)
            found += cls(cells, count, d)
        return found

    def fill(self) -> np.ndarray:
        """Return the median of each column, rounded towards zero (see `MEDIAN_ERROR`); nan where there is no value."""
        filled, column = np.full(self.n_features, np.nan), self.cell // KEYS
        edges = np.searchsorted(column, np.arange(self.n_features + 1))
        for j in range(self.n_features):
            of_column = slice(edges[j], edges[j + 1])
            below = np.cumsum(self.count[of_column])
            if len(below):
                n = below[-1]
                middle = np.searchsorted(below, [(n - 1) // 2, n // 2], side="right")
                filled[j] = _value(self.cell[of_column][middle]).mean()
        return filled

    @property
    def error(self) -> float:
        """How far it may be off, as a share of the value; where the two middle values differ in sign, of the larger one."""
        return MEDIAN_ERROR


STATISTICS: dict[str, type[Means] | type[Medians]] = {"mean": Means, "median": Medians}


def _present(rows: Rows) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield column and value of all stored entries that are not missing, some at a time."""
    d = _width(rows)
    step = CHUNK if isinstance(rows, CsrRows) else max(1, CHUNK // max(1, d))
    for i in range(0, len(rows.values), step):
        part = rows.values[i : i + step]
        value = part.reshape(-1)
        column = rows.indices[i : i + step] if isinstance(rows, CsrRows) else np.tile(np.arange(d), len(part))
        there = ~np.isnan(value)
        yield column[there], value[there].astype(np.float64)


def _width(rows: Rows) -> int:
    return rows.n_features if isinstance(rows, CsrRows) else int(rows.values.shape[1])


def _zeros(rows: Rows) -> np.ndarray:
    """Return the number of zeros of each column that are not stored."""
    if not isinstance(rows, CsrRows):
        return np.zeros(_width(rows), dtype=np.int64)
    return n_rows(rows) - np.bincount(rows.indices, minlength=rows.n_features)


def _cell(column: np.ndarray, key: np.ndarray) -> np.ndarray:
    return column.astype(np.int64) * KEYS + key + KEYS // 2


def _value(cell: np.ndarray) -> np.ndarray:
    """Return the float of a cell that is next to zero."""
    key = cell % KEYS - KEYS // 2
    return np.sign(key) * (np.abs(key) << DROPPED).view(np.float64)


def refuse_missing(block: Block, names: Sequence[str] | None = None) -> None:
    """Do nothing if no value of a block is missing.

    Raises InputError naming the feature and the row of the first that is.
    """
    if (place := first_missing(block.rows)) is not None:
        i, j = place
        raise InputError(
            f"feature {names[j] if names else j} of row {block.row_id[i]} (from 0) is missing; give `impute: mean` or "
            "`impute: median`, or leave the row or the feature out"
        )


def first_missing(rows: Rows) -> tuple[int, int] | None:
    """Return row and column of the first value that is missing; None if none is."""
    if not has_missing(rows):
        return None
    k = int(np.argmax(np.isnan(rows.values.reshape(-1))))
    if isinstance(rows, CsrRows):
        return int(np.searchsorted(rows.offsets, k, "right")) - 1, int(rows.indices[k])
    row, column = divmod(k, rows.values.shape[1])
    return row, column


def has_missing(rows: Rows) -> bool:
    """Tell whether a value is missing."""
    with np.errstate(over="ignore", invalid="ignore"):
        suspect = np.isnan(rows.values.sum())  # without an array of flags; infinite sums may cancel to nan as well
    return bool(suspect) and bool(np.isnan(rows.values).any())


def filled(rows: Rows, fill: np.ndarray) -> Rows:
    """Return the rows with `fill`, of shape (n_features,), in place of what is missing."""
    if not has_missing(rows):
        return rows
    values = rows.values.copy()
    at = np.nonzero(np.isnan(values))
    values[at] = fill[rows.indices[at[0]] if isinstance(rows, CsrRows) else at[1]]
    return rows._replace(values=values)
