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

The objective is computed from the updated margins, which agree with recomputed ones to a relative 1e-12 or so.

With one block this is the published algorithm. With K blocks, each owns every K-th feature (`columns_of`) and sweeps
over its own features from the same margins. The moves are added in full, or by 1/2, 1/4, ..., 1/K, whichever gives the lowest
objective; with 1/K the objective is at most the mean of the blocks' objectives. A round sends the margins to every block and
gets a vector of margins from each, n_samples floats in one reduction. The solver is meant for up to about a million rows and many
features.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary, block_seed
from aucdist.kernels.rows import project
from aucdist.papers.scd.kernels import ColumnSteps, column_steps
from aucdist.papers.scd.primal import ClassWeight, PrimalSolver, PrimalState, mean_hinge, row_shares
from aucdist.solvers.base import Round
from aucdist.solvers.rounding import EPS

FACTOR = 4.0
"""The factor for `PrimalSolver.first_step`. It is large because one weight moves at a time and the next step uses its new
value."""


@dataclass(frozen=True, eq=False)
class SweptRows:
    """The labels, shares and margins of all rows, which a block of columns keeps.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,), float64
    shares : ndarray of shape (n_samples,), float64
        The weight of each row, divided by the total weight.
    intercept : bool
        Whether there is one, which the first block owns.
    alone : bool
        Whether there is one block only.
    """

    labels: np.ndarray
    shares: np.ndarray
    intercept: bool
    alone: bool


# ---- columns of rows -----------------------------------------------------------------------------------------------------


def columns_of(blocks: Blocks) -> Blocks:
    """Return blocks of columns, as many as there are blocks of rows, with each row multiplied by its label.

    What is returned has a block for each of `blocks`, or for each feature if there are fewer. Its block b holds features b,
    b + n_blocks, b + 2 n_blocks, ... as rows: ``X`` has the shape (features of the block, n_samples), and ``row_id`` says which
    features they are. The samples are in the order of the blocks and, within a block, of its rows. The labels mean nothing.

    It takes as much memory as the rows. On workers the pieces go from one to another directly.
    """
    return blocks.exchange(cut_columns, join_columns, min(blocks.n_blocks, blocks.n_features))


def cut_columns(block: Block, n_blocks: int) -> Summary:
    """Divide the block's columns into pieces, one for each new block."""
    if isinstance(block.X, np.ndarray):
        # The pieces are transposed one by one, so that only one of them is in memory twice.
        pieces: list[Any] = [
            np.ascontiguousarray((block.X[:, first::n_blocks] * block.y[:, np.newaxis]).T) for first in range(n_blocks)
        ]
    else:
        columns = block.X.tocsc()
        columns.data *= block.y[columns.indices]
        pieces = [columns[:, first::n_blocks].T for first in range(n_blocks)]
    return {"pieces": [pieces]}


def join_columns(pieces: list[Any], index: int, n_blocks: int) -> Block:
    """Return a block of columns, given its piece of each block of rows."""
    X = np.hstack(pieces) if isinstance(pieces[0], np.ndarray) else sp.hstack(pieces, format="csr")
    n = X.shape[0]
    return Block.of(X, np.ones(n, dtype=np.int8), row_id=index + n_blocks * np.arange(n), index=index)


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def send_labels(block: Block, shares: ClassWeight) -> Summary:
    """Return the labels and the shares of a block of rows."""
    return {"labels": [block.y.astype(np.float64)], "shares": [row_shares(block, shares)]}


def keep_rows(block: Block, memory: None, rows: SweptRows, w: np.ndarray) -> tuple[SweptRows, Summary]:
    """Keep the labels and shares of all rows with a block of columns; return the part of the margins from its features."""
    return rows, {"margins": block.sums(w[block.row_id])}


def sweep(
    block: Block, memory: SweptRows, w: np.ndarray, margins: np.ndarray, steps: ColumnSteps, number: int
) -> Summary:
    """Return the gradient by the block's weights at these margins, and the weights and margins after a sweep over them."""
    owns_intercept = memory.intercept and block.index == 0
    own = np.append(w[block.row_id], w[-1:] if owns_intercept else [])
    active = np.where(margins < 1.0, memory.shares, 0.0)
    sums = np.zeros((2, block.n_samples))
    if memory.intercept:
        for k, label in enumerate((-1.0, 1.0)):
            project(block.rows, np.where(memory.labels == label, label * active, 0.0), sums[k])
    else:
        project(block.rows, active, sums[1])  # the bound only needs the difference of the classes' sums
    local, labels = margins.copy(), memory.labels if owns_intercept else np.zeros(0)
    steps = steps._replace(seed=block_seed(steps.seed, number, block.index))
    column_steps(block.rows, labels, memory.shares, steps, local, own)
    return {"sums": [sums], "w": [own], "margins": local if memory.alone else local - margins}


# ---- rounds: run by the client ----------------------------------------------------------------------------------------


class SCD(PrimalSolver):
    """Non-smooth stochastic coordinate descent, algorithm 3, along single features. Parameters as of `PrimalSolver`."""

    name = "scd"
    random = True

    def rounds(
        self, blocks: Blocks, lam: float, start: np.ndarray | None = None, *, seed: int, **objective: Any
    ) -> Iterator[Round]:
        """Yield the best weights so far, their exact objective, and the best lower bound so far.

        A round takes one and a half passes: one for the sweep and half a pass for the bound.

        Parameters
        ----------
        blocks : Blocks
            Blocks of rows. Their columns are built first, and need as much memory again.
        **objective
            As of `PrimalState`. An intercept is drawn like a weight, and takes steps of 4 / sqrt(t).
        """
        state = PrimalState(blocks, lam, start, self.average, **objective)
        state.eta = self.first_step(state, FACTOR)
        summary = blocks.sum(send_labels, state.shares)
        labels, shares = np.concatenate(summary["labels"]), np.concatenate(summary["shares"])
        columns = columns_of(blocks)
        rows = SweptRows(labels, shares, state.intercept, columns.n_blocks == 1)
        margins = labels * state.w[-1] + columns.reduce(keep_rows, rows, state.w)["margins"]
        mean = np.zeros_like(margins)
        # A weight is drawn once a sweep, more or less; each move of it is one of the margins it touches.
        per_sweep = 4 * round(2.0 * state.rounding.over_columns / EPS)
        while True:
            state.next_round()
            mean += state.share * (margins - mean)
            steps = ColumnSteps(seed, state.penalty == "l1", lam, state.length, FACTOR / np.sqrt(state.t))
            swept = columns.reduce(sweep, state.w, margins, steps, state.t)
            state.passes, state.moves = state.passes + 1.5, state.moves + per_sweep
            active = np.where(margins < 1.0, shares, 0.0)
            point = np.empty((2, len(state.w)))
            for b, own in enumerate(swept["sums"]):
                point[:, b : -1 : columns.n_blocks] = own
            point[:, -1] = active[labels < 0].sum(), active[labels > 0].sum()
            yield state.end_round(mean_hinge(shares, mean if state.average else margins), point)
            reached, moved = state.w.copy(), swept["margins"]
            for b, own in enumerate(swept["w"]):
                of_block = reached[b : -1 : columns.n_blocks]
                of_block[:] = own[: len(of_block)]
            if state.intercept:
                reached[-1] = swept["w"][0][-1]
            if rows.alone:
                state.w, margins = reached, moved
                continue
            move = reached - state.w
            parts = [2.0**-k for k in range(columns.n_blocks.bit_length())] + [1.0 / columns.n_blocks]
            values = [state.value(mean_hinge(shares, margins + part * moved), state.w + part * move) for part in parts]
            part = parts[int(np.argmin(values))]
            state.w, margins = state.w + part * move, margins + part * moved
