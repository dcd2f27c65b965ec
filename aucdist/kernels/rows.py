"""One accessor for dense and CSR rows, so that every kernel has one source.

A kernel takes `rows`, which is `DenseRows` or `CsrRows`, and calls the functions below; Numba picks the branch by type when
it compiles, so the choice costs nothing in the loop. With ``NUMBA_DISABLE_JIT=1`` the same functions run as Python.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import overload, register_jitable

# Sums may be reordered (that is what lets them run as SIMD), but inf and nan keep their meaning: nnan and ninf stay out.
SUM_IN_ANY_ORDER = {"reassoc", "contract", "nsz"}


BATCH = 64
"""So many rows are added up together: few enough to stay in the first-level cache for every sum that they go to."""


class DenseRows(NamedTuple):
    """Rows of a dense matrix.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_features)
        C-contiguous, float32 or float64.
    """

    values: np.ndarray


class CsrRows(NamedTuple):
    """Rows of a sparse matrix in CSR form.

    Attributes
    ----------
    values : ndarray of shape (n_nonzero,), float32 or float64
    indices : ndarray of shape (n_nonzero,), int32
        Feature of each value, ascending within a row.
    offsets : ndarray of shape (n_samples + 1,), int64
        Row i is ``values[offsets[i]:offsets[i + 1]]``.
    n_features : int
    """

    values: np.ndarray
    indices: np.ndarray
    offsets: np.ndarray
    n_features: int


Rows = DenseRows | CsrRows


@register_jitable(fastmath=SUM_IN_ANY_ORDER)
def _dense_dot(rows, i, w):
    row = rows.values[i]
    total = 0.0
    for j in range(row.shape[0]):
        total += row[j] * w[j]
    return total


# Inlined by Numba itself: called from a loop they otherwise spend more on counting references than on adding.
@register_jitable(inline="always")
def _csr_dot(rows, i, w):
    # In the order of the features: as SIMD, the sum would wait for what an axpy has just written one by one.
    total = 0.0
    # Unsigned, so that Numba need not ask whether a place counts from the end: twice as fast.
    for k in range(np.uint64(rows.offsets[i]), np.uint64(rows.offsets[i + 1])):
        total += rows.values[k] * w[np.uint32(rows.indices[k])]
    return total


@register_jitable(inline="always")
def _dense_axpy(rows, i, a, out):
    row = rows.values[i]
    for j in range(row.shape[0]):
        out[j] += a * row[j]


@register_jitable(inline="always")
def _csr_axpy(rows, i, a, out):
    for k in range(np.uint64(rows.offsets[i]), np.uint64(rows.offsets[i + 1])):
        out[np.uint32(rows.indices[k])] += a * rows.values[k]


# Eight rows at a time: the sum is then read and written once for all of them.
@register_jitable(fastmath=SUM_IN_ANY_ORDER)
def _dense_axpys(rows, which, coefs, n, out):
    x, whole = rows.values, n - n % 8
    for k in range(0, whole, 8):
        i0, i1, i2, i3 = np.uint64(which[k]), np.uint64(which[k + 1]), np.uint64(which[k + 2]), np.uint64(which[k + 3])
        i4, i5, i6, i7 = (
            np.uint64(which[k + 4]),
            np.uint64(which[k + 5]),
            np.uint64(which[k + 6]),
            np.uint64(which[k + 7]),
        )
        a0, a1, a2, a3 = coefs[k], coefs[k + 1], coefs[k + 2], coefs[k + 3]
        a4, a5, a6, a7 = coefs[k + 4], coefs[k + 5], coefs[k + 6], coefs[k + 7]
        for j in range(np.uint64(out.shape[0])):
            first = a0 * x[i0, j] + a1 * x[i1, j] + a2 * x[i2, j] + a3 * x[i3, j]
            out[j] += first + (a4 * x[i4, j] + a5 * x[i5, j] + a6 * x[i6, j] + a7 * x[i7, j])
    for k in range(whole, n):
        _dense_axpy(rows, which[k], coefs[k], out)


@register_jitable
def _csr_axpys(rows, which, coefs, n, out):
    for k in range(n):
        _csr_axpy(rows, which[k], coefs[k], out)


def row_dot(rows, i, w):
    """Return the inner product of row i and the float64 vector w."""
    return _csr_dot(rows, i, w) if isinstance(rows, CsrRows) else _dense_dot(rows, i, w)


def row_axpy(rows, i, a, out):
    """Add a times row i to the float64 vector out."""
    if isinstance(rows, CsrRows):
        _csr_axpy(rows, i, a, out)
    else:
        _dense_axpy(rows, i, a, out)


def row_axpys(rows, which, coefs, n, out):
    """Add the sum of ``coefs[k]`` times row ``which[k]``, k = 0..n-1, to the float64 vector out."""
    if isinstance(rows, CsrRows):
        _csr_axpys(rows, which, coefs, n, out)
    else:
        _dense_axpys(rows, which, coefs, n, out)


def _is_csr(rows) -> bool:
    return isinstance(rows, types.BaseNamedTuple) and rows.instance_class is CsrRows


@overload(row_dot, inline="always")
def _row_dot_by_type(rows, i, w):
    if _is_csr(rows):
        return lambda rows, i, w: _csr_dot(rows, i, w)
    return lambda rows, i, w: _dense_dot(rows, i, w)


@overload(row_axpy, inline="always")
def _row_axpy_by_type(rows, i, a, out):
    if _is_csr(rows):
        return lambda rows, i, a, out: _csr_axpy(rows, i, a, out)
    return lambda rows, i, a, out: _dense_axpy(rows, i, a, out)


@overload(row_axpys)
def _row_axpys_by_type(rows, which, coefs, n, out):
    if _is_csr(rows):
        return lambda rows, which, coefs, n, out: _csr_axpys(rows, which, coefs, n, out)
    return lambda rows, which, coefs, n, out: _dense_axpys(rows, which, coefs, n, out)


@njit(nogil=True, cache=True)
def project(rows, w, out):
    """Write X w into out, float64 of shape (n_samples,)."""
    for i in range(out.shape[0]):
        out[i] = row_dot(rows, i, w)


@njit(nogil=True, cache=True)
def accumulate(rows, which, coefs, out):
    """Add the sum of ``coefs[k] * x[which[k]]`` to out, float64 of shape (n_features,); coefficients of 0 cost nothing."""
    _accumulate(rows, which, coefs, np.empty(BATCH, np.int64), np.empty(BATCH), out)


@njit(nogil=True, cache=True)
def _accumulate(rows, which, coefs, chosen, values, out):
    held = 0
    for k in range(which.shape[0]):
        chosen[held], values[held] = which[k], coefs[k]
        held += coefs[k] != 0.0  # without a branch, which a processor could not foresee
        if held == BATCH:
            row_axpys(rows, chosen, values, BATCH, out)
            held = 0
    row_axpys(rows, chosen, values, held, out)


@njit(nogil=True, cache=True)
def accumulate_each(rows, which, coefs, out):
    """Add the sum over k of ``coefs[g, k] * x[which[k]]`` to ``out[g]`` for every g; out is float64 of shape (g, n_features)."""
    chosen, values = np.empty(BATCH, np.int64), np.empty(BATCH)
    for first in range(0, which.shape[0], BATCH):
        last = min(first + BATCH, which.shape[0])
        for g in range(out.shape[0]):
            _accumulate(rows, which[first:last], coefs[g, first:last], chosen, values, out[g])
