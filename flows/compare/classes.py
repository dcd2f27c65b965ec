"""Compares runs of several classes: a paired test for each class, with p-values corrected for all of them."""

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from aucdist.data.storage.files import exists, shown
from aucdist.errors import InputError
from aucdist.metrics.compare import Difference, delong_test, holm
from aucdist.metrics.costs import COST_COLUMN, costs_of_labels, mean_cost_difference
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.ranking import auc
from aucdist.report.classes_comparison import render_classes_comparison
from flows.compare.labels import settings_of, unique_names
from flows.json_values import jsonable
from flows.run_folder.costs import common_cost
from flows.run_folder.folder import METRICS, read_about, run_folder, timestamped
from flows.run_folder.scores import SCORES, members_of, read_scores


@dataclass(frozen=True, eq=False)
class ClassesRun:
    """The content of a run folder of several classes, with its test rows in the order of their ids."""

    url: str
    name: str
    about: dict[str, Any]
    table: pd.DataFrame

    def labels(self, name: str) -> np.ndarray:
        """Return +1 for the rows of a class and -1 for the others."""
        return np.where(members_of(self.table["label"].to_numpy(), [name], topics=self.about["topics"])[:, 0], 1, -1)

    def scores(self, name: str) -> np.ndarray:
        """Return the scores of a class."""
        return self.table[f"score {name}"].to_numpy()

    def of_class(self, name: str) -> dict[str, Any]:
        """Return what ``metrics.json`` has of a class."""
        return next(row for row in self.about["classes"] if row["name"] == name)

    def wrong(self, name: str) -> np.ndarray:
        """Return which rows the threshold of a class decides wrongly."""
        return (self.scores(name) > self.of_class(name)["threshold"]) != (self.labels(name) > 0)


def compare_classes(urls: Sequence[str], output: str, skipped: Sequence[str]) -> dict[str, Any]:
    """Compare runs of several classes, and write a folder with a report.

    `urls`: run folders, at least two.
    `output`: the folder or URL below which the folder is made.
    `skipped`: what was given besides and is not the folder of a run.
    Returns what ``aucdist compare --json`` prints.
    Raises InputError if there are fewer than two runs, if one has no test scores, or if test rows or classes differ.
    """
    if len(urls) < 2:
        raise InputError(f"at least two runs are needed, and there is {len(urls)}")
    runs = [read_classes_run(url) for url in urls]
    settings = [settings_of(run.url, run.about) for run in runs]
    names = unique_names([run.name for run in runs], [run.url for run in runs], settings)
    runs = [ClassesRun(**{**vars(run), "name": name}) for run, name in zip(runs, names, strict=True)]
    classes = _common_classes(runs)
    with run_folder(output, timestamped("compare")) as folder:
        result: dict[str, Any] = jsonable(
            {
                "run": folder.url,
                "topics": runs[0].about["topics"],
                "runs": [_row(run) for run in runs],
                "classes": [_areas(runs, name) for name in classes],
                "differences": _differences(
                    runs, classes, lambda y, a, b, name: delong_test(y, a.scores(name), b.scores(name))
                ),
                **_cost_differences(runs, classes),
                "skipped": list(skipped),
            }
        )
        (folder.draft / "report.html").write_text(render_classes_comparison(result), encoding="utf-8")
        (folder.draft / "comparison.json").write_text(json.dumps(result, indent=2, allow_nan=False) + "\n", "utf-8")
        folder.publish()
    return result


def read_classes_run(url: str) -> ClassesRun:
    """Read a run folder of several classes, or a version of one.

    Raises InputError if it is none, or has no test scores.
    """
    about = read_about(url)
    if "classes" not in about:
        raise InputError(
            f"{shown(url)} is a run of two classes, and the others are of several: compare those of one kind"
        )
    if not exists(f"{url}/{SCORES}"):
        raise InputError(f"{shown(url)} has no test scores: train again with `data.test`")
    table = read_scores(url, several=True)
    missing = [row["name"] for row in about["classes"] if f"score {row['name']}" not in table]
    if missing or not {"topics", "metrics"} <= about.keys():
        raise InputError(f"{shown(url)} is damaged: its {METRICS} and its {SCORES} have other classes")
    return ClassesRun(url, about["name"], about, table)


def _common_classes(runs: Sequence[ClassesRun]) -> list[str]:
    """Return the classes that have an AUC in every run, after a check that the test rows are the same."""
    first = runs[0]
    for run in runs[1:]:
        if not first.table[["row_id", "label"]].equals(run.table[["row_id", "label"]]):
            raise InputError(
                f"the test rows of {shown(first.url)} and {shown(run.url)} differ, or their classes: runs are compared on the "
                "same rows, so take the same data, `positive`, `fraction` and `seed`"
            )
        if "cost" in first.table and "cost" in run.table and not first.table["cost"].equals(run.table["cost"]):
            raise InputError(f"{shown(first.url)} and {shown(run.url)} have different costs of the same test rows")
    tested = [[row["name"] for row in run.about["classes"] if row["test_auc"] is not None] for run in runs]
    classes = [name for name in tested[0] if all(name in others for others in tested[1:])]
    if not classes:
        raise InputError("there is no class that test rows of all runs have")
    return classes


def _row(run: ClassesRun) -> dict[str, Any]:
    metrics = run.about["metrics"]
    return {
        "name": run.name, "run": shown(run.url), "estimator": run.about["estimator"], "solver": run.about["solver"],
        "seconds": run.about["seconds"]["fit"],
        **{key: metrics[key] for key in ("test_auc", "test_auc_weighted", "test_accuracy")},
    }  # fmt: skip


def _areas(runs: Sequence[ClassesRun], name: str) -> dict[str, Any]:
    y = runs[0].labels(name)
    areas = {run.name: auc(ScoreCounts.from_scores(y, run.scores(name))) for run in runs}
    return {"name": name, "n_pos": int((y > 0).sum()), "n_neg": int((y < 0).sum()), "auc": areas}


def _differences(
    runs: Sequence[ClassesRun],
    classes: Sequence[str],
    test: Callable[[np.ndarray, ClassesRun, ClassesRun, str], Difference],
) -> list[dict[str, Any]]:
    """Return a paired test for each class and each pair of runs; Holm's method corrects for all of them."""
    found = []
    for name in classes:
        y = runs[0].labels(name)
        for a, b in itertools.combinations(runs, 2):
            found.append({"class": name, "first": a.name, "second": b.name, **asdict(test(y, a, b, name))})
    corrected = holm([one["p_value"] for one in found])
    return [{**one, "p_holm": p} for one, p in zip(found, corrected, strict=True)]


def _cost_differences(runs: Sequence[ClassesRun], classes: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Return under ``cost_differences`` the tests of the expected cost of each class; nothing where runs do not say costs."""
    cost = common_cost([run.of_class(name).get("operating_point") for run in runs for name in classes])
    if cost is None:
        return {}
    column = runs[0].table["cost"].to_numpy() if COST_COLUMN in cost.values() else None

    def test(y: np.ndarray, a: ClassesRun, b: ClassesRun, name: str) -> Difference:
        return mean_cost_difference(y > 0, (a.wrong(name), b.wrong(name)), costs_of_labels(y, column, cost))

    return {"cost_differences": _differences(runs, classes, test)}
