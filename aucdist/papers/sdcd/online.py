"""Solvers of the pairwise hinge without dual variables: AUC-MSGD, and the online AUC maximisation it is compared with.

AUC-MSGD is after Jiang, Tao, Gao & Chu (2014), algorithm 3. Step t draws a pair z and takes the step of dual coordinate descent
for a problem of t pairs in which z is new:

    a = clip(lam t (1 - w.z) / z.z, 0, 1),    w <- (1 - 1/t) w + a z / (lam t).

So w is ``(sum of a z) / (lam t)`` over the pairs drawn so far, and nothing else is stored. If the two rows of a pair are equal,
so that z = 0, w only shrinks. With K blocks, each block takes its part of a round's steps on its own pairs
(`aucdist.papers.sdcd.pairing`), all from the same w, and the resulting w are averaged. Each step of a block stands for K steps,
one of every block, so that t counts all pairs drawn.

Online AUC maximisation is after Zhao, Hoi, Jin & Yang (ICML 2011), for ``lam/2 |w|^2 + mean pairwise hinge``: one pass in the
order of arrival. An arriving row is paired with the rows in the buffer of the other class, and then enters the buffer of its
own class. Reservoir sampling keeps a full buffer a uniform sample of its class.

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

With several blocks, each runs the algorithm on its own rows, k being the number of pairs within the block, and
`aucdist.papers.epochs` averages the weights. Further epochs start from the last weights with empty buffers.
"""

import math
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any, ClassVar

import numpy as np
from numpy import ndarray

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary
from aucdist.pairs.problem import pairwise_objective, rounding_of_pairs
from aucdist.papers.epochs import LabelledRows, epochs
from aucdist.papers.sdcd.kernels import Buffers, gradient_steps, learn_at_once, learn_in_turn
from aucdist.papers.sdcd.pairing import PairSolver, PairSteps, SamplingMemory, Turn, hinge_dual, pairwise_round
from aucdist.parameters import above_0, count, keyword_parameters
from aucdist.solvers.base import Round, Solver

# ---- AUC-MSGD ---------------------------------------------------------------------------------------------------------


def descend_pairs(
    block: Block, memory: SamplingMemory, total: ndarray, time: int, steps: PairSteps, turn: Turn
) -> tuple[SamplingMemory, Summary]:
    """Take the block's share of a round's steps from the sum `total` of `time` steps, and return its term of the next sum."""
    local, rows = total.copy(), memory.rows(block, steps.sign)
    for taken, drawn in steps.draws(block, memory, turn):
        gradient_steps(rows, drawn, steps.scale, steps.sigma, time + steps.sigma * taken, local)
    return memory.after(turn, block, None), steps.moved(np.zeros_like(total), total, local)


class MSGD(PairSolver):
    """Modified stochastic gradient descent on pairs that are drawn independently of each other: AUC-MSGD, algorithm 3.

    The lower bound does not approach the minimum, so the fit ends after its steps. If neither `steps` nor `epochs` is given,
    it takes 10 epochs.

    Parameters
    ----------
    steps, epochs
        As for `PairSolver`.
    """

    name = "msgd"
    accepts_weights = False
    default_epochs = 10

    def rounds(self, blocks: Blocks, lam: float, start: None = None, *, seed: int) -> Iterator[Round]:
        """Yield after each round the weights and their exact objective over all pairs. There is no dual, so the lower bound is 0.

        Parameters
        ----------
        blocks : Blocks
            The rows, of both classes.
        lam : float
            The regularisation strength.
        start : None
            The fit starts from weights of 0, because the first step would multiply other weights by 1 - 1/1.
        seed : int
            The seed of the pairs that are drawn.

        Yields
        ------
        Round

        Raises
        ------
        InputError
            Before the first round, if the data cannot be used.
        """
        pairing, turns = self.turns(blocks)
        rounding, total, time = rounding_of_pairs(blocks), np.zeros(blocks.n_features), 0
        steps = pairing.steps(seed, lam)
        for turn in turns:
            terms = pairing.blocks.reduce(descend_pairs, total, time, steps, turn)
            total, time = terms if steps.alone else total + terms, turn.taken
            w = total / (lam * time)
            yield pairwise_round(rounding, w, pairwise_objective(pairing.blocks, w, lam), turn.passes)


# ---- online AUC maximisation ------------------------------------------------------------------------------------------


def arrival_epoch(
    block: Block, memory: None, w: ndarray, seed: int, solver: "OAMInf", scale: tuple[float, float]
) -> tuple[None, ndarray, Summary]:
    """Run the algorithm on the rows of a block in their order, from empty buffers. This is an `Epoch`.

    Without pairs the weights stay the same. The summary counts the rows read and adds up step lengths.

    Parameters
    ----------
    block : Block
        The rows.
    memory : None
        Blocks have no memory between epochs.
    w : ndarray
        The weights.
    seed : int
        The seed of the random numbers.
    solver : OAMInf
        The solver, with its parameters.
    scale : tuple (float, float)
        lam, and the weight of the pairs of all blocks.
    """
    weight, positive = block.weights(), block.y > 0
    pair_weight, read, steps = float(weight[positive].sum()) * float(weight[~positive].sum()), block.n_samples, 0.0
    lam, total = scale
    if pair_weight > 0.0:
        capacity = block.n_samples if solver.buffer_size is None else solver.buffer_size
        learn = learn_at_once if solver.at_once else learn_in_turn
        n_pairs = total if solver.n_pairs is None else solver.n_pairs
        bound = 1.0 / (lam * (n_pairs * (pair_weight / total)))
        read, steps = learn(LabelledRows.of(block), w, Buffers.empty(capacity, seed), bound)
    return None, w, {"read": read, "steps": steps}


@keyword_parameters(epochs=count(), n_pairs=above_0(optional=True))
class OAMInf(Solver):
    """Pairs each row with every earlier row of the other class, one step after the other, in the order of the rows.

    The lower bound does not approach the minimum, so the fit ends after its epochs. After one epoch over one block from zero,
    the dual variables are feasible, and their value is the lower bound. In other cases the bound is 0.

    Parameters
    ----------
    epochs : int, default=1
        The number of passes over the rows.
    n_pairs : float or None, default=None
        The k of ``C = 1 / (lam k)``, the longest step. None takes the weight of the pairs of the data.
    """

    name = "oam-inf"
    objective = "pairwise hinge"
    at_once = False
    buffer_size: ClassVar[Any] = None
    """The largest number of rows in the buffer of each class; None means no limit."""

    epochs: int = 1
    n_pairs: float | None = None

    def rounds(self, blocks: Blocks, lam: float, start: ndarray | None = None, *, seed: int = 0) -> Iterator[Round]:
        """Yield after each epoch the weights and their exact objective.

        Parameters
        ----------
        blocks : Blocks
            The rows, of both classes.
        lam : float
            The regularisation strength.
        start : ndarray of shape (n_features,), optional
            The weights to start from.
        seed : int, default=0
            The seed of reservoirs, which `OAMSeq` and `OAMGra` have.

        Yields
        ------
        Round
        """
        has_dual = self.buffer_size is None and start is None and self.n_pairs is None and blocks.n_blocks == 1
        rounding, blocks = rounding_of_pairs(blocks), blocks.without_memory()
        w = np.zeros(blocks.n_features) if start is None else start.astype(np.float64)
        total = blocks.weight_pos * blocks.weight_neg
        epoch = partial(arrival_epoch, solver=self, scale=(lam, total))
        read, bound = 0, (0.0, 0.0)
        for summary in islice(epochs(blocks, epoch, w, seed, first=0), self.epochs):
            w = summary["w"]
            if has_dual and read == 0:
                # The dual variable of a pair is its step over C, so their mean is lam times the sum of the steps.
                active = float(lam * summary["steps"])
                value, error = hinge_dual(rounding, w, active, lam, blocks.n_pos * blocks.n_neg)
                bound = max(0.0, value), error
            read += summary["read"]
            passes = math.ceil(read / blocks.n_samples)
            yield pairwise_round(rounding, w, pairwise_objective(blocks, w, lam), passes, bound)


@keyword_parameters(buffer_size=count())
class OAMSeq(OAMInf):
    """Pairs each row with the buffered rows of the other class, one step after the other. There is no dual, so the bound is 0.

    Parameters
    ----------
    buffer_size : int, default=100
        The number of rows in the buffer of each class, which is a reservoir of the rows seen so far.
    epochs, n_pairs
        As for `OAMInf`.
    """

    name = "oam-seq"
    is_random = True

    buffer_size: int = 100  # type: ignore[misc]


class OAMGra(OAMSeq):
    """Pairs each row with the buffered rows of the other class in one gradient step.

    Parameters
    ----------
    buffer_size, epochs, n_pairs
        As for `OAMSeq`.
    """

    name = "oam-gra"
    at_once = True
