"""Metrics of decisions and of the top of a ranking, on labels and scores: ``score > threshold`` predicts the positive class.

The larger of two labels is positive, as in scikit-learn. Each function counts the rows of each class at each score, and calls the
metric of such counts (`aucdist.metrics.counts.ScoreCounts`); costs that differ by row need the rows themselves.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike

from aucdist.metrics import decisions, guarantees
from aucdist.metrics.counts import (
    ScoreCounts,
    Weights,
    as_column,
    binary_labels,
    check_values,
    counts_of_rows,
    labels_of,
)
from aucdist.metrics.decisions import (
    THRESHOLD,
    CostCounts,
    Costs,
    DecisionCosts,
    OperatingPoint,
    check_costs_not_zero,
    mean_cost,
)
from aucdist.metrics.guarantees import Guarantee
from aucdist.metrics.intervals import Estimate, bootstrap_interval, check_unweighted


def threshold_at(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    fpr: float | None = None,
    alerts: float | None = None,
    precision: float | None = None,
    recall: float | None = None,
    cost: Mapping[str, Any] | None = None,
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> float:
    """Return the threshold that meets a target on false positive rate, alerts, precision, recall or cost.

    The threshold is the midpoint of two neighbouring scores, or the highest score if no row may be flagged, or just below the
    lowest score if all rows must be flagged. Give rows that the fit has not seen, and that you will not test on: on training rows
    the scores are too good, so the target may be missed on new rows.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    fpr : float, optional
        At most this share of the negatives is flagged; from 0 to 1.
    alerts : float, optional
        At most this share of all rows is flagged; from 0 to 1.
    precision : float, optional
        At least this share of the flagged rows is positive; above 0 and at most 1.
    recall : float, optional
        At least this share of the positives is flagged; above 0 and at most 1.
    cost : mapping, optional
        The costs of a flagged negative and of a positive that is not flagged, above 0, such as ``{"false_positive": 1, "miss":
        40}``. The threshold has the smallest total cost; among equal ones, it flags the fewest rows. Either cost may be an
        array with a value of at least 0 for each row: ``{"false_positive": 5, "miss": amount}``.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, at least 0. A row of weight 2 counts as two rows.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    float
        The threshold, in the units of `y_score`. Rows with a score above it are flagged. It is never NaN.

    Raises
    ------
    InputError
        If not exactly one target is given, it is out of its range, a class has no rows, or no threshold reaches the
        precision.

    Examples
    --------
    >>> from aucdist.metrics import threshold_at
    >>> y, scores = [0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9]
    >>> round(threshold_at(y, scores, fpr=0.25), 2), round(threshold_at(y, scores, precision=1.0), 2)
    (0.45, 0.8)
    """
    counts = counts_of_rows(y_true, y_score, sample_weight, pos_label)
    targets = {"fpr": fpr, "alerts": alerts, "precision": precision, "recall": recall}
    if cost is not None and all(value is None for value in targets.values()):
        costs = Costs.of(cost)
        if costs.differ_by_row:
            _, cost_of_rows, weight = _costs_of_rows(y_true, costs, sample_weight, pos_label)
            weighted = counts_of_rows(y_true, y_score, weight * cost_of_rows, pos_label)
            return _rounded_down(CostCounts(weighted, float(weight.sum())).cheapest_threshold(), y_score)
    return _rounded_down(decisions.threshold_at(counts, **targets, cost=cost), y_score)


def guaranteed_threshold(
    y_true: ArrayLike,
    y_score: ArrayLike,
    confidence: float = 0.95,
    *,
    fpr: float | None = None,
    alerts: float | None = None,
    precision: float | None = None,
    recall: float | None = None,
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> Guarantee:
    """Return a threshold that meets a target on new rows with a probability of at least `confidence`.

    With `recall`, it is the highest threshold whose bound meets the target, so it flags as few rows as possible. With `fpr`
    and `alerts` it is the lowest one, so it flags as many rows as possible. The bounds are exact binomial bounds. With
    `precision`, thresholds are tested from few flagged rows to many by a fallback procedure, and the guarantee is exact if
    the precision crosses the guaranteed value only once: see "The statistics of guarantees" in the documentation. The rows
    must be independent, drawn like the new ones, and unseen by the model. Rows that come in groups, or that change over time,
    miss the target more often: of ten equal rows in each group, up to 30 % of the thresholds miss it, and not 5 %.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    confidence : float, default=0.95
        The probability with which the guarantee has to hold, at least 0.5 and below 1.
    fpr, alerts : float, optional
        At most this share of the negatives (`fpr`), or of all rows (`alerts`), is flagged; from 0 to 1.
    precision, recall : float, optional
        `precision`: at least this share of the flagged rows is positive. `recall`: at least this share of the positives is
        flagged. Both are above 0 and at most 1.
    sample_weight : array-like of shape (n_samples,), optional
        1 for a row to use and 0 for a row to leave out. Other weights raise an InputError, because they do not say how many
        rows are independent.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    Guarantee
        The threshold, in the units of `y_score`, and what it guarantees. Its attribute `meets_target` says whether it guarantees
        the target. If it is False, no threshold was found to do so, and the best guarantee that was found is returned.

    Raises
    ------
    InputError
        If not exactly one target is given, it is out of its range, a class has no rows, or a weight is neither 0 nor 1.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.metrics import guaranteed_threshold
    >>> scores = np.arange(200)
    >>> guarantee = guaranteed_threshold(scores >= 140, scores, recall=0.9)  # 59 of 60 positives are flagged
    >>> guarantee.threshold, guarantee.meets_target
    (140.5, True)
    """
    counts = counts_of_rows(y_true, y_score, sample_weight, pos_label)
    guarantee = guarantees.guaranteed_threshold(
        counts, confidence, fpr=fpr, alerts=alerts, precision=precision, recall=recall
    )
    return replace(guarantee, threshold=_rounded_down(guarantee.threshold, y_score))


def operating_point(
    y_true: ArrayLike,
    y_score: ArrayLike,
    threshold: float,
    *,
    level: float = 0.95,
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> OperatingPoint:
    """Return the performance of a threshold that was chosen on other rows.

    Given the threshold, all metrics are shares of independent rows, so the intervals are those of Clopper and Pearson
    (Biometrika 26, 1934, 404-413). Their coverage is at least `level`. It is lower if the threshold was chosen on the same rows.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    threshold : float
        ``score > threshold`` predicts the positive class.
    level : float, default=0.95
        The confidence of each interval, at least 0.5 and below 1.
    sample_weight : array-like of shape (n_samples,), optional
        1 for a row to use and 0 for a row to leave out. Other weights raise an InputError, because they do not say how many
        rows are independent.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    OperatingPoint
        The threshold, and for each of recall, false positive rate, precision and share of flagged rows an `Estimate` from 0
        to 1 with its interval. If no row is flagged, the precision is 0 with the interval from 0 to 1.

    Raises
    ------
    InputError
        If the input is invalid or holds one class only, a weight is neither 0 nor 1, or a parameter is out of its range.

    Examples
    --------
    >>> from aucdist.metrics import operating_point
    >>> estimate = operating_point([0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9], 0.5)
    >>> estimate.recall.value, estimate.fpr.value, round(estimate.precision.value, 4)
    (1.0, 0.25, 0.6667)
    """
    return decisions.operating_point(counts_of_rows(y_true, y_score, sample_weight, pos_label), threshold, level)


def expected_cost(
    y_true: ArrayLike,
    y_score: ArrayLike,
    threshold: float,
    *,
    false_positive: Any,
    miss: Any,
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> float:
    """Return the mean cost per row of the decisions that a threshold makes.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    threshold : float
        ``score > threshold`` predicts the positive class.
    false_positive, miss : float or array-like of shape (n_samples,)
        The cost of a flagged negative, and that of a positive that is not flagged: a number above 0, or a value of at least 0 for
        each row.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, at least 0. A row of weight 2 counts as two rows.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    float
        The mean cost of a row, at least 0, in the unit of the costs.

    Raises
    ------
    InputError
        If the input is invalid, holds one class only, or a parameter is out of its range.

    Examples
    --------
    >>> from aucdist.metrics import expected_cost
    >>> expected_cost([0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9], 0.8, false_positive=1, miss=3)
    0.5
    """
    counts = counts_of_rows(y_true, y_score, sample_weight, pos_label)
    costs = Costs(false_positive, miss)
    if not costs.differ_by_row:
        return decisions.expected_cost(counts, threshold, false_positive=false_positive, miss=miss)
    positive, cost, weight = _costs_of_rows(y_true, costs, sample_weight, pos_label)
    return mean_cost(_flagged(y_score, threshold) != positive, cost, weight)


def expected_cost_interval(
    y_true: ArrayLike,
    y_score: ArrayLike,
    threshold: float,
    *,
    level: float = 0.95,
    false_positive: Any,
    miss: Any,
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> Estimate:
    """Return the expected cost of a threshold that was chosen on other rows, with a confidence interval.

    The cost is a weighted sum of two shares of all rows: the positives that are missed and the negatives that are flagged. Their
    Clopper-Pearson intervals are combined by the method of variance estimates recovery (Zou and Donner, Statistics in Medicine
    27, 2008, 1693-1702): on each side, the squared distances to the ends are added. The share of positives may differ between
    samples, so the interval is wider than one for samples with the same numbers of both classes. If costs differ by row,
    Stringer's bounds replace the intervals of Clopper and Pearson.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    threshold : float
        ``score > threshold`` predicts the positive class.
    level : float, default=0.95
        The confidence of the interval, at least 0.5 and below 1.
    false_positive, miss : float or array-like of shape (n_samples,)
        As for `expected_cost`.
    sample_weight : array-like of shape (n_samples,), optional
        1 for a row to use and 0 for a row to leave out. Other weights raise an InputError, because they do not say how many
        rows are independent.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    Estimate
        `value` is the mean cost of a row, at least 0, in the unit of the costs, `low` and `high` are the ends of its
        interval at `level`, and `method` is "mover", or "stringer-mover" if costs differ by row.

    Raises
    ------
    InputError
        If the input is invalid or holds one class only, a weight is neither 0 nor 1, or a parameter is out of its range.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.metrics import expected_cost_interval
    >>> y = np.repeat([0, 1], [600, 60])
    >>> estimate = expected_cost_interval(y, np.random.default_rng(0).normal(size=660) + 2 * y, 1.0, false_positive=1, miss=40)
    >>> f"{estimate.value:.3f} from {estimate.low:.3f} to {estimate.high:.3f}"
    '0.758 from 0.442 to 1.260'
    """
    counts = counts_of_rows(y_true, y_score, sample_weight, pos_label)
    costs = Costs(false_positive, miss)
    if not costs.differ_by_row:
        return decisions.expected_cost_interval(counts, threshold, level, false_positive=false_positive, miss=miss)
    check_unweighted(counts)
    positive, cost, weight = _costs_of_rows(y_true, costs, sample_weight, pos_label)
    wrong, counted = _flagged(y_score, threshold) != positive, weight > 0
    return DecisionCosts.of(positive[counted], wrong[counted], cost[counted]).interval(level)


def recall_at_fpr(
    y_true: ArrayLike,
    y_score: ArrayLike,
    max_fpr: float,
    *,
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> float:
    """Return the largest recall of any threshold whose false positive rate is at most `max_fpr`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    max_fpr : float
        The largest false positive rate, from 0 to 1.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, at least 0. A row of weight 2 counts as two rows.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    float
        The recall, from 0 (none of the positives is flagged) to 1 (all are).

    Raises
    ------
    InputError
        If the input is invalid, holds one class only, or a parameter is out of its range.

    Examples
    --------
    >>> from aucdist.metrics import recall_at_fpr
    >>> recall_at_fpr([0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9], max_fpr=0.1)
    0.5
    """
    return decisions.recall_at_fpr(counts_of_rows(y_true, y_score, sample_weight, pos_label), max_fpr)


def recall_at_fpr_interval(
    y_true: ArrayLike,
    y_score: ArrayLike,
    max_fpr: float,
    *,
    level: float = 0.95,
    n_resamples: int = 1000,
    random_state: int = 0,
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> Estimate:
    """Return `recall_at_fpr` with its stratified percentile bootstrap interval.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    max_fpr : float
        The largest false positive rate, from 0 to 1.
    level : float, default=0.95
        The confidence of the interval, at least 0.5 and below 1.
    n_resamples : int, default=1000
        How many bootstrap samples are drawn, at least 100.
    random_state : int, default=0
        The seed of the samples, not negative.
    sample_weight : array-like of shape (n_samples,), optional
        1 for a row to use and 0 for a row to leave out. Other weights raise an InputError, because they do not say how many
        rows are independent.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    Estimate
        `value` is the recall, from 0 to 1, `low` and `high` are the ends of its interval at `level`, and `method` is
        "bootstrap".

    Raises
    ------
    InputError
        If the input is invalid or holds one class only, a weight is neither 0 nor 1, or a parameter is out of its range.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.metrics import recall_at_fpr_interval
    >>> y = np.repeat([0, 1], [600, 60])
    >>> estimate = recall_at_fpr_interval(y, np.random.default_rng(0).normal(size=660) + 2 * y, max_fpr=0.05)
    >>> f"{estimate.value:.3f} from {estimate.low:.3f} to {estimate.high:.3f}"
    '0.633 from 0.500 to 0.783'
    """
    return _bootstrapped(
        decisions.recall_at_fpr, max_fpr, (y_true, y_score, sample_weight, pos_label), level, n_resamples, random_state
    )


def fpr_at_recall(
    y_true: ArrayLike,
    y_score: ArrayLike,
    min_recall: float,
    *,
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> float:
    """Return the smallest false positive rate of any threshold whose recall is at least `min_recall`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    min_recall : float
        The minimum recall, above 0 and at most 1.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, at least 0. A row of weight 2 counts as two rows.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    float
        The false positive rate, from 0 (no negative is flagged) to 1 (all are). Lower is better.

    Raises
    ------
    InputError
        If the input is invalid, holds one class only, or a parameter is out of its range.

    Examples
    --------
    >>> from aucdist.metrics import fpr_at_recall
    >>> fpr_at_recall([0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9], min_recall=0.9)
    0.25
    """
    return decisions.fpr_at_recall(counts_of_rows(y_true, y_score, sample_weight, pos_label), min_recall)


def fpr_at_recall_interval(
    y_true: ArrayLike,
    y_score: ArrayLike,
    min_recall: float,
    *,
    level: float = 0.95,
    n_resamples: int = 1000,
    random_state: int = 0,
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> Estimate:
    """Return `fpr_at_recall` with its stratified percentile bootstrap interval.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    min_recall : float
        The minimum recall, above 0 and at most 1.
    level : float, default=0.95
        The confidence of the interval, at least 0.5 and below 1.
    n_resamples : int, default=1000
        How many bootstrap samples are drawn, at least 100.
    random_state : int, default=0
        The seed of the samples, not negative.
    sample_weight : array-like of shape (n_samples,), optional
        1 for a row to use and 0 for a row to leave out. Other weights raise an InputError, because they do not say how many
        rows are independent.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    Estimate
        `value` is the false positive rate, from 0 to 1 (lower is better); `low` and `high` are the ends of its interval at
        `level`, and `method` is "bootstrap".

    Raises
    ------
    InputError
        If the input is invalid or holds one class only, a weight is neither 0 nor 1, or a parameter is out of its range.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.metrics import fpr_at_recall_interval
    >>> y = np.repeat([0, 1], [600, 60])
    >>> estimate = fpr_at_recall_interval(y, np.random.default_rng(0).normal(size=660) + 2 * y, min_recall=0.8)
    >>> f"{estimate.value:.3f} from {estimate.low:.3f} to {estimate.high:.3f}"
    '0.095 from 0.052 to 0.242'
    """
    return _bootstrapped(
        decisions.fpr_at_recall,
        min_recall,
        (y_true, y_score, sample_weight, pos_label),
        level,
        n_resamples,
        random_state,
    )


def recall_at_k(
    y_true: ArrayLike, y_score: ArrayLike, k: float, *, sample_weight: Weights = None, pos_label: Any = None
) -> float:
    """Return the share of all positives that are among the k highest-scoring rows.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    k : float
        Number of rows, or their weight if there are weights; above 0 and at most that of all rows.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, at least 0. A row of weight 2 counts as two rows.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    float
        The recall, from 0 to 1. If scores tie at the k-th place, the tied rows count in proportion.

    Raises
    ------
    InputError
        If the input is invalid, holds one class only, or a parameter is out of its range.

    Examples
    --------
    >>> from aucdist.metrics import recall_at_k
    >>> recall_at_k([0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9], k=1)
    0.5
    """
    return decisions.recall_at_k(counts_of_rows(y_true, y_score, sample_weight, pos_label), k)


def recall_at_k_interval(
    y_true: ArrayLike,
    y_score: ArrayLike,
    k: float,
    *,
    level: float = 0.95,
    n_resamples: int = 1000,
    random_state: int = 0,
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> Estimate:
    """Return `recall_at_k` with its stratified percentile bootstrap interval.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    k : float
        Number of rows, or their weight if there are weights; above 0 and at most that of all rows.
    level : float, default=0.95
        The confidence of the interval, at least 0.5 and below 1.
    n_resamples : int, default=1000
        How many bootstrap samples are drawn, at least 100.
    random_state : int, default=0
        The seed of the samples, not negative.
    sample_weight : array-like of shape (n_samples,), optional
        1 for a row to use and 0 for a row to leave out. Other weights raise an InputError, because they do not say how many
        rows are independent.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    Estimate
        `value` is the recall, from 0 to 1, `low` and `high` are the ends of its interval at `level`, and `method` is
        "bootstrap".

    Raises
    ------
    InputError
        If the input is invalid or holds one class only, a weight is neither 0 nor 1, or a parameter is out of its range.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.metrics import recall_at_k_interval
    >>> y = np.repeat([0, 1], [600, 60])
    >>> estimate = recall_at_k_interval(y, np.random.default_rng(0).normal(size=660) + 2 * y, k=50)
    >>> f"{estimate.value:.3f} from {estimate.low:.3f} to {estimate.high:.3f}"
    '0.550 from 0.450 to 0.650'
    """
    return _bootstrapped(
        decisions.recall_at_k, k, (y_true, y_score, sample_weight, pos_label), level, n_resamples, random_state
    )


def precision_at_k(
    y_true: ArrayLike, y_score: ArrayLike, k: float, *, sample_weight: Weights = None, pos_label: Any = None
) -> float:
    """Return the share of the k highest-scoring rows that are positive.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    k : float
        Number of rows, or their weight if there are weights; above 0 and at most that of all rows.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, at least 0. A row of weight 2 counts as two rows.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    float
        The precision, from 0 to 1. If scores tie at the k-th place, the tied rows count in proportion.

    Raises
    ------
    InputError
        If the input is invalid, holds one class only, or a parameter is out of its range.

    Examples
    --------
    >>> from aucdist.metrics import precision_at_k
    >>> precision_at_k([0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9], k=2)
    0.5
    """
    return decisions.precision_at_k(counts_of_rows(y_true, y_score, sample_weight, pos_label), k)


def precision_at_k_interval(
    y_true: ArrayLike,
    y_score: ArrayLike,
    k: float,
    *,
    level: float = 0.95,
    n_resamples: int = 1000,
    random_state: int = 0,
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> Estimate:
    """Return `precision_at_k` with its stratified percentile bootstrap interval.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    k : float
        Number of rows, or their weight if there are weights; above 0 and at most that of all rows.
    level : float, default=0.95
        The confidence of the interval, at least 0.5 and below 1.
    n_resamples : int, default=1000
        How many bootstrap samples are drawn, at least 100.
    random_state : int, default=0
        The seed of the samples, not negative.
    sample_weight : array-like of shape (n_samples,), optional
        1 for a row to use and 0 for a row to leave out. Other weights raise an InputError, because they do not say how many
        rows are independent.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    Estimate
        `value` is the precision, from 0 to 1, `low` and `high` are the ends of its interval at `level`, and `method` is
        "bootstrap".

    Raises
    ------
    InputError
        If the input is invalid or holds one class only, a weight is neither 0 nor 1, or a parameter is out of its range.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.metrics import precision_at_k_interval
    >>> y = np.repeat([0, 1], [600, 60])
    >>> estimate = precision_at_k_interval(y, np.random.default_rng(0).normal(size=660) + 2 * y, k=50)
    >>> f"{estimate.value:.3f} from {estimate.low:.3f} to {estimate.high:.3f}"
    '0.660 from 0.540 to 0.780'
    """
    return _bootstrapped(
        decisions.precision_at_k, k, (y_true, y_score, sample_weight, pos_label), level, n_resamples, random_state
    )


def recall_at_precision(
    y_true: ArrayLike,
    y_score: ArrayLike,
    min_precision: float,
    *,
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> float:
    """Return the largest recall of any threshold whose precision is at least `min_precision`; 0 if there is none.

    The threshold is chosen on the same rows, so the value is optimistic for new rows. The bootstrap interval is
    too narrow if fewer than 20 of the flagged rows are positive, or fewer than 20 are negative.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    min_precision : float
        The minimum precision, above 0 and at most 1.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, at least 0. A row of weight 2 counts as two rows.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    float
        The recall, from 0 to 1. It is 0 if no threshold has the precision.

    Raises
    ------
    InputError
        If the input is invalid, holds one class only, or a parameter is out of its range.

    Examples
    --------
    >>> from aucdist.metrics import recall_at_precision
    >>> recall_at_precision([0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9], min_precision=0.9)
    0.5
    """
    return decisions.recall_at_precision(counts_of_rows(y_true, y_score, sample_weight, pos_label), min_precision)


def recall_at_precision_interval(
    y_true: ArrayLike,
    y_score: ArrayLike,
    min_precision: float,
    *,
    level: float = 0.95,
    n_resamples: int = 1000,
    random_state: int = 0,
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> Estimate:
    """Return `recall_at_precision` with its stratified percentile bootstrap interval.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    min_precision : float
        The minimum precision, above 0 and at most 1.
    level : float, default=0.95
        The confidence of the interval, at least 0.5 and below 1.
    n_resamples : int, default=1000
        How many bootstrap samples are drawn, at least 100.
    random_state : int, default=0
        The seed of the samples, not negative.
    sample_weight : array-like of shape (n_samples,), optional
        1 for a row to use and 0 for a row to leave out. Other weights raise an InputError, because they do not say how many
        rows are independent.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    Estimate
        `value` is the recall, from 0 to 1, which is 0 if no threshold has the precision, `low` and `high` are the ends of
        its interval at `level`, and `method` is "bootstrap".

    Raises
    ------
    InputError
        If the input is invalid or holds one class only, a weight is neither 0 nor 1, or a parameter is out of its range.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.metrics import recall_at_precision_interval
    >>> y = np.repeat([0, 1], [600, 60])
    >>> estimate = recall_at_precision_interval(y, np.random.default_rng(0).normal(size=660) + 2 * y, min_precision=0.5)
    >>> f"{estimate.value:.3f} from {estimate.low:.3f} to {estimate.high:.3f}"
    '0.750 from 0.500 to 0.900'
    """
    return _bootstrapped(
        decisions.recall_at_precision,
        min_precision,
        (y_true, y_score, sample_weight, pos_label),
        level,
        n_resamples,
        random_state,
    )


def precision_at_recall(
    y_true: ArrayLike,
    y_score: ArrayLike,
    min_recall: float,
    *,
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> float:
    """Return the largest precision of any threshold whose recall is at least `min_recall`.

    The threshold is chosen on the same rows, so the value is optimistic for new rows. The bootstrap interval is
    too narrow if fewer than 20 of the flagged rows are positive, or fewer than 20 are negative.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    min_recall : float
        The minimum recall, above 0 and at most 1.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, at least 0. A row of weight 2 counts as two rows.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    float
        The precision, above 0 and at most 1.

    Raises
    ------
    InputError
        If the input is invalid, holds one class only, or a parameter is out of its range.

    Examples
    --------
    >>> from aucdist.metrics import precision_at_recall
    >>> round(precision_at_recall([0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9], min_recall=0.9), 4)
    0.6667
    """
    return decisions.precision_at_recall(counts_of_rows(y_true, y_score, sample_weight, pos_label), min_recall)


def precision_at_recall_interval(
    y_true: ArrayLike,
    y_score: ArrayLike,
    min_recall: float,
    *,
    level: float = 0.95,
    n_resamples: int = 1000,
    random_state: int = 0,
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> Estimate:
    """Return `precision_at_recall` with its stratified percentile bootstrap interval.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    min_recall : float
        The minimum recall, above 0 and at most 1.
    level : float, default=0.95
        The confidence of the interval, at least 0.5 and below 1.
    n_resamples : int, default=1000
        How many bootstrap samples are drawn, at least 100.
    random_state : int, default=0
        The seed of the samples, not negative.
    sample_weight : array-like of shape (n_samples,), optional
        1 for a row to use and 0 for a row to leave out. Other weights raise an InputError, because they do not say how many
        rows are independent.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    Estimate
        `value` is the precision, above 0 and at most 1, `low` and `high` are the ends of its interval at `level`, and
        `method` is "bootstrap".

    Raises
    ------
    InputError
        If the input is invalid or holds one class only, a weight is neither 0 nor 1, or a parameter is out of its range.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.metrics import precision_at_recall_interval
    >>> y = np.repeat([0, 1], [600, 60])
    >>> estimate = precision_at_recall_interval(y, np.random.default_rng(0).normal(size=660) + 2 * y, min_recall=0.8)
    >>> f"{estimate.value:.3f} from {estimate.low:.3f} to {estimate.high:.3f}"
    '0.462 from 0.253 to 0.608'
    """
    return _bootstrapped(
        decisions.precision_at_recall,
        min_recall,
        (y_true, y_score, sample_weight, pos_label),
        level,
        n_resamples,
        random_state,
    )


def confusion_counts(y_true: ArrayLike, y_pred: ArrayLike, sample_weight: Weights = None) -> dict[str, float]:
    """Return the counts ``tp``, ``fp``, ``tn`` and ``fn`` of the confusion matrix, or sums of weights if there are weights.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive. There is no `pos_label`.
    y_pred : array-like of shape (n_samples,)
        Predicted labels, of the same two.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, at least 0.

    Returns
    -------
    dict of str to int or float
        The numbers of true positives, false positives, true negatives and false negatives under ``tp``, ``fp``, ``tn`` and
        ``fn``; with weights, the sums of the weights.

    Raises
    ------
    InputError
        If `y_true` does not have two different labels, `y_pred` has another one, or weights are invalid.

    Examples
    --------
    >>> from aucdist.metrics import confusion_counts
    >>> confusion_counts([0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1])
    {'tp': 2, 'fp': 1, 'tn': 3, 'fn': 0}
    """
    labels, y = binary_labels(y_true)
    predicted = labels_of("y_pred", y_pred)
    unknown = (predicted != labels[0]) & (predicted != labels[1])
    check_values("predicted label", predicted, unknown, f"is neither {labels[0]} nor {labels[1]}, the labels of y_true")
    scores = np.where(predicted == labels[1], 1.0, -1.0)
    return decisions.confusion(ScoreCounts.from_scores(y, scores, sample_weight), 0.0)


def g_mean_score(y_true: ArrayLike, y_pred: ArrayLike, sample_weight: Weights = None) -> float:
    """Return the G-mean, the geometric mean of recall and specificity.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive. There is no `pos_label`.
    y_pred : array-like of shape (n_samples,)
        Predicted labels, of the same two.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, at least 0.

    Returns
    -------
    float
        The G-mean, from 0 (one of the classes is never predicted correctly) to 1 (all rows are).

    Raises
    ------
    InputError
        As for `confusion_counts`.

    Examples
    --------
    >>> from aucdist.metrics import g_mean_score
    >>> round(g_mean_score([0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1]), 4)
    0.866
    """
    return decisions.g_mean(confusion_counts(y_true, y_pred, sample_weight))


def _rounded_down(threshold: float, scores: Any) -> float:
    """Return the largest number of the scores' type that is not above a threshold. It flags the same rows.

    NumPy compares float32 scores with a float as float32, and would round a threshold up to the score above it.
    """
    kind = getattr(scores, "dtype", None)
    if kind not in ("f2", "f4"):
        return threshold
    rounded = kind.type(threshold)
    return float(rounded if float(rounded) <= threshold else np.nextafter(rounded, -np.inf))


def _costs_of_rows(
    y_true: ArrayLike, costs: Costs, sample_weight: Weights, pos_label: Any
) -> tuple[ndarray, ndarray, ndarray]:
    """Return which rows are positive, the cost of a wrong decision on each row, and the weights of the rows."""
    positive = binary_labels(y_true, pos_label)[1] > 0
    cost = costs.of_rows(positive)
    check_costs_not_zero(cost[~positive].sum(), cost[positive].sum())
    return positive, cost, np.ones(len(positive)) if sample_weight is None else as_column("weights", sample_weight)


def _flagged(y_score: ArrayLike, threshold: float) -> ndarray:
    """Return which rows a threshold flags."""
    THRESHOLD.check("threshold", threshold)
    return as_column("scores", y_score) > threshold


def _bootstrapped(
    metric: Callable[[ScoreCounts, float], float], parameter: float, rows: tuple[Any, ...], level: float, n_resamples: int,
    random_state: int,
) -> Estimate:  # fmt: skip
    """Return a metric with one parameter and its bootstrap interval. `rows` are the arguments of `counts_of_rows`."""
    counts = counts_of_rows(*rows)
    return bootstrap_interval(
        counts, lambda drawn: metric(drawn, parameter), level, n_resamples=n_resamples, seed=random_state
    )
