"""Each test of `aucdist init` works in a folder of its own."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def in_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
