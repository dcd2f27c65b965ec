"""The lower bound of a bundle of dual points: a concave quadratic over a product of simplexes."""

import numpy as np

from aucdist.kernels import simplex
from aucdist.kernels.simplex import RIDGE
from aucdist.solvers.cone import FREE, outside, project

MOST_SIGNS = 30
"""The most patterns of signs that `Bundle.sparse_proximal_point` tries; a few are usual. Over a cone as many sets of zeros."""


class Bundle:
    """The dual points so far, and the best convex combination of them.

    The dual variables of the pairs are in groups, each with its own points (A, g): the height of a cut at zero, which for the
    hinge is the weight of the active pairs, and its gradient. The bound is

        max over b of  sum b_t A_t - |sum b_t g_t|^2 / (2 lam),   b >= 0,  sum of b over each group = 1,

    which holds for every feasible b: how exactly the maximum is found decides how fast the bound rises, not whether it is true.
    Over a cone of signs the weights ``w = -(1/lam) sum b_t g_t`` are projected on it, and ``lam/2 |w|^2`` is what is taken away.

    Parameters
    ----------
    n_groups, n_features : int
    idle_rounds : int, default=40
        A point that had no weight for so many rounds is dropped, which bounds the memory.
    signs : ndarray of shape (n_features,), int8, optional
        Of the weights, see `aucdist.solvers.cone`.

    Attributes
    ----------
    b : ndarray of shape (n_points,)
        The weights of the points.
    """

    def __init__(self, n_groups: int, n_features: int, idle_rounds: int = 40, signs: np.ndarray | None = None):
        self.n_groups = n_groups
        self.signs = signs
        self.idle_rounds = idle_rounds
        self.b = np.zeros(0)
        self._b_proximal = np.zeros(0)
        self._heights = np.zeros(0)
        self._gradients = np.zeros((0, n_features))
        self._gram = np.zeros((0, 0))
        self._group = np.zeros(0, dtype=np.int64)
        self._idle = np.zeros(0, dtype=np.int64)

    def add(self, heights: np.ndarray, gradients: np.ndarray) -> np.ndarray:
        """Add one point per group, but no second one that is zero; return the groups whose points were added.

        A group none of whose pairs is active has the point zero, round after round. Equal points share the weight of one, and
        all of them would be in each system that `maximise` solves.

        Parameters
        ----------
        heights : ndarray of shape (n_groups,)
        gradients : ndarray of shape (n_groups, n_features)
        """
        first = len(self.b) == 0
        self._drop_idle()
        known = np.flatnonzero((self._heights == 0.0) & (self._gram.diagonal() == 0.0))
        again = np.isin(np.arange(self.n_groups), self._group[known]) & zero_points(heights, gradients)
        self._idle[known[again[self._group[known]]]] = 0
        added = np.flatnonzero(~again)
        gradients, old, new = gradients[added], len(self.b), len(added)
        self._gradients = np.vstack([self._gradients, gradients])
        gram = np.empty((old + new,) * 2)
        gram[:old, :old] = self._gram
        gram[:, old:] = self._gradients @ gradients.T
        gram[old:, :old] = gram[:old, old:].T
        self._gram = gram
        self._heights = np.append(self._heights, heights[added])
        self._group = np.append(self._group, added)
        self._idle = np.append(self._idle, np.zeros(new, dtype=np.int64))
        unused = np.full(new, 1.0 if first else 0.0)
        self.b, self._b_proximal = np.append(self.b, unused), np.append(self._b_proximal, unused)
        return added

    @property
    def height(self) -> float:
        """The height at zero of the best combination found last; for the hinge the weight of its active pairs."""
        return float(self.b @ self._heights)

    def resolution(self, lam: float) -> float:
        """Return the smallest difference between two values of the dual that `maximise` can distinguish."""
        return 0.5 * RIDGE * float(np.diag(self._gram).max()) / lam

    @property
    def n_points(self) -> int:
        """The number of points."""
        return len(self.b)

    def best_combination(self, lam: float) -> tuple[np.ndarray, float]:
        """Find the combination with the largest dual value. The points do not depend on lam, which may change between calls.

        Returns
        -------
        w : ndarray of shape (n_features,)
            ``-(1/lam) sum b_t g_t``, projected on the cone: the minimiser of the lower model of the objective.
        bound : float
            The dual value of the combination, computed from `w` itself.
        """
        if self.signs is None:
            self.b = self._maximise("best", self._gram / lam, self._heights, self.b)
        else:
            self.b = self._in_cone("best", lam, np.zeros(self._gradients.shape[1]), 0.0, self.b)
        self._idle = np.where(self.b > 0, 0, self._idle + 1)
        support = self.b > 0
        w = project(-(self.b[support] @ self._gradients[support]) / lam, self.signs)
        return w, float(self.b @ self._heights - 0.5 * lam * (w @ w))

    def proximal_point(self, lam: float, centre: np.ndarray, mu: float) -> np.ndarray:
        """Return the minimiser of the lower model of the objective plus ``mu/2 |w - centre|^2``.

        Parameters
        ----------
        lam : float
        centre : ndarray of shape (n_features,)
        mu : float
            Above 0.
        """
        total = lam + mu
        if self.signs is None:
            heights = self._heights + (mu / total) * (self._gradients @ centre)
            self._b_proximal = self._maximise("proximal", self._gram / total, heights, self._b_proximal)
        else:
            self._b_proximal = self._in_cone("proximal", lam, centre, mu, self._b_proximal)
        self._idle[self._b_proximal > 0] = 0
        return project((mu * centre - self._b_proximal @ self._gradients) / total, self.signs)

    def _maximise(self, which: str, H: np.ndarray, heights: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the maximiser of ``heights'b - b'Hb / 2`` over the feasible combinations; `which` is "best" or "proximal"."""
        return maximise(H, heights, self._group, b)

    def _in_cone(self, which: str, lam: float, centre: np.ndarray, mu: float, b: np.ndarray) -> np.ndarray:
        """Return the combination with the largest dual value over the cone.

        If it is known which weights are 0, this is the quadratic of `proximal_point` in the others. So the best combination is
        found for the present zeros, then for its own, and so on, as for the signs of `sparse_proximal_point`.
        """
        assert self.signs is not None
        total = lam + mu
        w, value = self._in_cone_at(b, lam, centre, mu)
        for _ in range(MOST_SIGNS):
            free = (w != 0.0) | (self.signs == FREE)
            part = self._gradients[:, free]
            heights = self._heights + (mu / total) * (part @ centre[free])
            target = self._maximise(which, part @ part.T / total, heights, b)
            step, before = 1.0, value
            while step > 1e-4:
                tried = b + step * (target - b)
                candidate = self._in_cone_at(tried, lam, centre, mu)
                if candidate[1] > value:
                    b, (w, value) = tried, candidate
                    break
                step *= 0.5
            if value - before <= 1e-10 * abs(value):
                break
        return b

    def _in_cone_at(self, b: np.ndarray, lam: float, centre: np.ndarray, mu: float) -> tuple[np.ndarray, float]:
        """Return the weights of a combination, and its dual value."""
        slope = b @ self._gradients
        w = project((mu * centre - slope) / (lam + mu), self.signs)
        away = w - centre
        return w, float(b @ self._heights + slope @ w + 0.5 * lam * (w @ w) + 0.5 * mu * (away @ away))

    def sparse_proximal_point(self, lam: float, centre: np.ndarray, mu: float) -> tuple[np.ndarray, float, float]:
        """Minimise the lower model of the loss plus ``lam |w|_1 + mu/2 |w - centre|^2``.

        If the signs of w are known, this is the quadratic of `proximal_point` in the features that are not 0. So the best
        combination is found for the present signs, then for its own signs, and so on; the dual value never falls.

        Parameters
        ----------
        lam : float
        centre : ndarray of shape (n_features,)
        mu : float
            Above 0.

        Returns
        -------
        w : ndarray of shape (n_features,)
        model : float
            The lower model and ``lam |w|_1`` there.
        bound : float
            A lower bound on loss plus ``lam |w|_1`` at all weights.
        """
        b = self._b_proximal
        w, value, slope = self._sparse_at(b, lam, centre, mu)
        for _ in range(MOST_SIGNS):
            used = np.flatnonzero(w)
            part = self._gradients[:, used]
            heights = self._heights + part @ (centre[used] - lam / mu * np.sign(w[used]))
            target = maximise(part @ part.T / mu, heights, self._group, b)
            step, before = 1.0, value
            while step > 1e-4:
                tried = b + step * (target - b)
                candidate = self._sparse_at(tried, lam, centre, mu)
                if candidate[1] > value:
                    b, (w, value, slope) = tried, candidate
                    break
                step *= 0.5
            if value - before <= 1e-9 * abs(value):
                break
        self.b = self._b_proximal = b
        self._idle = np.where(b > 0, 0, self._idle + 1)
        size = float(outside(slope, self.signs).max())
        share = min(1.0, lam / size) if size > 0.0 else 1.0
        away = w - centre
        return w, value - 0.5 * mu * float(away @ away), share * float(b @ self._heights)

    def _sparse_at(
        self, b: np.ndarray, lam: float, centre: np.ndarray, mu: float
    ) -> tuple[np.ndarray, float, np.ndarray]:
        """Return the weights of a combination, its dual value, and its gradient."""
        slope = b @ self._gradients
        w = centre - slope / mu
        w = project(np.sign(w) * np.maximum(np.abs(w) - lam / mu, 0.0), self.signs)
        away = w - centre
        value = b @ self._heights + slope @ w + lam * np.abs(w).sum() + 0.5 * mu * (away @ away)
        return w, float(value), slope

    def newest_gradient(self) -> np.ndarray:
        """Return the gradient of the loss where the last cut was taken."""
        total: np.ndarray = self._gradients[-self.n_groups :].sum(axis=0)
        return total

    def _drop_idle(self) -> None:
        active = self._idle < self.idle_rounds
        if (self._b_proximal[~active] > 0).any():
            self._b_proximal = self.b  # of a proximal point long ago
        if not active.all():
            self._gram = self._gram[np.ix_(active, active)]
            self._gradients = self._gradients[active]
            self.b, self._b_proximal, self._heights = self.b[active], self._b_proximal[active], self._heights[active]
            self._group, self._idle = self._group[active], self._idle[active]


def zero_points(heights: np.ndarray, gradients: np.ndarray) -> np.ndarray:
    """Return which points, one per group, are zero: bool of shape (n_groups,)."""
    return (heights == 0.0) & ~gradients.any(axis=1)


def maximise(H: np.ndarray, a: np.ndarray, group: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Maximise ``a'b - b'Hb / 2`` over b >= 0 with a sum of 1 in each group, by an active-set method.

    Parameters
    ----------
    H : ndarray of shape (n, n)
        Positive semi-definite.
    a : ndarray of shape (n,)
    group : ndarray of shape (n,), int64
        Numbers 0 .. n_groups - 1, each present.
    b : ndarray of shape (n,)
        A feasible start.

    Returns
    -------
    ndarray of shape (n,)
        Feasible, and optimal to a relative 1e-10 of the value unless the rounds ran out.
    """
    b = b.copy()
    simplex.maximise(np.ascontiguousarray(H), a, group, int(group.max()) + 1, b)
    return b / np.bincount(group, b)[group]
