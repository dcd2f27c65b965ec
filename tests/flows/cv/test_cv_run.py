"""A search from end to end: its table, its cached results, where it runs, and its run folder."""

import json
import os
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from support.command_line import run as run_command, sets
from support.forked_workers import start_program
from support.runs import Following, searched

from aucdist.engine.dask import local_client
from aucdist.errors import RunError
from aucdist.model import load_model
from flows.cv import jobs, run
from flows.train.run import baselines

QUICK = [
    "cluster=none", "folds.repeats=1", "folds.number=3", "nested=null", "rule=best", "model.tol=0.05",
    "grid.lam=[1.0, 0.1, 0.01]",
]  # fmt: skip


class RecordingObserver(Following):
    """Records lines and progress."""

    def __init__(self) -> None:
        super().__init__()
        self.states: list[dict[str, Any]] = []

    def on(self, event: str, facts: dict[str, Any]) -> None:
        if event == "tasks":
            self.states.append(facts)
        super().on(event, facts)


def found_in(output: Path, *settings: str) -> dict[str, Any]:
    return searched("digits", *QUICK, *settings, output=output)


def figures(result: dict[str, Any]) -> list[Any]:
    return [result["best"], result["score"], result["interval"], result["table"], result["nested"]]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], RecordingObserver]:
    observer = RecordingObserver()
    return searched("digits", *QUICK, output=tmp_path_factory.mktemp("runs"), observer=observer), observer


def test_the_object_is_the_contract(whole: tuple[dict[str, Any], RecordingObserver]) -> None:
    result, _ = whole
    json.dumps(result, allow_nan=False)
    assert [row["parameters"] for row in result["table"]] == [{"lam": 1.0}, {"lam": 0.1}, {"lam": 0.01}]
    best = next(row for row in result["table"] if row["parameters"] == result["best"])
    assert best["mean"] == max(row["mean"] for row in result["table"]) == result["score"]
    assert best["mean"] == pytest.approx(np.mean(best["folds"]))
    assert best["deviation"] == pytest.approx(np.std(best["folds"], ddof=1))
    assert len(best["folds"]) == 3
    low, high = result["interval"]
    assert low < result["score"] < high
    assert result["placement"] == "masks"
    assert result["tasks"] == {"all": 3, "kept": 0, "failed": 0}


def test_progress_is_reported(whole: tuple[dict[str, Any], RecordingObserver]) -> None:
    _, observer = whole
    assert [(state["done"], state["total"]) for state in observer.states] == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_the_model_is_of_all_training_rows_with_the_best_parameters(whole):
    result, _ = whole
    folder = Path(result["run"])
    model = load_model(str(folder / "model"))
    assert model.about["parameters"]["lam"] == result["best"]["lam"]
    scores = pd.read_parquet(folder / "scores.parquet")
    X, digit = load_digits(return_X_y=True)
    rows = scores["row_id"].to_numpy()
    assert scores["y"].tolist() == np.where(digit[rows] == 8, 1, -1).tolist()
    assert scores["score"].tolist() == model.decision_function(X[rows]).tolist()
    assert roc_auc_score(scores["y"], scores["score"]) == pytest.approx(result["refit"]["metrics"]["test_auc"])
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["search"]["table"] == result["table"]
    page = (folder / "report.html").read_text()
    assert "Choice of parameters" in page


def test_the_command_prints_the_test_rows_and_the_baselines_as_train_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flows.train.run.baselines", baselines)
    text = " ".join(run_command("cv", "digits", *sets(*QUICK), "--output", tmp_path)[0].replace("│", " ").split())
    (folder,) = tmp_path.glob("2*")
    metrics = json.loads((folder / "metrics.json").read_text())
    assert f"Test AUC {metrics['metrics']['test_auc']:.4f}" in text
    assert f"Test average precision {metrics['metrics']['test_average_precision']:.4f}" in text
    assert metrics["baselines"][0]["name"] == "logistic regression (defaults)"
    assert f"Other models logistic regression (defaults): AUC {metrics['baselines'][0]['test_auc']:.4f}" in text
    assert text.index("Chosen: lam") < text.index("Test AUC") < text.index(f"report: {tmp_path}")


def test_baselines_can_be_left_out_of_a_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.train.run.baselines", baselines)
    assert "baselines" not in found_in(tmp_path, "baselines=false")["refit"]


def test_a_second_search_does_nothing_again(whole: tuple[dict[str, Any], RecordingObserver]) -> None:
    result, _ = whole
    runs = Path(result["run"]).parent
    again = found_in(runs)
    assert again["tasks"] == {"all": 3, "kept": 3, "failed": 0}
    assert figures(again) == figures(result)
    assert found_in(runs, "folds.repeats=2", "blocks=1")["tasks"] == {"all": 6, "kept": 3, "failed": 0}
    assert found_in(runs, "model.tol=0.06")["tasks"]["kept"] == 0


@pytest.mark.slow
def test_nested_scores_are_those_of_choosing_by_inner_folds(tmp_path: Path) -> None:
    result = found_in(tmp_path, "nested=2")
    assert result["tasks"]["all"] == 3 + 3 * 2
    by_lam = {row["parameters"]["lam"]: row["folds"] for row in result["table"]}
    for k, choice in enumerate(result["nested"]):
        assert choice["value"] == by_lam[choice["parameters"]["lam"]][k]
    assert result["score"] == pytest.approx(np.mean([choice["value"] for choice in result["nested"]]))


@pytest.mark.slow
def test_halving_spends_fewer_passes(tmp_path: Path) -> None:
    settings = ("grid.lam=[1.0, 0.3, 0.1, 0.03, 0.01, 0.003]", "model.tol=1e-4")
    plain = found_in(tmp_path, *settings)
    halved = found_in(tmp_path, *settings, "halving={first_passes: 2, factor: 3}")
    passes = [sum(row["passes"] for row in result["table"]) for result in (plain, halved)]
    assert passes[1] < passes[0]
    assert sorted({row["max_passes"] for row in halved["table"]}) == [2, 6, 1000]
    chosen = next(row for row in halved["table"] if row["parameters"] == halved["best"])
    assert chosen["max_passes"] == 1000


def test_one_failure_does_not_lose_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    score = run.fit_job

    def fail_in_the_second_fold(job: Any, *args: Any) -> Any:
        if job.fold.fold == 1:
            raise ZeroDivisionError("oops")
        return score(job, *args)

    monkeypatch.setattr(run, "fit_job", fail_in_the_second_fold)
    with pytest.raises(RunError, match="every setting failed; the first error: ZeroDivisionError: oops"):
        found_in(tmp_path)
    monkeypatch.setattr(run, "fit_job", score)
    assert found_in(tmp_path)["tasks"] == {"all": 3, "kept": 2, "failed": 0}


def test_a_setting_that_fails_is_reported_in_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    score = run.fit_job

    def fail_with_sdcd(job: Any, *args: Any) -> Any:
        if job.settings[0]["solver"] == "sdcd":
            raise ZeroDivisionError("oops")
        return score(job, *args)

    monkeypatch.setattr(run, "fit_job", fail_with_sdcd)
    observer = RecordingObserver()
    settings = (*QUICK[:-1], "grid={solver: [all-pairs, sdcd]}")
    result = searched("digits", *settings, output=tmp_path, observer=observer)
    assert result["best"] == {"solver": "all-pairs"}
    row = result["table"][1]
    assert (row["mean"], row["folds"], row["errors"]) == (None, [None] * 3, ["ZeroDivisionError: oops"])
    assert sum("failed: fold" in line for line in observer.lines) == 3
    assert "ZeroDivisionError: oops" in (Path(result["run"]) / "report.html").read_text()


# ---- where it runs ----


def same_on(tmp_path: Path, client: Any, name: str, *settings: str) -> dict[str, Any]:
    address = f"cluster={{kind: address, address: '{client.scheduler.address}', scratch: '{tmp_path}/scratch'}}"
    return found_in(tmp_path / name, *settings, address)


@pytest.mark.slow
def test_the_same_table_with_more_workers_and_after_one_is_killed(whole, tmp_path):
    settings = ("folds.number=4", "model.tol=0.02")
    with local_client(workers=2, memory_limit="1GiB") as client:
        assert figures(same_on(tmp_path, client, "two")) == figures(whole[0])
        pid = next(iter(client.run(os.getpid).values()))
        killer = threading.Timer(0.3, os.kill, (pid, 9))
        killer.start()
        killed = same_on(tmp_path, client, "killed", *settings)
        killer.join()
    assert figures(killed) == figures(found_in(tmp_path / "here", *settings))


@pytest.mark.parametrize(
    "settings",
    [
        ("data.scale=standard", "model.tol=1e-3", "blocks=3"),
        ("model={solver: sdcd, tol: 0.5}", "grid.lam=[1.0, 0.1]"),
        ("model={calibration: logit, tol: 0.5}", "grid.lam=[1.0, 0.1]"),
    ],
)
def test_the_table_is_the_same_here_and_with_both_placements(
    settings: tuple[str, ...], client: Any, tmp_path: Path
) -> None:
    here = found_in(tmp_path / "here", *settings)
    for placement in ("tasks", "masks"):
        there = same_on(tmp_path, client, placement, *settings, f"placement={placement}")
        assert there["placement"] == placement
        assert figures(there) == figures(here)


@pytest.mark.parametrize(("limit", "placement"), [(59, "masks"), (60, "tasks"), (0, "tasks")])
def test_the_memory_of_the_workers_decides(limit: int, placement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "worker_memory", lambda client: [(1000, 1), (2 * limit, 2)])
    monkeypatch.setattr(run, "total_memory", lambda: 200)
    config: Any = SimpleNamespace(placement="auto")
    assert run._placement(config, 10, object())[0] == placement
    assert run._placement(config, 10, None)[0] == "masks"


def _fail_there(job: Any, masks: None, address: str) -> list[dict[str, Any]]:
    from distributed import get_worker

    mine = get_worker().address
    if mine == address:
        return [{"error": "this worker is ill", "again": True}]
    return [{"value": float(job.fold), "worker": mine}]


def _fail(job: Any, masks: None, again: bool) -> list[dict[str, Any]]:
    return [{"error": "always", "again": again}]


def test_a_failed_task_is_tried_again_on_another_worker(client: Any) -> None:
    ill = next(iter(client.scheduler_info()["workers"]))
    of_folds: Any = [SimpleNamespace(fold=k) for k in range(6)]
    done = dict(jobs.run_on_workers(of_folds, lambda fold: None, _fail_there, ill, client=client))  # type: ignore[arg-type]
    assert sorted(done) == list(range(6))
    assert all(results[0]["worker"] != ill for results in done.values())
    failed = dict(jobs.run_on_workers(of_folds[:1], lambda fold: None, _fail, True, client=client))  # type: ignore[arg-type]
    assert failed[0][0]["error"] == "always"


def test_a_search_that_is_killed_resumes(tmp_path: Path) -> None:
    settings = [*QUICK[:-2], "folds.number=6", "grid.lam=[1.0, 1e-3]"]
    command, output = ("cv", "digits", "--output", str(tmp_path), *sets(*settings)), tmp_path / "printed"
    process = start_program("from flows.cli import main; main()", *command, cwd=tmp_path, output=output)
    tasks = tmp_path / "cv-digits" / "tasks"
    while process.is_alive() and len(list(tasks.glob("*.json"))) < 2:
        time.sleep(0.01)
    process.kill()
    process.join()
    finished = len(list(tasks.glob("*.json")))
    assert finished >= 2
    result = searched("digits", *settings, output=tmp_path)
    assert result["tasks"] == {"all": 6, "kept": finished, "failed": 0}
