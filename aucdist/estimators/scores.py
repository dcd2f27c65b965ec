"""Scores of a linear model, for a matrix here or for blocks anywhere."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from aucdist.data.block import Block, as_rows, rows_at
from aucdist.engine.blocks import Blocks, Summary
from aucdist.estimators.validation import is_dask
from aucdist.kernels.rows import project
from aucdist.maps.base import FittedMap, encoded
from aucdist.metrics.costs import CostCounts, costs_of_labels
from aucdist.metrics.counts import BoundedCounts, ScoreCounts
from aucdist.metrics.ranking import auc
from aucdist.objectives.probability_maps import ProbabilityMap

FEW = 4096
"""Rows of a block that are looked at first, to see that the classes are not separated."""


def mapped_rows(model: Any, blocks: Blocks) -> Blocks:
    """Return blocks of rows as the weights of a model score them: mapped, if it has a feature map and did not map them before."""
    fitted = getattr(model, "feature_map_", None)
    return blocks if fitted is None or blocks.feature_map is fitted else encoded(blocks, fitted)


def scores_of(X: Any, w: np.ndarray, intercept: float = 0.0, fitted: FittedMap | None = None) -> np.ndarray:
    """Return ``X w + intercept``, summed in float64.

    `X`: of shape (n_samples, n_features).
    `w`: of shape (n_features,), float64.
    `fitted`: the map that turns X into what w are the weights of.
    Returns an array of shape (n_samples,), float64.
    """
    out = np.empty(X.shape[0])
    rows = as_rows(X) if fitted is None else fitted.encode(Block.of(X, np.ones(X.shape[0], dtype=np.int8))).rows
    project(rows, w, out)
    return out + intercept


def probabilities_of(scores: Any, probability: ProbabilityMap) -> Any:
    """Return the probabilities of both classes, float64 of shape (n_samples, 2).

    `scores`: of shape (n_samples,), or a dask Array, which gives a dask Array.
    """
    if is_dask(scores):
        return scores.map_blocks(probability, dtype=np.float64, new_axis=1, chunks=(scores.chunks[0], 2))
    return probability(scores)


def count_scores(blocks: Blocks, w: np.ndarray, intercept: float = 0.0) -> ScoreCounts:
    """Return how many rows of each class have each score, or above a million scores each cell of them; one reduction.

    `w`: of shape (n_features,), float64.
    """
    return blocks.without_memory().reduce(_count, w, intercept)["counts"].counts


def count_costs(blocks: Blocks, w: np.ndarray, cost: Mapping[str, Any]) -> CostCounts:
    """Return the counts of the scores of rows, each of which weighs what a wrong decision on it costs; one reduction.

    `blocks`: as the weights score them; with costs where `cost` takes them.
    `w`: of shape (n_features,), float64.
    `cost`: ``false_alarm`` and ``miss``: numbers, or `aucdist.metrics.costs.COST_COLUMN`.
    """
    found = blocks.without_memory().reduce(_count_costs, w, dict(cost))
    return CostCounts(found["counts"].counts, float(found["weight"]))


def auc_of_rows(blocks: Blocks, w: np.ndarray) -> float:
    """Return the AUC of the scores; where a part of the rows shows that it is above 1/2, the AUC of that part.

    `w`: of shape (n_features,), float64.
    """
    few = blocks.without_memory().reduce(_count_few, w)["counts"]
    # An AUC of m and n rows has a standard deviation of at most 1 / (2 sqrt(min(m, n))).
    if min(few.n_pos, few.n_neg) > 0 and auc(few) > 0.5 + 3.0 / np.sqrt(min(few.n_pos, few.n_neg)):
        return auc(few)
    return auc(count_scores(blocks, w))


def separates(blocks: Blocks, w: np.ndarray) -> bool:
    """Tell whether every positive row has a higher score than all negative ones; one reduction.

    `w`: of shape (n_features,), float64.
    """
    found = blocks.without_memory().reduce(_inner_ends, w)
    return bool(min(found["lowest"]) > max(found["highest"]))


def _inner_ends(block: Block, memory: None, w: np.ndarray) -> tuple[None, Summary]:
    """Give the lowest score of a positive row and the highest of a negative one; of a few rows where those overlap already."""
    weight = block.weights()
    for n in sorted({min(FEW, block.n_samples), block.n_samples}):
        scores, y, there = np.empty(n), block.y[:n], weight[:n] > 0
        project(block.rows if n == block.n_samples else rows_at(block.rows, np.arange(n)), w, scores)
        lowest = scores[there & (y > 0)].min(initial=np.inf)
        highest = scores[there & (y < 0)].max(initial=-np.inf)
        if lowest <= highest:
            break
    return None, {"lowest": [lowest], "highest": [highest]}


def _count(block: Block, memory: None, w: np.ndarray, intercept: float) -> tuple[None, Summary]:
    scores = np.empty(block.n_samples)
    project(block.rows, w, scores)
    return None, {"counts": BoundedCounts.from_scores(block.y, scores + intercept, block.weight)}


def _count_costs(block: Block, memory: None, w: np.ndarray, cost: dict[str, Any]) -> tuple[None, Summary]:
    scores, weight = np.empty(block.n_samples), block.weights()
    project(block.rows, w, scores)
    of_rows = weight * costs_of_labels(block.y, block.cost, cost)
    return None, {"counts": BoundedCounts.from_scores(block.y, scores, of_rows), "weight": weight.sum()}


def _count_few(block: Block, memory: None, w: np.ndarray) -> tuple[None, Summary]:
    if block.weight is None and block.n_samples <= FEW:
        few = block
    else:
        there = block.weights() > 0
        of_classes = [np.flatnonzero(there & (block.y == label)) for label in (-1, 1)]
        few = block.take(np.concatenate([rows[:: max(1, len(rows) // FEW)] for rows in of_classes]))
    scores = np.empty(few.n_samples)
    project(few.rows, w, scores)
    return None, {"counts": ScoreCounts.from_scores(few.y, scores)}
