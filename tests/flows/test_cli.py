"""The command line: results on stdout, the rest on stderr, exit codes."""

import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from support.command_line import run, sets
from support.forked_workers import start_program

from aucdist.data.storage import urls
from aucdist.errors import RunError
from aucdist.kernels import compiling
from flows import cli
from flows.config import cluster as prefect_api

CONTRACT = {
    "run": str, "estimator": str, "solver": str, "n_samples": int, "n_features": int, "n_pos": int, "n_neg": int,
    "n_test_pos": int, "n_test_neg": int,
    "metrics": {"train_auc": float, "test_auc": float, "test_auc_interval": list, "test_average_precision": float,
                "test_average_precision_interval": list},
    "certificate": {"primal": float, "dual": float, "relative_gap": float, "status": str, "rounding": float, "slack": float},
    "decisions": {
        "target": dict, "threshold": float, "rows": str, "recall": {"value": float, "interval": list},
        "fpr": {"value": float, "interval": list}, "precision": {"value": float, "interval": list},
        "alerts": {"value": float, "interval": list}, "n_alerts": int, "n_rows": int, "n_pos": int, "set_on": str,
        "out_of_fold": bool, "r_precision": float,
    },
    "passes": int, "warnings": list, "seconds": {"data": float, "fit": float, "evaluate": float}, "command": str,
}  # fmt: skip


def check_contract(result: dict[str, Any], contract: dict[str, Any]) -> None:
    assert list(result) == list(contract)
    for key, kind in contract.items():
        if isinstance(kind, dict):
            check_contract(result[key], kind)
        else:
            assert type(result[key]) is kind, key


def test_json_is_the_contract(tmp_path: Path, quick: list[str]) -> None:
    stdout, stderr = run("train", "digits", "--json", "--output", tmp_path, *quick)
    assert len(stdout.splitlines()) == 1
    result = json.loads(stdout)
    check_contract(result, CONTRACT)
    assert result["n_pos"] + result["n_neg"] == result["n_samples"]
    assert result["certificate"]["status"] == "converged"
    assert result["certificate"]["relative_gap"] <= 0.05
    assert result["metrics"]["test_auc_interval"][0] < result["metrics"]["test_auc"]
    assert Path(result["run"]).parent == tmp_path
    assert "fit" in stderr


def test_summary_ends_with_the_report(tmp_path: Path, quick: list[str]) -> None:
    stdout, _ = run("train", "digits", "--output", tmp_path, *quick)
    assert Path(stdout.splitlines()[-1].removeprefix("report: ")).is_file()
    assert "Test AUC" in stdout


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (RunError("the cluster went away"), 1, "failed: the cluster went away"),
        (ZeroDivisionError("oops"), 1, "ZeroDivisionError: oops (--debug"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_failures(error, code, message, tmp_path, monkeypatch):
    def fail(*args: Any) -> None:
        raise error

    monkeypatch.setattr("flows.train.run.open_source", fail)
    stderr = run("train", "digits", "--output", tmp_path / "runs", code=code)[1]
    assert message in stderr
    assert len(stderr.splitlines()) <= 3  # the stage, the error, and its hint
    assert "Traceback" not in stderr
    assert list(tmp_path.iterdir()) == []


def test_sigterm_ends_with_143_and_leaves_nothing(tmp_path: Path) -> None:
    args = ["train", "digits", *sets("model.tol=1e-300", "model.max_passes=100000000", "cluster=none")]
    printed = tmp_path / "printed"
    process = start_program("from flows.cli import main; main()", *args, cwd=tmp_path, output=printed)
    while process.is_alive() and not (printed.exists() and "\nfit" in printed.read_text()):
        time.sleep(0.01)
    process.terminate()
    process.join(60)
    assert process.exitcode == 143
    assert "Traceback" not in printed.read_text()
    assert list(tmp_path.iterdir()) == [printed]


def test_sighup_is_sigterm(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    monkeypatch.setattr(cli.app, "main", lambda: signal.raise_signal(signal.SIGHUP))
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


def test_a_reader_that_stops_reading_ends_the_command_silently(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*args: object, **more: object) -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr("click.echo", closed)
    assert run("data", "list", code=1) == ("", "")


def test_version_and_help() -> None:
    assert run("--version")[0].startswith("aucdist 0.")
    for args in ([], ["train"], ["data"], ["data", "show"]):
        assert "Usage" in run(*args, "--help")[0] == run(*args, "-h")[0]


@pytest.mark.parametrize("moment", ["Command.as_click", "config_from_options"])
def test_ctrl_c_while_a_command_is_loaded_is_an_interrupt(moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"flows.command.{moment}", interrupted)
    assert run("train", "digits", code=130) == ("", "interrupted\n")


def test_a_name_that_the_terminal_cannot_show_ends_no_command_and_a_warning_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text(
        "a,y\n" + "".join(f"{i % 7},{'Łódź' if i % 3 else 'bB'[i % 2]}\n" for i in range(60))
    )
    program = "import sys, flows.cli; sys.argv = ['aucdist', 'init', 'f.csv', '--label', 'y']; flows.cli.main()"
    environment = os.environ | {"PYTHONIOENCODING": "latin-1"}
    made = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, check=True
    )
    assert rb"\u0141\xf3d\u017a: 40".decode("unicode_escape").encode("latin-1", "backslashreplace") in made.stdout
    assert made.stderr.startswith(b"warning: ")  # of classes that differ only in case
    assert made.stderr.count(b"\n") == 1


def test_a_user_without_a_home_has_folders_for_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> None:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "home", nowhere)
    for name in ("AUCDIST_CACHE", "XDG_CACHE_HOME", "PREFECT_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert urls.cache_folder() == Path(tempfile.gettempdir()) / f"aucdist-{os.getuid()}" / "aucdist"
    assert compiling._own_folder.__wrapped__(compiling.__file__).parent.name.startswith("aucdist-kernels-")
    assert not prefect_api.api_configured()
