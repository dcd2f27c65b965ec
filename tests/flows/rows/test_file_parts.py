"""Training on files that the workers read themselves: rows, split and certificate of the run that reads them first."""

import gc
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.runs import QUIET
from support.scratch_room import watch_parts

from aucdist.data.block import Block
from aucdist.data.column_statistics import MEDIAN_ERROR
from aucdist.data.shards.sharding import simulate
from aucdist.data.storage import scratch
from aucdist.engine.dask import local_client
from aucdist.errors import InputError
from aucdist.model import load_model
from flows.compute.clusters import Stages, Workers
from flows.config.data import DataConfig
from flows.rows.source import open_source, read_rows
from flows.run_folder.folder import read_scores
from flows.train.config import TrainConfig
from flows.train.run import train

BLOCK = simulate(240, 4, 0.2, seed=0)  # `features: auto` tries no leaves: there are fewer than 50 positives
KIND = np.array(["p", "q", "r"])[BLOCK.row_id % 3]


def columns() -> dict[str, Any]:
    features = {f"x{j}": BLOCK.X[:, j] for j in range(4)}
    return features | {"kind": KIND, "y": np.where(BLOCK.y == 1, "yes", "no")}


@pytest.fixture(params=["csv", "parquet"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / f"rows.{request.param}"
    if request.param == "parquet":
        pq.write_table(pa.table(columns()), path, row_group_size=27)
    else:
        lines = [",".join(map(str, row)) for row in zip(*(c.tolist() for c in columns().values()), strict=True)]
        path.write_text("\n".join([",".join(columns()), *lines]) + "\n")
    return {
        "source": str(path), "format": request.param, "label": "y", "categorical": ["kind"], "keep": ["x2", "kind", "x0", "x1"],
    }  # fmt: skip


def run(source: dict[str, Any], tmp_path: Path, *, data: dict[str, Any], **more: Any) -> dict[str, Any]:
    settings = {
        "name": "t", "data": {"source": source, "positive": "yes", **data}, "model": {"lam": 0.01, "tol": 1e-4},
        "output": str(tmp_path / "runs"), **more,
    }  # fmt: skip
    return train(TrainConfig(**settings), QUIET)


def check_same(result: dict[str, Any], expected: dict[str, Any]) -> None:
    for key in ("n_samples", "n_features", "n_pos", "n_neg"):
        assert result[key] == expected[key]
    certificate, other = result["certificate"], expected["certificate"]
    assert certificate["relative_gap"] <= 1e-4
    assert certificate["dual"] <= other["primal"]
    assert other["dual"] <= certificate["primal"]
    a, b = read_scores(result["run"]), read_scores(expected["run"])
    assert a["row_id"].tolist() == b["row_id"].tolist()
    assert a["y"].tolist() == b["y"].tolist()
    assert np.corrcoef(a["score"], b["score"])[0, 1] > 0.999
    assert load_model(f"{result['run']}/model").schema == load_model(f"{expected['run']}/model").schema


def test_the_run_is_that_of_the_same_rows_read_here(source: dict[str, Any], tmp_path: Path) -> None:
    data = {"test": {"fraction": 0.3, "seed": 2}}
    expected = run(source, tmp_path, data=data)
    for cache in ("memory", "stream"):
        check_same(run(source, tmp_path, data=data | {"direct": True}, blocks=5, cache=cache), expected)


@pytest.mark.parametrize("source", ["csv"], indirect=True)
def test_a_test_set_of_its_own_is_read_in_the_same_way(source: dict[str, Any], tmp_path: Path) -> None:
    data = {"test": {"source": source}}
    check_same(run(source, tmp_path, data=data | {"direct": True}, blocks=3), run(source, tmp_path, data=data))


@pytest.mark.usefixtures("on_shared_workers")
@pytest.mark.parametrize("source", ["parquet"], indirect=True)
def test_workers_read_their_own_parts(source: dict[str, Any], tmp_path: Path) -> None:
    data = {"direct": True, "test": {"fraction": 0.3, "seed": 2}}
    here = run(source, tmp_path, data=data, blocks=5)
    there = run(source, tmp_path, data=data, blocks=5, cluster={"kind": "local", "workers": 2})
    assert here["certificate"] == there["certificate"]
    assert read_scores(here["run"]).equals(read_scores(there["run"]))


SCALED = {"direct": True, "test": {"fraction": 0.3, "seed": 2}, "impute": "median", "scale": "standard"}


PARSED: list[str] = []


def note_parsed(monkeypatch: pytest.MonkeyPatch | None = None) -> None:
    """Have this process note each part that it parses."""
    watch_parts(monkeypatch or pytest.MonkeyPatch(), lambda part: PARSED.append(f"{part.url}:{part.start}"))
    PARSED.clear()


def parsed_here() -> list[str]:
    return PARSED


@pytest.mark.parametrize(
    ("source", "more", "limit"),
    [
        ("parquet", {}, None),
        ("csv", {"cache": "stream"}, None),
        ("parquet", {"model": {"lam": 0.01, "tol": 0.1, "features": "auto"}}, None),
        ("csv", {}, 0),
    ],
    indirect=["source"],
)
def test_each_part_is_parsed_once(source, tmp_path, monkeypatch, more, limit):
    """It was up to seven times; without room for copies it still is."""
    monkeypatch.setattr(scratch, "_is_memory", lambda folder: False)
    monkeypatch.setattr(scratch, "_scratch", scratch.Scratch(tmp_path, limit))
    note_parsed(monkeypatch)
    run(source | {"missing": "keep"}, tmp_path, data=SCALED, blocks=5, **more)
    assert len(set(PARSED)) >= 5
    assert len(PARSED) == len(set(PARSED)) if limit is None else len(PARSED) >= 6 * len(set(PARSED))


def prepared(source: dict[str, Any], n_blocks: int, workers: Workers) -> Any:
    config = DataConfig(source=source | {"missing": "keep"}, positive="yes", **SCALED)
    return open_source(config, n_blocks).prepare(workers, QUIET, Stages(QUIET))


def bytes_of(block: Block, memory: None) -> tuple[None, Any]:
    return None, {"rows": [(block.row_id.tolist(), block.y.tolist(), block.X.tobytes())]}


def partitioned(rows: Any, cache: str, workers: Workers) -> list[Any]:
    """Return the bytes of the training and of the test rows."""
    blocks = rows.partition(cache, workers, QUIET)
    return [some.reduce(bytes_of)["rows"] for some in (blocks.train, blocks.test)]


@pytest.mark.parametrize("source", ["csv"], indirect=True)
def test_copies_of_what_was_parsed_go_once_there_are_blocks(source, tmp_path, monkeypatch):
    monkeypatch.setattr(scratch, "_is_memory", lambda folder: False)
    monkeypatch.setattr(scratch, "_scratch", scratch.Scratch(tmp_path))
    rows = prepared(source, 5, Workers())
    parsed = scratch.scratch().used
    blocks = rows.partition("stream", Workers(), QUIET)
    assert scratch.scratch().used > parsed > 0
    rows = rows.without_copies()
    del blocks
    gc.collect()
    assert scratch.scratch().used == 0
    assert rows.train.n_blocks == 5


@pytest.fixture(scope="module")
def own_client() -> Iterator[Any]:
    """Workers whose parser is changed, and which end in the last test that has them."""
    with local_client(workers=2) as client:
        yield client


@pytest.mark.parametrize("source", ["csv"], indirect=True)
def test_each_worker_parses_its_own_parts_once(source: dict[str, Any], tmp_path: Path, own_client: Any) -> None:
    """And what becomes of them has the same bits on workers and here, kept or streamed."""
    workers = Workers(own_client, str(tmp_path))
    own_client.run(note_parsed)
    rows = prepared(source, 6, workers)
    parts = [partitioned(rows, cache, workers) for cache in ("memory", "stream")]
    rows.train.gather_columns(workers.parallel_map(), "row_id")
    parsed = own_client.run(parsed_here)
    assert sorted(len(some) for some in parsed.values()) == [3, 3]
    assert len({part for some in parsed.values() for part in some}) == 6
    here = prepared(source, 6, Workers())
    parts += [partitioned(here.without_copies(), cache, Workers()) for cache in ("memory", "stream")]
    assert all(part == parts[0] for part in parts)


@pytest.mark.parametrize("source", ["csv"], indirect=True)
def test_parts_of_lost_workers_are_parsed_again(source: dict[str, Any], tmp_path: Path, own_client: Any) -> None:
    workers = Workers(own_client, str(tmp_path))
    rows = prepared(source, 6, workers)
    own_client.run(die_soon)  # all of them: nothing waits for their addresses
    parts = partitioned(rows, "stream", workers)
    assert parts == partitioned(prepared(source, 6, Workers()), "stream", Workers())


def die_soon() -> None:
    threading.Timer(0.1, os._exit, (1,)).start()


# ---- missing values from the file to the model and the scores: what stands in is learnt from the training rows alone


@pytest.fixture
def config(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.3
    cells = [["?" if rng.random() < 0.2 else f"{v:.6g}" for v in row] for row in rng.lognormal(size=(200, 3))]
    rows = "".join(f"{','.join(row)},{int(label)}\n" for row, label in zip(cells, y, strict=True))
    (tmp_path / "f.csv").write_text("a,b,c,y\n" + rows)

    def config(missing="keep", **options):
        source = {"source": str(tmp_path / "f.csv"), "format": "csv", "label": "y", "positive": 1, "missing": missing}
        return DataConfig(source=source, test={"fraction": 0.25}, **options)

    return config


@pytest.mark.parametrize(
    ("impute", "twin", "off"), [("mean", np.nanmean, 1e-13), ("median", np.nanmedian, MEDIAN_ERROR)]
)
def test_imputation_is_learnt_from_the_training_rows(config, impute, twin, off, monkeypatch):
    opened = read_rows(config(impute=impute))
    assert np.isfinite(opened.train.block.X).all()
    assert np.isfinite(opened.test.block.X).all()
    as_it_is = SimpleNamespace(transform=lambda block: block)
    monkeypatch.setattr("flows.rows.rows.fit_preprocessor", lambda *_, **__: as_it_is)
    raw = read_rows(config(impute=impute))
    expected = twin(raw.train.block.X, axis=0)
    np.testing.assert_allclose(opened.preprocessor.fill, expected, rtol=off)
    for side in ("train", "test"):
        X = getattr(raw, side).block.X
        filled = np.where(np.isnan(X), opened.preprocessor.fill, X)
        assert np.array_equal(getattr(opened, side).block.X, filled)


def test_missing_values_are_refused_without_imputation(config):
    with pytest.raises(InputError, match=r"line \d+, column '.': the value is missing \('\?'\).*`missing: keep`"):
        read_rows(config(missing="refuse"))
