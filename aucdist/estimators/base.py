"""What every linear estimator has in common: validation, blocks, the loop, the fitted attributes."""

import numbers
import warnings
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, LocalBlocks
from aucdist.errors import InputError, unknown
from aucdist.estimators.conditioning import Shift, diagnosis, shifted
from aucdist.estimators.scores import count_scores, scores_of
from aucdist.metrics.auc import auc, best_threshold
from aucdist.objectives.probability_maps import ProbabilityMap
from aucdist.solvers.base import REACHED, Callback, Solution, Solver, Status, as_table, solve

REASONS = {
    Status.MAX_PASSES: "max_passes was reached",
    Status.FINISHED: "the solver took all its steps",
    Status.DIVERGED: "the steps diverged in the next round, as eta is too long: the weights are those",
    Status.ROUNDING: "rounding errors are as large as what is left of the gap, or hide where to go on,",
}


class RankingWarning(UserWarning):
    """The scores rank the training rows worse than chance."""


CALIBRATIONS = ("gev", "logit", "isotonic")

ROWS = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}


def _gives_probabilities(model: "LinearClassifier") -> bool:
    return model.probabilistic or model.calibration is not None


class LinearClassifier(ClassifierMixin, BaseEstimator):
    """A binary linear classifier fitted by a solver on blocks. A subclass is its docstring, its parameters and its solvers.

    Parameters that only some solvers take default to None, and are refused where they do not apply. A ranking estimator takes
    `calibration` and `prior` as well, and with the first has `predict_proba`.
    """

    solvers: ClassVar[dict[str, Solver]]
    probabilistic: ClassVar[bool] = False
    """Whether the solver's outcome is a probability without calibration."""
    of_pairs: ClassVar[bool] = False
    """Whether the objective is a mean over pairs, or else over rows."""
    calibration: str | None = None
    prior: float | None = None
    probability_: ProbabilityMap

    def __init__(
        self,
        *,
        lam: float = 1e-3,
        solver: str,
        tol: float = 1e-3,
        max_passes: int = 1000,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
    ):
        self.lam = lam
        self.solver = solver
        self.tol = tol
        self.max_passes = max_passes
        self.random_state = random_state
        self.warm_start = warm_start

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, callback: Callback | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or array, DataFrame, dask Array or DataFrame, or Blocks, of shape (n_samples, n_features)
            float32 stays float32; sums are float64 either way. Dask collections become blocks where their chunks are.
        y : array-like of shape (n_samples,)
            Two classes; the larger label (as NumPy sorts them) is the positive one. None with `Blocks`, whose labels are -1
            and +1.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, at least 0; a pair weighs the product. Rows of weight 0 are left out.
        callback : callable, optional
            Called after each round with a dict: round, passes, seconds, primal, dual, relative_gap.

        Returns
        -------
        self

        Raises
        ------
        InputError
            A ValueError: for a parameter outside its range, or data that cannot be used.
        """
        blocks = self._prepare(X, y, sample_weight)
        fitted, _ = self._shifted(blocks)
        start = self._start(blocks.n_features)
        rounds = self.solvers[self.solver].rounds(fitted, self.lam, start, **self._solver_options())
        solution = solve(rounds, tol=self.tol, max_passes=self.max_passes, callback=callback)
        self._take(solution, blocks)
        return self

    @property
    def _ignores_shift(self) -> bool:
        """Whether the best objective stays the same when a column is shifted, as that of pairs of rows does."""
        return True

    def _shifted(self, blocks: Blocks) -> tuple[Blocks, Shift | None]:
        """Return the blocks to fit, and by what columns are shifted in them, where the objective stays the same."""
        fitted, shift = shifted(blocks) if self._ignores_shift else (blocks, None)
        self._fitted_ranges = fitted.ranges
        return fitted, shift

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Blocks:
        """Check parameters and data, set what describes the data, and return the blocks."""
        self.check_parameters()
        blocks = self._as_blocks(X, y, sample_weight)
        if min(blocks.weight_pos, blocks.weight_neg) <= 0:
            raise InputError(
                f"all rows are of one class ({blocks.n_pos} positive, {blocks.n_neg} negative, or weighing nothing): "
                "both are needed"
            )
        return blocks

    def _take(self, solution: Solution, blocks: Blocks) -> None:
        """Set the fitted attributes."""
        self._note(solution)
        # A constant column moves no row past another: what weight it has is the rounding of a gradient.
        ranges = getattr(self, "_fitted_ranges", None)
        w = solution.w if ranges is None else np.where(ranges.constant, 0.0, solution.w)
        self.coef_ = w[np.newaxis, :]
        counts = count_scores(blocks, w)
        self.threshold_ = best_threshold(counts)
        self.intercept_ = np.array([-self.threshold_])
        self._warn_unless_converged()
        self._warn_if_worse_than_chance(auc(counts))
        if self.calibration is not None:
            from aucdist.estimators.calibration import calibrated  # it fits estimators itself

            self.probability_ = calibrated(self, blocks)

    def _note(self, solution: Solution) -> None:
        """Set the attributes that tell how the fit went."""
        self.certificate_, self.n_passes_ = solution.certificate, solution.passes
        self._records = solution.records

    @property
    def history_(self) -> pd.DataFrame:
        """A row per round of the last `fit`; a new table each time."""
        if not hasattr(self, "_records"):
            raise AttributeError(f"{type(self).__name__} has a history_ after `fit` only")
        return as_table(self._records)

    @property
    def decision_intercept(self) -> float:
        """What `decision_function` adds to X w."""
        return float(self.intercept_[0])

    def decision_function(self, X: Any) -> Any:
        """Return scores: positive means the positive class. Their order is what was optimised.

        Parameters
        ----------
        X : as in `fit`, of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), float64; a dask Array for a dask collection
        """
        check_is_fitted(self)
        if _is_dask(X):
            array = X.to_dask_array() if hasattr(X, "to_dask_array") else X
            return array.rechunk({1: -1}).map_blocks(self.decision_function, dtype=np.float64, drop_axis=1)
        X = validate_data(self, X, reset=False, **ROWS)
        return scores_of(X, self.coef_[0], self.decision_intercept)

    def predict(self, X: Any) -> Any:
        """Return classes: the positive one where the score is above the threshold, which maximised G-mean in training.

        Parameters
        ----------
        X : as in `fit`, of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,); a dask Array for a dask collection
        """
        scores = self.decision_function(X)
        if _is_dask(scores):
            return scores.map_blocks(lambda s: self.classes_[(s > 0).astype(int)], dtype=self.classes_.dtype)
        return self.classes_[(scores > 0).astype(int)]

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : as in `fit`, of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, 2), float64; a dask Array for a dask collection
            In the order of `classes_`; exactly 0 and 1 are possible.
        """
        scores = self.decision_function(X)
        if _is_dask(scores):
            return scores.map_blocks(self.probability_, dtype=np.float64, new_axis=1, chunks=(scores.chunks[0], 2))
        return self.probability_(scores)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags

    def check_parameters(self) -> None:
        """Check every parameter, as `fit` does first.

        Raises
        ------
        InputError
            Naming the parameter, its value and what is allowed.
        """
        if self.solver not in self.solvers:
            raise unknown("solver", self.solver, self.solvers)
        for name in sorted({option for solver in self.solvers.values() for option in solver.options}):
            takers = [key for key, solver in self.solvers.items() if name in solver.options]
            if getattr(self, name) is not None and self.solver not in takers:
                raise InputError(f"{name} applies to solver {', '.join(takers)}; with {self.solver!r} it must be None")
        _check_number("lam", self.lam, numbers.Real, "above 0 and finite", lambda v: 0 < v < np.inf)
        _check_number("tol", self.tol, numbers.Real, "at least 0 and finite", lambda v: 0 <= v < np.inf)
        _check_number("max_passes", self.max_passes, numbers.Integral, "at least 1", lambda v: v >= 1)
        self._check_calibration()

    def _check_calibration(self) -> None:
        if self.calibration is not None and self.calibration not in CALIBRATIONS:
            raise unknown("calibration", self.calibration, CALIBRATIONS)
        if self.prior is not None:
            _check_number("prior", self.prior, numbers.Real, "above 0 and below 1", lambda v: 0 < v < 1)
            if not _gives_probabilities(self):
                raise InputError("prior applies to probabilities: calibration must not be None")

    def _solver_options(self) -> dict[str, Any]:
        solver = self.solvers[self.solver]
        options = {name: getattr(self, name) for name in solver.options if getattr(self, name) is not None}
        if solver.random:
            options["seed"] = int(check_random_state(self.random_state).randint(2**31))
        return options

    def _as_blocks(self, X: Any, y: Any, sample_weight: Any) -> Blocks:
        """Return the data as blocks, and set `classes_` and `n_features_in_`."""
        if isinstance(X, Blocks):
            if y is not None or sample_weight is not None:
                raise InputError("Blocks bring their own labels and weights: y and sample_weight must be None")
            self.classes_, self.n_features_in_ = np.array([-1, 1]), X.n_features
            return X
        if _is_dask(X):
            return self._from_dask(X, y, sample_weight)
        X, y = validate_data(self, X, y, **ROWS)
        if y.dtype.kind not in "biu":  # whole numbers are classes, and the check would take longer than a small fit
            check_classification_targets(y)
        self.classes_ = _two_classes(y)
        labels = np.where(y == self.classes_[1], 1, -1)
        if sample_weight is None:
            return LocalBlocks([Block.of(X, labels)])
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        kept = weight > 0
        return LocalBlocks([Block.of(X[kept], labels[kept], weight=weight[kept])])

    def _from_dask(self, X: Any, y: Any, sample_weight: Any) -> Blocks:
        import dask

        from aucdist.engine.dask import blocks_from_collections, dask_chunks

        if not _is_dask(y) or (sample_weight is not None and not _is_dask(sample_weight)):
            raise InputError("X is a dask collection: y and sample_weight must be dask collections too")
        parts = dask.compute(*(dask.delayed(np.unique)(chunk) for chunk in dask_chunks(y)))
        self.classes_ = _two_classes(np.concatenate(parts))
        blocks = blocks_from_collections(X, y, sample_weight, encode=_Encode(self.classes_[1]))
        self.n_features_in_ = blocks.n_features
        if hasattr(X, "columns"):
            self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        return blocks

    def _start(self, n_features: int) -> np.ndarray | None:
        """Return the weights to start from, or None."""
        if not (self.warm_start and hasattr(self, "coef_")):
            return None
        if self.coef_.shape[1] != n_features:
            raise InputError(f"warm_start: the last fit had {self.coef_.shape[1]} features, this one has {n_features}")
        return self.coef_[0]

    def _warn_unless_converged(self) -> None:
        """Warn where the fit ended before `tol` was reached, and name the columns whose scale may be why; forget their ranges."""
        c, ranges = self.certificate_, self.__dict__.pop("_fitted_ranges", None)
        if c.status in REACHED:
            return
        fault = None if ranges is None else diagnosis(ranges, getattr(self, "feature_names_in_", None))
        proved = (
            f"primal and dual value are sure to {c.rounding:.3g} only"
            if c.status == Status.ROUNDING
            else "the certificate still holds for what was reached"
        )
        warnings.warn(
            f"{REASONS[c.status]} after {self.n_passes_} passes at a relative gap of {c.relative_gap:.3g} "
            f"(primal {c.primal:.6g}, dual {c.dual:.6g}), above tol={self.tol:g}; {proved}"
            + ("" if fault is None else f". {fault}"),
            ConvergenceWarning,
            stacklevel=4,
        )

    def _warn_if_worse_than_chance(self, area: float) -> None:
        """Warn where the scores rank the training rows worse than chance would, by their AUC."""
        if area < 0.5:
            warnings.warn(
                f"the AUC of the training rows is {area:.3g}, worse than chance: the scores rank negative rows above positive "
                "ones. Another lam or another solver is needed, or other rows",
                RankingWarning,
                stacklevel=4,
            )


class _Encode:
    """Labels to -1 and +1; a class, so that it travels to workers."""

    def __init__(self, positive: Any):
        self.positive = positive

    def __call__(self, y: np.ndarray) -> np.ndarray:
        return np.where(y == self.positive, 1, -1)


def _is_dask(thing: Any) -> bool:
    return hasattr(thing, "__dask_graph__")


def _two_classes(y: np.ndarray) -> np.ndarray:
    classes = np.unique(y)
    if len(classes) > 2:
        kind = type_of_target(y)
        raise InputError(
            f"Only binary classification is supported. The type of the target is {kind}: {len(classes)} classes."
        )
    if len(classes) < 2:
        raise InputError(f"the labels have one class only ({classes[0]!r}): both are needed")
    return classes


def _check_number(name: str, value: Any, kind: type, wanted: str, holds: Callable[[Any], bool]) -> None:
    if isinstance(value, bool) or not isinstance(value, kind) or not holds(value):
        raise InputError(
            f"{name} is {value!r}; {'an integer' if kind is numbers.Integral else 'a number'} {wanted} is needed"
        )
