"""Models of two classes by their parts, and a fit whose counts of scores are kept."""

from typing import Any

import numpy as np

from aucdist.data.dataset import Schema
from aucdist.data.preprocess import Preprocessor
from aucdist.estimators.fitting import fit_rows, give_warnings
from aucdist.model import write_model
from aucdist.model.linear_model import ClassWeights, LinearModel


def linear_model(
    coef: np.ndarray, intercept: float, schema: Schema, preprocessor: Preprocessor, about: dict[str, Any],
    probability: Any = None, feature_map: Any = None, reading: dict[str, Any] | None = None,
) -> LinearModel:  # fmt: skip
    """Return a model with these attributes of `ClassWeights` and of `LinearModel`."""
    weights = ClassWeights(coef, intercept, about, probability, feature_map)
    return LinearModel((weights,), schema, preprocessor, reading or {})


def save_model(url: str, **parts: Any) -> None:
    """Write a model with these parameters of `linear_model` into a folder."""
    write_model(url, linear_model(**parts))


def fit_counting(estimator: Any, rows: Any, callback: Any = None) -> Any:
    """Fit an estimator to blocks, and return the counts of their scores that the fit has made; None if it needed none.

    With several classes it is a list.
    """
    fits = fit_rows(estimator, rows, callback=callback, keep_counts=True)
    give_warnings(estimator, fits)
    counts = [fit.counts for fit in fits]
    return counts if estimator.has_several_classes else counts[0]
