"""Bipartite ranking by losses of single rows, weighted by class: the online methods that the pairwise square is compared with.

After Kotlowski, Dembczynski & Huellermeier, "Bipartite ranking through minimization of univariate loss" (ICML 2011). For a
loss of margins, ``exp(-m)`` or ``(1 - m)^2``, they minimise::

    P(w) = lam/2 |w|^2 + min over b of 1/2 mean over positives of loss(w.x + b) + 1/2 mean over negatives of loss(-w.x - b)

The bias b does not change the order of the rows, so it stays inside the solver. The minimum over b has a closed form, which
makes P strongly convex in w and certified by its gradient: for the square it is the pairwise square, up to scale; for the
exponential it is the root of the mean over pairs of ``exp(-w.(x_i - x_j))``.

One block is online gradient descent in another random order for each epoch. With several, each block takes steps along its own
rows from the same weights, and the resulting weights are averaged, each block counting by its rows.

`UnivariateLBFGS` is not of the paper: it minimises the same exponential objective to a tolerance.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary, block_seed
from aucdist.kernels.rows import accumulate, project
from aucdist.kernels.square_epochs import shuffle
from aucdist.kernels.univariate import univariate_epoch
from aucdist.objectives.pairwise_square import VALUE_AT_ZERO, PairwiseSquare, lower_bound, row_factors
from aucdist.parameters import Constraints, above_0, count
from aucdist.solvers.base import Round, Solver
from aucdist.solvers.lbfgs import Point, descend
from aucdist.solvers.online import finite
from aucdist.solvers.rounding import Rounding, higher
from aucdist.solvers.square.descent import moments_of, within_class_covariance
from aucdist.solvers.square.rows import squared_lengths


class UniExp(Solver):
    """Online gradient descent along the exponential loss: one step per row and epoch.

    It takes a fixed number of steps, and usually ends above `tol`.

    Parameters
    ----------
    eta : float or None, default=None
        The steps' length. None takes one that depends on the longest row, and is short; trying 2^-10 to 2^2 on features scaled
        to [-1, 1] is usual.
    epochs : int, default=1
        How many times each row is taken.
    """

    name = "uni-exp"
    objective = "univariate"
    random = True
    online = True
    loss: ClassVar[str] = "exponential"
    _parameter_constraints: ClassVar[Constraints] = {"eta": above_0(optional=True), "epochs": count()}

    def __init__(self, *, eta: float | None = None, epochs: int = 1):
        self.eta = eta
        self.epochs = epochs

    def rounds(self, blocks: Blocks, lam: float, start: np.ndarray | None = None, *, seed: int) -> Iterator[Round]:
        """Yield the start, then the weights after each epoch, with their exact objective and its bound.

        Only the passes of the algorithm count, not those that evaluate the objective.
        """
        rounding, blocks, n = Rounding.of(blocks), blocks.without_memory(), blocks.n_samples
        evaluate, weights = _loss_and_gradient(blocks, self.loss), (blocks.weight_neg, blocks.weight_pos)
        w, bias = np.zeros(blocks.n_features) if start is None else start.astype(np.float64), 0.0
        yield Round(w, VALUE_AT_ZERO, 0.0, 0) if start is None else _certified_round(evaluate, w, lam, 0, rounding)
        eta = self.eta
        if eta is None:
            eta = safe_step(max(blocks.reduce(largest_curvature, weights, n)["largest"]), lam, self.loss)
        for number in range(1, self.epochs + 1):
            found = blocks.reduce(run_epoch, w, bias, weights, n, self.loss, eta, lam, (seed, number))
            w, bias = found["w"], found["bias"]
            yield _certified_round(evaluate, w, lam, number, rounding)

    def learn(self, stream: Any, block: Block, lam: float, seed: int) -> tuple["UnivariateState", float]:
        """Take a step for each row of a batch; parameters and returns as of `Solver.learn`."""
        stream = stream if isinstance(stream, UnivariateState) else UnivariateState(getattr(stream, "w", stream))
        stream = univariate_update(stream, block, lam, self.loss, eta=self.eta)
        return finite(stream, self.eta), stream.threshold


class UniSqu(UniExp):
    """Online gradient descent along the square loss; the parameters are those of `UniExp`."""

    name = "uni-squ"
    loss = "square"


class UnivariateLBFGS(Solver):
    """L-BFGS on the exponential loss until the gap is at most `tol`; it counts all rows in each round."""

    name = "lbfgs"
    objective = "univariate"
    by_sums = True
    takes_codes = True

    def rounds(self, blocks: Blocks, lam: float, start: np.ndarray | None = None) -> Iterator[Round]:
        """Yield the weights, each better than the last. Each point that was evaluated is a pass.

        Both classes must be there. Where the losses at `start` overflow it is taken as zero.
        """
        rounding, loss = Rounding.of(blocks), _loss_and_gradient(blocks, "exponential")

        def evaluate(w: np.ndarray) -> Point:
            return _objective(loss, w, lam)

        zero, passes, bound = np.zeros(blocks.n_features), 1, (0.0, 0.0)
        first = evaluate(zero if start is None else start.astype(np.float64))
        if not np.isfinite(first.value):
            first, passes = evaluate(zero), 2
        for point, n_tries in descend(evaluate, first):
            passes += n_tries
            found = _round_at(point, lam, passes, rounding)
            bound = higher(bound, (found.dual, found.dual_error))
            yield replace(found, dual=bound[0], dual_error=bound[1])


def safe_step(curvature: float, lam: float, loss: str) -> float:
    """Return 1 over the largest curvature of a row's square loss, so that steps cannot diverge; a quarter for the exponential.

    The exponential has no largest curvature: it grows with negative margins.
    """
    return 1.0 / ((4.0 if loss == "exponential" else 1.0) * curvature + lam)


def largest_curvature(block: Block, memory: None, weights: tuple[float, float], n_samples: int) -> tuple[None, Summary]:
    """Return the largest curvature of a row's square loss. `weights` and `n_samples` are those of all rows."""
    factors = row_factors(block.y, block.weights(), *weights, n_samples)
    return None, {"largest": [float((factors * (1.0 + squared_lengths(block))).max(initial=0.0))]}


def run_epoch(
    block: Block, memory: None, w: np.ndarray, bias: float, weights: tuple[float, float], n_samples: int, loss: str,
    eta: float, lam: float, seeds: tuple[int, int],
) -> tuple[None, Summary]:  # fmt: skip
    """Take a step along each of the block's rows, in the random order of this epoch."""
    order = np.empty(block.n_samples, dtype=np.int64)
    shuffle(block_seed(*seeds, block.index), order)
    w, bias = _step_along_rows(block, order, w, bias, weights, n_samples, loss, eta, lam)
    share = block.n_samples / n_samples
    return None, {"w": share * w, "bias": share * bias}


def _step_along_rows(
    block: Block, order: np.ndarray, w: np.ndarray, bias: float, weights: tuple[float, float], n_samples: int, loss: str,
    eta: float, lam: float,
) -> tuple[np.ndarray, float]:  # fmt: skip
    """Return weights and bias after steps along the rows in this order."""
    w, factors = w.copy(), 0.5 * row_factors(block.y, block.weights(), *weights, n_samples)
    return w, univariate_epoch(block.rows, order, block.y, factors, loss == "exponential", eta, lam, w, bias)


# ---- value and gradient -----------------------------------------------------------------------------------------------

Evaluate = Callable[[np.ndarray], tuple[float, np.ndarray]]


def _loss_and_gradient(blocks: Blocks, loss: str) -> Evaluate:
    """Return the function that gives the mean loss minimised over b, and its gradient, exactly and in one pass."""
    if loss == "exponential":
        return partial(_exponential, blocks.without_memory())
    return partial(_square, blocks, moments_of(blocks))


def _square(blocks: Blocks, known: PairwiseSquare, w: np.ndarray) -> tuple[float, np.ndarray]:
    variance, covariance_w = within_class_covariance(blocks, known, w)
    miss = 1.0 - 0.5 * float(w @ known.difference)
    return 0.5 * variance + miss * miss, covariance_w - miss * known.difference


def _exponential(blocks: Blocks, w: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the root of the product of the mean losses of the classes, and its gradient."""
    found = blocks.reduce(_exponential_sums, w, (blocks.weight_neg, blocks.weight_pos))
    value = float(np.sqrt(found["pos"] * found["neg"]))
    return value, 0.5 * value * (found["slope_pos"] / found["pos"] + found["slope_neg"] / found["neg"])


def _exponential_sums(block: Block, memory: None, w: np.ndarray, weights: tuple[float, float]) -> tuple[None, Summary]:
    scores, share = np.empty(block.n_samples), row_factors(block.y, block.weights(), *weights, 1)
    project(block.rows, w, scores)
    summary: Summary = {}
    for name, label in (("neg", -1), ("pos", 1)):
        mine = np.flatnonzero(block.y == label)
        with np.errstate(over="ignore"):
            losses = share[mine] * np.exp(-label * scores[mine])
        slope = np.zeros(block.n_features)
        accumulate(block.rows, mine, -label * losses, slope)
        summary |= {name: losses.sum(), f"slope_{name}": slope}
    return None, summary


def _objective(loss_and_gradient: Evaluate, w: np.ndarray, lam: float) -> Point:
    """Return weights with their objective and its gradient; neither is finite where weights have diverged."""
    with np.errstate(all="ignore"):
        value, slope = loss_and_gradient(w)
        return Point(w, value + 0.5 * lam * float(w @ w), slope + lam * w)


def _certified_round(evaluate: Evaluate, w: np.ndarray, lam: float, passes: int, rounding: Rounding) -> Round:
    """Return weights with their objective and bound; the objective of weights that have diverged is not finite."""
    return _round_at(_objective(evaluate, w, lam), lam, passes, rounding)


def _round_at(point: Point, lam: float, passes: int, rounding: Rounding) -> Round:
    """Return a point with the bound that its gradient gives, and bounds on the rounding errors of both.

    The relative error of the exponential is that of the score and of the sum. That of the square, where it is a share of a score
    which is at most 1 + the root of the value, is at most twice as large.
    """
    w, primal = point.w, point.value
    with np.errstate(all="ignore"):
        value = primal - 0.5 * lam * float(w @ w)
        share = 4.0 * (rounding.score(w) + rounding.over_rows * (1.0 + rounding.reach(w)))
        of_primal = share * (1.0 + value) + rounding.penalty(w, primal)
        of_slope = (2.0 * share * (1.0 + value)) * rounding.largest
        of_dual = of_primal + rounding.half_square(point.gradient, of_slope) / lam
        bound = lower_bound(primal, point.gradient, lam)
    return Round(w, primal, bound, passes, primal_error=of_primal, dual_error=of_dual)


# ---- batches ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class UnivariateState:
    """The state of online gradient descent after some batches of rows.

    Attributes
    ----------
    w : ndarray of shape (n_features,), float64
    weights : tuple of float
        The weights of the negatives and of the positives so far.
    n_samples : int
        The number of rows so far.
    curvature : float
        The largest curvature of a row's square loss so far.
    """

    w: np.ndarray
    bias: float = 0.0
    weights: tuple[float, float] = (0.0, 0.0)
    n_samples: int = 0
    curvature: float = 0.0

    @property
    def threshold(self) -> float:
        """The score that separates the classes by the losses."""
        return -self.bias


def univariate_update(
    state: UnivariateState, block: Block, lam: float, loss: str, *, eta: float | None = None
) -> UnivariateState:
    """Return the state after one step along each row of a batch, in their order; none before both classes have come.

    Parameters
    ----------
    state : UnivariateState
        It is not changed.
    block : Block
        The batch. Its rows are added to the class sizes first, so that these are of all rows so far.
    lam, eta
        As of `UniExp`; the default eta is of all rows so far.
    loss : {"exponential", "square"}
    """
    weight, positive = block.weights(), block.y > 0
    weights = (state.weights[0] + float(weight[~positive].sum()), state.weights[1] + float(weight[positive].sum()))
    state = replace(state, weights=weights, n_samples=state.n_samples + block.n_samples)
    if 0.0 in weights:
        return state
    curvature = max(state.curvature, *largest_curvature(block, None, weights, state.n_samples)[1]["largest"])
    eta = safe_step(curvature, lam, loss) if eta is None else eta
    w, bias = _step_along_rows(
        block, np.arange(block.n_samples), state.w, state.bias, weights, state.n_samples, loss, eta, lam
    )
    return replace(state, w=w, bias=bias, curvature=curvature)
