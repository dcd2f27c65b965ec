"""Measures of the top of a ranking, and the thresholds for them, as functions of counts.

A threshold predicts the positive class for ``score > threshold``, so rows with equal scores are predicted alike. Measures at a
number of rows k take exactly k rows, and count ties at the boundary in part, as if they were broken at random.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from aucdist.errors import InputError
from aucdist.metrics.auc import _exact, _refuse_weights, confusion, precision, recall
from aucdist.metrics.compare import _refuse_level, bootstrap_interval
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.partial import Estimate


@dataclass(frozen=True)
class OperatingPoint:
    """The performance of a fixed threshold, each measure with its exact binomial interval.

    Attributes
    ----------
    threshold : float
    recall, fpr, precision, alerts : Estimate
        Share of the positives found, of the negatives flagged, of positives among the flagged rows, and of all rows flagged.
        The last two hold for rows with the same share of positives.
    """

    threshold: float
    recall: Estimate
    fpr: Estimate
    precision: Estimate
    alerts: Estimate


def threshold_at(
    counts: ScoreCounts,
    *,
    fpr: float | None = None,
    alerts: float | None = None,
    precision: float | None = None,
    recall: float | None = None,
) -> float:
    """Return the threshold that meets one requirement and finds as many positives (for `recall`: flags as few rows) as possible.

    The threshold is the midpoint of two neighbouring scores, or the highest score if no row may be flagged, or just below the
    lowest score if all rows must be flagged.

    Parameters
    ----------
    counts : ScoreCounts
    fpr : float, optional
        At most this share of the negatives is flagged; from 0 to 1.
    alerts : float, optional
        At most this share of all rows is flagged; from 0 to 1.
    precision : float, optional
        At least this share of the flagged rows is positive; above 0 and at most 1.
    recall : float, optional
        At least this share of the positives is flagged; above 0 and at most 1.

    Raises
    ------
    InputError
        If not exactly one requirement is given, it is out of its range, a class has no rows, or no threshold has this precision.
    """
    given = {
        name: value
        for name, value in (("fpr", fpr), ("alerts", alerts), ("precision", precision), ("recall", recall))
        if value is not None
    }
    if len(given) != 1:
        raise InputError(
            f"threshold_at takes one of fpr, alerts, precision and recall; {', '.join(given) or 'none'} is given"
        )
    ((name, value),) = given.items()
    return counts.threshold(len(counts.values) - _n_flagged(counts, name, value))


def recall_at_fpr(counts: ScoreCounts, max_fpr: float) -> float:
    """Return the largest recall of any threshold whose false positive rate is at most `max_fpr`.

    Parameters
    ----------
    counts : ScoreCounts
    max_fpr : float
        From 0 to 1.

    Raises
    ------
    InputError
        If a class has no rows, or `max_fpr` is out of its range.
    """
    found, _ = _cumulated(counts)
    return float(found[_n_flagged(counts, "fpr", max_fpr)] / found[-1])


def fpr_at_recall(counts: ScoreCounts, min_recall: float) -> float:
    """Return the smallest false positive rate of any threshold whose recall is at least `min_recall`.

    Parameters
    ----------
    counts : ScoreCounts
    min_recall : float
        Above 0 and at most 1.

    Raises
    ------
    InputError
        If a class has no rows, or `min_recall` is out of its range.
    """
    _, false = _cumulated(counts)
    return float(false[_n_flagged(counts, "recall", min_recall)] / false[-1])


def recall_at_k(counts: ScoreCounts, k: float) -> float:
    """Return the share of the positives among the k highest-scoring rows.

    Parameters
    ----------
    counts : ScoreCounts
    k : float
        Number of rows, or their weight if there are weights; above 0 and at most that of all rows.

    Raises
    ------
    InputError
        If a class has no rows, or k is out of its range.
    """
    found, _ = _cumulated(counts)
    return _found_in_top(counts, k) / float(found[-1])


def precision_at_k(counts: ScoreCounts, k: float) -> float:
    """Return the share of positives among the k highest-scoring rows; parameters and errors are those of `recall_at_k`."""
    return _found_in_top(counts, k) / k


def measure_interval(
    counts: ScoreCounts,
    measure: Callable[[ScoreCounts], float],
    level: float = 0.95,
    *,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Estimate:
    """Return a measure with its stratified percentile bootstrap interval; see `aucdist.metrics.compare.bootstrap_interval`."""
    low, high = bootstrap_interval(counts, measure, level, n_resamples=n_resamples, seed=seed)
    return Estimate(measure(counts), low, high, level, "bootstrap")


def operating_point(counts: ScoreCounts, threshold: float, level: float = 0.95) -> OperatingPoint:
    """Return the performance of a threshold that was chosen on other rows.

    Given the threshold, all measures are shares of independent rows, so the intervals are those of Clopper and Pearson
    (Biometrika 26, 1934, 404-413). They cover at least as often as `level` says. If the threshold was chosen on the same rows,
    they cover less.

    Parameters
    ----------
    counts : ScoreCounts
        Counts without weights.
    threshold : float
    level : float
        At least 0.5 and below 1.

    Raises
    ------
    InputError
        If a class has no rows, there are weights, or a parameter is out of its range.
    """
    _refuse_level(level)
    _refuse_weights(counts)
    _exact(counts)
    table = confusion(counts, threshold)
    flagged = table["tp"] + table["fp"]
    rows = counts.rows_pos + counts.rows_neg
    return OperatingPoint(
        threshold,
        recall=_share_estimate(recall(table), table["tp"], counts.rows_pos, level),
        fpr=_share_estimate(table["fp"] / counts.rows_neg, table["fp"], counts.rows_neg, level),
        precision=_share_estimate(precision(table), table["tp"], flagged, level),
        alerts=_share_estimate(flagged / rows, flagged, rows, level),
    )


def clopper_pearson(successes: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Return the exact binomial interval of a share, which is [0, 1] for n = 0."""
    from scipy.special import betaincinv  # here, because importing it takes time that most measures need not spend

    tail = 0.5 * (1 - level)
    low = float(betaincinv(successes, n - successes + 1, tail)) if successes > 0 else 0.0
    high = float(betaincinv(successes + 1, n - successes, 1 - tail)) if successes < n else 1.0
    return low, high


def _share_estimate(value: float, successes: float, n: float, level: float) -> Estimate:
    return Estimate(float(value), *clopper_pearson(successes, n, level), level, "clopper-pearson")


def _cumulated(counts: ScoreCounts) -> tuple[np.ndarray, np.ndarray]:
    """Return the weight of the flagged positives and negatives if the 0, 1, 2, ... highest scores are flagged."""
    pos, neg = _exact(counts)
    found, false = (np.concatenate(([0], np.cumsum(column[::-1]))).astype(np.float64) for column in (pos, neg))
    return found, false


def _n_flagged(counts: ScoreCounts, name: str, value: float) -> int:
    """Return how many of the highest distinct scores are flagged to meet a requirement of `threshold_at`."""
    none_allowed = name in ("fpr", "alerts")
    if not (0 <= value <= 1 and (none_allowed or value > 0)):
        raise InputError(f"{name} is {value}; it must be {'at least 0' if none_allowed else 'above 0'} and at most 1")
    found, false = _cumulated(counts)
    if name == "recall":
        return int(np.searchsorted(found / found[-1], value, side="left"))
    if name == "precision":
        shares = found[1:] / (found[1:] + false[1:])
        good = np.flatnonzero(shares >= value)
        if len(good) == 0:
            raise InputError(f"precision is {value}; the highest precision of any threshold is {shares.max():.4g}")
        return int(good[-1]) + 1
    rates = false / false[-1] if name == "fpr" else (found + false) / (found[-1] + false[-1])
    return int(np.searchsorted(rates, value, side="right")) - 1


def _found_in_top(counts: ScoreCounts, k: float) -> float:
    found, false = _cumulated(counts)
    flagged = found + false
    if not 0 < k <= flagged[-1]:
        raise InputError(f"k is {k}; it must be above 0 and at most {flagged[-1]:g}, the number or weight of all rows")
    return float(np.interp(k, flagged, found))
