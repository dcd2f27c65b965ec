"""CSV files: what is read, and how a wrong cell is named."""

import csv
import io
import json

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st

from aucdist.data.dataset import Schema
from aucdist.data.formats import csv_and_keel
from aucdist.data.formats.csv_and_keel import CsvText, parse_cells
from aucdist.data.formats.table_form import PLAIN, TableForm
from aucdist.data.formats.text import BLANKS
from aucdist.data.own_files import parse_checked
from aucdist.data.shards.reading import read
from aucdist.data.sources import Source
from aucdist.errors import InputError

CELL = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=6).map(str.strip)
TEXT = CELL.filter(lambda s: not PLAIN.is_missing(s) and '"' not in s)


@pytest.fixture
def load(tmp_path):
    def load(data, schema=None, **options):
        path = tmp_path / "f.csv"
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return read(Source(source=str(path), format="csv", **{"label": "y"} | options), schema=schema)

    return load


def test_numbers_and_categories_become_features_in_the_order_of_the_columns(load):
    data = load("a,kind,y,b\n1,tcp,0,-2.5\n3,icmp,1,1e-3\n5, tcp ,0,7\n", categorical=["kind"], positive=1)
    assert data.schema.feature_names == ("a", "kind=icmp", "kind=tcp", "b")
    assert data.schema.categories == {"kind": ("icmp", "tcp")}
    assert data.block.X.tolist() == [[1, 0, 1, -2.5], [3, 1, 0, 1e-3], [5, 0, 1, 7]]
    assert data.block.y.tolist() == [-1, 1, -1]
    assert data.block.row_id.tolist() == [0, 1, 2]
    assert (data.schema.label, data.schema.positive, data.schema.negative) == ("y", ("1",), ("0",))


def test_auto_takes_the_columns_that_are_not_numbers(load):
    data = load("a,b,c,y\n1,x,2,0\n2,3,4,1\n", categorical="auto")
    assert data.schema.feature_names == ("a", "b=3", "b=x", "c")


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("y a b\n0 1 2 \n 1  3\t4\n", {"separator": "space"}),
        ('y "a b" b\n"0" 1 2\n1 "3" 4\n', {"separator": "space"}),
        ("y\ta\tb\n0\t1\t2\n1\t3\t4\n", {"separator": "tab"}),
        ("y;a;b\r\n0;1;2\r\n\r\n1;3;4", {"separator": ";"}),
        ("0,1,2\n1,3,4\n", {"header": False, "columns": ["y", "a", "b"]}),
        ("1,2,0\n3,4,1\n", {"header": False, "label": -1}),
        ("1,0,2\n3,1,4\n", {"header": False, "label": 1}),
        ("1,0,2\n3,1,4\n", {"header": False, "label": "x2"}),
        ('\n"y","a",b\n"0","1"," 2"\n1,3,4\n', {}),
        ("  \n \ny,a,b\n0,1,2\n1,3,4\n", {}),
        ("\ufeffy,a,b\n0,1,2\n1,3,4\n", {}),
        ("y,a,b\n0.0,1,2\n+1,3,4\n", {"positive": 1.0}),
        ('y,a,b\n"0", 1 ," 2 "\n1,+3.0e0,\t4 \n', {}),
        ("y\ta\tb\n 0\t1\t 2\n1 \t3 \t4\n", {"separator": "tab"}),
        ('y a b\r\n  "0" 1\t"2"\r\n1   3 4\n', {"separator": "space"}),
    ],
)
def test_the_same_rows_in_other_spellings(load, text, options):
    data = load(text, **options)
    assert data.block.X.tolist() == [[1, 2], [3, 4]]
    assert data.block.y.tolist() == [-1, 1]


@given(st.lists(st.tuples(st.floats(allow_nan=False, allow_infinity=False), TEXT, st.sampled_from("ab")), min_size=2))
def test_it_reads_back_what_was_written(tmp_path_factory, rows):
    rows = [*rows, (0.5, "t", "a"), (0.5, "t", "b")]
    out = io.StringIO()
    csv.writer(out).writerows([("x", "k", "y"), *rows])
    path = tmp_path_factory.mktemp("csv") / "f.csv"
    path.write_text(out.getvalue(), encoding="utf-8", newline="")
    data = read(Source(source=str(path), format="csv", label="y", categorical=["k"], positive="b"))
    kinds = sorted({k for _, k, _ in rows})
    expected = [[x, *(float(k == kind) for kind in kinds)] for x, k, _ in rows]
    assert np.array_equal(data.block.X, np.array(expected))
    assert data.schema.categories == {"k": tuple(kinds)}
    assert data.block.y.tolist() == [1 if y == "b" else -1 for _, _, y in rows]


@pytest.mark.parametrize("layout", ["auto", "csr", "dense"])
def test_hashed_columns_have_as_many_features_as_asked_for(load, layout):
    text = "a,agent,y,b\n" + "".join(f"{i},u{i % 7},{i % 2},{-i}\n" for i in range(40))
    data = load(text, hashed={"agent": 5}, layout=layout)
    assert data.schema.feature_names == ("a", *(f"agent#{i}" for i in range(5)), "b")
    assert data.schema.hashed == {"agent": 5}
    assert data.schema.columns() == ["a", "agent", "b"]
    assert sp.issparse(data.block.X) == (layout != "dense")
    X = data.block.X.toarray() if sp.issparse(data.block.X) else data.block.X
    assert (X[:, 1:6].sum(axis=1) == 1).all()
    assert np.array_equal(X[:, [0, 6]], [[i, -i] for i in range(40)])
    for i in range(7):  # one category, one feature
        assert len({tuple(row) for row in X[i::7, 1:6]}) == 1


def test_new_rows_are_hashed_like_the_training_rows_and_may_hold_new_categories(load):
    train = load("k,y\na,0\nb,1\n", hashed={"k": 8})
    schema = parse_checked(json.dumps(train.schema.to_json()).encode(), Schema, "f")
    assert schema == train.schema
    test = load("k,y\nnew,0\na,1\n", schema=schema)
    assert np.array_equal(test.block.X.toarray()[1], train.block.X.toarray()[0])
    # The hash is part of the format: models that are written down rely on it.
    assert train.block.X.toarray().argmax(axis=1).tolist() == [0, 4]


def test_dtype_is_that_asked_for(load):
    text = "a,k,y\n0.1,p,0\n2,q,1\n"
    data = load(text, categorical=["k"], dtype="float32")
    assert data.block.X.dtype == np.float32
    assert data.block.X[0].tolist() == [np.float32(0.1), 1, 0]
    with pytest.raises(InputError, match="line 2, column 'a': '1e39' is too large for float32; read it as float64"):
        load("a,y\n1e39,0\n2,1\n", dtype="float32")


# ---- cells out of bytes: against the csv module, by pyarrow as in plain Python, and the errors for wrong ones


FLOAT = st.floats(allow_nan=False, allow_infinity=False)
CELL_TEXT = st.text(st.sampled_from('ab "\n,;\t#é'), max_size=6)


def text_of(data, names, **keys):
    data = data if isinstance(data, bytes) else data.encode()
    return CsvText(data, "f.csv", list(names), **keys)


@given(
    st.lists(st.tuples(FLOAT, CELL_TEXT, FLOAT), min_size=1, max_size=8),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(['"', "'"]),
)
def test_it_reads_what_the_csv_module_writes(rows, separator, quoting, end, quote):
    out = io.StringIO()
    csv.writer(out, delimiter=separator, quoting=quoting, lineterminator=end, quotechar=quote).writerows(rows)
    text = text_of(out.getvalue(), "abc", separator=separator, quote=quote)
    for table in (text.read("abc", "ac", ()), text._read_in_python("abc")):
        assert [float(cell) for cell in table["a"].to_pylist()] == [a for a, _, _ in rows]
        assert [float(cell) for cell in table["c"].to_pylist()] == [c for _, _, c in rows]
        assert [cell.strip() for cell in table["b"].to_pylist()] == [cell.strip() for _, cell, _ in rows]


@given(
    st.text(st.sampled_from('12.x",; \t\n?\r(-'), max_size=30), st.sampled_from([",", ";", "\t", BLANKS]), st.booleans()
)
@example("1,x\r2,y", ",", False)
@example('1,"x"y"', ",", False)
@example('"",""\n"""",""', ",", False)
def test_pyarrow_and_plain_python_read_the_same(data, separator, keep):
    text = text_of(data + "\n", "ab", separator=separator)
    form = TableForm("b", ("a",), missing=keep)

    def outcome(text):
        try:
            table = parse_cells(text, form)
        except InputError as e:
            return str(e)
        return table.X.tobytes(), table.labels.codes.tolist(), table.labels.names, table.survey.missing

    by_hand = text_of(data + "\n", "ab", separator=separator)
    by_hand.__dict__["_arrow_agrees"] = False
    assert outcome(text) == outcome(by_hand)


def test_a_number_is_that_of_python_whichever_way_it_takes(monkeypatch):
    numbers = [
        "0.1",
        "1e-320",
        "4.35",
        "123456789012345678e-5",
        "9007199254740992",
        "1e300",
        "-0",
        ".5",
        "5.",
        "+3",
        "(8)",
    ]
    expected = [-8.0 if cell == "(8)" else float(cell) for cell in numbers]
    data = "".join(f"{cell},y\n" for cell in numbers)
    assert parse_cells(text_of(data, "ab"), TableForm("b", ("a",))).X[:, 0].tolist() == expected
    monkeypatch.setattr(csv_and_keel, "HEAD", 4)  # the head is tried first, and holds none of the odd ones
    assert parse_cells(text_of(data, "ab"), TableForm("b", ("a",))).X[:, 0].tolist() == expected
    rounded = parse_cells(text_of("0.1,y\n", "ab"), TableForm("b", ("a",), dtype="float32")).X
    assert rounded.dtype == np.float32
    assert rounded[0, 0] == np.float32(0.1)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ('"1\n\n",2\n3,4,5\n', "line 4: the row has 3 cells"),
        ('"1",2\n"\n3",4\n  \n5,x\n\n"6"7,8\n', "line 7, column 'a'"),
        ("1,2\n\n9007199254740993,4\n", "line 3, column 'a': '9007199254740993' is an integer beyond 2**53"),
    ],
)
def test_a_fault_is_told_with_its_place(data, said):
    with pytest.raises(InputError) as caught:
        parse_cells(text_of(data, "ab"), TableForm("b", ("a",)))
    assert said in str(caught.value)
