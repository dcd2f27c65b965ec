"""Training rows in every form that `fit` accepts, checked and turned into blocks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_consistent_length

from aucdist.data.block import Block
from aucdist.data.group_numbers import group_numbers
from aucdist.data.label_sets import LabelSets, check_distinct
from aucdist.engine.blocks import Blocks, LocalBlocks, Summary
from aucdist.engine.classes import AnyBlocks, ClassBlocks
from aucdist.engine.view import ViewBlocks
from aucdist.errors import InputError
from aucdist.estimators.pair_groups import grades_of
from aucdist.estimators.tables import checked_rows, forget_columns, names_of_features, refuse_collection

LEAST_ROWS, MOST_BLOCKS = 100_000, 32
"""A block of a fit to arrays has at least so many rows; there are at most so many blocks."""


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Leave an estimator as it was where its fit does not end: no attribute of one fit beside those of another.

    Raises InputError if the fit ended in an overflow or in a system of equations without a solution, which features or
        a `lam` beyond all measure cause.
    """
    before = dict(vars(estimator))
    try:
        yield
    except Warning:  # of a fit that has ended, under a filter that makes errors of warnings
        raise
    except BaseException as e:
        vars(estimator).clear()
        vars(estimator).update(before)
        if isinstance(e, ArithmeticError | np.linalg.LinAlgError):
            raise InputError(
                f"the fit left the range of float64 ({type(e).__name__}: {e}): scale the features (StandardScaler; "
                "`scale: standard` in a configuration), leave out columns of values like 1e200, or take a larger lam"
            ) from e
        raise


def is_dask(thing: Any) -> bool:
    """Tell whether something is a dask collection."""
    return hasattr(thing, "__dask_graph__")


def two_classes(y: np.ndarray) -> np.ndarray:
    """Return both classes, sorted.

    Raises InputError if there are not exactly two classes.
    """
    classes = np.unique(y)
    if len(classes) > 2:
        kind = type_of_target(y)
        raise InputError(
            f"Only binary classification is supported here. The type of the target is {kind}: {len(classes)} classes. One class "
            "against the others: give y == one_class; `fit` of arrays takes several classes"
        )
    if len(classes) < 2:
        (only,) = classes.tolist()  # 'no', and not np.str_('no')
        raise InputError(f"the labels have one class only ({only!r}): both are needed")
    return classes


def training_blocks(estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> AnyBlocks:
    """Return the rows as blocks, and set the estimator's `classes_`, `n_features_in_` and `feature_names_in_`.

    Those of more than two classes, or with an indicator matrix of labels, are `ClassBlocks`.

    `X`, `y`, `sample_weight` and `groups`: as of `fit`; see `aucdist.estimators.base.BlockClassifier`.
    Raises InputError for rows, labels or weights that cannot be used.
    """
    if isinstance(X, AnyBlocks):
        if not (y is None and sample_weight is None and groups is None):
            raise InputError(
                "Blocks bring their own labels, weights and groups: y, sample_weight and groups must be None"
            )
        if estimator.n_jobs is not None:
            raise InputError(
                f"n_jobs is {estimator.n_jobs!r}, which is for arrays: blocks have threads of their own "
                "(LocalBlocks.of(..., n_jobs=2); cluster: {kind: none, n_jobs: 2} in a configuration)"
            )
        forget_columns(estimator)
        estimator.classes_ = np.array([-1, 1]) if isinstance(X, Blocks) else X.sets.classes
        estimator.n_features_in_ = X.n_features
        return X
    if is_dask(X):
        forget_columns(estimator)
        refuse_collection(estimator, X)
        if estimator.n_jobs is not None:
            raise InputError(
                f"n_jobs is {estimator.n_jobs!r}, which is for arrays: a collection's workers have their threads"
            )
        return _dask_blocks(estimator, X, y, sample_weight, groups)
    if _is_indicator(y):
        return _labels_blocks(estimator, X, y, sample_weight, groups)
    X, y = checked_rows(estimator, X, y, reset=True)
    group, grade = group_numbers(groups), grades_of(estimator, y)
    if group is not None:
        check_consistent_length(X, group)
    if grade is not None:
        estimator.classes_ = np.array([-1, 1])
        y = np.where(grade > grade.min(), 1, -1)
        return _with_names(
            estimator, _cut(estimator, labelled_block(X, y, estimator.classes_, sample_weight, group, grade))
        )
    if y.dtype.kind not in "biu":  # whole numbers are classes, and the check would take longer than a small fit
        check_classification_targets(y)
    classes = np.unique(y)
    if len(classes) > 2:
        sets = LabelSets.of_classes(classes)
        estimator.classes_ = classes
        codes = np.searchsorted(classes, y).astype(np.int32)
        return ClassBlocks(
            _with_names(estimator, _cut(estimator, _weighted_block(X, None, sample_weight, group, code=codes))), sets
        )
    estimator.classes_ = two_classes(y)
    return _with_names(estimator, _cut(estimator, labelled_block(X, y, estimator.classes_, sample_weight, group)))


def _cut(estimator: Any, rows: Block) -> LocalBlocks:
    """Return rows in memory as the blocks of a fit: their number depends on that of the rows alone, so that the bits do."""
    n_blocks = max(1, min(MOST_BLOCKS, rows.n_samples // LEAST_ROWS)) if estimator.resolved_solver.by_sums else 1
    return LocalBlocks.cut(rows, n_blocks, estimator.n_jobs)


def _is_indicator(y: Any) -> bool:
    """Tell whether labels are a matrix of several columns."""
    if sp.issparse(y):
        return True
    shape = getattr(y, "shape", None)
    if shape is None and isinstance(y, list | tuple) and len(y) > 0 and isinstance(y[0], list | tuple | np.ndarray):
        shape = np.shape(y)
    return shape is not None and len(shape) == 2 and shape[1] > 1


def _labels_blocks(estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any) -> ClassBlocks:
    """Return the rows with an indicator matrix of labels."""
    if getattr(estimator, "grade_weight", None) is not None:
        raise InputError("with grade_weight labels are grades: y is an array of shape (n_samples,), not a matrix")
    names = getattr(y, "columns", None)
    if names is not None:
        check_distinct(np.asarray(names, dtype=object))
    X, Y = checked_rows(estimator, X, y, reset=True, multi_output=True)
    if Y.shape[1] < 2:
        raise InputError("y is a matrix of one column: give its values as an array of shape (n_samples,)")
    group = group_numbers(groups)
    if group is not None:
        check_consistent_length(X, group)
    sets, codes = LabelSets.of_indicator(Y, names)
    estimator.classes_ = sets.classes
    block = _weighted_block(X, None, sample_weight, group, code=codes)
    return ClassBlocks(_with_names(estimator, _cut(estimator, block)), sets)


def _with_names(estimator: Any, blocks: Blocks) -> Blocks:
    """Return the blocks, which know the names of their columns where the estimator does."""
    names = names_of_features(estimator)
    if names is not None:
        blocks.feature_names = tuple(map(str, names))
    return blocks


def on_chunks(estimator: Any, X: Any, function: Callable[[Any], np.ndarray], dtype: Any, width: int | None) -> Any:
    """Return what a function makes of each chunk of the rows of a dask collection, as a dask Array.

    `X`: of shape (n_samples, n_features).
    `function`: of an array; its result has a row for each.
    `width`: their columns; None for one-dimensional results.
    Raises InputError if a column holds texts, or held categories in the training rows.
    """
    refuse_collection(estimator, X)
    array = X.to_dask_array() if hasattr(X, "to_dask_array") else X
    rows = array.rechunk({1: -1})
    if width is None:
        return rows.map_blocks(function, dtype=dtype, drop_axis=1)
    return rows.map_blocks(function, dtype=dtype, chunks=(rows.chunks[0], (width,)))


def labelled_block(
    X: Any,
    y: np.ndarray,
    classes: np.ndarray,
    sample_weight: Any,
    group: np.ndarray | None = None,
    grade: np.ndarray | None = None,
) -> Block:
    """Return validated rows as a block, without those of weight 0.

    `X`: of shape (n_samples, n_features).
    `y`: of shape (n_samples,).
    `classes`, of shape (2,): the second is the positive one.
    `sample_weight`: of shape (n_samples,) or None.
    `group` and `grade`, of shape (n_samples,): as of `Block`.
    """
    return _weighted_block(X, np.where(y == classes[1], 1, -1).astype(np.int8), sample_weight, group, grade)


def _weighted_block(
    X: Any,
    y: np.ndarray | None,
    sample_weight: Any,
    group: np.ndarray | None,
    grade: np.ndarray | None = None,
    code: np.ndarray | None = None,
) -> Block:
    """Return rows with labels, or with places in a table of sets of classes, as a block, without those of weight 0."""
    labels = np.ones(X.shape[0], dtype=np.int8) if y is None else y
    if sample_weight is None:
        return Block.of(X, labels, group=group, grade=grade, code=code)
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    counts = weight > 0
    groups, grades, codes = (None if values is None else values[counts] for values in (group, grade, code))
    return Block.of(X[counts], labels[counts], weight=weight[counts], group=groups, grade=grades, code=codes)


def _dask_blocks(estimator: BaseEstimator, X: Any, y: Any, sample_weight: Any, groups: Any) -> AnyBlocks:
    from aucdist.engine.dask import blocks_from_collections

    if not all(is_dask(of) for of in (y, sample_weight, groups) if of is not None) or y is None:
        raise InputError("X is a dask collection: y, sample_weight and groups must be dask collections too")
    graded = getattr(estimator, "grade_weight", None) is not None
    found, encode = _dask_grades(estimator, y) if graded else _dask_labels(y)
    several = isinstance(found, LabelSets)
    estimator.classes_ = found.classes if isinstance(found, LabelSets) else found
    blocks = blocks_from_collections(X, y, sample_weight, groups, encode=encode, several=several, graded=graded)
    estimator.n_features_in_ = blocks.n_features
    if hasattr(X, "columns"):
        estimator.feature_names_in_ = np.asarray(X.columns, dtype=object)
    blocks = _with_names(estimator, blocks)
    return ClassBlocks(blocks, found) if isinstance(found, LabelSets) else blocks


def _dask_grades(estimator: BaseEstimator, y: Any) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """Return the labels of `classes_` where labels are grades, and what makes them of a chunk of y."""
    if _is_indicator(y):
        raise InputError("with grade_weight labels are grades: y is of shape (n_samples,), not a matrix")
    grades = grades_of(estimator, np.concatenate(_distinct_of_chunks(y)))
    assert grades is not None
    return np.array([-1, 1]), _EncodeGrades(float(grades.min()))


def _dask_labels(y: Any) -> tuple[np.ndarray | LabelSets, Callable[[np.ndarray], np.ndarray]]:
    """Return both classes, or the table of several, and what makes labels, or places in the table, of a chunk of y."""
    parts = _distinct_of_chunks(y)
    if _is_indicator(y):
        distinct = np.unique(np.concatenate(parts), axis=0)
        sets, codes = LabelSets.of_indicator(distinct, getattr(y, "columns", None))
        return sets, _EncodeSets({row.tobytes(): code for row, code in zip(distinct, codes.tolist(), strict=True)})
    values = np.concatenate(parts)
    if values.dtype.kind not in "biu":
        check_classification_targets(values)
    classes = np.unique(values)
    if len(classes) > 2:
        return LabelSets.of_classes(classes), _EncodeClasses(classes)
    return two_classes(values), _EncodeLabels(classes[-1])


def _distinct_of_chunks(y: Any) -> tuple[np.ndarray, ...]:
    """Return `_distinct` of each chunk of a dask collection."""
    import dask

    from aucdist.engine.dask import dask_chunks

    found: tuple[np.ndarray, ...] = dask.compute(*(dask.delayed(_distinct)(chunk) for chunk in dask_chunks(y)))
    return found


def _distinct(y: Any) -> np.ndarray:
    """Return the distinct labels of a chunk, or the distinct rows of an indicator matrix."""
    return np.unique(np.asarray(y), axis=0)


class _EncodeLabels:
    """Labels to -1 and +1; a class, so that it travels to workers."""

    def __init__(self, positive: Any):
        self.positive = positive

    def __call__(self, y: np.ndarray) -> np.ndarray:
        return np.where(y == self.positive, 1, -1)


class _EncodeGrades:
    """Grades to -1, the lowest one, and +1."""

    def __init__(self, lowest: float):
        self.lowest = lowest

    def __call__(self, y: np.ndarray) -> np.ndarray:
        return np.where(y > self.lowest, 1, -1)


class _EncodeClasses:
    """Labels of several classes to their places."""

    def __init__(self, classes: np.ndarray):
        self.classes = classes

    def __call__(self, y: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.classes, y).astype(np.int32)


class _EncodeSets:
    """Rows of an indicator matrix to places in a table of sets of labels."""

    def __init__(self, places: dict[bytes, int]):
        self.places = places

    def __call__(self, y: np.ndarray) -> np.ndarray:
        return np.array([self.places[row.tobytes()] for row in np.ascontiguousarray(y)], dtype=np.int32)


def without_equal_weights(blocks: Blocks) -> Blocks:
    """Return the blocks, without their sample weights if all weights are equal: objectives are weighted means."""
    found = blocks.without_memory().reduce(_weight_range)
    equal = min(found["low"]) == max(found["high"])
    if not equal:
        return blocks
    view = ViewBlocks(blocks, _unweighted)
    view._unmapped, view.feature_map = blocks._unmapped, blocks.feature_map
    return view


def _weight_range(block: Block, memory: None) -> tuple[None, Summary]:
    """Return the smallest and the largest weight of the block's rows."""
    weight = block.weights()
    return None, {"low": [float(weight.min(initial=np.inf))], "high": [float(weight.max(initial=-np.inf))]}


def _unweighted(block: Block) -> Block:
    return replace(block, weight=None)
