"""The pairwise hinge objective at given weights, exactly, for solvers that do not sweep all pairs themselves."""

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary, without_rows
from aucdist.kernels.pairs import hinge_sum
from aucdist.kernels.rows import project
from aucdist.solvers.pairs.all_pairs import Anchors
from aucdist.solvers.rounding import EPS, Rounding


def pairwise_objective(blocks: Blocks, w: np.ndarray, lam: float) -> float:
    """Return ``lam/2 |w|^2 + mean over all pairs of max(0, 1 - w.(x_i - x_j))`` in O(n log n) and two reductions.

    Parameters
    ----------
    blocks : Blocks
        Their memory is left alone.
    w : ndarray of shape (n_features,), float64
    lam : float
    """
    blank = blocks.without_memory()
    sign = 1 if blocks.n_pos <= blocks.n_neg else -1
    smaller = blank.reduce(_score, sign * w, sign)
    anchors = Anchors.at(np.concatenate(smaller["scores"]), np.concatenate(smaller["weights"]))
    total = blank.reduce(_hinge, anchors)["hinge"]
    return float(total / (blocks.weight_pos * blocks.weight_neg) + 0.5 * lam * (w @ w))


def objective_error(rounding: Rounding, w: np.ndarray, value: float) -> float:
    """Return a bound on the rounding error of `pairwise_objective`, where that is `value`."""
    return rounding.pair_hinge(w, value) + rounding.penalty(w, value)


def rounding_of_pairs(blocks: Blocks) -> Rounding:
    """Return what bounds on rounding need to know where rows of the smaller class come as running sums."""
    return Rounding.of(blocks, running=2 * min(blocks.n_pos, blocks.n_neg))


def dual_error(rounding: Rounding, w: np.ndarray, active: float, lam: float, steps: int) -> float:
    """Return a bound on the rounding error of the dual value.

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


def _score(block: Block, memory: None, w: np.ndarray, sign: int) -> tuple[tuple[np.ndarray, np.ndarray], Summary]:
    scores = np.empty(block.n_samples)
    project(block.rows, w, scores)
    smaller, weight = block.y == sign, block.weights()
    kept = (scores[~smaller], weight[~smaller])
    return kept, {"scores": [scores[smaller]], "weights": [weight[smaller]]}


@without_rows
def _hinge(block: int, memory: tuple[np.ndarray, np.ndarray], anchors: Anchors) -> tuple[None, Summary]:
    total = hinge_sum(*memory, *anchors.search(), anchors.weight_below, anchors.score_below)
    return None, {"hinge": total}
