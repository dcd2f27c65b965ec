"""Thresholds and their decisions, metrics of the top of a ranking, and costs of wrong decisions, as functions of counts.

``score > threshold`` predicts the positive class. Metrics at a number of rows k take exactly k rows, and count ties at the
boundary in part, as if they were broken at random. Metrics at a threshold take all rows with equal scores or none. The area
under the top of the ROC curve is in `aucdist.metrics.partial`.

If the costs of wrong decisions are two numbers, a function of counts is enough (`expected_cost`). If costs differ by row, such
as the amount of a missed fraud, the functions need the rows. The functions of labels and scores in `aucdist.metrics` take both.

An `InputError` is raised if a class has no rows, a parameter is out of its range, or an interval is requested for weighted
rows.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy import ndarray

from aucdist.errors import InputError
from aucdist.metrics.compare import Difference, sign_flip_test
from aucdist.metrics.counts import ScoreCounts, as_column, check_values
from aucdist.metrics.intervals import Estimate, check_level, check_unweighted, clopper_pearson
from aucdist.metrics.partial import SHARE
from aucdist.metrics.ranking import class_counts, cumulative_counts, pr_curve
from aucdist.parameters import Number, above_0, frozen

COST_COLUMN = "cost_column"
"""The value that stands for a cost which differs between rows. Each row then comes with its own cost."""

THRESHOLD = Number("that is not NaN, such as a score that threshold_at returns", lambda score: score == score)
RATE = Number("at least 0 and at most 1", lambda rate: 0 <= rate <= 1)
REQUIREMENTS = {"fpr": RATE, "alerts": RATE, "precision": SHARE, "recall": SHARE}


@dataclass(frozen=True)
class OperatingPoint:
    """The performance of a fixed threshold, each metric with its exact binomial interval.

    Attributes
    ----------
    threshold : float
        Rows with a score above it are flagged.
    recall, fpr, precision, alerts : Estimate
        `recall` is the flagged share of the positives, `fpr` that of the negatives, and `alerts` that of all rows. `precision`
        is the share of positives among the flagged rows. Precision and alerts depend on the share of positives, so their
        intervals are for rows with the same share.
    """

    threshold: float
    recall: Estimate
    fpr: Estimate
    precision: Estimate
    alerts: Estimate


def with_current_keys(cost: Any) -> Any:
    """Return costs with the key ``false_positive``, which was called ``false_alarm`` in 0.4.0."""
    if not isinstance(cost, Mapping):
        return cost
    return {"false_positive" if key == "false_alarm" else key: value for key, value in cost.items()}


@frozen
class Costs:
    """What a wrong decision costs.

    Attributes
    ----------
    false_positive : float, str or array-like of shape (n_samples,)
        The cost of a flagged negative row: a number above 0, an array with a number of at least 0 for each row, or
        `COST_COLUMN`.
    miss : float, str or array-like of shape (n_samples,)
        The cost of a positive row that is not flagged, as `false_positive`.

    Raises
    ------
    InputError
        If a cost is none of these.
    """

    false_positive: Any
    miss: Any

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if np.ndim(value):
                column = as_column(name, value)
                check_values(name, column, ~(np.isfinite(column) & (column >= 0)), "is negative or not finite")
            elif value != COST_COLUMN:
                above_0().check(name, value)

    @classmethod
    def of(cls, cost: Any) -> "Costs":
        """Return the costs in a mapping. Raise an InputError if it is not a mapping with both costs."""
        cost = with_current_keys(cost)
        if not isinstance(cost, Mapping) or set(cost) != {"false_positive", "miss"}:
            raise InputError(
                "cost must be a mapping with the keys false_positive and miss alone, each a number or an array with one for each "
                f"row; got {str(cost)[:100]}"
            )
        return cls(**cost)

    @property
    def differ_by_row(self) -> bool:
        """Whether costs differ by row. Then counts of scores are not enough to compute costs."""
        return any(np.ndim(value) > 0 or value == COST_COLUMN for value in vars(self).values())

    def of_rows(self, positive: ndarray, column: ndarray | None = None) -> ndarray:
        """Return the cost of a wrong decision on each row: a miss of a positive row, or a false positive for a negative one.

        Parameters
        ----------
        positive : ndarray of shape (n_samples,), bool
            Which rows are positive.
        column : ndarray of shape (n_samples,), float64, optional
            The costs of the rows, which replace `COST_COLUMN`.

        Returns
        -------
        ndarray of shape (n_samples,), float64

        Raises
        ------
        InputError
            If an array of costs has another length.
        """
        columns = {}
        for name, value in vars(self).items():
            if isinstance(value, str):
                if column is None:
                    raise InputError(f"{name} is {value!r}, but the rows have no costs of their own: give a number")
                value = column
            columns[name] = np.asarray(value, dtype=np.float64)
            if columns[name].ndim and len(value) != len(positive):
                raise InputError(
                    f"{name} has {len(value)} values, but there are {len(positive)} rows: give one value for each row"
                )
        return np.where(positive, columns["miss"], columns["false_positive"])


def check_costs_not_zero(of_negatives: float, of_positives: float, where: str = "") -> None:
    """Raise an InputError if wrong decisions on all rows of a class cost nothing, because no threshold is best then.

    Parameters
    ----------
    of_negatives, of_positives : float
        The sum of the costs of wrong decisions on all rows of the class.
    where : str, default=""
        The beginning of the message.
    """
    for name, rows, total in (("false_positive", "negative", of_negatives), ("miss", "positive", of_positives)):
        if total == 0:
            raise InputError(
                f"{where}{name} is 0 for all {rows} rows: give it a number, or give at least one of these rows a cost"
            )


def best_threshold(counts: ScoreCounts) -> float:
    """Return the threshold with the highest G-mean when ``score > threshold`` predicts the positive class.

    It is the midpoint of two neighbouring scores. Among equally good thresholds it has the lowest false positive rate. If every
    G-mean is 0, as with a single distinct score, it is the highest score, so that no row is predicted positive.
    """
    pos, neg = class_counts(counts)
    at_most = np.cumsum(pos)
    # tp * tn for a threshold at each value, which is proportional to the squared G-mean and exact in integers
    product = (at_most[-1] - at_most) * np.cumsum(neg)
    return counts.threshold(len(product) - int(np.argmax(product[::-1])))


def confusion(counts: ScoreCounts, threshold: float) -> dict[str, float]:
    """Return ``tp``, ``fp``, ``tn`` and ``fn`` when ``score > threshold`` predicts the positive class.

    Without weights they are integers. A class may have no rows. If the counts are held in cells, the rows of the cell in which
    the threshold lies count as above it. If the threshold is the end of a cell, as `ScoreCounts.threshold` is, they are exact.

    Raises
    ------
    InputError
        If the threshold is not a number.
    """
    THRESHOLD.check("threshold", threshold)
    split = int(np.searchsorted(counts.values, threshold, side="right"))
    total = float if counts.weighted else int
    below, above = slice(None, split), slice(split, None)
    parts = {"tp": counts.pos[above], "fp": counts.neg[above], "tn": counts.neg[below], "fn": counts.pos[below]}
    return {name: total(part.sum()) for name, part in parts.items()}


def recall(table: dict[str, float]) -> float:
    """Return the share of the positives predicted positive, from a table of `confusion`. It is 0 without positives."""
    return _share(table["tp"], table["fn"])


def specificity(table: dict[str, float]) -> float:
    """Return the share of the negatives predicted negative, from a table of `confusion`. It is 0 without negatives."""
    return _share(table["tn"], table["fp"])


def precision(table: dict[str, float]) -> float:
    """Return the share of positives among the rows predicted positive, from a table of `confusion`. It is 0 if there are none."""
    return _share(table["tp"], table["fp"])


def g_mean(table: dict[str, float]) -> float:
    """Return the geometric mean of recall and specificity, from a table of `confusion`."""
    return math.sqrt(recall(table) * specificity(table))


def balanced_accuracy(table: dict[str, float]) -> float:
    """Return the mean of recall and specificity, from a table of `confusion`."""
    return (recall(table) + specificity(table)) / 2


def threshold_at(counts: ScoreCounts, **requirements: Any) -> float:
    """Return the threshold that meets one requirement, with costs as numbers. See `aucdist.metrics.threshold_at`."""
    name, value = only_requirement("threshold_at takes one of fpr, alerts, precision, recall and cost", requirements)
    if name == "cost":
        costs, (true, false) = Costs.of(value), cumulative_counts(counts)
        flagged = int(np.argmin(costs.false_positive * false + costs.miss * (true[-1] - true)))
    else:
        flagged = n_flagged(counts, name, value)
    return counts.threshold(len(counts.values) - flagged)


def adjust_for_ties(fitted: ScoreCounts, threshold: float, name: str, value: float) -> float:
    """Return a threshold that meets a requirement despite shared scores, close to a threshold that out-of-fold scores chose.

    Out-of-fold scores come from several models. They may differ for rows to which the final model gives the same score, and the
    final model flags all of these rows or none. The threshold is therefore moved past each score of several rows with which
    more rows would be flagged than `fpr`, `alerts` or `precision` allow. For `recall`, it is lowered until the requirement is
    met. It stays where it is for `cost`, and if no threshold of the final model has the `precision`.

    Scores of single rows do not raise the threshold. The model overfits its training rows, so that such scores would leave too
    few alerts among new rows. If rows have weights and some scores are shared, all scores count as shared, because counts do
    not say how many rows have a score.

    Parameters
    ----------
    fitted : ScoreCounts
        The scores of the same rows by the final model.
    threshold : float
        The threshold that the out-of-fold scores chose.
    name : str
        ``fpr``, ``alerts``, ``precision`` or ``recall``. For ``cost``, the threshold is returned as it is.
    value : float
        The value that is required.

    Returns
    -------
    float
    """
    try:
        n_below = len(fitted.values) - n_flagged(fitted, name, value)
    except (InputError, KeyError):  # no threshold has this precision; costs are no requirement
        return threshold
    if name == "recall":
        return min(threshold, fitted.threshold(n_below))
    if len(fitted.values) == fitted.rows_pos + fitted.rows_neg:
        return threshold
    shared = np.flatnonzero(((fitted.pos + fitted.neg)[:n_below] > 1) | fitted.weighted)
    return max(threshold, fitted.threshold(shared[-1] + 1)) if len(shared) else threshold


def only_requirement(subject: str, requirements: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the name and the value of the one requirement that is not None.

    Raises
    ------
    InputError
        If there is not exactly one. The message begins with `subject`.
    """
    stated = [(name, value) for name, value in requirements.items() if value is not None]
    if len(stated) != 1:
        raise InputError(f"{subject}; {', '.join(name for name, _ in stated) or 'none'} is given")
    return stated[0]


def operating_point(counts: ScoreCounts, threshold: float, level: float = 0.95) -> OperatingPoint:
    """Return the performance of a threshold that was chosen on other rows. See `aucdist.metrics.operating_point`."""
    check_level(level)
    check_unweighted(counts)
    class_counts(counts)
    table = confusion(counts, threshold)
    n_right, flagged = table["tp"], table["tp"] + table["fp"]
    parts = {
        "recall": (n_right, counts.rows_pos),
        "fpr": (table["fp"], counts.rows_neg),
        "precision": (n_right, flagged),
        "alerts": (flagged, counts.rows_pos + counts.rows_neg),
    }
    return OperatingPoint(
        threshold,
        **{
            name: Estimate(_share(k, n - k), *clopper_pearson(k, n, level), level, "clopper-pearson")
            for name, (k, n) in parts.items()
        },
    )


def expected_cost(counts: ScoreCounts, threshold: float, *, false_positive: float, miss: float) -> float:
    """Return the mean cost per row of the decisions of a threshold. See `aucdist.metrics.expected_cost`."""
    Costs(false_positive, miss)  # raises an InputError if one is not a cost
    class_counts(counts)
    table = confusion(counts, threshold)
    return (false_positive * table["fp"] + miss * table["fn"]) / (counts.n_pos + counts.n_neg)


def expected_cost_interval(
    counts: ScoreCounts, threshold: float, level: float = 0.95, *, false_positive: float, miss: float
) -> Estimate:
    """Return the expected cost of a threshold with its interval. See `aucdist.metrics.expected_cost_interval`."""
    check_unweighted(counts)
    value = expected_cost(counts, threshold, false_positive=false_positive, miss=miss)
    table = confusion(counts, threshold)
    mistakes = [np.full(int(table["fn"]), miss), np.full(int(table["fp"]), false_positive)]
    costs = DecisionCosts(np.array([counts.rows_pos, counts.rows_neg]), np.array([miss, false_positive]), mistakes)
    return replace(costs.interval(level), value=value, method="mover")


def n_flagged(counts: ScoreCounts, name: str, value: float) -> int:
    """Return how many of the highest distinct scores must be flagged to meet a requirement of `threshold_at`."""
    REQUIREMENTS[name].check(name, value)
    (true, false), slack = cumulative_counts(counts), rounding_of_shares(counts)
    if name == "recall":
        return int(np.searchsorted(true / true[-1], value * (1.0 - slack)))
    if name == "precision":
        _, precisions = pr_curve(counts)
        good = np.flatnonzero(precisions >= value * (1.0 - slack))
        if len(good) == 0:
            raise InputError(
                f"precision is {value}, but on these rows no threshold has a precision above {precisions.max():.4g}: give a "
                "lower precision"
            )
        return int(good[-1]) + 1
    rates = false / false[-1] if name == "fpr" else (true + false) / (true[-1] + false[-1])
    return int(np.searchsorted(rates, value * (1.0 + slack), side="right")) - 1


def rounding_of_shares(counts: ScoreCounts) -> float:
    """Return a bound on the relative rounding error of shares of cumulative weights. Numbers of rows have no error."""
    return 4.0 * np.finfo(float).eps * (counts.rows_pos + counts.rows_neg) if counts.weighted else 0.0


def _share(part: float, rest: float) -> float:
    return part / (part + rest) if part + rest > 0 else 0.0


def recall_at_fpr(counts: ScoreCounts, max_fpr: float) -> float:
    """Return the largest recall of any threshold whose false positive rate is at most `max_fpr`."""
    true, _ = cumulative_counts(counts)
    return float(true[n_flagged(counts, "fpr", max_fpr)] / true[-1])


def fpr_at_recall(counts: ScoreCounts, min_recall: float) -> float:
    """Return the smallest false positive rate of any threshold whose recall is at least `min_recall`."""
    _, false = cumulative_counts(counts)
    return float(false[n_flagged(counts, "recall", min_recall)] / false[-1])


def recall_at_precision(counts: ScoreCounts, min_precision: float) -> float:
    """Return the largest recall of any threshold whose precision is at least `min_precision`. It is 0 if there is none."""
    SHARE.check("min_precision", min_precision)
    recalls, precisions = pr_curve(counts)
    good = recalls[precisions >= min_precision * (1.0 - rounding_of_shares(counts))]
    return float(good[-1]) if len(good) else 0.0


def precision_at_recall(counts: ScoreCounts, min_recall: float) -> float:
    """Return the largest precision of any threshold whose recall is at least `min_recall`."""
    SHARE.check("min_recall", min_recall)
    recalls, precisions = pr_curve(counts)
    return float(precisions[recalls >= min_recall * (1.0 - rounding_of_shares(counts))].max())


def recall_at_k(counts: ScoreCounts, k: float) -> float:
    """Return the share of all positives that are among the k highest-scoring rows."""
    return _positives_in_top(counts, k) / float(cumulative_counts(counts)[0][-1])


def precision_at_k(counts: ScoreCounts, k: float) -> float:
    """Return the share of the k highest-scoring rows that are positive."""
    return _positives_in_top(counts, k) / k


def _positives_in_top(counts: ScoreCounts, k: float) -> float:
    above_0().check("k", k)
    true, false = cumulative_counts(counts)
    flagged = true + false
    if k > flagged[-1] * (1.0 + rounding_of_shares(counts)):
        raise InputError(f"k must be above 0 and at most {flagged[-1]:g}, the number or weight of all rows; got {k}")
    return float(np.interp(k, flagged, true))


EXACT_RANKS = 1000
"""The number of the most expensive mistakes that enter a bound one by one. After them, ranks that differ by a thousandth are
taken together."""


@frozen
class CostCounts:
    """Counts of scores in which each row is weighted by the cost of a wrong decision on it.

    Attributes
    ----------
    counts : ScoreCounts
        The weights of positive rows are costs of misses, and those of negative rows costs of false positives.
    weight : float
        The sum of the weights of all rows themselves.
    """

    counts: ScoreCounts
    weight: float

    def __add__(self, other: "CostCounts") -> "CostCounts":
        """Return the counts of the rows of both."""
        return CostCounts(self.counts + other.counts, self.weight + other.weight)

    def cheapest_threshold(self) -> float:
        """Return the threshold with the smallest cost of wrong decisions. See `aucdist.metrics.threshold_at`.

        Raises
        ------
        InputError
            If wrong decisions on all rows of a class cost nothing.
        """
        check_costs_not_zero(self.counts.n_neg, self.counts.n_pos)
        return threshold_at(self.counts, cost={"false_positive": 1.0, "miss": 1.0})

    def mean(self, threshold: float) -> float:
        """Return the mean cost of the decisions of a threshold over all rows."""
        wrong = confusion(self.counts, threshold)
        return (wrong["fp"] + wrong["fn"]) / self.weight

    @property
    def without_model(self) -> float:
        """The mean cost of flagging no row or all rows, whichever is cheaper."""
        return min(self.counts.n_pos, self.counts.n_neg) / self.weight


def mean_cost(wrong: ndarray, cost: ndarray, weight: ndarray | None) -> float:
    """Return the mean cost of wrong decisions over all rows.

    Parameters
    ----------
    wrong : ndarray of shape (n_samples,), bool
        Which rows are decided wrongly.
    cost : ndarray of shape (n_samples,), float64
        As `Costs.of_rows` returns it.
    weight : ndarray of shape (n_samples,), or None
        The weights of the rows.

    Returns
    -------
    float
    """
    return float(np.average(np.where(wrong, cost, 0.0), weights=weight))


@frozen
class DecisionCosts:
    """The costs of the decisions on the rows of both classes, the positives first. Costs of several parts are merged by ``+``.

    Attributes
    ----------
    rows : ndarray of shape (2,)
        The number of rows of each class.
    largest : ndarray of shape (2,)
        The largest cost of a wrong decision on a row of the class.
    mistakes : sequence of two ndarrays
        The costs of the wrong decisions.
    """

    rows: ndarray
    largest: ndarray
    mistakes: Sequence[ndarray]

    @classmethod
    def of(cls, positive: ndarray, wrong: ndarray, cost: ndarray) -> "DecisionCosts":
        """Return the costs of the decisions of a threshold that was chosen on other rows.

        Parameters
        ----------
        positive, wrong : ndarray of shape (n_samples,), bool
            Which rows are positive, and which are decided wrongly.
        cost : ndarray of shape (n_samples,), float64
            As `Costs.of_rows` returns it.

        Returns
        -------
        DecisionCosts
        """
        classes = positive, ~positive
        largest = [cost[c].max(initial=0.0) for c in classes]
        return cls(np.sum(classes, axis=1), np.array(largest), [cost[c & wrong] for c in classes])

    def __add__(self, other: "DecisionCosts") -> "DecisionCosts":
        """Return the costs of the decisions on the rows of both."""
        mistakes = map(np.concatenate, zip(self.mistakes, other.mistakes, strict=True))
        return DecisionCosts(self.rows + other.rows, np.maximum(self.largest, other.largest), [*mistakes])

    def interval(self, level: float = 0.95) -> Estimate:
        """Return the mean cost of a row with its interval.

        For the wrong decisions on each class the bounds are Stringer's, which auditors use (Bickel, International Statistical
        Review 60, 1992, 197-209). In the upper bound, the highest cost of a wrong decision is weighted by the increase of the
        Clopper-Pearson bound from no wrong decisions among all rows to one, the second highest cost by the increase from one to
        two, and so on. The largest cost of any row of the class is weighted by the bound for no wrong decisions. The classes are
        combined as in `expected_cost_interval`; if all rows of a class have the same cost, both intervals agree.

        The coverage is proved for equal costs of one class only. In simulations it is higher than `level`, so the interval is
        wider than necessary. It does not allow for costs above those of these rows, or for rows that depend on each other.
        """
        check_level(level)
        n, value, below, above = int(self.rows.sum()), 0.0, 0.0, 0.0
        for largest, mistakes in zip(self.largest, self.mistakes, strict=True):
            low, high = _bounds(np.sort(mistakes)[::-1], n, largest, level)
            mean = float(mistakes.sum()) / n
            value, below, above = value + mean, below + (mean - low) ** 2, above + (high - mean) ** 2
        return Estimate(value, max(0.0, value - math.sqrt(below)), value + math.sqrt(above), level, "stringer-mover")


def mean_cost_difference(positive: ndarray, wrong: Sequence[ndarray], cost: ndarray) -> Difference:
    """Test whether the decisions of two models cost the same, by flipping the signs of rows.

    The thresholds were chosen on other rows.

    Only rows on which exactly one of the models is wrong affect the test: see `aucdist.metrics.compare.sign_flip_test`.

    Parameters
    ----------
    positive : ndarray of shape (n_samples,), bool
        Whether each row is positive.
    wrong : two ndarrays of shape (n_samples,), bool
        Which rows the first model decides wrongly, and which the second.
    cost : ndarray of shape (n_samples,), float64
        As `Costs.of_rows` returns it.

    Returns
    -------
    Difference
        The mean cost of a row with the first model minus that with the second. If both models are wrong on the same rows, no
        variance can be estimated. The interval is then the exact bound for an event that was not observed, and `method` is
        ``exact-bound``.
    """
    n, level = len(cost), 0.95
    parts = cost * (wrong[0].astype(np.int8) - wrong[1]) / n
    if not parts.any():
        unseen = [
            cost[members].max() * (1 - (1 - level) ** (1 / members.sum())) * members.sum() / n
            for members in (positive, ~positive)
            if members.any()
        ]
        half_width = math.hypot(*unseen)
        return Difference(0.0, -half_width, half_width, 1.0, level, "exact-bound", 0)
    return sign_flip_test(parts, np.full(n, 1 / n), level, most=float(cost.max()))


def _bounds(mistakes: ndarray, n: int, largest: float, level: float) -> tuple[float, float]:
    """Return bounds for the mean of n costs. `mistakes` has those that are not 0, in descending order."""
    ranks, k = [0], len(mistakes)
    while ranks[-1] < k:
        ranks.append(min(k, ranks[-1] + max(1, ranks[-1] // EXACT_RANKS)))
    at = np.array(ranks)  # the last rank among equal costs
    low, high = clopper_pearson(at, n, level)
    dearest, cheapest = mistakes[at[:-1]], mistakes[at[1:] - 1]
    return float(np.diff(low) @ cheapest), float(largest * high[0] + np.diff(high) @ dearest)
