"""The page of a reproduced paper: tables, curves, counts, data sets and configuration."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy import ndarray

from aucdist.errors import Json
from aucdist.parameters import frozen
from aucdist.report import plots
from aucdist.report.svg import INK, MUTED, NEG, POS
from aucdist.report.text import render_template

LINE_STYLES = [
    (POS, "-"), (NEG, "-"), (INK, "--"), (MUTED, "-."), (POS, ":"), (NEG, ":"),
    (INK, ":"), (MUTED, "-"),
]  # fmt: skip
"""The colour and the line style of each curve, in order."""
MAX_POINTS = 80
"""The points of a curve, and of the band around it, spread evenly along the curve as drawn."""

NOT_RUN = "not run here"


class Curve(NamedTuple):
    """A curve with a label. It has a band if `low` and `high` are given."""

    label: str
    x: ndarray
    y: ndarray
    low: ndarray | None = None
    high: ndarray | None = None


class Figure(NamedTuple):
    """A figure of curves. If an axis has a log scale, its label says so."""

    heading: str
    curves: Sequence[Curve]
    xlabel: str
    ylabel: str
    caption: str = ""
    log_x: bool = False
    log_y: bool = False

    def svg(self, identifier: str) -> str:
        """Return the picture. The identifier has to be unique on the page."""
        return plots.inline_svg(identifier, self.heading, f"{self.ylabel} against {self.xlabel}.", self._draw)

    def _draw(self, axes: Any) -> None:
        for curve, (colour, style) in zip(self.curves, LINE_STYLES * len(self.curves), strict=False):
            marks = "o" if len(curve.x) <= 20 else ""
            drawn = plots.thin(_on_axis(curve.x, self.log_x), _on_axis(curve.y, self.log_y), MAX_POINTS)
            axes.plot(curve.x[drawn], curve.y[drawn], marks + style, color=colour, label=curve.label)
            if curve.low is not None and curve.high is not None:
                band = (curve.x[drawn], curve.low[drawn], curve.high[drawn])
                axes.fill_between(*band, color=colour, alpha=0.15)
        axes.set(xlabel=self.xlabel + ", log scale" * self.log_x, ylabel=self.ylabel + ", log scale" * self.log_y)
        axes.set(xscale="log" if self.log_x else "linear", yscale="log" if self.log_y else "linear")


def _on_axis(values: ndarray, log: bool) -> ndarray:
    positive = values[values > 0.0]
    return np.log(np.maximum(values, positive.min())) if log and len(positive) else values


@frozen
class PageTable:
    """A table of the page. Each cell shows a line of a data frame.

    Parameters
    ----------
    title : str
        The heading. It is empty if the experiment has only one table.
    lines : DataFrame
        The lines. A column `highlight`, if present, has the background of the cell: "better", "below", "miss" or nothing.
    cell : sequence of str
        Templates of the texts in a cell. The first text is printed large. A text is left out if its value is missing.
    rows, columns : iterable
        The values of the rows and of the columns of the table.
    by : tuple (str, str)
        The names of the two columns of `lines` that have these values.
    """

    title: str
    lines: pd.DataFrame
    cell: Sequence[str]
    rows: Iterable[Any]
    columns: Iterable[Any]
    by: tuple[str, str] = ("dataset", "system")

    def body(self) -> Iterator[tuple[Any, list[tuple[list[str], str]]]]:
        """Yield the name of each row, with the texts and the background of each cell."""
        by_cell = {tuple(line[name] for name in self.by): line for line in self.lines.to_dict("records")}
        for row in self.rows:
            lines = [by_cell.get((row, column), {}) for column in self.columns]
            yield row, [(self._texts(line), line.get("highlight", "")) for line in lines]

    def _texts(self, line: dict[Any, Any]) -> list[str]:
        values, texts = {name: value for name, value in line.items() if pd.notna(value) and value != ""}, []
        for template in self.cell:
            try:
                texts.append(template.format_map(values))
            except KeyError:
                texts += [] if texts else [NOT_RUN]
        return texts


@frozen
class ExperimentReport:
    """The report of an experiment, which is a section of the page.

    Parameters
    ----------
    title : str
        The title of the section.
    tables : sequence of PageTable
        The tables.
    figures : sequence of Figure
        The figures.
    lines : DataFrame
        The content of the experiment's CSV file. If it has no columns, no file is written.
    counts : mapping
        Counts, and lists of cases to check. The page prints the counts, and ``--json`` prints both.
    """

    title: str
    tables: Sequence[PageTable] = ()
    figures: Sequence[Figure] = ()
    lines: pd.DataFrame = field(default_factory=pd.DataFrame)
    counts: Mapping[str, Any] = field(default_factory=dict)


def render_paper_page(
    title: str, departures: Sequence[str], reports: Iterable[ExperimentReport], datasets: Json, config: str
) -> str:
    """Return the page as HTML. Equal arguments give equal text.

    Parameters
    ----------
    title : str
        The title of the page.
    departures : sequence of str
        Sentences that say how the experiments differ from those of the paper.
    reports : iterable of ExperimentReport
        The reports of the experiments.
    datasets : dict
        The version of each data set, by its name in the paper.
    config : str
        The resolved configuration, as YAML.
    """
    about = {"title": title, "departures": departures, "datasets": datasets, "config": config}
    return render_template(Path(__file__).with_suffix(".html"), reports=reports, entries=summary_entries, **about)


def summary_entries(summary: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each count of a summary. Lists of single cases are left out.

    The numbers of one mapping become one text. Every string has an entry of its own.

    Parameters
    ----------
    summary : mapping
        The counts of a report.
    prefix : str, default=""
        The beginning of all names.
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


def reproduced_lines(result: Mapping[str, Any]) -> list[str]:
    """Return the lines that `aucdist reproduce` prints."""
    tables = result["tables"].items()
    entries = [f"{quantity}: {text}" for name, summary in tables for quantity, text in summary_entries(summary, name)]
    return [*entries, f"report: {result['run']}/report.html"]
