"""The page of a comparison of runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aucdist.metrics.counts import ScoreCounts
from aucdist.report import plots
from aucdist.report.html import render_template
from aucdist.report.text import auc_text, count_text, number_text, seconds_text

HEADINGS = {
    "auc": ("Test AUC", "paired test by flipped signs"),
    "partial_auc": ("Partial AUC", "paired test by flipped signs"),
    "expected_cost": ("Expected cost of a test row", "paired test by flipped signs"),
    "average_precision": ("Average precision", "paired test by flipped signs"),
    "group_auc": ("AUC within groups", "flipped signs of groups"),
    "ndcg@10": ("NDCG of the first 10 of each group", "flipped signs of groups"),
    "folds": ("Value over the folds of the search", "corrected resampled t-test"),
}

BY_NAME = ("average_precision", "g_mean", "balanced_accuracy")


@dataclass(frozen=True, eq=False)
class Comparison:
    """The contents of the page of a comparison.

    `result`: the object that ``aucdist compare --json`` prints.
    `curves`: name and test scores of each run.
    """

    result: dict[str, Any]
    curves: Sequence[tuple[str, ScoreCounts]]


def render_comparison_page(comparison: Comparison) -> str:
    """Return the page as HTML. Equal comparisons give equal text."""
    from markupsafe import Markup

    result, description = comparison.result, " ".join(sentences(comparison.result))
    figures = {
        name: Markup(plots.inline_svg(name, heading, description, plots.roc_curves(comparison.curves, log_x=log_x)))
        for name, heading, log_x in (
            ("roc", "ROC curves", False), ("roc-low", "ROC curves at low false positive rates", True),
        )
    }  # fmt: skip
    return render_template(
        Path(__file__).with_name("comparison.html"),
        title=f"Comparison of {len(result['runs'])} runs",
        rows=f"{result['n_pos']:,} positive and {result['n_neg']:,} negative test rows",
        sentences=sentences(result),
        warnings=[f"{run['name']}: {text}" for run in result["runs"] for text in run["warnings"]],
        runs=[_run(run) for run in result["runs"]],
        max_fpr=result.get("max_fpr"),
        costed="expected_cost" in result["differences"],
        grouped="group_auc" in result["differences"],
        tests=[_test(name, pairs, result.get("max_fpr")) for name, pairs in result["differences"].items()],
        figures=figures,
    )


def sentences(result: dict[str, Any]) -> list[str]:
    """Return the results of the tests on AUC within groups, AUC, partial AUC and cost, one sentence for each pair of runs."""
    found = [_sentence(pair, "test AUC within groups") for pair in result["differences"].get("group_auc", [])]
    of_all = "test AUC of all rows together" if found else "test AUC"
    found += [_sentence(pair, of_all) for pair in result["differences"]["auc"]]
    what = f"partial AUC up to a false positive rate of {number_text(result.get('max_fpr'))}"
    found += [_sentence(pair, what) for pair in result["differences"].get("partial_auc", [])]
    return found + [_sentence(pair, "expected cost") for pair in result["differences"].get("expected_cost", [])]


def _sentence(pair: dict[str, Any], what: str) -> str:
    first, second, value = pair["first"], pair["second"], pair["value"]
    if value < 0:
        first, second = second, first
    ends = (pair["low"], pair["high"]) if value >= 0 else (-pair["high"], -pair["low"])
    difference = (
        f"{difference_text(abs(value))}, 95 % interval {difference_text(ends[0])} to {difference_text(ends[1])}"
    )
    p = p_text(pair["p_holm"])
    p = p if p.startswith("below") else f"= {p}"
    if value == 0:
        return f"{first} and {second} have the same {what}."
    significant = pair["p_holm"] <= 0.05
    relation = f"has a higher {what} than" if significant else f"does not differ significantly in {what} from"
    return f"{first} {relation} {second} ({difference}, p {p})."


def difference_text(value: float | None) -> str:
    """Return a difference with two significant digits."""
    return "no bound" if value is None else number_text(value, 2)


def p_text(p: float) -> str:
    """Return a p-value."""
    return "below 0.0001" if p < 1e-4 else number_text(p, 2)


def _run(run: dict[str, Any]) -> dict[str, Any]:
    def with_interval(name: str) -> tuple[str, str]:
        value, (low, high) = run[name]["value"], run[name]["interval"]
        if name == "expected_cost":
            return number_text(value), f"{number_text(low)} to {number_text(high)}"
        texts = [auc_text(v, value, low, high) for v in (value, low, high)]
        return texts[0], f"{texts[1]} to {texts[2]}"

    names = [name for name in ("group_auc", "auc", "partial_auc", "expected_cost") if name in run]
    how = f"{run['estimator']}, {run['solver']}"
    return {
        "name": run["name"],
        "how": how,
        "cells": [*map(with_interval, [*names, *BY_NAME]), (seconds_text(run["seconds"]), "")],
    }


def _test(name: str, pairs: list[dict[str, Any]], max_fpr: float | None) -> dict[str, Any]:
    heading, method = HEADINGS[name]
    if name == "partial_auc":
        heading = f"{heading} up to a false positive rate of {number_text(max_fpr)}"
    rows = [
        {
            "pair": f"{pair['first']} minus {pair['second']}",
            "cells": [
                difference_text(pair["value"]),
                f"{difference_text(pair['low'])} to {difference_text(pair['high'])}",
                p_text(pair["p_value"]),
                p_text(pair["p_holm"]),
            ],
            "significant": pair["p_holm"] <= 0.05,
        }
        for pair in pairs
    ]
    corrected = f"{method}; p-values corrected for {count_text(len(pairs))} comparisons by Holm's method"
    return {"heading": heading, "method": corrected if len(pairs) > 1 else method, "rows": rows}
