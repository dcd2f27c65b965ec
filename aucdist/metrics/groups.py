"""Metrics within groups, such as queries or users: AUC of the pairs of one group, NDCG and recall of the first k rows."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy import ndarray

from aucdist.errors import InputError
from aucdist.metrics.compare import Difference, sign_flip_test
from aucdist.metrics.counts import as_column, check_values, dot, labels_of
from aucdist.metrics.intervals import Estimate, check_level, score_interval, zero_event_interval
from aucdist.parameters import OneOf, above_0, check_weights, frozen

GroupWeight = Literal["pairs", "groups"]

MAX_PLACES = 2**27
"""The largest number of ranks. The discounts of so many ranks take a gigabyte."""


@frozen
class GroupMetric:
    """A metric of each group that has one, and the weight of each group in the mean.

    Attributes
    ----------
    values, weights : ndarray of shape (n_groups,), float64
        The value of each group, from 0 to 1, and its weight.
    n_without : int
        The number of groups without a value, such as groups of one class.
    groups : ndarray of shape (n_groups,), or None
        The names of the groups with a value.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.metrics import GroupMetric
    >>> recall = GroupMetric(np.array([1.0, 0.5, 0.0]), np.array([1.0, 2.0, 1.0]), n_without=0)
    >>> estimate = recall.interval()
    >>> f"{estimate.value} from {estimate.low:.3f} to {estimate.high:.3f}"
    '0.5 from 0.009 to 0.991'
    """

    values: ndarray
    weights: ndarray
    n_without: int
    groups: ndarray | None = None

    @property
    def mean(self) -> float:
        """The weighted mean."""
        return dot(self.weights, self.values) / float(self.weights.sum())

    def interval(self, level: float = 0.95) -> Estimate:
        """Return the mean with its confidence interval, over groups that are drawn like these.

        The groups must be independent of each other. Rows of one group may depend on each other.

        Parameters
        ----------
        level : float, default=0.95
            At least 0.5 and below 1.

        Returns
        -------
        Estimate
            `value` is the mean, and `low` and `high` are the ends of its interval, within [0, 1]. `method` is "score" or
            "exact-bound".

        Raises
        ------
        InputError
            If `level` is out of its range.

        Notes
        -----
        The variance is the linearised variance of a ratio of two means, where the part of each group is divided by the square
        root of one minus its share of the weights (Bell and McCaffrey, Survey Methodology 28, 2002, 169-181). The degrees of
        freedom of Student's t are the effective number of groups minus one. This number is the squared sum of the squared shares,
        divided by the sum of their fourth powers. The bounds are Wilson's, see `aucdist.metrics.intervals.score_interval`.
        """
        check_level(level)
        mean, share = self.mean, self.weights / self.weights.sum()
        parts = share * (self.values - mean)
        variance = float(np.sum(parts**2 / np.maximum(1.0 - share, 1e-300)))
        if len(share) < 2 or variance <= 1e-24 or mean <= 0.0 or mean >= 1.0:
            return Estimate(mean, *zero_event_interval(mean, len(share), level), level, "exact-bound")
        freedom = max(1.0, dot(share, share) ** 2 / float(np.sum(share**4)) - 1.0)
        return Estimate(mean, *score_interval(mean, variance, level, freedom), level, "score")


def group_auc(
    y_true: Any, y_score: Any, *, groups: Any, sample_weight: Any = None, group_weight: GroupWeight = "pairs"
) -> GroupMetric:
    """Return the AUC within each group (GAUC): the share of its pairs that the scores put in the right order.

    A pair is two rows of a group with different labels, and the row with the larger label should have the higher score. A tie
    counts one half. How far apart the two grades are does not matter.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels or grades, where a larger one is more relevant. A pair is any two rows of a group with different labels.
    y_score : array-like of shape (n_samples,)
        Finite scores; higher means more relevant.
    groups : array-like of shape (n_samples,)
        The group of each row, a number or a string.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, at least 0. The weight of a pair is the product of the weights of its two rows.
    group_weight : {"pairs", "groups"}, default="pairs"
        The weight of a group in the mean: the weight of its pairs, or the same for each group.

    Returns
    -------
    GroupMetric
        The AUC of each group that has pairs, from 0 to 1, and the weights. `mean` is the mean over the groups.

    Raises
    ------
    InputError
        If lengths differ, or no group has a pair.

    Examples
    --------
    >>> from aucdist.metrics import group_auc
    >>> areas = group_auc([0, 1, 0, 1, 1], [0.1, 0.2, 0.8, 0.7, 0.3], groups=["a", "a", "b", "b", "c"])
    >>> areas.values.tolist(), areas.n_without, areas.mean
    ([1.0, 0.0], 1, 0.5)
    """
    OneOf(("pairs", "groups")).check("group_weight", group_weight)
    rows = _by_group(y_true, y_score, groups, sample_weight)
    from aucdist.metrics.group_kernels import pairs_won  # Numba takes a second to load

    n_groups = len(rows.starts) - 1
    group = np.repeat(np.arange(n_groups), np.diff(rows.starts))
    order = np.lexsort((rows.y, group))
    higher = np.concatenate(([0], (np.diff(rows.y[order]) > 0) & (np.diff(group[order]) == 0)))
    steps = np.cumsum(higher)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = 1 + steps - steps[rows.starts[:-1]][group[order]]
    won, pairs = sums = np.empty((2, n_groups))
    pairs_won(rows.starts, rows.score, rank, rows.weight, np.empty(int(rank.max()) + 1), sums)
    has_pairs = pairs > 0.0
    weights = pairs[has_pairs] if group_weight == "pairs" else None
    return _group_values(won, pairs, rows, has_pairs, "rows of two classes", weights)


def group_ndcg(
    y_true: Any, y_score: Any, *, groups: Any, sample_weight: Any = None, k: float | None = 10, gain: str = "linear"
) -> GroupMetric:
    """Return the normalised discounted cumulative gain of the first k rows of each group, as `sklearn.metrics.ndcg_score` does.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Grades, at least 0.
    y_score, groups : array-like of shape (n_samples,)
        As for `group_auc`.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, at least 0. A row of weight 2 counts as two rows, also among the first k. For weights that are not
        whole numbers, the discounts are interpolated linearly.
    k : float or None, default=10
        The number or the weight of the rows that count. None takes all rows.
    gain : {"linear", "exponential"}, default="linear"
        The gain of a grade g: g itself, or ``2**g - 1`` as in LightGBM and XGBoost.

    Returns
    -------
    GroupMetric
        The NDCG of each group, from 0 to 1 (a perfect order). All groups have the same weight. A group without a grade above 0,
        or with a single row of weight 1 or less, has no value.

    Raises
    ------
    InputError
        If lengths differ, a grade is negative, `gain` is unknown, or no group has a value.

    Examples
    --------
    >>> from aucdist.metrics import group_ndcg
    >>> ndcg = group_ndcg([2, 1, 0, 0, 1], [0.9, 0.5, 0.1, 0.7, 0.3], groups=["a", "a", "a", "b", "b"], k=1)
    >>> ndcg.values.tolist(), ndcg.mean
    ([1.0, 0.0], 0.5)
    """
    OneOf(("linear", "exponential")).check("gain", gain)
    above_0(optional=True).check("k", k)
    grade = as_column("labels", y_true)
    check_values("grade", grade, grade < 0, "is negative; grades are at least 0 here")
    if gain == "exponential":
        check_values("grade", grade, grade > 1000, "is above 1000, which is too large for gain='exponential'")
    relevance = grade if gain == "linear" else np.exp2(grade) - 1.0
    rows = _by_group(relevance, y_score, groups, sample_weight)
    gained, possible = (
        _gain_of_first(by_score, k, _discounts)
        for by_score in (rows, _by_group(relevance, relevance, groups, sample_weight))
    )
    present = rows.weight > 0.0
    n_rows, weight, relevant = (
        np.add.reduceat(column.astype(np.float64), rows.starts[:-1])
        for column in (present, rows.weight, present & (rows.y > 0.0))
    )
    counted = ((n_rows > 1) | (weight > 1)) & (relevant > 0)  # a row of weight 2 counts as two rows
    return _group_values(gained, possible, rows, counted, "a grade above 0")


def group_recall(y_true: Any, y_score: Any, *, groups: Any, sample_weight: Any = None, k: int = 10) -> GroupMetric:
    """Return for each group the share of its relevant rows that are among its first k rows.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels or grades. Rows with a label above 0 are relevant.
    y_score, groups : array-like of shape (n_samples,)
        As for `group_auc`.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, at least 0. A row of weight 2 counts as two rows, also among the first k.
    k : int, default=10
        The number of rows that count.

    Returns
    -------
    GroupMetric
        The recall of each group, from 0 to 1. All groups have the same weight. A group without relevant rows has no value. Rows
        that tie at the k-th place count in proportion.

    Raises
    ------
    InputError
        If lengths differ, or no group has relevant rows.

    Examples
    --------
    >>> from aucdist.metrics import group_recall
    >>> group_recall([1, 1, 0, 0, 1], [0.9, 0.1, 0.5, 0.7, 0.8], groups=["a", "a", "a", "b", "b"], k=1).mean
    0.75
    """
    above_0().check("k", k)
    rows = _by_group(y_true, y_score, groups, sample_weight)
    rows = rows._replace(y=rows.y > 0.0)
    total = np.add.reduceat(rows.weight * rows.y, rows.starts[:-1])
    return _group_values(_gain_of_first(rows, k, lambda places: places), total, rows, total > 0.0, "a label above 0")


def group_metric_difference(first: GroupMetric, second: GroupMetric, level: float = 0.95) -> Difference:
    """Test whether two models have the same mean over groups, by flipping the signs of whole groups.

    Parameters
    ----------
    first, second : GroupMetric
        A metric of the two models from the same labels and groups, such as what `group_ndcg` returns. Both have values of
        shape (n_groups,).
    level : float, default=0.95
        The confidence of the interval, at least 0.5 and below 1.

    Returns
    -------
    Difference
        `value` is the mean of the first model minus that of the second, with `low` and `high`, the ends of its interval, and
        `p_value`.

    Raises
    ------
    InputError
        If the two metrics are of different groups.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.metrics import group_auc, group_metric_difference
    >>> random, user = np.random.default_rng(0), np.repeat(np.arange(50), 20)
    >>> clicked = random.random(1000) < 0.3
    >>> first, second = clicked + random.normal(size=1000), random.normal(size=1000)
    >>> areas = [group_auc(clicked, scores, groups=user) for scores in (first, second)]
    >>> difference = group_metric_difference(*areas)
    >>> difference.value > 0, difference.p_value < 0.05
    (True, True)
    """
    if not np.array_equal(first.weights, second.weights):
        raise InputError("the two metrics belong to different groups: compute both from the same labels and groups")
    share = first.weights / first.weights.sum()
    return sign_flip_test(share * (first.values - second.values), share, level)


class _Rows(NamedTuple):
    """Rows sorted by group, and by score within each group. The rows of group g are ``starts[g]`` up to ``starts[g + 1]``."""

    y: ndarray
    score: ndarray
    weight: ndarray
    starts: ndarray
    names: ndarray


def _by_group(y_true: Any, y_score: Any, groups: Any, sample_weight: Any) -> _Rows:
    y, score, named = as_column("labels", y_true), as_column("scores", y_score), labels_of("groups", groups)
    weight = np.ones(len(y)) if sample_weight is None else as_column("weights", sample_weight)
    lengths = [v.size for v in (y, score, named, weight)]
    if len(set(lengths)) > 1 or not len(y):
        raise InputError(
            f"labels, scores, groups and weights must have one value for each row; got the lengths {lengths}"
        )
    check_values("label", y, np.isnan(y), "is missing")
    check_values("score", score, ~np.isfinite(score), "is not finite")
    check_weights(weight)
    names, number, counts = np.unique(named, return_inverse=True, return_counts=True)
    order = np.lexsort((score, number))
    return _Rows(y[order], score[order], weight[order], np.concatenate(([0], np.cumsum(counts))), names)


def _gain_of_first(rows: _Rows, k: float | None, upto: Callable[[ndarray], ndarray]) -> ndarray:
    """Return the gain of the first k rows of each group.

    Parameters
    ----------
    rows : _Rows
        The sorted rows.
    k : float or None
        The number or the weight of the rows that count. None takes all rows.
    upto : callable
        Returns the sum of the discounts of the first positions, up to some weight. Rows of one group with the same score share
        the discounts of their positions equally.

    Returns
    -------
    ndarray of shape (n_groups,)
    """
    differ = np.diff(rows.score) != 0
    differ[rows.starts[1:-1] - 1] = True
    first = np.concatenate(([0], np.flatnonzero(differ) + 1))
    first_ties = np.searchsorted(first, rows.starts[:-1])
    weight, gain = (np.add.reduceat(column, first) for column in (rows.weight, rows.weight * rows.y))
    below = np.cumsum(weight)
    n_ties = np.diff(first_ties, append=len(first))
    above = np.repeat(below[np.cumsum(n_ties) - 1], n_ties) - below
    ends = np.minimum(np.stack([above, above + weight]), np.inf if k is None else k)
    places = np.diff(upto(ends), axis=0)[0]
    shared = np.divide(gain * places, weight, out=np.zeros_like(gain), where=weight > 0.0)
    return np.add.reduceat(shared, first_ties)


def _discounts(ends: ndarray) -> ndarray:
    """Return the sum of the discounts of the first positions, up to each of these ends."""
    if (most := np.ceil(ends.max())) > MAX_PLACES:
        raise InputError(
            f"the first rows of a group have a total weight of {most:.3g}, and the NDCG allows at most {MAX_PLACES}: give a `k`"
        )
    discounts = np.concatenate(([0.0], np.cumsum(1.0 / np.log2(np.arange(most) + 2.0))))
    return np.interp(ends, np.arange(len(discounts)), discounts)


def _group_values(
    gained: ndarray, total: ndarray, rows: _Rows, used: ndarray, name: str, weights: ndarray | None = None
) -> GroupMetric:
    """Return the gain of each group that is `used` as a share of its total. Without `weights`, groups weigh 1."""
    values = gained[used] / total[used]
    if not values.size:
        raise InputError(
            f"none of the {len(used)} groups has {name}, so the metric is undefined: check the column of groups"
        )
    return GroupMetric(
        values, np.ones(len(values)) if weights is None else weights, int((~used).sum()), rows.names[used]
    )
