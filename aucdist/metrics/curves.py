"""The precision-recall curve and its band, as functions of counts."""

import math
from typing import NamedTuple

import numpy as np

from aucdist.errors import InputError
from aucdist.metrics.auc import _two_sided_z, _wilson
from aucdist.metrics.counts import ScoreCounts


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
    """Return the precision-recall curve, one point per distinct score.

    Raises
    ------
    InputError
        If there are no positive rows.
    """
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

    Raises
    ------
    InputError
        If there are no positive rows, there are weights, or the level is out of its range.
    """
    if not 0 < level < 1:
        raise InputError(f"level is {level}; it must be above 0 and below 1")
    if counts.weighted:
        raise InputError("no band for weighted rows: weights do not say how many independent rows there are")
    found, alarms = _found(counts)
    z = _two_sided_z(math.sqrt(level))
    return PrBand(*_wilson(found / found[-1], found[-1], z), *_wilson(found / alarms, alarms, z))


def _found(counts: ScoreCounts) -> tuple[np.ndarray, np.ndarray]:
    """Return the weight of the positives and of all rows with a score of at least each threshold, descending."""
    if counts.rows_pos == 0:
        raise InputError("a precision-recall curve needs positive rows")
    found = np.cumsum(counts.pos[::-1])
    return found, found + np.cumsum(counts.neg[::-1])
