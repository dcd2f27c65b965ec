"""Edges of bins at quantiles of the training rows, by one look at a sample of them and one at all of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from aucdist.data.block import Block, stacked
from aucdist.data.missing import has_missing
from aucdist.engine.blocks import Blocks, Summary
from aucdist.kernels.rows import CsrRows
from aucdist.solvers.sample import LEAST_GROUPS, draw_from_block, draw_groups

MOST_ROWS = 2**15
"""The sample has at most about so many rows of each class: quantiles of it are off by less than a tenth of 1/64."""
MOST_VALUES = 2**24
"""And at most so many values in all, which come to the client."""


@dataclass(frozen=True, eq=False)
class Bins:
    """The bins of one feature.

    `edges`, of shape (n_bins - 1,), float64: a value is in the bin of the number of edges below it.
    `means`, of shape (n_bins,), float64: the mean of the sample's values in each bin.
    `shares`, of shape (n_bins,), float64: the share of the rows with a value that are in each bin.
    """

    edges: np.ndarray
    means: np.ndarray
    shares: np.ndarray


@dataclass(frozen=True, eq=False)
class Most:
    """The largest of the blocks' values, element by element; they merge by ``+``."""

    values: np.ndarray

    def __add__(self, other: "Most") -> "Most":
        """Return the larger of both."""
        return Most(np.maximum(self.values, other.values))


def draw_rows(blocks: Blocks, most: int = MOST_ROWS, *, whole_groups: bool = False) -> Block:
    """Return rows of both classes, chosen by their ids, each of the weight of the rows that it stands for.

    All rows where a class has at most `most`: so the choice does not depend on how the rows lie in blocks. With `whole_groups`
    groups are drawn in place of rows, so that their pairs are there, unless these would be too few.
    """
    most = max(64, min(most, MOST_VALUES // (2 * max(blocks.n_features, 1))))
    shares = tuple(most / n if n > most else 2.0 for n in (blocks.n_neg, blocks.n_pos))
    blank = blocks.without_memory()
    if whole_groups and max(blocks.n_neg, blocks.n_pos) > most:
        drawn = stacked(blank.reduce(draw_groups, 2.0 * most / blocks.n_samples)["parts"])
        assert drawn.group is not None
        if len(np.unique(drawn.group)) >= LEAST_GROUPS:
            return drawn.take(np.argsort(drawn.row_id, kind="stable"))
    drawn = stacked(blank.reduce(draw_from_block, shares)["parts"])
    return drawn.take(np.argsort(drawn.row_id, kind="stable"))


def missing_columns(blocks: Blocks) -> np.ndarray:
    """Return whether each column has a missing value in any row of a weight above 0, ndarray of bool."""
    return np.asarray(blocks.without_memory().reduce(_has_missing)["missing"].values)


def _has_missing(block: Block, memory: Any) -> tuple[Any, Summary]:
    rows, found = block.rows, np.zeros(block.n_features, dtype=bool)
    if not has_missing(rows):
        return memory, {"missing": Most(found)}
    if block.weight is not None:
        rows = block.take(np.flatnonzero(block.weight > 0)).rows
    if isinstance(rows, CsrRows):
        found[rows.indices[np.isnan(rows.values)]] = True
    else:
        found = np.isnan(rows.values).any(axis=0)
    return memory, {"missing": Most(found)}


def column_of(block: Block, j: int) -> np.ndarray:
    """Return a column of the rows, float64 of shape (n_samples,)."""
    X = block.X
    return np.asarray(sp.csr_matrix(X)[:, [j]].toarray().ravel() if sp.issparse(X) else X[:, j], dtype=np.float64)


def bins_of(values: np.ndarray, weight: np.ndarray, n_bins: int) -> Bins:
    """Return bins of about equal weight; a value that is heavier than a bin gets one of its own.

    `values`, of shape (n,), float64: missing ones are ignored.
    `weight`, of shape (n,), float64: above 0.
    `n_bins`: at most so many bins; as many as there are different values, if those are fewer.
    """
    there = ~np.isnan(values)
    distinct, of_value = np.unique(values[there], return_inverse=True)
    mass = np.bincount(of_value, weight[there], minlength=len(distinct))
    if len(distinct) == 0:
        return Bins(np.zeros(0), np.zeros(1), np.zeros(1))
    last = _last_of_bins(mass, n_bins)
    below, above = distinct[last[:-1]], distinct[last[:-1] + 1]
    middle = 0.5 * below + 0.5 * above  # their sum may be beyond floating point
    edges = np.where((below <= middle) & (middle < above), middle, below)
    bin_of = np.searchsorted(last, np.arange(len(distinct)))
    shares = np.bincount(bin_of, mass, minlength=len(last))
    means = np.bincount(bin_of, mass * distinct, minlength=len(last)) / shares
    return Bins(edges, means, shares / shares.sum())


def _last_of_bins(mass: np.ndarray, n_bins: int) -> np.ndarray:
    """Return the place of the last value of each bin."""
    n = len(mass)
    if n <= n_bins:
        return np.arange(n)
    heavy = np.zeros(n, dtype=bool)
    while True:  # a value that is heavier than a bin of the others leaves more bins to those
        left = n_bins - np.count_nonzero(heavy)
        size = mass[~heavy].sum() / max(left, 1)
        more = heavy | (mass >= size)
        if (more == heavy).all() or np.count_nonzero(more) >= n_bins:
            break
        heavy = more
    light = np.where(heavy, 0.0, mass)
    total = light.sum()
    below = np.cumsum(light)
    left = n_bins - np.count_nonzero(heavy)
    number = (
        np.minimum((below - 0.5 * light) / total * left, left - 1e-9).astype(int) if total > 0 else np.zeros(n, int)
    )
    # A bin ends where the next value is of another number, or where a heavy value begins or ends.
    ends = np.ones(n, dtype=bool)
    ends[:-1] = (number[1:] != number[:-1]) | heavy[1:] | heavy[:-1]
    return _joined(np.flatnonzero(ends), mass, n_bins)


def _joined(last: np.ndarray, mass: np.ndarray, n_bins: int) -> np.ndarray:
    """Join the lightest neighbours until there are no more than `n_bins` bins."""
    while len(last) > n_bins:
        weight = np.diff(np.cumsum(mass)[last], prepend=0.0)
        last = np.delete(last, int(np.argmin(weight[:-1] + weight[1:])))
    return last
