"""Cuts of the pairwise hinge where both classes are large: the anchors are counted in a histogram of scores.

`PairCuts` sends the sorted scores of the smaller class, the anchors, to all blocks. Where these are more than
`MOST_ANCHORS`, the blocks keep them, and send how many of them are in each of K cells instead: then nothing that travels in a
round, and nothing that the client holds of it, grows with the rows. `aucdist.solvers.pairs.cell_kernels` says why the bounds stay
true: the dual value is exact, and the primal value is an **upper bound** of the objective, above it by `Round.slack` at most.

The edges of the cells lie where they are needed: the slack of a cell is about u W (h - l) / 4, u being the weight of the rows
whose threshold lies in it, so that the sum over K cells is least where the edges are as dense as ``(u W)^(1/3)``. What u and W
are is known from the last cut; a cut whose slack is too large is taken again with the edges that it asks for. The steps of a line
search need the anchors only as a sample, whose scores are sent as those of few anchors are.

Where the anchors are the negatives and only the highest-scoring ones count, the others weigh nothing in their cells.
"""

from dataclasses import dataclass, replace

import numpy as np

from aucdist.data.block import Block
from aucdist.data.split import scrambled
from aucdist.engine.blocks import Summary, without_rows
from aucdist.solvers.pairs.cell_kernels import fill_cells, index_edges
from aucdist.solvers.pairs.cuts import Cut, PairCuts, moved, shifts, take_cut
from aucdist.solvers.pairs.loss import Anchors
from aucdist.solvers.pairs.problem import CutMemory, ones, score_at_start, sort_by_class, sum_of_rows, unless_ones
from aucdist.solvers.pairs.top_negatives import Counting, Threshold
from aucdist.solvers.rounding import EPS

CELLS = 2**13
"""The number of cells. A quarter of them is spread over all anchors, whatever the last cut was."""

PLACES = 2**16
"""The size of the table by which scores find their cells. Few of its places have more than one edge, and it fits into
the cache of a core."""

AT_ONCE = 1024
"""The number of rows that are assigned to cells before they are added up."""

SAMPLE, SEED = 20_000, 5
"""The number of anchors that are drawn, by their ids, for the line search and the first edges, and the seed."""

SLACK_OF_GAP, MOST_TRIES = 0.05, 4
"""The slack may be this share of the gap. At most the second number of cuts is taken at a point to reach it."""


@dataclass(frozen=True, eq=False)
class CellMemory(CutMemory):
    """The memory of a block: its rows sorted by class, and their scores.

    Attributes
    ----------
    anchor_weight : ndarray of shape (n_anchors,), float64, or None
    anchor_scores, anchor_present : ndarray of shape (n_anchors,), float64
        The same of the smaller class as `weight`, `scores` and `present` of the larger one.
    drawn : ndarray of int64
        The positions among the anchors of those whose scores are sent.
    cells : ndarray of shape (n_anchors,), int32
    counting : ndarray of shape (n_anchors,), float64, or None
        The cell of each anchor where the last cut was taken, and what it weighed there, 0 for a negative that does not count;
        None where all weigh 1.
    """

    anchor_weight: np.ndarray | None
    anchor_scores: np.ndarray
    anchor_present: np.ndarray
    drawn: np.ndarray
    cells: np.ndarray
    counting: np.ndarray | None

    @property
    def anchor_weights(self) -> np.ndarray:
        """The weights of the anchors, float64 of shape (n_anchors,); not to be written to."""
        return ones(len(self.anchors)) if self.anchor_weight is None else self.anchor_weight

    def anchor_scores_at(self, step: float | None) -> np.ndarray:
        """Return the anchors' scores: those of the point that was scored last, or at a step of the way to it."""
        if step is None:
            return self.anchor_scores
        return self.anchor_present + step * (self.anchor_scores - self.anchor_present)


@dataclass(frozen=True, eq=False)
class CellSums:
    """The weights and score sums of the anchors in each cell; those of several blocks merge by ``+``.

    Attributes
    ----------
    sums : ndarray of shape (2, n_cells), float64
        Their weight, and the sum of weight times score.
    lowest, highest : ndarray of shape (n_cells,), float64
        The least and the greatest score; inf and -inf in an empty cell.
    """

    sums: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray

    def __add__(self, other: "CellSums") -> "CellSums":
        low, high = np.minimum(self.lowest, other.lowest), np.maximum(self.highest, other.highest)
        return CellSums(self.sums + other.sums, low, high)

    def as_anchors(self) -> tuple[Anchors, np.ndarray]:
        """Return one anchor for each cell that is not empty, with its mean score and its weight, and the numbers of these cells.

        Two anchors of weight 0 stand before and behind them, at the least and the greatest score: rows whose threshold lies
        beyond are in no doubt.
        """
        which = np.flatnonzero(self.sums[0] > 0.0)
        (weight, score), low, high = self.sums[:, which], self.lowest[which], self.highest[which]
        mean = np.clip(score / weight, low, high)
        width = high - low
        doubt = np.divide(weight * (high - mean) * (mean - low), width, out=np.zeros_like(low), where=width > 0.0)
        scores, weights = np.concatenate((low[:1], mean, high[-1:])), np.concatenate(([0.0], weight, [0.0]))
        # With the first r anchors active, the threshold lies in the cell of anchor r - 1, that of anchor r, or between them.
        doubt = np.concatenate(([0.0], np.maximum(np.append(doubt, 0.0), np.insert(doubt, 0, 0.0)), [0.0]))
        return Anchors(scores, weights, np.array([0, len(scores)]), doubt=doubt), which


@dataclass(frozen=True, eq=False)
class Edges:
    """The edges of cells, and the index by which the cells of scores are found.

    Attributes
    ----------
    at : ndarray of shape (n_cells - 1,), float64
        Ascending.
    table, low, scale
        Result of `aucdist.solvers.pairs.cell_kernels.index_edges`.
    """

    at: np.ndarray
    table: np.ndarray
    low: float
    scale: float

    @classmethod
    def of(cls, at: np.ndarray) -> "Edges":
        """Return edges, each of them once."""
        at = np.unique(at)
        table = np.empty(PLACES, dtype=np.int16)
        low, scale = index_edges(at, table)
        return cls(at, table, low, scale)

    @property
    def search(self) -> tuple[np.ndarray, np.ndarray, float, float]:
        """The arguments of a search, in the order of the kernels."""
        return self.at, self.table, self.low, self.scale


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def sort_and_draw(block: Block, memory: None, w: np.ndarray, sign: int, every: int) -> tuple[CellMemory, Summary]:
    """Sort the rows by class, draw one in `every` anchors, and score all rows at the start, the best point so far."""
    sorted_, counts = sort_by_class(block, memory, sign)
    weights = block.weights()[sorted_.anchors]
    drawn = np.flatnonzero(scrambled(block.row_id[sorted_.anchors], SEED) % np.uint64(every) == 0)
    scores, squares = score_at_start(block, sign * w)
    present, anchor_present = scores.take(sorted_.others), scores.take(sorted_.anchors)
    at_start = CellMemory(
        **vars(replace(sorted_, scores=present)), present=present, anchor_weight=unless_ones(weights),
        anchor_scores=anchor_present, anchor_present=anchor_present, drawn=drawn, cells=np.zeros(0, dtype=np.int32),
        counting=None, squares=squares,
    )  # fmt: skip
    return at_start, {**counts, "scores": [anchor_present[drawn]], "weights": [weights[drawn]]}


def score_and_draw(block: Block, memory: CellMemory, w: np.ndarray, sign: int) -> tuple[CellMemory, Summary]:
    """Score the rows at w, and return the scores of the anchors that were drawn."""
    scores = block.scores(sign * w)
    of_anchors = scores.take(memory.anchors)
    return replace(memory, scores=scores.take(memory.others), anchor_scores=of_anchors), {
        "scores": [of_anchors[memory.drawn]]
    }


@without_rows
def count_in_cells(
    block: int, memory: CellMemory, step: float, edges: Edges, threshold: Threshold | None
) -> tuple[CellMemory, Summary]:
    """Put the anchors into cells by their scores at a step of the way; beyond a threshold of negatives they weigh nothing."""
    scores, counting, weights = memory.anchor_scores_at(step), memory.anchor_weight, memory.anchor_weights
    if threshold is not None:
        counting = weights = weights * threshold.parts(-scores)
    n_cells = len(edges.at) + 1
    cells, sums = np.empty(len(scores), dtype=np.int32), np.zeros((2, n_cells))
    lowest, highest = np.full(n_cells, np.inf), np.full(n_cells, -np.inf)
    fill_cells(scores, weights, edges.search, cells, sums, (lowest, highest))
    return replace(memory, cells=cells, counting=counting), {"cells": CellSums(sums, lowest, highest)}


def finish_by_cells(
    block: Block, memory: CellMemory, slopes: np.ndarray, step: float | None
) -> tuple[CellMemory, Summary]:
    """Return the gradient; with a step, where the cut was taken, that becomes the present point."""
    of_anchors = slopes.take(memory.cells)
    if memory.counting is not None:
        of_anchors *= memory.counting
    gradient = sum_of_rows(block, memory, of_anchors)
    present = memory.anchor_present if step is None else memory.anchor_scores_at(step)
    return replace(moved(memory, step), anchor_present=present, anchor_scores=present), {"gradient": gradient}


# ---- rounds: run by the client ----------------------------------------------------------------------------------------


def refined_edges(edges: np.ndarray, cells: CellSums, near: np.ndarray, n: int) -> np.ndarray:
    """Return n edges whose density is the cubic root of the product of both classes' weights in the cells of a cut.

    Parameters
    ----------
    edges : ndarray of shape (n_cells - 1,), float64
    near : ndarray of shape (n_cells,), float64
        What the rows weigh whose thresholds lie in each cell. They count even where all scores of the cell are on one side:
        without its edges they would not be.
    """
    low = np.concatenate(([np.minimum(edges[0], cells.lowest[0])], edges))
    high = np.concatenate((edges, [np.maximum(edges[-1], cells.highest[-1])]))
    density = np.cbrt(near * cells.sums[0] * (high - low))
    if not density.any():
        return edges[:0]
    ends = np.concatenate(([0.0], np.cumsum(density / density.sum())))
    return np.interp((np.arange(n) + 0.5) / n, ends, np.append(low, high[-1]))


class CellCuts(PairCuts):
    """`PairCuts` for many anchors; the parameters are the same, and all rows are one group."""

    _edges: Edges | None = None

    def sort_rows(self) -> Summary:
        """Sort the rows by class, and score them at the first point."""
        every = max(1, min(self.blocks.n_pos, self.blocks.n_neg) // SAMPLE)
        return self.blocks.reduce(sort_and_draw, self._w, self.sign, every)

    def score(self, w: np.ndarray) -> np.ndarray:
        """Score all rows at w, and return the scores of the sample of anchors."""
        return np.concatenate(self.blocks.reduce(score_and_draw, w, self.sign)["scores"])

    def value_error(self, reach: float) -> float:
        """Return a bound on what the mean scores of the cells add to the rounding: a few roundings of scores."""
        return 16.0 * EPS * (1.0 + reach)

    def cut_at(self, step: float, scores: np.ndarray, gap: float, h: float, width: float) -> Cut:
        """Return a cut at a step of the way to the point scored last, over whole negatives; see `PairCuts.cut_at`."""
        evenly = np.linspace(scores.min(), scores.max(), CELLS // 2)
        edges = self._edges or Edges.of(np.concatenate((spread(scores, CELLS // 2), evenly)))
        threshold, of_anchors = (
            self.negatives.threshold(self.blocks, step, of_anchors=of_anchors) for of_anchors in (False, True)
        )
        for trial in range(1, MOST_TRIES + 1):
            cells = self.blocks.reduce(count_in_cells, step, edges, of_anchors)["cells"]
            anchors, which = cells.as_anchors()
            taken = self.blocks.reduce(take_cut, step, self.loss, anchors, shifts(h), threshold)
            slack = float(taken["doubt"]) / self.mass
            near = np.zeros(len(edges.at) + 1)
            near[which] = taken["slope_sums"][1:-2] + taken["slope_sums"][2:-1]
            refined = refined_edges(edges.at, cells, near, 3 * CELLS // 4)
            self._edges = Edges.of(np.concatenate((refined, spread(scores, CELLS // 4))))
            if slack <= SLACK_OF_GAP * gap or trial == MOST_TRIES:
                break
            edges = self._edges
        slopes, n = np.zeros(len(edges.at) + 1), len(anchors.scores)
        slopes[which] = self.loss.anchor_slopes(taken["slope_sums"], anchors, np.ones(n), np.arange(n))[1:-1]
        counting = Counting(anchors.weights, threshold if of_anchors is None else of_anchors)
        return self.as_cut(
            step, taken, float(taken["loss"]) / self.mass + slack, slack, slopes, counting, len(shifts(h))
        )

    def finish(self, cut: Cut, keep: bool) -> np.ndarray:
        """Return the gradient of a cut; see `PairCuts.finish`."""
        summary = self.blocks.reduce(finish_by_cells, cut.slopes, cut.step if keep else None)
        gradient: np.ndarray = summary["gradient"] * (self.sign * cut.scale / self.mass)
        return gradient


def spread(scores: np.ndarray, n: int) -> np.ndarray:
    """Return n quantiles of the scores."""
    # Not numpy.quantile, which takes seconds for so many.
    quantiles: np.ndarray = np.sort(scores)[np.linspace(0, len(scores) - 1, n).astype(np.int64)]
    return quantiles
