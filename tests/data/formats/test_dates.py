"""Columns of dates become numbers; texts that nobody has called categories are not silently hundreds of them."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.parts import all_blocks
from support.sharded import shard_data

from aucdist.data.dataset import PARTS
from aucdist.data.formats.table_options import are_dates, parse_date
from aucdist.data.shards.reading import open_rows, read
from aucdist.data.shards.sharding import request
from aucdist.data.sources import Source
from aucdist.errors import InputError

ROWS = ["2025-01-31", "1969-12-31 18:30", "2025-02-01T06:00:00+02:00"]
EXPECTED = [[2025, 1, 4, 0, 20119], [1969, 12, 2, 18.5, -1 + 18.5 / 24], [2025, 2, 5, 6, 20120 + 4 / 24]]
"""Year, month, weekday, hour and days of the rows; 2025-01-31 is a Friday."""


@pytest.fixture
def csv(tmp_path):
    def write(text, **keys):
        (tmp_path / "f.csv").write_text(text)
        return Source(source=str(tmp_path / "f.csv"), format="csv", label="y", **keys)

    return write


def lines(columns, rows, labels=("no", "yes", "no")):
    return f"{columns},y\n" + "".join(f"{row},{label}\n" for row, label in zip(rows, labels, strict=True))


def test_the_parts_of_dates_stand_where_the_column_stood(csv):
    rows = [f"{a},{when},{kind},{b}" for a, when, kind, b in zip((1, 2, 3), ROWS, "pqp", (4, 5, 6), strict=True)]
    data = read(csv(lines("a,when,kind,b", rows), categorical=["kind"], dates={"when": list(PARTS)}))
    names = ("a", *(f"when.{part}" for part in PARTS), "kind=p", "kind=q", "b")
    assert data.schema.feature_names == names
    assert data.schema.columns() == ["a", "when", "kind", "b"]
    np.testing.assert_allclose(data.block.X[:, 1:6], EXPECTED, rtol=1e-15)
    assert data.block.X[:, [0, 6, 7, 8]].tolist() == [[1, 1, 0, 4], [2, 0, 1, 5], [3, 1, 0, 6]]


def test_parquet_dates_of_every_type_and_csv_dates_agree(tmp_path, csv):
    days = [dt.date(2025, 1, 31), dt.date(1969, 12, 31), None]
    columns = {
        "date": pa.array(days),
        "stamp": pa.array([None if d is None else dt.datetime(d.year, d.month, d.day) for d in days], pa.timestamp("ns")),
        "text": [None if d is None else str(d) for d in days],
        "y": ["no", "yes", "no"],
    }  # fmt: skip
    pq.write_table(pa.table(columns), tmp_path / "f.parquet")
    keys = {"dates": {name: ["month", "days"] for name in ("date", "stamp", "text")}, "missing": "keep"}
    of_parquet = read(Source(source=str(tmp_path / "f.parquet"), format="parquet", label="y", **keys))
    as_csv = read(
        csv(lines("date,stamp,text", ["2025-01-31," * 2 + "2025-01-31", ",".join(["1969-12-31"] * 3), ",,"]), **keys)
    )
    np.testing.assert_array_equal(of_parquet.block.X, as_csv.block.X)
    assert of_parquet.block.X[:2].tolist() == [[1, 20119] * 3, [12, -1] * 3]
    assert np.isnan(of_parquet.block.X[2]).all()
    assert of_parquet.schema.feature_names == as_csv.schema.feature_names


def test_parts_of_a_file_and_test_files_have_the_same_dates(csv):
    rows = [f"2025-{1 + i % 12:02d}-{1 + i % 28:02d},{i}" for i in range(200)]
    source = csv(lines("when,a", rows, ["yes" if i % 3 else "no" for i in range(200)]), dates={"when": ["days"]})
    whole, reader = read(source), open_rows(source, n_parts=4)
    assert reader.n_blocks > 1
    X = np.concatenate([block.X for block in all_blocks(reader)])
    np.testing.assert_array_equal(X, whole.block.X)
    again = read(source.model_copy(update={"dates": {}}), schema=whole.schema)
    np.testing.assert_array_equal(again.block.X, whole.block.X)


def test_other_spellings_need_a_format(csv):
    text = lines("when", ["31.1.2025", "01.02.2025", "28.02.2025"])
    data = read(csv(text, dates={"when": ["month", "days"]}, date_format="%d.%m.%Y"))
    assert data.block.X.tolist() == [[1, 20119], [2, 20120], [2, 20147]]
    said = r"line 2, column 'when': '31\.1\.2025' is not a date as ISO 8601.*`date_format: '%d.%m.%Y'`"
    with pytest.raises(InputError, match=said):
        read(csv(text, dates={"when": ["month"]}))


def test_dates_in_parquet_are_never_guessed_to_be_categories(tmp_path):
    when = pa.array([dt.date(2025, 1, day) for day in (1, 2, 3)])
    pq.write_table(pa.table({"when": when, "y": [0, 1, 0]}), tmp_path / "f.parquet")
    source = Source(source=str(tmp_path / "f.parquet"), format="parquet", label="y", categorical="auto")
    with pytest.raises(InputError, match="column 'when': it holds dates"):
        read(source)
    named = read(source.model_copy(update={"categorical": ["when"]}))
    assert named.block.n_features == 3


@pytest.mark.parametrize(
    "keys", [{"categorical": ["k"], "hashed": {"k": 3}}, {"hashed": {"k": 3}, "dates": {"k": ["days"]}}]
)
def test_a_column_is_read_in_one_way(csv, keys):
    with pytest.raises(ValueError, match="column 'k' is listed under both"):
        csv("", **keys)


def test_drop_takes_columns_out_of_all_or_of_those_to_keep(csv):
    text = lines("a,b,c", ["1,2,3", "4,5,6", "7,8,9"])
    assert read(csv(text, drop=["b"])).schema.feature_names == ("a", "c")
    assert read(csv(text, keep=["c", "b"], drop=["b", "y"])).schema.feature_names == ("c",)


@pytest.mark.parametrize("n_parts", [None, 5])
def test_texts_that_are_guessed_to_be_categories_may_not_be_too_many(csv, n_parts):
    rows = [f"{i},name-{i % 70}" if i % 2 else f"word,name-{i % 70}" for i in range(120)]
    text = lines("a,name", rows, ["no", "yes"] * 60)
    source = csv(text, categorical="auto")
    said = r"column '(name|a)': there are \d+ categories, more than 60 in 120 rows.*`drop: \["
    with pytest.raises(InputError, match=said) as caught:
        read(source) if n_parts is None else open_rows(source, n_parts=n_parts)
    assert "list it under `categorical`" in str(caught.value)
    assert read(csv(text, categorical=["a", "name"])).block.n_features == 61 + 70


def test_parse_date():
    assert parse_date("2025-1-5", None) is None  # as `fromisoformat` has it
    assert parse_date("20250105", None) is None  # a number, more likely
    assert parse_date("2025-01-05 25:00", None) is None
    assert parse_date("05/01/2025", "%d/%m/%Y") == dt.datetime(2025, 1, 5)
    assert are_dates(["(missing)", "2025-01-05"])
    assert not are_dates(["(missing)"])


def test_shards_know_their_dates(csv, tmp_path):
    source = csv(lines("when,a", [f"{row},1" for row in ROWS]), dates={"when": ["days", "year"]})
    shard_data(request(source, str(tmp_path / "shards")))
    schema = open_rows(Source(source=str(tmp_path / "shards"), format="shards")).schema
    assert schema == read(source).schema
    assert schema.columns() == ["when", "a"]
