"""Figures about probabilities: a reliability diagram, and how the shape of the GEV link was found."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.probability import reliability
from aucdist.report.plots import INK, MUTED, NEG, POS

RARE = 0.05
"""With fewer positives than this share the diagram has logarithmic axes: else all is in a corner."""


def reliability_diagram(counts: ScoreCounts, *, n_bins: int = 10, level: float = 0.95) -> Callable[[Any], None]:
    """Return the plot of observed against predicted probability, with an interval where rows are not weighted.

    Parameters
    ----------
    counts : ScoreCounts
        Of probabilities.
    n_bins : int
        Of like numbers of rows.
    level : float
        Of the intervals.

    Raises
    ------
    InputError
        If a score is not a probability.
    """
    found = reliability(counts, n_bins, level=level)
    log = counts.n_pos < RARE * (counts.n_pos + counts.n_neg)

    def plot(axes: Any) -> None:
        known = [v[v > 0] for v in (found.predicted, found.observed)]
        least = 0.5 * float(min(v.min() for v in known if len(v))) if log else 0.0
        place = (lambda v: np.maximum(v, least)) if log else (lambda v: v)
        line = np.array([least, 1.0])
        axes.plot(line, line, "--", color=MUTED, linewidth=1, label="as predicted")
        x, y = place(found.predicted), place(found.observed)
        if not np.isnan(found.low).any():
            reach = np.maximum(np.stack([y - place(found.low), place(found.high) - y]), 0.0)
            axes.errorbar(
                x, y, yerr=reach, fmt="none", ecolor=POS, elinewidth=1, capsize=2, label=f"{100 * level:g} % interval"
            )
        axes.plot(x, y, "o-", color=POS, markersize=4, label="observed")
        scale = "log" if log else "linear"
        axes.set(
            xlabel="Predicted probability" + ", log scale" * log,
            ylabel="Share of positives",
            xscale=scale,
            yscale=scale,
        )
        axes.legend(loc="upper left")

    return plot


def shape_trace(trace: pd.DataFrame) -> Callable[[Any], None]:
    """Return the plot of xi against the rounds in which it was looked for, and of the level reached beside it.

    Parameters
    ----------
    trace : DataFrame
        `xi_trace_` of a LinkClassifier.
    """
    level = next(name for name in ("log_posterior", "log_likelihood") if name in trace)

    def plot(axes: Any) -> None:
        marker = "." if len(trace) <= 40 else None
        (shape,) = axes.plot(trace["round"], trace["xi"], "-", marker=marker, color=POS, label="xi, left")
        beside = axes.twinx()
        words = level.replace("_", " ")
        (reached,) = beside.plot(trace["round"], trace[level], "--", color=NEG, label=f"{words}, right")
        beside.grid(visible=False)
        beside.spines["right"].set_visible(True)
        axes.set(xlabel="Round", ylabel="Shape xi")
        beside.set_ylabel(words.capitalize())
        axes.legend(handles=[shape, reached], loc="lower center", bbox_to_anchor=(0.5, 1.0), ncol=2, labelcolor=INK)

    return plot
