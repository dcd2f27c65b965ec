"""Line plots for the pages of papers and benchmarks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aucdist.extras import load_optional
from aucdist.report import plots
from flows.reproduce.page import Figure

LINE_STYLES = [
    (plots.POS, "-"), (plots.NEG, "-"), (plots.INK, "--"), (plots.MUTED, "-."), (plots.POS, ":"), (plots.NEG, ":"),
    (plots.INK, ":"), (plots.MUTED, "-"),
]  # fmt: skip
"""Colour and line style of each curve in turn."""
MAX_POINTS = 80
"""Of a curve, and of the band around it, spread evenly along the curve as drawn."""


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
            drawn = plots.thin(_on_axis(curve.x, log_x), _on_axis(curve.y, log_y), MAX_POINTS)
            axes.plot(curve.x[drawn], curve.y[drawn], style, color=colour, label=curve.label, marker=marker)
            if curve.low is not None and curve.high is not None:
                band = (curve.x[drawn], curve.low[drawn], curve.high[drawn])
                axes.fill_between(*band, color=colour, alpha=0.15, linewidth=0)
        axes.set(xlabel=xlabel + ", log scale" * log_x, ylabel=ylabel + ", log scale" * log_y)
        if log_x:
            axes.set_xscale("log")
        if log_y and any((curve.y > 0).any() for curve in curves):
            axes.set_yscale("log")
        if curves:
            axes.legend(loc="best", fontsize=8)

    return plot


def _on_axis(values: np.ndarray, log: bool) -> np.ndarray:
    positive = values[values > 0.0]
    return np.log(np.maximum(values, positive.min())) if log and len(positive) else values


def page_figure(name: str, heading: str, caption: str, description: str, plot: Callable[[Any], None]) -> Figure:
    """Return a figure of the page.

    `name`: unique on the page.
    `heading` and `caption`: the text above the figure.
    `description`: the text for screen readers.
    `plot`: draws into the matplotlib axes that it is given.
    """
    markup = load_optional("markupsafe").Markup
    identifier = "".join(c if c.isalnum() else "-" for c in name)
    return Figure(heading, caption, markup(plots.inline_svg(identifier, heading, description, plot)))
