"""Flows on a real Prefect server, one for this file: the figures and bytes of the plain runs, artifacts, and no secret."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.canary import QUICK, SECRETS, check, configuration, rows_at
from support.command_line import contents, sets
from support.prefect_servers import prefect_server
from support.runs import QUIET, Following, load_train

from aucdist.errors import InputError
from flows import data_sets, score as scoring
from flows.data_sets import ShardConfig
from flows.score import ScoreConfig
from flows.train import run as pipeline

pytestmark = pytest.mark.usefixtures("server")
SETTINGS = ["cluster=none", "blocks=2", "model.tol=0.05", "model.lam=0.01"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A server and its folder: a start takes ten seconds of computing, so it is the only one."""
    home = tmp_path_factory.mktemp("server")
    with prefect_server(home):
        yield home


def figures(result: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items() if key not in ("run", "seconds")}


def test_flow_agrees_with_the_plain_run(tmp_path: Path) -> None:
    from prefect.client.orchestration import get_client

    from flows.orchestration.flows import train_auc

    config = load_train("digits", SETTINGS, str(tmp_path))
    by_flow = train_auc(config)
    plain = pipeline.train(config, QUIET)
    assert figures(by_flow) == figures(plain)
    assert Path(by_flow["run"], "report.html").is_file()
    with get_client(sync_client=True) as client:
        artifacts = {a.key: a.data for a in client.read_artifacts()}
        tasks = [run.name for run in client.read_task_runs()]
    assert f"{by_flow['metrics']['test_auc']:.4f}" in str(artifacts["train-auc-summary"])
    assert "converged" in str(artifacts["train-auc-summary"])
    assert {name.rsplit("-", 1)[0] for name in tasks} == {
        "open data", "partition", "profile", "fit", "evaluate", "baselines", "publish",
    }  # fmt: skip


def test_flows_of_shards_and_scores_agree_with_the_plain_runs(tmp_path: Path) -> None:
    from prefect.client.orchestration import get_client

    from flows.orchestration.flows import score, shard_data

    def shard_config(target: str) -> ShardConfig:
        return ShardConfig(name="digits", target=str(tmp_path / target), rows_per_shard=500)

    by_flow, plain = shard_data(shard_config("a")), data_sets.shard(shard_config("b"), QUIET)
    assert by_flow["manifest"] == plain["manifest"]
    assert contents(tmp_path / "a") == contents(tmp_path / "b")

    settings = ["cluster=none", "blocks=2", "model.tol=0.05", "model.lam=0.01", "data.test=null"]
    model = pipeline.train(load_train("digits", settings, str(tmp_path / "runs")), QUIET)["run"] + "/model"

    def score_config(output: str) -> ScoreConfig:
        return ScoreConfig(name="digits", model=model, output=str(tmp_path / output))

    assert score(score_config("c"))["rows"] == scoring.score(score_config("d"), QUIET)["rows"] == 1797
    assert contents(tmp_path / "c")["part-00000.parquet"] == contents(tmp_path / "d")["part-00000.parquet"]
    with get_client(sync_client=True) as client:
        artifacts = {a.key for a in client.read_artifacts()}
        tasks = {run.name.rsplit("-", 1)[0] for run in client.read_task_runs()}
    assert {"shard-data", "score"} <= artifacts
    assert {"look at the files", "assign rows to shards", "write shards", "write the manifest", "score"} <= tasks


def lines_of_log(error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], str, int]:
    """Return what the runs' log says when a stage fails by this error, the flow's last message, and how often it was tried."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterName

    from flows.orchestration.flows import train_auc

    tried: list[object] = []

    def fail(*args: object) -> None:
        tried.append(args)
        raise error("cannot read none.csv")

    monkeypatch.setattr("flows.train.run.open_source", fail)
    name = f"fails-by-{error.__name__}"
    records: list[logging.LogRecord] = []
    for logger in map(logging.getLogger, ("prefect.flow_runs", "prefect.task_runs")):
        monkeypatch.setattr(logger, "handle", lambda record, own=logger: own.filter(record) and records.append(record))
    with pytest.raises(error, match=r"cannot read none\.csv"):
        train_auc.with_options(flow_run_name=name)(load_train("digits", SETTINGS, str(tmp_path / "runs")))
    with get_client(sync_client=True) as client:
        only = FlowRunFilter(name=FlowRunFilterName(any_=[name]))
        (state,) = [run.state for run in client.read_flow_runs(flow_run_filter=only)]
    assert state.is_failed()
    form = logging.Formatter("%(name)s: %(message)s")
    return [line for record in records for line in form.format(record).splitlines()], str(state.message), len(tried)


def test_wrong_input_is_one_line_of_the_log_and_not_tried_again(tmp_path, monkeypatch):
    lines, message, tries = lines_of_log(InputError, tmp_path, monkeypatch)
    named = [line for line in lines if "none.csv" in line]
    assert [line.partition(":")[0] for line in named] == ["prefect.task_runs", "prefect.flow_runs"]
    assert all("InputError: cannot read none.csv" in line for line in [*named, message])
    assert not any("Traceback" in line for line in lines)
    assert len(message.splitlines()) == 1
    assert tries == 1
    assert list(tmp_path.iterdir()) == []


def test_a_bug_keeps_its_traceback_in_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines, message, _ = lines_of_log(ZeroDivisionError, tmp_path, monkeypatch)
    assert any(line.startswith("Traceback") for line in lines)
    assert any("in open_source" in line or "in fail" in line for line in lines)
    assert "ZeroDivisionError: cannot read none.csv" in message


CHECKPOINTS = ["model.tol=0", "model.lam=1e-5", "model.max_passes=16", "checkpoint={rounds: 1}"]


def resumed(lines: list[str]) -> list[str]:
    return [line for line in lines if "resumes from the checkpoint of round" in line]


def test_flow_with_retries_resumes_from_its_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flows.orchestration import flows

    def fail_once(record: Any) -> None:
        if record["round"] == 5 and not resumed(observer.lines):
            raise ZeroDivisionError("a bug that passes")

    observer = Following(fail_once)
    monkeypatch.setattr(flows, "log_observer", lambda write: observer)
    settings = [*SETTINGS, *CHECKPOINTS]
    result = flows.train_auc.with_options(retries=1)(load_train("digits", settings, str(tmp_path)))
    assert resumed(observer.lines) == ["  resumes from the checkpoint of round 4"]
    assert [Path(result["run"])] == list(tmp_path.iterdir())


def in_another_process(code: str, *args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run Python with this test's server as its API, as Prefect settles early which one it talks to."""
    from prefect.settings import PREFECT_API_URL

    above = {"PREFECT_API_URL": PREFECT_API_URL.value(), "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", code, *args]
    return subprocess.run(command, cwd=cwd, env=os.environ | above, capture_output=True, text=True, check=False)


IN_TURN = """
import json, sys
from flows.cli import app
for args in json.loads(sys.argv[1]):
    assert not app(args, standalone_mode=False)  # the exit code, if any
"""


def test_commands_run_the_flows_where_an_api_is_configured_and_prefect_keeps_no_secret(place, web, caplog, server):
    output = ["--output", "s3://canary/prefect"]
    commands = {
        "train-auc": ["train", configuration(web), *sets(*QUICK), *output, "--json"],
        "shard-data": ["shard", rows_at(web), "s3://canary/prefect-shards"],
    }
    # In one process for all: its start takes longest.
    done = in_another_process(IN_TURN, json.dumps(list(commands.values())), cwd=place)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[0])["certificate"]["status"] == "converged"
    assert "Flow run 'canary-all-pairs-lam1e-1'" in done.stderr
    database = b"".join(path.read_bytes() for path in server.rglob("*") if path.is_file())
    for flow in commands:
        assert flow.encode() in database
    for what, secret in SECRETS.items():
        assert secret.encode() not in database, what
    check(done.stdout + done.stderr, caplog, place)


@pytest.mark.slow
def test_command_shows_no_traceback_of_prefect(tmp_path: Path) -> None:
    code = "from flows.cli import app; app()"
    done = in_another_process(code, "train", "digits", "--set", "data.positive=77", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: digits: positive class '77'")
    assert list(tmp_path.iterdir()) == []
