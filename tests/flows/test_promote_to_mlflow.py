"""`aucdist promote RUN models:/NAME`: MLflow's real server where it is installed, and what is refused without it."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.command_line import run
from support.mlflow_servers import mlflow_server, server_installed

from aucdist.data.shards.reading import read
from aucdist.data.sources import find_source
from aucdist.data.storage.urls import hide_error
from aucdist.errors import InputError
from flows.keep_current import KeepCurrentConfig
from flows.mlflow_registry import metrics_of, registered_model

with_server = pytest.mark.skipif(
    not server_installed(), reason="needs mlflow, which asks for other versions than the lock has: pip install mlflow"
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A bad run and a good one."""
    folder = tmp_path_factory.mktemp("runs")
    folders = []
    for lam in (300.0, 1e-2):
        settings = ("cluster=none", f"model.lam={lam}", "model.tol=0.05", "data.test={fraction: 0.4, seed: 0}")
        args = [part for setting in settings for part in ("--set", setting)]
        folders.append(str(json.loads(run("train", "digits", "--output", folder, "--json", *args)[0])["run"]))
    return folders


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("mlflow")
    with mlflow_server(folder) as url:
        yield url, folder


@with_server
@pytest.mark.filterwarnings("ignore")  # MLflow's own
def test_from_a_run_to_scores_by_mlflow(runs, server, tmp_path, monkeypatch):
    import mlflow

    url, folder = server
    bad, good = runs
    monkeypatch.setenv("MLFLOW_TRACKING_URI", url.replace("http://", "http://somebody:s3cr3t@"))
    printed = [*run("promote", bad, "models:/digits")]
    assert "models:/digits@champion: version 1 is in use" in printed[0]
    assert f"at {url}" in printed[0]
    printed += run("promote", good, "models:/digits", "--if", "better", "--json")
    better = json.loads(printed[2])
    assert (better["promoted"], better["version"], better["replaced"]) == (True, 2, 1)
    assert better["decision"]["low"] > 0.0
    printed += run("promote", bad, "models:/digits", "--if", "not-worse", "--margin", 0.001, "--json")
    worse = json.loads(printed[4])
    assert (worse["promoted"], worse["version"]) == (False, 2)
    assert "s3cr3t" not in "".join(printed)
    assert not any(b"s3cr3t" in file.read_bytes() for file in folder.rglob("*") if file.is_file())

    client = mlflow.MlflowClient(url)
    assert client.get_model_version_by_alias("digits", "champion").version == "2"
    logged = client.get_run(better["mlflow"]["run"]).data
    kept = json.loads(Path(good, "metrics.json").read_text(encoding="utf-8"))
    assert logged.metrics["test_auc"] == kept["metrics"]["test_auc"]
    assert logged.params["lam"] == "0.01"
    names = {file.path for file in client.list_artifacts(better["mlflow"]["run"])}
    assert names >= {"report.html", "config.yaml", "decision.json", "decision.svg"}

    model = mlflow.pyfunc.load_model("models:/digits@champion")
    run("score", f"{good}/model", "digits", tmp_path / "scores")
    ours = pd.read_parquet(tmp_path / "scores")
    theirs = model.predict(read(find_source("digits")).block.X)
    np.testing.assert_array_equal(theirs["score"], ours["score"])
    np.testing.assert_array_equal(theirs["prediction"], ours["prediction"])
    there = Path(mlflow.artifacts.download_artifacts("models:/digits@champion", dst_path=str(tmp_path / "there")))
    assert not [file for file in there.rglob("*") if file.suffix in (".pkl", ".pickle", ".cloudpickle", ".joblib")]
    run("score", there / "data" / "aucdist", "digits", tmp_path / "again")
    np.testing.assert_array_equal(pd.read_parquet(tmp_path / "again")["score"], ours["score"])


@with_server
@pytest.mark.filterwarnings("ignore")
def test_an_alias_of_its_own_and_a_version_that_is_not_ours(runs, server, tmp_path, monkeypatch):
    import mlflow

    monkeypatch.setenv("MLFLOW_TRACKING_URI", server[0])
    assert "models:/other@night: version 1" in run("promote", runs[0], "models:/other@night")[0]
    assert "models:/other@night: version 2" in run("promote", runs[1], "models:/other@night", "--if", "better")[0]
    mlflow.set_tracking_uri(server[0])
    (tmp_path / "file").write_text("nothing")
    with mlflow.start_run():
        info = mlflow.pyfunc.log_model(
            name="model", loader_module="json", data_path=str(tmp_path / "file"), pip_requirements=[]
        )
    version = mlflow.register_model(info.model_uri, "other").version
    mlflow.MlflowClient().set_registered_model_alias("other", "night", version)
    told = run("promote", runs[1], "models:/other@night", "--if", "better", code=2)[1]
    assert "version 3 of models:/other@night is not a model of aucdist: give --if always" in told


@with_server
@pytest.mark.filterwarnings("ignore")
def test_a_server_that_is_not_there_fails_in_one_line(runs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://somebody:s3cr3t@127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    for debug in ([], ["--debug"]):
        out, told = run("promote", runs[0], "models:/digits", *debug, code=1)
        assert "failed: MLflow at http://127.0.0.1:9 did not promote models:/digits@champion" in told
        assert "s3cr3t" not in out + told


def test_mlflow_that_is_not_installed_is_one_line(runs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "mlflow", None)
    told = run("promote", runs[0], "models:/digits", code=2)[1]
    value = told.strip()
    assert value == "error: mlflow is not installed: in the folder of the source code, run pip install '.[mlflow]'"


def test_the_uri_names_model_and_alias(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    assert registered_model("models:/churn").url == "models:/churn@champion"
    assert registered_model("models:/churn@night").alias == "night"


def test_passwords_are_removed_however_they_are_written() -> None:
    server = "http://me:p%40ss'w@host:1"
    for text in (f"at {server}/api", "with p%40ss'w", "with p@ss'w"):
        told = hide_error(ValueError(text), server)
        assert not {part for part in ("p%40ss", "p@ss") if part in told}, told


def test_numbers_have_flat_names() -> None:
    metrics = {
        "run": "folder",
        "n_pos": 3,
        "metrics": {"test_auc": 0.5, "test_auc_interval": [0.25, 0.75]},
        "certificate": {"dual": 1.0, "status": "converged"},
        "empty": None,
        "flag": True,
    }
    assert metrics_of(metrics) == {
        "n_pos": 3.0, "test_auc": 0.5, "test_auc_interval.low": 0.25, "test_auc_interval.high": 0.75, "certificate.dual": 1.0,
    }  # fmt: skip


def test_every_night_works_on_a_folder_or_bucket() -> None:
    with pytest.raises((InputError, ValueError), match="promoted with `aucdist promote`"):
        KeepCurrentConfig.model_validate(
            {"store": "models:/churn", "train": {"name": "x", "data": {"name": "digits", "test": {"fraction": 0.2}}}}
        )
