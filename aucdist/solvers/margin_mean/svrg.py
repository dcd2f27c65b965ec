"""First-order stochastic variance-reduced gradients on the margin-mean objective, to compare the zeroth-order solvers with.

After Johnson & Zhang, "Accelerating stochastic gradient descent using predictive variance reduction" (NIPS 2013), except for
the step length. The loss is not smooth, so constant steps would not converge. The steps have length 1 / (k + 1), where k
continues from round to round. With a kernel, a step goes along the gradient in feature space: it changes the coefficient of its
row and shrinks all others.

With several blocks, each takes steps over its own rows with the gradient of all rows. The resulting weights are averaged in
proportion to the blocks' weights.
"""

from collections.abc import Iterator

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary, block_seed
from aucdist.kernels.margin_svrg import draw_integers, svrg_steps
from aucdist.kernels.rows import DenseRows, Rows
from aucdist.objectives.kernel_block import KernelBlock
from aucdist.solvers.base import Round
from aucdist.solvers.margin_mean.problem import (
    MarginMeanProblem,
    MarginMemory,
    MarginSolver,
    products,
    score_and_evaluate,
)


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
        own = -1 if memory.first is None else memory.first
        slope_products, weight = products(block, slope), memory.weight
        for part, rows, places in _with_rows(block, drawn):
            svrg_steps(
                rows, places, drawn[part], own, memory.scores, slope_products, memory.y, weight, lam2, before, part.start, z
            )  # fmt: skip
    return memory, {"move": memory.share.sum() / (before + n_steps + 1) * (z - n_steps * slope)}


def _with_rows(block: Block, drawn: np.ndarray) -> Iterator[tuple[slice, Rows, np.ndarray]]:
    """Yield slices of the steps, the rows for each slice, and the position of each step's row among these rows."""
    if isinstance(block, KernelBlock):
        for part, values in block.chunks(drawn):
            yield part, DenseRows(values), np.arange(len(values))
    else:
        yield slice(0, len(drawn)), block.rows, drawn


class SVRG(MarginSolver):
    """Variance-reduced steps along gradients; the only one that usually reaches `tol`."""

    name = "svrg"

    def rounds(self, blocks: Blocks, lam1: float, lam2: float, *, seed: int, gram: bool = False) -> Iterator[Round]:
        """Yield the start, which is 0, then the weights after each round, with their exact objective and its lower bound.

        A round takes one and a half passes, and half a pass for every n_samples steps. The parameters are those of `ZOVR`.
        """
        problem = MarginMeanProblem(blocks, lam1, lam2, gram=gram)
        blocks, n = problem.blocks, blocks.n_samples
        steps = n if self.n_inner is None else self.n_inner * blocks.n_blocks
        yield problem.round(blocks.reduce(score_and_evaluate, problem.w, *problem.evaluation()), 1.0)
        for number in range(1, self.n_outer + 1):
            slope = problem.w - lam1 * problem.centre - lam2 * problem.cut
            problem.w = problem.w + blocks.reduce(svrg_round, slope, lam2, self.n_inner, (seed, number))["move"]
            summary = blocks.reduce(score_and_evaluate, problem.w, *problem.evaluation())
            yield problem.round(summary, 1.0 + number * (1.5 + 0.5 * steps / n))
