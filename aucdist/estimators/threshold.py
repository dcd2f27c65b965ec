"""The threshold of a fitted model, given or found on rows for a requirement."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from aucdist.errors import InputError
from aucdist.estimators.classes import refuse_classes
from aucdist.estimators.tables import checked_rows
from aucdist.estimators.validation import is_dask
from aucdist.metrics import threshold_at
from aucdist.metrics.public import labels_of
from aucdist.objectives.probability_maps import ProbabilityMap


def threshold_of_rows(model: Any, X: Any, y: Any, sample_weight: Any, wanted: Mapping[str, Any]) -> float:
    """Return the threshold of the scores without the intercept that meets one requirement on the rows.

    Parameters
    ----------
    model : BlockClassifier
        Fitted, of two classes.
    X, y, sample_weight
        The rows, in memory.
    wanted : mapping
        The requirements of `aucdist.metrics.threshold_at` by name; one is not None.
    """
    given = {name: value for name, value in wanted.items() if value is not None}
    if X is None or y is None or len(given) != 1:
        raise InputError("set_threshold: give either a threshold, or X, y and one of " + ", ".join(wanted))
    if is_dask(X):
        raise InputError("set_threshold takes rows in memory: give some rows of the dask collection, by .compute()")
    labels = labels_of("y", y)
    strange = ~np.isin(labels, model.classes_)
    if strange.any():
        at = int(np.argmax(strange))
        raise InputError(
            f"y has {labels[at]!r} at position {at} (counted from 0); the model has {model.classes_.tolist()}"
        )
    X = checked_rows(model, X)
    scores, positive = model._scores_without_intercept(X), labels == model.classes_[1]
    return threshold_at(positive, scores, sample_weight=sample_weight, **given)


class WithThreshold:
    """An estimator whose threshold can be set."""

    intercept_: np.ndarray
    threshold_: float
    probability_: ProbabilityMap

    def set_threshold(
        self,
        threshold: float | None = None,
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
            rows and one requirement.
        X, y, sample_weight : optional
            Rows that choose the threshold, as for `fit`: training rows, or better others, but not those of the test.
        fpr, alerts, precision, recall : float, optional
            See `aucdist.metrics.threshold_at`.
        cost : mapping, optional
            ``{"false_alarm": 1, "miss": 40}``; where costs differ by row, a column: ``{"false_alarm": 5, "miss": amount}``.

        Raises
        ------
        InputError
            If neither a threshold is given nor rows and one requirement, if no threshold meets it, or if the model has several
            classes, each of which has a threshold of its own.
        """
        check_is_fitted(self)
        refuse_classes(self, "set_threshold")
        wanted = {"fpr": fpr, "alerts": alerts, "precision": precision, "recall": recall, "cost": cost}
        if threshold is None:
            threshold = threshold_of_rows(self, X, y, sample_weight, wanted)
        elif any(given is not None for given in (X, y, sample_weight, *wanted.values())):
            raise InputError("set_threshold: give either a threshold, or X, y and one of " + ", ".join(wanted))
        by = threshold - self.threshold_
        self.threshold_ = threshold
        self._set_intercept(-threshold)
        if hasattr(self, "probability_"):
            self.probability_ = self.probability_.shifted(by)

    def _set_intercept(self, intercept: float) -> None:
        self.intercept_ = np.array([intercept])
