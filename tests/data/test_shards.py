"""Shards: what is written comes back, and what was altered does not."""

import json
import os

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.shards import MANIFEST, read_manifest, read_shard, write_shards
from aucdist.errors import InputError
from aucdist.kernels.rows import CsrRows

SCHEMA = Schema(("a", "k=ä", "k=b"), "y", ("1",), ("0", "x"), {"k": ("ä", "b")})


def make(sizes=(4, 0, 3), sparse=False, dtype=np.float64, weights=False, seed=0):
    rng = np.random.default_rng(seed)
    blocks, first = [], 10
    for i, n in enumerate(sizes):
        X = (rng.standard_normal((n, 3)) * (rng.random((n, 3)) < 0.5)).astype(dtype)
        w = rng.random(n) if weights else None
        ids = np.arange(first, first + n) * 3
        y = np.where(rng.random(n) < 0.5, 1, -1)
        blocks.append(Block.of(sp.csr_matrix(X) if sparse else X, y, row_id=ids, weight=w, index=i))
        first += n
    return blocks


def same(a, b):
    assert type(a.rows) is type(b.rows)
    for one, other in zip((*a.rows, a.y, a.row_id, a.weight), (*b.rows, b.y, b.row_id, b.weight), strict=True):
        if isinstance(one, np.ndarray):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            assert one.tobytes() == other.tobytes()
        else:
            assert one == other
    assert a.index == b.index


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
def test_blocks_come_back_bit_by_bit(tmp_path, sparse, dtype, weights):
    blocks = make(sparse=sparse, dtype=dtype, weights=weights)
    urls = write_shards(blocks, SCHEMA, f"file://{tmp_path}/set/")
    manifest = read_manifest(str(tmp_path / "set"))
    assert manifest.schema == SCHEMA
    assert (manifest.layout, manifest.dtype) == ("csr" if sparse else "dense", np.dtype(dtype).name)
    assert (manifest.n_samples, manifest.n_features) == (7, 3)
    assert manifest.n_pos == sum(int((b.y == 1).sum()) for b in blocks)
    assert manifest.n_neg == 7 - manifest.n_pos
    assert [s.rows for s in manifest.shards] == [4, 0, 3]
    assert len(urls) == 3
    for i, block in enumerate(blocks):
        same(read_shard(str(tmp_path / "set"), i), block)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=3),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from([np.float32, np.float64]),
    st.integers(0, 2**32),
)
def test_any_floats_survive(tmp_path_factory, sizes, d, sparse, dtype, seed):
    rng = np.random.default_rng(seed)
    bits = {np.float32: np.uint32, np.float64: np.uint64}[dtype]
    blocks = []
    for i, n in enumerate(sizes):
        X = np.nan_to_num(rng.integers(0, np.iinfo(bits).max, (n, d), dtype=bits).view(dtype))
        X[rng.random((n, d)) < 0.5] = 0
        blocks.append(Block.of(sp.csr_matrix(X) if sparse else X, np.where(rng.random(n) < 0.5, 1, -1), index=i))
    url = str(tmp_path_factory.mktemp("shards"))
    write_shards(blocks, Schema(tuple(map(str, range(d))), "", ("1",), ("0",), {}), url)
    for i, block in enumerate(blocks):
        same(read_shard(url, i), block)


def test_a_slice_of_a_csr_block_is_written_with_its_own_offsets(tmp_path):
    block = make((9,), sparse=True)[0].take(np.array([5, 2, 7]))
    write_shards([block], SCHEMA, str(tmp_path))
    same(read_shard(str(tmp_path), 0), block)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_files_are_plain_parquet(tmp_path, sparse):
    block = make((4,), sparse=sparse, weights=True)[0]
    url = write_shards([block], SCHEMA, str(tmp_path))[0]
    table = pq.read_table(url)
    assert table.column_names == ["label", "row_id", "weight", *(["indices"] if sparse else []), "values"]
    assert table["label"].to_pylist() == block.y.tolist()
    rows = block.X.toarray() if sparse else block.X
    for i, values in enumerate(table["values"].to_pylist()):
        found = np.zeros(3)
        found[table["indices"][i].as_py() if sparse else slice(None)] = values
        assert np.array_equal(found, rows[i])


def test_what_is_read_is_a_view_that_cannot_be_written(tmp_path):
    write_shards(make((5,)), SCHEMA, str(tmp_path))
    rows = read_shard(str(tmp_path), 0).rows
    assert not rows.values.flags.writeable
    assert rows.values.flags.c_contiguous


def test_writing_again_gives_the_same_files_and_another_set_replaces_the_first(tmp_path):
    url = str(tmp_path)
    write_shards(make(), SCHEMA, url)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    write_shards(make(), SCHEMA, url)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
    others = make((2,), seed=5)
    write_shards(others, SCHEMA, url)
    same(read_shard(url, 0), others[0])
    assert before.keys() < {p.name for p in tmp_path.iterdir()}  # readers of the first set still find its shards


def test_the_manifest_is_written_last(tmp_path, monkeypatch):
    from aucdist.data import files

    write_shards(make(), SCHEMA, str(tmp_path))
    old = read_manifest(str(tmp_path))
    write = files.write_bytes

    def stop(url, data):
        if url.endswith(MANIFEST):
            raise KeyboardInterrupt
        write(url, data)

    monkeypatch.setattr(files, "write_bytes", stop)
    with pytest.raises(KeyboardInterrupt):
        write_shards(make((2,), seed=5), SCHEMA, str(tmp_path))
    assert read_manifest(str(tmp_path)) == old
    for i, block in enumerate(make()):
        same(read_shard(str(tmp_path), i), block)


def test_blocks_that_do_not_go_together_are_refused(tmp_path):
    for blocks in (
        [*make((2,)), *make((2,), sparse=True)],
        [*make((2,)), *make((2,), dtype=np.float32)],
        [*make((2,)), *make((2,), weights=True)],
    ):
        with pytest.raises(InputError, match="must agree"):
            write_shards(blocks, SCHEMA, str(tmp_path))
    with pytest.raises(InputError, match="no blocks"):
        write_shards([], SCHEMA, str(tmp_path))
    with pytest.raises(InputError, match="1 feature names for 3 features"):
        write_shards(make(), Schema(("a",), "y", ("1",), ("0",), {}), str(tmp_path))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda p: p.unlink(), "no such file"),
        (lambda p: p.write_bytes(b""), "is empty"),
        (lambda p: os.truncate(p, p.stat().st_size - 1), "truncated or altered"),
        (lambda p: p.write_bytes(p.read_bytes() + b"x"), "truncated or altered"),
        (lambda p: p.write_bytes(p.read_bytes()[:50] + b"\xff" + p.read_bytes()[51:]), "truncated or altered"),
    ],
)
def test_a_shard_that_was_altered_is_refused(tmp_path, change, said):
    write_shards(make(), SCHEMA, str(tmp_path))
    shard = tmp_path / read_manifest(str(tmp_path)).shards[2].file
    change(shard)
    read_shard(str(tmp_path), 0)
    with pytest.raises(InputError, match=said) as caught:
        read_shard(str(tmp_path), 2)
    assert shard.name in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m | {"format": 2}, "has format 2; this aucdist reads up to 1"),
        (lambda m: m | {"format": "1a"}, "damaged: ValueError: '1a' is no format"),
        (lambda m: m | {"n_samples": 8}, "damaged: ValueError: the totals"),
        (lambda m: m | {"n_features": 4}, "damaged"),
        (lambda m: m | {"layout": "rows"}, "damaged"),
        (lambda m: {k: v for k, v in m.items() if k != "shards"}, "damaged: KeyError"),
        (lambda m: m | {"more": 1}, "damaged: TypeError"),
        (lambda m: [m], "damaged"),
        (lambda m: m | {"shards": [s | {"file": "../" + s["file"]} for s in m["shards"]]}, "is not the name of a file"),
        (lambda m: m | {"shards": [s | {"file": "/etc/passwd"} for s in m["shards"]]}, "is not the name of a file"),
        (lambda m: m | {"shards": [s | {"rows": s["rows"] + (1, -1, 0)[i]} for i, s in enumerate(m["shards"])]}, None),
    ],
)
def test_a_manifest_that_was_altered_is_refused(tmp_path, change, said):
    write_shards(make(), SCHEMA, str(tmp_path))
    path = tmp_path / MANIFEST
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(InputError) as caught:
        read_shard(str(tmp_path), 0)
    assert said is None or said in str(caught.value)


def test_what_is_no_data_set_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*manifest\.json: no such file"):
        read_manifest(str(tmp_path))
    (tmp_path / MANIFEST).write_text("{")
    with pytest.raises(InputError, match=r"manifest\.json is damaged"):
        read_manifest(str(tmp_path))
    write_shards(make(), SCHEMA, str(tmp_path))
    for index in (3, -1):
        with pytest.raises(InputError, match=f"has 3 shards, from 0; there is no number {index}"):
            read_shard(str(tmp_path), index)


def test_csr_arrays_have_the_types_of_the_kernels(tmp_path):
    write_shards(make(sparse=True), SCHEMA, str(tmp_path))
    for i in range(3):
        rows = read_shard(str(tmp_path), i).rows
        assert isinstance(rows, CsrRows)
        assert (rows.indices.dtype, rows.offsets.dtype) == (np.int32, np.int64)
        assert rows.offsets[0] == 0
