"""The page of a run of several classes: a table, a picture of what is predicted, and a ROC curve for each."""

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.curves import roc_curve
from aucdist.report.html import render_template
from aucdist.report.plots import thin
from aucdist.report.search import search_section
from aucdist.report.text import (
    auc_text,
    cost_of_100_text,
    operating_points_text,
    percent_text,
    proved_excess,
    rounded_up_text,
    search_verdict,
)

MISTAKES = 12
MANY = 40
"""Classes above which the picture has the whole width of the page."""
NAME = 24
"""Characters of a name in a picture."""
CURVE_POINTS = 80


@dataclass(frozen=True, eq=False)
class ClassesReport:
    """The contents of the page of a run of several classes.

    `run`: the object that ``aucdist train --json`` prints.
    `curves`: of each class: of the test rows, or of the training rows where there are none.
    `confusions`, of shape (n_classes, n_classes), int64, or None: how many test rows of each class were predicted to be
        of each. None without test rows.
    `data` and `cost`: label and value.
    `config`: the resolved configuration, as YAML.
    `command`: the command that runs the configuration again.
    `search`: the object that ``aucdist cv --json`` prints, where a search chose the parameters.
    """

    title: str
    run: dict[str, Any]
    curves: Sequence[ScoreCounts]
    confusions: np.ndarray | None
    data: Sequence[tuple[str, str]]
    cost: Sequence[tuple[str, str]]
    config: str
    versions: dict[str, str] = field(default_factory=dict)
    command: str = "aucdist train"
    search: dict[str, Any] | None = None


POINT = {"recall": "Recall", "precision": "Precision", "fpr": "False alarms"}
"""What the table of classes says of their operating points."""


def render_classes_page(report: ClassesReport) -> str:
    """Return the page as HTML. Equal reports give equal text."""
    from markupsafe import Markup

    run, tested = report.run, report.confusions is not None
    part = "test" if tested else "train"
    rows = run["classes"]
    order = sorted(range(len(rows)), key=lambda k: (_area(rows[k], part) is None, _area(rows[k], part) or 0.0, k))
    one = "topic" if run["topics"] else "class"
    return render_template(
        Path(__file__).with_name("classes.html"),
        title=report.title,
        run=run,
        one=one,
        which="test" if tested else "training",
        sentences=_verdict(run, one) + ([] if report.search is None else [search_verdict(report.search)]),
        search=None if report.search is None else search_section(report.search),
        warnings=_warnings(run, tested, one),
        tiles=_tiles(run),
        headings=_headings(tested),
        classes=[(rows[k]["name"], _cells(rows[k], tested)) for k in order],
        point_headings=_point_headings(rows[0]),
        points=[(rows[k]["name"], _point_cells(rows[k])) for k in order] if "operating_point" in rows[0] else [],
        confusions=None if report.confusions is None else _confusions(report, order, Markup),
        curves=[
            (_short(rows[k]["name"]), auc_text(_area(rows[k], part)), Markup(_curve(report.curves[k]))) for k in order
        ],
        data=report.data,
        cost=report.cost,
        versions=report.versions.items(),
        command=report.command,
        config=report.config,
    )


def _area(row: dict[str, Any], part: str) -> float | None:
    area: float | None = row[f"{part}_auc"]
    return area


def _verdict(run: dict[str, Any], one: str) -> list[str]:
    metrics, n = run["metrics"], len(run["classes"])
    plural = {"class": "classes", "topic": "topics"}[one]
    if metrics["test_auc"] is None:
        first = f"The mean training AUC of {n} {plural}, each against the rest, is {auc_text(metrics['train_auc'])}."
    else:
        first = (
            f"The mean test AUC of {n} {plural}, each against the rest, is {auc_text(metrics['test_auc'])}; weighted by their "
            f"test rows it is {auc_text(metrics['test_auc_weighted'])}."
        )
    excesses = [proved_excess(row["certificate"]) for row in run["classes"]]
    proved = [excess for excess in excesses if excess is not None]
    sentences = [first]
    if metrics.get("test_accuracy") is not None:
        sentences.append(
            f"{percent_text(metrics['test_accuracy'])} of the test rows are predicted to be of their class."
        )
    if "operating_point" in run["classes"][0]:
        sentences.append(operating_points_text(run["classes"]))
    if proved:
        text = f"The objective of {'each' if len(proved) == n else f'{len(proved)} of them'} is above its minimum by at most"
        sentences.append(f"{text} {_percent_above(max(proved))}.")
    return sentences


def _warnings(run: dict[str, Any], tested: bool, one: str) -> list[str]:
    found = []
    early = [row["name"] for row in run["classes"] if row["certificate"]["status"] not in ("converged", "stationary")]
    if early:
        found.append(f"The fit did not converge for {_listed(early)}.")
    if tested and (absent := [row["name"] for row in run["classes"] if row["test_auc"] is None]):
        which = "these" if len(absent) > 1 else "it"
        found.append(f"The test rows do not have both sides of {_listed(absent)}: the means leave {which} out.")
    if not tested:
        found.append("There are no test rows: all measures are of the training rows, which is optimistic.")
    chance = [
        row["name"]
        for row in run["classes"]
        if row["test_auc_interval"] is not None and row["test_auc_interval"][0] <= 0.5
    ]
    if chance:
        found.append(
            f"The interval of the AUC includes 0.5 for {_listed(chance)}: these rows do not show that the ranking is better than "
            "chance."
        )
    return found


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(_short, names[:8])) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _tiles(run: dict[str, Any]) -> list[tuple[str, str, str]]:
    metrics = run["metrics"]
    tiles = [
        ("Mean test AUC", auc_text(metrics["test_auc"]), "of all classes alike"),
        ("Weighted test AUC", auc_text(metrics["test_auc_weighted"]), "by their test rows"),
        ("Mean training AUC", auc_text(metrics["train_auc"]), "of all classes alike"),
        ("Classes" if not run["topics"] else "Topics", f"{len(run['classes']):,}", f"{run['passes']:,} passes"),
    ]
    if metrics.get("test_accuracy") is not None:
        tiles.insert(2, ("Accuracy", percent_text(metrics["test_accuracy"]), "of the test rows"))
    return [tile for tile in tiles if tile[1] != auc_text(None)]


def _headings(tested: bool) -> list[str]:
    headings = ["Training rows", "Training AUC", "Proved within", "Passes", "Status"]
    return ["Test rows", "Test AUC", "Interval", "Recall", "Precision", *headings] if tested else headings


def _cells(row: dict[str, Any], tested: bool) -> list[str]:
    excess = proved_excess(row["certificate"])
    cells = [
        f"{row['n_pos']:,}", auc_text(row["train_auc"]), "unknown" if excess is None else _percent_above(excess),
        f"{row['passes']:,}", row["certificate"]["status"],
    ]  # fmt: skip
    if not tested:
        return cells
    interval = row["test_auc_interval"]
    ends = "" if interval is None else " to ".join(auc_text(end, row["test_auc"], *interval) for end in interval)
    shares = ["" if row[name] is None else percent_text(row[name]) for name in ("recall", "precision")]
    return [f"{row['test_pos']:,}", auc_text(row["test_auc"]), ends, *shares, *cells]


def _point_headings(row: dict[str, Any]) -> list[str]:
    """Return the headings for the operating point of each class; empty where the run has none."""
    point = row.get("operating_point")
    if point is None:
        return []
    costs = [f"100 {point['rows']} rows cost", "Interval", "Without a model"] if "expected_cost" in point else []
    return [*POINT.values(), *costs]


def _point_cells(row: dict[str, Any]) -> list[str]:
    point = row["operating_point"]
    values = [point[name]["value"] for name in POINT]
    costs = cost_of_100_text(point["expected_cost"]) if "expected_cost" in point else ()
    return [*("" if value is None else percent_text(value) for value in values), *costs]


def _confusions(report: ClassesReport, order: list[int], markup: Any) -> dict[str, Any]:
    names = [report.run["classes"][k]["name"] for k in order]
    assert report.confusions is not None
    table = report.confusions[np.ix_(order, order)]
    n = np.array([max(report.run["classes"][k]["test_pos"], 1) for k in order])
    shares = table / n[:, np.newaxis]
    wrong = shares - np.diag(np.diag(shares))
    # Of topics a row may have both, and then nothing is wrong.
    largest = [] if report.run["topics"] else np.argsort(-wrong, axis=None, kind="stable")[:MISTAKES].tolist()
    found = []
    for place in largest:
        i, j = divmod(place, len(names))
        if table[i, j] > 0 and i != j:
            found.append((_short(names[i]), _short(names[j]), f"{table[i, j]:,}", percent_text(float(shares[i, j]))))
    caption = (
        "Each topic is predicted by itself, where its score is above the threshold; a row may have several."
        if report.run["topics"]
        else "The class of the largest probability, or without probabilities of the largest score in units of its spread."
    )
    heading = "Topics and predicted topics" if report.run["topics"] else "Classes and predicted classes"
    svg = markup(_heat_map(table, shares, names))
    return {"caption": caption, "heading": heading, "largest": found, "svg": svg, "many": len(names) > MANY}


def _heat_map(table: np.ndarray, shares: np.ndarray, names: list[str]) -> str:
    """Return an SVG with a cell for each pair of classes; those of the diagonal have a colour of their own."""
    k = len(names)
    size = max(8, min(26, 640 // k))
    label = 8 + round(0.62 * min(size - 1, 12) * max(len(_short(name)) for name in names))
    side = label + size * k + 4
    font = min(size - 1, 12)
    parts = [
        f'<svg role="img" aria-label="Shares of the rows of each class by what is predicted" viewBox="0 0 {side} {side}" '
        f'font-size="{font}" fill="var(--muted)">'
    ]
    for i, name in enumerate(names):
        text, middle = html.escape(_short(name)), label + size * i + size / 2
        parts.append(f'<text x="{label - 4}" y="{middle + 0.35 * font:.1f}" text-anchor="end">{text}</text>')
        parts.append(f'<text transform="translate({middle + 0.35 * font:.1f} {label - 4}) rotate(-90)">{text}</text>')
    parts.append(
        f'<rect x="{label}" y="{label}" width="{size * k}" height="{size * k}" fill="none" stroke="var(--grid)"/>'
    )
    for i, j in np.argwhere(table > 0).tolist():
        colour = "neg" if i == j else "pos"
        about = html.escape(
            f"{names[i]}, predicted {names[j]}: {table[i, j]:,} rows, {percent_text(float(shares[i, j]))}"
        )
        opacity = 0.12 + 0.88 * min(1.0, float(shares[i, j]))
        parts.append(
            f'<rect x="{label + size * j}" y="{label + size * i}" width="{size}" height="{size}" fill="var(--{colour})" '
            f'fill-opacity="{opacity:.2f}"><title>{about}</title></rect>'
        )
    return "".join([*parts, "</svg>"])


def _curve(counts: ScoreCounts) -> str:
    """Return a small SVG of the ROC curve; empty axes where one side has no rows."""
    axes = (
        '<rect x="1" y="1" width="98" height="98" fill="none" stroke="var(--grid)"/>'
        '<path d="M1 99L99 1" stroke="var(--grid)"/>'
    )
    line = ""
    if counts.n_pos > 0 and counts.n_neg > 0:
        fpr, tpr, _ = roc_curve(counts)
        points = thin(fpr, tpr, CURVE_POINTS)
        path = "L".join(f"{1 + 98 * x:.1f} {99 - 98 * y:.1f}" for x, y in zip(fpr[points], tpr[points], strict=True))
        line = f'<path d="M{path}" fill="none" stroke="var(--pos)" stroke-width="2"/>'
    return f'<svg role="img" aria-label="ROC curve" viewBox="0 0 100 100">{axes}{line}</svg>'


def _percent_above(excess: float) -> str:
    """Return by how much at most an objective is above its minimum."""
    return "0 %" if excess == 0 else f"{rounded_up_text(100 * excess)} %"


def _short(name: str) -> str:
    return name if len(name) <= NAME else name[: NAME - 1] + "…"
