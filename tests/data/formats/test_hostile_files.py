"""What a file can say: values that were once misread silently, and files that once ended in a traceback or filled the memory."""

import io
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aucdist.data.block import Block
from aucdist.data.formats import registry
from aucdist.data.shards.reading import open_reader, read
from aucdist.data.sources import Source, parse_source
from aucdist.data.storage import guard
from aucdist.errors import InputError

NAN, Y = float("nan"), [0, 1, 0, 1]
NUMBERS = [1.0, 2.0, 3.0, 4.0]
BEYOND = 2**53 + 1


@dataclass(frozen=True)
class Case:
    """A file, how it is read, and the end of the message."""

    name: str
    data: bytes
    said: str
    options: dict[str, Any] = field(default_factory=dict)
    suffix: str = "parquet"


def table(columns: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


def parquet(name: str, said: str, columns: dict[str, Any], **options: Any) -> Case:
    return Case(name, table(columns), said, {"format": "parquet", "label": "y"} | options)


def csv(name: str, said: str, text: str, **options: Any) -> Case:
    return Case(name, text.encode(), said, {"format": "csv", "label": "y"} | options, "csv")


def svm(name: str, said: str, text: str, **options: Any) -> Case:
    return Case(name, text.encode(), said, {"format": "svmlight"} | options, "svm")


TYPE = "labels and categories are texts, numbers or booleans"
REFUSED = [
    parquet(
        "a label that is nan",
        "row 3, column 'y': the value is missing ('nan')",
        {"a": NUMBERS, "y": [0.0, 1.0, NAN, 1.0]},
    ),
    parquet(
        "a category that is nan",
        "row 2, column 'k': the value is missing ('nan')",
        {"k": [1.0, NAN, 2.0, 1.0], "y": Y},
        categorical=["k"],
    ),
    parquet(
        "a hashed category that is nan",
        "row 1, column 'k': the value is missing ('nan')",
        {"k": [NAN, 2.0, 2.0, 1.0], "y": Y},
        hashed={"k": 4},
    ),
    parquet(
        "a label that is nan where features may be missing",
        "row 4, column 'y': the value is missing",
        {"a": NUMBERS, "y": [0.0, 1.0, 1.0, NAN]},
        missing="keep",
    ),
    parquet(
        "a label of lists",
        f"column 'y': its type is list<element: int64>; {TYPE}",
        {"a": NUMBERS, "y": [[0], [1], [0], [1]]},
    ),
    parquet("a label of structs", TYPE, {"a": NUMBERS, "y": [{"b": 0}] * 4}),
    parquet("categories of lists", TYPE, {"k": [[0], [1], [0], [1]], "y": Y}, categorical=["k"]),
    parquet(
        "categories of maps",
        TYPE,
        {"k": pa.array([[("a", 1)]] * 4, pa.map_(pa.string(), pa.int64())), "y": Y},
        hashed={"k": 2},
    ),
    parquet("nested columns by auto", TYPE, {"k": [{"b": [1]}] * 4, "y": Y}, categorical="auto"),
    parquet("a label of nulls only", "row 1, column 'y': the value is missing", {"a": NUMBERS, "y": pa.nulls(4)}),
    parquet(
        "bytes that are no text",
        "is not a sound Parquet file",
        {"k": [b"a", b"\xff", b"a", b"a"], "y": Y},
        categorical=["k"],
    ),
    parquet(
        "an integer beyond 2**53",
        f"row 2, column 'a': {BEYOND} is an integer beyond 2**53",
        {"a": [1, BEYOND, 2, 3], "y": Y},
    ),
    parquet("the largest integer", "is an integer beyond 2**53", {"a": [1, 2, 3, 2**63 - 1], "y": Y}),
    parquet(
        "the largest unsigned integer",
        "is an integer beyond 2**53",
        {"a": pa.array([1, 2, 3, 2**64 - 1], pa.uint64()), "y": Y},
    ),
    csv(
        "an integer beyond 2**53 in a cell",
        f"line 3, column 'a': '{BEYOND}' is an integer beyond 2**53",
        f"a,y\n1,0\n{BEYOND},1\n",
    ),
    csv(
        "a negative one in quotes",
        f"line 2, column 'a': '-{BEYOND}' is an integer beyond 2**53",
        f'a,y\n"-{BEYOND}",0\n2,1\n',
    ),
    csv("one of thirty digits", "is an integer beyond 2**53", f"a,y\n1{'0' * 28}1,0\n2,1\n"),
    csv("a number of thousands of digits", "is not finite", f"a,y\n{'9' * 5000},0\n2,1\n"),
    svm(
        "an integer beyond 2**53 in svmlight",
        f"line 1, column 5: value '{BEYOND}' is an integer beyond",
        f"1 1:{BEYOND}\n-1 1:2\n",
    ),
    svm("a far feature", "the largest feature is number 16777216, but only 2 values", "1 16777216:1\n-1 1:1\n"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_it_is_refused(tmp_path, case):
    path = tmp_path / f"f.{case.suffix}"
    path.write_bytes(case.data)
    source = Source(source=str(path), **case.options)
    for read_it in (read, lambda given: open_reader(given, n_parts=2)):
        with pytest.raises(InputError) as caught:
            read_it(source)
        assert str(caught.value).startswith(str(path))
        assert case.said in str(caught.value)


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


@pytest.mark.parametrize("weight", [1e300, 1e-170, -1.0, NAN, float("inf")])
def test_weights_have_limits(weight):
    with pytest.raises(
        InputError, match=r"the weight of row 1 \(from 0\) is .*; weights are 0, or from 1e-100 to 1e\+100"
    ):
        Block.of(np.ones((2, 1)), np.array([1, -1]), weight=np.array([1.0, weight]))
    assert Block.of(np.ones((2, 1)), np.array([1, -1]), weight=np.array([0.0, 1e12])).weight.tolist() == [0.0, 1e12]
