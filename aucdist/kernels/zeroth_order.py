"""Steps by function values alone: along a few random directions, a loss at a margin a little above and a little below.

Within a round all rows share the directions. So the weights stay in the plane that these span, a point of it is a few
coordinates c, and a row's score there is ``scores[i] + moves[i] @ c``, where ``moves[i]`` are its inner products with the
directions: one for each direction and round, however many steps are taken.
"""

import numpy as np
from numba import njit
from numba.extending import register_jitable

from aucdist.kernels.random import below, fill_normal, stream, u64
from aucdist.kernels.rows import SUM_IN_ANY_ORDER

HINGE, ZERO_ONE = 0, 1
"""The losses of a margin m: max(0, 1 - m), and 1 where m <= 0. The second has no gradient to descend along."""


@njit(nogil=True, cache=True)
def loss_at(loss, margin):
    """Return the loss at a margin."""
    if loss == HINGE:
        return max(0.0, 1.0 - margin)
    return 1.0 if margin <= 0.0 else 0.0


@njit(nogil=True, cache=True)
def losses_at(loss, margins, out):
    """Write the loss at each margin into out, float64 of the same shape (n,)."""
    for i in range(out.shape[0]):
        out[i] = loss_at(loss, margins[i])


@njit(nogil=True, cache=True)
def unit_vectors(seed, out):
    """Write independent vectors, uniform on the unit sphere, into the rows of out, float64 of shape (n_directions, n)."""
    for a in range(out.shape[0]):
        fill_normal(stream(seed, a), out[a])
        total = 0.0
        for j in range(out.shape[1]):
            total += out[a, j] * out[a, j]
        for j in range(out.shape[1]):
            out[a, j] /= np.sqrt(total)


@njit(nogil=True, cache=True)
def slope_at(loss, margin, move, mu):
    """Return the loss's slope along a direction that moves the margin so far, by values at mu times it on either side."""
    return (loss_at(loss, margin + mu * move) - loss_at(loss, margin - mu * move)) / (2.0 * mu)


@njit(nogil=True, cache=True)
def slopes_along(loss, moves, scores, y, mu, out):
    """Write the slope of each row's loss along each direction into out, float64 of shape (n_rows, n_directions).

    Parameters
    ----------
    loss : int
        `HINGE` or `ZERO_ONE`.
    moves : ndarray of shape (n_rows, n_directions), float64
    scores : ndarray of shape (n_rows,), float64
    y : ndarray of shape (n_rows,), int8
        Labels, -1 or +1.
    mu : float
    """
    for i in range(scores.shape[0]):
        for a in range(out.shape[1]):
            out[i, a] = slope_at(loss, y[i] * scores[i], y[i] * moves[i, a], mu)


@register_jitable(fastmath=SUM_IN_ANY_ORDER)
def _dot(x, y):
    total = 0.0
    for a in range(x.shape[0]):
        total += x[a] * y[a]
    return total


@njit(nogil=True, cache=True)
def steps_along(
    loss, moves, scores, y, weight, pull, lam2, mu, gram, at_start, slopes, own, before, n_steps, seed, step, c
):
    """Take steps in the plane of the directions, each by the estimate at one row drawn at random.

    With s_a the slope of a row's function along direction a, the estimate moves coordinate a by s_a / n_directions. With `own`
    it is the estimate at c less the row's own at 0, plus that of all rows at 0. The step's length is 1 / (k + 1) for
    k = before + 1, before + 2, ...

    Parameters
    ----------
    loss, moves, scores, y, mu
        As in `slopes_along`.
    weight : ndarray of shape (n_rows,), float64
        Of the rows, 1 in the mean.
    pull : ndarray of shape (n_rows,), float64
        What the margin mean adds: y times lam1 times the class's factor.
    lam2 : float
    gram : ndarray of shape (n_directions, n_directions), float64
        Inner products of the directions.
    at_start : ndarray of shape (n_directions,), float64
        Inner products of the directions with the weights at c = 0.
    slopes : ndarray of shape (n_directions,), float64
        Of the whole function at c = 0; only read with `own`.
    own : ndarray of shape (n_rows, n_directions) or (0, 0), float64
        From `slopes_along`; without entries the estimates are plain ones.
    before, n_steps : int
    seed : int
    step : ndarray of shape (n_directions,), float64
        Room to work in.
    c : ndarray of shape (n_directions,), float64
        Where to begin, 0; overwritten.
    """
    n_directions = c.shape[0]
    reduced = own.shape[0] > 0
    state = u64(seed)
    for k in range(n_steps):
        state, i = below(state, scores.shape[0])
        margin = y[i] * (scores[i] + _dot(moves[i], c))
        eta = 1.0 / ((before + k + 2) * n_directions)
        for a in range(n_directions):
            slope = slope_at(loss, margin, y[i] * moves[i, a], mu)
            if reduced:
                slope = slopes[a] + weight[i] * lam2 * (slope - own[i, a])
            else:
                slope = at_start[a] + weight[i] * (lam2 * slope - pull[i] * moves[i, a])
            step[a] = eta * (slope + _dot(gram[a], c))
        for a in range(n_directions):
            c[a] -= step[a]
