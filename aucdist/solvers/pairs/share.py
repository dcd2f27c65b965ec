"""Which negatives count: all of them, or the highest-scoring ones, the loss of a partial AUC.

`TopNegatives` minimises ``P(w) = penalty(w) + max over u of (1/(n_pos q)) sum_j u_j sum_i max(0, 1 - w.(x_i - x_j))``, i over the
positives, j over the negatives, with u in [0, 1] and a sum of q = beta n_neg; rows with weights count with them. This is the
tight convex surrogate of the partial AUC for false positive rates up to beta (Narasimhan & Agarwal, "Support vector algorithms
for optimizing the partial area under the ROC curve", Neural Computation 29, 2017). The sum over i rises with the score of j, so u
is 1 for the highest-scoring negatives, 0 for the others, and a fraction for those at the boundary, which all have the same score.
With q = 1 it is the loss of Li, Jin & Zhou, "Top rank optimization in linear time" (NIPS 2014), with the hinge.

**The bound.** For u as above and variables a in [0, 1] of the pairs, ``mean of u_j a_ij - |g|^2 / (2 lam)`` is nowhere above the
minimum of the objective with an L2 penalty, g being the gradient that they give; other penalties as of all pairs
(`aucdist.solvers.pairs.penalty`). Value, gradient and bound of a cut all come from one choice of u.

Departures from the paper: cutting planes with the line search and the proximal point of `aucdist.solvers.pairs.cutting_planes`;
the highest-scoring rows are found without a sort of all (`aucdist.solvers.pairs.top`), and along a line at each step anew;
cuts count those near the threshold in part (`aucdist.solvers.pairs.soft_top`).
"""

from dataclasses import dataclass

import numpy as np

from aucdist.engine.blocks import Blocks, Summary, without_rows
from aucdist.kernels.top import top_at_step
from aucdist.solvers.pairs.anchors import AnchorsOnLine
from aucdist.solvers.pairs.bundle import Bundle
from aucdist.solvers.pairs.coupled_bundle import ROUNDED, CoupledBundle
from aucdist.solvers.pairs.loss import CutPairLoss
from aucdist.solvers.pairs.problem import CutMemory
from aucdist.solvers.pairs.soft_top import Band, Softener, SoftThreshold
from aucdist.solvers.pairs.top import (
    Threshold,
    TopOnLine,
    TopShare,
    are_few,
    gather_line,
    gather_negatives,
    threshold_in_blocks,
    top_on_line,
)
from aucdist.solvers.rounding import EPS, Rounding

# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


@without_rows
def slopes_on_line(
    block: int, memory: CutMemory, loss: CutPairLoss, steps: np.ndarray, stride: int, anchors: AnchorsOnLine
) -> tuple[CutMemory, Summary]:
    """Return the loss's derivative at steps of the way from the best point to the bundle's, and the weight of the rows used."""
    slopes = np.zeros(len(steps))
    loss.add_slopes_along(memory.best, memory.scores, memory.weights, steps, stride, anchors.at_steps, slopes)
    return memory, {"slopes": slopes, "weight": memory.weights[::stride].sum()}


@without_rows
def top_slopes_on_line(
    block: int, memory: CutMemory, loss: CutPairLoss, steps: np.ndarray, stride: int, top: TopOnLine,
    anchors: AnchorsOnLine,
) -> tuple[CutMemory, Summary]:  # fmt: skip
    """Return the derivative of the loss over the rows in or above each step's boundary cell."""
    slopes, n = np.zeros(len(steps)), len(memory.best)
    which, weights = np.empty(n, dtype=np.int64), np.empty(n)
    for k in range(len(steps)):
        found = top_at_step(
            memory.best, memory.scores, memory.weights, steps[k], stride, top.boundaries[k], top.shift, top.fractions[k],
            which, weights,
        )  # fmt: skip
        start, end = memory.best[which[:found]], memory.scores[which[:found]]
        one, of_step = slice(k, k + 1), tuple(part[k : k + 1] for part in anchors.at_steps)
        loss.add_slopes_along(start, end, weights[:found], steps[one], 1, of_step, slopes[one])
    return memory, {"slopes": slopes}


@without_rows
def slopes_at_thresholds(
    block: int, memory: CutMemory, loss: CutPairLoss, steps: np.ndarray, stride: int,
    thresholds: list[Threshold | SoftThreshold], anchors: AnchorsOnLine,
) -> tuple[CutMemory, Summary]:  # fmt: skip
    """Return the derivative of the loss over the rows that count at each step, those near a soft threshold in part."""
    start, end, weights = memory.best[::stride], memory.scores[::stride], memory.weights[::stride]
    lowest = min(threshold.score for threshold in thresholds)
    # A score at a step lies between those at the first and at the last.
    near = np.maximum(start + steps[0] * (end - start), start + steps[-1] * (end - start)) >= lowest
    start, end, weights = start[near], end[near], weights[near]
    change, slopes = end - start, np.zeros(len(steps))
    for k, threshold in enumerate(thresholds):
        parts = weights * threshold.parts(start + steps[k] * change)
        which = np.flatnonzero(parts)
        one, of_step = slice(k, k + 1), tuple(part[k : k + 1] for part in anchors.at_steps)
        loss.add_slopes_along(start[which], end[which], parts[which], steps[one], 1, of_step, slopes[one])
    return memory, {"slopes": slopes}


# ---- rounds: run by the client ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Counting:
    """How much each row counts.

    Attributes
    ----------
    threshold : Threshold, SoftThreshold or None
        Which rows of the larger class count; None for all.
    weights : ndarray of shape (n_anchors,), float64
        How much the anchors count.
    """

    threshold: Threshold | SoftThreshold | None
    weights: np.ndarray


class AllNegatives:
    """All negatives count.

    Attributes
    ----------
    mass : float
        The total weight of the pairs that count.
    is_part : bool
        Whether only a part of the negatives counts.
    part_error : float
        A bound on the relative error of what the negatives that count weigh.
    """

    is_part = False
    part_error = 0.0

    def __init__(self, blocks: Blocks):
        self.mass = blocks.weight_pos * blocks.weight_neg

    def rows_for_cuts(self, blocks: Blocks) -> int:
        """Return the number of rows that bounds what all cuts of a round together may cost: 0 for one cut a round."""
        return blocks.n_samples - min(blocks.n_pos, blocks.n_neg)

    def new_bundle(self, n_components: int, n_features: int) -> Bundle:
        """Return an empty bundle."""
        return Bundle(n_components, n_features)

    def countings(
        self, blocks: Blocks, step: float, scores: np.ndarray, weights: np.ndarray, gap: float
    ) -> tuple[Counting, Counting | None]:
        """Return how much rows count for a cut at a step of the way, and for the loss there; None for the same.

        Parameters
        ----------
        scores, weights : ndarray of shape (n_anchors,), float64
            The (mirrored) scores of all anchors at this step, and their weights.
        gap : float
            What is left of the objective's gap.
        """
        return Counting(None, weights), None

    def scale(self, counted: float) -> float:
        """Return the factor that makes a cut feasible whose negatives weigh so much, as their rounded sum says."""
        return 1.0

    def record(self, slack: float) -> None:
        """Learn from the slack of a cut."""

    def weights_of_anchors(self, scores: np.ndarray, weights: np.ndarray, are_all: bool) -> np.ndarray:
        """Return how much anchors of these (mirrored) scores and weights count, float64 of shape (n_anchors,).

        With `are_all` they are all anchors, else a sample of them.
        """
        return weights

    def threshold(self, blocks: Blocks, step: float | None) -> Threshold | None:
        """Return which rows of the larger class count at a step of the way, as `cut_components` takes it; None for all."""
        return None

    def threshold_of_anchors(self, blocks: Blocks, step: float) -> Threshold | None:
        """Return which anchors count at a step of the way where they lie in the blocks, by scores not mirrored; None for all."""
        return None

    def slopes_at(
        self, blocks: Blocks, loss: CutPairLoss, steps: np.ndarray, stride: int, along: AnchorsOnLine
    ) -> np.ndarray:
        """Return the derivative of the loss by the step, as a mean over the larger class's rows that count at each step."""
        found = blocks.reduce(slopes_on_line, loss, steps, stride, along)
        slopes: np.ndarray = found["slopes"] / found["weight"]
        return slopes


class TopNegatives(AllNegatives):
    """Only the highest-scoring negatives count.

    Attributes
    ----------
    wanted : float
        The weight of the negatives that count: q.
    are_anchors : bool
        Whether the negatives are the smaller class.
    """

    is_part = True

    def __init__(self, blocks: Blocks, share: TopShare, rounding: Rounding):
        self.wanted = share.weight(blocks)
        self.mass = blocks.weight_pos * self.wanted
        self.are_anchors = blocks.n_pos > blocks.n_neg
        self._part, self._n_neg = self.wanted / blocks.weight_neg, blocks.n_neg
        # Where rows have weights, the sum of those above the boundary is rounded, and decides how much of those at it counts.
        of_hard = (rounding.over_rows if blocks.has_weights else EPS) * blocks.weight_neg / self.wanted
        self.part_error = of_hard + rounding.over_rows
        self._softener = Softener()

    def rows_for_cuts(self, blocks: Blocks) -> int:
        """Return 0 if the negatives are the smaller class, else more than of all pairs.

        Each cut costs a pass over the positives, and the first is needed anyway; the others may together cost as much as two
        passes over all negatives, of which only the highest-scoring ones count here.

        Components are of rows of the larger class. If those are negatives, the parts u that the components take from different
        rounds may together have a larger sum than q, and then the bound is none: `CoupledBundle` keeps the sum. If those are
        positives, each component would combine the parts of the same negatives in another way, and no u would belong to all of
        them.
        """
        return 0 if self.are_anchors else 4 * blocks.n_samples

    def new_bundle(self, n_components: int, n_features: int) -> Bundle:
        """Return an empty bundle, whose components share the budget q."""
        if n_components == 1:
            return Bundle(n_components, n_features)
        self.part_error += ROUNDED
        return CoupledBundle(n_components, n_features)

    def countings(
        self, blocks: Blocks, step: float, scores: np.ndarray, weights: np.ndarray, gap: float
    ) -> tuple[Counting, Counting | None]:
        """Return how much rows count for a cut, those near the threshold in part, and for the loss; see `AllNegatives`."""
        if self.are_anchors:
            band = Band(-scores, weights, self.wanted)
            soft, of_loss = self._softener.threshold(band, gap), Counting(None, weights * band.hard.parts(-scores))
            return (of_loss, None) if soft is None else (Counting(None, weights * soft.parts(-scores)), of_loss)
        if not gap > 0.0:
            self._softener.width_of_cut = 0.0
            return Counting(threshold_in_blocks(blocks, self._n_neg, self.wanted, step), weights), None
        band = Band(*gather_negatives(blocks, step, False), self.wanted)
        soft, of_loss = self._softener.threshold(band, gap), Counting(band.hard, weights)
        return (of_loss, None) if soft is None else (Counting(soft, weights), of_loss)

    def scale(self, counted: float) -> float:
        """Return the factor that makes a cut feasible whose negatives weigh so much, as their rounded sum says."""
        return min(1.0, self.wanted / counted)

    def record(self, slack: float) -> None:
        """Learn from the slack of a cut."""
        self._softener.record(slack)

    def weights_of_anchors(self, scores: np.ndarray, weights: np.ndarray, are_all: bool) -> np.ndarray:
        """Return what the anchors weigh at these scores: where they are negatives, only the highest-scoring ones count."""
        if not self.are_anchors:
            return weights
        # Scores are mirrored. Of some of the anchors, the same share counts.
        wanted = self.wanted if are_all else self._part * float(weights.sum())
        return weights * self._softener.threshold_on_line(-scores, weights, wanted).parts(-scores)

    def threshold(self, blocks: Blocks, step: float | None) -> Threshold | None:
        """Return which rows of the larger class count at a step of the way, if they are negatives."""
        return None if self.are_anchors else threshold_in_blocks(blocks, self._n_neg, self.wanted, step)

    def threshold_of_anchors(self, blocks: Blocks, step: float) -> Threshold | None:
        """Return which anchors count at a step of the way, if they are negatives."""
        if not self.are_anchors:
            return None
        return threshold_in_blocks(blocks, self._n_neg, self.wanted, step, are_anchors=True)

    def slopes_at(
        self, blocks: Blocks, loss: CutPairLoss, steps: np.ndarray, stride: int, along: AnchorsOnLine
    ) -> np.ndarray:
        """Return the derivative of the loss by the step, each over the rows that are the highest-scoring ones there."""
        if self.are_anchors:
            return super().slopes_at(blocks, loss, steps, stride, along)
        if are_few(self._n_neg):
            line = blocks.reduce(gather_line, stride)
            start, end, weights = (np.concatenate(line[name]) for name in ("start", "end", "weights"))
            wanted = self._part * float(weights.sum())
            thresholds = self._softener.thresholds_on_line(start, end, weights, steps, wanted)
            exact: np.ndarray = blocks.reduce(slopes_at_thresholds, loss, steps, stride, thresholds, along)["slopes"]
            return exact / wanted
        top = top_on_line(blocks, steps, stride, self._part)
        found = blocks.reduce(top_slopes_on_line, loss, steps, stride, top, along)
        slopes: np.ndarray = found["slopes"] / top.wanted
        return slopes
