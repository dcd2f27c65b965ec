"""What was found outside: spellings of one category and of one class, headers of R, packed files, odd dates and types."""

import bz2
import decimal
import gzip
import io
import json
import lzma
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.parts import all_blocks

from aucdist import PairwiseHingeClassifier
from aucdist.data.dataset import Schema
from aucdist.data.formats.table_options import category_key
from aucdist.data.formats.text import found_encoding, resolve_column
from aucdist.data.labels import LabelWarning
from aucdist.data.shards.reading import open_rows, read
from aucdist.data.sources import parse_source
from aucdist.errors import InputError
from flows.config.data import source_from_name

ROWS = "x,y\n" + "".join(f"{i},{'yes' if i % 4 == 0 else 'no'}\n" for i in range(40))


@pytest.mark.parametrize(
    ("value", "other", "same"),
    [
        ("e\u0301", "\u00e9", True), ("1", "1.0", True), ("-0.0", "0.0", True), ("0", "-0", True), ("1.50", "1.5", True),
        ("-2.0", "-2", True), ("007", "7", False), ("a", "A", False), ("1e3", "1000", False), ("1.", "1", True),
        ("1.0.0", "1.0", False),
    ],
)  # fmt: skip
def test_equal_categories_have_one_key(value, other, same):
    assert (category_key(value) == category_key(other)) == same


def test_spellings_of_one_category_are_one_feature(load):
    data = load("k,y\ne\u0301,0\n\u00e9,1\n1,0\n1.0,1\n-0.0,0\n0.0,1\n007,1\n7,0\n", categorical=["k"])
    assert data.schema.categories == {"k": ("0.0", "007", "1", "7", "\u00e9")}
    assert data.block.X.argmax(axis=1).tolist() == [4, 4, 2, 2, 0, 0, 1, 3]
    assert (data.block.X.sum(axis=1) == 1).all()
    again = load("k,y\n\u00e9,0\ne\u0301,1\n1.00,0\n", schema=data.schema, categorical=["k"])
    assert again.block.X.argmax(axis=1).tolist() == [4, 4, 2]


def test_a_model_of_before_that_has_two_spellings_scores_as_before(load):
    schema = Schema(("k=1", "k=1.0"), "y", ("1",), ("0",), {"k": ("1", "1.0")})
    assert load("k,y\n1,0\n1.0,1\n", schema=schema, categorical=["k"]).block.X.tolist() == [[1, 0], [0, 1]]


def test_parts_agree_on_the_spelling_of_a_category(tmp_path):
    (tmp_path / "f.csv").write_text("k,y\n" + "1,0\n" * 30 + "1.0,1\n" * 30 + "b,0\n" * 30)
    entry = {"source": str(tmp_path / "f.csv"), "format": "csv", "label": "y", "categorical": ["k"]}
    reader = open_rows(parse_source(entry, "a test"), n_parts=4)
    assert reader.schema.categories == {"k": ("1", "b")}
    assert np.vstack([block.X for block in all_blocks(reader)]).sum(axis=0).tolist() == [60, 30]


def test_estimators_know_the_same_spellings():
    frame = pd.DataFrame({"k": [1, 1.0, "1", "a", None, "(missing)", "e\u0301", "\u00e9"] * 5, "x": np.arange(40.0)})
    model = PairwiseHingeClassifier(lam=1.0).fit(frame, np.arange(40) % 3 == 0)
    assert model.categories_ == {"k": ("(missing)", "1", "a", "\u00e9")}
    scores = model.decision_function(frame.assign(x=0.0))
    assert len(set(scores[[0, 1, 2]])) == len(set(scores[[4, 5]])) == len(set(scores[[6, 7]])) == 1


def test_a_category_that_is_called_unknown_is_not_what_is_unknown(load):
    data = load("k,y\n(unknown),0\nb,1\n", categorical=["k"], unknown="ignore")
    new = load("k,y\n(unknown),0\nc,1\n", schema=data.schema, categorical=["k"], unknown="ignore")
    assert new.block.X.tolist() == [[1, 0], [0, 0]]


def test_labels_that_differ_by_case_or_blanks_are_warned_of(load):
    text = "x,y\n1,yes\n2,Yes\n3,YES \n4,no\n5,no\n6,no\n7,yes\n"
    said = r"'YES' \(1 row\), 'Yes' \(1 row\), 'yes' \(2 rows\).*positive: \[YES, Yes, yes\]"
    with pytest.warns(LabelWarning, match=said):
        load(text)
    assert load(text, positive=["yes", "Yes", "YES"]).block.y.tolist() == [1, 1, 1, -1, -1, -1, 1]
    with pytest.warns(LabelWarning, match="fitted as different ones"):
        load("x,y\n1,a\n2,A\n3,b c\n4,bc\n", positive="each")


def test_the_header_of_r_is_one_name_short(load):
    data = load('"x","z","y"\n"1",0.94,0,yes\n"2",0.35,1,no\n"3",0.66,2,no\n', drop=["index"])
    assert data.schema.feature_names == ("x", "z")
    assert data.block.X.tolist() == [[0.94, 0], [0.35, 1], [0.66, 2]]
    with pytest.raises(InputError, match="line 2: the row has 3 cells, but there are 2 columns"):
        load("x,y\n1,2,\n3,4,\n")  # a separator at the end of each line


def test_names_that_come_again_get_numbers(load, tmp_path):
    text = "name,x,name,name.1,y\n1,2,3,4,0\n5,6,7,8,1\n" * 1
    assert load(text).schema.feature_names == ("name", "x", "name.2", "name.1")
    (tmp_path / "g.csv").write_text(text + "5,6,7,8,1\n" * 20)
    source = parse_source({"source": str(tmp_path / "g.csv"), "format": "csv", "label": "y"}, "a test")
    assert open_rows(source, n_parts=3).schema.feature_names == ("name", "x", "name.2", "name.1")


def archive(**members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, data in members.items():
            file.writestr(name, data)
    return out.getvalue()


@pytest.mark.parametrize("name", ["d.csv", "p.zip", "d.data", "d"])
@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, lambda data: archive(d=data)])
def test_packed_files_are_known_by_their_first_bytes(tmp_path, name, pack):
    packed = pack(ROWS.encode())
    if name == "p.zip" and not packed.startswith(b"PK"):
        return
    (tmp_path / name).write_bytes(packed)
    _, source = source_from_name(str(tmp_path / name), label="y")
    assert source.format == "csv"
    assert read(source).block.X[:, 0].tolist() == list(range(40))
    assert open_rows(source, n_parts=3).n_samples == 40


def test_endings_of_names_may_be_in_capitals(tmp_path):
    (tmp_path / "ROWS.TSV").write_text(ROWS.replace(",", "\t"))
    (tmp_path / "ROWS.TSV.GZ").write_bytes(gzip.compress(ROWS.replace(",", "\t").encode()))
    for name in ("ROWS.TSV", "ROWS.TSV.GZ"):
        assert read(source_from_name(str(tmp_path / name), label="y")[1]).block.X[:, 0].tolist() == list(range(40))


def test_text_in_utf_16_needs_no_mark():
    for encoding in ("utf-16-le", "utf-16-be"):
        assert found_encoding("größe,y\n1,0\n".encode(encoding)) == "utf-16"


def test_a_sheet_with_a_title_says_what_helps():
    with pytest.raises(InputError, match=r"if it is a title, skip it by `skip_lines` \(--set skip_lines=1\)"):
        resolve_column(["Report 2024", "Unnamed: 1"], "y", "a.xlsx", "label")


def test_an_archive_of_several_files_is_refused(load):
    with pytest.raises(InputError, match=r"f\.zip has 2 files \(a, b\), but one is expected"):
        load(archive(a=ROWS, b=ROWS), "f.zip")


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (ROWS, "csv"),
        ("1 1:2 3:4\n-1 2:1 # x\n", "svmlight"),
        ("% c\n@relation r\n@attribute a real\n@data\n", "keel"),
        ('{"x": 1, "y": 0}\n{"x": 2, "y": 1}\n', "jsonl"),
        ('[{"x": 1, "y": 0},\n {"x": 2, "y": 1}]\n', "jsonl"),
        ("1 2 0\n3 4 1\n", "csv"),
    ],
)
@pytest.mark.parametrize("name", ["f.txt", "f.data", "f.dat", "f"])
def test_files_without_a_known_suffix_are_known_by_their_first_bytes(tmp_path, text, form, name):
    (tmp_path / name).write_text(text)
    assert source_from_name(str(tmp_path / name), label=None if form in ("svmlight", "keel") else "y")[1].format == form


def test_a_page_of_the_web_is_named(tmp_path):
    page = "<!DOCTYPE html><html><body>not found</body></html>\n" * 9
    for name in ("page.parquet", "page"):
        (tmp_path / name).write_text(page)
    with pytest.raises(InputError, match=r"page is a web page \('<!DOCTYPE html>"):
        source_from_name(str(tmp_path / "page"), label="y")
    source = source_from_name(str(tmp_path / "page.parquet"), label="y")[1]
    for reading in (read, open_rows):
        with pytest.raises(InputError, match=r"page.parquet is not a valid Parquet file: it is a web page"):
            reading(source)


def test_an_array_of_json_is_read_like_lines(load):
    rows = [{"x": 1, "y": "a"}, {"x": None, "y": "b"}, {"y": "b", "x": 2.5}]
    data = load(json.dumps(rows), "f.json", format="jsonl", missing="keep")
    assert data.block.X[[0, 2], 0].tolist() == [1, 2.5]
    assert np.isnan(data.block.X[1, 0])


def test_a_file_of_weka_is_called_arff(tmp_path):
    (tmp_path / "f.arff").write_text("@attribute a real\n@attribute y {p, n}\n@data\n1,p\n2,n\n")
    assert source_from_name(str(tmp_path / "f.arff"), label=None)[1].format == "arff"


@pytest.mark.parametrize("form", ["arff", "keel"])
def test_comments_and_quotes_of_arff(load, form):
    text = (
        "@relation t\n@attribute a numeric\n@attribute 'k k' {'p q', \"r\"}\n@attribute s string\n@attribute y {p, n}\n"
        "@data\n% first\n4.5,'p q',one,p\n1,r,'two, three',n\n% a comment\n2,r,one,n\n%\n"
    )
    data = load(text, "f.arff", format=form)
    assert data.schema.feature_names == ("a", "k k=p q", "k k=r", "s=one", "s=two, three")
    assert data.block.X.tolist() == [[4.5, 1, 0, 1, 0], [1, 0, 1, 0, 1], [2, 0, 1, 1, 0]]
    with pytest.raises(InputError, match="line 12, column 'a': 'x' is not a number"):
        load(text.removesuffix("%\n") + "x,r,one,n\n", "f.arff", format=form)
    with pytest.raises(InputError, match="sparse ARFF"):
        load("@attribute a real\n@attribute y {p, n}\n@data\n{0 1, 1 p}\n", "f.arff", format=form)


def test_decimals_and_durations_are_numbers(tmp_path):
    table = pa.table(
        {
            "v": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("-3.5")], pa.decimal128(10, 2)),
            "t": pa.array([1500, 2000, None], pa.duration("ms")),
            "y": [0, 1, 0],
        }
    )
    pq.write_table(table, tmp_path / "d.parquet")
    entry = {"source": str(tmp_path / "d.parquet"), "format": "parquet", "label": "y", "missing": "keep"}
    for keys in ({}, {"categorical": "auto"}):
        data = read(parse_source(entry | keys, "a test"))
        assert data.schema.feature_names == ("v", "t")
        np.testing.assert_array_equal(data.block.X, [[1.25, 1.5], [np.nan, 2.0], [-3.5, np.nan]])


def test_dates_that_are_zero_are_missing(load):
    text = "d,y\n2024-02-01,0\n0000-00-00,1\n0000-00-00 00:00:00,0\n"
    data = load(text, dates={"d": ["year"]}, missing="keep")
    np.testing.assert_array_equal(data.block.X[:, 0], [2024, np.nan, np.nan])
    with pytest.raises(InputError, match=r"line 3, column 'd': the value is missing \('0000-00-00'\)"):
        load(text, dates={"d": ["year"]})


@pytest.mark.parametrize(
    ("cell", "form"),
    [
        ("12/31/24", "%m/%d/%y"), ("1/31/2024 4:30 PM", "%m/%d/%Y %I:%M %p"), ("20240131", "%Y%m%d"),
        ("31.01.2024", "%d.%m.%Y"), ("2024-01-31 04:30 PM", "%Y-%m-%d %I:%M %p"), ("31-Jan-2024", "%d-%b-%Y"),
    ],
)  # fmt: skip
def test_other_dates_are_refused_with_the_format_to_set(load, cell, form):
    text = f"d,y\n{cell},0\n{cell},1\n"
    with pytest.raises(InputError) as caught:
        load(text, dates={"d": ["year", "month"]})
    assert f"give `date_format: '{form}'`" in str(caught.value)
    assert load(text, dates={"d": ["year"]}, date_format=form).block.X[0, 0] == 2024


def test_negative_numbers_of_accountants(load):
    text = 'v,w,y\n(1.5),"(1,234.50)",0\n2,"3,000",1\n'
    data = load(text, thousands=",")
    assert data.block.X.tolist() == [[-1.5, -1234.5], [2, 3000]]
    assert load("v,y\n(1.5),0\n2,1\n", categorical="auto").schema.feature_names == ("v",)
