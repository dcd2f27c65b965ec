"""Dual coordinate descent on the hinge with an L2 penalty: SDCD and CDCD.

After Hsieh, Chang, Lin, Keerthi & Sundararajan, "A dual coordinate descent method for large-scale linear SVM" (ICML 2008). Tao,
Zhu, Luo & Kong, "A new Comid-based stochastic coordinate descent method for non-smooth losses" (Acta Electronica Sinica 41(4),
2013), compare their method with both. With c_i the weight of row i divided by the total weight, the objective and its dual are

    P(w) = sum of c_i max(0, 1 - y_i w.x_i) + lam |w|^2,
    D(b) = 2 lam (sum of b_i - |w(b)|^2 / 2),    w(b) = sum of b_i y_i x_i,    0 <= b_i <= c_i / (2 lam).

Hsieh's C is 1 / (2 lam n). A step maximises D over the dual variable of one row and updates w. An intercept is the weight of a
column of ones and is penalised like the other weights. An intercept without a penalty would add a constraint that couples all
dual variables.

With one block this is the published algorithm, except for the rows that shrinking has set aside. Here such a row becomes active
again as soon as an evaluation of the objective shows that its variable could move. In the paper all rows become active again once
the others have converged.

With K blocks, each block keeps the variables of its rows and sweeps over them, from the same w as the others. It returns its
contribution to w(b), and w is the sum of the contributions. All changes are added in full. To keep the sum of the changes from
overshooting, each block multiplies the effect of its own changes by K (sigma' = K in Ma et al., "Adding vs. averaging in
distributed primal-dual optimization", ICML 2015). The dual value never falls, up to rounding.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy import ndarray

from aucdist.data.block import Block, row_squares
from aucdist.engine.blocks import Blocks, Summary, block_seed
from aucdist.papers.scd.kernels import DUAL, LABEL, N_COLUMNS, SQUARE, UPPER, ActiveRows, DualSweeps, dual_sweeps
from aucdist.papers.scd.primal import EQUAL, ClassWeight, row_shares, shares_of
from aucdist.parameters import frozen
from aucdist.solvers.base import Round, Solver
from aucdist.solvers.rounding import EPS, Rounding, higher


@frozen
class RowDuals:
    """The dual variables of a block's rows, and what their updates need.

    Parameters
    ----------
    table : ndarray of shape (n_samples, N_COLUMNS), float64
        The table that `aucdist.papers.scd.kernels` describes.
    order : ndarray of shape (n_samples,), int32
        The positions of the rows. The active ones come first, and shrinking has set aside the others.
    active : ActiveRows
        How many rows are active, and the bounds of shrinking.
    w : ndarray of shape (n_features + 1,), float64
        The block's contribution to w(b).
    """

    table: ndarray
    order: ndarray
    active: ActiveRows
    w: ndarray


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def set_up_duals(
    block: Block, memory: None, shares: ClassWeight, lam: float, constant: float
) -> tuple[RowDuals, Summary]:
    """Set up dual variables of 0, and return the block's contribution to w."""
    n = block.n_samples
    table = np.empty((n, N_COLUMNS))
    table[:, SQUARE] = row_squares(block.rows) + constant * constant
    table[:, UPPER] = row_shares(block, shares) / (2.0 * lam)
    table[:, LABEL] = block.y
    # A row of zeros has loss 1 for every w. Its variable starts at the upper end, so that no step divides by its length 0.
    table[:, DUAL] = np.where(table[:, SQUARE] > 0.0, 0.0, table[:, UPPER])
    signed = table[:, DUAL] * table[:, LABEL]
    w = np.append(block.sums(signed), constant * signed.sum())
    return RowDuals(table, np.arange(n, dtype=np.int32), ActiveRows(n), w), w


def dual_ascent(
    block: Block, memory: RowDuals, w: ndarray, sweeps: DualSweeps, number: int
) -> tuple[RowDuals, Summary]:
    """Take about n_samples steps from w. If few rows are active, these are several sweeps."""
    table, order, local = memory.table.copy(), memory.order.copy(), w.copy()
    sweeps = sweeps._replace(seed=block_seed(sweeps.seed, number, block.index), n_steps=block.n_samples)
    active, taken = dual_sweeps(block.rows, table, order, memory.active, sweeps, local)
    w = local if sweeps.sigma == 1.0 else memory.w + (local - w) / sweeps.sigma
    return RowDuals(table, order, ActiveRows(*active), w), {"w": w, "total": table[:, DUAL].sum(), "taken": taken}


def loss_and_active_rows(block: Block, memory: RowDuals, w: ndarray, constant: float) -> tuple[RowDuals, Summary]:
    """Return the loss at w, in units of the dual variables, and activate the rows whose variable could move."""
    slopes = memory.table[:, LABEL] * (block.scores(w[:-1]) + constant * w[-1]) - 1.0
    loss = float((memory.table[:, UPPER] * np.maximum(-slopes, 0.0)).sum())
    active, idle = memory.order[: memory.active.n], memory.order[memory.active.n :]
    can_move = np.where(memory.table[idle, DUAL] == 0.0, slopes[idle] < 0.0, slopes[idle] > 0.0)
    order = np.concatenate([active, idle[can_move], idle[~can_move]])
    n = len(active) + int(can_move.sum())
    return replace(memory, order=order, active=memory.active._replace(n=n)), loss


# ---- rounds: run by the client ----------------------------------------------------------------------------------------


class SDCD(Solver):
    """Dual coordinate descent in random order with shrinking, algorithm 3. It is the default, because it closes the gap."""

    name = "sdcd"
    objective = "hinge"
    is_random = True
    penalties = ("l2",)
    accepts_start = False
    penalises_intercept = True

    def rounds(
        self, blocks: Blocks, lam: float, start: None = None, *, seed: int = 0, intercept: bool = False,
        class_weight: ClassWeight = EQUAL,
    ) -> Iterator[Round]:  # fmt: skip
        """Yield the newest weights, their exact objective, and the best dual value so far.

        A round takes about n_samples steps, each counted as one reading of its row, and half a pass to evaluate the objective.

        Parameters
        ----------
        blocks : Blocks
            The rows.
        lam : float
            The regularisation strength.
        start : None
            The fit starts from dual variables of 0.
        seed : int
            The seed of the order of the rows. `CDCD` draws nothing.
        intercept : bool
            Whether to add a column of ones. Its weight, the last one, is penalised like the others.
        class_weight : tuple (float, float)
            Factors for the weights of the negative and of the positive rows.

        Yields
        ------
        Round
        """
        rounding, blocks, constant = Rounding.of(blocks), blocks.without_memory(), 1.0 if intercept else 0.0
        sweeps = DualSweeps(seed, 0, not self.is_random, constant, float(blocks.n_blocks))
        shares = shares_of(blocks.weight_neg, blocks.weight_pos, class_weight)
        w = blocks.reduce(set_up_duals, shares, lam, constant)
        number, taken, bound = 0, 0, (0.0, 0.0)
        while True:
            number += 1
            ascended = blocks.reduce(dual_ascent, w, sweeps, number)
            w, taken = ascended["w"], taken + ascended["taken"]
            half_square = 0.5 * float(w @ w)
            primal = 2.0 * lam * (blocks.reduce(loss_and_active_rows, w, constant) + half_square)
            active = 2.0 * lam * float(ascended["total"])
            # w is a sum of steps. The rounding error of each is at most that of the largest entry that the variables allow.
            relative = EPS * (taken + blocks.n_samples + len(w))
            away = (relative * active / lam) * np.append(rounding.largest, constant)
            error = relative * active + 2.0 * lam * rounding.half_square(w, away)
            bound = higher(bound, (active - 2.0 * lam * half_square, error))
            scores = rounding.score(w[:-1]) + EPS * abs(float(w[-1]))
            passes = math.ceil(taken / blocks.n_samples + 0.5 * number)
            yield Round(
                w if intercept else w[:-1],
                primal,
                bound[0],
                passes,
                primal_error=scores + 2.0 * rounding.over_rows * primal,
                dual_error=bound[1],
            )


class CDCD(SDCD):
    """Dual coordinate descent over all rows in their order, algorithm 1. It closes the gap."""

    name = "cdcd"
    is_random = False
