"""Kernels for the range of each column and the digest of each row."""

import numpy as np
from numba.extending import register_jitable

from aucdist.kernels.compiling import kernel
from aucdist.kernels.random import mix, next_state

_SIGN, _INFINITE = np.uint64(0x8000000000000000), np.uint64(0x7FF0000000000000)


@kernel
def dense_ranges(values, counted, low, high):
    """Update `low` and `high` with the values of the counted rows. NaN is ignored.

    `values`: of shape (n_samples, n_features), float32 or float64.
    `counted`: of shape (n_samples,), bool.
    `low` and `high`, of shape (n_features,), of the type of `values`: changed in place.
    """
    for i in range(values.shape[0]):
        if counted[i]:
            row = values[i]
            for j in range(row.shape[0]):
                x = row[j]
                low[j] = x if x < low[j] else low[j]
                high[j] = x if x > high[j] else high[j]


@kernel
def csr_ranges(values, indices, offsets, counted, low, high, stored):
    """Update `low`, `high` and the counts of stored values by column; return the largest number of stored values of a row.

    `values`, `indices` and `offsets`: of `CsrRows`.
    `counted`: of shape (n_samples,), bool.
    `low` and `high`, of shape (n_features,), of the type of `values`: changed in place.
    `stored`, of shape (n_features,), int64: added to.
    """
    most = 0
    for i in range(counted.shape[0]):
        if counted[i]:
            most = max(most, offsets[i + 1] - offsets[i])
            for k in range(np.uint64(offsets[i]), np.uint64(offsets[i + 1])):
                x, j = values[k], np.uint32(indices[k])
                low[j] = x if x < low[j] else low[j]
                high[j] = x if x > high[j] else high[j]
                stored[j] += 1
    return most


@register_jitable
def _digest(bits, j):
    """Return what a value adds to the digest of its row; 0 for the values 0.0 and -0.0, which sparse rows do not store."""
    size = bits & ~_SIGN
    if size == np.uint64(0):
        return np.uint64(0)
    if size > _INFINITE:
        bits = _INFINITE + np.uint64(1)  # all NaN have the same digest
    return mix(next_state(bits ^ mix(next_state(j))))


@kernel
def dense_digests(bits, out):
    """Write the digest of each row: the sum over its values, mixed with their columns, as SplitMix64 does.

    `bits`, of shape (n_samples, n_features), uint64: the bits of the values as float64.
    `out`: of shape (n_samples,), uint64.
    """
    for i in range(bits.shape[0]):
        total = np.uint64(0)
        for j in range(bits.shape[1]):
            total += _digest(bits[i, j], j)
        out[i] = total


@kernel
def csr_digests(bits, indices, offsets, out):
    """Write the digest of each row of a sparse matrix, which is that of the same row as a dense one.

    `bits`, of shape (n_stored,), uint64: the bits of the stored values as float64.
    `indices` and `offsets`: of `CsrRows`.
    `out`: of shape (n_samples,), uint64.
    """
    for i in range(out.shape[0]):
        total = np.uint64(0)
        for k in range(offsets[i], offsets[i + 1]):
            total += _digest(bits[k], indices[k])
        out[i] = total
