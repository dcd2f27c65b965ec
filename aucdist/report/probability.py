"""Figures about probabilities: the reliability diagram, and the search for the shape of the GEV link."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.probability import reliability
from aucdist.report.plots import INK, MUTED, NEG, POS

RARE = 0.05
"""With a smaller share of positives the axes are logarithmic; linear ones would show all points in one corner."""


def reliability_diagram(counts: ScoreCounts, *, n_bins: int = 10, level: float = 0.95) -> Callable[[Any], None]:
    """Return a plot of observed against predicted probability, with intervals if rows are not weighted.

    `counts`: counts of the predicted probabilities.
    `n_bins`: number of bins, which have nearly equal numbers of rows.
    Raises InputError if a score is not a probability.
    """
    bins = reliability(counts, n_bins, level=level)
    log = counts.n_pos < RARE * (counts.n_pos + counts.n_neg)

    def plot(axes: Any) -> None:
        known = [v[v > 0] for v in (bins.predicted, bins.observed)]
        least = 0.5 * float(min(v.min() for v in known if len(v))) if log else 0.0
        clip = (lambda v: np.maximum(v, least)) if log else (lambda v: v)
        line = np.array([least, 1.0])
        axes.plot(line, line, "--", color=MUTED, linewidth=1, label="as predicted")
        x, y = clip(bins.predicted), clip(bins.observed)
        if not np.isnan(bins.low).any():
            lengths = np.maximum(np.stack([y - clip(bins.low), clip(bins.high) - y]), 0.0)
            axes.errorbar(
                x, y, yerr=lengths, fmt="none", ecolor=POS, elinewidth=1, capsize=2, label=f"{100 * level:g} % interval"
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
    """Return a plot of xi against the rounds of its estimation, and of the log-posterior or log-likelihood.

    `trace`: `xi_trace_` of a LinkClassifier.
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
