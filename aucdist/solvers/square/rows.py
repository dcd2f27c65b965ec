"""Inner products, lengths and distances of a block's rows, for the solvers of the pairwise square."""

import numpy as np

from aucdist.data.block import Block
from aucdist.kernels.rows import project


def products_with(block: Block, vectors: np.ndarray) -> np.ndarray:
    """Return the inner products of the rows with several vectors.

    `vectors`: of shape (n_vectors, n_features), float64.
    Returns an array of shape (n_rows, n_vectors), float64.
    """
    out = np.empty((len(vectors), block.n_samples))
    for k, vector in enumerate(vectors):
        project(block.rows, vector, out[k])
    return np.ascontiguousarray(out.T)


def squared_lengths(block: Block) -> np.ndarray:
    """Return the squared Euclidean length of each row, summed in float64."""
    X = block.X
    if isinstance(X, np.ndarray):
        return np.einsum("ij,ij->i", X, X, dtype=np.float64)
    return np.asarray(X.astype(np.float64).power(2).sum(axis=1)).ravel()


def squared_distances(block: Block, means: np.ndarray, products: np.ndarray) -> np.ndarray:
    """Return the squared distance of each row to the mean of its class.

    `means`, of shape (2, n_features), float64: the negative class first.
    `products`, of shape (n_rows, 2 or more), float64: inner products of the rows with the two means, in the first two
        columns.
    """
    own = (block.y > 0).astype(np.int64)
    with_own = products[np.arange(block.n_samples), own]
    # Rounding can make the distance of a row that equals its class mean slightly negative.
    return np.maximum(squared_lengths(block) - 2.0 * with_own + (means**2).sum(axis=1)[own], 0.0)
