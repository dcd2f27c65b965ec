"""Models of two classes, by their parts."""

from typing import Any

import numpy as np

from aucdist.data.dataset import Schema
from aucdist.data.preprocess import Preprocessor
from aucdist.linear_model import ClassWeights, LinearModel


def linear_model(
    coef: np.ndarray, intercept: float, schema: Schema, preprocessor: Preprocessor, about: dict[str, Any],
    probability: Any = None, feature_map: Any = None, reading: dict[str, Any] | None = None,
) -> LinearModel:  # fmt: skip
    """Return a model with these attributes of `ClassWeights` and of `LinearModel`."""
    weights = ClassWeights(coef, intercept, about, probability, feature_map)
    return LinearModel((weights,), schema, preprocessor, reading or {})
