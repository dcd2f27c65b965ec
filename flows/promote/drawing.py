"""The picture of a decision: the interval of the difference, and what it had to exceed."""

from collections.abc import Callable
from typing import Any

from aucdist.report.plots import GRID, INK, MUTED, NEG, POS, standalone_svg
from flows.promote.text import measure_text


def decision_svg(decision: dict[str, Any], title: str) -> str:
    """Return the picture of a decision as an SVG file."""
    return standalone_svg("decision", _plot(decision, title))


def _plot(decision: dict[str, Any], title: str) -> Callable[[Any], None]:
    rows = [(measure_text(decision), decision)]
    if decision["calibration"] is not None:
        rows.append(("Brier loss, less", decision["calibration"]))
    bound = decision["margin"] if decision["condition"] == "better" else -decision["margin"]

    def plot(axes: Any) -> None:
        for place, (label, found) in enumerate(rows):
            holds = found["low"] > bound if place == 0 else found["high"] >= -decision["margin"]
            colour = NEG if holds else POS
            axes.plot([found["low"], found["high"]], [-place, -place], color=colour, linewidth=3, solid_capstyle="butt")
            axes.plot([found["value"]], [-place], "o", color=colour, markersize=7)
            axes.annotate(
                f"{label}: {found['value']:+.4f} ({found['low']:+.4f} to {found['high']:+.4f})",
                (0.0, -place), xycoords=("axes fraction", "data"), xytext=(0, 12), textcoords="offset points", color=INK,
            )  # fmt: skip
        axes.axvline(0.0, color=GRID, linewidth=1.2)
        axes.axvline(bound, color=MUTED, linewidth=1.2, linestyle="--")
        axes.set_ylim(-len(rows) + 0.4, 0.7)
        axes.set_yticks([])
        axes.grid(False)
        verdict = "holds" if decision["holds"] else "does not hold"
        axes.set_title(title, loc="left", fontsize=11)
        axes.set_xlabel(
            f"run minus version in use, on {decision['rows']:,} rows\n{decision['condition']} (dashed) {verdict}"
        )

    return plot
