"""The Nystroem map: a Gaussian kernel by landmarks, for scores that are not additive, on small data or with few positives."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy import ndarray

from aucdist.data.block import Block, as_dense, stacked
from aucdist.data.column_statistics import Moments
from aucdist.data.gaussian_kernel import gaussian_kernel, median_distance
from aucdist.engine.blocks import Blocks, Summary
from aucdist.errors import InputError
from aucdist.kernels.random import hash_ids
from aucdist.maps.base import LINEAR_CHOICES, Expander, FittedMap, moments_of
from aucdist.parameters import OneOf, above_0, between, frozen, keyword_parameters

SEED = 2
"""The seed of the landmarks. It differs from the seed of the sample that a fit starts from, so that the landmarks are other
rows."""
LINEAR_SCALE = 0.1
"""The factor of the standardised features, which are columns in addition to those of the kernel."""
KERNEL_SCALE = 3.0
"""The factor of the kernel's columns, which is about the length of this part of a row."""
MIN_SHARE = 1e-5
"""Directions of the landmarks' kernel matrix whose eigenvalue is below this share of the largest are left out."""
WIDTHS = {"median": np.sqrt(2.0), "half-median": 0.5}
"""The named widths of the kernel, divided by the median distance between landmarks."""
LANDMARKS_OF_MEDIAN = 2000
"""The number of landmarks from which the median distance is estimated."""
VALUES_AT_ONCE = 2**22
"""The number of kernel values that are computed at a time."""


@frozen
class NystroemFeatures(FittedMap):
    """Landmarks and the matrix that makes features of the kernel values with them.

    Parameters
    ----------
    n_features_in : int
        The number of features of the rows.
    shift, factor : ndarray of shape (n_features_in,), float64
        Features are scaled as ``(x - shift) * factor``.
    landmarks : ndarray of shape (n_landmarks, n_features_in), float64
        The scaled landmarks.
    sigma : float
        Width of the kernel ``exp(-|x - x'|^2 / sigma^2)``.
    directions : ndarray of shape (n_landmarks, n_directions), float64
        The matrix by which kernel values are multiplied.
    linear : {"keep", "drop"}
        Whether the scaled features are columns as well.
    """

    n_features_in: int
    shift: ndarray
    factor: ndarray
    landmarks: ndarray
    sigma: float
    directions: ndarray
    linear: str

    @property
    def n_features_out(self) -> int:
        """Number of columns."""
        return self.directions.shape[1] + (self.n_features_in if self.linear == "keep" else 0)

    def map_block(self, block: Block) -> Block:
        """Return the block with dense rows. Rows of float32 stay float32."""
        self.check_width(block)
        out = np.empty((block.n_samples, self.n_features_out), dtype=block.rows.values.dtype)
        step, first = max(1, VALUES_AT_ONCE // max(len(self.landmarks), self.n_features_in)), self.directions.shape[1]
        for i in range(0, block.n_samples, step):
            x = (dense(block.between(i, i + step)) - self.shift) * self.factor
            part = out[i : i + step]
            part[:, :first] = gaussian_kernel(x, self.landmarks, self.sigma) @ self.directions
            if self.linear == "keep":
                part[:, first:] = LINEAR_SCALE * x
        return block.with_X(out)

    def check(self) -> None:
        """Raise an InputError if the parts do not fit together."""
        m, d = self.landmarks.shape
        n, _ = self.directions.shape  # with another number of axes, this is a ValueError
        if (
            d != self.n_features_in
            or not self.shift.shape == self.factor.shape == (d,)
            or m != n
            or self.linear not in LINEAR_CHOICES
        ):
            raise InputError("landmarks, scaling and directions have different sizes")
        above_0().check("sigma", self.sigma)
        for array in (self.shift, self.factor, self.landmarks, self.directions):
            if array.dtype != np.float64 or not np.isfinite(array).all():
                raise InputError("a landmark, scale or direction is not a finite float64")

    def names(self, features: Sequence[str]) -> list[str]:
        """Return a name for each column."""
        kernel = [f"direction {k}" for k in range(self.directions.shape[1])]
        return kernel + (list(features) if self.linear == "keep" else [])


def dense(block: Block) -> ndarray:
    """Return the rows as float64 of shape (n_samples, n_features).

    Raises
    ------
    InputError
        If a value is missing.
    """
    X = as_dense(block.X).astype(float, copy=False)
    if np.isnan(X).any():
        raise InputError("a kernel cannot compare rows with missing values: fill them in first, or use bins")
    return X


@keyword_parameters(landmarks=between(2, 20_000), linear=OneOf(LINEAR_CHOICES), sigma=above_0(tuple(WIDTHS)))
class NystroemMap(Expander):
    """Map rows to features whose inner products are those of a Gaussian kernel, approximated by landmarks.

    The landmarks are training rows, half of them from each class if there are enough. They are drawn by a hash of their row
    ids, so they depend on the data alone. The method is that of Williams and Seeger, "Using the Nystroem method to speed up
    kernel machines" (NIPS 2000). It suits up to a few tens of thousands of rows, few positives, and interactions of many
    features. Mapping a row takes one value of the kernel for each landmark, and the model has up to one weight for each.

    Parameters
    ----------
    landmarks : int, default=512
        The number of landmarks, at most half of the rows.
    sigma : float, "median" or "half-median", default="median"
        Width of the kernel ``exp(-|x - x'|^2 / sigma^2)`` of standardised features. With the median distance d between
        landmarks, ``"median"`` is sqrt(2) d, and ``"half-median"`` is d / 2, for classes that lie in small clusters.
    linear : {"keep", "drop"}, default="keep"
        Whether the standardised features are columns too, at a tenth of their size.

    Attributes
    ----------
    map_ : NystroemFeatures
        The fitted map.
    n_features_in_ : int
        The number of columns of X in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        The column names of X. Defined only if X has column names.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucdist.maps import NystroemMap
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> NystroemMap(landmarks=20, linear="drop").fit(X, y).transform(X).shape
    (569, 20)
    """

    landmarks: int = 512
    sigma: float | str = "median"
    linear: str = "keep"

    @property
    def complexity(self) -> tuple[int, int, int]:
        """The key by which landmarks come after bins, and those with half the width later."""
        return (1, 1, int(self.sigma == "half-median"))

    def fit(self, X: Any, y: Any = None) -> Self:  # type: ignore[override]
        """Fit the map. Sample weights are not supported.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            The training rows.
        y : array-like of shape (n_samples,), optional
            Two classes, of which the larger label is positive.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        return super().fit(X, y)

    def fit_blocks(self, blocks: Blocks, directions: ndarray | None = None) -> NystroemFeatures:
        """Return the map fitted to blocks of rows, by two reductions. The map does not support directions.

        Parameters
        ----------
        blocks, directions
            As for `Expander.fit_blocks`.

        Returns
        -------
        NystroemFeatures
        """
        self.check_parameters()
        with np.errstate(over="ignore", invalid="ignore"):
            total: Moments = blocks.sum(moments_of)["moments"]
            deviation = total.deviation
        factor = np.where(total.ranges.constant, 0.0, 1.0 / np.where(deviation == 0, 1.0, deviation))
        if len(bad := np.flatnonzero(~np.isfinite(total.mean + factor))):
            raise InputError(
                f"feature {bad[0]} (counted from 0) has missing or very large values: fill them in, or scale the feature first"
            )
        rows = landmark_rows(blocks, int(self.landmarks))
        scaled = (dense(rows) - total.mean) * factor
        sigma = (
            WIDTHS[self.sigma] * median_distance(scaled[:LANDMARKS_OF_MEDIAN])
            if isinstance(self.sigma, str)
            else float(self.sigma)
        )
        values, vectors = np.linalg.eigh(gaussian_kernel(scaled, scaled, sigma))
        kept = np.flatnonzero(values > MIN_SHARE * values[-1])[::-1]
        directions = KERNEL_SCALE * vectors[:, kept] / np.sqrt(values[kept])
        return NystroemFeatures(
            blocks.n_features, total.mean, factor, scaled, float(sigma), np.ascontiguousarray(directions), self.linear
        )


def landmark_rows(blocks: Blocks, most: int) -> Block:
    """Return the rows of both classes with the smallest hashes of their ids, in the order of the hashes.

    Parameters
    ----------
    blocks : Blocks
        The rows.
    most : int
        The largest number of rows. At most half of all rows are returned: half from each class, or the whole smaller class.
    """
    n = max(2, min(most, blocks.n_samples // 2))
    n_pos = min(blocks.n_pos, max(n // 2, n - blocks.n_neg))
    n_of_classes = (n - n_pos, n_pos)
    drawn = stacked(blocks.sum(_least_hashes, n_of_classes))
    return _least_hashes(drawn, n_of_classes)[0]


def _least_hashes(block: Block, n_of_classes: tuple[int, int]) -> Summary:
    number, counted = hash_ids(block.row_id, SEED), block.weights() > 0
    chosen = []
    for label, n in zip((-1, 1), n_of_classes, strict=True):
        class_rows = np.flatnonzero(counted & (block.y == label))
        chosen.append(class_rows[np.argsort(number[class_rows], kind="stable")[:n]])
    rows = np.concatenate(chosen)
    return [replace(block.take(rows[np.argsort(number[rows], kind="stable")]), weight=None)]
