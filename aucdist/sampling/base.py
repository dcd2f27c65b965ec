"""The base of the samplers: input checks and tags as imbalanced-learn expects them, and output of the type of the input."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, OneToOneFeatureMixin
from sklearn.utils import InputTags, Tags, TargetTags
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d, validate_data

from aucdist.errors import InputError
from aucdist.parameters import Constraints, check_constraints


@dataclass(slots=True)
class SamplerInputTags(InputTags):
    """scikit-learn's tags of the input, with the one that imbalanced-learn adds."""

    dataframe: bool = True


@dataclass(slots=True)
class SamplerTags:
    """imbalanced-learn's tag of a sampler: whether it has `sample_indices_`."""

    sample_indices: bool = False


@dataclass(slots=True)
class TagsOfSampler(Tags):
    """scikit-learn's tags, with those that imbalanced-learn adds."""

    sampler_tags: SamplerTags | None = None


class Sampler(OneToOneFeatureMixin, BaseEstimator, ABC):
    """A sampler of imbalanced-learn's contract. A subclass resamples checked arrays."""

    _parameter_constraints: ClassVar[Constraints] = {}
    returns_rows_of_input = False
    """Whether the result consists of rows of the input, whose positions are `sample_indices_`."""

    def fit(self, X: Any, y: Any) -> Self:
        """Set the fitted attributes as `fit_resample` does, without returning rows.

        Parameters
        ----------
        X, y
            As for `fit_resample`.

        Returns
        -------
        self
        """
        self.fit_resample(X, y)
        return self

    def fit_resample(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return the resampled rows and their labels, in the types of X and y.

        Parameters
        ----------
        X : array-like, sparse matrix or array, or DataFrame of shape (n_samples, n_features)
            float32 stays float32.
        y : array-like of shape (n_samples,), (n_samples, 1), or (n_samples, n_classes) with one 1 in each row
            Labels of two or more classes.

        Returns
        -------
        X : of the type of X
        y : of the type of y

        Raises
        ------
        InputError
            A ValueError: if a parameter is out of its range, or the data cannot be sampled.
        """
        self.check_parameters()
        labels = _labels_of(y)
        rows, labels = validate_data(self, X, labels, accept_sparse="csr", dtype=[np.float64, np.float32])
        classes, counts = np.unique(labels, return_counts=True)
        if len(classes) < 2:
            raise InputError(f"{len(classes)} classes in y; a sampler needs at least two")
        # The smallest class first. Among classes of equal size, the largest label counts as the smallest class.
        order = np.lexsort((-np.arange(len(classes)), counts))
        return self._resample(X, y, rows, labels, classes[order])

    def check_parameters(self) -> None:
        """Check every parameter.

        Raises
        ------
        InputError
            Naming the parameter, its value and what is allowed.
        """
        check_constraints(self, self._parameter_constraints)

    @abstractmethod
    def _resample(self, X: Any, y: Any, rows: Any, labels: np.ndarray, classes: np.ndarray) -> tuple[Any, Any]:
        """Return the resampled X and y.

        `X` and `y`: the input.
        `rows` and `labels`, of shape (n_samples, n_features), and ndarray of shape (n_samples,): the checked rows and
            labels.
        `classes`, of shape (n_classes,): the distinct labels, by the size of their class, the smallest first.
        """

    def __sklearn_tags__(self) -> TagsOfSampler:
        return TagsOfSampler(
            estimator_type="sampler",
            target_tags=TargetTags(required=True),
            input_tags=SamplerInputTags(sparse=True),
            sampler_tags=SamplerTags(sample_indices=self.returns_rows_of_input),
        )


def _labels_of(y: Any) -> np.ndarray:
    """Return labels of shape (n_samples,), from a column, or from one-hot rows as the position of the 1."""
    kind = type_of_target(y, input_name="y")
    if kind.startswith("multilabel") or kind.endswith("multioutput"):
        column = np.asarray(y)
        if kind != "multilabel-indicator" or (column.sum(axis=1) != 1).any():
            raise InputError("Multilabel and multioutput targets are not supported.")
        return np.asarray(column.argmax(axis=1))
    check_classification_targets(y)
    return np.asarray(column_or_1d(y))


def appended(X: Any, rows: Any) -> Any:
    """Return X with more rows below, in the type of X; floats keep their type, and integers become floats.

    Parameters
    ----------
    X : list, DataFrame, or array-like of shape (n_samples, n_features)
    rows : ndarray of shape (n_more, n_features)
    """
    if hasattr(X, "columns"):
        import pandas as pd

        more = pd.DataFrame(rows, columns=X.columns)
        # A sparse column says the type of its values as `subtype`.
        floats = {name: kind for name, kind in X.dtypes.items() if getattr(kind, "subtype", kind).kind == "f"}
        return pd.concat([X, more.astype(floats)], ignore_index=True)
    if sp.issparse(X):
        return sp.vstack([X, sp.csr_matrix(rows)], format=X.format, dtype=rows.dtype)
    both = np.vstack([np.asarray(X), rows])
    return both.tolist() if isinstance(X, list) else both


def appended_labels(y: Any, labels: np.ndarray) -> Any:
    """Return y with more labels below, in the type of y: a list, a Series or DataFrame, or an array of one or more columns."""
    if hasattr(y, "iloc"):
        import pandas as pd

        more = pd.DataFrame(labels, columns=y.columns) if y.ndim == 2 else pd.Series(labels, name=y.name)
        return pd.concat([y, more.astype(y.dtypes if y.ndim == 2 else y.dtype)], ignore_index=True)
    both = np.concatenate([np.asarray(y), labels])
    return both.tolist() if isinstance(y, list) else both
