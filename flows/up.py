"""Start a Prefect server on this machine and serve the local deployments of all flows."""

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
import yaml

from aucdist.errors import InputError, Json, RunError
from flows.config.cluster import API_VARIABLE, api_configured
from flows.config.loading import Strict, configs_folder

if TYPE_CHECKING:
    from prefect.deployments.runner import RunnerDeployment

HOST, PORT = "127.0.0.1", 4200
START_SECONDS = 120
ENV_FILE = Path(".env")
ENV_FILE_MARK = "# made by `aucdist up`, which removes it when it ends"


class UpConfig(Strict):
    """A Prefect server on this machine."""

    port: int = PORT
    """The port of the server. Only this machine can reach it."""


def up(config: UpConfig) -> Json:
    """Start a server and serve the local deployments until the process is interrupted.

    While the server runs, the file ``.env`` has its address, so that ``prefect`` and ``aucdist`` find it in this folder.

    Raises
    ------
    InputError
        If a server is already configured, or the port is in use.
    RunError
        If the server does not start.
    """
    port = config.port
    _check_single_server(port)
    url = f"http://{HOST}:{port}"
    with _server(port), _env_file(f"{url}/api"):
        from prefect import serve

        served = local_deployments()
        click.echo(f"Prefect is up at {url}, until Ctrl-C. Try, in another terminal in this folder:")
        click.echo("    prefect deployment run train-auc/local --watch")
        click.echo("    aucdist train digits")
        click.echo(f"Deployments: {', '.join(f'{d.flow_name}/{d.name}' for d in served)}")
        serve(*served, print_starting_message=False)
    return {}


def _check_single_server(port: int) -> None:
    if ENV_FILE.is_file() and ENV_FILE.read_text(encoding="utf-8").startswith(ENV_FILE_MARK) and not _in_use(port):
        ENV_FILE.unlink()  # a process that was killed has left it
    if api_configured():
        raise InputError(
            f"Prefect already has a server ({API_VARIABLE}): add a worker to it by `prefect worker start --pool local --type "
            "process`"
        )
    if _in_use(port):
        raise InputError(f"port {port} is in use: name another one with --port")


def local_deployments() -> list["RunnerDeployment"]:
    """Return the deployments of `prefect.yaml` for the pool `local`."""
    from prefect.deployments.runner import RunnerDeployment
    from prefect.events import DeploymentEventTrigger
    from prefect.schedules import Cron

    entries = yaml.safe_load(deployments_file().read_text(encoding="utf-8"))["deployments"]
    return [
        RunnerDeployment.from_entrypoint(
            entry["entrypoint"],
            name=entry["name"],
            parameters=entry.get("parameters", {}),
            tags=entry["tags"],
            schedules=[
                Cron(schedule["cron"], timezone=schedule["timezone"], active=schedule["active"])
                for schedule in entry.get("schedules", [])
            ],
            concurrency_limit=entry.get("concurrency_limit"),
            triggers=[DeploymentEventTrigger.model_validate(trigger) for trigger in entry.get("triggers", [])],
        )
        for entry in entries
        if entry["work_pool"]["name"] == "local"
    ]


def deployments_file() -> Path:
    """Return the file of all deployments. It is that of the installed package, or that of the checkout."""
    installed = configs_folder("prefect") / "prefect.yaml"
    return installed if installed.is_file() else configs_folder("").parent / "infra/prefect/prefect.yaml"


def _in_use(port: int) -> bool:
    with socket.socket() as s:
        s.settimeout(2)
        return s.connect_ex((HOST, port)) == 0


@contextmanager
def _server(port: int) -> Iterator[None]:
    """Run a server while the context lasts."""
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", HOST, "--port", str(port)]
    quiet = {
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_LOGGING_LEVEL": "WARNING",
    }
    # The server has its own session. Ctrl-C then ends it after the runs, so that they can report their final state to it.
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(command, env={**os.environ, **quiet}, stdout=log, stderr=log, start_new_session=True)
        try:
            end = time.monotonic() + START_SECONDS
            while time.monotonic() < end and server.poll() is None:
                try:
                    with urllib.request.urlopen(f"http://{HOST}:{port}/api/health", timeout=5):
                        break
                except OSError:
                    time.sleep(0.2)
            else:
                log.seek(0)
                last = log.read().decode(errors="replace").strip().splitlines()[-5:]
                raise RunError(
                    "the Prefect server did not start: " + "\n".join(last or [f"no answer within {START_SECONDS} s"])
                )
            yield
        finally:
            server.terminate()
            try:
                server.wait(timeout=20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


@contextmanager
def _env_file(api: str) -> Iterator[None]:
    """Set the URL of the API for this process and its children, and in ``.env`` for other processes that start in this folder."""
    os.environ[API_VARIABLE] = api
    is_new = not ENV_FILE.exists()
    if is_new:
        ENV_FILE.write_text(f"{ENV_FILE_MARK}\n{API_VARIABLE}={api}\n", encoding="utf-8")
    else:
        click.echo(
            "This folder has a file .env, which stays as it is. In each terminal that uses Prefect, run: "
            f"export {API_VARIABLE}={api}"
        )
    try:
        yield
    finally:
        del os.environ[API_VARIABLE]
        if is_new:
            ENV_FILE.unlink(missing_ok=True)
