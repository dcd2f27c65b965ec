"""The flow on a real Prefect server: the same figures as the plain run, and artifacts."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aucdist.errors import InputError
from flows.progress.console import LineObserver
from flows.train import run as pipeline
from flows.train.config import TrainConfig, load_train

SETTINGS = ["cluster=none", "blocks=2", "model.tol=0.05", "model.lam=0.01"]


@pytest.fixture(scope="module")
def server() -> Iterator[None]:
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=120):
        yield


def figures(result: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items() if key not in ("run", "seconds")}


@pytest.mark.usefixtures("server")
def test_flow_agrees_with_the_plain_run(tmp_path: Path) -> None:
    from prefect.client.orchestration import get_client

    from flows.train.flow import train_auc

    config = load_train("digits", SETTINGS, str(tmp_path))
    by_flow = train_auc(config)
    plain = pipeline.train(config, LineObserver(lambda text: None))
    assert figures(by_flow) == figures(plain)
    assert Path(by_flow["run"], "report.html").is_file()
    with get_client(sync_client=True) as client:
        artifacts = {a.key: a.data for a in client.read_artifacts()}
        tasks = [run.name for run in client.read_task_runs()]
    assert f"{by_flow['metrics']['test_auc']:.4f}" in str(artifacts["train-auc-summary"])
    assert "converged" in str(artifacts["train-auc-table"])
    assert str(artifacts["train-auc-roc"]).startswith("data:image/svg+xml;base64,")
    assert {name.rsplit("-", 1)[0] for name in tasks} == {
        "open data",
        "partition",
        "profile",
        "fit",
        "evaluate",
        "publish",
    }


@pytest.mark.usefixtures("server")
def test_wrong_input_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flows.train.flow import train_auc

    tried: list[object] = []

    def fail(*args: object) -> None:
        tried.append(args)
        raise InputError("no such file")

    monkeypatch.setattr("flows.train.run.open_source", fail)
    with pytest.raises(InputError, match="no such file"):
        train_auc(load_train("digits", SETTINGS, str(tmp_path / "runs")))
    assert len(tried) == 1
    assert list(tmp_path.iterdir()) == []


def lines_of_log(error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], str]:
    """Return what the runs' log says when a stage fails by this error, and the message of the flow's final state."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterName

    from flows.train.flow import train_auc

    def fail(*args: object) -> None:
        raise error("cannot read none.csv")

    monkeypatch.setattr("flows.train.run.open_source", fail)
    name = f"fails-by-{error.__name__}"
    records: list[logging.LogRecord] = []
    for logger in ("prefect.flow_runs", "prefect.task_runs"):
        monkeypatch.setattr(logging.getLogger(logger), "handle", handling(logging.getLogger(logger), records))
    with pytest.raises(error, match=r"cannot read none\.csv"):
        train_auc.with_options(flow_run_name=name)(load_train("digits", SETTINGS, str(tmp_path / "runs")))
    with get_client(sync_client=True) as client:
        only = FlowRunFilter(name=FlowRunFilterName(any_=[name]))
        (state,) = [run.state for run in client.read_flow_runs(flow_run_filter=only)]
    assert state is not None
    assert state.is_failed()
    form = logging.Formatter("%(name)s: %(message)s")
    return [line for record in records for line in form.format(record).splitlines()], str(state.message)


def handling(logger: logging.Logger, records: list[logging.LogRecord]) -> Any:
    """Return `Logger.handle` that also keeps the records that pass the logger's filters."""

    def handle(record: logging.LogRecord) -> None:
        if logger.filter(record):
            records.append(record)

    return handle


@pytest.mark.usefixtures("server")
def test_wrong_input_is_one_line_of_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines, message = lines_of_log(InputError, tmp_path, monkeypatch)
    found = [line for line in lines if "none.csv" in line]
    assert [line.partition(":")[0] for line in found] == ["prefect.task_runs", "prefect.flow_runs"]
    assert all("InputError: cannot read none.csv" in line for line in [*found, message])
    assert not any("Traceback" in line for line in lines)
    assert len(message.splitlines()) == 1


@pytest.mark.usefixtures("server")
def test_a_bug_keeps_its_traceback_in_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines, message = lines_of_log(ZeroDivisionError, tmp_path, monkeypatch)
    assert any(line.startswith("Traceback") for line in lines)
    assert any("in open_source" in line or "in fail" in line for line in lines)
    assert "ZeroDivisionError: cannot read none.csv" in message


@pytest.mark.usefixtures("server")
def test_store_that_failed_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flows.rows.source import open_source
    from flows.train.flow import train_auc

    tried: list[object] = []

    def fail_once(*args: Any) -> Any:
        tried.append(args)
        if len(tried) == 1:
            raise ConnectionResetError("in mid-body")
        return open_source(*args)

    monkeypatch.setattr("flows.train.run.open_source", fail_once)
    assert train_auc(load_train("digits", SETTINGS, str(tmp_path)))["certificate"]["status"] == "converged"
    assert len(tried) == 2


def test_parameters_make_a_form() -> None:
    from flows.train.flow import train_auc

    schema = train_auc.parameters.model_dump()
    assert schema["required"] == ["config"]
    assert set(TrainConfig.model_fields) == set(schema["definitions"]["TrainConfig"]["properties"])


CHECKPOINTS = ["model.tol=0", "model.lam=1e-5", "model.max_passes=60", "checkpoint={rounds: 1}"]


def resumed(lines: list[str]) -> list[str]:
    return [line for line in lines if "resumes from the checkpoint of round" in line]


@pytest.mark.usefixtures("server")
def test_flow_with_retries_resumes_from_its_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flows.train import flow

    lines: list[str] = []

    class FailsOnce(LineObserver):
        def round(self, record: Any, tol: float) -> None:
            if record["round"] == 5 and not resumed(lines):
                raise ZeroDivisionError("a bug that passes")

    monkeypatch.setattr(flow, "log_observer", lambda write: FailsOnce(lines.append))
    settings = [*SETTINGS, *CHECKPOINTS]
    result = flow.train_auc.with_options(retries=1)(load_train("digits", settings, str(tmp_path)))
    assert resumed(lines) == ["  resumes from the checkpoint of round 4"]
    assert [Path(result["run"])] == list(tmp_path.iterdir())


def command(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `aucdist` in a process of its own, with this test's server as its API."""
    from prefect.settings import PREFECT_API_URL

    environment = {
        **os.environ,
        "PREFECT_API_URL": PREFECT_API_URL.value(),
        "PYTHONPATH": str(Path(__file__).parents[3]),
    }
    whole = [sys.executable, "-m", "flows.cli", *args]
    return subprocess.run(whole, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.usefixtures("server")
def test_command_runs_the_flow_where_an_api_is_configured(tmp_path: Path) -> None:
    args = [part for setting in SETTINGS for part in ("--set", setting)]
    done = command("train", "digits", "--json", *args, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["certificate"]["status"] == "converged"
    assert "Flow run 'digits-all-pairs-lam1e-2'" in done.stderr


@pytest.mark.usefixtures("server")
@pytest.mark.slow
def test_command_shows_no_traceback_of_prefect(tmp_path: Path) -> None:
    done = command("train", "digits", "--set", "data.positive=77", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: digits: positive class '77'")
    assert list(tmp_path.iterdir()) == []
