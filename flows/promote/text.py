"""What was decided of a promotion, in sentences, and as a picture of the interval and of what it had to exceed."""

import math
from collections.abc import Callable
from typing import Any

from aucdist.report.plots import GRID, INK, MUTED, NEG, POS, standalone_svg


def promotion_lines(result: dict[str, Any]) -> list[str]:
    """Return what was decided and done, as lines of text."""
    lines = []
    if (test := result["decision"]) is not None:
        lines.append(
            f"{measure_text(test)} of the run minus that in use: {test['value']:+.5f}, {test['level']:.0%} interval "
            f"{test['low']:+.5f} to {test['high']:+.5f}, on {test['rows']:,} rows ({test['of']})"
        )
        if (loss := test["calibration"]) is not None:
            lines.append(
                f"Brier loss in use minus that of the run: {loss['value']:+.5f} ({loss['low']:+.5f} to {loss['high']:+.5f})"
            )
        lines.append(f"drawn in {result['picture']}")
    if result["promoted"]:
        after = "" if result["replaced"] is None else f"; it replaces version {result['replaced']}"
        lines.append(f"{result['store']}: version {result['version']} is in use{after}")
    else:
        lines.append(f"{result['store']}: version {result['version']} stays in use: the run is not {_missed(result)}")
    if "mlflow" in result:
        lines.append(f"logged as run {result['mlflow']['run']} at {result['mlflow']['server']}")
    if result["removed"]:
        lines.append(f"removed: {', '.join(f'version {number}' for number in result['removed'])}")
    return lines


def measure_text(test: dict[str, Any]) -> str:
    """Return what was compared; the first versions of model stores do not say it, and had the AUC alone."""
    if (measure := test.get("measure", "auc")) == "partial_auc":
        return f"partial AUC up to a false positive rate of {test.get('max_fpr', math.nan):g}"
    return {"auc": "AUC", "macro_auc": "mean AUC of the classes"}[measure]


def _missed(result: dict[str, Any]) -> str:
    decision, margin = result["decision"], result["decision"]["margin"]
    bound = margin if result["condition"] == "better" else -margin
    if decision["low"] > bound:
        return "as well calibrated: its Brier loss is higher"
    beyond = f" by more than {margin:g}" if margin else ""
    return f"shown to be better{beyond}" if result["condition"] == "better" else f"shown to be no worse{beyond}"


def decision_svg(decision: dict[str, Any], title: str) -> str:
    """Return the picture of a decision as an SVG file."""
    return standalone_svg("decision", _plot(decision, title))


def _plot(decision: dict[str, Any], title: str) -> Callable[[Any], None]:
    rows = [(measure_text(decision), decision)]
    if decision["calibration"] is not None:
        rows.append(("Brier loss, less", decision["calibration"]))
    bound = decision["margin"] if decision["condition"] == "better" else -decision["margin"]

    def plot(axes: Any) -> None:
        for place, (label, test) in enumerate(rows):
            holds = test["low"] > bound if place == 0 else test["high"] >= -decision["margin"]
            colour = NEG if holds else POS
            axes.plot([test["low"], test["high"]], [-place, -place], color=colour, linewidth=3, solid_capstyle="butt")
            axes.plot([test["value"]], [-place], "o", color=colour, markersize=7)
            axes.annotate(
                f"{label}: {test['value']:+.4f} ({test['low']:+.4f} to {test['high']:+.4f})",
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
