"""Groups and grades from files: whole, in parts, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from support.parts import in_parts

from aucdist.data.block import Block, stacked
from aucdist.data.labels import group_numbers, numbers_of_texts
from aucdist.data.shards.block_file import BlockSchema, from_table, to_table
from aucdist.data.shards.reading import read
from aucdist.data.sources import parse_source
from aucdist.errors import InputError


def table():
    r = np.random.default_rng(0)
    user = r.integers(0, 40, 500)
    return pd.DataFrame({
        "a": r.normal(size=500), "user": [f"u{u}" for u in user], "b": r.normal(size=500), "grade": r.integers(0, 4, 500),
    })  # fmt: skip


def file_of(folder, kind, frame):
    """Write a table in a format, and return where it is and the format."""
    path = folder / f"rows.{kind}"
    if kind == "parquet":
        frame.to_parquet(path, index=False, row_group_size=100)
    elif kind == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif kind == "keel":
        kinds = ["@attribute {} {}".format(name, "{0, 1}" if name == "fraud" else "real") for name in frame]
        lines = ["@relation rows", *kinds, "@outputs fraud", "@data"]
        path.write_text("\n".join(lines) + "\n" + frame.to_csv(index=False, header=False))
    else:
        frame.to_csv(path, index=False)
    return {"source": str(path), "format": kind}


def written(folder, kind, frame):
    return file_of(folder, kind, frame) | {"label": "grade"}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("groups", ["user", 1])
def test_a_column_of_groups_is_no_feature(tmp_path, kind, groups):
    frame = table()
    source = parse_source(written(tmp_path, kind, frame) | {"groups": groups, "labels": "grades"}, "rows")
    data = read(source)
    assert data.schema.feature_names == ("a", "b")
    assert np.array_equal(data.block.group, numbers_of_texts(list(frame["user"])))
    assert np.array_equal(data.block.grade, frame["grade"])
    assert np.array_equal(data.block.y, np.where(frame["grade"] > 0, 1, -1))
    blocks = in_parts(source, 4)
    assert len(blocks) > 1
    for name in ("group", "grade", "y"):
        assert np.array_equal(np.concatenate([getattr(b, name) for b in blocks]), getattr(data.block, name))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_whole_numbers_are_their_own(tmp_path, kind):
    frame = table().assign(user=np.arange(500) % 7)
    source = parse_source(written(tmp_path, kind, frame) | {"groups": "user", "positive": 3}, "rows")
    data = read(source)
    assert data.block.group.tolist() == frame["user"].tolist()
    assert data.block.grade is None


def test_texts_and_numbers():
    assert numbers_of_texts(["7", "007", "7.0", "-3"]).tolist() == [7, 7, 7, -3]
    assert len(set(numbers_of_texts(["0e462097", "0e830400", "0"]).tolist())) == 3  # identifiers in hexadecimal
    names = [f"user {i}" for i in range(10_000)]
    assert len(set(numbers_of_texts(names).tolist())) == 10_000
    assert group_numbers(None) is None
    assert group_numbers([1.5, 1.5, 2.5])[0] != group_numbers([2.5])[0]
    mixed = [1.5, 7.0, -3.0, 1e300]  # rows that are read apart agree, whatever else is beside them
    assert group_numbers(mixed).tolist() == [int(group_numbers([value])[0]) for value in mixed]
    assert group_numbers(mixed)[1:3].tolist() == [7, -3]
    with pytest.raises(InputError, match=r"groups must have the shape \(n_samples,\), .*; got the shape \(3, 2\)"):
        group_numbers(np.zeros((3, 2)))


QUERIES = "3 qid:7 1:1 2:2\n0 qid:7 2:1 # a comment\n\n1 qid:12 1:5\n0 qid:12\n"


def test_query_ids(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text(QUERIES, encoding="utf-8")
    entry = {"source": str(path), "format": "svmlight", "qid": "use", "labels": "grades"}
    block = read(parse_source(entry, "rows")).block
    assert block.group.tolist() == [7, 7, 12, 12]
    assert block.grade.tolist() == [3, 0, 1, 0]
    assert block.y.tolist() == [1, -1, 1, -1]
    assert block.X.toarray().tolist() == [[1, 2], [0, 1], [5, 0], [0, 0]] if hasattr(block.X, "toarray") else True
    ignored = read(parse_source(entry | {"qid": "ignore"}, "rows")).block
    assert ignored.group is None


def test_graded_rows_have_no_positive_class(tmp_path):
    keys = {"labels": "grades", "positive": 1, "groups": "user"}
    with pytest.raises(InputError, match="`positive` does not apply"):
        read(parse_source(written(tmp_path, "csv", table()) | keys, "rows"))


def test_a_missing_group(tmp_path):
    frame = table()
    frame.loc[3, "user"] = None
    for kind in ("csv", "parquet"):
        entry = written(tmp_path, kind, frame) | {"groups": "user", "missing": "keep", "positive": 3}
        with pytest.raises(InputError, match=r"column 'user'.*missing"):
            read(parse_source(entry, "rows"))


# ---- costs of rows from files: whole, in parts, in shards, and what is refused ----------------


def table_of_costs():
    r = np.random.default_rng(0)
    amount = np.round(r.lognormal(3.0, 1.0, 500), 2)
    return pd.DataFrame({
        "a": r.normal(size=500).astype(np.float32), "amount": amount, "b": r.normal(size=500).astype(np.float32),
        "user": r.integers(0, 9, 500), "fraud": (r.random(500) < 0.2).astype(int),
    })  # fmt: skip


def costs_written(folder, kind, frame):
    label = {} if kind == "keel" else {"label": "fraud"}
    return file_of(folder, kind, frame) | {"groups": "user", "cost_column": "amount", "positive": 1, **label}


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl", "keel"])
def test_costs_travel_beside_the_features(tmp_path, kind):
    frame = table_of_costs()
    source = parse_source(costs_written(tmp_path, kind, frame), "rows")
    data = read(source)
    assert data.schema.feature_names == ("a", "b")
    np.testing.assert_array_equal(data.block.cost, frame["amount"])
    np.testing.assert_array_equal(data.block.group, frame["user"])
    np.testing.assert_allclose(data.block.X, frame[["a", "b"]], rtol=1e-5)
    assert data.block.X.dtype == (np.float32 if kind == "parquet" else np.float64)  # whatever type the costs have
    blocks = in_parts(source, 4)
    np.testing.assert_array_equal(stacked(blocks).cost, data.block.cost)
    form = BlockSchema.of(data.block)
    assert form.costed
    np.testing.assert_array_equal(
        from_table(to_table(data.block), form, 0).take(np.arange(9)).cost, data.block.cost[:9]
    )


def test_costs_are_a_feature_where_keep_names_them(tmp_path):
    for kind in ("csv", "parquet"):
        data = read(parse_source(costs_written(tmp_path, kind, table_of_costs()) | {"keep": ["amount", "b"]}, "rows"))
        assert data.schema.feature_names == ("amount", "b")
        np.testing.assert_array_equal(data.block.cost, data.block.X[:, 0].astype(np.float64))


def test_each_row_has_one_cost():
    with pytest.raises(InputError, match="costs have shape"):
        Block.of(np.zeros((3, 1)), np.array([1, -1, 1]), cost=np.zeros(2))


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        (-3.0, "csv", r"rows.csv: the cost of row 2 \(counted from 0\) must be at least 0; got -3"),
        (-3.0, "parquet", r"the cost of row 2 \(counted from 0\) must be at least 0; got -3"),
        ("much", "csv", "line 4, column 'amount': 'much' is not a number"),
        (np.nan, "csv", "line 4, column 'amount'"),
        (np.nan, "parquet", "row 3, column 'amount'"),
    ],
)
def test_wrong_costs_are_refused(tmp_path, value, kind, said):
    frame = table_of_costs().astype({"amount": object})
    frame.loc[2, "amount"] = value
    frame = frame if value == "much" else frame.astype({"amount": float})
    for more in ({}, {"categorical": "auto"}):
        with pytest.raises(InputError, match=said):
            read(parse_source(costs_written(tmp_path, kind, frame) | more, "rows"))
