"""Measures on labels and scores, as scikit-learn takes them: the larger label is positive."""

import warnings
from typing import Any

import numpy as np

from aucdist.errors import InputError
from aucdist.metrics import auc as of_counts
from aucdist.metrics.auc import Interval
from aucdist.metrics.compare import Difference, delong_test
from aucdist.metrics.counts import ScoreCounts, as_column, refuse
from aucdist.metrics.partial import check_max_fpr, partial_auc


def roc_auc_score(
    y_true: Any, y_score: Any, sample_weight: Any = None, *, max_fpr: float | None = None, pos_label: Any = None
) -> float:
    """Return the area under the ROC curve, exact with ties; scikit-learn's function for two classes.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    sample_weight : array-like of shape (n_samples,), optional
        Weights, at least 0. The weight of a pair is the product of its rows' weights.
    max_fpr : float, optional
        Above 0 and at most 1. The standardized partial area up to this false positive rate is returned, see
        `aucdist.metrics.partial_roc_auc_score`.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    float
        nan if there is one class only.

    Raises
    ------
    InputError
        A ValueError: if the input is invalid, or there are more than two labels.

    Warns
    -----
    UndefinedMetricWarning
        If there is one class only.

    Examples
    --------
    >>> from aucdist.metrics import roc_auc_score
    >>> roc_auc_score(["no", "no", "no", "no", "yes", "yes"], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9])
    0.875
    """
    if max_fpr is not None:
        check_max_fpr(max_fpr)
    counts = _counts(y_true, y_score, sample_weight, pos_label, one_class=True)
    if counts.rows_pos == 0 or counts.rows_neg == 0:
        from sklearn.exceptions import UndefinedMetricWarning  # scikit-learn takes most of a second to load

        warnings.warn(
            "Only one class is present in y_true. ROC AUC score is not defined in that case.",
            UndefinedMetricWarning,
            stacklevel=2,
        )
        return float("nan")
    if max_fpr is not None:
        return partial_auc(counts, max_fpr, standardized=True)
    return of_counts.auc(counts)


def roc_auc_interval(y_true: Any, y_score: Any, level: float = 0.95) -> Interval:
    """Return the AUC with DeLong's confidence interval on the logit scale.

    There is no `sample_weight`, because weights do not say how many independent rows there are.
    `aucdist.metrics.auc.auc_interval` gives the formula, and the interval if the variance cannot be estimated.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)
        As for `roc_auc_score`.
    level : float
        At least 0.5 and below 1.

    Returns
    -------
    Interval
        With ``low``, ``high``, ``auc``, ``level`` and ``method``.

    Raises
    ------
    InputError
        If the input is invalid, or holds one class only.

    Warns
    -----
    IntervalWarning
        If there are too few rows for the interval to hold its level, see `aucdist.metrics.auc.auc_interval`.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.metrics import roc_auc_interval
    >>> y = np.repeat([0, 1], [600, 200])
    >>> interval = roc_auc_interval(y, np.random.default_rng(0).normal(size=800) + y)
    >>> f"{interval.auc:.3f} from {interval.low:.3f} to {interval.high:.3f}"
    '0.755 from 0.714 to 0.791'
    """
    return of_counts.auc_interval(_counts(y_true, y_score, None), level)


def roc_auc_difference(y_true: Any, first: Any, second: Any, level: float = 0.95) -> Difference:
    """Return the difference between the AUCs of two models on the same rows, with its interval and p-value (paired DeLong).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels; the larger one is positive.
    first, second : array-like of shape (n_samples,)
        Finite scores of the two models.
    level : float
        At least 0.5 and below 1.

    Returns
    -------
    Difference
        With ``value`` (first minus second), ``low``, ``high``, ``p_value``, ``level`` and ``method``.

    Raises
    ------
    InputError
        If the input is invalid, or a class has fewer than two rows.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.metrics import roc_auc_difference
    >>> y = np.repeat([0, 1], [600, 200])
    >>> noise = np.random.default_rng(0).normal(size=(3, 800))
    >>> difference = roc_auc_difference(y, noise[0] + y, noise[1] + y / 2)
    >>> difference.value > 0, difference.p_value < 0.05
    (True, True)
    """
    return delong_test(_signs(y_true)[1], first, second, level)


def average_precision_score(y_true: Any, y_score: Any, sample_weight: Any = None) -> float:
    """Return the average precision, as scikit-learn defines it.

    Parameters
    ----------
    y_true, y_score, sample_weight
        As for `roc_auc_score`.

    Raises
    ------
    InputError
        If the input is invalid, or holds one class only.

    Examples
    --------
    >>> from aucdist.metrics import average_precision_score
    >>> round(average_precision_score([0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9]), 4)
    0.8333
    """
    return of_counts.average_precision(_counts(y_true, y_score, sample_weight))


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

    Raises
    ------
    InputError
        If the input is invalid, or `y_true` holds one class only.

    Examples
    --------
    >>> from aucdist.metrics import confusion_counts
    >>> confusion_counts([0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1])
    {'tp': 2, 'fp': 1, 'tn': 3, 'fn': 0}
    """
    labels, signs = _signs(y_true)
    predicted = _labels("y_pred", y_pred)
    strange = (predicted != labels[0]) & (predicted != labels[1])
    refuse("predicted label", predicted, strange, f"is neither {labels[0]} nor {labels[1]}, the labels of y_true")
    scores = np.where(predicted == labels[1], 1.0, -1.0)
    return of_counts.confusion(ScoreCounts.from_scores(signs, scores, sample_weight), 0.0)


def g_mean_score(y_true: Any, y_pred: Any, sample_weight: Any = None) -> float:
    """Return the G-mean, the geometric mean of recall and specificity.

    Parameters
    ----------
    y_true, y_pred, sample_weight
        As for `confusion_counts`.

    Raises
    ------
    InputError
        If the input is invalid, or `y_true` holds one class only.

    Examples
    --------
    >>> from aucdist.metrics import g_mean_score
    >>> round(g_mean_score([0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1]), 4)
    0.866
    """
    return of_counts.g_mean(confusion_counts(y_true, y_pred, sample_weight))


def _counts(
    y_true: Any, y_score: Any, sample_weight: Any, pos_label: Any = None, *, one_class: bool = False
) -> ScoreCounts:
    """Return the counts of checked labels and scores; errors start with scikit-learn's words."""
    signs = _signs(y_true, pos_label, one_class=one_class)[1]
    scores = as_column("scores", y_score)
    from sklearn.utils import check_consistent_length

    try:
        check_consistent_length(signs, scores, sample_weight)
    except ValueError as error:
        raise InputError(str(error)) from None
    kind = "NaN" if np.isnan(scores).any() else "infinity"
    refuse(f"Input y_score contains {kind}: the score", scores, ~np.isfinite(scores), "is not finite")
    return ScoreCounts.from_scores(signs, scores, sample_weight)


def _labels(name: str, values: Any) -> np.ndarray:
    column = np.asarray(values)
    if column.ndim != 1:
        raise InputError(f"{name} has shape {column.shape}; one dimension is expected")
    return column


def _signs(y_true: Any, pos_label: Any = None, *, one_class: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels, ascending, and -1 or +1 for every row; one label is an error unless `one_class`.

    The label `pos_label` is positive, or the larger one if it is None.
    """
    column = _labels("y_true", y_true)
    try:
        labels = np.unique(column)
    except TypeError:
        raise InputError("y_true mixes labels that cannot be compared, such as numbers and strings") from None
    refuse("label", column, column != column, "is missing")
    shown = ", ".join(str(label) for label in labels[:5])
    if len(labels) != 2 and not (one_class and len(labels) == 1):
        raise InputError(f"y_true must hold two different labels; it holds {len(labels)}: {shown}")
    if pos_label is None:
        return labels, np.where(column == labels[-1], 1, -1)
    if pos_label not in labels.tolist() and len(labels) == 2:
        raise InputError(f"pos_label is {pos_label!r}; it must be one of the labels of y_true: {shown}")
    return labels, np.where(column == pos_label, 1, -1)
