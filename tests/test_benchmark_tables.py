"""The tables of "Benchmarks" and of the records are those of docs/benchmarks."""

import csv
import re
from pathlib import Path

import pandas as pd
import pytest
from support.printed import script

tables, pictures, since = map(script, ("benchmark_tables", "benchmark_pictures", "since_release"))

PAGES = {path.stem: path.read_text(encoding="utf-8") for path in tables.PAGES}
RECORD = PAGES["measurements"]
ELSEWHERE = {
    "defaults", "guarantees", "lam", "large-shapes", "promoted-models", "rare-class-lam", "readme", "scale",
    "scale-delays", "stories", "thresholds", "top-libauc", "top-passes", "watched-years",
}  # fmt: skip
"""Files whose table another page has, or that a page or a record names in its text."""


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_as_make_benchmarks_writes_it(page: str) -> None:
    assert tables.with_tables(PAGES[page]) == PAGES[page]


def test_the_picture_is_as_make_benchmarks_draws_it() -> None:
    assert pictures.top_of_the_list(tables.read("curves")) == pictures.PICTURE.read_text(encoding="utf-8")


def test_the_passes_of_fits_to_the_top_are_counted_from_their_file() -> None:
    kept = pd.read_csv(tables.KEPT / "top-passes.csv")
    notes = tables.DOCS / "pages" / "internals" / "design-notes.md"
    said = " ".join(notes.read_text(encoding="utf-8").split())
    for part, rows in kept.groupby("part"):
        before, after = rows["passes before"].sum(), rows["passes"].sum()
        unfinished = [int((rows[gap] > 1e-3).sum()) for gap in ("gap", "gap before")]
        shown = f"{after:,} passes in place of {before:,}, and {unfinished[0]} of them in place of {unfinished[1]} did"
        assert shown in said, part
        assert f"{len(rows)} fits" in said


def test_what_changed_since_the_release_is_counted_from_the_files_of_today() -> None:
    kept = pd.read_csv(since.SINCE)
    pd.testing.assert_frame_equal(since.table(kept, since.of_today), kept)


@pytest.mark.parametrize(
    ("kind", "then", "now", "said"),
    [
        ("AUC", 0.9, 0.91, "better"), ("AUC", 0.9, 0.9005, "level"), ("ratio", 2, 1, "better"), ("ratio", 2, 2.1, "level"),
        ("ratio", 2, 3, "worse"), ("passes", 100, 130, "worse"),
    ],
)  # fmt: skip
def test_a_change_is_better_worse_or_level(kind: str, then: float, now: float, said: str) -> None:
    assert since.change(kind, then, now) == said


def test_the_pages_have_all_tables_and_all_files_are_in_one() -> None:
    assert sorted(name for page in PAGES.values() for name in tables.tables_in(page)) == sorted(tables.TABLES)
    assert {file.stem for file in tables.KEPT.glob("*.csv")} == {t.file for t in tables.TABLES.values()} | ELSEWHERE


@pytest.mark.parametrize("name", sorted(tables.TABLES))
def test_a_table_has_its_columns_and_some_rows(name: str) -> None:
    table = tables.TABLES[name]
    with (tables.KEPT / f"{table.file}.csv").open(encoding="utf-8", newline="") as file:
        columns = csv.DictReader(file).fieldnames or []
    assert {column.removeprefix("sd ") for column, _ in table.columns.values()} <= set(columns)
    lines = list(table.lines())
    assert len([line for line in lines if line.startswith("| ")]) > 1
    assert any(f"docs/benchmarks/{table.file}.csv" in line for line in lines[-3:])


def test_another_figure_in_a_file_is_another_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in tables.KEPT.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.setattr(tables, "KEPT", tmp_path)
    assert tables.with_tables(RECORD) == RECORD
    engine = (tmp_path / "engine.csv").read_text(encoding="utf-8")
    (tmp_path / "engine.csv").write_text(engine.replace("one process,1 KB", "one proces,1 KB"), encoding="utf-8")
    assert "| one proces | 1 KB |" in tables.with_tables(RECORD)


def test_splits_have_means_and_data_sets_a_mean_of_means() -> None:
    rows = [{"set": name, "AUC": area, "note": "kept"} for name, area in (("a", "0.5"), ("a", "0.7"), ("b", "0.8"))]
    of_a, of_b, of_both = tables.with_means(rows, "set")
    assert (of_a["set"], of_b["set"], of_both["set"]) == ("a", "b", "mean of 2 data sets")
    assert [float(row["AUC"]) for row in (of_a, of_b, of_both)] == pytest.approx([0.6, 0.8, 0.7])
    assert of_a["note"] == "kept"
    assert float(of_a["sd AUC"]) == pytest.approx(0.02**0.5)
    assert (of_b["sd AUC"], of_a["sd note"]) == ("", "")


def test_a_truth_value_is_a_word_and_a_number_of_them_a_number() -> None:
    assert [tables.yes_or_no(text) for text in ("True", "False", "13", "")] == ["yes", "no", "13", ""]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("45", "45"), ("45.0", "45"), ("0.000923", "9.2e-4"), ("0.0674559", "0.0675"), ("1234.5", "1,234"),
        ("581012", "581,012"), ("1e-05", "1e-5"), ("1.8e9", "1.8e9"), ("", ""), ("not finished", "not finished"),
        ("0.0", "0"), ("nan", "nan"),
    ],
)  # fmt: skip
def test_numbers_are_short(text: str, shown: str) -> None:
    assert tables.short(text) == shown


def test_the_page_of_a_rare_class_has_the_kept_figures_and_the_best_lam_of_each_loss() -> None:
    kept = pd.read_csv(tables.KEPT / "rare-class-lam.csv", dtype={"lam": str})
    page = (tables.KEPT.parent / "pages" / "rare-class.md").read_text(encoding="utf-8")
    for loss, rows in kept.groupby("loss"):
        assert f"| {loss} | " + " | ".join(f"{value:.3f}" for value in rows["average precision"]) + " |" in page
        best = rows.loc[rows["average precision"].idxmax()]
        printed = re.search(rf"bins, {re.escape(str(loss))} +average precision (.*), standard.*, lam (.*)", page)
        assert printed
        assert [float(printed[1]), float(printed[2])] == [best["average precision"], float(best["lam"])]
        assert rows["lam"].iloc[0] != best["lam"] != rows["lam"].iloc[-1], "the grid has the best value inside"
    seconds = kept[kept["loss"] == "top 1 %"].set_index("lam")["CPU seconds"]
    assert f"{seconds['1e-6']:.0f} CPU seconds with 1e-6, and {seconds['1e-3']:.0f} with 1e-3" in " ".join(page.split())
