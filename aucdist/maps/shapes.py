"""What a model says of each binned feature: the shape of its contribution to the score."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from aucdist.kernels.codes import expand


@dataclass(frozen=True, eq=False)
class Shape:
    """The contribution of one feature to the score, a step function with mean 0 over the training rows.

    A loss of pairs knows differences of scores only, so that a constant says nothing.

    Attributes
    ----------
    feature : int
    edges : ndarray of shape (n_bins - 1,), float64
        In the feature's own units. A value is in the bin of the number of edges below it.
    values : ndarray of shape (n_bins,), float64
        Contribution in each bin.
    shares : ndarray of shape (n_bins,), float64
        Share of the training rows with a value that are in each bin.
    missing : float or None
        Contribution of a missing value, where the training rows had some.
    spread : float
        Standard deviation of the contribution over the training rows with a value.
    """

    feature: int
    edges: np.ndarray
    values: np.ndarray
    shares: np.ndarray
    missing: float | None
    spread: float


@dataclass(frozen=True, eq=False)
class PairShape:
    """The contribution of a pair of features beyond their own, in the cells of a grid, with mean 0 along rows and columns.

    Attributes
    ----------
    features : tuple of int
    edges : tuple of ndarray
        Of the rows, then of the columns of the grid, in the features' units.
    missing : tuple of bool
        Whether the first row, and the first column, is that of missing values.
    values : ndarray of shape (n_rows, n_columns), float64
    """

    features: tuple[int, int]
    edges: tuple[np.ndarray, np.ndarray]
    missing: tuple[bool, bool]
    values: np.ndarray


def tables_of(fitted: Any, w: np.ndarray) -> list[np.ndarray]:
    """Return the contribution to the score of each cell of each code, one array for each code."""
    table = expand(fitted.code_basis, np.ascontiguousarray(w, dtype=np.float64))
    return np.split(table, fitted.code_basis.starts[1:-1])


def spreads(fitted: Any, w: np.ndarray) -> np.ndarray:
    """Return the standard deviation of each used feature's contribution over the training rows."""
    return np.array([shape.spread for shape in feature_shapes(fitted, w)])


def feature_shapes(fitted: Any, w: np.ndarray) -> list[Shape]:
    """Return the shape of each used feature.

    Parameters
    ----------
    fitted : BinMap
    w : ndarray of shape (n_features_out,), float64
    """
    shapes = []
    for j, table in zip(fitted.used, tables_of(fitted, w), strict=False):
        bins, missing = fitted.bins[j], bool(fitted.missing[j])
        centre = float(bins.shares @ table[int(missing) :])
        values = table[int(missing) :] - centre
        spread = float(np.sqrt(bins.shares @ values**2))
        shapes.append(
            Shape(int(j), bins.edges, values, bins.shares, float(table[0] - centre) if missing else None, spread)
        )
    return shapes
