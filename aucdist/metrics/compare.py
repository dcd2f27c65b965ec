"""Test whether one model is better than another, on the same test rows or over the same folds."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike

from aucdist.errors import InputError
from aucdist.metrics.counts import ScoreCounts, as_column, check_values, checked_scores, dot
from aucdist.metrics.intervals import Estimate, bisected, check_level, t_quantile
from aucdist.metrics.partial import SHARE, placements_up_to
from aucdist.metrics.ranking import area_interval
from aucdist.parameters import NOT_NEGATIVE

MIN_CLASS_ROWS = 2
"""A class is left out if it, or the rest, has fewer rows than this."""

LEVEL = 0.95
"""The level of the intervals of t-tests."""

MAX_FLIPPED = 100
"""The signs of this many rows are flipped, those with the largest differences. The sum over all other rows is treated
as normal."""

MAX_ENUMERATED = 13
"""Up to this number of rows all flips are counted. With more rows, `N_DRAWS` of them are drawn."""

N_DRAWS = 2**MAX_ENUMERATED


@dataclass(frozen=True)
class Difference:
    """A difference between two models, first minus second.

    Attributes
    ----------
    value : float
        The difference of the metrics.
    low, high : float
        The ends of its confidence interval.
    p_value : float
        The two-sided p-value of the hypothesis that there is no difference.
    level : float
        The confidence of the interval.
    method : str
        ``sign-flip``, ``corrected-t`` or ``corrected-groups``; ``exact-bound`` if the difference is the same for all rows, so
        that no variance can be estimated; ``same-scores``, by `aucdist compare`, if both have the same scores.
    n_deciding : int or None
        For a sign-flip test, the number of rows of the rarer class that the two models treat differently. For metrics of
        groups it counts groups, and for costs rows of both classes. Only these tell the models apart. With fewer than five, no
        difference is significant at 5 %.
    """

    value: float
    low: float
    high: float
    p_value: float
    level: float
    method: str
    n_deciding: int | None = None


def placements(y: ndarray, scores: ndarray) -> tuple[ndarray, ndarray]:
    """Return for each row the share of the other class against which it is ranked correctly. A tie counts one half.

    Parameters
    ----------
    y : array of shape (n_samples,)
        Labels, -1 or +1; both must occur.
    scores : array of shape (n_samples,)
        Finite.

    Returns
    -------
    pos_placements : ndarray of shape (n_pos,), float64
    neg_placements : ndarray of shape (n_neg,), float64
        In the order of the rows. The mean of either is the AUC.

    Raises
    ------
    InputError
        If the lengths differ, a label is neither -1 nor +1, a score is not finite, or a class is missing.
    """
    y, scores = checked_scores(y, scores)
    pos, neg = scores[y == 1], scores[y == -1]
    if not (len(pos) and len(neg)):
        raise InputError(
            f"the rows are of one class only ({len(pos)} positive and {len(neg)} negative rows): give both, or check `pos_label`"
        )
    up, down = np.sort(pos), np.sort(neg)
    below = np.searchsorted(down, pos) + np.searchsorted(down, pos, "right")
    above = 2 * len(pos) - np.searchsorted(up, neg) - np.searchsorted(up, neg, "right")
    return below / (2 * len(neg)), above / (2 * len(pos))


def measured_classes(members: ndarray) -> ndarray:
    """Return the positions of the classes with at least two rows and at least two rows outside them.

    Parameters
    ----------
    members : ndarray of shape (n_samples, n_classes), bool
        Whether each row belongs to each class.
    """
    n_pos = members.sum(axis=0)
    return np.flatnonzero(np.minimum(n_pos, len(members) - n_pos) >= MIN_CLASS_ROWS)


def _areas(members: ndarray, scores: ndarray, ddof: int) -> tuple[ndarray, ndarray]:
    """Return the AUC of each class, and what each row contributes to the error of their mean.

    With a `ddof` of 1, the sum of the squared contributions is an unbiased variance. With 0, the contributions are the
    deviations over the rows.
    """
    areas, parts = np.zeros(members.shape[1]), np.zeros(len(members))
    if len(measured_classes(members)) < members.shape[1] or not members.shape[1]:
        raise InputError(
            "each class needs at least two rows, and at least two rows outside it: leave out smaller classes, or give more rows"
        )
    for k in range(members.shape[1]):
        inside = members[:, k]
        pos_placements, neg_placements = placements(np.where(inside, 1, -1), scores[:, k])
        areas[k] = pos_placements.mean()
        for rows, placed in ((inside, pos_placements), (~inside, neg_placements)):
            n = len(placed)
            parts[rows] += (placed - areas[k]) / math.sqrt(n * (n - ddof))
    return areas, parts / members.shape[1]


def macro_auc_interval(members: ndarray, scores: ndarray) -> Estimate:
    """Return the macro AUC with its 95 % interval, as `aucdist.metrics.ranking.auc_interval` does.

    The AUC of each class is a mean of placements (DeLong, DeLong and Clarke-Pearson, Biometrics 44, 1988, 837-845). A row has one
    placement for each class. Their deviations from the AUC are added up row by row, and the variance of the mean over the classes
    is the sum of the squares over the rows. It includes the covariances between classes. For one class, it is DeLong's variance.

    Parameters
    ----------
    members : ndarray of shape (n_samples, n_classes), bool
        Which rows belong to each class. Each class has at least two rows and two others, see `measured_classes`.
    scores : ndarray of shape (n_samples, n_classes)
        The scores of the rows for each class.

    Raises
    ------
    InputError
        As `placements`, and if a class has fewer than two rows or others.
    """
    areas, parts = _areas(members, scores, ddof=1)
    n_pos = members.sum(axis=0)
    sides = [*zip(n_pos, len(members) - n_pos, strict=True)]
    return area_interval(float(np.mean(areas)), dot(parts, parts), sides, 0.95)


def auc_test(y: ndarray, first: ndarray, second: ndarray, level: float = 0.95) -> Difference:
    """Test by flipping signs whether two models have the same AUC on the same rows. See `aucdist.metrics.roc_auc_difference`.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Labels, -1 or +1.
    first, second : ndarray of shape (n_samples,)
        The scores of the two models.
    level : float, default=0.95
        At least 0.5 and below 1.

    Returns
    -------
    Difference

    Raises
    ------
    InputError
        As `placements`, if a class has fewer than two rows, or if `level` is out of its range.
    """
    return macro_auc_test((y == 1)[:, np.newaxis], first[:, np.newaxis], second[:, np.newaxis], level)


def macro_auc_test(members: ndarray, first: ndarray, second: ndarray, level: float = 0.95) -> Difference:
    """Test whether two models have the same macro AUC, on the same rows, by `sign_flip_test` of the differences of placements.

    Parameters
    ----------
    members : ndarray of shape (n_samples, n_classes), bool
        As for `macro_auc_interval`.
    first, second : ndarray of shape (n_samples, n_classes)
        Scores.
    level : float
        At least 0.5 and below 1.

    Raises
    ------
    InputError
        As `macro_auc_interval`, or for a level out of its range.
    """
    check_level(level)
    (first_areas, errors), (second_areas, other_errors) = (
        _areas(members, scores, ddof=0) for scores in (first, second)
    )
    parts, carried = errors - other_errors, np.zeros(len(members))
    for k, difference in enumerate(first_areas - second_areas):
        few = members[:, k] if 2 * members[:, k].sum() <= len(members) else ~members[:, k]
        share = 1.0 / (few.sum() * members.shape[1])
        parts[few] += difference * share
        carried[few] += share
    return sign_flip_test(parts, carried, level)


def partial_auc_test(
    y: ndarray,
    first: ArrayLike,
    second: ArrayLike,
    max_fpr: float,
    level: float = 0.95,
    *,
    standardized: bool = True,
) -> Difference:
    """Test whether two models have the same partial AUC. See `aucdist.metrics.partial_roc_auc_difference`.

    A row adds the difference of its two placements, as `aucdist.metrics.partial.placements_up_to` defines them.
    """
    SHARE.check("max_fpr", max_fpr)
    scale = 0.5 / (max_fpr - 0.5 * max_fpr**2) if standardized and max_fpr < 1 else 1.0

    def measured(counts: ScoreCounts) -> Measured:
        """Return the partial AUC, and what each row adds to its error."""
        pos, neg = placements_up_to(counts, max_fpr)
        area = dot(counts.pos, pos) / counts.rows_pos
        return area, (pos - area) / counts.rows_pos, (neg - dot(counts.neg, neg) / counts.rows_neg) / counts.rows_neg

    return flip_influences(y, (first, second), measured, level, most=max_fpr, scale=scale)


Measured = tuple[float, ndarray, ndarray]
"""A metric, and the contributions of a positive and of a negative row at each score to its error. Over the rows of a class, the
contributions add up to 0."""


def flip_influences(
    y: ndarray,
    models: Sequence[ArrayLike],
    measured: Callable[[ScoreCounts], Measured],
    level: float,
    **limits: float,
) -> Difference:
    """Test by `sign_flip_test` whether the scores of two models have the same metric.

    A true difference is attributed to the positive rows. `measured` returns the metric, and what each row adds to its error.
    """
    check_level(level)
    positive, value, parts = y == 1, 0.0, np.zeros(len(y))
    for sign, scores in zip((1, -1), models, strict=True):
        counts = ScoreCounts.from_scores(y, scores)
        if min(counts.rows_pos, counts.rows_neg) < 2:
            raise InputError("the paired test needs at least two rows of each class: give more test rows")
        measure, pos, neg = measured(counts)
        at = np.searchsorted(counts.values, scores)
        value += sign * measure
        parts += sign * np.where(positive, pos[at], neg[at])
    carried = positive / positive.sum()
    return sign_flip_test(value * carried + parts, carried, level, **limits)


@lru_cache(maxsize=4)
def _subsets(n: int) -> ndarray:
    """Return all subsets of n items, or random ones if there are too many. Each is a row of zeros and ones."""
    if n <= MAX_ENUMERATED:
        return (np.arange(2**n)[:, np.newaxis] >> np.arange(n) & 1).astype(np.float64)
    return np.random.default_rng(0).integers(2, size=(N_DRAWS, n)).astype(np.float64)


def sign_flip_test(
    parts: ndarray, carried: ndarray, level: float, *, most: float = 1.0, scale: float = 1.0
) -> Difference:
    """Test whether a sum over rows, which is a difference between two models, is 0, by flipping the signs of what each row adds.

    If two models are equal, exchanging their scores for one row changes only the sign of what this row adds. The p-value is
    therefore the share of flips whose sum is at least as far from 0. It holds its level for any number of rows (Fisher, The
    Design of Experiments, 1935, section 21; for the AUC: Bandos, Rockette and Gur, Statistics in Medicine 24, 2005, 2873-2893).
    Student's t and the bootstrap do not hold it with few rows. The interval has the differences that the test does not reject.
    Its ends are quantiles of the means over random subsets of the rows (Hartigan, JASA 64, 1969, 1303-1317).

    Parameters
    ----------
    parts : ndarray of shape (n,)
        The contribution of each row. The difference is the sum of the contributions.
    carried : ndarray of shape (n,)
        The share of a true difference that each row carries, with the sum 1. For the AUC it is 1 / n for each row of the
        smaller class, which has n rows, and 0 for the rows of the larger class, whose parts are errors alone.
    level : float
        The confidence of the interval, at least 0.5 and below 1.
    most : float
        The largest possible difference. The interval is clipped to it.
    scale : float
        The difference and its interval are multiplied by it at the end.

    Returns
    -------
    Difference
        Its method is ``sign-flip``, or ``exact-bound`` if the difference is the same for all rows.
    """
    from scipy.special import ndtr

    value, carriers = float(parts.sum()), carried > 0
    errors = parts - value * carried
    n_deciding = int(np.count_nonzero(np.abs(parts[carriers]) > 1e-12 * most / carriers.sum()))
    error = math.sqrt(dot(errors, errors))
    if error <= 1e-12 * max(most * float(carried.max()), abs(value) / math.sqrt(len(parts))):
        n = int(carriers.sum())
        half_width = most * (1 - (1 - level) ** (1 / n))
        low, high = max(value - half_width, -most), min(value + half_width, most)
        p_value = 1.0 if abs(value) <= 1e-12 * most else 2 * 0.5**n
        return Difference(value * scale, low * scale, high * scale, p_value, level, "exact-bound", n_deciding)
    order = np.argsort(-(np.abs(parts) + abs(value) * carried), kind="stable")
    head, tail = order[:MAX_FLIPPED], order[MAX_FLIPPED:]
    sums, shares = (_subsets(len(head)) @ column[head] + column[tail].sum() / 2 for column in (parts, carried))
    moments = [dot(a[tail], b[tail]) for a, b in ((parts, parts), (parts, carried), (carried, carried))]

    def share_beyond(difference: float, sign: int) -> float:
        """Return how often the sum over a random half of the rows, less its share of the difference, is <= 0 (1) or >= 0 (-1)."""
        excess = sign * (difference * shares - sums)
        spread = math.sqrt(max(moments[0] - 2 * difference * moments[1] + difference**2 * moments[2], 0.0)) / 2
        if spread <= 1e-12 * error:
            return float(np.mean(excess >= -1e-12 * error))
        return float(ndtr(excess / spread).mean())

    p_value = min(1.0, 2 * min(share_beyond(0.0, 1), share_beyond(0.0, -1)))
    # p-values that are too small for this number of draws come from the normal distribution.
    if len(head) > MAX_ENUMERATED:
        p_value = max(p_value, min(2 / N_DRAWS, math.erfc(abs(value) / error / math.sqrt(2))))
    rest = (1 - level) / 2
    low = scale * float(bisected(lambda end: share_beyond(end, 1) > rest, value, -most, 25))
    high = scale * float(bisected(lambda end: share_beyond(end, -1) > rest, value, most, 25))
    return Difference(value * scale, low, high, p_value, level, "sign-flip", n_deciding)


def corrected_t_test(differences: Sequence[float], test_over_train: float) -> Difference:
    """Test whether two models differ over the same folds, with a correction for the overlap of the folds' training rows.

    The test is Student's t with n - 1 degrees of freedom and the variance ``(1/n + n_test/n_train) s^2`` in place of ``s^2/n``
    (Nadeau and Bengio, "Inference for the Generalization Error", Machine Learning 52, 2003, section 4.1, the corrected
    resampled t-test; their J is n).

    Parameters
    ----------
    differences : sequence of float, of length n
        The first model minus the second in each fold; at least two.
    test_over_train : float
        Held-out rows per training row: 1/4 with 5 folds.

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
    column = as_column("differences", differences)
    n = len(column)
    if n < 2:
        raise InputError(
            f"there are {n} differences, but at least two folds are needed: give the difference of each fold"
        )
    check_values("difference", column, ~np.isfinite(column), "is not finite")
    NOT_NEGATIVE.check("test_over_train", test_over_train)
    value, spread = float(column.mean()), float(column.std(ddof=1))
    if spread <= 1e-15 * abs(value):
        return Difference(value, -math.inf, math.inf, 2 * 0.5**n if value else 1.0, LEVEL, "exact-bound")
    return t_test(value, spread * math.sqrt(1 / n + test_over_train), n - 1, "corrected-t")


def t_test(value: float, error: float, freedom: int, method: str) -> Difference:
    """Test a difference with an estimated standard error against 0, by Student's t."""
    from scipy.special import stdtr

    half_width = t_quantile(LEVEL, freedom) * error
    p_value = 2 * float(stdtr(freedom, -abs(value) / error))
    return Difference(value, value - half_width, value + half_width, p_value, LEVEL, method)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for multiple testing by Holm's step-down procedure.

    The smallest p-value is multiplied by n, the next one by n - 1, and so on. The results never decrease and never exceed 1
    (Holm, Scandinavian Journal of Statistics 6, 1979, 65-70).

    Parameters
    ----------
    p_values : sequence of float, of length n
        The p-values of the tests.

    Returns
    -------
    list of float
        The corrected p-values, in the order of `p_values`.
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return corrected.tolist()
