"""The margin-mean objective and its solvers in plain Python: a function of the weights for each row, and its values."""

import numpy as np
from numba import njit
from scipy.optimize import minimize

from aucdist.engine.blocks import block_seed
from aucdist.kernels.random import below, u64
from aucdist.papers.zovr.solvers import random_directions


def zeroth_order_estimate(function, w, directions, mu):
    """Return the zeroth-order estimate of a gradient from values of the function: equation (6), averaged over unit directions.

    The paper has no factor n_features, and neither have the solvers: with it, steps of length 1 / (k + 1) would be longer than
    the curvature along a direction allows.
    """
    rises = [(function(w + mu * u) - function(w - mu * u)) / (2.0 * mu) for u in directions]
    return np.asarray(rises) @ directions / len(directions)


def problem(n=40, d=4, share=0.25, seed=0):
    r = np.random.default_rng(seed)
    y = np.where(np.arange(n) < share * n, 1, -1)
    order = r.permutation(n)
    return (r.normal(size=(n, d)) + 0.8 * (y[:, None] > 0))[order], y[order]


@njit
def _draw(seed, n, out):
    state = u64(seed)
    for t in range(out.shape[0]):
        state, out[t] = below(state, n)


def drawn(seed, n, n_draws):
    """Return the rows that the kernels draw from a seed."""
    out = np.empty(n_draws, dtype=np.int64)
    _draw(seed, n, out)
    return out.tolist()


def hinge(margin):
    return max(0.0, 1.0 - margin)


def factors(y, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    pos, neg = weight[y > 0].sum(), weight[y < 0].sum()
    return np.where(y > 0, neg / pos, pos / neg)


def row_functions(X, y, lam1, lam2, gram=None):
    """Return F_i of equation (5) for each row, or of (11) with a Gram matrix, whose rows X are then."""
    D = factors(y)
    K = np.eye(X.shape[1]) if gram is None else gram

    def of(i):
        def function(w):
            return 0.5 * w @ K @ w - lam1 * D[i] * y[i] * (X[i] @ w) + lam2 * hinge(y[i] * (X[i] @ w))

        return function

    return [of(i) for i in range(len(y))]


def offset(X, y, lam1, gram=None):
    """Return lam1^2 |c|^2 / 2, by which the solvers' objective lies above the paper's."""
    share = factors(y) * y / len(y)
    c = share @ X if gram is None else share
    return 0.5 * lam1**2 * (c @ c if gram is None else c @ gram @ c)


def objective(w, X, y, lam1, lam2, gram=None):
    """Return the mean of the rows' functions, as the paper has it."""
    return float(np.mean([f(w) for f in row_functions(X, y, lam1, lam2, gram)]))


def zeroth_order_twin(X, y, lam1, lam2, *, seed, n_outer, n_inner, mu, n_directions, reduced, gram=None):
    """Algorithms 3 and 4 by nothing but values of the rows' functions; without reduction zeroth-order SGD."""
    rows = row_functions(X, y, lam1, lam2, gram)
    w = np.zeros(X.shape[1])
    for t in range(1, n_outer + 1):
        u = random_directions((n_directions, len(w)), block_seed(seed, t, 1))
        at_w = [zeroth_order_estimate(f, w, u, mu) for f in rows]
        wk = w
        for k, i in enumerate(drawn(block_seed(seed, t, 0), len(y), n_inner), start=1):
            g, before = zeroth_order_estimate(rows[i], wk, u, mu), (t - 1) * n_inner
            if reduced:
                g, before = g - at_w[i] + np.mean(at_w, axis=0), 0
            wk = wk - g / (before + k + 1)
        w = wk
    return w


def svrg_twin(X, y, lam1, lam2, *, seed, n_outer, n_inner):
    """First-order steps of length 1 / (k + 1), k going on from round to round."""
    D = factors(y)

    def gradient(i, w):
        return w - lam1 * D[i] * y[i] * X[i] - lam2 * (y[i] * (X[i] @ w) < 1) * y[i] * X[i]

    w, k = np.zeros(X.shape[1]), 0
    for t in range(1, n_outer + 1):
        whole = np.mean([gradient(i, w) for i in range(len(y))], axis=0)
        wk = w
        for i in drawn(block_seed(seed, t, 0), len(y), n_inner):
            k += 1
            wk = wk - (gradient(i, wk) - gradient(i, w) + whole) / (k + 1)
        w = wk
    return w


def minimum(X, y, lam1, lam2):
    """Return the least value of (5) by its dual, a quadratic programme in a box."""
    n, c = len(y), (factors(y) * y) @ X / len(y)
    Z = lam2 * y[:, None] * X / n

    def minus_dual(a):
        w = lam1 * c + a @ Z
        return 0.5 * w @ w - lam2 * a.mean(), Z @ w - lam2 / n

    optimum = minimize(
        minus_dual, np.full(n, 0.5), jac=True, bounds=[(0, 1)] * n, method="L-BFGS-B",
        options={"maxiter": 20000, "maxfun": 20000, "ftol": 1e-16, "gtol": 1e-12},
    )  # fmt: skip
    return -optimum.fun
