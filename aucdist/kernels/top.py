"""Which rows have the highest scores: cells of scores, which are counted block by block and added up.

The order of float64 numbers is that of their bits, read as integers with those of negative numbers reversed. So the leading 16
bits of such an integer, its *cell*, never decrease as the score rises, and equal scores always share their cell.
"""

import numpy as np

from aucdist.kernels.compiling import kernel

BITS = 16
"""A round of counting reads so many bits of a score."""


@kernel
def key(score):
    """Return an int64 that rises with the score; -0.0 has that of 0.0."""
    bits = np.float64(score + 0.0).view(np.int64)
    return bits if bits >= 0 else bits ^ np.int64(0x7FFFFFFFFFFFFFFF)


@kernel
def start_of_band(away, weights, wanted, width):
    """Return where a band must start so that the rows weigh what is wanted if their parts rise from 0 to 1 within it.

    What they weigh is linear between two rows, so a few steps of Newton's method find it, and bisections where one leads
    outside of what encloses it.

    `away`, of shape (n_rows,), float64: scores minus that of the threshold above which whole rows weigh what is wanted.
    `weights`: of shape (n_rows,), float64.
    `wanted`, float: what the rows that count are to weigh.
    `width`, float: that of the band, above 0.
    Returns a float from -width to 0.
    """
    low, high, start = -width, 0.0, -0.5 * width
    for _ in range(60):
        counted, inside = 0.0, 0.0
        for o in range(away.shape[0]):
            part = away[o] - start
            if part >= width:
                counted += weights[o]
            elif part > 0.0:
                counted += weights[o] * (part / width)
                inside += weights[o]
        excess = counted - wanted
        if abs(excess) <= 1e-14 * wanted:
            break
        if excess > 0.0:
            low = start
        else:
            high = start
        start = start + excess * width / inside if inside > 0.0 else high
        if not low < start < high:
            start = 0.5 * (low + high)
            if not low < start < high:
                return high
    return start


@kernel
def keys(scores, out):
    """Write the key of each score, float64 and int64 of shape (n_rows,)."""
    for o in range(scores.shape[0]):
        out[o] = key(scores[o])


@kernel
def count_keys(scores, weights, prefix, shift, weight_of_cell, rows_of_cell):
    """Count the rows whose key begins with the bits of `prefix`, by the next 16 bits.

    `scores` and `weights`: of shape (n_rows,), float64.
    `prefix`, int: the bits of a key above the 16 that are counted, ``key >> (shift + 16)``; ignored for a shift of 48,
        where there are none.
    `shift`, int: 48, 32, 16 or 0: how many bits are below the 16 that are counted.
    `weight_of_cell` and `rows_of_cell`, of shape (65536,), float64: added to; in the order of the scores.
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
