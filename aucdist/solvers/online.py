"""What solvers share that learn from rows batch after batch."""

from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.errors import InputError
from aucdist.kernels.rows import project
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.decisions import best_threshold


def threshold_of(block: Block, w: np.ndarray) -> float:
    """Return the threshold with the largest G-mean on these rows, or 0 where they are of one class."""
    if not ((block.y > 0).any() and (block.y < 0).any()):
        return 0.0
    scores = np.empty(block.n_samples)
    project(block.rows, w, scores)
    return float(best_threshold(ScoreCounts.from_scores(block.y, scores, block.weight)))


def finite(stream: Any, eta: float | None) -> Any:
    """Return what is remembered after a batch, unless its weights are not finite.

    Raises InputError if the steps have diverged.
    """
    if not np.isfinite(stream.w).all():
        raise InputError(f"the steps diverged in this batch, so coef_ stays what it was; eta={eta} is too long")
    return stream
