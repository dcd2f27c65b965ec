"""SIGKILL in mid-work leaves something; the next command to the same output names it in one line, and removes nothing else."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.command_line import run

from flows.run_folder.folder import leftover_line, run_folder, unfinished_runs

# Each command stops where it has just written something, as if it took long, and says so. A child of one process that has
# imported everything runs each of them: the imports take longest.
PAUSED = """
import json, os, signal, sys, time
import aucdist.batch_scoring, aucdist.data.shards.sharding, flows.score, flows.shard, flows.train.run
from flows.cli import app

def pause(*args, **more):
    os.write(writing, b"paused")
    time.sleep(600)

flows.train.run.fit = aucdist.data.shards.sharding.gather = pause
of_part = aucdist.batch_scoring.score_part
aucdist.batch_scoring.score_part = lambda *args, **more: (of_part(*args, **more), pause())
for args in json.loads(sys.argv[1]):
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        app(args)
    os.close(writing)
    assert os.read(reading, 6) == b"paused", args  # nothing, if the child ended
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
"""

TRAIN = ["train", "rows.yaml", "--set", "cluster=none", "--output", "out"]
COMMANDS = {
    "train": (TRAIN, ".*.partial", "the same `aucdist train` begins another folder"),
    "shard": (["shard", "rows.csv", "out", "--set", "label=clicked"], "_sharding-*", "this run resumes it"),
    "score": (["score", "model/*/model", "rows.csv", "out"], "_scoring.json", "the command that began it resumes it"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with rows and a model."""
    folder, random = tmp_path_factory.mktemp("killed"), np.random.default_rng(0)
    rows = pd.DataFrame(random.normal(size=(60, 2)), columns=["a", "b"]).assign(clicked=np.arange(60) % 4 == 0)
    rows.replace({True: "yes", False: "no"}).to_csv(folder / "rows.csv", index=False)
    source = "{source: rows.csv, format: csv, label: clicked, positive: 'yes'}"
    (folder / "rows.yaml").write_text(f"name: rows\ndata: {{source: {source}}}\nmodel: {{lam: 0.1, tol: 0.1}}\n")
    run("train", str(folder / "rows.yaml"), *TRAIN[2:-1], str(folder / "model"))
    return folder


def expanded(folder: Path, args: list[str]) -> list[str]:
    return [str(next(folder.glob(arg))) if "*" in arg else arg for arg in args]


@pytest.fixture(scope="module")
def killed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The commands, all of them killed in mid-work, with the folders that they wrote to."""
    lines = {
        command: [str(tmp_path_factory.mktemp(command) / "out") if arg == "out" else arg for arg in args]
        for command, (args, _, _) in COMMANDS.items()
    }
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "PREFECT_API_URL": ""}
    started = json.dumps([expanded(folder, args) for args in lines.values()])
    command = [sys.executable, "-c", PAUSED, started]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return lines


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_killed_run_left_is_named_by_the_next(
    command: str, folder: Path, killed: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    _, left, resumes = COMMANDS[command]
    args = killed[command]
    (out,) = (Path(arg) for arg in args if arg.endswith("/out"))
    (found,) = out.glob(left)
    foreign = out / ".notes.partial"
    if command == "train":  # the others refuse folders with files of somebody else
        foreign.write_text("mine")
    lines = [line for line in run(*expanded(folder, args))[1].splitlines() if "unfinished" in line]
    assert len(lines) == 1
    assert str(found if command != "score" else out) in lines[0]
    assert resumes in lines[0]
    assert "`rm -r " in lines[0]
    if command == "train":
        assert found.is_dir()
        assert foreign.read_text() == "mine"
        assert str(foreign) not in lines[0]
    else:  # it was resumed, and is done
        assert "unfinished" not in run(*expanded(folder, args))[1]


def test_a_folder_in_which_a_run_writes_is_not_unfinished(tmp_path: Path) -> None:
    with run_folder(str(tmp_path), "first") as first:
        assert unfinished_runs(str(tmp_path), "aucdist train") is None
        first.publish()
    assert unfinished_runs(str(tmp_path), "aucdist train") is None
    assert unfinished_runs("s3://bucket/runs", "aucdist train") is None
    assert unfinished_runs(str(tmp_path / "absent"), "aucdist train") is None


def test_many_leftovers_are_one_line_with_a_command_that_can_be_copied() -> None:
    line = leftover_line([f"a b/{i}" for i in range(5)], "nobody resumes them")
    assert line == (
        "unfinished: a b/0, a b/1, a b/2 and 2 more; nobody resumes them; once no run writes there, "
        "`rm -r 'a b/0' 'a b/1' 'a b/2'` removes them"
    )
    assert "rm -r" not in leftover_line(["s3://bucket/set/_sharding-0"], "this run resumes it")
