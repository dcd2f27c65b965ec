"""What `aucdist init` makes of columns and files."""

import datetime as dt
import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given, strategies as st
from support.command_line import result_of, run, sets

from aucdist.model import load_model
from flows.init.columns import ColumnGuess, contents_of
from flows.init.run import comment, quoted

N = 2400
READABLE = {"map": "auto", "readable": True}
FEBRUARY = [f"2024-02-{i:02}" for i in range(1, 29)]


def columns_of(columns: dict[str, list[str]], positive: np.ndarray | None = None) -> list[ColumnGuess]:
    n = len(next(iter(columns.values())))
    positive = np.zeros(n, dtype=bool) if positive is None else positive
    return contents_of(pa.table(columns), positive)[0]


def column_of(values: list[str], name: str = "c", positive: np.ndarray | None = None) -> ColumnGuess:
    return columns_of({name: values}, positive)[0]


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
        ("c", [str(i % 7) for i in range(99)] + ["-"], "number", "0 to 6, but for '-' in 1 row"),
        ("c", ["1", "b"] * 9, "categorical", "2: 1 9, b 9"),
        ("c", ["2025-01-01", "2025-02-01", ""], "dates", "2025-01-01 to 2025-02-01"),
        ("c", ["31.12.2024", "01.01.2025"], "dates", "2024-12-31 to 2025-01-01"),
        ("c", [f"key-{i}" for i in range(N)], "drop", "an identifier or names"),
        ("c", [f"town-{i % 1100}" for i in range(N)], "hashed", "1,100 different strings"),
        ("c", [f"town-{i % 60}" for i in range(N)], "categorical", "60: town-0 40"),
        # Nearly all cells are numbers, or dates: the others are missing.
        *[
            ("c", [str(i / 7) for i in range(40)] + [word], "number", f"but for {word!r} in 1 row")
            for word in ("1.99.", "2,5", "12 cm", ">100", "<0.1", "l.5", "see note", "1e", "12-13")
        ],
        ("c", ["1", "2", "3", "4", "5"] * 20 + ["4.."], "number", "but for '4..' in 1 row"),
        ("c", [str(i / 7) for i in range(40)] + ["2,5", ">100", "12 cm"], "number", "in 3 rows"),
        ("c", [str(i % 7) for i in range(40)] + ["3b"] * 4, "categorical", "8: "),
        ("c", ["250", "V57", "E909", "401"] * 20, "categorical", "4: "),
        ("c", [*FEBRUARY, "0000-00-00"], "dates", "2024-02-28, but for '0000-00-00' in 1"),
        ("c", ["0000-00-00"] * 9 + FEBRUARY, "dates", "in 9 rows"),
        ("c", [*FEBRUARY, "2024-02-30"], "dates", "but for '2024-02-30' in 1 row"),
        # Identifiers.
        ("PolicyNumber", [str(9000 + i * 37 % 400) for i in range(28)], "drop", "an identifier"),
        ("c", [str(500 + i) for i in range(27)] + ["506"], "drop", "27 different numbers in 28 rows: an identifier"),
        ("user_id", [str(100 + i // 2 * 3) for i in range(60)], "drop", "--groups user_id"),
        ("user_id", [f"u{i // 2}" for i in range(60)], "drop", "--groups user_id"),
        ("shop_id", [str(i % 5) for i in range(200)], "number", "0 to 4"),
        ("c", [f"K{i}" * (i % 5 == 0) for i in range(60)], "drop", "12 different strings in 12 rows: an identifier"),
        # Codes with zeros in front are texts.
        ("zip", ["01234", "90210", "02134"] * 9, "categorical", "3: 01234 9"),
        ("c", ["007", "12", "1"] * 9, "categorical", "3: "),
        ("c", ["0", "0.5", "12"] * 9, "number", "0 to 12"),
        ("c", [f"row {i} says that" for i in range(60)], "drop", "free text, of whose words columns can be made"),
        # 0 may be missing if it is far below all other numbers.
        (
            "age",
            ["0"] * 3 + [str(i) for i in range(16, 80)] * 3,
            "number",
            "the value 0 in 3 rows, and the next larger value is 16: does 0 mean missing?",
        ),
        ("gain", ["0"] * 3 + [str(100 * i) for i in range(1, 20)] * 3, "number", "0 to 1900"),
        # Nearly empty.
        ("c", ["7"] + [""] * 400 + ["8"], "number", "nearly empty: 2 cells of 402 with a value; 7 to 8"),
    ],
)
def test_what_a_column_holds(name: str, values: list[str], kind: str, said: str) -> None:
    column = column_of(values, name)
    assert (column.kind, said in column.comment) == (kind, True), column
    absent = ("", "NA", "-", *column.words) if kind in ("number", "dates") else ("",)
    assert column.missing == sum(value in absent for value in values)


def test_numbers_that_may_be_identifiers_are_asked_about() -> None:
    column = column_of([str(500_000 + i * 37) for i in range(60)], "hospital")
    assert column.question == "has 60 different whole numbers in 60 rows: is it an identifier?"
    assert column.comment == f"500000 to 502183; {column.question}"


def test_columns_that_may_name_customers_are_asked_about_and_kept() -> None:
    """The name tells it, or the rows are spread evenly over whole numbers, or over codes; quantities are not."""
    r = np.random.default_rng(0)
    customers = r.integers(1, 900, 3000).tolist()
    for name in ("customer", "account_no", "client_nr", "Kundennummer", "Kunde", "c"):
        column = column_of([str(number) for number in customers], name)
        assert column.kind == "number"
        assert column.question.startswith("has 865 different numbers, about 3 rows each: if they name customers")
        assert f"--groups {name}" in column.question
    ibans = column_of([f"CH{number:07}" for number in customers], "c")
    assert (ibans.kind, "--groups c" in ibans.question) == ("categorical", True)
    amounts = np.exp(r.normal(5, 1, 3000)).round().astype(int).tolist()
    ages = r.integers(18, 90, 700).tolist()
    cities = [f"town {'abcdefghij'[i % 10] * (1 + i // 10 % 20)}" for i in customers]
    for values in (amounts, ages, cities):
        assert column_of([str(value) for value in values]).question == ""


def test_amounts_in_another_style_are_named() -> None:
    """A file has one style of numbers, so a column in another one is left out; the message says so."""
    r = np.random.default_rng(0)
    numbers = r.lognormal(6, 1, 300).tolist()
    swiss = [f"{number:,.2f}".replace(",", "'") for number in numbers]
    german = [f"{number:,.2f}".translate(str.maketrans(",.", ".,")) for number in numbers]
    accounts = [f"({number:,.2f})" if number > 500 else f"{number:,.2f}" for number in numbers]
    codes = [f"{number:012.4f}-7" for number in numbers]
    for written in (german, accounts):
        table = pa.table({"a": swiss, "b": swiss, "c": written, "d": codes})
        columns = contents_of(table, np.zeros(300, bool))[0]
        assert [column.kind for column in columns] == ["number", "number", "drop", "drop"]
        assert columns[2].question.startswith("has amounts in another number style, such as ")
        assert columns[2].question.endswith(": write all columns of the file in one style")
        assert "an identifier or names" in columns[3].comment


def test_the_zero_of_a_number_that_starts_at_zero_is_not_questioned() -> None:
    for values in ([*range(20)], [0, *range(500, 9000, 450)], [0, 30, 31]):
        assert "missing" not in column_of([str(value) for value in values] * 2).comment


@pytest.mark.parametrize(
    ("values", "form", "parts"),
    [
        (["2025-01-01", "2025-12-30"], None, ("year", "weekday", "days")),
        (["2025-01-01", "2025-12-31"], None, ("year", "month", "weekday", "days")),
        # The last 20 % of the rows are for the test, and do not count.
        (["2025-01-01", *["2025-06-30"] * 8, "2025-12-31"], None, ("year", "weekday", "days")),
        (["2025-01-01 10:00", "2025-02-01"], None, ("year", "weekday", "hour", "days")),
        (["31.12.2024 08:15", "01.01.2025 00:00"], "%d.%m.%Y %H:%M", ("year", "hour", "days")),
        (["12/31/2024", "01/01/2025"], "%m/%d/%Y", ("year", "days")),
        (["31/12/2024", "01/01/2025"], "%d/%m/%Y", ("year", "days")),
        (["12/31/24", "1/1/25"], "%m/%d/%y", ("year", "days")),
        (["1/31/2024 1:30 PM", "2/1/2025 12:00 AM"], "%m/%d/%Y %I:%M %p", ("year", "month", "weekday", "hour", "days")),
        (["31-Jan-2024", "01-Feb-2024"], "%d-%b-%Y", ("year", "days")),
        (["20240131", "20240201", "20231231"], "%Y%m%d", ("year", "weekday", "days")),
        (["2025-1-5", "2025-12-30"], "%Y-%m-%d", ("year", "weekday", "days")),
        (["31.12.2024 08:15:00.123", "01.01.2025 00:00:00.5"], "%d.%m.%Y %H:%M:%S.%f", ("year", "hour", "days")),
    ],
)
def test_how_dates_are_written(values: list[str], form: str | None, parts: tuple[str, ...]) -> None:
    column = column_of(values)
    assert (column.date_format, column.parts) == (form, parts)


def test_dates_of_a_second_format_are_left_out() -> None:
    texts = {
        "a": ["1.2.2025", "3.2.2025", "4.2.2025"],
        "b": ["2025-01-01", "2025-02-01", ""],
        "c": ["20240131", "20240201", "20231231"],
    }
    assert [column.kind for column in columns_of(texts)] == ["dates", "drop", "number"]


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=20)


@given(NAMES)
def test_names_are_read_back_from_yaml(name: str) -> None:
    assert yaml.safe_load(f"{quoted(name)}  {comment(name)}") == name
    assert yaml.safe_load(f"- {quoted(name)}  {comment(name)}\n- b") == [name, "b"]


@pytest.mark.parametrize("kind", ["csv", "gz", "parquet"])
def test_what_init_writes_trains(tmp_path: Path, kind: str) -> None:
    n = 120
    columns = {
        "when: day": [dt.date(2025, 1, 1) + dt.timedelta(days=i) for i in range(n)], "yes": ["a b", "c, d", '"'] * (n // 3),
        "x": [None if i % 10 == 0 else i % 7 / 4 for i in range(n)], "y": [i % 5 == 0 for i in range(n)],
    }  # fmt: skip
    table = pd.DataFrame(columns)
    path = tmp_path / "my data.csv"
    if kind == "parquet":
        path = tmp_path / "my data.parquet"
        more = {"list": pa.array([[1]] * n), "none": pa.array([None] * n, pa.float64())}
        columns = {name: pa.array(table[name].tolist()) for name in table} | more
        pq.write_table(pa.table(columns), path)
    else:
        path = path if kind == "csv" else tmp_path / "my data.csv.gz"
        table.to_csv(path, index=False)
    result = result_of("init", path, "--label", "y", "--output", "c.yaml")
    kinds = list(result["columns"].values())
    assert kinds[:3] == ["dates", "categorical", "number"]
    assert kinds[3:] == (["drop", "drop"] if kind == "parquet" else [])
    config = yaml.safe_load((tmp_path / "c.yaml").read_text())
    assert config["data"]["source"]["source"] == path.name
    preview = result_of("data", "preview", "c.yaml")
    assert (preview["rows"], preview["positives"], preview["n_features"]) == (n, 24, 3 + 3 + 1)
    assert result_of("train", "c.yaml", *sets("model.tol=0.5"))["n_features"] == 7


OF_Y = ("--label", "y")


@pytest.mark.parametrize(
    ("name", "text", "args", "message"),
    [
        ("f.csv", "a,y\n1,0\n", ("--label", "z"), "unknown column in `label`: 'z'"),
        ("f.csv", "a,y\n1,0\n2,0\n", OF_Y, "one class only"),
        ("f.csv", "a,y\n" + "".join(f"1,{i}\n" for i in range(30)), OF_Y, "the label column 'y' has 30 different values"),
        ("f.csv", "a,y\n1,0\n2,\n", OF_Y, "line 3, column 'y': the value is missing"),
        ("f.csv", "a,y\n1,0\n2\n", OF_Y, "line 3: the row has 1 cells, but there are 2 columns"),
        ("f.csv", "", OF_Y, "is empty"),
        ("f.csv", "a,y\n1,0\n2,1\na,y\n3,0\n", OF_Y, "line 4: the header is repeated here"),
        ("f.csv", "a,y\r1,0\r2,1\r", OF_Y, "lines end in CR alone"),
        ("f.csv", "a,y\n1,0\n2,1\n", (*OF_Y, "--output", "there.yaml"), "there.yaml already exists"),
        ("f.csv", "a,y\n1,0\n2,1\n", ("--label", "z", "--output", "there.yaml"), "unknown column in `label`: 'z'"),
        ("f.csv", "a,y\n1,0\n2,1\n", (*OF_Y, "--set", "format=shards"), "shards"),
        ("f.csv", "a,b\n1,2\n", (), "name the label column, as in --label COLUMN"),
        ("f.txt", "hello there\n", (), "name the label column, as in --label COLUMN"),
        ("f.txt", "", (), "f.txt"),
        ("f.svm", "\n", (), "f.svm is empty"),
        ("f.svm", "".join(f"{i} 1:1\n" for i in range(30)), (), "the labels have 30 different values"),
        ("f.svm", "1 1:1\n1 1:2\n", (), "one class only"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_described(tmp_path, name, text, args, message):
    (tmp_path / name).write_bytes(text.encode())
    (tmp_path / "there.yaml").write_text("mine")
    assert message in run("init", name, *args, code=2)[1]
    assert (tmp_path / "there.yaml").read_text() == "mine"
    assert not (tmp_path / "f.yaml").exists()


def test_a_large_file_is_described_by_its_first_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.init.read.MAX_BYTES", 1000)
    (tmp_path / "f.csv").write_text("a,y\n" + "".join(f"{i % 9},{i % 3}\n" for i in range(1000)))
    result = result_of("init", "f.csv", "--label", "y")
    assert (result["rows"], result["all_rows"]) == (249, False)
    assert "the first 249 rows of f.csv" in (tmp_path / "f.yaml").read_text()


@pytest.mark.parametrize("columns", ["x;y", "x;k;y", "x;k;z;y"])
def test_the_line_that_tells_excel_the_separator_is_no_header(tmp_path, monkeypatch, columns):
    monkeypatch.chdir(tmp_path)
    rows = [";".join([str(i % 7)] * columns.count(";") + ["ab"[i % 3 == 0]]) for i in range(60)]
    (tmp_path / "f.csv").write_text("\n".join(["sep=;", columns, *rows]))
    assert result_of("init", "f.csv", "--label", "y")["rows"] == 60
    assert "skip_lines: 1" in (tmp_path / "f.yaml").read_text()


def test_names_of_columns_may_have_line_breaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{i % 7},{i % 5},{i % 4},{'ab'[i % 3 == 0]}" for i in range(60)]
    (tmp_path / "f.csv").write_text("\n".join(['a,b,"length\nin mm",y', *rows]))
    result = result_of("init", "f.csv", "--label", "y")
    assert (list(result["columns"]), result["rows"]) == (["a", "b", "length\nin mm"], 60)


def test_a_cell_in_quotes_may_have_a_carriage_return(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f'{i % 7},"{"ok" if i % 4 else "ok" + chr(13) + "?"}",{"ab"[i % 3 == 0]}' for i in range(60)]
    (tmp_path / "f.csv").write_bytes("\r\n".join(["a,text,y", *rows, ""]).encode())
    assert result_of("init", "f.csv", "--label", "y")["columns"] == {"a": "number", "text": "categorical"}


def test_a_large_packed_file_is_known_by_its_first_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("flows.init.read.MAX_BYTES", 100)
    text = "a,y\n" + "".join(f"{i * i % 997},{i % 3}\n" for i in range(1000))
    (tmp_path / "EXPORT").write_bytes(gzip.compress(text.encode()))
    assert result_of("init", "EXPORT", "--label", "y")["columns"] == {"a": "number"}


@pytest.mark.parametrize("from_file", [True, False])
def test_a_new_category_and_a_missing_cell_of_new_rows_do_not_stop_a_score(tmp_path: Path, from_file: bool) -> None:
    r = np.random.default_rng(0)
    frame = pd.DataFrame({"age": r.integers(20, 60, 200), "dept": r.choice(["a", "b"], 200)})
    frame["left"] = np.where(frame["age"] + 5 * r.normal(size=200) > 45, "yes", "no")
    frame.to_csv(tmp_path / "hr.csv", index=False)
    quick = ("--output", tmp_path / "runs", *sets("model.tol=0.1"))
    if from_file:
        result = result_of("train", tmp_path / "hr.csv", "--label", "left", *quick)
    else:
        run("init", tmp_path / "hr.csv", "--label", "left", "--output", tmp_path / "hr.yaml")
        text = (tmp_path / "hr.yaml").read_text()
        assert "missing: keep  # all cells have values, but those of new rows may not" in text
        assert "unknown: ignore  # a category that only new rows have counts as none" in text
        result = result_of("train", tmp_path / "hr.yaml", *quick)
    new = frame.drop(columns="left").head(5).astype(object)
    new.loc[0, "age"], new.loc[1, "dept"], new.loc[2, "dept"] = None, None, "c"
    new.to_csv(tmp_path / "new.csv", index=False)
    lines = run("score", result["run"], tmp_path / "new.csv", tmp_path / "scores")[0].splitlines()
    assert lines[1].startswith("warning: 2 of 5 rows were training rows")
    assert lines[2:] == ["missing values: dept 1, age 1", "unknown values, which no training row had: dept 1"]
    scores = pd.read_parquet(tmp_path / "scores")["score"].to_numpy()
    assert np.isfinite(scores).all()
    model = load_model(f"{result['run']}/model")
    filled = new[:1].assign(age=model.preprocessor.fill[0])
    assert scores[0] == model.decision_function(filled)[0]
    if not from_file:
        run(
            "init",
            tmp_path / "hr.csv",
            "--label",
            "left",
            "--force",
            "--output",
            tmp_path / "hr.yaml",
            *sets("unknown=error"),
        )
        assert "unknown: error" in (tmp_path / "hr.yaml").read_text()


@pytest.mark.parametrize("token", ["NULL", "-1.#IND"])
def test_what_init_writes_trains_whatever_says_that_a_number_is_missing(tmp_path: Path, token: str) -> None:
    r = np.random.default_rng(0)
    columns = {"age": r.integers(20, 60, 200), "hours": r.normal(size=200).round(2), "dept": r.choice(["a", "b"], 200)}
    frame = pd.DataFrame(columns)
    frame["left"] = np.where(frame["age"] + 5 * r.normal(size=200) > 45, "yes", "no")
    frame.loc[::7, "hours"] = np.nan
    frame.to_csv(tmp_path / "hr.csv", index=False, na_rep=token)
    run("init", tmp_path / "hr.csv", "--label", "left", "--output", tmp_path / "hr.yaml")
    assert "missing: keep  # rows without: hours 29" in (tmp_path / "hr.yaml").read_text()
    result = result_of("train", tmp_path / "hr.yaml", "--output", tmp_path / "runs", *sets("model.tol=0.1"))
    assert result["n_features"] == 4
    frame.drop(columns="left").head(20).to_csv(tmp_path / "new.csv", index=False, na_rep=token)
    run("score", f"{result['run']}/model", tmp_path / "new.csv", tmp_path / "scores")
    assert len(pd.read_parquet(tmp_path / "scores")) == 20


USERS = [f"u{i // 2}" for i in range(60)]


@pytest.mark.parametrize(
    ("columns", "kinds"),
    [
        ({"x": range(60)}, ["number"]),
        ({"name": [f"n{i}" for i in range(60)], "x": range(60)}, ["drop", "number"]),
        ({"user_id": USERS}, ["categorical"]),
    ],
)
def test_an_identifier_is_kept_if_no_other_column_is_left(tmp_path: Path, columns: dict, kinds: list[str]) -> None:
    pd.DataFrame(columns | {"y": ["yes", "no", "no"] * 20}).to_csv("f.csv", index=False)
    out = run("init", "f.csv", "--label", "y")[0]
    kept = list(columns)[-1]
    assert f"warning: column {kept!r} is kept, as no other column is left: " in out
    assert f"{kept}  # kept, as no" in (text := Path("f.yaml").read_text()) or f"# number {kept}: kept, as no" in text
    assert list(result_of("init", "f.csv", "--label", "y", "--force")["columns"].values()) == kinds
    _, err = run("train", "f.csv", "--label", "y", "--set", "model.tol=0.5")
    assert f"column {kept!r} is kept" in err


def test_a_table_without_features_says_why_and_which_option_keeps_one() -> None:
    pd.DataFrame({"a name": [f"n{i}" for i in range(60)], "one": 1, "y": [0, 1] * 30}).to_csv("f.csv", index=False)
    for command, key in (("init", "hashed"), ("train", "data.source.hashed")):
        _, err = run(command, "f.csv", "--label", "y", code=2)
        way = f"""--set '{key}={{"a name": 256}}' keeps it"""
        assert f"a name: 60 different strings in 60 rows: an identifier or names ({way}); one: one value: 1" in err
        run(command, "f.csv", "--label", "y", "--set", f'{key}={{"a name": 256}}')
    for columns, said in (({}, "add one"), ({"k": [10**25 + i for i in range(60)]}, "'hashed={k: 256}' keeps it")):
        pd.DataFrame(columns | {"y": [0, 1] * 30}).to_csv("g.csv", index=False)
        assert said in run("init", "g.csv", "--label", "y", code=2)[1]
    shown = "unknown column in `--groups`: 'y'"
    assert shown in run("init", "f.csv", "--label", "y", "--groups", "y", "--force", code=2)[1]


def test_the_time_of_a_split_may_count_the_rows() -> None:
    pd.DataFrame({"row": range(60), "a": np.arange(60) % 7 / 2, "y": [0, 1] * 30}).to_csv("f.csv", index=False)
    assert result_of("init", "f.csv", "--label", "y", "--time", "row")["columns"] == {"row": "number", "a": "number"}
    assert result_of("train", "f.yaml", "--set", "model.tol=0.5")["n_samples"] == 48
    assert "\n# folds: {time: row}  # for `aucdist cv`" in Path("f.yaml").read_text()
    pd.DataFrame({"day": FEBRUARY * 3, "a": np.arange(84) % 7 / 2, "y": [0, 1] * 42}).to_csv("g.csv", index=False)
    run("init", "g.csv", "--label", "y", "--time", "day")
    text = Path("g.yaml").read_text()
    assert "\n# folds: {time: day.days}  # for `aucdist cv`" in text
    Path("g.yaml").write_text(text.replace("# folds", "folds"))
    chosen = result_of("cv", "g.yaml", *sets("grid={lam: [0.1, 1]}", "model.features=null", "folds.number=2"))
    assert set(chosen["best"]) >= {"lam"}


FIRST_LINES = [
    ("6,148,72,1", "1,85,66,0", False),  # all numbers
    ("A11,6,4,A43,4,1", "A12,48,2,A46,2,2", False),  # a repeated value
    ("red,6.5,1", "blue,2,0\nred,3,1", False),  # a value of the column
    ("colour,size,label", "blue,2,0\nred,3,1", True),
    ("year,2019,2020", "1,4,5\n2,7,8", True),  # numbers as names
]


@pytest.mark.parametrize(("first", "rest", "has_names"), FIRST_LINES)
def test_a_first_line_of_values_is_told_from_one_of_names(tmp_path, first, rest, has_names):
    file = tmp_path / "rows.csv"
    file.write_text("\n".join([first, *([rest] * 9)]) + "\n")
    result = result_of("init", file, "--label=-1", "--output", tmp_path / "rows.yaml")
    text = (tmp_path / "rows.yaml").read_text()
    assert ("header: false" in text) is not has_names
    assert ("The first line holds values and no names" in text) is not has_names
    assert result["rows"] == (9 * len(rest.splitlines()) + (not has_names))


def test_an_index_that_pandas_wrote_has_a_name_and_is_dropped(tmp_path: Path) -> None:
    frame = pd.DataFrame({"age": np.arange(60) % 17, "left": np.where(np.arange(60) % 3, "no", "yes")})
    frame.to_csv(tmp_path / "rows.csv")
    result = result_of("init", tmp_path / "rows.csv", "--label", "left", "--output", tmp_path / "r.yaml")
    assert result["columns"] == {"index": "drop", "age": "number"}


def test_errors_of_a_missing_header_say_what_helps(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("6,148,72,6\n1,85,66,0\n8,183,64,1\n")
    for settings in (["label=outcome"], ["label=outcome", "header=true"]):
        said = run("data", "preview", tmp_path / "rows.csv", *sets(*settings), code=2)[1]
        assert "if the file has no header, say `header: false`" in said
    (tmp_path / "words.csv").write_text("age,age\n1,2\n")
    said = run("data", "preview", tmp_path / "words.csv", "--set", "label=age", code=2)[1]
    assert "header: false" not in said


def test_few_whole_numbers_may_be_codes() -> None:
    codes = [str(value) for value in range(1, 5)] * 20
    assert column_of(codes).comment == "1 to 4; if its numbers are codes, list it under `categorical`"


def test_a_folder_partitioned_as_hive_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 90
    rows = {"x": [i % 7 / 4 for i in range(n)], "y": [i % 5 == 0 for i in range(n)]}
    table = pd.DataFrame(rows | {"year": [2023 + i % 3 for i in range(n)], "city": ["a/b", "c d"] * (n // 2)})
    table.to_parquet(tmp_path / "rows", partition_cols=["year", "city"], index=False)
    described = result_of("init", "rows", "--label", "y")
    assert (described["rows"], described["all_rows"]) == (n, True)
    assert described["columns"] == {"x": "number", "year": "number", "city": "categorical"}
    result = result_of("train", "rows.yaml", *sets("model.tol=0.5", "data.direct=true"))
    assert result["n_features"] == 4
    run("score", Path(result["run"]) / "model", "rows/year=2024", "scores")
    assert len(pd.read_parquet(tmp_path / "scores")) == 30
    monkeypatch.setattr("flows.init.read.MAX_FILES", 2)
    run("init", "rows", "--label", "y", "--output", "some.yaml")
    assert "from 30 rows, the first of each of 2 files, of rows." in (tmp_path / "some.yaml").read_text()


# ---- `init` and `data preview` name what makes a test look too good ---------------------------


@pytest.fixture
def leaky() -> pd.DataFrame:
    random = np.random.default_rng(0)
    y = random.random(200) < 0.3
    return pd.DataFrame({"x": random.normal(size=200), "alive": np.where(y, "no", "yes"), "fee": y * 3 + 1, "y": y * 1})


def test_columns_that_give_the_label_away(leaky: pd.DataFrame) -> None:
    leaky.to_csv("t.csv", index=False)
    out, err = run("init", "t.csv", "--label", "y")
    assert "warning: column 'alive' gives the label away (AUC 1.0000 alone)" in out
    assert "warning: column 'fee' gives" in out
    assert "column 'x'" not in out + err
    assert "- alive  # AUC 1.0000 alone: drop it if" in Path("t.yaml").read_text()
    assert result_of("init", "t.csv", "--label", "y", "--force")["leaks"] == ["alive", "fee"]
    preview = run("data", "preview", "t.yaml")[0]
    assert preview.count("warning: ") == 2
    assert "warning: Column 'fee' alone tells the classes apart without an error" in preview


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([*range(18, 60)] * 3 + [999] * 5, "999"),
        ([*range(18, 60)] * 3 + [-1] * 5, "-1"),
        ([-20.5, 10.25, 35.0] * 20 + [-999.0], "-999"),
        ([*range(60, 100)] * 3, ""),  # 99 is one of many
        ([-1, 0, 1, 2] * 20, ""),
        ([-5.0, -1.0, *range(40)] * 3, ""),
    ],
)
def test_a_number_that_may_mark_missing_values_is_named(tmp_path: Path, values: list[float], said: str) -> None:
    rows = np.random.default_rng(0).permutation(values)
    table = pd.DataFrame(
        {"x": rows, "z": np.random.default_rng(1).normal(size=len(rows)), "y": np.arange(len(rows)) % 3 == 0}
    )
    table.to_csv(tmp_path / "t.csv", index=False)
    out = run("init", tmp_path / "t.csv", "--label", "y", "--output", tmp_path / "t.yaml")[0]
    preview = run("data", "preview", tmp_path / "t.yaml")[0]
    sentence = f"'x' has the number {said} far from its other numbers"
    assert ("'x'" in out, "Column 'x'" in preview) == (bool(said), bool(said))
    assert (sentence in out, sentence in preview) == (bool(said), bool(said))


def test_rows_in_the_order_of_a_column_are_reported(tmp_path: Path) -> None:
    r = np.random.default_rng(0)
    table = pd.DataFrame(
        {"x": r.normal(size=300), "Year": np.repeat([1994, 1995, 1996], 100), "y": r.random(300) < 0.3}
    )
    table.to_csv(tmp_path / "t.csv", index=False)
    run("init", tmp_path / "t.csv", "--label", "y", "--output", tmp_path / "t.yaml")
    said = "rows are in the order of column 'Year'"
    assert said in run("data", "preview", tmp_path / "t.yaml")[0]
    result = result_of("train", tmp_path / "t.yaml", *sets("model.tol=0.5"), "--output", tmp_path)
    assert said in (Path(result["run"]) / "report.html").read_text().replace("&#39;", "'")
    assert said not in run("data", "preview", tmp_path / "t.yaml", *sets("data.source.drop=[Year]"))[0]


def test_files_that_name_their_columns_are_looked_at_as_well(tmp_path: Path) -> None:
    r = np.random.default_rng(0)
    y = r.random(200) < 0.3
    lines = [
        f"{'?' if i == 7 else f'{x:.3f}'}, {3 * one + 1}, {i * i}, {'yes' if one else 'no'}"
        for i, (x, one) in enumerate(zip(r.normal(size=200), y, strict=True))
    ]
    attributes = ("x numeric", "fee numeric", "row_id numeric", "bad {yes, no}")
    head = ["@relation t", *(f"@attribute {attribute}" for attribute in attributes), "@data"]
    (tmp_path / "t.arff").write_text("\n".join([*head, *lines, ""]))
    out = run("init", tmp_path / "t.arff", "--label", "bad", "--output", tmp_path / "t.yaml")[0]
    assert "warning: Column 'fee' alone tells the classes apart without an error" in out
    assert "warning: Column 'row_id' differs in every row and numbers the rows" in out
    svmlight = [f"{1 if one else -1} 1:{x:.3f} 2:{3 * one + 1}" for x, one in zip(r.normal(size=200), y, strict=True)]
    (tmp_path / "t.svm").write_text("\n".join([*svmlight, ""]))
    out = run("init", tmp_path / "t.svm", "--output", tmp_path / "svm.yaml", *sets("format=svmlight"))[0]
    assert out.count("warning: Column ") == 1


def test_a_column_without_a_name_is_dropped_unless_no_other_is_left() -> None:
    table = {"Unnamed: 44": ["7", "8", "8.5", ""] * 9, "x": ["1", "2", "2.5", ""] * 9}
    first, second = columns_of(table)
    assert (first.kind, first.otherwise, second.kind) == ("drop", "number", "number")
    assert first.comment.startswith("it had no name in the table that pandas wrote; 7 to 8.5")
    stray = column_of(["7", ".", *[""] * 400], "Unnamed: 44").comment
    assert stray.endswith("pandas wrote; nearly empty: 2 cells of 402 with a value; 7 to 7, but for '.' in 1 row")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_without_a_label_the_columns_are_listed_the_last_one_first(tmp_path: Path, suffix: str) -> None:
    n = 60
    table = pd.DataFrame({"id": range(n), "amount": np.arange(n) / 7, "bad": [i % 3 == 0 for i in range(n)]})
    getattr(table, f"to_{suffix}")(tmp_path / f"t.{suffix}", index=False)
    for command in (["init"], ["train"], ["cv"]):
        said = run(*command, tmp_path / f"t.{suffix}", code=2)[1]
        assert "as in --label COLUMN. The columns, the last one first, are: bad, amount, id" in said
    said = run("init", tmp_path / f"t.{suffix}", "--label", "amount", code=2)[1]
    assert "name another one with --label. " in said
    assert "The columns, the last one first, are: bad, id" in said


def test_rows_that_are_there_twice_and_in_order(leaky: pd.DataFrame) -> None:
    rows = leaky[["x", "y"]].sort_values("y")
    pd.concat([rows, rows.iloc[:20]]).sort_values("y").to_csv("t.csv", index=False)
    warned = result_of("data", "preview", "t.csv", *sets("label=y"))["warnings"]
    assert warned[0].startswith("The rows are in the order of their classes")
    assert warned[1].startswith("20 of 220 rows equal another row in all features")


def test_files_of_one_class(leaky: pd.DataFrame) -> None:
    for name, rows in (("a", leaky[leaky["y"] == 0]), ("b", leaky[leaky["y"] == 1])):
        rows[["x", "y"]].to_csv(f"{name}.csv", index=False)
    Path("t.yaml").write_text("source: [a.csv, b.csv]\nformat: csv\nlabel: y\n")
    warned = result_of("data", "preview", "t.yaml")["warnings"]
    assert warned[-1].startswith("Each of the 2 files has rows of one class only")
    leaky[["x", "y"]].to_csv("b.csv", index=False)
    assert not any("files" in text for text in result_of("data", "preview", "t.yaml")["warnings"])


@pytest.mark.parametrize(
    ("n", "n_columns", "options", "features"),
    [
        (60, 3, (), READABLE),
        (60, 60, (), None),
        (3840, 60, (), READABLE),
        (60, 3, ("--set", "hashed={x0: 1000}"), None),
    ],
    ids=["narrow", "wide", "wide-but-long", "hashed"],
)
def test_readable_maps_are_searched_unless_tables_are_wide_or_hashed(tmp_path, n, n_columns, options, features):
    """Bins of 1,000 columns of 1,600 rows take minutes, and those of more than 20,000 columns cannot be numbered."""
    values = np.random.default_rng(0).normal(size=(n, n_columns)).round(3)
    table = pd.DataFrame(values, columns=[f"x{i}" for i in range(n_columns)]).assign(y=np.arange(n) % 5 == 0)
    table.to_csv(tmp_path / "t.csv", index=False)
    result_of("init", tmp_path / "t.csv", "--label", "y", "--output", "c.yaml", *options)
    assert yaml.safe_load((tmp_path / "c.yaml").read_text())["model"].get("features") == features


@pytest.mark.parametrize(
    ("n_numbers", "n_texts", "n_values", "n_empty", "features"),
    [(0, 8, 40, 0, READABLE), (0, 20, 40, 0, None), (8, 0, 0, 45, READABLE), (48, 2, 40, 0, None)],
    ids=["few-categories", "many-categories", "dropped-columns", "mixed"],
)
def test_columns_count_by_their_features(n_numbers, n_texts, n_values, n_empty, features):
    """Bins of 45 columns of 450 strings were refused by the fit, and 45 empty columns made a linear model of 8 numbers."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(400, n_numbers)).round(3)).add_prefix("x")
    texts = pd.DataFrame(rng.integers(0, n_values or 1, (400, n_texts))).astype(str).radd("v").add_prefix("k")
    empty = pd.DataFrame(index=range(400), columns=[f"e{i}" for i in range(n_empty)])
    pd.concat([table, texts, empty], axis=1).assign(y=np.arange(400) % 5 == 0).to_csv("t.csv", index=False)
    result_of("init", "t.csv", "--label", "y", "--output", "c.yaml")
    assert yaml.safe_load(Path("c.yaml").read_text())["model"].get("features") == features


@pytest.mark.parametrize("form", ["csv", "folder", "parquet"])
def test_the_model_is_that_of_all_rows(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """60 columns are wide for the rows that are looked at, and not for the 4,800 of the table."""
    columns = [f"x{i}" for i in range(60)]
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(4800, 60)).round(3), columns=columns)
    table["y"] = np.arange(4800) % 5 == 0
    monkeypatch.setattr("flows.init.read.MAX_BYTES", 200_000)
    if form == "folder":
        Path("t").mkdir()
        for i in range(8):
            table.iloc[600 * i : 600 * (i + 1)].to_csv(f"t/{i}.csv", index=False)
    elif form == "csv":
        table.to_csv("t.csv", index=False)
    else:
        table.to_parquet("t.parquet", row_group_size=600)
    path = {"folder": "t/*.csv"}.get(form, f"t.{form}")
    result = result_of("init", path, "--label", "y", "--output", "c.yaml")
    text = Path("c.yaml").read_text()
    assert yaml.safe_load(text)["model"]["features"] == READABLE
    assert f"the rarer one of the first {result['rows']:,} rows (rows of each class: " in text
    assert result["rows"] <= 960


@pytest.mark.parametrize(
    ("layout", "scale", "features"), [("csr", "maxabs", None), ("dense", "standard", READABLE)], ids=["csr", "dense"]
)
@pytest.mark.parametrize("name", ["t.csv", "t.svm"])
def test_a_stated_layout_decides(name: str, layout: str, scale: str, features: dict | None) -> None:
    """A linear model of standardised rows, which sparse rows cannot be, failed in `train`."""
    rows = [(i % 4 == 0, i % 7 * (i % 3 == 0), i % 5 * (i % 2)) for i in range(200)]
    if name == "t.csv":
        pd.DataFrame(rows, columns=["y", "a", "b"]).to_csv(name, index=False)
    else:
        lines = [f"{1 if y else -1}" + f" 1:{a}" * (a > 0) + f" 2:{b}" * (b > 0) for y, a, b in rows]
        Path(name).write_text("\n".join(lines) + "\n")
    label = ("--label", "y") if name == "t.csv" else ()
    result_of("init", name, *label, *sets(f"layout={layout}"), "--output", "c.yaml")
    config = yaml.safe_load(Path("c.yaml").read_text())
    assert (config["data"]["scale"], config["model"].get("features")) == (scale, features)
    result_of("train", name, *label, *sets(f"data.source.layout={layout}", "model.tol=0.5", "baselines=false"))


def test_the_columns_of_a_keel_file_are_listed_and_those_of_one_value_dropped() -> None:
    header = "@relation r\n@attribute a numeric\n@attribute k {t,f}\n@attribute one {t,f}\n@attribute two numeric\n"
    rows = "".join(f"{i % 7},{'tf'[i % 3 == 0]},f,3,{'yn'[i % 4 > 0]}\n" for i in range(60))
    Path("r.arff").write_text(header + "@attribute y {y,n}\n@data\n" + rows)
    result = result_of("init", "r.arff", "--label", "y")
    assert result["columns"] == {"a": "number", "k": "categorical", "one": "drop", "two": "drop"}
    source = yaml.safe_load(Path("r.yaml").read_text())["data"]["source"]
    assert source["format"] == "arff"
    assert source["drop"] == ["one", "two"]


def test_an_estimator_without_bins_is_refused_before_the_rows_are_read() -> None:
    pd.DataFrame({"x": [i * i % 97 for i in range(200)], "y": [i % 4 == 0 for i in range(200)]}).to_csv(
        "t.csv", index=False
    )
    said = run(
        "train", "t.csv", "--label", "y", *sets("model.estimator=HingeClassifier", "model.features=bins"), code=2
    )[1]
    assert "--set model.features=null" in said
    assert "open data" not in said
    searched = run("train", "t.csv", "--label", "y", *sets("model.estimator=HingeClassifier"))[1]
    assert "chose features none, lam" in searched


@pytest.mark.parametrize(("sparse", "features"), [(False, READABLE), (True, None)])
def test_readable_maps_are_searched_for_rows_of_svmlight_unless_they_are_sparse(
    tmp_path: Path, sparse: bool, features: dict | None
) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(200, 40)).round(2) * (rng.random((200, 40)) < (0.05 if sparse else 1.0))
    lines = [
        " ".join([str(i % 4 == 0 or -1), *(f"{j + 1}:{v}" for j, v in enumerate(row) if v)])
        for i, row in enumerate(values)
    ]
    (tmp_path / "rows.svm").write_text("\n".join(lines).replace("True", "1") + "\n")
    result_of("init", tmp_path / "rows.svm", "--output", "c.yaml")
    assert yaml.safe_load((tmp_path / "c.yaml").read_text())["model"].get("features") == features


def test_a_file_beside_the_one_that_was_named_is_suggested() -> None:
    pd.DataFrame({"a": range(40), "y": [0, 1] * 20}).to_csv("f.csv", index=False)
    run("init", "f.csv", "--label", "y")
    assert (
        "there is no configuration file 'f.yml'. Did you mean 'f.yaml'? Give a path" in run("train", "f.yml", code=2)[1]
    )
    assert "there is no configuration file 'g.yml'. Give a path" in run("train", "g.yml", code=2)[1]
    shown = "as in --set label=COLUMN"
    assert shown in run("data", "preview", "f.csv", code=2)[1]
