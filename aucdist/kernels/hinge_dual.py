"""Dual coordinate descent on the hinge of single rows.

The numbers that a step needs of a row are together in a table, half a cache line per row. Its columns are `SQUARE`, the squared
length of the row, `UPPER`, the upper end of its dual variable, `DUAL`, the variable, and `LABEL`, -1 or 1.
"""

import numpy as np
from numba.extending import overload, register_jitable

from aucdist.kernels.compiling import kernel
from aucdist.kernels.pair_rows import prefetch, prefetch_row
from aucdist.kernels.random import below, u64
from aucdist.kernels.rows import SUM_IN_ANY_ORDER, CsrRows, _is_csr, row_axpy, row_dot

SQUARE, UPPER, DUAL, LABEL = 0, 1, 2, 3
N_COLUMNS = 4

AHEAD = 4
"""How many steps ahead a row is prefetched from memory."""


@register_jitable(fastmath=SUM_IN_ANY_ORDER)
def _sum_of_squares(values):
    total = 0.0
    for k in range(values.shape[0]):
        total += np.float64(values[k]) * np.float64(values[k])
    return total


def row_square(rows, i):
    """Return the squared length of row i, summed in float64."""
    if isinstance(rows, CsrRows):
        return _sum_of_squares(rows.values[rows.offsets[i] : rows.offsets[i + 1]])
    return _sum_of_squares(rows.values[i])


@overload(row_square)
def _row_square_by_type(rows, i):
    if _is_csr(rows):
        return lambda rows, i: _sum_of_squares(rows.values[rows.offsets[i] : rows.offsets[i + 1]])
    return lambda rows, i: _sum_of_squares(rows.values[i])


@kernel
def square_rows(rows, out):
    """Write the rows' squared lengths into out, float64 of shape (n_samples,) with any stride."""
    for i in range(out.shape[0]):
        out[i] = row_square(rows, i)


@kernel
def find_slopes(rows, table, one, w, slopes):
    """Write ``label * (w.x + one * w[-1]) - 1`` of each row into slopes; return the sum of ``UPPER * max(-slope, 0)``.

    The other parameters are those of `dual_sweeps`.
    """
    loss, last = 0.0, w.shape[0] - 1
    for i in range(slopes.shape[0]):
        slopes[i] = table[i, LABEL] * (row_dot(rows, i, w) + one * w[last]) - 1.0
        loss += table[i, UPPER] * max(-slopes[i], 0.0)
    return loss


@kernel
def dual_sweeps(rows, table, order, n_active, seed, n_steps, cyclic, one, sigma, high, low, w):
    """Sweep over the active rows until at least `n_steps` steps have been taken, or a sweep changes nothing.

    A step maximises the dual over the variable of one row and updates w. Each sweep takes the rows in a new random order. A row
    is set aside (shrinking) if its variable is at an end of its range, and its slope pushes it there more strongly than any
    slope of the previous sweep did. If `cyclic`, the rows are taken in the order of `order`, and none is set aside.

    `rows`: DenseRows or CsrRows.
    `table`, of shape (n_samples, N_COLUMNS), float64: the column `DUAL` is updated.
    `order`, of shape (n_samples,), int32: positions of the rows, the active ones first; updated.
    `n_active`: int.
    `seed`: int.
    `n_steps`: int.
    `cyclic`: bool.
    `one`, float: the value of the column for the intercept, whose weight is ``w[-1]``; 0 for no intercept. The squares
        include it.
    `sigma`, float: factor by which a step overstates its effect on w, so that several blocks can add their changes; 1
        for the sequential algorithm.
    `high` and `low`, float: the largest and the smallest slope that moved a variable in the previous sweep; inf and
        -inf if there was none.
    `w`, of shape (n_features + 1,), float64: updated by ``sigma * change * label * row``.
    Returns `n_active`; `high` and `low`; `taken`, number of steps taken.
    """
    state, taken, last = u64(seed), 0, w.shape[0] - 1
    while taken < n_steps and n_active > 0:
        if not cyclic:
            for t in range(n_active - 1, 0, -1):
                state, place = below(state, t + 1)
                order[t], order[place] = order[place], order[t]
        largest, smallest, t = 0.0, 0.0, 0
        while t < n_active:
            if t + AHEAD < n_active:
                later = order[t + AHEAD]
                prefetch(table, later * N_COLUMNS)
                prefetch_row(rows, later)
            i = order[t]
            taken += 1
            label, dual, upper = table[i, LABEL], table[i, DUAL], table[i, UPPER]
            slope = label * (row_dot(rows, i, w) + one * w[last]) - 1.0
            if (dual == 0.0 and slope > high) or (dual == upper and slope < low):
                n_active -= 1
                order[t], order[n_active] = order[n_active], order[t]
                continue
            t += 1
            if (dual == 0.0 and slope >= 0.0) or (dual == upper and slope <= 0.0):
                continue
            largest, smallest = max(largest, slope), min(smallest, slope)
            new = min(max(dual - slope / (sigma * table[i, SQUARE]), 0.0), upper)
            table[i, DUAL] = new
            move = sigma * label * (new - dual)
            row_axpy(rows, i, move, w)
            w[last] += one * move
        if largest == 0.0 and smallest == 0.0:
            break
        if not cyclic:
            high = largest if largest > 0.0 else np.inf
            low = smallest if smallest < 0.0 else -np.inf
    return n_active, high, low, taken
