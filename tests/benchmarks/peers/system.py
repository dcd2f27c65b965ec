"""A contestant of the suite `peers`: its name, its requirements, and the function that fits it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

LAMS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
"""Weights of the penalty ``lam/2 |w|^2`` beside the mean loss; each adapter converts them into its system's C or alpha."""

OURS, LINEAR, OTHER = "ours", "linear", "not linear"


@dataclass(frozen=True)
class FittedModel:
    """A fitted model.

    Attributes
    ----------
    scores : callable
        Takes X of shape (n_samples, n_features), returns n_samples scores, higher for positives.
    gap : float or None
        The certified relative gap, if the system has one.
    ended : bool or None
        Whether the fit ended before its budget; None if the system does not report it.
    """

    scores: Callable[[Any], np.ndarray]
    gap: float | None = None
    ended: bool | None = None


Fit = Callable[[Any, np.ndarray, float, int, int], FittedModel]


@dataclass(frozen=True)
class System:
    """A contestant.

    Attributes
    ----------
    name : str
    package : str
        The module whose absence means that the system is not installed.
    fit : callable
        ``fit(X, y, value, budget, threads)`` with X a float ndarray or ``csr_matrix``, y of int8, -1 or +1. It must be a
        function of a module, because another process calls it.
    budgets : tuple of int
        Iterations, passes, epochs or trees, ascending.
    choice_budget : int
        The budget for the choice of the value: the default of the system, or near it.
    kind : str
        `OURS`, `LINEAR` or `OTHER`.
    grid : tuple of float
        The five values to choose from: lam, or the size of trees.
    dense : bool
        Whether the system refuses sparse rows.
    max_features : int or None
        The largest number of features for which a matrix of features by features fits.
    prepare : callable or None
        Converts X and y into the form in which users of the system have their data; it is not timed.
    reads_all_rows : bool
        Whether a fit uses all training rows, or else a sample of them, which takes less time the rarer a class is.
    """

    name: str
    package: str
    fit: Fit
    budgets: tuple[int, ...]
    choice_budget: int
    kind: str = LINEAR
    grid: tuple[float, ...] = LAMS
    dense: bool = False
    max_features: int | None = None
    prepare: Callable[[Any, np.ndarray], Any] | None = None
    reads_all_rows: bool = True

    def reason_to_skip(self, sparse: bool, n_features: int) -> str | None:
        """Return why this system cannot run on such rows, or None if it can."""
        if self.dense and sparse:
            return "not run here: takes no sparse rows"
        if self.max_features is not None and n_features > self.max_features:
            return f"not run here: a matrix of {n_features} by {n_features} features"
        return None


def linear_model(w: np.ndarray, gap: float | None = None, ended: bool | None = None) -> FittedModel:
    """Return the model with these weights."""
    w = np.asarray(w, dtype=np.float64).ravel()
    return FittedModel(lambda X: np.asarray(X @ w), gap, ended)
