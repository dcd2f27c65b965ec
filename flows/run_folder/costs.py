"""What the decisions of a run cost, in the mean over its rows, where rows have a cost of their own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aucdist.metrics.costs import CostCounts, costs_of_labels, mean_cost, mean_cost_interval


def common_cost(points: Sequence[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    """Return the costs that runs were trained for, by their operating points; None if there are none, or runs differ."""
    costs = [point["wanted"]["cost"] for point in points if point and "cost" in point["wanted"]]
    return costs[0] if costs and all(cost == costs[0] for cost in costs) else None


@dataclass(frozen=True, eq=False)
class CostedRows:
    """Scored test rows that have a cost of their own; all arrays are of shape (n_test,), and float64 but for `positive`."""

    positive: np.ndarray
    scores: np.ndarray
    cost: np.ndarray
    weight: np.ndarray | None = None


def mean_cost_of_rows(
    costs: CostCounts, test: CostedRows | None, threshold: float, cost: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the mean cost of a test row, or else of a training row, where rows have a cost of their own.

    `costs`: of the training rows.
    `cost`: ``false_alarm`` and ``miss``.
    Returns ``value``; ``interval``, of 95 %, None for training rows and for weighted ones; ``without_model``: that of
        the cheaper one of flagging no row and all rows.
    """
    if test is None:
        return {"value": costs.mean(threshold), "interval": None, "without_model": costs.without_model}
    positive, weight = test.positive, test.weight
    of_row = costs_of_labels(np.where(positive, 1, -1), test.cost, cost)
    wrong_rows = (test.scores > threshold) != positive
    spread = None if weight is not None else mean_cost_interval(positive, wrong_rows, of_row)
    return {
        "value": mean_cost(wrong_rows, of_row, weight),
        "interval": None if spread is None else [spread.low, spread.high],
        "without_model": min(mean_cost(which, of_row, weight) for which in (positive, ~positive)),
    }
