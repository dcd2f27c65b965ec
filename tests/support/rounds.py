"""What tests take from the rounds of a solver."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from aucdist.solvers.base import Solver

T = TypeVar("T")


def last(rounds: Iterable[T]) -> T:
    """Return the last round of a solver that ends by itself."""
    *_, newest = rounds
    return newest


def rounds_of(solver: type[Solver]) -> Callable[..., Iterator[Any]]:
    """Return ``f(blocks, lam, start, **options)``, the options being parameters of the solver or of its rounds."""

    def rounds(*args: Any, **options: Any) -> Iterator[Any]:
        own = {name: options.pop(name) for name in solver().get_params() if name in options}
        with_own = solver(**own)
        with_own.check_parameters()  # as an estimator does
        return with_own.rounds(*args, **options)

    return rounds


def leave_newton_steps(monkeypatch: Any) -> None:
    """Let fits of the pairwise hinge take cutting planes alone: Newton steps count as stalled before the first one."""
    monkeypatch.setattr("aucdist.pairs.cutting_planes.STALL_ROUNDS", 0)
    monkeypatch.setattr("aucdist.pairs.cutting_planes.STALL_SHARE", -1.0)
