"""Epochs of stochastic gradient steps for the pairwise square and the univariate losses. A step costs the nonzeros of its row.

A step of `square_epoch` adds multiples of one row and of a few dense vectors: the class means and the full gradient. So the
weights are kept as ``u = scale * v + coefs @ basis``. Rows are added to v, and the dense vectors only change the coefficients.
The inner products of u with the means, which each step needs, are updated from the inner products of the rows. u becomes dense
only at the end of an epoch.

The one-pass steps pair a new row x with label y with all earlier rows of the other class by their mean c and covariance S::

    w <- w - eta (lam w + 2 weight ((w.(x - c) - y) (x - c) + S w))

Then x enters the statistics of its own class. Class 0 is -1, class 1 is +1.
"""

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from aucdist.kernels.compiling import kernel
from aucdist.kernels.random import below, u64
from aucdist.kernels.rows import CsrRows, by_kind, is_rows, prefetch_row, row_axpy, row_dot

PREFETCH_STEPS = 4
"""The number of steps by which a row is fetched early from memory."""

SMALLEST_SCALE = 1e-100
"""A smaller scale is multiplied into v, long before it would underflow."""


@register_jitable
def _lift(value, row, out):
    for c in range(out.shape[0]):
        out[c] += value * row[c]


@register_jitable
def _dot(x, y):
    total = 0.0
    for c in range(x.shape[0]):
        total += x[c] * y[c]
    return total


class SquareTerms(NamedTuple):
    """The settings of `square_epoch`.

    Attributes
    ----------
    factors : ndarray of shape (n_rows,), float64
        Factors of the rows' own terms.
    products : ndarray of shape (n_rows, 3), float64
        Inner products of the rows with the basis vectors.
    basis : ndarray of shape (3, n_features), float64
        The mean of the negatives, the mean of the positives, and g.
    gram : ndarray of shape (3, 3), float64
        Inner products of the basis vectors with each other.
    eta, lam : float
        The step length and the regularisation strength.
    average_from : int
        The first step of the average, which needs ``eta * lam < 1``. With n_steps, the result is the last weights.
    """

    factors: np.ndarray
    products: np.ndarray
    basis: np.ndarray
    gram: np.ndarray
    eta: float
    lam: float
    average_from: int


@kernel
def square_epoch(rows, order, y, terms, v, out):
    """Take one step per entry of `order`, and write the last weights, or their average over the last steps, into out.

    With x the row minus the mean of its class, c the positive mean minus the negative mean, and g the last vector of the basis::

        u <- u - eta (lam u + 2 (c.u) c + g + factor (x.u) x)

    Parameters
    ----------
    rows : DenseRows or CsrRows
        The rows.
    order : ndarray of shape (n_steps,), int64
        The row of each step.
    y : ndarray of shape (n_rows,), int8
        Labels, -1 or +1.
    terms : SquareTerms
        The settings of the steps.
    v : ndarray of shape (n_features,), float64
        The weights to start from, which are overwritten.
    out : ndarray of shape (n_features,), float64
        Output: the weights.
    """
    factors, products, basis, gram, eta, lam, average_from = terms
    n_steps = order.shape[0]
    scale, shrink = 1.0, 1.0 - eta * lam
    n0, n1, n2, sum0, sum1, sum2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    # These are the inner products of u with both class means.
    negative, positive = 0.0, 0.0
    for j in range(v.shape[0]):
        negative += basis[0, j] * v[j]
        positive += basis[1, j] * v[j]
        out[j] = 0.0
    for t in range(n_steps):
        i = order[t]
        row_class = 1 if y[i] > 0 else 0
        if t + PREFETCH_STEPS < n_steps:
            prefetch_row(rows, order[t + PREFETCH_STEPS])
        if t >= average_from:
            # A row that is added now counts in full in the weights of this step, and shrinks with each later step.
            remaining = -np.expm1((n_steps - t) * np.log1p(-eta * lam)) / (eta * lam)
            if t == average_from:
                for j in range(v.shape[0]):
                    out[j] = shrink * remaining * scale * v[j]
        along = 2.0 * eta * (positive - negative)
        at_row = n0 * products[i, 0] + n1 * products[i, 1] + n2 * products[i, 2] + scale * row_dot(rows, i, v)
        step = eta * factors[i] * (at_row - (positive if row_class == 1 else negative))
        negative = shrink * negative - along * (gram[1, 0] - gram[0, 0]) - eta * gram[2, 0]
        positive = shrink * positive - along * (gram[1, 1] - gram[0, 1]) - eta * gram[2, 1]
        negative -= step * (products[i, 0] - gram[row_class, 0])
        positive -= step * (products[i, 1] - gram[row_class, 1])
        scale *= shrink
        n0 = shrink * n0 + along
        n1 = shrink * n1 - along
        n2 = shrink * n2 - eta
        if row_class == 1:
            n1 += step
        else:
            n0 += step
        if abs(scale) < SMALLEST_SCALE:
            for j in range(v.shape[0]):
                v[j] *= scale
            scale = 1.0
        row_axpy(rows, i, -step / scale, v)
        if t >= average_from:
            row_axpy(rows, i, -step * remaining, out)
            sum0, sum1, sum2 = sum0 + n0, sum1 + n1, sum2 + n2
    if average_from < n_steps:
        count = n_steps - average_from
        for j in range(v.shape[0]):
            dense = sum0 * basis[0, j] + sum1 * basis[1, j] + sum2 * basis[2, j]
            out[j] = (out[j] + dense) / count
    else:
        for j in range(v.shape[0]):
            out[j] = scale * v[j] + n0 * basis[0, j] + n1 * basis[1, j] + n2 * basis[2, j]


class UnivariateSteps(NamedTuple):
    """The settings of `univariate_epoch`: whether the loss of a margin m is ``exp(-m)`` or ``(1 - m)^2``, and step lengths."""

    exponential: bool
    eta: float
    lam: float


@kernel
def univariate_epoch(rows, order, y, factors, steps, w):
    """Take one gradient step per entry of `order` along ``factor * loss(y (w.x + bias)) + lam/2 |w|^2``.

    Parameters
    ----------
    rows : DenseRows or CsrRows
        The rows.
    order : ndarray of shape (n_steps,), int64
        The row of each step.
    y : ndarray of shape (n_rows,), int8
        Labels, -1 or +1.
    factors : ndarray of shape (n_rows,), float64
        The factor of each row's loss.
    steps : UnivariateSteps
        The settings of the steps.
    w : ndarray of shape (n_features + 1,), float64
        Updated; the last entry is the bias.
    """
    exponential, eta, lam = steps
    scale, shrink, last = 1.0, 1.0 - eta * lam, w.shape[0] - 1
    bias, w[last] = w[last], 0.0
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
    w[last] = bias


class FullStatistics(NamedTuple):
    """The rows so far of each class, the negative one first.

    Attributes
    ----------
    counts : ndarray of shape (2,), float64
        The total weight of the rows.
    sums : ndarray of shape (2, n_features), float64
        The weighted sums of the rows.
    squares : ndarray of shape (2, n_features, n_features), float64
        The weighted sums of the outer products of the rows.
    """

    counts: np.ndarray
    sums: np.ndarray
    squares: np.ndarray


@kernel(_nrt=True)
def opauc_full(data, order, rates, statistics, w):
    """Take one step per row with full second moments. A step costs n_features^2 operations.

    Parameters
    ----------
    data : LabelledRows
        The rows.
    order : ndarray of shape (n_steps,), int64
        The row of each step.
    rates : tuple (float, float)
        eta and lam.
    statistics : FullStatistics
        The statistics of the rows so far, which are updated.
    w : ndarray of shape (n_features,), float64
        The weights, which are updated.
    """
    (rows, y, weights), (eta, lam), (counts, sums, squares) = data, rates, statistics
    d = w.shape[0]
    x, spread_w = np.zeros(d), np.zeros(d)
    for t in range(order.shape[0]):
        i = order[t]
        row_class = 1 if y[i] > 0 else 0
        other = 1 - row_class
        row_axpy(rows, i, 1.0, x)
        if counts[other] > 0.0:
            spread_w[:] = 0.0
            for j in range(d):
                if w[j] != 0.0:
                    for k in range(d):
                        spread_w[k] += squares[other, j, k] * w[j]
            mean_w = _dot(sums[other], w) / counts[other]
            miss = row_dot(rows, i, w) - mean_w - y[i]
            a = 2.0 * eta * weights[i]
            for j in range(d):
                # S w is the product of w with the second moments minus that with the mean, so c has the coefficient mean_w +
                # miss.
                row_part = miss * x[j] + (spread_w[j] - sums[other, j] * (mean_w + miss)) / counts[other]
                w[j] = (1.0 - eta * lam) * w[j] - a * row_part
        counts[row_class] += weights[i]
        for j in range(d):
            if x[j] != 0.0:
                sums[row_class, j] += weights[i] * x[j]
                row_axpy(rows, i, weights[i] * x[j], squares[row_class, j])
        row_axpy(rows, i, -1.0, x)


@register_jitable
def _csr_entries(rows, i, features, values):
    start = rows.offsets[i]
    n = rows.offsets[i + 1] - start
    for k in range(n):
        features[k], values[k] = rows.indices[start + k], rows.values[start + k]
    return n


@register_jitable
def _dense_entries(rows, i, features, values):
    for k in range(values.shape[0]):
        features[k], values[k] = k, rows.values[i, k]
    return values.shape[0]


@by_kind()
def row_entries(rows, i, features, values):
    """Write the features of row i, int64, and their values, float64, into arrays that are long enough. Return their number."""
    return _csr_entries if is_rows(rows, CsrRows) else _dense_entries


class SketchedStatistics(NamedTuple):
    """Sketches of the rows so far of each class. The m numbers of the negative class come first.

    Attributes
    ----------
    draws : ndarray of shape (1,), uint64
        The state of the random numbers.
    sketch : ndarray of shape (n_features, 2 m), float64
        The sums of ``x r'``.
    totals : ndarray of shape (2 m,), float64
        The sums of r.
    gram : ndarray of shape (2 m, 2 m), float64
        ``sketch.T @ sketch``.
    """

    draws: np.ndarray
    sketch: np.ndarray
    totals: np.ndarray
    gram: np.ndarray


@kernel(_nrt=True)
def opauc_sketched(data, lengths, order, rates, statistics, w):
    """Take one step per row with sketched second moments. A step costs m operations per nonzero of the row, and m^2 more.

    Every row has a vector r of m numbers, which is drawn once: its weight, and then m - 1 times plus or minus the root of the
    weight. The sketch has the sums of ``x r'`` and of r over the rows so far, so its first column is the sum of the rows. The
    covariance of the sketch is the true covariance in expectation. The weights are kept as ``scale * v + sketch @ places``.

    Parameters
    ----------
    data
        As in `opauc_full`.
    lengths : ndarray of shape (n_rows,), float64
        The rows' squared Euclidean lengths.
    order, rates
        As in `opauc_full`.
    statistics : SketchedStatistics
        Updated.
    w
        As in `opauc_full`.
    """
    (rows, y, weights), (eta, lam), (draws, sketch, totals, gram) = data, rates, statistics
    m = totals.shape[0] // 2
    rank, scale, shrink, state = m - 1.0, 1.0, 1.0 - eta * lam, u64(draws[0])
    places, with_v, products = np.zeros(2 * m), np.zeros(2 * m), np.zeros(2 * m)
    r, at = np.empty(m), np.empty(m)
    features, values = np.empty(w.shape[0], np.int64), np.empty(w.shape[0])
    for j in range(w.shape[0]):
        _lift(w[j], sketch[j], with_v)
    for t in range(order.shape[0]):
        i = order[t]
        class_start, other_start = (m, 0) if y[i] > 0 else (0, m)
        n = row_entries(rows, i, features, values)
        products[:] = 0.0
        for k in range(n):
            _lift(values[k], sketch[features[k]], products)
        along_v, push = row_dot(rows, i, w), 0.0
        if totals[other_start] > 0.0:
            count, a = totals[other_start], 2.0 * eta * weights[i]
            for c in range(m):
                at[c] = scale * with_v[other_start + c] + _dot(gram[other_start + c], places)
            mean_w = at[0] / count
            miss = scale * along_v + _dot(products, places) - mean_w - y[i]
            scale *= shrink
            places *= shrink
            back = 0.0
            for c in range(1, m):
                centred = at[c] - totals[other_start + c] * mean_w
                places[other_start + c] -= a * centred / (rank * count)
                back += centred * totals[other_start + c]
            places[other_start] += a * (miss + back / (rank * count)) / count
            if abs(scale) < SMALLEST_SCALE:
                w *= scale
                with_v *= scale
                along_v, scale = along_v * scale, 1.0
            push = a * miss
        # The row enters the sketch of its class. This must not change the weights, so its effect is subtracted from v.
        r[0] = weights[i]
        for c in range(1, m):
            state, sign = below(state, 2)
            r[c] = np.sqrt(weights[i]) * (2.0 * sign - 1.0)
        push = -(push + _dot(r, places[class_start : class_start + m])) / scale
        row_axpy(rows, i, push, w)
        along_v += push * lengths[i]
        _lift(push, products, with_v)
        _lift(1.0, r, totals[class_start : class_start + m])
        _lift(along_v, r, with_v[class_start : class_start + m])
        for k in range(n):
            _lift(values[k], r, sketch[features[k], class_start : class_start + m])
        for c in range(m):
            _lift(r[c], products, gram[class_start + c])
            _lift(lengths[i] * r[c], r, gram[class_start + c, class_start : class_start + m])
            for b in range(2 * m):
                gram[b, class_start + c] += r[c] * products[b]
    draws[0] = state
    for j in range(w.shape[0]):
        w[j] = scale * w[j] + _dot(sketch[j], places)
