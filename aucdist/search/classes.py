"""The classes of a search: which of them have enough rows for every fold, and their scores over the folds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aucdist.data.label_sets import LabelSets
from aucdist.errors import InputError, RunError
from aucdist.metrics.measures import Measure
from aucdist.search.choice import Result, Row, Rule, choose, interval
from aucdist.search.folds import Folds

LEAST_ROWS = 2
"""Training rows of a class, and of its rest, without which it is left out."""


def smallest_class(sets: LabelSets, codes: np.ndarray, least: int) -> tuple[int, int]:
    """Return the rows of the smallest class, and of its rest: of those with at least `least` rows, if there are such.

    What is tried for all classes is decided by it.
    """
    n_pos, n = sets.counts(codes), len(codes)
    rows = np.minimum(n_pos, n - n_pos)
    enough = np.flatnonzero(rows >= least)
    k = int(enough[np.argmin(rows[enough])]) if len(enough) else int(np.argmax(rows))
    return int(n_pos[k]), int(n - n_pos[k])


@dataclass(frozen=True, eq=False)
class SearchedClasses:
    """The classes that a search takes the means over.

    Attributes
    ----------
    sets : LabelSets
        Of these classes.
    n_rows : ndarray of shape (n_classes,), int64
        Training rows of each.
    left_out : tuple of str
        Classes that have too few rows for the folds.
    """

    sets: LabelSets
    n_rows: np.ndarray
    left_out: tuple[str, ...]


def searched_classes(sets: LabelSets, codes: np.ndarray, folds: Folds, note: Callable[[str], None]) -> SearchedClasses:
    """Return the classes that every fold can train on and be scored on.

    Parameters
    ----------
    codes : ndarray of shape (n_samples,), int
        The place of the set of each row of the folds, in their order.
    note : callable
        Takes a sentence on each of the others.

    Raises
    ------
    InputError
        If no class is left.
    """
    n = len(folds.row_id)
    enough, n_rows, names = np.ones(sets.n_classes, dtype=bool), sets.counts(codes), sets.names()
    for fold in folds.all():
        for side, least in zip(folds.rows(fold), (LEAST_ROWS, 1), strict=True):
            n_pos = sets.counts(codes[side])
            enough &= np.minimum(n_pos, int(side.sum()) - n_pos) >= least
    for k in np.flatnonzero(~enough).tolist():
        note(f"class {names[k]!r} has {n_rows[k]} of {n} training rows, too few for the folds: the means leave it out")
    which = np.flatnonzero(enough).tolist()
    if not which:
        raise InputError("no class has rows on both sides of every fold: take fewer folds")
    left_out = tuple(names[k] for k in np.flatnonzero(~enough).tolist())
    return SearchedClasses(sets.only(which), n_rows[which], left_out)


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
    found = []
    for k, (name, n) in enumerate(zip(classes.sets.names(), classes.n_rows.tolist(), strict=True)):
        values = [result["classes"][k] for result in chosen] if complete else []
        about = {"name": name, "n_pos": n, "folds": values, "alone": _alone(rows, k, measure, rule)}
        found.append(about | _mean(values, measure, share, n))
    mean = _mean(weighted, measure, share, int(classes.n_rows.min()))
    return {
        "topics": not classes.sets.exclusive,
        "weighted": mean["mean"],
        "weighted_interval": mean["interval"],
        "left_out": list(classes.left_out),
        "rows": found,
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
        replace(row, results=tuple(r if "error" in r else {**r, "value": r["classes"][k]} for r in row.results))
        for row in rows
    ]
    try:
        best = of_class[choose(of_class, measure, rule)]
    except RunError:
        return None
    return {"parameters": best.parameters, "mean": best.mean}
