"""The threshold of a fitted model, set by hand or chosen on rows for a requirement."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from aucdist.errors import InputError
from aucdist.estimators.classes import stack_intercepts
from aucdist.estimators.tables import checked_rows
from aucdist.estimators.validation import is_dask
from aucdist.metrics import threshold_at
from aucdist.metrics.counts import labels_of
from aucdist.objectives.probability_maps import ProbabilityMap


def _thresholds_of_rows(model: Any, X: Any, y: Any, sample_weight: Any, requirement: Mapping[str, Any]) -> list[float]:
    """Return the threshold of X w that meets a requirement on rows; of several classes one for each against the rest."""
    several = model.has_several_classes
    if several and not model.label_sets_.exclusive:
        indicator, n = np.asarray(y.toarray() if hasattr(y, "toarray") else y), len(model.estimators_)
        if indicator.ndim != 2 or indicator.shape[1] != n or not np.isin(indicator, (0, 1)).all():
            raise InputError(
                f"y must be an indicator matrix of 0 and 1 with {n} columns, one for each label of the model"
            )
        members = indicator == 1
    else:
        labels = labels_of("y", y)
        strange = ~np.isin(labels, model.classes_)
        if strange.any():
            at = int(np.argmax(strange))
            raise InputError(
                f"y has {labels[at]!r} at position {at} (counted from 0); the model has {model.classes_.tolist()}"
            )
        members = labels[:, np.newaxis] == (model.classes_ if several else model.classes_[1:])
    X, thresholds = checked_rows(model, X), []
    for k, of_class in enumerate(model.estimators_ if several else [model]):
        scores = of_class._scores_without_intercept(X)
        try:
            thresholds.append(threshold_at(members[:, k], scores, sample_weight=sample_weight, **requirement))
        except InputError as error:
            if not several:
                raise
            raise InputError(f"class {model.label_sets_.names()[k]!r}: {error}") from None
    return thresholds


def _without_intercept(threshold: float, intercept: float) -> float:
    """Return the threshold of X w that is passed exactly where X w + intercept, rounded, passes `threshold`."""
    if not np.isfinite([threshold, intercept]).all():
        return threshold
    middle = (Fraction(threshold) + Fraction(float(np.nextafter(threshold, np.inf)))) / 2 - Fraction(intercept)
    cut = float(middle)  # up to about here, sums are rounded to the threshold
    while Fraction(cut) > middle or cut + intercept > threshold:
        cut = float(np.nextafter(cut, -np.inf))
    return cut


class WithThreshold:
    """An estimator whose threshold can be set."""

    estimators_: list[Any]
    intercept_: np.ndarray
    probability_: ProbabilityMap

    @property
    def threshold_(self) -> float:
        """What `predict` compares scores of `decision_function` with: 0, always."""
        check_is_fitted(self)
        if "estimators_" in vars(self):
            raise AttributeError
        return 0.0

    @property
    def thresholds_(self) -> np.ndarray:
        """The threshold of each class, after a fit of several: 0, always."""
        return np.zeros(len(self.estimators_))

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
        """Move the scores so that `predict`, which flags scores above 0, flags other rows; ranking and probabilities stay.

        Parameters
        ----------
        threshold : float, optional
            A score of `decision_function` as it is before this call: it becomes 0, so that rows above it are predicted positive.
            Without it, give rows and one requirement. Of several classes an array of shape (n_classes,), in the order of
            `classes_`.
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
        named = {"fpr": fpr, "alerts": alerts, "precision": precision, "recall": recall, "cost": cost}
        requirement = {name: value for name, value in named.items() if value is not None}
        by_rows = X is not None and y is not None and len(requirement) == 1
        if (threshold is None) != by_rows or (threshold is not None and (requirement or sample_weight is not None)):
            raise InputError("set_threshold: give either a threshold, or X, y and one of " + ", ".join(named))
        if is_dask(X):
            raise InputError("set_threshold takes rows in memory: give some rows of the dask collection, by .compute()")
        several = "estimators_" in vars(self)
        models = self.estimators_ if several else [self]
        if threshold is None:
            cuts = _thresholds_of_rows(self, X, y, sample_weight, requirement)
        else:
            values = np.asarray(threshold, dtype=np.float64)
            if np.isnan(values).any():
                raise InputError(f"threshold is {threshold!r}; a number is needed")
            if values.shape != ((len(models),) if several else ()):
                raise InputError(f"set_threshold: {len(models)} thresholds are needed, in the order of classes_")
            values = values * getattr(self, "spreads_", 1.0)
            cuts = [
                _without_intercept(value, model.decision_intercept)
                for value, model in zip(np.atleast_1d(values).tolist(), models, strict=True)
            ]
        self.set_raw_threshold(cuts if several else cuts[0])

    @property
    def raw_threshold(self) -> float:
        """The threshold on the scale of X w, of sums of kernel values for a kernel machine: minus the intercept of scores."""
        return 0.0 - self.decision_intercept

    def set_raw_threshold(self, threshold: Any) -> None:
        """Have `predict` flag the rows whose X w, or sum of kernel values, is above a threshold.

        Parameters
        ----------
        threshold : float, or a sequence of one for each of several classes
        """
        if "estimators_" in vars(self):
            for model, value in zip(self.estimators_, threshold, strict=True):
                model.set_raw_threshold(value)
            stack_intercepts(self)
            return
        if hasattr(self, "probability_"):
            self.probability_ = self.probability_.shifted(threshold + self.decision_intercept)
        self._set_intercept(0.0 - threshold)

    @property
    def decision_intercept(self) -> float:
        """What `decision_function` adds to X w, or to the sums of kernel values."""
        return float(self.intercept_[0])

    def _set_intercept(self, intercept: float) -> None:
        self.intercept_ = np.array([intercept])
