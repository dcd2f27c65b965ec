"""Steps over single pairs: dual coordinate descent, and the modified stochastic gradient.

A pair is a row i of the smaller class, the minority, and a row j of the larger one; ``z = sign * (minority_i - majority_j)`` is
positive minus negative. Pairs are numbered ``1 + i * n_majority + j`` in 64 bits. They are drawn some thousands at a time, so
that the steps know the next ones and can fetch their rows from memory early.

The dual variables that are not 0 lie in a table, an array of `ENTRY` whose length is a power of two: pair p is at the
first place, from ``mix(p)`` on and around, that holds p or is free. Zeros are an empty table.
"""

import numpy as np
from numba import njit

from aucdist.kernels.pair_rows import pair_axpy, pair_dot, pair_square, prefetch, prefetch_row
from aucdist.kernels.random import ORDER_SIZE, below, i64, mix, new_order, permuted, stream, u64

ENTRY = np.dtype([("number", np.int64), ("value", np.float64)])
"""A dual variable; number 0 marks a free place."""

AHEAD = 8
"""Rows are fetched this many steps early."""


@njit(nogil=True, cache=True)
def look_up(which, drawn):
    """Write ``which[j]`` of each pair. By itself, because a loop as short as this waits for many places of memory at once."""
    for t in range(drawn.shape[0]):
        drawn[t, 2] = which[drawn[t, 1]]


@njit(nogil=True, cache=True)
def draw_any(key, first, n_minority, which, drawn):
    """Draw pairs independently of each other, each of all pairs equally likely.

    Parameters
    ----------
    key : int
    first : int
        The number of the first draw: the t-th depends on key and t alone.
    n_minority : int
    which : ndarray of shape (n_majority,), int64
        The places of the majority among the rows.
    drawn : ndarray of shape (n_draws, 3), int64
        Written: i, j, and ``which[j]``.
    """
    for t in range(drawn.shape[0]):
        state, i = below(stream(key, first + t), n_minority)
        drawn[t, 0], drawn[t, 1] = i, below(state, which.shape[0])[1]
    look_up(which, drawn)


@njit(nogil=True, cache=True)
def draw_in_order(key, first, n_minority, which, drawn):
    """Draw all pairs in a random order, then all in another one, and so on; parameters as in `draw_any`."""
    n_pairs = n_minority * which.shape[0]
    sweep, place = first // n_pairs, first % n_pairs
    order = np.empty(ORDER_SIZE, np.uint64)
    new_order(stream(key, sweep), n_pairs, order)
    for t in range(drawn.shape[0]):
        if place == n_pairs:
            sweep, place = sweep + 1, 0
            new_order(stream(key, sweep), n_pairs, order)
        pair = permuted(order, place, n_pairs)
        i = pair // which.shape[0]
        drawn[t, 0], drawn[t, 1] = i, pair - i * which.shape[0]
        place += 1
    look_up(which, drawn)


@njit(nogil=True, cache=True)
def first_place(table, pair):
    """Return the place where the search for a pair begins."""
    return i64(mix(pair) & u64(table.shape[0] - 1))


@njit(nogil=True, cache=True)
def find(table, pair):
    """Return the place that holds the pair, or else the free one where it belongs."""
    place, last = first_place(table, pair), table.shape[0] - 1
    while table[place]["number"] != pair and table[place]["number"] != 0:
        place = (place + 1) & last
    return place


@njit(nogil=True, cache=True)
def pour(source, factor, table, used):
    """Add factor times every dual variable of one table, or of a plain list of entries, to another table.

    Parameters
    ----------
    source : ndarray of ENTRY
    factor : float
    table : ndarray of ENTRY
        Changed; it must have room.
    used : int
        Its places that are not free.

    Returns
    -------
    int
        Its places that are not free any more.
    """
    for s in range(source.shape[0]):
        if source[s]["value"] != 0.0:
            place = find(table, source[s]["number"])
            if table[place]["number"] == 0:
                table[place]["number"] = source[s]["number"]
                used += 1
            table[place]["value"] += factor * source[s]["value"]
    return used


@njit(nogil=True, cache=True)
def dual_steps(rows, drawn, begin, first, scale, sigma, table, used, room, w, weight, behind):
    """Run steps of AUC-SDCD: each maximises the dual over one pair's variable, from 0 to 1, and moves w along.

    Parameters
    ----------
    rows : PairRows
    drawn : ndarray of shape (n_draws, 3), int64
    begin : int
        The first step to run.
    first : int
        The number of the pair of both first rows: 1, or more with a later part of the minority.
    scale : float
        lam times the number of all pairs.
    sigma : float
        By how much a step overstates its effect on w, so that blocks may add up theirs; 1 for the sequential algorithm.
    table : ndarray of ENTRY
        Changed.
    used, room : int
        Places that are not free, and how many may be so.
    w : ndarray of shape (n_features,), float64
        Changed by ``sigma / scale * change * z``.
    weight : float
        Steps before these since the averaging began.
    behind : ndarray of shape (n_features,) or (0,), float64
        If it has a length, added to: ``sum of (weight + t) * move_t``. The sum of the w after each step is their number times
        the last w, minus this.

    Returns
    -------
    t : int
        The first step that was not run, because the room was used up or there are no more.
    used : int
    behind_dual : float
        ``sum of (weight + t) * change_t``, of the dual variables.
    """
    minority, majority, sign, n_majority = rows.minority, rows.majority, rows.sign, rows.n_majority
    t, last, behind_dual = begin, drawn.shape[0] - 1, 0.0
    while t <= last and used < room:
        later = min(t + AHEAD, last)
        prefetch_row(minority, drawn[later, 0])
        prefetch_row(majority, drawn[later, 2])
        prefetch(table, first_place(table, first + drawn[later, 0] * n_majority + drawn[later, 1]))
        i, j, pair = drawn[t, 0], drawn[t, 2], first + drawn[t, 0] * n_majority + drawn[t, 1]
        place = find(table, pair)
        old = table[place]["value"]
        margin = 1.0 - sign * pair_dot(minority, i, majority, j, w)
        if (margin > 0.0 and old < 1.0) or (margin < 0.0 and old > 0.0):
            new = best_dual(old, scale / sigma * margin, pair_square(minority, i, majority, j))
            if table[place]["number"] == 0:
                table[place]["number"] = pair
                used += 1
            table[place]["value"] = new
            move = sign * sigma * (new - old) / scale
            pair_axpy(minority, i, majority, j, move, w)
            if behind.shape[0] > 0:
                pair_axpy(minority, i, majority, j, (weight + t) * move, behind)
                behind_dual += (weight + t) * (new - old)
        t += 1
    return t, used, behind_dual


@njit(nogil=True, cache=True)
def best_dual(old, slope, square):
    """Return the value from 0 to 1 nearest to ``old + slope / square``; equal rows (a square of 0) have slope > 0 and get 1."""
    if square == 0.0:
        return 1.0 if slope > 0.0 else 0.0
    return min(max(old + slope / square, 0.0), 1.0)


@njit(nogil=True, cache=True)
def gradient_steps(rows, drawn, lam, sigma, time, total):
    """Run steps of AUC-MSGD.

    Its weights after t steps are ``w = total / (lam t)``, `total` being the sum of ``value * z`` over the pairs drawn so far: the
    factor 1 - 1/t of a step is in the division.

    Parameters
    ----------
    rows : PairRows
    drawn : ndarray of shape (n_draws, 3), int64
    lam : float
    sigma : float
        How many steps each one stands for, its own included; 1 for the sequential algorithm.
    time : float
        t before the first of these steps.
    total : ndarray of shape (n_features,), float64
        Changed.
    """
    minority, majority, sign = rows.minority, rows.majority, rows.sign
    last = drawn.shape[0] - 1
    for t in range(drawn.shape[0]):
        later = min(t + AHEAD, last)
        prefetch_row(minority, drawn[later, 0])
        prefetch_row(majority, drawn[later, 2])
        i, j = drawn[t, 0], drawn[t, 2]
        before = time + sigma * t
        margin = 1.0
        if before > 0.0:
            margin -= sign * pair_dot(minority, i, majority, j, total) / (lam * before)
        if margin > 0.0:
            slope = lam * (before + sigma) / sigma * margin
            value = best_dual(0.0, slope, pair_square(minority, i, majority, j))
            pair_axpy(minority, i, majority, j, sign * sigma * value, total)
