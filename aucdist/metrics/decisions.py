"""Thresholds and what they decide, as functions of counts: ``score > threshold`` predicts the positive class.

An `InputError` is raised if a class has no rows, a parameter is out of its range, or an interval of weighted rows is wanted.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from aucdist.errors import InputError
from aucdist.metrics.counts import ScoreCounts, refuse
from aucdist.metrics.intervals import Estimate, check_level, clopper_pearson, refuse_weights
from aucdist.metrics.public import labels_of, signs_of
from aucdist.metrics.ranking import exact_columns

COSTS = ("false_alarm", "miss")


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


def best_threshold(counts: ScoreCounts) -> float:
    """Return the threshold with the highest G-mean when ``score > threshold`` predicts the positive class.

    It is the midpoint of two neighbouring scores. Of equally good thresholds it has the lowest false positive rate. If every
    G-mean is 0, as with a single distinct score, it is the highest score, which predicts no positives.
    """
    pos, neg = exact_columns(counts)
    at_most = np.cumsum(pos)
    product = (at_most[-1] - at_most) * np.cumsum(neg)  # tp * tn of the cut above each value: G-mean squared, but exact
    return counts.threshold(len(product) - int(np.argmax(product[::-1])))


def confusion(counts: ScoreCounts, threshold: float) -> dict[str, float]:
    """Return ``tp``, ``fp``, ``tn`` and ``fn`` when ``score > threshold`` predicts the positive class.

    Without weights they are integers. A class without rows is legal. Of counts in cells, the rows of the cell in which the
    threshold lies count as above it; where it is the end of a cell, as `ScoreCounts.threshold` is, the numbers are exact.

    Raises
    ------
    InputError
        If the threshold is not a number.
    """
    if math.isnan(threshold):
        raise InputError("the threshold is not a number")
    split = int(np.searchsorted(counts.values, threshold, side="right"))
    total = float if counts.weighted else int
    below, above = slice(None, split), slice(split, None)
    parts = {"tp": counts.pos[above], "fp": counts.neg[above], "tn": counts.neg[below], "fn": counts.pos[below]}
    return {name: total(part.sum()) for name, part in parts.items()}


def recall(table: dict[str, float]) -> float:
    """Return the share of the positives predicted positive, from a table of `confusion`; 0 if there are no positives."""
    return _share(table["tp"], table["fn"])


def specificity(table: dict[str, float]) -> float:
    """Return the share of the negatives predicted negative, from a table of `confusion`; 0 if there are no negatives."""
    return _share(table["tn"], table["fp"])


def precision(table: dict[str, float]) -> float:
    """Return the share of positives among the rows predicted positive, from a table of `confusion`; 0 if there are none."""
    return _share(table["tp"], table["fp"])


def g_mean(table: dict[str, float]) -> float:
    """Return the geometric mean of recall and specificity, from a table of `confusion`."""
    return math.sqrt(recall(table) * specificity(table))


def balanced_accuracy(table: dict[str, float]) -> float:
    """Return the mean of recall and specificity, from a table of `confusion`."""
    return (recall(table) + specificity(table)) / 2


def threshold_at(
    counts: ScoreCounts,
    *,
    fpr: float | None = None,
    alerts: float | None = None,
    precision: float | None = None,
    recall: float | None = None,
    cost: Mapping[str, Any] | None = None,
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
    cost : mapping, optional
        ``{"false_alarm": 1, "miss": 40}``: what a flagged negative and a positive that is not flagged cost, above 0 each. The
        total cost is smallest; of equally cheap thresholds the one with the fewest flagged rows is taken. Where costs differ by
        row, either may be a column with a value for each row, at least 0: ``{"false_alarm": 5, "miss": amount}``.

    Raises
    ------
    InputError
        If not exactly one requirement is given, it is out of its range, a class has no rows, or no threshold has this precision.

    Examples
    --------
    >>> from aucdist.metrics import threshold_at
    >>> y, scores = [0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9]
    >>> round(threshold_at(y, scores, fpr=0.25), 2), round(threshold_at(y, scores, precision=1.0), 2)
    (0.45, 0.8)
    """
    requirements = {"fpr": fpr, "alerts": alerts, "precision": precision, "recall": recall}
    given = [name for name, value in {**requirements, "cost": cost}.items() if value is not None]
    if len(given) != 1:
        raise InputError(
            f"threshold_at takes one of fpr, alerts, precision, recall and cost; {', '.join(given) or 'none'} is given"
        )
    if cost is not None:
        flagged = _n_flagged_at_least_cost(counts, check_cost(cost))
    else:
        flagged = max(n_flagged(counts, name, value) for name, value in requirements.items() if value is not None)
    return counts.threshold(len(counts.values) - flagged)


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

    Examples
    --------
    >>> from aucdist.metrics import operating_point
    >>> found = operating_point([0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9], 0.5)
    >>> found.recall.value, found.fpr.value, round(found.precision.value, 4)
    (1.0, 0.25, 0.6667)
    """
    check_level(level)
    refuse_weights(counts)
    exact_columns(counts)
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


def _share_estimate(value: float, successes: float, n: float, level: float) -> Estimate:
    return Estimate(float(value), *clopper_pearson(successes, n, level), level, "clopper-pearson")


def expected_cost(counts: ScoreCounts, threshold: float, *, false_alarm: float, miss: float) -> float:
    """Return what the decisions of a threshold cost, in the mean over all rows.

    Parameters
    ----------
    counts : ScoreCounts
    threshold : float
        ``score > threshold`` predicts the positive class.
    false_alarm, miss : float
        What a flagged negative costs, and a positive that is not flagged; above 0. Either may be a column with a value for each
        row, at least 0.

    Examples
    --------
    >>> from aucdist.metrics import expected_cost
    >>> expected_cost([0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9], 0.8, false_alarm=1, miss=3)
    0.5
    """
    check_cost({"false_alarm": false_alarm, "miss": miss})
    exact_columns(counts)
    table = confusion(counts, threshold)
    return (false_alarm * table["fp"] + miss * table["fn"]) / (counts.n_pos + counts.n_neg)


def expected_cost_interval(
    counts: ScoreCounts, threshold: float, level: float = 0.95, *, false_alarm: float, miss: float
) -> Estimate:
    """Return the expected cost of a threshold that was chosen on other rows, with an interval for the same share of positives.

    The cost is a sum of two independent shares with known factors: of the positives that are missed and of the negatives that
    are flagged. Their intervals of Clopper and Pearson are combined by the method of variance estimates recovery (Zou & Donner,
    Statistics in Medicine 27, 2008, 1693-1702): on each side, the squared distances of the ends add up. Where costs are a
    column, Stringer's bounds take the place of Clopper and Pearson's: see `aucdist.metrics.costs.mean_cost_interval`.

    Parameters
    ----------
    counts : ScoreCounts
        Counts without weights.
    threshold, false_alarm, miss : float
        As for `expected_cost`.
    level : float
        At least 0.5 and below 1.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.metrics import expected_cost_interval
    >>> y = np.repeat([0, 1], [600, 60])
    >>> found = expected_cost_interval(y, np.random.default_rng(0).normal(size=660) + 2 * y, 1.0, false_alarm=1, miss=40)
    >>> f"{found.value:.3f} from {found.low:.3f} to {found.high:.3f}"
    '0.758 from 0.452 to 1.190'
    """
    check_level(level)
    refuse_weights(counts)
    value = expected_cost(counts, threshold, false_alarm=false_alarm, miss=miss)
    table, below, above = confusion(counts, threshold), 0.0, 0.0
    for wrong, n, cost in ((table["fp"], counts.rows_neg, false_alarm), (table["fn"], counts.rows_pos, miss)):
        low, high = clopper_pearson(wrong, n, level)
        factor = cost * n / (counts.rows_pos + counts.rows_neg)
        below, above = below + (factor * (wrong / n - low)) ** 2, above + (factor * (high - wrong / n)) ** 2
    return Estimate(value, value - math.sqrt(below), value + math.sqrt(above), level, "mover")


def check_cost(cost: Mapping[str, float]) -> Mapping[str, float]:
    """Return the costs of a false alarm and of a miss, or raise an InputError unless both are given and above 0."""
    if set(cost) != set(COSTS):
        raise InputError(f"cost takes {' and '.join(COSTS)}; {', '.join(map(str, cost)) or 'none'} is given")
    for name, value in cost.items():
        if not 0 < value < math.inf:
            raise InputError(f"{name} is {value}; a number above 0 is needed")
    return cost


def _n_flagged_at_least_cost(counts: ScoreCounts, cost: Mapping[str, float]) -> int:
    found, false = flagged_at(counts)
    return int(np.argmin(cost["false_alarm"] * false + cost["miss"] * (found[-1] - found)))


def flagged_at(counts: ScoreCounts) -> tuple[np.ndarray, np.ndarray]:
    """Return the weight of the flagged positives and negatives if the 0, 1, 2, ... highest scores are flagged."""
    pos, neg = exact_columns(counts)
    found, false = (np.concatenate(([0], np.cumsum(column[::-1]))).astype(np.float64) for column in (pos, neg))
    return found, false


def n_flagged(counts: ScoreCounts, name: str, value: float) -> int:
    """Return how many of the highest distinct scores are flagged to meet a requirement of `threshold_at`."""
    none_allowed = name in ("fpr", "alerts")
    if not (0 <= value <= 1 and (none_allowed or value > 0)):
        raise InputError(f"{name} is {value}; it must be {'at least 0' if none_allowed else 'above 0'} and at most 1")
    found, false = flagged_at(counts)
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


def _share(part: float, rest: float) -> float:
    return part / (part + rest) if part + rest > 0 else 0.0


def confusion_counts(y_true: Any, y_pred: Any, sample_weight: Any = None) -> dict[str, float]:
    """Return the counts ``tp``, ``fp``, ``tn`` and ``fn`` of the confusion matrix, or sums of weights if there are weights.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels; the larger one is positive.
    y_pred : array-like of shape (n_samples,)
        Predicted labels, of the same two.
    sample_weight : array-like of shape (n_samples,), optional
        Weights, at least 0.

    Examples
    --------
    >>> from aucdist.metrics import confusion_counts
    >>> confusion_counts([0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1])
    {'tp': 2, 'fp': 1, 'tn': 3, 'fn': 0}
    """
    labels, signs = signs_of(y_true)
    predicted = labels_of("y_pred", y_pred)
    strange = (predicted != labels[0]) & (predicted != labels[1])
    refuse("predicted label", predicted, strange, f"is neither {labels[0]} nor {labels[1]}, the labels of y_true")
    scores = np.where(predicted == labels[1], 1.0, -1.0)
    return confusion(ScoreCounts.from_scores(signs, scores, sample_weight), 0.0)


def g_mean_score(y_true: Any, y_pred: Any, sample_weight: Any = None) -> float:
    """Return the G-mean, the geometric mean of recall and specificity.

    Parameters
    ----------
    y_true, y_pred, sample_weight
        As for `confusion_counts`.

    Examples
    --------
    >>> from aucdist.metrics import g_mean_score
    >>> round(g_mean_score([0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1]), 4)
    0.866
    """
    return g_mean(confusion_counts(y_true, y_pred, sample_weight))
