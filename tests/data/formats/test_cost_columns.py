"""Costs of rows from files: whole, in parts, in shards, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from aucdist.data.block import Block, stacked
from aucdist.data.shards.block_file import Form, from_table, to_table
from aucdist.data.shards.reading import open_reader, read
from aucdist.data.sources import parse_source
from aucdist.errors import InputError


def table():
    r = np.random.default_rng(0)
    amount = np.round(r.lognormal(3.0, 1.0, 500), 2)
    return pd.DataFrame({
        "a": r.normal(size=500).astype(np.float32), "amount": amount, "b": r.normal(size=500).astype(np.float32),
        "user": r.integers(0, 9, 500), "fraud": (r.random(500) < 0.2).astype(int),
    })  # fmt: skip


def written(folder, kind, frame):
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
    label = {} if kind == "keel" else {"label": "fraud"}
    return {"source": str(path), "format": kind, "groups": "user", "cost_column": "amount", "positive": 1, **label}


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl", "keel"])
def test_costs_travel_beside_the_features(tmp_path, kind):
    frame = table()
    source = parse_source(written(tmp_path, kind, frame), "rows")
    data = read(source)
    assert data.schema.feature_names == ("a", "b")
    np.testing.assert_array_equal(data.block.cost, frame["amount"])
    np.testing.assert_array_equal(data.block.group, frame["user"])
    np.testing.assert_allclose(data.block.X, frame[["a", "b"]], rtol=1e-5)
    assert data.block.X.dtype == (np.float32 if kind == "parquet" else np.float64)  # whatever type the costs have
    reader = open_reader(source, n_parts=4)
    blocks = [reader.read(i) for i in range(reader.n_blocks)]
    np.testing.assert_array_equal(stacked(blocks).cost, data.block.cost)
    form = Form.of(data.block)
    assert form.costed
    np.testing.assert_array_equal(
        from_table(to_table(data.block), form, 0).take(np.arange(9)).cost, data.block.cost[:9]
    )


def test_costs_are_a_feature_where_keep_names_them(tmp_path):
    for kind in ("csv", "parquet"):
        data = read(parse_source(written(tmp_path, kind, table()) | {"keep": ["amount", "b"]}, "rows"))
        assert data.schema.feature_names == ("amount", "b")
        np.testing.assert_array_equal(data.block.cost, data.block.X[:, 0].astype(np.float64))


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        (-3.0, "csv", r"rows.csv: the cost of row 2 \(from 0\) is -3"),
        (-3.0, "parquet", r"the cost of row 2 \(from 0\) is -3"),
        ("much", "csv", "line 4, column 'amount': 'much' is not a number"),
        (np.nan, "csv", "line 4, column 'amount'"),
        (np.nan, "parquet", "row 3, column 'amount'"),
    ],
)
def test_wrong_costs_are_refused(tmp_path, value, kind, said):
    frame = table().astype({"amount": object})
    frame.loc[2, "amount"] = value
    frame = frame if value == "much" else frame.astype({"amount": float})
    for more in ({}, {"categorical": "auto"}):
        with pytest.raises(InputError, match=said):
            read(parse_source(written(tmp_path, kind, frame) | more, "rows"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"cost_column": "fraud"}, "'fraud' cannot be both `label` and `cost_column`"),
        ({"cost_column": "user"}, "'user' cannot be both `groups` and `cost_column`"),
        ({"categorical": ["amount"]}, "listed under both `cost_column` and `categorical`"),
        ({"cost_column": "price"}, "price"),
    ],
)
def test_a_column_has_one_role(tmp_path, given, said):
    with pytest.raises(InputError, match=said):
        read(parse_source(written(tmp_path, "csv", table()) | given, "rows"))
    with pytest.raises(InputError, match="costs have shape"):
        Block.of(np.zeros((3, 1)), np.array([1, -1, 1]), cost=np.zeros(2))
