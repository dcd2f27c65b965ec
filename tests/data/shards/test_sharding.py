"""Sharding: each row at the place that the seed gives it, whatever the parts, the workers and the interruptions."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from scipy.stats import chisquare
from support.parts import dense
from support.scratch_room import noted_parts
from support.sharded import contents, shard_data

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.shards import sharding
from aucdist.data.shards.manifest import read_manifest, read_schema, read_shard, verify_shard, write_shards
from aucdist.data.shards.reading import read
from aucdist.data.shards.sharding import request, shuffled_places
from aucdist.data.sources import Source
from aucdist.data.storage import files
from aucdist.errors import InputError
from aucdist.kernels.random import hash_ids


def svmlight(folder, n=60, seed=0):
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(n):
        which = np.sort(rng.choice(20, rng.integers(0, 6), replace=False)) + 1
        cells = " ".join(f"{j}:{rng.normal():.3g}" for j in which)
        lines.append(f"{1 if i == 0 or (i > 1 and rng.random() < 0.2) else -1} {cells}\n")
    path = folder / "rows.svm"
    path.write_text("".join(lines))
    return Source(source=str(path), format="svmlight", n_features=20)


def blocks_of(manifest):
    return [read_shard(manifest.url, i) for i in range(len(manifest.shards))]


def expected(block, n_shards, seed):
    """Return the row ids of each shard, worked out over the whole data set at once."""
    of_shard = [[] for _ in range(n_shards)]
    first = 0
    for label in (-1, 1):
        ids = block.row_id[block.y == label]
        for place, row in zip(
            shuffled_places(np.arange(len(ids)), len(ids), 2 * seed + (label == 1)), ids, strict=True
        ):
            of_shard[(first + place) % n_shards].append(row)
        first += len(ids)
    return [sorted(ids, key=lambda row: int(hash_ids(np.array([row]), seed)[0])) for ids in of_shard]


@settings(max_examples=15)
@given(st.integers(2, 60), st.integers(1, 25), st.integers(1, 9), st.integers(0, 5))
def test_rows_lie_where_a_plain_computation_puts_them(tmp_path_factory, n, rows_per_shard, n_parts, seed):
    folder = tmp_path_factory.mktemp("sharding")
    source = svmlight(folder, n, seed)
    manifest = shard_data(
        request(source, str(folder / "set"), rows_per_shard=rows_per_shard, seed=seed, dtype="float32"), n_parts=n_parts
    )
    whole = read(source)
    blocks = blocks_of(manifest)
    assert [b.row_id.tolist() for b in blocks] == expected(whole.block, len(blocks), seed)
    for block in blocks:
        original = whole.block.take(block.row_id)
        assert np.array_equal(block.y, original.y)
        assert block.rows.values.dtype == np.float32
        assert np.array_equal(dense(block), dense(original).astype(np.float32))
    rows, positives = [b.n_samples for b in blocks], [(b.y == 1).sum() for b in blocks]
    assert max(rows) <= rows_per_shard
    assert max(rows) - min(rows) <= 1
    assert max(positives) - min(positives) <= 1
    assert read_schema(manifest) == whole.schema


def backwards(function, items):
    return [function(item) for item in list(items)[::-1]][::-1]


def test_bytes_do_not_depend_on_parts_or_on_the_order_of_work(tmp_path):
    source = svmlight(tmp_path)
    shard_data(request(source, str(tmp_path / "a"), rows_per_shard=7))
    files = contents(tmp_path / "a")
    for n_parts, each in ((2, map), (9, backwards), (50, backwards)):
        target = tmp_path / f"{n_parts}"
        shard_data(request(source, str(target), rows_per_shard=7), n_parts=n_parts, each=each)
        assert contents(target) == files
    shard_data(request(source, str(tmp_path / "b"), rows_per_shard=7, seed=1))
    same = contents(tmp_path / "b").keys() & files.keys()
    assert {name.partition("-")[0] for name in same} == {"CURRENT", "features"}


def test_workers_write_the_same_bytes(tmp_path, client):
    source = svmlight(tmp_path)
    shard_data(request(source, str(tmp_path / "here"), rows_per_shard=7))

    def each(function, items):
        return client.gather(client.map(function, items, pure=False))

    shard_data(request(source, str(tmp_path / "there"), rows_per_shard=7), each=each, n_parts=5)
    assert contents(tmp_path / "here") == contents(tmp_path / "there")


class Killed(BaseException):
    """What no code of ours catches."""


def kill_after(monkeypatch, n_writes):
    """Let the n-th write, and everything after it, fail."""
    left = [n_writes]

    def one_less(write, *args):
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        return write(*args)

    for name in ("write_bytes", "create_bytes", "remove_files"):
        write = getattr(files, name)
        monkeypatch.setattr(files, name, lambda *args, write=write: one_less(write, *args))


def test_a_run_that_was_killed_anywhere_goes_on_to_the_same_bytes(tmp_path, monkeypatch):
    source = svmlight(tmp_path, 30)

    def run(target):
        return shard_data(request(source, str(target), rows_per_shard=8), n_parts=3)

    run(tmp_path / "whole")
    expected = contents(tmp_path / "whole")
    n_writes = 2 + 2 * 3 + 2 * 4 + 3 + 1
    for n in range(n_writes):
        target = tmp_path / f"{n}"
        with monkeypatch.context() as patch:
            kill_after(patch, n)
            with pytest.raises(Killed):
                run(target)
        if n < n_writes - 1:
            with pytest.raises(InputError, match="CURRENT"):
                read_manifest(str(target))
        run(target)
        assert contents(target) == expected
    with monkeypatch.context() as patch:
        kill_after(patch, n_writes)
        run(tmp_path / "last")


def test_each_part_is_parsed_once(tmp_path, monkeypatch):
    parsed = noted_parts(monkeypatch, tmp_path)
    shard_data(request(svmlight(tmp_path, 30), str(tmp_path / "set"), rows_per_shard=8), n_parts=3)
    assert len(parsed) == len(set(parsed)) == 3


def test_what_was_done_is_not_done_again(tmp_path, monkeypatch):
    source, target = svmlight(tmp_path, 30), str(tmp_path / "set")
    done = []

    def count(name):
        function = getattr(sharding, name)
        monkeypatch.setattr(sharding, name, lambda *args, **kw: done.append(name) or function(*args, **kw))

    for name in ("open_rows", "to_table", "write_shard"):
        count(name)
    with monkeypatch.context() as patch:
        kill_after(patch, 2 + 2 * 3 + 2 * 2 + 1)  # in the third of four shards, after its file and before its note
        with pytest.raises(Killed):
            shard_data(request(source, target, rows_per_shard=8), n_parts=3)
    assert done == ["open_rows"] + 3 * ["to_table"] + 3 * ["write_shard"]
    done.clear()
    shard_data(request(source, target, rows_per_shard=8), n_parts=3)
    assert done == ["write_shard", "write_shard"]
    done.clear()
    before = contents(Path(target))
    shard_data(request(source, target, rows_per_shard=8), n_parts=3)
    assert done == []
    assert contents(Path(target)) == before


def test_a_shard_that_was_altered_is_written_anew(tmp_path):
    source, target = svmlight(tmp_path), tmp_path / "set"
    manifest = shard_data(request(source, str(target), rows_per_shard=8))
    before = contents(target)
    (target / manifest.shards[1].file).write_bytes(b"x")
    shard_data(request(source, str(target), rows_per_shard=8))
    assert contents(target) == before


def test_a_manifest_tells_where_its_rows_come_from(tmp_path):
    source = svmlight(tmp_path)
    origin = shard_data(request(source, str(tmp_path / "set"), rows_per_shard=8, seed=3)).origin
    path = Path(str(source.source))
    assert origin["sources"][0]["url"].endswith("rows.svm")
    assert origin["sources"][0]["size"] == path.stat().st_size
    assert origin["reading"]["n_features"] == 20
    assert (origin["rows_per_shard"], origin["seed"]) == (8, 3)
    assert sum(origin["classes"].values()) == 60


def test_shards_with_weights_are_sharded_again(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        Block.of(
            rng.normal(size=(n, 2)),
            np.where(rng.random(n) < 0.3, 1, -1),
            weight=rng.random(n),
            row_id=i * 100 + np.arange(n),
            index=i,
        )
        for i, n in enumerate((9, 14))
    ]
    schema = read(Source(source="wine", format="embedded")).schema
    schema = type(schema)(("a", "b"), "", ("1",), ("0",), {})
    write_shards(rows, schema, str(tmp_path / "a"))
    source = Source(source=str(tmp_path / "a"), format="shards")
    blocks = blocks_of(shard_data(request(source, str(tmp_path / "b"), rows_per_shard=6)))
    assert [b.n_samples for b in blocks] == [6, 6, 6, 5]
    by_id = {int(i): (x.tolist(), y, w) for b in rows for i, x, y, w in zip(b.row_id, b.X, b.y, b.weight, strict=True)}
    for b in blocks:
        for i, x, y, w in zip(b.row_id, b.X, b.y, b.weight, strict=True):
            assert by_id.pop(int(i)) == (x.tolist(), y, w)
    assert not by_id
    with pytest.raises(InputError, match="cannot change the type of values"):
        request(source, str(tmp_path / "c"), dtype="float32")


def test_wrong_requests_are_refused_before_anything_is_read(tmp_path, monkeypatch):
    source = svmlight(tmp_path)
    with pytest.raises(InputError, match=r"rows_per_shard must be .*; got 0"):
        request(source, str(tmp_path / "set"), rows_per_shard=0)
    with pytest.raises(InputError, match="no such file"):
        request(source.model_copy(update={"source": str(tmp_path / "none")}), str(tmp_path / "set"))
    assert not (tmp_path / "set").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        request(source, str(tmp_path / "file" / "set"))


# ---- groups and grades in shards --------------------------------------------------------------


SCHEMA = Schema(("a", "b"), "label", ("1",), ("-1",), {})


def block(*, sparse=False, weighted=False, grouped=True, graded=True):
    r = np.random.default_rng(0)
    X = r.normal(size=(9, 2))
    return Block.of(
        sp.csr_matrix(X) if sparse else X, np.where(np.arange(9) % 3, -1, 1), weight=np.ones(9) if weighted else None,
        group=np.arange(9) // 2 - 3 if grouped else None, grade=np.arange(9.0) if graded else None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("sparse", "weighted", "grouped", "graded"),
    [(False, True, True, True), (True, False, True, False), (True, True, False, True), (False, False, False, False)],
)
def test_shards_read_back_the_rows_that_were_written(tmp_path, sparse, weighted, grouped, graded):
    written = block(sparse=sparse, weighted=weighted, grouped=grouped, graded=graded)
    write_shards([written], SCHEMA, str(tmp_path))
    arrived = read_shard(str(tmp_path), 0)
    for name in ("y", "row_id", "weight", "group", "grade"):
        field, other = getattr(written, name), getattr(arrived, name)
        assert (field is None) == (other is None)
        assert field is None or np.array_equal(field, other)
    content = json.loads(Path(read_manifest(str(tmp_path)).url).read_text())
    assert ("grouped" in content, "graded" in content) == (grouped, graded)


def test_a_grade_that_is_no_number_is_a_fault(tmp_path):
    wrong = block()
    wrong.grade[3] = np.nan
    write_shards([wrong], SCHEMA, str(tmp_path))
    assert "a grade is not finite" in str(verify_shard(str(tmp_path), 0))


# ---- a permutation without a list: every number once, and no place preferred ------------------


@given(st.integers(1, 3000), st.integers(-(2**63), 2**63))
def test_every_number_has_a_place_of_its_own(n, seed):
    assert np.array_equal(np.sort(shuffled_places(np.arange(n), n, seed)), np.arange(n))


@given(st.integers(1, 2**62), st.integers(0, 2**32), st.data())
def test_the_place_of_a_number_does_not_depend_on_the_others(n, seed, data):
    numbers = np.array(data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=20, unique=True)))
    places = shuffled_places(numbers, n, seed)
    assert ((places >= 0) & (places < n)).all()
    assert len(set(places.tolist())) == len(numbers)
    assert [shuffled_places(numbers[i : i + 1], n, seed)[0] for i in range(len(numbers))] == places.tolist()


@pytest.mark.parametrize("n", [3, 12])
def test_every_place_is_as_likely_as_the_others(n):
    orders = np.array([shuffled_places(np.arange(n), n, seed) for seed in range(1500)])
    for number in range(n):
        assert chisquare(np.bincount(orders[:, number], minlength=n)).pvalue > 1e-5
    pairs = orders[:, 0] * n + orders[:, 1]
    counts = np.bincount(pairs, minlength=n * n).reshape(n, n)
    assert chisquare(counts[~np.eye(n, dtype=bool)]).pvalue > 1e-5


def test_seeds_give_different_orders_and_neighbours_part():
    n = 100_000
    a, b = shuffled_places(np.arange(n), n, 0), shuffled_places(np.arange(n), n, 1)
    assert np.mean(a == b) < 1e-3
    assert abs(np.corrcoef(a[:-1], a[1:])[0, 1]) < 0.02
    assert abs(np.corrcoef(np.arange(n), a)[0, 1]) < 0.02
