"""The cost of wrong decisions where costs differ by row, such as the amount of a missed fraud.

Where costs are two numbers, a function of counts is enough: `aucdist.metrics.decisions.expected_cost`. The functions of labels
and scores in `aucdist.metrics` take both, numbers and columns.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aucdist.metrics.compare import Difference, sign_flip_test
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.decisions import confusion, refuse_no_cost, threshold_at
from aucdist.metrics.intervals import Estimate, check_level

EXACT_RANKS = 1000
"""The number of the most expensive mistakes that enter a bound one by one. After them, ranks that differ by a thousandth are
taken together."""


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
        refuse_no_cost(self.counts.n_neg, self.counts.n_pos)
        return threshold_at(self.counts, cost={"false_alarm": 1.0, "miss": 1.0})

    def mean(self, threshold: float) -> float:
        """Return the mean cost of the decisions of a threshold over all rows."""
        wrong = confusion(self.counts, threshold)
        return (wrong["fp"] + wrong["fn"]) / self.weight

    @property
    def without_model(self) -> float:
        """The mean cost of flagging no row or all rows, whichever is cheaper."""
        return min(self.counts.n_pos, self.counts.n_neg) / self.weight


def mean_cost(wrong: np.ndarray, cost: np.ndarray, weight: np.ndarray | None) -> float:
    """Return the mean cost of wrong decisions over all rows.

    Parameters
    ----------
    wrong : ndarray of shape (n_samples,), bool
    cost : ndarray of shape (n_samples,), float64
        As `Costs.of_rows` returns it.
    weight : ndarray of shape (n_samples,), or None
    """
    return float(np.average(np.where(wrong, cost, 0.0), weights=weight))


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
        `cost`: as `Costs.of_rows` returns it.
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

        For each class the bounds are Stringer's, which auditors use (Bickel, International Statistical Review 60, 1992, 197-209).
        In the upper bound, the highest cost of a wrong decision is weighted by the increase of the Clopper-Pearson bound from no
        wrong decisions to one, the second highest cost by the increase from one to two, and so on. The largest cost of any row
        of the class is weighted by the bound for no wrong decisions. The classes are combined as in `expected_cost_interval`; if
        all rows of a class have the same cost, both intervals agree.

        The coverage is proved for equal costs only. In simulations it is higher than `level`, so the interval is wider than
        necessary. It does not allow for costs above those of these rows, or for rows that depend on each other.
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
        As `Costs.of_rows` returns it.
    level : float
        At least 0.5 and below 1.

    Returns
    -------
    Difference
        The mean cost of a row with the first model minus that with the second. If both models are wrong on the same rows, no
        variance can be estimated. The interval is then the exact bound for an event that was not observed, and `method` is
        ``exact-bound``.
    """
    check_level(level)
    n = len(cost)
    parts = cost * (wrong[0].astype(np.int8) - wrong[1]) / n
    if not parts.any():
        classes = [members for members in (positive, ~positive) if members.any()]
        unseen = [
            cost[members].max() * (1 - (1 - level) ** (1 / members.sum())) * members.sum() / n for members in classes
        ]
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
