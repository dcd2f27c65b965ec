"""Fits of which a test expects no warning that they were ended early, and the directions of features."""

import warnings
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

WORDS = {1: "increasing", -1: "decreasing"}


def fitted(model: T, *args: Any, **options: Any) -> T:
    """Fit a model and return it, without what a user is told of a fit that is not converged or not of much use."""
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return model.fit(*args, **options)


def mapping(signs: np.ndarray) -> dict[int, str]:
    """Return directions as `monotone=` takes them."""
    return {j: WORDS[int(s)] for j, s in enumerate(signs) if s}


def violations(model: Any, X: np.ndarray, signs: np.ndarray, r: np.random.Generator) -> int:
    """Count neighbours among rows that differ in one feature only whose scores are in the wrong order."""
    wrong = 0
    for j in np.flatnonzero(signs):
        values = np.sort(X[~np.isnan(X[:, j]), j])
        if len(values) < 2:
            continue
        tried = np.unique(np.concatenate((values, np.nextafter(values, np.inf), [values[0] - 1.0, values[-1] + 1.0])))
        for row in X[r.integers(0, len(X), 20)]:
            same = np.repeat(row[None], len(tried), axis=0)
            same[:, j] = tried
            wrong += int((signs[j] * np.diff(model.decision_function(same)) < 0.0).sum())
    return wrong
