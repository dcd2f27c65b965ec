"""The pairwise hinge: ``max(0, 1 - margin)``."""

from dataclasses import dataclass

import numpy as np

from aucdist.kernels.pairs import cut, hinge_sum, slopes_along
from aucdist.solvers.pairs.anchors import Anchors
from aucdist.solvers.pairs.loss import CutPairLoss


@dataclass(frozen=True)
class PairHinge(CutPairLoss):
    """The hinge of pairs; see `PairLoss` and `CutPairLoss` for what the methods do.

    A pair is active where its margin is below 1. Its dual variable is then 1, and the height of a tangent the weight of the
    active pairs. The tally is a histogram: the weight of the rows that are active with exactly the first r anchors.
    """

    n_sums = 2

    def new_tally(self, n_anchors: int) -> np.ndarray:
        """Return an empty histogram."""
        return np.zeros(n_anchors + 1)

    def cut(
        self, scores: np.ndarray, weights: np.ndarray, anchors: Anchors, coefs: np.ndarray, tally: np.ndarray
    ) -> tuple[float, float]:
        """Return the weight of the active pairs, and the weighted sum of their hinges."""
        active, hinge = cut(scores, weights, *anchors.search(), *anchors.below, coefs, tally)
        return active, hinge

    def anchor_slopes(self, tally: np.ndarray, anchors: Anchors, weights: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Return minus the weight of each anchor's active pairs; tallies of several groups, one a row, give as many rows."""
        above = np.cumsum(tally[..., ::-1], axis=-1)[..., ::-1][..., 1:]
        slopes = np.empty_like(above)
        slopes[..., order] = -above * weights[order]
        return slopes

    def total(self, scores: np.ndarray, weights: np.ndarray, anchors: Anchors) -> float:
        """Return the weighted sum of the hinges."""
        return hinge_sum(scores, weights, *anchors.search(), *anchors.below)

    def add_slopes_along(
        self, start: np.ndarray, end: np.ndarray, weights: np.ndarray, steps: np.ndarray, stride: int,
        anchors: tuple[np.ndarray, ...], slopes: np.ndarray,
    ) -> None:  # fmt: skip
        """Add the derivative of the sum of the hinges by the step."""
        slopes_along(start, end, weights, steps, stride, *anchors, slopes)


HINGE = PairHinge()
