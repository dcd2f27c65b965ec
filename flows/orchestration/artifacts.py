"""Prefect artifacts that several flows make."""

import base64
from typing import Any

from prefect.artifacts import create_image_artifact

from aucdist.report.plots import roc_curves, standalone_svg
from aucdist.report.text import summary_rows
from flows.run_folder.scores import score_counts


def create_roc_artifact(result: dict[str, Any], key: str, description: str) -> None:
    """Make the test ROC curve of a run an image artifact; a run without test rows, or of several classes, has none."""
    if result["metrics"]["test_auc"] is None or "classes" in result:
        return
    curves = [("test", score_counts(result["run"]))]
    svg = standalone_svg("roc", lambda axes: roc_curves(axes, curves, log_x=False))
    image = base64.b64encode(svg.encode()).decode()
    create_image_artifact(f"data:image/svg+xml;base64,{image}", key=key, description=description)


def flat_row(result: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of a result as one row of a table, without nesting."""
    flat = {k: v for k, v in result.items() if not isinstance(v, dict | list)}
    return flat | {k: v for part in result.values() if isinstance(part, dict) for k, v in part.items()}


def summary_markdown(result: dict[str, Any]) -> str:
    """Return the summary of a training run as a table in Markdown."""
    rows = [f"| {label} | {value} |" for label, value in summary_rows(result)]
    return "\n".join(["| | |", "|---|---|", *rows]) + "\n"
