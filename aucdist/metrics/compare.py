"""Tests of whether one model is better than another, on the same test rows or over the same folds."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from aucdist.errors import InputError
from aucdist.metrics.counts import ScoreCounts, as_column, checked_scores, refuse
from aucdist.metrics.intervals import check_level, check_resamples, counts_at, two_sided_z
from aucdist.metrics.partial import partial_auc, placements_up_to


@dataclass(frozen=True)
class Difference:
    """A difference between two models, first minus second.

    Attributes
    ----------
    value : float
    low, high : float
        Its confidence interval.
    p_value : float
        Two-sided, for the hypothesis that there is none.
    level : float
    method : str
        ``delong``, ``bootstrap``, ``bootstrap-groups``, ``corrected-t`` or ``corrected-groups``; ``exact-bound`` if
        the variance cannot be estimated.
    """

    value: float
    low: float
    high: float
    p_value: float
    level: float
    method: str


def placements(y: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each row the share of the other class that it is ranked correctly against; a tie counts one half.

    Parameters
    ----------
    y : array of shape (n_samples,)
        Labels, -1 or +1; both must occur.
    scores : array of shape (n_samples,)
        Finite.

    Returns
    -------
    of_pos : ndarray of shape (n_pos,), float64
    of_neg : ndarray of shape (n_neg,), float64
        In the order of the rows. The mean of either is the AUC.

    Raises
    ------
    InputError
        If the lengths differ, a label is neither -1 nor +1, a score is not finite, or a class is missing.
    """
    y, scores = checked_scores(y, scores)
    pos, neg = scores[y == 1], scores[y == -1]
    if not (len(pos) and len(neg)):
        raise InputError(f"rows of both classes are needed; there are {len(pos)} positive and {len(neg)} negative ones")
    up, down = np.sort(pos), np.sort(neg)
    below = np.searchsorted(down, pos, "left") + np.searchsorted(down, pos, "right")
    above = 2 * len(pos) - np.searchsorted(up, neg, "left") - np.searchsorted(up, neg, "right")
    return below / (2 * len(neg)), above / (2 * len(pos))


def delong_covariance(y: np.ndarray, scores: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the AUCs of several scores of the same rows, and DeLong's estimate of their covariance.

    The covariance of the placements of the positives over their number, plus the same for the negatives (DeLong, DeLong and
    Clarke-Pearson, Biometrics 44, 1988, 837-845), in time n log n by sorting.

    Parameters
    ----------
    y : array of shape (n_samples,)
        Labels, -1 or +1.
    scores : sequence of array of shape (n_samples,)

    Returns
    -------
    areas : ndarray of shape (n_scores,)
    covariance : ndarray of shape (n_scores, n_scores)

    Raises
    ------
    InputError
        As `placements`, and if a class has fewer than two rows.
    """
    parts = [placements(y, column) for column in scores]
    of_pos, of_neg = (np.stack([part[i] for part in parts]) for i in (0, 1))
    if min(of_pos.shape[1], of_neg.shape[1]) < 2:
        raise InputError("DeLong's covariance needs two rows of each class")
    covariance = sum(np.atleast_2d(np.cov(part)) / part.shape[1] for part in (of_pos, of_neg))
    return of_pos.mean(axis=1), np.asarray(covariance)


def delong_test(y: np.ndarray, first: np.ndarray, second: np.ndarray, level: float = 0.95) -> Difference:
    """Test whether two models have the same AUC, on the same rows.

    If all rows have the same difference of placements, as with two perfect rankings, the variance cannot be estimated. Then the
    bound of `auc_interval` is used on both sides, ``1 - (1 - level) ** (1 / m)`` with m the number of rows of the smaller
    class, and the p-value is that of a sign test on m pairs without a common row.

    Parameters
    ----------
    y : array of shape (n_samples,)
        Labels, -1 or +1.
    first, second : array of shape (n_samples,)
        Scores.
    level : float
        At least 0.5 and below 1.

    Raises
    ------
    InputError
        As `placements`, if a class has fewer than two rows, or for a level out of its range.

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
    check_level(level)
    areas, covariance = delong_covariance(y, [first, second])
    value = float(areas[0] - areas[1])
    variance = float(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    if variance <= 1e-14 * float(covariance[0, 0] + covariance[1, 1]) or variance == 0:
        fewest = int(min((np.asarray(y) == 1).sum(), (np.asarray(y) == -1).sum()))
        return bounded_difference(value, fewest, level)
    return normal_difference(value, math.sqrt(variance), level)


def normal_difference(value: float, error: float, level: float, most: float = 1.0, scale: float = 1.0) -> Difference:
    """Return a difference of at most `most` with a normal interval and test; `scale` stretches it at the end."""
    reach = two_sided_z(level) * error
    p_value = math.erfc(abs(value) / error / math.sqrt(2))
    low, high = max(value - reach, -most), min(value + reach, most)
    return Difference(value * scale, low * scale, high * scale, p_value, level, "delong")


def bounded_difference(value: float, fewest: int, level: float) -> Difference:
    """Return a difference whose variance cannot be estimated, of rows of which the smaller class has `fewest`."""
    reach = 1 - (1 - level) ** (1 / fewest)
    p_value = 1.0 if value == 0 else min(1.0, 2 * 0.5**fewest)
    return Difference(value, max(value - reach, -1.0), min(value + reach, 1.0), p_value, level, "exact-bound")


def paired_bootstrap(
    y: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    measure: Callable[[ScoreCounts], float],
    level: float = 0.95,
    *,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Difference:
    """Test by stratified bootstrap whether two models have the same measure, on the same rows.

    Parameters
    ----------
    y : array of shape (n_samples,)
        Labels, -1 or +1.
    first, second : array of shape (n_samples,)
        Scores.
    measure, level, n_resamples, seed
        As for `bootstrap_interval`.

    Returns
    -------
    Difference
        The p-value is twice the share of resamples on the other side of zero, and at least ``1 / n_resamples``.

    Raises
    ------
    InputError
        As `bootstrap_interval`.
    """
    check_level(level)
    check_resamples(n_resamples)
    whole = [ScoreCounts.from_scores(y, scores) for scores in (first, second)]
    at = [np.searchsorted(counts.values, scores) for counts, scores in zip(whole, (first, second), strict=True)]
    value = measure(whole[0]) - measure(whole[1])
    classes = [np.flatnonzero(np.asarray(y) == label) for label in (1, -1)]
    random = np.random.default_rng(seed)
    found = np.empty(n_resamples)
    for i in range(n_resamples):
        drawn = [rows[random.integers(len(rows), size=len(rows))] for rows in classes]
        one, other = (measure(counts_at(c, p[drawn[0]], p[drawn[1]])) for c, p in zip(whole, at, strict=True))
        found[i] = one - other
    low, high = (float(v) for v in np.quantile(found, ((1 - level) / 2, (1 + level) / 2)))
    if low == high:
        return bounded_difference(value, min(len(rows) for rows in classes), level)
    tail = min((found <= 0).mean(), (found >= 0).mean())
    return Difference(value, low, high, float(np.clip(2 * tail, 1 / n_resamples, 1)), level, "bootstrap")


def corrected_t_test(differences: Sequence[float], test_over_train: float, level: float = 0.95) -> Difference:
    """Test whether two models differ over the same folds, with a correction for the overlap of the folds' training rows.

    The test is Student's t with n - 1 degrees of freedom and the variance ``(1/n + n_test/n_train) s^2`` in place of ``s^2/n``
    (Nadeau and Bengio, "Inference for the Generalization Error", Machine Learning 52, 2003, section 4.1, the corrected
    resampled t-test; their J is n).

    Parameters
    ----------
    differences : sequence of float, of length n
        First minus second, fold by fold; at least two.
    test_over_train : float
        Held-out rows per training row: 1/4 with 5 folds.
    level : float
        At least 0.5 and below 1.

    Returns
    -------
    Difference
        If all differences are equal, the variance cannot be estimated. Then the interval is infinite, and the p-value is that
        of a sign test.

    Raises
    ------
    InputError
        If there are fewer than two differences, one is not finite, or a parameter is out of its range.
    """
    check_level(level)
    found = as_column("differences", differences)
    if len(found) < 2:
        raise InputError(f"{len(found)} differences; at least two folds are needed")
    refuse("difference", found, ~np.isfinite(found), "is not finite")
    if not 0 <= test_over_train < math.inf:
        raise InputError(f"test_over_train is {test_over_train}; a number of at least 0 is needed")
    from scipy.special import stdtr

    value, spread = float(found.mean()), float(found.std(ddof=1))
    if spread <= 1e-15 * abs(value):
        p_value = 1.0 if value == 0 else min(1.0, 2 * 0.5 ** len(found))
        return Difference(value, -math.inf, math.inf, p_value, level, "exact-bound")
    error = spread * math.sqrt(1 / len(found) + test_over_train)
    reach = t_quantile(level, len(found) - 1) * error
    p_value = 2 * float(stdtr(len(found) - 1, -abs(value) / error))
    return Difference(value, value - reach, value + reach, p_value, level, "corrected-t")


def t_quantile(level: float, freedom: int) -> float:
    """Return the number that the absolute value of Student's t does not exceed with probability `level`."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + level) / 2))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for multiple testing by Holm's procedure.

    Holm's step-down procedure (Scandinavian Journal of Statistics 6, 1979, 65-70): the smallest times n, the next times n - 1
    and so on, never decreasing and never above 1.
    """
    found = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(found, kind="stable")
    raised = np.maximum.accumulate(found[order] * np.arange(len(found), 0, -1))
    out = np.empty(len(found))
    out[order] = np.minimum(raised, 1.0)
    return [float(p) for p in out]


def partial_delong_test(
    y: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    max_fpr: float,
    level: float = 0.95,
    *,
    standardized: bool = True,
) -> Difference:
    """Test whether two models have the same partial AUC, on the same rows.

    The variance of the difference is that of `partial_auc_interval`, with the difference of the two models' placements of each
    row.

    Parameters
    ----------
    y : array of shape (n_samples,)
        Labels, -1 or +1.
    first, second : array of shape (n_samples,)
        Scores of the two models.
    max_fpr : float
        Above 0 and at most 1.
    level : float
        At least 0.5 and below 1.
    standardized : bool
        Whether to map the area as `partial_roc_auc_score` does.

    Returns
    -------
    Difference
        First minus second. Its method is ``exact-bound`` if no variance can be estimated, as for two perfect rankings.

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
    check_level(level)
    y, areas, placements = np.asarray(y), [], []
    for scores in (first, second):
        counts = ScoreCounts.from_scores(y, scores)
        areas.append(partial_auc(counts, max_fpr, standardized=False))
        at = np.searchsorted(counts.values, np.asarray(scores, dtype=np.float64))
        of_pos, of_neg = placements_up_to(counts, max_fpr)
        placements.append((of_pos[at][y == 1], of_neg[at][y == -1]))
    if min(counts.rows_pos, counts.rows_neg) < 2:
        raise InputError("the test needs two rows of each class")
    value = areas[0] - areas[1]
    moved = [one - other for one, other in zip(*placements, strict=True)]
    variance = sum(float(column.var(ddof=1)) / len(column) for column in moved)
    scale = 0.5 / (max_fpr - 0.5 * max_fpr**2) if standardized and max_fpr < 1 else 1.0
    if math.sqrt(variance) <= 1e-14 * max_fpr:
        pairs = max(1, min(counts.rows_pos, int(max_fpr * counts.rows_neg)))
        bound = bounded_difference(value / max_fpr, pairs, level)
        low, high = bound.low * max_fpr * scale, bound.high * max_fpr * scale
        return Difference(value * scale, low, high, bound.p_value, level, bound.method)
    return normal_difference(value, math.sqrt(variance), level, max_fpr, scale)
