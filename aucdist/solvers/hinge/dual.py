"""Dual coordinate descent on the hinge with an L2 penalty: SDCD and CDCD.

After Hsieh, Chang, Lin, Keerthi & Sundararajan, "A dual coordinate descent method for large-scale linear SVM" (ICML 2008): two
of the rivals in Tao, Zhu, Luo & Kong, "A new Comid-based stochastic coordinate descent method for non-smooth losses" (Acta
Electronica Sinica 41(4), 2013). With the rows' shares m of the whole weight, the objective and its dual are

    P(w) = sum of m_i max(0, 1 - y_i w.x_i) + lam |w|^2,
    D(b) = 2 lam (sum of b_i - |w(b)|^2 / 2),    w(b) = sum of b_i y_i x_i,    0 <= b_i <= m_i / (2 lam).

Hsieh's C is 1 / (2 lam n). A step takes a row and maximises D over its variable, and w follows. An intercept is the weight of
a column of ones and is penalised like the others: one that is not would tie the variables to each other.

One block is the published algorithm, but for when an idle row wakes: at each look at the objective, if its variable could
move then; in print all of them wake when the others have settled. With K blocks each owns the variables of its rows, which never
travel, and sweeps over them from the same w; what comes back is its contribution to w(b), and w is the sum of the
contributions. All changes count in full, and so that they cannot overshoot together, a block reckons with K times the effect
of its own (sigma' = K in Ma et al., "Adding vs. averaging in distributed primal-dual optimization", ICML 2015). The dual value
never falls, up to rounding.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary, block_seed
from aucdist.errors import InputError
from aucdist.kernels.hinge_dual import DUAL, LABEL, N_COLUMNS, SQUARE, UPPER, dual_sweeps, find_slopes, square_rows
from aucdist.kernels.rows import accumulate
from aucdist.objectives.hinge import EQUAL, ClassWeight, shares_of
from aucdist.solvers.base import Round
from aucdist.solvers.pairs.sampling import ResumableRound
from aucdist.solvers.rounding import EPS, Rounding, higher


@dataclass(frozen=True, eq=False)
class Duals:
    """What a block keeps.

    Attributes
    ----------
    table : ndarray of shape (n_samples, N_COLUMNS), float64
        As in `aucdist.kernels.hinge_dual`.
    order : ndarray of shape (n_samples,), int32
        Its rows, those that are not idle first.
    n_active : int
    high, low : float
        The largest and the smallest slope that moved a variable in the last sweep.
    w : ndarray of shape (n_features + 1,), float64
        Its contribution to w(b).
    """

    table: np.ndarray
    order: np.ndarray
    n_active: int
    high: float
    low: float
    w: np.ndarray


@dataclass(frozen=True)
class Ascent:
    """What stays the same from round to round; `one` and `sigma` as in `aucdist.kernels.hinge_dual.dual_sweeps`."""

    seed: int
    cyclic: bool
    one: float
    sigma: float


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def begin(
    block: Block, memory: None, shares: ClassWeight, lam: float, start: "HingeStart | None", one: float
) -> tuple[Duals, Summary]:
    """Set the variables to those of the start, where they may be so large."""
    n = block.n_samples
    before = np.zeros(n) if start is None else start.duals[block.index]
    if before.shape != (n,):
        raise InputError(f"{len(before)} dual variables to start from, but block {block.index} has {n} rows")
    table = np.empty((n, N_COLUMNS))
    square_rows(block.rows, table[:, SQUARE])
    table[:, SQUARE] += one * one
    table[:, UPPER] = block.weights() * np.where(block.y > 0, shares[1], shares[0]) / (2.0 * lam)
    table[:, LABEL] = block.y
    table[:, DUAL] = np.minimum(before, table[:, UPPER])
    # A row of zeros loses 1 whatever w is: its variable is at the upper end, and no step divides by its length.
    table[:, DUAL] = np.where(table[:, SQUARE] > 0.0, table[:, DUAL], table[:, UPPER])
    signed, w = table[:, DUAL] * table[:, LABEL], np.zeros(block.n_features + 1)
    accumulate(block.rows, np.arange(n), signed, w[:-1])
    w[-1] = one * signed.sum()
    return Duals(table, np.arange(n, dtype=np.int32), n, np.inf, -np.inf, w), {"w": w}


def ascend(block: Block, memory: Duals, w: np.ndarray, ascent: Ascent, number: int) -> tuple[Duals, Summary]:
    """Take about as many steps as there are rows, from w on. With few rows active that is several sweeps."""
    table, order, local = memory.table.copy(), memory.order.copy(), w.copy()
    seed = block_seed(ascent.seed, number, block.index)
    n_active, high, low, taken = dual_sweeps(
        block.rows, table, order, memory.n_active, seed, block.n_samples, ascent.cyclic, ascent.one, ascent.sigma,
        memory.high, memory.low, local,
    )  # fmt: skip
    own = local if ascent.sigma == 1.0 else memory.w + (local - w) / ascent.sigma
    return Duals(table, order, n_active, high, low, own), {"w": own, "total": table[:, DUAL].sum(), "taken": taken}


def look(block: Block, memory: Duals, w: np.ndarray, one: float) -> tuple[Duals, Summary]:
    """Find the loss at w, in units of the dual variables, and wake the idle rows whose variable could move."""
    slopes = np.empty(block.n_samples)
    loss = find_slopes(block.rows, memory.table, one, w, slopes)
    active, idle = memory.order[: memory.n_active], memory.order[memory.n_active :]
    wakes = np.where(memory.table[idle, DUAL] == 0.0, slopes[idle] < 0.0, slopes[idle] > 0.0)
    order = np.concatenate([active, idle[wakes], idle[~wakes]])
    return replace(memory, order=order, n_active=len(active) + int(wakes.sum())), {"loss": loss}


def tell(block: Block, memory: Duals) -> tuple[Duals, Summary]:
    """Send the dual variables."""
    return memory, {"duals": [memory.table[:, DUAL].copy()]}


# ---- rounds: run by the client ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class HingeStart:
    """Where to go on.

    Attributes
    ----------
    duals : tuple of ndarray of shape (n_samples of the block,), float64
        The dual variables b of each block's rows, at least 0. For another lam, and so another upper end, they stay as they are as
        far as they may, and w with them.
    """

    duals: tuple[np.ndarray, ...]


def hinge_sdcd(
    blocks: Blocks,
    lam: float,
    start: HingeStart | None = None,
    *,
    seed: int = 0,
    intercept: bool = False,
    class_weight: ClassWeight = EQUAL,
) -> Iterator[Round]:
    """Solve by dual coordinate descent in a random order, leaving out rows that have settled: SDCD, Hsieh's algorithm 3.

    Parameters
    ----------
    blocks : Blocks
    lam : float
        Above 0.
    start : HingeStart, optional
        What `resume` of a round returned, for the same lam or another.
    seed : int
    intercept : bool
        Add a column of ones, whose weight is penalised like the others.
    class_weight : tuple of float
        What the weights of the negative and of the positive rows are multiplied with.

    Yields
    ------
    ResumableRound
        The newest weights, of shape (n_features,), or (n_features + 1,) with the intercept last; their exact objective; and
        their dual value, which is the best so far. A round takes about n_samples steps, each counted as a whole reading of its
        row, and half a pass to look at the objective.

    Raises
    ------
    InputError
        For a start that does not fit the blocks.
    """
    return _rounds(blocks, lam, _checked(start, blocks), seed, False, intercept, class_weight)


def hinge_cdcd(
    blocks: Blocks,
    lam: float,
    start: HingeStart | None = None,
    *,
    intercept: bool = False,
    class_weight: ClassWeight = EQUAL,
) -> Iterator[Round]:
    """Solve by dual coordinate descent in the order of the rows, all of them in each sweep: CDCD, Hsieh's algorithm 1.

    Parameters and rounds as in `hinge_sdcd`.
    """
    return _rounds(blocks, lam, _checked(start, blocks), 0, True, intercept, class_weight)


def _rounds(
    blocks: Blocks,
    lam: float,
    start: HingeStart | None,
    seed: int,
    cyclic: bool,
    intercept: bool,
    class_weight: ClassWeight,
) -> Iterator[Round]:
    rounding, blocks, one = Rounding.of(blocks), blocks.fresh(), 1.0 if intercept else 0.0
    ascent = Ascent(seed, cyclic, one, float(blocks.n_blocks))
    shares = shares_of(blocks.weight_neg, blocks.weight_pos, class_weight)
    w = blocks.reduce(begin, shares, lam, start, one)["w"]
    number, taken, bound = 0, 0, (0.0, 0.0)
    while True:
        number += 1
        told = blocks.reduce(ascend, w, ascent, number)
        w, taken = told["w"], taken + told["taken"]
        half_square = 0.5 * float(w @ w)
        primal = 2.0 * lam * (blocks.reduce(look, w, one)["loss"] + half_square)
        active = 2.0 * lam * float(told["total"])
        # Of w: what the steps have added up, each of which may have rounded an entry no larger than the variables allow.
        share = EPS * (taken + blocks.n_samples + len(w))
        away = (share * active / lam) * np.append(rounding.largest, one)
        error = share * active + 2.0 * lam * rounding.half_square(w, away)
        bound = higher(bound, (active - 2.0 * lam * half_square, error))
        scores = rounding.score(w[:-1]) + EPS * abs(float(w[-1]))
        passes = math.ceil(taken / blocks.n_samples + 0.5 * number)
        yield ResumableRound(
            w if intercept else w[:-1], primal, bound[0], passes, partial(_told, blocks),
            primal_error=scores + 2.0 * rounding.over_rows * primal, dual_error=bound[1],
        )  # fmt: skip


def _told(blocks: Blocks) -> HingeStart:
    return HingeStart(tuple(blocks.reduce(tell)["duals"]))


def _checked(start: HingeStart | None, blocks: Blocks) -> HingeStart | None:
    """Return the start, if it can be one."""
    if start is None:
        return None
    if not isinstance(start, HingeStart):
        raise InputError(
            "dual coordinate descent starts from dual variables, and weights have none: give a HingeStart, or set "
            "warm_start=False"
        )
    if len(start.duals) != blocks.n_blocks:
        raise InputError(f"dual variables of {len(start.duals)} blocks to start from, but there are {blocks.n_blocks}")
    if not all((np.isfinite(duals) & (duals >= 0.0)).all() for duals in start.duals):
        raise InputError("the dual variables to start from are not all finite and at least 0")
    return start
