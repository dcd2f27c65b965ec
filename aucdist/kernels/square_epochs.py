"""Epochs of stochastic gradient steps for the pairwise square; a step costs the row's non-zeros although it moves all weights.

Each step adds multiples of one row and of a few dense vectors: the class means and the full gradient. So the weights are kept
as ``u = scale * v + coefs @ basis``, where the rows are added to v, and the dense vectors only change the coefficients. The
inner products of u with the means, which each step needs, are updated from the rows' inner products. Only the end of an epoch
makes u dense.
"""

import numpy as np

from aucdist.kernels.compiling import kernel
from aucdist.kernels.pair_rows import prefetch_row
from aucdist.kernels.random import below, u64, uniform01
from aucdist.kernels.rows import row_axpy, row_dot

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
def shuffle(seed, out):
    """Write a random permutation of 0, ..., n - 1 into out, int64 of shape (n,)."""
    state = u64(seed)
    for t in range(out.shape[0]):
        state, place = below(state, t + 1)
        out[t] = out[place]
        out[place] = t
