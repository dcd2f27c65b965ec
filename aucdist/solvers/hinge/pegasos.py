"""Pegasos: stochastic subgradient steps for the hinge with an L2 penalty.

After Shalev-Shwartz, Singer & Srebro, "Pegasos: primal estimated sub-gradient solver for SVM" (ICML 2007), figure 1 with k = 1
and the projection onto the ball that contains the minimum. The paper's lambda is 2 `lam`. Tao, Zhu, Luo & Kong (2013) compare
their Non-smooth SCD with it. An intercept is not penalised and takes steps of 1 / (2 sqrt(t)).

With one block this is the published algorithm, and a round takes n_samples steps. With several, each block takes its steps from
the same weights, and the resulting weights are averaged in proportion to the blocks' numbers of rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary, block_seed
from aucdist.kernels.hinge_dual import square_rows
from aucdist.kernels.hinge_primal import pegasos_steps
from aucdist.objectives.hinge import EQUAL, ClassWeight
from aucdist.parameters import Constraints, Switch
from aucdist.solvers.base import Round, Solver
from aucdist.solvers.hinge.primal_state import PrimalState, row_shares


@dataclass(frozen=True)
class PegasosSettings:
    """The parameters that stay the same from round to round; `free` is 1 if there is an intercept, else 0.

    `n_rows` is the number of rows that steps are drawn from. It includes rows of weight 0, which a mask leaves in the blocks.
    """

    seed: int
    lam: float
    free: float
    n_rows: int


def count_rows(block: Block, memory: None) -> tuple[None, Summary]:
    """Return the number of rows, those of weight 0 included."""
    return None, {"rows": block.n_samples}


def pegasos_round(
    block: Block, memory: None, w: np.ndarray, shares: ClassWeight, settings: PegasosSettings, number: int
) -> tuple[None, Summary]:
    """Take n_samples steps over the block's rows, and return the block's part of the averaged weights.

    The step length depends on how many steps this block has taken, whatever the other blocks do.
    """
    n = block.n_samples
    squares, w = np.empty(n), w.copy()
    square_rows(block.rows, squares)
    if n:
        pegasos_steps(
            block.rows, block.y, settings.n_rows * row_shares(block, shares), squares,
            block_seed(settings.seed, number, block.index), n, settings.lam, (number - 1) * n, settings.free,
            np.sqrt(0.5 / settings.lam), w,
        )  # fmt: skip
    return None, {"w": n / settings.n_rows * w}


class Pegasos(Solver):
    """Steps along single rows.

    Parameters
    ----------
    average : bool, default=False
        Return the average of the weights at the ends of the rounds, in which round t counts t times.
    """

    name = "pegasos"
    objective = "hinge"
    random = True
    penalties = ("l2",)
    _parameter_constraints: ClassVar[Constraints] = {"average": Switch()}

    def __init__(self, *, average: bool = False):
        self.average = average

    def rounds(
        self, blocks: Blocks, lam: float, start: np.ndarray | None = None, *, seed: int, intercept: bool = False,
        class_weight: ClassWeight = EQUAL,
    ) -> Iterator[Round]:  # fmt: skip
        """Yield the best weights so far, their exact objective, and the best lower bound so far.

        A round takes two passes, one for the steps and one for the objective and the bound; with `average` half a pass more.

        Parameters
        ----------
        start : ndarray of shape (n_features,), or (n_features + 1,) with an intercept, optional
            The weights to start from. The first step is so long that only the intercept and the first row's margin matter.
        """
        state = PrimalState(blocks, lam, start, "l2", intercept, class_weight, self.average)
        n_rows = blocks.without_memory().reduce(count_rows)["rows"]
        settings = PegasosSettings(seed, lam, float(intercept), n_rows)
        for number in count(1):
            newest, _ = state.evaluate()
            yield newest
            state.w = state.blocks.reduce(pegasos_round, state.w, state.shares, settings, number)["w"]
            state.passes += 1.0
