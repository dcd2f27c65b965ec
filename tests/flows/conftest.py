"""Settings for the tests of the flows: quiet, and out of reach of the user's own Prefect."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from support.figures import render_only

HOME = Path(tempfile.mkdtemp(prefix="aucdist-prefect-"))
atexit.register(shutil.rmtree, HOME, ignore_errors=True)
os.environ.update(DO_NOT_TRACK="1", PREFECT_SERVER_ANALYTICS_ENABLED="false", PREFECT_HOME=str(HOME))
os.environ.pop("PREFECT_API_URL", None)


@pytest.fixture(autouse=True)
def figures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the figures of pages unrendered, but for tests that ask for `rendered`; fixtures of modules render theirs."""
    if "rendered" not in request.fixturenames:
        render_only(monkeypatch)


@pytest.fixture
def rendered() -> None:
    """Let the pages of this test have their figures."""


@pytest.fixture
def quick() -> list[str]:
    """Settings that make the digits a matter of a moment: one process, a coarse gap."""
    settings = ("cluster=none", "blocks=2", "model.tol=0.05", "model.lam=0.01")
    return [part for setting in settings for part in ("--set", setting)]
