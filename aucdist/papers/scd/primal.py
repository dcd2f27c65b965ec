"""The mean hinge of single rows with an L1 or an L2 penalty, and lower bounds on its minimum.

    P(w, b) = sum of c_i max(0, 1 - y_i (w.x_i + b)) + penalty,    penalty = lam |w|_1  or  lam |w|_2^2,

where c_i is the weight of row i divided by the total weight. This is formula (1) of Tao, Zhu, Luo & Kong, "A new Comid-based
stochastic coordinate descent method for non-smooth losses" (Acta Electronica Sinica 41(4), 2013): the penalty has no factor 1/2,
and the loss is a mean. The intercept b, if there is one, is not penalised.

Any a with 0 <= a_i <= 1 is a dual point. With A = sum of c_i a_i and v = sum of c_i a_i y_i x_i, its value is

    L1: A, provided that |v|_inf <= lam;    L2: A - |v|_2^2 / (4 lam);    with b: provided that sum of c_i a_i y_i = 0.

The value is at most P(w, b) for any w and b. A point that violates a condition is scaled until the condition holds. The rows
whose margin is below 1 give such a point, and so does any average of points. Only (A, v) of a point is kept, which is linear in
a.

The solvers that step along subgradients can raise the objective from round to round. They return the best weights so far, or
the best average so far. The rows whose margin is below 1 are a dual point in each round. The average of these points, in which
the t-th counts t times, gives the lower bound. It rises slowly, and with an L1 penalty very slowly. Their weights are one
vector with the intercept last; it stays 0 if there is no intercept.
"""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy import ndarray

from aucdist.data.block import Block, as_rows, column_squares
from aucdist.engine.blocks import Blocks, Summary
from aucdist.errors import InputError
from aucdist.kernels.rows import Rows, accumulate
from aucdist.pairs.penalty import L1, L2, Penalty
from aucdist.papers.epochs import Epoch, epochs
from aucdist.papers.scd.kernels import ColumnSteps, column_steps
from aucdist.parameters import SWITCH, OneOf, above_0, keyword_parameters
from aucdist.solvers.base import Round, Solver
from aucdist.solvers.rounding import EPS, EXTRA_OPERATIONS, Rounding, higher

PENALTY_NAMES = ("l1", "l2")

ClassWeight = tuple[float, float]
"""The factors of the sample weights of the negative and of the positive rows."""

EQUAL: ClassWeight = (1.0, 1.0)


def shares_of(weight_neg: float, weight_pos: float, class_weight: ClassWeight) -> ClassWeight:
    """Return the share m of a negative and of a positive row of weight 1, given the total weights of the classes."""
    whole = class_weight[0] * weight_neg + class_weight[1] * weight_pos
    return class_weight[0] / whole, class_weight[1] / whole


def step_length(penalty: Penalty, eta: float, t: int) -> float:
    """Return the length of step t: ``eta / sqrt(t)`` for L1, and for L2 ``1 / (lam (t - 1) + 1 / eta)``."""
    return eta / math.sqrt(t) if penalty.has_corners else 1.0 / (0.5 * penalty.lam * (t - 1) + 1.0 / eta)


# A dual point is kept as an array of shape (2, n_features + 1): the sums of c_i a_i (x_i, 1) over the negative and over the
# positive rows. The points of several blocks add up to the point of all rows. If a_i is 1 for the rows with a margin below 1
# and 0 for the others, the first sum minus the second is the gradient of the loss.


def balanced(point: ndarray, *, intercept: bool) -> tuple[float, ndarray]:
    """Return A and v of a dual point. With an intercept, the heavier class is scaled to the weight of the other class."""
    kept, totals = np.ones(2), point[:, -1]
    if intercept:
        kept = totals.min() / np.where(totals > 0.0, totals, 1.0)
    return float(kept @ totals), kept[1] * point[1, :-1] - kept[0] * point[0, :-1]


def scaled_dual(point: ndarray, penalty: Penalty, *, intercept: bool) -> float:
    """Return the dual value of a point, after scaling it to be feasible and, for L2, to the best length.

    Parameters
    ----------
    point : ndarray
        The dual point, before it is scaled.
    penalty : Penalty
        The penalty.
    intercept : bool
        Whether there is an intercept.
    """
    total, v = balanced(point, intercept=intercept)
    if penalty.has_corners:
        return penalty.bound(total, v, v)
    square, lam = float(v @ v), penalty.lam
    length = min(1.0, lam * total / square) if square > 0.0 else 1.0
    return length * total - length**2 * square / (2.0 * lam)


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def row_shares(block: Block, shares: ClassWeight) -> ndarray:
    """Return each row's share of the total weight, given the share of a row of weight 1 of either class."""
    return block.weights() * np.where(block.y > 0, shares[1], shares[0])


def margins_of(block: Block, w: ndarray) -> ndarray:
    """Return ``y (X w + intercept)``."""
    return block.y * (block.scores(w) + w[-1])


def mean_hinge(shares: ndarray, margins: ndarray) -> float:
    """Return the sum of the rows' losses times their shares.

    This is no BLAS product, because the bits of a BLAS product depend on the number of its threads.
    """
    return float((shares * np.maximum(1.0 - margins, 0.0)).sum())


def hinge_loss(block: Block, w: ndarray, shares: ClassWeight) -> Summary:
    """Return the mean hinge at w."""
    return mean_hinge(row_shares(block, shares), margins_of(block, w))


def loss_and_dual_point(block: Block, margins: ndarray, shares: ndarray) -> Summary:
    """Return the mean hinge at these margins, and the dual point of the rows with a margin below 1, given all rows' shares."""
    active = np.where(margins < 1.0, shares, 0.0)
    point = np.zeros((2, block.n_features + 1))
    for k, label in enumerate((-1, 1)):
        class_rows = np.flatnonzero(block.y == label)
        point[k, -1] = active[class_rows].sum()
        accumulate(block.rows, class_rows, active[class_rows], point[k, :-1])
    return {"loss": mean_hinge(shares, margins), "point": point}


def evaluate_weights(block: Block, w: ndarray, shares: ClassWeight) -> Summary:
    """Return what `loss_and_dual_point` returns at w."""
    return loss_and_dual_point(block, margins_of(block, w), row_shares(block, shares))


def mean_squares(block: Block, shares: ClassWeight) -> Summary:
    """Return the mean square of each feature."""
    return column_squares(block.rows, row_shares(block, shares))


# ---- the state: kept by the client ------------------------------------------------------------------------------------


class PrimalState:
    """The current weights of a primal solver, and its best weights and lower bound so far.

    Parameters
    ----------
    blocks : Blocks
        The rows.
    lam : float
        The regularisation strength, above 0.
    start : ndarray of shape (n_features,), or (n_features + 1,) with an intercept, or None
        The weights to start from. None means zero.
    penalty : {"l1", "l2"}
        The name of the penalty. The state keeps the `Penalty`.
    intercept : bool
        Whether there is an intercept, which is not penalised.
    class_weight : tuple (float, float)
        Factors for the sample weights of the negative and of the positive rows.
    average : bool
        Whether rounds have the average of the weights, in which round t counts t times, instead of the weights.

    Attributes
    ----------
    w : ndarray of shape (n_features + 1,), float64
        The current weights, which the solver updates.
    t : int
        The number of the round, counted from 1. Round t counts t times in averages.
    eta : float
        The length of the first step, which the solver sets.
    slope, slopes : ndarray of shape (n_features + 1,), float64
        The newest subgradient of the loss, and the sum of all of them.
    shares : tuple (float, float)
        The share of the total weight of a negative and of a positive row of weight 1.
    passes : float
        The number of passes over the data so far. The solver adds those of its steps.
    """

    def __init__(
        self, blocks: Blocks, lam: float, start: ndarray | None, average: bool, *, penalty: str = "l2",
        intercept: bool = False, class_weight: ClassWeight = EQUAL,
    ):  # fmt: skip
        OneOf(PENALTY_NAMES).check("penalty", penalty)
        n_weights = blocks.n_features + intercept
        if start is not None and np.shape(start) != (n_weights,):
            raise InputError(
                f"the weights to start from must have the shape ({n_weights},); got {np.shape(start)}. Start from a fit with "
                "the same features"
            )
        self.rounding = Rounding.of(blocks)
        self.blocks, self.lam = blocks, lam
        # The penalty of `L2` has a factor of 1/2.
        self.penalty: Penalty = L1(lam) if penalty == "l1" else L2(2.0 * lam)
        self.intercept, self.average = intercept, average
        self.shares = shares_of(blocks.weight_neg, blocks.weight_pos, class_weight)
        self.w = np.zeros(blocks.n_features + 1)
        if start is not None:
            self.w[:n_weights] = start
        self.passes, self.t, self.eta, self.moves, self._reach = 0.0, 0, math.nan, 0, 0.0
        self.slope, self.slopes = np.zeros_like(self.w), np.zeros_like(self.w)
        self._bound = 0.0, 0.0
        self._best = math.inf, 0.0, self.w
        """The objective, its rounding error, and the weights."""
        self._mean = np.zeros_like(self.w)
        self._point = np.zeros((2, blocks.n_features + 1))
        if intercept and start is None:
            # At w = 0, the rows of the heavier class have loss 0 with the best intercept, and the other rows have loss 2.
            neg, pos = self.shares[0] * blocks.weight_neg, self.shares[1] * blocks.weight_pos
            w, value = np.zeros_like(self.w), 2.0 * min(neg, pos)
            w[-1] = 1.0 if pos >= neg else -1.0
            self._best = value, 2.0 * EPS * value, w

    @property
    def length(self) -> float:
        """The length of step t: see `step_length`."""
        return step_length(self.penalty, self.eta, self.t)

    def round_at(self, summary: Summary) -> Round:
        """Return the round with the best weights and bound so far, given what `loss_and_dual_point` returned at `w`.

        This counts as one pass. With `average`, it takes half a pass more.
        """
        self.t, self.passes = self.t + 1, self.passes + 1.0
        step, rounding, shown = 2.0 / (self.t + 1), self.rounding, self.w
        loss, point = float(summary["loss"]), summary["point"]
        if self.average:
            shown = self._mean = self._mean + step * (self.w - self._mean)
            loss, self.passes = float(self.blocks.sum(hinge_loss, shown, self.shares)), self.passes + 0.5
        self.slope = point[0] - point[1]
        self.slope[-1] *= self.intercept
        self.slopes = self.slopes + self.slope
        self._point = self._point + step * (point - self._point)
        bound = scaled_dual(self._point, self.penalty, intercept=self.intercept)
        total, v = balanced(self._point, intercept=self.intercept)
        relative = 3.0 * rounding.over_rows + EPS * self.t
        slope_error = (relative * total) * rounding.largest
        if self.penalty.has_corners:
            bound_error = bound * (relative + float(slope_error.max(initial=0.0)) / self.lam)
        else:
            bound_error = relative * total + rounding.half_square(v, slope_error) / (2.0 * self.lam)
        self._bound = higher(self._bound, (bound, bound_error))
        self._reach = max(self._reach, rounding.largest_score(shown[:-1]) + abs(float(shown[-1])))
        value = loss + self.penalty.value(shown[:-1])
        if value < self._best[0]:
            moved = EPS * self.moves * (1.0 + self._reach)
            error = (
                rounding.over_columns * self._reach
                + moved
                + 2.0 * (rounding.over_rows + EPS * EXTRA_OPERATIONS) * value
            )
            self._best = value, error, shown.copy()
        primal, primal_error, w = self._best
        return Round(
            w if self.intercept else w[:-1], primal, self._bound[0], math.ceil(self.passes),
            primal_error=primal_error, dual_error=self._bound[1],
        )  # fmt: skip

    def rounds_of(self, epoch: Epoch, seed: int, moves: int) -> Iterator[Round]:
        """Yield a round for each epoch, at the weights before its steps, which count as one more pass.

        The summary of an epoch has what `loss_and_dual_point` returns at these weights.

        Parameters
        ----------
        epoch : Epoch
            The steps of an epoch.
        seed : int
            The seed of the random numbers.
        moves : int
            How often an epoch changes a margin, if margins are updated instead of computed.
        """
        for summary in epochs(self.blocks.without_memory(), epoch, self.w, seed):
            yield self.round_at(summary)
            self.w, self.passes, self.moves = summary["w"], self.passes + 1.0, self.moves + moves


@keyword_parameters(eta=above_0(("1/lam",), optional=True), average=SWITCH)
class PrimalSolver(Solver):
    """A solver that changes the weights directly, by steps of decreasing length.

    It comes within a hundredth of the minimum in ten to several hundred rounds. Its lower bound lags far behind, so that a fit
    usually ends after `max_passes`, with a ConvergenceWarning.

    Parameters
    ----------
    eta : float, "1/lam" or None, default=None
        The length of the first step. "1/lam" is the published length for L2. None takes a length that depends on the data.
    average : bool, default=False
        Whether to return the average of the weights, in which round t counts t times.
    """

    objective = "hinge"
    penalties: ClassVar[tuple[str, ...]] = ("l1", "l2")

    eta: float | str | None = None
    average: bool = False

    def first_step(self, state: PrimalState, factor: float) -> float:
        """Return the length of the first step. By default, it is the factor divided by an average of the features' mean squares.

        The mean square of a feature stands for the curvature of the loss along it, and the average is weighted by the mean
        squares themselves. For L2 the result is at most 1/lam. On five data sets, sparse and dense, the step with the factors
        in use was within a factor of four of the best one."""
        if self.eta is not None:
            return 1.0 / state.lam if isinstance(self.eta, str) else self.eta
        squares = state.blocks.sum(mean_squares, state.shares)
        total = float(squares @ squares)
        eta = factor * float(squares.sum()) / total if total > 0.0 else 1.0
        return eta if state.penalty.has_corners else min(eta, 1.0 / state.lam)


FIRST_STEP_FACTOR = 4.0
"""The factor for `PrimalSolver.first_step`. It is large because one weight moves at a time and the next step uses its new
value."""

NO_VALUES = np.zeros(0)


def signed_columns(block: Block) -> Rows:
    """Return the columns of a block as rows, each value multiplied by the label of its row."""
    X: Any = block.X if isinstance(block.X, ndarray) else sp.csr_array(block.X)
    return as_rows(X.T * block.y)


class ColumnMemory(NamedTuple):
    """What a block keeps: its columns, the share of each row in the total weight, and where the last sweep ended.

    Attributes
    ----------
    columns : Rows
        The columns, as `signed_columns` returns them.
    shares : ndarray of shape (n_samples,), float64
        The share of each row in the total weight.
    n_sweeps : int
        The number of sweeps so far.
    w, margins : ndarray
        The weights after the last sweep, and the margins of these weights. Empty before the first sweep.
    """

    columns: Rows
    shares: ndarray
    n_sweeps: int = 0
    w: ndarray = NO_VALUES
    margins: ndarray = NO_VALUES


def column_epoch(
    block: Block,
    memory: ColumnMemory | None,
    w: ndarray,
    seed: int,
    loss: tuple[ClassWeight, int, bool],
    penalty: tuple[Penalty, float, float],
) -> tuple[ColumnMemory, ndarray, Summary]:
    """Evaluate the weights, and then take as many steps as there are weights. This is an `Epoch`.

    Parameters
    ----------
    block : Block
        The rows.
    memory : ColumnMemory or None
        The memory of the block, None before the first epoch.
    w : ndarray
        The weights.
    seed : int
        The seed of the random numbers.
    loss : tuple (ClassWeight, int, bool)
        The share of the total weight of a negative and of a positive row of weight 1; the number of rows of all blocks; and
        whether there is an intercept.
    penalty : tuple (Penalty, float, float)
        The penalty, lam, and the length of the first step.
    """
    (of_classes, n_samples, intercept), (term, lam, eta) = loss, penalty
    kept = memory or ColumnMemory(signed_columns(block), row_shares(block, of_classes))
    margins = kept.margins.copy() if np.array_equal(w, kept.w) else margins_of(block, w)
    summary, number = loss_and_dual_point(block, margins, kept.shares), kept.n_sweeps + 1
    if block.n_samples:
        shares = kept.shares * (n_samples / block.n_samples)
        steps = ColumnSteps(
            seed, term.has_corners, lam, step_length(term, eta, number), FIRST_STEP_FACTOR / np.sqrt(number)
        )
        labels, moved = (block.y.astype(np.float64), w) if intercept else (NO_VALUES, w[:-1])
        column_steps(kept.columns, labels, shares, steps, margins, moved)
    return kept._replace(n_sweeps=number, w=w.copy(), margins=margins), w, summary


class SCD(PrimalSolver):
    """Non-smooth stochastic coordinate descent on the hinge, along single features.

    After Tao, Zhu, Luo & Kong, "A new Comid-based stochastic coordinate descent method for non-smooth losses" (Acta Electronica
    Sinica 41(4), 2013), algorithm 3. A step draws a feature, computes the derivative g of the loss by its weight at the current
    margins, and minimises (8): ``w <- soften(w - eta_t g / 2, eta_t lam / 2)`` for L1, and for L2
    ``w <- (w - eta_t g / 2) / (1 + eta_t lam)``. The margins y (Xw) are kept and updated, so a step touches only the rows in
    which the feature is not 0.

    Differences from the paper:

    * The paper's appendix multiplies by eta_t where it has to divide.
    * In the paper's text, the steps for L1 grow like sqrt(t). Here they fall like 1 / sqrt(t).
    * Here t counts sweeps of n_features steps, not single steps. A feature is drawn about once per sweep, so its steps would
      otherwise shrink before it takes them.
    * The published step for L2, 1 / (lam t), is ``eta = 1 / lam``. On dense data, a smaller first step avoids a large overshoot.

    With one block, this is the published algorithm. With several blocks, each block sweeps over all features with the margins
    of its own rows, and `aucdist.papers.epochs` averages the weights. Each block also stores the columns of its rows, which
    doubles the memory for them.

    Parameters
    ----------
    eta, average
        As for `PrimalSolver`.
    """

    name = "scd"
    is_random = True

    def rounds(
        self, blocks: Blocks, lam: float, start: ndarray | None = None, *, seed: int, **objective: Any
    ) -> Iterator[Round]:
        """Yield the best weights so far, their exact objective, and the best lower bound so far.

        A round takes two passes, one for the sweep and one for the objective and the bound. With `average`, it takes half a
        pass more.

        Parameters
        ----------
        blocks : Blocks
            The rows.
        lam : float
            The regularisation strength.
        start : ndarray of shape (n_features,), or (n_features + 1,) with an intercept, optional
            The weights to start from, by default zero.
        seed : int
            The seed of the features that are drawn.
        **objective
            As for `PrimalState`. An intercept is drawn like a weight, and takes steps of 4 / sqrt(t).

        Yields
        ------
        Round
        """
        state = PrimalState(blocks, lam, start, self.average, **objective)
        loss, penalty = (
            (state.shares, blocks.n_samples, state.intercept),
            (state.penalty, lam, self.first_step(state, FIRST_STEP_FACTOR)),
        )
        # A weight is drawn about once in a sweep, and each of its changes changes the margins of the rows that have the
        # feature.
        moves = 4 * round(2.0 * state.rounding.over_columns / EPS)
        yield from state.rounds_of(partial(column_epoch, loss=loss, penalty=penalty), seed, moves)
