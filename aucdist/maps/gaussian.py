"""The Gaussian kernel, and rows of a Gram matrix that is too large to store: they are computed when they are needed."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from aucdist.data.block import Block, as_dense
from aucdist.errors import InputError


def gaussian_kernel(X: Any, Z: Any, sigma: float) -> np.ndarray:
    """Return exp(-|x - z|^2 / sigma^2) for every row x of X and z of Z: equation (9) of Lu, Zhang & Cai (2019).

    Parameters
    ----------
    X, Z : ndarray or sparse matrix of shape (n, n_features) and (m, n_features)
        Rows.
    sigma : float
        The width of the kernel, above 0, in the units of the rows.

    Returns
    -------
    ndarray of shape (n, m), float64
    """
    X, Z = (M.astype(np.float64, copy=False) for M in (X, Z))
    products = X @ Z.T
    exponents = as_dense(products)
    exponents *= -2.0
    exponents += _squares(X)[:, np.newaxis]
    exponents += _squares(Z)
    np.maximum(exponents, 0.0, out=exponents)  # rounding can make a distance slightly negative
    exponents *= -1.0 / sigma**2
    return np.exp(exponents, out=exponents)


def median_distance(X: Any) -> float:
    """Return the median distance between unequal rows of X, of shape (n, n_features).

    Raises InputError if all rows are equal.
    """
    X = X.astype(np.float64, copy=False)
    products = X @ X.T
    squares = _squares(X)
    distances = squares[:, np.newaxis] + squares - 2.0 * as_dense(products)
    distances = distances[np.triu_indices(len(squares), 1)]
    distances = distances[distances > 1e-12 * squares.max(initial=0.0)]
    if not len(distances):
        raise InputError("all rows are equal, so there is no median distance: give sigma as a number")
    return float(np.sqrt(np.median(distances)))


def _squares(X: Any) -> np.ndarray:
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelBlock(Block):
    """A block of rows of the Gram matrix of a Gaussian kernel; its attribute `rows` holds the arguments of the kernel.

    `vectors`, of shape (n_vectors, n_features): all rows of the fit, in the order of the Gram matrix.
    `sigma`: width of the kernel, as in `gaussian_kernel`.
    `at_once`: how many rows of the Gram matrix are computed at a time.
    """

    vectors: Any
    sigma: float
    at_once: int

    def chunks(self, positions: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield slices of `positions` with the kernel values of these rows, float64 of shape (n_slice, n_vectors).

        `positions`, of shape (n,), int64: positions of rows in the block.
        """
        for first in range(0, len(positions), self.at_once):
            part = slice(first, first + self.at_once)
            yield part, gaussian_kernel(self.X[positions[part]], self.vectors, self.sigma)

    def scores(self, w: np.ndarray) -> np.ndarray:
        """Return the products of the rows of the Gram matrix with vectors, float64 of shape (n_samples, ...).

        `w`: of shape (n_vectors,) or (n_vectors, n).
        """
        out = np.empty((self.n_samples, *w.shape[1:]))
        for part, values in self.chunks(np.arange(self.n_samples)):
            out[part] = values @ w
        return out
