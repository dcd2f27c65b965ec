"""Estimators whose model is linear in the features or in the basis functions of a map: a solver fits them for one `lam`."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from aucdist.engine.blocks import Blocks
from aucdist.errors import InputError
from aucdist.estimators.base import BlockClassifier
from aucdist.estimators.classes import probabilities_of_classes, refuse_classes
from aucdist.estimators.conditioning import Shift, shifted
from aucdist.estimators.scores import encoded_rows
from aucdist.estimators.tables import checked_rows, names_of_features
from aucdist.estimators.validation import all_or_nothing, is_dask, on_chunks
from aucdist.maps.explain import Additive, explanation, shapes_of
from aucdist.papers.epochs import ResumableRound
from aucdist.parameters import Constraints, above_0
from aucdist.solvers.base import Callback, Round, Solution, solve


@dataclass(kw_only=True, eq=False, repr=False)
class LinearClassifier(BlockClassifier):
    """A linear classifier fitted by a solver for one regularisation strength `lam`.

    All linear estimators share its parameters and methods, and each adds its own parameters and solvers.
    """

    _parameter_constraints: ClassVar[Constraints] = {"lam": above_0(), **BlockClassifier._parameter_constraints}
    lam: float = 1e-3
    warm_start: bool = False

    @property
    def _has_probabilities(self) -> bool:
        return False

    @property
    def _ignores_shift(self) -> bool:
        """Whether the best objective stays the same when a column is shifted, as that of pairs of rows does."""
        return True

    def _shifted(self, blocks: Blocks) -> tuple[Blocks, Shift | None]:
        """Return the blocks to fit, and by what columns are shifted in them, where the objective stays the same."""
        fitted, shift = shifted(blocks) if self._ignores_shift else (blocks, None)
        self._fitted_ranges = fitted.ranges
        return fitted, shift

    def _solve(self, blocks: Blocks, callback: Callback | None) -> Solution:
        fitted, shift = self._shifted(blocks)
        start = self._initial_weights(blocks.n_features)
        if shift is not None and isinstance(start, np.ndarray) and len(start) > blocks.n_features:
            start = shift.with_intercept(start)
        rounds = self._rounds(fitted, start)
        solution = solve(rounds, tol=self.tol, max_passes=self.max_passes, callback=callback)
        self.__dict__.pop("resume_", None)
        if self.warm_start and isinstance(solution.last, ResumableRound):  # else the dual variables stay on the blocks
            self.resume_: Any = solution.last.resume()
        return solution if shift is None else self._unshifted(solution, shift)

    def _rounds(self, blocks: Blocks, start: Any) -> Iterator[Round]:
        """Return the rounds of the solver from these weights on."""
        return self.resolved_solver.rounds(blocks, self.lam, start, **self._solver_options())

    def _unshifted(self, solution: Solution, shift: Shift) -> Solution:
        """Return what scores the rows as the solution scores the rows shifted."""
        return solution

    def _scores_without_intercept(self, X: Any) -> np.ndarray:
        return encoded_rows(X, getattr(self, "feature_map_", None)).scores(self.coef_[0])

    @available_if(lambda model: model._has_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array-like, sparse, DataFrame or dask collection of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes), float64; a dask Array for a dask collection
            The columns have the order of `classes_`. Exactly 0 and 1 are possible. With several classes, the calibrated
            probabilities of each class against the rest are divided by their sum. With an indicator matrix of labels, each
            label has its own probability.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        InputError
            A ValueError, if X has other features than the training rows, or values that cannot be used.
        """
        check_is_fitted(self)
        if is_dask(X):
            return on_chunks(self, X, self.predict_proba, np.float64, self._width or 2)
        scores = self.decision_function(X)
        return probabilities_of_classes(self, scores) if self.has_several_classes else self.probability_(scores)

    @property
    def n_features_kept(self) -> int | None:
        """The number of features and pairs that have a weight, if the penalty leaves some out; otherwise None.

        If the weights do not belong to single features, as with landmarks, it is the number of weights that are not 0.
        """
        check_is_fitted(self)
        if getattr(self, "penalty", None) in (None, "l2"):
            return None
        used = self.coef_.any(axis=0)
        fitted = getattr(self, "feature_map_", None)
        groups = None if fitted is None else fitted.groups()
        return int(np.count_nonzero(used)) if groups is None else len(np.unique(groups[used]))

    @property
    def feature_importances_(self) -> np.ndarray:
        """How much each feature moves the score of a model of bins, float64, in the order of the columns of `explain`.

        It is the standard deviation over the training rows of what the feature adds to the score, plus half of the standard
        deviation of each pair that it is in. A model without bins raises an AttributeError, because its weights depend on the
        units of the features.
        """
        check_is_fitted(self)
        try:
            parts = self.shapes()
        except InputError as error:
            raise AttributeError(f"feature_importances_: {error}") from error
        names = names_of_features(self)
        importances = np.zeros(self.n_features_in_ if names is None else len(names))
        for shape in parts.shapes:
            importances[shape.feature] += shape.spread
        for pair in parts.pairs:
            importances[list(pair.features)] += 0.5 * pair.spread
        return importances

    def shapes(self) -> Additive:
        """Return what each feature and each pair of features adds to the score, as shapes.

        Returns
        -------
        Additive
            Its ``shapes`` and ``pairs`` are in the units of the features. The sum of all contributions and ``constant`` is
            the score. See `aucdist.maps.explain`.

        Raises
        ------
        InputError
            If the model has no binned features, or several classes.
        """
        check_is_fitted(self)
        refuse_classes(self, "shapes")
        return shapes_of(self.coef_[0], self.decision_intercept, getattr(self, "feature_map_", None))

    def explain(self, X: Any) -> pd.DataFrame:
        """Return what each feature, and each pair of features, adds to the score of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        DataFrame
            A column for each contribution, and ``constant``; the sums of its rows are the scores of `decision_function`. A
            feature of a model of bins contributes its shape, whose mean over the training rows is 0, and otherwise its weight
            times its value.

        Raises
        ------
        InputError
            For a feature map that mixes features, as landmarks and trees do, or a model of several classes.
        """
        check_is_fitted(self)
        refuse_classes(self, "explain")
        X = checked_rows(self, X)
        known = names_of_features(self)
        names = [f"x{j}" for j in range(self.n_features_in_)] if known is None else [str(name) for name in known]
        return explanation(
            encoded_rows(X, None), names, self.coef_[0], self.decision_intercept, getattr(self, "feature_map_", None)
        )

    def _initial_weights(self, n_features: int) -> Any:
        """Return what the solver starts from: the weights of the last fit, or what its last round left, or None."""
        if not (self.warm_start and hasattr(self, "coef_")):
            return None
        if self.coef_.shape[1] != n_features:
            raise InputError(f"warm_start: the last fit had {self.coef_.shape[1]} features, this one has {n_features}")
        return getattr(self, "resume_", self.coef_[0]) if self.resolved_solver.resumes else self.coef_[0]


Estimator = TypeVar("Estimator", bound=LinearClassifier)


def lam_path(
    estimator: Estimator, X: Any, y: Any = None, *, lams: Sequence[float], sample_weight: Any = None
) -> list[Estimator]:
    """Fit one model for each `lam`, where each fit starts from the cuts of the fits before.

    Parameters
    ----------
    estimator : PairwiseHingeClassifier
        Its solver must be ``all-pairs``. Its other parameters hold for every model, and it stays unfitted itself.
    X, y : as in the estimator's `fit`
    lams : sequence of float
        The values of `lam`, above 0. The fits go from the largest to the smallest.
    sample_weight : as in the estimator's `fit`

    Returns
    -------
    list of PairwiseHingeClassifier
        The fitted models, in the order of `lams`. The `n_passes_` of a model counts the passes of its own fit only.

    Raises
    ------
    InputError
        For another solver, a lam that is not above 0, or values that leave the range of float64.

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
    with all_or_nothing(first):
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
