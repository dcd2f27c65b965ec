"""Optimal values of the pairwise hinge over the highest-scoring negatives, by slow code of another kind."""

import itertools

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from support.oracle import pair_differences


def top_hinge(scores, y, top_weight, weight=None):
    """Return the mean hinge over the pairs of the highest-scoring negatives, row after row in plain Python."""
    w = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    left, total = top_weight, 0.0
    for j in sorted((j for j in range(len(y)) if y[j] < 0), key=lambda j: -scores[j]):
        part = min(left, w[j])
        total += part * sum(w[i] * max(0.0, 1.0 - (scores[i] - scores[j])) for i in range(len(y)) if y[i] > 0)
        left -= part
    return total / (w[y > 0].sum() * top_weight)


def top_hinge_by_subsets(scores, y, n_top):
    """Return the largest mean hinge over any subset of so many negatives; `wanted` is an integer."""
    pos, neg = scores[y > 0], scores[y < 0]
    hinges = np.maximum(0.0, 1.0 - (pos[:, None] - neg[None, :])).mean(axis=0)
    return max(hinges[list(subset)].mean() for subset in itertools.combinations(range(len(neg)), n_top))


def _programme(X, y, top_weight, weight):
    """Return the linear programme of the loss: costs, and G with G v <= h, v = (w, theta, eta, xi).

    The largest sum of u_j h_j with u_j <= v_j, sum u_j = q is the least of ``q theta + sum v_j eta_j``, eta_j >= h_j - theta, 0.
    """
    of_pos, of_neg = weight[y > 0], weight[y < 0]
    Z = pair_differences(X, y)
    n_pairs, d = Z.shape
    n_neg = len(of_neg)
    costs = np.concatenate([np.zeros(d), [1.0], of_neg / top_weight, np.zeros(n_pairs)])
    # xi_ij >= 1 - z_ij w
    hinge = sp.hstack([-Z, sp.csr_array((n_pairs, 1 + n_neg)), -sp.eye_array(n_pairs)])
    # eta_j >= sum_i v_i xi_ij / sum_i v_i - theta
    mean = sp.kron((of_pos / of_pos.sum())[None, :], sp.eye_array(n_neg))
    top = sp.hstack([sp.csr_array((n_neg, d)), -np.ones((n_neg, 1)), -sp.eye_array(n_neg), mean])
    # theta is not below 0 either: no hinge is. Without this the minimisers would be unbounded for q = n_neg.
    signs = sp.hstack([sp.csr_array((1 + n_neg + n_pairs, d)), -sp.eye_array(1 + n_neg + n_pairs)])
    G = sp.vstack([hinge, top, signs]).tocsr()
    return costs, G, np.concatenate([-np.ones(n_pairs), np.zeros(1 + n_neg + n_neg + n_pairs)]), d


def top_optimum(X, y, lam, top_weight, weight=None):
    """Return the least of ``lam/2 |w|^2`` plus the loss: a quadratic programme, by an interior-point method."""
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    costs, G, h, d = _programme(X, y, top_weight, weight)
    Q = np.zeros(len(costs))
    Q[:d] = lam
    return quadratic_programme(Q, costs, G.toarray(), h)


def top_optimum_l1(X, y, lam, top_weight, weight=None):
    """Return the least of ``lam |w|_1`` plus the loss: a linear programme, by HiGHS."""
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    costs, G, h, d = _programme(X, y, top_weight, weight)
    costs, G = np.concatenate([np.full(d, lam), costs]), sp.hstack([-G[:, :d], G]).tocsr()
    costs[d : 2 * d] = lam
    free = [(0, None)] * (2 * d) + [(None, None)] + [(0, None)] * (len(costs) - 2 * d - 1)
    return linprog(costs, A_ub=G, b_ub=h, bounds=free, method="highs").fun


def quadratic_programme(Q, c, G, h, tol=2e-8):
    """Return the least of ``x'Qx/2 + c'x`` with Gx <= h, Q being diagonal, by Mehrotra's predictor and corrector."""
    m, n = G.shape
    x, z = np.zeros(n), np.ones(m)
    s = np.maximum(1.0, h - G @ x)
    for _ in range(100):
        residuals = Q * x + c + G.T @ z, G @ x + s - h
        value = 0.5 * x @ (Q * x) + c @ x
        if max(np.abs(residuals[0]).max(), np.abs(residuals[1]).max(), s @ z) <= tol * (1.0 + abs(value)):
            break
        dx, ds, dz = _direction(Q, G, s, z, *residuals, s * z)
        alpha = min(_step(s, ds), _step(z, dz))
        mu = s @ z / m
        sigma = ((s + alpha * ds) @ (z + alpha * dz) / m / mu) ** 3
        dx, ds, dz = _direction(Q, G, s, z, *residuals, s * z + ds * dz - sigma * mu)
        alpha = 0.995 * min(_step(s, ds), _step(z, dz))
        x, s, z = x + alpha * dx, s + alpha * ds, z + alpha * dz
    return value


def _direction(Q, G, s, z, of_dual, of_primal, of_product):
    K = np.diag(Q + 1e-8) + (G.T * (z / s)) @ G
    rhs = -of_dual - G.T @ ((z * of_primal - of_product) / s)
    try:
        dx = np.linalg.solve(K, rhs)
    except np.linalg.LinAlgError:  # singular to rounding, near the end
        dx = np.linalg.lstsq(K, rhs)[0]
    ds = -of_primal - G @ dx
    return dx, ds, (-of_product - z * ds) / s


def _step(v, dv):
    down = dv < 0
    return min(1.0, float((-v[down] / dv[down]).min(initial=1.0)))
