"""An estimator that has a solver among its parameters: `get_params`, `set_params`, and the checks before a fit."""

import functools
import inspect
from abc import ABC
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from aucdist.errors import InputError
from aucdist.estimators.docstrings import inherit_entries
from aucdist.estimators.monotone import AUTO, weight_signs
from aucdist.estimators.solver_parameter import PREFIX, as_plain, check_names, moved, solver_of
from aucdist.estimators.verbose import Verbosity
from aucdist.maps.base import Expander
from aucdist.maps.state import expander_of
from aucdist.parameters import Constraints, Seed, at_least_0, check_constraints, count
from aucdist.solvers.base import Solver


@dataclass(kw_only=True, eq=False, repr=False)
class CommonParameters(BaseEstimator):
    """The parameters of all estimators; a subclass that is a dataclass adds its own, and may have other defaults.

    Docstrings describe what all estimators have here and nowhere else: `inherit_entries` adds it to those of subclasses, so that
    `help` shows it.

    Parameters
    ----------
    tol : float, default=1e-3
        The fit ends when the relative gap, ``(primal - dual) / primal``, is at most this.
    max_passes : int, default=1000
        The fit ends after so many passes over the data, one being X w and X'c, with a ConvergenceWarning.
    features : str, dict, map or None, default=None
        A feature map that is fitted to the training rows, whose basis functions the weights are of: ``"bins"``, ``"nystroem"``,
        ``"leaves"``, a dict such as ``{"map": "bins", "pairs": 20}``, or a transformer of `aucdist.maps`. Edges, landmarks and
        trees are given to the certificate, not part of what it proves. ``"auto"``: cross-validation within the training rows
        chooses the map and `lam`, as `aucdist.search.auto` says; scale the features first.
    verbose : int, default=0
        1: `fit` prints a line for the rounds 1 to 10, 20, 30, ..., 100, 200, ... and the last; 2: for every round.
    n_jobs : int or None, default=None
        Threads of a fit to arrays: None is one, -1 one for each core; they change no bit. Several classes are fitted side by
        side; one class with the default solver, where there are at least 200 000 rows: their number alone decides into how
        many blocks these are cut.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The second is the positive one.
    certificate_ : Certificate
        ``primal, dual, relative_gap, status``.
    history_ : DataFrame
        A row per round: round, passes, seconds, primal, dual, relative_gap.
    n_passes_ : int
    threshold_ : float
        On the scale of `decision_function`: 0, always, also after `set_threshold`, which moves the scores.
    feature_map_ : FittedMap
        With `features`.
    chosen_ : dict
        With ``features="auto"``: what was chosen, such as ``{"features": {"map": "leaves"}, "lam": 0.1}``.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X has column names.
    categories_ : dict of str to tuple of str
    feature_names_out_ : ndarray of shape (n_encoded_features,)
        Where X has columns of categories or texts: the values of each, and the names of all features that the rows have with a
        0/1 feature for each value. Weights, `monotone_` and `explain` are of these features.
    """

    solver: Any
    tol: float = 1e-3
    max_passes: int = 1000
    random_state: int | np.random.RandomState | None = None
    features: Any = None
    verbose: int = 0
    n_jobs: int | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        inherit_entries(cls)


class WithSolver(CommonParameters, ABC):
    """The parameters of an estimator whose objective one of several solvers minimises.

    Parameters of the objective that only some solvers take default to None, and are refused where they do not apply; those of
    an algorithm belong to its `Solver`.
    """

    solvers: ClassVar[dict[str, type[Solver]]]
    """By the names that configurations call them."""
    _parameter_constraints: ClassVar[Constraints] = {
        "tol": at_least_0(), "max_passes": count(), "verbose": Verbosity(), "random_state": Seed(),
    }  # fmt: skip
    monotone: Any = None
    monotone_: np.ndarray

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse a parameter that belongs to a solver; the error names the new form."""
        _refuse_moved(cls, kwargs)
        return super().__new__(cls)

    @property
    def resolved_solver(self) -> Solver:
        """The solver as an object with all its parameters.

        Raises
        ------
        InputError
            If `solver` stands for none that minimises this objective.
        """
        return solver_of(self.solver, self.solvers)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters.

        Parameters
        ----------
        deep : bool, default=True
            Also those of the solver, as ``solver__epochs``, and of a transformer that is given as `features`.

        Returns
        -------
        dict
        """
        params: dict[str, Any] = super().get_params(deep)
        if deep and not isinstance(self.solver, Solver):
            try:
                own = self.resolved_solver.get_params()
            except InputError:  # which `fit` reports
                own = {}
            params |= {PREFIX + name: value for name, value in own.items()}
        return params

    def plain_params(self) -> dict[str, Any]:
        """Return the parameters as a configuration has them: the solver as a name, or as a mapping of its name and parameters.

        Returns
        -------
        dict
        """
        params = self.get_params(deep=False)
        return {**params, "solver": as_plain(params["solver"])}

    def set_params(self, **params: Any) -> Self:
        """Set parameters, ``solver__epochs`` among them; a solver that is given by its name becomes an object for these.

        Parameters
        ----------
        **params
            By their names. Where `solver` is among them it is set first.

        Returns
        -------
        self

        Raises
        ------
        InputError
            For a parameter that the solver lacks, or one that belongs to solvers and lacks its ``solver__``.
        """
        if "solver" in params:
            self.solver = params.pop("solver")
        if own := [name.removeprefix(PREFIX) for name in params if name.startswith(PREFIX)]:
            self.solver = self.resolved_solver
            check_names(own, self.solver, self.solvers)
        _refuse_moved(type(self), params)
        super().set_params(**params)
        return self

    @property
    def _by_folds(self) -> bool:
        """Whether folds choose the feature map."""
        return isinstance(self.features, str) and self.features == AUTO

    @property
    def _expander(self) -> Expander | None:
        """The unfitted feature map; None without one, and where folds choose it."""
        return None if self._by_folds else expander_of(self.features)

    def check_parameters(self) -> None:
        """Check every parameter, as `fit` does first.

        Raises
        ------
        InputError
            Naming the parameter, its value and what is allowed.
        """
        own = self.resolved_solver
        for name in sorted({option for solver in self.solvers.values() for option in solver.takes}):
            takers = [key for key, solver in self.solvers.items() if name in solver.takes]
            if getattr(self, name) is not None and name not in own.takes:
                raise InputError(f"{name} applies to solver {', '.join(takers)}; with {own.name!r} it must be None")
        check_constraints(self, self._parameter_constraints)
        expander = self._expander
        if self.monotone is not None and expander is not None:
            expander.check_directions()
        if self.monotone is not None and not own.signs:
            able = [name for name, solver in self.solvers.items() if solver.signs]
            other = f"those that do: {', '.join(able)}" if able else "no solver of this estimator does"
            raise InputError(f"solver {own.name!r} takes no directions of features (monotone); {other}")
        if own.penalties and (penalty := self.penalty) not in own.penalties:
            able = [name for name, solver in self.solvers.items() if penalty in solver.penalties]
            raise InputError(f"solver {own.name!r} has no penalty {penalty!r}; those that have it: {', '.join(able)}")
        own.check_parameters()
        own.check_for(self)
        self._check_own_parameters()

    def _check_own_parameters(self) -> None:
        """Check how the parameters of a subclass go together; each alone `_parameter_constraints` checks."""

    def _solver_options(self, seed: int | None = None) -> dict[str, Any]:
        """Return the keywords of the solver's rounds; a random one gets this seed, or one drawn from `random_state`."""
        solver = self.resolved_solver
        options = {name: getattr(self, name) for name in solver.takes if getattr(self, name) is not None}
        if len(solver.penalties) > 1:
            options["penalty"] = self.penalty
        if solver.random:
            options["seed"] = int(check_random_state(self.random_state).randint(2**31)) if seed is None else seed
        if solver.takes_tol:
            options["tol"] = self.tol
        if self.monotone is not None:
            options["signs"] = weight_signs(self.monotone_, getattr(self, "feature_map_", None))
        return options


@functools.cache
def _parameters(estimator: type[WithSolver]) -> frozenset[str]:
    return frozenset(inspect.signature(estimator).parameters)


def _refuse_moved(estimator: type[WithSolver], given: Iterable[str]) -> None:
    """Raise the error that names the new form for a parameter that belongs to a solver."""
    for name in set(given) - _parameters(estimator):
        if (error := moved(name, estimator.solvers)) is not None:
            raise error
