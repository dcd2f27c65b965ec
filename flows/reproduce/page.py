"""The page of a reproduction: what the kinds have to show, data sets and configuration, in the looks of the page of a run."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from aucdist.report.html import style


@dataclass(frozen=True)
class Entry:
    """What stands in one place of a table.

    Attributes
    ----------
    text : str
    small : sequence of str
        Lines below it, in small print; empty ones are left out.
    colour : {"", "better", "below", "miss"}
    """

    text: str
    small: Sequence[str] = ()
    colour: str = ""


@dataclass(frozen=True)
class Drawing:
    """A figure: what stands above it, and its SVG."""

    heading: str
    caption: str
    svg: Markup


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes
    ----------
    title : str
    words : sequence of str
        Paragraphs.
    heads : sequence of str
        Of the columns of the table; the first is that of the names of the rows.
    rows : sequence of (str, sequence of Entry)
    drawings : sequence of Drawing
    """

    title: str
    words: Sequence[str] = ()
    heads: Sequence[str] = ()
    rows: Sequence[tuple[str, Sequence[Entry]]] = ()
    drawings: Sequence[Drawing] = ()


def render(
    title: str, departures: Sequence[str], sections: Iterable[Section], datasets: dict[str, Any], config: str
) -> str:
    """Return the page as HTML. The same arguments give the same text.

    Parameters
    ----------
    title : str
    departures : sequence of str
        What is done otherwise than in the paper.
    sections : iterable of Section
    datasets : dict of str to Version
        By the paper's name.
    config : str
        The resolved configuration, as YAML.
    """
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = environment.from_string(Path(__file__).with_suffix(".html").read_text(encoding="utf-8"))
    return template.render(
        title=title, style=style(), departures=departures, sections=sections, datasets=datasets, config=config
    )
