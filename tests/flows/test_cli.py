"""The command line: results on stdout, the rest on stderr, exit codes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.processes import absent_in_turn

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
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONUNBUFFERED": "1"}
    args = ["train", "digits", "--set", "model.tol=1e-300", "--set", "model.max_passes=100000000"]
    process = subprocess.Popen(
        [sys.executable, "-m", "flows.cli", *args, "--set", "cluster=none"],
        cwd=tmp_path, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("fit"):
            break
    process.send_signal(signal.SIGTERM)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (143, "")
    assert "Traceback" not in stderr
    assert list(tmp_path.iterdir()) == []


def test_version_and_help() -> None:
    runner = CliRunner()
    assert runner.invoke(app, ["--version"]).stdout.startswith("aucdist 0.")
    for args in ([], ["train"], ["data"], ["data", "show"]):
        assert "Usage" in runner.invoke(app, [*args, "--help"]).stdout


FIGURES = ["matplotlib", "joblib"]
NOT_FOR_A_TABLE = [
    "prefect", "distributed", "dask", "imblearn", "lightgbm", "statsmodels", "fsspec.implementations.http", "aiohttp",
    "sklearn.neighbors", "sklearn.linear_model", "sklearn.decomposition", "sklearn.metrics", "scipy.cluster",
    "aucdist.search.auto", "aucdist.estimators.margin_mean", "aucdist.estimators.link", "aucdist.papers.zovr",
    "aucdist.papers.gev",
]  # fmt: skip


def test_small_tables_do_not_wait_for_what_they_do_not_need(tmp_path: Path) -> None:
    (tmp_path / "six.csv").write_text(
        "age,job,y\n31,nurse,0\n45,clerk,1\n22,nurse,0\n51,pilot,0\n38,clerk,1\n29,pilot,0\n"
    )

    def command(*args: str) -> str:
        return f"from support.command_line import run; run(*{args})"

    absent_in_turn(
        (
            command("init", "six.csv", "--label", "y"),
            ["numba", "pandas", "scipy", "sklearn", *FIGURES, *NOT_FOR_A_TABLE],
        ),
        (command("data", "preview", "six.yaml"), ["sklearn", "scipy.stats", *FIGURES, *NOT_FOR_A_TABLE]),
        (command("train", "six.yaml"), NOT_FOR_A_TABLE),
        cwd=tmp_path,
    )


def test_catalog_commands() -> None:
    runner = CliRunner()
    names = [line.split()[0] for line in runner.invoke(app, ["data", "list"]).stdout.splitlines()]
    assert {"digits", "a9a", "kddcup99"} <= set(names)
    assert "format: svmlight" in runner.invoke(app, ["data", "show", "a9a"]).stdout
    missing = runner.invoke(app, ["data", "show", "a9b"])
    assert missing.exit_code == 2
    assert "Did you mean 'a9a'?" in missing.stderr
