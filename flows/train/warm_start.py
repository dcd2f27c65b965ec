"""The start of a fit from the weights of an earlier model."""

from typing import Any

import numpy as np
from sklearn.base import clone

from aucdist.class_models import ClassModels
from aucdist.data.preprocess import Preprocessor
from aucdist.model import LinearModel
from flows.rows.train_test import TrainTestRows


def start_from(estimator: Any, model: LinearModel | ClassModels, rows: TrainTestRows) -> str:
    """Let a fit start from the weights of a model, where these mean the same, and return what was done, in words.

    The optimum does not depend on the start, within the tolerance. Weights of scaled features are scaled as the rows are now.

    `estimator`: changed in place.
    `model`: the weights of a model of several classes mean something else.
    """
    if isinstance(model, ClassModels):
        return "the fit starts from zero: the model in use is of several classes"
    if (cannot := _why_not(estimator, model, rows)) is not None:
        return f"the fit starts from zero: {cannot}"
    _set_start(estimator, model, rows)
    return "the fit starts from the weights in use"


def start_each_from(estimator: Any, model: LinearModel | ClassModels, rows: TrainTestRows) -> str:
    """Let the fit of each class start from the weights of the same class, as `start_from` does; the others start from zero."""
    assert rows.tables is not None
    if isinstance(model, LinearModel):
        return "the fits start from zero: the model in use is of two classes"
    if (cannot := _why_not(estimator, model.models[0], rows)) is not None:
        return f"the fits start from zero: {cannot}"
    before, names = dict(zip(model.classes, model.models, strict=True)), rows.tables.train.names()
    estimator.estimators_ = [clone(estimator) for _ in names]
    for one, name in zip(estimator.estimators_, names, strict=True):
        if name in before:
            _set_start(one, before[name], rows)
    estimator.label_sets_, estimator.warm_start = rows.tables.train, True
    n = sum(name in before for name in names)
    return f"{n} of {len(names)} classes start from the weights in use"


def _why_not(estimator: Any, model: LinearModel, rows: TrainTestRows) -> str | None:
    """Return why the weights of a model mean something else than those of the fit, or None."""
    old, new = model.preprocessor, rows.preprocessor
    cannot = None
    if model.about.get("estimator") != type(estimator).__name__ or not hasattr(estimator, "warm_start"):
        cannot = "the model in use is of another kind"
    elif model.feature_map is not None or getattr(estimator, "features", None) is not None:
        cannot = "feature maps are fitted anew"
    elif model.schema.feature_names != rows.schema.feature_names or old.log1p != new.log1p:
        cannot = "its features are others"
    elif "unit-row" in (old.scale, new.scale) and old.scale != new.scale:
        cannot = "its features are scaled in another way"
    return cannot


def _set_start(estimator: Any, model: LinearModel, rows: TrainTestRows) -> None:
    old, new = model.preprocessor, rows.preprocessor
    coef = model.coef * _factor(old, len(model.coef)) / _factor(new, len(model.coef))
    estimator.coef_, estimator.intercept_ = coef[None, :], np.array([model.intercept])
    estimator.warm_start = True


def _factor(preprocessor: Preprocessor, n_features: int) -> np.ndarray:
    """Return what features are multiplied by."""
    return np.ones(n_features) if preprocessor.factor is None else preprocessor.factor
