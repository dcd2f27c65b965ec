"""Kernels for single pairs: dual coordinate descent, modified stochastic gradients, and pairs of new and buffered rows.

A pair consists of a row i of the smaller class, called the minority, and a row j of the larger class. ``z = sign * (minority_i
- majority_j)`` is the positive row minus the negative one. Pairs are numbered ``1 + i * n_majority + j`` in 64 bits. They are
drawn some thousands at a time, so that the rows of the next steps are known and can be fetched from memory early. Only rows of
the same group make a pair, and the rows of both classes are sorted by group (`PairPlaces`). Without groups, all rows belong to
one group.

The dual variables that are not 0 are in a hash table with linear probing, an array of `ENTRY` whose length is a power of two:
pair p is in the first slot from ``mix(p)`` on, cyclically, that has p or is free. An array of zeros is an empty table.
"""

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from aucdist.kernels.compiling import kernel
from aucdist.kernels.random import ORDER_SIZE, below, i64, mix, new_order, permuted, stream, u64
from aucdist.kernels.rows import (
    SUM_IN_ANY_ORDER,
    CsrRows,
    Rows,
    by_kind,
    is_rows,
    prefetch,
    prefetch_row,
    row_axpy,
    row_dot,
)

ENTRY = np.dtype([("number", np.int64), ("value", np.float64)])
"""The number of a pair and its dual variable; number 0 marks a free slot."""

PREFETCH_STEPS = 8
"""The number of steps by which rows are fetched early."""

ONES = np.zeros(0)
"""An empty array, which stands for weights that are all 1."""


class PairRows(NamedTuple):
    """The two classes: ``z = sign * (minority_i - majority_j)`` is positive minus negative.

    Attributes
    ----------
    minority, majority : Rows
        The rows of the smaller class, and rows that include those of the larger class.
    n_majority : int
        The number of rows of the larger class.
    sign : int
        1 where the minority is positive, -1 where it is negative.
    minority_weight : ndarray of shape (n_minority,), float64
        The weights of the rows of the smaller class.
    majority_weight : ndarray of shape (n_majority,), float64
        The weights of the rows of the larger class. The weight of a pair is the product. Both arrays have length 0 if all pairs
        have the weight 1.
    """

    minority: Rows
    majority: Rows
    n_majority: int
    sign: int
    minority_weight: np.ndarray = ONES
    majority_weight: np.ndarray = ONES


# ---- differences ------------------------------------------------------------------------------------------------------

# Both are `DenseRows` or both `CsrRows`, and differences are in float64.


@register_jitable(fastmath=SUM_IN_ANY_ORDER)
def _dense_square(a, i, b, j):
    total = 0.0
    for f in range(a.values.shape[1]):
        difference = np.float64(a.values[i, f]) - np.float64(b.values[j, f])
        total += difference * difference
    return total


@register_jitable
def _csr_square(a, i, b, j):
    p, p_end, q, q_end = a.offsets[i], a.offsets[i + 1], b.offsets[j], b.offsets[j + 1]
    total = 0.0
    while p < p_end and q < q_end:
        # There are no branches here, because the processor cannot predict which row has the next feature.
        in_a, in_b = a.indices[p] <= b.indices[q], b.indices[q] <= a.indices[p]
        difference = (np.float64(a.values[p]) if in_a else 0.0) - (np.float64(b.values[q]) if in_b else 0.0)
        total += difference * difference
        p += in_a
        q += in_b
    for s in range(p, p_end):
        total += np.float64(a.values[s]) * np.float64(a.values[s])
    for s in range(q, q_end):
        total += np.float64(b.values[s]) * np.float64(b.values[s])
    return total


@register_jitable(inline="always")
def pair_dot(a, i, b, j, w):
    """Return the inner product of ``a_i - b_j`` and the float64 vector w."""
    return row_dot(a, i, w) - row_dot(b, j, w)


@register_jitable(inline="always")
def pair_axpy(a, i, b, j, c, out):
    """Add c times ``a_i - b_j`` to the float64 vector out."""
    row_axpy(a, i, c, out)
    row_axpy(b, j, -c, out)


@by_kind()
def pair_square(a, i, b, j):
    """Return the squared length of ``a_i - b_j``, exactly 0 where the rows are equal."""
    if is_rows(a, CsrRows):
        return _csr_square
    return lambda a, i, b, j: _dense_square(a, i, b, j)


class PairPlaces(NamedTuple):
    """The pairs of a block, as runs of rows of the larger class that have the same group.

    Attributes
    ----------
    before : ndarray of shape (n_runs + 1,), int64
        The number of pairs before each run, and of all.
    rows : ndarray of shape (n_runs + 1,), int64
        Where each run begins and ends.
    minority, n_minority : ndarray of shape (n_runs,), int64
        The position of the group's first row of the minority, and their number.
    majority_rows : ndarray of shape (n_majority,), int64
        The positions of the larger class among the block's rows.
    """

    before: np.ndarray
    rows: np.ndarray
    minority: np.ndarray
    n_minority: np.ndarray
    majority_rows: np.ndarray


@kernel
def run_of(before, number):
    """Return the run of the pair with this number, from 0."""
    run, end = 0, before.shape[0] - 1
    while end - run > 1:
        middle = (run + end) // 2
        if before[middle] <= number:
            run = middle
        else:
            end = middle
    return run


@kernel
def fill_positions(majority_rows, drawn):
    """Write ``majority_rows[j]`` of each pair.

    The loop does nothing else, so that the processor waits for many rows at the same time.
    """
    for t in range(drawn.shape[0]):
        drawn[t, 2] = majority_rows[drawn[t, 1]]


@kernel
def draw_any(key, first, places, drawn):
    """Draw pairs independently of each other. All pairs have the same probability.

    Parameters
    ----------
    key : int
        The seed.
    first : int
        The number of the first draw. The t-th draw depends on `key` and t only.
    places : PairPlaces
        The pairs of the block.
    drawn : ndarray of shape (n_draws, 3), int64
        Output: i, j, and ``majority_rows[j]``.
    """
    before, rows, minority, n_minority, majority_rows = places
    n_runs = minority.shape[0]
    for t in range(drawn.shape[0]):
        state, run = stream(key, first + t), 0
        if n_runs > 1:
            state, number = below(state, before[n_runs])
            run = run_of(before, number)
        state, i = below(state, n_minority[run])
        drawn[t, 0], drawn[t, 1] = minority[run] + i, rows[run] + below(state, rows[run + 1] - rows[run])[1]
    fill_positions(majority_rows, drawn)


@kernel(_nrt=True)
def draw_in_order(key, first, places, drawn):
    """Draw all pairs in a random order, then all pairs in another order, and so on. The parameters are those of `draw_any`."""
    n_pairs = places.before[places.minority.shape[0]]
    sweep, position = first // n_pairs, first % n_pairs
    order = np.empty(ORDER_SIZE, np.uint64)
    new_order(stream(key, sweep), n_pairs, order)
    for t in range(drawn.shape[0]):
        if position == n_pairs:
            sweep, position = sweep + 1, 0
            new_order(stream(key, sweep), n_pairs, order)
        drawn[t, 0] = permuted(order, position, n_pairs)
        position += 1
    place_pairs(places, drawn)


@kernel
def place_pairs(places, drawn):
    """Write i, j and ``majority_rows[j]`` of the pairs whose numbers, counted from 0, are in the first column."""
    before, rows, minority, _, majority_rows = places
    for t in range(drawn.shape[0]):
        run = run_of(before, drawn[t, 0])
        number, n_rows = drawn[t, 0] - before[run], rows[run + 1] - rows[run]
        i = number // n_rows
        drawn[t, 0], drawn[t, 1] = minority[run] + i, rows[run] + number - i * n_rows
    fill_positions(majority_rows, drawn)


@kernel
def first_slot(table, pair):
    """Return the slot where the search for a pair starts."""
    return i64(mix(pair) & u64(table.shape[0] - 1))


@kernel
def find_slot(table, pair):
    """Return the slot that has the pair, or else the free slot where it belongs."""
    slot, last = first_slot(table, pair), table.shape[0] - 1
    while table[slot]["number"] != pair and table[slot]["number"] != 0:
        slot = (slot + 1) & last
    return slot


@kernel
def add_entries(source, factor, table, used):
    """Add a factor times every dual variable of a table, or of a list of entries, to another table.

    Parameters
    ----------
    source : ndarray of ENTRY
        The table or the list.
    factor : float
        The factor.
    table : ndarray of ENTRY
        The table that is changed. It must have enough free slots.
    used : int
        The number of slots of `table` that are not free.

    Returns
    -------
    int
        The number of slots that are not free afterwards.
    """
    for s in range(source.shape[0]):
        if source[s]["value"] != 0.0:
            slot = find_slot(table, source[s]["number"])
            if table[slot]["number"] == 0:
                table[slot]["number"] = source[s]["number"]
                used += 1
            table[slot]["value"] += factor * source[s]["value"]
    return used


class AscentSteps(NamedTuple):
    """The settings of `dual_steps`.

    Attributes
    ----------
    scale : float
        lam times the weight of all pairs, which is their number if each has the weight 1.
    sigma : float
        The factor by which a step overstates its effect on w, so that the changes of blocks can be added; 1 is sequential.
    taken : float
        The number of earlier steps since the averaging began.
    used, room : int
        The number of slots that are not free, and its upper limit.
    """

    scale: float
    sigma: float
    taken: float
    used: int
    room: int


@kernel
def dual_steps(rows, drawn, steps, table, w, mean_w):
    """Take steps of AUC-SDCD. Each maximises the dual over the variable of one pair, which is at most its weight, and updates w.

    Parameters
    ----------
    rows : PairRows
        The rows of both classes.
    drawn : ndarray of shape (n_draws, 3), int64
        The pairs that are drawn.
    steps : AscentSteps
        The settings.
    table : ndarray of ENTRY
        The dual variables, which are updated.
    w : ndarray of shape (n_features,), float64
        The weights, to which ``sigma / scale * change * z`` is added.
    mean_w : ndarray of shape (n_features,) or (0,), float64
        Unless it is empty, ``sum of (taken + t) * move_t`` is added to it. The sum of the w after each step is the number of
        steps times the last w, minus this.

    Returns
    -------
    t : int
        The first step that was not taken, because all slots were used or there are no more steps.
    used : int
        The number of slots that are not free.
    behind_dual : float
        ``sum of (taken + t) * change_t`` of the dual variables.
    """
    scale, sigma, taken, used, room = steps
    minority, majority, sign, n_majority = rows.minority, rows.majority, rows.sign, rows.n_majority
    most = 1.0
    t, last, behind_dual = 0, drawn.shape[0] - 1, 0.0
    while t <= last and used < room:
        later = min(t + PREFETCH_STEPS, last)
        prefetch_row(minority, drawn[later, 0])
        prefetch_row(majority, drawn[later, 2])
        prefetch(table, first_slot(table, 1 + drawn[later, 0] * n_majority + drawn[later, 1]))
        i, j, pair = drawn[t, 0], drawn[t, 2], 1 + drawn[t, 0] * n_majority + drawn[t, 1]
        if rows.minority_weight.shape[0] > 0:
            most = rows.minority_weight[i] * rows.majority_weight[drawn[t, 1]]
        slot = find_slot(table, pair)
        old = table[slot]["value"]
        margin = 1.0 - sign * pair_dot(minority, i, majority, j, w)
        if (margin > 0.0 and old < most) or (margin < 0.0 and old > 0.0):
            new = best_dual(old, scale / sigma * margin, pair_square(minority, i, majority, j), most)
            if table[slot]["number"] == 0:
                table[slot]["number"] = pair
                used += 1
            table[slot]["value"] = new
            move = sign * sigma * (new - old) / scale
            pair_axpy(minority, i, majority, j, move, w)
            if mean_w.shape[0] > 0:
                pair_axpy(minority, i, majority, j, (taken + t) * move, mean_w)
                behind_dual += (taken + t) * (new - old)
        t += 1
    return t, used, behind_dual


@kernel
def best_dual(old, slope, square, most):
    """Return the value from 0 to `most` nearest to ``old + slope / square``. For equal rows, with a square of 0, it is `most`."""
    if square == 0.0:
        return most if slope > 0.0 else 0.0
    return min(max(old + slope / square, 0.0), most)


@kernel
def gradient_steps(rows, drawn, lam, sigma, time, total):
    """Take steps of AUC-MSGD.

    Its weights after t steps are ``w = total / (lam t)``, where `total` is the sum of ``value * z`` over the pairs drawn so
    far. The division includes the factor 1 - 1/t of a step.

    Parameters
    ----------
    rows : PairRows
        The rows of both classes.
    drawn : ndarray of shape (n_draws, 3), int64
        The pairs that are drawn.
    lam : float
        The regularisation strength.
    sigma : float
        The number of steps of all blocks for which a step stands; 1 for the sequential algorithm.
    time : float
        The value of t before the first of these steps.
    total : ndarray of shape (n_features,), float64
        The sum, which is updated.
    """
    minority, majority, sign = rows.minority, rows.majority, rows.sign
    last = drawn.shape[0] - 1
    for t in range(drawn.shape[0]):
        later = min(t + PREFETCH_STEPS, last)
        prefetch_row(minority, drawn[later, 0])
        prefetch_row(majority, drawn[later, 2])
        i, j = drawn[t, 0], drawn[t, 2]
        before = time + sigma * t
        margin = 1.0
        if before > 0.0:
            margin -= sign * pair_dot(minority, i, majority, j, total) / (lam * before)
        if margin > 0.0:
            slope = lam * (before + sigma) / sigma * margin
            value = best_dual(0.0, slope, pair_square(minority, i, majority, j), 1.0)
            pair_axpy(minority, i, majority, j, sign * sigma * value, total)


# ---- rows in the order of arrival ----------------------------------------------------------------------------------------

# Each new row is paired with the buffered rows of the other class, and may then enter the buffer of its own. Parameters of
# `learn_in_turn` and `learn_at_once`:
#
# `data`: LabelledRows.
# `w`, of shape (n_features,), float64: updated.
# `buffers`: Buffers, updated.
# `bound`, float: the largest step for one pair of rows of weight 1: C.
#
# Both return the number of rows read, and the sum of the step lengths.


class Buffers(NamedTuple):
    """The buffers of both classes, which hold row numbers, so that no row is copied. Class 0 is -1, class 1 is +1.

    Attributes
    ----------
    held : ndarray of shape (2, capacity), int64
        The row numbers in each class's buffer.
    filled, seen : ndarray of shape (2,), int64
        The number of rows in each buffer, and of rows of each class so far.
    draws : ndarray of shape (1,), uint64
        The state of the random numbers.
    """

    held: np.ndarray
    filled: np.ndarray
    seen: np.ndarray
    draws: np.ndarray

    @classmethod
    def empty(cls, capacity: int, seed: int) -> "Buffers":
        """Return buffers without rows."""
        held, (filled, seen) = np.zeros((2, capacity), dtype=np.int64), np.zeros((2, 2), dtype=np.int64)
        return cls(held, filled, seen, np.array([seed], dtype=np.uint64))


@kernel
def add_to_reservoir(t, row_class, buffers):
    """Add row t to the buffer of its class by reservoir sampling, so that all rows so far are equally likely to be in it."""
    held, filled, seen, draws = buffers
    capacity = held.shape[1]
    seen[row_class] += 1
    if filled[row_class] < capacity:
        held[row_class, filled[row_class]] = t
        filled[row_class] += 1
        return
    draws[0], place = below(draws[0], seen[row_class])
    if place < capacity:
        held[row_class, place] = t


@kernel(_nrt=True)
def learn_in_turn(data, w, buffers, bound):
    """Take one passive-aggressive step for each pair of a new row and a buffered row of the other class, one after the other."""
    (rows, y, weights), (held, filled, seen, _) = data, buffers
    n = y.shape[0]
    lengths = np.empty(n)
    arrived = np.zeros(w.shape[0])
    for i in range(n):
        row_axpy(rows, i, 1.0, arrived)
        lengths[i] = row_dot(rows, i, arrived)
        row_axpy(rows, i, -1.0, arrived)
    read, steps = 0, 0.0
    for t in range(n):
        row_class = 1 if y[t] > 0 else 0
        n_opponents = filled[1 - row_class]
        read += 1 + n_opponents
        row_axpy(rows, t, 1.0, arrived)
        for b in range(n_opponents):
            o = held[1 - row_class, b]
            margin = y[t] * (row_dot(rows, t, w) - row_dot(rows, o, w))
            if margin < 1.0:
                square = lengths[t] + lengths[o] - 2.0 * row_dot(rows, o, arrived)
                # No step can separate two rows of different classes that are equal.
                if square > 0.0:
                    largest = bound * seen[1 - row_class] / n_opponents * weights[t] * weights[o]
                    step = min((1.0 - margin) / square, largest)
                    row_axpy(rows, t, y[t] * step, w)
                    row_axpy(rows, o, -y[t] * step, w)
                    steps += step
        row_axpy(rows, t, -1.0, arrived)  # exactly 0 again
        add_to_reservoir(t, row_class, buffers)
    return read, steps


@kernel(_nrt=True)
def learn_at_once(data, w, buffers, bound):
    """Take one gradient step for all pairs of a new row and the buffered rows of the other class together."""
    (rows, y, weights), (held, filled, seen, _) = data, buffers
    active = np.empty(held.shape[1])
    read, steps = 0, 0.0
    for t in range(y.shape[0]):
        row_class = 1 if y[t] > 0 else 0
        n_opponents = filled[1 - row_class]
        read += 1 + n_opponents
        score = row_dot(rows, t, w)
        total = 0.0
        for b in range(n_opponents):
            o = held[1 - row_class, b]
            active[b] = weights[o] if y[t] * (score - row_dot(rows, o, w)) < 1.0 else 0.0
            total += active[b]
        if total > 0.0:
            step = bound * seen[1 - row_class] / n_opponents * weights[t]
            for b in range(n_opponents):
                if active[b] > 0.0:
                    row_axpy(rows, held[1 - row_class, b], -y[t] * step * active[b], w)
            row_axpy(rows, t, y[t] * step * total, w)
            steps += step * total
        add_to_reservoir(t, row_class, buffers)
    return read, steps
