"""Pairs of rows, dense and CSR, as `aucdist.kernels.rows` for single rows; and functions that fetch rows from memory early.

Everywhere a and b are both `DenseRows` or both `CsrRows`, and the pair is the difference ``a_i - b_j``, in float64.
"""

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload, register_jitable

from aucdist.kernels.rows import SUM_IN_ANY_ORDER, CsrRows, Rows, _is_csr, row_dot

CACHE_LINE = 64
ONES = np.zeros(0)
"""Weights of rows that all weigh one."""


class PairRows(NamedTuple):
    """The two classes: ``z = sign * (minority_i - majority_j)`` is positive minus negative.

    `minority` and `majority`: the rows of the smaller class, and rows that include those of the larger class.
    `n_majority`: the number of rows of the larger class.
    `sign`: 1 where the minority is positive, -1 where it is negative.
    `minority_weight`: of shape (n_minority,), float64.
    `majority_weight`, of shape (n_majority,), float64: a pair weighs the product; both are of length 0 where each pair
        weighs one.
    """

    minority: Rows
    majority: Rows
    n_majority: int
    sign: int
    minority_weight: np.ndarray = ONES
    majority_weight: np.ndarray = ONES


# ---- differences ------------------------------------------------------------------------------------------------------


@register_jitable(fastmath=SUM_IN_ANY_ORDER)
def _dense_dot(a, i, b, j, w):
    total = 0.0
    for f in range(w.shape[0]):
        total += (np.float64(a.values[i, f]) - np.float64(b.values[j, f])) * w[f]
    return total


@register_jitable(fastmath=SUM_IN_ANY_ORDER)
def _dense_square(a, i, b, j):
    total = 0.0
    for f in range(a.values.shape[1]):
        difference = np.float64(a.values[i, f]) - np.float64(b.values[j, f])
        total += difference * difference
    return total


# Inlined by Numba: LLVM would call it and count references to the arrays, at four times the cost of the sum itself.
@register_jitable(inline="always")
def _dense_axpy(a, i, b, j, c, out):
    for f in range(out.shape[0]):
        out[f] += c * (np.float64(a.values[i, f]) - np.float64(b.values[j, f]))


@register_jitable
def _csr_square(a, i, b, j):
    p, p_end, q, q_end = a.offsets[i], a.offsets[i + 1], b.offsets[j], b.offsets[j + 1]
    total = 0.0
    while p < p_end and q < q_end:
        # Without branches: which row has the next feature cannot be predicted.
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
def _csr_axpy(a, i, b, j, c, out):
    for s in range(a.offsets[i], a.offsets[i + 1]):
        out[a.indices[s]] += c * np.float64(a.values[s])
    for s in range(b.offsets[j], b.offsets[j + 1]):
        out[b.indices[s]] -= c * np.float64(b.values[s])


def pair_dot(a, i, b, j, w):
    """Return the inner product of ``a_i - b_j`` and the float64 vector w."""
    if isinstance(a, CsrRows):
        return row_dot(a, i, w) - row_dot(b, j, w)
    return _dense_dot(a, i, b, j, w)


def pair_square(a, i, b, j):
    """Return the squared length of ``a_i - b_j``, exactly 0 where the rows are equal."""
    return _csr_square(a, i, b, j) if isinstance(a, CsrRows) else _dense_square(a, i, b, j)


def pair_axpy(a, i, b, j, c, out):
    """Add c times ``a_i - b_j`` to the float64 vector out."""
    if isinstance(a, CsrRows):
        _csr_axpy(a, i, b, j, c, out)
    else:
        _dense_axpy(a, i, b, j, c, out)


@overload(pair_dot)
def _pair_dot_by_type(a, i, b, j, w):
    if _is_csr(a):
        return lambda a, i, b, j, w: row_dot(a, i, w) - row_dot(b, j, w)
    return lambda a, i, b, j, w: _dense_dot(a, i, b, j, w)


@overload(pair_square)
def _pair_square_by_type(a, i, b, j):
    if _is_csr(a):
        return lambda a, i, b, j: _csr_square(a, i, b, j)
    return lambda a, i, b, j: _dense_square(a, i, b, j)


@overload(pair_axpy, inline="always")
def _pair_axpy_by_type(a, i, b, j, c, out):
    if _is_csr(a):
        return lambda a, i, b, j, c, out: _csr_axpy(a, i, b, j, c, out)
    return lambda a, i, b, j, c, out: _dense_axpy(a, i, b, j, c, out)


# ---- fetching early ---------------------------------------------------------------------------------------------------


@intrinsic
def _prefetch(typing_context, array, position):
    def generate(context, builder, signature, args):
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        address = builder.bitcast(builder.gep(data, [args[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        builder.call(fetch, [address, word(0), word(3), word(1)])  # to read, into every cache, data
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


def prefetch(array, position):
    """Start to fetch the cache line of item `position`, counted through the C-contiguous array; plain Python does nothing."""


@overload(prefetch)
def _prefetch_compiled(array, position):
    return lambda array, position: _prefetch(array, position)


def prefetch_row(rows, i):
    """Start to fetch row i; plain Python does nothing."""


@overload(prefetch_row)
def _prefetch_row_by_type(rows, i):
    # A constant when it is compiled: a division by the array's own itemsize would take as long as the arithmetic on a row.
    per_line = CACHE_LINE * 8 // rows.types[0].dtype.bitwidth

    def csr(rows, i):
        for s in range(rows.offsets[i], rows.offsets[i + 1], per_line):
            prefetch(rows.values, s)
            prefetch(rows.indices, s)

    def dense(rows, i):
        width = rows.values.shape[1]
        for f in range(0, width, per_line):
            prefetch(rows.values, i * width + f)

    return csr if _is_csr(rows) else dense
