"""A number for each row that depends on its values alone, so that the same row is known again wherever it lies."""

import numpy as np
from numba.extending import register_jitable

from aucdist.kernels.compiling import kernel

_SHARE = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SIGN, _INFINITE = np.uint64(0x8000000000000000), np.uint64(0x7FF0000000000000)
_S27, _S30, _S31 = np.uint64(27), np.uint64(30), np.uint64(31)


@register_jitable
def _mixed(z):
    z = z + _SHARE
    z = (z ^ (z >> _S30)) * _FIRST
    z = (z ^ (z >> _S27)) * _SECOND
    return z ^ (z >> _S31)


@register_jitable
def _digest(bits, j):
    """Return what a value adds to the digest of its row; 0 for the values 0.0 and -0.0, which sparse rows do not store."""
    size = bits & ~_SIGN
    if size == np.uint64(0):
        return np.uint64(0)
    if size > _INFINITE:
        bits = _INFINITE + np.uint64(1)  # every NaN is one missing value
    return _mixed(bits ^ _mixed(np.uint64(j)))


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
