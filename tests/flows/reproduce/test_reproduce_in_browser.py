"""The pages of the papers in Chromium at a usual width: no table is clipped (figures are left out)."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from support.browser import CLIPPED, WINDOW, Browser
from support.small_paper import load_paper

from flows.reproduce.kind import ExperimentKind, TaskKey, Version
from flows.reproduce.page import render_paper_page


def results_of_all(experiment: ExperimentKind) -> dict[TaskKey, Any]:
    """Return made-up results of every fold of the kinds whose tables are wide."""
    repeats = getattr(experiment, "protocol", None) and experiment.protocol.repeats
    folds = getattr(getattr(experiment, "protocol", None), "folds", 1)
    keys = [
        TaskKey(dataset, system, repeat, fold)
        for dataset in experiment.datasets
        for system in experiment.systems
        for repeat in range(repeats)
        for fold in range(folds)
    ]
    values = {"auc": 0.9, "brier": 0.1, "calibration": 0.01, "train": 0.9, "test": 0.8, "seconds": 1234.5}
    every = getattr(experiment.protocol, "choose", "") == "best"
    points = {name: len(system.points(experiment.grid)) if every else 1 for name, system in experiment.systems.items()}
    return {
        key: {"chosen": list(range(n))} | {name: [value] * n for name, value in values.items()}
        for key in keys
        for n in (points[key.system],)
    }


def test_the_tables_of_the_papers_fit(chromium: Browser, tmp_path: Path) -> None:
    for paper, name in (("000", "table2"), ("003", "keel"), ("004", "low-linear")):
        config = load_paper(paper)
        experiment = config.experiments[name]
        report = replace(experiment.report(results_of_all(experiment)), figures=())
        _, cells = next(report.tables[0].body())
        assert all("." in texts[0] for texts, _ in cells)
        url = "s3://bucket/folder-of-the-data/" + "long-name-" * 5 + ".dat"
        versions = {
            key: Version(d.name, url, 48842, 123, 11687, "1", "0" * 64) for key, d in experiment.datasets.items()
        }
        page = tmp_path / f"{paper}.html"
        page.write_text(
            render_paper_page(config.title, config.departures, [report], versions, "x: 1"), encoding="utf-8"
        )
        chromium.open(page, width=WINDOW)
        assert chromium.evaluate("document.documentElement.scrollWidth") <= WINDOW
        assert chromium.evaluate(CLIPPED) == [], paper
