"""The page of several classes escapes names, is the same every time, shows what went wrong, and fits its window."""

from pathlib import Path

import numpy as np
import pytest
from support.browser import CLIPPED, WINDOW, Browser, browser, installed

from aucdist.metrics.counts import ScoreCounts
from aucdist.report.run import Report, render_run_page

EVIL = "</title></style></svg><script>alert('x')</script>&\"'"


def made(n_classes: int, *, topics: bool = False, tested: bool = True, excess: float = 1e-3) -> Report:
    random = np.random.default_rng(n_classes)
    confusions = random.integers(0, 4, (n_classes, n_classes)) + 30 * np.eye(n_classes, dtype=int)
    curves, rows, bounds = [], [], {"primal": 1.0, "dual": 1.0 - excess, "relative_gap": excess}
    for k in range(n_classes):
        y = np.repeat([1, -1], [30, 200])
        curves.append(ScoreCounts.from_scores(y, random.normal(size=230) + 1.5 * (y > 0)))
        area = 0.7 + 0.2 * random.random()
        rows.append(
            {
                "name": f"{EVIL} {k}", "n_pos": 70, "n_neg": 400, "train_auc": 0.95, "test_pos": int(confusions[k].sum()),
                "test_auc": area if tested and k else None,
                "test_auc_interval": [area - 0.1, area + 0.05] if tested and k else None,
                "recall": 0.5 if tested else None, "precision": 0.25 if tested else None, "threshold": 0.0, "passes": 12,
                "certificate": {**bounds, "status": "converged" if k else "max_passes"},
            }
        )  # fmt: skip
    metrics = {
        "train_auc": 0.95, "test_auc": 0.8 if tested else None, "test_auc_weighted": 0.81 if tested else None,
        "test_accuracy": None if topics or not tested else 0.7,
    }  # fmt: skip
    run = {
        "run": f"runs/{EVIL}", "estimator": "PairwiseHingeClassifier", "solver": "all-pairs", "topics": topics, "passes": 99,
        "metrics": metrics, "classes": rows,
    }  # fmt: skip
    table = confusions if tested else None
    return Report(
        f"title {EVIL}", run, {"name": EVIL}, f"name: {EVIL}", [("Time", "1 s")], curves=curves, confusions=table
    )


@pytest.mark.parametrize("topics", [False, True])
@pytest.mark.parametrize("tested", [False, True])
def test_the_page_says_what_there_is(topics: bool, tested: bool) -> None:
    report = made(5, topics=topics, tested=tested)
    page = render_run_page(report)
    assert page == render_run_page(report)
    assert "<script>" not in page
    assert "The fit did not converge for" in page
    assert page.count('aria-label="ROC curve"') == 5
    assert ("The most frequent mistakes" in page) == (tested and not topics)
    assert ("The means leave out" in page) == tested
    assert ("There are no test rows" in page) == (not tested)
    order = [page.index(f"&#39; {k}</bdi>") for k in range(5)]
    if tested:
        areas = [row["test_auc"] for row in report.run["classes"][1:]]
        assert np.argsort(order)[:4].tolist() == (1 + np.argsort(areas)).tolist()
        assert order[0] == max(order)  # the class without an AUC comes last


def test_a_bound_of_exactly_0() -> None:
    assert "above its minimum by at most 0 %" in render_run_page(made(3, excess=0.0))


@pytest.mark.skipif(installed() is None, reason="needs a browser")
@pytest.mark.parametrize("n_classes", [3, 100])
def test_the_page_fits(n_classes: int, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(render_run_page(made(n_classes)), encoding="utf-8")
    with browser(tmp_path / "profile") as window:
        for width in (1300, 400):
            fits(window, page, width)


def fits(window: Browser, page: Path, width: int) -> None:
    window.open(page, width=width)
    assert window.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.skipif(installed() is None, reason="needs a browser")
def test_operating_points_have_a_table_of_their_own_that_fits(tmp_path: Path) -> None:
    report, rate = made(4), {"value": 0.5, "interval": [0.4, 0.6]}
    cost = {"value": 1.4429511, "interval": [1.3211019, 1.5970482], "without_model": 4.264}
    point = {"wanted": {"cost": {"false_alarm": 5, "miss": "cost_column"}}, "rows": "test", "expected_cost": cost}
    for k, row in enumerate(report.run["classes"]):
        row |= {"name": f"class {k}", "operating_point": point | dict.fromkeys(("recall", "precision", "fpr"), rate)}
    page = tmp_path / "page.html"
    page.write_text(render_run_page(report), encoding="utf-8")
    assert "<td>144</td><td>132 to 160</td><td>426</td>" in page.read_text(encoding="utf-8")
    with browser(tmp_path / "profile") as window:
        window.open(page, width=WINDOW)
        assert window.evaluate(CLIPPED) == []
