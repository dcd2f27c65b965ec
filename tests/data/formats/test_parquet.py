"""Parquet files with one feature in each column."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aucdist.data.shards.reading import read
from aucdist.data.sources import Source


@pytest.fixture
def load(tmp_path):
    def load(columns, **options):
        path = tmp_path / "f.parquet"
        pq.write_table(pa.table(columns), path)
        return read(Source(source=str(path), format="parquet", **{"label": "y"} | options))

    return load


Y = pa.array([0, 1, 0], pa.int8())


def test_numbers_of_all_kinds_and_categories(load):
    data = load(
        {
            "i": pa.array([1, 2, 3], pa.int64()), "k": pa.array(["b", "a ", "b"]).dictionary_encode(),
            "y": pa.array([False, True, False]), "t": pa.array([True, False, True]),
            "f": pa.array([0.5, 1.5, -2.5], pa.float32()), "n": pa.array([10, 9, 10], pa.uint8()),
        },
        categorical=["k", "n"],
        positive=True,
    )  # fmt: skip
    assert data.schema.feature_names == ("i", "k=a", "k=b", "t", "f", "n=10", "n=9")
    assert data.block.X.tolist() == [[1, 0, 1, 1, 0.5, 1, 0], [2, 1, 0, 0, 1.5, 0, 1], [3, 0, 1, 1, -2.5, 1, 0]]
    assert data.block.X.dtype == np.float64
    assert data.block.y.tolist() == [-1, 1, -1]


def test_float32_stays_float32(load):
    values = np.array([0.1, 0.2, 0.3], dtype=np.float32)
    data = load({"a": values, "y": Y, "k": pa.array(["p", "q", "p"])}, categorical="auto")
    assert data.block.X.dtype == np.float32
    assert np.array_equal(data.block.X[:, 0], values)
    assert data.schema.feature_names == ("a", "k=p", "k=q")


def test_several_files_are_one_data_set(tmp_path):
    for i, kinds in enumerate((["a", "c"], ["b", "a"])):
        pd.DataFrame({"x": [i, i + 0.5], "k": kinds, "y": [0, 1]}).to_parquet(tmp_path / f"part-{i}.parquet")
    data = read(Source(source=str(tmp_path), format="parquet", label="y", categorical=["k"]))
    assert data.schema.categories == {"k": ("a", "b", "c")}
    assert data.block.X.tolist() == [[0, 1, 0, 0], [0.5, 0, 0, 1], [1, 0, 1, 0], [1.5, 1, 0, 0]]
