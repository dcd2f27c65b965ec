"""What `aucdist init` makes of columns and files."""

import datetime as dt
import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from support.command_line import run

from aucdist.data.formats.tables import MISSING_CATEGORY
from flows.init.columns import columns_of
from flows.init.text import comment, quoted

N = 2400


def column_of(values: list[str], name: str = "c"):
    texts = {name: pd.Categorical([value or MISSING_CATEGORY for value in values])}
    (found,) = columns_of(texts, [name])
    return found


@pytest.mark.parametrize(
    ("name", "values", "kind", "said"),
    [
        ("c", ["x"] * 9, "drop", "one value: x"),
        ("c", [""] * 9, "drop", "no values"),
        ("c", ["x", ""] * 9, "categorical", "1: x 9"),
        ("c", ["1", "2.5", "", "NA"] * 9, "number", "1 to 2.5"),
        ("c", [str(i) for i in range(N)], "drop", "an identifier"),
        ("user_id", [str(i * i) for i in range(N)], "drop", "an identifier"),
        ("UserId", [str(i * i) for i in range(N)], "drop", "an identifier"),
        ("squares", [str(i * i) for i in range(N)], "number", "0 to 5.7"),
        ("c", [str(2**60 + i) for i in range(9)] * 2, "drop", "an identifier"),
        ("c", ["1", "2", "inf"], "drop", "not finite"),
        ("c", [str(i % 7) for i in range(99)] + ["-"], "drop", "numbers, but for '-' in 1 rows"),
        ("c", ["1", "b"] * 9, "categorical", "2: 1 9, b 9"),
        ("c", ["2025-01-01", "2025-02-01", ""], "dates", "2025-01-01 to 2025-02-01"),
        ("c", ["31.12.2024", "01.01.2025"], "dates", "2024-12-31 to 2025-01-01"),
        ("c", [f"key-{i}" for i in range(N)], "drop", "an identifier or a free text"),
        ("c", [f"town-{i % 1100}" for i in range(N)], "hashed", "1,100 different texts"),
        ("c", [f"town-{i % 60}" for i in range(N)], "categorical", "60: town-0 40"),
    ],
)
def test_what_a_column_holds(name: str, values: list[str], kind: str, said: str) -> None:
    found = column_of(values, name)
    assert (found.kind, said in found.comment) == (kind, True), found
    assert found.missing == sum(value == "" for value in values)


@pytest.mark.parametrize(
    ("values", "form", "parts"),
    [
        (["2025-01-01", "2025-02-01"], None, ("year", "month", "weekday", "days")),
        (["2025-01-01 10:00", "2025-02-01"], None, ("year", "month", "weekday", "hour", "days")),
        (["31.12.2024 08:15", "01.01.2025 00:00"], "%d.%m.%Y %H:%M", ("year", "month", "weekday", "hour", "days")),
        (["12/31/2024", "01/01/2025"], "%m/%d/%Y", ("year", "month", "weekday", "days")),
        (["31/12/2024", "01/01/2025"], "%d/%m/%Y", ("year", "month", "weekday", "days")),
    ],
)
def test_how_dates_are_written(values: list[str], form: str | None, parts: tuple[str, ...]) -> None:
    found = column_of(values)
    assert (found.date_format, found.parts) == (form, parts)


def test_dates_of_a_second_format_are_left_out() -> None:
    texts = {"a": pd.Categorical(["1.2.2025", "3.2.2025"]), "b": pd.Categorical(["2025-01-01", "2025-02-01"])}
    assert [column.kind for column in columns_of(texts, ["a", "b"])] == ["dates", "drop"]


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=20)


@given(NAMES)
@settings(deadline=None)
def test_names_are_read_back_from_yaml(name: str) -> None:
    assert yaml.safe_load(f"{quoted(name)}  {comment(name)}") == name
    assert yaml.safe_load(f"- {quoted(name)}  {comment(name)}\n- b") == [name, "b"]


@pytest.mark.parametrize("kind", ["csv", "semicolons", "no header", "gz", "parquet"])
def test_what_init_writes_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.chdir(tmp_path)
    n = 120
    table = pd.DataFrame(
        {
            "when: day": [dt.date(2025, 1, 1) + dt.timedelta(days=i) for i in range(n)],
            "yes": ["a b", "c, d", '"'] * (n // 3),
            "x": [None if i % 10 == 0 else i % 7 / 4 for i in range(n)],
            "y": [i % 5 == 0 for i in range(n)],
        }
    )
    path, args = tmp_path / "my data.csv", ["--label", "y"]
    if kind == "parquet":
        path = tmp_path / "my data.parquet"
        more = {"list": pa.array([[1]] * n), "none": pa.array([None] * n, pa.float64())}
        columns = {name: pa.array(table[name].tolist()) for name in table} | more
        pq.write_table(pa.table(columns), path)
    elif kind == "no header":
        table.to_csv(path, header=False, index=False)
        args = ["--label", "-1", "--set", "header=false"]
    elif kind == "gz":
        path = tmp_path / "my data.csv.gz"
        table.to_csv(path, index=False)
    else:
        table.to_csv(path, index=False, sep=";" if kind == "semicolons" else ",")
    found = json.loads(run("init", path, *args, "--output", "c.yaml", "--json")[0])
    kinds = list(found["columns"].values())
    assert kinds[:3] == ["dates", "categorical", "number"]
    assert kinds[3:] == (["drop", "drop"] if kind == "parquet" else [])
    config = yaml.safe_load((tmp_path / "c.yaml").read_text())
    assert config["data"]["source"]["source"] == path.name
    preview = json.loads(run("data", "preview", "c.yaml", "--json")[0])
    assert (preview["rows"], preview["positives"], preview["n_features"]) == (n, 24, 4 + 3 + 1)
    result = json.loads(run("train", "c.yaml", "--json", "--set", "model.tol=0.5")[0])
    assert result["n_features"] == 8


@pytest.mark.parametrize(
    ("text", "args", "message"),
    [
        ("a,y\n1,0\n", ["--label", "z"], "unknown column in `label` 'z'"),
        ("a,y\n1,0\n2,0\n", ["--label", "y"], "one class only"),
        ("a,y\n" + "".join(f"1,{i}\n" for i in range(30)), ["--label", "y"], "the label column 'y' has 30 different values"),
        ("a,y\n1,0\n2,\n", ["--label", "y"], "line 3, column 'y': the value is missing"),
        ("a,y\n1,0\n2\n", ["--label", "y"], "line 3: 1 cells, but there are 2 columns"),
        ("", ["--label", "y"], "is empty"),
        ("a,y\n1,0\n2,1\n", ["--label", "y", "--output", "there.yaml"], "there.yaml is there already"),
        ("a,y\n1,0\n2,1\n", ["--label", "y", "--set", "format=shards"], "shards"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, args: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.csv").write_text(text)
    (tmp_path / "there.yaml").write_text("mine")
    stderr = run("init", "f.csv", *args, code=2)[1]
    assert message in stderr
    assert (tmp_path / "there.yaml").read_text() == "mine"
    assert not (tmp_path / "f.yaml").exists()


def test_a_large_file_is_described_by_its_first_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("flows.init.read.MOST_BYTES", 1000)
    (tmp_path / "f.csv").write_text("a,y\n" + "".join(f"{i % 9},{i % 3}\n" for i in range(1000)))
    found = json.loads(run("init", "f.csv", "--label", "y", "--json")[0])
    assert (found["rows"], found["all_rows"]) == (249, False)
    assert "the first 249 rows of f.csv" in (tmp_path / "f.yaml").read_text()
