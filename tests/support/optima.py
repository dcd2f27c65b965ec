"""Optimal values of the pairwise hinge by solvers of other people, on all differences of pairs themselves."""

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog, minimize
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


def optimum_group_l1(X, y, lam, groups, signs=None):
    """Return the least of ``lam sum sqrt(size) |w_g|`` plus the mean hinge, by SciPy's SLSQP on the dual.

    The mean of dual variables of pairs is maximised within the bounds on the lengths of their gradient's parts; signs of weights
    take the entries away that would move a weight out of the cone.
    """
    Z = pair_differences(X, y)
    share = np.full(len(Z), 1 / len(Z))
    sizes = np.sqrt(np.bincount(groups))
    signs = np.zeros(X.shape[1]) if signs is None else signs

    def gradient(a):
        v = Z.T @ (share * a)
        return np.where(signs == 1, np.maximum(v, 0.0), np.where(signs == -1, np.minimum(v, 0.0), v))

    def left(a):
        v = gradient(a)
        return (lam * sizes) ** 2 - np.bincount(groups, v * v)

    def slopes(a):
        v = gradient(a)
        return -np.stack([(2.0 * share[:, None] * Z[:, groups == g]) @ v[groups == g] for g in range(len(sizes))])

    optimum = minimize(
        lambda a: -share @ a, np.full(len(Z), 1e-3), jac=lambda a: -share, bounds=[(0, 1)] * len(Z), method="SLSQP",
        constraints={"type": "ineq", "fun": left, "jac": slopes}, options={"maxiter": 500, "ftol": 1e-13},
    )  # fmt: skip
    assert left(optimum.x).min() >= -1e-9  # it may end because no step gains more digits
    return -optimum.fun
