"""Cutting planes over all pairs where both classes are large: the anchors lie in cells of scores.

`CuttingPlanes` sends the sorted scores of the smaller class, the anchors, to all blocks. Where these are more than
`MOST_ANCHORS`, the blocks keep them, and send how many of them are in each of K cells instead: then nothing that travels in a
round, and nothing that the client holds of it, grows with the rows. `aucdist.kernels.anchor_cells` says why the bounds stay
true: the dual value is exact, and the primal value is an **upper bound** of the objective, above it by `Round.slack` at most.

The edges of the cells lie where they are needed: the slack of a cell is about u W (h - l) / 4, u being the weight of the rows
whose threshold lies in it, so that the sum over K cells is least where the edges are as dense as ``(u W)^(1/3)``. What u and W
are is known from the last cut; a cut whose slack is too large is taken again with the edges that it asks for. The steps of a line
search need the anchors only as a sample, whose scores are sent as those of few anchors are.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from aucdist.data.block import Block
from aucdist.data.split import scrambled
from aucdist.engine.blocks import Blocks, Summary, without_rows
from aucdist.kernels.anchor_cells import cut_cells, fill_cells
from aucdist.kernels.pairs import guide
from aucdist.kernels.rows import accumulate, accumulate_each, project
from aucdist.solvers.base import Round
from aucdist.solvers.pairs.all_pairs_l1 import CuttingPlanesL1
from aucdist.solvers.pairs.cutting_planes import MAX_GROUPS, AllPairsMemory, CuttingPlanes
from aucdist.solvers.pairs.problem import sort_by_class
from aucdist.solvers.rounding import EPS

MOST_ANCHORS = 200_000
"""Of more rows in the smaller class, cells are sent; up to here their scores, which are exact."""

CELLS = 2**13
"""So many cells, of which a quarter is spread over all anchors, whatever the last cut says."""

SAMPLE, SEED = 20_000, 5
"""So many anchors are drawn, by their ids, for the line search and the first edges."""

SLACK, MOST_TRIES = 0.05, 4
"""The slack may be this share of the gap; so many cuts at most are taken at a point to come there."""


@dataclass(frozen=True, eq=False)
class CellMemory(AllPairsMemory):
    """What a block keeps.

    Attributes
    ----------
    anchor_weights, anchor_scores, anchor_best, anchor_trial : ndarray of shape (n_anchors,), float64
        Of the smaller class: as `weights`, `scores`, `best` and `trial` of the larger one.
    drawn : ndarray of int64
        The positions among the anchors of those whose scores are sent.
    cells : ndarray of shape (n_anchors,), int32
        The cell of each anchor where the last cut was taken.
    """

    anchor_weights: np.ndarray
    anchor_scores: np.ndarray
    anchor_best: np.ndarray
    anchor_trial: np.ndarray
    drawn: np.ndarray
    cells: np.ndarray


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
        per_width = np.divide(1.0, high - low, out=np.zeros_like(low), where=high > low)
        below = np.cumsum(self.sums, axis=1) - self.sums
        return np.stack([*below, weight, score, low, high, mean, per_width], axis=1)


@dataclass(frozen=True, eq=False)
class Edges:
    """Edges of cells, and the table that shortens a search among them.

    Attributes
    ----------
    at : ndarray of shape (n_cells - 1,), float64
        Ascending.
    table, low, scale
        Result of `aucdist.kernels.pairs.guide`.
    """

    at: np.ndarray
    table: np.ndarray
    low: float
    scale: float

    @classmethod
    def of(cls, at: np.ndarray) -> "Edges":
        """Return edges, each of them once."""
        at = np.unique(at)
        table = np.empty(2 * len(at) + 1, dtype=np.int32)
        low, scale = guide(at, table)
        return cls(at, table, low, scale)

    def search(self) -> tuple[np.ndarray, np.ndarray, float, float]:
        """Return the arguments of a search, in the order of the kernels."""
        return self.at, self.table, self.low, self.scale


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def sort_and_draw(
    block: Block, memory: None, w: np.ndarray, sign: int, n_groups: int, every: int
) -> tuple[CellMemory, Summary]:
    """Sort the rows by class, draw one in `every` anchors, and score all rows at the start, the best point so far."""
    sorted_, _ = sort_by_class(block, memory, sign, n_groups)
    weights = block.weights()[sorted_.anchors]
    drawn = np.flatnonzero(scrambled(block.row_id[sorted_.anchors], SEED) % np.uint64(every) == 0)
    nothing = np.zeros(0)
    unscored = CellMemory(
        **vars(sorted_), best=nothing, trial=nothing, anchor_weights=weights, anchor_scores=nothing, anchor_best=nothing,
        anchor_trial=nothing, drawn=drawn, cells=np.zeros(0, dtype=np.int32),
    )  # fmt: skip
    scored, summary = score_and_draw(block, unscored, w, sign)
    at_start = replace(scored, best=scored.scores, anchor_best=scored.anchor_scores)
    return at_start, {**summary, "weights": [weights[drawn]]}


def score_and_draw(block: Block, memory: CellMemory, w: np.ndarray, sign: int) -> tuple[CellMemory, Summary]:
    """Score the rows at w, and return the scores of the anchors that were drawn."""
    scores = np.empty(block.n_samples)
    project(block.rows, sign * w, scores)
    of_anchors = scores[memory.anchors]
    return replace(memory, scores=scores[memory.others], anchor_scores=of_anchors), {
        "scores": [of_anchors[memory.drawn]]
    }


@without_rows
def count_in_cells(block: int, memory: CellMemory, step: float, edges: Edges) -> tuple[CellMemory, Summary]:
    """Put the anchors into cells by their scores at a step of the way."""
    scores = memory.anchor_best + step * (memory.anchor_scores - memory.anchor_best)
    n_cells = len(edges.at) + 1
    cells, sums = np.empty(len(scores), dtype=np.int32), np.zeros((2, n_cells))
    lowest, highest = np.full(n_cells, np.inf), np.full(n_cells, -np.inf)
    fill_cells(scores, memory.anchor_weights, *edges.search(), cells, sums, lowest, highest)
    return replace(memory, anchor_trial=scores, cells=cells), {"cells": CellSums(sums, lowest, highest)}


def cut_by_cells(
    block: Block, memory: CellMemory, step: float, edges: Edges, points: np.ndarray
) -> tuple[CellMemory, Summary]:
    """Take a cut for each group at a step of the way; its gradient so far holds the larger class's part only."""
    scores = memory.best + step * (memory.scores - memory.best)
    n_groups, n_cells = len(memory.ends) - 1, len(points)
    coefs, near = np.empty(len(scores)), np.zeros(n_cells)
    tally, heights = np.zeros((n_groups, n_cells + 1)), np.zeros(n_groups)
    gradients = np.zeros((n_groups, block.n_features))
    above, below = 0.0, 0.0
    for g in range(n_groups):
        mine = slice(memory.ends[g], memory.ends[g + 1])
        heights[g], most, least = cut_cells(
            scores[mine], memory.weights[mine], *edges.search(), points, coefs[mine], tally[g], near
        )
        above, below = above + most, below + least
        accumulate(block.rows, memory.others[mine], coefs[mine], gradients[g])
    summary = {"above": above, "below": below, "heights": heights, "tally": tally, "near": near}
    return replace(memory, trial=scores), {**summary, "gradients": gradients, "rows": np.count_nonzero(coefs)}


def finish_by_cells(block: Block, memory: CellMemory, slopes: np.ndarray, keep: bool) -> tuple[CellMemory, Summary]:
    """Add the anchors' part of the gradients; with `keep`, where the cut was taken becomes the best point."""
    gradients = np.zeros((len(slopes), block.n_features))
    accumulate_each(block.rows, memory.anchors, slopes[:, memory.cells] * memory.anchor_weights, gradients)
    if keep:
        memory = replace(memory, best=memory.trial, anchor_best=memory.anchor_trial)
    return memory, {"gradients": gradients}


# ---- rounds: run by the client ----------------------------------------------------------------------------------------


def refined_edges(edges: np.ndarray, cells: CellSums, near: np.ndarray, n: int) -> np.ndarray:
    """Return n edges, as dense as the cubic root of the product of both weights, from what a cut has found in its cells.

    Parameters
    ----------
    edges : ndarray of shape (n_cells - 1,), float64
    cells : CellSums
    near : ndarray of shape (n_cells,), float64
        What the rows weigh whose thresholds lie in each cell. They count even where all scores of the cell are on one side:
        without its edges they would not be.
    n : int
    """
    low = np.concatenate(([np.minimum(edges[0], cells.lowest[0])], edges))
    high = np.concatenate((edges, [np.maximum(edges[-1], cells.highest[-1])]))
    share = np.cbrt(near * cells.weight * (high - low))
    if not share.any():
        return edges[:0]
    ends = np.concatenate(([0.0], np.cumsum(share / share.sum())))
    return np.interp((np.arange(n) + 0.5) / n, ends, np.append(low, high[-1]))


class CellPairs(CuttingPlanes):
    """`CuttingPlanes` for many anchors; the parameters are the same, but for the loss, which is the hinge.

    Attributes
    ----------
    slack : float
        The objective at the best point is below `primal` by at most this.
    """

    def __init__(self, blocks: Blocks, start: np.ndarray | None, *, signs: np.ndarray | None = None):
        self.slack, self._taken_again = 0.0, 0
        self._edges: Edges | None = None
        super().__init__(blocks, start, signs=signs)

    def groups_of(self, blocks: Blocks) -> int:
        """Return how many cuts to take per round: as of few anchors, but only the cells are sent for each."""
        n_anchors = min(blocks.n_pos, blocks.n_neg)
        others = blocks.n_samples - n_anchors
        return max(1, min(MAX_GROUPS, others // max(2 * n_anchors, 4000), 2**18 // (CELLS + blocks.n_features)))

    def sort_rows(self) -> Summary:
        """Sort the rows by class and group, and score them at the start."""
        every = max(1, min(self.blocks.n_pos, self.blocks.n_neg) // SAMPLE)
        summary = self.blocks.reduce(sort_and_draw, self.w, self.sign, self.n_groups, every)
        self.best_scores = np.concatenate(summary["scores"])
        return summary

    def score(self, w: np.ndarray) -> np.ndarray:
        """Score all rows at w, the end of the way that starts at the best point, and return the scores of the sample."""
        self.target_error = self.rounding.score(w)
        return np.concatenate(self.blocks.reduce(score_and_draw, w, self.sign)["scores"])

    @property
    def primal_error(self) -> float:
        """A bound on the rounding error of `primal`: the chord in a cell adds a few roundings of scores."""
        return super().primal_error + 16.0 * EPS * (1.0 + self.rounding.reach(self.w))

    def rounds(self, lam: float) -> Iterator[Round]:
        """Solve for lam, from the best point and the cuts so far."""
        before = self._taken_again  # each read all rows once more
        for state in super().rounds(lam):
            yield replace(state, slack=self.slack, passes=state.passes + self._taken_again - before)

    def take_cuts(self, step: float, scores: np.ndarray, w: np.ndarray) -> float:
        """Give the bundle one point per group, and keep w if it is the best so far; see `CuttingPlanes.take_cuts`."""
        edges = self._edges or Edges.of(np.concatenate((spread(scores, CELLS // 2), evenly(scores, CELLS // 2))))
        error = self._error_on_the_way(step, w)
        for trial in range(MOST_TRIES):
            cells = self.blocks.reduce(count_in_cells, step, edges)["cells"]
            taken = self.blocks.reduce(cut_by_cells, step, edges, cells.points())
            slack = float(taken["above"] - taken["below"]) / self.mass
            refined = refined_edges(edges.at, cells, taken["near"], 3 * CELLS // 4)
            self._edges = Edges.of(np.concatenate((refined, spread(scores, CELLS // 4))))
            if slack <= SLACK * self.gap * self.primal or trial == MOST_TRIES - 1:
                break
            edges = self._edges
            self._taken_again += 1
        value, keep = self.keep_if_best(float(taken["above"] / self.mass), w, scores, error)
        if keep:
            self.slack = slack
        self.active_rows = taken["rows"]
        tally = taken["tally"]
        slopes = -np.cumsum(tally[:, ::-1], axis=1)[:, ::-1][:, 1:]
        rest = self.blocks.reduce(finish_by_cells, slopes, keep)
        self.add_points(taken, (taken["gradients"] + rest["gradients"]) * (self.sign / self.mass))
        return value


class CellPairsL1(CellPairs, CuttingPlanesL1):
    """`CellPairs` with an L1 penalty; the parameters are the same."""


def spread(scores: np.ndarray, n: int) -> np.ndarray:
    """Return n quantiles of the scores."""
    # Not numpy.quantile, which takes seconds for so many.
    quantiles: np.ndarray = np.sort(scores)[np.linspace(0, len(scores) - 1, n).astype(np.int64)]
    return quantiles


def evenly(scores: np.ndarray, n: int) -> np.ndarray:
    """Return n points from the least to the greatest score."""
    return np.linspace(scores.min(), scores.max(), n)
