"""The pairwise hinge: ``max(0, 1 - margin)``."""

from dataclasses import dataclass

import numpy as np

from aucdist.kernels.pairs import anchor_slopes, cut
from aucdist.solvers.pairs.anchors import Anchors, Runs
from aucdist.solvers.pairs.loss import PairLoss

NO_SHIFT = np.zeros(1)


@dataclass(frozen=True)
class PairHinge(PairLoss):
    """The hinge of pairs; see `PairLoss` for what the methods do.

    A pair is active if its margin is below 1. Its dual variable is then 1, so the height of a tangent is the weight of the active
    pairs. The slope sums are a histogram: the weight of the rows that are active with exactly the first r anchors.
    """

    convex = True
    n_sums = 2

    def zero_slope_sums(self, n_gaps: int) -> np.ndarray:
        """Return an empty histogram."""
        return np.zeros(n_gaps)

    def loss_and_row_slopes(
        self,
        scores: np.ndarray,
        weights: np.ndarray,
        runs: Runs,
        anchors: Anchors,
        coefs: np.ndarray,
        slope_sums: np.ndarray,
    ) -> float:
        """Return the weighted sum of the hinges."""
        return self.cut(scores, weights, runs, NO_SHIFT, anchors, coefs, slope_sums)[1]

    def cut(
        self, scores: np.ndarray, weights: np.ndarray, runs: Runs, shifts: np.ndarray, anchors: Anchors, coefs: np.ndarray,
        slope_sums: np.ndarray,
    ) -> tuple[float, float, float, int]:  # fmt: skip
        """Return the height at zero of the tangents at shifted scores, the hinges, their doubt, and the rows in the band.

        A tangent, ``height + slopes * scores``, is nowhere above the sum of the hinges. Its slopes are sums of dual variables of
        pairs, and its height is their dual value; both come from the same dual variables, whatever the rounding. Heights and
        slopes are summed over the shifts: see `aucdist.kernels.pairs.cut_group`.
        """
        height, loss, doubt, n_band = cut(
            scores, weights, shifts, *anchors.search(runs), anchors.doubt, coefs, slope_sums
        )
        return height, loss, doubt, n_band

    def anchor_slopes(
        self, slope_sums: np.ndarray, anchors: Anchors, weights: np.ndarray, order: np.ndarray
    ) -> np.ndarray:
        """Return minus the weight of each anchor's active pairs."""
        slopes = np.empty(len(weights))
        anchor_slopes(slope_sums, anchors.starts, weights[order], order, slopes)
        return slopes


HINGE = PairHinge()
