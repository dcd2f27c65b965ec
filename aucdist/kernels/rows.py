"""One accessor for dense rows, CSR rows and rows of codes, so that every kernel has one source.

A kernel takes `rows`, which is `DenseRows`, `CsrRows` or `BinRows`, and calls the functions below; Numba picks the branch by type
when it compiles, so the choice costs nothing in the loop. With ``NUMBA_DISABLE_JIT=1`` the same functions run as Python.

There are two families of functions. `row_dot` and `row_axpy` take weights and sums of n_features numbers, which may change
between two rows; rows of codes have none of them. `table_dot` and `table_axpys` take tables: `table_of` makes one of the
weights before the rows are read, `sums_for` begins one and `add_sums` adds it to the sums afterwards. For dense and CSR rows the
weights and the sums are the tables, at no cost.

The module also has the kernels that compute the range of each column and the digest of each row.
"""

import functools
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload, register_jitable, typeof_impl

from aucdist.kernels.codes import (
    BinRows,
    CodeBasis,
    add_codes,
    code_dot,
    expand,
    fold_columns,
)
from aucdist.kernels.compiling import kernel
from aucdist.kernels.random import mix, next_state

# Sums may be reordered (that is what lets them run as SIMD), but inf and nan keep their meaning: nnan and ninf stay out.
SUM_IN_ANY_ORDER = {"reassoc", "contract", "nsz"}


CACHE_LINE = 64
BATCH = 64
"""The number of rows that are collected before they are added."""


class DenseRows(NamedTuple):
    """Rows of a dense matrix.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_features)
        c-contiguous, float32 or float64.
    """

    values: np.ndarray


class CsrRows(NamedTuple):
    """Rows of a sparse matrix in CSR form.

    Attributes
    ----------
    values : ndarray of shape (n_nonzero,), float32 or float64
        The stored values, row by row.
    indices : ndarray of shape (n_nonzero,), int32
        Feature of each value, ascending within a row.
    offsets : ndarray of shape (n_samples + 1,), int64
        Row i is ``values[offsets[i]:offsets[i + 1]]``.
    n_features : int
        The number of features.
    """

    values: np.ndarray
    indices: np.ndarray
    offsets: np.ndarray
    n_features: int


Rows = DenseRows | CsrRows | BinRows


@typeof_impl.register(DenseRows)
@typeof_impl.register(CsrRows)
@typeof_impl.register(BinRows)
@typeof_impl.register(CodeBasis)
def _type_of_rows(rows, context):
    """Return one type for writable and read-only rows.

    Kernels only read rows, and would otherwise be compiled once for each type.

    Rows are read-only if they are mapped from a file, come from Arrow, or were sent to a worker.
    """
    fields = [typeof_impl(field, context) for field in rows]
    return types.NamedTuple(
        [field.copy(readonly=False) if isinstance(field, types.Array) else field for field in fields], type(rows)
    )


@register_jitable(fastmath=SUM_IN_ANY_ORDER)
def _dense_dot(rows, i, w):
    row = rows.values[i]
    total = 0.0
    for j in range(row.shape[0]):
        total += row[j] * w[j]
    return total


# Inlined by Numba, because otherwise calls in a loop spend more time on counting references than on adding.
@register_jitable(inline="always")
def _csr_dot(rows, i, w):
    # The sum is in the order of the features. A SIMD sum would have to wait for values that an axpy has just written.
    total = 0.0
    # The index is unsigned, so that Numba does not check for negative indices. This is twice as fast.
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


# Eight rows at a time: the sum is then read and written once for all of them, and rows that lie close together come from
# memory in a fifth less time than one after another. Positions are unsigned, as in `_csr_dot`.
@register_jitable(fastmath=SUM_IN_ANY_ORDER)
def _dense_axpys(rows, positions, coefs, n, out):
    x, width, whole = rows.values, np.uint64(out.shape[0]), n - n % 8
    for k in range(0, whole, 8):
        i0, i1, i2, i3 = positions[k], positions[k + 1], positions[k + 2], positions[k + 3]
        i4, i5, i6, i7 = positions[k + 4], positions[k + 5], positions[k + 6], positions[k + 7]
        a0, a1, a2, a3 = coefs[k], coefs[k + 1], coefs[k + 2], coefs[k + 3]
        a4, a5, a6, a7 = coefs[k + 4], coefs[k + 5], coefs[k + 6], coefs[k + 7]
        for j in range(width):
            upper = a0 * x[i0, j] + a1 * x[i1, j] + a2 * x[i2, j] + a3 * x[i3, j]
            out[j] += upper + (a4 * x[i4, j] + a5 * x[i5, j] + a6 * x[i6, j] + a7 * x[i7, j])
    for k in range(whole, n):
        i0, a0 = positions[k], coefs[k]
        for j in range(width):
            out[j] += a0 * x[i0, j]


def _csr_axpys(rows, positions, coefs, n, out):
    values, indices, offsets = rows.values, rows.indices, rows.offsets
    for k in range(n):
        i, a = positions[k], coefs[k]
        for s in range(np.uint64(offsets[i]), np.uint64(offsets[i + np.uint64(1)])):
            out[np.uint32(indices[s])] += a * values[s]


def is_rows(rows, kind) -> bool:
    """Return whether rows, or their Numba type, are of a certain kind."""
    return getattr(rows, "instance_class", type(rows)) is kind


def by_kind(**options):
    """Return a decorator of a function that selects an implementation by its arguments, or by the Numba types of these.

    The result is called with these arguments. Python selects the implementation at each call, and Numba once, when it compiles.
    The options are those of `numba.extending.overload`.
    """

    def decorator(pick):
        """Return a function that calls the implementation that `pick` selects for its arguments."""

        @functools.wraps(pick)
        def function(*args):
            """Call the implementation that `pick` selects. Python uses this function if nothing is compiled."""
            return pick(*args)(*args)

        overload(function, **options)(pick)
        return function

    return decorator


# Numba inlines a function around a loop, because its inliner warns of an inlined function that consists of a loop only.
@by_kind(inline="always")
def row_dot(rows, i, w):
    """Return the inner product of row i and the float64 vector w."""
    if is_rows(rows, CsrRows):
        return lambda rows, i, w: _csr_dot(rows, i, w)
    return (lambda rows, i, w: _dense_dot(rows, i, w)) if is_rows(rows, DenseRows) else None


@by_kind(inline="always")
def row_axpy(rows, i, a, out):
    """Add a times row i to the float64 vector out."""
    if is_rows(rows, CsrRows):
        return lambda rows, i, a, out: _csr_axpy(rows, i, a, out)
    return (lambda rows, i, a, out: _dense_axpy(rows, i, a, out)) if is_rows(rows, DenseRows) else None


# ---- tables -----------------------------------------------------------------------------------------------------------


def table_of(rows, w):
    """Return the table for the weights w, float64 of shape (n_features,), that `table_dot` takes."""
    return expand(rows.basis, w) if isinstance(rows, BinRows) else w


def sums_for(rows, out):
    """Return a table of zeros for `table_axpys`. `add_sums` adds it to `out`, whose last dimension is that of the sums."""
    return np.zeros((*out.shape[:-1], rows.basis.offsets.shape[0] - 1)) if isinstance(rows, BinRows) else out


def add_sums(rows, sums, out):
    """Add the sums in a table of `sums_for` to out, float64 of shape (n_features,). The table is overwritten."""
    if isinstance(rows, BinRows):
        fold_columns(rows.basis, sums[:, np.newaxis], out[:, np.newaxis])


@by_kind(inline="always")
def table_dot(rows, i, w):
    """Return the inner product of row i and the weights from which the table w was made."""
    if is_rows(rows, BinRows):
        return lambda rows, i, w: code_dot(rows, i, w)
    return lambda rows, i, w: row_dot(rows, i, w)


@by_kind()
def table_axpys(rows, positions, coefs, n, out):
    """Add the sum of ``coefs[k]`` times row ``which[k]``, uint64, k = 0..n-1, to the table `out` of `sums_for`."""
    if is_rows(rows, BinRows):
        return lambda rows, positions, coefs, n, out: add_codes(rows.codes, rows.basis.starts, positions, coefs, n, out)
    if is_rows(rows, CsrRows):
        return _csr_axpys
    return lambda rows, positions, coefs, n, out: _dense_axpys(rows, positions, coefs, n, out)


# ---- fetching early ---------------------------------------------------------------------------------------------------


@intrinsic
def _prefetch(typing_context, array, position):
    def generate(context, builder, signature, args):
        """Emit the instruction of the processor that fetches a line of its cache."""
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        address = builder.bitcast(builder.gep(data, [args[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        builder.call(fetch, [address, word(0), word(3), word(1)])  # to read, into every cache, data
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


def prefetch(array, position):
    """Start to fetch the cache line of item `position`, counted through the C-contiguous array. Plain Python does nothing."""


@overload(prefetch)
def _prefetch_compiled(array, position):
    return lambda array, position: _prefetch(array, position)


def prefetch_row(rows, i):
    """Start to fetch row i. In plain Python, this does nothing."""


@overload(prefetch_row)
def _prefetch_row_by_type(rows, i):
    # This is a compile-time constant, because dividing by the itemsize takes as long as the arithmetic of a row.
    per_line = CACHE_LINE * 8 // rows.types[0].dtype.bitwidth

    def csr(rows, i):
        """Fetch the values and the columns that are stored for the row."""
        for s in range(rows.offsets[i], rows.offsets[i + 1], per_line):
            prefetch(rows.values, s)
            prefetch(rows.indices, s)

    def dense(rows, i):
        """Fetch the values of the row."""
        width = rows.values.shape[1]
        for f in range(0, width, per_line):
            prefetch(rows.values, i * width + f)

    return csr if is_rows(rows, CsrRows) else dense


# ---- passes -----------------------------------------------------------------------------------------------------------

# These functions allocate and choose by type in Python, which would take longer to compile than the loops.


def project(rows, w, out):
    """Write X w into out, float64 of shape (n_samples,)."""
    _project(rows, table_of(rows, w), out)


@kernel
def _project(rows, table, out):
    for i in range(out.shape[0]):
        out[i] = table_dot(rows, i, table)


@kernel(fastmath=SUM_IN_ANY_ORDER)
def project_and_measure(values, w, out, squares):
    """Write X w and the squared length of each row into out and squares, of shape (n_samples,); the rows are dense."""
    for i in range(out.shape[0]):
        row, score, square = values[i], 0.0, 0.0
        for j in range(row.shape[0]):
            x = np.float64(row[j])
            score += x * w[j]
            square += x * x
        out[i], squares[i] = score, square


def accumulate(rows, positions, coefs, out):
    """Add the sum of ``coefs[k] * x[which[k]]`` to out, float64 of shape (n_features,).

    Rows with a coefficient of 0 are skipped.
    """
    sums = sums_for(rows, out)
    _accumulate(rows, positions, coefs, np.empty(BATCH, np.uint64), np.empty(BATCH), sums)
    add_sums(rows, sums, out)


@kernel
def _accumulate(rows, positions, coefs, chosen, values, sums):
    """Add the rows whose coefficients are not 0 to the table, some at a time; `chosen` and `values` are workspace."""
    held, n = 0, positions.shape[0]
    for k in range(n):
        a = coefs[k]
        chosen[held], values[held] = positions[k], a
        held += a != 0.0  # there is no branch, which would often be mispredicted
        if held == BATCH or k == n - 1:
            table_axpys(rows, chosen, values, held, sums)
            held = 0


_SIGN, _INFINITE = np.uint64(0x8000000000000000), np.uint64(0x7FF0000000000000)


@kernel
def dense_ranges(values, counted, low, high):
    """Update `low` and `high` with the values of the counted rows. NaN is ignored.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_features), float32 or float64
        The rows.
    counted : ndarray of shape (n_samples,), bool
        Whether each row counts.
    low, high : ndarray of shape (n_features,), of the type of `values`
        Changed in place.
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
    """Update `low`, `high` and the counts of stored values by column, and return the largest number of stored values of a row.

    Parameters
    ----------
    values, indices, offsets
        Of `CsrRows`.
    counted : ndarray of shape (n_samples,), bool
        Whether each row counts.
    low, high : ndarray of shape (n_features,), of the type of `values`
        Changed in place.
    stored : ndarray of shape (n_features,), int64
        Added to.
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
def _value_digest(bits, j):
    """Return what a value adds to the digest of its row. It is 0 for 0.0 and -0.0, which sparse rows do not store."""
    size = bits & ~_SIGN
    if size == np.uint64(0):
        return np.uint64(0)
    if size > _INFINITE:
        bits = _INFINITE + np.uint64(1)  # so that all NaN have the same digest
    return mix(next_state(bits ^ mix(next_state(j))))


@kernel
def dense_digests(bits, out):
    """Write the digest of each row: the sum over its values, mixed with their columns, as SplitMix64 does.

    Parameters
    ----------
    bits : ndarray of shape (n_samples, n_features), uint64
        The bits of the values as float64.
    out : ndarray of shape (n_samples,)
        Uint64.
    """
    for i in range(bits.shape[0]):
        total = np.uint64(0)
        for j in range(bits.shape[1]):
            total += _value_digest(bits[i, j], j)
        out[i] = total


@kernel
def csr_digests(bits, indices, offsets, out):
    """Write the digest of each row of a sparse matrix, which is that of the same row as a dense one.

    Parameters
    ----------
    bits : ndarray of shape (n_stored,), uint64
        The bits of the stored values as float64.
    indices, offsets
        Of `CsrRows`.
    out : ndarray of shape (n_samples,)
        Uint64.
    """
    for i in range(out.shape[0]):
        total = np.uint64(0)
        for k in range(offsets[i], offsets[i + 1]):
            total += _value_digest(bits[k], indices[k])
        out[i] = total
