"""The pairwise hinge: ``max(0, 1 - margin)``."""

from dataclasses import dataclass

import numpy as np

from aucdist.kernels.pair_groups import anchor_slopes_in_groups, cut_in_groups, hinge_sum_in_groups
from aucdist.kernels.pairs import cut, hinge_sum, slopes_along
from aucdist.solvers.pairs.anchors import Anchors
from aucdist.solvers.pairs.grouped_anchors import GroupedAnchors
from aucdist.solvers.pairs.loss import CutPairLoss


@dataclass(frozen=True)
class PairHinge(CutPairLoss):
    """The hinge of pairs; see `PairLoss` and `CutPairLoss` for what the methods do.

    A pair is active if its margin is below 1. Its dual variable is then 1, so the height of a tangent is the weight of the active
    pairs. The slope_sums is a histogram: the weight of the rows that are active with exactly the first r anchors.
    """

    n_sums = 2

    def zero_slope_sums(self, n_gaps: int) -> np.ndarray:
        """Return an empty histogram."""
        return np.zeros(n_gaps)

    def in_groups(self) -> "PairHinge":
        """Return the hinge of the pairs within groups."""
        return HINGE_IN_GROUPS

    def cut(
        self, scores: np.ndarray, weights: np.ndarray, anchors: Anchors, coefs: np.ndarray, slope_sums: np.ndarray
    ) -> tuple[float, float]:
        """Return the weight of the active pairs, and the weighted sum of their hinges."""
        active, hinge = cut(scores, weights, *anchors.search(), *anchors.prefix_sums, coefs, slope_sums)
        return active, hinge

    def anchor_slopes(
        self, slope_sums: np.ndarray, anchors: Anchors, weights: np.ndarray, order: np.ndarray
    ) -> np.ndarray:
        """Return minus the weight of each anchor's active pairs; those of several components give as many rows."""
        above = np.cumsum(slope_sums[..., ::-1], axis=-1)[..., ::-1][..., 1:]
        slopes = np.empty_like(above)
        # Minus from 0: where no pair is active, -0 would not travel as an integer.
        slopes[..., order] = 0.0 - above * weights[order]
        return slopes

    def total(self, scores: np.ndarray, weights: np.ndarray, anchors: Anchors) -> float:
        """Return the weighted sum of the hinges."""
        return hinge_sum(scores, weights, *anchors.search(), *anchors.prefix_sums)

    def add_slopes_along(
        self, start: np.ndarray, end: np.ndarray, weights: np.ndarray, steps: np.ndarray, stride: int,
        anchors: tuple[np.ndarray, ...], slopes: np.ndarray,
    ) -> None:  # fmt: skip
        """Add the derivative of the sum of the hinges by the step."""
        slopes_along(start, end, weights, steps, stride, *anchors, slopes)


@dataclass(frozen=True)
class PairHingeInGroups(PairHinge):
    """The hinge of the pairs within groups; the anchors are `GroupedAnchors`."""

    def cut(
        self, scores: np.ndarray, weights: np.ndarray, anchors: Anchors, coefs: np.ndarray, slope_sums: np.ndarray
    ) -> tuple[float, float]:
        """Return the weight of the active pairs, and the weighted sum of their hinges."""
        active, hinge = cut_in_groups(scores, weights, *anchors.search(), *anchors.prefix_sums, coefs, slope_sums)
        return active, hinge

    def anchor_slopes(
        self, slope_sums: np.ndarray, anchors: Anchors, weights: np.ndarray, order: np.ndarray
    ) -> np.ndarray:
        """Return minus the weight of each anchor's active pairs; slope sums of several components give as many rows."""
        assert isinstance(anchors, GroupedAnchors)
        slopes = np.empty((*slope_sums.shape[:-1], len(weights)))
        rows = slopes.reshape(-1, len(weights))
        anchor_slopes_in_groups(
            slope_sums.reshape(-1, slope_sums.shape[-1]), anchors.starts, weights[order], order, rows
        )
        return slopes

    def total(self, scores: np.ndarray, weights: np.ndarray, anchors: Anchors) -> float:
        """Return the weighted sum of the hinges."""
        return hinge_sum_in_groups(scores, weights, *anchors.search(), *anchors.prefix_sums)


HINGE = PairHinge()
HINGE_IN_GROUPS = PairHingeInGroups()
