"""The pairwise square, the mean squared loss over all positive-negative pairs, computed from the moments of the two classes.

Let c be the difference of the class means (positive minus negative), and S the sum of the two class covariances, each divided by
its class's weight. Then the mean over all pairs of ``(1 - w.(x_i - x_j))^2`` equals ``(1 - w.c)^2 + w'S w``. So value, gradient
and minimiser of ``P(w) = lam/2 |w|^2 + mean`` need no pairs. P is strongly convex, so it exceeds its minimum by at most
``|gradient|^2 / (2 lam)``.

P is also the mean over all rows of ``P_t(w) = (1 - w.c)^2 + r_t (w.(x_t - class mean))^2 + lam/2 |w|^2``, where r_t is n_samples
divided by the size of the row's class. This is the split of Luan & Gao (2018) with two misprints corrected: the paper prints r_t
as 1 over the size of the class, and the linear term of negative rows with the wrong sign.
"""

from collections.abc import Iterator
from dataclasses import field, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy import ndarray

from aucdist.data.block import Block, as_dense, basis_matrix, code_histogram, outer_products, row_squares
from aucdist.data.column_statistics import Moments
from aucdist.kernels.codes import BinRows
from aucdist.kernels.rows import CsrRows
from aucdist.parameters import frozen

PerClass = tuple[float, float]
"""A number for each class, the negative class first."""

VALUE_AT_ZERO = 1.0
"""The objective at w = 0."""

MIN_IMPROVEMENT = 1e-9
"""The largest relative gap of a closed form. If it is larger, the closed form has lost digits."""

CENTRED_AT_ONCE = 2**18
"""The number of values that are centred at a time, so that they fit into the second-level cache of a core."""

MIN_ROWS = 1024
"""The smallest number of rows that are centred at a time. With fewer, adding up the products takes longer than
computing them."""

FACTORS = ("corrected", "print")


def slices_of_rows(block: Block) -> Iterator[slice]:
    """Yield slices of rows, which are centred one slice at a time."""
    step = max(MIN_ROWS, CENTRED_AT_ONCE // max(block.n_features, 1))
    for first in range(0, block.n_samples, step):
        yield slice(first, first + step)


def class_moments(block: Block, label: int, *, full: bool) -> Moments:
    """Return the moments of the block's rows of one class.

    Parameters
    ----------
    label : int
        -1 or +1.
    full : bool
        Whether to return the full scatter matrix or only its diagonal. For the full matrix, sparse rows are made dense a few at
        a time.
    """
    d = block.n_features
    total = Moments(0.0, np.zeros(d), np.zeros((d, d) if full else d))
    coefs = np.where(block.y == label, block.weights(), 0.0)
    mass = float(coefs.sum())
    if mass == 0.0:
        return total
    if isinstance(block.rows, BinRows):
        moments = _stored_moments(basis_matrix(block.rows.basis), code_histogram(block.rows, coefs), mass)
        return replace(moments, scatter=outer_products(block.rows, coefs, centred=True)) if full else moments
    if isinstance(block.rows, CsrRows) and not full:
        class_block = block.take(block.y == label)
        return _stored_moments(class_block.X, class_block.weights(), mass)
    X = block.X
    for chunk in slices_of_rows(block):
        class_block = block.y[chunk] == label
        x = as_dense(X[chunk][class_block]).astype(np.float64, copy=False)
        weight = None if block.weight is None else block.weight[chunk][class_block]
        mass = float(len(x)) if weight is None else float(weight.sum())
        if mass == 0.0:
            continue
        mean = x.mean(axis=0) if weight is None else weight @ x / mass
        x -= mean
        if weight is not None:
            x *= np.sqrt(weight)[:, np.newaxis]
        total = total + Moments(mass, mean, x.T @ x if full else np.einsum("ij,ij->j", x, x))
    return total


def _stored_moments(A: sp.csr_matrix, weight: ndarray, total: float) -> Moments:
    """Return the moments of rows that are sums of rows of A, given the weights of the rows of A and the total weight.

    A value that is not stored is 0, so its squared distance to the mean is the squared mean.
    """
    d, x, value_weight = A.shape[1], A.data.astype(np.float64), np.repeat(weight, np.diff(A.indptr))
    mean = np.bincount(A.indices, value_weight * x, minlength=d) / total
    stored = np.bincount(A.indices, value_weight, minlength=d)
    scatter = np.bincount(A.indices, value_weight * (x - mean[A.indices]) ** 2, minlength=d)
    return Moments(total, mean, scatter + np.maximum(total - stored, 0.0) * mean * mean)


@frozen
class PairMoments:
    """The objective as a function of the moments of ``x_i - x_j`` over all pairs, or bounds on the sizes of these moments.

    Attributes
    ----------
    difference : ndarray of shape (n_features,), float64
        The mean of ``x_i - x_j``. Without groups, it is the mean of the positives minus that of the negatives.
    covariance : ndarray of shape (n_features, n_features) or (n_features,), float64
        S, or its diagonal. Without groups, S is the sum of the two class covariances.
    means : ndarray of shape (2, n_features), float64
        Without groups, the means of the classes, the negative class first.
    weights : tuple (float, float)
        Without groups, the weights of the classes.
    """

    difference: ndarray
    covariance: ndarray
    means: ndarray = field(default_factory=lambda: np.zeros((2, 0)))
    weights: PerClass = (0.0, 0.0)

    @classmethod
    def of(cls, neg: Moments, pos: Moments) -> "PairMoments":
        """Return the moments of all pairs of two classes."""
        covariance = pos.scatter / pos.weight + neg.scatter / neg.weight
        return cls(pos.mean - neg.mean, covariance, np.stack([neg.mean, pos.mean]), (neg.weight, pos.weight))

    def scores_of_means(self, w: ndarray) -> PerClass:
        """Return the scores of the class means at w."""
        return float(self.means[0] @ w), float(self.means[1] @ w)

    @cached_property
    def _spectrum(self) -> tuple[ndarray, ndarray, ndarray]:
        """The eigenvalues and eigenvectors of the covariance, and the difference of the means in their directions."""
        eigenvalues, eigenvectors = np.linalg.eigh(self.covariance)
        # Rounding can make the zero eigenvalues of a singular matrix slightly negative.
        return np.maximum(eigenvalues, 0.0), eigenvectors, eigenvectors.T @ self.difference

    def minimiser(self, lam: float) -> tuple[ndarray, float, ndarray]:
        """Return the minimiser for a lam above 0 with its value and gradient. All values of lam use the same eigendecomposition.

        The minimiser solves ``(S + c c' + lam/2 I) w = c`` and is parallel to ``(S + lam/2 I)^-1 c``. The moments must hold full
        scatter matrices.
        """
        c, (eigenvalues, eigenvectors, coefs) = self.difference, self._spectrum
        u = eigenvectors @ (coefs / (eigenvalues + 0.5 * lam))
        outcome = self._at(u / (1.0 + c @ u), lam)
        if lower_bound(outcome[1], outcome[2], lam) < (1.0 - MIN_IMPROVEMENT) * outcome[1]:
            # If columns have very different scales, all eigenvectors have the absolute error of the one with the largest
            # eigenvalue. The unknowns are therefore brought to one scale, and the solution is refined twice.
            matrix = self.covariance + np.diag(np.full(len(c), 0.5 * lam))
            scale = 1.0 / np.sqrt(np.diag(matrix))
            system = matrix * np.outer(scale, scale)
            # Least squares is used, because rounding may make the system slightly indefinite.
            inverse = np.linalg.pinv(system, rcond=1e-15, hermitian=True)
            u = np.zeros(len(c))
            for _ in range(3):
                u = u + scale * (inverse @ (scale * (c - matrix @ u)))
            outcome = min(outcome, self._at(u / (1.0 + c @ u), lam), key=lambda outcome: outcome[1])
        return outcome

    def _at(self, w: ndarray, lam: float) -> tuple[ndarray, float, ndarray]:
        covariance_w = self.covariance @ w
        return w, *self.value_and_gradient(w, float(w @ covariance_w), covariance_w, lam)

    def value_and_gradient(
        self, w: ndarray, variance: float, covariance_w: ndarray, lam: float
    ) -> tuple[float, ndarray]:
        """Return P(w) and its gradient.

        Parameters
        ----------
        w : ndarray of shape (n_features,)
            The weights.
        variance : float
            ``w'S w``, the variance of the scores within the positives plus that within the negatives.
        covariance_w : ndarray
            S w.
        lam : float
            The regularisation strength.
        """
        miss = 1.0 - w @ self.difference
        value = float(miss**2 + variance + 0.5 * lam * (w @ w))
        return value, lam * w + 2.0 * (covariance_w - miss * self.difference)


def lower_bound(primal: float, gradient: ndarray, lam: float) -> float:
    """Return a lower bound on the minimum of P, from the value and the gradient at any one point."""
    return max(0.0, float(primal - gradient @ gradient / (2.0 * lam)))


def row_factors(block: Block, weights: PerClass, n_samples: int, factor: str = "corrected") -> ndarray:
    """Return r_t for each row: n_samples (``"corrected"``) or 1 (``"print"``) divided by the size of the row's class.

    `weights` and `n_samples` are those of all blocks.
    """
    share = block.weights() / np.where(block.y > 0, weights[1], weights[0])
    return share * n_samples if factor == "corrected" else share


def products_with(block: Block, vectors: ndarray) -> ndarray:
    """Return the inner products of the rows with several vectors.

    Parameters
    ----------
    block : Block
        The rows.
    vectors : ndarray of shape (n_vectors, n_features), float64
        The vectors.

    Returns
    -------
    ndarray of shape (n_rows, n_vectors), float64
    """
    return np.column_stack([block.scores(vector) for vector in vectors])


def squared_distances(block: Block, means: ndarray, products: ndarray) -> ndarray:
    """Return the squared distance of each row to the mean of its class.

    Parameters
    ----------
    block : Block
        The rows.
    means : ndarray of shape (2, n_features), float64
        The negative class first.
    products : ndarray of shape (n_rows, 2 or more), float64
        Inner products of the rows with the two means, in the first two columns.
    """
    row_class = (block.y > 0).astype(np.int64)
    with_mean = products[np.arange(block.n_samples), row_class]
    # Rounding can make the distance of a row that equals its class mean slightly negative.
    return np.maximum(row_squares(block.rows) - 2.0 * with_mean + (means**2).sum(axis=1)[row_class], 0.0)
