"""The page of a comparison of runs of several classes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aucdist.report.comparison import difference_text, p_text
from aucdist.report.html import render_template
from aucdist.report.text import auc_text, count_text, percent_text, seconds_text

LEVEL = 0.05


def render_classes_comparison(result: dict[str, Any]) -> str:
    """Return the page as HTML; `result` is what ``aucdist compare --json`` prints for runs of several classes."""
    names = [run["name"] for run in result["runs"]]
    classes = sorted(result["classes"], key=lambda one: (min(one["auc"].values()), one["name"]))
    return render_template(
        Path(__file__).with_name("classes_comparison.html"),
        title=f"Comparison of {len(result['runs'])} runs",
        one="topic" if result["topics"] else "class",
        sentences=classes_sentences(result),
        runs=[_run(run) for run in result["runs"]],
        names=names,
        classes=[
            (one["name"], [f"{one['n_pos']:,}", *(auc_text(one["auc"][name], *one["auc"].values()) for name in names)])
            for one in classes
        ],
        differences=[
            _tests(result["differences"], "Differences of the test AUC", "Paired test by flipped signs"),
            *(
                [_tests(costs, "Differences of the expected cost of a test row", "Paired test by flipped signs")]
                if (costs := result.get("cost_differences"))
                else []
            ),
        ],
    )


def classes_sentences(result: dict[str, Any]) -> list[str]:
    """Return for each pair of runs in how many classes either has a higher test AUC, or costs more, corrected for all tests."""
    found = _sentences(result["differences"], "test AUC")
    return found + _sentences(result.get("cost_differences", ()), "expected cost")


def _sentences(differences: Sequence[dict[str, Any]], what: str) -> list[str]:
    pairs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for one in differences:
        pairs.setdefault((one["first"], one["second"]), []).append(one)
    found = []
    for (first, second), tests in pairs.items():
        sure = [one for one in tests if one["p_holm"] <= LEVEL]
        higher = sum(one["value"] > 0 for one in sure)
        mean = sum(one["value"] for one in tests) / len(tests)
        text = f"{first} minus {second}: the mean difference of the {what} over {len(tests)} classes is {difference_text(mean)}"
        found.append(f"{text}; significant for {len(sure)}, of which {first} is higher in {higher}.")
    return found


def _run(run: dict[str, Any]) -> dict[str, Any]:
    accuracy = "" if run["test_accuracy"] is None else percent_text(run["test_accuracy"])
    cells = [auc_text(run["test_auc"]), auc_text(run["test_auc_weighted"]), accuracy, seconds_text(run["seconds"])]
    return {"name": run["name"], "how": f"{run['estimator']}, {run['solver']}", "cells": cells}


def _tests(differences: Sequence[dict[str, Any]], heading: str, method: str) -> tuple[str, str, list[dict[str, Any]]]:
    """Return a heading, how the differences are tested, and the tests, the smallest p-values first."""
    found = sorted(differences, key=lambda one: (one["p_holm"], -abs(one["value"]), one["class"]))
    how = f"{method} of each class; p-values corrected for {count_text(len(found))} comparisons by Holm's method"
    return heading, how, [_test(one) for one in found]


def _test(one: dict[str, Any]) -> dict[str, Any]:
    cells = [
        f"{one['first']} minus {one['second']}", difference_text(one["value"]),
        f"{difference_text(one['low'])} to {difference_text(one['high'])}", p_text(one["p_value"]), p_text(one["p_holm"]),
    ]  # fmt: skip
    return {"name": one["class"], "cells": cells, "significant": one["p_holm"] <= LEVEL}
