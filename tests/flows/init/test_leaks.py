"""`init` and `data preview` name what makes a test look too good."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.command_line import run

N = 200


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    y = random.random(N) < 0.3
    return pd.DataFrame({"x": random.normal(size=N), "alive": np.where(y, "no", "yes"), "fee": y * 3 + 1, "y": y * 1})


def test_columns_that_give_the_label_away(table: pd.DataFrame) -> None:
    table.to_csv("t.csv", index=False)
    out, err = run("init", "t.csv", "--label", "y")
    assert "warning: column 'alive' gives the label away (AUC 1.0000 alone)" in out
    assert "warning: column 'fee' gives" in out
    assert "column 'x'" not in out + err
    assert "- alive  # AUC 1.0000 alone: drop it if" in Path("t.yaml").read_text()
    assert json.loads(run("init", "t.csv", "--label", "y", "--force", "--json")[0])["leaks"] == ["alive", "fee"]
    preview = run("data", "preview", "t.yaml")[0]
    assert preview.count("warning: ") == 2
    assert "warning: Column 'fee' alone tells the classes apart without an error" in preview


def test_rows_that_are_there_twice_and_in_order(table: pd.DataFrame) -> None:
    rows = table[["x", "y"]].sort_values("y")
    pd.concat([rows, rows.iloc[:20]]).sort_values("y").to_csv("t.csv", index=False)
    found = json.loads(run("data", "preview", "t.csv", "--set", "label=y", "--json")[0])["warnings"]
    assert found[0].startswith("The rows are in the order of their classes")
    assert found[1].startswith("20 of 220 rows have the features of another row")


def test_files_of_one_class(table: pd.DataFrame) -> None:
    for name, rows in (("a", table[table["y"] == 0]), ("b", table[table["y"] == 1])):
        rows[["x", "y"]].to_csv(f"{name}.csv", index=False)
    entry = "source: [a.csv, b.csv]\nformat: csv\nlabel: y\n"
    Path("t.yaml").write_text(entry)
    found = json.loads(run("data", "preview", "t.yaml", "--json")[0])["warnings"]
    assert found[-1].startswith("Each of the 2 files has rows of one class only")
    table[["x", "y"]].to_csv("b.csv", index=False)
    found = json.loads(run("data", "preview", "t.yaml", "--json")[0])["warnings"]
    assert not any("files" in text for text in found)
