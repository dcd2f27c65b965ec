"""Zeroth-order variance-reduced descent on the margin-mean objective (U-ZOVR without its sampling), and its competitors.

The objective, over blocks of plain rows or of rows of a Gram matrix, is that of Lu, Zhang & Cai, equations (5) and (11)::

    F(w) = |w|^2 / 2 - lam1 mean of D_i y_i w.x_i + lam2 mean of loss(y_i w.x_i),    loss(m) = max(0, 1 - m)

with D_i = n_neg / n_pos for positives and n_pos / n_neg for negatives. With c the mean of D_i y_i x_i this is

    F(w) = |w - lam1 c|^2 / 2 + lam2 mean of loss(y_i w.x_i) - lam1^2 |c|^2 / 2,

which is a support vector machine that shrinks its weights towards lam1 c instead of 0. The last term is the same for all w. It
is left out, so that the objective is never negative. The objective is strongly convex, and for any a_i in [0, 1]

    lam2 mean of a_i (1 - lam1 y_i c.x_i) - lam2^2 |mean of a_i y_i x_i|^2 / 2

is a lower bound on it. With `gram`, a row holds its inner products with all rows, in the order of the blocks, the weights are
the rows' coefficients alpha, and |w|^2 is alpha' G alpha. A `KernelBlock` computes such rows when they are needed.

The solvers are after Lu, Zhang & Cai, "Zeroth order optimization algorithm based on undersampling" (Journal of Nanjing
University of Aeronautics & Astronautics 51(5), 2019), algorithms 3 and 4. Each outer round draws directions u uniformly on the
unit sphere, and estimates the gradient of the objective by its values at w +- mu u. Each inner step draws a row, takes the
difference of the row's estimates at w_k and at the round's w along the same directions, and adds the estimate over all rows.
Its length is 1 / (k + 1), k = 1, 2, ... (the paper's loop over k = 1, ..., K - 1 has n_inner = K - 1 steps). As in the paper,
the estimate has no factor n_features. The paper's T is `n_outer`, and its w_t are the weights after a round.

The paper draws a set of directions and picks one in each outer round, perhaps another one for each row. Here all rows share the
direction. With one direction for each row, the objective rose from round to round in trials with a kernel. With `n_directions`
above 1 an estimate is the mean over several directions. A row's difference along a direction costs one inner product, whatever
the number of steps (`aucdist.papers.zovr.kernels`); the penalty needs none.

The paper trains the methods it compares with by what is `ZOSGD` here: the same steps without variance reduction, whose length
keeps falling from round to round. `SVRG` is a first-order solver to compare the zeroth-order ones with. It is after Johnson &
Zhang, "Accelerating stochastic gradient descent using predictive variance reduction" (NIPS 2013), except for the step length.
The loss is not smooth, so constant steps would not converge. The steps have length 1 / (k + 1), where k continues from round to
round. With a kernel, a step goes along the gradient in feature space: it changes the coefficient of its row and shrinks all
others.

With one block these are the published algorithms. With several, the directions depend on the seed only, the estimate over all
rows is one reduction, and each block takes steps over its own rows. The results are averaged in proportion to the blocks'
weights.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy import ndarray

from aucdist.data.block import Block
from aucdist.data.gaussian_kernel import KernelBlock
from aucdist.engine.blocks import Blocks, Summary, block_seed, without_rows
from aucdist.kernels.rows import DenseRows
from aucdist.pairs.bundle import Bundle
from aucdist.papers.zovr.kernels import (
    MarginRows,
    Plane,
    RowsInPlane,
    draw_integers,
    fill_directions,
    slope_at,
    steps_along,
    svrg_steps,
)
from aucdist.parameters import above_0, count, frozen, keyword_parameters
from aucdist.solvers.base import Round, Solver
from aucdist.solvers.rounding import EPS, EXTRA_OPERATIONS, Rounding, higher

NO_MATRIX = np.empty((0, 0))
"""An empty array in place of products and slopes, before the directions of a round are drawn."""

N_DIRECTIONS = 30
"""The default number of directions. There are at most as many directions as weights."""


@frozen
class MarginMemory:
    """The scores of a block's rows between rounds, and the parts of the objective that do not change.

    Parameters
    ----------
    y : ndarray of shape (n_rows,), int8
        Labels, -1 or +1.
    share : ndarray of shape (n_rows,), float64
        The weight of the row in the mean over all rows.
    pull : ndarray of shape (n_rows,), float64
        y times the factor D of the class.
    centre : ndarray of shape (n_rows,), float64
        With `gram`: inner products of the rows with c.
    scores : ndarray of shape (n_rows,), float64
        Scores at the current weights.
    first : int
        With `gram`: the position of the block's first row among all rows; else -1.
    moves : ndarray of shape (n_rows, n_directions), float64
        Inner products of the rows with the directions of the round.
    slopes : ndarray of shape (n_rows, n_directions) or (0, 0), float64
        Slopes of the rows' losses along the directions, at the current weights; only with variance reduction.
    """

    y: ndarray
    share: ndarray
    pull: ndarray
    centre: ndarray
    scores: ndarray
    first: int
    moves: ndarray
    slopes: ndarray

    @property
    def positions(self) -> slice:
        """The positions of the block's rows among all rows."""
        return slice(self.first, self.first + len(self.y))

    @property
    def weight(self) -> ndarray:
        """The rows' weights, scaled so that their mean over the block is 1."""
        total = self.share.sum()
        return self.share * (len(self.share) / total) if total > 0 else self.share


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def set_up_margins(
    block: Block, memory: None, weights: tuple[float, float], offsets: ndarray | None
) -> tuple[MarginMemory, Summary]:
    """Set up the rows' shares, and return the block's part of c. `weights` holds the total weights of both classes."""
    share, (weight_neg, weight_pos) = block.weights() / sum(weights), weights
    pull = block.y * np.where(block.y > 0, weight_neg / weight_pos, weight_pos / weight_neg)
    first = -1 if offsets is None else int(offsets[block.index])
    zeros = np.zeros(block.n_samples)
    made = MarginMemory(block.y, share, pull, zeros, zeros, first, NO_MATRIX, NO_MATRIX)
    return made, combined(block, made, share * pull)


def keep_centre_products(block: Block, memory: MarginMemory, centre: ndarray) -> tuple[MarginMemory, Summary]:
    """Keep the inner products of the rows with c."""
    return replace(memory, centre=block.scores(centre)), {}


def send_products(block: Block, vector: ndarray) -> Summary:
    """Return the inner products of the rows with a vector."""
    return [block.scores(vector)]


def evaluate_margins(
    block: Block, memory: MarginMemory, vector: ndarray, lam1: float, offset: ndarray | None
) -> tuple[MarginMemory, Summary]:
    """Move the scores, and return the mean loss and the dual point there.

    Parameters
    ----------
    block : Block
        The rows.
    memory : MarginMemory
        The memory of the block.
    vector : ndarray
        The step along the directions whose products the block keeps, or the weights if it keeps none.
    lam1 : float
        The weight of the margin mean.
    offset : ndarray or None
        ``alpha - lam1 c`` with `gram`, otherwise None.
    """
    scores = memory.scores + memory.moves @ vector if memory.moves.shape[1] else block.scores(vector)
    memory = replace(memory, scores=scores, moves=NO_MATRIX, slopes=NO_MATRIX)
    margins = memory.y * memory.scores
    losses = np.maximum(0.0, 1.0 - margins)
    below = memory.share * (margins < 1.0)
    summary = {
        "loss": float(memory.share @ losses),
        "active": float(below.sum()),
        "cut": combined(block, memory, below * memory.y),
    }
    if offset is not None:
        summary["square"] = float(offset[memory.positions] @ (memory.scores - lam1 * memory.centre))
    return memory, summary


def combined(block: Block, memory: MarginMemory, coefs: ndarray) -> Any:
    """Return the sum of the rows times their coefficients.

    With `gram`, return a list of the coefficients, which merges by appending.
    """
    return block.sums(coefs) if memory.first < 0 else [coefs]


# ---- rounds: run by the client ----------------------------------------------------------------------------------------


class MarginMeanProblem:
    """The margin-mean objective, and the current weights of a descent, which are 0 at first.

    Parameters
    ----------
    blocks : Blocks
        The rows, of both classes.
    lam1, lam2 : float
        The weights of the margin mean and of the loss.
    gram : bool
        Whether the rows are those of a Gram matrix.

    Attributes
    ----------
    blocks : Blocks
        The blocks, with separate memories.
    centre : ndarray of shape (size,), float64
        The vector c, where size is n_features, or n_samples with `gram`.
    w : ndarray of shape (size,), float64
        The current weights, which the solver updates.
    cut : ndarray of shape (size,), float64
        The vector of the last dual point: the mean of y x over all rows, where rows with a margin of 1 or more count as 0.
    """

    def __init__(self, blocks: Blocks, lam1: float, lam2: float, *, gram: bool = False):
        # The values of a Gaussian kernel are at most 1.
        self.rounding = Rounding.of_ones(blocks) if gram else Rounding.of(blocks)
        self.blocks, self.lam1, self.lam2, self.gram = blocks.without_memory(), lam1, lam2, gram
        sizes = [info.n_samples for info in blocks.infos]
        offsets = np.cumsum([0, *sizes]) if gram else None
        self.centre = self._joined(self.blocks.reduce(set_up_margins, (blocks.weight_neg, blocks.weight_pos), offsets))
        if gram:
            self.blocks.reduce(keep_centre_products, self.centre)
        self.w = np.zeros(len(self.centre))
        self._bound, self._points, self._drift = (0.0, 0.0), Bundle(len(self.centre)), 0.0

    def evaluate(self, vector: ndarray) -> Summary:
        """Return what `evaluate_margins` returns at the current weights. `vector` is the argument of this function."""
        offset = self.w - self.lam1 * self.centre if self.gram else None
        return self.blocks.reduce(evaluate_margins, vector, self.lam1, offset)

    def move(self, step: ndarray, directions: ndarray) -> None:
        """Move the weights along directions, as the blocks move their scores.

        Rounding errors of the moved scores stay, even if the weights become smaller again.
        """
        rounding, before = self.rounding, self.rounding.largest_score(self.w)
        way = float(np.abs(step) @ (np.abs(directions) @ rounding.largest))
        self.w = self.w + step @ directions
        sums_error = rounding.over_columns + EPS * (len(step) + EXTRA_OPERATIONS)
        self._drift += sums_error * way + EPS * (before + rounding.largest_score(self.w))

    def round(self, summary: Summary, passes: float) -> Round:
        """Return the round at the current weights, from the summary of `evaluate_margins` over all blocks."""
        rounding, lam1, lam2, active = self.rounding, self.lam1, self.lam2, summary["active"]
        offset = self.w - lam1 * self.centre
        square = summary["square"] if self.gram else float(offset @ offset)
        primal = float(0.5 * square + lam2 * summary["loss"])
        image = self.cut = self._joined(summary["cut"])
        # This bounds the rounding error of the value of the best combination.
        if self.gram:
            image = self._joined(self.blocks.sum(send_products, self.cut))
            across = 2.0 * (rounding.over_rows + rounding.over_columns) * float(np.abs(self.centre).sum())
        else:
            slope_error = rounding.combination(1.0)
            across = float(2.0 * np.abs(self.centre) @ slope_error + slope_error @ slope_error)
            across += float(np.abs(self.cut) @ (2.0 * slope_error))
        bound_error = lam2 * (rounding.over_rows * active + lam1 * across) + lam2**2 * self._square_error(self.cut, 0.5)
        self._points.add(lam2 * (active - lam1 * float(self.centre @ image)), lam2 * self.cut, lam2 * image)
        self._bound = higher(self._bound, (self._points.best_value(), bound_error))
        # This bounds the rounding error of the objective. Scores are sums of moves, and c is a weighted sum of rows.
        score = rounding.score(self.w) + EPS * EXTRA_OPERATIONS * rounding.largest_score(self.w) + self._drift
        loss_error = lam2 * (score + 2.0 * rounding.over_rows * float(summary["loss"]))
        # The minimum can be 0, for which no relative gap is defined.
        least = float(np.finfo(np.float64).tiny)
        return Round(
            self.w.copy(), max(primal, least), max(self._bound[0], least), math.ceil(passes),
            primal_error=loss_error + self._square_error(offset, lam1), dual_error=self._bound[1],
        )  # fmt: skip

    def _square_error(self, v: ndarray, total: float) -> float:
        """Return a bound on the error of |v|^2 / 2, if sums of rows in v have coefficients that add up to at most `total`."""
        rounding = self.rounding
        if self.gram:
            size = float(np.abs(v).sum())
            return 2.0 * (rounding.over_rows + rounding.over_columns) * size * size
        # The coefficients of c add up to at most 1 in each class.
        return rounding.half_square(v, 2.0 * rounding.combination(2.0 * total))

    def _joined(self, parts: Any) -> ndarray:
        return np.concatenate(parts) if self.gram else parts


@keyword_parameters(n_outer=count(), n_inner=count(optional=True))
class MarginSolver(Solver):
    """A solver of the margin mean, which takes a fixed number of rounds.

    Parameters
    ----------
    n_outer : int, default=100
        The number of rounds, the paper's T.
    n_inner : int or None, default=None
        The number of steps in each round. None means as many as there are rows, in each block as many as it has.
    """

    objective = "margin mean"
    is_random = True

    n_outer: int = 100
    n_inner: int | None = None

    @abstractmethod
    def move(self, problem: MarginMeanProblem, seeds: tuple[int, int]) -> tuple[Summary, float]:
        """Move the weights of the problem by the steps of a round. Return what `evaluate_margins` returns there, and the passes.

        Parameters
        ----------
        problem : MarginMeanProblem
            The objective and the current weights.
        seeds : tuple (int, int)
            The seed of the fit, and the number of the round.

        Returns
        -------
        summary : Summary
        passes : float
        """

    def rounds(self, blocks: Blocks, lam1: float, lam2: float, *, seed: int, gram: bool = False) -> Iterator[Round]:
        """Yield the start, which is 0, and then the weights after each round, with their exact objective and its lower bound.

        Parameters
        ----------
        blocks : Blocks
            The rows, of both classes.
        lam1, lam2 : float
            The weights of the margin mean, at least 0, and of the loss, above 0.
        seed : int
            The seed of everything that is drawn at random.
        gram : bool
            Whether the rows are those of a Gram matrix.

        Yields
        ------
        Round
        """
        problem = MarginMeanProblem(blocks, lam1, lam2, gram=gram)
        yield problem.round(problem.evaluate(problem.w), 1.0)
        for number in range(1, self.n_outer + 1):
            summary, passes = self.move(problem, (seed, number))
            yield problem.round(summary, 1.0 + number * passes)


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def project_on_directions(
    block: Block, memory: MarginMemory, shape: tuple[int, int], seed: int, mu: float, reduced: bool
) -> tuple[MarginMemory, Summary]:
    """Keep the inner products of the rows with the directions of the round.

    With variance reduction, the slopes of each row's loss along the directions are also kept, and their means are returned.
    """
    directions = random_directions(shape, seed)
    products = block.scores(directions.T) if isinstance(block, KernelBlock) else block.X @ directions.T
    moves = np.ascontiguousarray(products, dtype=np.float64)
    slopes = NO_MATRIX
    summary: Summary = {}
    if reduced:
        y = memory.y[:, np.newaxis]
        slopes = slope_at(y * memory.scores[:, np.newaxis], y * moves, mu)
        summary = {"slopes": memory.share @ slopes, "pull": (memory.share * memory.pull) @ moves}
    if memory.first >= 0:
        coordinates = directions[:, memory.positions]
        summary |= {"gram": coordinates @ moves, "at_start": coordinates @ memory.scores}
    return replace(memory, moves=moves, slopes=slopes), summary


@without_rows
def inner_steps(
    number: int, memory: MarginMemory, plane: Plane, n_inner: int | None, seeds: tuple[int, int]
) -> Summary:
    """Take the steps of a round over the block's rows, and return the move along each direction times the block's weight."""
    c = np.zeros(len(plane.gram))
    n_steps = len(memory.share) if n_inner is None else n_inner
    if len(memory.share):
        seed, outer = seeds
        # With variance reduction, the step lengths start again in each round. Without it, only ever shorter steps reduce the
        # noise.
        before = 0 if len(memory.slopes) else (outer - 1) * n_steps
        rows = RowsInPlane(memory.moves, memory.scores, memory.y, memory.weight, memory.pull, memory.slopes)
        steps_along(rows, plane, before, n_steps, block_seed(seed, outer, number), c)
    return memory.share.sum() * c


# ---- rounds: run by the client ----------------------------------------------------------------------------------------


def random_directions(shape: tuple[int, int], seed: int) -> ndarray:
    """Return the directions of a round: independent uniform points of the unit sphere, float64 of shape (n_directions, size)."""
    directions = np.empty(shape)
    fill_directions(seed, directions)
    return directions / np.linalg.norm(directions, axis=1, keepdims=True)


@keyword_parameters(mu=above_0(), n_directions=count(optional=True))
class ZOVR(MarginSolver):
    """The paper's variance-reduced steps by values of the loss (Lu, Zhang & Cai, 2019, algorithms 3 and 4).

    Parameters
    ----------
    mu : float, default=0.1
        The distance from the weights at which the loss is evaluated.
    n_directions : int or None, default=None
        The number of directions in each round, over which estimates are averaged. The paper's is 1. None means 30, or the
        number of weights if that is less.
    n_outer, n_inner
        As for `MarginSolver`.
    """

    name = "zovr"
    reduced = True
    """Whether steps take the difference of the row's estimates at two weights, or else the row's alone."""

    mu: float = 0.1  # as in the paper
    n_directions: int | None = None

    def move(self, problem: MarginMeanProblem, seeds: tuple[int, int]) -> tuple[Summary, float]:
        """Move the weights by the steps of a round, which takes half a pass for each direction, and half a pass for the bound.

        Parameters
        ----------
        problem, seeds
            As for `MarginSolver.move`.

        Returns
        -------
        summary : Summary
        passes : float
        """
        blocks, size = problem.blocks, len(problem.w)
        shape = (min(N_DIRECTIONS, size) if self.n_directions is None else self.n_directions, size)
        # This seed follows those of the blocks.
        common = block_seed(*seeds, blocks.n_blocks)
        directions = random_directions(shape, common)
        projected = blocks.reduce(project_on_directions, shape, common, self.mu, self.reduced)
        products = projected["gram"] if problem.gram else directions @ directions.T
        at_start = projected["at_start"] if problem.gram else directions @ problem.w
        slopes = at_start
        if self.reduced:
            slopes = slopes + problem.lam2 * projected["slopes"] - problem.lam1 * projected["pull"]
        plane = Plane(products, at_start, slopes, problem.lam1, problem.lam2, self.mu)
        step = blocks.reduce(inner_steps, plane, self.n_inner, seeds)
        problem.move(step, directions)
        return problem.evaluate(step), (shape[0] + 1) / 2


class ZOSGD(ZOVR):
    """Plain steps by values of the loss, each by the estimate of a single row.

    The directions are drawn once per round, so that a step need not read rows.

    Parameters
    ----------
    mu, n_directions, n_outer, n_inner
        As for `ZOVR`.
    """

    name = "zo-sgd"
    reduced = False


def svrg_round(
    block: Block, memory: MarginMemory, slope: ndarray, lam2: float, n_inner: int | None, seeds: tuple[int, int]
) -> Summary:
    """Take the steps of a round over the block's rows, from the weights with gradient `slope`, and return the block's move."""
    z = np.zeros(len(slope))
    n_steps = len(memory.share) if n_inner is None else n_inner
    seed, number = seeds
    before = (number - 1) * n_steps
    if len(memory.share):
        drawn = np.empty(n_steps, dtype=np.int64)
        draw_integers(block_seed(seed, number, block.index), len(memory.share), drawn)
        margins = MarginRows(memory.scores, block.scores(slope), memory.y, memory.weight, memory.first)
        if isinstance(block, KernelBlock):
            for part, values in block.chunks(drawn):
                places, steps = np.arange(len(values)), (lam2, before, part.start)
                svrg_steps(DenseRows(values), places, drawn[part], margins, steps, z)
        else:
            svrg_steps(block.rows, drawn, drawn, margins, (lam2, before, 0), z)
    return memory.share.sum() / (before + n_steps + 1) * (z - n_steps * slope)


class SVRG(MarginSolver):
    """Variance-reduced steps along gradients (Johnson & Zhang, NIPS 2013). This is the only solver that usually reaches `tol`.

    Parameters
    ----------
    n_outer, n_inner
        As for `MarginSolver`.
    """

    name = "svrg"

    def move(self, problem: MarginMeanProblem, seeds: tuple[int, int]) -> tuple[Summary, float]:
        """Move the weights by the steps of a round.

        A round takes one and a half passes, and half a pass for every n_samples steps.

        Parameters
        ----------
        problem, seeds
            As for `MarginSolver.move`.

        Returns
        -------
        summary : Summary
        passes : float
        """
        blocks, n = problem.blocks, problem.blocks.n_samples
        slope = problem.w - problem.lam1 * problem.centre - problem.lam2 * problem.cut
        problem.w = problem.w + blocks.reduce(svrg_round, slope, problem.lam2, self.n_inner, seeds)
        steps = n if self.n_inner is None else self.n_inner * blocks.n_blocks
        return problem.evaluate(problem.w), 1.5 + 0.5 * steps / n
