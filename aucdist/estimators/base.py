"""The base class of all estimators, `BlockClassifier`, which is fitted to blocks of rows."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from aucdist.estimators.display import WithPlots
from aucdist.estimators.fitting import Fittable, fit_rows, give_warnings
from aucdist.estimators.scores import predicted_classes, scores_of_classes
from aucdist.estimators.tables import allows_missing, checked_rows, is_dask, map_chunks
from aucdist.solvers.base import Callback, Certificate, as_table

ELSEWHERE = {
    "reasons": "aucdist.model.as_model(model).reasons(X)",
    "save": "aucdist.model.write_model(folder, model)",
    "load": "aucdist.model.load_model(folder)",
    "export": "aucdist.export(model, 'sql'), or another format",
    "n_iter_": "n_passes_",
}
"""What users look for at an estimator, and where it is."""


class BlockClassifier(ClassifierMixin, WithPlots, Fittable, ABC):
    """A classifier that one of several solvers fits to blocks of rows. With several classes, each is fitted against the rest.

    A subclass has the parameters `solver`, `tol`, `max_passes` and `random_state`, and defines `_fit` and
    `_scores_without_intercept`. `WithSolver` describes its parameters.
    """

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        callback: Callback | None = None,
        groups: Any = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or array, DataFrame, dask Array or DataFrame, or Blocks, of shape (n_samples, n_features)
            float32 stays float32; sums are float64 either way. Each chunk of a dask collection becomes a block on the worker that
            holds the chunk. In a table of pandas, polars or pyarrow, each value of a column of categories or strings becomes a
            0/1 feature: see the page "Pandas and scikit-learn" of the documentation.
        y : array-like of shape (n_samples,), or indicator matrix, dense or sparse, of shape (n_samples, n_classes)
            The larger of two labels, as NumPy sorts them, is the positive class, as for scikit-learn's metrics.
            To choose another one, give ``y == "fraud"``. With more classes, or an indicator matrix of labels, a model is fitted
            for each against the rest: see the page "Several classes" of the documentation. Leave y out if X is
            a `Blocks` object, which contains its own labels (-1 and +1).
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, at least 0. The weight of a pair is the product of the weights of its two rows. Rows of
            weight 0 do not count in the objective.
        callback : callable, optional
            Called after each round with a dict: round, passes, seconds, primal, dual, relative_gap. ``callback=print`` shows
            them while the fit runs. The seconds of the first fit on a machine include the compiling of kernels.
        groups : array-like of shape (n_samples,), optional
            The group of each row, a number or a string, such as a user or a query. A pair is then two rows of one group. Only
            some estimators and solvers accept groups. With metadata routing: ``set_fit_request(groups=True)``.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        InputError
            A ValueError, if a parameter is outside its range, or the data cannot be used.

        Warns
        -----
        ConvergenceWarning
            If the fit ended before `tol` was reached.
        RankingWarning
            If the scores rank the training rows worse than chance.
        """
        give_warnings(self, fit_rows(self, X, y, sample_weight, groups, callback))
        return self

    @property
    def certificates_(self) -> list[Certificate]:
        """The certificate of each class after a fit of several classes."""
        return [model.certificate_ for model in self.estimators_]

    @property
    def histories_(self) -> list[pd.DataFrame]:
        """The history of each class after a fit of several classes: see `history_`."""
        return [model.history_ for model in self.estimators_]

    @abstractmethod
    def _scores_without_intercept(self, X: Any) -> np.ndarray:
        """Return the scores of validated rows without the intercept, float64 of shape (n_samples,)."""

    @property
    def history_(self) -> pd.DataFrame:
        """A new table with one row for each round of the last `fit`."""
        check_is_fitted(self)
        return as_table(self._records)

    @property
    def ignores_zero_weight(self) -> bool:
        """Whether a fit without the rows of weight 0 gives exactly the same result."""
        return self.resolved_solver.ignores_zero_weight

    def decision_function(self, X: Any) -> Any:
        """Return the score of each row. The positive class is predicted if the score is above 0.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame or dask collection of shape (n_samples, n_features)
            The rows to score, with the features of the training rows.

        Returns
        -------
        ndarray of shape (n_samples,), float64; a dask Array for a dask collection
            With several classes, the shape is (n_samples, n_classes), with the scores of each class against the rest. If the
            model has no probabilities, each column is divided by the standard deviation of its scores on the training rows.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        InputError
            A ValueError, if X has other features than the training rows, or values that cannot be used.
        """
        check_is_fitted(self)
        if is_dask(X):
            return map_chunks(self, X, self.decision_function, np.float64, self._width)
        scores = scores_of_classes(self, checked_rows(self, X))
        return scores if self.has_several_classes else scores[:, 0]

    @property
    def _width(self) -> int | None:
        return len(self.estimators_) if self.has_several_classes else None

    def predict(self, X: Any) -> Any:
        """Return the predicted class of each row, which is the positive one if the score is above 0.

        With several classes, the predicted class is the one with the largest probability, or without probabilities the one with
        the largest score: see `decision_function`. Each label of an indicator matrix is predicted if its score is above 0.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame or dask collection of shape (n_samples, n_features)
            The rows to score, with the features of the training rows.

        Returns
        -------
        ndarray of shape (n_samples,), with the type of the labels of `fit`; a dask Array for a dask collection
            Each value is one of `classes_`. For an indicator matrix of labels, it is a matrix of shape (n_samples, n_classes),
            int64.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        InputError
            A ValueError, if X has other features than the training rows, or values that cannot be used.
        """
        if is_dask(X):
            check_is_fitted(self)
            labels = self.has_several_classes and not self.label_sets_.exclusive
            return map_chunks(
                self, X, self.predict, np.int64 if labels else self.classes_.dtype, self._width if labels else None
            )
        scores = self.decision_function(X)
        if self.has_several_classes:
            return predicted_classes(self, scores)
        return self.classes_[(scores > 0).astype(int)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = allows_missing(self)
        tags.classifier_tags.multi_class = tags.classifier_tags.multi_label = True
        return tags

    if not TYPE_CHECKING:  # otherwise hasattr would be true for every name

        def __getattr__(self, name: str) -> Any:
            """Raise the error for a missing attribute. It says when the attribute exists, or what to use instead."""
            kind = type(self).__name__
            text = f"{kind!r} object has no attribute {name!r}"
            if self.has_several_classes and hasattr(self.estimators_[0], name):
                text = f"this {kind} has a model for each class: see `estimators_[k].{name}`"
            elif isinstance(part := getattr(type(self), name, None), property):
                return part.fget(self)  # raises the error that says why the model does not have it
            elif name == "predict_proba":
                calibrate = "fit it with calibration='logit', or " * ("calibration" in self._get_param_names())
                text = f"this {kind} gives no probabilities: {calibrate}fit a LinkClassifier"
            elif name in ELSEWHERE:
                text += f": use {ELSEWHERE[name]}"
            raise AttributeError(text, name=name, obj=self)
