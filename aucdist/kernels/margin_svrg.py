"""First-order steps on the margin-mean objective, at the cost of one inner product each."""

from numba import njit

from aucdist.kernels.random import below, u64
from aucdist.kernels.rows import row_axpy, row_dot


@njit(nogil=True, cache=True)
def draw(seed, n, out):
    """Write independent integers from 0, ..., n - 1 into out, int64 of shape (n_steps,)."""
    state = u64(seed)
    for k in range(out.shape[0]):
        state, out[k] = below(state, n)


@njit(nogil=True, cache=True)
def svrg_steps(rows, places, drawn, own, scores, along, y, weight, lam2, before, done, z):
    """Take variance-reduced steps of length 1 / (k + 1), k = before + 1, before + 2, ..., from the weights w to::

        w + (z - n_steps v) / (before + n_steps + 1),    v the gradient at w.

    That is so because the function is a square of curvature 1 but for the loss: by then each step has shrunk to that same
    factor. A step only adds to z where its row's loss has another slope than at w.

    Parameters
    ----------
    rows : DenseRows or CsrRows
    places : ndarray of shape (n,), int64
        Where in `rows` the row of each step is.
    drawn : ndarray of shape (n,), int64
        Which row of the block that is.
    own : int
        For rows of inner products with all rows (a Gram matrix): the place of the first of them among all, so that z holds
        the rows' coefficients. -1 for plain rows.
    scores, along : ndarray of shape (n_rows,), float64
        The rows' products with w and with v.
    y : ndarray of shape (n_rows,), int8
    weight : ndarray of shape (n_rows,), float64
        Of the rows, 1 in the mean.
    lam2 : float
    before : int
    done : int
        Steps from w taken already; the steps may come in parts.
    z : ndarray of shape (n_features,), float64
        0 at first; changed.
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
