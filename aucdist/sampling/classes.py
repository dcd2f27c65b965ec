"""Checks of the input of both samplers."""

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from aucdist.errors import InputError


def checked(sampler: Any, X: Any, y: Any, **kwargs: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return X and y as arrays, and the two labels, the smaller class first.

    If both classes have the same number of rows, the larger label counts as the smaller class.

    Parameters
    ----------
    sampler : BaseEstimator
        The sampler. `n_features_in_` is set, and `feature_names_in_` if X has column names.
    X, y
        The arguments of `fit_resample`.
    **kwargs
        Arguments of scikit-learn's `validate_data`.

    Raises
    ------
    InputError
        If there are not two classes.
    """
    X, y = validate_data(sampler, X, y, **kwargs)
    check_classification_targets(y)
    labels, counts = np.unique(y, return_counts=True)
    if len(labels) != 2:
        raise InputError(f"{len(labels)} classes in y; a sampler needs two, of which it leaves the smaller one whole")
    return X, y, labels[::-1] if counts[1] <= counts[0] else labels
