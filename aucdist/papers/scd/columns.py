"""Non-smooth stochastic coordinate descent on the hinge with an L1 or an L2 penalty.

After Tao, Zhu, Luo & Kong, "A new Comid-based stochastic coordinate descent method for non-smooth losses" (Acta Electronica
Sinica 41(4), 2013), algorithm 3. A step draws a feature, computes the derivative g of the loss by its weight at the current
margins, and minimises (8): ``w <- soften(w - eta_t g / 2, eta_t lam / 2)`` for L1, ``w <- (w - eta_t g / 2) / (1 + eta_t lam)``
for L2. The margins y (Xw) are kept and updated, so a step touches only the rows in which the feature is not 0.

Differences from the paper:

* The paper's appendix multiplies by eta_t where it has to divide.
* The paper's text lets the steps for L1 grow like sqrt(t); here they fall like 1 / sqrt(t).
* Here t counts sweeps of n_features steps, not single steps. A feature is drawn about once per sweep, so its steps would
  otherwise shrink before it takes them.
* The published step for L2, 1 / (lam t), is ``eta = 1 / lam``. On dense data a smaller first step avoids a large overshoot.

With one block this is the published algorithm. With several, each sweeps over all features with the margins of its own rows, and
`aucdist.papers.epochs` averages the weights. Each block holds the columns of its rows as well, which takes as much memory again.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from aucdist.data.block import Block, as_rows
from aucdist.engine.blocks import Blocks, Summary
from aucdist.kernels.rows import Rows
from aucdist.papers.scd.kernels import ColumnSteps, column_steps
from aucdist.papers.scd.primal import (
    ClassWeight,
    PrimalSolver,
    PrimalState,
    loss_and_dual_point,
    margins_of,
    row_shares,
    step_length,
)
from aucdist.solvers.base import Round

FACTOR = 4.0
"""The factor for `PrimalSolver.first_step`. It is large because one weight moves at a time and the next step uses its new
value."""


NOTHING = np.zeros(0)


def signed_columns(block: Block) -> Rows:
    """Return the columns of a block as rows, each value multiplied by the label of its row."""
    X: Any = block.X if isinstance(block.X, np.ndarray) else sp.csr_array(block.X)
    return as_rows(X.T * block.y)


class ColumnMemory(NamedTuple):
    """What a block keeps: its columns, the share of each row in the total weight, and where the last sweep ended.

    `n_sweeps`: how many there were.
    `w` and `margins`: the weights after the last one, and the margins there; none before the first.
    """

    columns: Rows
    shares: np.ndarray
    n_sweeps: int = 0
    w: np.ndarray = NOTHING
    margins: np.ndarray = NOTHING


def column_epoch(
    block: Block,
    memory: ColumnMemory | None,
    w: np.ndarray,
    seed: int,
    loss: tuple[ClassWeight, int, bool],
    penalty: tuple[str, float, float],
) -> tuple[ColumnMemory, np.ndarray, Summary]:
    """Evaluate the weights, then take as many steps as there are weights: an `Epoch`.

    `loss`: the share of the total weight of a negative and of a positive row of weight 1; the number of rows of all blocks;
        and whether there is an intercept.
    `penalty`: its kind, lam, and the length of the first step.
    """
    (of_classes, n_samples, intercept), (kind, lam, eta) = loss, penalty
    kept = memory or ColumnMemory(signed_columns(block), row_shares(block, of_classes))
    margins = kept.margins.copy() if np.array_equal(w, kept.w) else margins_of(block, w)
    summary, number = loss_and_dual_point(block, margins, kept.shares), kept.n_sweeps + 1
    if block.n_samples:
        shares = kept.shares * (n_samples / block.n_samples)
        steps = ColumnSteps(seed, kind == "l1", lam, step_length(kind, lam, eta, number), FACTOR / np.sqrt(number))
        labels, moved = (block.y.astype(np.float64), w) if intercept else (NOTHING, w[:-1])
        column_steps(kept.columns, labels, shares, steps, margins, moved)
    return kept._replace(n_sweeps=number, w=w.copy(), margins=margins), w, summary


class SCD(PrimalSolver):
    """Non-smooth stochastic coordinate descent, algorithm 3, along single features. Parameters are those of `PrimalSolver`."""

    name = "scd"
    random = True

    def rounds(
        self, blocks: Blocks, lam: float, start: np.ndarray | None = None, *, seed: int, **objective: Any
    ) -> Iterator[Round]:
        """Yield the best weights so far, their exact objective, and the best lower bound so far.

        A round takes two passes, one for the sweep and one for the objective and the bound; with `average` half a pass more.

        Parameters
        ----------
        **objective
            As of `PrimalState`. An intercept is drawn like a weight, and takes steps of 4 / sqrt(t).
        """
        state = PrimalState(blocks, lam, start, self.average, **objective)
        loss, penalty = (
            (state.shares, blocks.n_samples, state.intercept),
            (state.penalty, lam, self.first_step(state, FACTOR)),
        )
        yield from state.rounds_of(partial(column_epoch, loss=loss, penalty=penalty), seed)
