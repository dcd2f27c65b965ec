"""Start fits to large data at the minimum over a sample, which costs little and is near the minimum over all rows.

Rows are drawn by their ids, from each class separately, so that the sample does not depend on the blocks. The weight of a row
of the sample is divided by the share of its class that is drawn, so that the objective of the sample estimates that of all
rows.

If pairs are within groups, whole groups are drawn by their numbers, and rows keep their weights. A sample of the rows of a
small group would contain almost no pairs."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from aucdist.data.block import Block, row_squares
from aucdist.engine.blocks import Blocks, Summary, gather_sample
from aucdist.kernels.random import hash_ids
from aucdist.solvers.base import Round, solve

MIN_ROWS_TO_SAMPLE = 100_000
"""The smallest number of rows for which a fit starts from a sample. With fewer rows, a sample would be a large part of the rows,
or too small for its optimum to be close."""

SAMPLE_SHARE = 1 / 32
"""The number of rows to draw from each class, as a share of all rows."""

MAX_ROWS_PER_CLASS = 20_000
"""The largest number of rows to draw from each class."""

MIN_GROUPS = 60
"""The smallest number of groups with pairs for which a fit starts from a sample."""

MAX_PASSES = 200
"""The largest number of passes over the sample, which need not be solved exactly."""

SEED = 1
STREAM = 0x5851F42D4C957F2D
"""A number that makes the random numbers that draw rows independent of those that split them, whatever the seed of the split.
Training rows have the larger random numbers of the split, so a small share of these would be empty."""

IDS_AT_ONCE = 2**14
"""The number of ids that are hashed at once, so that intermediate arrays stay in the cache."""


def solve_on_sample(
    blocks: Blocks, rounds: Callable[[Block], Iterator[Round] | None], tol: float, n_groups: int | None = None
) -> tuple[Round | None, int]:
    """Return the solution over a sample, to start from, and the number of passes that it took.

    Parameters
    ----------
    rounds : callable
        ``rounds(sample)`` returns the rounds of the solver on the sample, or None if its solution would not be a good start.
    tol : float
        The tolerance on the relative gap over the sample.
    n_groups : int, optional
        How many groups have pairs, if pairs are within groups.

    Returns
    -------
    last : Round or None
        The last round; None if there is none, if the data are not large, or if a sample would have more features than rows of
        a class, or fewer groups than `MIN_GROUPS`.
    passes : int
        The number of passes over all rows: one for drawing, plus the passes over the sample times its share of the rows.
    """
    if blocks.n_samples < MIN_ROWS_TO_SAMPLE or rows_per_class(blocks) < blocks.n_features:
        return None, 0
    if n_groups is not None and n_groups * share_of_groups(blocks) < MIN_GROUPS:
        return None, 0
    drawn = draw_sample(blocks, whole_groups=n_groups is not None)
    solver = rounds(drawn)
    if solver is None:
        return None, 1
    solution = solve(solver, tol=tol, max_passes=MAX_PASSES)
    return solution.last, 1 + math.ceil(solution.passes * drawn.n_samples / blocks.n_samples)


def rows_per_class(blocks: Blocks) -> float:
    """Return the number of rows to draw from each class."""
    return min(SAMPLE_SHARE * blocks.n_samples, MAX_ROWS_PER_CLASS)


def share_of_groups(blocks: Blocks) -> float:
    """Return the share of the groups to draw, such that the sample has as many rows as two classes would."""
    return min(2.0 * rows_per_class(blocks) / blocks.n_samples, 1.0)


def draw_sample(blocks: Blocks, *, whole_groups: bool = False) -> Block:
    """Return a sample of the rows, or of whole groups of them, in the order of their ids."""
    if whole_groups:
        return gather_sample(blocks, draw_groups, share_of_groups(blocks))
    shares = (rows_per_class(blocks) / blocks.n_neg, rows_per_class(blocks) / blocks.n_pos)
    return gather_sample(blocks, draw_from_block, shares)


def uniforms(ids: np.ndarray, seed: int) -> np.ndarray:
    """Return a number in [0, 1) for each id, which depends only on the id and the seed."""
    out = np.empty(len(ids))
    for first in range(0, len(ids), IDS_AT_ONCE):
        chunk = slice(first, first + IDS_AT_ONCE)
        out[chunk] = (hash_ids(ids[chunk], seed ^ STREAM) >> np.uint64(11)) * 2.0**-53
    return out


def draw_from_block(block: Block, shares: tuple[float, float]) -> Summary:
    """Return the rows of the block that are in the sample. `shares` are those of negatives and positives; 1 or more draws all."""
    weight, share = block.weights(), np.where(block.y > 0, shares[1], shares[0])
    drawn = np.flatnonzero((uniforms(block.row_id, SEED) < share) & (weight > 0))
    return [replace(block.take(drawn), weight=weight[drawn] / np.minimum(share[drawn], 1.0))]


def draw_groups(block: Block, share: float) -> Summary:
    """Return the rows of the block whose groups are drawn. `share` is the share of the groups."""
    assert block.group is not None
    uniform = uniforms(block.group, SEED)
    return [block.take(np.flatnonzero((uniform < share) & (block.weights() > 0)))]


def noise(drawn: Block) -> float:
    """Return the variance of a gradient over the sample, for a loss of slope 1. If lam is smaller, the weights fit noise."""
    return float(row_squares(drawn.rows).sum()) / drawn.n_samples**2
