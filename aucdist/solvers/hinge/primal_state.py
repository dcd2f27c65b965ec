"""What the primal solvers of the hinge have in common: the loss and its gradient on the blocks, and what is kept of a course.

Weights are held in one vector, the intercept last: it stays 0 where there is none. These solvers step along subgradients, so
the objective goes up and down, and the best weights so far count, or the best average so far. The rows whose margin is below 1
make a dual point in each round; the average of the points, the t-th counting t times, gives a bound that rises slowly, and with
an L1 penalty very slowly.
"""

import math

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary
from aucdist.errors import InputError, unknown
from aucdist.kernels.rows import CsrRows, accumulate, project
from aucdist.objectives.hinge import PENALTIES, ClassWeight, DualPoint, penalty_of, shares_of
from aucdist.solvers.base import Round
from aucdist.solvers.rounding import EPS, SLACK, Rounding, higher

# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def row_shares(block: Block, shares: ClassWeight) -> np.ndarray:
    """Return the rows' shares of the whole weight, given those of rows of weight 1 of both classes."""
    return block.weights() * np.where(block.y > 0, shares[1], shares[0])


def margins_of(block: Block, w: np.ndarray) -> np.ndarray:
    """Return ``y (X w + intercept)``."""
    scores = np.empty(block.n_samples)
    project(block.rows, w, scores)
    return block.y * (scores + w[-1])


def mean_hinge(shares: np.ndarray, margins: np.ndarray) -> float:
    """Return the sum of the rows' losses, each times its share. A BLAS product would depend on how many threads it has."""
    return float((shares * np.maximum(1.0 - margins, 0.0)).sum())


def loss_at(block: Block, memory: None, w: np.ndarray, shares: ClassWeight) -> tuple[None, Summary]:
    """Find the loss."""
    return None, {"loss": mean_hinge(row_shares(block, shares), margins_of(block, w))}


def measure(block: Block, memory: None, w: np.ndarray, shares: ClassWeight) -> tuple[None, Summary]:
    """Find the loss and the dual point of the rows whose margin is below 1."""
    margins, active = margins_of(block, w), row_shares(block, shares)
    loss = mean_hinge(active, margins)
    active[margins >= 1.0] = 0.0
    totals, sums = np.zeros(2), np.zeros((2, block.n_features))
    for k, label in enumerate((-1, 1)):
        mine = np.flatnonzero(block.y == label)
        totals[k] = active[mine].sum()
        accumulate(block.rows, mine, active[mine], sums[k])
    return None, {"loss": loss, "point": DualPoint(totals, sums)}


def mean_squares(block: Block, memory: None, shares: ClassWeight) -> tuple[None, Summary]:
    """Find the features' mean squares."""
    rows, own = block.rows, row_shares(block, shares)
    if isinstance(rows, CsrRows):
        squares = np.repeat(own, np.diff(rows.offsets)) * rows.values.astype(np.float64) ** 2
        return None, {"squares": np.bincount(rows.indices, squares, minlength=block.n_features)}
    return None, {"squares": np.einsum("i,ij,ij->j", own, rows.values, rows.values, dtype=np.float64)}


# ---- the course: kept by the client -----------------------------------------------------------------------------------


class PrimalState:
    """Where a primal solver stands, and the best it has seen.

    Parameters
    ----------
    blocks : Blocks
    lam : float
        Above 0.
    start : ndarray of shape (n_features,), or (n_features + 1,) with an intercept, or None
        None is zero.
    penalty : {"l1", "l2"}
    intercept : bool
        Not penalised.
    class_weight : tuple of float
        What the weights of the negative and of the positive rows are multiplied with.
    average : bool
        Whether the average of the weights so far, those of round t counting t times, takes their place in what is shown.

    Attributes
    ----------
    w : ndarray of shape (n_features + 1,), float64
        Where the solver stands; the solver sets it.
    shares : tuple of float
        The share of the whole weight of a negative and of a positive row of weight 1.
    passes : float
        Over the data, so far; the solver adds its own.
    moves : int
        Of how many moves the margins are the sum, where they are moved along; the solver counts them.
    """

    def __init__(
        self, blocks: Blocks, lam: float, start: np.ndarray | None, penalty: str, intercept: bool,
        class_weight: ClassWeight, average: bool,
    ):  # fmt: skip
        if penalty not in PENALTIES:
            raise unknown("penalty", penalty, PENALTIES)
        n_weights = blocks.n_features + intercept
        if start is not None and np.shape(start) != (n_weights,):
            raise InputError(f"weights of shape {np.shape(start)} to start from; ({n_weights},) is needed")
        self.rounding = Rounding.of(blocks)
        self.blocks, self.lam = blocks.fresh(), lam
        self.penalty, self.intercept, self.average = penalty, intercept, average
        self.shares = shares_of(blocks.weight_neg, blocks.weight_pos, class_weight)
        self.w = np.zeros(blocks.n_features + 1)
        if start is not None:
            self.w[:n_weights] = start
        self.passes, self.moves, self._reach = 0.0, 0, 0.0
        self._round, self._bound, self._best, self._best_w = 0, (0.0, 0.0), math.inf, self.w
        self._best_error = 0.0
        self._mean = np.zeros_like(self.w)
        self._point = DualPoint(np.zeros(2), np.zeros((2, blocks.n_features)))
        if intercept and start is None:
            self._consider_no_features()

    def _consider_no_features(self) -> None:
        """Without features the best intercept is 1 for the heavier class, whose loss is 0 then; the other rows' is 2."""
        neg, pos = self.shares[0] * self.blocks.weight_neg, self.shares[1] * self.blocks.weight_pos
        alone = np.zeros_like(self.w)
        alone[-1] = 1.0 if pos >= neg else -1.0
        self._best, self._best_w = 2.0 * min(neg, pos), alone
        self._best_error = 2.0 * EPS * self._best

    def value(self, loss: float, w: np.ndarray) -> float:
        """Return the objective at w, whose loss is given."""
        return loss + penalty_of(w[:-1], self.penalty, self.lam)

    def next_round(self) -> float:
        """Begin a round at `w`; return the weight of its place in averages: 2 / (t + 1), with which place t counts t times."""
        self._round += 1
        share = 2.0 / (self._round + 1)
        if self.average:
            self._mean = self._mean + share * (self.w - self._mean)
        return share

    def end_round(self, loss: float, point: DualPoint, share: float) -> Round:
        """Return what the solver yields.

        Parameters
        ----------
        loss : float
            At `w`, or with `average` at the average.
        point : DualPoint
            At `w`.
        share : float
            From `next_round`.
        """
        self._point = self._point.towards(point, share)
        bound = self._point.lower_bound(self.penalty, self.lam, intercept=self.intercept)
        self._bound = higher(self._bound, (bound, self._bound_error(bound)))
        shown = self._mean if self.average else self.w
        self._reach = max(self._reach, self.rounding.reach(shown[:-1]) + abs(float(shown[-1])))
        if self.value(loss, shown) < self._best:
            self._best, self._best_w = self.value(loss, shown), shown.copy()
            self._best_error = self._primal_error(self._best)
        w = self._best_w if self.intercept else self._best_w[:-1]
        passes = math.ceil(self.passes)
        return Round(w, self._best, self._bound[0], passes, primal_error=self._best_error, dual_error=self._bound[1])

    def _primal_error(self, value: float) -> float:
        """Return a bound on the rounding error of the objective: that of the scores, of those moved along, and of the sums."""
        moved = EPS * self.moves * (1.0 + self._reach)
        return self.rounding.over_columns * self._reach + moved + 2.0 * (self.rounding.over_rows + EPS * SLACK) * value

    def _bound_error(self, bound: float) -> float:
        """Return a bound on the rounding error of the last lower bound."""
        total, v = self._point.balanced(intercept=self.intercept)
        share = 3.0 * self.rounding.over_rows + EPS * self._round
        error = (share * total) * self.rounding.largest
        if self.penalty == "l1":
            return bound * (share + float(error.max(initial=0.0)) / self.lam)
        return share * total + self.rounding.half_square(v, error) / (2.0 * self.lam)

    def evaluate(self) -> tuple[Round, np.ndarray]:
        """Do a round at `w` by looking at the blocks, one pass or with an average one and a half; return the gradient, too."""
        share = self.next_round()
        told = self.blocks.reduce(measure, self.w, self.shares)
        loss, point = float(told["loss"]), told["point"]
        if self.average:
            loss = float(self.blocks.reduce(loss_at, self._mean, self.shares)["loss"])
        self.passes += 1.5 if self.average else 1.0
        return self.end_round(loss, point, share), point.gradient()

    def usual_eta(self, factor: float) -> float:
        """Return the factor over the mean of the features' mean squares, each counting by itself; at most 1/lam for L2.

        A feature's mean square is how much the loss may bend along it. On five data sets, sparse and dense, the factors in use
        came within four times of the best step.
        """
        squares = self.blocks.reduce(mean_squares, self.shares)["squares"]
        total = float(squares @ squares)
        eta = factor * float(squares.sum()) / total if total > 0.0 else 1.0
        return min(eta, 1.0 / self.lam) if self.penalty == "l2" else eta

    def step(self, eta: float, t: int) -> float:
        """Return the length of step t = 1, 2, ...: ``eta / sqrt(t)`` for L1, and for L2 ``1 / (lam (t - 1) + 1 / eta)``."""
        return eta / math.sqrt(t) if self.penalty == "l1" else 1.0 / (self.lam * (t - 1) + 1.0 / eta)
