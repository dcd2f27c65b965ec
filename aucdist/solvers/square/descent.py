"""Descent on the pairwise square by exact search: what `exact` without moments and `svrg` have in common.

A round gets a direction from the gradient, and moves to the minimum of the objective in the space of that direction and the last
moves. With the gradient over a fixed positive definite matrix as direction, and one move remembered, this is the preconditioned
conjugate gradient method; with any other direction it never rises. Blocks keep what the scores are and how they moved, so
that a round costs one X z and one X'c, and value and gradient are those of the scores kept, exactly and over all pairs.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary
from aucdist.kernels.rows import accumulate, project
from aucdist.objectives.pairwise_square import (
    PairwiseSquare,
    class_moments,
    gradient,
    lower_bound,
    row_factors,
    value,
)
from aucdist.solvers.base import Round
from aucdist.solvers.rounding import EPS, Rounding

Direction = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Memory:
    """What a block keeps.

    Attributes
    ----------
    share : ndarray of shape (n_rows,), float64
        Of the row in its class.
    scores : ndarray of shape (n_rows,), float64
        At the weights.
    moves : ndarray of shape (n_directions, n_rows), float64
        How far the scores move along each direction, the new one first.
    extra : object
        The solver's own.
    """

    share: np.ndarray
    scores: np.ndarray
    moves: np.ndarray
    extra: Any = None


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def moments(block: Block, memory: Any, full: bool) -> tuple[Any, Summary]:
    """Take the moments of both classes."""
    return memory, {"neg": class_moments(block, -1, full=full), "pos": class_moments(block, 1, full=full)}


def begin(
    block: Block, memory: Memory | None, w: np.ndarray, weights: tuple[float, float], n_moves: int
) -> tuple[Memory, Summary]:
    """Score the rows at the start. `weights` is what the negatives and the positives weigh."""
    share = row_factors(block.y, block.weights(), *weights, 1)
    scores = np.empty(block.n_samples)
    project(block.rows, w, scores)
    return Memory(share, scores, np.zeros((1 + n_moves, block.n_samples))), {}


def advance(block: Block, memory: Memory, step: np.ndarray, means: tuple[float, float]) -> tuple[Memory, Summary]:
    """Move along the directions; the scores' variances there, and S w. `means` are the scores of the class means there."""
    move = step @ memory.moves
    memory = replace(memory, scores=memory.scores + move, moves=np.vstack([move, memory.moves[1:-1]]))
    return memory, _spread(block, memory, means)


def _spread(block: Block, memory: Memory, means: tuple[float, float]) -> Summary:
    centred = memory.scores - np.where(block.y > 0, means[1], means[0])
    coefs = memory.share * centred
    spread_w = np.zeros(block.n_features)
    accumulate(block.rows, np.arange(block.n_samples), coefs, spread_w)
    return {"variance": float(coefs @ centred), "spread_w": spread_w}


def spread(
    block: Block, memory: Any, w: np.ndarray, weights: tuple[float, float], means: tuple[float, float]
) -> tuple[Any, Summary]:
    """The scores' variances at w, and S w, for weights that were found otherwise."""
    return memory, _spread(block, begin(block, None, w, weights, 0)[0], means)


def look(block: Block, memory: Memory, z: np.ndarray, means: np.ndarray) -> tuple[Memory, Summary]:
    """Score a new direction; the covariances of all. `means` has a row for each, the class means' moves, negative first."""
    scores = np.empty(block.n_samples)
    project(block.rows, z, scores)
    moves = np.vstack([scores, memory.moves])
    centred = moves - np.where(block.y > 0, means[:, 1:], means[:, :1])
    return replace(memory, moves=moves), {"covariance": (centred * memory.share) @ centred.T}


# ---- rounds: run by the client ----------------------------------------------------------------------------------------


def moments_of(blocks: Blocks) -> PairwiseSquare:
    """Return the means and variances of the classes; one reduction."""
    found = blocks.reduce(moments, False)
    return PairwiseSquare(found["neg"], found["pos"])


def spread_at(blocks: Blocks, known: PairwiseSquare, w: np.ndarray) -> tuple[float, np.ndarray]:
    """Return w'S w, the scores' variance within both classes, and S w; one pass."""
    means = (float(known.neg.mean @ w), float(known.pos.mean @ w))
    found = blocks.reduce(spread, w, (known.neg.weight, known.pos.weight), means)
    return found["variance"], found["spread_w"]


def errors(
    rounding: Rounding, w: np.ndarray, lam: float, primal: float, slope: np.ndarray, known: PairwiseSquare, *,
    drift: float = 0.0, full: bool = False,
) -> tuple[float, float]:  # fmt: skip
    """Return bounds on the rounding errors of the objective and of the lower bound that its gradient gives.

    The class means are sums over rows, so the score of a mean is off by the rounding of such a sum. A score's distance from its
    class's mean follows, and so do the products of distances and values that the gradient is made of.

    Parameters
    ----------
    rounding : Rounding
    w : ndarray of shape (n_features,)
    lam, primal : float
    slope : ndarray of shape (n_features,)
        The gradient at w.
    known : PairwiseSquare
    drift : float
        How far scores that are sums of moves may be off besides.
    full : bool
        Whether the value comes from the scatter matrices: columns that nearly cancel in the scores do not cancel in these.
    """
    miss = abs(1.0 - float(w @ known.difference))
    deviation = np.sqrt(2.0 * max(primal, 0.0))  # what is left of the objective is the variance
    if full:
        deviation = max(deviation, float(np.sqrt(np.maximum(np.diag(known.spread), 0.0)) @ np.abs(w)))
    apart = rounding.score(w) + rounding.over_rows * rounding.reach(w) + drift
    sums = rounding.over_rows + rounding.over_columns
    of_value = 4.0 * miss * apart + 2.0 * (deviation + apart) * apart + 2.0 * sums * (primal + deviation**2)
    of_slope = (2.0 * (4.0 * apart + 4.0 * sums * deviation + 2.0 * sums * miss)) * rounding.largest
    of_slope = of_slope + 2.0 * EPS * lam * np.abs(w)
    of_value += rounding.penalty(w, 0.5 * lam * float(w @ w))
    return of_value, of_value + rounding.half_square(slope, of_slope) / lam


def measured(
    blocks: Blocks, known: PairwiseSquare, w: np.ndarray, lam: float, passes: int, rounding: Rounding
) -> Round:
    """Return the round of weights that were found otherwise: value and bound there, exactly over all pairs, in one pass.

    Weights that have diverged have a value that is not finite.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        variance, spread_w = spread_at(blocks, known, w)
        primal = value(w, known.difference, variance, lam)
        slope = gradient(w, known.difference, spread_w, lam)
        of_primal, of_dual = errors(rounding, w, lam, primal, slope, known)
        return Round(
            w, primal, lower_bound(primal, slope, lam), passes, primal_error=of_primal, dual_error=of_dual
        )  # fmt: skip


class Descent:
    """Where a descent stands: weights, value and gradient there; `blocks` holds the scores, in memories that are its own.

    Parameters
    ----------
    blocks : Blocks
    known : PairwiseSquare
        The classes' moments.
    lam : float
    w : ndarray of shape (n_features,), float64
        Where to begin.
    n_moves : int
        How many of the last moves are remembered: each is a number per row, and one per feature.
    """

    def __init__(self, blocks: Blocks, known: PairwiseSquare, lam: float, w: np.ndarray, n_moves: int = 1):
        self.rounding = Rounding.of(blocks)
        self.blocks, self.known, self.lam, self.w = blocks.fresh(), known, lam, w
        self.moves = np.zeros((n_moves, len(w)))
        self.blocks.reduce(begin, w, (known.neg.weight, known.pos.weight), n_moves)
        self._advance(np.zeros(1 + n_moves))

    def rounds(self, direction: Direction, passes: float, per_round: float) -> Iterator[Round]:
        """Descend until the weights no longer change.

        Parameters
        ----------
        direction : callable
            Takes the gradient and returns where to go, both of shape (n_features,).
        passes, per_round : float
            Passes until here, and what each round takes.
        """
        dual, of_dual = 0.0, 0.0
        for number in itertools.count(1):
            drift = number * EPS * self.rounding.reach(self.w)
            of_primal, error = errors(
                self.rounding, self.w, self.lam, self.primal, self.gradient, self.known, drift=drift
            )  # fmt: skip
            found = lower_bound(self.primal, self.gradient, self.lam)
            if found - error > dual - of_dual:
                dual, of_dual = found, error
            yield Round(
                self.w.copy(), self.primal, dual, math.ceil(passes), primal_error=of_primal, dual_error=of_dual
            )  # fmt: skip
            before = self.w
            self._descend(direction(self.gradient))
            passes += per_round
            if np.array_equal(before, self.w):
                return

    def _descend(self, z: np.ndarray) -> None:
        ways = np.vstack([z, self.moves])
        centres = np.stack([self.known.neg.mean, self.known.pos.mean])
        covariance = self.blocks.reduce(look, z, ways @ centres.T)["covariance"]
        across = ways @ self.known.difference
        curvature = 2.0 * (covariance + np.outer(across, across)) + self.lam * (ways @ ways.T)
        # All at a like size: the moves are 0 in the first rounds and tiny in the last ones.
        size = np.sqrt(np.diag(curvature))
        size[size == 0.0] = 1.0
        slopes = ways @ self.gradient
        step = -np.linalg.lstsq(curvature / np.outer(size, size), slopes / size, rcond=None)[0] / size
        self.moves = np.vstack([step @ ways, self.moves[:-1]])
        self.w = self.w + self.moves[0]
        self._advance(step)

    def _advance(self, step: np.ndarray) -> None:
        known, w = self.known, self.w
        there = self.blocks.reduce(advance, step, (float(known.neg.mean @ w), float(known.pos.mean @ w)))
        self.primal = value(w, known.difference, there["variance"], self.lam)
        self.gradient = gradient(w, known.difference, there["spread_w"], self.lam)
