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

**Parts near the threshold.** At the minimum hundreds of negatives have the same score as the threshold, and each counts in part.
Cuts that count each fully or not at all come to these parts slowly, by mixing hundreds of cuts. So the parts of a cut rise
linearly with the score, over a band around the threshold (`SoftThreshold`): any parts in [0, 1] whose sum is at most q give a
true lower bound, while the loss itself is that of the hard threshold. It is the smoothing of Nesterov, "Smooth minimization of
non-smooth functions" (Mathematical Programming 103, 2005), for the maximum over the parts, and the band narrows with that of the
pairs (`aucdist.solvers.pairs.newton`).

Departures from the paper: Newton steps on the smoothed loss, or cutting planes (`aucdist.solvers.pairs.cutting_planes`); the
highest-scoring rows are found without a sort of all (`aucdist.solvers.pairs.top`).
"""

from dataclasses import dataclass

import numpy as np

from aucdist.engine.blocks import Blocks
from aucdist.solvers.pairs.top import (
    Band,
    SoftThreshold,
    Threshold,
    TopShare,
    are_few,
    gather_negatives,
    soften_in_blocks,
    threshold_in_blocks,
)
from aucdist.solvers.rounding import EPS, Rounding


@dataclass(frozen=True, eq=False)
class Counting:
    """How much each row counts.

    Attributes
    ----------
    weights : ndarray of shape (n_anchors,), float64
        How much the anchors count.
    threshold : Threshold, SoftThreshold or None
        Which negatives count; None for all.
    """

    weights: np.ndarray
    threshold: Threshold | SoftThreshold | None = None


class AllNegatives:
    """All negatives count.

    Attributes
    ----------
    mass : float
        The total weight of the pairs that count.
    wanted : float
        The weight of the negatives that count.
    is_part : bool
        Whether only a part of the negatives counts.
    are_anchors : bool
        Whether only a part counts, and the negatives are the smaller class.
    part_error : float
        A bound on the relative error of what the negatives that count weigh.
    """

    is_part = False
    are_anchors = False
    part_error = 0.0

    def __init__(self, blocks: Blocks):
        self.wanted = blocks.weight_neg
        self.mass = blocks.weight_pos * self.wanted

    def countings(
        self, blocks: Blocks, step: float, scores: np.ndarray, weights: np.ndarray, width: float
    ) -> tuple[Counting, Counting | None]:
        """Return how much rows count for a cut at a step of the way, and for the loss there; None for the same.

        Parameters
        ----------
        scores, weights : ndarray of shape (n_anchors,), float64
            The (mirrored) scores of all anchors at this step, and their weights.
        width : float
            Of the band around the threshold in which negatives count in part; 0 for none.
        """
        return Counting(weights), None

    def scale(self, counted: float) -> float:
        """Return the factor that makes a cut feasible whose negatives weigh so much, as their rounded sum says."""
        return 1.0

    def threshold(self, blocks: Blocks, step: float | None, *, of_anchors: bool = False) -> Threshold | None:
        """Return which rows of a class count at a step of the way, by scores not mirrored; None for all.

        `of_anchors`: of the smaller class, where it lies in the blocks; else of the larger one.
        """
        return None


class TopNegatives(AllNegatives):
    """Only the highest-scoring negatives count; their weight is q."""

    is_part = True

    def __init__(self, blocks: Blocks, share: TopShare, rounding: Rounding):
        self.wanted = share.weight(blocks)
        self.mass = blocks.weight_pos * self.wanted
        self.are_anchors = blocks.n_pos > blocks.n_neg
        self._n_neg = blocks.n_neg
        # Where rows have weights, the sum of those above the boundary is rounded, and decides how much of those at it counts.
        of_hard = (rounding.over_rows if blocks.has_weights else EPS) * blocks.weight_neg / self.wanted
        self.part_error = of_hard + rounding.over_rows

    def countings(
        self, blocks: Blocks, step: float, scores: np.ndarray, weights: np.ndarray, width: float
    ) -> tuple[Counting, Counting | None]:
        """Return how much rows count for a cut, those near the threshold in part, and for the loss; see `AllNegatives`."""
        if not self.are_anchors and not are_few(self._n_neg):
            hard = threshold_in_blocks(blocks, self._n_neg, self.wanted, step)
            soft = soften_in_blocks(blocks, hard, self.wanted, width, step)
        else:
            band = Band(
                *((-scores, weights) if self.are_anchors else gather_negatives(blocks, step, False)), self.wanted
            )
            hard, soft = band.hard, band.soften(width)
        of_loss, of_cut = (
            None if t is None else Counting(self._of_anchors(scores, weights, t), t) for t in (hard, soft)
        )
        assert of_loss is not None
        return (of_loss, None) if of_cut is None else (of_cut, of_loss)

    def _of_anchors(self, scores: np.ndarray, weights: np.ndarray, threshold: Threshold | SoftThreshold) -> np.ndarray:
        return weights * threshold.parts(-scores) if self.are_anchors else weights

    def scale(self, counted: float) -> float:
        """Return the factor that makes a cut feasible whose negatives weigh so much, as their rounded sum says."""
        return min(1.0, self.wanted / counted) if counted > 0.0 else 1.0

    def threshold(self, blocks: Blocks, step: float | None, *, of_anchors: bool = False) -> Threshold | None:
        """Return which rows of a class count at a step of the way, if they are the negatives."""
        if of_anchors != self.are_anchors:
            return None
        return threshold_in_blocks(blocks, self._n_neg, self.wanted, step, are_anchors=of_anchors)
