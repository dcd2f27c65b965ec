"""Variance-reduced gradient steps on the margin-mean objective, at the cost of one inner product each."""

from aucdist.kernels.compiling import kernel
from aucdist.kernels.random import below, u64
from aucdist.kernels.rows import row_axpy, row_dot


@kernel
def draw_integers(seed, n, out):
    """Write independent uniform integers from 0, ..., n - 1 into out, int64 of shape (n_steps,)."""
    state = u64(seed)
    for k in range(out.shape[0]):
        state, out[k] = below(state, n)


@kernel
def svrg_steps(rows, places, drawn, own, scores, along, y, weight, lam2, before, done, z):
    """Take variance-reduced steps of length 1 / (k + 1), k = before + 1, before + 2, ..., from the weights w to::

        w + (z - n_steps v) / (before + n_steps + 1),    v the gradient at w.

    All steps have the same factor at the end, because apart from the loss the function is a quadratic of curvature 1, which
    shrinks the earlier steps. A step only adds to z if the slope of its row's loss differs from the slope at w.

    `rows`: DenseRows or CsrRows.
    `places`, of shape (n,), int64: position in `rows` of the row of each step.
    `drawn`, of shape (n,), int64: position in the block of the row of each step.
    `own`, int: for rows of a Gram matrix: the position of the block's first row among all rows, so that z holds
        coefficients of rows. -1 for plain rows.
    `scores` and `along`, of shape (n_rows,), float64: inner products of the rows with w and with v.
    `y`: of shape (n_rows,), int8.
    `weight`, of shape (n_rows,), float64: weights of the rows, with mean 1.
    `lam2`: float.
    `before`: int.
    `done`, int: number of steps from w taken before, as the steps may be taken in parts.
    `z`, of shape (n_features,), float64: updated; 0 before the first step.
    """
    for t in range(drawn.shape[0]):
        i, k = drawn[t], done + t
        here = scores[i] + (row_dot(rows, places[t], z) - k * along[i]) / (before + k + 1)
        change = 0
        if y[i] * here < 1.0:
            change += 1
        if y[i] * scores[i] < 1.0:
            change -= 1
        if change != 0:
            coef = lam2 * weight[i] * y[i] * change
            if own < 0:
                row_axpy(rows, places[t], coef, z)
            else:
                z[own + i] += coef
