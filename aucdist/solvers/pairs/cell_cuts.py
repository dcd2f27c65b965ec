"""Cuts where both classes are large: the anchors lie in cells of scores.

`PairCuts` sends the sorted scores of the smaller class, the anchors, to all blocks. Where these are more than
`MOST_ANCHORS`, the blocks keep them, and send how many of them are in each of K cells instead: then nothing that travels in a
round, and nothing that the client holds of it, grows with the rows. `aucdist.kernels.anchor_cells` says why the bounds stay
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
from aucdist.kernels.anchor_cells import cut_cells, fill_cells, index_edges
from aucdist.kernels.rows import project
from aucdist.solvers.pairs.cuts import MAX_COMPONENTS, Cut, PairCuts, add_up_gradients, cut_components, moved
from aucdist.solvers.pairs.problem import CutMemory, ones, sort_by_class, unless_ones
from aucdist.solvers.pairs.top import Threshold
from aucdist.solvers.rounding import EPS

CELLS = 2**13
"""So many cells, of which a quarter is spread over all anchors, whatever the last cut says."""

PLACES = 2**16
"""The size of the table by which scores find their cells: few places have more than one edge, and it stays in a core's cache."""

AT_ONCE = 1024
"""So many rows find their cells before they are added up."""

SAMPLE, SEED = 20_000, 5
"""So many anchors are drawn, by their ids, for the line search and the first edges."""

SLACK_OF_GAP, MOST_TRIES = 0.05, 4
"""The slack may be this share of the gap; so many cuts at most are taken at a point to come there."""


@dataclass(frozen=True, eq=False)
class CellMemory(CutMemory):
    """What a block keeps.

    Attributes
    ----------
    anchor_weight : ndarray of shape (n_anchors,), float64, or None
    anchor_scores, anchor_best : ndarray of shape (n_anchors,), float64
        Of the smaller class: as `weight`, `scores` and `best` of the larger one.
    drawn : ndarray of int64
        The positions among the anchors of those whose scores are sent.
    cells : ndarray of shape (n_anchors,), int32
    counting : ndarray of shape (n_anchors,), float64, or None
        The cell of each anchor where the last cut was taken, and what it weighed there, 0 for a negative that does not count;
        None where all weigh 1.
    """

    anchor_weight: np.ndarray | None
    anchor_scores: np.ndarray
    anchor_best: np.ndarray
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
        return self.anchor_best + step * (self.anchor_scores - self.anchor_best)


@dataclass(frozen=True, eq=False)
class CellSums:
    """What is known of the anchors in each cell; those of several blocks merge by ``+``.

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

    @property
    def weight(self) -> np.ndarray:
        """The weight of each cell's anchors, float64 of shape (n_cells,)."""
        return self.sums[0]

    def points(self) -> np.ndarray:
        """Return them as `cut_cells` takes them."""
        weight, score = self.sums
        there = weight > 0.0
        low, high = np.where(there, self.lowest, 0.0), np.where(there, self.highest, 0.0)
        mean = np.clip(np.divide(score, weight, out=np.zeros_like(score), where=there), low, high)
        width = high - low
        chord = np.divide(weight * (high - mean), width, out=np.zeros_like(low), where=width > 0.0)
        below = np.cumsum(self.sums, axis=1) - self.sums
        return np.stack([*below, weight, score, low, width, chord, np.zeros_like(low)], axis=1)


@dataclass(frozen=True, eq=False)
class Edges:
    """Edges of cells, and the table by which scores find their cells.

    Attributes
    ----------
    at : ndarray of shape (n_cells - 1,), float64
        Ascending.
    table, low, scale
        Result of `aucdist.kernels.anchor_cells.index_edges`.
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

    def search(self) -> tuple[np.ndarray, np.ndarray, float, float]:
        """Return the arguments of a search, in the order of the kernels."""
        return self.at, self.table, self.low, self.scale


@dataclass(frozen=True, eq=False)
class SentCells:
    """The cells, as they are sent to the blocks."""

    edges: Edges
    points: np.ndarray

    def new_sums(self, n_components: int) -> Summary:
        """Return zeros: two bounds on the loss, slope sums for each component, the weight of the rows in doubt in each cell."""
        n_cells = len(self.points)
        return {
            "above": 0.0,
            "below": 0.0,
            "slope_sums": np.zeros((n_components, n_cells + 1)),
            "near": np.zeros(n_cells),
        }

    def for_groups(self, memory: CellMemory, component: int) -> "SentCells":
        """Return the cells, which all rows search."""
        return self

    def cut(self, scores: np.ndarray, weights: np.ndarray, coefs: np.ndarray, sums: Summary, component: int) -> float:
        """Return the height of the cut of a component's rows."""
        slope_sums, near = sums["slope_sums"][component], sums["near"]
        cells = np.empty(AT_ONCE, dtype=np.int32)
        height, most, least = cut_cells(
            scores, weights, *self.edges.search(), self.points, cells, coefs, slope_sums, near
        )
        sums["above"] += most
        sums["below"] += least
        return float(height)

    def total(self, scores: np.ndarray, weights: np.ndarray) -> float:
        """Return an upper bound on the loss of these rows."""
        sums = self.new_sums(1)
        self.cut(scores, weights, np.empty(len(scores)), sums, 0)
        return float(sums["above"])


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def sort_and_draw(
    block: Block, memory: None, w: np.ndarray, sign: int, n_components: int, every: int
) -> tuple[CellMemory, Summary]:
    """Sort the rows by class, draw one in `every` anchors, and score all rows at the start, the best point so far."""
    sorted_, _ = sort_by_class(block, memory, sign, n_components)
    weights = block.weights()[sorted_.anchors]
    drawn = np.flatnonzero(scrambled(block.row_id[sorted_.anchors], SEED) % np.uint64(every) == 0)
    nothing = np.zeros(0)
    unscored = CellMemory(
        **vars(sorted_), best=nothing, anchor_weight=unless_ones(weights), anchor_scores=nothing, anchor_best=nothing,
        drawn=drawn, cells=np.zeros(0, dtype=np.int32), counting=None,
    )  # fmt: skip
    scored, summary = score_and_draw(block, unscored, w, sign)
    at_start = replace(scored, best=scored.scores, anchor_best=scored.anchor_scores)
    return at_start, {**summary, "weights": [weights[drawn]]}


def score_and_draw(block: Block, memory: CellMemory, w: np.ndarray, sign: int) -> tuple[CellMemory, Summary]:
    """Score the rows at w, and return the scores of the anchors that were drawn."""
    scores = np.empty(block.n_samples)
    project(block.rows, sign * w, scores)
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
    fill_cells(scores, weights, *edges.search(), cells, sums, lowest, highest)
    return replace(memory, cells=cells, counting=counting), {"cells": CellSums(sums, lowest, highest)}


def finish_by_cells(
    block: Block, memory: CellMemory, slopes: np.ndarray, step: float | None
) -> tuple[CellMemory, Summary]:
    """Return the gradients; with a step, where the cut was taken, that becomes the best point."""
    of_anchors = slopes.take(memory.cells, axis=1)
    if memory.counting is not None:
        of_anchors *= memory.counting
    gradients = add_up_gradients(block, memory, of_anchors)
    best = memory.anchor_best if step is None else memory.anchor_scores_at(step)
    return replace(moved(memory, step), anchor_best=best, anchor_scores=best), {"gradients": gradients}


# ---- rounds: run by the client ----------------------------------------------------------------------------------------


def refined_edges(edges: np.ndarray, cells: CellSums, near: np.ndarray, n: int) -> np.ndarray:
    """Return n edges, as dense as the cubic root of the product of both weights, from what a cut has found in its cells.

    Parameters
    ----------
    edges : ndarray of shape (n_cells - 1,), float64
    near : ndarray of shape (n_cells,), float64
        What the rows weigh whose thresholds lie in each cell. They count even where all scores of the cell are on one side:
        without its edges they would not be.
    """
    low = np.concatenate(([np.minimum(edges[0], cells.lowest[0])], edges))
    high = np.concatenate((edges, [np.maximum(edges[-1], cells.highest[-1])]))
    share = np.cbrt(near * cells.weight * (high - low))
    if not share.any():
        return edges[:0]
    ends = np.concatenate(([0.0], np.cumsum(share / share.sum())))
    return np.interp((np.arange(n) + 0.5) / n, ends, np.append(low, high[-1]))


def number_of_components(n_anchors: int, n_others: int, n_features: int) -> int:
    """Return how many cuts to take per round: as of few anchors, but only the cells are sent for each."""
    return max(1, min(MAX_COMPONENTS, n_others // max(2 * n_anchors, 4000), 2**18 // (CELLS + n_features)))


class CellCuts(PairCuts):
    """`PairCuts` for many anchors; the parameters are the same, but the loss is the hinge."""

    has_all_scores = False
    number_of_components = staticmethod(number_of_components)
    _edges: Edges | None = None

    def sort_and_score(self) -> Summary:
        """Sort the rows by class and component, and score them at the first best point."""
        every = max(1, min(self.blocks.n_pos, self.blocks.n_neg) // SAMPLE)
        return self.blocks.reduce(sort_and_draw, self._w, self.sign, self.n_components, every)

    def score(self, w: np.ndarray) -> np.ndarray:
        """Score all rows at w, and return the scores of the sample of anchors."""
        return np.concatenate(self.blocks.reduce(score_and_draw, w, self.sign)["scores"])

    def value_error(self, reach: float) -> float:
        """Return a bound on what the chord in a cell adds to the rounding: a few roundings of scores."""
        return 16.0 * EPS * (1.0 + reach)

    def take(self, step: float, scores: np.ndarray, gap: float, softness: float) -> Cut:
        """Return a cut for each component at a step of the way to the point scored last; see `PairCuts.take`."""
        edges = self._edges or Edges.of(np.concatenate((spread(scores, CELLS // 2), evenly(scores, CELLS // 2))))
        threshold, of_anchors = (
            of(self.blocks, step) for of in (self.share.threshold, self.share.threshold_of_anchors)
        )
        for trial in range(1, MOST_TRIES + 1):
            cells = self.blocks.reduce(count_in_cells, step, edges, of_anchors)["cells"]
            taken = self.blocks.reduce(cut_components, step, SentCells(edges, cells.points()), threshold)
            slack = float(taken["above"] - taken["below"]) / self.mass
            refined = refined_edges(edges.at, cells, taken["near"], 3 * CELLS // 4)
            self._edges = Edges.of(np.concatenate((refined, spread(scores, CELLS // 4))))
            if slack <= SLACK_OF_GAP * gap or trial == MOST_TRIES:
                break
            edges = self._edges
        slopes = 0.0 - np.cumsum(taken["slope_sums"][:, ::-1], axis=1)[:, ::-1][:, 1:]
        return self.as_cut(step, taken, float(taken["above"] / self.mass), slack, slopes, float(cells.weight.sum()))

    def finish(self, cut: Cut, keep: bool) -> np.ndarray:
        """Return the gradients of a cut; see `PairCuts.finish`."""
        found = self.blocks.reduce(finish_by_cells, cut.slopes, cut.step if keep else None)
        gradients: np.ndarray = found["gradients"] * (self.sign * cut.scale / self.mass)
        return gradients


def spread(scores: np.ndarray, n: int) -> np.ndarray:
    """Return n quantiles of the scores."""
    # Not numpy.quantile, which takes seconds for so many.
    quantiles: np.ndarray = np.sort(scores)[np.linspace(0, len(scores) - 1, n).astype(np.int64)]
    return quantiles


def evenly(scores: np.ndarray, n: int) -> np.ndarray:
    """Return n points from the least to the greatest score."""
    return np.linspace(scores.min(), scores.max(), n)
