"""The figures on the page are those of the kept files."""

from pathlib import Path

import pandas as pd

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = " ".join((DOCS / "pages" / "benchmarks.md").read_text(encoding="utf-8").split())


def test_the_page_tells_the_years_that_were_watched() -> None:
    years = pd.read_csv(DOCS / "benchmarks" / "watched-years.csv")
    of_sets = [
        f"{len(rows)} | {rows['weeks'].sum()} | {rows['false_alarms'].sum()} | {rows['found_in_week'].max()} |"
        for _, rows in years.groupby("set", sort=False)
    ]
    table = PAGE[PAGE.index("| what changes |") :]
    places = [table.find(cells) for cells in of_sets]
    assert -1 not in places
    assert table.count("| 3 | 156 |") == len(of_sets)
    assert table.count("| 3 | 156 | 1 | 1 |") == (years["false_alarms"] > 0).sum() == 1


def test_the_page_tells_how_often_models_were_promoted() -> None:
    table = pd.read_csv(DOCS / "benchmarks" / "promoted-models.csv")
    for row in table.itertuples():
        cells = f"| {row.share:.0%} | {row.correlation} | {row.equal} of {row.runs} | {row.better} of {row.runs} |"
        assert cells.replace("%", " %") in PAGE
