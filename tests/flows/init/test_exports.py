"""Exports as spreadsheets and R write them: from `init` to `train` to `score` without an edit, and with the same weights."""

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import yaml
from support.command_line import result_of, run, sets

from aucdist.model import load_model
from flows.init.columns import contents_of

N = 140


def staff() -> pd.DataFrame:
    random = np.random.default_rng(0)
    level = random.random(N).round(2)
    columns = {
        "zufrieden": level, "projects": random.integers(2, 8, N), "stunden für alle": random.integers(97, 311, N) * 13,
        "lön": random.choice(["low", "médium", "high"], N), "left": ((level + random.normal(size=N) / 4) < 0.3).astype(int),
    }  # fmt: skip
    return pd.DataFrame(columns)


def comma(values: pd.Series) -> list[str]:
    return [f"{value:,.2f}".translate(str.maketrans(",.", ".,")) for value in values]


def money(table: pd.DataFrame) -> pd.DataFrame:
    hours = [f"${value:,}" for value in table["stunden für alle"]]
    return table.assign(**{"stunden für alle": hours, "zufrieden": [f"{value}%" for value in table["zufrieden"]]})


def euros(table: pd.DataFrame) -> pd.DataFrame:
    hours = [f"{value} €" for value in comma(table["stunden für alle"])]
    return table.assign(**{"stunden für alle": hours, "zufrieden": comma(table["zufrieden"])})


WAYS: dict[str, dict[str, Any]] = {
    "an index": {"index": True},
    "utf-16": {"encoding": "utf-16"},
    "utf-16, tabs and commas": {"encoding": "utf-16", "sep": "\t", "decimal": ","},
    "latin-1": {"encoding": "latin-1"},
    "a byte order mark": {"encoding": "utf-8-sig"},
    "semicolons and commas": {"sep": ";", "decimal": ","},
    "commas and commas": {"decimal": ","},
    "pipes": {"sep": "|"},
    "single quotes": {"quotechar": "'", "quoting": 1},
    "comments first": {"head": "# export\n# of 2024, by me\n"},
    "a separator for Excel": {"head": "sep=;\n", "sep": ";"},
    "a title first": {"head": "Staff report\nmade in 2024\n\n"},
    "no header": {"header": False},
    "dollars": {"change": money},
    "euros": {"change": euros, "sep": ";", "encoding": "cp1252"},
}


def export(table, path, encoding="utf-8", head="", change=None, **how):
    with path.open("w", encoding=encoding, newline="") as file:
        file.write(head)
        (table if change is None else change(table)).to_csv(file, **{"index": False} | how)


def trained(path: Path, label: str) -> tuple[dict[str, Any], Any, dict[str, Any]]:
    """Return what `init` says of a file, a linear model, and the result of `score`."""
    run("init", path, f"--label={label}", "--output", "c.yaml")
    folder = result_of(
        "train", "c.yaml", "--output", "out", *sets("model.tol=1e-2", "model.features=null", "data.test=null")
    )["run"]
    scored = result_of("score", f"{folder}/model", path, "scores")
    return yaml.safe_load(Path("c.yaml").read_text())["data"]["source"], load_model(f"{folder}/model"), scored


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    """Those of the table as pandas writes it by default."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("plain"))
        export(staff(), Path("staff.csv"))
        coef: np.ndarray = trained(Path("staff.csv"), "left")[1].coef
    return coef


@pytest.mark.parametrize("way", WAYS)
def test_the_same_weights_however_a_table_was_written(way: str, weights: np.ndarray) -> None:
    export(staff(), Path("staff.csv"), **WAYS[way])
    said, model, scored = trained(Path("staff.csv"), "-1" if way == "no header" else "left")
    assert scored["rows"] == N
    assert set(model.reading) >= {"encoding", "decimal", "quote"} & set(said)
    assert model.coef.shape == (6,)
    assert (model.coef == weights).all()


@pytest.mark.parametrize(
    ("token", "column"), [*zip(["NA", "N/A", "None", "-", "?", "n.a."], ["zufrieden", "projects"] * 3, strict=True)]
)
def test_what_stands_for_a_missing_value(token: str, column: str) -> None:
    table = staff()
    table[column] = table[column].astype(object)
    table.loc[::7, column] = token
    export(table, Path("staff.csv"))
    result = result_of("init", "staff.csv", "--label", "left", "--output", "c.yaml")
    assert result["columns"][column] == "number"
    (of,) = [c for c in result_of("data", "preview", "c.yaml")["columns"] if c["column"] == column]
    assert of["features"][0].endswith("20 missing)")


def test_dates_of_a_spreadsheet() -> None:
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=6 * i) for i in range(N)]
    table = staff().assign(since=[day.strftime("%d.%m.%Y") for day in days])
    export(table, Path("staff.csv"), sep=";", decimal=",")
    said, model, _ = trained(Path("staff.csv"), "left")
    assert (said["date_format"], said["decimal"]) == ("%d.%m.%Y", ",")
    assert len(model.coef) == 6 + 4


@pytest.mark.parametrize(
    ("values", "decimal", "thousands", "symbols"),
    [
        (["1.5", "2"], ".", None, ()), (["1,5", "2"], ",", None, ()), (["0,125", "0,250"], ",", None, ()),
        (["1,234", "2,500"], ".", ",", ()), (["1.234,5", "7"], ",", ".", ()), (["1 234,5", "7"], ",", "space", ()),
        (["1'234.5", "7"], ".", "'", ()), (["US$ 5", "US$ 6"], ".", None, ("US$",)), (["5 %", "$6"], ".", None, ("$", "%")),
        (["1.2.2024", "2.2.2024"], ".", None, ()), (["a", "b"], ".", None, ()), (["1,2,3", "2,3"], ".", None, ()),
    ],
)  # fmt: skip
def test_how_numbers_are_written(values, decimal, thousands, symbols):
    _, spelling = contents_of(pa.table({"c": values}), np.zeros(len(values), dtype=bool))
    assert (spelling.decimal, spelling.thousands, spelling.symbols) == (decimal, thousands, symbols)


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({"1": 5, "2": 5, "-": 9}, ["-"]), ({"1": 5, "b": 5}, None), ({str(i): 2 for i in range(30)} | {"gone": 9}, ["gone"]),
        ({str(i): 2 for i in range(30)} | {"gone": 90}, None), ({"1": 95, "2": 95, "gone": 9, "away": 1}, ["away", "gone"]),
        ({"1": 95, "A12": 2}, None), ({"-": 5, "?": 5}, None),
    ],
)  # fmt: skip
def test_words_for_missing_values(counts: dict[str, int], words: list[str] | None) -> None:
    values = [text for text, n in counts.items() for _ in range(n)]
    ((column,), _) = contents_of(pa.table({"c": values}), np.zeros(len(values), dtype=bool))
    noted = sorted(column.words) if column.kind == "number" else None
    assert noted == words
