"""The smoothed ramp over all positive-negative pairs: the AUC itself, with ties of width 1 on either side, by L-BFGS.

Minimises ``P(w) = lam/2 |w|^2 + mean over all pairs of ramp(w.(x_i - x_j))``, a pair weighing w_i w_j where rows have weights.
The ramp (`aucdist.kernels.ramp`) is 1 minus the step that the AUC counts, smoothed: as the weights grow the mean goes to 1 - AUC.
So, unlike a hinge, it does not care by how much a pair is lost. The price is that P is not convex: there is no lower bound, and
the outcome is a stationary point, which depends on the start.

After Herschtal & Raskutti, "Optimising area under the ROC curve using gradient descent" (ICML 2004), who smooth the step with a
sigmoid. Departures: a piecewise quadratic instead, so that the sum over all pairs takes a sort and no sample of pairs; a
penalty, which decides how wide the smoothing is; L-BFGS.

**When to stop.** The ramp is ``h(1 - m) + h(-1 - m) - 2 h(-m)`` with h(t) = max(0, t)^2 / 2. With the last term replaced by its
tangents at w, P becomes a convex function that lies nowhere below it and touches it at w, with the same gradient g. It is
strongly convex by its penalty, so no weights take it below P(w) - |g|^2 / (2 lam). The fit ends where that is at most the
tolerance's share of P(w): what a step of the convex-concave procedure (Yuille & Rangarajan, 2003) could win from there.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, LocalBlocks, Summary, without_rows
from aucdist.kernels.pairs import guide
from aucdist.kernels.ramp import anchor_slopes, ramp_sum
from aucdist.kernels.rows import accumulate, project
from aucdist.solvers import sample
from aucdist.solvers.base import Round
from aucdist.solvers.lbfgs import Curvature, Point, search
from aucdist.solvers.pairs.all_pairs import MAX_CELLS, running
from aucdist.solvers.rounding import Rounding

NEAR = 1e-2
"""The tolerance to which a sample is solved."""


@dataclass(frozen=True, eq=False)
class Memory:
    """What a block keeps: positions of its rows by class, the weights of the larger one, and that one's scores and slopes."""

    anchors: np.ndarray
    others: np.ndarray
    weights: np.ndarray
    scores: np.ndarray
    coefs: np.ndarray


@dataclass(frozen=True)
class RampRound(Round):
    """A round, and what a convex majorant could still win: ``|gradient|^2 / (2 lam)`` as a share of the objective."""

    majorant_gap: float


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def begin(block: Block, memory: None, sign: int) -> tuple[Memory, Summary]:
    """Sort the rows by class."""
    weight = block.weights()
    there = weight > 0  # rows outside a fold stay in the block, and weigh nothing
    anchors, others = (np.flatnonzero(there & (block.y == label)) for label in (sign, -sign))
    empty = np.zeros(0)
    return Memory(anchors, others, weight[others], empty, empty), {"weights": [weight[anchors]]}


def look(block: Block, memory: Memory, w: np.ndarray, sign: int) -> tuple[Memory, Summary]:
    """Score the rows."""
    scores = np.empty(block.n_samples)
    project(block.rows, sign * w, scores)
    return replace(memory, scores=scores[memory.others]), {"scores": [scores[memory.anchors]]}


@without_rows
def meet(block: int, memory: Memory, centre: float, along: tuple[np.ndarray, ...]) -> tuple[Memory, Summary]:
    """Sum the ramp over the pairs of the larger class's rows and all anchors; scores are from the centre on."""
    coefs, sums = np.empty(len(memory.scores)), np.zeros((len(along[0]) + 1, 3))
    loss = ramp_sum(memory.scores - centre, memory.weights, *along, coefs, sums)
    return replace(memory, coefs=coefs), {"loss": loss, "sums": sums}


def gather(block: Block, memory: Memory, coefs: np.ndarray, offsets: np.ndarray) -> tuple[Memory, Summary]:
    """Add up the gradient, of both classes."""
    gradient = np.zeros(block.n_features)
    accumulate(block.rows, memory.others, memory.coefs, gradient)
    accumulate(block.rows, memory.anchors, coefs[offsets[block.index] : offsets[block.index + 1]], gradient)
    return memory, {"gradient": gradient}


# ---- rounds: run by the client ----------------------------------------------------------------------------------------


class PairRamp:
    """The objective over blocks.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be there.
    lam : float
    """

    def __init__(self, blocks: Blocks, lam: float):
        self.rounding = Rounding.of(blocks, running=2 * min(blocks.n_pos, blocks.n_neg))
        self.blocks, self.lam = blocks.without_memory(), lam
        self.sign = 1 if blocks.n_pos <= blocks.n_neg else -1
        self.total = blocks.weight_pos * blocks.weight_neg
        weights = self.blocks.reduce(begin, self.sign)["weights"]
        self.offsets = np.cumsum([0] + [len(part) for part in weights])
        self.weights = np.concatenate(weights)

    def evaluate(self, w: np.ndarray) -> Point:
        """Return value and gradient at w."""
        scores = np.concatenate(self.blocks.reduce(look, w, self.sign)["scores"])
        order = np.argsort(scores)
        # Sums of squares lose least where scores are small.
        centre = scores[order[len(order) // 2]]
        anchors, weights = scores[order] - centre, self.weights[order]
        table = np.empty(min(2 * len(anchors), MAX_CELLS) + 1, dtype=np.int32)
        low, scale = guide(anchors, table)
        moment = weights * anchors
        below = [running(part) for part in (weights, moment, moment * anchors)]
        met = self.blocks.reduce(meet, centre, (anchors, table, low, scale, *below))
        coefs = np.empty(len(anchors))
        anchor_slopes(met["sums"], anchors, weights, order, coefs)
        loss = self.blocks.reduce(gather, coefs, self.offsets)["gradient"] * (self.sign / self.total)
        value = float(met["loss"] / self.total) + 0.5 * self.lam * float(w @ w)
        return Point(w, value, loss + self.lam * w)

    def value_error(self, point: Point) -> float:
        """Return a bound on the rounding error of the objective: its sums hold squares of scores."""
        rounding, size = self.rounding, 1.0 + 2.0 * self.rounding.reach(point.w)
        of_pairs = 2.0 * rounding.score(point.w) + 2.0 * rounding.over_rows * (1.0 + size * size)
        return of_pairs + rounding.penalty(point.w, point.value)

    def majorant_gap(self, point: Point) -> float:
        """Return what a convex majorant could win from a point, as a share of the objective."""
        return float(point.gradient @ point.gradient) / (2.0 * self.lam * point.value)


def pair_ramp(blocks: Blocks, lam: float, start: np.ndarray | None = None, *, tol: float = 0.0) -> Iterator[RampRound]:
    """Go down by L-BFGS until no convex majorant has much to win.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be there.
    lam : float
    start : ndarray of shape (n_features,), optional
        Where to begin; by default where a sample's fit ends, on small data at zero.
    tol : float
        End when a convex majorant at the weights is at most this share of the objective lower anywhere.

    Yields
    ------
    RampRound
        The weights, which are better from round to round; a pass for each point that was looked at. There is no bound: the
        dual value is 0.
    """
    passes = 1
    if start is None:
        known, more = sample.begin(blocks, lambda drawn: pair_ramp(LocalBlocks([drawn]), lam, tol=NEAR), 0.0)
        start, passes = (None if known is None else known.w), passes + more
    problem, curvature = PairRamp(blocks, lam), Curvature()
    point = problem.evaluate(np.zeros(blocks.n_features) if start is None else start.astype(np.float64))
    while True:
        gap = problem.majorant_gap(point)
        error = problem.value_error(point)
        yield RampRound(point.w, point.value, 0.0, passes, gap, stationary=gap <= tol, primal_error=error)
        after, n_tries = search(problem.evaluate, point, curvature.direction(point.gradient))
        if after is point:
            return
        curvature.learn(point, after)
        point, passes = after, passes + n_tries
