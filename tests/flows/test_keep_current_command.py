"""`aucdist keep-current`: nights of a model in service, one at a time."""

import json
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from support.command_line import result_of, run
from support.processes import until
from support.tables import table_beside

from aucdist.errors import InputError
from aucdist.store import lease, read_store
from flows.keep_current import KeepCurrentConfig, with_newest_files
from flows.up import local_deployments


def day(folder: Path, number: int, shift: float = 0.0) -> Path:
    """Write the rows of a day, and return the file."""
    rng = np.random.default_rng(number)
    table = pd.DataFrame(rng.normal(size=(600, 4)), columns=list("abcd"))
    table["y"] = (rng.random(600) < 1 / (1 + np.exp(1.5 - 1.5 * table["a"] - table["b"]))).astype(int)
    table["c"] += shift
    file = folder / f"day{number:02d}.parquet"
    table.to_parquet(file)
    return file


def night(folder: Path, new: Path | None = None, **changes: object) -> Path:
    """Write the configuration of a night, and return it."""
    source = {"source": f"{folder}/day*.parquet", "format": "parquet", "label": "y", "positive": 1}
    content = {
        "store": f"{folder}/store", "window": 2, "held_out": 1, "margin": 0.05, "scores": f"{folder}/scores",
        "train": {
            "name": "night", "data": {"source": source, "scale": "standard"}, "output": f"{folder}/runs",
            "model": {"lam": 0.01, "tol": 0.01}, "cluster": {"kind": "none"},
        },
    } | changes  # fmt: skip
    if new is not None:
        content["new"] = {"source": {"source": str(new), "format": "parquet"}}
    file = folder / "night.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return file


def kept(config: Path, code: int = 0) -> dict:
    return result_of("keep-current", config, code=code)


@pytest.fixture
def days(tmp_path: Path) -> None:
    """The rows of three days."""
    for number in range(3):
        day(tmp_path, number)


@pytest.mark.usefixtures("days")
def test_nights_train_compare_promote_score_and_watch(tmp_path: Path) -> None:
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    first = kept(night(tmp_path, day(fresh, 50)))
    assert (first["promotion"]["promoted"], first["promotion"]["version"], first["alarms"]) == (True, 1, [])
    assert (first["trained"]["n_samples"], first["scored"]["rows"], first["watched"]["rows"]) == (1200, 600, 600)
    assert re.fullmatch("day50-[0-9a-f]{8}-version-00001", first["watched"]["batch"])
    day(tmp_path, 3)
    second = kept(night(tmp_path, day(fresh, 51, shift=2.0), metric="average_precision"), code=3)
    decision = second["promotion"]["decision"]
    assert decision["metric"] == "average_precision"
    assert (second["promotion"]["version"], decision["rows"], decision["of"]) == (2, 600, "the test rows of the run")
    assert {alarm["column"] for alarm in second["alarms"]} >= {"c"}
    assert (tmp_path / "store" / "watch" / "index.html").exists()
    assert result_of("models", tmp_path / "store")["current"] == 2


@pytest.mark.usefixtures("days")
def test_a_file_with_other_rows_each_night_is_another_batch_of_the_same_version(tmp_path: Path) -> None:
    today, batches = tmp_path / "today.parquet", []
    for number in (50, 51, None):
        if number is not None:
            day(tmp_path, number).rename(today)
        result = kept(night(tmp_path, today, condition="better", margin=0.9))
        assert (result["promotion"]["version"], result["scored"]["rows"]) == (1, 600)
        batches.append(result["watched"]["batch"])
    assert batches[0] != batches[1] == batches[2]  # the same command again adds nothing


@pytest.mark.usefixtures("days")
def test_the_model_says_how_new_rows_are_read(tmp_path: Path) -> None:
    for number in range(3):
        rows = pd.read_parquet(tmp_path / f"day{number:02d}.parquet")
        rows.to_csv(tmp_path / f"day{number:02d}.csv", sep=";", index=False)
    config = night(tmp_path)
    content = yaml.safe_load(config.read_text())
    content["train"]["data"]["source"] |= {"source": f"{tmp_path}/day*.csv", "format": "csv", "separator": ";"}
    content["new"] = {"source": {"source": f"{tmp_path}/day02.csv", "format": "csv"}}
    config.write_text(yaml.safe_dump(content))
    assert kept(config)["watched"]["rows"] == 600


@pytest.mark.usefixtures("days")
def test_a_fit_starts_from_the_weights_in_use(tmp_path: Path) -> None:
    kept(night(tmp_path))
    options = {"window": None, "condition": "always", "margin": 0.0}
    warm, said = run("keep-current", night(tmp_path, **options), "--json")
    assert "the fit starts from the weights in use" in said
    cold = kept(night(tmp_path, **options, warm_start=False))
    started = json.loads(warm)
    objective = [night["trained"]["certificate"]["primal"] for night in (started, cold)]
    assert objective[0] == pytest.approx(objective[1], rel=0.02)
    assert started["trained"]["passes"] <= cold["trained"]["passes"]


@pytest.mark.usefixtures("days")
def test_two_never_run_at_once(tmp_path: Path) -> None:
    config = night(tmp_path)
    with lease(str(tmp_path / "store"), "another run"):
        assert "is in use by another run on" in run("keep-current", config, code=2)[1]
    assert kept(config)["promotion"]["version"] == 1
    assert read_store(str(tmp_path / "store")).current.version == 1


def configured(folder: Path, **changes: object) -> KeepCurrentConfig:
    content = yaml.safe_load(night(folder).read_text(encoding="utf-8"))
    return KeepCurrentConfig.model_validate(content).model_copy(update=changes)


@pytest.mark.usefixtures("days")
def test_the_newest_files_are_chosen(tmp_path: Path) -> None:
    for number in (3, 4):
        day(tmp_path, number)
    config = configured(tmp_path)
    chosen = with_newest_files(config).data
    assert [Path(file).name for file in chosen.source.source] == ["day02.parquet", "day03.parquet"]
    assert [Path(file).name for file in chosen.test.source.source] == ["day04.parquet"]
    everything = with_newest_files(config.model_copy(update={"window": None, "held_out": 2})).data
    assert (len(everything.source.source), len(everything.test.source.source)) == (3, 2)
    with pytest.raises(InputError, match=r"`held_out` takes all files of .* \(5\): wait"):
        with_newest_files(config.model_copy(update={"held_out": 5}))


@pytest.mark.parametrize(("changes", "message"), table_beside(__file__))
def test_wrong_configurations_are_refused_before_anything_is_done(tmp_path: Path, changes: dict, message: str) -> None:
    day(tmp_path, 0)
    assert message in run("keep-current", night(tmp_path, **changes), code=2)[1]
    assert not (tmp_path / "store").exists()
    assert not (tmp_path / "runs").exists()


# ---- on a real Prefect server: a night as a flow, and the automation by which an alarm starts one


@pytest.mark.slow
@pytest.mark.usefixtures("days")
def test_a_night_is_a_flow_and_an_alarm_starts_one(tmp_path: Path, prefect_server: str) -> None:
    from prefect.client.orchestration import get_client

    from flows.orchestration.flows import keep_current, watch
    from flows.watch import WatchConfig

    config = configured(tmp_path, store=str(tmp_path / "models" / "digits"))
    assert keep_current(config)["promotion"]["version"] == 1

    (deployment,) = [deployment for deployment in local_deployments() if deployment.flow_name == "keep-current"]
    assert deployment.concurrency_limit == 1
    served = deployment.apply()
    with get_client(sync_client=True) as client:
        (schedule,) = client.read_deployment_schedules(served)
        assert not schedule.active
        assert {a.key for a in client.read_artifacts()} >= {"keep-current"}

        moved = tmp_path / "moved"
        moved.mkdir()
        rows = {"source": {"source": str(day(moved, 9, shift=3.0)), "format": "parquet"}}
        watching = WatchConfig.model_validate({"model": config.store, "data": rows})
        time.sleep(2.0)  # automations are loaded by the server's trigger service

        def started() -> list[Any]:
            return [run for run in client.read_flow_runs() if run.deployment_id == served]

        assert started() == []
        assert watch(watching)["alarms"]
        (run,) = until(started)
        assert run.created_by.type == "AUTOMATION"
        assert "watch" in {a.key for a in client.read_artifacts()}
