"""The command line: results on stdout, the rest on stderr, exit codes."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.forked_workers import start_program

from aucdist.errors import RunError
from flows.cli import app

CONTRACT = {
    "run": str, "estimator": str, "solver": str, "n_samples": int, "n_features": int, "n_pos": int, "n_neg": int,
    "metrics": {"train_auc": float, "test_auc": float, "test_auc_interval": list},
    "certificate": {"primal": float, "dual": float, "relative_gap": float, "status": str, "rounding": float, "slack": float},
    "passes": int, "seconds": {"data": float, "fit": float, "evaluate": float},
}  # fmt: skip


def check_contract(found: dict[str, Any], contract: dict[str, Any]) -> None:
    assert list(found) == list(contract)
    for key, kind in contract.items():
        if isinstance(kind, dict):
            check_contract(found[key], kind)
        else:
            assert type(found[key]) is kind, key


def test_json_is_the_contract(tmp_path: Path, quick: list[str]) -> None:
    result = CliRunner().invoke(app, ["train", "digits", "--json", "--output", str(tmp_path), *quick])
    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) == 1
    found = json.loads(result.stdout)
    check_contract(found, CONTRACT)
    assert found["n_pos"] + found["n_neg"] == found["n_samples"]
    assert found["certificate"]["status"] == "converged"
    assert found["certificate"]["relative_gap"] <= 0.05
    assert found["metrics"]["test_auc_interval"][0] < found["metrics"]["test_auc"]
    assert Path(found["run"]).parent == tmp_path
    assert "fit" in result.stderr


def test_summary_ends_with_the_report(tmp_path: Path, quick: list[str]) -> None:
    result = CliRunner().invoke(app, ["train", "digits", "--output", str(tmp_path), *quick])
    assert result.exit_code == 0, result.output
    report = result.stdout.splitlines()[-1].removeprefix("report: ")
    assert Path(report).is_file()
    assert "Test AUC" in result.stdout


def test_no_test_set(tmp_path: Path, quick: list[str]) -> None:
    args = ["train", "digits", "--json", "--output", str(tmp_path), *quick, "--set", "data.test=null"]
    found = json.loads(CliRunner().invoke(app, args).stdout)
    assert found["metrics"]["test_auc"] is None
    assert found["metrics"]["test_auc_interval"] is None
    assert found["n_samples"] == 1797


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (RunError("the cluster went away"), 1, "failed: the cluster went away"),
        (ZeroDivisionError("oops"), 1, "ZeroDivisionError: oops (--debug"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_failures(
    error: BaseException, code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> None:
        raise error

    monkeypatch.setattr("flows.train.run.open_source", fail)
    result = CliRunner().invoke(app, ["train", "digits", "--output", str(tmp_path / "runs")])
    assert result.exit_code == code
    assert message in result.stderr
    assert len(result.stderr.splitlines()) <= 3  # the stage, the error, and its hint
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_sigterm_ends_with_143_and_leaves_nothing(tmp_path: Path) -> None:
    args = [
        "train",
        "digits",
        "--set",
        "model.tol=1e-300",
        "--set",
        "model.max_passes=100000000",
        "--set",
        "cluster=none",
    ]
    printed = tmp_path / "printed"
    process = start_program("from flows.cli import main; main()", *args, cwd=tmp_path, output=printed)
    while process.is_alive() and not (printed.exists() and "\nfit" in printed.read_text()):
        time.sleep(0.01)
    process.terminate()
    process.join(60)
    assert process.exitcode == 143
    assert "Traceback" not in printed.read_text()
    assert list(tmp_path.iterdir()) == [printed]


def test_version_and_help() -> None:
    runner = CliRunner()
    assert runner.invoke(app, ["--version"]).stdout.startswith("aucdist 0.")
    for args in ([], ["train"], ["data"], ["data", "show"]):
        assert "Usage" in runner.invoke(app, [*args, "--help"]).stdout


def test_catalog_commands() -> None:
    runner = CliRunner()
    names = [line.split()[0] for line in runner.invoke(app, ["data", "list"]).stdout.splitlines()]
    assert {"digits", "a9a", "kddcup99"} <= set(names)
    assert "format: svmlight" in runner.invoke(app, ["data", "show", "a9a"]).stdout
    missing = runner.invoke(app, ["data", "show", "a9b"])
    assert missing.exit_code == 2
    assert "Did you mean 'a9a'?" in missing.stderr
