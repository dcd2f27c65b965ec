"""The smoothed ramp over all positive-negative pairs: the AUC itself, with ties of width 1 on either side, by L-BFGS.

Minimises ``P(w) = lam/2 |w|^2 + mean over all pairs of ramp(w.(x_i - x_j))``, a pair weighing w_i w_j where rows have weights.
The ramp (`aucdist.kernels.ramp`) is 1 minus the step that the AUC counts, smoothed: as the weights grow the mean goes to 1 - AUC.
So, unlike with a hinge, it does not matter by how much a pair is lost. But P is not convex: there is no lower bound, and the
result is a stationary point, which depends on the start.

After Herschtal & Raskutti, "Optimising area under the ROC curve using gradient descent" (ICML 2004), who smooth the step with a
sigmoid. Departures: a piecewise quadratic instead, so that the sum over all pairs takes a sort and no sample of pairs; a
penalty, which decides how wide the smoothing is; L-BFGS (`aucdist.solvers.pairs.smooth`, which also says when it ends).
The ramp is the difference of two convex functions, ``h(1 - m) + h(-1 - m) - 2 h(-m)`` with h(t) = max(0, t)^2 / 2.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from aucdist.engine.blocks import Blocks
from aucdist.kernels.ramp import anchor_slopes, ramp_sum
from aucdist.solvers.pairs.anchors import Anchors, Runs
from aucdist.solvers.pairs.groups import PairGroups
from aucdist.solvers.pairs.loss import PairLoss
from aucdist.solvers.pairs.smooth import MajorantRound, pair_lbfgs


@dataclass(frozen=True)
class PairRamp(PairLoss):
    """The ramp of pairs; see `PairLoss` for what the methods do."""

    convex = False
    n_sums = 3
    centred = True

    def zero_slope_sums(self, n_gaps: int) -> np.ndarray:
        """Return zeros: for each place among the anchors a count, a slope and a moment."""
        return np.zeros((n_gaps, 3))

    def loss_and_row_slopes(
        self,
        scores: np.ndarray,
        weights: np.ndarray,
        runs: Runs,
        anchors: Anchors,
        coefs: np.ndarray,
        slope_sums: np.ndarray,
    ) -> float:
        """Return the weighted sum of the ramps."""
        return ramp_sum(scores - anchors.centre, weights, *anchors.search(runs), coefs, slope_sums)

    def anchor_slopes(
        self, slope_sums: np.ndarray, anchors: Anchors, weights: np.ndarray, order: np.ndarray
    ) -> np.ndarray:
        """Return the derivative of the sum by each anchor's score."""
        slopes = np.empty(len(weights))
        anchor_slopes(slope_sums, anchors.scores, anchors.starts, weights[order], order, slopes)
        return slopes


RAMP = PairRamp()


def pair_ramp(
    blocks: Blocks, lam: float, start: np.ndarray | None = None, *, tol: float = 0.0, groups: PairGroups | None = None,
    signs: np.ndarray | None = None,
) -> Iterator[MajorantRound]:  # fmt: skip
    """Minimise by L-BFGS until a stationary point; parameters and rounds as in `pair_lbfgs`."""
    return pair_lbfgs(blocks, lam, start, loss=RAMP, tol=tol, groups=groups, signs=signs)
