"""Zeroth-order variance-reduced descent on the margin-mean objective (U-ZOVR without its sampling), and zeroth-order SGD.

After Lu, Zhang & Cai, "Zeroth order optimization algorithm based on undersampling" (Journal of Nanjing University of
Aeronautics & Astronautics 51(5), 2019), algorithms 3 and 4. Each outer round draws directions u uniformly on the unit sphere,
and estimates the gradient of the objective by its values at w +- mu u. Each inner step draws a row, takes the difference of the
row's estimates at w_k and at the round's w along the same directions, and adds the estimate over all rows. Its length is 1 / (k
+ 1), k = 1, 2, ... (the paper's loop over k = 1, ..., K - 1 has n_inner = K - 1 steps). As in the paper, the estimate has no
factor n_features. The paper's T is `n_outer`, and its w_t are the weights after a round.

The paper draws a set of directions and picks one in each outer round, perhaps another one for each row. Here all rows share the
direction: with one for each row, the objective rose from round to round in trials with a kernel. With `n_directions` above 1 an
estimate is the mean over several directions. A row's difference along a direction costs one inner product, whatever the number of
steps (`aucdist.kernels.zeroth_order`); the penalty needs none.

The paper trains the methods it compares with by what is `ZOSGD` here: the same steps without variance reduction, whose length
keeps falling from round to round.

With one block this is the published algorithm. With several, the directions depend on the seed only, the estimate over all rows
is one reduction, and each block takes steps over its own rows. The results are averaged in proportion to the blocks' weights.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary, block_seed, without_rows
from aucdist.kernels.zeroth_order import slopes_along, steps_along, unit_vectors
from aucdist.objectives.kernel_block import KernelBlock
from aucdist.parameters import Constraints, above_0, count
from aucdist.solvers.base import Round
from aucdist.solvers.margin_mean.problem import (
    MarginMeanProblem,
    MarginMemory,
    MarginSolver,
    evaluate_margins,
    score_and_evaluate,
)

MU = 0.1
"""The default mu, as in the paper."""

N_DIRECTIONS = 30
"""The default number of directions. There are never more directions than weights, which they span already."""


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def project_on_directions(
    block: Block, memory: MarginMemory, shape: tuple[int, int], seed: int, mu: float, reduced: bool
) -> tuple[MarginMemory, Summary]:
    """Keep the inner products of the rows with the round's directions.

    With variance reduction the slopes of each row's loss along the directions are kept, too, and their means returned.
    """
    directions = random_directions(shape, seed)
    found = block.times(directions.T) if isinstance(block, KernelBlock) else block.X @ directions.T
    moves = np.ascontiguousarray(found, dtype=np.float64)
    slopes = np.empty(moves.shape if reduced else (0, 0))
    summary: Summary = {}
    if reduced:
        slopes_along(moves, memory.scores, memory.y, mu, slopes)
        summary = {"slopes": memory.share @ slopes, "pull": (memory.share * memory.pull) @ moves}
    if memory.first is not None:
        own = directions[:, memory.own]
        summary |= {"gram": own @ moves, "at_start": own @ memory.scores}
    return replace(memory, moves=moves, slopes=slopes), summary


@without_rows
def inner_steps(
    block: int, memory: MarginMemory, lams: tuple[float, float], mu: float, plane: tuple[np.ndarray, ...],
    reduced: bool, n_inner: int | None, seeds: tuple[int, int],
) -> tuple[MarginMemory, Summary]:  # fmt: skip
    """Take the steps of a round over the block's rows, and return the move along each direction times the block's weight."""
    c = np.zeros(len(plane[0]))
    n_steps = len(memory.share) if n_inner is None else n_inner
    if len(memory.share):
        seed, number = seeds
        # With variance reduction the step lengths start anew in each round. Without, only ever shorter steps reduce the noise.
        before = 0 if reduced else (number - 1) * n_steps
        steps_along(
            memory.moves, memory.scores, memory.y, memory.weight, lams[0] * memory.pull, lams[1], mu, *plane,
            memory.slopes, before, n_steps, block_seed(seed, number, memory.index), np.empty_like(c), c,
        )  # fmt: skip
    return memory, {"move": memory.share.sum() * c}


def move_and_evaluate(
    block: Block, memory: MarginMemory, move: np.ndarray, *evaluation: Any
) -> tuple[MarginMemory, Summary]:
    """Move the scores along the directions, and return what `evaluate_margins` returns."""
    moved = replace(memory, scores=memory.scores + memory.moves @ move, moves=None, slopes=None)
    return evaluate_margins(block, moved, *evaluation)


# ---- rounds: run by the client ----------------------------------------------------------------------------------------


def random_directions(shape: tuple[int, int], seed: int) -> np.ndarray:
    """Return the directions of a round, random unit vectors as rows, float64 of shape (n_directions, size)."""
    directions = np.empty(shape)
    unit_vectors(seed, directions)
    return directions


class ZOVR(MarginSolver):
    """The paper's variance-reduced steps by values of the loss.

    Parameters
    ----------
    mu : float, default=0.1
        How far from the weights the loss is looked at.
    n_directions : int or None, default=None
        Directions in each round, over which estimates are averaged; the paper's is 1, None is 30 or the number of weights if
        that is less.
    n_outer, n_inner
        As of `MarginSolver`.
    """

    name = "zovr"
    reduced: ClassVar[bool] = True
    """Whether steps take the difference of the row's estimates at two weights, or else the row's alone."""
    _parameter_constraints: ClassVar[Constraints] = {
        **MarginSolver._parameter_constraints,
        "mu": above_0(),
        "n_directions": count(optional=True),
    }

    def __init__(
        self, *, mu: float = MU, n_directions: int | None = None, n_outer: int = 100, n_inner: int | None = None
    ):
        super().__init__(n_outer=n_outer, n_inner=n_inner)
        self.mu = mu
        self.n_directions = n_directions

    def rounds(self, blocks: Blocks, lam1: float, lam2: float, *, seed: int, gram: bool = False) -> Iterator[Round]:
        """Yield the start, which is 0, then the weights after each round, with their exact objective and its lower bound.

        A round takes half a pass for each direction, and half a pass for the bound.

        Parameters
        ----------
        blocks : Blocks
            They must hold both classes.
        lam1, lam2 : float
            Weights of the margin mean, at least 0, and of the loss, above 0.
        gram : bool
            Whether the rows are those of a Gram matrix, see `aucdist.solvers.margin_mean.problem`.
        """
        problem = MarginMeanProblem(blocks, lam1, lam2, gram=gram)
        blocks, lams, size = problem.blocks, (problem.lam1, problem.lam2), len(problem.w)
        shape = (min(N_DIRECTIONS, size) if self.n_directions is None else self.n_directions, size)
        yield problem.round(blocks.reduce(score_and_evaluate, problem.w, *problem.evaluation()), 1.0)
        for number in range(1, self.n_outer + 1):
            # The seed after those of the blocks.
            common = block_seed(seed, number, blocks.n_blocks)
            directions = random_directions(shape, common)
            seen = blocks.reduce(project_on_directions, shape, common, self.mu, self.reduced)
            products = seen["gram"] if problem.gram else directions @ directions.T
            at_start = seen["at_start"] if problem.gram else directions @ problem.w
            slopes = at_start
            if self.reduced:
                slopes = slopes + problem.lam2 * seen["slopes"] - problem.lam1 * seen["pull"]
            plane = (products, at_start, slopes)
            move = blocks.reduce(inner_steps, lams, self.mu, plane, self.reduced, self.n_inner, (seed, number))["move"]
            problem.move(move, directions)
            yield problem.round(
                blocks.reduce(move_and_evaluate, move, *problem.evaluation()), 1.0 + number * (shape[0] + 1) / 2
            )


class ZOSGD(ZOVR):
    """Plain steps by values of the loss, each by the estimate of a single row. The parameters are those of `ZOVR`.

    The directions are drawn once per round, so that a step need not read rows.
    """

    name = "zo-sgd"
    reduced = False
