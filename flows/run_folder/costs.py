"""What the decisions of a run cost: what training rows weigh for its threshold, and the mean cost of a test row."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc  # pa.ipc

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary
from aucdist.errors import InputError
from aucdist.kernels.rows import project
from aucdist.metrics.costs import costs_of_labels, mean_cost, mean_cost_interval
from aucdist.metrics.counts import BoundedCounts, ScoreCounts
from aucdist.metrics.decisions import confusion


def count_costs(blocks: Blocks, w: np.ndarray, cost: Mapping[str, Any]) -> ScoreCounts:
    """Return the counts of the scores of rows, each of which weighs what a wrong decision on it costs; one reduction.

    Parameters
    ----------
    blocks : Blocks
        With costs, and as the weights score them.
    w : ndarray of shape (n_features,), float64
    cost : mapping
        ``false_alarm`` and ``miss``: numbers, or `aucdist.metrics.costs.COST_COLUMN`.

    Raises
    ------
    InputError
        If all rows of a class cost nothing.
    """
    found = blocks.without_memory().reduce(_count_costs, w, dict(cost))["counts"].counts
    for name, weight in (("false_alarm", found.n_neg), ("miss", found.n_pos)):
        if weight == 0:
            raise InputError(f"operating_point.cost: {name} is 0 for all training rows of its class")
    return found


def _count_costs(block: Block, memory: None, w: np.ndarray, cost: dict[str, Any]) -> tuple[None, Summary]:
    scores = np.empty(block.n_samples)
    project(block.rows, w, scores)
    return None, {
        "counts": BoundedCounts.from_scores(
            block.y, scores, block.weights() * costs_of_labels(block.y, block.cost, cost)
        )
    }


def mean_cost_of_rows(
    train: ScoreCounts, costs: ScoreCounts, tables: Sequence[bytes], threshold: float, cost: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the mean cost of a test row, or else of a training row, where rows have a cost of their own.

    Parameters
    ----------
    train, costs : ScoreCounts
        Of the training rows, and what `count_costs` returned.
    tables : sequence of bytes
        The scores of the test rows, as `flows.run_folder.scores.count_and_tabulate` returns them; empty without test rows.
    threshold : float
    cost : mapping
        ``false_alarm`` and ``miss``.

    Returns
    -------
    dict
        ``value``; ``interval``, of 95 %, None for training rows and for weighted ones; ``without_model``: that of the cheaper one
        of flagging no row and all rows.
    """
    if not tables:
        n, wrong = train.n_pos + train.n_neg, confusion(costs, threshold)
        without = min(costs.n_pos, costs.n_neg) / n
        return {"value": (wrong["fp"] + wrong["fn"]) / n, "interval": None, "without_model": without}
    table = pa.concat_tables([pa.ipc.open_stream(one).read_all() for one in tables])
    y, column = table["y"].to_numpy(), table["cost"].to_numpy()
    weight = table["weight"].to_numpy() if "weight" in table.column_names else None
    positive, of_row = y > 0, costs_of_labels(y, column, cost)
    wrong_rows = (table["score"].to_numpy() > threshold) != positive
    spread = None if weight is not None else mean_cost_interval(positive, wrong_rows, of_row)
    return {
        "value": mean_cost(wrong_rows, of_row, weight),
        "interval": None if spread is None else [spread.low, spread.high],
        "without_model": min(mean_cost(which, of_row, weight) for which in (positive, ~positive)),
    }
