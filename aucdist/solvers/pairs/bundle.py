"""The lower bound of a bundle of dual points: a concave quadratic over a product of simplexes."""

import numpy as np

from aucdist.kernels.simplex import RIDGE
from aucdist.kernels.simplex import maximise as kernel

MOST_SIGNS = 30
"""Patterns of signs that `Bundle.near_sparse` goes through at most; a few are the rule."""


class Bundle:
    """Dual points seen so far, and the best convex combination of them.

    The dual variables of the pairs fall into groups, each with its own points (A, g): the weight of its active pairs and
    the gradient they add up to. The bound is

        max over b of  sum b_t A_t - |sum b_t g_t|^2 / (2 lam),   b >= 0,  sum of b over each group = 1,

    true for every feasible b, so how exactly it is solved decides how fast the bound rises, not whether it holds.

    Parameters
    ----------
    n_groups, n_features : int
    idle_rounds : int, default=40
        A point that had no weight for so many rounds is dropped; that bounds the memory.

    Attributes
    ----------
    b : ndarray of shape (n_points,)
        Weights of the points.
    """

    def __init__(self, n_groups: int, n_features: int, idle_rounds: int = 40):
        self.n_groups = n_groups
        self.idle_rounds = idle_rounds
        self.b = np.zeros(0)
        self._b_near = np.zeros(0)
        self._active = np.zeros(0)
        self._gradients = np.zeros((0, n_features))
        self._gram = np.zeros((0, 0))
        self._group = np.zeros(0, dtype=np.int64)
        self._idle = np.zeros(0, dtype=np.int64)

    def add(self, active: np.ndarray, gradients: np.ndarray) -> None:
        """Add one point per group.

        Parameters
        ----------
        active : ndarray of shape (n_groups,)
        gradients : ndarray of shape (n_groups, n_features)
        """
        first = len(self.b) == 0
        self._drop_idle()
        old = len(self.b)
        self._gradients = np.vstack([self._gradients, gradients])
        gram = np.empty((old + self.n_groups,) * 2)
        gram[:old, :old] = self._gram
        gram[:, old:] = self._gradients @ gradients.T
        gram[old:, :old] = gram[:old, old:].T
        self._gram = gram
        self._active = np.append(self._active, active)
        self._group = np.append(self._group, np.arange(self.n_groups))
        self._idle = np.append(self._idle, np.zeros(self.n_groups, dtype=np.int64))
        unused = np.full(self.n_groups, 1.0 if first else 0.0)
        self.b, self._b_near = np.append(self.b, unused), np.append(self._b_near, unused)

    @property
    def active(self) -> float:
        """The weight of the active pairs in the best combination found last."""
        return float(self.b @ self._active)

    def resolution(self, lam: float) -> float:
        """Return how far apart two values of the dual have to be for `maximise` to tell them apart."""
        return 0.5 * RIDGE * float(np.diag(self._gram).max()) / lam

    @property
    def n_points(self) -> int:
        """Number of points held."""
        return len(self.b)

    def solve(self, lam: float) -> tuple[np.ndarray, float]:
        """Find the best combination. The points themselves do not depend on lam, which may change from call to call.

        Returns
        -------
        w : ndarray of shape (n_features,)
            ``-(1/lam) sum b_t g_t``, where to look next.
        bound : float
            The value of the dual at the combination, computed from `w` itself.
        """
        self.b = maximise(self._gram / lam, self._active, self._group, self.b)
        self._idle = np.where(self.b > 0, 0, self._idle + 1)
        support = self.b > 0
        w = -(self.b[support] @ self._gradients[support]) / lam
        return w, float(self.b @ self._active - 0.5 * lam * (w @ w))

    def near(self, lam: float, centre: np.ndarray, mu: float) -> np.ndarray:
        """Return the minimiser of the bundle's lower model of the objective plus ``mu/2 |w - centre|^2``.

        Parameters
        ----------
        lam : float
        centre : ndarray of shape (n_features,)
        mu : float
            Above 0.
        """
        total = lam + mu
        heights = self._active + (mu / total) * (self._gradients @ centre)
        self._b_near = maximise(self._gram / total, heights, self._group, self._b_near)
        self._idle[self._b_near > 0] = 0
        return (mu * centre - self._b_near @ self._gradients) / total

    def near_sparse(self, lam: float, centre: np.ndarray, mu: float) -> tuple[np.ndarray, float, float]:
        """Minimise the bundle's lower model of the loss plus ``lam |w|_1 + mu/2 |w - centre|^2``.

        Where the signs of w are known, this is the quadratic of `near` in the features that are not 0. So: the signs, the best
        combination for them, its signs, and so on, never letting the dual value fall.

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
            A lower bound on loss plus ``lam |w|_1`` at any weights whatever.
        """
        b = self._b_near
        w, value, slope = self._sparse_at(b, lam, centre, mu)
        for _ in range(MOST_SIGNS):
            used = np.flatnonzero(w)
            part = self._gradients[:, used]
            heights = self._active + part @ (centre[used] - lam / mu * np.sign(w[used]))
            aim = maximise(part @ part.T / mu, heights, self._group, b)
            step, before = 1.0, value
            while step > 1e-4:
                tried = b + step * (aim - b)
                found = self._sparse_at(tried, lam, centre, mu)
                if found[1] > value:
                    b, (w, value, slope) = tried, found
                    break
                step *= 0.5
            if value - before <= 1e-9 * abs(value):
                break
        self.b = self._b_near = b
        self._idle = np.where(b > 0, 0, self._idle + 1)
        size = float(np.abs(slope).max())
        share = min(1.0, lam / size) if size > 0.0 else 1.0
        away = w - centre
        return w, value - 0.5 * mu * float(away @ away), share * float(b @ self._active)

    def _sparse_at(
        self, b: np.ndarray, lam: float, centre: np.ndarray, mu: float
    ) -> tuple[np.ndarray, float, np.ndarray]:
        """Return the weights that a combination leads to, its dual value, and its gradient."""
        slope = b @ self._gradients
        w = centre - slope / mu
        w = np.sign(w) * np.maximum(np.abs(w) - lam / mu, 0.0)
        away = w - centre
        value = b @ self._active + slope @ w + lam * np.abs(w).sum() + 0.5 * mu * (away @ away)
        return w, float(value), slope

    def newest_gradient(self) -> np.ndarray:
        """Return the gradient of the loss where the last cut was taken."""
        total: np.ndarray = self._gradients[-self.n_groups :].sum(axis=0)
        return total

    def _drop_idle(self) -> None:
        keep = self._idle < self.idle_rounds
        if (self._b_near[~keep] > 0).any():
            self._b_near = self.b  # it was not asked for a while
        if not keep.all():
            self._gram = self._gram[np.ix_(keep, keep)]
            self._gradients = self._gradients[keep]
            self.b, self._b_near, self._active = self.b[keep], self._b_near[keep], self._active[keep]
            self._group, self._idle = self._group[keep], self._idle[keep]


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
    kernel(np.ascontiguousarray(H), a, group, int(group.max()) + 1, b)
    return b / np.bincount(group, b)[group]
