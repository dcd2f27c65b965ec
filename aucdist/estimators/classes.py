"""Scores, classes and probabilities of rows by the models of several classes, each fitted against the rest."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from aucdist.errors import InputError
from aucdist.estimators.scores import encoded_rows
from aucdist.probability.probability_maps import probabilities_of_classes


def refuse_classes(model: BaseEstimator, attribute: str) -> None:
    """Raise an InputError if the model has several classes, of which this takes one."""
    if model.has_several_classes:
        raise InputError(
            f"{attribute} is not defined for several classes, and this model has {len(model.estimators_)}: use "
            f"estimators_[k].{attribute}, where estimators_[k] is the model of classes_[k] against the rest"
        )


def scores_of_classes(model: BaseEstimator, X: Any) -> np.ndarray:
    """Return the scores of validated rows for each class, with the intercepts, float64 of shape (n_samples, n_classes).

    Of two classes there is one column. Where several have no probabilities, a column is in units of the standard deviation of its
    scores of the training rows: the weights of each model have a length of its own, and the largest of a row's scores is to mean
    something.
    """
    models, shared = model.class_models, model._map
    if all(hasattr(one_model, "coef_") and one_model._map is shared for one_model in models):
        block = encoded_rows(X, shared)
        columns = [block.scores(one_model.coef_[0]) + one_model.decision_intercept for one_model in models]
    else:
        columns = [one_model._scores_without_intercept(X) + one_model.decision_intercept for one_model in models]
    return np.column_stack(columns) / model.class_spreads


def predicted_classes(model: BaseEstimator, scores: np.ndarray) -> np.ndarray:
    """Return the class of each row, ndarray of shape (n_samples,); with labels an indicator matrix, int64.

    `scores`, of shape (n_samples, n_classes): as `decision_function` returns them.
    """
    if not model.label_sets_.exclusive:
        return (scores > 0).astype(np.int64)
    if all(hasattr(one_model, "probability_") for one_model in model.estimators_):
        scores = probabilities(model, scores)
    return model.classes_[np.argmax(scores, axis=1)]


def probabilities(model: BaseEstimator, scores: np.ndarray) -> np.ndarray:
    """Return the probability of each class, given the scores of `decision_function`: see `probabilities_of_classes`."""
    maps = [one_model.probability_ for one_model in model.estimators_]
    return probabilities_of_classes(maps, scores, model.label_sets_.exclusive)
