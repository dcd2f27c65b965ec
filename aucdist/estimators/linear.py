"""Estimators whose model is linear in the features or in the basis functions of a map.

A solver fits them for one value of `lam`.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from aucdist.data.dataset import category_features
from aucdist.engine.blocks import Blocks
from aucdist.engine.view import ClassBlocks
from aucdist.errors import InputError
from aucdist.estimators.base import BlockClassifier
from aucdist.estimators.conditioning import add_intercept_rounding, centre_far_columns
from aucdist.estimators.display import RoundPrinter
from aucdist.estimators.fitting import FitResult, WarmStart, check_and_map_rows, give_warnings, record_solution
from aucdist.estimators.scores import check_two_classes, map_matrix, probabilities
from aucdist.estimators.tables import checked_rows, is_dask, labels_of_features, map_chunks
from aucdist.estimators.validation import restore_on_failure, training_blocks
from aucdist.maps.explain import Additive, additive, explanation, index_of
from aucdist.parameters import above_0, keyword_parameters
from aucdist.solvers.base import Round, Solution, solve


@keyword_parameters(lam=above_0())
class LinearClassifier(BlockClassifier):
    """A linear classifier fitted by a solver for one regularisation strength `lam`.

    All linear estimators share its parameters and methods, and each adds its own parameters and solvers.
    """

    lam: float = 1e-3
    warm_start: bool = False

    @property
    def _has_probabilities(self) -> bool:
        return False

    @property
    def _has_intercept(self) -> bool:
        """Whether the objective has an intercept. It is then the last entry of the start weights."""
        return bool(getattr(self, "fit_intercept", False))

    def _fit(self, rows: Blocks, printer: RoundPrinter, start: WarmStart | None, *, keep_counts: bool) -> FitResult:
        blocks = check_and_map_rows(self, rows, start)
        # Shifting a column leaves the minimum unchanged with pairs, and with an intercept that is not penalised.
        penalised = getattr(self, "penalise_intercept", self.resolved_solver.penalises_intercept)
        shifts_columns = getattr(self, "fit_intercept", True) and not penalised
        fitted, shift = centre_far_columns(blocks) if shifts_columns else (blocks, None)
        first = None
        if start is not None:
            first = start.coef
            if len(first) != fitted.n_features:
                raise InputError(
                    f"warm_start: the last fit had {len(first)} features, this one has {fitted.n_features}: fit a new "
                    "estimator, or set warm_start=False"
                )
            if self._has_intercept:  # the solver works with the intercept for shifted rows
                intercept = start.intercept if shift is None else start.intercept + shift.score_offset(first)
                first = np.append(first, intercept)
        rounds = self._rounds(fitted, first)
        solution, intercept_shift = solve(rounds, tol=self.tol, max_passes=self.max_passes, callback=printer), 0.0
        if shift is not None and self._has_intercept:
            intercept_shift = shift.score_offset(solution.w)
            solution = add_intercept_rounding(solution, shift, self.tol)
        fit = self._set_weights(solution, blocks, intercept_shift)
        fit.ranges = fitted.ranges
        return record_solution(self, solution, fit, printer, blocks, keep_counts=keep_counts)

    def _rounds(self, blocks: Blocks, start: Any) -> Iterator[Round]:
        """Return the rounds of the solver, which starts from these weights."""
        # For an integer, kernels would be compiled a second time.
        return self.resolved_solver.rounds(blocks, float(self.lam), start, **self._solver_options())

    @abstractmethod
    def _set_weights(self, solution: Solution, blocks: Blocks, intercept_shift: float) -> FitResult:
        """Set the weights and the attributes that depend on them, and return the result of the fit.

        Parameters
        ----------
        solution : Solution
            The solution for shifted rows.
        blocks : Blocks
            The rows before the shift.
        intercept_shift : float
            The intercept for `blocks` is that of the solution minus this number.

        Returns
        -------
        FitResult
        """

    def _scores_without_intercept(self, X: Any) -> np.ndarray:
        return map_matrix(X, self._map).scores(self.coef_[0])

    @available_if(lambda model: model._has_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame or dask collection of shape (n_samples, n_features)
            The rows to score, with the features of the training rows.

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

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from aucdist import LinkClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
        >>> model = LinkClassifier(link="logit").fit(X, y)
        >>> model.predict_proba(X[:3]).shape
        (3, 2)
        >>> bool((model.predict_proba(X)[:, 1] > 0.5).sum() == (model.decision_function(X) > 0).sum())
        True
        """
        check_is_fitted(self)
        if is_dask(X):
            return map_chunks(self, X, self.predict_proba, np.float64, self._width or 2)
        scores = self.decision_function(X)
        return probabilities(self, scores) if self.has_several_classes else self.probability_(scores)

    @property
    def n_features_kept(self) -> int | None:
        """The number of features and interactions with a weight that is not 0, or None if the penalty cannot set weights to 0.

        If the weights do not belong to single features, as with landmarks, it is the number of weights that are not 0.
        """
        check_is_fitted(self)
        if getattr(self, "penalty", None) in (None, "l2"):
            return None
        used = self.coef_.any(axis=0)
        fitted = self._map
        groups = None if fitted is None else fitted.groups()
        return int(np.count_nonzero(used)) if groups is None else len(np.unique(groups[used]))

    @property
    def feature_importances_(self) -> np.ndarray:
        """How much each column of X moves the score of a model of bins, float64 of shape (n_columns,).

        It is the standard deviation over the training rows of what the column adds to the score, plus half of the standard
        deviation of each interaction that it is in. The standard deviation of an interaction is computed as if its two
        features were independent of each other. A model without bins raises an AttributeError, because its weights depend on the
        units of the features.
        """
        check_is_fitted(self)
        try:
            parts = self.shapes()
        except InputError as error:
            raise AttributeError(f"feature_importances_: {error}. The weights are coef_") from error
        category_of = category_features(vars(self).get("categories_", {}))
        columns = [category_of.get(name, (name,))[0] for name in labels_of_features(self)]
        at, order = pd.factorize(np.array(columns, dtype=object))
        means, squares = np.zeros((2, len(order)))
        for shape in parts.shapes:
            # For a column of numbers, the mean cancels out.
            mean = shape.shares[-1] * (shape.values[-1] - shape.values[0])
            means[at[shape.feature]] += mean
            squares[at[shape.feature]] += shape.spread**2 + mean**2
        # Each row has one category of a column.
        importances: np.ndarray = np.sqrt(np.maximum(squares - means**2, 0.0))
        for interaction in parts.interactions:
            importances[at[list(interaction.features)]] += 0.5 * interaction.spread
        return importances

    def shapes(self) -> Additive:
        """Return what each feature and each interaction adds to the score, as shapes.

        Returns
        -------
        Additive
            Its ``shapes`` and ``interactions`` are in the units of the features. The sum of all contributions and ``constant`` is
            the score.

        Raises
        ------
        InputError
            If the model has no binned features, or several classes.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from aucdist import PairwiseHingeClassifier
        >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
        >>> model = PairwiseHingeClassifier(features="bins", lam=1e-2).fit(X, y == 0)
        >>> shape = max(model.shapes().shapes, key=lambda shape: shape.spread)  # the feature that moves the score most
        >>> X.columns[shape.feature], shape.edges.shape, shape.values.shape
        ('worst texture', (63,), (64,))
        """
        check_is_fitted(self)
        check_two_classes(self, "shapes")
        return additive(self._map, self.coef_[0], self.decision_intercept)

    def explain(self, X: Any) -> pd.DataFrame:
        """Return what each feature, and each interaction, adds to the score of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            The rows to explain, with the features of the training rows.

        Returns
        -------
        DataFrame of shape (n_samples, n_contributions + 1), float64
            A column for each contribution, and ``constant``; the sums of its rows are the scores of `decision_function`. In a
            model of bins, a feature contributes the value of its shape, which has mean 0 over the training rows. In a linear
            model, it contributes its weight times its value. A column of categories has one contribution. It depends on the
            category of the row. The index is that of X.

        Raises
        ------
        InputError
            For a feature map that mixes features, as landmarks and trees do, or a model of several classes.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from aucdist import PairwiseHingeClassifier
        >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
        >>> model = PairwiseHingeClassifier(features="bins", lam=1e-2).fit(X, y == 0)
        >>> contributions = model.explain(X[:3])
        >>> contributions.shape  # 30 features and the constant
        (3, 31)
        >>> bool(abs(contributions.sum(axis=1) - model.decision_function(X[:3])).max() < 1e-9)
        True
        """
        check_is_fitted(self)
        check_two_classes(self, "explain")
        return explanation(
            map_matrix(checked_rows(self, X), None),
            labels_of_features(self),
            self.coef_[0],
            self.decision_intercept,
            self._map,
            vars(self).get("categories_"),
            index_of(X),
        )


Estimator = TypeVar("Estimator", bound=LinearClassifier)


def lam_path(
    estimator: Estimator,
    X: Any,
    y: Any = None,
    *,
    lams: Sequence[float],
    sample_weight: Any = None,
    stop: Callable[[Estimator], bool] | None = None,
) -> list[Estimator]:
    """Fit one model for each value of `lam`, each from the result of the previous one.

    With ``all-pairs``, each fit starts from the weights and the lower bounds of the previous one. With ``exact``, the
    rows are read once for all values.

    Parameters
    ----------
    estimator : PairwiseHingeClassifier or PairwiseSquareClassifier
        Its solver must be ``all-pairs`` or ``exact``. Its other parameters hold for every model, and it stays unfitted itself.
    X : array-like, sparse matrix, DataFrame, dask collection or Blocks, of shape (n_samples, n_features)
        The training rows, as in the estimator's `fit`.
    y : array-like of shape (n_samples,)
        The labels, as in the estimator's `fit`. Leave them out if X is a `Blocks` object.
    lams : sequence of float
        The values of `lam`, above 0. The fits go from the largest to the smallest.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, at least 0.
    stop : callable, optional
        Called with each fitted model, from the largest `lam` on. If it returns True, no smaller `lam` is fitted.

    Returns
    -------
    list of estimators
        The fitted models, in the order of `lams`, without those that `stop` left out. Each has its `lam`. The `n_passes_` of a
        model counts the passes of its own fit only.

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
    if not hasattr(solver, "path"):
        able = [repr(name) for name, other in estimator.solvers.items() if hasattr(other, "path")]
        if not able:
            raise InputError(
                f"lam_path does not support {type(estimator).__name__}: fit the estimator once for each lam"
            )
        raise InputError(f"lam_path needs solver {' or '.join(able)}, not {solver.name!r}: change the parameter solver")
    models = [clone(estimator).set_params(lam=lam) for lam in lams]
    if not models:
        raise InputError("lams is empty: give at least one value of lam")
    for model in models:
        model.check_parameters()
    first = models[0]
    with restore_on_failure(first):
        if first._features_auto:
            raise InputError(
                "features='auto' works in `fit` only: give the map that a fit chose, chosen_['features'] of the fitted model"
            )
        rows = training_blocks(first, X, y, sample_weight)
        if isinstance(rows, ClassBlocks):
            raise InputError(f"y must have exactly two classes here; got {rows.sets.n_classes}. Pass y == label")
        blocks = check_and_map_rows(first, rows)
        fitted_attributes = {name: value for name, value in vars(first).items() if name.endswith("_")}
        fitted, _ = centre_far_columns(blocks)
        problem = solver.path(fitted, **first._solver_options())
        for model in sorted(models, key=lambda model: -model.lam):
            vars(model).update(fitted_attributes)
            printer = RoundPrinter(model, f"{type(model).__name__} lam {model.lam:g}", None)
            solution = solve(
                problem.rounds(model.lam), tol=estimator.tol, max_passes=estimator.max_passes, callback=printer
            )
            fit = model._set_weights(solution, blocks, 0.0)
            fit.ranges = fitted.ranges
            give_warnings(model, [record_solution(model, solution, fit, printer, blocks)])
            if stop is not None and stop(model):
                break
    return [model for model in models if hasattr(model, "coef_")]
