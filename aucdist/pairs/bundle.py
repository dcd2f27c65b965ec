"""The lower bound of the objective from cuts: the best convex combination of the dual points of all cuts.

The bound is the maximum of a concave quadratic over a simplex. For penalties that set weights to 0, several such maxima are
computed one after the other.
"""

import numpy as np
from numpy import ndarray

from aucdist.pairs.penalty import L2, Penalty

RIDGE = 1e-12
"""The number that is added to the diagonal, as a share of its mean. Points that nearly coincide would otherwise make the system
singular."""

IDLE_ROUNDS = 40
"""The number of rounds without weight after which a point is dropped, which bounds the memory."""

FIRST_CAPACITY = 64
"""The number of gradients that fit into the first array. When it is full, its size is doubled."""

MAX_CHANGES = 2_000
"""The largest number of changes of the points that a combination uses. Each round of a fit needs a few."""

MAX_PATTERNS = 30
"""The largest number of patterns of zeros and signs that are tried for a combination. A few are usual."""


class Bundle:
    """The dual points so far, and the best convex combination of them.

    A point (A, g) belongs to a cut. A is its offset, the value of the cut at w = 0, which for the hinge is the weight of its
    active pairs. g is its gradient. The bound is

        max over b of  sum b_t A_t + min over w of (sum b_t g_t).w + penalty(w),   b >= 0,  sum of b = 1,

    which is valid for every feasible b. The accuracy of the maximum affects how fast the bound rises, but not its validity.
    For ``lam/2 |w|^2`` the minimum is ``-|sum b_t g_t|^2 / (2 lam)``.

    Attributes
    ----------
    weights : ndarray of shape (n_points,)
        The weights b of the points in the best combination.
    """

    def __init__(self, n_features: int):
        self.weights = np.zeros(0)
        self._proximal_weights = np.zeros(0)
        self._offsets = np.zeros(0)
        self._rows = np.zeros((FIRST_CAPACITY, n_features))  # one gradient in each row
        self._gram = np.zeros((0, 0))
        self._idle = np.zeros(0, dtype=np.int64)

    @property
    def _gradients(self) -> ndarray:
        return self._rows[: self.n_points]

    def add(self, offset: float, gradient: ndarray, image: ndarray | None = None) -> None:
        """Add a point, unless it is zero (no pair is active) and there is a zero point already.

        Parameters
        ----------
        offset : float
            The offset of the cut.
        gradient : ndarray of shape (n_features,)
            The gradient of the cut.
        image : ndarray of shape (n_features,), optional
            The vector whose inner product with another gradient is used: with kernels, the Gram matrix times the gradient.
        """
        active = self._idle < IDLE_ROUNDS
        if (self._proximal_weights[~active] > 0).any():
            self._proximal_weights = self.weights  # the weights of the last proximal point
        if not active.all():
            self._gram = self._gram[np.ix_(active, active)]
            self._rows[: np.count_nonzero(active)] = self._gradients[active]
            self.weights, self._proximal_weights = self.weights[active], self._proximal_weights[active]
            self._offsets, self._idle = self._offsets[active], self._idle[active]
        if offset == 0.0 and not gradient.any():
            zero_points = np.flatnonzero((self._offsets == 0.0) & (self._gram.diagonal() == 0.0))
            self._idle[zero_points] = 0
            if len(zero_points):
                return
        n = self.n_points
        if n == len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        self._rows[n] = gradient
        gram = np.empty((n + 1, n + 1))
        gram[:n, :n] = self._gram
        gram[n] = gram[:, n] = self._rows[: n + 1] @ (gradient if image is None else image)
        self._gram = gram
        self._offsets, self._idle = np.append(self._offsets, offset), np.append(self._idle, 0)
        weight = 1.0 if n == 0 else 0.0
        self.weights = np.append(self.weights, weight)
        self._proximal_weights = np.append(self._proximal_weights, weight)

    @property
    def offset(self) -> float:
        """The offset of the best combination that was found last. For the hinge, it is the weight of the active pairs."""
        return float(self.weights @ self._offsets)

    def resolution(self, lam: float) -> float:
        """Return the smallest difference between two values of the dual with an L2 penalty that `maximise` can distinguish."""
        return 0.5 * RIDGE * float(np.diag(self._gram).max()) / lam

    @property
    def n_points(self) -> int:
        """The number of points."""
        return len(self.weights)

    def best_combination(self, penalty: Penalty) -> tuple[ndarray, float]:
        """Find the combination with the largest dual value, for a penalty that is differentiable.

        The points do not depend on the penalty, which may change between calls.

        Returns
        -------
        w : ndarray of shape (n_features,)
            The minimiser of the lower model of the objective.
        bound : float
            The dual value of the combination, computed from `w` itself.
        """
        centre = np.zeros(self._rows.shape[1])
        self.weights = self._combine(penalty, centre, 0.0, self.weights)
        self._count_idle()
        support = self.weights > 0
        slope = self.weights[support] @ self._gradients[support]
        w = penalty.minimiser(slope, centre, 0.0)
        return w, penalty.bound(self.offset, slope, w)

    def best_value(self) -> float:
        """Return the largest dual value for the penalty ``|w|^2 / 2``.

        It is computed from the inner products of the points only.
        """
        self.weights = maximise(self._gram, self._offsets, self.weights)
        self._count_idle()
        return float(self.offset - 0.5 * self.weights @ self._gram @ self.weights)

    def proximal_point(self, penalty: Penalty, centre: ndarray, mu: float) -> ndarray:
        """Return the minimiser of the lower model of the objective plus ``mu/2 |w - centre|^2``.

        Parameters
        ----------
        centre : ndarray of shape (n_features,)
            The weights that the result stays close to.
        mu : float
            Above 0.
        """
        b = self._proximal_weights = self._combine(penalty, centre, mu, self._proximal_weights)
        self._idle[b > 0] = 0
        return penalty.minimiser(b @ self._gradients, centre, mu)

    def proximal_combination(self, penalty: Penalty, centre: ndarray, mu: float) -> tuple[ndarray, float, float]:
        """Use the combination of the proximal point. With penalties with corners, other combinations have no minimiser.

        Parameters
        ----------
        penalty, centre, mu
            As for `proximal_point`.

        Returns
        -------
        w : ndarray of shape (n_features,)
            The minimiser of the lower model of the objective plus ``mu/2 |w - centre|^2``.
        model : float
            The lower model of the objective there.
        bound : float
            A lower bound on the objective at all weights.
        """
        b = self.weights = self._proximal_weights = self._combine(penalty, centre, mu, self._proximal_weights)
        self._count_idle()
        w, value, slope = self._at(b, penalty, centre, mu)
        away = w - centre
        return w, value - 0.5 * mu * float(away @ away), penalty.bound(self.offset, slope, w)

    def _count_idle(self) -> None:
        """Count the rounds since each point last had a weight."""
        self._idle = np.where(self.weights > 0, 0, self._idle + 1)

    def _combine(self, penalty: Penalty, centre: ndarray, mu: float, b: ndarray) -> ndarray:
        """Return the combination with the largest dual value.

        For a given pattern, which says which weights are 0 and which signs the others have, the dual value is a quadratic. Its
        maximiser is found for the present pattern, then for the pattern of this maximiser, and so on. The dual value never
        falls.
        """
        # The dual value is the same quadratic for every pattern.
        if isinstance(penalty, L2) and penalty.signs is None:
            total = penalty.lam + mu
            offsets = self._offsets + (mu / total) * (self._gradients @ centre) if mu > 0.0 else self._offsets
            return maximise(self._gram / total, offsets, b)
        w, value, slope = self._at(b, penalty, centre, mu)
        for _ in range(MAX_PATTERNS):
            H, linear = penalty.quadratic(self._gradients, slope, w, centre, mu)
            target = maximise(H, self._offsets + linear, b)
            step, before = 1.0, value
            while step > 1e-4:
                trial = b + step * (target - b)
                candidate = self._at(trial, penalty, centre, mu)
                if candidate[1] > value:
                    b, (w, value, slope) = trial, candidate
                    break
                step *= 0.5
            if value - before <= penalty.precision * abs(value):
                break
        return b

    def _at(self, b: ndarray, penalty: Penalty, centre: ndarray, mu: float) -> tuple[ndarray, float, ndarray]:
        """Return the weights w of a combination, its dual value, and the gradient of the dual value."""
        slope = b @ self._gradients
        w = penalty.minimiser(slope, centre, mu)
        away = w - centre
        value = b @ self._offsets + slope @ w + penalty.value(w) + 0.5 * mu * (away @ away)
        return w, float(value), slope


def maximise(H: ndarray, a: ndarray, b: ndarray) -> ndarray:
    """Maximise ``a'b - b'Hb / 2`` over b >= 0 with a sum of 1, by an active-set method.

    Parameters
    ----------
    H : ndarray of shape (n, n)
        Positive semi-definite.
    a : ndarray of shape (n,)
        The linear term.
    b : ndarray of shape (n,)
        A feasible start.

    Returns
    -------
    ndarray of shape (n,)
        Feasible, and optimal to a relative 1e-10 of the value unless the rounds ran out.

    Raises
    ------
    ArithmeticError, numpy.linalg.LinAlgError
        If an entry of H is not finite, or points are so nearly equal that the system of equations is singular.
    """
    if not np.isfinite(H).all():
        raise ArithmeticError("infinite gradients")
    free, b, newest = np.flatnonzero(b > 0.0), b.copy(), -1
    ridge = RIDGE * (H.trace() or 1.0) / len(a)  # no larger than the rounding errors of H; H may be 0
    for _ in range(MAX_CHANGES):
        # The maximiser over the free entries without sign constraints, and the multiplier of the constraint on their sum.
        system = np.ones((len(free) + 1, len(free) + 1))
        system[:-1, :-1] = H[np.ix_(free, free)]
        system[np.diag_indices(len(free))] += ridge
        system[-1, -1] = 0.0
        *x, price = np.linalg.solve(system, np.append(a[free], 1.0))
        target, present = np.array(x), b[free]
        outside = ~(target >= 0.0)
        if outside.any():
            # Move towards the maximiser until the first entry reaches 0.
            steps = np.where(outside, present / np.where(outside, present - target, 1.0), np.inf)
            moved = np.maximum(present + steps.min() * (target - present), 0.0)
            first = int(np.argmin(steps))
            if free[first] == newest and present[first] == 0.0:
                break  # the gain is below the rounding error
            moved[first] = 0.0
            b[free], free = moved, free[moved > 0.0]
            continue
        b[free] = target
        gain = a - price - H[:, free] @ target
        gain[free] = -np.inf
        best = int(np.argmax(gain))
        if not gain[best] > 1e-10 * abs(float(a[free] @ target)):
            break
        free, newest = np.append(free, best), best
    return np.divide(b, b.sum())
