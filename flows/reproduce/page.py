"""The page of a reproduced paper: tables, figures, data sets and configuration."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aucdist.report.html import render_template


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
    """A figure: its heading, its caption and its SVG, as `markupsafe.Markup`."""

    heading: str
    caption: str
    svg: Any


@dataclass(frozen=True)
class PageSection:
    """A section of the page.

    `columns`: the headings of the table's columns, that of the row names first.
    `rows`: name and cells of each row of the table.
    """

    title: str
    paragraphs: Sequence[str] = ()
    columns: Sequence[str] = ()
    rows: Sequence[tuple[str, Sequence[TableCell]]] = ()
    figures: Sequence[Figure] = ()


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
