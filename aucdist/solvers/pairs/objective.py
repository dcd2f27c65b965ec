"""The exact objective of a loss over all pairs at given weights, for solvers that do not evaluate it themselves."""

import numpy as np

from aucdist.engine.blocks import Blocks
from aucdist.solvers.pairs.groups import PairGroups
from aucdist.solvers.pairs.hinge import HINGE
from aucdist.solvers.pairs.loss import PairLoss
from aucdist.solvers.pairs.problem import PairProblem, sum_pairs
from aucdist.solvers.rounding import EPS, Rounding


def pairwise_objective(
    blocks: Blocks, w: np.ndarray, lam: float, loss: PairLoss = HINGE, groups: PairGroups | None = None
) -> float:
    """Return ``lam/2 |w|^2`` plus the mean loss over all pairs, exactly, in O(n log n) and three reductions.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be present. Their memory is not changed.
    w : ndarray of shape (n_features,), float64
    loss : PairLoss, default=HINGE
        Of the margin ``w.(x_i - x_j)``, i positive and j negative.
    groups : PairGroups, optional
        Where pairs are within groups.
    """
    problem = PairProblem(blocks, loss, groups)
    anchors, _ = problem.sort_anchors(problem.score(w), problem.weights)
    total = problem.blocks.reduce(sum_pairs, problem.loss, anchors)["loss"]
    return float(total / problem.mass + 0.5 * lam * (w @ w))


def objective_error(rounding: Rounding, w: np.ndarray, value: float) -> float:
    """Return a bound on the rounding error of `pairwise_objective` of the hinge, where that is `value`."""
    return rounding.pair_hinge(w, value) + rounding.penalty(w, value)


def rounding_of_pairs(blocks: Blocks, groups: PairGroups | None = None) -> Rounding:
    """Return what bounds on rounding need to know where rows of the smaller class come as running sums."""
    if groups is None:
        return Rounding.of(blocks, running=2 * min(blocks.n_pos, blocks.n_neg))
    again = (groups.n_thresholds - 1) * max(info.n_samples for info in blocks.infos)  # rows in several groups
    return Rounding.of(blocks, running=2 * min(groups.n_pos, groups.n_neg) + again + groups.n_groups)


def dual_error(rounding: Rounding, w: np.ndarray, active: float, lam: float, steps: int) -> float:
    """Return a bound on the rounding error of the dual value of the hinge's pairs.

    The weights are what the steps have added up, while the value is that of the variables they left: each step may have rounded
    an entry of w, which is never larger than ``2 active largest / lam``.

    Parameters
    ----------
    w : ndarray of shape (n_features,)
    active : float
        The mean of the variables.
    steps : int
        So many led there.
    """
    share = EPS * (steps + len(w))
    away = (4.0 * share * active) * rounding.largest  # of lam w
    return share * active + rounding.half_square(lam * w, away) / lam
