"""Online AUC maximisation: each new row is paired with the buffered rows of the other class, and may then enter its own buffer.

Both update functions take all rows together: those buffered from earlier calls, then the new ones from row `first` on. A buffer
holds row numbers, so no row is copied, and the code is the same for dense and CSR rows.

Parameters of both functions
----------------------------
rows : DenseRows or CsrRows
y : ndarray of shape (n_rows,), int8
    Labels, -1 or +1. Class 0 in the buffers is -1, class 1 is +1.
weights : ndarray of shape (n_rows,), float64
first : int
    The first new row.
w : ndarray of shape (n_features,), float64
    Updated.
held : ndarray of shape (2, capacity), int64
    Updated: the row numbers in each class's buffer.
filled, seen : ndarray of shape (2,), int64
    Updated: the number of rows in each buffer, and the number of rows of each class so far.
draws : ndarray of shape (1,), uint64
    Updated: the state of the random numbers.
bound : float
    The largest step for one pair of rows of weight 1: C.

Both return the number of rows read, and the sum of the step lengths.
"""

import numpy as np

from aucdist.kernels.compiling import kernel
from aucdist.kernels.random import below
from aucdist.kernels.rows import row_axpy, row_dot


@kernel
def add_to_reservoir(t, own, held, filled, seen, draws):
    """Add row t to the buffer of its class by reservoir sampling, so that all rows so far are equally likely to be in it."""
    capacity = held.shape[1]
    seen[own] += 1
    if filled[own] < capacity:
        held[own, filled[own]] = t
        filled[own] += 1
        return
    draws[0], place = below(draws[0], seen[own])
    if place < capacity:
        held[own, place] = t


@kernel(_nrt=True)
def learn_in_turn(rows, y, weights, first, w, held, filled, seen, draws, bound):
    """Take one passive-aggressive step for each pair of a new row and a buffered row of the other class, one after the other."""
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
        n_opponents = filled[1 - own]
        read += 1 + n_opponents
        row_axpy(rows, t, 1.0, arrived)
        for b in range(n_opponents):
            o = held[1 - own, b]
            margin = y[t] * (row_dot(rows, t, w) - row_dot(rows, o, w))
            if margin < 1.0:
                square = lengths[t] + lengths[o] - 2.0 * row_dot(rows, o, arrived)
                # No step can separate equal rows of both classes.
                if square > 0.0:
                    largest = bound * seen[1 - own] / n_opponents * weights[t] * weights[o]
                    step = min((1.0 - margin) / square, largest)
                    row_axpy(rows, t, y[t] * step, w)
                    row_axpy(rows, o, -y[t] * step, w)
                    steps += step
        row_axpy(rows, t, -1.0, arrived)  # exactly 0 again
        add_to_reservoir(t, own, held, filled, seen, draws)
    return read, steps


@kernel(_nrt=True)
def learn_at_once(rows, y, weights, first, w, held, filled, seen, draws, bound):
    """Take one gradient step for all pairs of a new row and the buffered rows of the other class together."""
    active = np.empty(held.shape[1])
    read, steps = 0, 0.0
    for t in range(first, y.shape[0]):
        own = 1 if y[t] > 0 else 0
        n_opponents = filled[1 - own]
        read += 1 + n_opponents
        score = row_dot(rows, t, w)
        total = 0.0
        for b in range(n_opponents):
            o = held[1 - own, b]
            active[b] = weights[o] if y[t] * (score - row_dot(rows, o, w)) < 1.0 else 0.0
            total += active[b]
        if total > 0.0:
            step = bound * seen[1 - own] / n_opponents * weights[t]
            for b in range(n_opponents):
                if active[b] > 0.0:
                    row_axpy(rows, held[1 - own, b], -y[t] * step * active[b], w)
            row_axpy(rows, t, y[t] * step * total, w)
            steps += step * total
        add_to_reservoir(t, own, held, filled, seen, draws)
    return read, steps
