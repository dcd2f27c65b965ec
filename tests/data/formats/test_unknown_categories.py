"""Categories that the training data did not have: refused, ignored, or counted as missing; and counts of them."""

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from aucdist.data.shards.reading import open_reader, read
from aucdist.data.sources import Source
from aucdist.errors import InputError

TRAIN = "a,kind,y\n1,p,no\n2,q,yes\n3,,no\n"
NEW = "a,kind,y\n1,p,no\n,r,yes\n3,,no\n4,r,no\n5,s,yes\n"


@pytest.fixture(params=["csv", "parquet"])
def source(request, tmp_path):
    def write(name, text, **keys):
        path = tmp_path / f"{name}.{request.param}"
        (tmp_path / f"{name}.csv").write_text(text)
        if request.param == "parquet":
            pq.write_table(pyarrow.csv.read_csv(tmp_path / f"{name}.csv"), path)
        return Source(source=str(path), format=request.param, label="y", missing="keep", **keys)

    return write


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize(
    ("unknown", "rows"),
    [
        ("ignore", [[0, 1, 0], [0, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0]]),
        ("as-missing", [[0, 1, 0], [1, 0, 0], [1, 0, 0], [1, 0, 0], [1, 0, 0]]),
    ],
)
def test_unknown_categories_are_as_the_source_says(source, unknown, rows, layout):
    train = read(source("train", TRAIN, categorical=["kind"]))
    assert train.schema.feature_names[1:] == ("kind=(missing)", "kind=p", "kind=q")
    reader = open_reader(source("new", NEW, unknown=unknown, layout=layout), schema=train.schema)
    X = reader.read(0).X
    X = X.toarray() if layout == "csr" else X
    assert X[:, 1:].tolist() == rows
    np.testing.assert_array_equal(X[:, 0], [1, np.nan, 3, 4, 5])
    assert (reader.unknown, reader.missing) == ({"kind": 3}, {"a": 1, "kind": 1})


def test_unknown_categories_are_refused_by_default(source):
    train = read(source("train", TRAIN, categorical=["kind"]))
    with pytest.raises(InputError, match="column 'kind': unknown category 'r'; known: "):
        read(source("new", NEW), schema=train.schema)
    known = read(source("train", TRAIN.replace(",,", ",p,"), categorical=["kind"]))
    with pytest.raises(InputError, match=r"column 'kind' has 3 values of unknown categories.*use `unknown: ignore`"):
        read(source("new", NEW.replace("3,,", "3,p,"), unknown="as-missing"), schema=known.schema)


def test_a_class_is_never_unknown(source):
    train = read(source("train", TRAIN, categorical=["kind"]))
    with pytest.raises(InputError, match="class 'maybe'"):
        read(source("new", NEW.replace("yes", "maybe"), unknown="ignore"), schema=train.schema)
