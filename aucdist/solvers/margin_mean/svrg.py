"""First-order stochastic variance-reduced gradients on the margin-mean objective: the yardstick of the zeroth-order solvers.

After Johnson & Zhang, "Accelerating stochastic gradient descent using predictive variance reduction" (NIPS 2013), but for
the steps: the loss is not smooth, so a constant step would not come to rest. They have length 1 / (k + 1), and k goes
on from round to round. With a kernel a step goes along the gradient in feature space, so that it changes the coefficient
of its row and shrinks all others.

With several blocks each takes steps over its own rows with the gradient of all; the outcomes are averaged, each block counting
by its rows' weight.
"""

from collections.abc import Iterator

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary, block_seed
from aucdist.kernels.margin_svrg import draw, svrg_steps
from aucdist.kernels.rows import DenseRows, Rows
from aucdist.objectives.kernel_block import KernelBlock
from aucdist.solvers.base import Round
from aucdist.solvers.margin_mean.problem import Memory, Problem, place, products


def epoch(
    block: Block, memory: Memory, slope: np.ndarray, lam2: float, n_inner: int | None, seeds: tuple[int, int]
) -> tuple[Memory, Summary]:
    """Take the round's steps over the block's rows, from the weights where the gradient is `slope`: how far they lead."""
    z = np.zeros(len(slope))
    n_steps = len(memory.share) if n_inner is None else n_inner
    seed, number = seeds
    before = (number - 1) * n_steps
    if len(memory.share):
        drawn = np.empty(n_steps, dtype=np.int64)
        draw(block_seed(seed, number, block.index), len(memory.share), drawn)
        own = -1 if memory.first is None else memory.first
        along, weight = products(block, slope), memory.weight
        for part, rows, places in _with_rows(block, drawn):
            svrg_steps(
                rows, places, drawn[part], own, memory.scores, along, memory.y, weight, lam2, before, part.start, z
            )
    return memory, {"way": memory.share.sum() / (before + n_steps + 1) * (z - n_steps * slope)}


def _with_rows(block: Block, drawn: np.ndarray) -> Iterator[tuple[slice, Rows, np.ndarray]]:
    """Yield parts of the steps, the rows to read for them, and where the row of each step is among these."""
    if isinstance(block, KernelBlock):
        for part, values in block.chunks(drawn):
            yield part, DenseRows(values), np.arange(len(values))
    else:
        yield slice(0, len(drawn)), block.rows, drawn


def svrg(
    blocks: Blocks,
    lam1: float,
    lam2: float,
    *,
    seed: int,
    gram: bool = False,
    n_outer: int = 100,
    n_inner: int | None = None,
) -> Iterator[Round]:
    """Descend along gradients of the hinge.

    Parameters
    ----------
    blocks, lam1, lam2, seed, gram, n_outer, n_inner
        As in `aucdist.solvers.margin_mean.zovr.zovr`.

    Yields
    ------
    Round
        The start, 0, then the weights after each round; their exact objective and its bound. A round counts as one pass and
        a half, and half a pass for as many steps as there are rows.
    """
    problem = Problem(blocks, lam1, lam2, gram=gram)
    blocks, n = problem.blocks, blocks.n_samples
    steps = n if n_inner is None else n_inner * blocks.n_blocks
    yield problem.round(blocks.reduce(place, problem.w, *problem.asked()), 1.0)
    for number in range(1, n_outer + 1):
        slope = problem.w - lam1 * problem.centre - lam2 * problem.cut
        problem.w = problem.w + blocks.reduce(epoch, slope, lam2, n_inner, (seed, number))["way"]
        yield problem.round(blocks.reduce(place, problem.w, *problem.asked()), 1.0 + number * (1.5 + 0.5 * steps / n))
