"""Measures within groups, such as queries or users: AUC of the pairs of one group, NDCG and recall of the first k rows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from aucdist.errors import InputError
from aucdist.metrics.compare import Difference

GroupWeight = Literal["pairs", "groups"]

N_RESAMPLES, SEED = 2000, 0
CHUNK = 2**22
"""Counts drawn at a time."""


@dataclass(frozen=True, eq=False)
class OfGroups:
    """A measure of every group that has it, and what each weighs in the mean.

    Attributes
    ----------
    values, weights : ndarray of shape (n_groups,), float64
    n_without : int
        How many groups have none, such as those of one class.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.metrics import OfGroups
    >>> of_three = OfGroups(np.array([1.0, 0.5, 0.0]), np.array([1.0, 2.0, 1.0]), n_without=0)
    >>> of_three.mean, of_three.interval()
    (0.5, (0.0, 1.0))
    """

    values: np.ndarray
    weights: np.ndarray
    n_without: int

    @property
    def mean(self) -> float:
        """The weighted mean."""
        return float(self.weights @ self.values / self.weights.sum())

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return a bootstrap interval for the mean, which draws groups with replacement; rows of one are not independent.

        Parameters
        ----------
        level : float, default=0.95

        Notes
        -----
        Percentiles of 2000 means, with a fixed seed. With few groups it is too short, as all of this kind are.
        """
        low, high = np.quantile(self.resampled(), [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
        return float(low), float(high)

    def resampled(self) -> np.ndarray:
        """Return the mean of each of 2000 draws of groups with replacement, with a fixed seed."""
        n, random = len(self.values), np.random.default_rng(SEED)
        means, at_once = [], max(1, CHUNK // n)
        for first in range(0, N_RESAMPLES, at_once):
            drawn = random.integers(0, n, (min(at_once, N_RESAMPLES - first), n))
            weights = self.weights[drawn]
            means.append((weights * self.values[drawn]).sum(axis=1) / weights.sum(axis=1))
        return np.concatenate(means)


def auc_of_groups(
    y_true: Any, y_score: Any, *, groups: Any, sample_weight: Any = None, group_weight: GroupWeight = "pairs"
) -> OfGroups:
    """Return the AUC within each group: the share of its pairs whose higher-graded row has the higher score, ties counting half.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels or grades, the larger the more relevant: a pair is any two rows of a group with different ones.
    y_score : array-like of shape (n_samples,)
    groups : array-like of shape (n_samples,)
        Numbers or texts.
    sample_weight : array-like of shape (n_samples,), optional
        A pair weighs the product.
    group_weight : {"pairs", "groups"}, default="pairs"
        What a group weighs in the mean: its pairs, or each the same.

    Returns
    -------
    OfGroups
        The difference of two grades does not matter: each pair weighs the product of its rows' weights.

    Raises
    ------
    InputError
        If lengths differ, or no group has a pair.

    Examples
    --------
    >>> from aucdist.metrics import auc_of_groups
    >>> found = auc_of_groups([0, 1, 0, 1, 1], [0.1, 0.2, 0.8, 0.7, 0.3], groups=["a", "a", "b", "b", "c"])
    >>> found.values.tolist(), found.n_without, found.mean
    ([1.0, 0.0], 1, 0.5)
    """
    if group_weight not in ("pairs", "groups"):
        raise InputError(f"group_weight is {group_weight!r}; 'pairs' and 'groups' are possible")
    y, score, weight, parts = _by_group(y_true, y_score, groups, sample_weight)
    values, weights, without = [], [], 0
    for part in parts:
        won, pairs = _pairs_won(y[part], score[part], weight[part])
        if pairs > 0.0:
            values.append(won / pairs)
            weights.append(pairs if group_weight == "pairs" else 1.0)
        else:
            without += 1
    return _found(values, weights, without, "rows of two classes")


def gauc_score(
    y_true: Any, y_score: Any, *, groups: Any, sample_weight: Any = None, group_weight: GroupWeight = "pairs"
) -> float:
    """Return the mean AUC within groups (GAUC), see `auc_of_groups`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels or grades.
    y_score : array-like of shape (n_samples,)
    groups : array-like of shape (n_samples,)
    sample_weight : array-like of shape (n_samples,), optional
    group_weight : {"pairs", "groups"}, default="pairs"

    Returns
    -------
    float

    Raises
    ------
    InputError
        If lengths differ, or no group has a pair.

    Examples
    --------
    >>> from aucdist.metrics.groups import gauc_score
    >>> gauc_score([0, 1, 0, 1], [0.1, 0.2, 0.8, 0.7], groups=["a", "a", "b", "b"])
    0.5
    """
    return auc_of_groups(y_true, y_score, groups=groups, sample_weight=sample_weight, group_weight=group_weight).mean


def ndcg_of_groups(y_true: Any, y_score: Any, *, groups: Any, k: int | None = 10, gain: str = "linear") -> OfGroups:
    """Return the normalised discounted cumulative gain of the first k rows of each group, by `sklearn.metrics.ndcg_score`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Grades, at least 0.
    y_score, groups : array-like of shape (n_samples,)
    k : int or None, default=10
        None for all rows.
    gain : {"linear", "exponential"}, default="linear"
        What a grade g counts: g, or ``2**g - 1`` as LightGBM and XGBoost count it.

    Returns
    -------
    OfGroups
        Each group weighs the same. One without a grade above 0, or of a single row, has no value.

    Examples
    --------
    >>> from aucdist.metrics import ndcg_of_groups
    >>> found = ndcg_of_groups([2, 1, 0, 0, 1], [0.9, 0.5, 0.1, 0.7, 0.3], groups=["a", "a", "a", "b", "b"], k=1)
    >>> found.values.tolist(), found.mean
    ([1.0, 0.0], 0.5)
    """
    from sklearn.metrics import ndcg_score  # scikit-learn takes most of a second to load

    if gain not in ("linear", "exponential"):
        raise InputError(f"gain is {gain!r}; 'linear' and 'exponential' are possible")
    grade = np.asarray(y_true, dtype=np.float64)
    if (grade < 0).any():
        raise InputError(
            f"the grade of row {int(np.argmax(grade < 0))} (from 0) is negative; grades are at least 0 here"
        )
    relevance = grade if gain == "linear" else np.exp2(grade) - 1.0
    y, score, _, parts = _by_group(relevance, y_score, groups, None)
    there = [part for part in parts if part.stop - part.start > 1 and y[part].any()]
    values = [float(ndcg_score(y[part][None], score[part][None], k=k)) for part in there]
    return _found(values, [1.0] * len(values), len(parts) - len(there), "a grade above 0")


def recall_of_groups(y_true: Any, y_score: Any, *, groups: Any, k: int = 10) -> OfGroups:
    """Return the share of each group's relevant rows, those with a label above 0, that are among its first k.

    Parameters
    ----------
    y_true, y_score, groups : array-like of shape (n_samples,)
    k : int, default=10

    Returns
    -------
    OfGroups
        Each group weighs the same; one without relevant rows has no value. Of rows that tie at the k-th place each counts the
        same share.

    Examples
    --------
    >>> from aucdist.metrics import recall_of_groups
    >>> recall_of_groups([1, 1, 0, 0, 1], [0.9, 0.1, 0.5, 0.7, 0.8], groups=["a", "a", "a", "b", "b"], k=1).mean
    0.75
    """
    y, score, _, parts = _by_group(y_true, y_score, groups, None)
    there = [part for part in parts if (y[part] > 0).any()]
    values = [_recall(y[part] > 0, score[part], k) for part in there]
    return _found(values, [1.0] * len(values), len(parts) - len(there), "a label above 0")


def paired_groups_test(first: OfGroups, second: OfGroups, level: float = 0.95) -> Difference:
    """Test by a bootstrap of groups whether two models have the same mean, on the same rows.

    Parameters
    ----------
    first, second : OfGroups
        Of the same labels and groups, so that both have values for the same groups, which weigh the same.
    level : float, default=0.95

    Returns
    -------
    Difference
        First minus second, by percentiles of 2000 means, with a fixed seed. The p-value is twice the share of resamples on the
        other side of zero, and at least ``1 / 2000``; 1 where no group differs.

    Raises
    ------
    InputError
        If they are not of the same groups.
    """
    if not np.array_equal(first.weights, second.weights):
        raise InputError("the measures are not of the same groups")
    apart = OfGroups(first.values - second.values, first.weights, first.n_without)
    found = apart.resampled()
    low, high = (float(v) for v in np.quantile(found, ((1.0 - level) / 2.0, (1.0 + level) / 2.0)))
    if not apart.values.any():
        return Difference(0.0, low, high, 1.0, level, "bootstrap-groups")
    share = min(float(np.mean(found <= 0)), float(np.mean(found >= 0)))
    return Difference(apart.mean, low, high, min(max(2.0 * share, 1.0 / len(found)), 1.0), level, "bootstrap-groups")


def measures_of_groups(
    y_true: Any, y_score: Any, groups: Any, ks: tuple[int, ...] = (5, 10)
) -> Iterator[tuple[str, OfGroups]]:
    """Yield what a report says of groups: GAUC, and NDCG and recall for each k, by name."""
    yield "gauc", auc_of_groups(y_true, y_score, groups=groups)
    for name, measure in (("ndcg", ndcg_of_groups), ("recall", recall_of_groups)):
        of: Callable[..., OfGroups] = measure
        for k in ks:
            yield f"{name}_at_{k}", of(y_true, y_score, groups=groups, k=k)


def _by_group(
    y_true: Any, y_score: Any, groups: Any, sample_weight: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[slice]]:
    """Return labels, scores and weights sorted by group, and where each group lies."""
    y, score = np.asarray(y_true, dtype=np.float64), np.asarray(y_score, dtype=np.float64)
    named = np.asarray(groups)
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    lengths = [v.size for v in (y, score, named, weight)]
    if len(set(lengths)) > 1 or not len(y):
        raise InputError(f"labels, scores, groups and weights have the lengths {lengths}; one for each row is needed")
    if not np.isfinite(score).all():
        raise InputError(f"the score of row {int(np.argmin(np.isfinite(score)))} (from 0) is not finite")
    number = np.unique(named, return_inverse=True)[1]
    order = np.argsort(number, kind="stable")
    ends = np.flatnonzero(np.diff(number[order], append=number[order[-1]] + 1)) + 1
    parts = [slice(int(a), int(b)) for a, b in zip(np.append(0, ends[:-1]), ends, strict=True)]
    return y[order], score[order], weight[order], parts


def _pairs_won(y: np.ndarray, score: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Return the weight of the pairs that are won, ties counting half, and of all pairs."""
    order = np.argsort(score, kind="stable")
    y, weight = y[order], weight[order]
    tie = np.concatenate(([0], np.cumsum(np.diff(score[order]) != 0)))  # equal scores have one number
    won = pairs = 0.0
    for grade in np.unique(y)[1:]:
        lower, mine = np.where(y < grade, weight, 0.0), y == grade
        of_tie = np.bincount(tie, lower)
        below = np.cumsum(of_tie) - 0.5 * of_tie
        won += float(weight[mine] @ below[tie[mine]])
        pairs += float(weight[mine].sum() * lower.sum())
    return won, pairs


def _recall(relevant: np.ndarray, score: np.ndarray, k: int) -> float:
    if k >= len(score):
        return 1.0
    bound = np.partition(score, len(score) - k)[len(score) - k]
    above, at = score > bound, score == bound
    share = (k - above.sum()) / at.sum()
    return float((relevant[above].sum() + share * relevant[at].sum()) / relevant.sum())


def _found(values: list[float], weights: list[float], without: int, what: str) -> OfGroups:
    if not values:
        raise InputError(f"none of the {without} groups has {what}")
    return OfGroups(np.array(values), np.array(weights), without)
