"""Plots of a fit, as scikit-learn's displays: matplotlib is imported when they are drawn."""

from typing import Any, Self

import numpy as np
import pandas as pd

from aucdist.extras import load_optional


class HistoryDisplay:
    """The relative gap of each round of a fit against its passes.

    Parameters
    ----------
    history : DataFrame
        The `history_` of an estimator.
    tol : float
        Where the fit was to end; a horizontal line.
    name : str
        Of the curve.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    line_ : matplotlib Line2D
    """

    ax_: Any
    figure_: Any
    line_: Any

    def __init__(self, history: pd.DataFrame, tol: float, name: str = ""):
        self.history, self.tol, self.name = history, tol, name

    def plot(self, ax: Any = None) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default those of a new figure.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If matplotlib is not installed.
        """
        if ax is None:
            ax = load_optional("matplotlib.pyplot").subplots()[1]
        gap = self.history["relative_gap"].to_numpy(dtype=np.float64)
        (self.line_,) = ax.plot(self.history["passes"], np.where(gap > 0, gap, np.nan), label=self.name or None)
        if self.tol > 0:
            ax.axhline(self.tol, color="gray", linestyle=":", label=f"tol {self.tol:g}")
        ax.set(xlabel="passes over the data", ylabel="relative gap", yscale="log")
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self
