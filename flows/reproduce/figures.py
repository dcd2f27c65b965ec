"""Figures of curves, for the page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from aucdist.report import plots
from flows.reproduce.page import Drawing

STYLES = [
    (plots.POS, "-"), (plots.NEG, "-"), (plots.INK, "--"), (plots.MUTED, "-."), (plots.POS, ":"), (plots.NEG, ":"),
    (plots.INK, ":"), (plots.MUTED, "-"),
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Curve:
    """A curve and its name; with a band about it from `low` to `high` where these are given."""

    label: str
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None


def lines(
    curves: Sequence[Curve], *, xlabel: str, ylabel: str, log_x: bool = False, log_y: bool = False
) -> Callable[[Any], None]:
    """Return the plot of curves, for `drawing`. A log scale is said in the label of its axis."""

    def plot(axes: Any) -> None:
        for curve, (colour, style) in zip(curves, STYLES * len(curves), strict=False):
            marker = "." if len(curve.x) <= 20 else None
            axes.plot(curve.x, curve.y, style, color=colour, label=curve.label, marker=marker)
            if curve.low is not None:
                axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.15, linewidth=0)
        axes.set(xlabel=xlabel + ", log scale" * log_x, ylabel=ylabel + ", log scale" * log_y)
        if log_x:
            axes.set_xscale("log")
        if log_y and any((curve.y > 0).any() for curve in curves):
            axes.set_yscale("log")
        if curves:
            axes.legend(loc="best", fontsize=8)

    return plot


def drawing(name: str, heading: str, caption: str, words: str, plot: Callable[[Any], None]) -> Drawing:
    """Return a figure of the page.

    Parameters
    ----------
    name : str
        Unique on the page.
    heading, caption : str
        What stands above it.
    words : str
        What a screen reader says.
    plot : callable
        Draws into the matplotlib axes that it is given.
    """
    safe = "".join(c if c.isalnum() else "-" for c in name)
    return Drawing(heading, caption, Markup(plots.draw(safe, heading, words, plot)))
