"""Openings: whatever the parts, the blocks together are the rows that `read` gives."""

import gzip
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.parts import all_blocks, dense
from support.scratch_room import watch_parts

from aucdist.data.formats.base import FilePart
from aucdist.data.own_files import read_json, write_json
from aucdist.data.shards.block_file import BlockSchema, block_bytes
from aucdist.data.shards.manifest import write_shards
from aucdist.data.shards.reading import BlockReader, open_rows, read
from aucdist.data.sources import Source
from aucdist.data.storage import files, scratch
from aucdist.errors import InputError

SVM = "\n".join(f"{1 if i % 3 == 0 else -1} {i % 5 + 1}:{i + 1} {i % 7 + 6}:0.5" for i in range(40)) + "\n"
CSV = "n,kind,y\n" + "\n".join(f"{i / 4},{'abc'[i % 3]},{'yes' if i % 4 == 0 else 'no'}" for i in range(30)) + "\n"
LATE_TEXT = "n,code,y\n" + "\n".join(f"{i},{i if i < 25 else 'x'},{i % 2}" for i in range(30)) + "\n"
TOPICS = "\n".join(f"{('a,b', 'b', 'c', 'a', '')[i % 5]} 1:{i + 1}" for i in range(23)) + "\n"


def table_file(path):
    n = np.arange(50)
    table = {"x": n / 8, "k": np.array(["p", "q"])[n % 2], "year": 2000 + n // 5, "y": n % 5 == 0}
    pq.write_table(pa.table(table), path, row_group_size=7)
    return Source(source=str(path), format="parquet", label="y", categorical=["k"])


@pytest.fixture
def source(tmp_path):
    def source(name):
        path = tmp_path / name
        if name == "svmlight":
            path.write_text(SVM)
            return Source(source=str(path), format="svmlight")
        if name == "packed.gz":
            path.write_bytes(gzip.compress(SVM.encode()))
            return Source(source=str(path), format="svmlight", dtype="float32", layout="dense")
        if name == "csv":
            path.write_text(CSV)
            return Source(source=str(path), format="csv", label="y", categorical=["kind"], positive="yes")
        if name == "late text":
            path.write_text(LATE_TEXT)
            return Source(source=str(path), format="csv", label="y", categorical="auto", positive=1)
        if name == "topics":
            path.write_text(TOPICS)
            return Source(source=str(path), format="svmlight", labels="topics", positive=["a", "b"])
        if name == "parquet":
            return table_file(path)
        if name == "embedded":
            return Source(source="digits", format="embedded")
        whole = read(source("csv"))
        write_shards(
            [whole.block.take(np.arange(20)), whole.block.take(np.arange(20, 30), index=1)], whole.schema, str(path)
        )
        return Source(source=str(path), format="shards")

    return source


NAMES = ["svmlight", "packed.gz", "csv", "late text", "topics", "parquet", "embedded"]


@pytest.mark.parametrize("n_parts", [None, 8])
@pytest.mark.parametrize("name", NAMES)
def test_blocks_together_are_the_rows_that_read_gives(source, name, n_parts):
    data = source(name)
    opening, whole = open_rows(data, n_parts=n_parts), read(data)
    blocks = all_blocks(opening)
    assert opening.schema == whole.schema
    assert np.array_equal(np.concatenate([dense(b) for b in blocks]), dense(whole.block))
    assert np.array_equal(np.concatenate([b.y for b in blocks]), whole.block.y)
    assert np.array_equal(np.concatenate([b.row_id for b in blocks]), whole.block.row_id)
    assert [b.index for b in blocks] == list(range(opening.n_blocks))
    assert opening.rows == tuple(b.n_samples for b in blocks)
    assert opening.positives == tuple(int((b.y == 1).sum()) for b in blocks)
    assert {BlockSchema.of(b) for b in blocks} == {opening.block_schema}
    slack = 8 * len(blocks) if opening.block_schema.layout == "csr" else 0  # each block has one offset more than rows
    assert opening.memory + slack == sum(map(block_bytes, blocks))
    if n_parts == 8 and name not in ("packed.gz", "embedded"):
        assert opening.n_blocks > 3


def test_shards_are_opened_as_they_are(source):
    opening = open_rows(source("shards"))
    assert (opening.rows, opening.n_samples, opening.block_schema) == (
        (20, 10),
        30,
        BlockSchema("dense", "float64", 4, False),
    )
    assert opening.schema == read(source("csv")).schema
    assert opening.read(1).row_id.tolist() == list(range(20, 30))
    assert opening.memory == sum(block_bytes(opening.read(i)) for i in (0, 1))
    assert opening.n_pos == 8


@pytest.mark.parametrize("name", [*NAMES, "shards"])
def test_what_was_saved_reads_the_same_blocks(tmp_path, source, name):
    opening = open_rows(source(name), n_parts=3)
    write_json(str(tmp_path / "reader.json"), opening)
    assert read_json(str(tmp_path / "reader.json"), BlockReader) == opening
    text = (tmp_path / "reader.json").read_text()
    (tmp_path / "old.json").write_text(text.replace('"block_schema"', '"form"'))  # the key of 0.4.0
    assert read_json(str(tmp_path / "old.json"), BlockReader) == opening
    saved = pickle.loads(pickle.dumps(opening.saved(str(tmp_path / "aside"))))
    files.remove(opening.saved(str(tmp_path / "aside")).url)  # of another run, which has ended
    for i in range(opening.n_blocks):
        a, b = saved(i), opening.read(i)
        assert np.array_equal(dense(a), dense(b))
        assert (a.row_id.tolist(), a.y.tolist(), a.index) == (b.row_id.tolist(), b.y.tolist(), b.index)


@pytest.mark.parametrize("limit", [None, 0])
@pytest.mark.parametrize("name", [*NAMES, "shards"])
def test_what_was_kept_of_the_survey_reads_the_same_blocks(tmp_path, monkeypatch, source, name, limit):
    monkeypatch.setattr(scratch, "_is_memory", lambda folder: False)
    monkeypatch.setattr(scratch, "_scratch", scratch.Scratch(tmp_path, limit))
    data = source(name)
    reader = open_rows(data, n_parts=3, place_on_workers=list)
    assert reader == open_rows(data, n_parts=3)
    parsed: list[FilePart] = []
    watch_parts(monkeypatch, parsed.append)
    for i, item in enumerate(reader.items):
        sent = item if limit is None else pickle.loads(pickle.dumps(item))  # what travels leaves its copy behind
        parsed.clear()
        again = [reader.read(sent) for _ in range(2)]
        assert not parsed or limit is not None
        expected = reader.read(i)
        for block in again:
            assert block.rows.values.dtype == expected.rows.values.dtype
            assert np.array_equal(dense(block), dense(expected))
            assert np.array_equal(block.y, expected.y)
            assert (block.row_id.tolist(), block.index) == (expected.row_id.tolist(), i)


def test_a_fingerprint_tells_files_and_options_apart(source, tmp_path):
    data = source("csv")
    reader = open_rows(data)
    assert open_rows(data.model_copy(update={"title": "t"}), n_parts=4).fingerprint == reader.fingerprint
    assert open_rows(data.model_copy(update={"positive": "no"})).fingerprint != reader.fingerprint
    (tmp_path / "csv").write_text(CSV + "9,a,no\n")
    assert open_rows(data).fingerprint != reader.fingerprint


@pytest.fixture
def seen(monkeypatch):
    """The row groups and the columns of Parquet files that are read."""
    groups, columns, read_row_groups = [], set(), pq.ParquetFile.read_row_groups

    def read(self, which, *args, **more):
        groups.extend(which)
        columns.update(more["columns"])
        return read_row_groups(self, which, *args, **more)

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", read)
    return groups, columns


def test_row_groups_that_cannot_hold_a_row_stay_on_disk(tmp_path, seen):
    source = table_file(tmp_path / "f").model_copy(update={"where": [("year", ">=", 2004), ("year", "<", 2008)]})
    groups, _ = seen
    opening = open_rows(source, n_parts=50)
    assert opening.n_samples == 20
    assert set(groups) == {2, 3, 4, 5}
    blocks = all_blocks(opening)
    X = np.concatenate([b.X for b in blocks])
    assert opening.schema.feature_names == ("x", "k=p", "k=q", "year")
    assert X[:, 3].tolist() == [2000 + i // 5 for i in range(20, 40)]
    assert np.concatenate([b.row_id for b in blocks]).tolist() == list(range(20))


def test_only_the_columns_that_are_kept_are_read(tmp_path, seen):
    change = {"keep": ["year", "x"], "categorical": [], "where": [("k", "=", "q")]}
    source, (_, columns) = table_file(tmp_path / "f").model_copy(update=change), seen
    opening = open_rows(source, n_parts=3)
    assert opening.schema.feature_names == ("year", "x")
    assert columns == {"year", "x", "y", "k"}
    opening = open_rows(source.model_copy(update={"where": None}), n_parts=3)
    columns.clear()
    assert np.array_equal(np.concatenate([block.X for block in all_blocks(opening)])[:, 1], np.arange(50) / 8)
    assert columns == {"year", "x", "y"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"where": [("yeer", ">", 1)]}, "unknown column in `where`: 'yeer'. Did you mean 'year'?"),
        ({"where": [("year", ">", "x")]}, "`where` cannot be evaluated for the types of its columns"),
        ({"where": [("year", ">", 3000)]}, "has no rows"),
        ({"keep": ["x", "z"]}, "unknown column in `keep`: 'z'"),
    ],
)
def test_conditions_and_columns_that_do_not_fit_are_refused(tmp_path, change, said):
    with pytest.raises(InputError) as caught:
        open_rows(table_file(tmp_path / "f").model_copy(update={"categorical": ["k"]} | change), n_parts=3)
    assert said in str(caught.value)


def test_shards_must_be_encoded_like_the_training_data(source):
    schema = read(source("csv")).schema
    assert open_rows(source("shards"), schema=schema).n_samples == 30
    other, moved, turned = (
        ("n", "kind=a", "kind=b", "kind=d"), ("kind=a", "n", "kind=b", "kind=c"), {"positive": ("no",), "negative": ("yes",)}
    )  # fmt: skip
    for change, said in (
        ({"feature_names": other}, "not those of the training data: missing kind=d; added kind=c"),
        ({"feature_names": moved}, "they have another order"),
        (turned, "has the classes yes against no, but the training data have the classes no against yes"),
    ):
        with pytest.raises(InputError) as caught:
            open_rows(source("shards"), schema=type(schema)(**vars(schema) | change))
        assert said in str(caught.value)
    with pytest.raises(InputError, match="31 rows were expected, but 30 were found"):
        open_rows(source("shards").model_copy(update={"rows": 31}))


@pytest.mark.parametrize("name", ["svmlight", "packed.gz", "csv"])
def test_only_rows_in_memory_and_stated_checksums_cost_a_hash_of_the_file(source, name, monkeypatch):
    data, hashed = source(name), []
    stored, sha256_of = Path(data.source).read_bytes(), files.sha256_of
    monkeypatch.setattr(files, "sha256_of", lambda data: hashed.append(data) or sha256_of(data))
    assert open_rows(data).n_samples > 0
    assert stored not in hashed
    read(data)
    assert stored in hashed
    hashed.clear()
    open_rows(data.model_copy(update={"sha256": sha256_of(stored)}))
    assert stored in hashed
