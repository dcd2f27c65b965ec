"""The ROC curve and the precision-recall curve with their bands, as functions of counts.

An `InputError` is raised if a class has no rows, a parameter is out of its range, or a band of weighted rows is wanted.
"""

import math
from typing import NamedTuple

import numpy as np

from aucdist.errors import InputError
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.intervals import check_level, refuse_weights, two_sided_z, wilson
from aucdist.metrics.ranking import exact_columns


class RocCurve(NamedTuple):
    """The ROC curve, from (0, 0) to (1, 1).

    Attributes
    ----------
    fpr, tpr : ndarray of shape (n_values + 1,), float64
        Share of the negatives and of the positives with a score of at least the threshold.
    thresholds : ndarray of shape (n_values + 1,), float64
        Infinity, then the distinct scores, descending.
    """

    fpr: np.ndarray
    tpr: np.ndarray
    thresholds: np.ndarray


def roc_curve(counts: ScoreCounts) -> RocCurve:
    """Return the ROC curve, one point per distinct score after the first point (0, 0)."""
    pos, neg = (np.concatenate(([0], np.cumsum(column[::-1]))).astype(np.float64) for column in exact_columns(counts))
    return RocCurve(neg / neg[-1], pos / pos[-1], np.concatenate(([np.inf], counts.values[::-1])))


def roc_band(counts: ScoreCounts, level: float = 0.95) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return a confidence rectangle for every point of `roc_curve`.

    Both rates are shares of independent rows, so each has Wilson's interval at the square root of the level (Wilson, JASA 22,
    1927, 209-212). The confidence holds for each point separately, not for the whole curve.

    Parameters
    ----------
    counts : ScoreCounts
        Counts without weights.
    level : float
        Above 0 and below 1.

    Returns
    -------
    fpr_low, fpr_high, tpr_low, tpr_high : ndarray of shape (n_values + 1,), float64
    """
    check_level(level, 0.0)
    refuse_weights(counts)
    fpr, tpr, _ = roc_curve(counts)
    z = two_sided_z(math.sqrt(level))
    return (*wilson(fpr, counts.rows_neg, z), *wilson(tpr, counts.rows_pos, z))


class PrCurve(NamedTuple):
    """The precision-recall curve, from the highest score down.

    Attributes
    ----------
    recall, precision : ndarray of shape (n_values,), float64
        Share of the positives with a score of at least the threshold, and share of positives among all rows with such a score.
    thresholds : ndarray of shape (n_values,), float64
        The distinct scores, descending.
    """

    recall: np.ndarray
    precision: np.ndarray
    thresholds: np.ndarray


class PrBand(NamedTuple):
    """A confidence rectangle for every point of the curve; each attribute has shape (n_values,), float64."""

    recall_low: np.ndarray
    recall_high: np.ndarray
    precision_low: np.ndarray
    precision_high: np.ndarray


def pr_curve(counts: ScoreCounts) -> PrCurve:
    """Return the precision-recall curve, one point per distinct score."""
    found, alarms = _found(counts)
    return PrCurve(found / found[-1], found / alarms, counts.values[::-1])


def pr_band(counts: ScoreCounts, level: float = 0.95) -> PrBand:
    """Return a confidence rectangle for every point of `pr_curve`.

    Recall is a share of the positives, precision a share of the rows with a score of at least the threshold. Each has Wilson's
    interval at the square root of the level (Wilson, JASA 22, 1927, 209-212). The confidence holds for each point separately,
    for rows drawn like these with the same share of positives.

    Parameters
    ----------
    counts : ScoreCounts
        Counts without weights.
    level : float
        Above 0 and below 1.
    """
    check_level(level, 0.0)
    if counts.weighted:
        raise InputError("no band for weighted rows: weights do not say how many independent rows there are")
    found, alarms = _found(counts)
    z = two_sided_z(math.sqrt(level))
    return PrBand(*wilson(found / found[-1], found[-1], z), *wilson(found / alarms, alarms, z))


def _found(counts: ScoreCounts) -> tuple[np.ndarray, np.ndarray]:
    """Return the weight of the positives and of all rows with a score of at least each threshold, descending."""
    if counts.rows_pos == 0:
        raise InputError("a precision-recall curve needs positive rows")
    found = np.cumsum(counts.pos[::-1])
    return found, found + np.cumsum(counts.neg[::-1])
