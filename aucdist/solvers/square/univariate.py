"""Bipartite ranking by class-weighted losses of single rows: online algorithms that the pairwise square is compared with.

After Kotlowski, Dembczynski & Huellermeier, "Bipartite ranking through minimization of univariate loss" (ICML 2011). For a
loss of margins, ``exp(-m)`` or ``(1 - m)^2``, the paper minimises::

    P(w) = lam/2 |w|^2 + min over b of 1/2 mean over positives of loss(w.x + b) + 1/2 mean over negatives of loss(-w.x - b)

The bias b does not change the ranking, so it stays inside the solver. The minimum over b has a closed form: for the square loss
it is the pairwise square up to scale, and for the exponential loss it is the root of the mean over pairs of ``exp(-w.(x_i -
x_j))``. So P is strongly convex in w, and its gradient gives a lower bound.

With one block this is online gradient descent, in an order drawn anew for each epoch. With several, each block goes through its
own rows from the same weights, and the resulting weights are averaged in proportion to the blocks' numbers of rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary, block_seed
from aucdist.kernels.rows import accumulate, project
from aucdist.kernels.square_epochs import shuffle
from aucdist.kernels.univariate import univariate_epoch
from aucdist.objectives.pairwise_square import VALUE_AT_ZERO, PairwiseSquare, lower_bound, row_factors
from aucdist.solvers.base import Round
from aucdist.solvers.rounding import Rounding
from aucdist.solvers.square.descent import moments_of, within_class_covariance
from aucdist.solvers.square.rows import squared_lengths


def uni_exp(
    blocks: Blocks, lam: float, start: np.ndarray | None = None, *, seed: int, eta: float | None = None, epochs: int = 1
) -> Iterator[Round]:
    """Minimise the univariate exponential loss by one gradient step per row and epoch.

    Parameters
    ----------
    blocks : Blocks
    lam : float
    start : ndarray of shape (n_features,), optional
        Zero by default.
    seed : int
        Seed of the order of the rows.
    eta : float, optional
        Length of the steps; `usual_step` by default.
    epochs : int
        How often each row takes a step.

    Yields
    ------
    Round
        The start, then the weights after each epoch, with their exact objective and its lower bound. Only the passes of the
        algorithm are counted; evaluating the objective takes additional passes.
    """
    return _epoch_rounds(blocks, lam, start, "exponential", seed, eta, epochs)


def uni_squ(
    blocks: Blocks, lam: float, start: np.ndarray | None = None, *, seed: int, eta: float | None = None, epochs: int = 1
) -> Iterator[Round]:
    """Minimise the univariate square loss by one gradient step per row and epoch; parameters and rounds as in `uni_exp`."""
    return _epoch_rounds(blocks, lam, start, "square", seed, eta, epochs)


def _epoch_rounds(
    blocks: Blocks, lam: float, start: np.ndarray | None, loss: str, seed: int, eta: float | None, epochs: int
) -> Iterator[Round]:
    """Yield the start, then a round after each epoch."""
    rounding, blocks, n = Rounding.of(blocks), blocks.without_memory(), blocks.n_samples
    measure, weights = _measure(blocks, loss), (blocks.weight_neg, blocks.weight_pos)
    w, bias = np.zeros(blocks.n_features) if start is None else start.astype(np.float64), 0.0
    yield Round(w, VALUE_AT_ZERO, 0.0, 0) if start is None else _certified_round(measure, w, lam, 0, rounding)
    if eta is None:
        eta = usual_step(max(blocks.reduce(highest_row, weights, n)["highest"]), lam, loss)
    for number in range(1, epochs + 1):
        found = blocks.reduce(univariate_round, w, bias, weights, n, loss, eta, lam, (seed, number))
        w, bias = found["w"], found["bias"]
        yield _certified_round(measure, w, lam, number, rounding)


def usual_step(highest: float, lam: float, loss: str) -> float:
    """Return the default step length: 1 over the largest curvature of a row's square loss, or a quarter for the exponential loss.

    With it the square loss cannot diverge. The curvature of the exponential loss has no bound, because it rises with negative
    margins.
    """
    return 1.0 / ((4.0 if loss == "exponential" else 1.0) * highest + lam)


def highest_row(block: Block, memory: None, weights: tuple[float, float], n_samples: int) -> tuple[None, Summary]:
    """Return the largest curvature of a row's square loss, given the total weights and the number of all rows."""
    factors = row_factors(block.y, block.weights(), *weights, n_samples)
    return None, {"highest": [float((factors * (1.0 + squared_lengths(block))).max(initial=0.0))]}


def univariate_round(
    block: Block, memory: None, w: np.ndarray, bias: float, weights: tuple[float, float], n_samples: int, loss: str,
    eta: float, lam: float, seeds: tuple[int, int],
) -> tuple[None, Summary]:  # fmt: skip
    """Take one step for each of the block's rows, in a random order, and return the block's part of the averaged weights."""
    order = np.empty(block.n_samples, dtype=np.int64)
    shuffle(block_seed(*seeds, block.index), order)
    w, bias = _run(block, order, w, bias, weights, n_samples, loss, eta, lam)
    share = block.n_samples / n_samples
    return None, {"w": share * w, "bias": share * bias}


def _run(
    block: Block, order: np.ndarray, w: np.ndarray, bias: float, weights: tuple[float, float], n_samples: int, loss: str,
    eta: float, lam: float,
) -> tuple[np.ndarray, float]:  # fmt: skip
    """Return weights and bias after one gradient step for each row, in this order."""
    w, factors = w.copy(), 0.5 * row_factors(block.y, block.weights(), *weights, n_samples)
    return w, univariate_epoch(block.rows, order, block.y, factors, loss == "exponential", eta, lam, w, bias)


# ---- value and gradient -----------------------------------------------------------------------------------------------

Measure = Callable[[np.ndarray], tuple[float, np.ndarray]]


def _measure(blocks: Blocks, loss: str) -> Measure:
    """Return the function that computes the minimum over b of the mean loss, and its gradient, exactly and in one pass."""
    if loss == "exponential":
        return partial(_exponential, blocks.without_memory())
    return partial(_square, blocks, moments_of(blocks))


def _square(blocks: Blocks, known: PairwiseSquare, w: np.ndarray) -> tuple[float, np.ndarray]:
    variance, covariance_w = within_class_covariance(blocks, known, w)
    miss = 1.0 - 0.5 * float(w @ known.difference)
    return 0.5 * variance + miss * miss, covariance_w - miss * known.difference


def _exponential(blocks: Blocks, w: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the root of the product of the classes' mean losses, and its gradient."""
    found = blocks.reduce(_exponential_sums, w, (blocks.weight_neg, blocks.weight_pos))
    value = float(np.sqrt(found["pos"] * found["neg"]))
    return value, 0.5 * value * (found["slope_pos"] / found["pos"] + found["slope_neg"] / found["neg"])


def _exponential_sums(block: Block, memory: None, w: np.ndarray, weights: tuple[float, float]) -> tuple[None, Summary]:
    scores, share = np.empty(block.n_samples), row_factors(block.y, block.weights(), *weights, 1)
    project(block.rows, w, scores)
    summary: Summary = {}
    for name, label in (("neg", -1), ("pos", 1)):
        mine = np.flatnonzero(block.y == label)
        losses = share[mine] * np.exp(-label * scores[mine])
        slope = np.zeros(block.n_features)
        accumulate(block.rows, mine, -label * losses, slope)
        summary |= {name: losses.sum(), f"slope_{name}": slope}
    return None, summary


def _certified_round(measure: Measure, w: np.ndarray, lam: float, passes: int, rounding: Rounding) -> Round:
    """Weights that have diverged have a value that is not finite.

    Of the exponential the relative error is the score's and the sum's; of the square, where that is a share of a score's size,
    which is not larger than 1 + the root of the value, it is at most twice as large.
    """
    with np.errstate(all="ignore"):
        value, slope = measure(w)
        primal, slope = value + 0.5 * lam * float(w @ w), slope + lam * w
        share = 4.0 * (rounding.score(w) + rounding.over_rows * (1.0 + rounding.reach(w)))
        of_primal = share * (1.0 + value) + rounding.penalty(w, primal)
        of_slope = (2.0 * share * (1.0 + value)) * rounding.largest
        of_dual = of_primal + rounding.half_square(slope, of_slope) / lam
        bound = lower_bound(primal, slope, lam)
        return Round(w, primal, bound, passes, primal_error=of_primal, dual_error=of_dual)


# ---- batches ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class UnivariateState:
    """The state of the univariate solvers between two batches of rows.

    Attributes
    ----------
    w : ndarray of shape (n_features,), float64
    bias : float
    weights : tuple of float
        Total weight of the negatives and of the positives so far.
    n_samples : int
        Number of rows so far.
    highest : float
        The largest curvature of a row's square loss so far.
    """

    w: np.ndarray
    bias: float = 0.0
    weights: tuple[float, float] = (0.0, 0.0)
    n_samples: int = 0
    highest: float = 0.0

    @property
    def threshold(self) -> float:
        """The score above which the losses predict the positive class."""
        return -self.bias


def univariate_update(
    state: UnivariateState, block: Block, lam: float, loss: str, *, eta: float | None = None
) -> UnivariateState:
    """Return the state after one gradient step for each row of a batch, in the order of the rows.

    The weights do not change until rows of both classes have been seen.

    Parameters
    ----------
    state : UnivariateState
        The state before the batch; it is not changed.
    block : Block
        The batch. Its rows enter the class sizes before the first step.
    lam, eta
        As in `uni_exp`; the default eta comes from all rows so far.
    loss : {"exponential", "square"}
    """
    weight, positive = block.weights(), block.y > 0
    weights = (state.weights[0] + float(weight[~positive].sum()), state.weights[1] + float(weight[positive].sum()))
    state = replace(state, weights=weights, n_samples=state.n_samples + block.n_samples)
    if 0.0 in weights:
        return state
    highest = max(state.highest, *highest_row(block, None, weights, state.n_samples)[1]["highest"])
    eta = usual_step(highest, lam, loss) if eta is None else eta
    w, bias = _run(block, np.arange(block.n_samples), state.w, state.bias, weights, state.n_samples, loss, eta, lam)
    return replace(state, w=w, bias=bias, highest=highest)
