"""Training on files that the workers read themselves: rows, split and certificate of the run that reads them first."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aucdist.data.shards.simulate import simulate
from aucdist.errors import InputError
from aucdist.model import load_model
from flows.progress.console import LineObserver
from flows.run_folder.scores import read_scores
from flows.train.config import TrainConfig
from flows.train.run import train

BLOCK = simulate(900, 4, 0.2, seed=0)
KIND = np.array(["p", "q", "r"])[BLOCK.row_id % 3]


def columns() -> dict[str, Any]:
    features = {f"x{j}": BLOCK.X[:, j] for j in range(4)}
    return features | {"kind": KIND, "y": np.where(BLOCK.y == 1, "yes", "no")}


@pytest.fixture(params=["csv", "parquet"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / f"rows.{request.param}"
    if request.param == "parquet":
        pq.write_table(pa.table(columns()), path, row_group_size=100)
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
    return train(TrainConfig(**settings), LineObserver(lambda text: None))


def check_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for key in ("n_samples", "n_features", "n_pos", "n_neg"):
        assert found[key] == expected[key]
    one, other = found["certificate"], expected["certificate"]
    assert one["relative_gap"] <= 1e-4
    assert one["dual"] <= other["primal"]
    assert other["dual"] <= one["primal"]
    a, b = read_scores(found["run"]), read_scores(expected["run"])
    assert a["row_id"].tolist() == b["row_id"].tolist()
    assert a["y"].tolist() == b["y"].tolist()
    assert np.corrcoef(a["score"], b["score"])[0, 1] > 0.999
    assert load_model(f"{found['run']}/model").schema == load_model(f"{expected['run']}/model").schema


@pytest.mark.parametrize("cache", ["memory", "stream"])
def test_the_run_is_that_of_the_same_rows_read_here(source: dict[str, Any], tmp_path: Path, cache: str) -> None:
    data = {"test": {"fraction": 0.3, "seed": 2}}
    expected = run(source, tmp_path, data=data)
    found = run(source, tmp_path, data=data | {"direct": True}, blocks=5, cache=cache)
    check_same(found, expected)


def test_a_test_set_of_its_own_is_read_in_the_same_way(source: dict[str, Any], tmp_path: Path) -> None:
    data = {"test": {"source": source}}
    check_same(run(source, tmp_path, data=data | {"direct": True}, blocks=3), run(source, tmp_path, data=data))


@pytest.mark.parametrize("source", ["parquet"], indirect=True)
def test_workers_read_their_own_parts(source: dict[str, Any], tmp_path: Path) -> None:
    data = {"direct": True, "test": {"fraction": 0.3, "seed": 2}}
    here = run(source, tmp_path, data=data, blocks=5)
    there = run(source, tmp_path, data=data, blocks=5, cluster={"kind": "local", "workers": 2})
    assert here["certificate"] == there["certificate"]
    assert read_scores(here["run"]).equals(read_scores(there["run"]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "shards"}, "shards are always read directly: leave `direct` out"),
        ({"source": "nosuch.csv", "format": "csv", "label": "y"}, "no such file"),
        ({"format": "embedded", "source": "irs"}, "irs"),
    ],
)
def test_what_cannot_be_read_directly_is_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        run({"source": str(tmp_path)} | change, tmp_path, data={"direct": True, "positive": None})
