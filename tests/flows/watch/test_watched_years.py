"""The figures on the page are those of the kept files."""

import re
from pathlib import Path

import pandas as pd

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = " ".join((DOCS / "pages" / "how-to" / "in-service.md").read_text(encoding="utf-8").split())


def test_the_page_tells_the_years_that_were_watched() -> None:
    years = pd.read_csv(DOCS / "benchmarks" / "watched-years.csv")
    assert f"{len(years)} years of 52 weekly batches" in PAGE
    assert f"In {years['weeks'].sum()} weeks without drift one raised an alarm" in PAGE
    assert years["false_alarms"].sum() == 1
    assert set(years["found_in_week"]) == {1}


def test_the_page_tells_how_often_models_were_promoted() -> None:
    table = pd.read_csv(DOCS / "benchmarks" / "promoted-models.csv").set_index(["share", "correlation"])
    assert set(table["runs"]) == {200}
    assert set(table.loc[0.2, "equal"]) == {3}
    pattern = r"(\d+) where the scores .*? and (\d+) by 0.9.*? it was (\d+) and (\d+), and (\d+) and (\d+) of"
    shown = re.findall(pattern, PAGE)
    expected = [*table.loc[0.2, "better"], *table.loc[0.05, "better"], *table.loc[0.05, "equal"]]
    assert [int(n) for n in shown[0]] == expected
