"""Where the objective of a link starts to rise along a move: a bisection that needs the scores alone."""

from dataclasses import dataclass

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Summary, without_rows
from aucdist.kernels.link_rows import slopes_along_move
from aucdist.kernels.rows import project
from aucdist.objectives.links import LinkLoss
from aucdist.solvers.links.problem import LinkPoint, LinkProblem

N_BISECTIONS = 3
"""Reductions of the bisection; each evaluates seven steps at once, which is worth three halvings."""


def bisect_length(problem: LinkProblem, point: LinkPoint, move: np.ndarray, length: float) -> float:
    """Return the multiple of a move at which the objective starts to rise; `length` is a first guess."""
    problem.blocks.reduce(keep_scores_along, point.theta, move)
    penalty = problem.penalty

    def slopes(steps: np.ndarray) -> np.ndarray:
        of_loss = problem.blocks.reduce(loss_slopes, steps, problem.loss)["slopes"] / problem.weight
        of_penalty: np.ndarray = (penalty * point.theta) @ move + steps * float((penalty * move) @ move)
        return of_loss + of_penalty

    doubled = length * 2.0 ** np.arange(-3, 4)
    rises = np.flatnonzero(slopes(doubled) >= 0.0)
    while len(rises) == 0:
        doubled = doubled * 64.0
        rises = np.flatnonzero(slopes(doubled) >= 0.0)
    high = float(doubled[rises[0]])
    low = float(doubled[rises[0] - 1]) if rises[0] > 0 else 0.0
    for _ in range(N_BISECTIONS):
        inside = np.linspace(low, high, 9)
        rises = np.flatnonzero(slopes(inside[1:-1]) >= 0.0)
        first = int(rises[0]) if len(rises) else 7
        low, high = float(inside[first]), float(inside[first + 1])
    return 0.5 * (low + high)


@dataclass(frozen=True, eq=False)
class ScoresAlong:
    """The scores of a block's rows and their change along a move, with labels and weights."""

    scores: np.ndarray
    moves: np.ndarray
    y: np.ndarray
    weight: np.ndarray


def keep_scores_along(block: Block, memory: object, theta: np.ndarray, move: np.ndarray) -> tuple[ScoresAlong, Summary]:
    """Keep the scores at theta and their change along the move."""
    scores = np.empty((2, block.n_samples))
    for k, vector in enumerate((theta, move)):
        project(block.rows, np.ascontiguousarray(vector[:-1]), scores[k])
        scores[k] += vector[-1]
    return ScoresAlong(scores[0], scores[1], block.y, block.weights()), {}


@without_rows
def loss_slopes(block: int, memory: ScoresAlong, steps: np.ndarray, loss: LinkLoss) -> tuple[ScoresAlong, Summary]:
    """Return the derivative of the loss along the move, at several steps."""
    out = np.zeros(len(steps))
    slopes_along_move(memory.scores, memory.moves, memory.y, memory.weight, loss.terms, steps, out)
    return memory, {"slopes": out}
