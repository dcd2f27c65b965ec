"""Cuts of a loss over the pairs that count: the tangents of the loss, from the exact scores of the anchors.

The anchors are the rows of the smaller class (`aucdist.solvers.pairs.anchors`). The client has their scores, sorts them and sends
them to all blocks; where there are too many of them, `aucdist.solvers.pairs.cell_cuts` takes the place of `PairCuts`. Which
negatives count is `aucdist.solvers.pairs.share`'s.
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary, without_rows
from aucdist.kernels.rows import accumulate_each, accumulate_parts
from aucdist.solvers.pairs.anchors import Anchors, AnchorsOnLine
from aucdist.solvers.pairs.groups import PairGroups
from aucdist.solvers.pairs.loss import CutPairLoss
from aucdist.solvers.pairs.problem import CutMemory, PairProblem, add_to_rows, sort_and_score, sum_of_rows
from aucdist.solvers.pairs.share import AllNegatives
from aucdist.solvers.pairs.soft_top import SoftThreshold, are_soft
from aucdist.solvers.pairs.top import Threshold, scores_at

FEWEST_COMPONENTS, MAX_COMPONENTS = 4, 24
"""Two or three cuts over all pairs save hardly a pass; the rows of one cut are added up in a single reading of both classes."""


@dataclass(frozen=True, eq=False)
class Cut:
    """A cut for each component, before the rows are added up to its gradients.

    Attributes
    ----------
    step : float
        Where it was taken.
    loss, slack : float
        The mean loss is at most the first, and at least the first minus the second.
    heights : ndarray of shape (n_components,), float64
        At w = 0.
    slopes : ndarray of float64
        The derivative of the loss by the anchors' scores, in the form that `PairCuts.finish` takes.
    scale : float
        A factor of the gradients; the heights have it.
    shares : ndarray of shape (n_components,), float64, or None
        What the rows that count weigh in each component, over what they weigh in all; None where all rows count.
    n_rows : float
        How many rows of the larger class are in active pairs.
    """

    step: float
    loss: float
    slack: float
    heights: np.ndarray
    slopes: np.ndarray
    scale: float
    shares: np.ndarray | None
    n_rows: float


class SentAnchors(Protocol):
    """What is sent to the blocks of the anchors at a point."""

    def new_sums(self, n_components: int) -> Summary:
        """Return zeros for `cut` to add to."""

    def for_groups(self, memory: Any, component: int) -> "SentAnchors":
        """Return the anchors as the rows between two `ends` of the memory search them."""

    def cut(self, scores: np.ndarray, weights: np.ndarray, coefs: np.ndarray, sums: Summary, component: int) -> float:
        """Return the height of the cut of a component's rows; parameters as of `CutPairLoss.cut`."""

    def total(self, scores: np.ndarray, weights: np.ndarray) -> float:
        """Return the loss of these rows, or an upper bound."""


@dataclass(frozen=True, eq=False)
class SentScores:
    """The anchors' scores, and the loss."""

    loss: CutPairLoss
    anchors: Anchors

    def new_sums(self, n_components: int) -> Summary:
        """Return zeros: the loss, and slope sums for each component."""
        slope_sums = [self.loss.zero_slope_sums(self.anchors.n_gaps) for _ in range(n_components)]
        return {"loss": 0.0, "slope_sums": np.array(slope_sums)}

    def for_groups(self, memory: Any, component: int) -> "SentScores":
        """Return the anchors as these rows search them: those of their groups, where pairs are within groups."""
        return replace(self, anchors=memory.for_groups(self.anchors, component))

    def cut(self, scores: np.ndarray, weights: np.ndarray, coefs: np.ndarray, sums: Summary, component: int) -> float:
        """Return the height of the cut of a component's rows."""
        height, loss = self.loss.cut(scores, weights, self.anchors, coefs, sums["slope_sums"][component])
        sums["loss"] += loss
        return height

    def total(self, scores: np.ndarray, weights: np.ndarray) -> float:
        """Return the loss of these rows."""
        return self.loss.total(scores, weights, self.anchors)


Valued = tuple[SentAnchors | None, Threshold | SoftThreshold | None]
"""The anchors, None for those of the cut, and the threshold by which the loss is taken where it is not that of the cut."""


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def sort_at_start(
    block: Block, memory: None, w: np.ndarray, sign: int, n_components: int, pair_groups: PairGroups | None
) -> tuple[CutMemory, Summary]:
    """Sort the rows by class and score them at the start, which is the best point so far."""
    scored, summary = sort_and_score(block, memory, w, sign, n_components, pair_groups)
    return CutMemory(**vars(scored), best=scored.scores), summary


@without_rows
def cut_components(
    block: int, memory: Any, step: float, anchors: SentAnchors, threshold: Threshold | SoftThreshold | None,
    valued: Valued | None = None,
) -> tuple[Any, Summary]:  # fmt: skip
    """Take a cut for each component at a step of the way, over the rows from the threshold on, or over all for None.

    With `valued` the loss there is summed as well, as ``"valued"``.
    """
    scores, n_components = scores_at(memory, step), len(memory.ends) - 1
    sums, heights, counted = anchors.new_sums(n_components), np.zeros(n_components), np.zeros(n_components)
    coefs = np.zeros(len(scores))
    for g in range(n_components):
        mine: Any = slice(memory.ends[g], memory.ends[g + 1])
        if threshold is None:
            heights[g] = anchors.for_groups(memory, g).cut(scores[mine], memory.weights[mine], coefs[mine], sums, g)
            continue
        mine = memory.ends[g] + np.flatnonzero(scores[mine] >= threshold.score)
        weights, of_rows = memory.weights[mine] * threshold.parts(scores[mine]), np.empty(len(mine))
        counted[g] = weights.sum()
        heights[g] = anchors.for_groups(memory, g).cut(scores[mine], weights, of_rows, sums, g)
        coefs[mine] = of_rows
    summary = {**sums, "heights": heights, "rows": int(np.count_nonzero(coefs))}
    if valued is not None:
        others, hard = valued
        which: Any = slice(0, len(scores))
        weights = memory.weights
        if hard is not None:
            which = np.flatnonzero(scores >= hard.score)
            weights = weights[which] * hard.parts(scores[which])
        summary["valued"] = (others or anchors).total(scores[which], weights)
    return replace(memory, coefs=coefs), summary if threshold is None else {**summary, "counted": counted}


def finish_cuts(
    block: Block, memory: Any, slopes: np.ndarray, offsets: np.ndarray, step: float | None
) -> tuple[Any, Summary]:
    """Return the gradients; with a step, where the cut was taken, that becomes the best point."""
    gradients = add_up_gradients(block, memory, slopes[:, offsets[block.index] : offsets[block.index + 1]])
    return moved(memory, step), {"gradients": gradients}


def add_up_gradients(block: Block, memory: CutMemory, of_anchors: np.ndarray) -> np.ndarray:
    """Return the gradient of each component's cut from the derivatives by the anchors' scores, one row for each component."""
    if len(of_anchors) == 1:
        return sum_of_rows(block, memory, of_anchors[0])[np.newaxis]
    gradients, coefs = np.zeros((len(of_anchors), block.n_features)), np.zeros(block.n_samples)
    add_to_rows(coefs, memory.others, memory.coefs)
    accumulate_parts(block.rows, coefs, block.row_id, gradients)
    accumulate_each(block.rows, memory.anchors.astype(np.int64, copy=False), of_anchors, gradients)
    return gradients


def moved(memory: Any, step: float | None) -> Any:
    """Return the memory after a cut, without what only the cut needed."""
    best = memory.best if step is None else scores_at(memory, step)
    return replace(memory, best=best, scores=best, coefs=np.zeros(0))


# ---- rounds: run by the client ----------------------------------------------------------------------------------------


def number_of_components(n_anchors: int, n_others: int, n_features: int) -> int:
    """Return how many cuts to take per round.

    More cuts need fewer rounds, but each costs a pass over the anchors' rows, a histogram over the anchors and a gradient. So the
    cuts cost at most half as much as the larger class, and their gradients take at most a megabyte. Small data have one
    component, so that a row of weight 2 is the same as two rows.
    """
    return max(1, min(MAX_COMPONENTS, n_others // max(2 * n_anchors, 4000), 2**17 // (n_anchors + n_features)))


class PairCuts(PairProblem):
    """The loss over the pairs that count, and its cuts, along lines from the best point so far.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be there.
    share : AllNegatives or TopNegatives
    w : ndarray of shape (n_features,), float64
        The first best point.
    sparse : bool
        Whether the penalty has corners: the bundle of its rounds keeps no budget of several components.
    groups : PairGroups, optional
        Where pairs are within groups (`aucdist.solvers.pairs.group_cuts`).

    Attributes
    ----------
    n_components : int
        So many cuts are taken at a point, each of a part of the larger class's rows.
    is_soft : bool
        Whether the cuts count negatives near the threshold in part (`aucdist.solvers.pairs.soft_top`).
    has_all_scores : bool
        Whether the client has the scores of all anchors, or of a sample.
    """

    loss: CutPairLoss
    has_all_scores = True

    def __init__(
        self, blocks: Blocks, loss: CutPairLoss, share: AllNegatives, w: np.ndarray, *, sparse: bool,
        groups: PairGroups | None = None,
    ):  # fmt: skip
        self.share, self._w, self.groups = share, w, groups
        self.is_soft = share.is_part and not sparse and are_soft(blocks)
        self.n_components = 1 if self.is_soft or (share.is_part and sparse) else self.count_components(blocks)
        super().__init__(blocks, loss, groups)
        if share.is_part:
            self.mass = share.mass

    number_of_components = staticmethod(number_of_components)

    def count_components(self, blocks: Blocks) -> int:
        """Return how many cuts to take at a point."""
        n_anchors = min(blocks.n_pos, blocks.n_neg)
        possible = self.number_of_components(n_anchors, self.share.rows_for_cuts(blocks), blocks.n_features)
        return possible if self.share.is_part or possible >= FEWEST_COMPONENTS else 1

    def sort_rows(self) -> Summary:
        """Sort the rows by class and component, and score them at the first best point."""
        summary = self.sort_and_score()
        self.first_scores = np.concatenate(summary["scores"])
        return summary

    def sort_and_score(self) -> Summary:
        """Do so in one reduction."""
        return self.blocks.reduce(sort_at_start, self._w, self.sign, self.n_components, self.groups)

    def value_error(self, reach: float) -> float:
        """Return a bound on the rounding of the loss beyond that of scores and sums, where no score is larger than `reach`."""
        return 0.0

    def take(self, step: float, scores: np.ndarray, gap: float, softness: float) -> Cut:
        """Return a cut for each component at a step of the way from the best point to the one scored last.

        Parameters
        ----------
        scores : ndarray of float64
            What the client has of the anchors' scores there.
        gap : float
            What is left of the objective's gap: it says how much slack the loss may have.
        softness : float
            From 0 to 1. Soft cuts may lie below the loss by a share of the gap in proportion to it.
        """
        below = softness * gap if self.is_soft else 0.0
        of_cut, of_loss = self.share.countings(self.blocks, step, scores, self.weights, below)
        anchors, order = self.sort_anchors(scores, of_cut.weights)
        valued: Valued | None = None
        if of_loss is not None:
            same = of_loss.weights is of_cut.weights
            others = None if same else SentScores(self.loss, self.sort_anchors(scores, of_loss.weights)[0])
            valued = others, of_loss.threshold
        taken = self.blocks.reduce(cut_components, step, SentScores(self.loss, anchors), of_cut.threshold, valued)
        slopes = self.loss.anchor_slopes(taken["slope_sums"], anchors, of_cut.weights, order)
        loss = float(taken["loss" if valued is None else "valued"] / self.mass)
        self.share.record(loss - float(taken["loss"] / self.mass))
        return self.as_cut(step, taken, loss, 0.0, slopes, float(of_cut.weights.sum()))

    def as_cut(
        self, step: float, taken: Summary, loss: float, slack: float, slopes: np.ndarray, of_anchors: float
    ) -> Cut:
        """Return a cut from the summary of `cut_components`; `of_anchors` is what the anchors weigh that count."""
        counted = taken.get("counted")
        shares = None if counted is None else counted / counted.sum()
        scale = self.share.scale(of_anchors if counted is None else float(counted.sum()))
        return Cut(step, loss, slack, taken["heights"] * (scale / self.mass), slopes, scale, shares, taken["rows"])

    def finish(self, cut: Cut, keep: bool) -> np.ndarray:
        """Return the gradients of a cut, of shape (n_components, n_features); with `keep` its place becomes the best point."""
        found = self.blocks.reduce(finish_cuts, cut.slopes, self.offsets, cut.step if keep else None)
        gradients: np.ndarray = found["gradients"] * (self.sign * cut.scale / self.mass)
        return gradients

    def slopes_at(
        self, steps: np.ndarray, best_scores: np.ndarray, last_scores: np.ndarray, stride: int, some: int
    ) -> np.ndarray:
        """Return the derivative of the mean loss by the step, at steps of the way from the best point to the one scored last.

        Parameters
        ----------
        steps : ndarray of shape (n_steps,), float64
        best_scores, last_scores : ndarray of float64
            What the client has of the anchors' scores at both ends.
        stride, some : int
            Only one row in so many of the larger class, and one anchor in so many, are used.
        """
        start, weights = best_scores[::some], self.weights[::some]
        along = AnchorsOnLine(start, last_scores[::some] - start, steps, weights)
        if self.share.is_part:
            are_all = some == 1 and self.has_all_scores
            at_steps = [self.share.weights_of_anchors(scores, weights, are_all) for scores in along.points]
            along = replace(along, weights=np.stack(at_steps))
        return self.share.slopes_at(self.blocks, self.loss, steps, stride, along) / along.weights.sum(axis=-1)
