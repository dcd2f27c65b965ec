"""The commands of the documentation run as they are printed."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import s3fs
from support.printed import differences, script
from support.s3_servers import MOCK, mock_server, new_connections, point_to

ROOT = Path(__file__).resolve().parents[1]
GUIDES = script("guides")
PAGES = ROOT / "docs" / "pages"
BLOCKS = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WITH_COMMANDS = [
    file
    for file in sorted(PAGES.rglob("*.md"))
    if BLOCKS.search(file.read_text(encoding="utf-8")) and file.parent.name != "examples"  # test_stories.py runs these
]

COMMANDS = (PAGES / "how-to" / "command-line.md").read_text(encoding="utf-8")
LONG = {"aucdist reproduce 000"}
"""These take an hour; the tests of benches and papers run small ones."""

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with the command `aucdist` and without a Prefect server."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PREFECT_API_URL", "")
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "prefect"))
    return tmp_path


def run(command: str) -> str:
    done = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", command], capture_output=True, text=True, timeout=1800, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("file", WITH_COMMANDS, ids=lambda file: file.stem)
def test_commands_of_a_page(file: Path, folder: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUCDIST_DATA", str(data_dir))  # so that nothing is downloaded
    printed = GUIDES.with_outputs_of_commands(GUIDES.name_of(file))
    assert differences(printed, file.read_text(encoding="utf-8")) == []


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[s3fs.S3FileSystem]:
    """The bucket of the page on the command line, on a mock of S3."""
    with mock_server() as endpoint, new_connections():
        point_to(monkeypatch, endpoint, *MOCK)
        fs = s3fs.S3FileSystem()
        fs.mkdir("bucket")
        yield fs


def test_listed_commands(folder, bucket, data_dir, monkeypatch):
    monkeypatch.setenv("AUCDIST_DATA", str(data_dir))
    prepare(folder)
    listed = re.findall(r"```text\n(.*?)```", COMMANDS, re.DOTALL)[0]
    commands = [line for line in re.findall(r"^[^#\n]+", listed, re.MULTILINE) if line.strip() not in LONG]
    assert len(commands) > 5
    for command in commands:
        run(command)


def prepare(folder: Path) -> None:
    """Put what the page speaks of where it says: clicks as files, two runs, and a run of its configuration."""
    random = np.random.default_rng(0)
    clicked = random.random(800) < 0.2
    clicks = pd.DataFrame(
        {"age": random.gamma(20.0 + 5 * clicked), "pages": random.poisson(3 + clicked), "clicked": clicked * 1}
    )
    clicks.to_csv(folder / "clicks.csv", index=False)
    clicks.drop(columns="clicked").to_csv(folder / "clicks-new.csv", index=False)
    # aucdist init makes clicks.yaml.
    page = (PAGES / "how-to" / "training-runs.md").read_text(encoding="utf-8")
    (folder / "of-the-page.yaml").write_text(re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)[0], encoding="utf-8")
    run("aucdist train of-the-page.yaml --set cluster=none --output made && mkdir runs && mv made/* runs/RUN")
    for name, lam in (("a", "1e-2"), ("b", "1e-1")):
        run(f"aucdist train digits --set cluster=none --set model.lam={lam} --output {name} && mv {name}/* runs/{name}")
