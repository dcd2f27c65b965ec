"""Folders of shards that were copied, planted, damaged or shared: nothing elsewhere is touched, and every fault is one line."""

import functools
import hashlib
import json
import shutil
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from support.sharded import commit_manifest, contents, current_manifest, shard_data

from aucdist.data.block import Block, as_rows
from aucdist.data.dataset import Schema
from aucdist.data.shards import sharding
from aucdist.data.shards.block_file import BlockSchema
from aucdist.data.shards.manifest import (
    CURRENT,
    StoredFile,
    commit,
    read_manifest,
    read_schema,
    read_shard,
    verify_shard,
    write_shard,
    write_shards,
)
from aucdist.data.sources import Source
from aucdist.data.storage import files
from aucdist.errors import InputError

ROWS = "".join(f"{1 if i % 4 == 0 else -1} {i % 5 + 1}:{i + 1} {i % 3 + 6}:0.5\n" for i in range(40))


class Killed(BaseException):
    """No code of ours catches it."""


@pytest.fixture
def asked(tmp_path):
    """Return a request to shard a file into a folder of that name."""
    (tmp_path / "rows.svm").write_text(ROWS)
    source = Source(source=str(tmp_path / "rows.svm"), format="svmlight")

    def asked(name):
        sharding._job_at.cache_clear()  # as in another process
        return sharding.request(source, str(tmp_path / name), rows_per_shard=9)

    return asked


@pytest.fixture
def undisturbed(asked, tmp_path):
    """The files of a run that nothing disturbed."""
    shard_data(asked("whole"), n_parts=3)
    return contents(tmp_path / "whole")


def killed(request, monkeypatch, step):
    """Run a sharding that is killed in front of a step."""
    with monkeypatch.context() as patch:
        patch.setattr(sharding, step, functools.partial(_kill, step))
        with pytest.raises(Killed):
            shard_data(request, n_parts=3)
    sharding._job_at.cache_clear()
    return Path(request.work)


def _kill(step, *args, **kw):
    raise Killed(step)


@pytest.mark.parametrize("step", ["route", "gather", "finish"])
def test_a_run_that_was_copied_or_moved_goes_on_in_its_new_folder(asked, undisturbed, tmp_path, monkeypatch, step):
    killed(asked("a"), monkeypatch, step)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    before = contents(tmp_path / "a")
    shard_data(asked("b"), n_parts=3)
    assert contents(tmp_path / "a") == before
    assert contents(tmp_path / "b") == undisturbed


def test_a_planted_job_leads_nowhere_else(asked, undisturbed, tmp_path, monkeypatch):
    work = killed(asked("a"), monkeypatch, "route")
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "part-00000.arrow").write_text("dear")
    job = json.loads((work / "job.json").read_text())
    secret = tmp_path / "secret.svm"
    secret.write_text(ROWS.replace("0.5", "9"))
    for planted in (
        job | {"target": str(foreign), "aside": str(foreign), "work": str(foreign)},
        job | {"work": str(foreign)},
        job | {"origin": job["origin"] | {"key": "0" * 64}},
        job | {"n_shards": 10**9},
        job | {"reader": job["reader"] | {"parts": [part | {"url": str(secret)} for part in job["reader"]["parts"]]}},
        job | {"reader": job["reader"] | {"rows": [1]}},
        job | {"reader": job["reader"] | {"manifest": str(foreign)}},
        [job],
        "[" * 100_000,
    ):
        (work / "job.json").write_text(planted if isinstance(planted, str) else json.dumps(planted))
        request = asked("a")
        job_made = sharding.survey(request, n_parts=3)
        assert (job_made.work, job_made.target) == (request.work, request.target)
        assert {part.url for part in job_made.reader.parts} == {str(tmp_path / "rows.svm")}
    shard_data(asked("a"), n_parts=3)
    assert contents(tmp_path / "a") == undisturbed
    assert contents(foreign) == {"part-00000.arrow": b"dear"}


def test_only_files_of_the_run_are_removed(asked, undisturbed, tmp_path, monkeypatch):
    work = killed(asked("a"), monkeypatch, "gather")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "letters.txt").write_text("dear")
    (work / "letters.txt").write_text("dear")
    (work / "part-00009.json").symlink_to(tmp_path / "foreign")
    (work / "shard-00009.json").mkdir()
    (work / "shard-00009.json" / "letters.txt").write_text("dear")
    shard_data(asked("a"), n_parts=3)
    assert sorted(path.name for path in work.iterdir()) == ["letters.txt", "shard-00009.json"]
    assert contents(tmp_path / "foreign") == {"letters.txt": b"dear"}
    shutil.rmtree(work)
    assert contents(tmp_path / "a") == undisturbed


def test_a_work_folder_that_is_a_link_is_refused(asked, tmp_path):
    request = asked("a")
    shutil.rmtree(request.work)
    (tmp_path / "foreign").mkdir()
    Path(request.work).symlink_to(tmp_path / "foreign")
    with pytest.raises(InputError, match="is a link to another folder"):
        asked("a")
    assert not list((tmp_path / "foreign").iterdir())


@pytest.mark.parametrize("done", ["nothing", "survey", "one part", "route", "one shard", "gather"])
def test_of_two_equal_runs_at_once_both_end(asked, undisturbed, tmp_path, done):
    """The first run does all of its work, and removes its files, when the second one has done some of its own."""
    first, second = asked("a"), asked("a")
    steps = ["nothing", "survey", "one part", "route", "one shard", "gather"].index(done)
    job, starts, shards = None, [], []

    def route(index):
        sharding._job_at.cache_clear()  # each on another worker
        return sharding.route(job.url, index)

    def gather(item):
        sharding._job_at.cache_clear()
        return sharding.gather(job.url, item)

    if steps >= 1:
        job = sharding.survey(second, n_parts=3)
    if steps >= 2:
        starts = [route(i) for i in range(1 if done == "one part" else job.reader.n_blocks)]
    if steps >= 4:
        items = sharding.gather_all(job, starts, lambda _, items: items)
        shards = [gather(item) for item in items[: 1 if done == "one shard" else None]]
    manifest = shard_data(first, n_parts=3)
    job = job or sharding.survey(second, n_parts=3)
    starts += [route(i) for i in range(len(starts), job.reader.n_blocks)]
    shards += sharding.gather_all(job, starts, lambda _, items: map(gather, items[len(shards) :]))
    assert sharding.finish(job, shards) == manifest
    assert contents(tmp_path / "a") == undisturbed


DAMAGE = {
    "a record that is no JSON": ("part-00001.json", b"{"),
    "a record that is deep": ("part-00001.json", b"[" * 100_000),
    "a record of texts": ("part-00001.json", b'["0", "1"]'),
    "a record of too few numbers": ("part-00001.json", b"[0, 1]"),
    "a record that descends": ("part-00001.json", b"[0, 9, 8, 7, 6, 5]"),
    "a part that is cut off": ("part-00001.arrow", b"x"),
    "the record of a shard as a list": ("shard-00001.json", b"[]"),
    "the record of a shard elsewhere": (
        "shard-00001.json",
        json.dumps({"file": "../x", "size": 1, "sha256": "0" * 64, "rows": 1, "positives": 0, "memory": 1, "crc32": 0}).encode(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_a_step_whose_record_is_damaged_is_done_again(asked, undisturbed, tmp_path, monkeypatch, name):
    work = killed(asked("a"), monkeypatch, "finish")
    file, data = DAMAGE[name]
    (work / file).write_bytes(data)
    (work / "shard-00002.json").unlink(missing_ok=True)  # so that parts are read again
    shard_data(asked("a"), n_parts=3)
    assert contents(tmp_path / "a") == undisturbed


# ---- what `aucdist data verify` calls sound ----------------------------------------------------------------------------

SCHEMA = Schema(("a", "b", "c"), "y", ("1",), ("0",), {})


def blocks_with(sparse=False, **arrays):
    X = np.random.default_rng(0).normal(size=(200, 3))
    parts = {"y": np.where(np.arange(200) % 3, -1, 1), "row_id": np.arange(200), "weight": None} | arrays
    rows = as_rows(sp.csr_matrix(X) if sparse else X)
    return Block(arrays.get("rows", rows), parts["y"].astype(np.int8), parts["row_id"], parts["weight"])


def data_set(folder, block, **changes):
    """Write a block as a data set of one shard, with another entry in the manifest."""
    form = BlockSchema.of(block)
    shard = write_shard(block, str(folder), 0)
    changed = type(shard)(**vars(shard) | {k: v(shard) if callable(v) else v for k, v in changes.items()})
    return commit(str(folder), SCHEMA, form, [changed]).url


def unordered(lengths):
    block = blocks_with(sparse=True)
    indices = block.rows.indices.copy()
    indices[:3] = lengths
    return blocks_with(rows=block.rows._replace(indices=indices))


def far(value):
    rows = blocks_with().rows
    values = rows.values.copy()
    values[7, 1] = value
    return blocks_with(rows=rows._replace(values=values))


FAULTS = {
    "another size": (blocks_with, {"size": 1}, "its size or checksum is not the one in the manifest"),
    "another CRC-32": (blocks_with, {"crc32": 1}, "its size or checksum"),
    "another SHA-256": (blocks_with, {"sha256": "0" * 64}, "its size or checksum"),
    "another memory": (blocks_with, {"memory": 7}, "bytes of memory, but the manifest states 7"),
    "indices that do not ascend": (lambda: unordered([1, 0, 2]), {}, "the indices of a row do not ascend"),
    "an index twice": (lambda: unordered([0, 2, 2]), {}, "the indices of a row do not ascend"),
    "a label of 2": (lambda: blocks_with(y=np.full(200, 2)), {}, "a label is neither -1 nor +1"),
    "an infinite value": (lambda: far(np.inf), {}, "a value is not finite"),
    "a negative weight": (lambda: blocks_with(weight=np.full(200, -1.0)), {}, "a weight is negative or not finite"),
    "a weight that is nan": (
        lambda: blocks_with(weight=np.full(200, np.nan)),
        {},
        "a weight is negative or not finite",
    ),
    "a row twice": (lambda: blocks_with(row_id=np.zeros(200, dtype=np.int64)), {}, "two rows have the same"),
    "a negative row": (lambda: blocks_with(row_id=np.arange(200) - 1), {}, "row ids are negative"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_verify_finds(tmp_path, name):
    make, changes, said = FAULTS[name]
    url = data_set(tmp_path, make(), **changes)
    assert said in (verify_shard(url, 0) or "sound")


@pytest.mark.parametrize("sparse", [False, True])
def test_verify_calls_sound_what_is_sound(tmp_path, sparse):
    assert verify_shard(data_set(tmp_path, blocks_with(sparse)), 0) is None


def test_rows_whose_lists_differ_in_length_do_not_reach_the_kernels(tmp_path):
    block = blocks_with(sparse=True)
    manifest = write_shards([block], SCHEMA, str(tmp_path))
    url = manifest.url_of(manifest.shards[0])
    table = pq.read_table(url)
    lengths = np.full(200, 3)
    lengths[:2] = 2, 4
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    kind = table.schema.field("values").type
    values = pa.ListArray.from_arrays(offsets, pa.array(block.rows.values), kind)
    pq.write_table(table.set_column(3, table.schema.field("values"), values), url)
    data = Path(url).read_bytes()
    manifest = current_manifest(tmp_path)
    manifest["shards"][0] |= {
        "size": len(data), "crc32": zlib.crc32(data), "sha256": hashlib.sha256(data).hexdigest(),
    }  # fmt: skip
    commit_manifest(tmp_path, manifest)
    with pytest.raises(InputError, match="its indices do not address 600 values in rows of 3 features"):
        read_shard(str(tmp_path), 0)


WRONG_TYPES = {
    "n_samples": ["7", 7.0, True, None, -1, [7], 10**400],
    "n_features": [0, "3", None],
    "weighted": [0, "no", None],
    "grouped": [0, "no", None],
    "graded": [0, "no", None],
    "shards": [None, {}, [], [1], [[]], "x"],
    "features": [None, [], {"file": "f"}, {"file": 1, "size": 1, "sha256": "0" * 64}],
    "categories": [None, [], {"k": "ab"}, {"k": [1]}],
    "hashed": [None, {"k": 0}, {"k": "1"}, {"k": 1.5}],
    "positive": [None, "ab", [1]],
    "origin": [None, [], "x"],
    "format": [None, "2", [2], 1e9, True],
}


@pytest.mark.parametrize("key", WRONG_TYPES)
def test_a_manifest_with_wrong_types_is_refused(tmp_path, key):
    write_shards([blocks_with()], SCHEMA, str(tmp_path))
    content = current_manifest(tmp_path)
    for value in WRONG_TYPES[key]:
        commit_manifest(tmp_path, content | {key: value})
        with pytest.raises(InputError, match=r"manifest-[0-9a-f]{16}\.json"):
            read_manifest(str(tmp_path))


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "null", "[" * 100_000, '{"format": 2, "origin": ' + "[" * 100_000, "\udcff"]
)
def test_a_manifest_that_is_no_mapping_is_refused(tmp_path, text):
    commit_manifest(tmp_path, text.encode(errors="surrogateescape"))
    with pytest.raises(InputError, match="manifest-"):
        read_manifest(str(tmp_path))


def test_a_pointer_that_is_no_text_is_refused(tmp_path):
    (tmp_path / CURRENT).write_bytes(b"\xff\xfe" * 10_000)
    with pytest.raises(InputError, match="is not the name of a manifest") as caught:
        read_manifest(str(tmp_path))
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["a", "a", "c"], "two features have the same name"),
        (["a", "", "c"], "two features have the same name, or one has none"),
        (["a", None, "c"], "it has no column of names"),
        ([1, 2, 3], "it has no column of names"),
    ],
)
def test_names_of_features_that_are_none_are_refused(tmp_path, names, said):
    write_shards([blocks_with()], SCHEMA, str(tmp_path))
    content = current_manifest(tmp_path)
    pq.write_table(pa.table({"name": names}), tmp_path / "f")
    data = (tmp_path / "f").read_bytes()
    stored = StoredFile.of(data, "features")
    files.write_bytes(str(tmp_path / stored.file), data)
    commit_manifest(tmp_path, content | {"features": vars(stored)})
    with pytest.raises(InputError, match=said):
        read_schema(read_manifest(str(tmp_path)))
