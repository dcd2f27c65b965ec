"""Measures of the top of a ranking with their intervals, on labels and scores."""

from collections.abc import Callable
from functools import partial
from typing import Any

from aucdist.metrics import partial as of_partial
from aucdist.metrics import top as of_top
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.functions import _counts
from aucdist.metrics.partial import Estimate


def partial_roc_auc_interval(
    y_true: Any,
    y_score: Any,
    *,
    max_fpr: float,
    standardized: bool = True,
    level: float = 0.95,
    pos_label: Any = None,
) -> Estimate:
    """Return the partial AUC with a confidence interval of DeLong's type on the logit scale.

    `aucdist.metrics.partial.partial_auc_interval` gives the formula, errors and warnings.

    Parameters
    ----------
    y_true, y_score, max_fpr, standardized, pos_label
        As for `partial_roc_auc_score`.
    level : float
        At least 0.5 and below 1.

    Returns
    -------
    Estimate
        With ``value``, ``low``, ``high``, ``level`` and ``method``.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.metrics import partial_roc_auc_interval
    >>> y = np.repeat([0, 1], [6000, 200])
    >>> found = partial_roc_auc_interval(y, np.random.default_rng(0).normal(size=6200) + 2 * y, max_fpr=0.05)
    >>> f"{found.value:.3f} from {found.low:.3f} to {found.high:.3f}"
    '0.725 from 0.693 to 0.758'
    """
    counts = _counts(y_true, y_score, None, pos_label)
    return of_partial.partial_auc_interval(counts, max_fpr, level, standardized=standardized)


def recall_at_fpr_interval(
    y_true: Any,
    y_score: Any,
    *,
    max_fpr: float,
    level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
    pos_label: Any = None,
) -> Estimate:
    """Return `recall_at_fpr` with its stratified percentile bootstrap interval.

    Parameters
    ----------
    y_true, y_score, max_fpr, pos_label
        As for `recall_at_fpr`.
    level : float
        At least 0.5 and below 1.
    n_resamples : int
        At least 100.
    seed : int
        Seed of the resamples, not negative.

    Returns
    -------
    Estimate
        With ``value``, ``low``, ``high``, ``level`` and ``method``.

    Raises
    ------
    InputError
        If the input is invalid, holds one class only, or a parameter is out of its range.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.metrics import recall_at_fpr_interval
    >>> y = np.repeat([0, 1], [600, 60])
    >>> found = recall_at_fpr_interval(y, np.random.default_rng(0).normal(size=660) + 2 * y, max_fpr=0.05)
    >>> f"{found.value:.3f} from {found.low:.3f} to {found.high:.3f}"
    '0.633 from 0.500 to 0.783'
    """
    return _interval(
        y_true, y_score, pos_label, partial(of_top.recall_at_fpr, max_fpr=max_fpr), level, n_resamples, seed
    )


def fpr_at_recall_interval(
    y_true: Any,
    y_score: Any,
    *,
    min_recall: float,
    level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
    pos_label: Any = None,
) -> Estimate:
    """Return `fpr_at_recall` with its stratified percentile bootstrap interval.

    Parameters
    ----------
    y_true, y_score, min_recall, pos_label
        As for `fpr_at_recall`.
    level, n_resamples, seed
        As for `recall_at_fpr_interval`.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.metrics import fpr_at_recall_interval
    >>> y = np.repeat([0, 1], [600, 60])
    >>> found = fpr_at_recall_interval(y, np.random.default_rng(0).normal(size=660) + 2 * y, min_recall=0.8)
    >>> f"{found.value:.3f} from {found.low:.3f} to {found.high:.3f}"
    '0.095 from 0.052 to 0.240'
    """
    return _interval(
        y_true, y_score, pos_label, partial(of_top.fpr_at_recall, min_recall=min_recall), level, n_resamples, seed
    )


def recall_at_k_interval(
    y_true: Any,
    y_score: Any,
    *,
    k: float,
    level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
    pos_label: Any = None,
) -> Estimate:
    """Return `recall_at_k` with its stratified percentile bootstrap interval.

    Parameters
    ----------
    y_true, y_score, k, pos_label
        As for `recall_at_k`.
    level, n_resamples, seed
        As for `recall_at_fpr_interval`.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.metrics import recall_at_k_interval
    >>> y = np.repeat([0, 1], [600, 60])
    >>> found = recall_at_k_interval(y, np.random.default_rng(0).normal(size=660) + 2 * y, k=50)
    >>> f"{found.value:.3f} from {found.low:.3f} to {found.high:.3f}"
    '0.550 from 0.450 to 0.650'
    """
    return _interval(y_true, y_score, pos_label, partial(of_top.recall_at_k, k=k), level, n_resamples, seed)


def precision_at_k_interval(
    y_true: Any,
    y_score: Any,
    *,
    k: float,
    level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
    pos_label: Any = None,
) -> Estimate:
    """Return `precision_at_k` with its stratified percentile bootstrap interval.

    Parameters
    ----------
    y_true, y_score, k, pos_label
        As for `precision_at_k`.
    level, n_resamples, seed
        As for `recall_at_fpr_interval`.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.metrics import precision_at_k_interval
    >>> y = np.repeat([0, 1], [600, 60])
    >>> found = precision_at_k_interval(y, np.random.default_rng(0).normal(size=660) + 2 * y, k=50)
    >>> f"{found.value:.3f} from {found.low:.3f} to {found.high:.3f}"
    '0.660 from 0.540 to 0.780'
    """
    return _interval(y_true, y_score, pos_label, partial(of_top.precision_at_k, k=k), level, n_resamples, seed)


def _interval(
    y_true: Any,
    y_score: Any,
    pos_label: Any,
    measure: Callable[[ScoreCounts], float],
    level: float,
    n_resamples: int,
    seed: int,
) -> Estimate:
    counts = _counts(y_true, y_score, None, pos_label)
    return of_top.measure_interval(counts, measure, level, n_resamples=n_resamples, seed=seed)
