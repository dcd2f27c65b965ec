"""Settings for the tests of the flows: quiet, and out of reach of the user's own Prefect."""

import atexit
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import prefect_servers
from support.canary import KEY, PASSWORD, TOKEN, client_of
from support.s3_servers import mock_server, new_bucket, new_connections, point_to
from support.web_server import web_server

from aucdist.data.storage import faults

HOME = Path(tempfile.mkdtemp(prefix="aucdist-prefect-"))
atexit.register(shutil.rmtree, HOME, ignore_errors=True)
os.environ.update(DO_NOT_TRACK="1", PREFECT_SERVER_ANALYTICS_ENABLED="false", PREFECT_HOME=str(HOME))
os.environ.pop("PREFECT_API_URL", None)


@pytest.fixture(autouse=True, scope="session")
def without_baselines() -> Iterator[None]:
    """Fit nothing besides the model: `tests/flows/train/test_train_run.py` fits what stands beside it once."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("flows.train.run.baselines", lambda rows, observer: [])
        yield


@pytest.fixture
def on_shared_workers(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs on a local cluster take the workers that all tests share; `test_train_run.py` starts some of its own."""
    from distributed import Client

    def client(workers: int = 2, threads: int = 1, memory_limit: str = "auto") -> Client:
        assert (workers, threads) == (2, 1)
        return Client(cluster)

    monkeypatch.setattr("aucdist.engine.dask.local_client", client)


@pytest.fixture
def quick() -> list[str]:
    """Settings that make the digits a matter of a moment: one process, a coarse gap."""
    settings = ("cluster=none", "blocks=2", "model.tol=0.05", "model.lam=0.01")
    return [part for setting in settings for part in ("--set", setting)]


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    """A web server that asks for a password."""
    with web_server(PASSWORD) as address:
        yield address


@pytest.fixture
def prefect_server(tmp_path: Path) -> Iterator[str]:
    with prefect_servers.prefect_server(tmp_path / "home") as url:
        yield url


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A mock of S3."""
    with mock_server() as endpoint:
        yield endpoint


@pytest.fixture
def place(endpoint, web, tmp_path, monkeypatch, caplog):
    """A folder to work in, with everything secret that a run can be given, and a log of all that is written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUCDIST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("AUCDIST_LOG", "")
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    for patience in ("RETRY_SECONDS", "LONG_RETRY_SECONDS"):
        monkeypatch.setattr(faults, patience, 0.2)
    point_to(monkeypatch, endpoint, "AKIACANARY", KEY)
    caplog.set_level(logging.DEBUG)
    # What botocore says to those who ask for its own log are the headers of its requests, and a token is one of them.
    for library in ("botocore", "aiobotocore", "urllib3", "numba", "matplotlib"):  # the last two only talk much
        caplog.set_level(logging.INFO, logger=library)
    with new_connections(), new_bucket(client_of(endpoint), "canary"):
        yield tmp_path
