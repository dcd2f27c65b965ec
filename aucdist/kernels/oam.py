"""Online AUC maximisation: every arriving row meets the buffered rows of the other class, then may enter its own buffer.

In both learners ``rows`` are all rows that take part: those buffered from earlier calls, then those that arrive, from row `first`
on. A buffer holds row numbers, so nothing is copied, and dense and CSR rows are one source.

Parameters that both take
-------------------------
rows : DenseRows or CsrRows
y : ndarray of shape (n_rows,), int8
    Labels, -1 or +1. Class 0 in the buffers is -1, class 1 is +1.
weights : ndarray of shape (n_rows,), float64
first : int
    The first arriving row.
w : ndarray of shape (n_features,), float64
    Updated.
held : ndarray of shape (2, capacity), int64
    Updated: the row numbers in each class's buffer.
filled, seen : ndarray of shape (2,), int64
    Updated: rows in each buffer, and rows of each class that ever arrived.
draws : ndarray of shape (1,), uint64
    Updated: the state of the random numbers.
bound : float
    The largest step for one pair of rows of weight 1: C.

Both return how many rows were read, and the sum of the steps.
"""

import numpy as np
from numba import njit

from aucdist.kernels.random import below
from aucdist.kernels.rows import row_axpy, row_dot


@njit(nogil=True, cache=True)
def remember(t, own, held, filled, seen, draws):
    """Reservoir sampling: row t enters its class's buffer so that all rows of the class seen so far are equally likely in it."""
    capacity = held.shape[1]
    seen[own] += 1
    if filled[own] < capacity:
        held[own, filled[own]] = t
        filled[own] += 1
        return
    draws[0], place = below(draws[0], seen[own])
    if place < capacity:
        held[own, place] = t


@njit(nogil=True, cache=True)
def learn_in_turn(rows, y, weights, first, w, held, filled, seen, draws, bound):
    """One passive-aggressive step for each buffered opponent of each arriving row, one after the other."""
    n = y.shape[0]
    lengths = np.empty(n)
    arrived = np.zeros(w.shape[0])
    for i in range(n):
        row_axpy(rows, i, 1.0, arrived)
        lengths[i] = row_dot(rows, i, arrived)
        row_axpy(rows, i, -1.0, arrived)
    read, steps = 0, 0.0
    for t in range(first, n):
        own = 1 if y[t] > 0 else 0
        met = filled[1 - own]
        read += 1 + met
        row_axpy(rows, t, 1.0, arrived)
        for b in range(met):
            o = held[1 - own, b]
            margin = y[t] * (row_dot(rows, t, w) - row_dot(rows, o, w))
            if margin < 1.0:
                square = lengths[t] + lengths[o] - 2.0 * row_dot(rows, o, arrived)
                # Equal rows in both classes: no step can part them.
                if square > 0.0:
                    largest = bound * seen[1 - own] / met * weights[t] * weights[o]
                    step = min((1.0 - margin) / square, largest)
                    row_axpy(rows, t, y[t] * step, w)
                    row_axpy(rows, o, -y[t] * step, w)
                    steps += step
        row_axpy(rows, t, -1.0, arrived)  # back to zeros, exactly
        remember(t, own, held, filled, seen, draws)
    return read, steps


@njit(nogil=True, cache=True)
def learn_at_once(rows, y, weights, first, w, held, filled, seen, draws, bound):
    """One gradient step for all buffered opponents of each arriving row together."""
    active = np.empty(held.shape[1])
    read, steps = 0, 0.0
    for t in range(first, y.shape[0]):
        own = 1 if y[t] > 0 else 0
        met = filled[1 - own]
        read += 1 + met
        score = row_dot(rows, t, w)
        total = 0.0
        for b in range(met):
            o = held[1 - own, b]
            active[b] = weights[o] if y[t] * (score - row_dot(rows, o, w)) < 1.0 else 0.0
            total += active[b]
        if total > 0.0:
            step = bound * seen[1 - own] / met * weights[t]
            for b in range(met):
                if active[b] > 0.0:
                    row_axpy(rows, held[1 - own, b], -y[t] * step * active[b], w)
            row_axpy(rows, t, y[t] * step * total, w)
            steps += step * total
        remember(t, own, held, filled, seen, draws)
    return read, steps
