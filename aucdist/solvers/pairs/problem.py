"""A loss over all pairs of rows that lie in blocks: what every solver of such a loss starts from.

The rows of the smaller class are the anchors (`aucdist.solvers.pairs.anchors`). Their scores, not their rows, are gathered and
sent to all blocks; the rows of the larger class never leave theirs.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary, without_rows
from aucdist.kernels.rows import accumulate, project
from aucdist.solvers.pairs.anchors import Anchors, sorted_anchors
from aucdist.solvers.pairs.loss import PairLoss


@dataclass(frozen=True, eq=False)
class PairMemory:
    """What a block keeps of its pairs.

    Attributes
    ----------
    anchors, others : ndarray of int64
        Positions of the rows of the smaller and of the larger class; these lie group by group.
    weights : ndarray of shape (n_others,), float64
    ends : ndarray of shape (n_groups + 1,), int64
        Where each group begins and ends in `others`.
    scores : ndarray of shape (n_others,), float64
        At the point that was scored last, mirrored where the negatives are the smaller class.
    coefs : ndarray of shape (n_others,), float64
        The derivative of the loss by the scores, between the two steps of `PairProblem.value_and_gradient`.
    """

    anchors: np.ndarray
    others: np.ndarray
    weights: np.ndarray
    ends: np.ndarray
    scores: np.ndarray
    coefs: np.ndarray


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def sort_by_class(block: Block, memory: None, sign: int, n_groups: int) -> tuple[PairMemory, Summary]:
    """Find the rows of each class, and deal those of the larger one into groups; return the anchors' weights.

    Parameters
    ----------
    block : Block
    memory : None
    sign : int
        The label of the smaller class.
    n_groups : int
        Dealt by row id, so that the groups do not depend on how the rows lie in blocks.
    """
    weight = block.weights()
    there = weight > 0  # rows outside a fold stay in the block, and weigh nothing
    anchors, others = (np.flatnonzero(there & (block.y == label)) for label in (sign, -sign))
    group = block.row_id[others] % n_groups
    if n_groups > 1:
        others = others[np.argsort(group, kind="stable")]
    ends = np.concatenate(([0], np.cumsum(np.bincount(group, minlength=n_groups))))
    return PairMemory(anchors, others, weight[others], ends, np.zeros(0), np.zeros(0)), {"weights": [weight[anchors]]}


def score_rows(block: Block, memory: Any, w: np.ndarray, sign: int) -> tuple[Any, Summary]:
    """Score the rows at w: keep the scores of the larger class, and return those of the anchors."""
    scores = np.empty(block.n_samples)
    project(block.rows, sign * w, scores)
    return replace(memory, scores=scores[memory.others]), {"scores": [scores[memory.anchors]]}


def sort_and_score(block: Block, memory: None, w: np.ndarray, sign: int, n_groups: int) -> tuple[PairMemory, Summary]:
    """Do `sort_by_class` and `score_rows` in one step."""
    sorted_, weights = sort_by_class(block, memory, sign, n_groups)
    scored, scores = score_rows(block, sorted_, w, sign)
    return scored, weights | scores


@without_rows
def sweep_pairs(block: int, memory: PairMemory, loss: PairLoss, anchors: Anchors) -> tuple[PairMemory, Summary]:
    """Sum the loss over the pairs of the block's rows with all anchors."""
    coefs, tally = np.empty(len(memory.scores)), loss.new_tally(len(anchors.scores))
    total = loss.sweep(memory.scores, memory.weights, anchors, coefs, tally)
    return replace(memory, coefs=coefs), {"loss": total, "tally": tally}


@without_rows
def sum_pairs(block: int, memory: PairMemory, loss: PairLoss, anchors: Anchors) -> tuple[PairMemory, Summary]:
    """Sum the loss over the pairs of the block's rows with all anchors, without slopes."""
    return memory, {"loss": loss.total(memory.scores, memory.weights, anchors)}


def add_up_gradient(
    block: Block, memory: PairMemory, coefs: np.ndarray, offsets: np.ndarray
) -> tuple[PairMemory, Summary]:
    """Add up the rows of both classes times their coefficients; those of the anchors are given, block after block."""
    gradient = np.zeros(block.n_features)
    accumulate(block.rows, memory.others, memory.coefs, gradient)
    accumulate(block.rows, memory.anchors, coefs[offsets[block.index] : offsets[block.index + 1]], gradient)
    return memory, {"gradient": gradient}


# ---- the client's side ------------------------------------------------------------------------------------------------


class PairProblem:
    """The mean of a loss over all positive-negative pairs of blocks.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be there. Their memory is left alone.
    loss : PairLoss

    Attributes
    ----------
    sign : int
        The label of the smaller class, the anchors.
    mass : float
        What all pairs weigh together.
    weights : ndarray of shape (n_anchors,), float64
        Of the anchors, block after block.
    offsets : ndarray of shape (n_blocks + 1,), int64
        Where each block's anchors begin and end among all.
    """

    def __init__(self, blocks: Blocks, loss: PairLoss):
        self.blocks, self.loss = blocks.without_memory(), loss
        self.sign = 1 if blocks.n_pos <= blocks.n_neg else -1
        self.mass = blocks.weight_pos * blocks.weight_neg
        weights = self.sort_rows()["weights"]
        self.offsets = np.cumsum([0] + [len(part) for part in weights])
        self.weights = np.concatenate(weights)

    def sort_rows(self) -> Summary:
        """Let the blocks sort their rows by class, and return the anchors' weights: one reduction."""
        return self.blocks.reduce(sort_by_class, self.sign, 1)

    def score(self, w: np.ndarray) -> np.ndarray:
        """Score all rows at w, and return the anchors' scores; one reduction."""
        return np.concatenate(self.blocks.reduce(score_rows, w, self.sign)["scores"])

    def value_and_gradient(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the mean loss at w, float64 of shape (n_features,), and its gradient; three reductions."""
        anchors, order = sorted_anchors(self.score(w), self.weights, self.loss.n_sums, centred=self.loss.centred)
        swept = self.blocks.reduce(sweep_pairs, self.loss, anchors)
        coefs = self.loss.anchor_slopes(swept["tally"], anchors, self.weights, order)
        gradient = self.blocks.reduce(add_up_gradient, coefs, self.offsets)["gradient"]
        return float(swept["loss"] / self.mass), gradient * (self.sign / self.mass)
