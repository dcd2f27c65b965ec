"""Rows of a Gram matrix that is too large to store; their values are computed when they are needed, some rows at a time."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.objectives.margin_mean import gaussian_kernel


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

    def chunks(self, which: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield slices of `which` with the kernel values of these rows, float64 of shape (n_slice, n_vectors).

        `which`, of shape (n,), int64: positions of rows in the block.
        """
        for first in range(0, len(which), self.at_once):
            part = slice(first, min(first + self.at_once, len(which)))
            yield part, gaussian_kernel(self.X[which[part]], self.vectors, self.sigma)

    def times(self, vectors: np.ndarray) -> np.ndarray:
        """Return the products of the rows of the Gram matrix with vectors, float64 of shape (n_samples, ...).

        `vectors`: of shape (n_vectors,) or (n_vectors, n).
        """
        out = np.empty((self.n_samples, *vectors.shape[1:]))
        for part, values in self.chunks(np.arange(self.n_samples)):
            out[part] = values @ vectors
        return out
