"""What travels to the blocks of a margin-mean fit: how rows are scaled and sampled, and a Gaussian kernel machine."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.data.preprocess import Preprocessor
from aucdist.data.ranges import moments
from aucdist.engine.blocks import Blocks, Summary
from aucdist.errors import InputError
from aucdist.kernels.rows import CsrRows
from aucdist.metrics.counts import BoundedCounts
from aucdist.objectives.gaussian import KernelBlock, gaussian_kernel
from aucdist.sampling.distance import Rule

CHUNK_BYTES = 2**24
"""Of kernel values at a time, where they are not kept: about what a core's caches hold."""

NO_SCALING = Preprocessor((), "none", None, None)


@dataclass(frozen=True, eq=False)
class Prepare:
    """From rows as they came to those of the fit: scaled, sampled, without those of weight 0."""

    scaling: Preprocessor
    rule: Rule | None = None

    def __call__(self, block: Block) -> Block:
        """Return the block's rows of the fit."""
        block = self.scaling.transform(block)
        if self.rule is not None:
            block = self.rule(block)
        elif not (there := block.weights() > 0).all():
            block = block.take(np.flatnonzero(there), index=block.index)
        # Where rows outside a fold have weight 0, the others have weight 1: those are no weights.
        return replace(block, weight=None) if (block.weights() == 1).all() else block


@dataclass(frozen=True, eq=False)
class Machine:
    """A Gaussian kernel machine.

    `scaling`: of the rows to be scored; those it knows are scaled.
    `vectors`: of shape (n_vectors, n_features).
    `alpha`: of shape (n_vectors,), float64.
    """

    scaling: Preprocessor
    vectors: Any
    sigma: float
    alpha: np.ndarray

    def scores(self, block: Block) -> np.ndarray:
        """Return the score of each row, some rows at a time."""
        out = np.empty(block.n_samples)
        rows = max(1, CHUNK_BYTES // (8 * len(self.alpha)))
        for first in range(0, len(out), rows):
            part = slice(first, first + rows)
            some = self.scaling.transform(block.take(np.arange(len(out))[part]))
            out[part] = gaussian_kernel(some.X, self.vectors, self.sigma) @ self.alpha
        return out


@dataclass(frozen=True, eq=False)
class GramRows:
    """From rows to their kernel values with all rows of the fit, kept, or found some rows at a time when they are needed."""

    vectors: Any
    sigma: float
    at_once: int | None

    def __call__(self, block: Block) -> Block:
        """Return the block of the Gram matrix's rows."""
        if self.at_once is None:
            return block.with_X(gaussian_kernel(block.X, self.vectors, self.sigma))
        return KernelBlock(**vars(block), vectors=self.vectors, sigma=self.sigma, at_once=self.at_once)


def rows_at_once(n_rows: int, n_blocks: int, bound: int) -> int | None:
    """Return of how many rows of the Gram matrix each block may hold values at a time; None where it can keep all of its own.

    `bound`: bytes, for all blocks together.
    Raises InputError if not even one row for each block is within the bound.
    """
    row = 8 * n_rows
    if row * n_rows <= bound:
        return None
    if row * n_blocks > bound:
        raise InputError(
            f"one row of the Gram matrix for each block ({n_rows} values for each of {n_blocks}) takes {row * n_blocks} bytes, "
            f"and gram_bytes is {bound}: raise it, or sample fewer rows"
        )
    return min(max(1, CHUNK_BYTES // row), bound // (row * n_blocks))


def standard_scaling(blocks: Blocks) -> Preprocessor:
    """Return what gives each feature mean 0 and variance 1 over all rows; sparse rows variance 1 alone."""
    with np.errstate(
        over="ignore", invalid="ignore", divide="ignore"
    ):  # what is beyond floating point is refused below
        found = blocks.without_memory().reduce(_moments)
        total = found["moments"]
        # By the values themselves: rounding leaves a constant column a variance just above zero.
        factor = 1.0 / np.where(total.ranges.constant & np.isfinite(total.mean), 1.0, np.sqrt(total.m2 / total.count))
    if not (np.isfinite(factor) & (factor > 0)).all():
        bad = int(np.argmin(np.isfinite(factor) & (factor > 0)))
        raise InputError(f"feature {bad} (from 0): its values are too large or too small to scale them; use scale=None")
    return Preprocessor((), "standard", None if any(found["sparse"]) else total.mean, factor)


def _moments(block: Block, memory: None) -> tuple[None, Summary]:
    there = block.weights() > 0
    rows = block.rows if there.all() else block.take(np.flatnonzero(there)).rows
    with np.errstate(over="ignore", invalid="ignore"):  # on a worker too
        found = moments(rows)
    return None, {"moments": found, "sparse": [isinstance(rows, CsrRows)]}


def composed(first: Preprocessor, then: Preprocessor) -> Preprocessor:
    """Return the scaling that does one after the other, both of them from `standard_scaling`."""
    assert first.factor is not None
    assert then.factor is not None
    shift = None if first.shift is None or then.shift is None else first.shift + then.shift / first.factor
    return Preprocessor((), "standard", shift, first.factor * then.factor)


def rows_of(block: Block, memory: None) -> tuple[None, Summary]:
    """Send the rows and their labels."""
    return None, {"X": [block.X], "y": [block.y]}


def count_machine_scores(block: Block, memory: None, machine: Machine) -> tuple[None, Summary]:
    """Count the scores of a kernel machine."""
    return None, {"counts": BoundedCounts.from_scores(block.y, machine.scores(block), block.weight)}
