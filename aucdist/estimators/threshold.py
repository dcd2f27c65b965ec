"""The threshold of a fitted model that some rows need for a requirement."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from aucdist.errors import InputError
from aucdist.estimators.validation import accepted_rows, is_dask, without_index
from aucdist.metrics import threshold_at
from aucdist.metrics.lifted import labels_of


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
    X = validate_data(model, without_index(X), reset=False, **accepted_rows(model))
    scores, positive = model._scores_without_intercept(X), labels == model.classes_[1]
    return threshold_at(positive, scores, sample_weight=sample_weight, **given)
