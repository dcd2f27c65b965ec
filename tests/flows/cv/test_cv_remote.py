"""A search over rows that are read block by block: shards, and files that are read directly."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from aucdist.data.block import Block, partition
from aucdist.data.dataset import Schema
from aucdist.data.shards.manifest import write_shards
from aucdist.errors import InputError
from flows.cv.config import CvConfig
from flows.cv.run import cross_validate
from flows.progress.console import LineObserver

N = 400


def rows() -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(0)
    y = np.where(r.random(N) < 0.25, 1, -1)
    return np.round(r.normal(size=(N, 4)) + 0.6 * (y == 1)[:, None], 2), y


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> str:
    X, y = rows()
    url = str(tmp_path_factory.mktemp("data") / "shards")
    write_shards(partition(Block.of(X, y), 3), Schema(("a", "b", "c", "d"), "class", ("1",), ("-1",), {}), url)
    return url


def run(source: dict[str, Any], output: Path, **more: Any) -> dict[str, Any]:
    data = {"source": source, "test": {"fraction": 0.25, "seed": 1}, **more.pop("data", {})}
    config = {
        "name": "remote", "data": data, "model": {"tol": 0.05}, "grid": {"lam": [1.0, 0.01]}, "folds": {"number": 3},
        "output": str(output), **more,
    }  # fmt: skip
    return cross_validate(CvConfig.model_validate(config), LineObserver(lambda text: None))


def figures(result: dict[str, Any]) -> list[Any]:
    return [result["table"], result["score"], result["refit"]["metrics"], result["refit"]["certificate"]]


@pytest.mark.parametrize("scale", ["none", "standard"])
def test_shards_in_place_and_as_tasks_give_the_same_bits(shards: str, scale: str, tmp_path: Path) -> None:
    found = [
        run({"source": shards, "format": "shards"}, tmp_path / how, placement=how, data={"scale": scale})
        for how in ("tasks", "masks")
    ]
    assert figures(found[0]) == figures(found[1])
    assert [result["placement"] for result in found] == ["tasks", "masks"]
    assert (Path(found[0]["run"]) / "scores.parquet").is_file()


def test_files_read_directly_have_the_folds_of_rows_read_here(tmp_path: Path) -> None:
    X, y = rows()
    file = tmp_path / "rows.csv"
    pd.DataFrame(X, columns=list("abcd")).assign(label=y).to_csv(file, index=False)
    source = {"source": str(file), "format": "csv", "label": "label", "positive": "1"}
    here = run(source, tmp_path / "here")
    direct = run(source, tmp_path / "direct", data={"direct": True}, blocks=1)
    assert figures(direct) == figures(here)


def test_what_needs_the_rows_here_is_refused(shards: str, tmp_path: Path) -> None:
    for folds in ({"groups": "a"}, {"time": "a"}, {"duplicates": "together"}):
        with pytest.raises(InputError, match="groups, time and duplicates need rows"):
            run({"source": shards, "format": "shards"}, tmp_path / "runs", folds=folds)
    with pytest.raises(InputError, match="positive rows cannot be divided into 300 folds"):
        run({"source": shards, "format": "shards"}, tmp_path / "runs", folds={"number": 300})
    assert not (tmp_path / "runs").exists()


def test_missing_values_of_rows_read_directly_are_imputed_in_each_fold(tmp_path: Path) -> None:
    X, y = rows()
    cells = pd.DataFrame(X, columns=list("abcd")).astype(object)
    cells.iloc[::7, 2] = "?"
    file = tmp_path / "rows.csv"
    cells.assign(label=y).to_csv(file, index=False)
    source = {"source": str(file), "format": "csv", "label": "label", "positive": "1", "missing": "keep"}
    here = run(source, tmp_path / "here", data={"impute": "mean"})
    direct = run(source, tmp_path / "direct", data={"impute": "mean", "direct": True}, blocks=1)
    assert figures(direct) == figures(here)
