"""Metrics of rankings and of probabilities, and tests of whether two models differ, on labels and scores.

The larger of two labels is positive, as in scikit-learn. Each function counts the rows of each class at each score, and calls the
metric of such counts (`aucdist.metrics.counts.ScoreCounts`).
"""

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from aucdist.metrics import compare, partial, probability, ranking
from aucdist.metrics.compare import Difference
from aucdist.metrics.counts import Weights, as_column, binary_labels, check_values, counts_of_rows
from aucdist.metrics.intervals import Estimate
from aucdist.metrics.probability import Reliability


def roc_auc_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    max_fpr: float | None = None,
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> float:
    """Return the area under the ROC curve, as scikit-learn's ``roc_auc_score`` does for two classes. A tied pair counts one half.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    max_fpr : float, optional
        Above 0 and at most 1. The standardised partial AUC up to this false positive rate is returned: see
        `partial_roc_auc_score`.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, at least 0. The weight of a pair is the product of the weights of its two rows.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    float
        The AUC, from 0 to 1: 0.5 is a random order and 1 a perfect one. With `max_fpr`, the standardised partial AUC. NaN if
        `y_true` holds one class only.

    Raises
    ------
    InputError
        If there are more than two labels, or `max_fpr` is out of its range.

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
        partial.SHARE.check("max_fpr", max_fpr)
    counts = counts_of_rows(y_true, y_score, sample_weight, pos_label, one_class=True)
    if counts.rows_pos == 0 or counts.rows_neg == 0:
        from sklearn.exceptions import UndefinedMetricWarning  # scikit-learn takes most of a second to load

        text = "Only one class is present in y_true. ROC AUC score is not defined in that case."
        warnings.warn(text, UndefinedMetricWarning, stacklevel=2)
        return float("nan")
    return ranking.auc(counts) if max_fpr is None else partial.partial_auc(counts, max_fpr)


def roc_auc_interval(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    level: float = 0.95,
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> Estimate:
    """Return a confidence interval of the AUC.

    The variance is DeLong's (Biometrics 44, 1988, 837-845). The interval contains every AUC that a t-test would not reject, where
    the standard error is computed under the tested AUC. Wilson's interval of a share is constructed in the same way. With few
    rows, the variance is shrunk towards that of two normal distributions. In simulations with normal and logistic scores, 95 %
    intervals covered the true AUC in 93 to 97 % of samples, for AUCs of 0.7, 0.9 and 0.98 and at least 10 rows of the smaller
    class (`tests/metrics/test_coverage.py` repeats these simulations).

    This interval is not defined if the AUC is exactly 0 or 1, if the variance is 0, or if a class has one row. Then another
    interval is returned: ``[q * auc, 1 - q * (1 - auc)]`` with ``q = (1 - level) ** (1 / m)``, where m is the number of rows of
    the smaller class. It holds its level for any number of rows (Clopper and Pearson, Biometrika 26, 1934, 404-413).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    level : float, default=0.95
        The confidence of the interval, at least 0.5 and below 1.
    sample_weight : array-like of shape (n_samples,), optional
        1 for a row to use and 0 for a row to leave out. Other weights raise an InputError, because they do not say how many
        rows are independent.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    Estimate
        `value` is the AUC, from 0 to 1, `low` and `high` are the ends of its interval at `level`, and `method` is "score" or
        "exact-bound".

    Raises
    ------
    InputError
        If the input is invalid or holds one class only, a weight is neither 0 nor 1, or a parameter is out of its range.

    Warns
    -----
    IntervalWarning
        If the smaller class has fewer than 10 rows, or if this number times the smaller of AUC and 1 - AUC is below 5. The
        interval then covers less often than its level says if a few positives have scores that are typical of negatives.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.metrics import roc_auc_interval
    >>> y = np.repeat([0, 1], [600, 200])
    >>> interval = roc_auc_interval(y, np.random.default_rng(0).normal(size=800) + y)
    >>> f"{interval.value:.3f} from {interval.low:.3f} to {interval.high:.3f}"
    '0.755 from 0.714 to 0.791'
    """
    return ranking.auc_interval(counts_of_rows(y_true, y_score, sample_weight, pos_label), level)


def roc_auc_difference(
    y_true: ArrayLike, first: ArrayLike, second: ArrayLike, *, level: float = 0.95, pos_label: Any = None
) -> Difference:
    """Test whether two models have the same AUC, on the same rows.

    The test flips the sign of what each row adds to the difference of the AUCs, which corresponds to exchanging the two
    scores of the row. The p-value is the share of sign flips whose difference is at least as far from 0 as the observed
    difference. The test holds its level for any number of positives. A test that relies on the normal distribution does not
    hold its level with few. The interval contains the differences that the test does not reject. With many rows the interval
    agrees with DeLong's (Biometrics 44, 1988, 837-845).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    first, second : array-like of shape (n_samples,)
        Finite scores of the two models.
    level : float, default=0.95
        The confidence of the interval, at least 0.5 and below 1.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    Difference
        `value` is the AUC of the first model minus that of the second, from -1 to 1, with `low` and `high`, the ends of its
        interval, and `p_value`. `n_deciding` is the number of rows of the rarer class that the two models treat differently.
        With fewer than five, no difference is significant at 5 %.

    Raises
    ------
    InputError
        If the input is invalid, a class has fewer than two rows, or `level` is out of its range.

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
    return compare.auc_test(
        binary_labels(y_true, pos_label)[1], as_column("scores", first), as_column("scores", second), level
    )


def partial_roc_auc_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    max_fpr: float,
    *,
    standardized: bool = True,
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> float:
    """Return the area under the ROC curve from a false positive rate of 0 to `max_fpr`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    max_fpr : float
        The largest false positive rate, above 0 and at most 1.
    standardized : bool, default=True
        Whether to map the area linearly so that 1/2 is a random and 1 a perfect ranking (McClish, Medical Decision Making 9,
        1989, 190-195). Otherwise the area is at most `max_fpr`.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, at least 0. The weight of a pair is the product of the weights of its two rows.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    float
        The standardised partial AUC: 0.5 is a random order and 1 a perfect one, and orders worse than random have less than
        0.5. With ``standardized=False``, the area, from 0 to `max_fpr`.

    Raises
    ------
    InputError
        If the input is invalid, holds one class only, or a parameter is out of its range.

    Examples
    --------
    >>> from aucdist.metrics import partial_roc_auc_score
    >>> round(partial_roc_auc_score([0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9], max_fpr=0.5), 4)
    0.8333
    """
    return partial.partial_auc(
        counts_of_rows(y_true, y_score, sample_weight, pos_label), max_fpr, standardized=standardized
    )


def partial_roc_auc_interval(
    y_true: ArrayLike,
    y_score: ArrayLike,
    max_fpr: float,
    *,
    level: float = 0.95,
    standardized: bool = True,
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> Estimate:
    """Return the partial AUC with a confidence interval.

    The variance is DeLong's, the sum of the variances of the two classes' placements over their numbers of rows. Let beta be
    `max_fpr`, and ROC(beta) the true positive rate there. The placement of a positive whose score has the false positive rate u
    is ``max(0, beta - u)``, and that of a negative whose score has the true positive rate v is ``min(v, ROC(beta))``. These are
    the influence functions of the partial AUC; they account for the estimation of the score at beta. At beta = 1 they are
    DeLong's. The interval is Wilson's for a share with this variance, as in `average_precision_interval`.

    If no variance can be estimated, the interval is a bound for any number of rows (``exact-bound``).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    max_fpr : float
        The largest false positive rate, above 0 and at most 1.
    level : float, default=0.95
        The confidence of the interval, at least 0.5 and below 1.
    standardized : bool, default=True
        Whether to map the area as `partial_roc_auc_score` does.
    sample_weight : array-like of shape (n_samples,), optional
        1 for a row to use and 0 for a row to leave out. Other weights raise an InputError, because they do not say how many
        rows are independent.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    Estimate
        `value` is the partial AUC, scaled as in `partial_roc_auc_score`, `low` and `high` are the ends of its interval at
        `level`, and `method` is "score" or "exact-bound".

    Raises
    ------
    InputError
        If the input is invalid or holds one class only, a weight is neither 0 nor 1, or a parameter is out of its range.

    Warns
    -----
    IntervalWarning
        If there are fewer than 50 positives, or fewer than 20 negatives up to `max_fpr`. The interval then covers less often
        than its level says.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.metrics import partial_roc_auc_interval
    >>> y = np.repeat([0, 1], [6000, 200])
    >>> estimate = partial_roc_auc_interval(y, np.random.default_rng(0).normal(size=6200) + 2 * y, max_fpr=0.05)
    >>> f"{estimate.value:.3f} from {estimate.low:.3f} to {estimate.high:.3f}"
    '0.725 from 0.693 to 0.758'
    """
    return partial.partial_auc_interval(
        counts_of_rows(y_true, y_score, sample_weight, pos_label), max_fpr, level, standardized=standardized
    )


def partial_roc_auc_difference(
    y_true: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    max_fpr: float,
    *,
    level: float = 0.95,
    standardized: bool = True,
    pos_label: Any = None,
) -> Difference:
    """Test whether two models have the same partial AUC, on the same rows, by flipping signs as `roc_auc_difference` does.

    A row adds the difference of its two placements, as in `partial_roc_auc_interval`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    first, second : array-like of shape (n_samples,)
        Finite scores of the two models.
    max_fpr : float
        The largest false positive rate, above 0 and at most 1.
    level : float, default=0.95
        The confidence of the interval, at least 0.5 and below 1.
    standardized : bool, default=True
        Whether to map the area as `partial_roc_auc_score` does.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    Difference
        `value` is the partial AUC of the first model minus that of the second, with `low` and `high`, the ends of its
        interval, `p_value`, and `n_deciding`: the number of positive rows that the two models treat differently. `method` is
        "exact-bound" if no variance can be estimated, as for two perfect rankings.

    Raises
    ------
    InputError
        If the input is invalid, holds one class only, or a parameter is out of its range.

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
    return compare.partial_auc_test(
        binary_labels(y_true, pos_label)[1],
        first,
        second,
        max_fpr,
        level,
        standardized=standardized,
    )


def two_way_partial_auc_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    min_tpr: float,
    max_fpr: float,
    *,
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> float:
    """Return the two-way partial AUC: the share of a region of the ROC plot that is below the curve.

    The region has false positive rates up to `max_fpr` and true positive rates from `min_tpr` on.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    min_tpr : float
        The minimum true positive rate, at least 0 and below 1.
    max_fpr : float
        The largest false positive rate, above 0 and at most 1.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, at least 0. The weight of a pair is the product of the weights of its two rows.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    float
        The share of the region below the curve, from 0 to 1 (a perfect order).

    Raises
    ------
    InputError
        If the input is invalid, holds one class only, or a parameter is out of its range.

    Examples
    --------
    >>> from aucdist.metrics import two_way_partial_auc_score
    >>> y, scores = [0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9]
    >>> round(two_way_partial_auc_score(y, scores, min_tpr=0.5, max_fpr=0.5), 4)
    0.5
    """
    return partial.two_way_partial_auc(counts_of_rows(y_true, y_score, sample_weight, pos_label), min_tpr, max_fpr)


def two_way_partial_auc_interval(
    y_true: ArrayLike,
    y_score: ArrayLike,
    min_tpr: float,
    max_fpr: float,
    *,
    level: float = 0.95,
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> Estimate:
    """Return the two-way partial AUC with a confidence interval of DeLong's type.

    The variance is that of `partial_roc_auc_interval` with the influence functions of this area. Let alpha be `min_tpr`, beta
    be `max_fpr`, ROC(u) the true positive rate at the false positive rate u, and a_0 the false positive rate at which the curve
    reaches alpha. The placement of a positive at the false positive rate u is ``max(0, beta - max(u, a_0))``, and that of a
    negative at the true positive rate v is ``max(0, min(v, ROC(beta)) - alpha)``. Both boundaries are estimated from the same
    rows. The estimation of the boundary a_0 adds nothing to the variance, because the integrand is 0 there.

    If no variance can be estimated, as for a share of 0 or 1, the interval is Markov's (``exact-bound``), from q times the
    share to 1 - q (1 - share) with q = 1 - level. It is wide.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    min_tpr, max_fpr : float
        As for `two_way_partial_auc_score`.
    level : float, default=0.95
        The confidence of the interval, at least 0.5 and below 1.
    sample_weight : array-like of shape (n_samples,), optional
        1 for a row to use and 0 for a row to leave out. Other weights raise an InputError, because they do not say how many
        rows are independent.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    Estimate
        `value` is the two-way partial AUC, from 0 to 1, `low` and `high` are the ends of its interval at `level`, and
        `method` is "score" or "exact-bound".

    Raises
    ------
    InputError
        If the input is invalid or holds one class only, a weight is neither 0 nor 1, or a parameter is out of its range.

    Warns
    -----
    IntervalWarning
        If there are fewer than 50 positives beyond `min_tpr`, fewer than 30 of them that rank within `max_fpr`, or fewer than
        20 negatives up to `max_fpr`. The interval then covers less often than its level says.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.metrics import two_way_partial_auc_interval
    >>> y = np.repeat([0, 1], [6000, 200])
    >>> scores = np.random.default_rng(0).normal(size=6200) + 2 * y
    >>> estimate = two_way_partial_auc_interval(y, scores, min_tpr=0.5, max_fpr=0.2)
    >>> f"{estimate.value:.3f} from {estimate.low:.3f} to {estimate.high:.3f}"
    '0.470 from 0.384 to 0.557'
    """
    return partial.two_way_partial_auc_interval(
        counts_of_rows(y_true, y_score, sample_weight, pos_label), min_tpr, max_fpr, level
    )


def average_precision_score(
    y_true: ArrayLike, y_score: ArrayLike, *, sample_weight: Weights = None, pos_label: Any = None
) -> float:
    """Return the average precision: the sum over thresholds of the step in recall times the precision there.

    The definition is that of scikit-learn: there is no interpolation, and rows with equal scores enter together.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, at least 0. A row of weight 2 counts as two rows.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    float
        The average precision, above 0 and at most 1 (a perfect order). A random order has about the share of positives.

    Raises
    ------
    InputError
        If the input is invalid, holds one class only, or a parameter is out of its range.

    Examples
    --------
    >>> from aucdist.metrics import average_precision_score
    >>> round(average_precision_score([0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9]), 4)
    0.8333
    """
    return ranking.average_precision(counts_of_rows(y_true, y_score, sample_weight, pos_label))


def average_precision_interval(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    level: float = 0.95,
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> Estimate:
    """Return the average precision with a confidence interval.

    The variance is Tukey's jackknife, class by class. The bounds are Wilson's for a share with this variance, so they lie
    between 0 and 1. With few positives, the variance is shrunk towards that of a share. In simulations with at least 10
    positives, 95 % intervals covered the true value in 92 to 98 % of samples (`tests/metrics/test_coverage.py`). The interval is
    for new samples with the same share of positives, on which the average precision depends.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    level : float, default=0.95
        The confidence of the interval, at least 0.5 and below 1.
    sample_weight : array-like of shape (n_samples,), optional
        1 for a row to use and 0 for a row to leave out. Other weights raise an InputError, because they do not say how many
        rows are independent.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    Estimate
        `value` is the average precision, above 0 and at most 1, `low` and `high` are the ends of its interval at `level`,
        and `method` is "score" or "exact-bound".

    Raises
    ------
    InputError
        If the input is invalid or holds one class only, a weight is neither 0 nor 1, or a parameter is out of its range.

    Warns
    -----
    IntervalWarning
        If there are fewer than 10 positives.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.metrics import average_precision_interval
    >>> y = np.repeat([0, 1], [600, 60])
    >>> estimate = average_precision_interval(y, np.random.default_rng(0).normal(size=660) + 2 * y)
    >>> f"{estimate.value:.3f} from {estimate.low:.3f} to {estimate.high:.3f}"
    '0.675 from 0.557 to 0.775'
    """
    return ranking.average_precision_interval(counts_of_rows(y_true, y_score, sample_weight, pos_label), level)


def average_precision_difference(
    y_true: ArrayLike, first: ArrayLike, second: ArrayLike, *, level: float = 0.95, pos_label: Any = None
) -> Difference:
    """Test whether two models have the same average precision, on the same rows.

    The test flips signs as `roc_auc_difference` does. What a row adds to the difference comes from Tukey's jackknife, class by
    class, as in `average_precision_interval`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    first, second : array-like of shape (n_samples,)
        Finite scores of the two models.
    level : float, default=0.95
        The confidence of the interval, at least 0.5 and below 1.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    Difference
        `value` is the average precision of the first model minus that of the second, from -1 to 1, with `low` and `high`, the
        ends of its interval, `p_value`, and `n_deciding`: the number of positive rows that the two models treat differently.

    Raises
    ------
    InputError
        If the input is invalid, a class has fewer than two rows, or `level` is out of its range.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.metrics import average_precision_difference
    >>> y = np.repeat([0, 1], [600, 60])
    >>> noise = np.random.default_rng(0).normal(size=(2, 660))
    >>> difference = average_precision_difference(y, noise[0] + 2 * y, noise[1] + y)
    >>> difference.value > 0, difference.p_value < 0.05
    (True, True)
    """
    return compare.flip_influences(
        binary_labels(y_true, pos_label)[1],
        (first, second),
        lambda counts: (ranking.average_precision(counts), *ranking.precision_jackknife(counts)),
        level,
    )


def venn_abers_probabilities(
    y_true: ArrayLike, y_score: ArrayLike, scores: ArrayLike, *, pos_label: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return Venn-Abers prediction: a lower and an upper probability for each of the scores in `scores`.

    After Vovk and Petej, "Venn-Abers predictors" (UAI 2014). Isotonic regression is fitted twice for each new row: to the
    calibration rows and this row with a negative label, and to the same rows with a positive label. The two fits give its two
    probabilities. If new rows are drawn like the calibration rows, the probability for the true label is perfectly
    calibrated. The two probabilities are far apart where there are few calibration rows. ``upper / (1 - lower + upper)`` is a
    single probability between them.

    Parameters
    ----------
    y_true : array-like of shape (n_calibration,)
        Two different labels, numbers or strings, of rows that the model was not fitted to; the larger one is positive.
    y_score : array-like of shape (n_calibration,)
        Finite scores; higher means more likely positive.
    scores : array-like of shape (n_samples,)
        The scores of the new rows.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    lower, upper : ndarray of shape (n_samples,), float64
        Two probabilities of the positive label for each row, from 0 to 1, in the order of `scores`; `lower` is at most
        `upper`.

    Raises
    ------
    InputError
        If the input is invalid or holds one class only.

    Examples
    --------
    >>> from aucdist.metrics import venn_abers_probabilities
    >>> lower, upper = venn_abers_probabilities([0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.5, 0.9], [0.05, 0.6])
    >>> lower.round(2).tolist(), upper.round(2).tolist()
    ([0.0, 0.5], [0.25, 1.0])
    """
    counts, column = counts_of_rows(y_true, y_score, pos_label=pos_label), as_column("scores", scores)
    check_values("score", column, ~np.isfinite(column), "is not finite")
    return probability.venn_abers(counts, column)


def brier_score_loss(
    y_true: ArrayLike, y_proba: ArrayLike, *, sample_weight: Weights = None, pos_label: Any = None
) -> float:
    """Return the Brier score, the mean squared difference between probabilities and labels 0 and 1 (Brier, 1950).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_proba : array-like of shape (n_samples,)
        Probabilities of the positive label, from 0 to 1.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, at least 0. A row of weight 2 counts as two rows.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    float
        The Brier score, from 0 (certain and right about every row) to 1. Lower is better.

    Raises
    ------
    InputError
        If the input is invalid, holds one class only, or a parameter is out of its range.

    Examples
    --------
    >>> from aucdist.metrics import brier_score_loss
    >>> round(brier_score_loss([0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9]), 4)
    0.1333
    """
    return probability.brier(counts_of_rows(y_true, y_proba, sample_weight, pos_label))


def log_loss(y_true: ArrayLike, y_proba: ArrayLike, *, sample_weight: Weights = None, pos_label: Any = None) -> float:
    """Return the log loss, the mean of minus the logarithm of the probability of the true class.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_proba : array-like of shape (n_samples,)
        Probabilities of the positive label, from 0 to 1.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, at least 0. A row of weight 2 counts as two rows.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    float
        The log loss in natural units (nats), at least 0. Lower is better. It is finite: probabilities are clipped to between
        1e-15 and 1 - 1e-15.

    Raises
    ------
    InputError
        If the input is invalid, holds one class only, or a parameter is out of its range.

    Examples
    --------
    >>> from aucdist.metrics import log_loss
    >>> round(log_loss([0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9]), 4)
    0.4176
    """
    return probability.log_loss(counts_of_rows(y_true, y_proba, sample_weight, pos_label))


def calibration_loss(
    y_true: ArrayLike, y_proba: ArrayLike, *, sample_weight: Weights = None, pos_label: Any = None
) -> float:
    """Return the mean squared difference between the probabilities and the shares of positives along the ROC curve's convex hull.

    Each segment of the hull joins rows with neighbouring scores, and their share of positives is the calibrated probability.

    After Flach & Matsubara, "A simple lexicographic ranker and probability estimator" (ECML 2007). If the probabilities are
    constant along each segment of the hull, the Brier score is the sum of this and `refinement_loss`; otherwise it may differ
    slightly from the sum.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_proba : array-like of shape (n_samples,)
        Probabilities of the positive label, from 0 to 1.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, at least 0. A row of weight 2 counts as two rows.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    float
        The calibration loss, from 0 to 1. Lower is better.

    Raises
    ------
    InputError
        If the input is invalid, holds one class only, or a parameter is out of its range.

    Examples
    --------
    >>> from aucdist.metrics import calibration_loss
    >>> round(calibration_loss([0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9]), 4)
    0.0333
    """
    return probability.calibration_loss(counts_of_rows(y_true, y_proba, sample_weight, pos_label))


def refinement_loss(
    y_true: ArrayLike, y_score: ArrayLike, *, sample_weight: Weights = None, pos_label: Any = None
) -> float:
    """Return the Brier score of the probabilities of the ROC curve's convex hull.

    It is the smallest Brier score that a non-decreasing map of these scores can reach on these rows.
    Only the order of the scores matters; they need not be probabilities.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more likely positive.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, at least 0. A row of weight 2 counts as two rows.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    float
        The refinement loss, from 0 (a perfect order) to 0.25. Lower is better.

    Raises
    ------
    InputError
        If the input is invalid, holds one class only, or a parameter is out of its range.

    Examples
    --------
    >>> from aucdist.metrics import refinement_loss
    >>> round(refinement_loss([0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9]), 4)
    0.0833
    """
    return probability.refinement_loss(counts_of_rows(y_true, y_score, sample_weight, pos_label))


def reliability_curve(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    n_bins: int = 10,
    *,
    binning: str = "quantile",
    level: float = 0.95,
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> Reliability:
    """Return a reliability curve with an interval for each of its points.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_proba : array-like of shape (n_samples,)
        Probabilities of the positive label, from 0 to 1.
    n_bins : int, default=10
        The number of bins, at least 1.
    binning : {"quantile", "uniform"}, default="quantile"
        ``quantile``: bins of about equal weight, which suit rare events; equal probabilities share a bin. ``uniform``: bins of
        equal width.
    level : float, default=0.95
        Confidence of each interval separately, above 0 and below 1.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, at least 0. If any is neither 0 nor 1, the bounds `low` and `high` are NaN, because weights do
        not say how many rows are independent.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    Reliability
        For each bin with rows, the mean predicted probability, the observed share of positives with the ends of its
        interval, and the weight of the bin.

    Raises
    ------
    InputError
        If the input is invalid, holds one class only, or a parameter is out of its range.

    Examples
    --------
    >>> from aucdist.metrics import reliability_curve
    >>> curve = reliability_curve([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.6, 0.7, 0.8], n_bins=2)
    >>> curve.predicted.round(2).tolist(), curve.observed.round(2).tolist()
    ([0.2, 0.7], [0.33, 0.67])
    """
    return probability.reliability(
        counts_of_rows(y_true, y_proba, sample_weight, pos_label), n_bins, binning=binning, level=level
    )


def expected_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    n_bins: int = 10,
    *,
    binning: str = "quantile",
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> float:
    """Return the expected calibration error: the mean absolute difference of predicted and observed probability over bins.

    The result depends on the bins, and is above 0 even for a perfect model. Compare only values for the same bins and numbers
    of rows.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two different labels, numbers or strings; the larger one is positive.
    y_proba : array-like of shape (n_samples,)
        Probabilities of the positive label, from 0 to 1.
    n_bins : int, default=10
        The number of bins, at least 1.
    binning : {"quantile", "uniform"}, default="quantile"
        As for `reliability_curve`.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, at least 0. A row of weight 2 counts as two rows.
    pos_label : label, optional
        The positive label; the larger one by default.

    Returns
    -------
    float
        The expected calibration error, from 0 to 1. Lower is better.

    Raises
    ------
    InputError
        If the input is invalid, holds one class only, or a parameter is out of its range.

    Examples
    --------
    >>> from aucdist.metrics import expected_calibration_error
    >>> round(expected_calibration_error([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.6, 0.7, 0.8], n_bins=2), 4)
    0.0833
    """
    return probability.expected_calibration_error(
        counts_of_rows(y_true, y_proba, sample_weight, pos_label), n_bins, binning=binning
    )
