"""What a file can say: values that were once misread silently, and files that once ended in a traceback or filled the memory."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aucdist.data.block import Block
from aucdist.data.formats import registry
from aucdist.data.shards.reading import read
from aucdist.data.sources import Source, parse_source
from aucdist.data.storage import guard
from aucdist.errors import InputError

Y = [0, 1, 0, 1]
NUMBERS = [1.0, 2.0, 3.0, 4.0]
BEYOND = 2**53 + 1


def test_integers_that_a_float_has_are_exact(tmp_path):
    large = [2**53, 2**60, -(2**62), 3 * 2**55]
    (tmp_path / "f.csv").write_text("a,y\n" + "".join(f'"{v}",{y}\n' for v, y in zip(large, Y, strict=True)))
    pq.write_table(pa.table({"a": large, "y": Y}), tmp_path / "f.parquet")
    for suffix in ("csv", "parquet"):
        source = Source(source=str(tmp_path / f"f.{suffix}"), format=suffix, label="y")
        assert read(source).block.X[:, 0].tolist() == large
    many = "".join(f"{2**53 + 2 * i},{i % 2}\n" for i in range(5000))  # each of them is read by Python
    (tmp_path / "f.csv").write_text("a,y\n" + many)
    X = read(Source(source=str(tmp_path / "f.csv"), format="csv", label="y")).block.X
    assert X[:, 0].tolist() == [2**53 + 2 * i for i in range(5000)]


def test_long_integers_may_be_categories(tmp_path):
    (tmp_path / "f.csv").write_text(f"k,y\n{BEYOND},0\n{BEYOND + 1},1\n")
    data = read(Source(source=str(tmp_path / "f.csv"), format="csv", label="y", categorical=["k"]))
    assert data.schema.feature_names == (f"k={BEYOND}", f"k={BEYOND + 1}")


def test_the_index_of_a_data_frame_is_no_feature(tmp_path):
    frame = pd.DataFrame({"a": NUMBERS, "y": Y}, index=[7, 1, 4, 2])
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "f.parquet")
    assert "__index_level_0__" in pq.read_schema(tmp_path / "f.parquet").names
    source = Source(source=str(tmp_path / "f.parquet"), format="parquet", label="y")
    assert read(source).schema.feature_names == ("a",)
    named = source.model_copy(update={"keep": ["__index_level_0__"]})
    assert read(named).block.X[:, 0].tolist() == [7, 1, 4, 2]


def test_bytes_may_be_texts(tmp_path):
    columns = {"k": pa.array([b"p", b"q", b"p", b"q"]), "y": pa.array([b"no", b"yes", b"no", b"no"])}
    pq.write_table(pa.table(columns), tmp_path / "f.parquet")
    data = read(Source(source=str(tmp_path / "f.parquet"), format="parquet", label="y", categorical=["k"]))
    assert data.schema.feature_names == ("k=p", "k=q")
    assert data.schema.positive == ("yes",)


def test_the_width_of_svmlight_files_is_bounded_and_can_be_raised(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "ALWAYS_WIDE", 100)
    (tmp_path / "f").write_text("1 200:1\n-1 1:1\n")
    source = Source(source=str(tmp_path / "f"), format="svmlight")
    with pytest.raises(InputError, match="give n_features: 200"):
        read(source)
    assert read(source.model_copy(update={"n_features": 200})).block.n_features == 200
    monkeypatch.setattr(guard, "total_memory", lambda: 1000)
    with pytest.raises(InputError, match="more than this machine's memory"):
        read(source.model_copy(update={"n_features": 200}))


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"format": "csv", "label": "y", "hashed": {"b": 2147483647}}, "less than or equal to 1048576"),
        ({"format": "csv", "label": "y", "hashed": {"b": 0}}, "greater than or equal to 1"),
        ({"format": "svmlight", "n_features": 2**31}, "less than or equal to 2147483647"),
    ],
)
def test_numbers_of_features_have_limits(keys, said):
    with pytest.raises(InputError, match=said):
        parse_source({"source": "f"} | keys, "f.yaml")


@pytest.mark.parametrize("weight", [1e300, 1e-170, -1.0, np.nan, np.inf])
def test_weights_have_limits(weight):
    with pytest.raises(
        InputError, match=r"the weight of row 1 \(from 0\) is .*; weights are 0, or from 1e-100 to 1e\+100"
    ):
        Block.of(np.ones((2, 1)), np.array([1, -1]), weight=np.array([1.0, weight]))
    assert Block.of(np.ones((2, 1)), np.array([1, -1]), weight=np.array([0.0, 1e12])).weight.tolist() == [0.0, 1e12]
