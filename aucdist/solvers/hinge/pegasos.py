"""Pegasos: steps along single rows for the hinge with an L2 penalty.

After Shalev-Shwartz, Singer & Srebro, "Pegasos: primal estimated sub-gradient solver for SVM" (ICML 2007), figure 1 with k = 1
and its projection onto the ball that holds the minimum; their lambda is 2 `lam`. A rival of Non-smooth SCD in Tao, Zhu, Luo &
Kong (2013). An intercept is not penalised and takes steps of 1 / (2 sqrt(t)).

One block is the published algorithm, a round being as many steps as there are rows. With several, each block takes its steps
from the same weights, and the outcomes are averaged, each block counting by its rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary, block_seed
from aucdist.kernels.hinge_dual import square_rows
from aucdist.kernels.hinge_primal import pegasos_steps
from aucdist.objectives.hinge import EQUAL, ClassWeight
from aucdist.solvers.base import Round
from aucdist.solvers.hinge.primal_state import PrimalState, row_shares


@dataclass(frozen=True)
class Descent:
    """What stays the same from round to round; `free` is 1 if there is an intercept, else 0.

    `n_rows` counts the rows that are drawn from, rows of weight 0 among them: a mask leaves those in their blocks.
    """

    seed: int
    lam: float
    free: float
    n_rows: int


def hinge_pegasos(
    blocks: Blocks,
    lam: float,
    start: np.ndarray | None = None,
    *,
    seed: int,
    intercept: bool = False,
    class_weight: ClassWeight = EQUAL,
    average: bool = False,
) -> Iterator[Round]:
    """Solve by Pegasos.

    Parameters
    ----------
    blocks : Blocks
    lam : float
        Above 0.
    start : ndarray of shape (n_features,), or (n_features + 1,) with an intercept, optional
        Of it nothing is left after the first step but the intercept and that row's margin: that is how long the step is.
    seed : int
    intercept : bool
        Not penalised.
    class_weight : tuple of float
        What the weights of the negative and of the positive rows are multiplied with.
    average : bool
        Show the average of the weights at the ends of the rounds, those of round t counting t times.

    Yields
    ------
    Round
        The best weights so far, of shape (n_features,), or (n_features + 1,) with the intercept last; their exact objective; the
        best bound so far. A round is two passes, one for the steps and one for the objective and the bound; with `average` half
        a pass more.
    """
    state = PrimalState(blocks, lam, start, "l2", intercept, class_weight, average)
    n_rows = blocks.without_memory().reduce(count_rows)["rows"]
    yield from _rounds(state, Descent(seed, lam, float(intercept), n_rows))


def _rounds(state: PrimalState, descent: Descent) -> Iterator[Round]:
    for number in count(1):
        shown, _ = state.evaluate()
        yield shown
        state.w = state.blocks.reduce(descend, state.w, state.shares, descent, number)["w"]
        state.passes += 1.0


def count_rows(block: Block, memory: None) -> tuple[None, Summary]:
    """Count the rows."""
    return None, {"rows": block.n_samples}


def descend(
    block: Block, memory: None, w: np.ndarray, shares: ClassWeight, descent: Descent, number: int
) -> tuple[None, Summary]:
    """Take as many steps as there are rows. The number of a block's steps so far is that of its own."""
    n = block.n_samples
    squares, w = np.empty(n), w.copy()
    square_rows(block.rows, squares)
    if n:
        pegasos_steps(
            block.rows, block.y, descent.n_rows * row_shares(block, shares), squares,
            block_seed(descent.seed, number, block.index), n, descent.lam, (number - 1) * n, descent.free,
            np.sqrt(0.5 / descent.lam), w,
        )  # fmt: skip
    return None, {"w": n / descent.n_rows * w}
