"""A loss over all positive-negative pairs of rows in blocks: its value and gradient, and the steps that solvers of it share.

The rows of the smaller class are called anchors (`aucdist.solvers.pairs.loss`). The scores of the anchors are gathered and
sent to all blocks; no row leaves its block for a sum over pairs.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary, without_rows
from aucdist.kernels.rows import DenseRows, accumulate, project_and_measure
from aucdist.solvers.pairs.groups import PairGroups
from aucdist.solvers.pairs.loss import AnchorGroups, Anchors, PairLoss, Runs, ScoredRows, one_run, runs_of
from aucdist.solvers.pairs.top_negatives import Threshold


@dataclass(frozen=True, eq=False)
class PairMemory:
    """The memory of a block for a loss over pairs.

    Attributes
    ----------
    anchors, others : ndarray of int32, or of int64 in a block of 2**31 rows or more
        Positions of the rows of the smaller and of the larger class. Rows with grades are there as often as they are in a group.
    weight : ndarray of shape (n_others,), float64, or None
        None where all rows weigh 1.
    runs : tuple of ndarray
        Which of `others` are of which group (`aucdist.solvers.pairs.groups`); without groups all rows are one.
    codes : ndarray of shape (n_anchors,), int32, or None
        The number of each anchor's group; None without groups.
    scores : ndarray of shape (n_others,), float64
        At the point that was scored last; mirrored if the negatives are the smaller class.
    coefs : ndarray of shape (n_others,), float64
        The derivative of the loss by the scores, until the rows are added up.
    """

    anchors: np.ndarray
    others: np.ndarray
    weight: np.ndarray | None
    runs: Runs
    codes: np.ndarray | None
    scores: np.ndarray
    coefs: np.ndarray

    @property
    def weights(self) -> np.ndarray:
        """The weights of the rows of the larger class, float64 of shape (n_others,); not to be written to."""
        return ones(len(self.others)) if self.weight is None else self.weight


@dataclass(frozen=True, eq=False)
class CutMemory(PairMemory):
    """The memory of a block for cutting planes; `scores` are those at the end of the line that is searched.

    Attributes
    ----------
    present : ndarray of shape (n_others,), float64
        Scores of the larger class at the present point.
    squares : ndarray of shape (n_samples,), float32, or None
        The squared length of each row, once rows were drawn by it (`aucdist.solvers.pairs.newton`).
    """

    present: np.ndarray
    squares: np.ndarray | None = field(default=None, kw_only=True)


_ones = np.ones(0)


def ones(n: int) -> np.ndarray:
    """Return n weights of 1: a part of one array for all blocks, so that rows without weights take no memory for them."""
    global _ones
    longest = _ones  # another thread may put a longer one in its place
    if len(longest) < n:
        longest = _ones = np.ones(n)
    return longest[:n]


def unless_ones(weights: np.ndarray) -> np.ndarray | None:
    """Return the weights, or None where all of them are 1."""
    return None if (weights == 1.0).all() else weights


def positions(which: np.ndarray, block: Block) -> np.ndarray:
    """Return positions of rows of a block in four bytes each, if it has not too many rows for that."""
    return which.astype(np.int32 if block.n_samples < 2**31 else np.int64, copy=False)


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def sort_by_class(
    block: Block, memory: None, sign: int, groups: PairGroups | None = None
) -> tuple[PairMemory, Summary]:
    """Find the rows of each class, and return the weights of the anchors, and with groups the numbers of theirs.

    Parameters
    ----------
    sign : int
        The label of the smaller class.
    groups : PairGroups, optional
        The groups of the rows that make pairs, where not all of both classes do.
    """
    weight, codes = block.weights(), None
    if groups is None:
        there = weight > 0  # rows outside a fold are in the block with weight 0
        anchors, others = (np.flatnonzero(there & (block.y == label)) for label in (sign, -sign))
        runs = one_run(len(others))
    else:
        (anchors, codes), (others, of_others) = (groups.rows_of(block, label) for label in (sign, -sign))
        runs = runs_of(of_others)
    nothing = np.zeros(0)
    by_class = PairMemory(
        positions(anchors, block), positions(others, block), unless_ones(weight[others]), runs, codes, nothing, nothing
    )
    summary = {"weights": [weight[anchors]], "n_anchors": len(anchors), "n_others": len(others)}
    return by_class, {**summary, "codes": [] if codes is None else [codes]}


def score_rows(block: Block, memory: Any, w: np.ndarray, sign: int) -> tuple[Any, Summary]:
    """Score the rows at w, store the scores of the larger class, and return those of the anchors."""
    scores = block.scores(sign * w)
    # Not `scores[...]`, which takes twice as long for positions of four bytes.
    return replace(memory, scores=scores.take(memory.others)), {"scores": [scores.take(memory.anchors)]}


def score_at_start(block: Block, w: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the scores at w, and the squared lengths of dense rows where they are read; at 0 no row is."""
    if not w.any():
        return np.zeros(block.n_samples), None
    if not isinstance(block.rows, DenseRows):
        return block.scores(w), None
    scores, squares = np.empty(block.n_samples), np.empty(block.n_samples, dtype=np.float32)
    project_and_measure(block.rows.values, w, scores, squares)
    return scores, squares


@without_rows
def sweep_pairs(
    block: int, memory: PairMemory, loss: PairLoss, anchors: Anchors, threshold: Threshold | None
) -> tuple[PairMemory, Summary]:
    """Sum the loss over the pairs of the block's rows, or of those from a threshold on, with all anchors."""
    which, rows = rows_from(threshold, ScoredRows(memory.scores, memory.weights, memory.runs))
    slopes, slope_sums = np.empty(len(rows.scores)), loss.zero_slope_sums(anchors.n_gaps)
    total = loss.loss_and_row_slopes(rows, anchors, slopes, slope_sums)
    coefs = slopes
    if threshold is not None:
        coefs = np.zeros(len(memory.scores))
        coefs[which] = slopes
    return replace(memory, coefs=coefs), {"loss": total, "slope_sums": slope_sums}


def rows_from(threshold: Threshold | None, rows: ScoredRows) -> tuple[Any, ScoredRows]:
    """Return which rows count, those from a threshold on or all, and these rows with their weights."""
    if threshold is None:
        return slice(None), rows
    which = np.flatnonzero(rows.scores >= threshold.score)
    scores = rows.scores[which]
    return which, ScoredRows(scores, rows.weights[which] * threshold.parts(scores), one_run(len(which)))


def add_up_gradient(
    block: Block, memory: PairMemory, coefs: np.ndarray, offsets: np.ndarray
) -> tuple[PairMemory, Summary]:
    """Return the sum of the rows times their coefficients; those of the anchors are given, block after block."""
    of_anchors = coefs[offsets[block.index] : offsets[block.index + 1]]
    return memory, {"gradient": sum_of_rows(block, memory, of_anchors)}


def sum_of_rows(block: Block, memory: PairMemory, of_anchors: np.ndarray) -> np.ndarray:
    """Return the sum of the rows times the derivatives by their scores, `memory.coefs` and those of the block's anchors.

    Both classes are read together, in the order in which the rows lie: this takes less than half as long as one after the other.
    """
    coefs = np.zeros(block.n_samples)
    for which, of_rows in ((memory.others, memory.coefs), (memory.anchors, of_anchors)):
        add_to_rows(coefs, which, of_rows)
    total = np.zeros(block.n_features)
    accumulate(block.rows, np.arange(block.n_samples), coefs, total)
    return total


def add_to_rows(coefs: np.ndarray, which: np.ndarray, of_rows: np.ndarray) -> None:
    """Add to the coefficients of rows; with grades, a row is there several times."""
    np.add.at(coefs, which.astype(np.intp, copy=False), of_rows)  # which converts positions of four bytes one by one


# ---- the client's side ------------------------------------------------------------------------------------------------


class PairProblem:
    """The mean of a loss over all positive-negative pairs of blocks.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be present. Their memory is not changed.
    groups : PairGroups, optional
        Where pairs are within groups, or of rows with grades.

    Attributes
    ----------
    sign : int
        The label of the smaller class, the anchors.
    mass : float
        The total weight of all pairs.
    n_anchors, n_others : int
        How many rows of either class count, each as often as it is in a group.
    weights : ndarray of shape (n_anchors,), float64
        The weights of the anchors, block after block; times the factor of their group.
    anchor_groups : AnchorGroups
    offsets : ndarray of shape (n_blocks + 1,), int64
        Where each block's anchors begin and end among all.
    """

    def __init__(self, blocks: Blocks, loss: PairLoss, groups: PairGroups | None = None):
        self.blocks, self.groups = blocks.without_memory(), groups
        self.loss = loss
        self.sign = (1 if blocks.n_pos <= blocks.n_neg else -1) if groups is None else groups.sign
        self.mass = blocks.weight_pos * blocks.weight_neg if groups is None else groups.mass
        summary = self.sort_rows()
        self.first_scores = np.concatenate(summary.get("scores", [np.zeros(0)]))
        self.n_anchors, self.n_others = int(summary["n_anchors"]), int(summary["n_others"])
        self.offsets = np.cumsum([0] + [len(part) for part in summary["weights"]])
        self.weights, self.anchor_groups = np.concatenate(summary["weights"]), AnchorGroups(None)
        if groups is not None:
            codes = np.concatenate(summary["codes"])
            self.weights, self.anchor_groups = self.weights * groups.factor[codes], AnchorGroups(codes, groups.n_groups)

    def sort_rows(self) -> Summary:
        """Let the blocks sort their rows by class, and return the anchors' weights: one reduction."""
        return self.blocks.reduce(sort_by_class, self.sign, self.groups)

    def sort_anchors(self, scores: np.ndarray, weights: np.ndarray) -> tuple[Anchors, np.ndarray]:
        """Return the anchors at a point, and the order that sorts them; see `AnchorGroups.sorted`."""
        return self.anchor_groups.sorted(scores, weights, self.loss.n_sums, centred=self.loss.centred)

    def score(self, w: np.ndarray) -> np.ndarray:
        """Score all rows at w, and return the anchors' scores; one reduction."""
        return np.concatenate(self.blocks.reduce(score_rows, w, self.sign)["scores"])

    def counting(self, scores: np.ndarray) -> tuple[np.ndarray, Threshold | None]:
        """Return what the anchors weigh at these scores of theirs, and the threshold of the rows that count; None for all."""
        return self.weights, None

    def sweep(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the sum of the loss at w and its slopes by the anchors' scores; the blocks keep those by their rows' scores."""
        scores = self.score(w)
        weights, threshold = self.counting(scores)
        anchors, order = self.sort_anchors(scores, weights)
        swept = self.blocks.reduce(sweep_pairs, self.loss, anchors, threshold)
        return swept["loss"], self.loss.anchor_slopes(swept["slope_sums"], anchors, weights, order)

    def value_and_gradient(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the mean loss at w and its gradient, float64 of shape (n_features,); three reductions."""
        total, slopes = self.sweep(w)
        gradient = self.blocks.reduce(add_up_gradient, slopes, self.offsets)["gradient"]
        return float(total / self.mass), gradient * (self.sign / self.mass)
