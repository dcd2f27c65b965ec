"""The Gaussian kernel, and rows of a Gram matrix that is too large to store, which are computed when they are needed."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy import ndarray

from aucdist.data.block import Block, as_dense, as_rows, row_squares
from aucdist.errors import InputError


def gaussian_kernel(X: Any, Z: Any, sigma: float) -> ndarray:
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
    exponents = _square_distances(X, Z)
    exponents *= -1.0 / sigma**2
    return np.exp(exponents, out=exponents)


def median_distance(X: Any) -> float:
    """Return the median distance between unequal rows of X, of shape (n, n_features).

    Raises
    ------
    InputError
        If all rows are equal.
    """
    squares = _square_distances(X, X)[np.triu_indices(X.shape[0], 1)]
    squares = squares[squares > 1e-12 * squares.max(initial=0.0)]
    if not len(squares):
        raise InputError("all rows are equal, so there is no median distance: give sigma as a number")
    return float(np.sqrt(np.median(squares)))


def _square_distances(X: Any, Z: Any) -> ndarray:
    """Return the squared distance between every row of X and every row of Z."""
    X, Z = (M.astype(np.float64, copy=False) for M in (X, Z))
    if not (sp.issparse(X) or sp.issparse(Z)):
        centre = Z.mean(axis=0)
        # Far from 0, the differences of squares would have the rounding errors of the squares.
        X, Z = X - centre, Z - centre
    squares = as_dense(X @ Z.T)
    squares *= -2.0
    squares += row_squares(as_rows(X))[:, np.newaxis]
    squares += row_squares(as_rows(Z))
    return np.maximum(squares, 0.0, out=squares)  # rounding can make a distance slightly negative


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelBlock(Block):
    """A block of rows of the Gram matrix of a Gaussian kernel. Its attribute `rows` has the arguments of the kernel.

    Attributes
    ----------
    vectors : ndarray or sparse of shape (n_vectors, n_features)
        All rows of the fit, in the order of the Gram matrix.
    sigma : float
        Width of the kernel, as in `gaussian_kernel`.
    at_once : int
        How many rows of the Gram matrix are computed at a time.
    """

    vectors: Any
    sigma: float
    at_once: int

    def chunks(self, positions: ndarray) -> Iterator[tuple[slice, ndarray]]:
        """Yield slices of `positions` with the kernel values of these rows, float64 of shape (n_slice, n_vectors).

        Parameters
        ----------
        positions : ndarray of shape (n,), int64
            Positions of rows in the block.
        """
        for first in range(0, len(positions), self.at_once):
            part = slice(first, first + self.at_once)
            yield part, gaussian_kernel(self.X[positions[part]], self.vectors, self.sigma)

    def scores(self, w: ndarray) -> ndarray:
        """Return the products of the rows of the Gram matrix with vectors, float64 of shape (n_samples, ...).

        Parameters
        ----------
        w : ndarray
            The weights, of shape (n_vectors,) or (n_vectors, n).
        """
        out = np.empty((self.n_samples, *w.shape[1:]))
        for part, values in self.chunks(np.arange(self.n_samples)):
            out[part] = values @ w
        return out
