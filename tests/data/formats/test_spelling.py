"""Numbers with commas and currencies, other encodings and quotes, and what stands for a missing value."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.parts import all_blocks

from aucdist.data.formats.table_form import PLAIN, Spelling
from aucdist.data.shards.reading import open_reader, read
from aucdist.data.sources import Source, parse_source
from aucdist.errors import InputError

GERMAN = Spelling(decimal=",", thousands=".", symbols=("€", "EUR", "%"))
ENGLISH = Spelling(thousands=",", symbols=("$", "%", "USD"))
SPACED = Spelling(decimal=",", thousands="space", symbols=("kr",))


@pytest.mark.parametrize(
    ("spelling", "text", "number"),
    [
        (GERMAN, "1,5", 1.5),
        (GERMAN, "1.234,5", 1234.5),
        (GERMAN, "-1.234.567", -1234567.0),
        (GERMAN, "€ 3,20", 3.2),
        (GERMAN, "12,5 %", 12.5),
        (GERMAN, "1.5", None),
        (GERMAN, "1.23,5", None),
        (GERMAN, "1,5,5", None),
        (ENGLISH, "$1,234", 1234.0),
        (ENGLISH, "-$1,234.50", -1234.5),
        (ENGLISH, "$-2", -2.0),
        (ENGLISH, "12.5%", 12.5),
        (ENGLISH, "USD 7 USD", 7.0),
        (ENGLISH, "(1,234.50)", -1234.5),
        (PLAIN, "(7)", -7.0),
        (PLAIN, "(-7)", None),
        (PLAIN, "()", None),
        (GERMAN, "(1.234,5 €)", -1234.5),
        (ENGLISH, "12,34", None),
        (ENGLISH, "$", None),
        (ENGLISH, "$$1", None),
        (ENGLISH, "1_000", None),
        (ENGLISH, "1,234e2", 123400.0),
        (SPACED, "1 234 567,5 kr", 1234567.5),
        (SPACED, "1\u202f234", 1234.0),
        (SPACED, "1\u00a0234", 1234.0),
        (SPACED, "12 34", None),
    ],
)
def test_a_number(spelling: Spelling, text: str, number: float | None) -> None:
    found = spelling.plain_numbers([text])[0].as_py()
    assert (None if found is None else float(found)) == number


@given(st.decimals(-(10**9), 10**9, places=3), st.sampled_from([GERMAN, ENGLISH, SPACED]))
def test_what_is_written_in_groups_is_read_back(value: object, spelling: Spelling) -> None:
    groups = " " if spelling.thousands == "space" else spelling.thousands
    text = f"{value:,}".translate(str.maketrans({",": groups, ".": spelling.decimal}))
    for written in (text, f"{spelling.symbols[0]}{text}", f"{text} {spelling.symbols[-1]}"):
        found = spelling.plain_numbers([written])[0].as_py()
        assert found is not None
        assert float(found) == float(value)  # type: ignore[arg-type]


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


WAYS: dict[str, tuple[dict[str, object], dict[str, object]]] = {
    "latin-1": ({"encoding": "latin-1"}, {"encoding": "latin-1"}),
    "cp1252": ({"encoding": "cp1252"}, {"encoding": "cp1252"}),
    "utf-16": ({"encoding": "utf-16"}, {"encoding": "utf-16"}),
    "utf-16 without a mark": ({"encoding": "utf-16-le"}, {"encoding": "utf-16"}),
    "big-endian utf-16": ({"encoding": "utf-16-be"}, {"encoding": "utf-16"}),
    "utf-8 with a mark": ({"encoding": "utf-8-sig"}, {}),
    "decimal comma": ({"sep": ";", "decimal": ","}, {"separator": ";", "decimal": ","}),
    "decimal comma beside commas": ({"decimal": ","}, {"decimal": ","}),
    "single quotes": ({"quotechar": "'", "quoting": 1}, {"quote": "single"}),
    "a pipe": ({"sep": "|"}, {"separator": "|"}),
    "lines before": ({"head": "# made by\n# somebody, else\n\n"}, {"skip_lines": 3}),
    "all at once": (
        {"encoding": "cp1252", "sep": ";", "decimal": ",", "quotechar": "'", "head": "x\n"},
        {"encoding": "cp1252", "separator": ";", "decimal": ",", "quote": "single", "skip_lines": 1},
    ),
}


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
    found = read(source)
    assert found.schema == expected.schema
    assert (found.block.rows.values == expected.block.rows.values).all()
    assert (found.block.y == expected.block.y).all()
    reader = open_reader(source, n_parts=4)
    assert reader.n_blocks == (1 if "utf-16" in way else 4)
    assert (np.vstack([block.rows.values for block in all_blocks(reader)]) == expected.block.rows.values).all()


def test_a_source_without_new_keys_has_the_fingerprint_that_it_had() -> None:
    keys = {"encoding", "decimal", "thousands", "symbols", "quote", "skip_lines", "missing_values"}
    assert not keys & set(a_source("f.csv").fingerprint_keys())
    assert keys - {"quote"} <= set(
        a_source("f.csv", encoding="cp1252", decimal=",", thousands=".", symbols=["€"], skip_lines=1, missing="keep",
                 missing_values=["-"]).fingerprint_keys()
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
    reader = open_reader(source, n_parts=3 if form == "parts" else 1)
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


@pytest.mark.parametrize(
    ("text", "keys", "message"),
    [
        ("größe,y\n1,0\n2,1\n".encode("latin-1"), {}, r"line 1: not UTF-8 text \(byte 0xf6\); .* `encoding: cp1252`"),
        ("a,y\n1,0\n2,1\n".encode("utf-16"), {}, "not UTF-8 text .* `encoding: utf-16`"),
        ("a,y\n1,ä\n2,1\n".encode(), {"encoding": "latin-1"}, "f.csv is UTF-8 text, and `encoding` says latin-1"),
        (b"a,y\n1,0\n2,\x81\n", {"encoding": "cp1252"}, r"line 3: not cp1252 text \(byte 0x81\)"),
        (b"a,y\n1.5,0\n2,1\n", {"decimal": ","}, "line 2, column 'a': '1.5' is not a number as `decimal`"),
        (b'a,y\n"1,5",0\n2,1\n', {}, "line 2, column 'a': '1,5' is not a number; where numbers have a decimal comma"),
        (b"a,y\n-,0\n2,1\n", {}, "'-' is not a number; .*if it stands for a missing value, list it under `missing_values`"),
        (b"a,y\n1,0\n2,1\n", {"missing_values": ["-"]}, "`missing_values` .*give `missing: keep` with it"),
        (b"a,y\n1,0\n2,1\n", {"decimal": ",", "thousands": ","}, "`decimal` and `thousands` are both ','"),
        (b"a,y\n1,0\n2,1\n", {"skip_lines": 9}, "has 4 lines, but `skip_lines` skips 9"),
        (b"a,y\n1,NA\n2,1\n3,0\n", {"missing": "keep"}, "line 2, column 'y': the value is missing"),
        (b"a,y\n1e400,0\n2,1\n", {"decimal": ","}, "column 'a': .*not finite"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path, text: bytes, keys: dict[str, object], message: str) -> None:
    (tmp_path / "f.csv").write_bytes(text)
    with pytest.raises(InputError, match=message):
        read(parse_source({"source": str(tmp_path / "f.csv"), "format": "csv", "label": "y", **keys}, "a test"))


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
        found = read(source)
    except InputError:
        return
    assert not np.isinf(found.block.rows.values).any()
