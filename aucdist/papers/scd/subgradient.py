"""Subgradient methods for the hinge: COMID, RDA and PSA along all rows, Pegasos along single rows.

Tao, Zhu, Luo & Kong (2013) compare their Non-smooth SCD (`aucdist.papers.scd.primal`) with these methods. A round of the first
three is one step along the subgradient g of the loss over all rows, and one reduction. With eta_t of `PrimalState.length`:

``comid``
    Algorithm 2, with the closed forms of (8): ``w <- soften(w - eta_t g / 2, eta_t lam / 2)`` for L1, ``w <- (w - eta_t g / 2) /
    (1 + eta_t lam)`` for L2. The paper's appendix multiplies by eta where it has to divide.
``rda``
    Xiao, "Dual averaging methods for regularized stochastic learning and online optimization" (JMLR 11, 2010), with h =
    |w|^2 / 2. With the mean G of all subgradients so far: ``w <- -(eta sqrt(t) / 2) soften(G, lam)`` for L1, his gamma being 2 /
    eta; ``w <- -t G / (2 lam t + 2 / eta - 2 lam)`` for L2, where eta = 1 / lam makes it his, without h.
``psa``
    ``w <- the point of the L1 ball nearest to w - eta_t g / 2``, after Duchi et al., "Efficient projections onto the l1-ball for
    learning in high dimensions" (ICML 2008). It minimises the loss within the ball. Rounds report the objective with the L1
    penalty, whose minimum it finds if the radius equals the L1 norm of the minimiser.
``pegasos``
    Shalev-Shwartz, Singer & Srebro, "Pegasos: primal estimated sub-gradient solver for SVM" (ICML 2007), figure 1 with k = 1 and
    the projection onto the ball that contains the minimum. The paper's lambda is 2 `lam`. A round takes n_samples steps; several
    blocks are averaged by `aucdist.papers.epochs`.

The published steps for L2 are those with eta = 1 / lam. On dense data their first steps overshoot so far that the method needs
very many rounds to come back. The intercept moves against its own subgradient times 2 / sqrt(t), in Pegasos times 1 / (2
sqrt(t)); in RDA, against the sum of its subgradients times 2 / sqrt(t).
"""

import math
from abc import abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy import ndarray

from aucdist.data.block import Block, row_squares
from aucdist.engine.blocks import Blocks, Summary
from aucdist.errors import InputError
from aucdist.papers.scd.kernels import PegasosSteps, pegasos_steps
from aucdist.papers.scd.primal import ClassWeight, PrimalSolver, PrimalState, evaluate_weights, row_shares
from aucdist.parameters import SWITCH, above_0, keyword_parameters
from aucdist.solvers.base import Round, Solver

FIRST_STEP_FACTOR = 1.0
"""The factor for `PrimalSolver.first_step`, where all weights move at once."""

FACTOR_OF_MEANS = 4.0
"""The factor for RDA with L1, which can be larger because the mean of all subgradients varies less than a single one."""


def free_step(t: int) -> float:
    """Return the step length of the intercept in step t."""
    return 2.0 / math.sqrt(t)


def moved_intercept(state: PrimalState) -> float:
    """Return the intercept after the step of this round along its own subgradient."""
    return float(state.w[-1] - free_step(state.t) * state.slope[-1])


def onto_ball(w: ndarray, radius: float) -> ndarray:
    """Return the projection of w onto the L1 ball of this radius: figure 1 of Duchi et al. (2008), which sorts the entries."""
    sizes = np.sort(np.abs(w))[::-1]
    if sizes.sum() <= radius:
        return w
    widths = (np.cumsum(sizes) - radius) / np.arange(1.0, len(w) + 1.0)
    return np.sign(w) * np.maximum(np.abs(w) - widths[sizes > widths][-1], 0.0)


class SubgradientSolver(PrimalSolver):
    """A solver that takes one step along the subgradient of all rows in each round. A subclass defines the step."""

    accepts_codes = True

    factors: ClassVar[dict[str, float]] = {"l1": FIRST_STEP_FACTOR, "l2": FIRST_STEP_FACTOR}
    """The factor of `first_step` with each penalty."""

    @abstractmethod
    def step(self, state: PrimalState) -> ndarray:
        """Return the weights after the step of this round, the intercept last.

        Parameters
        ----------
        state : PrimalState
            The current weights and subgradients.

        Returns
        -------
        ndarray of shape (n_features + 1,), float64
        """

    def rounds(self, blocks: Blocks, lam: float, start: ndarray | None = None, **objective: Any) -> Iterator[Round]:
        """Yield the best weights so far, their exact objective, and the best lower bound so far.

        A round takes one pass. With `average`, it takes half a pass more.

        Parameters
        ----------
        blocks : Blocks
            The rows.
        lam : float
            The regularisation strength.
        start : ndarray of shape (n_features,), or (n_features + 1,) with an intercept, optional
            The weights to start from, by default zero. For `RDA`, only the subgradient there matters.
        **objective
            As for `PrimalState`. `PSA` has the penalty L1 only.

        Yields
        ------
        Round
        """
        if len(self.penalties) == 1:
            objective["penalty"] = self.penalties[0]
        state = PrimalState(blocks, lam, start, self.average, **objective)
        state.eta = self.first_step(state, self.factors[state.penalty.name])
        while True:
            yield state.round_at(blocks.sum(evaluate_weights, state.w, state.shares))
            state.w = self.step(state)


class COMID(SubgradientSolver):
    """Steps along the subgradient of all rows: batch COMID, algorithm 2 of Tao, Zhu, Luo & Kong (2013).

    Parameters
    ----------
    eta, average
        As for `PrimalSolver`.
    """

    name = "comid"

    def step(self, state: PrimalState) -> ndarray:
        """Return the weights after the step of this round, as `SubgradientSolver.step`."""
        half, penalty = 0.5 * state.length, state.penalty
        features = penalty.with_lam(half * penalty.lam).minimiser(half * state.slope[:-1], state.w[:-1], 1.0)
        return np.append(features, moved_intercept(state))


class RDA(SubgradientSolver):
    """Steps along the mean of all subgradients so far: regularised dual averaging (Xiao, JMLR 11, 2010).

    Parameters
    ----------
    eta, average
        As for `PrimalSolver`.
    """

    name = "rda"

    factors: ClassVar[dict[str, float]] = {"l1": FACTOR_OF_MEANS, "l2": FIRST_STEP_FACTOR}

    def step(self, state: PrimalState) -> ndarray:
        """Return the weights after the step of this round, as `SubgradientSolver.step`."""
        penalty, eta, t, total = state.penalty, state.eta, state.t, state.slopes[:-1]
        if penalty.has_corners:
            features = 0.5 * eta * np.sqrt(t) * penalty.minimiser(total / t, np.zeros_like(total), 1.0)
        else:
            features = -total / (penalty.lam * t + 2.0 / eta - penalty.lam)
        return np.append(features, -free_step(t) * state.slopes[-1])


@keyword_parameters(radius=above_0(optional=True))
class PSA(SubgradientSolver):
    """Steps along the subgradient of all rows, projected onto an L1 ball.

    Parameters
    ----------
    radius : float
        The largest sum of absolute weights, such as that of another solver's ``coef_``. This parameter is required.
    eta, average
        As for `PrimalSolver`.
    """

    name = "psa"
    penalties = ("l1",)

    radius: float | None = None

    def check_parameters(self) -> None:
        """Check the parameters of the solver, of which the radius is required."""
        super().check_parameters()
        if self.radius is None:
            raise InputError(
                "solver 'psa' needs `radius`, the largest sum of absolute weights, such as that of another solver's coef_"
            )

    def step(self, state: PrimalState) -> ndarray:
        """Return the weights after the step of this round, as `SubgradientSolver.step`."""
        assert self.radius is not None  # `check_parameters` does not accept None
        features = onto_ball((state.w - 0.5 * state.length * state.slope)[:-1], self.radius)
        return np.append(features, moved_intercept(state))


PegasosMemory = tuple[int, ndarray]
"""The steps that a block has taken, and the squared lengths of its rows."""


def pegasos_epoch(
    block: Block,
    memory: PegasosMemory | None,
    w: ndarray,
    seed: int,
    loss: tuple[ClassWeight, int],
    steps: PegasosSteps,
) -> tuple[PegasosMemory, ndarray, Summary]:
    """Evaluate the weights, and then take as many steps as the block has rows. This is an `Epoch`.

    The length of a step depends on the number of steps that the block has taken before.

    Parameters
    ----------
    block : Block
        The rows.
    memory : PegasosMemory or None
        The memory of the block, None before the first epoch.
    w : ndarray
        The weights.
    seed : int
        The seed of the random numbers.
    loss : tuple (ClassWeight, int)
        The share of the total weight of a negative and of a positive row of weight 1; and the number of rows of all blocks.
    steps : PegasosSteps
        The settings of the steps.
    """
    n, (taken, squares), (shares, n_samples) = block.n_samples, memory or (0, row_squares(block.rows)), loss
    summary = evaluate_weights(block, w, shares)
    if n:
        steps = steps._replace(seed=seed, n_steps=n, time=taken)
        pegasos_steps(block.rows, block.y, n_samples * row_shares(block, shares), squares, steps, w)
    return (taken + n, squares), w, summary


@keyword_parameters(average=SWITCH)
class Pegasos(Solver):
    """Steps along single rows (Shalev-Shwartz, Singer & Srebro, ICML 2007).

    Parameters
    ----------
    average : bool, default=False
        Whether to return the average of the weights at the ends of the rounds, in which round t counts t times.
    """

    name = "pegasos"
    objective = "hinge"
    is_random = True
    penalties = ("l2",)

    average: bool = False

    def rounds(
        self, blocks: Blocks, lam: float, start: ndarray | None = None, *, seed: int, **objective: Any
    ) -> Iterator[Round]:
        """Yield the best weights so far, their exact objective, and the best lower bound so far.

        A round takes two passes, one for the steps and one for the objective and the bound. With `average`, it takes half a
        pass more.

        Parameters
        ----------
        blocks : Blocks
            The rows.
        lam : float
            The regularisation strength.
        start : ndarray of shape (n_features,), or (n_features + 1,) with an intercept, optional
            The weights to start from. The first step is so long that only the intercept and the margin of the first row matter.
        seed : int
            The seed of the rows that are drawn.
        **objective
            As for `PrimalState`, without the penalty.

        Yields
        ------
        Round
        """
        state = PrimalState(blocks, lam, start, self.average, **objective)
        plan = PegasosSteps(0, 0, lam, 0, float(state.intercept), np.sqrt(0.5 / lam))
        yield from state.rounds_of(partial(pegasos_epoch, loss=(state.shares, blocks.n_samples), steps=plan), seed, 0)
