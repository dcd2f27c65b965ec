"""Modified stochastic gradient descent over single pairs drawn at random: AUC-MSGD.

After Jiang, Tao, Gao & Chu (2014), algorithm 3. Step t draws a pair z and takes the step of dual coordinate descent for a
problem of t pairs in which z is new:

    a = clip(lam t (1 - w.z) / z.z, 0, 1),    w <- (1 - 1/t) w + a z / (lam t).

So w is ``(sum of a z) / (lam t)`` over the pairs drawn so far, and nothing else is stored. If z = 0, when a row is equal to one
of the other class, w only shrinks.

One block is the published algorithm. With K blocks, each takes its part of a round's steps on its own pairs
(`aucdist.solvers.pairs.sampling`), all from the same w, and the resulting w are averaged. Each step of a block stands for K
steps, one of every block, so that t counts all pairs drawn.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, LocalBlocks, Summary, block_seed
from aucdist.errors import InputError
from aucdist.kernels.pair_epochs import draw_any, gradient_steps
from aucdist.solvers.base import Round, Solver
from aucdist.solvers.online import threshold_of
from aucdist.solvers.pairs.objective import objective_error, pairwise_objective, rounding_of_pairs
from aucdist.solvers.pairs.sampling import (
    MINORITY_BYTES,
    SAMPLING_CONSTRAINTS,
    Combination,
    Pairing,
    ResumableRound,
    SamplingMemory,
    check_sampling,
    check_steps,
    number_of_pairs,
    pair_key,
    round_sizes,
)

EPOCHS = 10


@dataclass(frozen=True, eq=False)
class DescentState:
    """The weights of a descent, and the number of its steps.

    Attributes
    ----------
    w : ndarray of shape (n_features,), float64
    steps : int
        t: it sets the size of the next steps. The next pairs of a seed are drawn after these.
    """

    w: np.ndarray
    steps: int


def descend_pairs(
    block: Block, memory: SamplingMemory, total: np.ndarray, time: int, lam: float, sign: int, combination: Combination,
    seed: int, shares: np.ndarray, part: int,
) -> tuple[SamplingMemory, Summary]:  # fmt: skip
    """Take the block's share of a round's steps from the sum `total` of `time` steps, and return its term of the next sum."""
    n_steps, local = int(shares[block.index]), total.copy()
    rows = memory.rows(block, sign)
    for taken, drawn in memory.draws(draw_any, pair_key(block, seed, part), part, n_steps):
        gradient_steps(rows, drawn, lam, combination.sigma, time + combination.sigma * taken, local)
    return memory.after(part, n_steps, None), {"total": combination.moved(np.zeros_like(total), total, local)}


class MSGD(Solver):
    """Modified stochastic gradient descent on pairs that are drawn independently of each other: AUC-MSGD, algorithm 3.

    There is no bound that closes in: the fit ends after its steps.

    Parameters
    ----------
    steps : int, "all" or None, default=None
        Pairs to draw in all: T. ``"all"`` is n_pos * n_neg, the paper's choice.
    epochs : int or None, default=None
        The same in units of n_samples pairs. With neither 10 epochs, since there is no gap to stop by.
    minority_bytes : int, default=268435456
        The rows of the smaller class are sent to every block; where there are several blocks and the rows take more than
        this, they are sent in parts.
    """

    name = "msgd"
    objective = "pairwise hinge"
    random = True
    sample_weight = False
    resumes = True
    online = True
    _parameter_constraints = SAMPLING_CONSTRAINTS

    def __init__(
        self, *, steps: int | str | None = None, epochs: int | None = None, minority_bytes: int = MINORITY_BYTES
    ):
        self.steps = steps
        self.epochs = epochs
        self.minority_bytes = minority_bytes

    def rounds(self, blocks: Blocks, lam: float, start: DescentState | None = None, *, seed: int) -> Iterator[Round]:
        """Yield after each round the weights and their exact objective over all pairs. There is no dual: the bound is 0.

        Both classes must be there.

        Parameters
        ----------
        start : DescentState, optional
            What ``resume`` of a round returned. Weights alone are refused: the first step multiplies them by 1 - 1/1.

        Raises
        ------
        InputError
            Before the first round, for parameters or data that cannot be used.
        """
        self.check_parameters()
        if start is not None and not isinstance(start, DescentState):
            raise InputError(
                "msgd goes on from weights and the number of steps that led to them, and its first step forgets weights "
                "alone: give a DescentState, or set warm_start=False"
            )
        if start is not None and start.w.shape != (blocks.n_features,):
            raise InputError(
                f"the weights to start from are of {len(start.w)} features, the data of {blocks.n_features}"
            )
        epochs = EPOCHS if self.steps is None and self.epochs is None else self.epochs
        if blocks.has_weights:
            raise InputError("msgd takes no sample weights")
        n_pairs = number_of_pairs(blocks)
        check_sampling(n_pairs, blocks.n_samples, self.steps, epochs, 0 if start is None else start.steps)
        sizes = round_sizes(blocks, n_pairs, self.steps, epochs)
        time, total = (0, np.zeros(blocks.n_features)) if start is None else (start.steps, lam * start.steps * start.w)
        rounding, pairing = rounding_of_pairs(blocks), Pairing(blocks, self.minority_bytes, time)
        combination, taken = Combination.of("add", pairing), 0
        for number, size in enumerate(sizes, start=1):
            part = (number - 1) % pairing.n_parts
            pairing.send_minority(part)
            terms = pairing.reduce(
                descend_pairs, total, time, lam, pairing.sign, combination, seed, pairing.shares(size), part
            )["total"]
            total, time, taken = terms if combination.alone else total + terms, time + size, taken + size
            w = total / (lam * time)
            passes = math.ceil(2 * taken / blocks.n_samples + 0.5 * number)
            primal = pairwise_objective(pairing.blocks, w, lam)
            error = objective_error(rounding, w, primal)
            yield ResumableRound(w, primal, 0.0, passes, partial(DescentState, w, time), primal_error=error)

    def check_parameters(self) -> None:
        """Check the solver's own parameters, of which only one may set the number of pairs."""
        super().check_parameters()
        check_steps(self.steps, self.epochs)

    def learn(self, stream: Any, block: Block, lam: float, seed: int) -> tuple[DescentState, float | None]:
        """Take steps along pairs drawn within a batch, as many as `steps` or `epochs` say of it.

        The size of the steps goes on from batch to batch; rows of different batches are never paired. A batch of one class
        changes nothing. The threshold is set on the batch. Parameters and returns as of `Solver.learn`; weights to start
        from must be 0.
        """
        if not isinstance(stream, DescentState):
            w = stream if isinstance(stream, np.ndarray) else stream.w
            if w.any():
                raise InputError(
                    "msgd cannot go on from weights alone, for its steps depend on how many there were: call partial_fit "
                    "on a model that is not fitted"
                )
            stream = DescentState(w, 0)
        if (block.y > 0).all() or (block.y < 0).all():
            return stream, None
        progress = stream
        seed = block_seed(seed, int(stream.steps), 0)
        for state in self.rounds(LocalBlocks([block]), lam, stream if stream.steps > 0 else None, seed=seed):
            assert isinstance(state, ResumableRound)
            progress = state.resume()
        return progress, threshold_of(block, progress.w)
