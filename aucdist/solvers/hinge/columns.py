"""Non-smooth stochastic coordinate descent on the hinge with an L1 or an L2 penalty.

After Tao, Zhu, Luo & Kong, "A new Comid-based stochastic coordinate descent method for non-smooth losses" (Acta Electronica
Sinica 41(4), 2013), algorithm 3. A step draws a weight, takes the derivative g of the loss along it at the margins as they are
now, and minimises (8): ``w <- soften(w - eta_t g / 2, eta_t lam / 2)`` for L1, ``w <- (w - eta_t g / 2) / (1 + eta_t lam)`` for
L2. Only the rows in which the feature is not 0 are touched, because the margins y (Xw) are kept and moved along.

What differs from the print: its appendix multiplies by eta_t where it has to divide. Its text has the steps for L1 grow like
sqrt(t), they fall like 1 / sqrt(t). And t counts sweeps of as many steps as there are weights, not single steps: a weight is
drawn once a sweep, and its steps would shrink before it takes them. The published step for L2, 1 / (lam t), is ``eta = 1 / lam``;
a smaller first step spares dense data the way back from where it leads. The objective comes from the margins that are
moved along, which stay as good as new ones to a relative 1e-12 or so.

One block is the published algorithm. With K, each owns every K-th feature (`aucdist.engine.columns`) and sweeps over its own
from the same margins; the moves are added, or half of them, a quarter, ... down to 1/K, whatever gives the least objective: with
1/K it is at most the mean of what the blocks reached. A round sends the margins to every block and gets a vector of them from
each, one reduction of n_samples floats: meant for up to a million rows or so, and many features.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary, block_seed
from aucdist.engine.columns import columns_of
from aucdist.kernels.hinge_primal import column_steps
from aucdist.kernels.rows import accumulate, project
from aucdist.objectives.hinge import EQUAL, ClassWeight, DualPoint
from aucdist.solvers.base import Round
from aucdist.solvers.hinge.primal_state import PrimalState, mean_hinge, row_shares
from aucdist.solvers.rounding import EPS

FACTOR = 4.0
"""Of `PrimalState.usual_eta`: one weight moves at a time, and the next one sees it."""


@dataclass(frozen=True, eq=False)
class Samples:
    """What a block of columns knows of the rows.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,), float64
    shares : ndarray of shape (n_samples,), float64
        Of the whole weight.
    """

    labels: np.ndarray
    shares: np.ndarray


@dataclass(frozen=True)
class Sweeps:
    """What stays the same from round to round."""

    seed: int
    lasso: bool
    lam: float
    intercept: bool
    alone: bool


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def describe(block: Block, memory: None, shares: ClassWeight) -> tuple[None, Summary]:
    """Send the labels of a block of rows, and their shares."""
    return None, {"labels": [block.y.astype(np.float64)], "shares": [row_shares(block, shares)]}


def remember(block: Block, memory: None, labels: np.ndarray, shares: np.ndarray) -> tuple[Samples, Summary]:
    """Keep what a block of columns needs to know of the rows."""
    return Samples(labels, shares), {}


def add_up(block: Block, memory: Samples, w: np.ndarray) -> tuple[Samples, Summary]:
    """Find the margins that come from the block's features."""
    margins = np.zeros(len(memory.labels))
    accumulate(block.rows, np.arange(block.n_samples), w[block.row_id], margins)
    return memory, {"margins": margins}


def sweep(
    block: Block,
    memory: Samples,
    w: np.ndarray,
    margins: np.ndarray,
    sweeps: Sweeps,
    number: int,
    steps: tuple[float, float],
) -> tuple[Samples, Summary]:
    """Find the gradient over the block's features at these margins, and then sweep over them.

    `steps` is the length of the step for a feature and for the intercept, which the first block owns.
    """
    owns_intercept = sweeps.intercept and block.index == 0
    own = np.append(w[block.row_id], w[-1:] if owns_intercept else [])
    active = np.where(margins < 1.0, memory.shares, 0.0)
    sums = np.zeros((2, block.n_samples))
    if sweeps.intercept:
        for k, label in enumerate((-1.0, 1.0)):
            project(block.rows, np.where(memory.labels == label, label * active, 0.0), sums[k])
    else:
        project(block.rows, active, sums[1])  # the bound needs no more than the difference of the classes' sums
    local = margins.copy()
    column_steps(
        block.rows, memory.labels if owns_intercept else np.zeros(0), memory.shares,
        block_seed(sweeps.seed, number, block.index), sweeps.lasso, sweeps.lam, *steps, local, own,
    )  # fmt: skip
    return memory, {"sums": [sums], "w": [own], "margins": local if sweeps.alone else local - margins}


# ---- rounds: run by the client ----------------------------------------------------------------------------------------


def hinge_scd(
    blocks: Blocks,
    lam: float,
    start: np.ndarray | None = None,
    *,
    seed: int,
    penalty: str = "l2",
    intercept: bool = False,
    class_weight: ClassWeight = EQUAL,
    eta: float | None = None,
    average: bool = False,
) -> Iterator[Round]:
    """Solve by Non-smooth SCD, algorithm 3.

    Parameters
    ----------
    blocks : Blocks
        Of rows. Their columns are made once for each object `blocks`, and take as much memory again.
    lam : float
        Above 0.
    start : ndarray of shape (n_features,), or (n_features + 1,) with an intercept, optional
        Zero by default.
    seed : int
    penalty : {"l1", "l2"}
    intercept : bool
        Not penalised; one more weight to be drawn, whose steps are 4 / sqrt(t).
    class_weight : tuple of float
        What the weights of the negative and of the positive rows are multiplied with.
    eta : float, optional
        The length of the first step; by default `PrimalState.usual_eta`.
    average : bool
        Show the average of the weights, those of round t counting t times.

    Yields
    ------
    Round
        The best weights so far, of shape (n_features,), or (n_features + 1,) with the intercept last; their exact objective; the
        best bound so far. A round is one and a half passes: one for the sweep and a half for the bound.
    """
    state = PrimalState(blocks, lam, start, penalty, intercept, class_weight, average)
    eta = state.usual_eta(FACTOR) if eta is None else eta
    told = blocks.fresh().reduce(describe, state.shares)
    labels, shares = np.concatenate(told["labels"]), np.concatenate(told["shares"])
    columns = columns_of(blocks)
    columns.reduce(remember, labels, shares)
    sweeps = Sweeps(seed, penalty == "l1", lam, intercept, columns.n_blocks == 1)
    yield from _rounds(state, columns, sweeps, eta, labels, shares)


def _rounds(
    state: PrimalState, columns: Blocks, sweeps: Sweeps, eta: float, labels: np.ndarray, shares: np.ndarray
) -> Iterator[Round]:
    def loss_of(margins: np.ndarray) -> float:
        return mean_hinge(shares, margins)

    margins = labels * state.w[-1] + columns.reduce(add_up, state.w)["margins"]
    mean = np.zeros_like(margins)
    # A weight is drawn once a sweep, more or less; each move of it is one of the margins it touches.
    per_sweep = 4 * round(2.0 * state.rounding.over_columns / EPS)
    for t in count(1):
        share = state.next_round()
        mean += share * (margins - mean)
        steps = state.step(eta, t), FACTOR / np.sqrt(t)
        told = columns.reduce(sweep, state.w, margins, sweeps, t, steps)
        state.passes, state.moves = state.passes + 1.5, state.moves + per_sweep
        point = _point(told["sums"], labels, np.where(margins < 1.0, shares, 0.0), columns.n_blocks)
        yield state.end_round(loss_of(mean if state.average else margins), point, share)
        reached, moved = _gathered(told["w"], state.w, columns.n_blocks), told["margins"]
        if sweeps.alone:
            state.w, margins = reached, moved
            continue
        along = reached - state.w
        parts = [2.0**-k for k in range(columns.n_blocks.bit_length())] + [1.0 / columns.n_blocks]
        values = [state.value(loss_of(margins + part * moved), state.w + part * along) for part in parts]
        part = parts[int(np.argmin(values))]
        state.w, margins = state.w + part * along, margins + part * moved


def _gathered(found: list[np.ndarray], w: np.ndarray, n_blocks: int) -> np.ndarray:
    """Return the weights that the blocks reached, in the order of the features, the intercept last."""
    whole = w.copy()
    for b, own in enumerate(found):
        n = len(range(b, len(w) - 1, n_blocks))
        whole[b:-1:n_blocks] = own[:n]
        if len(own) > n:
            whole[-1] = own[n]
    return whole


def _point(sums: list[np.ndarray], labels: np.ndarray, active: np.ndarray, n_blocks: int) -> DualPoint:
    """Return the dual point of the active rows, given the blocks' sums over them."""
    whole = np.empty((2, sum(own.shape[1] for own in sums)))
    for b, own in enumerate(sums):
        whole[:, b::n_blocks] = own
    return DualPoint(np.array([active[labels < 0].sum(), active[labels > 0].sum()]), whole)
