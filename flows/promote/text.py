"""What was decided of a promotion, in sentences."""

import math
from typing import Any


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
