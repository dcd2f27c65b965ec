"""Simulated rows, for benchmarks and for data larger than what one has."""

import numpy as np

from aucdist.data.block import Block
from aucdist.errors import InputError


def simulate(
    n_samples: int, n_features: int, positive_share: float, *, seed: int, shift: float = 1.2, index: int = 0
) -> Block:
    """Draw rows from two Gaussians with the identity as covariance.

    Parameters
    ----------
    n_samples, n_features : int
    positive_share : float
        Chance of a row to be positive, between 0 and 1.
    seed : int
        The direction between the classes comes from it alone, the rows from it and `index`.
    shift : float, default=1.2
        Distance between the class means; the best AUC is the normal distribution function at ``shift / sqrt(2)``.
    index : int, default=0
        Which block of the data set this is: equal blocks with different rows and row ids.

    Returns
    -------
    Block
        Dense, float64.

    Raises
    ------
    InputError
        For a share that is not between 0 and 1.
    """
    if not 0.0 < positive_share < 1.0:
        raise InputError(f"positive_share is {positive_share}; a number between 0 and 1 is needed")
    direction = np.random.default_rng(seed).normal(size=n_features)
    direction *= shift / np.linalg.norm(direction)
    r = np.random.default_rng((seed, index))
    positive = r.random(n_samples) < positive_share
    X = r.normal(size=(n_samples, n_features)) + positive[:, None] * direction
    ids = np.arange(index * n_samples, (index + 1) * n_samples)
    return Block.of(X, np.where(positive, 1, -1), row_id=ids, index=index)
