"""What a YAML file, a setting or a run folder can say: one message and exit code 2, at once, in bounded memory."""

import errno
import itertools
import signal
from pathlib import Path

import pytest
from support.command_line import run

from aucdist.errors import InputError, RunError
from flows import cli
from flows.run_folder.folder import run_folder

LEVELS = "abcdefghijklmnop"


def bomb() -> str:
    """Return YAML whose aliases stand for 10 ** 16 values."""
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"{two}: &{two} [{', '.join([f'*{one}'] * 10)}]" for one, two in itertools.pairwise(LEVELS)]
    return "\n".join([*lines, "name: *p", "data: *p"])


FILES = {
    "a bomb of aliases": (bomb(), "more than 100000 values with its aliases written out"),
    "an alias in itself": ("name: c\ndata: &x {source: *x}", "with its aliases written out"),
    "a list in itself": ("name: &x [*x]\ndata: {name: digits}", "with its aliases written out"),
    "thousands of brackets": ("name: " + "[" * 5000, "not valid YAML"),
    "values that are deep": ("name: c\ndata: " + "{a: " * 200 + "1" + "}" * 200, "or more than 50 levels"),
    "a number that is none": ("name: c\nblocks: !!int x\ndata: {name: digits}", "not valid YAML: ValueError"),
    "a date that is none": ("name: c\nblocks: !!timestamp x\ndata: {name: digits}", "not valid YAML: AttributeError"),
    "a day that is none": ("name: c\nblocks: 2024-02-31\ndata: {name: digits}", "not valid YAML: ValueError"),
    "a date": ("name: 2024-01-01\ndata: {name: digits}", "name: Input should be a valid string"),
    "an object of Python": ("name: !!python/object:os.system x", "could not determine a constructor"),
    "a key that is a list": ("? [1, 2]\n: 3\nname: c", "not valid YAML"),
    "a truth that is none": ("name: c\nblocks: !!bool x\ndata: {name: digits}", "not valid YAML: KeyError"),
    "a name of megabytes": (
        "name: c\nmodel: {estimator: " + "k" * 5_000_000 + "}\ndata: {name: digits}",
        "a configuration has at most 4194304 bytes",
    ),
    "no UTF-8": (b"name: \xff", "cannot read"),
    "a NUL": ("name: \x00", "not valid YAML"),
    "nothing": ("", "keys with values are expected"),
    "a text": ("words", "keys with values are expected"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file(name: str, tmp_path: Path) -> None:
    text, message = FILES[name]
    path = tmp_path / "c.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    stderr = run("train", path, code=2)[1]
    assert message in stderr
    assert len(stderr) < 3000
    assert "Traceback" not in stderr


SETTINGS = {
    "blocks=1000000000": "at most 65536 are possible",
    "blocks=60000": "`blocks` is 60000, but digits has 1437 training rows: use at most as many",
    "blocks=1" + "0" * 400: "at most 65536 are possible",
    "model.lam=1" + "0" * 400: "model.lam: Input should be a valid number",
    "model.lam=true": "`lam` is true, but a number is needed",
    "blocks=true": "`blocks` is true, but a number is needed",
    "data.test={fraction: 0.2, seed: true}": "`seed` is true, but a number is needed",
    "model.random_state=-1": "random_state is -1; an integer of at least 0",
    "model.lam=!!bool x": "not valid YAML: KeyError",
    "data={source: {source: README.md, format: parquet, label: y, where: [[a, in, 3]]}}": "a list of values is needed after 'in'",
    "data={source: {source: README.md, format: parquet, label: y, where: [[a, '<', [3]]]}}": "one value is needed after '<'",
    "model.lam=.inf": "lam",
    "model.lam=.nan": "lam",
    "model.max_passes=1e400": "max_passes",
    "cluster={kind: local, memory_limit: lots}": "memory_limit",
    "cluster={kind: local, memory_limit: -1GB}": "memory_limit",
    "cluster={kind: address, address: 'tcp://[', scratch: x}": "address",
    "cluster={kind: address, address: 'tcp://host:port', scratch: x}": "address",
    "data={source: {source: x.csv, format: csv, label: y, hashed: {a: 2147483647}}}": "x.csv",
    "name=../../etc": "name: String should match pattern",
    "name=": "name",
    "=1": "`key=value` is expected",
    "model.lam.x=1": "has no keys below it",
}


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting[:40])
def test_a_setting(setting: str, tmp_path: Path) -> None:
    stderr = run("train", "digits", "--set", "cluster=none", "--set", setting, "--output", tmp_path / "out", code=2)[1]
    assert SETTINGS[setting] in stderr
    assert len(stderr) < 3000
    assert "Traceback" not in stderr
    assert not (tmp_path / "out").exists()


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
    with (
        pytest.raises(RunError, match=r"no space is left in .*name another folder by --output"),
        run_folder(where or str(tmp_path / "out"), "c"),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert not (tmp_path / "out").exists()


def test_a_reader_that_stops_reading_ends_the_command_silently(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*args: object, **more: object) -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr("click.echo", closed)
    assert run("data", "list", code=1) == ("", "")


def test_sighup_is_sigterm(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    monkeypatch.setattr(cli, "app", lambda: signal.raise_signal(signal.SIGHUP))
    try:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 143
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        cli.main()  # as with nohup
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
