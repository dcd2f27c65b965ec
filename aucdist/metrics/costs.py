"""The cost of wrong decisions where costs differ by row, such as the amount of a missed fraud.

Where costs are two numbers, a function of counts is enough: `aucdist.metrics.decisions.expected_cost`. The functions of labels
and scores in `aucdist.metrics` take both, numbers and columns.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aucdist.errors import InputError
from aucdist.metrics.compare import Difference, sign_flip_test
from aucdist.metrics.counts import ScoreCounts, as_column, refuse
from aucdist.metrics.decisions import COSTS, check_cost, confusion, threshold_at
from aucdist.metrics.intervals import Estimate, check_level

COST_COLUMN = "cost_column"
"""In the place of a number: each row's own cost."""

EXACT_RANKS = 1000
"""The number of the most expensive mistakes that enter a bound one by one. After them, ranks that differ by a thousandth are
taken together."""


def cost_of_rows(positive: np.ndarray, cost: Mapping[str, Any]) -> np.ndarray:
    """Return the cost of a wrong decision on each row: a miss of a positive row, and a false alarm of a negative one.

    Parameters
    ----------
    positive : ndarray of shape (n_samples,), bool
    cost : mapping
        ``false_alarm`` and ``miss``: a number above 0, or a column of numbers of at least 0, one for each row.

    Returns
    -------
    ndarray of shape (n_samples,), float64

    Raises
    ------
    InputError
        If one of them is not given, has another length or a value out of its range, or all rows of a class cost nothing.
    """
    if not isinstance(cost, Mapping):
        raise InputError("cost takes false_alarm and miss, by name: numbers, or columns with a value for each row")
    check_cost({name: 1.0 if np.ndim(value) else value for name, value in cost.items()})
    miss, false_alarm = (_column(name, cost[name], len(positive)) for name in ("miss", "false_alarm"))
    cost_of_each = np.where(positive, miss, false_alarm)
    for name, rows in (("false_alarm", ~positive), ("miss", positive)):
        if rows.any() and not cost_of_each[rows].any():
            raise InputError(f"{name} is 0 for all rows of its class: at least one row must cost something")
    return cost_of_each


def _column(name: str, value: Any, n: int) -> np.ndarray:
    if not np.ndim(value):
        return np.array(float(value))
    column = as_column(name, value)
    if len(column) != n:
        raise InputError(f"{name} has {len(column)} values, but there are {n} rows: give one value for each row")
    refuse(name, column, ~(np.isfinite(column) & (column >= 0)), "is negative or not finite")
    return column


def costs_of_labels(y: np.ndarray, column: np.ndarray | None, cost: Mapping[str, Any]) -> np.ndarray:
    """Return the cost of a wrong decision on each row.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Labels, -1 or +1.
    column : ndarray of shape (n_samples,), or None
        The rows' own costs.
    cost : mapping
        ``false_alarm`` and ``miss``: numbers, or `COST_COLUMN`.
    """
    miss, false_alarm = (
        column if cost[name] == COST_COLUMN and column is not None else np.full(len(y), cost[name])
        for name in ("miss", "false_alarm")
    )
    return np.where(y > 0, miss, false_alarm)


@dataclass(frozen=True, eq=False)
class CostCounts:
    """Counts of scores in which each row is weighted by the cost of a wrong decision on it.

    Attributes
    ----------
    weight : float
        What all rows weigh themselves.
    """

    counts: ScoreCounts
    weight: float

    def __add__(self, other: "CostCounts") -> "CostCounts":
        """Return the counts of the rows of both."""
        return CostCounts(self.counts + other.counts, self.weight + other.weight)

    def cheapest_threshold(self) -> float:
        """Return the threshold whose wrong decisions cost least; see `aucdist.metrics.threshold_at`.

        Raises
        ------
        InputError
            If all rows of a class cost nothing.
        """
        for name, total in (("false_alarm", self.counts.n_neg), ("miss", self.counts.n_pos)):
            if total == 0:
                raise InputError(
                    f"cost: {name} is 0 for all training rows of its class: at least one row must cost something"
                )
        return threshold_at(self.counts, cost=dict.fromkeys(COSTS, 1.0))

    def mean(self, threshold: float) -> float:
        """Return the mean cost of the decisions of a threshold over all rows."""
        wrong = confusion(self.counts, threshold)
        return (wrong["fp"] + wrong["fn"]) / self.weight

    @property
    def without_model(self) -> float:
        """The mean cost of flagging no row or all rows, whichever is cheaper."""
        return min(self.counts.n_pos, self.counts.n_neg) / self.weight


def mean_cost(wrong: np.ndarray, cost: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Return the mean cost of wrong decisions over all rows.

    Parameters
    ----------
    wrong : ndarray of shape (n_samples,), bool
    cost : ndarray of shape (n_samples,), float64
        As `cost_of_rows` returns it.
    weight : ndarray of shape (n_samples,), optional
    """
    weights = np.ones(len(wrong)) if weight is None else weight
    return float((weights * np.where(wrong, cost, 0.0)).sum() / weights.sum())


@dataclass(frozen=True, eq=False)
class ClassCosts:
    """The number of rows of a class, the largest cost of a wrong decision on one, and the cost of each wrong decision."""

    rows: int
    largest: float
    mistakes: np.ndarray

    def __add__(self, other: "ClassCosts") -> "ClassCosts":
        mistakes = np.concatenate((self.mistakes, other.mistakes))
        return ClassCosts(self.rows + other.rows, max(self.largest, other.largest), mistakes)


@dataclass(frozen=True, eq=False)
class DecisionCosts:
    """The costs of the decisions on rows of both classes; ``+`` merges those of several parts."""

    pos: ClassCosts
    neg: ClassCosts

    @classmethod
    def of(cls, positive: np.ndarray, wrong: np.ndarray, cost: np.ndarray) -> "DecisionCosts":
        """Return the costs of the decisions of a threshold that was chosen on other rows.

        `positive` and `wrong`, bool of shape (n_samples,): which rows are positive, and decided wrongly.
        `cost`: as `cost_of_rows` returns it.
        """
        pos, neg = (
            ClassCosts(int(np.count_nonzero(rows)), float(cost[rows].max(initial=0.0)), cost[rows & wrong])
            for rows in (positive, ~positive)
        )
        return cls(pos, neg)

    def __add__(self, other: "DecisionCosts") -> "DecisionCosts":
        """Return the costs of the decisions on the rows of both."""
        return DecisionCosts(self.pos + other.pos, self.neg + other.neg)

    def interval(self, level: float = 0.95) -> Estimate:
        """Return the mean cost of a row with its interval.

        For each class the bounds are those of Stringer, which auditors use (Bickel, International Statistical Review 60, 1992,
        197-209): the dearest mistake counts with the first step of Clopper and Pearson's bound, the next one with the second,
        and so on; below all of them a mistake that was not seen counts with the largest cost of any row of the class. The
        classes are combined as in `expected_cost_interval`, and where all rows of a class cost the same both agree.

        That it covers as often as `level` says is not proved but for equal costs. In simulations it covers more often, at the
        price of its length. Rows with a larger cost than any here, and rows that are not independent, it does not know.
        """
        check_level(level)
        n, value, below, above = self.pos.rows + self.neg.rows, 0.0, 0.0, 0.0
        for costs in (self.pos, self.neg):
            if costs.rows == 0:
                continue
            low, high = _bounds(np.sort(costs.mistakes)[::-1], costs.rows, costs.largest, level)
            mean, share = float(costs.mistakes.sum()) / costs.rows, costs.rows / n
            value += share * mean
            below, above = below + (share * (mean - low)) ** 2, above + (share * (high - mean)) ** 2
        return Estimate(value, max(0.0, value - math.sqrt(below)), value + math.sqrt(above), level, "stringer-mover")


def mean_cost_difference(
    positive: np.ndarray, wrong: Sequence[np.ndarray], cost: np.ndarray, level: float = 0.95
) -> Difference:
    """Test whether the decisions of two models cost the same, at thresholds chosen on other rows, by flipped signs of rows.

    Only the rows on which one of both models alone is wrong decide: see `aucdist.metrics.compare.sign_flip_test`.

    Parameters
    ----------
    positive : ndarray of shape (n_samples,), bool
    wrong : two ndarrays of shape (n_samples,), bool
        Which rows the first model decides wrongly, and which the second.
    cost : ndarray of shape (n_samples,), float64
        As `cost_of_rows` returns it.
    level : float
        At least 0.5 and below 1.

    Returns
    -------
    Difference
        The mean cost of a row with the first model minus that with the second. Where both models are wrong on the same rows, the
        interval is that of shares of which nothing was seen, and ``exact-bound`` its method.
    """
    check_level(level)
    n = len(cost)
    parts = cost * (wrong[0].astype(np.int8) - wrong[1]) / n
    if not parts.any():
        classes = [which for which in (positive, ~positive) if which.any()]
        unseen = [cost[which].max() * (1 - (1 - level) ** (1 / which.sum())) * which.sum() / n for which in classes]
        reach = math.sqrt(sum(end**2 for end in unseen))
        return Difference(0.0, -reach, reach, 1.0, level, "exact-bound", 0)
    return sign_flip_test(parts, np.full(n, 1 / n), level, most=float(cost.max()))


def _bounds(mistakes: np.ndarray, n: int, largest: float, level: float) -> tuple[float, float]:
    """Return bounds for the mean of n costs, of which those of `mistakes`, descending, are not 0."""
    from scipy.special import betaincinv

    k, tail, rank = len(mistakes), 0.5 * (1.0 - level), 0
    ranks = [0]
    while rank < k:
        rank = min(k, rank + max(1, rank // EXACT_RANKS))
        ranks.append(rank)
    ends = np.array(ranks, dtype=np.float64)  # the last rank of each run of equal ones
    low = np.where(ends > 0, betaincinv(np.maximum(ends, 1.0), n - np.maximum(ends, 1.0) + 1.0, tail), 0.0)
    under = np.minimum(ends, n - 1.0)
    high = np.where(ends < n, betaincinv(under + 1.0, n - under, 1.0 - tail), 1.0)
    at = ends.astype(np.int64)
    dearest, cheapest = mistakes[at[:-1]], mistakes[at[1:] - 1]
    return float(np.diff(low) @ cheapest), float(largest * high[0] + np.diff(high) @ dearest)


def cost_by_probability(
    probability: np.ndarray, flagged: np.ndarray, column: np.ndarray | None, cost: Mapping[str, Any]
) -> np.ndarray:
    """Return the expected cost of the decision on each row with an unknown label, from its probability.

    Parameters
    ----------
    probability : ndarray of shape (n_samples,)
        The probability of the positive class.
    flagged : ndarray of shape (n_samples,), bool
    column, cost
        As for `costs_of_labels`.
    """
    wrong = costs_of_labels(np.where(flagged, -1, 1), column, cost)  # a flagged row may be a false alarm, others a miss
    return np.where(flagged, 1.0 - probability, probability) * wrong
