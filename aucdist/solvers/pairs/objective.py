"""The objective of a loss over all pairs at given weights, exactly, for solvers that do not sweep all pairs themselves."""

import numpy as np

from aucdist.engine.blocks import Blocks
from aucdist.solvers.pairs.anchors import sorted_anchors
from aucdist.solvers.pairs.hinge import HINGE
from aucdist.solvers.pairs.loss import PairLoss
from aucdist.solvers.pairs.problem import sort_and_score, sum_pairs
from aucdist.solvers.rounding import EPS, Rounding


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
    blank, sign = blocks.without_memory(), 1 if blocks.n_pos <= blocks.n_neg else -1
    scored = blank.reduce(sort_and_score, w, sign, 1)
    scores, weights = np.concatenate(scored["scores"]), np.concatenate(scored["weights"])
    anchors, _ = sorted_anchors(scores, weights, loss.n_sums, centred=loss.centred)
    total = blank.reduce(sum_pairs, loss, anchors)["loss"]
    return float(total / (blocks.weight_pos * blocks.weight_neg) + 0.5 * lam * (w @ w))


def objective_error(rounding: Rounding, w: np.ndarray, value: float) -> float:
    """Return a bound on the rounding error of `pairwise_objective` of the hinge, where that is `value`."""
    return rounding.pair_hinge(w, value) + rounding.penalty(w, value)


def rounding_of_pairs(blocks: Blocks) -> Rounding:
    """Return what bounds on rounding need to know where rows of the smaller class come as running sums."""
    return Rounding.of(blocks, running=2 * min(blocks.n_pos, blocks.n_neg))


def dual_error(rounding: Rounding, w: np.ndarray, active: float, lam: float, steps: int) -> float:
    """Return a bound on the rounding error of the dual value of the hinge's pairs.

    The weights are what the steps have added up, while the value is that of the variables they left: each step may have rounded
    an entry of w, which is never larger than ``2 active largest / lam``.

    Parameters
    ----------
    rounding : Rounding
    w : ndarray of shape (n_features,)
    active : float
        The mean of the variables.
    lam : float
    steps : int
        So many led there.
    """
    share = EPS * (steps + len(w))
    away = (4.0 * share * active) * rounding.largest  # of lam w
    return share * active + rounding.half_square(lam * w, away) / lam
