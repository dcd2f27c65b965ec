"""Kernels for the hinge of single rows: steps in the dual, along columns and along rows.

A table has the numbers that a step in the dual needs, so that those of a row lie in half a cache line. Its columns are `SQUARE`,
the squared length of the row; `UPPER`, the upper limit of its dual variable; `DUAL`, the variable; and `LABEL`, -1 or 1.
"""

from typing import NamedTuple

import numpy as np

from aucdist.kernels.compiling import kernel
from aucdist.kernels.random import below, u64
from aucdist.kernels.rows import SUM_IN_ANY_ORDER, CsrRows, by_kind, is_rows, prefetch, prefetch_row, row_axpy, row_dot

SQUARE, UPPER, DUAL, LABEL = 0, 1, 2, 3
N_COLUMNS = 4

PREFETCH_STEPS = 4
"""The number of steps by which a row is fetched early from memory."""

SMALLEST_SCALE = 1e-100
"""A smaller scale is multiplied into the weights, long before it would underflow."""


class DualSweeps(NamedTuple):
    """The settings of `dual_sweeps`.

    Attributes
    ----------
    seed : int
        The seed of the order of the rows.
    n_steps : int
        The number of steps to take.
    cyclic : bool
        Whether to take the rows in their order, without shrinking.
    constant : float
        The value of the column for the intercept, whose weight is ``w[-1]``, or 0 for no intercept. The squared lengths include
        it.
    sigma : float
        Factor by which a step overstates its effect on w, so that several blocks can add their changes; 1 for the
        sequential algorithm.
    """

    seed: int
    n_steps: int
    cyclic: bool
    constant: float
    sigma: float


class ActiveRows(NamedTuple):
    """The rows that shrinking has left active, and the bounds by which it removes rows.

    Attributes
    ----------
    n : int
        The number of active rows.
    high, low : float
        The largest and the smallest slope that moved a variable in the previous sweep; inf and -inf if there was none.
    """

    n: int
    high: float = np.inf
    low: float = -np.inf


@kernel
def dual_sweeps(rows, table, order, active, sweeps, w):
    """Sweep over the active rows until at least `n_steps` steps have been taken, or a sweep changes nothing.

    A step maximises the dual over the variable of one row and updates w. Each sweep takes the rows in a new random order. A row
    is set aside (shrinking) if its variable is at an end of its range, and its slope pushes it there more strongly than any
    slope of the previous sweep did. With `cyclic`, the rows are taken in the order of `order`, and none is set aside.

    Parameters
    ----------
    rows : DenseRows or CsrRows
        The rows.
    table : ndarray of shape (n_samples, N_COLUMNS), float64
        The table of the rows. Its column `DUAL` is updated.
    order : ndarray of shape (n_samples,), int32
        The positions of the rows, the active ones first. It is updated.
    active : ActiveRows
        The state of shrinking.
    sweeps : DualSweeps
        The settings.
    w : ndarray of shape (n_features + 1,), float64
        The weights, to which each step adds ``sigma * change * label * row``.

    Returns
    -------
    active : tuple
        The fields of the next `ActiveRows`.
    n_steps : int
        The number of steps taken.
    """
    (n_active, high, low), (seed, n_steps, cyclic, constant, sigma) = active, sweeps
    state, taken, last = u64(seed), 0, w.shape[0] - 1
    while taken < n_steps and n_active > 0:
        if not cyclic:
            for t in range(n_active - 1, 0, -1):
                state, place = below(state, t + 1)
                order[t], order[place] = order[place], order[t]
        largest, smallest, t = 0.0, 0.0, 0
        while t < n_active:
            if t + PREFETCH_STEPS < n_active:
                later = order[t + PREFETCH_STEPS]
                prefetch(table, later * N_COLUMNS)
                prefetch_row(rows, later)
            i = order[t]
            taken += 1
            label, dual, upper = table[i, LABEL], table[i, DUAL], table[i, UPPER]
            slope = label * (row_dot(rows, i, w) + constant * w[last]) - 1.0
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
            w[last] += constant * move
        if largest == 0.0 and smallest == 0.0:
            break
        if not cyclic:
            high = largest if largest > 0.0 else np.inf
            low = smallest if smallest < 0.0 else -np.inf
    return (n_active, high, low), taken


# ---- along columns ----------------------------------------------------------------------------------------------------


def _dense_active(columns, j, shares, margins):
    column, total = columns.values[j], 0.0
    for i in range(margins.shape[0]):
        term = shares[i] * column[i]
        total += term if margins[i] < 1.0 else 0.0
    return total


def _csr_active(columns, j, shares, margins):
    total = 0.0
    for k in range(np.uint64(columns.offsets[j]), np.uint64(columns.offsets[j + 1])):
        i = np.uint32(columns.indices[k])
        if margins[i] < 1.0:
            total += shares[i] * columns.values[k]
    return total


@by_kind(jit_options={"fastmath": SUM_IN_ANY_ORDER})
def active_sum(columns, j, shares, margins):
    """Return the sum of ``shares * column j`` over the rows whose margin is below 1."""
    return _csr_active if is_rows(columns, CsrRows) else _dense_active


@kernel
def soften(value, width):
    """Return the value after soft thresholding: it is moved towards 0 by the width, but not beyond 0."""
    if value > width:
        return value - width
    return value + width if value < -width else 0.0


class ColumnSteps(NamedTuple):
    """The settings of `column_steps`.

    `lasso` says whether the penalty is L1, and `eta_free` is the step length of the intercept.
    """

    seed: int
    lasso: bool
    lam: float
    eta: float
    eta_free: float


@kernel
def column_steps(columns, labels, shares, steps, margins, w):
    """Take n_weights steps of non-smooth stochastic coordinate descent, each along a column drawn uniformly.

    With g the derivative of the loss along the column: ``w <- soften(w - eta g / 2, eta lam / 2)`` with an L1 penalty,
    ``w <- (w - eta g / 2) / (1 + eta lam)`` with an L2 penalty, ``w <- w - eta_free g / 2`` for the intercept.

    Parameters
    ----------
    columns : DenseRows or CsrRows
        The columns of X, each value multiplied by the label of its row.
    labels : ndarray of shape (n_samples,) or (0,), float64
        Labels, -1 or 1. Empty if there is no intercept.
    shares : ndarray of shape (n_samples,), float64
        The weight of each row divided by the total weight.
    steps : ColumnSteps
        The settings.
    margins : ndarray of shape (n_samples,), float64
        The margins, which are updated with the weights.
    w : ndarray of shape (n_weights,), float64
        The weights, which are updated. The last one is the intercept, if there is one.
    """
    seed, lasso, lam, eta, eta_free = steps
    state, n_weights = u64(seed), w.shape[0]
    intercept = n_weights - 1 if labels.shape[0] > 0 else n_weights
    for _ in range(n_weights):
        state, j = below(state, n_weights)
        if j == intercept:
            slope = 0.0
            for i in range(labels.shape[0]):
                if margins[i] < 1.0:
                    slope -= shares[i] * labels[i]
            move = -0.5 * eta_free * slope
            w[j] += move
            for i in range(labels.shape[0]):
                margins[i] += move * labels[i]
            continue
        reached = w[j] + 0.5 * eta * active_sum(columns, j, shares, margins)
        new = soften(reached, 0.5 * eta * lam) if lasso else reached / (1.0 + eta * lam)
        if new != w[j]:
            row_axpy(columns, j, new - w[j], margins)
            w[j] = new


# ---- along rows -------------------------------------------------------------------------------------------------------


class PegasosSteps(NamedTuple):
    """The settings of `pegasos_steps`. The steps follow `time` earlier ones.

    `free` is 1 with an intercept, else 0.
    """

    seed: int
    n_steps: int
    lam: float
    time: int
    free: float
    radius: float


@kernel
def pegasos_steps(rows, y, factors, squares, steps, w):
    """Take Pegasos steps, each along a row drawn uniformly.

    With ``s = 1 / (2 lam t)``: ``w <- (1 - 2 lam s) w``, plus ``s factor y x`` if the margin is below 1; then w is projected
    onto the ball of this radius. The intercept moves by ``factor y / (2 sqrt(t))``.

    Parameters
    ----------
    rows : DenseRows or CsrRows
        The rows.
    y : ndarray of shape (n_samples,), int8
        The labels, -1 or +1.
    factors : ndarray of shape (n_samples,), float64
        Factors of the rows' losses, with mean 1.
    squares : ndarray of shape (n_samples,), float64
        The rows' squared lengths.
    steps : PegasosSteps
        The settings of the steps.
    w : ndarray of shape (n_features + 1,), float64
        Updated; the last entry is the intercept.
    """
    seed, n_steps, lam, time, free, radius = steps
    state, last = u64(seed), w.shape[0] - 1
    scale, square, intercept = 1.0, 0.0, w[last]
    w[last] = 0.0
    for j in range(last):
        square += w[j] * w[j]
    state, following = below(state, y.shape[0])
    for t in range(time + 1, time + n_steps + 1):
        i = following
        state, following = below(state, y.shape[0])
        prefetch_row(rows, following)
        along = scale * row_dot(rows, i, w)
        margin = y[i] * (along + intercept)
        shrink = 1.0 - 1.0 / t
        scale *= shrink
        square *= shrink * shrink
        if scale < SMALLEST_SCALE:
            for j in range(last):
                w[j] *= scale
            scale = 1.0
        if margin < 1.0:
            move = factors[i] * y[i] / (2.0 * lam * t)
            row_axpy(rows, i, move / scale, w)
            square += 2.0 * move * shrink * along + move * move * squares[i]
            intercept += free * factors[i] * y[i] / (2.0 * np.sqrt(t))
        if square > radius * radius:
            scale *= radius / np.sqrt(square)
            square = radius * radius
    for j in range(last):
        w[j] *= scale
    w[last] = intercept
