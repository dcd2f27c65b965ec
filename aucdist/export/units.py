"""Edges between scaled values as edges between the values themselves: the same rows lie above them, to the last bit."""

import numpy as np

from aucdist.data.preprocess import Preprocessor

LEAST = np.iinfo(np.int64).min


def edges_in_units(edges: np.ndarray, j: int, preprocessor: Preprocessor) -> np.ndarray:
    """Return for each edge the largest value of a feature that is not above it when it is scaled.

    Scaling never turns values round, so a value is above the result exactly if its scaled value is above the edge. An edge that
    was computed by the inverse of the scaling would be off by a rounding, and rows that lie on it could change sides.

    `edges`, of shape (n_edges,), float64: of scaled values.
    `preprocessor`: its scaling may not be ``unit-row``, which does not depend on one feature alone.
    Returns an array of shape (n_edges,), float64.
    """
    logged = j in preprocessor.log1p
    if not logged and preprocessor.factor is None:
        return edges
    low = np.full(len(edges), _place(np.nextafter(-1.0, 0.0) if logged else -np.finfo(np.float64).max))
    high = np.full(len(edges), _place(np.finfo(np.float64).max))
    with np.errstate(over="ignore"):
        while (low < high).any():
            middle = (low >> 1) + (high >> 1) + ((low | high) & 1)  # half of the sum, rounded up, without overflow
            below = _scaled(_value(middle), j, preprocessor) <= edges
            low, high = np.where(below, middle, low), np.where(below, high, middle - 1)
    return _value(low)


def _scaled(x: np.ndarray, j: int, preprocessor: Preprocessor) -> np.ndarray:
    """Return scaled values, by the operations of `Preprocessor.transform`."""
    if j in preprocessor.log1p:
        x = np.log1p(x)
    if preprocessor.shift is not None:
        x = x - preprocessor.shift[j]
    return x if preprocessor.factor is None else x * preprocessor.factor[j]


def _place(x: float) -> int:
    """Return the place of a number in the order of all floats: 0 for 0, 1 for the smallest above it."""
    bits = int(np.float64(x).view(np.int64))
    return bits if bits >= 0 else int(LEAST) - bits


def _value(place: np.ndarray) -> np.ndarray:
    """Return the numbers in these places."""
    return np.where(place < 0, LEAST - place, place).view(np.float64)
