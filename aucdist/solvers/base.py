"""The loop that runs every solver. A solver yields rounds, and the loop decides when to stop and records the history."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, asdict, dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from aucdist.engine.blocks import Blocks
from aucdist.engine.steps import one_blas_thread
from aucdist.parameters import check_constraints, frozen
from aucdist.text import certificate_text


class Status(StrEnum):
    """How a fit ended."""

    CONVERGED = "converged"
    """The relative gap is at or below `tol`."""
    MAX_PASSES = "max-passes"
    """The passes were used up before the gap reached `tol`."""
    STATIONARY = "stationary"
    """The gradient of an objective that is not convex is 0 up to `tol`. Nothing is known about other weights."""
    MAX_STEPS = "max-steps"
    """A solver with a fixed number of steps has taken all of them, and the gap is above `tol`."""
    DIVERGED = "diverged"
    """The objective is no longer finite, because the steps are too long. The weights are those of the round before."""
    ROUNDING = "rounding"
    """Rounding errors are as large as the remaining gap, or hide the next step, or values contradict each other."""


REACHED = (Status.CONVERGED, Status.STATIONARY)
"""The status of a fit that has reached `tol`."""


@dataclass(frozen=True)
class Certificate:
    """A bound on how far the objective is above its minimum, and why the fit ended.

    Attributes
    ----------
    primal : float
        The objective at the weights, evaluated over all rows or pairs.
    dual : float
        A lower bound on the objective at any weights; 0 if no better bound is known.
    relative_gap : float
        The objective exceeds its minimum by at most this share of the objective. It is ``(primal - dual) /
        primal``, evaluated at the ends of the rounding intervals that make it largest, and 1 if the bound is then not
        above 0.
    status : Status
        Why the fit ended: ``converged``, ``max-passes``, ``stationary``, ``max-steps``, ``diverged`` or ``rounding``. It compares
        equal to the string.
    rounding : float
        A bound on how far primal and dual value together may be from the numbers that exact arithmetic would give.
    slack : float
        0 if `primal` is the objective itself. Otherwise `primal` is an upper bound, and the objective is at least
        ``primal - slack``. This is so for the pairwise hinge of very many rows (`aucdist.pairs.cell_cuts`).
    """

    primal: float
    dual: float
    relative_gap: float
    status: Status
    rounding: float = 0.0
    slack: float = 0.0

    def __repr__(self) -> str:
        return (
            f"<Certificate: the objective, {self.primal:.5g}, is {certificate_text(self.as_dict())} "
            f"(lower bound {self.dual:.5g}, status {self.status})>"
        )

    def as_dict(self) -> dict[str, float | str]:
        """Return the certificate as plain JSON values."""
        return {**asdict(self), "status": str(self.status)}


@frozen
class Round:
    """What a solver reports after a round.

    Attributes
    ----------
    w : ndarray of shape (n_features,)
        The best weights so far.
    primal, dual : float
        The objective at `w`, and the best lower bound so far.
    passes : int
        The number of passes over the data so far. One pass computes the scores of all rows and a gradient.
    stationary : bool
        Whether the gradient of an objective that is not convex is 0 here, up to the tolerance.
    primal_error, dual_error : float
        Bounds on the rounding errors of `primal` and `dual`.
    stuck : bool
        Whether rounding errors hide the next step from the solver.
    unsettled : bool
        Whether the solver should continue even if the gap is small enough, because all weights are 0.
    slack : float
        As in `Certificate`.
    measures : mapping of str to float
        Further columns of the history.
    """

    w: np.ndarray
    primal: float
    dual: float
    passes: int
    _: KW_ONLY
    stationary: bool = False
    primal_error: float = 0.0
    dual_error: float = 0.0
    stuck: bool = False
    unsettled: bool = False
    slack: float = 0.0
    measures: Mapping[str, float] = field(default_factory=dict)

    @property
    def rounding(self) -> float:
        """A bound on the rounding error of primal and dual value together."""
        return self.primal_error + self.dual_error

    @property
    def relative_gap(self) -> float:
        """The gap divided by the objective, both with the largest rounding errors.

        It is 1 if the lower bound is then not above 0.

        No objective is below 0, so 0 is always a lower bound.
        """
        high, low = self.primal + self.primal_error, self.dual - self.dual_error
        # The conditions are written such that NaN gives 1.
        return max(0.0, high - low) / high if low > 0.0 and math.isfinite(high) else 1.0

    @property
    def impossible(self) -> bool:
        """Whether the values cannot be an objective and a lower bound on it, even with rounding errors."""
        error = self.rounding
        return not (-error <= self.primal < math.inf and self.dual <= self.primal + error and error < math.inf)


Record = dict[str, float]
Callback = Callable[[Record], None]


@frozen
class Solution:
    """The weights, their certificate, the record of each round, and the last round of the solver."""

    w: np.ndarray
    certificate: Certificate
    records: list[Record]
    passes: int
    last: Round

    @property
    def history(self) -> pd.DataFrame:
        """The rounds as a table. It is created when it is read, because this takes a sixth of a fit to small data."""
        return as_table(self.records)


def as_table(records: list[Record]) -> pd.DataFrame:
    """Return records with the same keys as a table."""
    return pd.DataFrame({name: np.array([record[name] for record in records]) for name in records[0]})


class Solver(BaseEstimator, ABC):
    """An algorithm and its own parameters, which an estimator takes as its `solver`.

    For a new solver, write a subclass. It defines `rounds`, the class attributes below, which say what the solver can do, and its
    parameters, which are keywords of ``__init__`` and have a row each in `_parameter_constraints`. A solver that can fit several
    values of lam faster than one by one also defines ``path(blocks, **options)``. It returns an object whose ``rounds(lam)``
    starts from the solutions before, as `aucdist.pairs.cutting_planes.AllPairs` does.

    Attributes
    ----------
    name : str
        The name in configurations and tables.
    objective : str
        What the solver minimises. An estimator accepts the solvers of its own objective.
    takes : tuple of str
        Parameters of the estimator that only some of its solvers accept. With the value None, a parameter selects
        the objective that all solvers share. They are keywords of `rounds`.
    is_random : bool
        Whether the solver draws at random. `rounds` then has the keyword ``seed``.
    uses_tol : bool
        Whether the solver itself decides that the gradient is small enough. `rounds` then has the keyword ``tol``.
    accepts_weights : bool
        Whether the solver accepts sample weights.
    ignores_zero_weight : bool
        Whether a row of weight 0 gives the same bits as no row, so that a fold can mask its rows instead of copying
        them.
    accepts_codes : bool
        Whether the rounds are sums over rows that are read by the row kernels only. The rows may then be codes of a
        feature map, and the number of blocks changes only the last bits.
    penalties : tuple of str
        The values of the estimator's parameter ``penalty`` that the solver accepts. If there are several, `rounds` has
        the keyword ``penalty``.
    accepts_start : bool
        Whether the rounds can start from weights, as `warm_start` asks for.
    accepts_signs : bool
        Whether `rounds` has the keyword ``signs``, the signs of the weights: see `aucdist.solvers.signs`.
    penalises_intercept : bool
        Whether the intercept is fitted as the weight of a column of ones.
    accepts_groups : bool
        Whether the solver accepts groups and grades: see `aucdist.pairs.groups`.
    """

    name: ClassVar[str]
    objective: ClassVar[str]
    takes: ClassVar[tuple[str, ...]] = ()
    is_random = False
    uses_tol = False
    accepts_weights = True
    ignores_zero_weight = False
    accepts_codes = False
    penalties: ClassVar[tuple[str, ...]] = ()
    accepts_start = True
    accepts_signs = False
    penalises_intercept = False
    accepts_groups = False

    @abstractmethod
    def rounds(self, blocks: Blocks, *args: Any, **kwargs: Any) -> Iterator[Round]:
        """Minimise the objective, and yield a `Round` after each step until the loop stops.

        Parameters
        ----------
        *args
            `lam`, above 0, and the weights to start from, or None for zero.
        **kwargs
            The parameters of the estimator that define the objective, and the keywords that the class attributes name.
            ``class_weight`` has factors for the weights of negative and positive rows, and ``seed`` is the seed of
            everything that is drawn at random.

        Yields
        ------
        Round
        """

    def check_parameters(self) -> None:
        """Check the parameters of the solver.

        Raises
        ------
        InputError
            Naming the parameter, its value and what is allowed.
        """
        check_constraints(self)

    def check_for(self, estimator: Any) -> None:
        """Check requirements of the estimator that the class attributes of the solver do not describe.

        Raises
        ------
        InputError
            If the solver does not support this combination.
        """


def solver_table(*solvers: type[Solver]) -> dict[str, type[Solver]]:
    """Return the solvers of an estimator by their names.

    Raises
    ------
    TypeError
        If they minimise different objectives, because each objective has its own estimator.
    """
    if len({solver.objective for solver in solvers}) != 1:
        raise TypeError(f"{', '.join(solver.__name__ for solver in solvers)} minimise different objectives")
    return {solver.name: solver for solver in solvers}


def solve(rounds: Iterator[Round], *, tol: float, max_passes: int, callback: Callback | None = None) -> Solution:
    """Run a solver until its relative gap is at most `tol`, its gradient is 0, or its passes are used up.

    Meanwhile, BLAS has one thread: see `aucdist.engine.steps`.

    Parameters
    ----------
    rounds : iterator of Round
        The rounds of a solver. A solver that stops by itself has taken all its steps. If the objective is not finite, the
        solver has diverged, and the previous round is the result. The first round must be finite. The status is ``rounding``
        if the values of a round are impossible, or if its gap is no larger than its rounding errors and these exceed the
        tolerance.
    tol : float
        The tolerance on the relative gap.
    callback : callable, optional
        Called after each round with a copy of the newest row of the history: round, passes, seconds, primal, dual,
        relative_gap, and further columns of the solver.

    Returns
    -------
    Solution

    Raises
    ------
    ValueError
        If the solver yields no round.
    """
    records: list[Record] = []
    start = time.perf_counter()
    status = Status.MAX_STEPS
    with one_blas_thread:
        for number, newest in enumerate(rounds, start=1):
            if number > 1 and not math.isfinite(newest.primal):
                status = Status.DIVERGED
                break
            state = newest
            gap = state.relative_gap
            records.append(
                {
                    "round": number,
                    "passes": state.passes,
                    "seconds": time.perf_counter() - start,
                    "primal": state.primal,
                    "dual": state.dual,
                    "relative_gap": gap,
                    **state.measures,
                }
            )
            if callback is not None:
                callback(dict(records[-1]))
            if state.impossible:
                status = Status.ROUNDING
                break
            if gap <= tol and (state.passes >= max_passes or not state.unsettled):
                status = Status.CONVERGED
                break
            if state.stuck or (state.dual > 0.0 and state.primal - state.dual <= state.rounding):
                status = Status.ROUNDING
                break
            if state.stationary:
                status = Status.STATIONARY
                break
            if state.passes >= max_passes:
                status = Status.MAX_PASSES
                break
    if not records:
        raise ValueError("the solver yielded no round: it must yield its start")
    certificate = Certificate(state.primal, state.dual, gap, status, state.rounding, state.slack)
    return Solution(state.w, certificate, records, state.passes, state)
