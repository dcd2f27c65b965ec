"""Training on shards: the rows that `split` would choose, the numbers of the same blocks in memory, kept or streamed."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from support.command_line import run
from support.runs import QUIET, Following
from support.scratch_room import start_anew

from aucdist.data.block import Block, each_of, into_blocks
from aucdist.data.dataset import Schema
from aucdist.data.preprocess import fit_preprocessor
from aucdist.data.shards.manifest import write_shards
from aucdist.data.shards.reading import open_rows
from aucdist.data.shards.sharding import simulate
from aucdist.data.sources import Source, find_source
from aucdist.data.split import split
from aucdist.data.storage import scratch
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.estimators import ESTIMATORS
from flows.compute.clusters import Stages, Workers
from flows.config.data import DataConfig, TestConfig
from flows.rows.rows import LazyRows
from flows.rows.source import open_source
from flows.run_folder.folder import read_scores
from flows.train.config import TrainConfig
from flows.train.run import train

NAMES = tuple("abcde")
COARSE = {"lam": 0.01, "tol": 0.5}


def rows(seed=0, n=900):
    return simulate(n, len(NAMES), 0.1, seed=seed)


def sharded(block, url, n_blocks=4):
    write_shards(into_blocks(block, n_blocks), Schema(NAMES, "y", ("1",), ("-1",), {}), str(url))
    return str(url)


def config(url, tmp_path, **more):
    data = {"source": {"source": url, "format": "shards"}, **more.pop("data", {})}
    settings = {"name": "t", "data": data, "model": {"lam": 0.01, "tol": 0.01}, "output": str(tmp_path / "runs")}
    return TrainConfig(**{**settings, **more})


def trained(config):
    observer = Following()
    return train(config, observer), observer.lines


def ids(rows):
    return np.sort(np.concatenate([block.row_id for block in rows.blocks()]))


@pytest.mark.parametrize(("share", "seed"), [(0.001, 0), (0.2, 1), (0.5, 7), (0.999, 0)])
def test_the_test_rows_are_those_that_split_chooses(tmp_path, share, seed):
    block = rows()
    expected = split(block, share, seed)
    rows_there = LazyRows.of_reader(open_rows(Source(source=sharded(block, tmp_path), format="shards")))
    schema, chosen = Schema(NAMES, "y", ("1",), ("-1",), {}), TestConfig(fraction=share, seed=seed)
    sides = rows_there.split(chosen, schema, None, Workers().parallel_map())
    for side, positions in zip(sides[:2], expected, strict=True):
        np.testing.assert_array_equal(ids(side), np.sort(block.row_id[positions]))
        assert (side.n_samples, side.n_pos) == (len(positions), (block.y[positions] == 1).sum())
        assert [part.index for part in side.blocks()] == [0, 1, 2, 3]


def test_kept_and_streamed_are_the_fit_of_the_same_blocks(tmp_path):
    block = rows()
    url = sharded(block, tmp_path / "rows")
    train_at, _ = split(block, 0.25, 5)
    train_blocks = [
        part.take(np.isin(part.row_id, block.row_id[train_at]), index=part.index) for part in into_blocks(block, 4)
    ]
    expected = ESTIMATORS["PairwiseHingeClassifier"](lam=0.01, tol=0.01).fit(LocalBlocks(train_blocks)).certificate_
    for cache, message in (("auto", "kept in memory"), ("stream", "are streamed")):
        result, lines = trained(config(url, tmp_path, data={"test": {"fraction": 0.25, "seed": 5}}, cache=cache))
        assert (result["certificate"]["primal"], result["certificate"]["dual"]) == (expected.primal, expected.dual)
        assert (result["n_samples"], result["n_pos"]) == (len(train_at), (block.y[train_at] == 1).sum())
        assert sum(message in line for line in lines) == 2
        assert len(read_scores(result["run"])) == 900 - len(train_at)


@pytest.mark.parametrize(("limit", "said"), [("0", True), ("1000000", False)])
def test_blocks_without_copies_are_said(tmp_path, monkeypatch, limit, said):
    monkeypatch.setenv("AUCDIST_SCRATCH_BYTES", limit)
    monkeypatch.setattr(scratch, "_is_memory", lambda folder: False)
    start_anew()
    _, lines = trained(config(sharded(rows(), tmp_path / "rows"), tmp_path, data={"test": None}, cache="stream"))
    assert ("  4 of 4 blocks of the training rows have no copy on the local disk" in "\n".join(lines)) is said
    monkeypatch.delenv("AUCDIST_SCRATCH_BYTES")
    start_anew()


@pytest.mark.parametrize(("scale", "log1p"), [("standard", None), ("minmax", ["a", "c"]), ("unit-row", None)])
def test_features_are_scaled_as_those_of_rows_in_memory(tmp_path, scale, log1p):
    block = rows()
    block = block.with_X(np.exp(block.X))
    url = sharded(block, tmp_path / "rows")
    settings = DataConfig(source={"source": url, "format": "shards"}, scale=scale, log1p=log1p, test={"fraction": 0.3})
    prepared = open_source(settings).prepare(Workers(), QUIET, Stages(QUIET))
    train_at, test_at = split(block, 0.3, 0)
    train = block.take(train_at)
    expected = fit_preprocessor(each_of([train]), NAMES, log1p=log1p, scale=scale, categories={})
    for side, positions in ((prepared.train, train_at), (prepared.test, test_at)):
        parts = list(side.blocks())
        X, ids = np.concatenate([part.X for part in parts]), np.concatenate([part.row_id for part in parts])
        scaled = expected.transform(block.take(positions))
        np.testing.assert_allclose(X[np.argsort(ids)], scaled.X[np.argsort(scaled.row_id)], rtol=1e-12, atol=1e-12)
    assert prepared.preprocessor.to_json()["scale"] == scale


@pytest.mark.slow
def test_rows_of_this_process_can_be_streamed_by_workers_only(tmp_path):
    digits = {"name": "digits", "model": COARSE, "output": str(tmp_path), "blocks": 3, "cache": "stream"}
    data = {"source": {"source": "digits", "format": "embedded", "positive": "8"}}
    with pytest.raises(InputError, match="cache: stream is for shards or for workers"):
        trained(TrainConfig(**digits, data=data))
    result, lines = trained(TrainConfig(**digits, data=data, cluster={"kind": "local", "memory_limit": "1GiB"}))
    assert result["certificate"]["status"] == "converged"
    assert "  the training rows are streamed" in "\n".join(lines)


@pytest.mark.parametrize(
    ("data", "more", "message"),
    [
        ({"positive": "1"}, {}, "leave `positive` out"),
        ({"test": {"name": "digits"}}, {}, "has to be shards too"),
        ({}, {"blocks": 7}, "its 4 shards are the blocks"),
    ],
)
def test_keys_that_shards_do_not_support_are_refused(tmp_path, data, more, message):
    with pytest.raises(InputError, match=message):
        trained(config(sharded(rows(), tmp_path / "rows"), tmp_path, data=data, **more))


def test_one_class_and_other_features_are_refused(tmp_path):
    block = rows(n=20)
    one_class = Block(block.rows, -np.ones_like(block.y), block.row_id)
    with pytest.raises(InputError, match="one class only"):
        trained(config(sharded(one_class, tmp_path / "one", 2), tmp_path))
    write_shards(into_blocks(rows(), 2), Schema(tuple("abcdx"), "y", ("1",), ("-1",), {}), str(tmp_path / "other"))
    other = {"test": {"source": {"source": str(tmp_path / "other"), "format": "shards"}}}
    with pytest.raises(InputError, match="its features are not those of the training data"):
        trained(config(sharded(rows(), tmp_path / "rows"), tmp_path, data=other))


@pytest.mark.usefixtures("on_shared_workers")
def test_scores_come_from_where_the_rows_lie(tmp_path, monkeypatch):
    """Publishing reads no rows in this process, and the scores are those of the test rows."""
    url = sharded(rows(), tmp_path / "shards")
    run = {"data": {"test": {"fraction": 0.3, "seed": 0}}, "model": {**COARSE, "features": {"map": "bins"}}}
    expected, _ = trained(config(url, tmp_path, **run, cache="stream"))

    def refuse(self):
        raise AssertionError("the rows are read in this process")

    monkeypatch.setattr("flows.rows.rows.LazyRows.blocks", refuse)
    result, _ = trained(config(url, tmp_path, **run, cluster={"kind": "local", "workers": 2}))
    table = read_scores(result["run"])
    assert result["metrics"] == expected["metrics"]
    assert table.equals(read_scores(expected["run"]))
    assert set(table) == {"row_id", "y", "score"}
    assert 200 < len(table) < 340


# ---- a data set of the catalog that is not here: what is missing, where it belongs, where it comes from


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("train", "a9a"), "a9a"),
        (("train", "digits", "--set", "data.test={name: a9a}"), "a9a"),
        (("cv", "a9a"), "a9a"),
        (("reproduce", "000"), "sonar-raw"),
    ],
)
def test_commands_without_their_data(command, name, tmp_path, monkeypatch):
    monkeypatch.setenv("AUCDIST_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    stderr = run(*command, code=2)[1]
    assert f"that are not here, with their files below AUCDIST_DATA (now {tmp_path / 'data'})" in stderr
    assert f"  {name}: {find_source(name).source}; from {find_source(name).origin}" in stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("compiled", [True, False])
def test_a_run_says_that_it_compiles_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled: bool) -> None:
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    if compiled:
        (tmp_path / "kernels_1").mkdir()
        (tmp_path / "kernels_1" / "rows.nbi").write_bytes(b"")
    observer = Following()
    Stages(observer)
    assert any("compiling kernels, once per machine" in line for line in observer.lines) == (not compiled)
    shutil.rmtree(tmp_path)
