"""What a contestant is: a name, what it needs, and a function that fits it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

LAMS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
"""Weight of ``lam/2 |w|^2`` beside the mean loss; each adapter turns it into its system's own C or alpha."""

OURS, LINEAR, OTHER = "ours", "linear", "not linear"


@dataclass(frozen=True)
class Fitted:
    """A fitted model.

    Attributes
    ----------
    scores : callable
        Takes X of shape (n_samples, n_features), returns n_samples scores, higher for positives.
    gap : float or None
        The certified relative gap, from who has one.
    ended : bool or None
        Whether the fit was over before its budget; None from who does not tell.
    """

    scores: Callable[[Any], np.ndarray]
    gap: float | None = None
    ended: bool | None = None


Fit = Callable[[Any, np.ndarray, float, int, int], Fitted]


@dataclass(frozen=True)
class System:
    """A contestant.

    Attributes
    ----------
    name : str
    package : str
        The module whose absence means that the system is not installed.
    fit : callable
        ``fit(X, y, value, budget, threads)`` with X a float ndarray or ``csr_matrix``, y of int8, -1 or +1; a function of a
        module, since it is called in another process.
    budgets : tuple of int
        Ascending: iterations, passes, epochs or trees.
    usual : int
        The budget when the value is chosen: the system's default, or near it.
    kind : str
        `OURS`, `LINEAR` or `OTHER`.
    grid : tuple of float
        The five values to choose from: lam, or the size of trees.
    dense : bool
        Takes no sparse rows.
    widest : int or None
        The most features: beyond it a matrix of features by features does not fit.
    form : callable or None
        Brings X and y into the form in which its users have their data; it is not on the clock.
    """

    name: str
    package: str
    fit: Fit
    budgets: tuple[int, ...]
    usual: int
    kind: str = LINEAR
    grid: tuple[float, ...] = LAMS
    dense: bool = False
    widest: int | None = None
    form: Callable[[Any, np.ndarray], Any] | None = None

    def why_not(self, sparse: bool, n_features: int) -> str | None:
        """Return why this system does not run on such rows, or None."""
        if self.dense and sparse:
            return "not run here: takes no sparse rows"
        if self.widest is not None and n_features > self.widest:
            return f"not run here: a matrix of {n_features} by {n_features} features"
        return None


def by_weights(w: np.ndarray, gap: float | None = None, ended: bool | None = None) -> Fitted:
    """Return the model of these weights."""
    w = np.asarray(w, dtype=np.float64).ravel()
    return Fitted(lambda X: np.asarray(X @ w), gap, ended)
