"""The margin-mean support vector machine: its objective, and the Gaussian kernel.

After Lu, Zhang & Cai, "Zeroth order optimization algorithm based on undersampling" (Journal of Nanjing University of
Aeronautics & Astronautics 51(5), 2019), equations (5), (9) and (11)::

    F(w) = |w|^2 / 2 - lam1 mean of D_i y_i w.x_i + lam2 mean of loss(y_i w.x_i),    loss(m) = max(0, 1 - m)

with D_i = n_neg / n_pos for positives and n_pos / n_neg for negatives. With c the mean of D_i y_i x_i this is

    F(w) = |w - lam1 c|^2 / 2 + lam2 mean of loss(y_i w.x_i) - lam1^2 |c|^2 / 2,

a support vector machine that shrinks its weights towards lam1 c instead of 0. The last term is the same for all w. The solvers
leave it out, so that the objective is never negative. The objective is strongly convex, and for any a_i in [0, 1]

    lam2 mean of a_i (1 - lam1 y_i c.x_i) - lam2^2 |mean of a_i y_i x_i|^2 / 2

is a lower bound on it. With a kernel, w = sum of alpha_j phi(x_j), and inner products are entries of the Gram matrix.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp


def class_factors(weight_neg: float, weight_pos: float) -> tuple[float, float]:
    """Return the factor D of a negative and of a positive row, given the total weights of the classes."""
    return weight_pos / weight_neg, weight_neg / weight_pos


def gaussian_kernel(X: Any, Z: Any, sigma: float) -> np.ndarray:
    """Return exp(-|x - z|^2 / sigma^2) for every row x of X and z of Z: equation (9).

    Parameters
    ----------
    X, Z : ndarray or sparse matrix of shape (n, n_features) and (m, n_features)

    Returns
    -------
    ndarray of shape (n, m), float64
    """
    X, Z = (M.astype(np.float64, copy=False) for M in (X, Z))
    products = X @ Z.T
    exponents = products.toarray() if sp.issparse(products) else products
    exponents *= -2.0
    exponents += _squares(X)[:, np.newaxis]
    exponents += _squares(Z)
    np.maximum(exponents, 0.0, out=exponents)  # rounding can make a distance slightly negative
    exponents *= -1.0 / sigma**2
    return np.exp(exponents, out=exponents)


def median_distance(X: Any) -> float:
    """Return the median distance between unequal rows of X, of shape (n, n_features); nan if all rows are equal."""
    X = X.astype(np.float64, copy=False)
    products = X @ X.T
    squares = _squares(X)
    apart = squares[:, np.newaxis] + squares - 2.0 * (products.toarray() if sp.issparse(products) else products)
    apart = apart[np.triu_indices(len(squares), 1)]
    apart = apart[apart > 1e-12 * squares.max(initial=0.0)]
    return float(np.sqrt(np.median(apart))) if len(apart) else float("nan")


def _squares(X: Any) -> np.ndarray:
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", X, X)
