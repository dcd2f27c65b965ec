"""On a real Prefect server: a schedule starts a run, the run is cancelled in mid-fit, and a retry resumes it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.processes import until
from support.runs import load_train

SETTINGS = [
    "cluster=none", "blocks=2", "model.lam=1e-5", "model.tol=0", "model.max_passes=60", "checkpoint={rounds: 1}",
]  # fmt: skip

# As `aucdist up` does it, with a pause after each round while the file `slow` is here.
SERVE = """
import json, sys
from prefect import serve
from prefect.deployments.runner import RunnerDeployment

parameters = {"config": json.loads(sys.argv[1])}
serve(RunnerDeployment.from_entrypoint("support.slow_train.train_auc", name="local", parameters=parameters))
"""


@contextmanager
def serving(parameters: str, folder: Path, api: str) -> Iterator[psutil.Process]:
    """Serve a deployment of the flow in a process of its own, in this folder."""
    tests = Path(__file__).parents[2]
    more = {"PREFECT_API_URL": api, "PYTHONPATH": f"{tests}{os.pathsep}{os.environ.get('PYTHONPATH', tests.parent)}"}
    with (folder / "serve.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", SERVE, parameters], cwd=folder, stdout=log, stderr=log,
            env={**os.environ, **more, "PREFECT_RUNNER_POLL_FREQUENCY": "1"},
        )  # fmt: skip
    try:
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.slow
def test_scheduled_run_is_cancelled_and_retried(tmp_path: Path, prefect_server: str) -> None:
    """By the requests of `prefect deployment schedule create`, `prefect flow-run cancel` and `prefect flow-run retry`."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.objects import State, StateType
    from prefect.client.schemas.schedules import construct_schedule
    from prefect.exceptions import ObjectNotFound
    from prefect.states import Scheduled

    here, log = tmp_path / "here", tmp_path / "here" / "serve.log"
    here.mkdir()
    (here / "slow").touch()
    parameters = load_train("digits", SETTINGS, "runs").model_dump_json(exclude_unset=True)
    with serving(parameters, here, prefect_server) as server, get_client(sync_client=True) as client:

        def deployment() -> Any:
            try:
                return client.read_deployment_by_name("train-auc/local")
            except ObjectNotFound:
                return None

        def run_in(*states: StateType) -> Any:
            return next((r for r in client.read_flow_runs() if r.auto_scheduled and r.state_type in states), None)

        served = until(deployment, log).id
        # If the server is too busy to see it by then, the run starts 100 seconds later.
        soon = datetime.now(UTC) + timedelta(seconds=8)
        client.create_deployment_schedules(served, [(construct_schedule(interval=100, anchor_date=soon), True)])
        run = until(lambda: run_in(StateType.RUNNING), log)
        for schedule in client.read_deployment_schedules(served):
            client.delete_deployment_schedule(served, schedule.id)
        until(lambda: list(here.glob("runs/.checkpoints/*/checkpoint-*")), log)

        client.set_flow_run_state(run.id, State(type=StateType.CANCELLING))
        until(lambda: client.read_flow_run(run.id).state.name in ("Cancelled", "Completed"), log)
        assert client.read_flow_run(run.id).state.name == "Cancelled"
        until(lambda: not server.children(recursive=True), log)
        assert [path.name for path in (here / "runs").iterdir()] == [".checkpoints"]

        (here / "slow").unlink()
        client.set_flow_run_state(run.id, Scheduled(message="as by the command"), force=True)
        until(lambda: client.read_flow_run(run.id).state.name == "Completed", log)
    assert "resumes from the checkpoint of round" in log.read_text(encoding="utf-8")
    (folder,) = (here / "runs").iterdir()
    assert (folder / "report.html").is_file()
