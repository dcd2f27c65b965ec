"""The search of `features: auto`: the feature maps and values of lam that it tries, its measure, its folds and its rule."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aucdist.estimators.base import BlockClassifier
from aucdist.estimators.link import balance
from aucdist.metrics.measures import measure_name
from aucdist.search.candidates import LEAVES_OF_TOP, candidates
from aucdist.search.choice import Rule
from aucdist.search.grid import Point, points_of
from aucdist.solvers.pairs.top import SHARE

MOST_FOLDS = 5
LEAST_TOL = 1e-2
"""Fits of the folds end at this relative gap, or at that of the model if it is wider: maps differ by more."""
LEAST_TOL_OF_TOP = 3e-2
"""The same for the top of the list: on magic04 partial AUCs differ from those at 1 % by .003 at most, for half the passes."""
LAMS = (1.0, 1e-1, 1e-2, 1e-3, 1e-4)
"""The values of lam that are tried where none is given."""
LAMS_OF_TOP = LAMS[1:-1]
"""Those for the top of the list, where each takes several times the passes of the one before."""
LAMS_OF_PROBABILITIES = (1e-3, 1e-4, 1e-5)
"""Those of probability models, times 4 p (1 - p) as their default is: folds choose by the order of rows, which a large lam hardly
changes while it flattens the probabilities."""
FIRST_ROWS = 10
"""Of each group with grades, of which the NDCG is taken."""
LAMS_OF_LEAVES, LAMS_OF_ALL_PAIRS = (1e-1, 1e-3), (1e-1, 1e-2)
"""Those of leaves there, whose column of LightGBM's score makes lam matter little, and of fits over all pairs."""
ALL_PAIRS: tuple[dict[str, Any] | None, ...] = (
    None,
    {"map": "bins"},
    {"map": "nystroem", "landmarks": 512, "sigma": "median"},
)
"""The maps that are also fitted over all pairs where a model is trained for the top: on few rows that overlap there no weights
part the few highest negatives, and the order of all rows is the better guide to them."""


@dataclass(frozen=True)
class AutoSearch:
    """What `features: auto` searches, in the terms of `aucdist cv`.

    Attributes
    ----------
    points : list of dict
        The settings: maps, and values of lam unless one is given.
    metric : str
        The full name of the measure of the folds, for `aucdist.metrics.measures.find_measure`.
    rule : str
    tol : float
        The relative gap at which fits of the folds end.
    """

    points: list[Point]
    metric: str
    n_folds: int = MOST_FOLDS
    seed: int = 0
    rule: Rule = "simplest"
    tol: float = LEAST_TOL


def auto_search(
    estimator: BlockClassifier,
    *,
    n_pos: int,
    n_neg: int,
    n_features: int,
    missing: bool = False,
    lam: float | None = None,
    n_groups: int | None = None,
    lowest_grade: float | None = None,
    metric: str | None = None,
) -> AutoSearch:
    """Return the search of `features: auto` for an estimator and rows.

    Over all pairs the rule is ``simplest``. At the top of the list few rows decide, so that the standard error over the folds
    is wider than what maps differ by, and that rule gives away what curves gain: the rule is ``best`` there.

    Parameters
    ----------
    missing : bool
        Whether values may be missing.
    lam : float, optional
        The only value to try.
    n_groups : int, optional
        Of rows with groups: folds keep groups whole.
    lowest_grade : float, optional
        Where labels are grades.
    metric : str, optional
        The full name of a measure in place of `default_metric`'s.

    Raises
    ------
    InputError
        If no map is left.
    """
    size = {"n_pos": n_pos, "n_neg": n_neg, "n_features": n_features}
    grouped = n_groups is not None
    maps = candidates(estimator, **size, missing=missing, grouped=grouped)
    rate = trained_max_fpr(estimator, n_neg)
    metric = metric or measure_name(**default_metric(rate, grouped=grouped, lowest_grade=lowest_grade))
    return AutoSearch(
        _points(estimator, maps, lam, _lams(estimator, n_pos, n_neg))
        if rate is None
        else _points_of_top(estimator, maps, lam),
        metric,
        n_folds=max(2, min(MOST_FOLDS, n_pos, n_neg, *([] if n_groups is None else [n_groups]))),
        rule="simplest" if rate is None else "best",
        tol=max(LEAST_TOL if rate is None else LEAST_TOL_OF_TOP, estimator.tol),
    )


def _lams(estimator: BlockClassifier, n_pos: int, n_neg: int) -> tuple[float, ...]:
    """Return the values of lam to try: scaled for probability models, whose default follows the share of positives."""
    if estimator.get_params().get("lam", LAMS) is not None:
        return LAMS
    scale = balance(n_pos, n_neg)
    return tuple(float(f"{lam * scale:.2g}") for lam in LAMS_OF_PROBABILITIES)


def _points(
    estimator: BlockClassifier, maps: Sequence[dict[str, Any] | None], lam: float | None, lams: Sequence[float]
) -> list[Point]:
    if not maps:
        return []
    tried = (lam,) if lam is not None else lams
    return points_of(estimator, auto_grid(maps, tried if "lam" in estimator.get_params() else None))


def _points_of_top(estimator: BlockClassifier, maps: Sequence[dict[str, Any] | None], lam: float | None) -> list[Point]:
    """Return the settings for the top of the list, and those of `ALL_PAIRS`."""
    (name, value), *_ = [(k, v) for k in SHARE if (v := estimator.get_params()[k]) is not None]
    leaves = [one for one in maps if one in LEAVES_OF_TOP]
    points = _points(estimator, [one for one in maps if one not in leaves], lam, LAMS_OF_TOP)
    points += _points(estimator, leaves, lam, LAMS_OF_LEAVES)
    over_all = _points(estimator, [one for one in maps if one in ALL_PAIRS], lam, LAMS_OF_ALL_PAIRS)
    every = [point | {name: value} for point in points] + [point | {name: None} for point in over_all]
    own = estimator.get_params()
    named = {key: own[key] for point in every for key in point}  # a table of settings has a column for each of these
    return [named | point for point in every]


def trained_max_fpr(estimator: Any, n_neg: int) -> float | None:
    """Return the largest false positive rate that an estimator is trained for; None for all pairs.

    Parameters
    ----------
    estimator : object
        With or without ``max_fpr`` and ``max_false_positives``.
    n_neg : int
        The negatives that ``max_false_positives`` is a number of.
    """
    rate, number = (getattr(estimator, name, None) for name in SHARE)
    return rate if number is None else min(number / n_neg, 1.0)


def default_metric(
    max_fpr: float | None, *, grouped: bool = False, lowest_grade: float | None = None
) -> dict[str, Any]:
    """Return what a feature map is chosen by unless that is said: ``metric`` and its parameters, as `measure_name` takes them.

    At the top of the list it is the partial AUC, shrunk towards the AUC where positives are few
    (`aucdist.metrics.partial.shrunk_partial_auc`). Within groups it is the AUC of their pairs, and where rows of groups have
    grades, which are at least 0, the NDCG of the first rows, which is what lists are judged by.
    """
    if max_fpr is not None:
        return {"metric": "shrunk_partial_auc", "max_fpr": max_fpr}
    if grouped and lowest_grade is not None and lowest_grade >= 0:
        return {"metric": "ndcg", "k": FIRST_ROWS}
    return {"metric": "group_auc" if grouped or lowest_grade is not None else "auc"}


def auto_grid(maps: Sequence[dict[str, Any] | None], lams: Sequence[float] | None) -> dict[str, list[Any]]:
    """Return the grid of a search for a feature map: the maps, and the values of lam unless the estimator has none."""
    return {"features": list(maps)} | ({} if lams is None else {"lam": list(lams)})
