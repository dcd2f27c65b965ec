"""Zeroth-order variance-reduced descent on the margin-mean objective, U-ZOVR without its sampling; and zeroth-order SGD.

After Lu, Zhang & Cai, "Zeroth order optimization algorithm based on undersampling" (Journal of Nanjing University of
Aeronautics & Astronautics 51(5), 2019), algorithms 3 and 4: each outer round draws directions u uniform on the unit sphere and
estimates the gradient of all rows by the function's values at w +- mu u; each inner step takes a row at random, the
difference of its estimates at w_k and at the round's w along the same directions, adds the estimate of all rows, and has
length 1 / (k + 1), k = 1, 2, ... (the print's loop over k = 1, ..., K - 1 has n_inner = K - 1 steps). The print has
no factor n_features in the estimate, and neither have we. Symbols: T is `n_outer`, w_t the round's weights.

The print draws a set of directions and picks one in each outer round; it may mean one for each row. Here all rows share it: with
one for each row the objective rose from round to round in trials with a kernel. With `n_directions` above 1 an estimate is
the mean over several directions. A row's difference along a direction costs one inner product, whatever the number of steps
(`aucdist.kernels.zeroth_order`), and the weights' square needs none.

The rivals of the paper are trained by `zo_sgd`: the same steps without reduction, their length falling on from round to round.

One block is the algorithm. With several, directions come from the seed alone, estimates of all rows are one reduction,
and each block takes steps over its own rows; the outcomes are averaged, each block counting by its rows' weight.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary, block_seed, without_rows
from aucdist.kernels.zeroth_order import slopes_along, steps_along, unit_vectors
from aucdist.objectives.kernel_block import KernelBlock
from aucdist.objectives.margin_mean import LOSSES
from aucdist.solvers.base import Round
from aucdist.solvers.margin_mean.problem import Memory, Problem, place, tell

MU = 0.1
"""The paper's."""

N_DIRECTIONS = 30
"""Unless the weights have fewer entries: more would only span what is spanned already."""


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def look(
    block: Block, memory: Memory, loss: int, shape: tuple[int, int], seed: int, mu: float, reduced: bool
) -> tuple[Memory, Summary]:
    """Take the rows' products with the round's directions; with reduction the slopes along each, of rows and in the mean."""
    ways = directions(shape, seed)
    found = block.times(ways.T) if isinstance(block, KernelBlock) else block.X @ ways.T
    moves = np.ascontiguousarray(found, dtype=np.float64)
    slopes = np.empty(moves.shape if reduced else (0, 0))
    told: Summary = {}
    if reduced:
        slopes_along(loss, moves, memory.scores, memory.y, mu, slopes)
        told = {"slopes": memory.share @ slopes, "pull": (memory.share * memory.pull) @ moves}
    if memory.first is not None:
        mine = ways[:, memory.own]
        told |= {"gram": mine @ moves, "at_start": mine @ memory.scores}
    return replace(memory, moves=moves, slopes=slopes), told


@without_rows
def descend(
    block: int, memory: Memory, loss: int, lams: tuple[float, float], mu: float, plane: tuple[np.ndarray, ...],
    reduced: bool, n_inner: int | None, seeds: tuple[int, int],
) -> tuple[Memory, Summary]:  # fmt: skip
    """Take the round's steps over the block's rows: how far they lead along each direction, by the rows' share of the weight."""
    c = np.zeros(len(plane[0]))
    n_steps = len(memory.share) if n_inner is None else n_inner
    if len(memory.share):
        seed, number = seeds
        # With reduction each round begins anew; without, nothing but shorter and shorter steps calms the noise.
        before = 0 if reduced else (number - 1) * n_steps
        steps_along(
            loss, memory.moves, memory.scores, memory.y, memory.weight, lams[0] * memory.pull, lams[1], mu, *plane,
            memory.slopes, before, n_steps, block_seed(seed, number, memory.index), np.empty_like(c), c,
        )  # fmt: skip
    return memory, {"way": memory.share.sum() * c}


def advance(block: Block, memory: Memory, way: np.ndarray, *asked: Any) -> tuple[Memory, Summary]:
    """Move along the directions, and `tell` about the weights there."""
    return tell(block, replace(memory, scores=memory.scores + memory.moves @ way, moves=None, slopes=None), *asked)


# ---- rounds: run by the client ----------------------------------------------------------------------------------------


def zovr(
    blocks: Blocks, lam1: float, lam2: float, *, seed: int, gram: bool = False, loss: str = "hinge", n_outer: int = 100,
    n_inner: int | None = None, mu: float = MU, n_directions: int | None = None,
) -> Iterator[Round]:  # fmt: skip
    """Descend by variance-reduced steps, with nothing but values of the loss.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be there. With `gram` rows of a Gram matrix, see `aucdist.solvers.margin_mean.problem`.
    lam1, lam2 : float
        Weights of the margin mean, at least 0, and of the loss, above 0.
    seed : int
    gram : bool
    loss : {"hinge", "zero-one"}
        With the second, which has no gradient, the bound stays 0.
    n_outer : int
        Rounds.
    n_inner : int, optional
        Steps of a block in each round; as many as it has rows by default.
    mu : float
        How far from the weights the function is looked at.
    n_directions : int, optional
        Directions of a round, the paper's 1; by default `N_DIRECTIONS`, or the number of weights if that is less.

    Yields
    ------
    Round
        The start, 0, then the weights after each round; their exact objective and its bound. A round counts as half a pass for
        each direction, and half for the bound.
    """
    return _rounds(
        Problem(blocks, lam1, lam2, loss=LOSSES[loss], gram=gram), seed, n_outer, n_inner, mu, n_directions, True
    )


def zo_sgd(
    blocks: Blocks, lam1: float, lam2: float, *, seed: int, gram: bool = False, loss: str = "hinge", n_outer: int = 100,
    n_inner: int | None = None, mu: float = MU, n_directions: int | None = None,
) -> Iterator[Round]:  # fmt: skip
    """Descend by plain steps, each along a row's own estimate; parameters and rounds as in `zovr`.

    Directions are drawn once a round here as well, so that a step need not read rows.
    """
    return _rounds(
        Problem(blocks, lam1, lam2, loss=LOSSES[loss], gram=gram), seed, n_outer, n_inner, mu, n_directions, False
    )


def _rounds(
    problem: Problem, seed: int, n_outer: int, n_inner: int | None, mu: float, n_directions: int | None, reduced: bool
) -> Iterator[Round]:
    blocks, lams, size = problem.blocks, (problem.lam1, problem.lam2), len(problem.w)
    shape = (min(N_DIRECTIONS, size) if n_directions is None else n_directions, size)
    yield problem.round(blocks.reduce(place, problem.w, *problem.asked()), 1.0)
    for number in range(1, n_outer + 1):
        # One seed beyond those of the blocks.
        common = block_seed(seed, number, blocks.n_blocks)
        ways = directions(shape, common)
        seen = blocks.reduce(look, problem.loss, shape, common, mu, reduced)
        gram = seen["gram"] if problem.gram else ways @ ways.T
        at_start = seen["at_start"] if problem.gram else ways @ problem.w
        slopes = at_start
        if reduced:
            slopes = slopes + problem.lam2 * seen["slopes"] - problem.lam1 * seen["pull"]
        plane = (gram, at_start, slopes)
        way = blocks.reduce(descend, problem.loss, lams, mu, plane, reduced, n_inner, (seed, number))["way"]
        problem.w = problem.w + way @ ways
        yield problem.round(blocks.reduce(advance, way, *problem.asked()), 1.0 + number * (shape[0] + 1) / 2)


def directions(shape: tuple[int, int], seed: int) -> np.ndarray:
    """Return the directions of a round, unit vectors as rows, float64 of shape (n_directions, size)."""
    ways = np.empty(shape)
    unit_vectors(seed, ways)
    return ways
