"""The threshold of a fitted model, given or found on rows for a requirement."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from aucdist.errors import InputError
from aucdist.estimators.classes import stack_intercepts
from aucdist.estimators.tables import checked_rows
from aucdist.estimators.validation import is_dask
from aucdist.metrics import threshold_at
from aucdist.metrics.public import labels_of
from aucdist.objectives.probability_maps import ProbabilityMap


def threshold_of_rows(model: Any, X: Any, y: Any, sample_weight: Any, wanted: Mapping[str, Any]) -> float:
    """Return the threshold of the scores without the intercept that meets one requirement on the rows.

    `model`: fitted, of two classes.
    `X`, `y` and `sample_weight`: the rows, in memory.
    `wanted`: the requirements of `aucdist.metrics.threshold_at` by name; one is not None.
    """
    given = _checked_request(X, y, wanted)
    labels = _known_labels(model, y)
    scores, positive = model._scores_without_intercept(checked_rows(model, X)), labels == model.classes_[1]
    return threshold_at(positive, scores, sample_weight=sample_weight, **given)


def thresholds_of_rows(model: Any, X: Any, y: Any, sample_weight: Any, wanted: Mapping[str, Any]) -> np.ndarray:
    """Return for each of several classes the threshold that meets one requirement, float64 of shape (n_classes,).

    `model`: fitted, of several classes.
    `X`, `y`, `sample_weight` and `wanted`: as for `threshold_of_rows`; with labels `y` is an indicator matrix.
    """
    given, n = _checked_request(X, y, wanted), len(model.estimators_)
    if model.label_sets_.exclusive:
        members = _known_labels(model, y)[:, np.newaxis] == model.classes_
    else:
        indicator = np.asarray(y.toarray() if hasattr(y, "toarray") else y)
        if indicator.ndim != 2 or indicator.shape[1] != n or not np.isin(indicator, (0, 1)).all():
            raise InputError(
                f"y must be an indicator matrix of 0 and 1 with {n} columns, one for each label of the model"
            )
        members = indicator == 1
    X, found = checked_rows(model, X), np.empty(n)
    for k, (name, one) in enumerate(zip(model.label_sets_.names(), model.estimators_, strict=True)):
        scores = one._scores_without_intercept(X)
        try:
            found[k] = threshold_at(members[:, k], scores, sample_weight=sample_weight, **given)
        except InputError as error:
            raise InputError(f"class {name!r}: {error}") from None
    return found


def _checked_request(X: Any, y: Any, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the one requirement that is given, by its name."""
    given = {name: value for name, value in wanted.items() if value is not None}
    if X is None or y is None or len(given) != 1:
        raise InputError("set_threshold: give either a threshold, or X, y and one of " + ", ".join(wanted))
    if is_dask(X):
        raise InputError("set_threshold takes rows in memory: give some rows of the dask collection, by .compute()")
    return given


def _known_labels(model: Any, y: Any) -> np.ndarray:
    labels = labels_of("y", y)
    strange = ~np.isin(labels, model.classes_)
    if strange.any():
        at = int(np.argmax(strange))
        raise InputError(
            f"y has {labels[at]!r} at position {at} (counted from 0); the model has {model.classes_.tolist()}"
        )
    return labels


class WithThreshold:
    """An estimator whose threshold can be set."""

    estimators_: list[Any]
    intercept_: np.ndarray
    threshold_: float
    probability_: ProbabilityMap

    def set_threshold(
        self,
        threshold: Any = None,
        *,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        fpr: float | None = None,
        alerts: float | None = None,
        precision: float | None = None,
        recall: float | None = None,
        cost: Mapping[str, Any] | None = None,
    ) -> None:
        """Set the threshold that `predict` uses; the ranking and the probabilities stay the same.

        Parameters
        ----------
        threshold : float, optional
            Of the scores without the intercept, such as ``X @ coef_[0]``: rows above it are predicted positive. Without it, give
            rows and one requirement. Of several classes an array of shape (n_classes,), in the order of `classes_`.
        X, y, sample_weight : optional
            Rows that choose the threshold, as for `fit`: training rows, or better others, but not those of the test. Of several
            classes each gets the threshold that meets the requirement with this class against the rest.
        fpr, alerts, precision, recall : float, optional
            See `aucdist.metrics.threshold_at`.
        cost : mapping, optional
            ``{"false_alarm": 1, "miss": 40}``; where costs differ by row, a column: ``{"false_alarm": 5, "miss": amount}``.

        Raises
        ------
        InputError
            If neither a threshold is given nor rows and one requirement, or if no threshold meets it.
        """
        check_is_fitted(self)
        wanted = {"fpr": fpr, "alerts": alerts, "precision": precision, "recall": recall, "cost": cost}
        several = "estimators_" in vars(self)
        if threshold is None:
            of_rows = thresholds_of_rows if several else threshold_of_rows
            threshold = of_rows(self, X, y, sample_weight, wanted)
        elif any(given is not None for given in (X, y, sample_weight, *wanted.values())):
            raise InputError("set_threshold: give either a threshold, or X, y and one of " + ", ".join(wanted))
        if several:
            thresholds, n = np.asarray(threshold, dtype=np.float64), len(self.estimators_)
            if thresholds.shape != (n,):
                raise InputError(f"set_threshold: {n} thresholds are needed, in the order of classes_")
            for one, value in zip(self.estimators_, thresholds.tolist(), strict=True):
                one.set_threshold(value)
            stack_intercepts(self)
            return
        by = threshold - self.threshold_
        self.threshold_ = threshold
        self._set_intercept(-threshold)
        if hasattr(self, "probability_"):
            self.probability_ = self.probability_.shifted(by)

    def _set_intercept(self, intercept: float) -> None:
        self.intercept_ = np.array([intercept])
