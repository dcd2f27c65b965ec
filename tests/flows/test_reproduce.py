"""Papers reproduced: the configuration, the folds, what is kept, the figures and the page."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from sklearn.metrics import roc_auc_score
from typer.testing import CliRunner

from aucdist import PairwiseHingeClassifier
from aucdist.data.catalog import find
from aucdist.data.readers import read
from aucdist.engine.blocks import LocalBlocks, block_seed
from aucdist.errors import InputError, RunError
from aucdist.selection.folds import arrival, fold_numbers
from aucdist.solvers.pair_objective import pairwise_objective
from flows import reproduce as flow
from flows.cli import app
from flows.console import Lines
from flows.loading import configs_folder
from flows.reproduce_cells import Cell, Key, tally
from flows.reproduce_config import Paper, Table, load_paper
from flows.reproduce_tasks import run as run_task

GRID = [0.01, 1.0]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def paper(**changes: Any) -> dict[str, Any]:
    """A paper of one table on the digits and on a data set that is not there."""
    table = {
        "kind": "table",
        "title": "Table 9: digits",
        "figure": "Figure 9: grid",
        "targets": "table.csv",
        "systems": {"all-pairs": {"model": {"solver": "all-pairs", "tol": 0.05}}},
        "datasets": {"eight": {"name": "digits", "note": "the embedded ones"}, "absent": {"name": "astro-physics"}},
        "protocol": {"folds": 3, "repeats": 2},
        "grid": {"lam": GRID},
    }
    course = {
        "kind": "course",
        "title": "Figure 10: course",
        "systems": {
            "rows": {"model": {"solver": "oam-inf"}},
            "steps": {"model": {"solver": "msgd"}, "steps": "steps"},
        },
        "datasets": {"eight": {"name": "digits", "lam": 0.1}},
        "protocol": {"folds": 2, "repeats": 1},
        "every": 50,
        "until": 200,
    }
    whole = {"paper": "x", "title": "A paper", "experiments": {"nine": table, "ten": course}, "quick": {"datasets": []}}
    return whole | changes


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Write a paper's files and return the path of its configuration."""

    def write(
        config: dict[str, Any], targets: str = "dataset,system,value,deviation\neight,all-pairs,0.9,0.01\n"
    ) -> Path:
        (tmp_path / "table.csv").write_text(targets)
        path = tmp_path / "paper.yaml"
        path.write_text(yaml.safe_dump(config, sort_keys=False))
        return path

    return write


def only(name: str) -> dict[str, Any]:
    """The paper with one of its experiments."""
    return paper(experiments={name: paper()["experiments"][name]})


def run(path: Path, **options: Any) -> dict[str, Any]:
    return flow.reproduce(load_paper(str(path), output=str(path.parent / "out"), **options), Lines(lambda text: None))


def rows(folder: str, table: str) -> list[dict[str, str]]:
    with (Path(folder) / f"{table}.csv").open() as file:
        return list(csv.DictReader(file))


def by_hand(lam: float, repeat: int, fold: int) -> float:
    """The test AUC of one fold, step by step, scored by scikit-learn."""
    block = read(find("digits")).block
    number = fold_numbers(block.row_id, block.y, 3, block_seed(0, repeat, 0))
    order = arrival(block.row_id, block_seed(0, repeat, 1))
    train = order[number[order] != fold]
    model = PairwiseHingeClassifier(lam=lam, tol=0.05).fit(block.X[train], block.y[train])
    return float(roc_auc_score(block.y[number == fold], model.decision_function(block.X[number == fold])))


def test_a_table_is_the_best_mean_over_the_folds(written: Callable[..., Path]) -> None:
    result = run(written(only("nine")))
    areas = np.array([[[by_hand(lam, r, f) for lam in GRID] for f in range(3)] for r in range(2)]).reshape(6, 2)
    best = int(np.argmax(areas.mean(axis=0)))
    cell, absent = rows(result["run"], "nine")
    assert float(cell["auc"]) == pytest.approx(areas[:, best].mean(), rel=1e-5)
    assert float(cell["deviation"]) == pytest.approx(areas[:, best].std(ddof=1), rel=1e-5)
    assert (cell["chosen"], cell["n_folds"]) == (f"lam={GRID[best]:g}", "6")
    assert float(cell["in_deviations"]) == pytest.approx((areas[:, best].mean() - 0.9) / 0.01, rel=1e-3)
    assert (absent["auc"], absent["n_folds"], absent["verdict"]) == ("", "0", "")
    assert result["tables"]["nine"]["compared"] == 1
    page = Path(result["run"], "report.html").read_text()
    for words in (
        "Table 9: digits",
        "Figure 9: grid",
        "not run here",
        "the embedded ones",
        f"{float(cell['auc']):.4f}",
    ):
        assert words in page
    assert "<script" not in page


def test_a_course_is_that_of_fits_cut_short(written: Callable[..., Path]) -> None:
    config = load_paper(str(written(only("ten"))))
    versions = {"eight": flow.version_of(config.experiments["ten"].datasets["eight"])}
    tasks = {key: task for key, task in flow.tasks_of("ten", config.experiments["ten"], versions)}
    assert len(tasks) == 4
    block = read(find("digits")).block
    train = block.take(arrival(block.row_id, block_seed(0, 0, 1)))
    train = train.take(fold_numbers(train.row_id, train.y, 2, block_seed(0, 0, 0)) != 1)
    n_pos, n_neg = (train.y > 0).sum(), (train.y < 0).sum()
    for system in ("rows", "steps"):
        found = run_task(tasks[Key("ten", "eight", system, 0, 1)])
        assert found["steps"] == [50, 100, 150, 200]
        assert found["optimum"]["relative_gap"] <= 1e-4
        assert min(found["objective"]) >= found["optimum"]["dual"]
        if system == "rows":
            pairs = np.cumsum(train.y > 0) * np.cumsum(train.y < 0)
            part = train.take(np.arange(np.flatnonzero(pairs <= 150)[-1] + 1))
            model = PairwiseHingeClassifier(lam=0.1, solver="oam-inf", n_pairs=n_pos * n_neg).fit(LocalBlocks([part]))
        else:
            seed = block_seed(0, 0, 1) % 2**31
            model = PairwiseHingeClassifier(lam=0.1, solver="msgd", steps=150, random_state=seed).fit(
                LocalBlocks([train])
            )
        assert found["objective"][2] == pytest.approx(pairwise_objective(LocalBlocks([train]), model.coef_[0], 0.1))


def test_a_course_is_drawn(written: Callable[..., Path]) -> None:
    result = run(written(only("ten")))
    page = Path(result["run"], "report.html").read_text()
    assert result["tables"] == {}
    for words in ("Figure 10: course", "eight: 1 - AUC", "eight: Relative function value difference", "lam 0.1"):
        assert words in page


def test_cv_chooses_without_the_test_rows(written: Callable[..., Path]) -> None:
    config = only("nine")
    config["experiments"]["nine"]["protocol"] |= {"choose": "cv", "inner_folds": 2, "repeats": 1}
    config["experiments"]["nine"]["figure"] = None
    result = run(written(config))
    (cell, _) = rows(result["run"], "nine")
    block = read(find("digits")).block
    number = fold_numbers(block.row_id, block.y, 3, block_seed(0, 0, 0))
    order = arrival(block.row_id, block_seed(0, 0, 1))
    chosen = []
    for fold in range(3):
        train = block.take(order[number[order] != fold])
        inner = fold_numbers(train.row_id, train.y, 2, block_seed(0, 0, 2 + fold))
        means = []
        for lam in GRID:
            scored = []
            for held_out in range(2):
                model = PairwiseHingeClassifier(lam=lam, tol=0.05).fit(
                    train.X[inner != held_out], train.y[inner != held_out]
                )
                part = inner == held_out
                scored.append(roc_auc_score(train.y[part], model.decision_function(train.X[part])))
            means.append(np.mean(scored))
        chosen.append(int(np.argmax(means)))
    assert float(cell["auc"]) == pytest.approx(
        np.mean([by_hand(GRID[c], 0, f) for f, c in enumerate(chosen)]), rel=1e-5
    )


def test_a_run_that_was_ended_goes_on(written: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    path, done = written(only("nine")), []

    def ended(task: Any) -> Any:
        if len(done) == 4:
            raise KeyboardInterrupt
        done.append(task)
        return real(task)

    real = flow.run
    monkeypatch.setattr(flow, "run", ended)
    with pytest.raises(KeyboardInterrupt):
        run(path)
    kept = sorted(p for p in (path.parent / "out").rglob("*") if p.is_file())
    assert [p.suffix for p in kept] == [".json"] * 4
    monkeypatch.setattr(flow, "run", lambda task: done.append(task) or real(task))
    whole = run(path)
    assert len(done) == len({json.dumps(task.as_dict()) for task in done}) == 6
    monkeypatch.setattr(flow, "run", None)
    assert run(path) == whole  # nothing is left to run


def test_a_change_runs_anew_what_it_changes(written: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    run(written(only("nine")))
    done: list[Any] = []
    real = flow.run
    monkeypatch.setattr(flow, "run", lambda task: done.append(task) or real(task))
    config = only("nine")
    config["experiments"]["nine"]["datasets"]["eight"]["note"] = "another note"
    config["experiments"]["nine"]["protocol"]["repeats"] = 3
    run(written(config))
    assert [(task.repeat, task.fold) for task in done] == [(2, 0), (2, 1), (2, 2)]


def test_a_failed_task_is_named_and_the_others_are_kept(
    written: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(task: Any) -> Any:
        if task.fold == 2:
            raise ZeroDivisionError("oops")
        return real(task)

    real = flow.run
    monkeypatch.setattr(flow, "run", fail)
    path = written(only("nine"))
    with pytest.raises(RunError, match="nine, eight, all-pairs, repeat 0, fold 2: ZeroDivisionError: oops"):
        run(path)
    assert len([p for p in (path.parent / "out").rglob("*.json")]) == 2


def test_a_cluster_gives_the_same_table(written: Callable[..., Path]) -> None:
    path = written(only("nine"))
    here = rows(run(path)["run"], "nine")
    result = flow.reproduce(
        load_paper(str(path), cluster="local", output=str(path.parent / "there")), Lines(lambda text: None)
    )
    assert rows(result["run"], "nine") == here


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c.update(papers=1), "unknown key 'papers'. Did you mean 'paper'"),
        (lambda c: c["experiments"]["nine"].update(kind="tabel"), "kind"),
        (lambda c: c["experiments"]["nine"]["datasets"]["eight"].update(name="digit"), "Did you mean 'digits'"),
        (
            lambda c: c["experiments"]["nine"]["systems"]["all-pairs"]["model"].update(solver="all"),
            "unknown solver 'all'",
        ),
        (lambda c: c["experiments"]["nine"].update(grid={"lam": [-1]}), "lam is -1"),
        (
            lambda c: c["experiments"]["nine"].update(grid={"lambda": [1]}),
            "unknown parameter of PairwiseHingeClassifier",
        ),
        (lambda c: c["experiments"]["nine"].update(grid={"lam": [1], "tol": [1]}), "against one parameter"),
        (lambda c: c["experiments"]["nine"]["protocol"].update(folds=1), "folds"),
        (lambda c: c["experiments"]["nine"].update(targets="tables.csv"), "cannot read"),
        (lambda c: c["experiments"]["ten"]["datasets"]["eight"].pop("lam"), "a course needs `lam`"),
        (lambda c: c["experiments"]["ten"]["systems"]["steps"].update(steps="step"), "unknown parameter"),
        (lambda c: c.update(cluster="lokal"), "Did you mean 'local'"),
    ],
)
def test_wrong_configurations(change: Callable[[Any], Any], said: str, written: Callable[..., Path]) -> None:
    config = paper()
    change(config)
    with pytest.raises(InputError, match=said):
        load_paper(str(written(config)))


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        ("dataset,system,value\neight,all-pairs,high\n", "targets.0.value"),
        ("dataset,system,value\neight,all-bears,0.9\n", "Did you mean 'all-pairs'"),
        ("dataset,system,value\nnine,all-pairs,0.9\n", "unknown data set of a target 'nine'"),
        ("dataset,system\neight,all-pairs\n", "targets.0.value"),
    ],
)
def test_wrong_targets(targets: str, said: str, written: Callable[..., Path]) -> None:
    with pytest.raises(InputError, match=said):
        load_paper(str(written(only("nine"), targets)))


def test_unknown_paper_ends_with_2() -> None:
    result = CliRunner().invoke(app, ["reproduce", "0000"])
    assert result.exit_code == 2
    assert "unknown paper '0000'. Did you mean '000'" in result.stderr


@pytest.mark.parametrize(
    ("auc", "deviation", "printed", "verdict"),
    [
        (0.901, 0.02, (0.91, 0.01), "within 1"), (0.95, 0.02, (0.91, 0.01), "better"), (0.895, 0.02, (0.91, 0.01), "within 2"),
        (0.88, 0.02, (0.91, 0.01), "miss"), (0.90, 0.02, (None, None), ""), (None, None, (0.91, 0.01), ""),
        (0.88, 0.02, (0.91, None), "within 2"),
    ],
)  # fmt: skip
def test_verdicts(auc: float | None, deviation: float | None, printed: Any, verdict: str) -> None:
    cell = Cell("d", "s", *printed, auc, deviation, 20, "lam=1")
    assert cell.verdict == verdict
    counted = tally([cell, cell])
    assert counted["compared"] == (2 if verdict else 0)
    assert len(counted["below"]) == (2 if verdict in ("miss", "within 2") else 0)
    assert set(cell.row()) == set(Cell.COLUMNS)


@pytest.mark.parametrize("folder", sorted(configs_folder("reproduce").iterdir()), ids=lambda p: p.name)
def test_every_shipped_paper_is_valid(folder: Path) -> None:
    config = load_paper(folder.name)
    assert config.paper == folder.name
    small = load_paper(folder.name, quick=True)
    assert small.paper == f"{folder.name}-quick"
    assert sum(1 for e in small.experiments.values() for _ in e.datasets) > 0


def test_paper_000_is_the_printed_one() -> None:
    config: Paper = load_paper("000")
    table = config.experiments["table2"]
    assert isinstance(table, Table)
    assert len(table.targets) == 40
    assert table.grid["lam"] == pytest.approx([10.0**e for e in range(-9, 2)])
    assert (table.protocol.folds, table.protocol.repeats, table.protocol.choose) == (5, 4, "best")


def test_quick_000_agrees_with_the_paper(data_dir: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["reproduce", "000", "--quick", "--json", "--output", str(tmp_path)])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["tables"]["table2"]["compared"] == 8
    assert found["tables"]["table2"]["below_by_more_than_2"] == 0
    assert Path(found["run"], "report.html").is_file()
