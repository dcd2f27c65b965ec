"""Bipartite ranking by losses of single rows, weighted by class: the online methods that the pairwise square is compared with.

After Kotlowski, Dembczynski & Huellermeier, "Bipartite ranking through minimization of univariate loss" (ICML 2011). For a
loss of margins, ``exp(-m)`` or ``(1 - m)^2``, they minimise::

    P(w) = lam/2 |w|^2 + min over b of 1/2 mean over positives of loss(w.x + b) + 1/2 mean over negatives of loss(-w.x - b)

The bias b does not change the order of the rows, so it stays inside the solver. The minimum over b has a closed form, which
makes P strongly convex in w and certified by its gradient: for the square it is the pairwise square, up to scale; for the
exponential it is the root of the mean over pairs of ``exp(-w.(x_i - x_j))``.

One block is online gradient descent in another random order for each epoch; several are averaged by `aucdist.papers.epochs`.
`UnivariateLBFGS` is not of the paper: it minimises the same exponential objective to a tolerance.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from aucdist.data.block import Block, row_squares
from aucdist.engine.blocks import Blocks, Summary
from aucdist.kernels.rows import accumulate
from aucdist.papers.epochs import Epoch, random_order
from aucdist.papers.tpauc.descent import moments_of, within_class_covariance
from aucdist.papers.tpauc.kernels import UnivariateSteps, univariate_epoch
from aucdist.papers.tpauc.moments import PairMoments, lower_bound, row_factors
from aucdist.papers.tpauc.online import EpochSolver, Evaluate
from aucdist.solvers.base import Round, Solver
from aucdist.solvers.lbfgs import Point, descend
from aucdist.solvers.rounding import Rounding, higher

LossAndGradient = Callable[[np.ndarray], tuple[float, np.ndarray]]


@dataclass(frozen=True)
class UnivariateEpoch:
    """One step along each row's loss, in a random order; the last of the weights is the bias.

    `weights` and `n_samples` are those of all rows, the negative class first.
    """

    weights: tuple[float, float]
    n_samples: int
    exponential: bool
    eta: float
    lam: float

    def __call__(self, block: Block, memory: None, w: np.ndarray, seed: int) -> tuple[None, np.ndarray, Summary]:
        """Take the steps; parameters and returns as of `Epoch`."""
        factors = 0.5 * row_factors(block.y, block.weights(), *self.weights, self.n_samples)
        order = random_order(seed, block.n_samples)
        univariate_epoch(block.rows, order, block.y, factors, UnivariateSteps(self.exponential, self.eta, self.lam), w)
        return None, w, {}


class UniExp(EpochSolver):
    """Online gradient descent along the exponential loss, a step per row and epoch; the parameters are those of `EpochSolver`."""

    name = "uni-exp"
    objective = "univariate"
    has_bias = True
    exponential: ClassVar[bool] = True

    def prepare(self, blocks: Blocks, lam: float, seed: int) -> tuple[Evaluate, Blocks, Epoch]:
        """Return what evaluates weights, the blocks, and the steps.

        Their default length is 1 over the largest curvature of a row's square loss, so that steps cannot diverge; a quarter for
        the exponential, which has no largest curvature: it grows with negative margins.
        """
        rounding, own, n = Rounding.of(blocks), blocks.without_memory(), blocks.n_samples
        loss, weights = _loss_and_gradient(own, self.exponential), (blocks.weight_neg, blocks.weight_pos)
        eta = self.eta
        if eta is None:
            eta = 1.0 / (
                (4.0 if self.exponential else 1.0) * max(own.sum(largest_curvature, weights, n)["largest"]) + lam
            )
        epoch = UnivariateEpoch(weights, n, self.exponential, eta, lam)
        return lambda w, passes: _round_at(_objective(loss, w, lam), lam, passes, rounding), own, epoch


class UniSqu(UniExp):
    """Online gradient descent along the square loss; the parameters are those of `EpochSolver`."""

    name = "uni-squ"
    exponential = False


class UnivariateLBFGS(Solver):
    """L-BFGS on the exponential loss until the gap is at most `tol`; it counts all rows in each round."""

    name = "lbfgs"
    objective = "univariate"
    takes_codes = True

    def rounds(self, blocks: Blocks, lam: float, start: np.ndarray | None = None) -> Iterator[Round]:
        """Yield the weights, each better than the last. Each point that was evaluated is a pass.

        Both classes must be there. Where the losses at `start` overflow it is taken as zero.
        """
        rounding, loss = Rounding.of(blocks), _loss_and_gradient(blocks, exponential=True)

        def evaluate(w: np.ndarray) -> Point:
            return _objective(loss, w, lam)

        zero, passes, bound = np.zeros(blocks.n_features), 1, (0.0, 0.0)
        first = evaluate(zero if start is None else start.astype(np.float64))
        if not np.isfinite(first.value):
            first, passes = evaluate(zero), 2
        for point, n_tries in descend(evaluate, first):
            passes += n_tries
            newest = _round_at(point, lam, passes, rounding)
            bound = higher(bound, (newest.dual, newest.dual_error))
            yield replace(newest, dual=bound[0], dual_error=bound[1])


def largest_curvature(block: Block, weights: tuple[float, float], n_samples: int) -> Summary:
    """Return the largest curvature of a row's square loss. `weights` and `n_samples` are those of all rows."""
    factors = row_factors(block.y, block.weights(), *weights, n_samples)
    return {"largest": [float((factors * (1.0 + row_squares(block.rows))).max(initial=0.0))]}


# ---- value and gradient -----------------------------------------------------------------------------------------------


def _loss_and_gradient(blocks: Blocks, exponential: bool) -> LossAndGradient:
    """Return the function that gives the mean loss minimised over b, and its gradient, exactly and in one pass."""
    if exponential:
        return partial(_exponential, blocks)
    return partial(_square, blocks, moments_of(blocks))


def _square(blocks: Blocks, known: PairMoments, w: np.ndarray) -> tuple[float, np.ndarray]:
    variance, covariance_w = within_class_covariance(blocks, known, w)
    miss = 1.0 - 0.5 * float(w @ known.difference)
    return 0.5 * variance + miss * miss, covariance_w - miss * known.difference


def _exponential(blocks: Blocks, w: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the root of the product of the mean losses of the classes, and its gradient."""
    sums = blocks.sum(_exponential_sums, w, (blocks.weight_neg, blocks.weight_pos))
    value = float(np.sqrt(sums["pos"] * sums["neg"]))
    return value, 0.5 * value * (sums["slope_pos"] / sums["pos"] + sums["slope_neg"] / sums["neg"])


def _exponential_sums(block: Block, w: np.ndarray, weights: tuple[float, float]) -> Summary:
    scores, share = block.scores(w), row_factors(block.y, block.weights(), *weights, 1)
    summary: Summary = {}
    for name, label in (("neg", -1), ("pos", 1)):
        mine = np.flatnonzero(block.y == label)
        with np.errstate(over="ignore"):
            losses = share[mine] * np.exp(-label * scores[mine])
        slope = np.zeros(block.n_features)
        accumulate(block.rows, mine, -label * losses, slope)
        summary |= {name: losses.sum(), f"slope_{name}": slope}
    return summary


def _objective(loss_and_gradient: LossAndGradient, w: np.ndarray, lam: float) -> Point:
    """Return weights with their objective and its gradient; neither is finite where weights have diverged."""
    with np.errstate(all="ignore"):
        value, slope = loss_and_gradient(w)
        return Point(w, value + 0.5 * lam * float(w @ w), slope + lam * w)


def _round_at(point: Point, lam: float, passes: int, rounding: Rounding) -> Round:
    """Return a point with the bound that its gradient gives, and bounds on the rounding errors of both.

    The relative error of the exponential is that of the score and of the sum. That of the square, where it is a share of a score
    which is at most 1 + the root of the value, is at most twice as large.
    """
    w, primal = point.w, point.value
    with np.errstate(all="ignore"):
        value = primal - 0.5 * lam * float(w @ w)
        share = 4.0 * (rounding.score(w) + rounding.over_rows * (1.0 + rounding.reach(w)))
        primal_error = share * (1.0 + value) + rounding.penalty(w, primal)
        slope_error = (2.0 * share * (1.0 + value)) * rounding.largest
        dual_error = primal_error + rounding.half_square(point.gradient, slope_error) / lam
        bound = lower_bound(primal, point.gradient, lam)
    return Round(w, primal, bound, passes, primal_error=primal_error, dual_error=dual_error)
