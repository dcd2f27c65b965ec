"""One-pass steps for the pairwise square with full or sketched statistics of the rows so far.

A new row x of label y is paired with all earlier rows of the other class by their mean c and covariance S::

    w <- w - eta (lam w + 2 weight ((w.(x - c) - y) (x - c) + S w))

and then enters the statistics of its own class. Class 0 is -1, class 1 is +1.
"""

import numpy as np
from numba.extending import overload, register_jitable

from aucdist.kernels.compiling import kernel
from aucdist.kernels.random import below, u64
from aucdist.kernels.rows import CsrRows, _is_csr, row_axpy, row_dot
from aucdist.kernels.square_epochs import SMALLEST_SCALE


@kernel(_nrt=True)
def opauc_full(rows, order, y, weights, eta, lam, counts, sums, squares, w):
    """Take one step per row with full second moments; a step costs n_features^2 operations.

    `rows`: DenseRows or CsrRows.
    `order`: of shape (n_steps,), int64.
    `y`: of shape (n_rows,), int8.
    `weights`: of shape (n_rows,), float64.
    `eta` and `lam`: float.
    `counts`, of shape (2,), float64: updated: total weight of the rows so far of each class.
    `sums`, of shape (2, n_features), float64: updated: their weighted sums.
    `squares`, of shape (2, n_features, n_features), float64: updated: the weighted sums of their outer products.
    `w`, of shape (n_features,), float64: updated.
    """
    d = w.shape[0]
    x, spread_w = np.zeros(d), np.zeros(d)
    for t in range(order.shape[0]):
        i = order[t]
        own = 1 if y[i] > 0 else 0
        other = 1 - own
        row_axpy(rows, i, 1.0, x)
        if counts[other] > 0.0:
            mean_w = 0.0
            spread_w[:] = 0.0
            for j in range(d):
                mean_w += sums[other, j] * w[j]
                if w[j] != 0.0:
                    for k in range(d):
                        spread_w[k] += squares[other, j, k] * w[j]
            mean_w /= counts[other]
            miss = row_dot(rows, i, w) - mean_w - y[i]
            a = 2.0 * eta * weights[i]
            for j in range(d):
                # S w is the product with the second moments minus that with the mean, so c has the coefficient mean_w + miss.
                own_part = miss * x[j] + (spread_w[j] - sums[other, j] * (mean_w + miss)) / counts[other]
                w[j] = (1.0 - eta * lam) * w[j] - a * own_part
        counts[own] += weights[i]
        for j in range(d):
            if x[j] != 0.0:
                sums[own, j] += weights[i] * x[j]
                row_axpy(rows, i, weights[i] * x[j], squares[own, j])
        row_axpy(rows, i, -1.0, x)


@register_jitable
def _lift(value, row, out):
    for c in range(out.shape[0]):
        out[c] += value * row[c]


def row_lift(rows, i, matrix, out):
    """Add the product of row i and the matrix, float64 of shape (n_features, m), to out, of shape (m,)."""
    if isinstance(rows, CsrRows):
        _csr_lift(rows, i, matrix, out)
    else:
        _dense_lift(rows, i, matrix, out)


def row_spread(rows, i, r, matrix):
    """Add the outer product of row i and r, float64 of shape (m,), to the matrix, of shape (n_features, m)."""
    if isinstance(rows, CsrRows):
        _csr_spread(rows, i, r, matrix)
    else:
        _dense_spread(rows, i, r, matrix)


@register_jitable
def _csr_lift(rows, i, matrix, out):
    for k in range(rows.offsets[i], rows.offsets[i + 1]):
        _lift(rows.values[k], matrix[rows.indices[k]], out)


@register_jitable
def _dense_lift(rows, i, matrix, out):
    for j in range(matrix.shape[0]):
        _lift(rows.values[i, j], matrix[j], out)


@register_jitable
def _csr_spread(rows, i, r, matrix):
    for k in range(rows.offsets[i], rows.offsets[i + 1]):
        _lift(rows.values[k], r, matrix[rows.indices[k]])


@register_jitable
def _dense_spread(rows, i, r, matrix):
    for j in range(matrix.shape[0]):
        _lift(rows.values[i, j], r, matrix[j])


@overload(row_lift)
def _row_lift_by_type(rows, i, matrix, out):
    if _is_csr(rows):
        return lambda rows, i, matrix, out: _csr_lift(rows, i, matrix, out)
    return lambda rows, i, matrix, out: _dense_lift(rows, i, matrix, out)


@overload(row_spread)
def _row_spread_by_type(rows, i, r, matrix):
    if _is_csr(rows):
        return lambda rows, i, r, matrix: _csr_spread(rows, i, r, matrix)
    return lambda rows, i, r, matrix: _dense_spread(rows, i, r, matrix)


@kernel(_nrt=True)
def opauc_sketched(rows, order, y, weights, lengths, eta, lam, draws, sketch, totals, gram, w):
    """Take one step per row with sketched second moments; a step costs m operations per non-zero of the row, and m^2.

    Every row has a vector r of m numbers, drawn once: its weight, then m - 1 times plus or minus the root of the weight. The
    sketch holds the sums of ``x r'`` and of r over the rows so far; its first column is the sum of the rows. The covariance of
    the sketch is the true covariance in expectation. As in `square_epochs`, the weights are kept as ``scale * v`` plus the sum
    over both classes of ``sketch[k] @ places[k]``.

    `rows`, `order`, `y`, `weights`, `eta` and `lam`: as in `opauc_full`.
    `lengths`, of shape (n_rows,), float64: the rows' squared Euclidean lengths.
    `draws`, of shape (1,), uint64: updated: the state of the random numbers.
    `sketch`, of shape (2, n_features, m), float64: updated.
    `totals`, of shape (2, m), float64: updated: the sums of r.
    `gram`, of shape (2, 2, m, m), float64: updated: ``gram[k, l]`` is ``sketch[k].T @ sketch[l]``.
    `w`, of shape (n_features,), float64: updated.
    """
    m = totals.shape[1]
    rank = m - 1.0
    scale, shrink = 1.0, 1.0 - eta * lam
    places, with_v, products = np.zeros((2, m)), np.zeros((2, m)), np.zeros((2, m))
    r, at = np.empty(m), np.empty(m)
    for k in range(2):
        for j in range(w.shape[0]):
            _lift(w[j], sketch[k, j], with_v[k])
    state = u64(draws[0])
    for t in range(order.shape[0]):
        i = order[t]
        own = 1 if y[i] > 0 else 0
        other = 1 - own
        products[:] = 0.0
        row_lift(rows, i, sketch[0], products[0])
        row_lift(rows, i, sketch[1], products[1])
        along_v = row_dot(rows, i, w)
        if totals[other, 0] > 0.0:
            count = totals[other, 0]
            score = scale * along_v
            for c in range(m):
                score += products[0, c] * places[0, c] + products[1, c] * places[1, c]
                at[c] = scale * with_v[other, c]
                for b in range(m):
                    at[c] += gram[other, 0, c, b] * places[0, b] + gram[other, 1, c, b] * places[1, b]
            mean_w = at[0] / count
            a = 2.0 * eta * weights[i]
            scale *= shrink
            places *= shrink
            miss = score - mean_w - y[i]
            back = 0.0
            for c in range(1, m):
                centred = at[c] - totals[other, c] * mean_w
                places[other, c] -= a * centred / (rank * count)
                back += centred * totals[other, c]
            places[other, 0] += a * (miss + back / (rank * count)) / count
            if abs(scale) < SMALLEST_SCALE:
                w *= scale
                with_v *= scale
                along_v, scale = along_v * scale, 1.0
            along_v += _add_row(rows, i, -a * miss / scale, lengths[i], products, w, with_v)
        # The row enters the sketch of its class. The weights must not change by this, so its effect is subtracted from v.
        r[0] = weights[i]
        moved = r[0] * places[own, 0]
        for c in range(1, m):
            state, sign = below(state, 2)
            r[c] = np.sqrt(weights[i]) * (2.0 * sign - 1.0)
            moved += r[c] * places[own, c]
        along_v += _add_row(rows, i, -moved / scale, lengths[i], products, w, with_v)
        row_spread(rows, i, r, sketch[own])
        for c in range(m):
            totals[own, c] += r[c]
            with_v[own, c] += r[c] * along_v
            for b in range(m):
                gram[own, own, c, b] += products[own, c] * r[b] + r[c] * products[own, b] + lengths[i] * r[c] * r[b]
                gram[own, other, c, b] += r[c] * products[other, b]
                gram[other, own, b, c] += r[c] * products[other, b]
    draws[0] = state
    for j in range(w.shape[0]):
        w[j] *= scale
        for c in range(m):
            w[j] += sketch[0, j, c] * places[0, c] + sketch[1, j, c] * places[1, c]


@register_jitable
def _add_row(rows, i, a, length, products, v, with_v):
    """Add a times row i to v; return the increase of the row's inner product with v."""
    row_axpy(rows, i, a, v)
    for k in range(2):
        for c in range(products.shape[1]):
            with_v[k, c] += a * products[k, c]
    return a * length
