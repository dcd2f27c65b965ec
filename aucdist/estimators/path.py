"""Models for a whole row of lam, each with its certificate."""

from collections.abc import Sequence
from typing import Any

from sklearn.base import clone

from aucdist.errors import InputError
from aucdist.estimators.pairwise_hinge import PENALTIES, PairwiseHingeClassifier
from aucdist.solvers.base import solve


def lam_path(
    estimator: PairwiseHingeClassifier, X: Any, y: Any = None, *, lams: Sequence[float], sample_weight: Any = None
) -> list[PairwiseHingeClassifier]:
    """Fit one model per lam, each from the cuts of those before.

    Parameters
    ----------
    estimator : PairwiseHingeClassifier
        With the solver ``all-pairs``; its other parameters hold for every model, and it stays unfitted.
    X, y, sample_weight : as in the estimator's `fit`
    lams : sequence of float
        They are solved from the largest to the smallest.

    Returns
    -------
    list of PairwiseHingeClassifier
        Fitted, in the order of `lams`.

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
    if estimator.solver != "all-pairs":
        raise InputError(f"lam_path needs solver 'all-pairs', not {estimator.solver!r}")
    models = [clone(estimator).set_params(lam=lam) for lam in lams]
    if not models:
        raise InputError("lams is empty")
    for model in models:
        model.check_parameters()
    blocks = models[0]._prepare(X, y, sample_weight)
    of_the_data = {name: value for name, value in vars(models[0]).items() if name.endswith("_")}
    order = sorted(models, key=lambda model: -model.lam)
    # Every cut serves all later lam, for a dual point does not know lam.
    fitted, _ = models[0]._shifted(blocks)
    state = PENALTIES[estimator.penalty or "l2"](fitted, None)
    for model in order:
        vars(model).update(of_the_data | {"_fitted_ranges": fitted.ranges})
        model._take(solve(state.rounds(model.lam), tol=estimator.tol, max_passes=estimator.max_passes), blocks)
    return models
