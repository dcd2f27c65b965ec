"""`aucdist score`: the scores of a run's model, for any data set."""

import json
from pathlib import Path

import pandas as pd
import pytest
from support.command_line import run

from aucdist.data.formats.readers import read
from aucdist.data.sources.source import Source
from aucdist.model import load_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    settings = ("cluster=none", "blocks=2", "model.tol=0.05", "model.lam=0.01", "data.test=null")
    args = [part for setting in settings for part in ("--set", setting)]
    found = json.loads(run("train", "digits", "--json", "--output", folder, *args)[0])
    return Path(found["run"], "model")


def test_a_data_set_is_scored(tmp_path: Path, model: Path) -> None:
    stdout, stderr = run("score", model, "digits", tmp_path / "scores", "--json")
    found = json.loads(stdout)
    assert {key: found[key] for key in ("output", "rows", "parts")} == {
        "output": str(tmp_path / "scores"), "rows": 1797, "parts": 1,
    }  # fmt: skip
    assert [line for line in stderr.splitlines() if not line.startswith(" ")] == ["survey", "score", "commit"]
    scores = pd.read_parquet(tmp_path / "scores")
    expected = load_model(str(model)).decision_function(read(Source(source="digits", format="embedded")).block.X)
    assert scores["score"].tolist() == expected.tolist()
    assert run("score", model, "digits", tmp_path / "scores")[0] == f"{tmp_path / 'scores'}: 1797 rows in 1 parts\n"


def test_shards_are_scored_on_workers(tmp_path: Path, model: Path) -> None:
    run("shard", "digits", tmp_path / "shards", "--rows-per-shard", 500)
    run("score", model, tmp_path / "shards", tmp_path / "scores", "--cluster", "local")
    run("score", model, "digits", tmp_path / "here")
    scores = pd.read_parquet(tmp_path / "scores").sort_values("row_id", ignore_index=True)
    assert len(list((tmp_path / "scores").glob("*.parquet"))) == 4
    pd.testing.assert_frame_equal(scores, pd.read_parquet(tmp_path / "here"))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("{tmp}/nosuch", "digits", "{tmp}/out"), "no model can be read"),
        (("{model}", "wine", "{tmp}/out"), "its features are not those of the training data"),
        (("{model}", "nosuch", "{tmp}/out"), "unknown data set 'nosuch'"),
        (("{model}", "digits", "{model}"), "is not empty"),
        (("{model}", "digits", "{model}/model.json/out"), "cannot write"),
    ],
)
def test_wrong_input(args: tuple[str, ...], message: str, tmp_path: Path, model: Path) -> None:
    _, stderr = run("score", *(arg.format(tmp=tmp_path, model=model) for arg in args), code=2)
    assert message in stderr
    assert "Traceback" not in stderr
