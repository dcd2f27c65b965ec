"""Steps on the margin-mean objective: zeroth-order steps along a few random directions, and variance-reduced gradient steps.

In a zeroth-order round, all rows share the directions. So the weights stay in the subspace that the directions span, and have a
few coordinates c there. The score of a row is ``scores[i] + moves[i] @ c``, where ``moves[i]`` are its inner products with the
directions. These are computed once per round, however many steps are taken. A variance-reduced step costs one inner product.
"""

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from aucdist.kernels.compiling import kernel
from aucdist.kernels.random import below, fill_normal, stream, u64
from aucdist.kernels.rows import SUM_IN_ANY_ORDER, row_axpy, row_dot


@kernel
def fill_directions(seed, out):
    """Write independent normal vectors into the rows of out, float64 of shape (n_directions, n)."""
    for a in range(out.shape[0]):
        fill_normal(stream(seed, a), out[a])


@register_jitable
def slope_at(margin, move, mu):
    """Return the central difference of the hinge along a direction that changes the margin by `move`, with step mu.

    Margins and moves are numbers in a kernel, and may be arrays outside of one.
    """
    return (np.maximum(0.0, 1.0 - (margin + mu * move)) - np.maximum(0.0, 1.0 - (margin - mu * move))) / (2.0 * mu)


@register_jitable(fastmath=SUM_IN_ANY_ORDER)
def _dot(x, y):
    total = 0.0
    for a in range(x.shape[0]):
        total += x[a] * y[a]
    return total


class RowsInPlane(NamedTuple):
    """The rows of a block in the form that `steps_along` reads.

    Attributes
    ----------
    moves : ndarray of shape (n_rows, n_directions), float64
        Inner products of the rows with the directions.
    scores : ndarray of shape (n_rows,), float64
        The scores at c = 0.
    y : ndarray of shape (n_rows,), int8
        Labels, -1 or +1.
    weight : ndarray of shape (n_rows,), float64
        Weights of the rows, with mean 1.
    pull : ndarray of shape (n_rows,), float64
        The contribution of the margin mean: y times the factor of the class.
    row_slopes : ndarray of shape (n_rows, n_directions) or (0, 0), float64
        The slope of each row's hinge along each direction at c = 0; if it is empty, there is no variance reduction.
    """

    moves: np.ndarray
    scores: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    pull: np.ndarray
    row_slopes: np.ndarray


class Plane(NamedTuple):
    """The subspace of the directions of a round, and the objective on it.

    Attributes
    ----------
    gram : ndarray of shape (n_directions, n_directions), float64
        Inner products of the directions.
    at_start : ndarray of shape (n_directions,), float64
        Inner products of the directions with the weights at c = 0.
    slopes : ndarray of shape (n_directions,), float64
        Slopes of the whole function at c = 0; only read with variance reduction.
    lam1, lam2, mu : float
        The weights of the margin mean and of the loss, and the distance at which the loss is evaluated.
    """

    gram: np.ndarray
    at_start: np.ndarray
    slopes: np.ndarray
    lam1: float
    lam2: float
    mu: float


@kernel(_nrt=True)
def steps_along(rows, plane, before, n_steps, seed, c):
    """Take steps in the subspace of the directions, each by the gradient estimate of one random row.

    With s_a the slope of a row's function along direction a, the estimate changes coordinate a by s_a / n_directions. With
    variance reduction it is the row's estimate at c minus the row's estimate at 0, plus that of all rows at 0. The
    length of a step is 1 / (k + 1) for k = before + 1, before + 2, ...

    Parameters
    ----------
    rows : RowsInPlane
        The rows as points of the subspace.
    plane : Plane
        The subspace.
    before, n_steps : int
        The number of steps that were taken before, and the number of steps to take.
    seed : int
        The seed of the random numbers.
    c : ndarray of shape (n_directions,), float64
        Updated; 0 before the first step.
    """
    (moves, scores, y, weight, pull, row_slopes), (gram, at_start, slopes, lam1, lam2, mu) = rows, plane
    step = np.empty(c.shape[0])
    n_directions = c.shape[0]
    reduced = row_slopes.shape[0] > 0
    state = u64(seed)
    for k in range(n_steps):
        state, i = below(state, scores.shape[0])
        margin = y[i] * (scores[i] + _dot(moves[i], c))
        eta = 1.0 / ((before + k + 2) * n_directions)
        for a in range(n_directions):
            slope = slope_at(margin, y[i] * moves[i, a], mu)
            if reduced:
                slope = slopes[a] + weight[i] * lam2 * (slope - row_slopes[i, a])
            else:
                slope = at_start[a] + weight[i] * (lam2 * slope - lam1 * pull[i] * moves[i, a])
            step[a] = eta * (slope + _dot(gram[a], c))
        for a in range(n_directions):
            c[a] -= step[a]


@kernel
def draw_integers(seed, n, out):
    """Write independent integers, which are uniform on 0, ..., n - 1, into out, int64 of shape (n_steps,)."""
    state = u64(seed)
    for k in range(out.shape[0]):
        state, out[k] = below(state, n)


class MarginRows(NamedTuple):
    """The rows of a block in the form that `svrg_steps` reads.

    Attributes
    ----------
    scores, along : ndarray of shape (n_rows,), float64
        Inner products of the rows with w and with v.
    y : ndarray of shape (n_rows,), int8
        Labels, -1 or +1.
    weight : ndarray of shape (n_rows,), float64
        Weights of the rows, with mean 1.
    first : int
        For rows of a Gram matrix: the position of the block's first row among all rows, so that z holds coefficients of
        rows. -1 for plain rows.
    """

    scores: np.ndarray
    along: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    first: int


@kernel
def svrg_steps(rows, places, drawn, margins, steps, z):
    """Take variance-reduced steps of length 1 / (k + 1), k = before + 1, before + 2, ..., from the weights w to::

        w + (z - n_steps v) / (before + n_steps + 1),    where v is the gradient at w.

    All steps have the same factor at the end, because apart from the loss the function is a quadratic of curvature 1, which
    shrinks the earlier steps. A step adds to z only if the slope of its row's loss differs from the slope at w.

    Parameters
    ----------
    rows : DenseRows or CsrRows
        The rows.
    places : ndarray of shape (n,), int64
        The position in `rows` of the row of each step.
    drawn : ndarray of shape (n,), int64
        The position in the block of the row of each step.
    margins : MarginRows
        The scores and labels of the block's rows.
    steps : tuple (float, int, int)
        `lam2`, `before`, and the number of steps that have been taken from w before, because steps may be taken in several
        calls.
    z : ndarray of shape (n_features,), float64
        The sum of the steps, which is updated. It is 0 before the first step.
    """
    (scores, along, y, weight, first), (lam2, before, done) = margins, steps
    for t in range(drawn.shape[0]):
        i, k = drawn[t], done + t
        current_score = scores[i] + (row_dot(rows, places[t], z) - k * along[i]) / (before + k + 1)
        change = 0
        if y[i] * current_score < 1.0:
            change += 1
        if y[i] * scores[i] < 1.0:
            change -= 1
        if change != 0:
            coef = lam2 * weight[i] * y[i] * change
            if first < 0:
                row_axpy(rows, places[t], coef, z)
            else:
                z[first + i] += coef
