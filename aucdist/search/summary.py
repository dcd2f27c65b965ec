"""The summary of a search: what was chosen, its score with an interval, and of several classes those of each."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from aucdist.errors import RunError
from aucdist.metrics.measures import Measure
from aucdist.search.choice import Result, Row, Rule, choose, interval, over_folds
from aucdist.search.folds import Folds, SearchedClasses


def search_summary(
    rows: Sequence[Row], chosen: int, folds: Folds, measure: Measure, rule: Rule,
    classes: SearchedClasses | None = None, nested: Sequence[dict[str, Any]] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return what the folds say of the settings, under the keys of ``aucdist cv --json``.

    The score is the mean over the folds: with `nested` of what each fold chose, else of the chosen setting, which is optimistic.

    Parameters
    ----------
    rows : sequence of Row
        All settings.
    chosen : int
        Position of the chosen one.
    classes : SearchedClasses, optional
        For several classes, over which the scores are means.
    nested : sequence of dict, optional
        For each fold the ``parameters`` that its own training rows chose, None if they could not, and their ``value`` on it.
    """
    results, values = rows[chosen].results, rows[chosen].values
    if nested is not None:
        settings, values = [row.parameters for row in rows], [choice["value"] for choice in nested]
        results = tuple(
            {} if choice["parameters"] is None else rows[settings.index(choice["parameters"])].results[k]
            for k, choice in enumerate(nested)
        )
    known = [value for value in values if value is not None]
    score = float(np.mean(known)) if len(known) == len(values) else None
    sizes = [folds.sizes(fold) for fold in folds.outer()]
    share = float(np.mean([held_out / n_train for n_train, held_out in sizes]))
    fewest, shares = folds.fewest if classes is None else int(classes.n_rows.min()), over_folds(results)
    summary = {
        "best": rows[chosen].parameters,
        "score": score,
        "interval": None if score is None else interval(known, measure, share, fewest, shares=shares),
        "metric": measure.name,
        "rule": rule,
        "test_over_train": share,
        "table": [row.summary() for row in rows],
        "nested": nested,
    }
    if classes is not None:
        summary["of_classes"] = summary_of_classes(classes, results, rows, measure, rule, share)
    return summary if shares is None else summary | {"groups": shares}


def summary_of_classes(
    classes: SearchedClasses, chosen: Sequence[Result], rows: Sequence[Row], measure: Measure, rule: Rule, share: float
) -> dict[str, Any]:
    """Return the scores of each class over the folds, and their weighted mean.

    Parameters
    ----------
    chosen : sequence of dict
        For each fold the result of what was chosen, as `aucdist.search.fold.score_path` returned it.
    rows : sequence of Row
        All settings.
    rule : {"best", "one-se", "simplest"}
    share : float
        Held-out rows for each training row.

    Returns
    -------
    dict
        ``topics``, ``weighted``, ``weighted_interval``, ``left_out``, and ``rows``: for each class ``name``, ``n_pos``, ``mean``,
        ``deviation``, ``interval``, ``folds``, and under ``alone`` the setting that this class alone would have chosen on these
        folds, with its mean. Means and intervals are None if a fold failed.
    """
    complete = all("classes" in result for result in chosen)
    weighted = [result["weighted"] for result in chosen] if complete else []
    of_each = []
    for k, (name, n) in enumerate(zip(classes.sets.names(), classes.n_rows.tolist(), strict=True)):
        values = [result["classes"][k] for result in chosen] if complete else []
        about = {"name": name, "n_pos": n, "folds": values, "alone": _alone(rows, k, measure, rule)}
        of_each.append(about | _mean(values, measure, share, n))
    mean = _mean(weighted, measure, share, int(classes.n_rows.min()))
    return {
        "topics": not classes.sets.exclusive,
        "weighted": mean["mean"],
        "weighted_interval": mean["interval"],
        "left_out": list(classes.left_out),
        "rows": of_each,
    }


def _mean(values: Sequence[float], measure: Measure, share: float, fewest: int) -> dict[str, Any]:
    if not values:
        return {"mean": None, "deviation": None, "interval": None}
    return {
        "mean": float(np.mean(values)),
        "deviation": float(np.std(values, ddof=1)),
        "interval": interval(values, measure, share, fewest),
    }


def _alone(rows: Sequence[Row], k: int, measure: Measure, rule: Rule) -> dict[str, Any] | None:
    """Return the setting that the class at position `k` alone would have chosen, and its mean."""
    of_class = [
        replace(row, results=tuple({**r, "value": r["classes"][k]} if "value" in r else r for r in row.results))
        for row in rows
    ]
    try:
        best = of_class[choose(of_class, measure, rule)]
    except RunError:
        return None
    return {"parameters": best.parameters, "mean": best.mean}
