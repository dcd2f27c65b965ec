"""The section of the page about a search: the curve over one parameter or the heat map of two, and all settings."""

import math
from numbers import Real
from typing import Any

import numpy as np

from aucdist.metrics.measures import find_measure
from aucdist.report import plots
from aucdist.report.text import Json, search_verdict

MAX_ROWS = 60


def search_section(search: Json) -> Json:
    """Return the variables of the section in the template.

    `search`: the object that ``aucdist cv --json`` prints.
    Returns ``result``, the search itself; ``figure`` and ``heat``, or None; ``table``; ``classes``, the worst first; ``one``, the
        word for one of them.
    """
    search = _joined(search)
    varied, of_classes, sign = (
        _varied_parameters(search),
        search.get("of_classes", {}),
        find_measure(search["metric"]).sign,
    )
    return {
        "result": search,
        "figure": _curve_figure(search, varied[0]) if len(varied) == 1 else None,
        "heat": _heat_map(search, *varied) if len(varied) == 2 else None,
        "table": _settings_table(search),
        "classes": sorted(
            of_classes.get("rows", ()), key=lambda row: math.inf if row["mean"] is None else sign * row["mean"]
        ),
        "one": "topic" if of_classes.get("topics") else "class",
    }


def _joined(search: Json) -> Json:
    """Return the search with the directions of features as a part of their map, where both vary: as one parameter."""
    if not {"features", "monotone"} <= set(_varied_parameters(search)):
        return search

    def joined(parameters: Json) -> Json:
        others, features = {k: v for k, v in parameters.items() if k != "monotone"}, parameters["features"]
        if parameters["monotone"] is None:
            return others
        own = features if isinstance(features, dict) else {"map": str(features or "no map")}
        return others | {"features": {**own, "monotone": parameters["monotone"]}}

    table = [row | {"parameters": joined(row["parameters"])} for row in search["table"]]
    return search | {"table": table, "best": joined(search["best"])}


def _varied_parameters(search: Json) -> list[str]:
    """Return the parameters that take more than one value."""
    table = search["table"]
    return [name for name in search["best"] if len({repr(row["parameters"][name]) for row in table}) > 1]


def _standard_error(row: Json) -> float:
    if row["deviation"] is None:
        return math.nan
    error: float = row.get("standard_error", row["deviation"] / math.sqrt(len(row["folds"])))
    return error


def _curve_figure(search: Json, name: str) -> str | None:
    """Return the picture of the means against a parameter, or None if its values are not numbers."""
    values = [row["parameters"][name] for row in search["table"]]
    if not all(isinstance(value, Real) and not isinstance(value, bool) for value in values):
        return None
    rows = sorted(search["table"], key=lambda row: row["parameters"][name])
    x = np.array([row["parameters"][name] for row in rows], dtype=float)
    means = np.array([math.nan if row["mean"] is None else row["mean"] for row in rows])
    errors = np.array([_standard_error(row) for row in rows])
    chosen = next(i for i, row in enumerate(rows) if row["parameters"] == search["best"])
    metric = search["metric"]
    label = f"Mean {metric} over the folds"

    def plot(axes: Any) -> None:
        plots.metric_path(axes, x, means, errors, chosen, name, label)

    return plots.inline_svg("path", f"{metric} against {name}", search_verdict(search), plot)


def _heat_map(search: Json, down: str, across: str) -> Json | None:
    """Return the settings as a table of two parameters, each cell with a shade from 0 (worst) to 60 (best).

    None unless each value of one was tried with each of the other: `features: auto` leaves some out.
    """
    means = [row["mean"] for row in search["table"] if row["mean"] is not None]
    worst, best = min(means, default=0.0), max(means, default=0.0)
    if find_measure(search["metric"]).sign < 0:
        worst, best = best, worst
    values = {
        name: {repr(row["parameters"][name]): row["parameters"][name] for row in search["table"]}
        for name in (down, across)
    }
    cells = {}
    for row in search["table"]:
        mean = row["mean"]
        shade = 0.0 if mean is None else 0.5 if worst == best else (mean - worst) / (best - worst)
        key = repr(row["parameters"][down]), repr(row["parameters"][across])
        cells[key] = {"mean": mean, "shade": round(60 * shade), "chosen": row["parameters"] == search["best"]}
    if len(cells) < len(values[down]) * len(values[across]):
        return None
    return {
        "down": down,
        "across": across,
        "heads": list(values[across].values()),
        "rows": [(value, [cells[key, other] for other in values[across]]) for key, value in values[down].items()],
    }


def _settings_table(search: Json) -> Json:
    """Return the settings, those with the best means first where there are too many of them."""
    rows, sign = search["table"], find_measure(search["metric"]).sign
    if len(rows) > MAX_ROWS:
        worst = -math.inf
        rows = sorted(rows, key=lambda r: worst if r["mean"] is None else sign * r["mean"], reverse=True)[:MAX_ROWS]
    return {
        "parameters": list(search["best"]),
        "metric": search["metric"],
        "counts_features": any("features_kept" in row for row in rows),
        "n_left_out": len(search["table"]) - len(rows),
        "rows": [row | {"chosen": row["parameters"] == search["best"]} for row in rows],
    }
