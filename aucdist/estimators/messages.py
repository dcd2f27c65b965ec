"""What the user should be warned of after a fit."""

import numbers
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from aucdist.engine.blocks import Blocks
from aucdist.errors import InputError
from aucdist.estimators.conditioning import diagnosis
from aucdist.estimators.tables import names_of_features
from aucdist.solvers.base import REACHED, Callback, Record, Solution, Status

REASONS = {
    Status.MAX_PASSES: "max_passes was reached",
    Status.FINISHED: "the solver took all its steps",
    Status.DIVERGED: "the steps diverged in the next round, as eta is too long: the weights are those",
    Status.ROUNDING: "rounding errors are as large as what is left of the gap, or hide where to go on,",
}


class RankingWarning(UserWarning):
    """The scores rank the training rows worse than chance."""


def warnings_of_fit(model: Any, blocks: Blocks) -> Iterator[Warning]:
    """Yield what the user should be warned of after a fit: an early end, and why; scores that rank worse than chance."""
    yield from _convergence_warnings(model)
    if model.monotone is not None and not getattr(model, "coef_", np.ones(1)).any():
        yield UserWarning(
            "the directions in `monotone` leave no weights but 0: each feature would have to fall where it may only rise, or "
            "the other way round; all scores are equal"
        )
    if blocks.has_groups or blocks.has_grades:  # two rows of different groups may be in any order
        return
    area = model._training_auc(blocks)
    if area < 0.5:
        yield RankingWarning(
            f"the AUC of the training rows is {area:.3g}, worse than chance: the scores rank negative rows above positive "
            "ones. Another lam or another solver is needed, or other rows"
        )


def _convergence_warnings(model: Any) -> Iterator[ConvergenceWarning]:
    c, ranges = model.certificate_, model.__dict__.pop("_fitted_ranges", None)
    if c.status in REACHED:
        return
    # A feature map scales what it makes.
    known = ranges is not None and not hasattr(model, "feature_map_")
    fault = diagnosis(ranges, names_of_features(model)) if known else None
    proved = (
        f"primal and dual value are sure to {c.rounding:.3g} only"
        if c.status == Status.ROUNDING
        else "the certificate still holds for what was reached"
    )
    yield ConvergenceWarning(
        f"{REASONS[c.status]} after {model.n_passes_} passes at a relative gap of {c.relative_gap:.3g} "
        f"(primal {c.primal:.6g}, dual {c.dual:.6g}), above tol={model.tol:g}; {proved}"
        + ("" if fault is None else f". {fault}")
    )


@dataclass(frozen=True)
class Verbosity:
    """What `verbose` may be: False or 0, True or 1, or an integer above."""

    def check(self, name: str, value: Any) -> None:
        """Raise an InputError unless the value is allowed."""
        if not isinstance(value, numbers.Integral | np.bool_) or value < 0:
            raise InputError(f"{name} is {value!r}; an integer at least 0, True or False is needed")


class RoundPrinter:
    """Prints rounds on stdout while a fit runs, and passes each to another callback.

    `name`: of the estimator, before each line.
    `every`: every round is printed, and otherwise the rounds 1 to 10, 20, 30, ..., 100, 200, ...
    """

    def __init__(self, name: str, every: bool, callback: Callback | None = None):
        self._name, self._every, self._callback = name, every, callback
        self._printed = 0

    def __call__(self, record: Record) -> None:
        """Print a round, or leave it out."""
        number = int(record["round"])
        if self._every or number % 10 ** (len(str(number)) - 1) == 0:
            self._print(record)
        if self._callback is not None:
            self._callback(record)

    def end(self, solution: Solution) -> None:
        """Print the last round, if it was left out, and how the fit ended."""
        last, certificate = solution.records[-1], solution.certificate
        if self._printed != last["round"]:
            self._print(last)
        print(f"[{self._name}] {certificate.status} after {solution.passes} passes, gap {certificate.relative_gap:.2e}")

    def _print(self, record: Record) -> None:
        self._printed = int(record["round"])
        print(
            f"[{self._name}] round {self._printed}  passes {int(record['passes'])}  primal {record['primal']:.6g}  "
            f"dual {record['dual']:.6g}  gap {record['relative_gap']:.2e}",
            flush=True,
        )
