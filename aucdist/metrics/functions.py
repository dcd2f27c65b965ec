"""The measures on labels and scores as they come, as scikit-learn takes them: the larger label is positive."""

from typing import Any

import numpy as np

from aucdist.errors import InputError
from aucdist.metrics import auc as of_counts
from aucdist.metrics.auc import Interval
from aucdist.metrics.compare import Difference, delong_test
from aucdist.metrics.counts import ScoreCounts, refuse


def roc_auc_score(y_true: Any, y_score: Any, sample_weight: Any = None) -> float:
    """Return the area under the ROC curve, exact with ties.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    sample_weight : array-like of shape (n_samples,), optional
        Weights, at least 0. A pair weighs the product of its two.

    Raises
    ------
    InputError
        If the input has not this form, or holds one class only.

    Examples
    --------
    >>> from aucdist.metrics import roc_auc_score
    >>> roc_auc_score(["no", "no", "no", "no", "yes", "yes"], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9])
    0.875
    """
    return of_counts.auc(_counts(y_true, y_score, sample_weight))


def roc_auc_interval(y_true: Any, y_score: Any, level: float = 0.95) -> Interval:
    """Return the AUC with DeLong's confidence interval on the logit scale.

    There is no `sample_weight`: weights do not say how many independent rows there are.
    `aucdist.metrics.auc.auc_interval` gives the formula and the answer where the variance cannot be estimated.

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
        If the input has not this form, or holds one class only.

    Warns
    -----
    IntervalWarning
        If there are too few rows for the level to hold: see `aucdist.metrics.auc.auc_interval`.

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
        If the input has not this form, or a class has fewer than two rows.

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
        If the input has not this form, or holds one class only.

    Examples
    --------
    >>> from aucdist.metrics import average_precision_score
    >>> round(average_precision_score([0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9]), 4)
    0.8333
    """
    return of_counts.average_precision(_counts(y_true, y_score, sample_weight))


def confusion_counts(y_true: Any, y_pred: Any, sample_weight: Any = None) -> dict[str, float]:
    """Return ``tp``, ``fp``, ``tn`` and ``fn``: integers, or sums of weights where weights are given.

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
        If the input has not this form, or `y_true` holds one class only.

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
    """Return the geometric mean of the shares of positives and of negatives that were predicted right.

    Parameters
    ----------
    y_true, y_pred, sample_weight
        As for `confusion_counts`.

    Raises
    ------
    InputError
        If the input has not this form, or `y_true` holds one class only.

    Examples
    --------
    >>> from aucdist.metrics import g_mean_score
    >>> round(g_mean_score([0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1]), 4)
    0.866
    """
    return of_counts.g_mean(confusion_counts(y_true, y_pred, sample_weight))


def _counts(y_true: Any, y_score: Any, sample_weight: Any) -> ScoreCounts:
    return ScoreCounts.from_scores(_signs(y_true)[1], y_score, sample_weight)


def _labels(name: str, values: Any) -> np.ndarray:
    column = np.asarray(values)
    if column.ndim != 1:
        raise InputError(f"{name} has shape {column.shape}; one dimension is expected")
    return column


def _signs(y_true: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the two labels, ascending, and -1 or +1 for every row."""
    column = _labels("y_true", y_true)
    try:
        labels = np.unique(column)
    except TypeError:
        raise InputError("y_true mixes labels that cannot be compared, such as numbers and strings") from None
    refuse("label", column, column != column, "is missing")
    if len(labels) != 2:
        shown = ", ".join(str(label) for label in labels[:5])
        raise InputError(f"y_true must hold two different labels; it holds {len(labels)}: {shown}")
    return labels, np.where(column == labels[1], 1, -1)
