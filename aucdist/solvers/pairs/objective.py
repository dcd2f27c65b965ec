"""The pairwise hinge objective at given weights, exactly, for solvers that do not sweep all pairs themselves."""

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary, without_rows
from aucdist.kernels.pairs import hinge_sum
from aucdist.kernels.rows import project
from aucdist.solvers.pairs.all_pairs import Anchors


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
