"""What a loss of pairs is: its sum over all pairs and its slopes, from the scores of some rows and the sorted anchors.

The anchors are the rows of the smaller class (`aucdist.solvers.pairs.anchors`). A loss is a function of the margin, the score of
a pair's positive row minus that of its negative one; scores are mirrored where the negatives are the anchors, so that a margin is
always an anchor's score minus the score of a row of the larger class.

A new loss is a file with a subclass of `PairLoss`, and a `Solver` whose rounds are those of ``pair_lbfgs(..., loss=...)``
(`aucdist.solvers.pairs.smooth`). Losses are sent to the blocks: they are frozen dataclasses without fields,
or with plain values as fields.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from aucdist.solvers.pairs.anchors import Anchors, Runs


@dataclass(frozen=True)
class PairLoss(ABC):
    """A loss of the margins of pairs.

    Attributes
    ----------
    convex : bool
        If it is, a gradient gives a lower bound on the objective. If not, the loss must be the difference of two convex
        functions, as every loss is whose slope changes at a bounded rate. For L-BFGS, convex or not, the slope must change at
        a rate of at most 1: the bounds on rounding errors rely on it.
    n_sums : int
        The number of running sums over the anchors that it needs, see `Anchors.prefix_sums`.
    centred : bool
        Whether the median score of the anchors is taken as zero, because squares of scores are summed.
    """

    convex: ClassVar[bool]
    n_sums: ClassVar[int]
    centred: ClassVar[bool] = False

    @abstractmethod
    def zero_slope_sums(self, n_gaps: int) -> np.ndarray:
        """Return zeros for `loss_and_row_slopes` to add to: the sums that `anchor_slopes` takes. Those of all blocks are added.

        Parameters
        ----------
        n_gaps : int
            See `Anchors.n_gaps`.
        """

    @abstractmethod
    def loss_and_row_slopes(
        self,
        scores: np.ndarray,
        weights: np.ndarray,
        runs: Runs,
        anchors: Anchors,
        coefs: np.ndarray,
        slope_sums: np.ndarray,
    ) -> float:
        """Return the weighted sum of the loss over all pairs of these rows with the anchors of their groups.

        Parameters
        ----------
        scores, weights : ndarray of shape (n_rows,), float64
            Rows of the larger class; the weight of a pair is the product of those of its rows. A loss over a share of the rows,
            such as a partial AUC, gives the other rows the weight 0.
        runs : tuple of ndarray
            Which rows are of which group.
        coefs : ndarray of shape (n_rows,), float64
            Written: the derivative of the sum by each row's score.
        slope_sums : ndarray
            Added to.
        """

    @abstractmethod
    def anchor_slopes(
        self, slope_sums: np.ndarray, anchors: Anchors, weights: np.ndarray, order: np.ndarray
    ) -> np.ndarray:
        """Return the derivative of the sum by each anchor's score, float64 of shape (n_anchors,).

        Parameters
        ----------
        slope_sums : ndarray
            Of all rows of the larger class, from `loss_and_row_slopes`.
        weights : ndarray of shape (n_anchors,), float64
        order : ndarray of shape (n_anchors,), int64
            From `AnchorGroups.sorted`. Weights and derivatives are in the original order of the anchors.
        """

    def total(self, scores: np.ndarray, weights: np.ndarray, runs: Runs, anchors: Anchors) -> float:
        """Return the weighted sum of the loss alone; parameters as of `loss_and_row_slopes`."""
        return self.loss_and_row_slopes(
            scores, weights, runs, anchors, np.empty(len(scores)), self.zero_slope_sums(anchors.n_gaps)
        )
