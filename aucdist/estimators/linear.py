"""Estimators whose model is linear in the features or in the basis functions of a map: a solver fits them for one `lam`.

`HingeClassifier` is one: a linear support vector machine with an L1 or an L2 penalty.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from aucdist.engine.blocks import Blocks
from aucdist.errors import InputError, unknown
from aucdist.estimators.base import BlockClassifier
from aucdist.estimators.classes import probabilities, refuse_classes
from aucdist.estimators.conditioning import Shift, shifted, with_rounded_intercept
from aucdist.estimators.fitting import Fit, Start, give_warnings, set_solution
from aucdist.estimators.scores import count_scores, encoded_rows
from aucdist.estimators.tables import checked_rows, labels_of_features
from aucdist.estimators.validation import all_or_nothing, is_dask, on_chunks
from aucdist.maps.explain import Additive, additive, explanation
from aucdist.papers.epochs import ResumableRound
from aucdist.papers.scd import CDCD, COMID, PSA, RDA, SCD, SDCD, Pegasos
from aucdist.papers.scd.primal import EQUAL, PENALTIES
from aucdist.parameters import SWITCH, Constraints, OneOf, above_0, keyword_parameters
from aucdist.solvers.base import Callback, Round, Solution, solve, solver_table

ONE_OVER_N = "1/n"
BALANCED = "balanced"


@keyword_parameters
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

    @property
    def _has_intercept(self) -> bool:
        """Whether the objective has an intercept, which is the last weight of what its solvers start from."""
        return bool(getattr(self, "fit_intercept", False))

    def _fit(self, blocks: Blocks, callback: Callback, start: Start | None) -> tuple[Solution, Fit]:
        fitted, shift = shifted(blocks) if self._ignores_shift else (blocks, None)
        rounds = self._rounds(fitted, None if start is None else self._first_weights(start, fitted, shift))
        solution = solve(rounds, tol=self.tol, max_passes=self.max_passes, callback=callback)
        if self.warm_start and isinstance(solution.last, ResumableRound):  # else the dual variables stay on the blocks
            self.resume_: Any = solution.last.resume()
        lowered = 0.0
        if shift is not None and self._has_intercept:
            solution, lowered = with_rounded_intercept(solution, shift, self.tol), shift.along(solution.w)
        fit = self._set_weights(solution, blocks, lowered)
        fit.ranges = fitted.ranges
        return solution, fit

    def _first_weights(self, start: Start, blocks: Blocks, shift: Shift | None) -> Any:
        """Return the start of the solver: the state of its last round, or weights for the shifted rows."""
        w = start.coef
        if len(w) != blocks.n_features:
            raise InputError(
                f"warm_start: the last fit had {len(w)} features, this one has {blocks.n_features}: fit a new "
                "estimator, or set warm_start=False"
            )
        if self.resolved_solver.resumes:
            return w if start.resume is None else start.resume
        if not self._has_intercept:
            return w
        return np.append(w, start.intercept if shift is None else start.intercept + shift.along(w))

    def _rounds(self, blocks: Blocks, start: Any) -> Iterator[Round]:
        """Return the rounds of the solver from these weights on."""
        return self.resolved_solver.rounds(blocks, self.lam, start, **self._solver_options())

    @abstractmethod
    def _set_weights(self, solution: Solution, blocks: Blocks, lowered: float) -> Fit:
        """Set the weights and what depends on them, and return what the fit found.

        `lowered`: by how much the intercept for these rows is below that of the solution, which is for shifted rows.
        """

    def _scores_without_intercept(self, X: Any) -> np.ndarray:
        return encoded_rows(X, self._map).scores(self.coef_[0])

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
        return probabilities(self, scores) if self.has_several_classes else self.probability_(scores)

    @property
    def n_features_kept(self) -> int | None:
        """The number of features and pairs that have a weight, if the penalty leaves some out; otherwise None.

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
        importances = np.zeros(len(labels_of_features(self)))
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
        return additive(self._map, self.coef_[0], self.decision_intercept)

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
        return explanation(
            encoded_rows(X, None),
            labels_of_features(self),
            self.coef_[0],
            self.decision_intercept,
            self._map,
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
    """Fit one model for each `lam`, where each fit starts from the cuts of the fits before.

    Parameters
    ----------
    estimator : PairwiseHingeClassifier
        Its solver must be ``all-pairs``. Its other parameters hold for every model, and it stays unfitted itself.
    X, y : as in the estimator's `fit`
    lams : sequence of float
        The values of `lam`, above 0. The fits go from the largest to the smallest.
    sample_weight : as in the estimator's `fit`
    stop : callable, optional
        Called with each fitted model, from the largest `lam` on. If it returns True, no smaller `lam` is fitted.

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
    if not hasattr(solver, "path"):
        able = [repr(name) for name, other in estimator.solvers.items() if hasattr(other, "path")]
        needed = f"needs solver {' or '.join(able)}" if able else f"does not apply to {type(estimator).__name__}"
        raise InputError(f"lam_path {needed}, not {solver.name!r}")
    models = [clone(estimator).set_params(lam=lam) for lam in lams]
    if not models:
        raise InputError("lams is empty: give at least one value of lam")
    for model in models:
        model.check_parameters()
    first = models[0]
    with all_or_nothing(first):
        blocks = first._validated_blocks(X, y, sample_weight)
        of_the_data = {name: value for name, value in vars(first).items() if name.endswith("_")}
        fitted, _ = shifted(blocks)
        problem = solver.path(fitted, **first._solver_options())
        for model in sorted(models, key=lambda model: -model.lam):
            vars(model).update(of_the_data)
            solution = solve(problem.rounds(model.lam), tol=estimator.tol, max_passes=estimator.max_passes)
            fit = model._set_weights(solution, blocks, 0.0)
            fit.ranges = fitted.ranges
            set_solution(model, solution, fit, blocks)
            give_warnings(model, [fit])
            if stop is not None and stop(model):
                break
    return [model for model in models if hasattr(model, "coef_")]


@keyword_parameters
class HingeClassifier(LinearClassifier):
    """A linear support vector machine: the mean hinge of the rows, with an L1 or an L2 penalty.

    Minimises ``sum of m_i max(0, 1 - y_i (w.x_i + b)) + lam |w|_1``, or ``+ lam |w|_2^2`` without a factor of 1/2, after Tao,
    Zhu, Luo and Kong (2013). Here m_i is the weight of row i divided by the sum of all weights. The certificate says by how
    much at most the objective exceeds its minimum.

    Parameters
    ----------
    penalty : {"l1", "l2"}, default="l2"
    lam : float or "1/n", default=1e-3
        The weight of the penalty. "1/n" is one over the number of rows, the choice of the paper. The C of liblinear is 1 /
        (2 lam n).
    solver : str, dict or Solver, default="sdcd"
        With ``penalty="l2"``, every solver but ``psa`` is available. With ``penalty="l1"``, these are available: ``scd``,
        ``comid``, ``rda`` and ``psa``.

        Use ``sdcd`` for L2: it is dual coordinate descent in a random order and closes the gap. ``cdcd`` does the same in the
        order of the rows. ``scd`` is the paper's Non-smooth SCD, with steps along single features. ``comid``, ``rda`` and
        ``psa`` take steps along the subgradient of all rows, ``psa`` with projections onto an L1 ball. ``pegasos`` takes steps
        along single rows. These five come within a hundredth of the minimum in ten to several hundred rounds. Their lower bound
        lags far behind, so they usually end with `max_passes` and a ConvergenceWarning. A name stands for the default parameters
        of the solver. Give other parameters as ``{"name": "psa", "radius": 3.0}`` or ``PSA(radius=3.0)``: see
        `aucdist.papers.scd`.
    random_state : int, RandomState or None, default=None
        The seed of everything that is drawn at random, in ``sdcd``, ``scd`` and ``pegasos``.
    warm_start : bool, default=False
        Whether to start from the weights of the last fit. ``sdcd`` and ``cdcd`` start from its dual variables, also for
        another `lam`, if the number of rows is the same. They refuse weights from another solver.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is not penalised, except by ``sdcd`` and ``cdcd``, which treat it as the weight of a
        column of ones.
    class_weight : dict, "balanced" or None, default=None
        A factor for the weights of the rows of each class. "balanced" is n_samples / (2 rows of the class). With several
        classes it is the weight of the rows of a class in its model against the rest, whose rows then have weight 1.
    n_jobs : int or None, default=None
        The number of threads of a fit to arrays with several classes, which are fitted at the same time: None means one,
        and -1 one for each core. It does not change the result.
    tol : float, default=1e-3
        The fit ends when the relative gap, ``(primal - dual) / primal``, is at most `tol`.
    max_passes : int, default=1000
        The fit ends with a ConvergenceWarning after this many passes over the data. One pass computes the scores of all rows and
        a gradient.
    features : str, dict, map or None, default=None
        A feature map that replaces the features: ``"bins"``, ``"nystroem"``, ``"leaves"``, a dict such as ``{"map": "bins",
        "pairs": 20}``, or a transformer of `aucdist.maps`. It is fitted to the training rows, and the weights belong to its
        basis functions. The certificate holds for the map as it is: it does not compare other edges, landmarks or trees.
        With ``"auto"``, cross-validation within the training rows chooses the map and `lam`: see `aucdist.search.auto`, and
        scale the features first.
    verbose : int, default=0
        With 1, `fit` prints a line for the rounds 1 to 10, 20, 30, ..., 100, 200, ... and for the last one. With 2, it
        prints a line for every round.

    Attributes
    ----------
    intercept_ : ndarray of shape (1,), float64
        The intercept of `decision_function`.
    history_ : DataFrame
        One row for each round, with the columns round, passes, seconds, primal, dual, relative_gap, and zeros, the share of
        weights that are 0.
    resume_ : HingeStart
        With `warm_start` and ``sdcd`` or ``cdcd``: the state from which the next fit starts.
    coef_ : ndarray of shape (1, n_features), float64
        The weights of the features, or of the basis functions of the feature map.
    classes_ : ndarray of shape (2,)
        The second class is the positive one.
    certificate_ : Certificate
        How close the objective is to its minimum: ``primal``, ``dual``, ``relative_gap``, ``status``, ``rounding`` and
        ``slack``. See [The certificate](../certificate.md).
    n_passes_ : int
        The number of passes of the fit.
    threshold_ : float
        The threshold on the scale of `decision_function`. It is always 0, also after `set_threshold`, which shifts the
        scores.
    feature_map_ : FittedMap
        The fitted map, if `features` is given.
    chosen_ : dict
        With ``features="auto"``: the chosen settings, such as ``{"features": {"map": "leaves"}, "lam": 0.1}``.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        The column names of X, if it has some.
    categories_ : dict of str to tuple of str
        If X has columns of categories or texts: the values of each such column.
    feature_names_out_ : ndarray of shape (n_encoded_features,)
        In the same case: the names of all encoded features, with a 0/1 feature for each of these values. Weights,
        `monotone_` and `explain` refer to the encoded features.

    See Also
    --------
    LinkClassifier : Probabilities.
    PairwiseHingeClassifier : A loss over pairs of rows.

    Notes
    -----
    There is no ``predict_proba``: a score is not a probability.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucdist import HingeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = HingeClassifier(lam=1e-3).fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    """

    solvers = solver_table(SDCD, CDCD, SCD, COMID, RDA, PSA, Pegasos)
    _parameter_constraints: ClassVar[Constraints] = {
        **LinearClassifier._parameter_constraints,
        "lam": above_0((ONE_OVER_N,)),
        "penalty": OneOf(PENALTIES),
        "fit_intercept": SWITCH,
    }

    penalty: str = "l2"
    lam: float | str = 1e-3  # type: ignore[assignment]
    solver: Any = "sdcd"
    fit_intercept: bool = True
    class_weight: Mapping[Any, float] | str | None = None

    def _rounds(self, blocks: Blocks, start: Any) -> Iterator[Round]:
        """Yield the rounds of the solver, each with the share of weights that are 0."""
        lam = 1.0 / blocks.n_samples if self.lam == ONE_OVER_N else self.lam
        if isinstance(self.class_weight, Mapping):
            neg, pos = self._factors(self.class_weight)
        elif self.class_weight is None:
            neg, pos = EQUAL
        else:
            neg, pos = 0.5 * blocks.n_samples / blocks.n_neg, 0.5 * blocks.n_samples / blocks.n_pos
        options = self._solver_options() | {"intercept": bool(self.fit_intercept), "class_weight": (neg, pos)}
        for state in self.resolved_solver.rounds(blocks, lam, start, **options):
            zeros = float((state.w[: blocks.n_features] == 0.0).mean())
            yield replace(state, measures={"zeros": zeros})

    @property
    def _ignores_shift(self) -> bool:
        """Whether a shift of a column leaves the minimum as it is: with an intercept that the solver does not penalise."""
        return bool(self.fit_intercept) and not self.resolved_solver.penalises_intercept

    def _set_weights(self, solution: Solution, blocks: Blocks, lowered: float) -> Fit:
        w = solution.w if self.fit_intercept else np.append(solution.w, 0.0)
        self.coef_, self.intercept_ = w[np.newaxis, :-1], w[-1:] - lowered
        return Fit(count_scores(blocks, self.coef_[0]))

    def _parameters_of_class(self, k: int) -> dict[str, Any]:
        """Return the weight of the rows of the class at position `k` in its model against the rest."""
        if not isinstance(self.class_weight, Mapping):
            return {}
        return {"class_weight": {1: self._factors(self.class_weight)[k]}}

    def _factors(self, class_weight: Mapping[Any, float]) -> list[float]:
        """Return the factor for the weights of the rows of each class.

        Raises InputError if `class_weight` names a class that the rows do not have.
        """
        for label in class_weight:
            if label not in self.classes_:
                raise unknown("class in class_weight", label, self.classes_)
        return [float(class_weight.get(label, 1.0)) for label in self.classes_.tolist()]

    def _check_combination(self) -> None:
        super()._check_combination()
        weights = self.class_weight
        if weights is None or (isinstance(weights, str) and weights == BALANCED):
            return
        if not isinstance(weights, Mapping):
            raise InputError(f"class_weight is {weights!r}; a dict of classes, {BALANCED!r} or None is needed")
        for label, weight in weights.items():
            above_0().check(f"class_weight of {label!r}", weight)
