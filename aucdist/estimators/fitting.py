"""Fit an estimator to rows, from weights to start from to results. With several classes, the fits run side by side.

With several classes or labels, one model is fitted for each class against the rest, and all of them use the same blocks. Work
that needs no labels is done once: the rows are checked, put into blocks and searched for columns far from 0, and a feature map
that does not depend on the classes (``bins`` without interactions) is fitted and applied to all rows. Work that depends on the
labels is done for each class: landmarks, trees, interactions, ``monotone="auto"`` and calibration. Each fit gives the same bits
as a fit to ``y == one_class``, and has its own history and certificate. As many fits run side by side as the blocks have
threads.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pkgutil import resolve_name
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy import ndarray
from sklearn.base import clone

from aucdist.data.block import Block
from aucdist.data.column_statistics import ColumnRanges
from aucdist.data.label_sets import LabelSets
from aucdist.engine.blocks import Blocks, LocalBlocks
from aucdist.engine.steps import in_threads, one_blas_thread
from aucdist.engine.view import ClassBlocks, ViewBlocks
from aucdist.errors import InputError
from aucdist.estimators.display import RoundPrinter, warnings_of_fit
from aucdist.estimators.monotone import AUTO, directions_of_features
from aucdist.estimators.scores import WithThreshold, count_scores, errors_name_class, map_for_model, mean_and_std
from aucdist.estimators.tables import ENCODING_ATTRIBUTES
from aucdist.estimators.validation import check_groups, restore_on_failure, training_blocks
from aucdist.estimators.with_solver import WithSolver
from aucdist.maps.base import FittedMap, map_blocks
from aucdist.maps.binning import sample_by_class
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.ranking import auc
from aucdist.pairs.groups import find_grades
from aucdist.parameters import frozen
from aucdist.selection import fold_numbers
from aucdist.solvers.base import Callback, Certificate, Solution

FEATURE_SEARCH = "aucdist.search.auto:with_chosen_features"
"""The function that chooses the features for ``features="auto"``. It fits estimators, so it is imported when it is needed."""
DATA_ATTRIBUTES = ("classes_", "n_features_in_", "feature_names_in_", *ENCODING_ATTRIBUTES)
"""The fitted attributes that describe the training rows."""
MAX_NAMED_CLASSES = 3
"""The largest number of classes that a warning names."""
MIN_LAM_OF_DIRECTIONS = 0.1
"""The smallest penalty of the linear models from which ``monotone="auto"`` takes its directions."""
ROWS_OF_DIRECTIONS = 2**12
"""The approximate largest number of rows of a class that these models are fitted to. A direction on which they do not agree stays
free."""
FOLDS_OF_DIRECTIONS = 5
"""The number of linear models that have to agree on a direction. Each is fitted without one fold of the rows."""


@dataclass(eq=False)
class FitResult:
    """The results of a fit to two classes that are not attributes of the estimator.

    Attributes
    ----------
    counts : ScoreCounts or None
        How many training rows have each score without the intercept. None if nothing needed the counts, or if the solver got
        the rows without their weights.
    out_of_fold_counts : ScoreCounts or None
        The counts of the out-of-fold scores to which a calibration was fitted.
    ranges : ColumnRanges or None
        The ranges of the columns that the solver got. None if these are not the columns of the rows.
    warnings : list of Warning
        The warnings for the user, which `give_warnings` gives.
    """

    counts: ScoreCounts | None = None
    out_of_fold_counts: ScoreCounts | None = None
    ranges: ColumnRanges | None = None
    warnings: list[Warning] = field(default_factory=list)


@frozen
class WarmStart:
    """The weights that a fit starts from: those of the last fit, or of a saved model.

    Parameters
    ----------
    coef : ndarray of shape (n_features,), float64
        The weights.
    intercept : float
        The intercept.
    feature_map : FittedMap or None
        The feature map to which the weights belong.
    """

    coef: ndarray
    intercept: float
    feature_map: FittedMap | None = None


class Fittable(WithThreshold, WithSolver, ABC):
    """The interface of an estimator that the functions of this module use."""

    classes_: ndarray
    coef_: ndarray
    label_sets_: LabelSets
    spreads_: ndarray
    n_passes_: int
    certificate_: Certificate
    feature_map_: FittedMap
    chosen_: dict[str, Any]

    @abstractmethod
    def _fit(self, rows: Blocks, printer: RoundPrinter, start: WarmStart | None, *, keep_counts: bool) -> FitResult:
        """Fit rows of two classes, and set the fitted attributes.

        Implementations prepare the rows by `check_and_map_rows`, and end with `record_solution`.

        Parameters
        ----------
        rows : Blocks
            The training rows.
        printer : RoundPrinter
            Called after each round.
        start : WarmStart or None
            The weights to start from, for solvers that can.
        keep_counts : bool
            Whether the result has the counts of the scores.

        Returns
        -------
        FitResult
        """

    def _parameters_of_class(self, k: int) -> dict[str, Any]:
        """Return the parameters that differ between the models of the classes, for the class at position `k`."""
        return {}

    @property
    def _map(self) -> FittedMap | None:
        """The fitted feature map, or None if there is none."""
        return getattr(self, "feature_map_", None)


def fit_rows(
    model: Fittable,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    callback: Callback | None = None,
    starts: Sequence[WarmStart | None] | None = None,
    *,
    keep_counts: bool = False,
) -> list[FitResult]:
    """Fit an estimator without giving its warnings.

    Parameters
    ----------
    model : Fittable
        The estimator.
    X, y, sample_weight, groups : object
        As for `fit` of the estimator.
    callback : callable, optional
        As for `fit` of the estimator.
    starts : sequence of WarmStart or None, optional
        The weights that the fit of each class starts from. By default, they are those of the last fit if `warm_start` is true.
    keep_counts : bool, default=False
        Whether to return the counts of the scores, which take 24 bytes for each score of each class.

    Returns
    -------
    list of FitResult
        One for each class, or a single one for two classes.
    """
    with restore_on_failure(model):
        model.check_parameters()
        rows = training_blocks(model, X, y, sample_weight, groups)
        if starts is None:  # with `warm_start`, the weights of the last fit, if it had the same classes
            sets, last = rows.sets, vars(model).get("label_sets_")
            starts = [None] * (1 if sets is None else sets.n_classes)
            same = last is None if sets is None else last is not None and np.array_equal(last.classes, sets.classes)
            if same and getattr(model, "warm_start", False) and not model._features_auto:
                starts = [
                    WarmStart(m.coef_[0], float(m.intercept_[0]), m._map) if hasattr(m, "coef_") else None
                    for m in model.class_models
                ]
        # Attributes that describe the data, and attributes that a subclass has set, stay.
        attributes = model.__dict__
        names = attributes.pop("_of_last_fit", None)
        # Not fitted, or fitted by `lam_path` or by an earlier version, which did not keep the names.
        if names is None:
            public = (name for name in attributes if name.endswith("_") and not name.startswith("_"))
            names = [name for name in public if name not in DATA_ATTRIBUTES] if "n_passes_" in attributes else []
        for name in names:
            attributes.pop(name, None)
        before, fitted = set(vars(model)), model
        if model._features_auto:
            # Cross-validation of the training rows chooses `features` and `lam` of a copy of this estimator.
            fitted, fitted.chosen_ = resolve_name(FEATURE_SEARCH)(model, rows)
            vars(fitted).update(attributes_of_data(model))
        if isinstance(rows, ClassBlocks):
            fits = fit_classes(fitted, rows, callback, starts, keep_counts=keep_counts)
        else:
            fits = [fitted._fit(rows, RoundPrinter(fitted, "", callback), starts[0], keep_counts=keep_counts)]
        # Equal weights were left out, so these differ.
        if rows.has_weights and not model.resolved_solver.accepts_weights:
            for fit in fits:
                fit.counts = None
        if fitted is not model:
            parameters = model.get_params(deep=False)
            model.__dict__ |= {name: value for name, value in vars(fitted).items() if name not in parameters}
        model._of_last_fit = set(vars(model)) - before
    return fits


def record_solution(
    model: Fittable,
    solution: Solution,
    fit: FitResult,
    printer: RoundPrinter,
    blocks: Blocks,
    *,
    keep_counts: bool = False,
) -> FitResult:
    """Set the attributes that every fit has besides its weights, print how it ended, and return `fit` with its warnings added."""
    printer.end(solution)
    if keep_counts and fit.counts is None:
        fit.counts = count_scores(blocks, model.coef_[0])
    model.certificate_, model.n_passes_, model._records = solution.certificate, solution.passes, solution.records
    if fit.counts is not None:
        model._auc = auc(fit.counts)
    fit.warnings += warnings_of_fit(model, fit.ranges, blocks)
    return fit


def fit_classes(
    model: Fittable,
    rows: ClassBlocks,
    callback: Callback | None,
    starts: Sequence[WarmStart | None],
    *,
    keep_counts: bool,
) -> list[FitResult]:
    """Fit a model for each class against the rest, and set the fitted attributes.

    Parameters
    ----------
    model : Fittable
        The estimator. Its parameters have been checked, and its `classes_` is set.
    rows : ClassBlocks
        The training rows.
    callback : callable or None
        Called after each round with its record, in which ``class`` is the class.
    starts : sequence of WarmStart or None
        The weights that the fit of each class starts from.
    keep_counts : bool
        Whether to return the counts of the scores.

    Returns
    -------
    list of FitResult

    Raises
    ------
    InputError
        If a class has no rows or cannot be fitted. The message names the class.
    """
    sets = rows.sets
    model.label_sets_ = sets
    if rows.has_weights and not model.resolved_solver.accepts_weights:
        rows = replace(rows, blocks=without_equal_weights(rows.blocks))
    rows = map_for_all_classes(model, rows)
    names = sets.names()
    models = [clone(model).set_params(**model._parameters_of_class(k)) for k in range(sets.n_classes)]
    for one_model in models:
        vars(one_model).update(attributes_of_data(model) | {"classes_": np.array([-1, 1])})

    # Models with a link have probabilities, which have the same scale for all classes.
    counted = keep_counts or (sets.exclusive and "link" not in model.get_params())

    def fit_class(k: int) -> tuple[FitResult, float]:
        """Fit the model of a class, and return the result and the standard deviation of its scores."""
        one_model = models[k]
        with_class = None if callback is None else lambda record: callback(record | {"class": names[k]})
        with errors_name_class(model, k):
            printer = RoundPrinter(one_model, f"{type(model).__name__} {names[k]}", with_class)
            fit = one_model._fit(rows.of_class(k), printer, starts[k], keep_counts=counted)
        spread = 1.0
        if sets.exclusive and not hasattr(one_model, "probability_"):
            assert fit.counts is not None
            spread = mean_and_std(fit.counts)[1]
        # The counts of many classes would take gigabytes.
        return replace(fit, counts=fit.counts if keep_counts else None, out_of_fold_counts=None, ranges=None), spread

    with one_blas_thread:
        fits, spreads = zip(*in_threads(fit_class, sets.n_classes, rows.threads), strict=True)
    model.estimators_, model.spreads_ = models, np.array(spreads)
    model.n_passes_ = sum(one_model.n_passes_ for one_model in models)
    model.intercept_ = np.concatenate([one_model.intercept_ for one_model in models])
    widths = {one_model.coef_.shape[1] if hasattr(one_model, "coef_") else -1 for one_model in models}
    # Maps that are fitted for each class may differ in the number of their basis functions.
    if len(widths) == 1 and -1 not in widths:
        model.coef_ = np.concatenate([one_model.coef_ for one_model in models])
        for k, one_model in enumerate(models):  # the weights of the models become views of one array
            one_model.coef_ = model.coef_[k : k + 1]
    return list(fits)


def map_for_all_classes(model: Fittable, rows: ClassBlocks) -> ClassBlocks:
    """Fit a feature map that does not depend on the classes once for all classes, set `feature_map_`, and return the mapped rows.

    A fit for each class alone would fit the same map, to up to 32,768 rows of the class and of the rest.
    """
    expander = model._expander
    # Directions are found for each class separately.
    if expander is None or expander.supervised() or model.monotone == AUTO:
        return rows
    find_directions(model, rows.blocks)
    model.feature_map_ = expander.fit_blocks(rows.with_negative_labels(), vars(model).get("monotone_"))
    return replace(
        rows, blocks=check_solver_accepts_bins(model, map_blocks(rows.all_blocks(), model.feature_map_)), changes=()
    )


def check_and_map_rows(model: Fittable, blocks: Blocks, start: WarmStart | None = None) -> Blocks:
    """Check that the solver can fit rows of two classes, fit the feature map, and return the rows as the solver gets them.

    If the solver does not accept weights and all weights are equal, they are left out. The feature map of `start` is used if
    there is one.
    """
    check_groups(model, blocks)
    if blocks.has_grades and blocks.weight_neg <= 0:  # all rows of the lowest grade have a weight of 0
        grades = np.concatenate(blocks.sum(find_grades))
        blocks = ViewBlocks(blocks, partial(_labelled_by_grade, grades.min(initial=np.inf)))
    if min(blocks.weight_pos, blocks.weight_neg) <= 0:
        raise InputError(
            f"the rows are of one class only ({blocks.n_pos} positive and {blocks.n_neg} negative rows; rows of weight 0 do "
            "not count): give rows of both classes"
        )
    solver, expander = model.resolved_solver, model._expander
    if blocks.has_weights and not solver.accepts_weights:
        blocks = without_equal_weights(blocks)
    if blocks.has_weights and not solver.accepts_weights:
        raise InputError(f"solver {solver.name!r} does not support sample weights; {model._solvers_that('weights')}")
    find_directions(model, blocks.unmapped)
    if expander is not None:
        known = blocks.feature_map or (start and start.feature_map)
        model.feature_map_ = known or expander.fit_blocks(blocks, vars(model).get("monotone_"))
    return check_solver_accepts_bins(model, map_for_model(model, blocks))


def without_equal_weights(blocks: Blocks) -> Blocks:
    """Return the blocks without their sample weights if all weights are equal.

    Objectives are weighted means, so they stay the same.
    """
    if len(np.unique(np.concatenate(blocks.sum(lambda block: [np.unique(block.weights())[:2]])))) > 1:
        return blocks
    view = ViewBlocks(blocks, partial(replace, weight=None))
    return view if blocks.unmapped is blocks else view.set_feature_map(blocks.feature_map, blocks.unmapped)


def _labelled_by_grade(lowest: float, block: Block) -> Block:
    """Return rows with grades, whose label is +1 above the lowest grade and -1 at it."""
    assert block.grade is not None
    return replace(block, y=np.where(block.grade > lowest, 1, -1).astype(np.int8))


def check_solver_accepts_bins(model: Fittable, mapped: Blocks) -> Blocks:
    """Check that the solver accepts rows that are encoded as numbers of bins, if the rows are, and return the rows."""
    if mapped.has_codes and not (solver := model.resolved_solver).accepts_codes:
        raise InputError(
            f"solver {solver.name!r} does not support features={model.features!r}, which encodes rows as bin numbers; "
            f"{model._solvers_that('codes')}. Or put the map before the estimator: "
            "make_pipeline(BinExpander(), ...) in scikit-learn"
        )
    return mapped


# ---- attributes and warnings -------------------------------------------------------------------------------------------


def attributes_of_data(model: Fittable) -> dict[str, Any]:
    """Return the fitted attributes that describe the data."""
    return {name: value for name, value in vars(model).items() if name in DATA_ATTRIBUTES}


def give_warnings(model: Fittable, fits: Sequence[FitResult], *, but: type[Warning] | tuple[()] = ()) -> None:
    """Give the warnings of a fit, except those of the class `but`. They seem to come from the caller of the calling function.

    With several classes, there is one warning of each kind, which names the classes that it concerns.
    """
    warned = fits[0].warnings
    if model.has_several_classes:
        by_kind = dict[type[Warning], list[tuple[str, Warning]]]()
        for name, fit in zip(model.label_sets_.names(), fits, strict=True):
            for warning in fit.warnings:
                by_kind.setdefault(type(warning), []).append((name, warning))
        warned = []
        for kind, cases in by_kind.items():
            texts = [f"class {name!r}: {warning}" for name, warning in cases[:MAX_NAMED_CLASSES]]
            if more := [repr(name) for name, _ in cases[MAX_NAMED_CLASSES:]]:
                texts.append(f"and {len(more)} classes more: {', '.join(more)}")
            warned.append(kind("; ".join(texts)))
    for warning in warned:
        if not isinstance(warning, but):
            warnings.warn(warning, stacklevel=3)


# ---- directions of features --------------------------------------------------------------------------------------------


def find_directions(model: Fittable, blocks: Blocks) -> None:
    """Set the direction of each feature, int8 of shape (n_features,), if `monotone` is given.

    With ``"auto"``, the directions are the signs of the weights of linear models. A sample is divided into folds of the
    training rows, and for each fold a model is fitted to the rows outside it. A feature has no direction if its weights in two
    of the models have different signs, or are 0. The features are scaled to variance 1, and missing values are replaced by the
    mean. Warnings that a model ranks badly or did not converge are not given.

    Parameters
    ----------
    model : Fittable
        The linear models have its loss. Their penalty is at least `MIN_LAM_OF_DIRECTIONS`, so that weights of features with the
        same content have the same sign.
    blocks : Blocks
        The rows before any feature map. The sample has all rows if a class has at most `ROWS_OF_DIRECTIONS` of them.
    """
    if model.monotone is None:
        return
    if model.monotone != AUTO:
        model.monotone_ = directions_of_features(model, blocks)
        return
    drawn = sample_by_class(blocks, ROWS_OF_DIRECTIONS)
    drawn = drawn.with_X(_scaled(drawn.X))
    other = dict.fromkeys(
        ("monotone", "features", "penalty", "calibration", "prior", "max_fpr", "max_false_positives", "n_jobs")
    )
    line = model._copy_with(verbose=0, warm_start=False, **other)
    line.set_params(lam=max(model.lam or 0.0, MIN_LAM_OF_DIRECTIONS), tol=max(model.tol, 1e-2))
    # If a class has fewer rows than folds, one linear model is fitted to all rows.
    n_folds = FOLDS_OF_DIRECTIONS if np.unique(drawn.y, return_counts=True)[1].min() >= FOLDS_OF_DIRECTIONS else 1
    fold = fold_numbers(drawn.row_id, drawn.y, n_folds, 0) if n_folds > 1 else np.full(drawn.n_samples, -1)
    signs = []
    for k in range(n_folds):
        fit_rows(line, LocalBlocks([replace(drawn.take(np.flatnonzero(fold != k)), index=0)]))
        signs.append(np.sign(line.coef_[0]))
    model.monotone_ = np.where((np.array(signs) == signs[0]).all(axis=0), signs[0], 0.0).astype(np.int8)


def _scaled(X: Any) -> Any:
    """Return rows scaled to variance 1, with missing values at the mean. Sparse rows are not centred."""
    from sklearn.preprocessing import StandardScaler, maxabs_scale

    X = maxabs_scale(X.astype(np.float64))  # the squares of values above 1e154 are not finite
    X = StandardScaler(with_mean=not sp.issparse(X)).fit_transform(X)
    return X if sp.issparse(X) else np.nan_to_num(X)
