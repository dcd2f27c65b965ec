"""Metrics of probabilities, as functions of counts whose scores are probabilities of the positive class.

Counts merge by adding, so the metrics do not depend on the partition of the data.

An `InputError` is raised if there are no rows, a score is no probability although one is needed, or a parameter is out of its
range.
"""

import numpy as np
from numpy import ndarray

from aucdist.errors import InputError
from aucdist.metrics.counts import ScoreCounts, dot
from aucdist.metrics.intervals import two_sided_z, wilson
from aucdist.parameters import Number, OneOf, count, frozen

MIN_PROBABILITY = 1e-15
"""Probabilities are clipped to [MIN_PROBABILITY, 1 - MIN_PROBABILITY] for the log loss, so that it is always finite."""
FRACTION = Number("above 0 and below 1", lambda v: 0 < v < 1)
BINNINGS = OneOf(("quantile", "uniform"))

MAX_CELLS = 2048
"""If there are more distinct scores than this, `venn_abers` treats neighbouring scores as equal, with about equally
many rows in each cell."""


def brier(counts: ScoreCounts) -> float:
    """Return the Brier score. See `aucdist.metrics.brier_score_loss`."""
    p, weight = _probabilities_of(counts)
    return (dot(counts.pos, (1.0 - p) ** 2) + dot(counts.neg, p**2)) / float(weight.sum())


def log_loss(counts: ScoreCounts) -> float:
    """Return the log loss, which is finite: see `MIN_PROBABILITY`, and `aucdist.metrics.log_loss`."""
    p, weight = _probabilities_of(counts)
    p = np.clip(p, MIN_PROBABILITY, 1.0 - MIN_PROBABILITY)
    return -(dot(counts.pos, np.log(p)) + dot(counts.neg, np.log1p(-p))) / float(weight.sum())


def hull_probabilities(counts: ScoreCounts) -> ndarray:
    """Return for each score the share of positives in its segment of the convex hull of the ROC curve.

    The segments of the hull are the pools of the isotonic regression of the labels on the scores (Fawcett & Niculescu-Mizil,
    2007).

    Returns
    -------
    ndarray of shape (n_values,), float64
    """
    from scipy.optimize import isotonic_regression  # imported here, because only metrics of probabilities need it

    weight = _weight(counts)
    fit: ndarray = isotonic_regression(counts.pos / weight, weights=weight).x
    return np.clip(fit, 0.0, 1.0)


def calibration_loss(counts: ScoreCounts) -> float:
    """Return the mean squared difference from the hull. See `aucdist.metrics.calibration_loss`."""
    p, weight = _probabilities_of(counts)
    return dot(weight, (p - hull_probabilities(counts)) ** 2) / float(weight.sum())


def refinement_loss(counts: ScoreCounts) -> float:
    """Return the Brier score of the hull. See `aucdist.metrics.refinement_loss`."""
    p, weight = hull_probabilities(counts), _weight(counts)
    return dot(weight, p * (1.0 - p)) / float(weight.sum())


@frozen
class Reliability:
    """A reliability curve: the observed share of positives at each predicted probability.

    Attributes
    ----------
    predicted, observed : ndarray of shape (n_bins,), float64
        Mean probability, and share of positives, of the rows in each bin.
    low, high : ndarray of shape (n_bins,), float64
        Wilson's interval of the share; NaN if there are weights, because these do not say how many rows are independent.
    weight : ndarray of shape (n_bins,), float64
        Weight of the rows in each bin; empty bins are left out.
    level : float
        The confidence of each interval.
    """

    predicted: ndarray
    observed: ndarray
    low: ndarray
    high: ndarray
    weight: ndarray
    level: float


def reliability(
    counts: ScoreCounts, n_bins: int = 10, *, binning: str = "quantile", level: float = 0.95
) -> Reliability:
    """Return a reliability curve with an interval for each of its points. See `aucdist.metrics.reliability_curve`."""
    p, weight = _probabilities_of(counts)
    BINNINGS.check("binning", binning)
    FRACTION.check("level", level)
    count().check("n_bins", n_bins)
    # The midpoint of equal probabilities decides, so that no bin edge separates them.
    position = (np.cumsum(weight) - 0.5 * weight) / weight.sum() if binning == "quantile" else p
    bins = np.minimum((position * n_bins).astype(np.int64), n_bins - 1)
    total = np.bincount(bins, weight, n_bins)
    nonempty = total > 0
    total = total[nonempty]
    predicted = np.bincount(bins, weight * p, n_bins)[nonempty] / total
    observed = np.bincount(bins, counts.pos, n_bins)[nonempty] / total
    low = high = np.full(len(total), np.nan)
    if not counts.weighted:
        low, high = wilson(observed, total, two_sided_z(level))
        low, high = np.minimum(low, observed), np.maximum(high, observed)  # rounding can exclude shares of 0 and 1
    return Reliability(predicted, observed, low, high, total, level)


def expected_calibration_error(counts: ScoreCounts, n_bins: int = 10, *, binning: str = "quantile") -> float:
    """Return the mean absolute difference between predicted probability and observed share.

    See `aucdist.metrics.expected_calibration_error`.
    """
    bins = reliability(counts, n_bins, binning=binning)
    return float(bins.weight @ np.abs(bins.predicted - bins.observed)) / float(bins.weight.sum())


def venn_abers(counts: ScoreCounts, scores: ndarray) -> tuple[ndarray, ndarray]:
    """Return the lower and the upper probability of each score. See `aucdist.metrics.venn_abers_probabilities`."""
    from scipy.optimize import isotonic_regression  # imported here, because it loads SciPy

    values, pos, weight = counts.values, counts.pos, _weight(counts)
    if len(values) > MAX_CELLS:  # the cells depend on the scores only, not on the labels
        cell = (np.cumsum(weight) * MAX_CELLS / weight.sum()).astype(np.int64)
        first = np.flatnonzero(np.diff(cell, prepend=-1))
        values, pos, weight = values[first], np.add.reduceat(pos, first), np.add.reduceat(weight, first)
        scores = values[np.maximum(np.searchsorted(values, scores, side="right") - 1, 0)]
    distinct, inverse = np.unique(scores, return_inverse=True)
    ends = np.empty((2, len(distinct)))
    for k, score in enumerate(distinct):
        at = int(np.searchsorted(values, score))
        new = at == len(values) or values[at] != score
        n, n_pos = (np.insert(column, at, 0.0) if new else column.copy() for column in (weight, pos))
        n[at] += 1.0
        for label in (0, 1):
            n_pos[at] += label
            ends[label, k] = isotonic_regression(n_pos / n, weights=n).x[at]
    return ends[0][inverse], ends[1][inverse]


def _weight(counts: ScoreCounts) -> ndarray:
    if len(counts.values) == 0:
        raise InputError("there are no rows: give at least one")
    return counts.pos + counts.neg


def _probabilities_of(counts: ScoreCounts) -> tuple[ndarray, ndarray]:
    """Return the scores and the weight of the rows at each, after checking that the scores are probabilities."""
    weight, p = _weight(counts), counts.values
    if p[0] < 0.0 or p[-1] > 1.0:
        raise InputError(
            f"probabilities lie from 0 to 1, and there is {p[0] if p[0] < 0.0 else p[-1]:g}: use predict_proba, not "
            "decision_function"
        )
    return p, weight
