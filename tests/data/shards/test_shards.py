"""Shards: what is written comes back, and what was altered does not."""

import functools
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError
from scipy.stats import norm
from support.sharded import commit_manifest, current_manifest

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.shards.manifest import CURRENT, read_manifest, read_schema, read_shard, verify_shard, write_shards
from aucdist.data.shards.sharding import Simulation, simulate
from aucdist.errors import InputError
from aucdist.metrics import roc_auc_score
from flows.data_sets import SimulateConfig

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


def assert_same_block(a, b):
    assert type(a.rows) is type(b.rows)
    for field, other in zip((*a.rows, a.y, a.row_id, a.weight), (*b.rows, b.y, b.row_id, b.weight), strict=True):
        if isinstance(field, np.ndarray):
            assert (field.dtype, field.shape) == (other.dtype, other.shape)
            assert field.tobytes() == other.tobytes()
        else:
            assert field == other
    assert a.index == b.index


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=3),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from([np.float32, np.float64]),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_any_floats_come_back_bit_by_bit(tmp_path_factory, sizes, d, sparse, dtype, weights, seed):
    rng = np.random.default_rng(seed)
    bits = {np.float32: np.uint32, np.float64: np.uint64}[dtype]
    blocks = []
    for i, n in enumerate(sizes):
        X = np.nan_to_num(rng.integers(0, np.iinfo(bits).max, (n, d), dtype=bits).view(dtype))
        X[rng.random((n, d)) < 0.5] = 0
        y, weight = np.where(rng.random(n) < 0.5, 1, -1), rng.random(n) if weights else None
        ids = 3 * np.arange(n) + 100 * i
        blocks.append(Block.of(sp.csr_matrix(X) if sparse else X, y, row_id=ids, weight=weight, index=i))
    url, schema = str(tmp_path_factory.mktemp("shards")), Schema(tuple(map(str, range(d))), "y", ("1",), ("0",), {})
    write_shards(blocks, schema, f"file://{url}/set/")
    manifest = read_manifest(f"{url}/set")
    assert read_schema(manifest) == schema
    form, n_pos = manifest.block_schema, sum(int((b.y == 1).sum()) for b in blocks)
    assert (form.layout, form.dtype, form.n_features) == ("csr" if sparse else "dense", np.dtype(dtype).name, d)
    assert (manifest.n_samples, manifest.n_pos, manifest.n_neg) == (sum(sizes), n_pos, sum(sizes) - n_pos)
    assert [shard.rows for shard in manifest.shards] == sizes
    for i, block in enumerate(blocks):
        assert_same_block(read_shard(manifest.url, i), block)


def test_a_slice_of_a_csr_block_is_written_with_its_own_offsets(tmp_path):
    block = make((9,), sparse=True)[0].take(np.array([5, 2, 7]))
    write_shards([block], SCHEMA, str(tmp_path))
    assert_same_block(read_shard(str(tmp_path), 0), block)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_files_are_plain_parquet(tmp_path, sparse):
    block = make((4,), sparse=sparse, weights=True)[0]
    manifest = write_shards([block], SCHEMA, str(tmp_path))
    url = manifest.url_of(manifest.shards[0])
    table = pq.read_table(url)
    assert table.column_names == ["label", "row_id", "weight", *(["indices"] if sparse else []), "values"]
    assert table["label"].to_pylist() == block.y.tolist()
    rows = block.X.toarray() if sparse else block.X
    for i, values in enumerate(table["values"].to_pylist()):
        row = np.zeros(3)
        row[table["indices"][i].as_py() if sparse else slice(None)] = values
        assert np.array_equal(row, rows[i])


@pytest.mark.parametrize("sparse", [False, True])
def test_what_shrinks_is_a_view_that_cannot_be_written(tmp_path, sparse):
    block = Block.of(sp.csr_matrix(np.ones((500, 3))) if sparse else np.ones((500, 3)), np.ones(500))
    write_shards([block], SCHEMA, str(tmp_path))
    rows = read_shard(str(tmp_path), 0).rows
    assert not rows.values.flags.writeable
    assert rows.values.flags.c_contiguous


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_that_do_not_shrink_are_not_compressed(tmp_path, dtype):
    X = np.random.default_rng(0).standard_normal((30_000, 3)).astype(dtype)
    block = Block.of(X, np.where(np.arange(30_000) % 7, -1, 1), weight=np.arange(30_000.0))
    manifest = write_shards([block], SCHEMA, str(tmp_path))
    url = manifest.url_of(manifest.shards[0])
    shard = read_manifest(str(tmp_path)).shards[0]
    assert {pq.read_metadata(url).row_group(0).column(j).compression for j in range(4)} == {"UNCOMPRESSED"}
    arrived = read_shard(str(tmp_path), 0)
    assert_same_block(arrived, block)
    assert shard.memory == X.nbytes + 30_000 * 17
    assert np.array_equal(np.array(pq.read_table(url)["values"].to_pylist(), dtype), X)


def test_a_reader_keeps_its_generation_while_another_is_written(tmp_path):
    write_shards(make(), SCHEMA, str(tmp_path))
    old = read_manifest(str(tmp_path))
    write_shards(make((2,), seed=5), SCHEMA, str(tmp_path))
    assert len(read_manifest(str(tmp_path)).shards) == 1
    assert read_manifest(old.url) == old
    for i, block in enumerate(make()):
        assert_same_block(read_shard(old.url, i), block)


def stop_at(start, write, url, data):
    if url.rpartition("/")[2].startswith(start):
        raise KeyboardInterrupt
    return write(url, data)


@pytest.mark.parametrize("at", ["shard-", "features-", "manifest-", CURRENT])
def test_a_write_that_breaks_off_leaves_the_old_data_set(tmp_path, monkeypatch, at):
    from aucdist.data.storage import files

    write_shards(make(), SCHEMA, str(tmp_path))
    old = read_manifest(str(tmp_path))
    with monkeypatch.context() as patch:
        for name in ("write_bytes", "create_bytes"):
            patch.setattr(files, name, functools.partial(stop_at, at, getattr(files, name)))
        with pytest.raises(KeyboardInterrupt):
            write_shards(make((2,), seed=5), SCHEMA, str(tmp_path))
    assert read_manifest(str(tmp_path)) == old
    for i, block in enumerate(make()):
        assert_same_block(read_shard(str(tmp_path), i), block)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m | {"format": 3}, "has format 3; this aucdist reads up to 2. Install a newer version of aucdist"),
        (lambda m: m | {"format": 1}, "has format 1, which is too old to be read; shard the data again"),
        (lambda m: m | {"format": "1a"}, "damaged: `format` must be a whole number"),
        (lambda m: m | {"n_samples": 8}, "damaged: the totals"),
        (lambda m: m | {"n_features": 4}, "fixed_size_list<element: double not null>[3], but label"),
        (lambda m: m | {"layout": "rows"}, "schema.layout` must be of the form"),
        (lambda m: m | {"dtype": "float16"}, "schema.dtype` must be of the form"),
        (lambda m: {k: v for k, v in m.items() if k != "shards"}, "damaged: `shards` must be given"),
        (lambda m: m | {"more": 1}, "damaged: `more` must be left out"),
        (lambda m: [m], "damaged"),
        (lambda m: m | {"shards": [s | {"file": "../" + s["file"]} for s in m["shards"]]}, "is not the name of a file"),
        (lambda m: m | {"shards": [s | {"file": "/etc/passwd"} for s in m["shards"]]}, "is not the name of a file"),
        (lambda m: m | {"features": m["features"] | {"file": "..\\a"}}, "is not the name of a file"),
        (
            lambda m: m | {"shards": [s | {"rows": s["rows"] + (1, -1, 0)[i]} for i, s in enumerate(m["shards"])]},
            "rows",
        ),
        (lambda m: m | {"layout": "csr"}, "but label int8, row_id int64, indices list"),
        (
            lambda m: m | {"dtype": "float32"},
            "its columns are label int8, row_id int64, values fixed_size_list<element: double not null>[3], but ",
        ),
        (lambda m: m | {"weighted": True}, "but label int8, row_id int64, weight double"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(tmp_path, change, said):
    write_shards(make(), SCHEMA, str(tmp_path))
    commit_manifest(tmp_path, change(current_manifest(tmp_path)))
    with pytest.raises(InputError) as caught:
        read_shard(str(tmp_path), 0)
    assert said in str(caught.value)


def test_an_index_beyond_the_features_does_not_reach_the_kernels(tmp_path):
    write_shards(make(sparse=True), SCHEMA, str(tmp_path))
    commit_manifest(tmp_path, current_manifest(tmp_path) | {"n_features": 2})
    with pytest.raises(InputError, match=r"its indices do not address .* values in rows of 2 features"):
        read_shard(str(tmp_path), 2)


def test_features_that_were_altered_are_refused(tmp_path):
    write_shards(make(), SCHEMA, str(tmp_path))
    manifest = read_manifest(str(tmp_path))
    path = tmp_path / manifest.features.file
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(InputError, match=r"features-.*\.parquet is truncated or altered"):
        read_schema(manifest)


def test_a_generation_that_another_run_left_half_written_is_named(tmp_path):
    write_shards(make(), SCHEMA, str(tmp_path))
    manifest = Path(read_manifest(str(tmp_path)).url)
    manifest.write_text("{")
    with pytest.raises(InputError, match=r"manifest-.*\.json is damaged; remove it, and start again"):
        write_shards(make(), SCHEMA, str(tmp_path))


# ---- simulate ----------------------------------------------------------------------------------


def test_best_direction_reaches_the_stated_auc():
    block = simulate(40_000, 6, 0.3, seed=1, shift=1.0)
    direction = block.X[block.y > 0].mean(axis=0) - block.X[block.y < 0].mean(axis=0)
    assert roc_auc_score(block.y, block.X @ direction) == pytest.approx(norm.cdf(1 / np.sqrt(2)), abs=0.01)
    assert (block.y > 0).mean() == pytest.approx(0.3, abs=0.01)


def test_blocks_share_the_direction_but_not_the_rows():
    first, two = simulate(50, 3, 0.5, seed=2), simulate(50, 3, 0.5, seed=2, index=1)
    assert not np.array_equal(first.X, two.X)
    assert two.row_id.tolist() == list(range(50, 100))
    np.testing.assert_array_equal(first.X, simulate(50, 3, 0.5, seed=2).X)


def test_shards_hold_the_simulated_rows(tmp_path):
    simulation = Simulation(25, 3, 0.4, rows_per_shard=10, dtype="float32", seed=4)
    url = str(tmp_path)
    manifest = simulation.commit(url, [simulation.write(url, i) for i in range(simulation.n_shards)])
    assert (manifest.n_samples, manifest.block_schema.n_features, manifest.block_schema.dtype) == (25, 3, "float32")
    assert read_schema(manifest).feature_names == ("x1", "x2", "x3")
    blocks = [read_shard(url, i) for i in range(3)]
    assert [b.row_id.tolist() for b in blocks] == [list(range(10)), list(range(10, 20)), list(range(20, 25))]
    expected = simulate(10, 3, 0.4, seed=4, index=1)
    np.testing.assert_array_equal(blocks[1].X, expected.X.astype(np.float32))
    np.testing.assert_array_equal(blocks[1].y, expected.y)
    assert [verify_shard(url, i) for i in range(3)] == [None] * 3


def test_a_shard_takes_64_mib_by_default():
    assert Simulation(10**12, 2**10, 0.1).per_shard == 2**14
    assert Simulation(10**12, 2**10, 0.1, dtype="float64").n_shards == -(-(10**12) // 2**13)
    assert Simulation(5, 10**9, 0.1).per_shard == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rows": 0}, "rows"),
        ({"features": -1}, "features"),
        ({"rows_per_shard": 0}, "rows_per_shard"),
        ({"positive_share": 1.0}, "positive_share"),
        ({"dtype": "float16"}, "dtype"),
    ],
)
def test_a_simulation_that_cannot_be_is_refused(options, said):
    with pytest.raises(ValidationError, match=said):
        SimulateConfig(**{"target": "rows", "rows": 5, "features": 2, "positive_share": 0.5} | options)
