"""Bad input, one case a line: the message names the file, then the line or the shard, then the reason."""

import gzip
import io
import lzma
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.parts import in_parts
from support.tables import table_beside

from aucdist.data.block import Block, each_of
from aucdist.data.dataset import Schema
from aucdist.data.formats import arrow_tables, registry
from aucdist.data.preprocess import fit_preprocessor
from aucdist.data.shards.manifest import CURRENT, read_manifest, read_shard, write_shards
from aucdist.data.shards.reading import open_rows, read
from aucdist.data.sources import Source
from aucdist.data.storage import guard
from aucdist.errors import InputError

SVM = b"1 1:1 3:2\n-1 2:1\n"
CSV = b"a,b,y\n1,2,0\n3,4,1\n"
BOM = b"\xef\xbb\xbf"
LONG = b" ".join(b"%d:1" % j for j in range(1, 200_001))


def parquet(**columns):
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


def twice_named():
    out = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], names=["a", "a"]), out)
    return out.getvalue()


TEXTS = table_beside(__file__)
TABLE = parquet(a=[1.0, 2.0], y=[0, 1])


@dataclass(frozen=True)
class Case:
    """Files, how they are read, and what the message says: the file and the place in it, then the reason."""

    name: str
    data: bytes | dict[str, bytes]
    place: str
    reason: str
    file: str = "f.svm"
    options: dict[str, Any] = field(default_factory=dict)


NAN, Y = float("nan"), [0, 1, 0, 1]
NUMBERS, BEYOND = [1.0, 2.0, 3.0, 4.0], 2**53 + 1
MAPS = pa.array([[("a", 1)]] * 4, pa.map_(pa.string(), pa.int64()))
TYPE = "labels and categories are strings, numbers or booleans"


def svm(name, data, place, reason, **options):
    return Case(name, data, f"f.svm{place}", reason, "f.svm", {"format": "svmlight"} | options)


def table(name, data, place, reason, **options):
    return Case(name, data, f"f.csv{place}", reason, "f.csv", {"format": "csv", "label": "y"} | options)


def keel(name, data, place, reason, **options):
    return Case(name, data, f"f.dat{place}", reason, "f.dat", {"format": "keel"} | options)


def columns(name, data, place, reason, **options):
    return Case(name, data, f"f.parquet{place}", reason, "f.parquet", {"format": "parquet", "label": "y"} | options)


def of_text(of_format, name, text, place, reason, options=None):
    return of_format(name, text.encode(), place, reason, **(options or {}))


def of_file(name, file, data, reason, **options):
    return Case(name, data, file, reason, file, {"format": "svmlight"} | options)


CASES = [
    *(of_text(svm, *row) for row in TEXTS["svmlight"]),
    *(of_text(table, *row) for row in TEXTS["csv"]),
    *(of_text(keel, *row) for row in TEXTS["keel"]),
    *(
        of_file(name, file, text.encode(), reason, format=form, label="y", categorical=[])
        for name, file, text, reason, form in TEXTS["others"]
    ),
    svm("label that is not UTF-8", b"\xff 1:1\n", ", line 1", "is not UTF-8 text", labels="topics", positive="a"),
    svm("a fault far down a huge line", b"1 " + LONG + b" 7:1\n", ", line 1, column 1688898", "index 7 after 200000"),
    # compressed
    of_file("truncated gzip", "f.gz", gzip.compress(SVM)[:-9], "is truncated or damaged"),
    of_file("truncated xz", "f.xz", lzma.compress(SVM)[:-9], "is truncated or damaged"),
    of_file("not compressed at all", "f.bz2", SVM, "is truncated or damaged"),
    of_file("an empty file in a gzip", "f.gz", gzip.compress(b""), "is empty"),
    table("a header that is not UTF-8", b"gr\xf6\xdfe,y\n1,0\n", ", line 1", "`encoding: cp1252`"),
    table("a cell that is not UTF-8", CSV + b"5,6,\xff\n", ", line 4, column 'y'", "not UTF-8 text (byte 0xff)"),
    table("UTF-16", "a,y\n1,0\n".encode("utf-16"), ", line 1", "`encoding: utf-16`"),
    table("a byte that cp1252 does not have", b"a,y\n1,0\n2,\x81\n", ", line 3", "this is not cp1252 text (byte 0x81)",
          encoding="cp1252"),
    table("a huge cell", CSV + b"9" * 500_000 + b",6,1\n", ", line 4, column 'a'", "is not finite"),
    table("a column of identifiers", b"k,y\n" + b"".join(b"i%d,%d\n" % (i, i % 2) for i in range(10_001)),
          ", column 'k'", "it looks like an identifier", categorical=["k"]),
    table("columns that differ between files", {"f.csv": CSV, "g.csv": b"a,c,y\n1,2,0\n"}, "", "b, c"),
    # Parquet
    columns("truncated Parquet", TABLE[:-9], "", "is not a valid Parquet file"),
    columns("a file of another kind", CSV, "", "is not a valid Parquet file"),
    columns("duplicate names in Parquet", twice_named(), "", "two columns are called 'a'"),
    columns("a null", parquet(a=[1.0, None], y=[0, 1]), ", row 2, column 'a'", "the value is missing"),
    columns("nan", parquet(a=[1.0, float("nan")], y=[0, 1]), ", row 2, column 'a'", "nan is not finite"),
    columns("an empty category", parquet(a=["p", ""], y=[0, 1]), ", row 2, column 'a'", "is missing ('')", categorical=["a"]),
    columns("infinity", parquet(a=[1.0, float("inf")], y=[0, 1]), ", row 2, column 'a'", "is not finite"),
    columns("texts among the features", parquet(a=["p", "q"], y=[0, 1]), ", column 'a'", "its type is"),
    columns("zero rows in Parquet", parquet(a=pa.array([], pa.float64()), y=pa.array([], pa.int8())), "", "has no rows"),
    # what was once misread silently
    columns("a label that is nan", parquet(a=NUMBERS, y=[0.0, 1.0, NAN, 1.0]), ", row 3, column 'y'", "is missing ('nan')"),
    columns("a category that is nan", parquet(k=[1.0, NAN, 2.0, 1.0], y=Y), ", row 2, column 'k'", "is missing ('nan')",
            categorical=["k"]),
    columns("a hashed category that is nan", parquet(k=[NAN, 2.0, 2.0, 1.0], y=Y), ", row 1, column 'k'", "is missing ('nan')",
            hashed={"k": 4}),
    columns("a label that is nan where features may be missing", parquet(a=NUMBERS, y=[0.0, 1.0, 1.0, NAN]),
            ", row 4, column 'y'", "the value is missing", missing="keep"),
    columns("a label of lists", parquet(a=NUMBERS, y=[[0], [1], [0], [1]]), ", column 'y'",
            f"its type is list<element: int64>; {TYPE}"),
    columns("a label of structs", parquet(a=NUMBERS, y=[{"b": 0}] * 4), "", TYPE),
    columns("categories of lists", parquet(k=[[0], [1], [0], [1]], y=Y), "", TYPE, categorical=["k"]),
    columns("categories of maps", parquet(k=MAPS, y=Y), "", TYPE, hashed={"k": 2}),
    columns("nested columns by auto", parquet(k=[{"b": [1]}] * 4, y=Y), "", TYPE, categorical="auto"),
    columns("a label of nulls only", parquet(a=NUMBERS, y=pa.nulls(4)), ", row 1, column 'y'", "the value is missing"),
    columns("bytes that are no text", parquet(k=[b"a", b"\xff", b"a", b"a"], y=Y), "", "is not a valid Parquet file",
            categorical=["k"]),
    columns("an integer beyond 2**53", parquet(a=[1, BEYOND, 2, 3], y=Y), ", row 2, column 'a'",
            f"{BEYOND} is an integer beyond 2**53"),
    columns("the largest integer", parquet(a=[1, 2, 3, 2**63 - 1], y=Y), "", "is an integer beyond 2**53"),
    columns("the largest unsigned integer", parquet(a=pa.array([1, 2, 3, 2**64 - 1], pa.uint64()), y=Y), "",
            "is an integer beyond 2**53"),
    table("a number of thousands of digits", b"a,y\n" + b"9" * 5000 + b",0\n2,1\n", "", "is not finite"),
]  # fmt: skip


@pytest.fixture
def load(tmp_path):
    def load(case):
        files = case.data if isinstance(case.data, dict) else {case.file: case.data}
        for name, data in files.items():
            (tmp_path / name).write_bytes(data)
        return Source(source=str(tmp_path if len(files) > 1 else tmp_path / case.file), **case.options)

    return load


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_errors_name_the_place_and_the_reason(case, load):
    with pytest.raises(InputError) as caught:
        read(load(case))
    said = str(caught.value)
    assert re.search(re.escape(case.place) + r"(?![0-9])", said), said
    assert case.reason in said
    assert len(said) < 600
    assert "Traceback" not in said


@pytest.mark.parametrize("case", [c for c in CASES if c.options["format"] != "parquet"], ids=lambda case: case.name)
def test_the_same_is_said_when_a_file_is_read_in_parts(case, load):
    with pytest.raises(InputError) as caught:
        in_parts(load(case), 3)
    assert re.search(re.escape(case.place) + r"(?![0-9])", str(caught.value)), str(caught.value)
    assert case.reason in str(caught.value)


def shard_of(folder, index=1):
    return folder / read_manifest(str(folder)).shards[index].file


def altered(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


SHARD_CASES = {
    "no manifest": (lambda f: (f / CURRENT).unlink(), CURRENT, "no such file"),
    "a pointer to elsewhere": (lambda f: (f / CURRENT).write_text("../../etc/passwd"), CURRENT, "is not the name of a manifest"),
    "a manifest that is not there": (
        lambda f: (f / CURRENT).write_text("manifest-0123456789abcdef.json"), "manifest-0123", "no such file",
    ),
    "a manifest altered by one byte": (lambda f: altered(f / (f / CURRENT).read_text().strip()), "manifest-", "checksum"),
    "a shard missing": (lambda f: shard_of(f).unlink(), "shard-00001", "no such file"),
    "a shard altered by one byte": (lambda f: altered(shard_of(f)), "shard-00001", "truncated or altered"),
    "a shard cut off": (lambda f: shard_of(f).write_bytes(shard_of(f).read_bytes()[:-1]), "shard-00001", "truncated or altered"),
    "an empty shard file": (lambda f: shard_of(f).write_bytes(b""), "shard-00001", "empty"),
}  # fmt: skip


@pytest.mark.parametrize("name", SHARD_CASES)
def test_what_is_wrong_with_shards_is_said(name, tmp_path):
    blocks = [Block.of(np.arange(6.0).reshape(3, 2) + i, np.array([1, -1, 1]), index=i) for i in range(2)]
    write_shards(blocks, Schema(("a", "b"), "y", ("1",), ("0",), {}), str(tmp_path))
    break_it, place, reason = SHARD_CASES[name]
    break_it(tmp_path)
    with pytest.raises(InputError) as caught:
        [read_shard(str(tmp_path), index) for index in range(2)]
    said = str(caught.value)
    assert f"{Path(tmp_path)}/{place}" in said, said
    assert reason in said


def test_what_looks_odd_but_is_sound_is_read(load):
    """CRLF, a BOM, blank lines, comments, no line break at the end, a huge line, unicode names, a column of zeros."""
    odd = BOM + b"# c\r\n\r\n+1 1:1e0\r\n-1 2:+.5 # 3:x\r\n \t\r\n1.0 " + LONG
    data = read(load(svm("", odd, "", "")))
    assert data.block.X.shape == (3, 200_000)
    assert data.block.y.tolist() == [-1, 1, -1]  # the rarer class is positive
    text = BOM + 'größe,"naïve, ""x""",y\r\n 1 ,0,0\r\n\r\n"2",0,1'.encode()
    data = read(load(table("", text, "", "")))
    assert data.schema.feature_names == ("größe", 'naïve, "x"')
    assert data.block.X.tolist() == [[1, 0], [2, 0]]
    scaled = fit_preprocessor(
        each_of([data.block]), data.schema.feature_names, log1p=None, scale="standard", categories={}
    )
    assert scaled.transform(data.block).X.tolist() == [[-1, 0], [1, 0]]


# ---- values that were once misread silently, and files that once ended in a traceback -----------


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
    monkeypatch.setattr(registry, "ALWAYS_ALLOWED_FEATURES", 100)
    (tmp_path / "f").write_text("1 200:1\n-1 1:1\n")
    source = Source(source=str(tmp_path / "f"), format="svmlight")
    with pytest.raises(InputError, match="set n_features: 200"):
        read(source)
    assert read(source.model_copy(update={"n_features": 200})).block.n_features == 200
    monkeypatch.setattr(guard, "total_memory", lambda: 1000)
    with pytest.raises(InputError, match="more than this machine's memory"):
        read(source.model_copy(update={"n_features": 200}))


@pytest.mark.parametrize("weight", [1e300, 1e-170, -1.0, np.nan, np.inf])
def test_weights_have_limits(weight):
    told = r"the weight of row 1 \(counted from 0\) is .*; weights are 0, or from 1e-100 to 1e\+100"
    with pytest.raises(InputError, match=told):
        Block.of(np.ones((2, 1)), np.array([1, -1]), weight=np.array([1.0, weight]))
    assert Block.of(np.ones((2, 1)), np.array([1, -1]), weight=np.array([0.0, 1e12])).weight.tolist() == [0.0, 1e12]


# ---- files that are small on disk and would fill the memory ----------------------------------


ROWS = 10_000


@pytest.fixture
def small_limits(monkeypatch):
    monkeypatch.setattr(guard, "ALWAYS_ALLOWED", 2**12)
    monkeypatch.setattr(arrow_tables, "ALWAYS_ALLOWED", 2**12)
    monkeypatch.setattr(arrow_tables, "MAX_GROWTH", 20)


def a_table(path, values):
    label = ["yes", "no"] * (len(values) // 2)
    pq.write_table(pa.table({"a": values, "b": values, "label": label}), path, row_group_size=len(values) // 2)
    return Source(source=str(path), format="parquet", label="label", positive="yes")


@pytest.mark.usefixtures("small_limits")
def test_a_parquet_file_that_grows_beyond_measure_is_refused(tmp_path, monkeypatch):
    source = a_table(tmp_path / "bomb.parquet", np.zeros(ROWS))
    size = (tmp_path / "bomb.parquet").stat().st_size
    told = rf"bomb.parquet: the file has {size} bytes and claims {ROWS} rows of 3 columns"
    with pytest.raises(InputError, match=told):
        read(source)
    with pytest.raises(InputError, match="if you trust the file, name the columns that are needed under `keep`"):
        open_rows(source, n_parts=2)
    monkeypatch.setattr(arrow_tables, "MAX_GROWTH", 24 * ROWS // size + 1)
    assert read(source).block.n_samples == ROWS


def test_valid_files_stay_below_the_limits(tmp_path):
    assert read(a_table(tmp_path / "zeros.parquet", np.zeros(200_000))).block.n_samples == 200_000
