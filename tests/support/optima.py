"""Optimal values of the pairwise hinge by solvers of other people, on all differences of pairs themselves."""

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.svm import LinearSVC
from support.oracle import pair_differences, pairwise_objective


def optimum(X, y, lam):
    """Return the least of ``lam/2 |w|^2`` plus the mean hinge, by liblinear's dual solver."""
    Z = pair_differences(X, y)
    # liblinear wants two classes: every pair enters once from either side.
    signs = np.repeat([1, -1], len(Z))
    svc = LinearSVC(
        loss="hinge", C=0.5 / (lam * len(Z)), fit_intercept=False, tol=1e-10, max_iter=2_000_000, random_state=0
    )
    svc.fit(np.vstack([Z, -Z]), signs)
    return pairwise_objective(svc.coef_[0], X, y, lam)


def optimum_l1(X, y, lam):
    """Return the least of ``lam |w|_1`` plus the mean hinge: a linear programme, w being the difference of two vectors >= 0."""
    Z = pair_differences(X, y)
    k, d = Z.shape
    costs = np.concatenate([np.full(2 * d, lam), np.full(k, 1.0 / k)])
    above = sp.hstack([-Z, Z, -sp.eye(k)])
    return linprog(costs, A_ub=above, b_ub=-np.ones(k), bounds=(0, None), method="highs").fun
