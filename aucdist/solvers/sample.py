"""Where to begin on large data: at the minimum over a sample of the rows, which is sooner found and not far from that over all.

The sample takes rows by their ids, and each class on its own, so it does not depend on how the rows lie in blocks. A row
weighs by as much more as its class was thinned out: the objective over the sample estimates the one over all rows.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from aucdist.data.block import Block, stacked
from aucdist.data.code_rows import row_squares
from aucdist.data.split import scrambled
from aucdist.engine.blocks import Blocks, Summary
from aucdist.kernels.codes import BinRows
from aucdist.solvers.base import Round, solve

LARGE = 100_000
"""Fewer rows are not worth a sample: it would be a large part of them, or too small to be near."""

SHARE, MOST = 1 / 32, 20_000
"""The sample has about so many rows of each class: this share of all rows, and at most so many."""

MOST_PASSES = 200
"""On the sample, which need not be solved well."""

SEED = 1

AT_A_TIME = 2**14
"""Rows that are drawn from at once: what is written down on the way stays in the cache."""


def solve_on_sample(
    blocks: Blocks, rounds: Callable[[Block], Iterator[Round] | None], tol: float
) -> tuple[Round | None, int]:
    """Solve on a sample.

    Parameters
    ----------
    blocks : Blocks
    rounds : callable
        The solver on the sample; None where its solution would be no good start.
    tol : float
        On the relative gap over the sample.

    Returns
    -------
    last : Round or None
        The solver's last; None where there is none, the data are not large, or a sample would have more features than rows of a
        class.
    passes : int
        What it took, in passes over all rows: one to draw, and the passes over the sample by its size.
    """
    if blocks.n_samples < LARGE or wanted(blocks) < blocks.n_features:
        return None, 0
    drawn = sample(blocks)
    solver = rounds(drawn)
    if solver is None:
        return None, 1
    solution = solve(solver, tol=tol, max_passes=MOST_PASSES)
    return solution.last, 1 + math.ceil(solution.passes * drawn.n_samples / blocks.n_samples)


def wanted(blocks: Blocks) -> float:
    """Return how many rows of each class to draw."""
    return min(SHARE * blocks.n_samples, MOST)


def sample(blocks: Blocks) -> Block:
    """Return a sample of the rows, in the order of their ids."""
    shares = (wanted(blocks) / blocks.n_neg, wanted(blocks) / blocks.n_pos)
    drawn = stacked(blocks.without_memory().reduce(draw, shares)["parts"])
    return drawn.take(np.argsort(drawn.row_id, kind="stable"))


def draw(block: Block, memory: object, shares: tuple[float, float]) -> tuple[object, Summary]:
    """Give the block's rows in the sample; `shares` are those of negatives and positives, above 1 for all."""
    weight, parts = block.weights(), [np.zeros(0, dtype=np.int64)]
    for first in range(0, block.n_samples, AT_A_TIME):
        few = slice(first, first + AT_A_TIME)
        uniform = (scrambled(block.row_id[few], SEED) >> np.uint64(11)) * 2.0**-53
        share = np.where(block.y[few] > 0, shares[1], shares[0])
        parts.append(first + np.flatnonzero((uniform < share) & (weight[few] > 0)))
    which = np.concatenate(parts)
    share = np.minimum(np.where(block.y[which] > 0, shares[1], shares[0]), 1.0)
    return memory, {"parts": [replace(block.take(which), weight=weight[which] / share)]}


def noise(drawn: Block) -> float:
    """Return the variance of a gradient over the sample where the loss's slope is 1: below about it lam fits chance."""
    if isinstance(drawn.rows, BinRows):
        return float(row_squares(drawn.rows).sum()) / drawn.n_samples**2
    X = drawn.X
    squares = X.multiply(X).sum() if hasattr(X, "multiply") else np.einsum("ij,ij->", X, X)
    return float(squares) / drawn.n_samples**2
