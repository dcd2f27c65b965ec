"""The figure of the suite `peers`: time against AUC, a panel for each data set."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from aucdist.report import plots
from benchmarks.panels import panels
from benchmarks.peers.system import LINEAR, OTHER, OURS
from benchmarks.peers.table import NEAR
from flows.reproduce.page import Curve, line_plot

FASTEST = 5
"""A panel shows so many linear peers; the table has all of them."""

LEAST = 1e-5
"""Smaller distances are drawn at this value, because the axis is logarithmic."""


def time_against_auc(results: pd.DataFrame) -> str:
    """Return an SVG file with, for each data set, our systems, the fastest linear peers, and the best of the others.

    A point is a fit from the start with one budget, or the mean of those on several splits: its seconds, and the distance of its
    test AUC to the best one of a linear system. A data set on which no linear system has a curve has no panel.
    """
    rows = results[:0]
    if "curve" in results:
        rows = results[results["curve"].notna() & (results["curve"].astype(str) != "")]
    with_linear = rows.loc[rows["kind"] != OTHER, "data"]
    return panels(
        [
            plots.standalone_svg(f"peers-{i}", _panel(str(name), part))
            for i, (name, part) in enumerate(rows[rows["data"].isin(with_linear)].groupby("data", sort=False))
        ]
    )


def _panel(name: str, rows: pd.DataFrame) -> Callable[[Any], None]:
    linear = rows[rows["kind"] == LINEAR].sort_values(f"s to {NEAR[0]:g}").head(FASTEST)
    others = rows[rows["kind"] == OTHER].sort_values("mean AUC", ascending=False).head(1)
    selected = pd.concat([rows[rows["kind"] == OURS], linear, others])
    points = {row["system"]: _points(row["curve"]) for _, row in rows.iterrows()}
    best = max(float(points[row["system"]][1].max()) for _, row in rows.iterrows() if row["kind"] != OTHER)
    curves = [Curve(s, points[s][0], np.maximum(best - points[s][1], LEAST)) for s in selected["system"]]
    plot = line_plot(curves, xlabel="Seconds", ylabel="AUC below the best", log_x=True, log_y=True)

    def plot_with_title(axes: Any) -> None:
        plot(axes)
        for near in NEAR:
            axes.axhline(near, color=plots.GRID, linewidth=1.2)
        axes.set_title(f"{name}, best AUC of a linear system {best:.4f}", fontsize=10)
        axes.legend(fontsize=6.5)

    return plot_with_title


def _points(curve: str) -> tuple[np.ndarray, np.ndarray]:
    """Return seconds and AUC, ordered by seconds."""
    points = np.array([[float(v) for v in point.split(":")] for point in curve.split(" ")])
    return tuple(points[np.argsort(points[:, 0], kind="stable")].T)
