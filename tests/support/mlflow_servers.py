"""MLflow's own tracking server with a registry, on a port of this machine, for the tests that MLflow is installed for."""

import importlib.metadata
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.processes import free_port

SECONDS = 120


def server_installed() -> bool:
    """Return whether MLflow's server can be started: `mlflow-skinny` alone, which the extra brings, has none."""
    try:
        importlib.metadata.distribution("mlflow")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


@contextmanager
def mlflow_server(folder: Path) -> Iterator[str]:
    """Start a server whose files are in a folder, and yield its address."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    store = f"sqlite:///{folder / 'mlflow.db'}"
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", store, "--artifacts-destination", str(folder / "artifacts")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
    environment |= {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)
        try:
            deadline = time.monotonic() + SECONDS
            while not _answers(url):
                assert process.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < deadline, (folder / "log").read_text()
                time.sleep(0.2)
            yield url
        finally:
            os.killpg(process.pid, 15)
            process.wait(SECONDS)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
