"""The page of a comparison of runs, of two classes or of several."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aucdist.metrics.counts import ScoreCounts
from aucdist.report import plots
from aucdist.report.html import render_template
from aucdist.report.text import auc_text, count_text, number_text, percent_text, seconds_text

HEADINGS = {
    "auc": ("Test AUC", "paired test by flipped signs"),
    "partial_auc": ("Partial AUC", "paired test by flipped signs"),
    "expected_cost": ("Expected cost of a test row", "paired test by flipped signs"),
    "average_precision": ("Average precision", "paired test by flipped signs"),
    "group_auc": ("AUC within groups", "flipped signs of groups"),
    "ndcg@10": ("NDCG of the first 10 of each group", "flipped signs of groups"),
    "folds": ("Value over the folds of the search", "corrected resampled t-test"),
}
COLUMNS = {
    "group_auc": "AUC within groups", "auc": "AUC", "partial_auc": "Partial AUC", "expected_cost": "Expected cost of a row",
    "average_precision": "Average precision", "g_mean": "G-mean", "balanced_accuracy": "Balanced accuracy",
}  # fmt: skip
"""Measures of a run of two classes, in the order of the table."""
OF_CLASSES = {"test_auc": "Mean test AUC", "test_auc_weighted": "Weighted", "test_accuracy": "Accuracy"}
LEVEL = 0.05


def render_comparison_page(result: dict[str, Any], curves: Sequence[tuple[str, ScoreCounts]]) -> str:
    """Return the page as HTML. Equal arguments give equal text.

    `result`: the object that ``aucdist compare --json`` prints.
    `curves`: name and test scores of each run of two classes.
    """
    from markupsafe import Markup

    several, runs, description = "classes" in result, result["runs"], " ".join(sentences(result))
    differences, max_fpr = result["differences"], result.get("max_fpr")
    if several:
        tests = [_tests(("Differences of the test AUC", "paired test by flipped signs of each class"), differences)]
        if "cost_differences" in result:
            heading = ("Differences of the expected cost of a test row", "paired test by flipped signs of each class")
            tests.append(_tests(heading, result["cost_differences"]))
        about, intervals = "All runs are compared on the same test rows.", ""
        columns = OF_CLASSES
    else:
        tests = [_tests(_heading(name, max_fpr), pairs) for name, pairs in differences.items()]
        about = f"All runs are compared on the same {result['n_pos']:,} positive and {result['n_neg']:,} negative test rows."
        columns = {name: heading for name, heading in COLUMNS.items() if name in runs[0]}
        if max_fpr is not None:
            columns["partial_auc"] = f"Partial AUC, FPR ≤ {number_text(max_fpr)}"
        intervals = (
            "95 % intervals: score intervals with DeLong's variance for the AUC"
            f"{' and the partial AUC' * (max_fpr is not None)}, "
            "with the jackknife's for the average precision, "
            f"{'with that of groups for the AUC within them, ' * ('group_auc' in columns)}"
            f"{'''Stringer's bounds for the expected cost, ''' * ('expected_cost' in columns)}"
            "a stratified bootstrap for the other measures."
        )
    shown = (("roc", "ROC curves", False), ("roc-low", "ROC curves at low false positive rates", True))
    return render_template(
        Path(__file__).with_name("comparison.html"),
        title=f"Comparison of {len(runs)} runs",
        about=about,
        intervals=intervals,
        sentences=sentences(result),
        warnings=[f"{run['name']}: {text}" for run in runs for text in run.get("warnings", ())],
        headings=[*columns.values(), "Time of the fit"],
        runs=[_run(run, list(columns)) for run in runs],
        one="topic" if result.get("topics") else "class",
        names=[run["name"] for run in runs],
        classes=_classes(result) if several else None,
        tests=tests,
        figures={
            name: Markup(plots.inline_svg(name, heading, description, plots.roc_curves(curves, log_x=log_x)))
            for name, heading, log_x in (shown if curves else ())
        },
    )


def sentences(result: dict[str, Any]) -> list[str]:
    """Return the results of the tests, one sentence for each pair of runs and each measure that is said in words."""
    differences = result["differences"]
    if "classes" in result:
        costs = result.get("cost_differences", ())
        return _of_classes(differences, "test AUC") + _of_classes(costs, "expected cost")
    in_groups = differences.get("group_auc", [])
    measures = [
        (in_groups, "test AUC within groups"),
        (differences["auc"], "test AUC of all rows together" if in_groups else "test AUC"),
        (
            differences.get("partial_auc", []),
            f"partial AUC up to a false positive rate of {number_text(result.get('max_fpr'))}",
        ),
        (differences.get("expected_cost", []), "expected cost"),
    ]
    return [_sentence(pair, what) for pairs, what in measures for pair in pairs]


def _of_classes(differences: Sequence[dict[str, Any]], what: str) -> list[str]:
    """Return for each pair of runs in how many classes either is higher, corrected for all tests."""
    pairs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for test in differences:
        pairs.setdefault((test["first"], test["second"]), []).append(test)
    texts = []
    for (first, second), tests in pairs.items():
        sure = [test for test in tests if test["p_holm"] <= LEVEL]
        higher = sum(test["value"] > 0 for test in sure)
        mean = sum(test["value"] for test in tests) / len(tests)
        text = f"{first} minus {second}: the mean difference of the {what} over {len(tests)} classes is {difference_text(mean)}"
        texts.append(f"{text}; significant for {len(sure)}, of which {first} is higher in {higher}.")
    return texts


def _sentence(pair: dict[str, Any], what: str) -> str:
    first, second, value = pair["first"], pair["second"], pair["value"]
    if value == 0:
        return f"{first} and {second} have the same {what}."
    if value < 0:
        first, second = second, first
    low, high = (pair["low"], pair["high"]) if value >= 0 else (-pair["high"], -pair["low"])
    p = p_text(pair["p_holm"])
    p = p if p.startswith("below") else f"= {p}"
    significant = pair["p_holm"] <= LEVEL
    relation = f"has a higher {what} than" if significant else f"does not differ significantly in {what} from"
    return (
        f"{first} {relation} {second} ({difference_text(abs(value))}, 95 % interval {difference_text(low)} to "
        f"{difference_text(high)}, p {p})."
    )


def difference_text(value: float | None) -> str:
    """Return a difference with two significant digits."""
    return "no bound" if value is None else number_text(value, 2)


def p_text(p: float) -> str:
    """Return a p-value."""
    return "below 0.0001" if p < 1e-4 else number_text(p, 2)


def _run(run: dict[str, Any], measures: Sequence[str]) -> dict[str, Any]:
    cells = [*(_measure(name, run[name]) for name in measures), (seconds_text(run["seconds"]), "")]
    return {"name": run["name"], "how": f"{run['estimator']}, {run['solver']}", "cells": cells}


def _measure(name: str, found: Any) -> tuple[str, str]:
    """Return a measure and its interval as text; those of several classes have none."""
    if not isinstance(found, dict):
        text = percent_text if name == "test_accuracy" else auc_text
        return "" if found is None else text(found), ""
    value, (low, high) = found["value"], found["interval"]
    if name == "expected_cost":
        return number_text(value), f"{number_text(low)} to {number_text(high)}"
    texts = [auc_text(v, value, low, high) for v in (value, low, high)]
    return texts[0], f"{texts[1]} to {texts[2]}"


def _classes(result: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """Return the test rows and the AUC of each class, the lowest first."""
    rows = sorted(result["classes"], key=lambda row: (min(row["auc"].values()), row["name"]))
    names = [run["name"] for run in result["runs"]]
    return [
        (row["name"], [f"{row['n_pos']:,}", *(auc_text(row["auc"][name], *row["auc"].values()) for name in names)])
        for row in rows
    ]


def _heading(name: str, max_fpr: float | None) -> tuple[str, str]:
    heading, method = HEADINGS[name]
    if name == "partial_auc":
        heading = f"{heading} up to a false positive rate of {number_text(max_fpr)}"
    return heading, method


def _tests(heading: tuple[str, str], tests: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return a section of tests; of several classes the smallest p-values come first."""
    of_classes = "class" in tests[0]
    if of_classes:
        tests = sorted(tests, key=lambda test: (test["p_holm"], -abs(test["value"]), test["class"]))
    rows = []
    for test in tests:
        cells = [
            difference_text(test["value"]),
            f"{difference_text(test['low'])} to {difference_text(test['high'])}",
            p_text(test["p_value"]),
            p_text(test["p_holm"]),
        ]
        pair = f"{test['first']} minus {test['second']}"
        head = (test["class"], pair) if of_classes else (pair, "")
        rows.append({"head": head, "cells": cells, "significant": test["p_holm"] <= LEVEL})
    corrected = f"; p-values corrected for {count_text(len(tests))} comparisons by Holm's method" * (len(tests) > 1)
    return {"heading": heading[0], "method": heading[1] + corrected, "rows": rows, "of_classes": of_classes}
