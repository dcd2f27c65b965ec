"""Several classes or labels: a model for each against the rest, all of them fitted to one set of blocks.

What needs no labels is done once: the rows are checked, put into blocks and looked at for far columns once, and a feature map
that does not depend on the classes (``bins`` without pairs) is fitted and applied once, to all rows alike. What depends on the
labels is done for each class: landmarks, trees, pairs of bins, ``monotone="auto"``, calibration. Each fit is that of
`BlockClassifier.fit` with ``y == one_class``, with a history and a certificate of its own, and has the same bits. As many fits
run side by side as the blocks have threads.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from aucdist.engine.steps import in_threads, one_blas_thread
from aucdist.engine.view import ClassBlocks
from aucdist.errors import InputError
from aucdist.estimators.monotone import AUTO
from aucdist.estimators.scores import count_scores, encoded_rows, mean_and_spread, naming_class
from aucdist.estimators.tables import ENCODING
from aucdist.estimators.validation import without_equal_weights
from aucdist.maps.base import encoded
from aucdist.metrics.counts import ScoreCounts
from aucdist.objectives.probability_maps import probabilities_of_classes

OF_THE_DATA = ("classes_", "n_features_in_", "feature_names_in_", *ENCODING)
NAMED = 3
"""The largest number of classes that a warning names."""


def fit_classes(
    model: BaseEstimator, rows: ClassBlocks, callback: Callable[[Any], None] | None
) -> list[ScoreCounts | None]:
    """Fit a model for each class against the rest, and set the fitted attributes.

    `model`: its parameters are checked, and its `classes_` set.
    `callback`: called after each round with its record, which has the class as ``class``.
    Returns for each class how many rows have each score without the intercept, where the fit needed to know.
    Raises InputError for a class without rows, or one that cannot be fitted, naming the class.
    """
    sets = rows.sets
    last, before = vars(model).get("label_sets_"), None
    if getattr(model, "warm_start", False) and last is not None and np.array_equal(last.classes, sets.classes):
        before = vars(model).get("estimators_")  # the fits start from those before
    forget_fit(model)
    model.label_sets_ = sets
    if rows.has_weights and not model.resolved_solver.sample_weight:
        rows = replace(rows, blocks=without_equal_weights(rows.blocks))
    rows = map_once(model, rows)
    names = sets.names()
    models = [clone(model).set_params(**model._parameters_of_class(k)) for k in range(sets.n_classes)]
    for k, of_class in enumerate(models):
        if before is not None:
            vars(of_class).update({name: value for name, value in vars(before[k]).items() if name.endswith("_")})
        vars(of_class).update(attributes_of_data(model) | {"classes_": np.array([-1, 1])})

    def fit_class(k: int) -> tuple[ScoreCounts | None, list[Warning], float]:
        """Fit the model of a class; return what its fit returns, and the standard deviation of its scores."""
        of_class, spread = models[k], 1.0
        with_class = None if callback is None else lambda record: callback(record | {"class": names[k]})
        with naming_class(model, k):
            blocks = of_class._ready(rows.of_class(k))
            counts, warned = of_class._fit(blocks, with_class, f"{type(model).__name__} {names[k]}")
        if sets.exclusive and not hasattr(of_class, "probability_"):
            of_rows = counts or (count_scores(blocks, of_class.coef_[0]) if hasattr(of_class, "coef_") else None)
            spread = 1.0 if of_rows is None else mean_and_spread(of_rows)[1]
        return counts, warned, spread

    # `warnings.catch_warnings`, which the line behind `monotone="auto"` is fitted under, is not made for threads.
    with one_blas_thread:
        fits = in_threads(fit_class, sets.n_classes, 1 if model.monotone == AUTO else rows.threads)
    counts, warned, spreads = map(list, zip(*fits, strict=True))
    model.estimators_, model.spreads_ = models, np.array(spreads)
    model.n_passes_ = sum(of_class.n_passes_ for of_class in models)
    model.intercept_ = np.concatenate([of_class.intercept_ for of_class in models])
    widths = {of_class.coef_.shape[1] if hasattr(of_class, "coef_") else -1 for of_class in models}
    # maps that are fitted for each class may differ in the number of basis functions
    if len(widths) == 1 and -1 not in widths:
        model.coef_ = np.concatenate([of_class.coef_ for of_class in models])
        for k, of_class in enumerate(models):  # views of the weights
            of_class.coef_ = model.coef_[k : k + 1]
    _warn(names, warned)
    return counts


def _warn(names: Sequence[str], warned: Sequence[Sequence[Warning]]) -> None:
    """Give one warning of each kind, which names the classes that it concerns."""
    by_kind: dict[type[Warning], list[tuple[str, Warning]]] = {}
    for name, of_class in zip(names, warned, strict=True):
        for warning in of_class:
            by_kind.setdefault(type(warning), []).append((name, warning))
    for kind, cases in by_kind.items():
        text = "; ".join(f"class {name!r}: {warning}" for name, warning in cases[:NAMED])
        more = [repr(name) for name, _ in cases[NAMED:]]
        text += f"; and {len(more)} classes more: {', '.join(more)}" if more else ""
        warnings.warn(kind(text), stacklevel=4)  # the caller of `fit`


def attributes_of_data(model: Any) -> dict[str, Any]:
    """Return the fitted attributes that describe the data."""
    return {name: value for name, value in vars(model).items() if name in OF_THE_DATA}


def forget_fit(model: Any) -> None:
    """Remove the attributes of the last fit, except those that describe the data."""
    for name in [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]:
        if name not in OF_THE_DATA:
            delattr(model, name)


def refuse_classes(model: BaseEstimator, what: str) -> None:
    """Raise an InputError if the model has several classes, of which this takes one."""
    if model.has_several_classes:
        raise InputError(
            f"{what} is for one class, and this model has {len(model.estimators_)}: use estimators_[k].{what}, the model of "
            "classes_[k] against the rest"
        )


def scores_of_classes(model: BaseEstimator, X: Any) -> np.ndarray:
    """Return the scores of validated rows for each class, with the intercepts, float64 of shape (n_samples, n_classes).

    Where classes have no probabilities, a column is in units of the standard deviation of its scores of the training rows: the
    weights of each model have a length of its own, and the largest of a row's scores is to mean something.
    """
    models, shared = model.estimators_, model._map
    if all(hasattr(of_class, "coef_") and of_class._map is shared for of_class in models):
        block = encoded_rows(X, shared)
        columns = [block.scores(of_class.coef_[0]) + of_class.decision_intercept for of_class in models]
    else:
        columns = [of_class._scores(X) for of_class in models]
    return np.column_stack(columns) / model.spreads_


def predicted_classes(model: BaseEstimator, scores: np.ndarray) -> np.ndarray:
    """Return the class of each row, ndarray of shape (n_samples,); with labels an indicator matrix, int64.

    `scores`, of shape (n_samples, n_classes): as `decision_function` returns them.
    """
    if not model.label_sets_.exclusive:
        return (scores > 0).astype(np.int64)
    if all(hasattr(of_class, "probability_") for of_class in model.estimators_):
        scores = probabilities(model, scores)
    return model.classes_[np.argmax(scores, axis=1)]


def probabilities(model: BaseEstimator, scores: np.ndarray) -> np.ndarray:
    """Return the probability of each class, given the scores of `decision_function`: see `probabilities_of_classes`."""
    maps = [of_class.probability_ for of_class in model.estimators_]
    return probabilities_of_classes(maps, scores, model.label_sets_.exclusive)


def map_once(model: BaseEstimator, rows: ClassBlocks) -> ClassBlocks:
    """Return the rows mapped, and set the model's `feature_map_`, if it has a map that needs no classes; else the rows.

    Each class alone would fit the same map to up to 32 768 rows of each side.
    """
    expander = model._expander
    if expander is None or expander.supervised() or model.monotone == AUTO:  # found for each class by itself
        return rows
    model._find_directions(rows.blocks)
    model.feature_map_ = expander.fit_blocks(rows.unlabelled(), vars(model).get("monotone_"))
    return replace(rows, blocks=model._checked_codes(encoded(rows.of_all(), model.feature_map_)), changes=())
