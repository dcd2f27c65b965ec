"""Slow twins of losses over pairs within groups, and of rows with grades: every pair by itself."""

import warnings

import numpy as np
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC


def pairs_of(values, group, weight, *, group_weight="pairs", grade_weight="difference"):
    """Return all pairs (i, j) of one group with values_i > values_j as two arrays, and their weights, which add up to 1.

    With two classes `values` are the labels, and a difference weighs as much as any other.
    """
    first, second, mass = [], [], []
    for i in range(len(values)):
        for j in range(len(values)):
            if group[i] == group[j] and values[i] > values[j] and weight[i] * weight[j] > 0:
                first.append(i)
                second.append(j)
                mass.append(weight[i] * weight[j] * (values[i] - values[j] if grade_weight == "difference" else 1.0))
    first, second, mass = np.array(first, dtype=int), np.array(second, dtype=int), np.array(mass)
    if group_weight == "groups":
        for g in np.unique(group):
            mine = group[first] == g
            mass[mine] /= mass[mine].sum() if mine.any() else 1.0
    return first, second, mass / mass.sum()


def hinge(margins):
    """Return the hinges of margins."""
    return np.maximum(0.0, 1.0 - margins)


def ramp(margins):
    """Return the smoothed ramps of margins."""
    below = np.where(margins < 0, 1.0 - 0.5 * (1.0 + margins) ** 2, 0.5 * (1.0 - margins) ** 2)
    return np.where(margins <= -1, 1.0, np.where(margins >= 1, 0.0, below))


def square(margins):
    """Return the squares of 1 minus margins."""
    return (1.0 - margins) ** 2


def mean_loss(loss, w, X, pairs):
    """Return the weighted mean of a loss of the pairs' margins."""
    first, second, mass = pairs
    scores = X @ w
    return float(mass @ loss(scores[first] - scores[second]))


def best_hinge(X, pairs, lam):
    """Return the least of lam/2 |w|^2 + mean hinge that liblinear's dual solver finds: each difference is a row of its own."""
    first, second, mass = pairs
    Z = X[first] - X[second]
    svc = LinearSVC(loss="hinge", C=0.5 / lam, fit_intercept=False, tol=1e-6, max_iter=5000, random_state=0)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        svc.fit(np.vstack([Z, -Z]), np.repeat([1, -1], [len(Z), len(Z)]), sample_weight=np.tile(mass, 2))
    w = svc.coef_[0]
    return 0.5 * lam * w @ w + mean_loss(hinge, w, X, pairs)


def best_hinge_l1(X, pairs, lam):
    """Return the least of lam |w|_1 + mean hinge: a linear programme, w being the difference of two vectors >= 0."""
    first, second, mass = pairs
    Z = X[first] - X[second]
    costs = np.concatenate([np.full(2 * X.shape[1], lam), mass])
    above = np.hstack([-Z, Z, -np.eye(len(Z))])
    return linprog(costs, A_ub=above, b_ub=-np.ones(len(Z)), bounds=(0, None), method="highs").fun
