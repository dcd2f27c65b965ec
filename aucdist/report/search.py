"""The section of the page about a search: the curve over one parameter or the heat map of two, and all settings."""

import math
from numbers import Real
from typing import Any

import numpy as np

from aucdist.metrics.measures import find_measure
from aucdist.report import plots
from aucdist.report.text import auc_text, count_text, parameters_text, search_verdict, value_text

MAX_ROWS = 60
EXECUTION_TEXTS = {
    "tasks": "each task read its own rows",
    "masks": "the tasks ran one after the other on the same rows, with weights of 0 outside their folds",
}
Search = dict[str, Any]


def search_section(search: Search) -> dict[str, Any]:
    """Return the variables of the section in the template.

    `search`: the object that ``aucdist cv --json`` prints.
    Returns ``verdict``, ``paragraphs``, ``figure`` (SVG or None), ``heat`` (or None), ``table``, ``classes`` (or None).
    """
    search = _joined(search)
    varied = _varied_parameters(search)
    return {
        "verdict": search_verdict(search),
        "paragraphs": _paragraphs(search),
        "figure": _curve_figure(search, varied[0]) if len(varied) == 1 and _is_numeric(search, varied[0]) else None,
        "heat": _heat_map(search, *varied) if len(varied) == 2 and _is_grid(search, *varied) else None,
        "table": _settings_table(search),
        "classes": _classes_table(search) if "of_classes" in search else None,
    }


def _joined(search: Search) -> Search:
    """Return the search with the directions of features as a part of their map, where both vary: as one parameter."""
    if not {"features", "monotone"} <= set(_varied_parameters(search)):
        return search

    def joined(parameters: dict[str, Any]) -> dict[str, Any]:
        others, features = {k: v for k, v in parameters.items() if k != "monotone"}, parameters["features"]
        if parameters["monotone"] is None:
            return others
        own = features if isinstance(features, dict) else {"map": str(features or "no map")}
        return others | {"features": {**own, "monotone": parameters["monotone"]}}

    table = [row | {"parameters": joined(row["parameters"])} for row in search["table"]]
    return search | {"table": table, "best": joined(search["best"])}


def _varied_parameters(search: Search) -> list[str]:
    """Return the parameters that take more than one value."""
    table = search["table"]
    return [name for name in search["best"] if len({repr(row["parameters"][name]) for row in table}) > 1]


def _is_grid(search: Search, down: str, across: str) -> bool:
    """Return whether each value of one parameter was tried with each of the other; `features: auto` leaves some out."""
    tried = {(repr(row["parameters"][down]), repr(row["parameters"][across])) for row in search["table"]}
    return len(tried) == len({one for one, _ in tried}) * len({other for _, other in tried})


def _is_numeric(search: Search, name: str) -> bool:
    values = [row["parameters"][name] for row in search["table"]]
    return all(isinstance(v, Real) and not isinstance(v, bool) for v in values)


def _paragraphs(search: Search) -> list[str]:
    folds, n, tasks = search["folds"], len(search["table"]), search["tasks"]
    kind = (
        f"in the order of {folds['time']}" if folds.get("time")
        else f"with the rows of each {folds['groups']} kept together" if folds.get("groups")
        else "with equal rows kept together" if folds.get("duplicates") == "together"
        else "stratified by set of topics" if "of_classes" in search and search["of_classes"]["topics"]
        else "stratified by class"
    )  # fmt: skip
    repeats = f", {folds['repeats']} times" if folds["repeats"] > 1 else ""
    rule = {
        "best": "The setting with the best mean was chosen.",
        "one-se": "Of the settings within one standard error of the best mean, the one with the largest lam was chosen.",
        "simplest": "Of the settings within one standard error of the best mean, the one with the simplest feature map was "
        "chosen, at the lam that is best for it.",
    }[search["rule"]]
    score = (
        "The score is that of choosing by inner folds, on rows that took no part in the choice."
        if search["nested"]
        else "The score is that of the chosen setting on the folds that chose it, which is slightly optimistic."
    )
    by = (
        "spread of groups, corrected for training rows that overlap"
        if "groups" in search
        else "corrected resampled t-test"
    )
    spread = f"Its interval is that of the {by}." if search["interval"] else ""
    stored = f", {tasks['kept']} of them with stored results" if tasks["kept"] else ""
    about = _paragraphs_of_classes(search) if "of_classes" in search else []
    return [
        f"{n} settings by {folds['number']} folds{repeats}, {kind}. {rule} {score} {spread}",
        f"{tasks['all']} tasks{stored}; {EXECUTION_TEXTS[search['placement']]}.",
        *about,
    ]


def _paragraphs_of_classes(search: Search) -> list[str]:
    of_classes, score = search["of_classes"], search["score"]
    one, several = ("topic", "topics") if of_classes["topics"] else ("class", "classes")
    n = len(of_classes["rows"])
    text = f"One setting was chosen for all {several}, by the mean over {n} {several} alike (the macro mean)."
    if of_classes["weighted"] is not None:
        values = (of_classes["weighted"], *(of_classes["weighted_interval"] or ()))
        texts = [auc_text(v, score, *values) for v in values]
        between = f", 95 % interval {texts[1]} to {texts[2]}" if len(texts) > 1 else ""
        text += f" The mean weighted by the held-out rows of each {one} is {texts[0]}{between}."
    left_out = of_classes["left_out"]
    if not left_out:
        return [text]
    names = ", ".join(left_out[:8]) + (f" and {len(left_out) - 8} more" if len(left_out) > 8 else "")
    return [text, f"Too few rows for the folds, and left out of the means: {names}."]


def _classes_table(search: Search) -> dict[str, Any]:
    """Return the scores of the classes over the folds, the worst first."""
    of_classes, metric = search["of_classes"], search["metric"]
    sign = find_measure(metric).sign
    one = "topic" if of_classes["topics"] else "class"
    rows = sorted(of_classes["rows"], key=lambda row: math.inf if row["mean"] is None else sign * row["mean"])
    return {
        "caption": f"Each {one} over the folds with the chosen setting, the worst first. The last columns are of the setting "
        f"that the {one} alone would have chosen on the same folds",
        "headings": [
            one.capitalize(),
            "Training rows",
            f"Mean {metric}",
            "95 % interval",
            "Deviation",
            "Alone",
            "Mean",
        ],
        "rows": [
            (
                row["name"],
                count_text(row["n_pos"]),
                "failed" if row["mean"] is None else auc_text(row["mean"]),
                "" if row["interval"] is None else " to ".join(auc_text(v, *row["interval"]) for v in row["interval"]),
                "" if row["deviation"] is None else auc_text(row["deviation"]),
                "" if row["alone"] is None else parameters_text(row["alone"]["parameters"]),
                "" if row["alone"] is None else auc_text(row["alone"]["mean"]),
            )
            for row in rows
        ],
    }


def _standard_error(row: dict[str, Any]) -> float:
    if row["deviation"] is None:
        return math.nan
    error: float = row.get("standard_error", row["deviation"] / math.sqrt(len(row["folds"])))
    return error


def _curve_figure(search: Search, name: str) -> Any:
    from markupsafe import Markup

    rows = sorted(search["table"], key=lambda row: row["parameters"][name])
    x = np.array([row["parameters"][name] for row in rows], dtype=float)
    means = np.array([math.nan if row["mean"] is None else row["mean"] for row in rows])
    errors = np.array([_standard_error(row) for row in rows])
    chosen = next(i for i, row in enumerate(rows) if row["parameters"] == search["best"])
    metric = search["metric"]
    plot = plots.metric_path(x, means, errors, chosen, name, f"Mean {metric} over the folds")
    return Markup(plots.inline_svg("path", f"{metric} against {name}", search_verdict(search), plot))


def _heat_map(search: Search, down: str, across: str) -> dict[str, Any]:
    """Return the means as a table of two parameters, each cell with a shade from 0 (worst) to 60 (best)."""
    means = [row["mean"] for row in search["table"] if row["mean"] is not None]
    low, high = min(means), max(means)
    sign = find_measure(search["metric"]).sign
    cells: dict[str, dict[str, dict[str, Any]]] = {}
    for row in search["table"]:
        mean = row["mean"]
        shade = 0.5 if mean is None or low == high else (mean - low) / (high - low)
        cells.setdefault(repr(row["parameters"][down]), {})[repr(row["parameters"][across])] = {
            "text": "failed" if mean is None else auc_text(mean),
            "shade": 0 if mean is None else round(60 * (shade if sign > 0 else 1 - shade)),
            "chosen": row["parameters"] == search["best"],
        }
    values = {
        name: {repr(row["parameters"][name]): row["parameters"][name] for row in search["table"]}
        for name in (down, across)
    }
    return {
        "down": down,
        "across": across,
        "heads": [value_text(v) for v in values[across].values()],
        "rows": [
            (value_text(v), [cells[key][other] for other in values[across]]) for key, v in values[down].items()
        ],
    }  # fmt: skip


def _settings_table(search: Search) -> dict[str, Any]:
    """Return the settings, those with the best means first where there are too many of them."""
    rows, sign = list(search["table"]), find_measure(search["metric"]).sign
    if len(rows) > MAX_ROWS:
        worst = -math.inf
        rows = sorted(rows, key=lambda r: worst if r["mean"] is None else sign * r["mean"], reverse=True)[:MAX_ROWS]
    return {
        "parameters": list(search["best"]),
        "metric": search["metric"],
        "counts_features": any("features_kept" in row for row in rows),
        "n_left_out": len(search["table"]) - len(rows),
        "rows": [
            {
                "cells": [value_text(row["parameters"][name]) for name in search["best"]],
                "mean": "failed" if row["mean"] is None else auc_text(row["mean"]),
                "deviation": "" if row["deviation"] is None else auc_text(row["deviation"]),
                "folds": ", ".join("failed" if v is None else auc_text(v) for v in row["folds"]),
                "weighted": auc_text(row["weighted"]) if "weighted" in row else "",
                "passes": count_text(row["passes"]),
                "features": _range_text(row.get("features_kept", [])),
                "chosen": row["parameters"] == search["best"],
                "remark": _remark(row),
            }
            for row in rows
        ],
    }


def _range_text(counts: list[int]) -> str:
    """Format how many features the fits of the folds kept."""
    if not counts:
        return ""
    low, high = count_text(min(counts)), count_text(max(counts))
    return low if low == high else f"{low} to {high}"


def _remark(row: dict[str, Any]) -> str:
    late = row["not_converged"]
    parts = [*row["errors"], *([f"{late} of {len(row['folds'])} fits not converged"] if late else [])]
    return "; ".join(parts)
