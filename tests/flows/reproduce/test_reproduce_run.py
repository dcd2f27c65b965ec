"""Runs of `aucdist reproduce`: stored results, changed tasks, errors, the cluster, and kinds of any shape."""

import json
import logging
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.command_line import result_of
from support.runs import QUIET, page_of
from support.small_paper import only, rows, run, write

from aucdist import PairwiseHingeClassifier
from aucdist.data.shards.reading import read
from aucdist.data.sources import find_source
from aucdist.engine.blocks import LocalBlocks, block_seed
from aucdist.errors import RunError
from aucdist.pairs.problem import pairwise_objective
from aucdist.selection import fold_numbers, shuffled_order
from flows.orchestration import flows
from flows.reproduce import run as engine
from flows.reproduce.kind import ExperimentKind, TaskKey
from flows.reproduce.page import ExperimentReport, PageTable
from flows.reproduce.run import Paper

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_an_interrupted_run_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, done = write(tmp_path, only("nine")), []

    def interrupted(task: Any) -> Any:
        if len(done) == 4:
            raise KeyboardInterrupt
        done.append(task)
        return real(task)

    real = engine.run_task
    monkeypatch.setattr(engine, "run_task", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(path)
    stored = sorted(p for p in (path.parent / "out").rglob("*") if p.is_file())
    assert [p.suffix for p in stored] == [".json"] * 4
    monkeypatch.setattr(engine, "run_task", lambda task: done.append(task) or real(task))
    whole = run(path)
    assert len(done) == len({json.dumps(task) for task in done}) == 6
    monkeypatch.setattr(engine, "run_task", None)
    assert run(path) == whole  # nothing is left to run


def test_a_change_runs_only_the_affected_tasks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(write(tmp_path, only("nine")))
    done: list[Any] = []
    real = engine.run_task
    monkeypatch.setattr(engine, "run_task", lambda task: done.append(task) or real(task))
    config = only("nine")
    config["experiments"]["nine"]["datasets"]["eight"]["note"] = "another note"
    config["experiments"]["nine"]["protocol"]["repeats"] = 3
    run(write(tmp_path, config))
    assert [(task["repeat"], task["fold"]) for task in done] == [(2, 0), (2, 1), (2, 2)]


def test_a_failed_task_is_named_and_the_other_results_are_stored(tmp_path, monkeypatch):
    def fail(task: Any) -> Any:
        if task["fold"] == 2:
            raise ZeroDivisionError("oops")
        return real(task)

    real = engine.run_task
    monkeypatch.setattr(engine, "run_task", fail)
    path = write(tmp_path, only("nine"))
    with pytest.raises(RunError, match="nine, eight, all-pairs, repeat 0, fold 2: ZeroDivisionError: oops"):
        run(path)
    assert len([p for p in (path.parent / "out").rglob("*.json")]) == 2


@pytest.mark.usefixtures("on_shared_workers")
def test_a_cluster_gives_the_same_table(tmp_path: Path) -> None:
    path = write(tmp_path, only("nine"))
    here = rows(run(path)["run"], "nine")
    result = run(path, cluster="local", output=str(path.parent / "there"))
    assert rows(result["run"], "nine") == here


def test_quick_000_agrees_with_the_paper(data_dir: Path, tmp_path: Path) -> None:
    result = result_of("reproduce", "000", "--quick", "--output", tmp_path)
    assert result["tables"]["table2"]["auc"]["against_print"]["compared"] == 8
    assert result["tables"]["table2"]["auc"]["against_print"]["below_by_more_than_2"] == 0
    assert Path(result["run"], "report.html").is_file()


class Squares(ExperimentKind):
    """A kind without data sets and folds."""

    @staticmethod
    def run_task(task: Any) -> Any:
        return {"square": task["number"] ** 2}

    def tasks(self, versions: Any) -> Any:
        yield from ((TaskKey("numbers", str(n)), {"number": n}) for n in range(3))

    def report(self, results: Any) -> ExperimentReport:
        lines = pd.DataFrame([{"row": "<0>", "n": n, **result} for n, result in enumerate(results.values())])
        table = PageTable("", lines, ["{square}", "{none}"], ["<0>"], range(4), ("row", "n"))
        lines = lines[["square"]].assign(third=1 / 3, none=np.nan)
        return ExperimentReport(self.title, [table], (), lines, {"sum": int(lines["square"].sum())})


class Words(ExperimentKind):
    """A kind without tasks."""

    def report(self, results: Any) -> ExperimentReport:
        return ExperimentReport(self.title)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # these kinds are not in the table of kinds
def test_the_engine_knows_no_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(engine.EXPERIMENTS, "squares", Squares)
    kinds = {"a": Squares(kind="squares", title="Squares"), "b": Words(kind="words", title="nothing <to> run")}
    config = Paper(paper="x", title="A paper", experiments={}, quick={}, output=str(tmp_path))
    result = engine.reproduce(config.model_copy(update={"experiments": kinds}), QUIET)
    assert result["tables"] == {"a": {"sum": 5}}
    folder = Path(result["run"])
    assert (folder / "a.csv").read_text() == "square,third,none\n0,0.333333,\n1,0.333333,\n4,0.333333,\n"
    assert not (folder / "b.csv").exists()
    assert len(list((folder / "tasks" / "a" / "numbers").iterdir())) == 3
    page = (folder / "report.html").read_text()
    assert re.findall("<td .*?>(.*?)</td>", page) == ["0", "1", "4", "not run here"]
    assert "&lt;0&gt;" in page
    assert "nothing &lt;to&gt; run" in page
    assert "<h2>Data sets</h2>" not in page


# ---- the kind `learning-curves`: its points against fits with fewer steps ---------------------


def test_each_point_is_a_fit_with_fewer_steps(tmp_path: Path) -> None:
    result = run(write(tmp_path, only("ten")))
    tasks = Path(result["run"], "tasks", "ten", "eight")
    assert len(list(tasks.iterdir())) == 4
    block = read(find_source("digits")).block
    train = block.take(shuffled_order(block.row_id, block_seed(0, 0, 1)))
    train = train.take(fold_numbers(train.row_id, train.y, 2, block_seed(0, 0, 0)) != 1)
    n_pos, n_neg = (train.y > 0).sum(), (train.y < 0).sum()
    for system in ("rows", "steps"):
        (of_fold,) = tasks.glob(f"{system}-0-1*")
        of_task = json.loads(of_fold.read_text())["content"]
        assert of_task["steps"] == [50, 100, 150, 200]
        assert of_task["optimum"]["relative_gap"] <= 1e-4
        assert min(of_task["objective"]) >= of_task["optimum"]["dual"]
        if system == "rows":
            pairs = np.cumsum(train.y > 0) * np.cumsum(train.y < 0)
            part = train.take(np.arange(np.flatnonzero(pairs <= 150)[-1] + 1))
            model = PairwiseHingeClassifier(lam=0.1, solver={"name": "oam-inf", "n_pairs": n_pos * n_neg})
            model.fit(LocalBlocks([part]))
        else:
            seed = block_seed(0, 0, 1) % 2**31
            model = PairwiseHingeClassifier(lam=0.1, solver={"name": "msgd", "steps": 150}, random_state=seed)
            model.fit(LocalBlocks([train]))
        assert of_task["objective"][2] == pytest.approx(pairwise_objective(LocalBlocks([train]), model.coef_[0], 0.1))
    assert result["tables"] == {}
    shown = ("Figure 10: learning curves", "eight: 1 - AUC", "eight: Relative function value difference", "lam 0.1")
    assert all(words in page_of(result) for words in shown)


# ---- the Prefect flow `reproduce`; the tests of the flow of training run flows on a server ----


def test_every_table_becomes_an_artifact(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made: list[dict[str, Any]] = []
    result = {"run": str(tmp_path), "tables": {"table_2": {"compared": 3, "within_1": 2, "below": [{"dataset": "d"}]}}}
    monkeypatch.setattr(flows, "get_run_logger", lambda: logging.getLogger("test"))
    monkeypatch.setattr(flows, "create_table_artifact", lambda rows, **about: made.append({"rows": rows, **about}))
    monkeypatch.setattr(flows.reproducing, "reproduce", lambda config, observer: result)
    config = Paper.model_validate({"paper": "X.1", "title": "A paper", "experiments": {}, "quick": {}})
    assert flows.reproduce_paper.fn(config) == result
    assert made[0]["key"] == "reproduce-x-1-table-2"  # Prefect takes lower case, digits and dashes
    assert made[0]["rows"] == [{"quantity": "", "result": "compared 3, within_1 2"}]
