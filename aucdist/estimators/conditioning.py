"""Shift columns that are far from 0 before a fit, because rounding would remove the differences between rows from sums.

A column is *far* from 0 if its largest absolute value is more than `FAR_RATIO` times half its range. Examples are timestamps,
identifiers and constants. Such a column is shifted by one of its own floating-point numbers, which is exact: the difference of
two numbers within a factor of 2 of each other is not rounded (Sterbenz). So the shifted rows have exactly the same information.

An objective over pairs does not change, because a pair is a difference of rows. If the objective has an intercept that is not
penalised, only the intercept changes, and it is corrected after the fit. A constant column becomes 0 and gets weight 0.

Sparse rows stay sparse. If a row does not store a value of a column, the column contains a 0 and is not far from 0. So only
columns that every row stores are shifted, value by value.

Data without such a column are not changed. The check computes the ranges of the columns once.
"""

from dataclasses import replace

import numpy as np
from numpy import ndarray

from aucdist.data.block import Block
from aucdist.data.column_statistics import ColumnRanges
from aucdist.engine.blocks import Blocks
from aucdist.engine.view import Keep, ViewBlocks
from aucdist.kernels.rows import CsrRows, DenseRows
from aucdist.metrics.counts import dot
from aucdist.parameters import frozen
from aucdist.solvers.base import Solution, Status
from aucdist.solvers.rounding import EPS

FAR_RATIO = 2.0**10
"""If the values of a column are this many times its half range away from 0, differences lose at most three of their sixteen
digits, which changes no certificate."""

MAX_SPREAD = 1e6
"""Columns whose half ranges differ by more than this factor are named in a warning when the fit does not converge."""


@frozen
class Shift:
    """Subtracts a number from some columns.

    Parameters
    ----------
    columns : ndarray of shape (n_shifted,), int64
        The positions of the columns.
    values : ndarray of shape (n_shifted,), float64
        The number that is subtracted from each. It is representable in the type of the rows.
    """

    columns: ndarray
    values: ndarray

    def __call__(self, block: Block) -> Block:
        """Return the block with these columns shifted, in the same type."""
        rows, dtype = block.rows, block.rows.values.dtype
        if isinstance(rows, CsrRows):
            by = np.zeros(block.n_features, dtype)
            by[self.columns] = self.values
            return replace(block, rows=rows._replace(values=rows.values - by[rows.indices]))
        values = rows.values.copy()
        values[:, self.columns] -= self.values.astype(dtype)
        return replace(block, rows=DenseRows(values))

    def ranges(self, ranges: ColumnRanges) -> ColumnRanges:
        """Return the ranges of the shifted columns, given those of the original ones."""
        low, high = ranges.low.copy(), ranges.high.copy()
        low[self.columns] -= self.values
        high[self.columns] -= self.values
        return replace(ranges, low=low, high=high)

    def score_offset(self, w: ndarray) -> float:
        """Return by how much the shift lowers the scores of the weights w, of shape (n_features,)."""
        return dot(w[self.columns], self.values)


def add_intercept_rounding(solution: Solution, shift: Shift, tol: float) -> Solution:
    """Return the solution, whose certificate also counts the rounding of the intercept that undoes the shift."""
    c = solution.certificate
    error = 4.0 * EPS * float(np.abs(solution.w[shift.columns]) @ np.abs(shift.values))
    gap = min(1.0, c.relative_gap + error / c.primal) if c.primal > 0.0 else 1.0
    status = Status.ROUNDING if c.status == Status.CONVERGED and gap > tol else c.status
    return replace(solution, certificate=replace(c, rounding=c.rounding + error, relative_gap=gap, status=status))


def centre_far_columns(blocks: Blocks) -> tuple[Blocks, Shift | None]:
    """Return the blocks to fit, and the shift of the columns that are far from 0.

    Without such columns, the blocks do not change.
    """
    ranges = blocks.ranges
    half = 0.5 * (ranges.high - ranges.low)
    with np.errstate(invalid="ignore"):
        far = ranges.largest > np.where(ranges.constant, FAR_RATIO, FAR_RATIO * half)
    far &= np.isfinite(ranges.low) & np.isfinite(ranges.high)
    columns = np.flatnonzero(far)
    if len(columns) == 0:
        return blocks, None
    low, high = ranges.low[columns], ranges.high[columns]
    middle = low + 0.5 * (high - low)
    # The shift is representable in the type of the column, and within its range.
    single = (low.astype(np.float32) == low) & (high.astype(np.float32) == high)
    shift = Shift(columns, np.where(single, middle.astype(np.float32).astype(np.float64), middle))
    # Rows in memory are copied. Other rows are shifted by each step after it has read them.
    keep: Keep = "memory" if blocks.lasting else "unread"
    return ViewBlocks(blocks, shift, keep=keep, ranges=shift.ranges(ranges)), shift


def diagnosis(ranges: ColumnRanges, names: ndarray | None = None) -> str | None:
    """Return a sentence that names columns of extreme scale, for a fit that rounding ended or that did not converge.

    Parameters
    ----------
    ranges : ColumnRanges
        The ranges of the columns as they were fitted.
    names : ndarray of shape (n_features,), optional
        The names of the columns.

    Returns
    -------
    str or None
        None if no column has an extreme scale.
    """
    half = np.maximum(0.5 * (ranges.high - ranges.low), 0.0)
    varies = np.isfinite(half) & (half > 0.0)
    if not varies.any():
        return None

    def called(column: int) -> str:
        """Return the name of a column for use in a sentence."""
        return f"column {column}" if names is None else f"column {str(names[column])!r}"

    largest = int(np.argmax(np.where(varies, ranges.largest, -1.0)))
    smallest = int(np.argmin(np.where(varies, half, np.inf)))
    if ranges.largest[largest] <= MAX_SPREAD * min(half[smallest], 1.0):
        return None
    return (
        f"{called(largest)} reaches {ranges.largest[largest]:.3g}, {called(smallest)} has a range of {2 * half[smallest]:.3g}: "
        "bring the columns to one scale first (scale: standard in a configuration, or sklearn's StandardScaler)"
    )
