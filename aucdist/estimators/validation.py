"""Check training rows in every form that `fit` accepts, and turn them into blocks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy import ndarray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_consistent_length

from aucdist import estimators
from aucdist.data.block import Block, unmasked
from aucdist.data.label_sets import LabelSets, check_distinct
from aucdist.data.labels import group_numbers
from aucdist.engine.blocks import Blocks, LocalBlocks
from aucdist.engine.view import AnyBlocks, ClassBlocks
from aucdist.errors import InputError
from aucdist.estimators.tables import (
    allows_missing,
    check_columns,
    check_not_lazy,
    checked_rows,
    forget_columns,
    is_dask,
    names_of_features,
)

MIN_ROWS = 100_000
"""The smallest number of rows in a block of a fit to arrays."""
MAX_BLOCKS = 32
"""The largest number of blocks of a fit to arrays."""
Encode = Callable[[ndarray], ndarray]
"""A function that converts labels to -1 and +1, or to numbers of sets of classes. It is sent to workers."""


@contextmanager
def restore_on_failure(estimator: Any) -> Iterator[None]:
    """Restore the attributes of an estimator if its fit fails, so that it never has attributes of two fits.

    Raises
    ------
    InputError
        If the fit ended in an overflow or in a system of equations without a solution, which features of extreme size or an
        extreme `lam` cause. NumPy's warnings about these overflows are suppressed.
    """
    before = dict(vars(estimator))
    try:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            yield
    except BaseException as e:
        vars(estimator).clear()
        vars(estimator).update(before)
        if isinstance(e, ArithmeticError | np.linalg.LinAlgError):
            raise InputError(
                f"numbers of the fit became too large for float64 ({type(e).__name__}: {e}): scale the features (StandardScaler; "
                "`scale: standard` in a configuration), leave out columns of values like 1e200, or use a larger lam"
            ) from e
        raise


def training_blocks(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> AnyBlocks:
    """Return the rows as blocks, and set the estimator's `classes_`, `n_features_in_` and `feature_names_in_`.

    Parameters
    ----------
    estimator : BlockClassifier
        The estimator that is fitted.
    X, y, sample_weight, groups : object
        As for `aucdist.estimators.base.BlockClassifier.fit`.

    Returns
    -------
    Blocks or ClassBlocks
        `ClassBlocks` for more than two classes, and if the labels are an indicator matrix.

    Raises
    ------
    InputError
        If rows, labels or weights cannot be used.
    """
    in_memory = not (isinstance(X, AnyBlocks) or is_dask(X))
    if not in_memory and estimator.n_jobs is not None:
        raise InputError(
            f"n_jobs applies to arrays only; got {estimator.n_jobs!r}. For blocks, give LocalBlocks.of(..., n_jobs=2). For Dask, "
            "set the threads of the workers. In a configuration, write cluster: {kind: none, n_jobs: 2}"
        )
    if isinstance(X, AnyBlocks):
        if not (y is None and sample_weight is None and groups is None):
            raise InputError(
                "Blocks contain their own labels, weights and groups: leave out y, sample_weight and groups"
            )
        forget_columns(estimator)
        estimator.classes_ = np.array([-1, 1]) if isinstance(X, Blocks) else X.sets.classes
        estimator.n_features_in_ = X.n_features
        return X
    if estimator.grade_weight is not None and _is_indicator(y):
        raise InputError(
            "with grade_weight, labels are grades: give y as an array of shape (n_samples,), not as a matrix"
        )
    blocks, sets = (_blocks_here if in_memory else _dask_blocks)(estimator, X, y, sample_weight, groups)
    names = names_of_features(estimator)
    if names is not None:
        blocks.feature_names = tuple(map(str, names))
    return blocks if sets is None else ClassBlocks(blocks, sets)


def _blocks_here(
    estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any
) -> tuple[LocalBlocks, LabelSets | None]:
    """Return rows in memory as blocks. Their number depends only on the number of rows, so the result does, too."""
    check_not_lazy("y", y)
    check_not_lazy("groups", groups)
    shape = groups.shape if hasattr(groups, "shape") else np.shape(np.asarray(groups, dtype=object))
    if groups is not None and len(shape or ()) != 1:
        raise InputError(
            f"groups must have one value for each row, in the shape (n_samples,); got {shape}. Join several columns to one"
        )
    group, indicator = group_numbers(groups), _is_indicator(y)
    names = getattr(y, "columns", None) if indicator else None
    if names is not None:
        check_distinct(np.asarray(names, dtype=object))
    X, y = checked_rows(estimator, X, _all_labelled(y), reset=True, multi_output=indicator)
    if group is not None:
        check_consistent_length(X, group)
    sets: LabelSets | None
    if indicator:
        if y.shape[1] < 2:
            raise InputError("y is a matrix of one column: give its values as an array of shape (n_samples,)")
        sets, labels = LabelSets.of_indicator(y, names)
        estimator.classes_ = sets.classes
    else:
        sets, encode = _encoder(estimator, y)
        labels = encode(y)
    grade = None if estimator.grade_weight is None else y.astype(np.float64)
    code = None if sets is None else labels
    labels = labels if sets is None else np.ones(X.shape[0], dtype=np.int8)
    weight = None
    if sample_weight is not None:
        weight = _check_sample_weight(unmasked(sample_weight), X, dtype=np.float64, ensure_non_negative=True)
    block = Block.of(X, labels, weight=weight, group=group, grade=grade, code=code)
    if weight is not None and not (weight > 0).all():
        block = replace(block.take(np.flatnonzero(weight > 0)), row_id=np.arange(np.count_nonzero(weight)))
    by_sums = estimator.resolved_solver.accepts_codes
    n_blocks = max(1, min(MAX_BLOCKS, block.n_samples // MIN_ROWS)) if by_sums else 1
    return LocalBlocks.split(block, n_blocks, estimator.n_jobs), sets


def _all_labelled(y: Any) -> Any:
    """Return the labels. Raise an InputError that names the first row without a label."""
    if y is None or _is_indicator(y):
        return y
    values = y if hasattr(y, "dtype") else np.asarray(y, dtype=object)
    complete = isinstance(values.dtype, np.dtype) and values.dtype.kind in "biuSU"  # pandas' own types may miss values
    if np.ndim(values) == 1 and (np.ma.is_masked(values) or not complete):
        missing = np.asarray(pd.isna(np.asarray(values, dtype=object))) | np.ma.getmask(values)
        if missing.any():
            raise InputError(
                f"Input y contains NaN: the label of row {int(np.argmax(missing))} (counted from 0) is missing; leave out "
                "rows without a label"
            )
    return y


def _is_indicator(y: Any) -> bool:
    """Return whether labels are a matrix with several columns."""
    if sp.issparse(y):
        return True
    shape = getattr(y, "shape", None)
    if shape is None and isinstance(y, list | tuple) and y and isinstance(y[0], list | tuple | ndarray):
        shape = np.shape(y)
    return shape is not None and len(shape) == 2 and shape[1] > 1


def _encoder(estimator: Any, values: ndarray) -> tuple[LabelSets | None, Encode]:
    """Set the estimator's `classes_`, and return the table of several classes and a function that encodes labels.

    For grades, the function returns -1 for the lowest grade, and +1 for all others.
    """
    graded = estimator.grade_weight is not None
    if graded:
        if values.dtype.kind not in "biuf":
            raise InputError("with grade_weight, labels are grades: give numbers, larger ones for more relevant rows")
        finite = np.isfinite(values)
        if not finite.all():
            raise InputError(
                f"the grade of row {int(np.argmin(finite))} (counted from 0) is not a finite number: correct it, or "
                "leave the row out"
            )
        if values.min() == values.max():
            raise InputError(
                f"all rows have the grade {float(values[0]):g}: give rows of two grades or more, or leave out grade_weight"
            )
    elif values.dtype == object and not isinstance(values[0], str):
        raise InputError(
            f"Unknown label type: y is an object array of {type(values[0]).__name__}. Convert it, as by y.astype(bool)"
        )
    elif values.dtype.kind not in "biu":  # integers are classes, and checking them would take longer than a small fit
        check_classification_targets(values)
    distinct = np.unique(values)
    if len(distinct) < 2:
        (only,) = distinct.tolist()  # so that messages have 'no' instead of np.str_('no')
        raise InputError(f"y holds one class only ({only!r}); at least two are needed: give rows of both classes")
    estimator.classes_ = np.array([-1, 1]) if graded else distinct
    sets, encoded = None, np.where(np.arange(len(distinct)) == 0, -1, 1).astype(np.int8)
    if len(distinct) > 2 and not graded:
        sets, encoded = LabelSets.of_classes(distinct), np.arange(len(distinct), dtype=np.int32)
    return sets, lambda y: np.asarray(encoded[np.searchsorted(distinct, y)])


def _dask_blocks(estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any) -> tuple[Blocks, LabelSets | None]:
    from aucdist.engine.dask import blocks_from_collections, distinct_labels

    collections = {"y": y, "weight": sample_weight, "groups": groups}
    columns = {name: values for name, values in collections.items() if values is not None}
    if "y" not in columns or not all(map(is_dask, columns.values())):
        raise InputError("X is a dask collection: y, sample_weight and groups must be dask collections too")
    forget_columns(estimator)
    for name, kind in getattr(X, "dtypes", {}).items() if hasattr(X, "columns") else ():
        if getattr(kind, "kind", "O") not in "biuf":
            raise InputError(
                f"column {name!r} of the dask DataFrame holds {kind}, and features of dask collections are numbers: use "
                "dask.dataframe.get_dummies, or train on the files with `aucdist train`, which encodes them on the workers"
            )
    check_columns(estimator, X, reset=True)
    distinct = distinct_labels(y)
    sets: LabelSets | None
    if _is_indicator(y):
        rows = np.unique(np.concatenate(distinct), axis=0)
        sets, numbers = LabelSets.of_indicator(rows, getattr(y, "columns", None))
        estimator.classes_ = sets.classes
        number_of = {row.tobytes(): number for row, number in zip(rows, numbers.tolist(), strict=True)}

        def numbers_of_sets(y: ndarray) -> ndarray:
            """Return the number of each row's set of classes."""
            return np.array([number_of[row.tobytes()] for row in np.ascontiguousarray(y)], dtype=np.int32)

        encode: Encode = numbers_of_sets
    else:
        values = np.concatenate(distinct)
        if pd.isna(values).any():
            raise InputError("Input y contains NaN: a label is missing; leave out rows without a label")
        sets, encode = _encoder(estimator, values)
    rules = {"graded": estimator.grade_weight is not None, "may_miss": allows_missing(estimator)}
    return blocks_from_collections(X, columns, encode, several=sets is not None, **rules), sets


def check_groups(estimator: Any, blocks: Blocks) -> None:
    """Check that the solver supports the groups or grades of the rows, and that `group_weight` and `grade_weight` apply to them.

    Parameters
    ----------
    estimator : BlockClassifier
        The estimator that is fitted.
    blocks : Blocks
        The training rows.

    Raises
    ------
    InputError
        If the solver does not. The message names the estimators and solvers that accept groups.
    """
    solver = estimator.resolved_solver
    called = "groups" if blocks.has_groups else "grades"
    if (blocks.has_groups or blocks.has_grades) and not solver.accepts_groups:
        if any(other.accepts_groups for other in estimator.solvers.values()):
            raise InputError(f"solver {solver.name!r} does not support {called}; {estimator._solvers_that('groups')}")
        able = [
            f"{name} (solver {key})"
            for name, kind in estimators.ESTIMATORS.items()
            for key, other in kind.solvers.items()
            if other.accepts_groups
        ]
        raise InputError(f"{type(estimator).__name__} does not support {called}. Use {' or '.join(able)}")
    if estimator.group_weight is not None and not blocks.has_groups:
        raise InputError("group_weight is the weight of a group, but no groups are given: use fit(X, y, groups=...)")
    if estimator.grade_weight is not None and not blocks.has_grades:
        raise InputError(
            "grade_weight is the weight of a pair of grades, but the labels are not grades: leave grade_weight out"
        )
