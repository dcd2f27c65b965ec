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
from typing import Any, ClassVar

import numpy as np

from aucdist.data.block import Block, stacked
from aucdist.engine.blocks import Blocks, Summary, block_seed
from aucdist.kernels.oam import learn_at_once, learn_in_turn
from aucdist.parameters import Constraints, above_0, count
from aucdist.solvers.base import Round, Solver
from aucdist.solvers.online import threshold_of
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


class OAMInf(Solver):
    """Pairs each row with every earlier row of the other class, one step after the other, in the order of the rows.

    There is no bound that closes in: the fit ends after its epochs. After one epoch over one block from zero the dual variables
    are feasible, and their value is the lower bound; in every other case the bound is 0.

    Parameters
    ----------
    epochs : int, default=1
        Passes over the rows.
    n_pairs : float or None, default=None
        k in ``C = 1 / (lam k)``, the longest step. None takes what the pairs of the data weigh, and in ``partial_fit`` those of
        all rows so far, so that the steps shrink as rows arrive.
    """

    name = "oam-inf"
    objective = "pairwise hinge"
    online = True
    _parameter_constraints: ClassVar[Constraints] = {"epochs": count(), "n_pairs": above_0(optional=True)}

    def __init__(self, *, epochs: int = 1, n_pairs: float | None = None):
        self.epochs = epochs
        self.n_pairs = n_pairs

    @property
    def capacity(self) -> int | None:
        """Rows in the buffer of each class; None is unlimited."""
        return None

    def rounds(self, blocks: Blocks, lam: float, start: Any = None, *, seed: int = 0) -> Iterator[Round]:
        """Yield after each epoch the weights and their exact objective; `seed` is of the reservoirs, where there are some."""
        self.check_parameters()
        has_dual = self.capacity is None and start is None and self.n_pairs is None and blocks.n_blocks == 1
        rounding, blocks = rounding_of_pairs(blocks), blocks.without_memory()
        w = np.zeros(blocks.n_features) if start is None else start.astype(np.float64)
        total, n, how = blocks.weight_pos * blocks.weight_neg, blocks.n_samples, (self.name, self.capacity)
        n_pairs = total if self.n_pairs is None else self.n_pairs
        read, dual, error = 0, 0.0, 0.0
        for epoch in range(self.epochs):
            summary = blocks.reduce(oam_epoch, w, lam, *how, (seed, epoch), n_pairs, total, n)
            w, read = summary["w"], read + summary["read"]
            if has_dual and epoch == 0:
                # The dual variable of a pair is its step over C, so their mean is lam times the sum of the steps.
                active = float(lam * summary["steps"])
                dual = max(0.0, active - 0.5 * lam * float(w @ w))
                error = dual_error(rounding, w, active, lam, blocks.n_pos * blocks.n_neg)
            primal = pairwise_objective(blocks, w, lam)
            of_primal = objective_error(rounding, w, primal)
            yield Round(w.copy(), primal, dual, math.ceil(read / n), primal_error=of_primal, dual_error=error)

    def learn(self, stream: Any, block: Block, lam: float, seed: int) -> tuple[OamState, float]:
        """Let the rows of a batch meet the buffered rows of the other class, in their order.

        Batch after batch gives the same weights, to the last bit, as one `fit` of all rows with the same `n_pairs`. Without
        `n_pairs` the number of pairs of all rows so far sets the size of the steps, those of the batch included. The threshold
        is set on the buffered rows, a uniform sample of each class seen so far. Parameters and returns as of `Solver.learn`.
        """
        if not isinstance(stream, OamState):
            stream = oam_start(stream if isinstance(stream, np.ndarray) else stream.w, block_seed(seed, 0, 0))
        n_pairs = self.n_pairs
        if n_pairs is None:
            # Rows of one class have no pairs, and take no steps of whatever size.
            n_pairs = float(np.prod(stream.weight_with(block))) or 1.0
        stream, _ = oam_update(stream, block, self.name, 1.0 / (lam * n_pairs), self.capacity)
        return stream, 0.0 if stream.buffer is None else threshold_of(stream.buffer, stream.w)


class OAMSeq(OAMInf):
    """Pairs each row with the buffered rows of the other class, one step after the other. There is no dual: the bound is 0.

    Parameters
    ----------
    buffer_size : int, default=100
        Rows in the buffer of each class, a reservoir of those seen so far.
    epochs, n_pairs
        As of `OAMInf`.
    """

    name = "oam-seq"
    random = True
    _parameter_constraints: ClassVar[Constraints] = {**OAMInf._parameter_constraints, "buffer_size": count()}

    def __init__(self, *, buffer_size: int = BUFFER_SIZE, epochs: int = 1, n_pairs: float | None = None):
        super().__init__(epochs=epochs, n_pairs=n_pairs)
        self.buffer_size = buffer_size

    @property
    def capacity(self) -> int | None:
        """Rows in the buffer of each class."""
        return self.buffer_size


class OAMGra(OAMSeq):
    """Pairs each row with the buffered rows of the other class in one gradient step; the parameters are those of `OAMSeq`."""

    name = "oam-gra"


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
