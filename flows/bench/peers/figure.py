"""Time against AUC, a panel for each data set."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from aucdist.report import plots
from flows.bench.panels import panels
from flows.bench.peers.system import LINEAR, OTHER, OURS
from flows.bench.peers.table import NEAR
from flows.reproduce.lines import Curve, lines

FASTEST = 5
"""So many linear peers a panel shows; the table has them all."""

LEAST = 1e-5
"""Distances below it are drawn at it."""


def drawn(found: pd.DataFrame) -> str:
    """Return an SVG file: for each data set ours, the fastest linear peers, and the best of the others.

    A point is a fit from the start with one budget: its seconds, and how far its AUC on the test rows is below the best that a
    linear system reached.
    """
    rows = found[found["curve"].notna() & (found["curve"].astype(str) != "")] if "curve" in found else found[:0]
    pictures = [
        plots.picture(f"peers-{i}", _panel(str(name), part))
        for i, (name, part) in enumerate(rows.groupby("data", sort=False))
    ]
    return panels(pictures)


def _panel(name: str, rows: pd.DataFrame) -> Callable[[Any], None]:
    linear = rows[rows["kind"] == LINEAR].sort_values(f"s to {NEAR[0]:g}").head(FASTEST)
    others = rows[rows["kind"] == OTHER].sort_values("AUC", ascending=False).head(1)
    shown = pd.concat([rows[rows["kind"] == OURS], linear, others])
    points = {row["system"]: _points(row["curve"]) for _, row in rows.iterrows()}
    best = max(float(points[row["system"]][1].max()) for _, row in rows.iterrows() if row["kind"] != OTHER)
    curves = [Curve(s, points[s][0], np.maximum(best - points[s][1], LEAST)) for s in shown["system"]]
    plot = lines(curves, xlabel="Seconds", ylabel="AUC below the best", log_x=True, log_y=True)

    def titled(axes: Any) -> None:
        plot(axes)
        for near in NEAR:
            axes.axhline(near, color=plots.GRID, linewidth=1.2)
        axes.set_title(f"{name}, best AUC of a linear system {best:.4f}", fontsize=10)
        axes.legend(fontsize=6.5)

    return titled


def _points(curve: str) -> tuple[np.ndarray, np.ndarray]:
    """Return seconds and AUC, by seconds."""
    found = np.array([[float(v) for v in point.split(":")] for point in curve.split(" ")])
    return tuple(found[np.argsort(found[:, 0], kind="stable")].T)
