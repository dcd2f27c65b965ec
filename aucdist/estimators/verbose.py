"""The lines that a fit prints where `verbose` asks for them."""

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np

from aucdist.errors import InputError
from aucdist.solvers.base import Callback, Record, Solution


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
