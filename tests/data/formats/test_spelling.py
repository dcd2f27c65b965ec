"""Numbers with commas and currencies, other encodings and quotes, and what stands for a missing value."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import example, given, strategies as st
from support.parts import all_blocks
from support.tables import table_beside

from aucdist.data.dataset import Schema
from aucdist.data.formats import csv_and_keel
from aucdist.data.formats.csv_and_keel import CsvText, parse_cells
from aucdist.data.formats.table_options import PLAIN, Spelling, TableOptions
from aucdist.data.formats.text import BLANKS
from aucdist.data.own_files import parse_checked
from aucdist.data.shards.reading import open_rows, read
from aucdist.data.sources import Source, parse_source
from aucdist.errors import InputError

GERMAN = Spelling(decimal=",", thousands=".", symbols=("€", "EUR", "%"))
ENGLISH = Spelling(thousands=",", symbols=("$", "%", "USD"))
SPACED = Spelling(decimal=",", thousands="space", symbols=("kr",))


@pytest.mark.parametrize(
    ("spelling", "text", "number"),
    [
        (GERMAN, "1,5", 1.5), (GERMAN, "1.234,5", 1234.5), (GERMAN, "-1.234.567", -1234567.0), (GERMAN, "€ 3,20", 3.2),
        (GERMAN, "12,5 %", 12.5), (GERMAN, "1.5", None), (GERMAN, "1.23,5", None), (GERMAN, "1,5,5", None),
        (ENGLISH, "$1,234", 1234.0), (ENGLISH, "-$1,234.50", -1234.5), (ENGLISH, "$-2", -2.0), (ENGLISH, "12.5%", 12.5),
        (ENGLISH, "USD 7 USD", 7.0), (ENGLISH, "(1,234.50)", -1234.5), (PLAIN, "(7)", -7.0), (PLAIN, "(-7)", None),
        (PLAIN, "()", None), (GERMAN, "(1.234,5 €)", -1234.5), (GERMAN, "1.234,50-", -1234.5), (GERMAN, "12,50- €", -12.5),
        (GERMAN, "1-", None), (GERMAN, "-1,5-", None), (PLAIN, "0.5-", -0.5), (PLAIN, "\u22125", -5.0),
        (GERMAN, "\u20131.234,5 €", -1234.5), (PLAIN, "\u2013", None), (ENGLISH, "12,34", None), (ENGLISH, "$", None),
        (ENGLISH, "$$1", None), (ENGLISH, "1_000", None), (ENGLISH, "1,234e2", 123400.0),
        (SPACED, "1 234 567,5 kr", 1234567.5), (SPACED, "1\u202f234", 1234.0), (SPACED, "1\u00a0234", 1234.0),
        (SPACED, "12 34", None),
    ],
)  # fmt: skip
def test_a_number(spelling: Spelling, text: str, number: float | None) -> None:
    parsed = spelling.plain_numbers([text])[0].as_py()
    assert (None if parsed is None else float(parsed)) == number


@given(st.decimals(-(10**9), 10**9, places=3), st.sampled_from([GERMAN, ENGLISH, SPACED]))
def test_what_is_written_in_groups_is_read_back(value: object, spelling: Spelling) -> None:
    groups = " " if spelling.thousands == "space" else spelling.thousands
    text = f"{value:,}".translate(str.maketrans({",": groups, ".": spelling.decimal}))
    for written in (text, f"{spelling.symbols[0]}{text}", f"{text} {spelling.symbols[-1]}"):
        parsed = spelling.plain_numbers([written])[0].as_py()
        assert parsed is not None
        assert float(parsed) == float(value)  # type: ignore[arg-type]


def a_frame(n: int = 60) -> pd.DataFrame:
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "größe": (random.normal(size=n) * 3000).round(3),
            "kind": random.choice(["äpfel", "it's", 'a "b"'], n),
            "anzahl": random.integers(0, 5000, n),
            "y": np.where(random.random(n) < 0.3, "ja", "nein"),
        }
    )


def written(frame: pd.DataFrame, path: object, encoding: str = "utf-8", **how: object) -> None:
    with Path(str(path)).open("w", encoding=encoding, newline="") as file:
        file.write(str(how.pop("head", "")))
        frame.to_csv(file, index=False, **how)


def grouped(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(größe=[f"${v:,.3f}" for v in frame["größe"]], anzahl=[f"{v:,}" for v in frame["anzahl"]])


TABLE = table_beside(__file__)
WAYS: dict[str, list[dict[str, object]]] = TABLE["ways"]


def a_source(path: object, **keys: object) -> Source:
    return Source(source=str(path), format="csv", label="y", categorical=["kind"], positive="ja", **keys)  # type: ignore[arg-type]


@pytest.mark.parametrize(("way", "guessed"), [(way, i % 2 == 0) for i, way in enumerate([*WAYS, "currency"])])
def test_the_same_rows_however_they_are_written(tmp_path, way: str, guessed: bool) -> None:
    frame = a_frame()
    written(frame, tmp_path / "plain.csv")
    expected = read(a_source(tmp_path / "plain.csv"))
    how, keys = WAYS.get(way, ({}, {"symbols": ["$"], "thousands": ","}))
    written(grouped(frame) if way == "currency" else frame, tmp_path / "f.csv", **how)  # type: ignore[arg-type]
    source = a_source(tmp_path / "f.csv", **keys).model_copy(update={"categorical": "auto" if guessed else ["kind"]})
    data = read(source)
    assert data.schema == expected.schema
    assert (data.block.rows.values == expected.block.rows.values).all()
    assert (data.block.y == expected.block.y).all()
    reader = open_rows(source, n_parts=4)
    assert reader.n_blocks == (1 if "utf-16" in way else 4)
    assert (np.vstack([block.rows.values for block in all_blocks(reader)]) == expected.block.rows.values).all()


def test_a_source_without_new_keys_has_the_fingerprint_that_it_had() -> None:
    keys = {"encoding", "decimal", "thousands", "symbols", "quote", "skip_lines", "missing_values"}
    assert not keys & set(a_source("f.csv").keys_for_fingerprint())
    assert keys - {"quote"} <= set(
        a_source("f.csv", encoding="cp1252", decimal=",", thousands=".", symbols=["€"], skip_lines=1, missing="keep",
                 missing_values=["-"]).keys_for_fingerprint()
    )  # fmt: skip


TOKENS = ["NA", "N/A", "NULL", "null", "#N/A", "None", "n/a", "nan", "NaN", "<NA>", "?", "", "-", "k. A.", "-999"]
FORMS = ["csv", "decimal comma", "keel", "parquet"]


@pytest.mark.parametrize(
    ("token", "form"), [*((token, "parts") for token in TOKENS), *zip(TOKENS, FORMS * 4, strict=False), ("-", "keel")]
)
def test_one_list_of_missing_values(tmp_path, token: str, form: str) -> None:
    n = 40
    number = [token if i % 7 == 0 else str(i) for i in range(n)]
    text = [token if i % 5 == 0 else "ab"[i % 2] for i in range(n)]
    label = ["yes" if i % 3 == 0 else "no" for i in range(n)]
    keys: dict[str, object] = {"missing": "keep", "missing_values": ["-", "k. A.", -999]}
    path = tmp_path / f"f.{'dat' if form == 'keel' else 'csv'}"
    if form == "parquet":
        as_numbers = [None if value == token and token != "-999" else float(value) for value in number]
        pq.write_table(pa.table({"number": as_numbers, "text": text, "y": label}), tmp_path / "f.parquet")
        path, keys["format"] = tmp_path / "f.parquet", "parquet"
    elif form == "keel":
        head = "@relation r\n@attribute number real [0, 9]\n@attribute text {a, b}\n@attribute y {yes, no}\n@data\n"
        lines = "".join(f"{a or '?'}, {b or '?'}, {c}\n" for a, b, c in zip(number, text, label, strict=True))
        path.write_text(head + lines)
        keys["format"] = "keel"
    else:
        separator = ";" if form == "decimal comma" else ","
        frame = pd.DataFrame({"number": number, "text": text, "y": label})
        frame.to_csv(path, index=False, sep=separator)
        keys |= {"format": "csv", "separator": separator} | ({"decimal": ","} if separator == ";" else {})
    keys |= {} if form == "keel" else {"categorical": ["text"]}
    source = parse_source({"source": str(path), "label": "y", **keys}, "a test")
    reader = open_rows(source, n_parts=3 if form == "parts" else 1)
    assert reader.missing == {"number": 6, "text": 8}
    values = np.vstack([block.rows.values for block in all_blocks(reader)])
    assert np.isnan(values[:, 0]).tolist() == [i % 7 == 0 for i in range(n)]


def test_a_category_of_the_training_rows_stays_one(tmp_path) -> None:
    (tmp_path / "f.csv").write_text("k,y\nNone,1\na,0\nnone,1\n")
    source = Source(source=str(tmp_path / "f.csv"), format="csv", label="y", categorical=["k"], missing="keep")
    schema = read(source).schema
    assert schema.categories == {"k": ("(missing)", "a", "none")}
    older = type(schema)(
        ("k=None", "k=a", "k=none"), "y", schema.positive, schema.negative, {"k": ("None", "a", "none")}
    )
    assert read(source, schema=older).block.rows.values.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


@given(
    st.text(st.sampled_from("12.,;\"'$%€ä-\n NA"), max_size=60),
    st.sampled_from(["utf-8", "utf-16", "latin-1", "cp1252"]),
    st.sampled_from(["utf-8", "utf-16", "latin-1", "cp1252"]),
    st.sampled_from([",", "."]),
    st.sampled_from([None, "'", "space"]),
    st.sampled_from(["double", "single"]),
    st.integers(0, 2),
)
def test_any_text_is_read_or_refused(tmp_path_factory, text, written_in, encoding, decimal, thousands, quote, skip):
    path = tmp_path_factory.mktemp("f") / "f.csv"
    path.write_bytes(("a;b;y\n" + text).encode(written_in, errors="replace"))
    keys = {"encoding": encoding, "decimal": decimal, "thousands": thousands, "quote": quote, "skip_lines": skip}
    keys |= {"separator": ";", "missing": "keep", "missing_values": ["-", 1]}
    entry = {"source": str(path), "format": "csv", "label": -1}
    source = parse_source(entry | keys | {"symbols": ["$", "€"], "categorical": "auto"}, "a test")
    try:
        data = read(source)
    except InputError:
        return
    assert not np.isinf(data.block.rows.values).any()


# ---- cSV files: what is read, and how a wrong cell is named ----------------------------------


CELL = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=6).map(str.strip)
TEXT = CELL.filter(lambda s: not PLAIN.is_missing(s) and '"' not in s)


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


@pytest.mark.parametrize(("text", "options"), TABLE["spellings"])
def test_the_same_rows_in_other_spellings(load, text, options):
    data = load(text, **options)
    assert data.block.X.tolist() == [[1, 2], [3, 4]]
    assert data.block.y.tolist() == [-1, 1]


@given(st.lists(st.tuples(st.floats(allow_nan=False, allow_infinity=False), TEXT, st.sampled_from("ab")), min_size=2))
def test_csv_reads_back_what_was_written(tmp_path_factory, rows):
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
    form = TableOptions("b", ("a",), missing=keep)

    def outcome(text):
        try:
            table = parse_cells(text, form)
        except InputError as e:
            return str(e)
        return table.X.tobytes(), table.labels.class_numbers.tolist(), table.labels.names, table.survey.missing

    by_hand = text_of(data + "\n", "ab", separator=separator)
    by_hand.__dict__["_arrow_agrees"] = False
    assert outcome(text) == outcome(by_hand)


def test_a_number_is_that_of_python_whichever_way_it_takes(monkeypatch):
    numbers = [
        "0.1", "1e-320", "4.35", "123456789012345678e-5", "9007199254740992", "1e300", "-0", ".5", "5.", "+3", "(8)",
    ]  # fmt: skip
    expected = [-8.0 if cell == "(8)" else float(cell) for cell in numbers]
    data = "".join(f"{cell},y\n" for cell in numbers)
    assert parse_cells(text_of(data, "ab"), TableOptions("b", ("a",))).X[:, 0].tolist() == expected
    monkeypatch.setattr(
        csv_and_keel, "BYTES_PARSED_FIRST", 4
    )  # the head is tried first, and holds none of the odd ones
    assert parse_cells(text_of(data, "ab"), TableOptions("b", ("a",))).X[:, 0].tolist() == expected
    rounded = parse_cells(text_of("0.1,y\n", "ab"), TableOptions("b", ("a",), dtype="float32")).X
    assert rounded.dtype == np.float32
    assert rounded[0, 0] == np.float32(0.1)
