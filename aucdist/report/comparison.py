"""The page of a comparison of runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aucdist.metrics.counts import ScoreCounts
from aucdist.report import plots
from aucdist.report.html import page_of, style
from aucdist.report.table import auc_text, count_text, figure, seconds_text

HEADINGS = {
    "auc": ("Test AUC", "paired DeLong test"),
    "average_precision": ("Average precision", "paired bootstrap"),
    "folds": ("Value over the folds of the search", "corrected resampled t-test"),
}


@dataclass(frozen=True, eq=False)
class Compared:
    """What the page shows.

    Attributes
    ----------
    result : dict
        The object that ``aucdist compare --json`` prints.
    curves : sequence of (str, ScoreCounts)
        Name and test scores of each run.
    """

    result: dict[str, Any]
    curves: Sequence[tuple[str, ScoreCounts]]


def render(compared: Compared) -> str:
    """Return the page as HTML. The same comparison gives the same text."""
    from markupsafe import Markup

    result, words = compared.result, " ".join(sentences(compared.result))
    figures = {
        name: Markup(plots.draw(name, heading, words, plots.rocs(compared.curves, log_x=log_x)))
        for name, heading, log_x in (
            ("roc", "ROC curves", False), ("roc-low", "ROC curves at low false positive rates", True),
        )
    }  # fmt: skip
    return page_of(
        Path(__file__).with_name("comparison.html"),
        style=style(),
        n=len(result["runs"]),
        rows=f"{result['n_pos']:,} positive and {result['n_neg']:,} negative test rows",
        sentences=sentences(result),
        warnings=[f"{run['name']}: {text}" for run in result["runs"] for text in run["warnings"]],
        runs=[_run(run) for run in result["runs"]],
        tests=[_test(name, pairs) for name, pairs in result["differences"].items()],
        figures=figures,
    )


def sentences(result: dict[str, Any]) -> list[str]:
    """Return what the tests on the test AUC say, a sentence for each pair of runs."""
    return [_sentence(pair) for pair in result["differences"]["auc"]]


def _sentence(pair: dict[str, Any]) -> str:
    first, second, value = pair["first"], pair["second"], pair["value"]
    if value < 0:
        first, second = second, first
    ends = (pair["low"], pair["high"]) if value >= 0 else (-pair["high"], -pair["low"])
    told = f"{difference_text(abs(value))}, 95 % interval {difference_text(ends[0])} to {difference_text(ends[1])}"
    chance = p_text(pair["p_holm"])
    chance = chance if chance.startswith("below") else f"= {chance}"
    if value == 0:
        return f"{first} and {second} have the same test AUC."
    sure = pair["p_holm"] <= 0.05
    said = "has a higher test AUC than" if sure else "is not shown to differ in test AUC from"
    return f"{first} {said} {second} ({told}, p {chance})."


def difference_text(value: float | None) -> str:
    """Return a difference with a sign where it is negative, and two digits that count."""
    return "no bound" if value is None else figure(value, 2)


def p_text(p: float) -> str:
    """Return a p-value."""
    return "below 0.0001" if p < 1e-4 else figure(p, 2)


def _run(run: dict[str, Any]) -> dict[str, Any]:
    def spread(name: str) -> tuple[str, str]:
        value, (low, high) = run[name]["value"], run[name]["interval"]
        texts = [auc_text(v, value, low, high) for v in (value, low, high)]
        return texts[0], f"{texts[1]} to {texts[2]}"

    names = ("auc", "average_precision", "g_mean", "balanced_accuracy")
    how = f"{run['estimator']}, {run['solver']}"
    return {"name": run["name"], "how": how, "cells": [*map(spread, names), (seconds_text(run["seconds"]), "")]}


def _test(name: str, pairs: list[dict[str, Any]]) -> dict[str, Any]:
    heading, method = HEADINGS[name]
    rows = [
        {
            "pair": f"{pair['first']} minus {pair['second']}",
            "cells": [
                difference_text(pair["value"]),
                f"{difference_text(pair['low'])} to {difference_text(pair['high'])}",
                p_text(pair["p_value"]),
                p_text(pair["p_holm"]),
            ],
            "sure": pair["p_holm"] <= 0.05,
        }
        for pair in pairs
    ]
    words = f"{method}; p-values beside them corrected for {count_text(len(pairs))} comparisons (Holm)"
    return {"heading": heading, "words": words if len(pairs) > 1 else method, "rows": rows}
