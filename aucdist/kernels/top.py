"""Which rows have the highest scores: cells of scores, which are counted block by block and added up.

The order of float64 numbers is that of their bits, read as integers with those of negative numbers reversed. So the leading 16
bits of such an integer, its *cell*, never decrease as the score rises, and equal scores always share their cell.
"""

import numpy as np

from aucdist.kernels.compiling import kernel

BITS = 16
"""A round of counting reads so many bits of a score."""

LEAST_EXPONENT = -8
"""Differences of scores below ``2 ** LEAST_EXPONENT`` share the middle cells of `cell_around`."""

OCTAVES, PER_OCTAVE = 32, 16
N_CELLS = 2 * OCTAVES * PER_OCTAVE
"""Cells of `cell_around`."""


@kernel
def key(score):
    """Return an int64 that rises with the score; -0.0 has that of 0.0."""
    bits = np.float64(score + 0.0).view(np.int64)
    return bits if bits >= 0 else bits ^ np.int64(0x7FFFFFFFFFFFFFFF)


@kernel
def keys(scores, out):
    """Write the key of each score, float64 and int64 of shape (n_rows,)."""
    for o in range(scores.shape[0]):
        out[o] = key(scores[o])


@kernel
def count_keys(scores, weights, prefix, shift, weight_of_cell, rows_of_cell):
    """Count the rows whose key begins with the bits of `prefix`, by the next 16 bits.

    Parameters
    ----------
    scores, weights : ndarray of shape (n_rows,), float64
    prefix : int
        The bits of a key above the 16 that are counted, ``key >> (shift + 16)``; ignored for a shift of 48, where there are none.
    shift : int
        48, 32, 16 or 0: how many bits are below the 16 that are counted.
    weight_of_cell, rows_of_cell : ndarray of shape (65536,), float64
        Added to; in the order of the scores.
    """
    first = shift + BITS >= 64
    for o in range(scores.shape[0]):
        k = key(scores[o])
        cell = (k >> np.int64(shift)) + 32768
        if not first:
            if k >> np.int64(shift + BITS) != prefix:
                continue
            cell = (k >> np.int64(shift)) & 0xFFFF
        weight_of_cell[cell] += weights[o]
        rows_of_cell[cell] += 1.0


@kernel
def cell_around(difference):
    """Return the cell of a difference of scores: 16 cells from each power of 2 to the next one, on either side of 0."""
    code = (np.float64(abs(difference)).view(np.int64) >> 48) - PER_OCTAVE * (1023 + LEAST_EXPONENT)
    code = min(max(code, 0), OCTAVES * PER_OCTAVE - 1)
    return OCTAVES * PER_OCTAVE + code if difference >= 0.0 else OCTAVES * PER_OCTAVE - 1 - code


@kernel
def count_along(start, end, weights, steps, stride, centre, counts):
    """Add the weights of the rows in each cell around a score, at several steps between two score vectors.

    Parameters
    ----------
    start, end : ndarray of shape (n_rows,), float64
        Scores at step 0 and at step 1.
    weights : ndarray of shape (n_rows,), float64
    steps : ndarray of shape (n_steps,), float64
    stride : int
        Only one row in so many is counted.
    centre : float
    counts : ndarray of shape (n_steps, N_CELLS), float64
        Added to.
    """
    for o in range(0, start.shape[0], stride):
        change = end[o] - start[o]
        for k in range(steps.shape[0]):
            counts[k, cell_around(start[o] + steps[k] * change - centre)] += weights[o]


@kernel
def top_at_step(start, end, weights, step, stride, centre, boundary, fraction, which, out):
    """Write the rows in or above a boundary cell, at a step between two score vectors, and return how many they are.

    Parameters
    ----------
    start, end, weights, stride, centre
        As for `count_along`.
    step : float
    boundary : int
    fraction : float
        The share of their weight that the rows in the boundary cell keep.
    which : ndarray of shape (n_rows,), int64
    out : ndarray of shape (n_rows,), float64
        Written: the positions of those rows, and what they weigh.
    """
    n = 0
    for o in range(0, start.shape[0], stride):
        cell = cell_around(start[o] + step * (end[o] - start[o]) - centre)
        if cell >= boundary:
            which[n] = o
            out[n] = weights[o] if cell > boundary else fraction * weights[o]
            n += 1
    return n
