"""Measures of probabilities on labels and probabilities: the larger label is positive."""

from typing import Any

from aucdist.metrics import probability as of_counts
from aucdist.metrics.functions import _counts
from aucdist.metrics.probability import Reliability


def brier_score_loss(y_true: Any, y_proba: Any, sample_weight: Any = None) -> float:
    """Return the Brier score, the mean squared difference between probabilities and labels 0 and 1.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_proba : array-like of shape (n_samples,)
        Probabilities of the positive label, from 0 to 1.
    sample_weight : array-like of shape (n_samples,), optional
        Weights, at least 0.

    Raises
    ------
    InputError
        If the input is invalid, or holds one class only.

    Examples
    --------
    >>> from aucdist.metrics import brier_score_loss
    >>> round(brier_score_loss([0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9]), 4)
    0.1333
    """
    return of_counts.brier(_counts(y_true, y_proba, sample_weight))


def log_loss(y_true: Any, y_proba: Any, sample_weight: Any = None) -> float:
    """Return the log loss, the mean of minus the logarithm of the true class's probability.

    Probabilities are clipped to [1e-15, 1 - 1e-15], so the loss is always finite.

    Parameters
    ----------
    y_true, y_proba, sample_weight
        As for `brier_score_loss`.

    Examples
    --------
    >>> from aucdist.metrics import log_loss
    >>> round(log_loss([0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9]), 4)
    0.4176
    """
    return of_counts.log_loss(_counts(y_true, y_proba, sample_weight))


def calibration_loss(y_true: Any, y_proba: Any, sample_weight: Any = None) -> float:
    """Return the mean squared difference of the probabilities to those of the ROC curve's convex hull (Flach & Matsubara, 2007).

    Parameters
    ----------
    y_true, y_proba, sample_weight
        As for `brier_score_loss`.

    Examples
    --------
    >>> from aucdist.metrics import calibration_loss
    >>> round(calibration_loss([0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9]), 4)
    0.0333
    """
    return of_counts.calibration_loss(_counts(y_true, y_proba, sample_weight))


def refinement_loss(y_true: Any, y_score: Any, sample_weight: Any = None) -> float:
    """Return the Brier score of the probabilities of the ROC curve's convex hull, which no calibration can reduce.

    Parameters
    ----------
    y_true, y_score, sample_weight
        As for `brier_score_loss`, but scores need not be probabilities.

    Examples
    --------
    >>> from aucdist.metrics import refinement_loss
    >>> round(refinement_loss([0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9]), 4)
    0.0833
    """
    return of_counts.refinement_loss(_counts(y_true, y_score, sample_weight))


def reliability_curve(
    y_true: Any,
    y_proba: Any,
    n_bins: int = 10,
    *,
    binning: str = "quantile",
    level: float = 0.95,
    sample_weight: Any = None,
) -> Reliability:
    """Return the predicted and observed probabilities in bins, with Wilson's intervals of the observed ones.

    Parameters
    ----------
    y_true, y_proba, sample_weight
        As for `brier_score_loss`.
    n_bins, binning, level
        See `aucdist.metrics.probability.reliability`.

    Examples
    --------
    >>> from aucdist.metrics import reliability_curve
    >>> curve = reliability_curve([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.6, 0.7, 0.8], n_bins=2)
    >>> curve.predicted.round(2).tolist(), curve.observed.round(2).tolist()
    ([0.2, 0.7], [0.33, 0.67])
    """
    return of_counts.reliability(_counts(y_true, y_proba, sample_weight), n_bins, binning=binning, level=level)


def expected_calibration_error(
    y_true: Any, y_proba: Any, n_bins: int = 10, *, binning: str = "quantile", sample_weight: Any = None
) -> float:
    """Return the expected calibration error: the mean absolute difference of predicted and observed probability over bins.

    Parameters
    ----------
    y_true, y_proba, sample_weight
        As for `brier_score_loss`.
    n_bins, binning
        See `aucdist.metrics.probability.reliability`.

    Examples
    --------
    >>> from aucdist.metrics import expected_calibration_error
    >>> round(expected_calibration_error([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.6, 0.7, 0.8], n_bins=2), 4)
    0.0833
    """
    return of_counts.expected_calibration_error(_counts(y_true, y_proba, sample_weight), n_bins, binning=binning)
