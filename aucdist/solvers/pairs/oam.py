"""Online AUC maximisation: one pass in the order of arrival, in which each row is paired with buffered rows of the other class.

After Zhao, Hoi, Jin & Yang, "Online AUC maximization" (ICML 2011), for ``lam/2 |w|^2 + mean pairwise hinge``. An arriving row is
paired with the rows of the other class that are in that class's buffer, and then enters its own; a full buffer is kept a uniform
sample of its class by reservoir sampling.

``oam-seq``
    A passive-aggressive step for one buffered row after the other.
``oam-gra``
    One gradient step for all buffered rows together.
``oam-inf``
    ``oam-seq`` with unlimited buffers: every pair once, in the order of arrival.

The paper gives each pair's hinge a weight C against ``|w|^2 / 2``. Dividing our objective by `lam` gives ``C = 1 / (lam k)``
for k pairs, which is also what equation (8) of Jiang, Tao, Gao & Chu (2014) says of ``oam-inf``: with it, ``oam-inf`` is their
SDCD with the pairs in order of arrival, from dual variables of 0. (The print of 2011 counts each pair as two halves: its C is
twice ours.)
While a buffer has B of the N rows of its class seen so far, its rows stand for all N, and a step may be as large as
``C_t = C max(1, N / B)``. If rows have weights, the C of a pair is multiplied by w_i w_j; reservoirs count rows.

One block is the published algorithm, in the order of the rows. With several, each block runs the algorithm on its own rows, k
being the number of pairs within the block, and the weights are averaged, each block counting by its rows. Further epochs start
from the last weights with empty buffers.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from aucdist.data.block import Block, stacked
from aucdist.engine.blocks import Blocks, Summary, block_seed
from aucdist.kernels.oam import learn_at_once, learn_in_turn
from aucdist.solvers.base import Round
from aucdist.solvers.pairs.objective import dual_error, objective_error, pairwise_objective, rounding_of_pairs

BUFFER_SIZE = 100

KERNELS: dict[str, Callable[..., tuple[int, float]]] = {
    "oam-inf": learn_in_turn,
    "oam-seq": learn_in_turn,
    "oam-gra": learn_at_once,
}


@dataclass(frozen=True, eq=False)
class OamState:
    """The state of the algorithm after some rows.

    Attributes
    ----------
    w : ndarray of shape (n_features,), float64
    buffer : Block or None
        The buffered rows, those of a class in the order of the buffer; None before the first row.
    seen : ndarray of shape (2,), int64
        Rows seen of class -1 and of class +1.
    weight : ndarray of shape (2,), float64
        What the rows seen of class -1 and of class +1 weigh.
    draws : ndarray of shape (1,), uint64
        The state of the random numbers.
    """

    w: np.ndarray
    buffer: Block | None
    seen: np.ndarray
    weight: np.ndarray
    draws: np.ndarray

    def weight_with(self, block: Block) -> np.ndarray:
        """Return what the rows seen and those of a block weigh, of class -1 and of class +1."""
        weight = block.weights()
        return self.weight + np.array([weight[block.y < 0].sum(), weight[block.y > 0].sum()])


@dataclass(frozen=True)
class UpdateCost:
    """What an update took: rows read, one for each pair, and the sum of the step lengths."""

    read: int
    steps: float


def oam_start(w: np.ndarray, seed: int) -> OamState:
    """Return the state before the first row, at weights w, float64 of shape (n_features,)."""
    return OamState(w, None, np.zeros(2, dtype=np.int64), np.zeros(2), np.array([seed], dtype=np.uint64))


def oam_update(
    state: OamState, block: Block, solver: str, bound: float, capacity: int | None
) -> tuple[OamState, UpdateCost]:
    """Return the state after the rows of a block, in their order. Several blocks give the same bits as one of all their rows.

    Parameters
    ----------
    state : OamState
        It is not changed.
    block : Block
    solver : {"oam-inf", "oam-seq", "oam-gra"}
    bound : float
        C, the largest step for a pair of rows of weight 1.
    capacity : int or None
        Rows in the buffer of each class; None is unlimited.
    """
    first = 0 if state.buffer is None else state.buffer.n_samples
    rows = block if state.buffer is None else stacked([state.buffer, block])
    buffered = np.zeros((2, rows.n_samples if capacity is None else capacity), dtype=np.int64)
    filled = np.zeros(2, dtype=np.int64)
    for own, label in enumerate((-1, 1)):
        mine = np.flatnonzero(rows.y[:first] == label)[:capacity]
        filled[own] = len(mine)
        buffered[own, : len(mine)] = mine
    w, seen, draws = state.w.copy(), state.seen.copy(), state.draws.copy()
    cost = KERNELS[solver](rows.rows, rows.y, rows.weights(), first, w, buffered, filled, seen, draws, bound)
    buffer = rows.take(np.concatenate([buffered[own, : filled[own]] for own in (0, 1)]))
    return OamState(w, buffer, seen, state.weight_with(block), draws), UpdateCost(*cost)


def oam_inf(
    blocks: Blocks, lam: float, start: np.ndarray | None = None, *, epochs: int = 1, n_pairs: float | None = None
) -> Iterator[Round]:
    """Pair each row with every earlier row of the other class, one step after the other.

    After one epoch over one block from zero its dual variables are feasible, and their value is the lower bound. In every other
    case the bound is 0.

    Parameters
    ----------
    blocks : Blocks
    lam : float
    start : ndarray of shape (n_features,), optional
    epochs : int
        Passes over the rows.
    n_pairs : float, optional
        k in ``C = 1 / (lam k)``; by default what the pairs of `blocks` weigh.

    Yields
    ------
    Round
        After each epoch the weights and their exact objective.
    """
    dual = start is None and n_pairs is None and blocks.n_blocks == 1
    return _oam_rounds(blocks, lam, start, "oam-inf", None, 0, epochs, n_pairs, has_dual=dual)


def oam_seq(
    blocks: Blocks,
    lam: float,
    start: np.ndarray | None = None,
    *,
    seed: int,
    buffer_size: int = BUFFER_SIZE,
    epochs: int = 1,
    n_pairs: float | None = None,
) -> Iterator[Round]:
    """Pair each row with the buffered rows of the other class, one step after the other. There is no dual: the bound is 0.

    Parameters
    ----------
    blocks, lam, start, epochs, n_pairs
        As in `oam_inf`.
    seed : int
        Of the reservoirs.
    buffer_size : int
        Rows in the buffer of each class.

    Yields
    ------
    Round
        After each epoch the weights and their exact objective.
    """
    return _oam_rounds(blocks, lam, start, "oam-seq", buffer_size, seed, epochs, n_pairs)


def oam_gra(
    blocks: Blocks,
    lam: float,
    start: np.ndarray | None = None,
    *,
    seed: int,
    buffer_size: int = BUFFER_SIZE,
    epochs: int = 1,
    n_pairs: float | None = None,
) -> Iterator[Round]:
    """Pair each row with the buffered rows of the other class in one gradient step; parameters and rounds as in `oam_seq`."""
    return _oam_rounds(blocks, lam, start, "oam-gra", buffer_size, seed, epochs, n_pairs)


def _oam_rounds(
    blocks: Blocks, lam: float, start: np.ndarray | None, solver: str, capacity: int | None, seed: int,
    epochs: int, n_pairs: float | None, *, has_dual: bool = False,
) -> Iterator[Round]:  # fmt: skip
    rounding, blocks = rounding_of_pairs(blocks), blocks.without_memory()
    w = np.zeros(blocks.n_features) if start is None else start.astype(np.float64)
    total = blocks.weight_pos * blocks.weight_neg
    if n_pairs is None:
        n_pairs = total
    read, dual, error = 0, 0.0, 0.0
    for epoch in range(epochs):
        summary = blocks.reduce(oam_epoch, w, lam, solver, capacity, (seed, epoch), n_pairs, total, blocks.n_samples)
        w, read = summary["w"], read + summary["read"]
        if has_dual and epoch == 0:
            # The dual variable of a pair is its step over C, so their mean is lam times the sum of the steps.
            active = float(lam * summary["steps"])
            dual = max(0.0, active - 0.5 * lam * float(w @ w))
            error = dual_error(rounding, w, active, lam, blocks.n_pos * blocks.n_neg)
        primal = pairwise_objective(blocks, w, lam)
        passes = math.ceil(read / blocks.n_samples)
        yield Round(
            w.copy(), primal, dual, passes, primal_error=objective_error(rounding, w, primal), dual_error=error
        )  # fmt: skip


def oam_epoch(
    block: Block, memory: None, w: np.ndarray, lam: float, solver: str, capacity: int | None,
    seeds: tuple[int, int], n_pairs: float, total: float, n_samples: int,
) -> tuple[None, Summary]:  # fmt: skip
    """Run the algorithm on the rows of a block from w. Without pairs the weights stay the same."""
    weight, positive = block.weights(), block.y > 0
    mine = float(weight[positive].sum()) * float(weight[~positive].sum())
    cost = UpdateCost(block.n_samples, 0.0)
    if mine > 0.0:
        state = oam_start(w, block_seed(*seeds, block.index))
        state, cost = oam_update(state, block, solver, 1.0 / (lam * (n_pairs * (mine / total))), capacity)
        w = state.w
    return None, {"w": block.n_samples / n_samples * w, "read": cost.read, "steps": cost.steps}
