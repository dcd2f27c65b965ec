"""A Prefect server that is not there, speaks another version or wants a password: one clear message, soon, and exit code 2."""

import http.server
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aucdist.errors import InputError
from flows.config.prefect_api import explained
from flows.train.config import load_train

SOON = 60  # seconds, of which importing takes most on a busy machine; the client itself would wait for minutes if it waited


@contextmanager
def server(version: str, status: int = 200) -> Iterator[str]:
    """Run something that answers as a Prefect server of this version does, or refuses with this status; give its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(version if self.path.endswith("version") else True).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{running.server_port}/api"
        finally:
            running.shutdown()
            thread.join()


def test_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "flows.cli", "train", "digits", "--set", "cluster=none", "--output", str(tmp_path)]
    environment = {**os.environ, "PREFECT_API_URL": "http://127.0.0.1:1/api"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SOON, check=False)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
    message = done.stderr.strip().splitlines()[-1]
    assert message.startswith("error: no Prefect server answers at http://127.0.0.1:1/api. Start one by `aucdist up`")


@pytest.mark.parametrize(
    ("version", "status", "message"),
    [
        ("2.20.1", 200, r"Prefect's server and the Prefect installed here do not fit.*server: 2\.20\.1"),
        ("3.8.8", 401, r"Prefect's server does not accept PREFECT_API_AUTH_STRING \(user:password\), or it is not set"),
    ],
)
def test_server_that_does_not_fit_is_named(tmp_path: Path, version: str, status: int, message: str) -> None:
    from prefect.settings import PREFECT_API_URL, temporary_settings

    from flows.orchestration.flows import train_auc

    config = load_train("digits", ["cluster=none"], str(tmp_path))
    with (
        server(version, status) as url,
        temporary_settings({PREFECT_API_URL: url}),
        pytest.raises(Exception, match=r"versions|401") as caught,
    ):
        train_auc(config)
    error = explained(caught.value)
    assert isinstance(error, InputError)
    assert re.search(message, str(error))
    assert list(tmp_path.iterdir()) == []
