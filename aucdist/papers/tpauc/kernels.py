"""Epochs of stochastic gradient steps for the pairwise square and the univariate losses; a step costs the row's non-zeros.

A step of `square_epoch` adds multiples of one row and of a few dense vectors: the class means and the full gradient. So the
weights are kept as ``u = scale * v + coefs @ basis``, where the rows are added to v, and the dense vectors only change the
coefficients. The inner products of u with the means, which each step needs, are updated from the rows' inner products. Only the
end of an epoch makes u dense.

The one-pass steps pair a new row x of label y with all earlier rows of the other class by their mean c and covariance S::

    w <- w - eta (lam w + 2 weight ((w.(x - c) - y) (x - c) + S w))

after which x enters the statistics of its own class. Class 0 is -1, class 1 is +1.
"""

import numpy as np
from numba.extending import overload, register_jitable

from aucdist.kernels.compiling import kernel
from aucdist.kernels.pair_rows import prefetch_row
from aucdist.kernels.random import below, u64, uniform01
from aucdist.kernels.rows import CsrRows, _is_csr, row_axpy, row_dot

AHEAD = 4
"""How many steps ahead a row is prefetched from memory."""

SMALLEST_SCALE = 1e-100
"""A smaller scale is multiplied into v, long before it would underflow."""


@kernel
def square_epoch(rows, order, y, factors, products, basis, gram, eta, lam, v, average_from, out):
    """Take one step per entry of `order`, and write the last weights, or their average over the last steps, into out.

    With x the row minus the mean of its class, c the positive mean minus the negative mean, and g the last vector of the basis::

        u <- u - eta (lam u + 2 (c.u) c + g + factor (x.u) x)

    `rows`: DenseRows or CsrRows.
    `order`, of shape (n_steps,), int64: the row of each step.
    `y`, of shape (n_rows,), int8: labels, -1 or +1.
    `factors`, of shape (n_rows,), float64: factors of the rows' own terms.
    `products`, of shape (n_rows, 3), float64: inner products of the rows with the basis vectors.
    `basis`, of shape (3, n_features), float64: the negative mean, the positive mean, g.
    `gram`, of shape (3, 3), float64: inner products of the basis vectors with each other.
    `eta` and `lam`: float.
    `v`, of shape (n_features,), float64: the weights to start from; overwritten.
    `average_from`, int: the average is taken over the steps from this one on, and needs ``eta * lam < 1``; n_steps
        gives the last weights.
    `out`, of shape (n_features,), float64: written: the weights.
    """
    n_steps = order.shape[0]
    scale, shrink = 1.0, 1.0 - eta * lam
    n0, n1, n2, sum0, sum1, sum2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    # The inner products of u with the two means.
    negative, positive = 0.0, 0.0
    for j in range(v.shape[0]):
        negative += basis[0, j] * v[j]
        positive += basis[1, j] * v[j]
        out[j] = 0.0
    for t in range(n_steps):
        i = order[t]
        own = 1 if y[i] > 0 else 0
        if t + AHEAD < n_steps:
            prefetch_row(rows, order[t + AHEAD])
        if t >= average_from:
            # A row added now counts in this step's weights, and shrunk in the weights of all later steps.
            left = -np.expm1((n_steps - t) * np.log1p(-eta * lam)) / (eta * lam)
            if t == average_from:
                for j in range(v.shape[0]):
                    out[j] = shrink * left * scale * v[j]
        along = 2.0 * eta * (positive - negative)
        at_row = n0 * products[i, 0] + n1 * products[i, 1] + n2 * products[i, 2] + scale * row_dot(rows, i, v)
        step = eta * factors[i] * (at_row - (positive if own == 1 else negative))
        negative = shrink * negative - along * (gram[1, 0] - gram[0, 0]) - eta * gram[2, 0]
        positive = shrink * positive - along * (gram[1, 1] - gram[0, 1]) - eta * gram[2, 1]
        negative -= step * (products[i, 0] - gram[own, 0])
        positive -= step * (products[i, 1] - gram[own, 1])
        scale *= shrink
        n0 = shrink * n0 + along
        n1 = shrink * n1 - along
        n2 = shrink * n2 - eta
        if own == 1:
            n1 += step
        else:
            n0 += step
        if abs(scale) < SMALLEST_SCALE:
            for j in range(v.shape[0]):
                v[j] *= scale
            scale = 1.0
        row_axpy(rows, i, -step / scale, v)
        if t >= average_from:
            row_axpy(rows, i, -step * left, out)
            sum0, sum1, sum2 = sum0 + n0, sum1 + n1, sum2 + n2
    if average_from < n_steps:
        count = n_steps - average_from
        for j in range(v.shape[0]):
            dense = sum0 * basis[0, j] + sum1 * basis[1, j] + sum2 * basis[2, j]
            out[j] = (out[j] + dense) / count
    else:
        for j in range(v.shape[0]):
            out[j] = scale * v[j] + n0 * basis[0, j] + n1 * basis[1, j] + n2 * basis[2, j]


@kernel(_nrt=True)
def alias_table(weights, accept, other):
    """Build the alias table (Walker, Vose) for sampling with probabilities proportional to the weights.

    `weights`, of shape (n,), float64: at least 0, with a sum above 0.
    `accept`, of shape (n,), float64: written: the probability to accept an index that is drawn uniformly.
    `other`, of shape (n,), int64: written: the index taken if it is not accepted.
    """
    n = weights.shape[0]
    mean = weights.sum() / n
    # Indices below the mean are listed from the left, the others from the right.
    waiting = np.empty(n, dtype=np.int64)
    low, high = 0, n
    for i in range(n):
        accept[i] = weights[i] / mean
        other[i] = i
        if accept[i] < 1.0:
            waiting[low] = i
            low += 1
        else:
            high -= 1
            waiting[high] = i
    while low > 0 and high < n:
        low -= 1
        small, large = waiting[low], waiting[high]
        other[small] = large
        accept[large] -= 1.0 - accept[small]
        if accept[large] < 1.0:
            waiting[low] = large
            low += 1
            high += 1
    # The remaining probabilities are 1 up to rounding.
    for k in range(low):
        accept[waiting[k]] = 1.0
    for k in range(high, n):
        accept[waiting[k]] = 1.0


@kernel
def draw_rows(seed, accept, other, out):
    """Fill out, int64 of shape (n_draws,), with independent draws from the alias table."""
    state = u64(seed)
    n = accept.shape[0]
    for t in range(out.shape[0]):
        state, i = below(state, n)
        state, chance = uniform01(state)
        out[t] = i if chance < accept[i] else other[i]


@kernel
def univariate_epoch(rows, order, y, factors, exponential, eta, lam, w, bias):
    """Take one gradient step per entry of `order` along ``factor * loss(y (w.x + bias)) + lam/2 |w|^2``.

    `rows`: DenseRows or CsrRows.
    `order`: of shape (n_steps,), int64.
    `y`: of shape (n_rows,), int8.
    `factors`: of shape (n_rows,), float64.
    `exponential`, bool: whether the loss of a margin m is ``exp(-m)``; otherwise it is ``(1 - m)^2``.
    `eta` and `lam`: float.
    `w`, of shape (n_features,), float64: updated.
    `bias`: float.
    Returns the bias after the last step.
    """
    scale, shrink = 1.0, 1.0 - eta * lam
    for t in range(order.shape[0]):
        i = order[t]
        margin = y[i] * (scale * row_dot(rows, i, w) + bias)
        slope = -np.exp(-margin) if exponential else -2.0 * (1.0 - margin)
        step = -eta * factors[i] * slope * y[i]
        scale *= shrink
        if abs(scale) < SMALLEST_SCALE:
            w *= scale
            scale = 1.0
        row_axpy(rows, i, step / scale, w)
        bias += step
    w *= scale
    return bias


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
