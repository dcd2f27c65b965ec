"""The run folder appears whole or not at all, and what a killed command left is named by the next, in one line."""

import errno
import json
import re
import shutil
from pathlib import Path

import fsspec
import numpy as np
import pandas as pd
import pytest
from support.command_line import run
from support.forked_workers import start_program

from aucdist.data.storage import faults
from aucdist.errors import InputError, RunError
from flows.config.model import ModelConfig
from flows.run_folder.folder import configuration_of, data_config, fit_name, run_folder, unfinished_runs


def test_published_by_name(tmp_path: Path) -> None:
    output = tmp_path / "a" / "runs"
    with run_folder(str(output), "one") as folder:
        (folder.draft / "metrics.json").write_text("{}")
        assert not (output / "one").exists()
        folder.publish()
    assert folder.url == str(output / "one")
    assert [p.relative_to(output).as_posix() for p in output.rglob("*")] == ["one", "one/metrics.json"]


def test_nothing_is_left_unless_published_but_folders_that_were_there(tmp_path: Path) -> None:
    with run_folder(str(tmp_path / "a" / "runs"), "one") as folder:
        (folder.draft / "half.json").write_text("{")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "runs").mkdir()
    with run_folder(str(tmp_path / "runs"), "one"):
        pass
    assert list(tmp_path.rglob("*")) == [tmp_path / "runs"]


def test_a_run_whose_name_is_taken_leaves_the_work_of_the_other(tmp_path: Path) -> None:
    with run_folder(str(tmp_path), "same") as first:
        (first.draft / "kept").write_text("work")
        with pytest.raises(InputError, match="already exists"), run_folder(str(tmp_path), "same"):
            pass
        assert (first.draft / "kept").read_text() == "work"
        first.publish()
    with run_folder(str(tmp_path), "same") as second:
        (second.draft / "new").write_text("")
        with pytest.raises(RunError, match=r"the run is lost: cannot create .* --output"):
            second.publish()
    assert [path.name for path in (tmp_path / "same").iterdir()] == ["kept"]
    assert [path.name for path in tmp_path.iterdir()] == ["same"]


@pytest.mark.parametrize("where", ["", "memory://runs-of-full-disk"])
def test_a_full_disk_is_named(tmp_path: Path, where: str) -> None:
    message = r"no space is left in .*name another folder with --output"
    with pytest.raises(RunError, match=message), run_folder(where or str(tmp_path / "out"), "c"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert not (tmp_path / "out").exists()


def test_file_url(tmp_path: Path) -> None:
    with run_folder(f"file://{tmp_path}/with%20space", "one") as folder:
        folder.publish()
    assert (tmp_path / "with space" / "one").is_dir()


def test_remote_store() -> None:
    fs = fsspec.filesystem("memory")
    with run_folder("memory://runs/", "one") as folder:
        (folder.draft / "model").mkdir()
        (folder.draft / "model" / "weights.npy").write_bytes(b"w")
        (folder.draft / "metrics.json").write_text("{}")
        assert fs.find("/runs") == []
        folder.publish()
    assert folder.url == "memory://runs/one"
    assert fs.find("/runs") == ["/runs/one/metrics.json", "/runs/one/model/weights.npy"]
    fs.rm("/runs", recursive=True)


def test_remote_store_that_breaks_while_uploading(monkeypatch: pytest.MonkeyPatch) -> None:
    fs = fsspec.filesystem("memory")
    put = type(fs).put_file
    seen: list[str] = []

    def break_at_the_last(self: object, source: str, target: str, **kwargs: object) -> None:
        seen.append(Path(target).name)
        if len(seen) == 2:
            raise ConnectionResetError
        put(self, source, target, **kwargs)

    monkeypatch.setattr(type(fs), "put_file", break_at_the_last)
    monkeypatch.setattr(faults, "LONG_RETRY_SECONDS", 0.0)
    with run_folder("memory://broken", "one") as folder:
        for name in ("metrics.json", "config.yaml"):
            (folder.draft / name).write_text("{}")
        with pytest.raises(RunError, match=r"cannot write memory://broken/one: .*cannot be reached") as caught:
            folder.publish()
    assert seen == ["config.yaml", "metrics.json"]  # the metrics last
    assert fs.find("/broken") == []
    kept = Path(
        re.search(r"The run is complete in (.*): copy this folder to memory://broken/one", str(caught.value))[1]
    )
    assert sorted(path.name for path in kept.iterdir()) == ["config.yaml", "metrics.json"]
    shutil.rmtree(kept)


def test_a_run_is_kept_if_the_store_does_not_say_whether_the_folder_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that may not be listed, or is out at the moment when the run is complete."""
    fs = fsspec.filesystem("memory")

    def denied(self: object, path: str) -> bool:
        raise PermissionError

    with run_folder("memory://unlisted", "one") as folder:
        (folder.draft / "metrics.json").write_text("{}")
        fs.pipe_file("/unlisted/one/other", b"not ours")
        with monkeypatch.context() as patched:
            patched.setattr(type(fs), "exists", denied)
            with pytest.raises(RunError, match=r"cannot write memory://unlisted/one: access denied") as caught:
                folder.publish()
    assert fs.find("/unlisted") == ["/unlisted/one/other"]
    kept = Path(re.search(r"The run is complete in (.*): copy this folder", str(caught.value))[1])
    assert [path.name for path in kept.iterdir()] == ["metrics.json"]
    shutil.rmtree(kept)
    fs.rm("/unlisted", recursive=True)


def test_a_command_that_is_told_to_end_while_it_uploads_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    fs = fsspec.filesystem("memory")
    put = type(fs).put_file

    def interrupted(self: object, source: str, target: str, **kwargs: object) -> None:
        put(self, source, target, **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr(type(fs), "put_file", interrupted)
    with run_folder("memory://interrupted", "one") as folder:
        (folder.draft / "config.yaml").write_text("{}")
        with pytest.raises(KeyboardInterrupt):
            folder.publish()
    assert fs.find("/interrupted") == []


def test_remote_store_that_is_out_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    fs = fsspec.filesystem("memory")
    put, faults = type(fs).put_file, [ConnectionResetError, TimeoutError]

    def put_at_last(self: object, source: str, target: str, **kwargs: object) -> None:
        if faults:
            raise faults.pop()
        put(self, source, target, **kwargs)

    monkeypatch.setattr(type(fs), "put_file", put_at_last)
    with run_folder("memory://moment", "one") as folder:
        (folder.draft / "metrics.json").write_text("{}")
        folder.publish()
    assert fs.find("/moment") == ["/moment/one/metrics.json"]
    fs.rm("/moment", recursive=True)


def test_an_output_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    blocked = str(tmp_path / "file" / "x")
    for output, said in ((blocked, r"cannot write to .*--output"), ("nosuch://x", "nosuch:// cannot be opened")):
        with pytest.raises(InputError, match=said), run_folder(output, "one"):
            pass


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ({}, "a9a-all-pairs-lam0.001"),
        ({"estimator": "MarginMeanClassifier"}, "a9a-svrg"),
        ({"features": "auto", "lam": 0.1}, "a9a-all-pairs-lam0.1-auto"),
    ],
)
def test_name_says_what(model: dict, name: str) -> None:
    assert fit_name("a9a", ModelConfig(**model)) == name


# ---- the configuration of a run is read in one place, which names what is damaged -------------


def test_what_a_run_was_trained_on_is_read(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("name: d\ndata: {name: digits}\n")
    assert configuration_of(str(tmp_path)) == {"name": "d", "data": {"name": "digits"}}
    assert data_config(str(tmp_path)).name == "digits"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"name: \xd5", "config.yaml: this is not valid YAML"),
        (b"- 1", "config.yaml is damaged: it is not a mapping of keys"),
        (b"name: d", "config.yaml: data must be a mapping with keys such as name, source"),
        (b"data: {source: {source: 3}}", "config.yaml: data: source"),
    ],
)
def test_a_damaged_one_is_named(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_bytes(content)
    with pytest.raises(InputError, match=message):
        data_config(str(tmp_path))


def test_a_link_to_nothing_is_no_folder_of_another_run(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    with (
        pytest.raises(InputError, match=r"cannot write to .*link: File exists"),
        run_folder(str(tmp_path / "link"), "a"),
    ):
        pass


# ---- SIGKILL in mid-work leaves something: train names it and removes nothing, shard and score go on from it


# Each command stops where it has just written something, as if it took long, and says so. A child of one process that has
# imported everything runs each of them: the imports take longest.
PAUSED = """
import json, os, signal, sys, time
import aucdist.model.batch_scoring, aucdist.data.shards.sharding, flows.score, flows.data_sets, flows.train.run
from flows.cli import app

def pause(*args, **more):
    os.write(writing, b"paused")
    time.sleep(600)

flows.train.run.fit = aucdist.data.shards.sharding.gather = pause
of_part = aucdist.model.batch_scoring.score_part
aucdist.model.batch_scoring.score_part = lambda *args, **more: (of_part(*args, **more), pause())
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
    "train": (TRAIN, ".*.partial"),
    "shard": (["shard", "rows.csv", "out", "--set", "label=clicked"], "_sharding-*"),
    "score": (["score", "model/*/model", "rows.csv", "out"], "_scoring.json"),
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
        for command, (args, _) in COMMANDS.items()
    }
    started, printed = json.dumps([expanded(folder, args) for args in lines.values()]), folder / "printed"
    process = start_program(PAUSED, started, cwd=folder, output=printed)
    process.join()
    assert process.exitcode == 0, printed.read_text(encoding="utf-8")
    return lines


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_killed_run_left_is_named_or_resumed_by_the_next(command, folder, killed, monkeypatch):
    monkeypatch.chdir(folder)
    _, left = COMMANDS[command]
    args = killed[command]
    (out,) = (Path(arg) for arg in args if arg.endswith("/out"))
    (remains,) = out.glob(left)
    foreign = out / ".notes.partial"
    if command == "train":  # the others refuse folders with files of somebody else
        foreign.write_text("mine")
    lines = [line for line in run(*expanded(folder, args))[1].splitlines() if "unfinished" in line]
    if command == "train":
        assert len(lines) == 1
        assert "repeat the same `aucdist train`, it begins another folder" in lines[0]
        assert f"`rm -r {remains}`" in lines[0]
        assert remains.is_dir()
        assert foreign.read_text() == "mine"
        assert str(foreign) not in lines[0]
    else:
        assert lines == []
        assert command != "shard" or not remains.exists()


def test_a_folder_in_which_a_run_writes_is_not_unfinished(tmp_path: Path) -> None:
    with run_folder(str(tmp_path), "first") as first:
        assert unfinished_runs(str(tmp_path), "aucdist train") is None
        first.publish()
    assert unfinished_runs(str(tmp_path), "aucdist train") is None
    assert unfinished_runs("s3://bucket/runs", "aucdist train") is None
    assert unfinished_runs(str(tmp_path / "absent"), "aucdist train") is None


def test_many_leftovers_are_one_line_with_a_command_that_can_be_copied(tmp_path: Path) -> None:
    left = [tmp_path / f".a {i}.partial" for i in range(5)]
    for folder in left:
        folder.mkdir()
    line = unfinished_runs(str(tmp_path), "aucdist train") or ""
    assert line.startswith(
        f"unfinished run folders: {', '.join(map(str, left[:3]))} and 2 more. If you repeat the same `aucdist train`"
    )
    command = " ".join(f"'{folder}'" for folder in left[:3])
    assert line.endswith(f"remove them: `rm -r {command}`")
