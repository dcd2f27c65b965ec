"""Constrain the signs of weights, so that a model rises or falls in some of its features: the minimum over a cone.

A cone is the set of weights that have given signs. Over a cone, ``w = proj(v / lam)`` minimises ``lam/2 |w|^2 - v.w``, and the
minimum is ``-lam/2 |w|^2``, because w is orthogonal to the part that the projection removes. So the formula of a bound from a
linear lower model of the loss does not change."""

import numpy as np
from numpy import ndarray

FREE, ZERO = 0, 2
"""In an array of signs, +1 and -1 are the signs that a weight may have. These two stand for any sign, and for a weight
that is 0."""

MAX_ROUNDS = 200


def project_onto_cone(w: ndarray, signs: ndarray | None) -> ndarray:
    """Return the weights with these signs that are nearest to w. Zeros are 0.0 and never -0.0.

    Parameters
    ----------
    w : ndarray of shape (n,), float64
        The weights.
    signs : ndarray of shape (n,), int8, or None
        +1, -1, `FREE` or `ZERO`; None leaves w as it is.
    """
    if signs is None:
        return w
    w = w.copy()
    w[((signs == 1) & (w <= 0.0)) | ((signs == -1) & (w >= 0.0)) | (signs == ZERO)] = 0.0
    return w


def outside(slope: ndarray, signs: ndarray | None) -> ndarray:
    """Return the absolute values of the entries of the negative slope after projection onto the cone: float64 of shape (n,)."""
    return np.abs(project_onto_cone(-slope, signs))


def blocked(w: ndarray, gradient: ndarray, signs: ndarray | None) -> ndarray:
    """Return which weights stay at 0 because a step down the gradient would leave the cone, bool of shape (n,)."""
    if signs is None:
        return np.zeros(len(w), dtype=bool)
    return ((w == 0.0) & (signs != FREE) & (signs * gradient >= 0.0)) | (signs == ZERO)


def minimise_quadratic(H: ndarray, q: ndarray, signs: ndarray) -> ndarray:
    """Minimise ``w'Hw / 2 - q.w`` over the cone by projected Newton steps (Bertsekas, SIAM J. Control Optim. 20, 1982).

    Parameters
    ----------
    H : ndarray of shape (n, n), float64
        Positive definite.
    q : ndarray of shape (n,), float64
        The linear term.
    signs : ndarray of shape (n,), int8
        The sign of each weight: +1, -1, `FREE` or `ZERO`.

    Returns
    -------
    ndarray of shape (n,), float64
        A point of the cone. It is the minimum, unless `MAX_ROUNDS` was reached.
    """
    w = np.zeros(len(q))
    gradient, value = -q, 0.0
    for _ in range(MAX_ROUNDS):
        free = np.flatnonzero(~blocked(w, gradient, signs))
        move = np.zeros(len(q))
        if len(free):
            move[free] = np.linalg.solve(H[np.ix_(free, free)], -gradient[free])
        step, best = 1.0, None
        while step > 1e-10:
            trial = project_onto_cone(w + step * move, signs)
            trial_value = float(trial @ (0.5 * (H @ trial) - q))
            if trial_value < value:
                best = (trial, trial_value)
                break
            step *= 0.5
        if best is None:
            break
        before, (w, value) = value, best
        gradient = H @ w - q
        if before - value <= 1e-15 * abs(value):
            break
    return w
