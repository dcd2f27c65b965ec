"""Integers in the order of floats, by which scores are counted in cells and numbers are searched by bisection."""

import numpy as np
from numpy import ndarray


def ordered_keys(values: ndarray) -> ndarray:
    """Return the bits of floats as int64 numbers that have the order of the floats. -0.0 comes just before 0.0."""
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.int64)
    return bits ^ ((bits >> 63) & np.int64(2**63 - 1))


def floats_of_keys(keys: ndarray) -> ndarray:
    """Return the floats that have these keys, the inverse of `ordered_keys`."""
    return (keys ^ ((keys >> 63) & np.int64(2**63 - 1))).view(np.float64)
