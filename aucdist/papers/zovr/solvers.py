"""Zeroth-order variance-reduced descent on the margin-mean objective (U-ZOVR without its sampling), and what it is compared with.

After Lu, Zhang & Cai, "Zeroth order optimization algorithm based on undersampling" (Journal of Nanjing University of
Aeronautics & Astronautics 51(5), 2019), algorithms 3 and 4. Each outer round draws directions u uniformly on the unit sphere,
and estimates the gradient of the objective by its values at w +- mu u. Each inner step draws a row, takes the difference of the
row's estimates at w_k and at the round's w along the same directions, and adds the estimate over all rows. Its length is 1 / (k
+ 1), k = 1, 2, ... (the paper's loop over k = 1, ..., K - 1 has n_inner = K - 1 steps). As in the paper, the estimate has no
factor n_features. The paper's T is `n_outer`, and its w_t are the weights after a round.

The paper draws a set of directions and picks one in each outer round, perhaps another one for each row. Here all rows share the
direction: with one for each row, the objective rose from round to round in trials with a kernel. With `n_directions` above 1 an
estimate is the mean over several directions. A row's difference along a direction costs one inner product, whatever the number of
steps (`aucdist.papers.zovr.kernels`); the penalty needs none.

The paper trains the methods it compares with by what is `ZOSGD` here: the same steps without variance reduction, whose length
keeps falling from round to round. `SVRG`, first-order, is to compare the zeroth-order solvers with: it is after Johnson &
Zhang, "Accelerating stochastic gradient descent using predictive variance reduction" (NIPS 2013), except for the step length.
The loss is not smooth, so constant steps would not converge. The steps have length 1 / (k + 1), where k continues from round to
round. With a kernel, a step goes along the gradient in feature space: it changes the coefficient of its row and shrinks all
others.

With one block these are the published algorithms. With several, the directions depend on the seed only, the estimate over all
rows is one reduction, and each block takes steps over its own rows. The results are averaged in proportion to the blocks'
weights.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Summary, block_seed, without_rows
from aucdist.kernels.rows import DenseRows, Rows
from aucdist.objectives.gaussian import KernelBlock
from aucdist.papers.zovr.kernels import (
    MarginRows,
    Plane,
    RowsInPlane,
    draw_integers,
    slopes_along,
    steps_along,
    svrg_steps,
    unit_vectors,
)
from aucdist.papers.zovr.problem import (
    MarginMeanProblem,
    MarginMemory,
    MarginSolver,
    evaluate_margins,
    products,
    score_and_evaluate,
)
from aucdist.parameters import Constraints, above_0, count

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
    products = block.times(directions.T) if isinstance(block, KernelBlock) else block.X @ directions.T
    moves = np.ascontiguousarray(products, dtype=np.float64)
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
    block: int, memory: MarginMemory, plane: Plane, n_inner: int | None, seeds: tuple[int, int]
) -> tuple[MarginMemory, Summary]:
    """Take the steps of a round over the block's rows, and return the move along each direction times the block's weight."""
    c = np.zeros(len(plane.gram))
    n_steps = len(memory.share) if n_inner is None else n_inner
    if len(memory.share):
        seed, number = seeds
        # With variance reduction the step lengths start anew in each round. Without, only ever shorter steps reduce the noise.
        assert memory.slopes is not None
        before = 0 if len(memory.slopes) else (number - 1) * n_steps
        rows = RowsInPlane(memory.moves, memory.scores, memory.y, memory.weight, memory.pull, memory.slopes)
        steps_along(rows, plane, before, n_steps, block_seed(seed, number, memory.index), c)
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


@dataclass(kw_only=True, eq=False, repr=False)
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

    mu: float = MU
    n_directions: int | None = None

    def move(self, problem: MarginMeanProblem, seeds: tuple[int, int]) -> tuple[Summary, float]:
        """Move the weights by the steps of a round, which takes half a pass for each direction, and half a pass for the bound."""
        blocks, size = problem.blocks, len(problem.w)
        shape = (min(N_DIRECTIONS, size) if self.n_directions is None else self.n_directions, size)
        # The seed after those of the blocks.
        common = block_seed(*seeds, blocks.n_blocks)
        directions = random_directions(shape, common)
        seen = blocks.reduce(project_on_directions, shape, common, self.mu, self.reduced)
        products = seen["gram"] if problem.gram else directions @ directions.T
        at_start = seen["at_start"] if problem.gram else directions @ problem.w
        slopes = at_start
        if self.reduced:
            slopes = slopes + problem.lam2 * seen["slopes"] - problem.lam1 * seen["pull"]
        plane = Plane(products, at_start, slopes, problem.lam1, problem.lam2, self.mu)
        step = blocks.reduce(inner_steps, plane, self.n_inner, seeds)["move"]
        problem.move(step, directions)
        return blocks.reduce(move_and_evaluate, step, *problem.evaluation()), (shape[0] + 1) / 2


class ZOSGD(ZOVR):
    """Plain steps by values of the loss, each by the estimate of a single row. The parameters are those of `ZOVR`.

    The directions are drawn once per round, so that a step need not read rows.
    """

    name = "zo-sgd"
    reduced = False


def svrg_round(
    block: Block, memory: MarginMemory, slope: np.ndarray, lam2: float, n_inner: int | None, seeds: tuple[int, int]
) -> tuple[MarginMemory, Summary]:
    """Take the steps of a round over the block's rows, from the weights with gradient `slope`, and return the block's move."""
    z = np.zeros(len(slope))
    n_steps = len(memory.share) if n_inner is None else n_inner
    seed, number = seeds
    before = (number - 1) * n_steps
    if len(memory.share):
        drawn = np.empty(n_steps, dtype=np.int64)
        draw_integers(block_seed(seed, number, block.index), len(memory.share), drawn)
        first = -1 if memory.first is None else memory.first
        margins = MarginRows(memory.scores, products(block, slope), memory.y, memory.weight, first)
        for part, rows, places in _with_rows(block, drawn):
            svrg_steps(rows, places, drawn[part], margins, (lam2, before, part.start), z)
    return memory, {"move": memory.share.sum() / (before + n_steps + 1) * (z - n_steps * slope)}


def _with_rows(block: Block, drawn: np.ndarray) -> Iterator[tuple[slice, Rows, np.ndarray]]:
    """Yield slices of the steps, the rows for each slice, and the position of each step's row among these rows."""
    if isinstance(block, KernelBlock):
        for part, values in block.chunks(drawn):
            yield part, DenseRows(values), np.arange(len(values))
    else:
        yield slice(0, len(drawn)), block.rows, drawn


class SVRG(MarginSolver):
    """Variance-reduced steps along gradients; the only one that usually reaches `tol`. The parameters are those of
    `MarginSolver`."""

    name = "svrg"

    def move(self, problem: MarginMeanProblem, seeds: tuple[int, int]) -> tuple[Summary, float]:
        """Move the weights by the steps of a round, which takes one and a half passes, and half a pass for every n_samples
        steps."""
        blocks, n = problem.blocks, problem.blocks.n_samples
        slope = problem.w - problem.lam1 * problem.centre - problem.lam2 * problem.cut
        problem.w = problem.w + blocks.reduce(svrg_round, slope, problem.lam2, self.n_inner, seeds)["move"]
        steps = n if self.n_inner is None else self.n_inner * blocks.n_blocks
        return blocks.reduce(score_and_evaluate, problem.w, *problem.evaluation()), 1.5 + 0.5 * steps / n
