"""The page of a benchmark: its table, and its picture where it draws one."""

from pathlib import Path
from typing import Any

import pandas as pd

from aucdist.report.html import page_of, style
from aucdist.report.table import value_text


def render(title: str, conditions: str, found: pd.DataFrame, picture: str | None) -> str:
    """Return the page as HTML. The same arguments give the same text.

    Parameters
    ----------
    title : str
    conditions : str
        What was measured on, and how.
    found : DataFrame
        A row for each measurement; the first column names it. What is missing stays empty.
    picture : str, optional
        An SVG file that stands for itself, such as `plots.picture` makes.
    """
    from markupsafe import Markup

    rows = [[_cell(value) for value in row] for row in found.itertuples(index=False, name=None)]
    return page_of(
        Path(__file__).with_name("bench.html"),
        style=style(),
        title=title,
        conditions=conditions,
        heads=list(found.columns),
        rows=[(name, cells) for name, *cells in rows],
        picture=picture and Markup(picture),
    )


def _cell(value: Any) -> str:
    return "" if pd.isna(value) else value_text(value)
