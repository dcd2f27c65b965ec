"""Cuts of the pairwise hinge if both classes are large.

The anchors, which are the rows of the smaller class, are counted in cells.

`PairCuts` sends the sorted scores of the anchors to all blocks. If there are more than `MAX_ANCHORS` of them, the blocks keep
the scores. They send how many anchors are in each of K intervals of scores, called cells. What is sent in a round, and what the
client stores, then does not grow with the number of rows. `aucdist.pairs.kernels` says why the bounds stay valid: the dual
value is exact, and the primal value is an **upper bound** of the objective, which exceeds it by `Round.slack` at most.

The edges of the cells are placed so that the slack is small. The kink of a row of the larger class is the score up to which an
anchor is in an active pair with it. The slack of a cell is about u W (h - l) / 4, where W is the weight of its anchors, u the
weight of the rows whose kink lies in it, and l and h are its lowest and highest score. The sum over K cells is smallest if the
density of the edges is proportional to ``(u W)^(1/3)``. u and W are taken from the last cut. If the slack of a cut is too
large, the cut is computed again with edges from its own u and W. The steps of a line search need the anchors only as a sample,
whose scores are sent as those of few anchors are.

If the anchors are the negatives and only the highest-scoring ones count, the others have weight 0 in their cells.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from aucdist.engine.blocks import Blocks, Summary, without_rows
from aucdist.pairs.cuts import PairCuts
from aucdist.pairs.kernels import fill_cells, index_edges
from aucdist.pairs.loss import Anchors
from aucdist.pairs.problem import PairMemory, PairObjective
from aucdist.pairs.top_negatives import Cutoff
from aucdist.parameters import frozen
from aucdist.solvers.rounding import EPS

CELLS = 2**13
"""The number of cells. A quarter of them is spread over all anchors, independently of the last cut."""

SEARCH_PLACES = 2**16
"""The number of entries of the table by which the cells of scores are found. Few entries have more than one edge, and the table
fits into the cache of a core."""

ANCHORS_DRAWN = 20_000
"""The number of anchors that are drawn, by their ids, for the line search and the first edges."""


@frozen
class CellSums:
    """The weights and sums of scores of the anchors in each cell. The sums of several blocks are merged by ``+``.

    Attributes
    ----------
    sums : ndarray of shape (2, n_cells), float64
        The weight of the anchors, and the sum of weight times score.
    lowest, highest : ndarray of shape (n_cells,), float64
        The lowest and the highest score; inf and -inf in an empty cell.
    """

    sums: ndarray
    lowest: ndarray
    highest: ndarray

    def __add__(self, other: "CellSums") -> "CellSums":
        low, high = np.minimum(self.lowest, other.lowest), np.maximum(self.highest, other.highest)
        return CellSums(self.sums + other.sums, low, high)

    def as_anchors(self) -> tuple[Anchors, ndarray]:
        """Return one anchor for each cell that is not empty, with its mean score and its weight, and the numbers of these cells.

        Two more anchors of weight 0 are at the lowest and at the highest score, so that the hinge is exact for rows whose kink
        lies beyond them.
        """
        nonempty = np.flatnonzero(self.sums[0] > 0.0)
        (weight, score), low, high = self.sums[:, nonempty], self.lowest[nonempty], self.highest[nonempty]
        mean = np.clip(score / weight, low, high)
        width = high - low
        row_slack = np.divide(weight * (high - mean) * (mean - low), width, out=np.zeros_like(low), where=width > 0.0)
        scores, weights = np.concatenate((low[:1], mean, high[-1:])), np.concatenate(([0.0], weight, [0.0]))
        # If the first r anchors are active, the kink lies in the cell of anchor r - 1, in that of anchor r, or between the two.
        row_slack = np.concatenate(([0.0], np.maximum(np.append(row_slack, 0.0), np.insert(row_slack, 0, 0.0)), [0.0]))
        return Anchors(scores, weights, np.array([0, len(scores)]), row_slack=row_slack), nonempty


class CellEdges(NamedTuple):
    """The edges of cells, and the index with which kernels find the cell of a score.

    Attributes
    ----------
    at : ndarray of shape (n_cells - 1,), float64
        The edges, ascending.
    table, low, scale
        What `aucdist.pairs.kernels.index_edges` writes and returns.
    """

    at: ndarray
    table: ndarray
    low: float
    scale: float

    @classmethod
    def of(cls, at: ndarray) -> "CellEdges":
        """Return distinct edges."""
        at = np.unique(at)
        table = np.empty(SEARCH_PLACES, dtype=np.int16)
        low, scale = index_edges(at, table)
        return cls(at, table, low, scale)


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


@without_rows
def count_in_cells(
    number: int, memory: PairMemory, step: float, edges: CellEdges, cutoff: Cutoff | None
) -> tuple[PairMemory, Summary]:
    """Assign the anchors to cells by their scores at a step along the line. Negatives below a cutoff get weight 0."""
    scores, counted, weights = memory.anchors.scores_at(step), memory.anchors.weight, memory.anchors.weights
    if cutoff is not None:
        counted = weights = weights * cutoff.fractions(-scores)
    n_cells = len(edges.at) + 1
    cells, sums = np.empty(len(scores), dtype=np.int32), np.zeros((2, n_cells))
    lowest, highest = np.full(n_cells, np.inf), np.full(n_cells, -np.inf)
    fill_cells(scores, weights, edges, cells, sums, (lowest, highest))
    return replace(memory, cells=cells, cell_weights=counted), CellSums(sums, lowest, highest)


# ---- client: runs the steps -------------------------------------------------------------------------------------------


class CellCuts(PairCuts):
    """`PairCuts` for many anchors. The parameters are the same, and all rows belong to one group."""

    def __init__(self, blocks: Blocks, objective: PairObjective, start: ndarray):
        super().__init__(blocks, objective, start, keep_one_in=max(1, min(blocks.n_pos, blocks.n_neg) // ANCHORS_DRAWN))
        self._edges: CellEdges | None = None

    def value_error(self, largest_score: float) -> float:
        """Return a bound on the additional rounding by the mean scores of the cells: a few roundings of scores."""
        return 16.0 * EPS * (1.0 + largest_score)

    def cutoffs(self, step: float, scores: ndarray) -> tuple[Cutoff | None, Cutoff | None]:
        """Return which negatives count for a cut at a step, and which for the loss there.

        Both are hard cutoffs, without partial fractions.
        """
        exact = self.negatives.cutoff(self.blocks, step)
        return exact, exact

    def anchors_at(self, step: float, scores: ndarray, cutoff: Cutoff | None) -> tuple[Anchors, ndarray, float]:
        """Return an anchor for each cell, the numbers of these cells, and the total weight of all anchors, by one reduction."""
        edges = self._edges
        if edges is None:
            evenly = np.linspace(scores.min(), scores.max(), CELLS // 2)
            edges = CellEdges.of(np.concatenate((quantiles_of(scores, CELLS // 2), evenly)))
        anchor_cutoff = cutoff if self.negatives.are_anchors else None
        cells = self.blocks.reduce(count_in_cells, step, edges, anchor_cutoff)
        self._last = edges, cells, scores
        anchors, nonempty = cells.as_anchors()
        return anchors, nonempty, float(anchors.weights.sum())

    def slopes_of_anchors(self, slope_sums: ndarray, anchors: Anchors, order: ndarray) -> ndarray:
        """Return the derivatives of the loss for weights of 1 in each cell, and refine the edges for the next cut."""
        edges, cells, scores = self._last
        near = np.zeros(len(edges.at) + 1)
        near[order] = slope_sums[1:-2] + slope_sums[2:-1]
        # The density of the edges is the cubic root of the product of both classes' weights in the cells. Rows whose kinks lie
        # in a cell count even if all scores of the cell lie on one side of them, because other edges would change this.
        low = np.concatenate(([np.minimum(edges.at[0], cells.lowest[0])], edges.at))
        high = np.concatenate((edges.at, [np.maximum(edges.at[-1], cells.highest[-1])]))
        density, refined = np.cbrt(near * cells.sums[0] * (high - low)), edges.at[:0]
        if density.any():
            ends, n_refined = np.concatenate(([0.0], np.cumsum(density / density.sum()))), 3 * CELLS // 4
            refined = np.interp((np.arange(n_refined) + 0.5) / n_refined, ends, np.append(low, high[-1]))
        self._edges = CellEdges.of(np.concatenate((refined, quantiles_of(scores, CELLS // 4))))
        slopes, n = np.zeros(len(near)), len(anchors.scores)
        unit_anchors = replace(anchors, weights=np.ones(n))
        slopes[order] = self.loss.anchor_slopes(slope_sums, unit_anchors, np.arange(n))[1:-1]
        return slopes


def quantiles_of(scores: ndarray, n: int) -> ndarray:
    """Return n quantiles of the scores."""
    # numpy.quantile takes seconds for this many scores.
    quantiles: ndarray = np.sort(scores)[np.linspace(0, len(scores) - 1, n).astype(np.int64)]
    return quantiles
