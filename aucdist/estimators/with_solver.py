"""Estimators that have a solver among their parameters: `get_params`, `set_params`, and the checks before a fit."""

from abc import ABC
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state

from aucdist.errors import InputError, unknown
from aucdist.estimators.monotone import AUTO
from aucdist.maps import expander_of
from aucdist.maps.base import Expander
from aucdist.metrics.named import search_options
from aucdist.parameters import NOT_NEGATIVE, SEED, VERBOSITY, check_constraints, count, keyword_parameters
from aucdist.solvers.base import Solver

SOLVER_PREFIX = "solver__"
"""The prefix of the solver's parameters among those of the estimator, as scikit-learn writes them."""
FAMILIAR = {
    "alpha": "`lam`, the strength of the regularisation",
    "lambda_": "`lam`, the strength of the regularisation",
    "reg_lambda": "`lam`, the strength of the regularisation",
    "C": "`lam`, the strength of the regularisation, which is large where C is small",
    "max_iter": "`max_passes`, the largest number of passes over the rows",
} | dict.fromkeys(
    ("class_weight", "scale_pos_weight", "is_unbalance"),
    "none where pairs are ranked, because class weights would multiply all pairs by the same factor. Otherwise use "
    "`sample_weight` of `fit`, or HingeClassifier, which has `class_weight`",
)
"""Names that users of scikit-learn and LightGBM may look for, and the names of the same things here."""
ABSENT: Any = None
"""The value of a parameter that an estimator does not have, but others have."""


@keyword_parameters(tol=NOT_NEGATIVE, max_passes=count(), verbose=VERBOSITY, random_state=SEED)
class WithSolver(BaseEstimator, ABC):
    """The base class of estimators whose objective one of several solvers minimises.

    Parameters of the objective that only some solvers accept are None by default, and raise an error if they do not apply.
    Parameters of the algorithm belong to its `Solver`.
    """

    solvers: ClassVar[dict[str, type[Solver]]]
    """The solvers by their names in configurations."""
    solver: Any
    tol: float = 1e-3
    max_passes: int = 1000
    random_state: int | np.random.RandomState | None = None
    features: Any = None
    verbose: int = 0
    n_jobs: int | None = None
    lam = monotone = group_weight = grade_weight = ABSENT

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Raise an error for a parameter that the estimator does not have. The message says what to write instead."""
        check_parameter_names(kwargs, cls)
        return super().__new__(cls)

    @property
    def resolved_solver(self) -> Solver:
        """The solver as an object with all its parameters.

        Raises
        ------
        InputError
            If `solver` does not stand for a solver of this objective.
        """
        return solver_of(self.solver, self.solvers)

    def _solvers_that(self, accepted: str) -> str:
        """Return the part of an error message that names the solvers that accept something: see `Solver`."""
        names = [name for name, solver in self.solvers.items() if getattr(solver, f"accepts_{accepted}")]
        return f"solvers that do: {', '.join(names)}" if names else "no solver of this estimator does"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the parameters of the solver, as ``solver__epochs``, and those of a transformer in `features`.

        Returns
        -------
        dict
        """
        params: dict[str, Any] = super().get_params(deep)
        if deep and not isinstance(self.solver, Solver):
            with suppress(InputError):  # `fit` raises this error
                params |= {SOLVER_PREFIX + name: value for name, value in self.resolved_solver.get_params().items()}
        return params

    def plain_params(self) -> dict[str, Any]:
        """Return the parameters as in a configuration. The solver is a name, or a mapping of its name and parameters.

        Returns
        -------
        dict
        """
        params = self.get_params(deep=False)
        solver = params["solver"]
        if isinstance(solver, Solver):
            solver_params = solver.get_params()
            params["solver"] = {"name": solver.name, **solver_params} if solver_params else solver.name
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, including those of the solver (``solver__epochs``) and of the feature map (``features__n_bins``).

        If the solver or the map is a name or a dict, it is replaced by an object with these parameters.

        Parameters
        ----------
        **params
            The parameters by name. `solver` and `features` are set first.

        Returns
        -------
        self : object
            The estimator with the new parameters.

        Raises
        ------
        InputError
            If the estimator or the solver does not have a parameter, or a parameter of solvers is given without ``solver__``.
        """
        for name in {"solver", "features"} & params.keys():
            setattr(self, name, params.pop(name))
        for name in params:
            if name.startswith("features__"):
                if (expander := self._expander) is None:
                    raise InputError(
                        f"{name} is a parameter of a feature map, and features={self.features!r} names no map: give features, "
                        "too, as in features='bins'"
                    )
                self.features = expander
        if solver_names := [name.removeprefix(SOLVER_PREFIX) for name in params if name.startswith(SOLVER_PREFIX)]:
            self.solver = self.resolved_solver
            check_names(solver_names, self.solver, self.solvers)
        check_parameter_names((name for name in params if "__" not in name), type(self))
        super().set_params(**params)
        return self

    def _copy_with(self, **params: Any) -> Self:
        """Return an unfitted copy in which these parameters are replaced.

        Parameters that the estimator does not have are ignored.
        """
        names = self._get_param_names()
        copy: Self = clone(self).set_params(**{name: value for name, value in params.items() if name in names})
        return copy

    @property
    def _features_auto(self) -> bool:
        """Whether cross-validation chooses the feature map."""
        name = self.features.get("map") if isinstance(self.features, Mapping) else self.features
        return isinstance(name, str) and name == AUTO

    @property
    def _expander(self) -> Expander | None:
        """The unfitted feature map. None if there is none, or if cross-validation chooses it."""
        return None if self._features_auto else expander_of(self.features)

    def check_parameters(self) -> None:
        """Check every parameter. `fit` does this first.

        Raises
        ------
        InputError
            Naming the parameter, its value and what is allowed.
        """
        solver = self.resolved_solver
        # A subclass with its own solvers inherits parameters that only solvers of its base class accept.
        tables = [vars(cls).get("solvers", {}) for cls in type(self).__mro__]
        for name in sorted({option for table in tables for other in table.values() for option in other.takes}):
            if getattr(self, name) is not None and name not in solver.takes:
                takers = ", ".join(key for key, other in self.solvers.items() if name in other.takes)
                raise InputError(
                    f"{name} applies to {f'solver {takers}' if takers else 'no solver of this estimator'}, not to "
                    f"{solver.name!r}: set {name}=None"
                )
        check_constraints(self)
        if self._features_auto:
            search_options(self.features)
        expander = self._expander
        if self.monotone is not None and expander is not None:
            expander.check_directions()
        if self.monotone is not None and not solver.accepts_signs:
            raise InputError(
                f"solver {solver.name!r} does not support monotonic constraints (`monotone`); {self._solvers_that('signs')}"
            )
        if solver.penalties and (penalty := self.penalty) not in solver.penalties:
            raise InputError(
                f"solver {solver.name!r} does not support penalty={penalty!r}: use solver "
                f"{' or '.join(name for name, other in self.solvers.items() if penalty in other.penalties)}"
            )
        if getattr(self, "warm_start", False) and not solver.accepts_start:
            raise InputError(
                f"solver {solver.name!r} always starts from zero (warm_start must be False); {self._solvers_that('start')}"
            )
        solver.check_parameters()
        solver.check_for(self)
        self._check_combination()

    def _check_combination(self) -> None:
        """Check combinations of the parameters of a subclass. `_parameter_constraints` checks each parameter alone."""

    def _solver_options(self, seed: int | None = None) -> dict[str, Any]:
        """Return the keyword arguments for the rounds of the solver.

        A random solver gets this seed, or one drawn from `random_state`.
        """
        solver = self.resolved_solver
        options = {name: getattr(self, name) for name in solver.takes if getattr(self, name) is not None}
        if len(solver.penalties) > 1:
            options["penalty"] = self.penalty
        if solver.is_random:
            options["seed"] = int(check_random_state(self.random_state).randint(2**31)) if seed is None else seed
        if solver.uses_tol:
            options["tol"] = self.tol
        if self.monotone is not None:
            directions, fitted = vars(self)["monotone_"], vars(self).get("feature_map_")
            options["signs"] = directions if fitted is None else fitted.signs(directions)
        return options


def solver_of(solver_parameter: Any, solvers: Mapping[str, type[Solver]]) -> Solver:
    """Return the solver that a parameter stands for. An object is returned as it is.

    Parameters
    ----------
    solver_parameter : str, mapping or Solver
        A name, such as ``"sdcd"``; a mapping such as ``{"name": "sdcd", "epochs": 10}``; or a `Solver` of any class for the
        objective of the estimator.
    solvers : mapping of str to type
        The solvers of the estimator, by their names.

    Returns
    -------
    Solver

    Raises
    ------
    InputError
        If the name is unknown, the solver does not have a parameter, or the solver has another objective.
    """
    if isinstance(solver_parameter, Solver):
        objective = next(iter(solvers.values())).objective
        if solver_parameter.objective != objective:
            raise InputError(
                f"solver {solver_parameter!r} minimises the {solver_parameter.objective}, but this estimator minimises the "
                f"{objective}: use one of {', '.join(cls.__name__ for cls in solvers.values())}"
            )
        return solver_parameter
    spec = dict(solver_parameter) if isinstance(solver_parameter, Mapping) else {"name": solver_parameter}
    if "name" not in spec:
        raise InputError(f"solver {spec!r} has no `name`: give one of {', '.join(solvers)}")
    name = spec.pop("name")
    if not isinstance(name, str) or name not in solvers:
        raise unknown("solver", name, solvers)
    solver = solvers[name]()
    check_names(spec, solver, solvers)
    return solver.set_params(**spec)


def check_names(names: Iterable[str], solver: Solver, solvers: Mapping[str, type[Solver]]) -> None:
    """Check that a solver has these parameters.

    Parameters
    ----------
    names : iterable of str
        The names of the parameters.
    solver : Solver
        The solver.
    solvers : mapping of str to type
        The solvers of the estimator, by their names.

    Raises
    ------
    InputError
        If it does not have one. The message names the solvers that have the parameter, or else the parameters of this solver.
    """
    params = solver.get_params()
    for name in names:
        if name in params:
            continue
        if takers := solvers_with(name, solvers):
            raise InputError(
                f"{name} applies to solver {', '.join(takers)}, but {solver.name!r} has {', '.join(params) or 'no parameters'}"
            )
        raise unknown(f"parameter of solver {solver.name!r}:", name, params)


def solvers_with(name: str, solvers: Mapping[str, type[Solver]]) -> list[str]:
    """Return the names of the solvers that have a parameter."""
    return [key for key, solver in solvers.items() if name in solver().get_params()]


def check_parameter_names(names: Iterable[str], estimator: type[WithSolver]) -> None:
    """Raise an InputError for a parameter that an estimator does not have, and say what to write in its place."""
    allowed, solvers = estimator._get_param_names(), estimator.solvers
    for name in names:
        if name in allowed:
            continue
        if name in FAMILIAR:
            raise InputError(f"unknown parameter {name!r}: use {FAMILIAR[name]}")
        if takers := solvers_with(name, solvers):
            raise InputError(
                f"{name} is a parameter of solver {', '.join(takers)}: write solver={{'name': {takers[0]!r}, {name!r}: ...}}, "
                f"{solvers[takers[0]].__name__}({name}=...) in Python, or {SOLVER_PREFIX}{name} where solver is set"
            )
        raise unknown(f"parameter of {estimator.__name__}:", name, allowed)
