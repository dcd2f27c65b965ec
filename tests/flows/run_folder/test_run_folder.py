"""The run folder appears whole or not at all."""

import errno
from pathlib import Path

import fsspec
import pytest

from aucdist.data.storage import faults
from aucdist.errors import InputError, RunError
from flows.config.model import ModelConfig
from flows.run_folder.folder import configuration_of, data_of, fit_name, run_folder


def test_published_by_name(tmp_path: Path) -> None:
    output = tmp_path / "a" / "runs"
    with run_folder(str(output), "one") as folder:
        (folder.draft / "metrics.json").write_text("{}")
        assert not (output / "one").exists()
        folder.publish()
    assert folder.url == str(output / "one")
    assert [p.relative_to(output).as_posix() for p in output.rglob("*")] == ["one", "one/metrics.json"]


def test_nothing_is_left_unless_published(tmp_path: Path) -> None:
    with run_folder(str(tmp_path / "a" / "runs"), "one") as folder:
        (folder.draft / "half.json").write_text("{")
    assert list(tmp_path.iterdir()) == []


def test_folders_that_were_there_stay(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    with run_folder(str(tmp_path / "runs"), "one"):
        pass
    assert list(tmp_path.rglob("*")) == [tmp_path / "runs"]


def test_unwritable_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    blocked = str(tmp_path / "file" / "x")
    with pytest.raises(InputError, match=r"cannot write to .*--output"), run_folder(blocked, "one"):
        pass


def test_a_run_whose_name_is_taken_leaves_the_work_of_the_other(tmp_path: Path) -> None:
    with run_folder(str(tmp_path), "same") as first:
        (first.draft / "kept").write_text("work")
        with pytest.raises(InputError, match="is there already"), run_folder(str(tmp_path), "same"):
            pass
        assert (first.draft / "kept").read_text() == "work"
        first.publish()
    with run_folder(str(tmp_path), "same") as second:
        (second.draft / "new").write_text("")
        with pytest.raises(RunError, match="the run is lost: cannot make"):
            second.publish()
    assert [path.name for path in (tmp_path / "same").iterdir()] == ["kept"]
    assert [path.name for path in tmp_path.iterdir()] == ["same"]


@pytest.mark.parametrize("where", ["", "memory://runs-of-full-disk"])
def test_a_full_disk_is_named(tmp_path: Path, where: str) -> None:
    message = r"no space is left in .*name another folder by --output"
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
    monkeypatch.setattr(faults, "WORKING", 0.0)
    with run_folder("memory://broken", "one") as folder:
        for name in ("metrics.json", "config.yaml"):
            (folder.draft / name).write_text("{}")
        with pytest.raises(RunError, match=r"the run is lost: cannot write memory://broken/one: .*cannot be reached"):
            folder.publish()
    assert seen == ["config.yaml", "metrics.json"]  # the metrics last
    assert fs.find("/broken") == []


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


def test_unknown_store() -> None:
    with pytest.raises(InputError, match="nosuch:// cannot be opened"), run_folder("nosuch://x", "one"):
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
    assert data_of(str(tmp_path)).name == "digits"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"name: \xd5", "config.yaml: not valid YAML"),
        (b"- 1", "config.yaml is damaged: it is not a mapping of keys"),
        (b"name: d", "config.yaml does not say which data the run was trained on: "),
        (b"data: {source: {source: 3}}", "config.yaml does not say which data the run was trained on: `source"),
    ],
)
def test_a_damaged_one_is_named(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_bytes(content)
    with pytest.raises(InputError, match=message):
        data_of(str(tmp_path))
