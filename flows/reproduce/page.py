"""The page of a reproduced paper: tables, curves, counts, data sets and configuration."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from aucdist.report import plots
from aucdist.report.html import render_template
from aucdist.report.svg import INK, MUTED, NEG, POS

LINE_STYLES = [
    (POS, "-"), (NEG, "-"), (INK, "--"), (MUTED, "-."), (POS, ":"), (NEG, ":"),
    (INK, ":"), (MUTED, "-"),
]  # fmt: skip
"""Colour and line style of each curve in turn."""
MAX_POINTS = 80
"""The points of a curve, and of the band around it, spread evenly along the curve as drawn."""

NOT_RUN = "not run here"


@dataclass(frozen=True)
class TableCell:
    """One cell of a table.

    `details`: lines in small print below the text; empty ones are left out.
    `highlight`, {"", "better", "below", "miss"}: the background colour.
    """

    text: str
    details: Sequence[str] = ()
    highlight: str = ""


@dataclass(frozen=True)
class Figure:
    """A figure: its heading, its caption and its picture."""

    heading: str
    caption: str
    svg: plots.Svg


@dataclass(frozen=True)
class PageSection:
    """A section of the page.

    `paragraphs`: what the figures of the table are.
    `columns`: the headings of the table's columns, that of the row names first.
    `rows`: name and cells of each row of the table.
    `counts`: name and text of each count of the experiment, in its first section.
    """

    title: str
    paragraphs: Sequence[str] = ()
    columns: Sequence[str] = ()
    rows: Sequence[tuple[str, Sequence[TableCell]]] = ()
    figures: Sequence[Figure] = ()
    counts: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, eq=False)
class Report:
    """The report of an experiment: its sections and its summary.

    `sections`: of the page.
    `table`: what the CSV file of the experiment holds; without columns there is no file.
    `counts`: counts, and lists of the cases to look at; the page prints the counts, ``--json`` all of it.
    """

    sections: Sequence[PageSection]
    table: pd.DataFrame = field(default_factory=pd.DataFrame)
    counts: Mapping[str, Any] = field(default_factory=dict)


def table_rows(
    lines: pd.DataFrame, rows: Iterable[Any], columns: Iterable[Any], cell: Callable[[pd.DataFrame], TableCell],
    by: Sequence[str] = ("dataset", "system"),
) -> list[tuple[str, list[TableCell]]]:  # fmt: skip
    """Return the rows of a table of the page: `cell` makes a cell of the lines of its row and its column, which `by` names."""
    groups: dict[Any, pd.DataFrame] = dict(list(lines.groupby(list(by), sort=False)))
    return [
        (str(row), [cell(groups[row, column]) if (row, column) in groups else TableCell(NOT_RUN) for column in columns])
        for row in rows
    ]


def text_of(template: str, *values: Any) -> str:
    """Return the template with the values filled in; an empty text if one of them is missing."""
    return "" if any(pd.isna(value) for value in values) else template.format(*values)


def render_paper_page(
    title: str, departures: Sequence[str], sections: Iterable[PageSection], datasets: dict[str, Any], config: str
) -> str:
    """Return the page as HTML. Equal arguments give equal text.

    `departures`: how the experiments differ from those of the paper.
    `datasets`: the version of each data set, by its name in the paper.
    `config`: the resolved configuration, as YAML.
    """
    template = Path(__file__).with_suffix(".html")
    return render_template(
        template, title=title, departures=departures, sections=sections, datasets=datasets, config=config
    )


def summary_entries(summary: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each count of a summary; lists, which hold single cases, are left out.

    The numbers of one mapping become one text; every string has an entry of its own.

    `summary`: what `Kind.summary` returns.
    """
    numbers = {key: value for key, value in summary.items() if isinstance(value, int | float)}
    if numbers:
        yield prefix, ", ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in numbers.items())
    for key, value in summary.items():
        name = f"{prefix} {key}".strip().removesuffix(".")
        if isinstance(value, str):
            yield name, value
        elif isinstance(value, Mapping):
            yield from summary_entries(value, name)


# ---- curves -----------------------------------------------------------------------------------------------------------


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
    """Return a function that draws the curves into axes. The label of an axis states its log scale."""

    def plot(axes: Any) -> None:
        for curve, (colour, style) in zip(curves, LINE_STYLES * len(curves), strict=False):
            marks = "o" if len(curve.x) <= 20 else ""
            drawn = plots.thin(_on_axis(curve.x, log_x), _on_axis(curve.y, log_y), MAX_POINTS)
            axes.plot(curve.x[drawn], curve.y[drawn], marks + style, color=colour, label=curve.label)
            if curve.low is not None and curve.high is not None:
                band = (curve.x[drawn], curve.low[drawn], curve.high[drawn])
                axes.fill_between(*band, color=colour, alpha=0.15)
        axes.set(xlabel=xlabel + ", log scale" * log_x, ylabel=ylabel + ", log scale" * log_y)
        scales = {name: "log" if log else "linear" for name, log in (("xscale", log_x), ("yscale", log_y))}
        axes.set(**scales)

    return plot


def _on_axis(values: np.ndarray, log: bool) -> np.ndarray:
    positive = values[values > 0.0]
    return np.log(np.maximum(values, positive.min())) if log and len(positive) else values


def line_figure(
    name: str, heading: str, curves: Sequence[Curve], *, xlabel: str, ylabel: str, caption: str = "", **scales: bool
) -> Figure:
    """Return a figure of curves for the page.

    `name`: unique on the page.
    `heading` and `caption`: the text above the figure.
    `scales`: those of `line_plot`.
    """
    identifier = "".join(c if c.isalnum() else "-" for c in name)
    plot = line_plot(curves, xlabel=xlabel, ylabel=ylabel, **scales)
    return Figure(heading, caption, plots.inline_svg(identifier, heading, f"{ylabel} against {xlabel}.", plot))


def reproduced_lines(result: Mapping[str, Any]) -> list[str]:
    """Return the lines that `aucdist reproduce` prints."""
    tables = result["tables"].items()
    entries = [f"{quantity}: {text}" for name, summary in tables for quantity, text in summary_entries(summary, name)]
    return [*entries, f"report: {result['run']}/report.html"]
