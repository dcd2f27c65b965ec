"""`read`: layouts, test files encoded like training data, what is checked, and bad files of every format."""

import contextlib
import hashlib
import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from aucdist.data.shards.reading import open_rows, read
from aucdist.data.sources import Source, parse_source
from aucdist.errors import InputError
from aucdist.kernels.rows import CsrRows, DenseRows

SVM = "1 1:1 3:2\n-1 2:1\n-1 1:4\n"


def test_sparse_stays_sparse_and_full_becomes_dense(source):
    full = "1 1:1 2:2\n-1 1:3\n"
    assert isinstance(read(source(SVM)).block.rows, CsrRows)
    assert isinstance(read(source(full)).block.rows, DenseRows)
    assert isinstance(read(source(full, n_features=3)).block.rows, CsrRows)  # exactly half of the entries
    for layout, kind in (("dense", DenseRows), ("csr", CsrRows)):
        data = read(source(SVM, layout=layout))
        assert isinstance(data.block.rows, kind)
        assert np.asarray(data.block.X.todense() if layout == "csr" else data.block.X).tolist() == [
            [1, 0, 2], [0, 1, 0], [4, 0, 0]
        ]  # fmt: skip
    table = source("a,y\n1,0\n0,1\n", "f.csv", format="csv", label="y", layout="csr")
    assert isinstance(read(table).block.rows, CsrRows)


def test_features_of_svmlight_are_called_by_their_numbers(source):
    assert read(source(SVM)).schema.feature_names == ("1", "2", "3")
    assert read(source("1 0:1\n0 4:2\n", zero_based=True)).schema.feature_names == ("0", "1", "2", "3", "4")


def test_parts_of_a_data_set_are_put_below_each_other(tmp_path, source):
    for i, text in enumerate((SVM, "1 7:1\n")):
        (tmp_path / f"part-{i}").write_text(text)
    for marker in ("_SUCCESS", ".part-0.crc"):
        (tmp_path / marker).write_text("")
    for where in (str(tmp_path), f"{tmp_path}/", f"file://{tmp_path}", f"{tmp_path}/part-*",
                  [f"{tmp_path}/part-0", f"{tmp_path}/part-1"]):  # fmt: skip
        data = read(Source(source=where, format="svmlight"))
        assert data.block.X.shape == (4, 7)
        assert data.block.y.tolist() == [1, -1, -1, 1]
        assert data.block.row_id.tolist() == [0, 1, 2, 3]
    backwards = read(Source(source=[f"{tmp_path}/part-1", f"{tmp_path}/part-0"], format="svmlight"))
    assert backwards.block.X.toarray()[0, 6] == 1


@pytest.mark.parametrize("path", ["sub/f", "sub", "sub/*", "s[u]b/f"])
def test_relative_paths_lie_in_the_current_folder_or_below_the_data_root(tmp_path, monkeypatch, path):
    for place, rows in (("here", SVM), ("data", SVM + SVM)):
        (tmp_path / place / "sub").mkdir(parents=True)
        (tmp_path / place / "sub" / "f").write_text(rows)
    monkeypatch.setenv("AUCDIST_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path / "here")
    assert read(Source(source=path, format="svmlight")).block.n_samples == 3
    (tmp_path / "here" / "sub" / "f").unlink()
    (tmp_path / "here" / "sub").rmdir()
    assert read(Source(source=path, format="svmlight")).block.n_samples == 6


@pytest.mark.parametrize("fmt", ["svmlight", "shards"])
def test_a_relative_path_that_is_nowhere_is_an_error_that_lists_what_was_tried(tmp_path, monkeypatch, fmt):
    monkeypatch.setenv("AUCDIST_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        open_rows(Source(source="sub/f", format=fmt))
    assert f"tried: {tmp_path / 'sub/f'}, {tmp_path / 'data/sub/f'}" in str(caught.value)


def test_a_test_file_is_encoded_like_the_training_data(source):
    train = read(
        source("a,k,y\n1,p,no\n2,q,no\n3,r,yes\n4,r,oh\n", "train.csv", format="csv", label="y", categorical=["k"],
               positive=["yes", "oh"])
    )  # fmt: skip
    test_source = source("a,k,y\n9,r,oh\n8,q,no\n", "test.csv", format="csv", label="y", categorical=["k"])
    test = read(test_source, schema=train.schema)
    assert test.schema == train.schema
    assert test.block.X.tolist() == [[9, 0, 0, 1], [8, 0, 1, 0]]
    assert test.block.y.tolist() == [1, -1]


def test_a_test_file_of_svmlight_has_the_width_of_the_training_data(source):
    train = read(source(SVM, positive=1))
    test = read(source("-1 1:5\n1 2:1\n", "t.svm", features=2), schema=train.schema)
    assert test.block.n_features == 3
    assert test.block.y.tolist() == [-1, 1]
    with pytest.raises(InputError, match=r"t\.svm, line 1, column 4: index 4, but there are 3 features"):
        read(source("-1 4:5\n1 2:1\n", "t.svm"), schema=train.schema)
    with pytest.raises(InputError, match="class '2' \\(1 row\\) is not among the classes of the training data: -1, 1"):
        read(source("-1 1:5\n2 2:1\n", "t.svm"), schema=train.schema)
    with pytest.raises(InputError, match="one class only"):
        read(source("-1 1:5\n-1 2:1\n", "t.svm"), schema=train.schema)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,k,y\n9,z,1\n8,q,0\n", "line 2, column 'k': unknown category 'z'; known: p, q"),
        ("b,k,y\n9,p,1\n8,q,0\n", "its features are not those of the training data: missing a; added b"),
        ("k,a,y\np,9,1\nq,8,0\n", "its features are not those of the training data: they have another order"),
        ("a,y\n9,1\n8,0\n", "its features are not those of the training data: missing k=p, k=q"),
    ],
)
def test_a_test_file_with_other_columns_is_refused(source, text, said):
    options = {"format": "csv", "label": "y", "categorical": ["k"]}
    train = read(source("a,k,y\n1,p,0\n2,q,1\n", "train.csv", **options))
    with pytest.raises(InputError) as caught:
        read(source(text, "test.csv", **options), schema=train.schema)
    assert said in str(caught.value)


def test_expected_classes_may_be_spelled_otherwise(source):
    checked = source(
        SVM, rows=3, features=3, classes={"+1": 1, "-1.0": 2}, sha256=hashlib.sha256(SVM.encode()).hexdigest()
    )
    assert read(checked, name="mine").name == "mine"


def test_classes_spelled_in_two_ways_are_one(source):
    data = read(
        source("a,y\n1,1\n2,+1\n3,1.0\n4,0\n", "f.csv", format="csv", label="y", positive=1, classes={1: 3, 0: 1})
    )
    assert data.block.y.tolist() == [1, 1, 1, -1]


def test_the_fingerprint_follows_bytes_and_options(source):
    base = read(source(SVM)).fingerprint
    assert len(base) == 64
    assert base == read(source(SVM, "other.svm", rows=3, note="the same"), name="x").fingerprint
    others = [
        source(SVM + "\n", "more"),
        *(source(SVM, **o) for o in ({"layout": "dense"}, {"positive": -1}, {"n_features": 9})),
    ]
    assert len({base, *(read(s).fingerprint for s in others)}) == 5


def test_embedded_sets_need_no_file():
    data = read(Source(source="digits", format="embedded", positive=8), name="digits")
    assert data.block.X.shape == (1797, 64)
    assert int((data.block.y == 1).sum()) == 174
    assert data.schema.feature_names[0] == "pixel_0_0"
    assert data.fingerprint == read(Source(source="digits", format="embedded", positive=8)).fingerprint
    with pytest.raises(InputError, match=r"unknown embedded data set 'digit'\. Did you mean 'digits'"):
        read(Source(source="digit", format="embedded"))
    with pytest.raises(InputError, match="format 'embedded' reads one data set, but `source` is a list"):
        parse_source({"source": ["digits"], "format": "embedded"}, "a test")


# ---- KEEL files: header, nominal attributes, missing values -----------------------------------


HEAD = """@relation small
@attribute Sex {M, F, I}
@attribute Size real [0.0, 1.0]
@attribute 'Row no' integer [1, 8]
@attribute Code{2, 10}
@attribute Class {positive, negative}
"""
ROWS = "M, 0.5, 3, 10, negative  \nF, 1E-2, 4,2,positive\n"
ALL = ["Sex=F", "Sex=I", "Sex=M", "Size", "Row no", "Code=10", "Code=2"]


@pytest.fixture
def load(tmp_path):
    def load(text, **options):
        path = tmp_path / "f.dat"
        path.write_bytes(text.encode())
        return read(Source(source=str(path), format="keel", **{"positive": "positive"} | options))

    return load


@pytest.mark.parametrize(
    "head",
    [
        HEAD + "@inputs Sex, Size, Row no, Code\n@outputs Class\n@data\n",
        HEAD + "@output Class\n@data\n",
        HEAD + "@data\n",
        (HEAD + "@DATA\n").replace("@attribute", "@ATTRIBUTE\t").replace("\n", "\r\n"),
    ],
)
def test_nominal_attributes_become_one_feature_for_each_declared_value(load, head):
    data = load(head + ROWS)
    assert list(data.schema.feature_names) == ALL
    assert data.block.X.tolist() == [[0, 0, 1, 0.5, 3, 1, 0], [1, 0, 0, 0.01, 4, 0, 1]]
    assert data.block.y.tolist() == [-1, 1]
    assert data.schema.label == "Class"


def test_inputs_choose_the_features_and_their_order(load):
    data = load(HEAD + "@inputs Code, Size\n@outputs Class\n@data\n" + ROWS)
    assert data.schema.feature_names == ("Code=10", "Code=2", "Size")


def test_more_columns_may_be_categorical_and_another_may_be_the_label(load):
    data = load(HEAD + "@data\n" + ROWS, categorical=["Row no"])
    assert data.schema.categories["Row no"] == ("3", "4")
    other = load(HEAD + "@outputs Class\n@data\n" + ROWS, label="Sex", positive="F")
    assert other.schema.feature_names == ("Size", "Row no", "Code=10", "Code=2")
    assert other.schema.positive == ("F",)


# ---- categories that the training data did not have: refused, ignored, or counted as missing; and counts of them


TRAIN = "a,kind,y\n1,p,no\n2,q,yes\n3,,no\n"
NEW = "a,kind,y\n1,p,no\n,r,yes\n3,,no\n4,r,no\n5,s,yes\n"


@pytest.fixture(params=["csv", "parquet"])
def written_table(request, tmp_path):
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
def test_unknown_categories_are_as_the_source_says(written_table, unknown, rows, layout):
    train = read(written_table("train", TRAIN, categorical=["kind"]))
    assert train.schema.feature_names[1:] == ("kind=(missing)", "kind=p", "kind=q")
    reader = open_rows(written_table("new", NEW, unknown=unknown, layout=layout), schema=train.schema)
    X = reader.read(0).X
    X = X.toarray() if layout == "csr" else X
    assert X[:, 1:].tolist() == rows
    np.testing.assert_array_equal(X[:, 0], [1, np.nan, 3, 4, 5])
    assert (reader.unknown, reader.missing) == ({"kind": 3}, {"a": 1, "kind": 1})


def test_unknown_categories_are_refused_by_default(written_table):
    train = read(written_table("train", TRAIN, categorical=["kind"]))
    with pytest.raises(InputError, match="column 'kind': unknown category 'r'; known: "):
        read(written_table("new", NEW), schema=train.schema)
    known = read(written_table("train", TRAIN.replace(",,", ",p,"), categorical=["kind"]))
    said = r"column 'kind' has 3 values that are unknown categories.*use `unknown: ignore`"
    with pytest.raises(InputError, match=said):
        read(written_table("new", NEW.replace("3,,", "3,p,"), unknown="as-missing"), schema=known.schema)


def test_a_missing_value_that_no_training_row_had_counts_as_missing(written_table):
    """It has none of the known categories, as an unknown one. Nothing can stand for it with `as-missing`."""
    train = read(written_table("train", TRAIN.replace(",,", ",p,"), categorical=["kind"]))
    reader = open_rows(written_table("new", NEW, unknown="ignore"), schema=train.schema)
    assert reader.read(0).X[:, 1:].tolist() == [[1, 0], [0, 0], [0, 0], [0, 0], [0, 0]]
    assert (reader.unknown, reader.missing) == ({"kind": 3}, {"a": 1, "kind": 1})
    for unknown in ("error", "as-missing"):
        with pytest.raises(
            InputError, match="column 'kind': the value is missing, but no training row had a missing value"
        ):
            read(written_table("new", "a,kind,y\n1,p,no\n2,,yes\n", unknown=unknown), schema=train.schema)


def test_a_class_is_never_unknown(written_table):
    train = read(written_table("train", TRAIN, categorical=["kind"]))
    with pytest.raises(InputError, match="class 'maybe'"):
        read(written_table("new", NEW.replace("yes", "maybe"), unknown="ignore"), schema=train.schema)


def test_scores_of_the_same_rows_do_not_depend_on_the_format(tmp_path, source):
    days = [f"2024-01-0{i} 0{i}:30:00+05:00" for i in range(1, 5)]
    rows = [
        ("true", "0.07", days[0]),
        ("False", "1234567.89", days[1]),
        ("TRUE", "4.35", days[2]),
        ("false", "1.1", days[3]),
    ]
    text = "b,d,t,y\n" + "".join(f"{b},{d},{t},{i % 2}\n" for i, (b, d, t) in enumerate(rows))
    keys = {"label": "y", "dates": {"t": ["hour"]}}
    of_csv = source(text, "f.csv", format="csv", **keys)
    columns = pa.table(
        {
            "b": [b.lower() == "true" for b, _, _ in rows], "d": [Decimal(d) for _, d, _ in rows], "t": days,
            "y": [i % 2 for i in range(4)],
        }
    )  # fmt: skip
    pq.write_table(columns, tmp_path / "f.parquet")
    of_parquet = Source(source=str(tmp_path / "f.parquet"), format="parquet", **keys)
    lines = (json.dumps(dict(row, d=float(row["d"]))) for row in columns.to_pylist())
    of_json = source("\n".join(lines), "f.jsonl", format="jsonl", **keys)
    expected = np.array([[1, 0.07, 1.5], [0, 1234567.89, 2.5], [1, 4.35, 3.5], [0, 1.1, 4.5]])
    for trained in (of_csv, of_parquet, of_json):
        for categorical in (["b"], []):
            schema = read(trained.model_copy(update={"categorical": categorical})).schema
            for other in (of_csv, of_parquet, of_json):
                X = np.asarray(read(other.model_copy(update={"categorical": categorical}), schema=schema).block.X)
                # two categories are two features, of which the second one says that the value is true
                assert X[:, 1 if categorical else 0 :].tolist() == expected.tolist()


def test_a_cell_in_quotes_of_the_first_rows_may_have_the_line_breaks_of_windows(source):
    data = read(source(b'k,a,y\r\n"u\r\nx",1,0\r\n"v",2,1\r\n', "f.csv", format="csv", label="y", categorical=["k"]))
    assert data.block.n_samples == 2


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("a,y\n1,0\n".encode("utf-32-le"), "f.csv, line 1: NUL characters.*UTF-32"),
        (b"PAR1\x15\x04\x15\x00\r\n1,2\n", "f.csv is a Parquet file.*format=parquet"),
        (b"PK\3\4\x14\0\x06\0[Content_Types].xml", r"f.csv is a workbook: .*.xlsx"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\0\0", "f.csv is a workbook of Excel 2003 or older"),
        (b"\n<!DOCTYPE html><html>\n<body>", "f.csv: unknown column in `label`: 'y'.*It is a web page"),
        (b"PAR1,y\n1,0\n2,1\n", ""),
    ],
)
def test_a_file_of_another_kind_than_its_ending_says_is_refused_as_one(source, data, said):
    with pytest.raises(InputError, match=said) if said else contextlib.nullcontext():
        read(source(data, "f.csv", format="csv", label="y"))
