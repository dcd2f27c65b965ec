"""Slow plain-Python twins of the hinge of single rows and its solvers, and its minimum by other people's programs."""

import warnings

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, LinearSVC

from aucdist.kernels.random import below


def exact_problem():
    """Return X and y of 32 rows that no sum over rows or features rounds differently in another order.

    Values are powers of two, rows share out 1/32 each, and there are no more than two terms wherever weights are in the sum.
    """
    r = np.random.default_rng(2)
    y = np.where(r.random(32) < 0.4, 1, -1)
    return r.choice([-0.5, 0.0, 0.5, 1.0], (32, 2)) * np.where(r.random((32, 2)) < 0.8, y[:, None], 1.0), y


def hinge_value(w, X, y, lam, penalty, weight=None, b=0.0):
    """Return the weighted mean of max(0, 1 - y (X w + b)) plus the penalty of w."""
    loss = np.average(np.maximum(0.0, 1.0 - y * (X @ w + b)), weights=weight)
    return loss + lam * (np.abs(w).sum() if penalty == "l1" else w @ w)


def l1_minimum(X, y, lam, weight=None, *, intercept=False):
    """Return the minimum with an L1 penalty, and weights with it (the intercept last), by a linear programme."""
    n, d = X.shape
    m = np.ones(n) if weight is None else weight
    # The variables: positive and negative parts of w, b, and the losses.
    cost = np.concatenate([np.full(2 * d, lam), [0.0], m / m.sum()])
    rows = sp.hstack([-y[:, None] * X, y[:, None] * X, -y[:, None] * np.ones((n, 1)), -sp.eye(n)])
    free = (None, None) if intercept else (0.0, 0.0)
    optimum = linprog(
        cost, rows.tocsr(), -np.ones(n), bounds=[(0, None)] * (2 * d) + [free] + [(0, None)] * n, method="highs"
    )
    return optimum.fun, np.append(optimum.x[:d] - optimum.x[d : 2 * d], optimum.x[2 * d])


def l2_minimum(X, y, lam, weight=None, *, intercept=False):
    """Return the minimum with an L2 penalty: by libsvm with a free intercept, by liblinear without one."""
    m = np.ones(len(y)) if weight is None else weight
    C = 0.5 / (lam * m.sum())
    if intercept:
        svc = SVC(kernel="linear", C=C, tol=1e-12)
    else:
        svc = LinearSVC(loss="hinge", C=C, fit_intercept=False, tol=1e-9, max_iter=100_000, random_state=0)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        svc.fit(X, y, sample_weight=m)
    return hinge_value(svc.coef_[0], X, y, lam, "l2", m, svc.intercept_ if intercept else 0.0)


def dual_sweep(X, y, uppers, duals, w, order):
    """Return duals and w after one step of dual coordinate descent for each row of the order."""
    w, duals = w.copy(), duals.copy()
    for i in order:
        if X[i].any():
            new = min(max(duals[i] - (y[i] * (X[i] @ w) - 1.0) / (X[i] @ X[i]), 0.0), uppers[i])
            w = w + (new - duals[i]) * y[i] * X[i]
            duals[i] = new
    return duals, w
    return duals, w


def shuffled(seed, order):
    """Return the order after a Fisher-Yates shuffle with the kernel's draws, and the generator's state."""
    state, order = np.uint64(seed), list(order)
    for t in range(len(order) - 1, 0, -1):
        state, place = below(np.uint64(state), t + 1)
        order[t], order[place] = order[place], order[t]
    return order, state


def shrinking_sweeps(X, y, uppers, duals, state, n_steps, constant=0.0):
    """Return n_active, high, low, the steps taken, the order, duals and w after sweeps that leave out settled rows."""
    Z = np.column_stack([X, np.full(len(y), constant)])
    w, order, n_active, taken = Z.T @ (duals * y), list(range(len(y))), len(y), 0
    high, low = np.inf, -np.inf
    while taken < n_steps and n_active:
        order[:n_active], state = shuffled(state, order[:n_active])
        moving, t = [], 0
        while t < n_active:
            i, taken = order[t], taken + 1
            slope = y[i] * (Z[i] @ w) - 1.0
            at_zero, at_upper = duals[i] == 0.0, duals[i] == uppers[i]
            if (at_zero and slope > high) or (at_upper and slope < low):
                n_active -= 1
                order[t], order[n_active] = order[n_active], order[t]
                continue
            t += 1
            if not ((at_zero and slope >= 0.0) or (at_upper and slope <= 0.0)):
                moving.append(slope)
                new = min(max(duals[i] - slope / (Z[i] @ Z[i]), 0.0), uppers[i])
                w, duals[i] = w + (new - duals[i]) * y[i] * Z[i], new
        if not any(moving):
            break
        high = max((s for s in moving if s > 0.0), default=np.inf)
        low = min((s for s in moving if s < 0.0), default=-np.inf)
    return n_active, high, low, taken, order, duals, w


def soft(value, width):
    """Return the value moved by the width towards 0, and not beyond."""
    return np.sign(value) * np.maximum(np.abs(value) - width, 0.0)


def scd_sweep(X, y, shares, w, seed, penalty, lam, eta, eta_free, intercept=False):
    """Return w after a sweep of Non-smooth SCD from fresh margins in every step."""
    Z = np.column_stack([X, np.ones(len(y))]) if intercept else X
    w, state = w.copy(), np.uint64(seed)
    for _ in range(len(w)):
        state, j = below(np.uint64(state), len(w))
        active = y * (Z @ w) < 1.0
        g = -np.sum((shares * y * Z[:, j])[active])
        if intercept and j == X.shape[1]:
            w[j] -= eta_free * g / 2
        elif penalty == "l1":
            w[j] = soft(w[j] - eta * g / 2, eta * lam / 2)
        else:
            w[j] = (2 * w[j] - eta * g) / (2 * eta * lam + 2)
    return w


def pegasos_steps(X, y, factors, w, b, seed, n_steps, lam, time, intercept=False):
    """Return w and b after steps of Pegasos."""
    state = np.uint64(seed)
    for t in range(time + 1, time + n_steps + 1):
        state, i = below(np.uint64(state), len(y))
        violated = y[i] * (X[i] @ w + b) < 1.0
        w = (1.0 - 1.0 / t) * w
        if violated:
            w = w + factors[i] * y[i] * X[i] / (2.0 * lam * t)
            b = b + intercept * factors[i] * y[i] / (2.0 * np.sqrt(t))
        w = w * min(1.0, 1.0 / np.sqrt(2.0 * lam) / max(np.linalg.norm(w), 1e-300))
    return w, b


def subgradient(w, b, X, y, shares):
    """Return the subgradient of the loss, the derivative by b last."""
    active = np.where(y * (X @ w + b) < 1.0, shares, 0.0)
    return -np.append(X.T @ (active * y), active @ y)


def onto_ball(w, radius):
    """Return the projection onto the L1 ball, by sorting."""
    if np.abs(w).sum() <= radius:
        return w
    sizes = np.sort(np.abs(w))[::-1]
    widths = (np.cumsum(sizes) - radius) / np.arange(1, len(w) + 1)
    return soft(w, widths[np.flatnonzero(sizes > widths)[-1]])
