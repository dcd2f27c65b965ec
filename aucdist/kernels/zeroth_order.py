"""Zeroth-order steps, which only use values of the loss, along a few random directions.

Within a round all rows share the directions. So the weights stay in the subspace that these span and have a few coordinates c
there. A row's score is ``scores[i] + moves[i] @ c``, where ``moves[i]`` are its inner products with the directions. They are
computed once per round, however many steps are taken.
"""

import numpy as np
from numba.extending import register_jitable

from aucdist.kernels.compiling import kernel
from aucdist.kernels.random import below, fill_normal, stream, u64
from aucdist.kernels.rows import SUM_IN_ANY_ORDER


@kernel
def unit_vectors(seed, out):
    """Write independent uniform points of the unit sphere into the rows of out, float64 of shape (n_directions, n)."""
    for a in range(out.shape[0]):
        fill_normal(stream(seed, a), out[a])
        total = 0.0
        for j in range(out.shape[1]):
            total += out[a, j] * out[a, j]
        for j in range(out.shape[1]):
            out[a, j] /= np.sqrt(total)


@kernel
def slope_at(margin, move, mu):
    """Return the central difference of the hinge along a direction that changes the margin by `move`, with step mu."""
    return (max(0.0, 1.0 - (margin + mu * move)) - max(0.0, 1.0 - (margin - mu * move))) / (2.0 * mu)


@kernel
def slopes_along(moves, scores, y, mu, out):
    """Write the central difference of each row's hinge along each direction into out, float64 of shape (n_rows, n_directions).

    `moves`: of shape (n_rows, n_directions), float64.
    `scores`: of shape (n_rows,), float64.
    `y`, of shape (n_rows,), int8: labels, -1 or +1.
    `mu`: float.
    """
    for i in range(scores.shape[0]):
        for a in range(out.shape[1]):
            out[i, a] = slope_at(y[i] * scores[i], y[i] * moves[i, a], mu)


@register_jitable(fastmath=SUM_IN_ANY_ORDER)
def _dot(x, y):
    total = 0.0
    for a in range(x.shape[0]):
        total += x[a] * y[a]
    return total


@kernel
def steps_along(moves, scores, y, weight, pull, lam2, mu, gram, at_start, slopes, own, before, n_steps, seed, step, c):
    """Take steps in the subspace of the directions, each by the gradient estimate of one random row.

    With s_a the slope of a row's function along direction a, the estimate changes coordinate a by s_a / n_directions. With
    `own` (variance reduction) it is the row's estimate at c minus the row's estimate at 0, plus that of all rows at 0. The
    length of a step is 1 / (k + 1) for k = before + 1, before + 2, ...

    `moves`, `scores`, `y` and `mu`: as in `slopes_along`.
    `weight`, of shape (n_rows,), float64: weights of the rows, with mean 1.
    `pull`, of shape (n_rows,), float64: the contribution of the margin mean: y times lam1 times the factor of the
        class.
    `lam2`: float.
    `gram`, of shape (n_directions, n_directions), float64: inner products of the directions.
    `at_start`, of shape (n_directions,), float64: inner products of the directions with the weights at c = 0.
    `slopes`, of shape (n_directions,), float64: slopes of the whole function at c = 0; only read with variance
        reduction.
    `own`, of shape (n_rows, n_directions) or (0, 0), float64: result of `slopes_along`; if it is empty, there is no
        variance reduction.
    `before` and `n_steps`: int.
    `seed`: int.
    `step`, of shape (n_directions,), float64: workspace.
    `c`, of shape (n_directions,), float64: updated; 0 before the first step.
    """
    n_directions = c.shape[0]
    reduced = own.shape[0] > 0
    state = u64(seed)
    for k in range(n_steps):
        state, i = below(state, scores.shape[0])
        margin = y[i] * (scores[i] + _dot(moves[i], c))
        eta = 1.0 / ((before + k + 2) * n_directions)
        for a in range(n_directions):
            slope = slope_at(margin, y[i] * moves[i, a], mu)
            if reduced:
                slope = slopes[a] + weight[i] * lam2 * (slope - own[i, a])
            else:
                slope = at_start[a] + weight[i] * (lam2 * slope - pull[i] * moves[i, a])
            step[a] = eta * (slope + _dot(gram[a], c))
        for a in range(n_directions):
            c[a] -= step[a]
