"""The pairwise hinge over the highest-scoring negatives, the loss of a partial AUC, with its certificate.

Minimises ``P(w) = lam/2 |w|^2 + max over u of (1/(n_pos q)) sum_j u_j sum_i max(0, 1 - w.(x_i - x_j))``, i over the positives, j
over the negatives, with u in [0, 1] and a sum of q = beta n_neg; rows with weights count with them. This is the tight convex
surrogate of the partial AUC for false positive rates up to beta (Narasimhan & Agarwal, "Support vector algorithms for optimizing
the partial area under the ROC curve", Neural Computation 29, 2017). The sum over i rises with the score of j, so u is 1 for the
highest-scoring negatives, 0 for the others, and a fraction for those at the boundary, which all have the same score. With q = 1
it is the loss of Li, Jin & Zhou, "Top rank optimization in linear time" (NIPS 2014), with the hinge.

**The bound.** For u as above and variables a in [0, 1] of the pairs, ``mean of u_j a_ij - |g|^2 / (2 lam)`` is nowhere above the
minimum, g being the gradient that they give. Value, gradient and bound of a cut all come from one choice of u.

Departures from the paper: cutting planes with the line search and the proximal point of `aucdist.solvers.pairs.cutting_planes`;
the highest-scoring rows are found without a sort of all (`aucdist.solvers.pairs.top`), and along a line at each step anew.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, LocalBlocks, Summary, without_rows
from aucdist.kernels.rows import accumulate
from aucdist.kernels.top import top_at_step
from aucdist.solvers import sample
from aucdist.solvers.base import Round
from aucdist.solvers.pairs.all_pairs import LEAST_NOISE, NEAR
from aucdist.solvers.pairs.all_pairs_l1 import CuttingPlanesL1
from aucdist.solvers.pairs.anchors import Anchors
from aucdist.solvers.pairs.bundle import Bundle
from aucdist.solvers.pairs.coupled_bundle import ROUNDED, CoupledBundle
from aucdist.solvers.pairs.cutting_planes import STEPS, AllPairsMemory, CuttingPlanes, number_of_groups
from aucdist.solvers.pairs.hinge import HINGE
from aucdist.solvers.pairs.loss import CutPairLoss
from aucdist.solvers.pairs.top import (
    Threshold,
    TopOnLine,
    TopShare,
    scores_at,
    threshold_in_blocks,
    threshold_of,
    top_on_line,
)
from aucdist.solvers.rounding import EPS, Rounding

# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def cut_top(
    block: Block, memory: AllPairsMemory, loss: CutPairLoss, step: float, anchors: Anchors, threshold: Threshold
) -> tuple[AllPairsMemory, Summary]:
    """Take a cut over the rows above the threshold; its gradient so far holds the larger class's part only."""
    scores = scores_at(memory, step)
    n_groups = len(memory.ends) - 1
    tally = np.array([loss.new_tally(anchors.n_places) for _ in range(n_groups)])
    heights, counted, total, n_rows = np.zeros(n_groups), np.zeros(n_groups), 0.0, 0
    gradients = np.zeros((n_groups, block.n_features))
    for g in range(n_groups):
        first = memory.ends[g]
        top = first + np.flatnonzero(scores[first : memory.ends[g + 1]] >= threshold.score)
        weights, coefs = memory.weights[top] * threshold.parts(scores[top]), np.empty(len(top))
        heights[g], of_group = loss.cut(scores[top], weights, anchors, coefs, tally[g])
        accumulate(block.rows, memory.others[top], coefs, gradients[g])
        counted[g] = weights.sum()
        total, n_rows = total + of_group, n_rows + int(np.count_nonzero(coefs))
    summary = {"loss": total, "heights": heights, "tally": tally, "gradients": gradients, "counted": counted}
    return replace(memory, trial=scores), {**summary, "rows": n_rows}


@without_rows
def top_slopes_on_line(
    block: int, memory: AllPairsMemory, loss: CutPairLoss, steps: np.ndarray, stride: int, top: TopOnLine,
    anchors: tuple[np.ndarray, ...],
) -> tuple[AllPairsMemory, Summary]:  # fmt: skip
    """Return the derivative of the loss over the rows in or above each step's boundary cell."""
    slopes, n = np.zeros(len(steps)), len(memory.best)
    which, weights = np.empty(n, dtype=np.int64), np.empty(n)
    for k in range(len(steps)):
        found = top_at_step(
            memory.best, memory.scores, memory.weights, steps[k], stride, top.boundaries[k], top.shift, top.fractions[k],
            which, weights,
        )  # fmt: skip
        start, end = memory.best[which[:found]], memory.scores[which[:found]]
        one, of_step = slice(k, k + 1), tuple(part[k : k + 1] for part in anchors)
        loss.add_slopes_along(start, end, weights[:found], steps[one], 1, of_step, slopes[one])
    return memory, {"slopes": slopes}


# ---- rounds: run by the client ----------------------------------------------------------------------------------------


def top_pairs(
    blocks: Blocks, lam: float, start: np.ndarray | None = None, *, share: TopShare, signs: np.ndarray | None = None
) -> Iterator[Round]:
    """Solve by cutting planes over the pairs of the highest-scoring negatives.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be there.
    lam : float
    start : ndarray of shape (n_features,), optional
        By default the solution over a sample; zero for small data and for a small lam.
    share : TopShare
    signs : ndarray of shape (n_features,), int8, optional
        Of the weights, see `aucdist.solvers.cone`.

    Yields
    ------
    Round
        The best weights so far, their exact objective, the best bound so far.
    """
    passes, part = 0, share.weight(blocks) / blocks.weight_neg

    def on_sample(drawn: Block) -> Iterator[Round] | None:
        # So much smaller is the sample of the negatives that count.
        too_noisy = lam < LEAST_NOISE * sample.noise(drawn) / part
        return None if too_noisy else top_pairs(LocalBlocks([drawn]), lam, share=TopShare(part), signs=signs)

    if start is None:
        last, passes = sample.solve_on_sample(blocks, on_sample, NEAR)
        start = None if last is None else last.w
    for state in TopPairs(blocks, start, share=share, signs=signs).rounds(lam):
        yield replace(state, passes=passes + state.passes)


def top_pairs_l1(
    blocks: Blocks, lam: float, start: np.ndarray | None = None, *, share: TopShare, signs: np.ndarray | None = None
) -> Iterator[Round]:
    """Solve with an L1 penalty by proximal cutting planes; parameters and rounds are those of `top_pairs`."""
    return TopPairsL1(blocks, start, share=share, signs=signs).rounds(lam)


def part_error(blocks: Blocks, rounding: Rounding, wanted: float) -> float:
    """Return a bound on the relative error of the weight of the negatives that count.

    Where rows have weights, the sum of those above the boundary is rounded, and decides how much of those at it counts.
    """
    return (rounding.over_rows if blocks.has_weights else EPS) * blocks.weight_neg / wanted


class TopPairs(CuttingPlanes):
    """`CuttingPlanes` for the highest-scoring negatives.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be there.
    start : ndarray of shape (n_features,) or None
        Zero by default.
    loss : CutPairLoss, default=HINGE
        Falling with the margin, so that the negatives of the highest scores have the largest sums.
    share : TopShare

    Attributes
    ----------
    wanted : float
        The weight of the negatives that count: q.
    """

    def __init__(
        self, blocks: Blocks, start: np.ndarray | None, loss: CutPairLoss = HINGE, *, share: TopShare,
        signs: np.ndarray | None = None,
    ):  # fmt: skip
        self.wanted = share.weight(blocks)
        self._part = self.wanted / blocks.weight_neg
        super().__init__(blocks, start, loss, signs=signs)
        self.mass = blocks.weight_pos * self.wanted
        self._n_others = blocks.n_pos + blocks.n_neg - len(self.weights)
        self.part_error = part_error(blocks, self.rounding, self.wanted) + (ROUNDED if self.n_groups > 1 else 0.0)

    def groups_of(self, blocks: Blocks) -> int:
        """Return how many cuts to take per round: 1 if the negatives are the smaller class, else more than of all pairs.

        Each cut costs a pass over the positives, and the first is needed anyway; the others may together cost as much as a pass
        over all negatives, of which only the highest-scoring ones count here.

        Groups are of rows of the larger class. If those are negatives, the parts u that the groups take from different rounds may
        together have a larger sum than q, and then the bound is none: `CoupledBundle` keeps the sum. If those are positives, each
        group would combine the parts of the same negatives in another way, and no u would belong to all of them.
        """
        if blocks.n_pos > blocks.n_neg:
            return 1
        return number_of_groups(blocks.n_pos, 2 * blocks.n_samples, blocks.n_features)

    def new_bundle(self, n_features: int) -> Bundle:
        """Return an empty bundle, whose groups share the budget q."""
        kind = Bundle if self.n_groups == 1 else CoupledBundle
        return kind(self.n_groups, n_features, signs=self.signs)

    def add_points(self, taken: Summary, gradients: np.ndarray) -> None:
        """Add the cuts to the bundle, with what the rows that count weigh in each group."""
        if isinstance(self.bundle, CoupledBundle):
            shares = taken["counted"] / taken["counted"].sum()
            self.bundle.add_with_shares(taken["heights"] / self.mass, gradients, shares)
        else:
            super().add_points(taken, gradients)

    @property
    def negatives_are_anchors(self) -> bool:
        """Whether the negatives are the smaller class, whose scores the client has; else they are in the blocks."""
        return self.sign < 0

    @property
    def primal_error(self) -> float:
        """A bound on the rounding error of `primal`, with that of the parts of the rows at the boundary."""
        largest = 1.0 + self.best_loss + 2.0 * self.rounding.reach(self.w)
        return super().primal_error + self.part_error * largest

    def dual_error(self, w: np.ndarray) -> float:
        """Return a bound on the rounding error of the bundle's bound; dual variables with too large a sum are scaled down."""
        return super().dual_error(w) + self.part_error * self.bundle.height

    def weight_at_start(self) -> float:
        """Return at w = 0 the weight with which a first step along the gradient would about halve the objective.

        Few negatives count, so the first cuts say little about weights far off: where the minimum is near 0, the bundle's
        minimiser is a thousand times too long. It costs most of the passes to come back from there.
        """
        gradient = self.bundle.newest_gradient()
        return 0.0 if self.w.any() else float(gradient @ gradient) / self.primal

    def counting_weights(self, scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return what the anchors weigh at these scores: where they are negatives, only the highest-scoring ones count."""
        if not self.negatives_are_anchors:
            return weights
        # Scores are mirrored. Of some of the anchors, the same share counts.
        wanted = self.wanted if len(weights) == len(self.weights) else self._part * float(weights.sum())
        return weights * threshold_of(-scores, weights, wanted).parts(-scores)

    def cut_at(self, step: float, anchors: Anchors) -> Summary:
        """Let the blocks take a cut at a step of the way, over the highest-scoring negatives."""
        if self.negatives_are_anchors:
            return super().cut_at(step, anchors)
        threshold = threshold_in_blocks(self.blocks, self._n_others, self.wanted, step)
        return self.blocks.reduce(cut_top, self.loss, step, anchors, threshold)

    def slopes_at_steps(self, stride: int, along: tuple[np.ndarray, ...]) -> np.ndarray:
        """Return the derivative of the loss at `STEPS`, each over the rows that are the highest-scoring ones there."""
        if self.negatives_are_anchors:
            return super().slopes_at_steps(stride, along)
        top = top_on_line(self.blocks, STEPS, stride, self._part)
        found = self.blocks.reduce(top_slopes_on_line, self.loss, STEPS, stride, top, along)
        slopes: np.ndarray = found["slopes"] / top.wanted
        return slopes


class TopPairsL1(TopPairs, CuttingPlanesL1):
    """`TopPairs` with an L1 penalty; the parameters are the same."""

    def groups_of(self, blocks: Blocks) -> int:
        """Return 1: the minimiser of the model with an L1 penalty keeps no budget of several groups."""
        return 1

    def bound_error(self, bound: float) -> float:
        """Return a bound on the rounding error of the bundle's bound; see `dual_error`."""
        return super().bound_error(bound) + self.part_error * bound
