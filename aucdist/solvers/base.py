"""The loop that runs every solver: a solver yields rounds, the loop decides when to stop and records the history."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from aucdist.engine.blocks import Blocks
from aucdist.engine.steps import one_blas_thread
from aucdist.parameters import Constraints, check_constraints


class Status(StrEnum):
    """How a fit ended."""

    CONVERGED = "converged"
    """The relative gap is at or below `tol`."""
    MAX_PASSES = "max-passes"
    """The passes were used up first."""
    STATIONARY = "stationary"
    """An objective that is not convex has no slope left, as far as `tol` asks; nothing is known about weights elsewhere."""
    FINISHED = "finished"
    """The solver took all its steps, as one that takes a fixed number does; the gap is above `tol`."""
    DIVERGED = "diverged"
    """The objective is no longer finite: the steps are too long. The weights are those of the round before."""
    ROUNDING = "rounding"
    """Rounding errors are as large as what is left of the gap, or hide where to go on, or values contradict each other."""


REACHED = (Status.CONVERGED, Status.STATIONARY)
"""The status of a fit that has reached `tol`."""


@dataclass(frozen=True)
class Certificate:
    """The proof of how near the optimum the weights are: primal and dual value, gap, rounding and status.

    Attributes
    ----------
    primal : float
        The objective at the weights, evaluated over all rows or pairs.
    dual : float
        A lower bound on the objective at any weights whatever; 0 where nothing better is known.
    relative_gap : float
        The objective is above the best possible by at most this share of itself. It is ``(primal - dual) / primal`` where primal
        and dual are taken at the bad ends of their rounding errors, and 1 where the dual value says nothing then.
    rounding : float
        How far primal and dual value together may be from the numbers that exact arithmetic would give.
    slack : float
        0 where `primal` is the objective itself. Else it is an upper bound, and the objective is at least ``primal - slack``: so
        it is for the pairwise hinge of very many rows (`aucdist.solvers.pairs.cell_cuts`).
    """

    primal: float
    dual: float
    relative_gap: float
    status: Status
    rounding: float = 0.0
    slack: float = 0.0

    def as_dict(self) -> dict[str, float | str]:
        """Return the certificate as plain JSON values."""
        return {**asdict(self), "status": str(self.status)}


@dataclass(frozen=True)
class Round:
    """What a solver reports after a round.

    Attributes
    ----------
    w : ndarray of shape (n_features,)
        The best weights so far.
    primal, dual : float
        The objective at `w`, and the best lower bound so far.
    passes : int
        Passes over the data so far, one being X w and X'c.
    stationary : bool
        Whether an objective that is not convex has no slope left here, as far as the tolerance asks.
    primal_error, dual_error : float
        Bounds on the rounding errors of `primal` and `dual`.
    stuck : bool
        Whether rounding hides from the solver where to go on.
    slack : float
        As of `Certificate`.
    """

    w: np.ndarray
    primal: float
    dual: float
    passes: int
    stationary: bool = field(default=False, kw_only=True)
    primal_error: float = field(default=0.0, kw_only=True)
    dual_error: float = field(default=0.0, kw_only=True)
    stuck: bool = field(default=False, kw_only=True)
    slack: float = field(default=0.0, kw_only=True)

    @property
    def rounding(self) -> float:
        """How far primal and dual value together may be off."""
        return self.primal_error + self.dual_error

    @property
    def relative_gap(self) -> float:
        """The gap divided by the objective, both with the largest rounding errors; 1 if the bound is then of no use.

        No objective here is ever below 0, so that 0 is a bound in any case.
        """
        high, low = self.primal + self.primal_error, self.dual - self.dual_error
        # NaN gives 1.
        return max(0.0, high - low) / high if low > 0.0 and math.isfinite(high) else 1.0

    @property
    def impossible(self) -> bool:
        """Whether the values cannot be an objective and a lower bound on it, whatever the rounding."""
        error = self.rounding
        return not (-error <= self.primal < math.inf and self.dual <= self.primal + error and error < math.inf)


Record = dict[str, float]
Callback = Callable[[Record], None]


@dataclass(frozen=True)
class Solution:
    """The weights, their certificate, how they were reached (a record per round), and the solver's last round."""

    w: np.ndarray
    certificate: Certificate
    records: list[Record]
    passes: int
    last: Round

    @property
    def history(self) -> pd.DataFrame:
        """The rounds as a table, made when it is read: on small data making it takes a sixth of a fit."""
        return as_table(self.records)


def as_table(records: list[Record]) -> pd.DataFrame:
    """Return records of the same names as a table."""
    return pd.DataFrame({name: np.array([record[name] for record in records]) for name in records[0]})


class Solver(BaseEstimator, ABC):
    """An algorithm and its own parameters, which an estimator takes as its `solver`.

    For a new solver, write a subclass. It has what the solver can do, as the class attributes below; its parameters, as
    keywords of ``__init__`` with a row each in `_parameter_constraints`; and `rounds`. A solver that is faster for several
    lam together than for each of them also has ``path(blocks, **options)``. It returns an object whose ``rounds(lam)``
    starts from the solutions before, as `aucdist.solvers.pairs.cutting_planes.AllPairs` does.

    Attributes
    ----------
    name : str
        What configurations and tables call it.
    objective : str
        What it minimises: an estimator takes solvers of its own objective.
    takes : tuple of str
        Parameters of the estimator that only some of its solvers take, None standing for what all of them minimise. They are
        keywords of `rounds`.
    random : bool
        It draws at random: `rounds` takes the keyword ``seed``.
    takes_tol : bool
        It decides itself when there is no slope left: `rounds` takes the keyword ``tol``.
    sample_weight : bool
        It can weigh rows.
    ignores_zero_weight : bool
        A row of weight 0 is as good as absent, to the last bit: a fold can mask its rows instead of copying them.
    takes_codes : bool
        Its rounds are sums over rows that it sees through the row kernels only: the rows may be codes of a feature map, and into
        how many blocks they are cut changes its last bits only.
    penalties : tuple of str
        Those it can minimise with, of the values of the estimator's parameter ``penalty``; where there are several `rounds` takes
        the keyword ``penalty``.
    resumes : bool
        Its `start` is what the last round's ``resume()`` returned: weights alone are not enough to go on from.
    signs : bool
        `rounds` takes the keyword ``signs``, of the weights: see `aucdist.solvers.signs`.
    penalises_intercept : bool
        It fits the intercept as the weight of a column of ones.
    groups : bool
        It minimises over the pairs within groups, and of rows with grades: see `aucdist.solvers.pairs.groups`.
    """

    name: ClassVar[str]
    objective: ClassVar[str]
    takes: ClassVar[tuple[str, ...]] = ()
    random: ClassVar[bool] = False
    takes_tol: ClassVar[bool] = False
    sample_weight: ClassVar[bool] = True
    ignores_zero_weight: ClassVar[bool] = False
    takes_codes: ClassVar[bool] = False
    penalties: ClassVar[tuple[str, ...]] = ()
    resumes: ClassVar[bool] = False
    signs: ClassVar[bool] = False
    penalises_intercept: ClassVar[bool] = False
    groups: ClassVar[bool] = False
    _parameter_constraints: ClassVar[Constraints] = {}

    @abstractmethod
    def rounds(self, blocks: Blocks, *args: Any, **kwargs: Any) -> Iterator[Round]:
        """Minimise the objective, and yield a `Round` after each step until the loop stops.

        Parameters
        ----------
        *args
            `lam`, above 0, and what to start from: None, which means zero, weights, or what a round's ``resume()`` returned.
        **kwargs
            What the estimator's parameters say of the objective, and what the class attributes ask for: ``class_weight`` has
            factors for the weights of negative and positive rows, ``seed`` is of all that is drawn at random.
        """

    def check_parameters(self) -> None:
        """Check the solver's own parameters.

        Raises
        ------
        InputError
            Naming the parameter, its value and what is allowed.
        """
        check_constraints(self, self._parameter_constraints)

    def check_for(self, estimator: Any) -> None:
        """Check requirements of the estimator that the class attributes of the solver do not describe.

        Raises
        ------
        InputError
            For a combination that the solver cannot work with.
        """

    def as_plain(self) -> str | dict[str, Any]:
        """Return the solver as a configuration writes it: its name, or a mapping of its name and its parameters."""
        own = self.get_params()
        return {"name": self.name, **own} if own else self.name


def solver_table(*solvers: type[Solver]) -> dict[str, type[Solver]]:
    """Return the solvers of an estimator by their names.

    Raises
    ------
    TypeError
        If they minimise different objectives: another objective is another estimator.
    """
    if len({solver.objective for solver in solvers}) != 1:
        raise TypeError(f"{', '.join(solver.__name__ for solver in solvers)} minimise different objectives")
    return {solver.name: solver for solver in solvers}


def solve(rounds: Iterator[Round], *, tol: float, max_passes: int, callback: Callback | None = None) -> Solution:
    """Run a solver until its relative gap is at most `tol`, its gradient is 0, or its passes are used up.

    BLAS has one thread meanwhile: see `aucdist.engine.steps`.

    Parameters
    ----------
    rounds : iterator of Round
        The solver. One that ends by itself took all its steps; one whose objective is not finite has diverged, and the round
        before is the outcome. The first round's is finite. A round whose values are impossible, or whose gap is no larger than
        its rounding errors though those are above the tolerance, ends the fit with the status ``rounding``.
    tol : float
        On the relative gap.
    callback : callable, optional
        Called after each round with the history's newest row: round, passes, seconds, primal, dual, relative_gap.
    """
    records: list[Record] = []
    start = time.perf_counter()
    status = Status.FINISHED
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
                }
            )
            if callback is not None:
                callback(records[-1])
            if state.impossible:
                status = Status.ROUNDING
                break
            if gap <= tol:
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
    certificate = Certificate(state.primal, state.dual, gap, status, state.rounding, state.slack)
    return Solution(state.w, certificate, records, state.passes, state)
