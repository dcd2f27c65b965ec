"""Parts of files: whatever the cuts, the rows and their numbers are those of `read`."""

import bz2
import json
import lzma
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from support.parts import all_blocks, dense

from aucdist.data.formats import base
from aucdist.data.formats.base import FilePart
from aucdist.data.own_files import parse_checked, to_jsonable
from aucdist.data.shards.reading import open_rows, read
from aucdist.data.sources import Source, find_source
from aucdist.data.storage import files
from aucdist.errors import InputError

SVM = "\ufeff# first\n+1 1:1 3:2\n\n-1 2:1e-3 # mine\r\n-1 1:4\n+1 4:7.25\n   \n-1 3:1"
CSV = "\ufeff\n  \na,kind,y\n1,tcp,0\n3,icmp,1\r\n\n5, udp ,0\n7,tcp,1"


def planned(source, n, **options):
    return open_rows(source, n_parts=n, **options)


def together(source, n, **options):
    made = planned(source, n, **options)
    blocks = all_blocks(made)
    assert len({(b.rows.values.dtype, type(b.rows), b.n_features) for b in blocks}) == 1
    return made, tuple(np.concatenate([f(b) for b in blocks]) for f in (dense, lambda b: b.y, lambda b: b.row_id))


def assert_same_in_parts(source, n, **options):
    made, (X, y, ids) = together(source, n, **options)
    whole = read(source, **options)
    assert made.schema == whole.schema
    assert np.array_equal(X, dense(whole.block))
    assert np.array_equal(y, whole.block.y)
    assert np.array_equal(ids, whole.block.row_id)
    return made


@pytest.mark.parametrize("n", [1, 3, 100])
@pytest.mark.parametrize(
    ("text", "options"),
    [
        (SVM, {}),
        (SVM, {"layout": "dense", "dtype": "float32"}),
        (SVM, {"n_features": 9, "positive": 1}),
        ("1 0:5\n0 2:6\n", {"zero_based": True}),
        (CSV, {"format": "csv", "label": "y", "categorical": ["kind"]}),
        ("1,0,2\n3,1,4\n", {"format": "csv", "header": False, "label": 1}),
    ],
)
def test_any_number_of_parts_gives_the_same_rows(source, text, options, n):
    assert_same_in_parts(source(text, **options), n)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(["1 1:1\n", "-1 2:3 7:1\r\n", "\n", "# no row\n", "  \t\n", "-1\n"]), max_size=12),
    st.integers(1, 40),
    st.integers(1, 9),
)
def test_wherever_it_is_cut(source, lines, n, window):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "LINE_BREAK_WINDOW", window)
        assert_same_in_parts(source("".join(["1 1:1\n", *lines, "-1 3:1"])), n)


def test_parts_are_whole_lines_of_about_the_same_size(source):
    line = b"1 1:1 2:2 3:3\n-1 1:4\n"
    parts = source(line * 1000).format_of().split(10)
    sizes = [part.stop - part.start for part in parts]
    assert len(parts) == 10
    assert sum(sizes) == 1000 * len(line)
    assert max(sizes) - min(sizes) <= 2 * len(line)
    assert all(part == parse_checked(json.dumps(to_jsonable(part, FilePart)).encode(), FilePart, "f") for part in parts)


def test_files_of_a_folder_share_the_parts_by_their_size(tmp_path):
    for i, n in enumerate((300, 100, 1)):
        (tmp_path / f"{i}.svm").write_text("1 1:1\n-1 2:1\n" * n)
    source = Source(source=str(tmp_path), format="svmlight")
    made = assert_same_in_parts(source, 4)
    assert [part.url[-5:] for part in made.parts].count("0.svm") == 3
    assert [part.row for part in made.parts if part.start == 0] == [0, 600, 800]


def test_what_cannot_be_cut_is_one_part(source):
    packed = source(bz2.compress(b"1 1:1\n-1 2:1\n" * 50), "f.bz2")
    assert planned(packed, 8).n_blocks == 1
    assert_same_in_parts(packed, 8)
    assert_same_in_parts(Source(source="digits", format="embedded", positive=8), 4)


def test_rows_like_those_of_the_training_data(source):
    options = {"format": "csv", "label": "y", "categorical": ["kind"]}
    train = read(source(CSV, "train.csv", **options)).schema
    assert_same_in_parts(source("a,kind,y\n9,udp,1\n8,tcp,0\n7,tcp,0\n", "test.csv", **options), 3, schema=train)
    wide = read(source(SVM, "train.svm")).schema
    assert_same_in_parts(source("1 1:1\n-1 2:3\n", "test.svm"), 2, schema=wide)


@pytest.mark.parametrize("numbered", [False, True])
@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("1 1:1\n" * 50 + "1 1:x\n" + "-1 2:1\n" * 50, {}, "f, line 51, column 3: value 'x' is not a number"),
        ("a,y\n" + "1,0\n" * 50 + "1,?\n" + "1,1\n" * 50, {"format": "csv", "label": "y"}, "f, line 52, column 'y'"),
    ],
)
def test_a_fault_is_named_with_its_line_in_the_file(source, text, options, said, numbered):
    broken = source(text, **options)
    cut = broken.format_of().split(7)
    if numbered:
        sound = source(text.replace("1:x", "1:1").replace("?", "0"), **options)
        cut = [replace(part, version="") for part in planned(sound, 7).parts]
        source(text, **options)
    with pytest.raises(InputError) as caught:
        [broken.format_of().read_part(part) for part in cut]
    assert said in str(caught.value)


def test_a_file_that_became_shorter_is_refused(source):
    given_source = source(SVM)
    made = planned(given_source, 3)
    source(SVM[:-9])
    with pytest.raises(InputError, match="f has changed since it was first read"):
        all_blocks(made)


@pytest.mark.parametrize("form", ["csv", "parquet", "svmlight"])
@pytest.mark.parametrize("n_parts", [1, 3])
def test_a_file_that_is_replaced_while_it_is_read_is_refused(tmp_path, monkeypatch, form, n_parts):
    """Between any two looks at the file: rows of two versions never become one block."""
    path, tables = tmp_path / "f", []
    for value in (1.0, 2.0):
        table = pd.DataFrame({"a": np.full(12, value), "y": [0, 1] * 6})
        if form == "parquet":
            table.to_parquet(path, index=False, row_group_size=4)
        elif form == "csv":
            table.to_csv(path, index=False)
        else:
            path.write_text("".join(f"{y} 1:{value}\n" for y in table["y"]))
        tables.append(path.read_bytes())
    source = Source(source=str(path), format=form, label=None if form == "svmlight" else "y")
    look, looks = files.check_regular, []

    def replaced(*args, at):
        looks.append(args)
        if len(looks) == at:
            (tmp_path / "new").write_bytes(tables[1])
            (tmp_path / "new").replace(path)
        look(*args)

    def read_it(at):
        path.write_bytes(tables[0])
        with monkeypatch.context() as patched:
            made = planned(source, n_parts)
            looks.clear()
            patched.setattr(files, "check_regular", partial(replaced, at=at))
            return [value for block in all_blocks(made) for value in dense(block).ravel()]

    assert read_it(0) == [1.0] * 12
    for at in range(1, len(looks) + 1):
        with pytest.raises(InputError, match="f has changed since it was first read"):
            read_it(at)


def test_a_line_break_in_quotes_is_refused_where_it_is_cut_and_read_where_it_is_not(source):
    rows = "".join(f'"a\nb{i % 3}",{i % 2}\n' for i in range(30))
    multiline = source("k,y\n" + rows, format="csv", label="y", categorical=["k"])
    assert_same_in_parts(multiline, 1)

    def refusal(n):
        try:
            assert_same_in_parts(multiline, n)
        except InputError as e:
            return str(e)
        return ""

    said = [refusal(n) for n in range(2, 40)]
    assert any(said)
    assert all("must be read in one part" in text for text in said if text)


@pytest.mark.parametrize(("name", "file"), [("a9a", "libsvm/a9a.xz"), ("magic04", "uci/magic04.data.xz")])
def test_real_files_in_parts(data_dir, tmp_path, name, file):
    (tmp_path / "f").write_bytes(lzma.decompress((data_dir / file).read_bytes()))
    unpacked = find_source(name).model_copy(update={"source": str(tmp_path / "f"), "sha256": None})
    made = assert_same_in_parts(unpacked, 7)
    assert len(made.parts) == 7
    assert made.classes == unpacked.classes


@pytest.mark.parametrize("quoted", [b'"a"', b'"a ""b"", c"'])
def test_a_header_in_quotes_and_a_file_of_one_line(source, quoted):
    assert_same_in_parts(source(b"y," + quoted + b"\n0,1\n1,2\n", format="csv", label="y"), 2)
    made = planned(source(b"y," + quoted + b"\n0,1\n1,2", format="csv", label="y"), 1)
    assert len(made.parts) == 1
