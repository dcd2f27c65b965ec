"""`aucdist up`: what it serves, when it refuses, and that it leaves nothing behind."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.processes import free_port

from aucdist.errors import InputError
from flows import up as up


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, and no settings of Prefect but those of the tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "home"))
    return tmp_path


def test_every_flow_is_served() -> None:
    served = {f"{d.flow_name}/{d.name}" for d in up.local_deployments()}
    files = Path(up.__file__).parent.rglob("*.py")
    flows = {name for file in files for name in re.findall(r'^@flow\(name="([^"]+)"', file.read_text(), re.MULTILINE)}
    assert {"train-auc", "score", "reproduce"} <= flows
    assert served == {f"{flow}/local" for flow in flows}


def test_second_server_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    with pytest.raises(InputError, match=r"Prefect already has a server \(PREFECT_API_URL\)"):
        up.up(up.UpConfig(port=free_port()))


def test_port_that_is_taken_is_refused(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InputError, match=r"port \d+ is in use: name another one with --port"):
            up.up(up.UpConfig(port=taken.getsockname()[1]))


def test_env_of_a_server_that_was_killed_is_removed(folder: Path) -> None:
    port = free_port()
    Path(".env").write_text(f"{up.ENV_FILE_MARK}\nPREFECT_API_URL=http://127.0.0.1:{port}/api\n")
    up._check_single_server(port)
    assert not Path(".env").exists()


def test_env_that_is_the_users_own_is_left_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path(".env").write_text("MINE=1\n")
    with up._env_file("http://127.0.0.1:9/api"):
        assert os.environ["PREFECT_API_URL"] == "http://127.0.0.1:9/api"
    assert Path(".env").read_text() == "MINE=1\n"
    assert "PREFECT_API_URL" not in os.environ
    assert "export PREFECT_API_URL=http://127.0.0.1:9/api" in capsys.readouterr().out


@pytest.mark.slow
def test_second_command_is_a_run(folder: Path) -> None:
    """In two terminals: `aucdist up`, then `prefect deployment run train-auc/local --watch`."""
    port = str(free_port())
    with (folder / "up.log").open("wb") as log:
        serving = subprocess.Popen([sys.executable, "-m", "flows.cli", "up", "--port", port], stdout=log, stderr=log)
    try:
        end = time.monotonic() + 180
        while b"train-auc/local --watch" not in (folder / "up.log").read_bytes():
            assert time.monotonic() < end, (folder / "up.log").read_text()
            time.sleep(0.5)
        command = [sys.executable, "-m", "prefect", "deployment", "run", "train-auc/local", "--watch"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "digits-all-pairs-lam1e-3" in done.stdout
    finally:
        serving.send_signal(signal.SIGINT)
        assert serving.wait(timeout=120) == 0
    assert len(list((folder / "runs").glob("*/metrics.json"))) == 1
    assert not (folder / ".env").exists()
