"""Slow plain-Python twins of the pairwise square and its solvers, by the formulas over pairs and rows."""

import numpy as np
from support.oracle import pair_differences

from aucdist.kernels.random import below


def problem(n_pos=9, n_neg=23, d=4, seed=0, shift=0.7, weighted=False):
    """Return X, of float32 values with some zeros, y, and weights or ones."""
    r = np.random.default_rng(seed)
    y = np.repeat([1, -1], [n_pos, n_neg])
    X = (r.normal(size=(len(y), d)) + shift * (y[:, None] > 0)) * (r.random((len(y), d)) < 0.7)
    order = r.permutation(len(y))
    X = X.astype(np.float32).astype(np.float64)
    return X[order], y[order], r.uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))


def pair_weights(y, weight):
    """Return the weights of all pairs, in the order of `pair_differences`, adding up to 1."""
    w = (weight[y > 0][:, None] * weight[y < 0][None, :]).ravel()
    return w / w.sum()


def square_value(w, X, y, lam, weight):
    """Return lam/2 |w|^2 + the mean over all pairs of (1 - w.z)^2."""
    miss = 1.0 - pair_differences(X, y) @ w
    return 0.5 * lam * w @ w + pair_weights(y, weight) @ miss**2


def square_gradient(w, X, y, lam, weight):
    """Return its gradient."""
    Z = pair_differences(X, y)
    return lam * w - 2.0 * Z.T @ (pair_weights(y, weight) * (1.0 - Z @ w))


def square_minimiser(X, y, lam, weight):
    """Return its minimiser, as least squares over all pairs."""
    Z, p = pair_differences(X, y), pair_weights(y, weight)
    rows = np.vstack([Z * np.sqrt(p)[:, None], np.sqrt(lam / 2.0) * np.eye(X.shape[1])])
    return np.linalg.lstsq(rows, np.concatenate([np.sqrt(p), np.zeros(X.shape[1])]), rcond=None)[0]


def class_means(X, y, weight):
    """Return the means of the negatives and of the positives, and what they weigh."""
    mass = [weight[y == label].sum() for label in (-1, 1)]
    return np.stack([weight[y == k] @ X[y == k] / m for k, m in zip((-1, 1), mass, strict=True)]), mass


def square_epoch(X, y, means, order, factors, g, eta, lam, u):
    """Return the weights after every step of `kernels.square_epochs.square_epoch`."""
    c, after = means[1] - means[0], []
    for i in order:
        x = X[i] - means[int(y[i] > 0)]
        u = u - eta * (lam * u + 2.0 * (c @ u) * c + g + factors[i] * (x @ u) * x)
        after.append(u)
    return np.array(after)


def tpauc_steps(X, y, weight, order, eta, lam, factor=None):
    """Return TPAUC's weights after one epoch from zero, by the gradients of the rows' own parts."""
    means, mass = class_means(X, y, weight)
    c, w = means[1] - means[0], np.zeros(X.shape[1])
    for i in order:
        k = int(y[i] > 0)
        r = weight[i] / mass[k] * (len(y) if factor is None else 1.0)
        x = X[i] - means[k]
        w = w - eta * (lam * w + 2.0 * r * (w @ x) * x + 2.0 * (w @ c) * c - 2.0 * c)
    return w


def opauc_steps(X, y, weight, order, eta, lam, rank=None, seed=0):
    """Return OPAUC's weights after one epoch from zero, from the list of all rows seen."""
    w, seen, state = np.zeros(X.shape[1]), {1: [], -1: []}, np.uint64(seed)
    for i in order:
        others = seen[-y[i]]
        if others:
            rows, mass = X[[j for j, _ in others]], weight[[j for j, _ in others]]
            c = mass @ rows / mass.sum()
            centred = (rows - c) * np.sqrt(mass)[:, None]
            if rank is None:
                S = centred.T @ centred / mass.sum()
            else:
                sketch = centred.T @ np.array([signs for _, signs in others])
                S = sketch @ sketch.T / (rank * mass.sum())
            e = X[i] - c
            w = w - eta * (lam * w + 2.0 * weight[i] * ((w @ e - y[i]) * e + S @ w))
        signs = []
        for _ in range(rank or 0):
            state, bit = below(np.uint64(state), 2)
            signs.append(2.0 * bit - 1.0)
        seen[y[i]].append((i, signs))
    return w


def univariate_steps(X, y, factors, order, eta, lam, exponential):
    """Return weights and bias of online gradient descent after one epoch from zero."""
    w, bias = np.zeros(X.shape[1]), 0.0
    for i in order:
        margin = y[i] * (X[i] @ w + bias)
        slope = factors[i] * y[i] * (-np.exp(-margin) if exponential else -2.0 * (1.0 - margin))
        w, bias = w - eta * (lam * w + slope * X[i]), bias - eta * slope
    return w, bias


def univariate_value(w, bias, X, y, lam, weight, exponential):
    """Return lam/2 |w|^2 + the mean over the classes of their mean losses."""
    margins = y * (X @ w + bias)
    losses = np.exp(-margins) if exponential else (1.0 - margins) ** 2
    means = [np.average(losses[y == label], weights=weight[y == label]) for label in (-1, 1)]
    return 0.5 * lam * w @ w + 0.5 * sum(means)
