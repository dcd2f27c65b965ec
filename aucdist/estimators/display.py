"""Plots of a fit, as scikit-learn's displays: matplotlib is imported when they are drawn."""

from typing import Any, Self

import numpy as np
import pandas as pd

from aucdist.estimators.classes import refuse_classes
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


class WithPlots:
    """The plots and the notebook page of a fitted estimator."""

    tol: float
    history_: Any

    def plot_history(self, ax: Any = None) -> HistoryDisplay:
        """Plot the relative gap of each round of the last `fit` against the passes.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default those of a new figure.

        Returns
        -------
        HistoryDisplay
            With the attributes `ax_`, `figure_` and `line_`.

        Raises
        ------
        InputError
            If matplotlib is not installed, or the model has several classes.
        """
        refuse_classes(self, "plot_history")
        return HistoryDisplay(self.history_, self.tol, type(self).__name__).plot(ax)

    def plot_roc(self, X: Any, y: Any, ax: Any = None) -> Any:
        """Plot the ROC curve of rows.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Their classes.
        ax : matplotlib Axes, optional
            By default those of a new figure.

        Returns
        -------
        sklearn.metrics.RocCurveDisplay

        Raises
        ------
        InputError
            If matplotlib is not installed, or the model has several classes.
        """
        refuse_classes(self, "plot_roc")
        load_optional("matplotlib.pyplot")
        from sklearn.metrics import RocCurveDisplay

        return RocCurveDisplay.from_estimator(self, X, y, ax=ax, response_method="decision_function")

    def _html_repr(self) -> str:
        """Return what a notebook shows; scikit-learn calls it where its `display` is "diagram"."""
        from aucdist.estimators.notebook import model_html

        return model_html(self)
