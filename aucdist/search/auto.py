"""The search of `features: auto`: the feature maps and values of lam that it tries, its measure, its folds and its rule."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aucdist.estimators.base import BlockClassifier
from aucdist.metrics.measures import measure_name
from aucdist.search.candidates import candidates
from aucdist.search.choice import Rule
from aucdist.search.grid import Point, points_of

MOST_FOLDS = 5
LEAST_TOL = 1e-2
"""Fits of the folds end at this relative gap, or at that of the model if it is wider: maps differ by more."""
LEAST_TOL_OF_TOP = 3e-2
"""The same for the top of the list: on magic04 partial AUCs differ from those at 1 % by .003 at most, for half the passes."""
LAMS = (1.0, 1e-1, 1e-2, 1e-3, 1e-4)
"""The values of lam that are tried where none is given."""
LAMS_OF_TOP = LAMS[:-1]
"""Those for the top of the list, where each takes several times the passes of the one before."""


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
    graded: bool = False,
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
        Of rows with groups: the measure is then the AUC within groups, and folds keep groups whole.
    graded : bool
        Whether labels are grades: pairs are then of rows with different grades, in the measure as well.

    Raises
    ------
    InputError
        If no map is left.
    """
    size = {"n_pos": n_pos, "n_neg": n_neg, "n_features": n_features}
    maps = candidates(estimator, **size, missing=missing, grouped=n_groups is not None)
    rate = trained_max_fpr(estimator, n_neg)
    lams = (LAMS if rate is None else LAMS_OF_TOP) if lam is None else (lam,)
    return AutoSearch(
        points_of(estimator, auto_grid(maps, lams if "lam" in estimator.get_params() else None)),
        trained_metric(rate, within_groups=n_groups is not None or graded),
        n_folds=max(2, min(MOST_FOLDS, n_pos, n_neg, *([] if n_groups is None else [n_groups]))),
        rule="simplest" if rate is None else "best",
        tol=max(LEAST_TOL if rate is None else LEAST_TOL_OF_TOP, estimator.tol),
    )


def trained_max_fpr(estimator: Any, n_neg: int) -> float | None:
    """Return the largest false positive rate that an estimator is trained for; None for all pairs.

    Parameters
    ----------
    estimator : object
        With or without ``max_fpr`` and ``max_false_positives``.
    n_neg : int
        The negatives that ``max_false_positives`` is a number of.
    """
    rate, number = (getattr(estimator, name, None) for name in ("max_fpr", "max_false_positives"))
    return rate if number is None else min(number / n_neg, 1.0)


def trained_metric(max_fpr: float | None, *, within_groups: bool = False) -> str:
    """Return the full name of the measure that is trained for: of the pairs within groups, of the top, or of all pairs.

    At the top it is shrunk towards the AUC where positives are few (`aucdist.metrics.top.shrunk_partial_auc`).
    """
    if max_fpr is not None:
        return measure_name("shrunk_partial_auc", max_fpr=max_fpr)
    return "group_auc" if within_groups else "auc"


def auto_grid(maps: Sequence[dict[str, Any] | None], lams: Sequence[float] | None) -> dict[str, list[Any]]:
    """Return the grid of a search for a feature map: the maps, and the values of lam unless the estimator has none."""
    return {"features": list(maps)} | ({} if lams is None else {"lam": list(lams)})
