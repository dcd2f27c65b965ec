"""The parameter `solver` of an estimator: a name, a mapping of a name and parameters, or an object."""

from collections.abc import Iterable, Mapping
from typing import Any

from aucdist.errors import InputError, unknown
from aucdist.solvers.base import Solver

PREFIX = "solver__"
"""Of the solver's own parameters among those of the estimator, as scikit-learn writes them."""


def solver_of(given: Any, solvers: Mapping[str, type[Solver]]) -> Solver:
    """Return the solver that a parameter stands for; an object is returned as it is.

    `given`: a name, such as ``"sdcd"``; a mapping such as ``{"name": "sdcd", "epochs": 10}``; or a `Solver`, of any
        class whose objective is the estimator's.
    Raises InputError for another name, a parameter that the solver lacks, or a solver of another objective.
    """
    if isinstance(given, Solver):
        objective = next(iter(solvers.values())).objective
        if given.objective != objective:
            raise InputError(
                f"solver {given!r} minimises the {given.objective}; this estimator minimises the {objective}, by "
                f"{', '.join(cls.__name__ for cls in solvers.values())}"
            )
        return given
    own: dict[str, Any] = {}
    if isinstance(given, Mapping):
        own = dict(given)
        if "name" not in own:
            raise InputError(f"solver {dict(given)!r} has no name; it needs one of {', '.join(solvers)}")
        given = own.pop("name")
    if not isinstance(given, str) or given not in solvers:
        raise unknown("solver", given, solvers)
    solver = solvers[given]()
    if own:
        check_names(own, solver, solvers)
        solver.set_params(**own)
    return solver


def check_names(names: Iterable[str], solver: Solver, solvers: Mapping[str, type[Solver]]) -> None:
    """Check that the solver has these parameters.

    Raises InputError naming the solvers that have the parameter, or else the parameters of this solver.
    """
    own = solver.get_params()
    for name in names:
        if name not in own and (takers := having(name, solvers)):
            has = f"has {', '.join(own)}" if own else "has no parameters"
            raise InputError(f"{name} applies to solver {', '.join(takers)}; {solver.name!r} {has}")
        if name not in own:
            raise unknown(f"parameter of solver {solver.name}", name, own)


def having(name: str, solvers: Mapping[str, type[Solver]]) -> list[str]:
    """Return the names of the solvers that have the parameter."""
    return [key for key, solver in solvers.items() if name in solver().get_params()]


def moved(name: str, solvers: Mapping[str, type[Solver]]) -> InputError | None:
    """Return the error for a parameter that belongs to solvers and is given to the estimator; None where none has it."""
    takers = having(name, solvers)
    if not takers:
        return None
    return InputError(
        f"{name} is a parameter of solver {', '.join(takers)}: write solver={{'name': {takers[0]!r}, {name!r}: ...}}, "
        f"{solvers[takers[0]].__name__}({name}=...) in Python, or {PREFIX}{name} where solver is set"
    )


def as_plain(given: Any) -> Any:
    """Return the parameter as a configuration has it: a name, or a mapping of a name and parameters."""
    return given.as_plain() if isinstance(given, Solver) else given
