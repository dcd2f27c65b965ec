"""The page of a benchmark: its table, and its figure if it has one."""

from pathlib import Path
from typing import Any

import pandas as pd

from aucdist.report.html import render_template
from aucdist.report.text import value_text


def render_bench_page(title: str, conditions: str, results: pd.DataFrame, figure: str | None) -> str:
    """Return the page as HTML. Equal arguments give equal text.

    Parameters
    ----------
    title : str
    conditions : str
        The machine and the settings of the measurements.
    results : DataFrame
        A row for each measurement; the first column names it. Missing values become empty cells.
    figure : str, optional
        A standalone SVG file, as `plots.standalone_svg` returns it.
    """
    from markupsafe import Markup

    rows = [[_cell(value) for value in row] for row in results.itertuples(index=False, name=None)]
    return render_template(
        Path(__file__).with_name("bench.html"),
        title=title,
        conditions=conditions,
        columns=list(results.columns),
        rows=[(name, cells) for name, *cells in rows],
        figure=figure and Markup(figure),
    )


def _cell(value: Any) -> str:
    return "" if pd.isna(value) else value_text(value)
