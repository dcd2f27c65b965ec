"""SQL of exported models: names and texts that would break out of their quotes, dates, and names that are taken."""

import re
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.export_models import model_of_missing_values, parts_of
from support.linear_models import linear_model

from aucdist.data.dataset import PARTS, Schema
from aucdist.data.preprocess import Preprocessor
from aucdist.errors import InputError
from aucdist.export import to_sql
from aucdist.export.sql import date_part, identifier, number, table_name, text, total, typed_spellings
from aucdist.model.linear_model import LinearModel
from aucdist.probability.links import Link, LinkMap

NASTY = (
    "'; DROP TABLE rows; --", '"; DROP TABLE rows; --', "\\'", "/*", "a\nb", "{0}%s", "*/ SELECT", "x'", '""', "--",
)  # fmt: skip


def linear(names: tuple[str, ...], categories: dict[str, tuple[str, ...]] | None = None) -> LinearModel:
    """Return a model with the weights 1, 2, ... of features with these names."""
    features = [f"{name}={value}" for name, values in (categories or {}).items() for value in values] + list(names)
    schema = Schema(tuple(features), "y", ("1",), ("0",), categories or {})
    weights = np.arange(1.0, len(features) + 1)
    probability = LinkMap(1.0, Link("logit"), 1.0, 0.0)
    return linear_model(weights, 0.5, schema, Preprocessor((), "none", None, None), {}, probability)


def rows_of(query: str, **tables: pd.DataFrame) -> pd.DataFrame:
    """Return what DuckDB finds; `rows` must be there afterwards, as it was."""
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: pip install duckdb")
    with duckdb.connect() as connection:
        for name, frame in tables.items():
            connection.register("frame", frame)
            connection.execute(f"CREATE TABLE {identifier(name)} AS SELECT * FROM frame")
        table: pd.DataFrame = connection.execute(query).df()
        for name, frame in tables.items():
            assert connection.execute(f"SELECT count(*) FROM {identifier(name)}").fetchone() == (len(frame),)
    return table


def test_names_and_categories_cannot_leave_their_quotes() -> None:
    model = linear(NASTY[1:], {NASTY[0]: NASTY})
    frame = pd.DataFrame(np.eye(len(NASTY))[:, 1:], columns=list(NASTY[1:])).assign(**{NASTY[0]: list(NASTY)})
    query = to_sql(model)
    outside = re.sub(r"\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'", "", query)
    assert not re.search(r"DROP|--|/\*|;|['\"\\]", outside)
    table = rows_of(query, rows=frame)
    assert set(table) == {*NASTY, "score", "probability", "prediction"}
    k = len(NASTY)
    expected = [0.5 + i + 1 + (k + i if i else 0) for i in range(k)]
    assert sorted(table["score"]) == sorted(expected)


def test_names_that_are_taken() -> None:
    names = ("score", "Prediction", "x0", "X1", "cells", "s", "rows")
    model = linear(names)
    frame = pd.DataFrame([np.arange(len(names), dtype=float)], columns=list(names))
    table = rows_of(to_sql(model, table="cells"), cells=frame)
    assert list(table) == [*names, "score_", "probability", "prediction_"]
    assert table["score_"].tolist() == [0.5 + sum((i + 1) * i for i in range(len(names)))]
    assert rows_of(to_sql(model, table="scored"), scored=frame)["score_"].tolist() == table["score_"].tolist()


def test_names_of_tables() -> None:
    assert table_name("clicks") == '"clicks"'
    assert table_name("sales.clicks") == '"sales"."clicks"'
    assert table_name('"a.b"."c""d"') == '"a.b"."c""d"'
    for wrong in ("", ".", "a..b", 'a"b', "a.", '""', "a\0b", '"a'):
        with pytest.raises(InputError, match="name"):
            table_name(wrong)
    model = linear(("x",))
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: pip install duckdb")
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA sales; CREATE TABLE sales.clicks AS SELECT 2 AS x, 'b' AS key")
        assert connection.execute(to_sql(model, table="sales.clicks", ids=["key"])).fetchall()[0][:2] == ("b", 2.5)


def test_texts_and_numbers_are_written_in_full() -> None:
    assert text("it's") == "'it''s'"
    for name in (text, identifier):
        with pytest.raises(InputError, match=r"NUL|cannot be a name"):
            name("a\0")
    for value in (0.1, 1e300, -5e-324, 1 / 3, 123456789.123456789, 0.0):
        assert float(number(value).strip("()")) == value
        assert "E" in number(value)
    with pytest.raises(InputError, match="inf"):
        number(float("inf"))
    assert total([]) == "0.0E0"


def test_thousands_of_columns_are_no_deep_expression() -> None:
    names = tuple(f"v{i}" for i in range(1100))  # more than the depth of an expression that SQLite and Python take
    with closing(sqlite3.connect(":memory:")) as connection:
        pd.DataFrame(np.ones((1, 1100)), columns=list(names)).assign(key=1).to_sql("rows", connection, index=False)
        lines = connection.execute(to_sql(linear(names), ids=["key"])).fetchall()
    assert lines[0][:2] == (1, 0.5 + 1100 * 1101 / 2)


def test_postgresql_keeps_stages_apart() -> None:
    query = to_sql(linear(("a", "n")))
    assert query.count("COUNT(*) OVER () AS n_") == query.count(" AS (\n") > 1


def test_columns_beside_the_scores_are_named_once() -> None:
    with pytest.raises(InputError, match="column 'a' is named twice"):
        to_sql(linear(("x",)), ids=["a", "b", "a"])
    with pytest.raises(InputError, match=r"give \['customer'\]"):
        to_sql(linear(("x",)), ids="customer")


def test_parts_of_dates() -> None:
    r = np.random.default_rng(0)
    start = datetime(1583, 1, 1)
    dates = [start + timedelta(minutes=int(m)) for m in r.integers(0, 700 * 365 * 1440, 300)]
    dates += [datetime(y, m, d) for y in (1900, 2000, 2023, 2024, 2100) for m, d in ((1, 1), (2, 28), (3, 1), (12, 31))]
    frame = pd.DataFrame({"at": pd.Series(dates, dtype="datetime64[us]"), "row": range(len(dates))})
    selected = ", ".join(f"{date_part(identifier('at'), part)} AS {part}" for part in PARTS)
    table = rows_of(f"SELECT row, {selected} FROM rows ORDER BY row", rows=frame)
    for part in PARTS:
        np.testing.assert_allclose(table[part], parts_of(dates)[part], rtol=1e-12)


def test_what_says_that_a_value_is_missing() -> None:
    cells = ["NA", "-", "a", "None", "n/a", "null", "?"]  # `None` was a category of the training rows
    frame = pd.DataFrame({"x": [-999.0, 2.0, 3.0, 4.0, 5.0, -999.0, None], "k": cells})
    table = rows_of(to_sql(model_of_missing_values()), rows=frame)
    assert sorted(table["score"].tolist()) == sorted([10.5, 12.0, 23.0, 34.0, 15.0, 10.5, 10.5])


FILE = """answer,size,floor,amount,paid
Yes,10,1,1.5,true
No,N/A,2,-3.25,false
Yes,30,1,0.1,true
 No ,40,3,1e-3,false
"""


def typed_model() -> LinearModel:
    """Return a model of the columns of `FILE`, whose scores tell all values apart."""
    categories = {"answer": ("No", "Yes"), "floor": ("1", "2", "3.0"), "paid": ("False", "True")}
    features = [f"{name}={value}" for name, values in categories.items() for value in values] + ["size", "amount"]
    schema = Schema(tuple(features), "y", ("1",), ("0",), categories)
    filled = Preprocessor((), "none", None, None, "mean", np.array([0.0] * 7 + [7.0, 0.0]))
    weights = np.array([1e2, 2e2, 1e3, 2e3, 3e3, 1e4, 2e4, 0.1, 0.01])
    probability = LinkMap(1e-4, Link("gev", 0.3), 1.0, 0.0)
    return linear_model(weights, 0.5, schema, filled, {}, probability, reading={"format": "csv", "missing": "keep"})


EXPECTED = [
    0.5 + answer + floor + paid + 0.1 * size + 0.01 * amount
    for answer, floor, paid, size, amount in (
        (2e2, 1e3, 2e4, 10, 1.5), (1e2, 2e3, 1e4, 7, -3.25), (2e2, 1e3, 2e4, 30, 0.1), (1e2, 3e3, 1e4, 40, 1e-3),
    )
]  # fmt: skip


def test_a_table_may_be_typed_as_duckdb_types_the_file(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: pip install duckdb")
    for name, size in (("first.csv", "N/A"), ("numbers.csv", "20"), ("empty.csv", "")):
        content = FILE.replace("N/A", size)
        (tmp_path / name).write_text(content)
        with duckdb.connect() as connection:
            texts = "{'size': 'VARCHAR'}" if name == "first.csv" else "{}"
            connection.execute(f"CREATE TABLE rows AS SELECT * FROM read_csv('{tmp_path / name}', types={texts})")
            kinds = dict(connection.execute("SELECT column_name, data_type FROM duckdb_columns()").fetchall())
            assert kinds["paid"] == "BOOLEAN"
            table = connection.execute(to_sql(typed_model())).df()
        expected = np.array(EXPECTED) + (1.3 if name == "numbers.csv" else 0.0) * np.array([0, 1, 0, 0])
        np.testing.assert_allclose(table["score"], expected, rtol=1e-13)
        np.testing.assert_allclose(table["probability"], typed_model().probability(expected)[:, 1], rtol=1e-12)


def test_truth_values_are_the_categories_that_became_them() -> None:
    frame = pd.DataFrame(
        {"answer": [True, False], "floor": [1, 2], "paid": [True, False], "size": [10.0, None], "amount": [1.5, -3.25]}
    )
    table = rows_of(to_sql(typed_model()), rows=frame)
    np.testing.assert_allclose(sorted(table["score"]), sorted(EXPECTED[:2]), rtol=1e-13)


@pytest.mark.parametrize("kind", ["TEXT", "", "NUMERIC"])
def test_a_table_may_be_typed_as_sqlite_types_it(kind: str) -> None:
    rows = [line.split(",") for line in FILE.splitlines()]
    with closing(sqlite3.connect(":memory:")) as connection:
        if not connection.execute("SELECT count(*) FROM pragma_function_list WHERE name = 'ln'").fetchone()[0]:
            pytest.skip("this SQLite has no logarithm")
        connection.execute(f"CREATE TABLE rows ({', '.join(f'{name} {kind}' for name in rows[0])})")
        connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?)", rows[1:])
        table = pd.read_sql_query(to_sql(typed_model()), connection)
    np.testing.assert_allclose(table["score"], EXPECTED, rtol=1e-13)
    np.testing.assert_allclose(table["probability"], typed_model().probability(np.array(EXPECTED))[:, 1], rtol=1e-12)


def test_a_spelling_that_is_a_category_itself_stays_one() -> None:
    assert typed_spellings(("Yes", "No")) == {"true": "Yes", "false": "No"}
    assert typed_spellings(("yes", "t", "no", "false")) == {}
    assert typed_spellings(("true", "false")) == {}
    assert typed_spellings(("1", "2.0", "007", "-3", "1.5")) == {"1.0": "1", "2": "2.0", "-3.0": "-3"}
    assert typed_spellings(("1", "1.0")) == {}
