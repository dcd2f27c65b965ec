"""Slow plain-Python twins: what the fast code must agree with, written so that a reader can check them against the formulas."""

import numpy as np


def active_pairs(scores, y):
    """Yield the pairs (i, j) with y_i = +1, y_j = -1 and s_i - s_j < 1."""
    for i in range(len(y)):
        for j in range(len(y)):
            if y[i] > 0 > y[j] and scores[i] - scores[j] < 1.0:
                yield i, j


def pairwise_hinge(scores, y, weight=None):
    """Return the mean over all positive-negative pairs of max(0, 1 - (s_i - s_j)), pairs weighing w_i w_j."""
    w = np.ones(len(y)) if weight is None else weight
    hinge = sum(w[i] * w[j] * (1.0 - (scores[i] - scores[j])) for i, j in active_pairs(scores, y))
    return hinge / (w[y > 0].sum() * w[y < 0].sum())


def active_coefficients(scores, y, weight=None):
    """Return, for each row, the weight of its active pairs: with a plus for positives, a minus for negatives."""
    w = np.ones(len(y)) if weight is None else weight
    out = np.zeros(len(y))
    for i, j in active_pairs(scores, y):
        out[i] += w[i] * w[j]
        out[j] -= w[i] * w[j]
    return out


def pairwise_objective(w, X, y, lam, weight=None):
    """Return lam/2 |w|^2 + the mean pairwise hinge."""
    return 0.5 * lam * float(w @ w) + pairwise_hinge(np.asarray(X @ w), y, weight)


def pair_differences(X, y):
    """Return all x_i - x_j, i positive, j negative, as rows."""
    return (X[y > 0][:, None, :] - X[y < 0][None, :, :]).reshape(-1, X.shape[1])


def ramp(margin):
    """Return the smoothed ramp of a margin, and its derivative."""
    if margin <= -1.0:
        return 1.0, 0.0
    if margin < 0.0:
        return 1.0 - 0.5 * (1.0 + margin) ** 2, -(1.0 + margin)
    if margin < 1.0:
        return 0.5 * (1.0 - margin) ** 2, margin - 1.0
    return 0.0, 0.0


def pairwise_ramp(scores, y, weight=None):
    """Return the mean over all pairs of the ramp of s_i - s_j, pairs weighing w_i w_j, and its derivative for each row."""
    w = np.ones(len(y)) if weight is None else weight
    total, slopes = 0.0, np.zeros(len(y))
    for i in np.flatnonzero(y > 0):
        for j in np.flatnonzero(y < 0):
            value, slope = ramp(scores[i] - scores[j])
            total += w[i] * w[j] * value
            slopes[i] += w[i] * w[j] * slope
            slopes[j] -= w[i] * w[j] * slope
    mass = w[y > 0].sum() * w[y < 0].sum()
    return total / mass, slopes / mass


def ramp_objective(w, X, y, lam, weight=None):
    """Return lam/2 |w|^2 + the mean pairwise ramp, and its gradient."""
    value, slopes = pairwise_ramp(np.asarray(X @ w), y, weight)
    return 0.5 * lam * float(w @ w) + value, X.T @ slopes + lam * w
