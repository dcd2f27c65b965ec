"""The lower bound of a bundle of dual points: a concave quadratic over a product of simplexes."""

import numpy as np

from aucdist.kernels import simplex
from aucdist.kernels.simplex import RIDGE
from aucdist.kernels.simplex_factor import Maximiser
from aucdist.solvers.pairs.penalty import Penalty

MOST_PATTERNS = 30
"""The most patterns of zeros and signs that are tried for a combination; a few are usual."""

FEW_POINTS = 64
"""Up to so many the systems of an active set are solved anew; of more a factor follows it."""


class Bundle:
    """The dual points so far, and the best convex combination of them.

    The dual variables of the pairs are in components, each with its own points (A, g): the height of a cut at zero, which for the
    hinge is the weight of the active pairs, and its gradient. The bound is

        max over b of  sum b_t A_t + min over w of (sum b_t g_t).w + penalty(w),   b >= 0,  sum of b over each component = 1,

    which holds for every feasible b: how exactly the maximum is found decides how fast the bound rises, not whether it is true.
    For ``lam/2 |w|^2`` the minimum is ``-|sum b_t g_t|^2 / (2 lam)``.

    Parameters
    ----------
    idle_rounds : int, default=40
        A point that had no weight for so many rounds is dropped, which bounds the memory.

    Attributes
    ----------
    b : ndarray of shape (n_points,)
        The weights of the points.
    """

    def __init__(self, n_components: int, n_features: int, idle_rounds: int = 40):
        self.n_components = n_components
        self.idle_rounds = idle_rounds
        self.b = np.zeros(0)
        self._b_proximal = np.zeros(0)
        self._heights = np.zeros(0)
        self._gradients = np.zeros((0, n_features))
        self._gram = np.zeros((0, 0))
        self._component = np.zeros(0, dtype=np.int64)
        self._idle = np.zeros(0, dtype=np.int64)

    def add(self, heights: np.ndarray, gradients: np.ndarray, shares: np.ndarray | None = None) -> np.ndarray:
        """Add one point per component, but no second one that is zero; return the components whose points were added.

        A component none of whose pairs is active has the point zero, round after round. Equal points share the weight of one, and
        all of them would be in each system that `maximise` solves.

        Parameters
        ----------
        heights : ndarray of shape (n_components,)
        gradients : ndarray of shape (n_components, n_features)
        shares : ndarray of shape (n_components,), optional
            Of the rows that count; only a `CoupledBundle` needs them.
        """
        first = len(self.b) == 0
        self._drop_idle()
        known = np.flatnonzero((self._heights == 0.0) & (self._gram.diagonal() == 0.0))
        again = np.isin(np.arange(self.n_components), self._component[known]) & zero_points(heights, gradients)
        self._idle[known[again[self._component[known]]]] = 0
        added = np.flatnonzero(~again)
        gradients, old, new = gradients[added], len(self.b), len(added)
        self._gradients = np.vstack([self._gradients, gradients])
        gram = np.empty((old + new,) * 2)
        gram[:old, :old] = self._gram
        gram[:, old:] = self._gradients @ gradients.T
        gram[old:, :old] = gram[:old, old:].T
        self._gram = gram
        self._heights = np.append(self._heights, heights[added])
        self._component = np.append(self._component, added)
        self._idle = np.append(self._idle, np.zeros(new, dtype=np.int64))
        unused = np.full(new, 1.0 if first else 0.0)
        self.b, self._b_proximal = np.append(self.b, unused), np.append(self._b_proximal, unused)
        return added

    @property
    def height(self) -> float:
        """The height at zero of the best combination found last; for the hinge the weight of its active pairs."""
        return float(self.b @ self._heights)

    def resolution(self, lam: float) -> float:
        """Return the smallest difference between two values of the dual with an L2 penalty that `maximise` can distinguish."""
        return 0.5 * RIDGE * float(np.diag(self._gram).max()) / lam

    @property
    def n_points(self) -> int:
        """The number of points."""
        return len(self.b)

    def best_combination(self, penalty: Penalty) -> tuple[np.ndarray, float]:
        """Find the combination with the largest dual value, for a penalty without corners.

        The points do not depend on the penalty, which may change between calls.

        Returns
        -------
        w : ndarray of shape (n_features,)
            The minimiser of the lower model of the objective.
        bound : float
            The dual value of the combination, computed from `w` itself.
        """
        centre = np.zeros(self._gradients.shape[1])
        self.b = self._combine("best", penalty, centre, 0.0, self.b)
        self._idle = np.where(self.b > 0, 0, self._idle + 1)
        support = self.b > 0
        slope = self.b[support] @ self._gradients[support]
        w = penalty.minimiser(slope, centre, 0.0)
        return w, penalty.bound(self.height, slope, w)

    def proximal_point(self, penalty: Penalty, centre: np.ndarray, mu: float) -> np.ndarray:
        """Return the minimiser of the lower model of the objective plus ``mu/2 |w - centre|^2``.

        Parameters
        ----------
        centre : ndarray of shape (n_features,)
        mu : float
            Above 0.
        """
        b = self._b_proximal = self._combine("proximal", penalty, centre, mu, self._b_proximal)
        self._idle[b > 0] = 0
        return penalty.minimiser(b @ self._gradients, centre, mu)

    def proximal_combination(self, penalty: Penalty, centre: np.ndarray, mu: float) -> tuple[np.ndarray, float, float]:
        """Take the proximal point's combination for the best one: for a penalty with corners, where others have no minimiser.

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
        b = self.b = self._b_proximal = self._combine("proximal", penalty, centre, mu, self._b_proximal)
        self._idle = np.where(b > 0, 0, self._idle + 1)
        w, value, slope = self._at(b, penalty, centre, mu)
        away = w - centre
        return w, value - 0.5 * mu * float(away @ away), penalty.bound(self.height, slope, w)

    def _combine(self, which: str, penalty: Penalty, centre: np.ndarray, mu: float, b: np.ndarray) -> np.ndarray:
        """Return the combination with the largest dual value; `which` is "best" or "proximal".

        If it is known which weights are 0 and which signs the others have, the dual value is a quadratic. So its maximiser is
        found for the present pattern, then for its own, and so on; the dual value never falls.
        """
        if penalty.is_quadratic:
            total = penalty.lam + mu
            heights = self._heights + (mu / total) * (self._gradients @ centre) if mu > 0.0 else self._heights
            return self._maximise(which, self._gram / total, heights, b)
        w, value, slope = self._at(b, penalty, centre, mu)
        for _ in range(MOST_PATTERNS):
            H, linear = penalty.quadratic(self._gradients, slope, w, centre, mu)
            target = self._maximise(which, H, self._heights + linear, b)
            step, before = 1.0, value
            while step > 1e-4:
                tried = b + step * (target - b)
                candidate = self._at(tried, penalty, centre, mu)
                if candidate[1] > value:
                    b, (w, value, slope) = tried, candidate
                    break
                step *= 0.5
            if value - before <= penalty.precision * abs(value):
                break
        return b

    def _at(
        self, b: np.ndarray, penalty: Penalty, centre: np.ndarray, mu: float
    ) -> tuple[np.ndarray, float, np.ndarray]:
        """Return the weights of a combination, its dual value, and its gradient."""
        slope = b @ self._gradients
        w = penalty.minimiser(slope, centre, mu)
        away = w - centre
        value = b @ self._heights + slope @ w + penalty.value(w) + 0.5 * mu * (away @ away)
        return w, float(value), slope

    def _maximise(self, which: str, H: np.ndarray, heights: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the maximiser of ``heights'b - b'Hb / 2`` over the feasible combinations; `which` is "best" or "proximal"."""
        return maximise(H, heights, self._component, b)

    def newest_gradient(self) -> np.ndarray:
        """Return the gradient of the loss where the last cut was taken."""
        total: np.ndarray = self._gradients[-self.n_components :].sum(axis=0)
        return total

    def _drop_idle(self) -> None:
        active = self._idle < self.idle_rounds
        if (self._b_proximal[~active] > 0).any():
            self._b_proximal = self.b  # of a proximal point long ago
        if not active.all():
            self._gram = self._gram[np.ix_(active, active)]
            self._gradients = self._gradients[active]
            self.b, self._b_proximal, self._heights = self.b[active], self._b_proximal[active], self._heights[active]
            self._component, self._idle = self._component[active], self._idle[active]


def zero_points(heights: np.ndarray, gradients: np.ndarray) -> np.ndarray:
    """Return which points, one per component, are zero: bool of shape (n_components,)."""
    return (heights == 0.0) & ~gradients.any(axis=1)


def maximise(H: np.ndarray, a: np.ndarray, component: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Maximise ``a'b - b'Hb / 2`` over b >= 0 with a sum of 1 in each component, by an active-set method.

    Parameters
    ----------
    H : ndarray of shape (n, n)
        Positive semi-definite.
    a : ndarray of shape (n,)
    component : ndarray of shape (n,), int64
        Numbers 0 .. n_components - 1, each present.
    b : ndarray of shape (n,)
        A feasible start.

    Returns
    -------
    ndarray of shape (n,)
        Feasible, and optimal to a relative 1e-10 of the value unless the rounds ran out.
    """
    b = b.copy()
    H, n_components = np.ascontiguousarray(H), int(component.max()) + 1
    if len(H) <= FEW_POINTS:
        simplex.maximise(H, a, component, n_components, b)
    else:
        Maximiser(H, component, n_components).maximise(a, b)
    return b / np.bincount(component, b)[component]
