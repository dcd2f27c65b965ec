"""Measures of the top of a ranking on labels and scores: the larger label is positive, unless `pos_label` names another."""

from typing import Any

from aucdist.metrics import partial as of_partial
from aucdist.metrics import top as of_top
from aucdist.metrics.compare import Difference
from aucdist.metrics.functions import _counts, _signs
from aucdist.metrics.top import OperatingPoint


def partial_roc_auc_score(
    y_true: Any,
    y_score: Any,
    *,
    max_fpr: float,
    standardized: bool = True,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> float:
    """Return the area under the ROC curve up to a false positive rate, exact with ties.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    max_fpr : float
        Above 0 and at most 1.
    standardized : bool
        Whether to map the area linearly so that 1/2 is a random and 1 a perfect ranking (McClish, 1989), as scikit-learn's
        ``roc_auc_score(max_fpr=)`` does. Otherwise the area is at most `max_fpr`.
    sample_weight : array-like of shape (n_samples,), optional
        Weights, at least 0.
    pos_label : label, optional
        The positive label; the larger one by default.

    Raises
    ------
    InputError
        If the input is invalid, or holds one class only.

    Examples
    --------
    >>> from aucdist.metrics import partial_roc_auc_score
    >>> round(partial_roc_auc_score([0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9], max_fpr=0.5), 4)
    0.8333
    """
    counts = _counts(y_true, y_score, sample_weight, pos_label)
    return of_partial.partial_auc(counts, max_fpr, standardized=standardized)


def partial_roc_auc_difference(
    y_true: Any,
    first: Any,
    second: Any,
    *,
    max_fpr: float,
    standardized: bool = True,
    level: float = 0.95,
    pos_label: Any = None,
) -> Difference:
    """Return the difference between the partial AUCs of two models on the same rows, with its interval and p-value.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels; the larger one is positive.
    first, second : array-like of shape (n_samples,)
        Finite scores of the two models.
    max_fpr, standardized, pos_label
        As for `partial_roc_auc_score`.
    level : float
        At least 0.5 and below 1.

    Returns
    -------
    Difference
        First minus second; the test is `aucdist.metrics.partial.partial_delong_test`.

    Raises
    ------
    InputError
        If the input is invalid, or a class has fewer than two rows.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.metrics import partial_roc_auc_difference
    >>> y = np.repeat([0, 1], [6000, 200])
    >>> noise = np.random.default_rng(0).normal(size=(2, 6200))
    >>> difference = partial_roc_auc_difference(y, noise[0] + 2 * y, noise[1] + y, max_fpr=0.05)
    >>> difference.value > 0, difference.p_value < 0.05
    (True, True)
    """
    y = _signs(y_true, pos_label)[1]
    return of_partial.partial_delong_test(y, first, second, max_fpr, level, standardized=standardized)


def threshold_at(
    y_true: Any,
    y_score: Any,
    *,
    fpr: float | None = None,
    alerts: float | None = None,
    precision: float | None = None,
    recall: float | None = None,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> float:
    """Return the threshold that meets one requirement and finds as many positives (for `recall`: flags as few rows) as possible.

    ``score > threshold`` predicts the positive class.

    Parameters
    ----------
    y_true, y_score, sample_weight, pos_label
        As for `partial_roc_auc_score`.
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
        If not exactly one requirement is given, it is out of its range, the input is invalid, or no threshold has this precision.

    Examples
    --------
    >>> from aucdist.metrics import threshold_at
    >>> y, scores = [0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9]
    >>> round(threshold_at(y, scores, fpr=0.25), 2), round(threshold_at(y, scores, precision=1.0), 2)
    (0.45, 0.8)
    """
    counts = _counts(y_true, y_score, sample_weight, pos_label)
    return of_top.threshold_at(counts, fpr=fpr, alerts=alerts, precision=precision, recall=recall)


def recall_at_fpr(
    y_true: Any, y_score: Any, *, max_fpr: float, sample_weight: Any = None, pos_label: Any = None
) -> float:
    """Return the largest recall of any threshold whose false positive rate is at most `max_fpr`.

    Parameters
    ----------
    y_true, y_score, sample_weight, pos_label
        As for `partial_roc_auc_score`.
    max_fpr : float
        From 0 to 1.

    Raises
    ------
    InputError
        If the input is invalid, or holds one class only.

    Examples
    --------
    >>> from aucdist.metrics import recall_at_fpr
    >>> recall_at_fpr([0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9], max_fpr=0.1)
    0.5
    """
    return of_top.recall_at_fpr(_counts(y_true, y_score, sample_weight, pos_label), max_fpr)


def fpr_at_recall(
    y_true: Any, y_score: Any, *, min_recall: float, sample_weight: Any = None, pos_label: Any = None
) -> float:
    """Return the smallest false positive rate of any threshold whose recall is at least `min_recall`.

    Parameters
    ----------
    y_true, y_score, sample_weight, pos_label
        As for `partial_roc_auc_score`.
    min_recall : float
        Above 0 and at most 1.

    Raises
    ------
    InputError
        If the input is invalid, or holds one class only.

    Examples
    --------
    >>> from aucdist.metrics import fpr_at_recall
    >>> fpr_at_recall([0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9], min_recall=0.9)
    0.25
    """
    return of_top.fpr_at_recall(_counts(y_true, y_score, sample_weight, pos_label), min_recall)


def recall_at_k(y_true: Any, y_score: Any, *, k: float, sample_weight: Any = None, pos_label: Any = None) -> float:
    """Return the share of the positives among the k highest-scoring rows; ties at the boundary count in part.

    Parameters
    ----------
    y_true, y_score, sample_weight, pos_label
        As for `partial_roc_auc_score`.
    k : float
        Number of rows, or their weight if there are weights; above 0 and at most that of all rows.

    Raises
    ------
    InputError
        If the input is invalid, holds one class only, or k is out of its range.

    Examples
    --------
    >>> from aucdist.metrics import recall_at_k
    >>> recall_at_k([0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9], k=1)
    0.5
    """
    return of_top.recall_at_k(_counts(y_true, y_score, sample_weight, pos_label), k)


def precision_at_k(y_true: Any, y_score: Any, *, k: float, sample_weight: Any = None, pos_label: Any = None) -> float:
    """Return the share of positives among the k highest-scoring rows; ties at the boundary count in part.

    Parameters
    ----------
    y_true, y_score, k, sample_weight, pos_label
        As for `recall_at_k`.

    Examples
    --------
    >>> from aucdist.metrics import precision_at_k
    >>> precision_at_k([0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9], k=2)
    0.5
    """
    return of_top.precision_at_k(_counts(y_true, y_score, sample_weight, pos_label), k)


def operating_point(
    y_true: Any, y_score: Any, threshold: float, *, level: float = 0.95, pos_label: Any = None
) -> OperatingPoint:
    """Return recall, false positive rate, precision and share of alerts of a threshold, with exact binomial intervals.

    Choose the threshold on other rows, for example by `threshold_at`; on the same rows the intervals cover less often than
    `level`.

    Parameters
    ----------
    y_true, y_score, pos_label
        As for `partial_roc_auc_score`.
    threshold : float
        ``score > threshold`` predicts the positive class.
    level : float
        At least 0.5 and below 1.

    Returns
    -------
    OperatingPoint
        With ``threshold``, and ``recall``, ``fpr``, ``precision`` and ``alerts`` as `Estimate`.

    Raises
    ------
    InputError
        If the input is invalid, or holds one class only.

    Examples
    --------
    >>> from aucdist.metrics import operating_point
    >>> found = operating_point([0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9], 0.5)
    >>> found.recall.value, found.fpr.value, round(found.precision.value, 4)
    (1.0, 0.25, 0.6667)
    """
    return of_top.operating_point(_counts(y_true, y_score, None, pos_label), threshold, level)
