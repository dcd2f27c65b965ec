"""First-order steps on the margin-mean objective, at the cost of one inner product each."""

from numba import njit

from aucdist.kernels.random import below, u64
from aucdist.kernels.rows import row_axpy, row_dot


@njit(nogil=True, cache=True)
def svrg_steps(rows, own, scores, along, y, weight, lam2, before, n_steps, seed, z):
    """Take variance-reduced steps of length 1 / (k + 1), k = before + 1, before + 2, ..., from the weights w to::

        w + (z - n_steps v) / (before + n_steps + 1),    v the gradient at w.

    That is so because the function is a square of curvature 1 but for the loss: by then each step has shrunk to that same
    factor. A step only adds to z where its row's loss has another slope than at w.

    Parameters
    ----------
    rows : DenseRows or CsrRows
    own : int
        For rows of inner products with all rows (a Gram matrix): the place of the first of them among all, so that z holds
        the rows' coefficients. -1 for plain rows.
    scores, along : ndarray of shape (n_rows,), float64
        The rows' products with w and with v.
    y : ndarray of shape (n_rows,), int8
    weight : ndarray of shape (n_rows,), float64
        Of the rows, 1 in the mean.
    lam2 : float
    before, n_steps : int
    seed : int
    z : ndarray of shape (n_features,), float64
        0; overwritten.
    """
    state = u64(seed)
    for k in range(n_steps):
        state, i = below(state, scores.shape[0])
        here = scores[i] + (row_dot(rows, i, z) - k * along[i]) / (before + k + 1)
        change = 0
        if y[i] * here < 1.0:
            change += 1
        if y[i] * scores[i] < 1.0:
            change -= 1
        if change != 0:
            coef = lam2 * weight[i] * y[i] * change
            if own < 0:
                row_axpy(rows, i, coef, z)
            else:
                z[own + i] += coef
