"""The objective of a loss over all pairs at given weights, exactly, for solvers that do not sweep all pairs themselves."""

import numpy as np

from aucdist.engine.blocks import Blocks
from aucdist.solvers.pairs.anchors import sorted_anchors
from aucdist.solvers.pairs.hinge import HINGE
from aucdist.solvers.pairs.loss import PairLoss
from aucdist.solvers.pairs.problem import sort_and_score, sum_pairs


def pairwise_objective(blocks: Blocks, w: np.ndarray, lam: float, loss: PairLoss = HINGE) -> float:
    """Return ``lam/2 |w|^2`` plus the mean loss over all pairs, exactly, in O(n log n) and two reductions.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be there. Their memory is left alone.
    w : ndarray of shape (n_features,), float64
    lam : float
    loss : PairLoss, default=HINGE
        Of the margin ``w.(x_i - x_j)``, i positive and j negative.
    """
    fresh, sign = blocks.fresh(), 1 if blocks.n_pos <= blocks.n_neg else -1
    scored = fresh.reduce(sort_and_score, w, sign, 1)
    scores, weights = np.concatenate(scored["scores"]), np.concatenate(scored["weights"])
    anchors, _ = sorted_anchors(scores, weights, loss.n_sums, centred=loss.centred)
    total = fresh.reduce(sum_pairs, loss, anchors)["loss"]
    return float(total / (blocks.weight_pos * blocks.weight_neg) + 0.5 * lam * (w @ w))
