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


@register_jitable(fastmath=SUM_IN_ANY_ORDER)
def _csr_dot(rows, i, w):
    total = 0.0
    # Unsigned, so that Numba need not ask whether a place counts from the end: twice as fast.
    for k in range(np.uint64(rows.offsets[i]), np.uint64(rows.offsets[i + 1])):
        total += rows.values[k] * w[np.uint32(rows.indices[k])]
    return total


# Inlined by Numba itself: called from a loop they otherwise spend more on counting references than on adding.
@register_jitable(inline="always")
def _dense_axpy(rows, i, a, out):
    row = rows.values[i]
    for j in range(row.shape[0]):
        out[j] += a * row[j]


@register_jitable(inline="always")
def _csr_axpy(rows, i, a, out):
    for k in range(np.uint64(rows.offsets[i]), np.uint64(rows.offsets[i + 1])):
        out[np.uint32(rows.indices[k])] += a * rows.values[k]


@register_jitable(fastmath=SUM_IN_ANY_ORDER)
def _dense_axpy4(rows, i, a, out):
    r0, r1, r2, r3 = rows.values[i[0]], rows.values[i[1]], rows.values[i[2]], rows.values[i[3]]
    for j in range(out.shape[0]):
        out[j] += a[0] * r0[j] + a[1] * r1[j] + a[2] * r2[j] + a[3] * r3[j]


@register_jitable
def _csr_axpy4(rows, i, a, out):
    for r in range(4):
        _csr_axpy(rows, i[r], a[r], out)


def row_dot(rows, i, w):
    """Return the inner product of row i and the float64 vector w."""
    return _csr_dot(rows, i, w) if isinstance(rows, CsrRows) else _dense_dot(rows, i, w)


def row_axpy(rows, i, a, out):
    """Add a times row i to the float64 vector out."""
    if isinstance(rows, CsrRows):
        _csr_axpy(rows, i, a, out)
    else:
        _dense_axpy(rows, i, a, out)


def row_axpy4(rows, i, a, out):
    """Add the sum of ``a[r]`` times row ``i[r]``, r = 0..3, to the float64 vector out: dense rows then read and write it once."""
    if isinstance(rows, CsrRows):
        _csr_axpy4(rows, i, a, out)
    else:
        _dense_axpy4(rows, i, a, out)


def _is_csr(rows) -> bool:
    return isinstance(rows, types.BaseNamedTuple) and rows.instance_class is CsrRows


@overload(row_dot)
def _row_dot_by_type(rows, i, w):
    if _is_csr(rows):
        return lambda rows, i, w: _csr_dot(rows, i, w)
    return lambda rows, i, w: _dense_dot(rows, i, w)


@overload(row_axpy, inline="always")
def _row_axpy_by_type(rows, i, a, out):
    if _is_csr(rows):
        return lambda rows, i, a, out: _csr_axpy(rows, i, a, out)
    return lambda rows, i, a, out: _dense_axpy(rows, i, a, out)


@overload(row_axpy4)
def _row_axpy4_by_type(rows, i, a, out):
    if _is_csr(rows):
        return lambda rows, i, a, out: _csr_axpy4(rows, i, a, out)
    return lambda rows, i, a, out: _dense_axpy4(rows, i, a, out)


@njit(nogil=True, cache=True)
def project(rows, w, out):
    """Write X w into out, float64 of shape (n_samples,)."""
    for i in range(out.shape[0]):
        out[i] = row_dot(rows, i, w)


@njit(nogil=True, cache=True)
def accumulate(rows, which, coefs, out):
    """Add the sum of ``coefs[k] * x[which[k]]`` to out, float64 of shape (n_features,); coefficients of 0 cost nothing."""
    i0, i1, i2 = 0, 0, 0
    a0, a1, a2 = 0.0, 0.0, 0.0
    held = 0
    for k in range(which.shape[0]):
        a = coefs[k]
        if a == 0.0:
            continue
        if held == 3:
            row_axpy4(rows, (i0, i1, i2, which[k]), (a0, a1, a2, a), out)
            held = 0
        elif held == 2:
            i2, a2, held = which[k], a, 3
        elif held == 1:
            i1, a1, held = which[k], a, 2
        else:
            i0, a0, held = which[k], a, 1
    if held > 0:
        row_axpy(rows, i0, a0, out)
    if held > 1:
        row_axpy(rows, i1, a1, out)
    if held > 2:
        row_axpy(rows, i2, a2, out)


@njit(nogil=True, cache=True)
def accumulate_each(rows, which, coefs, out):
    """Add the sum over k of ``coefs[g, k] * x[which[k]]`` to ``out[g]`` for every g; out is float64 of shape (g, n_features)."""
    for k in range(which.shape[0]):
        for g in range(out.shape[0]):
            if coefs[g, k] != 0.0:
                row_axpy(rows, which[k], coefs[g, k], out[g])
