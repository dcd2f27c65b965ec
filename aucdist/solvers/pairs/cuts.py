"""Cuts of the pairwise hinge: tangents of the loss, from the exact scores of the anchors, which are the smaller class.

The anchors are the rows of the smaller class (`aucdist.solvers.pairs.loss`). The client has their scores, sorts them and sends
them to all blocks; where there are too many of them, `aucdist.solvers.pairs.cell_cuts` takes the place of `PairCuts`. Which
negatives count is `aucdist.solvers.pairs.top_negatives`'s.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary, without_rows
from aucdist.solvers.pairs.groups import PairGroups
from aucdist.solvers.pairs.kernels import cut
from aucdist.solvers.pairs.loss import HINGE, Anchors, PairHinge, ScoredRows
from aucdist.solvers.pairs.problem import CutMemory, PairProblem, rows_from, score_at_start, sort_by_class, sum_of_rows
from aucdist.solvers.pairs.top_negatives import CountedNegatives, Counting, Threshold, scores_at

STEPS_OF_STAIR = 5
"""The number of steps of the staircase. It is odd, so that the middle one is the hinge itself. With 3, 7, 9 or 15, a
fit takes about the same number of passes."""


@dataclass(frozen=True, eq=False)
class Cut:
    """A cut before the rows are added up to its gradient.

    Attributes
    ----------
    step : float
        Where it was taken.
    loss, slack : float
        The mean loss is at most the first, and at least the first minus the second.
    counted_loss : float
        The mean loss of the rows as they count for the cut.
    height : float
        At w = 0.
    slopes : ndarray of float64
        The derivative of the loss by the anchors' scores, in the form that `PairCuts.finish` takes.
    scale : float
        A factor of the gradient; the height has it.
    n_band : float
        How many rows of the larger class are in pairs within the band of the shifts.
    counting : Counting
        How much the rows count for it.
    """

    step: float
    loss: float
    slack: float
    counted_loss: float
    height: float
    slopes: np.ndarray
    scale: float
    n_band: float
    counting: Counting


HardLoss = tuple[Anchors | None, Threshold | None]
"""The anchors (None for those of the cut), and the threshold at which the loss is evaluated if it differs from that of
the cut."""


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def sort_at_start(
    block: Block, memory: None, w: np.ndarray, sign: int, groups: PairGroups | None
) -> tuple[CutMemory, Summary]:
    """Sort the rows by class and score them at the start, which is the present point."""
    sorted_, weights = sort_by_class(block, memory, sign, groups)
    scores, squares = score_at_start(block, sign * w)
    present = scores.take(sorted_.others)
    at_start = CutMemory(**vars(replace(sorted_, scores=present)), present=present, squares=squares)
    return at_start, {**weights, "scores": [scores.take(sorted_.anchors)]}


@without_rows
def take_cut(
    block: int, memory: Any, step: float, loss: PairHinge, anchors: Anchors, shifts: np.ndarray,
    threshold: Threshold | None, hard_loss: HardLoss | None = None,
) -> tuple[Any, Summary]:  # fmt: skip
    """Take a cut at a step of the way, over the rows from the threshold on, or over all for None.

    With `hard_loss` the loss there is summed as well, as ``"hard_loss"``.
    """
    rows = ScoredRows(scores_at(memory, step), memory.weights, memory.runs)
    which, above = rows_from(threshold, rows)
    coefs, slope_sums = np.zeros(len(rows.scores)), loss.zero_slope_sums(anchors.n_gaps)
    slopes = coefs if threshold is None else np.empty(len(above.scores))
    height, total, doubt, n_band = cut(tuple(above), shifts, anchors.search, anchors.doubt, slopes, slope_sums)
    summary = {"loss": total, "doubt": doubt, "slope_sums": slope_sums, "height": height, "n_band": n_band}
    if threshold is not None:
        coefs[which] = slopes
        summary["counted"] = above.weights.sum()
    if hard_loss is not None:
        anchors_of_loss, hard = hard_loss
        summary["hard_loss"] = loss.total(
            rows_from(hard, rows)[1], anchors if anchors_of_loss is None else anchors_of_loss
        )
    return replace(memory, coefs=coefs), summary


def finish_cut(
    block: Block, memory: Any, slopes: np.ndarray, offsets: np.ndarray, step: float | None
) -> tuple[Any, Summary]:
    """Return the gradient; with a step, where the cut was taken, that becomes the present point."""
    gradient = sum_of_rows(block, memory, slopes[offsets[block.index] : offsets[block.index + 1]])
    return moved(memory, step), {"gradient": gradient}


def moved(memory: Any, step: float | None) -> Any:
    """Return the memory after a cut, without what only the cut needed."""
    present = memory.present if step is None else scores_at(memory, step)
    return replace(memory, present=present, scores=present, coefs=np.zeros(0))


# ---- rounds: run by the client ----------------------------------------------------------------------------------------


def shifts(h: float) -> np.ndarray:
    """Return the shifts of the stair of half-width h: ascending, the middle one 0; only that for h = 0."""
    if h == 0.0:
        return np.zeros(1)
    n = STEPS_OF_STAIR
    return h * ((2 * np.arange(n) + 1 - n) / n)


class PairCuts(PairProblem):
    """The hinge over the pairs that count, and its cuts, along lines from the present point.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be there.
    negatives : CountedNegatives
    w : ndarray of shape (n_features,), float64
        The first point.
    groups : PairGroups, optional
        Where pairs are within groups.
    """

    loss: PairHinge

    def __init__(self, blocks: Blocks, negatives: CountedNegatives, w: np.ndarray, *, groups: PairGroups | None = None):
        self.negatives, self._w, self.groups = negatives, w, groups
        super().__init__(blocks, HINGE, groups)
        if negatives.is_top_only:
            self.mass = negatives.mass

    def sort_rows(self) -> Summary:
        """Sort the rows by class, and score them at the first point."""
        return self.blocks.reduce(sort_at_start, self._w, self.sign, self.groups)

    def value_error(self, reach: float) -> float:
        """Return a bound on the rounding of the loss beyond that of scores and sums, where no score is larger than `reach`."""
        return 0.0

    def cut_at(self, step: float, scores: np.ndarray, gap: float, h: float, width: float) -> Cut:
        """Return a cut at a step of the way from the present point to the one scored last.

        Parameters
        ----------
        scores : ndarray of float64
            What the client has of the anchors' scores there.
        gap : float
            What is left of the objective's gap: it says how much slack the loss may have.
        h : float
            The half-width of the band of pairs. The cut is the mean of those at scores of the larger class that are shifted
            by the `shifts` within it: see `aucdist.solvers.pairs.kernels.cut_group`.
        width : float
            The width of the band in which negatives count in part, where only the highest-scoring ones count.
        """
        of_cut, of_loss = self.negatives.countings(self.blocks, step, scores, self.weights, h, width)
        anchors, order = self.sort_anchors(scores, of_cut.weights)
        of_rows = None if self.negatives.are_anchors else of_cut.threshold
        hard_loss: HardLoss | None = None
        if of_loss is not None:
            same = not self.negatives.are_anchors
            hard_loss = (None, of_loss.threshold) if same else (self.sort_anchors(scores, of_loss.weights)[0], None)
        taken = self.blocks.reduce(take_cut, step, self.loss, anchors, shifts(h), of_rows, hard_loss)
        slopes = self.loss.anchor_slopes(taken["slope_sums"], anchors, of_cut.weights, order)
        loss = float(taken["loss" if hard_loss is None else "hard_loss"] / self.mass)
        return self.as_cut(step, taken, loss, 0.0, slopes, of_cut, len(shifts(h)))

    def as_cut(
        self,
        step: float,
        taken: Summary,
        loss: float,
        slack: float,
        slopes: np.ndarray,
        counting: Counting,
        n_shifts: int,
    ) -> Cut:
        """Return a cut from the summary of `take_cut`."""
        counted = float(taken.get("counted", counting.weights.sum()))
        scale = self.negatives.scale(counted) / n_shifts
        return Cut(
            step=step, loss=loss, slack=slack, counted_loss=float(taken["loss"]) * (n_shifts * scale / self.mass),
            height=taken["height"] * (scale / self.mass), slopes=slopes, scale=scale, n_band=taken["n_band"], counting=counting,
        )  # fmt: skip

    def finish(self, cut: Cut, keep: bool) -> np.ndarray:
        """Return the gradient of a cut, of shape (n_features,); with `keep` its place becomes the present point."""
        summary = self.blocks.reduce(finish_cut, cut.slopes, self.offsets, cut.step if keep else None)
        gradient: np.ndarray = summary["gradient"] * (self.sign * cut.scale / self.mass)
        return gradient
