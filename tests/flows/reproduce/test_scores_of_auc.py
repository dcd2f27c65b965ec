"""The kind `scores` by the AUC: its figures against folds computed step by step, and its page."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score
from support.runs import page_of
from support.small_paper import GRID, only, rows, run, write

from aucdist import PairwiseHingeClassifier
from aucdist.data.shards.reading import read
from aucdist.data.sources import find_source
from aucdist.engine.blocks import block_seed
from aucdist.selection import fold_numbers, shuffled_order
from flows.reproduce.kind import TaskKey
from flows.reproduce.scores import PrintedFigure, Scores, count_agreement, reaches, with_verdicts

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def by_hand(lam: float, repeat: int, fold: int) -> float:
    """The test AUC of one fold, step by step, scored by scikit-learn."""
    block = read(find_source("digits")).block
    number = fold_numbers(block.row_id, block.y, 3, block_seed(0, repeat, 0))
    order = shuffled_order(block.row_id, block_seed(0, repeat, 1))
    train = order[number[order] != fold]
    model = PairwiseHingeClassifier(lam=lam, tol=0.05).fit(block.X[train], block.y[train])
    return float(roc_auc_score(block.y[number == fold], model.decision_function(block.X[number == fold])))


def test_a_table_is_the_best_mean_over_the_folds(tmp_path: Path) -> None:
    result = run(write(tmp_path, only("nine")))
    areas = np.array([[[by_hand(lam, r, f) for lam in GRID] for f in range(3)] for r in range(2)]).reshape(6, 2)
    best = int(np.argmax(areas.mean(axis=0)))
    cell, absent = rows(result["run"], "nine")
    assert float(cell["mean"]) == pytest.approx(areas[:, best].mean(), rel=1e-5)
    assert float(cell["deviation"]) == pytest.approx(areas[:, best].std(ddof=1), rel=1e-5)
    assert (cell["chosen"], cell["n_runs"]) == (f"lam={GRID[best]:g}", "6")
    assert float(cell["in_deviations"]) == pytest.approx((areas[:, best].mean() - 0.9) / 0.01, rel=1e-3)
    assert (absent["mean"], absent["n_runs"], absent["verdict"]) == ("", "0", "")
    assert result["tables"]["nine"]["auc"]["against_print"]["compared"] == 1
    shown = ["Table 9: digits", "Figure 9: grid", "not run here", "the embedded ones", f"{float(cell['mean']):.4f}"]
    assert all(words in page_of(result) for words in shown)
    assert "<script" not in page_of(result)


def test_cv_chooses_without_the_test_rows(tmp_path: Path) -> None:
    config = only("nine")
    config["experiments"]["nine"]["protocol"] |= {"choose": "cv", "inner_folds": 2, "repeats": 1}
    config["experiments"]["nine"]["figure"] = None
    result = run(write(tmp_path, config))
    (cell, _) = rows(result["run"], "nine")
    block = read(find_source("digits")).block
    number = fold_numbers(block.row_id, block.y, 3, block_seed(0, 0, 0))
    order = shuffled_order(block.row_id, block_seed(0, 0, 1))
    chosen = []
    for fold in range(3):
        train = block.take(order[number[order] != fold])
        inner = fold_numbers(train.row_id, train.y, 2, block_seed(0, 0, 2 + fold))
        means = []
        for lam in GRID:
            scored = []
            for part in (inner == validation for validation in range(2)):
                model = PairwiseHingeClassifier(lam=lam, tol=0.05).fit(train.X[~part], train.y[~part])
                scored.append(roc_auc_score(train.y[part], model.decision_function(train.X[part])))
            means.append(np.mean(scored))
        chosen.append(int(np.argmax(means)))
    expected = np.mean([by_hand(GRID[c], 0, f) for f, c in enumerate(chosen)])
    assert float(cell["mean"]) == pytest.approx(expected, rel=1e-5)


def small(**changes: Any) -> Scores:
    smaller = {"grid": {"lam": [1]}, "protocol": {"folds": 2, "repeats": 1}, "figure": None}
    return Scores.model_validate(only("nine")["experiments"]["nine"] | smaller | changes)


def of_folds(areas: dict[str, tuple[float, float]]) -> dict[TaskKey, Any]:
    return {
        TaskKey(dataset, "all-pairs", 0, fold): {"auc": [value], "chosen": [0]}
        for dataset, values in areas.items()
        for fold, value in enumerate(values)
    }


def test_the_draws_of_a_data_set_have_a_row_of_their_mean() -> None:
    draw = {"name": "digits", "group": "digit"}
    table = small(datasets={"one": draw, "other": {"name": "digits"}, "two": draw, "three": draw}, targets=[])
    table.targets.append(PrintedFigure(dataset="one", system="all-pairs", value=0.8125))
    report = table.report(of_folds({"one": (0.5, 0.7), "other": (0.1, 0.1), "two": (0.8, 1.0)}))
    rows = {row: texts for row, ((texts, _),) in report.tables[0].body()}
    assert list(rows) == ["one", "other", "two", "three", "digit, all draws"]
    assert rows["digit, all draws"] == ["0.7500", "0.6000 to 0.9000", "paper 0.8125"]
    assert rows["three"] == ["not run here"]
    assert len(report.lines) == 4  # the CSV has the draws alone


@pytest.mark.parametrize(
    ("difference", "reached"), [(0.0, True), (0.79 - 0.80, True), (-0.0101, False), (0.05, True), (np.nan, False)]
)
def test_at_least_the_print_minus_the_tolerance(difference: float, reached: bool) -> None:
    assert bool(reaches({"measure": "auc", "difference": difference}, 0.01)) is reached


def test_the_tolerance_is_evaluated_for_each_cell() -> None:
    names = ("low", "near", "absent")
    table = small(
        datasets={name: {"name": "digits"} for name in names}, tolerance=0.01,
        targets=[{"dataset": name, "system": "all-pairs", "value": 0.8} for name in names],
        protocol={"folds": 2, "repeats": 1, "choose": "once"},
    )  # fmt: skip
    report = table.report(of_folds({"low": (0.78, 0.78), "near": (0.795, 0.795)}))
    assert report.counts["auc"]["at_least_print_minus_tolerance"] == {"tolerance": 0.01, "all-pairs": "1 of 2"}
    assert report.lines["at_least_print_minus_tolerance"].tolist() == ["no", "yes", ""]
    last = [texts[-2] for _, ((texts, _),) in report.tables[0].body()]
    assert last == ["at least the print - 0.01: no", "at least the print - 0.01: yes", "not run here"]


@pytest.mark.parametrize(
    ("auc", "deviation", "printed", "verdict"),
    [
        (0.901, 0.02, (0.91, 0.01), "within 1"), (0.95, 0.02, (0.91, 0.01), "better"), (0.895, 0.02, (0.91, 0.01), "within 2"),
        (0.88, 0.02, (0.91, 0.01), "miss"), (0.90, 0.02, (None, None), ""), (None, None, (0.91, 0.01), ""),
        (0.88, 0.02, (0.91, None), "within 2"),
    ],
)  # fmt: skip
def test_verdicts(auc: float | None, deviation: float | None, printed: Any, verdict: str) -> None:
    figures = {"mean": auc, "deviation": deviation, "paper": printed[0], "paper_deviation": printed[1]}
    cells = with_verdicts(pd.DataFrame([figures, figures], dtype=float).assign(measure="auc", dataset="d", system="s"))
    assert cells["verdict"].tolist() == [verdict, verdict]
    counted = count_agreement(cells)
    assert counted["compared"] == (2 if verdict else 0)
    assert len(counted["below"]) == (2 if verdict in ("miss", "within 2") else 0)
