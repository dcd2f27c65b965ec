"""Models for a whole row of lam, each with its certificate."""

import warnings
from collections.abc import Sequence
from typing import Any, TypeVar

from sklearn.base import clone

from aucdist.errors import InputError
from aucdist.estimators.linear import LinearClassifier
from aucdist.solvers.base import solve

Estimator = TypeVar("Estimator", bound=LinearClassifier)


def lam_path(
    estimator: Estimator, X: Any, y: Any = None, *, lams: Sequence[float], sample_weight: Any = None
) -> list[Estimator]:
    """Fit one model per lam, each from the cuts of those before.

    Parameters
    ----------
    estimator : PairwiseHingeClassifier
        With a solver that has a path, which is ``all-pairs``; its other parameters hold for every model, and it stays unfitted.
    X, y : as in the estimator's `fit`
    lams : sequence of float
        They are solved from the largest to the smallest.
    sample_weight : as in the estimator's `fit`

    Returns
    -------
    list of PairwiseHingeClassifier
        Fitted, in the order of `lams`. Their `n_passes_` count the passes that each took beyond those before it.

    Raises
    ------
    InputError
        For another solver, or a lam that is not above 0.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucdist import PairwiseHingeClassifier, lam_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> models = lam_path(PairwiseHingeClassifier(), (X - X.mean(axis=0)) / X.std(axis=0), y, lams=[1e-1, 1e-2])
    >>> [model.certificate_.relative_gap <= 1e-3 for model in models]
    [True, True]
    """
    solver = estimator.resolved_solver
    if not solver.has_path:
        able = [repr(name) for name, other in estimator.solvers.items() if other.has_path]
        needed = f"needs solver {' or '.join(able)}" if able else f"does not apply to {type(estimator).__name__}"
        raise InputError(f"lam_path {needed}, not {solver.name!r}")
    models = [clone(estimator).set_params(lam=lam) for lam in lams]
    if not models:
        raise InputError("lams is empty")
    for model in models:
        model.check_parameters()
    first = models[0]
    blocks = first._validated_blocks(X, y, sample_weight)
    of_the_data = {name: value for name, value in vars(first).items() if name.endswith("_")}
    fitted, _ = first._shifted(blocks)
    problem = solver.path(fitted, **first._solver_options())
    for model in sorted(models, key=lambda model: -model.lam):
        vars(model).update(of_the_data | {"_fitted_ranges": fitted.ranges})
        rounds = problem.rounds(model.lam)
        model._set_fitted(solve(rounds, tol=estimator.tol, max_passes=estimator.max_passes), blocks)
        for warning in model._warnings_of_fit(blocks):
            warnings.warn(warning, stacklevel=2)
    return models
