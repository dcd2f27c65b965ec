"""Line plots for the pages of papers and benchmarks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from aucdist.report import plots
from flows.reproduce.page import Figure

LINE_STYLES = [
    (plots.POS, "-"), (plots.NEG, "-"), (plots.INK, "--"), (plots.MUTED, "-."), (plots.POS, ":"), (plots.NEG, ":"),
    (plots.INK, ":"), (plots.MUTED, "-"),
]  # fmt: skip
"""Colour and line style of each curve in turn."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A labelled curve, with a band from `low` to `high` where these are given."""

    label: str
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None


def line_plot(
    curves: Sequence[Curve], *, xlabel: str, ylabel: str, log_x: bool = False, log_y: bool = False
) -> Callable[[Any], None]:
    """Return a function that draws the curves into matplotlib axes. The label of an axis states its log scale."""

    def plot(axes: Any) -> None:
        for curve, (colour, style) in zip(curves, LINE_STYLES * len(curves), strict=False):
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


def page_figure(name: str, heading: str, caption: str, description: str, plot: Callable[[Any], None]) -> Figure:
    """Return a figure of the page.

    Parameters
    ----------
    name : str
        Unique on the page.
    heading, caption : str
        The text above the figure.
    description : str
        The text for screen readers.
    plot : callable
        Draws into the matplotlib axes that it is given.
    """
    identifier = "".join(c if c.isalnum() else "-" for c in name)
    return Figure(heading, caption, Markup(plots.inline_svg(identifier, heading, description, plot)))
