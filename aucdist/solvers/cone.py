"""Signs of weights: a cone over which an objective is minimised, as a model must rise or fall in some of its features.

Over the cone C of given signs ``w = proj(v / lam)`` minimises ``lam/2 |w|^2 - v.w``, and the minimum is ``-lam/2 |w|^2``, since w
is orthogonal to what the projection takes away. So a bound that is made of a linear lower model of the loss keeps its formula.
"""

import numpy as np

FREE, ZERO = 0, 2
"""In an array of signs +1 and -1 are what a weight may be; these stand for any sign, and for a weight that is 0."""


def project(w: np.ndarray, signs: np.ndarray | None) -> np.ndarray:
    """Return the weights of these signs that are nearest to w; zeros have no sign bit.

    Parameters
    ----------
    w : ndarray of shape (n,), float64
    signs : ndarray of shape (n,), int8, or None
        +1, -1, `FREE` or `ZERO`; None leaves w as it is.
    """
    if signs is None:
        return w
    w = w.copy()
    w[((signs == 1) & (w <= 0.0)) | ((signs == -1) & (w >= 0.0)) | (signs == ZERO)] = 0.0
    return w


def outside(slope: np.ndarray, signs: np.ndarray | None) -> np.ndarray:
    """Return by how much each entry of a slope asks its weight to move within the cone from 0, float64 of shape (n,)."""
    size = np.abs(slope)
    if signs is None:
        return size
    size[((signs == 1) & (slope > 0.0)) | ((signs == -1) & (slope < 0.0)) | (signs == ZERO)] = 0.0
    return size
