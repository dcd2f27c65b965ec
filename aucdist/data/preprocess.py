"""Scaling of features. It is fitted to the training rows by statistics that can be merged over blocks."""

import functools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy import ndarray
from pydantic import AfterValidator, Field, PlainSerializer

from aucdist.data.block import Block, EachBlock, as_dense, row_squares
from aucdist.data.column_statistics import STATISTICS, Moments, entry_at, filled, first_missing, moments
from aucdist.data.dataset import Impute, Scale, category_features
from aucdist.data.own_files import NO_MORE_KEYS, Count, to_jsonable
from aucdist.errors import InputError, unknown
from aucdist.kernels.rows import CsrRows, Rows
from aucdist.parameters import frozen

WITHOUT_FILL = ("refuse", "keep")
"""The values of `impute` that do not replace missing values."""
CENTRING = ("standard", "minmax")


def array_of(items: Any, dtype: type) -> Any:
    """Return the type of an array that is a list of such items in JSON."""
    read = AfterValidator(lambda values: np.array(values, dtype=dtype))
    return Annotated[list[items], read, PlainSerializer(lambda array: array.tolist())]


if TYPE_CHECKING:
    Floats = ndarray
else:
    Floats = array_of(float, np.float64)


@frozen
class Preprocessor:
    """Fitted preprocessing of the features: imputation, logarithms and scaling, in this order.

    Missing values are filled in, and chosen columns are replaced by log(1 + x). Then either each feature is replaced by
    (x - shift) * factor, or each row is scaled to length 1.

    Attributes
    ----------
    log1p : tuple of int
        The columns that are transformed by log(1 + x).
    scale : str
        How the features are scaled; see `fit_preprocessor`.
    shift, factor : ndarray of shape (n_features,), float64, or None
        The numbers by which features are shifted and multiplied. None if features are not scaled.
    impute : str
        What replaces missing values; see `fit_preprocessor`.
    fill : ndarray of shape (n_features,), float64, or None
        The values that replace missing ones. If it is None, a missing value is an error.
    fill_error : float
        A field of models of earlier versions, which is not used.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.data.block import Block
    >>> from aucdist.data.preprocess import Preprocessor
    >>> scaling = Preprocessor((), "standard", shift=np.array([2.0]), factor=np.array([0.5]))
    >>> scaling.transform(Block.of(np.array([[1.0], [4.0]]), np.array([1, -1]))).X
    array([[-0.5],
           [ 1. ]])
    """

    __pydantic_config__ = NO_MORE_KEYS

    log1p: tuple[Count, ...]
    scale: Scale
    shift: Floats | None
    factor: Floats | None
    impute: Impute = "refuse"  # older models do not have this field
    fill: Floats | None = None
    fill_error: Annotated[float, Field(ge=0.0)] = 0.0

    def transform(self, block: Block) -> Block:
        """Return the block with preprocessed features in their original type.

        If the training rows were dense, sparse rows are centred and become dense as well.

        Parameters
        ----------
        block : Block
            The rows.

        Returns
        -------
        Block

        Raises
        ------
        InputError
            If the block has another number of features, a missing value that is not filled in, or a value that has no
            log(1 + x).
        """
        fitted = self.fill if self.factor is None else self.factor
        needed = max(self.log1p, default=-1) + 1 if fitted is None else len(fitted)
        if block.n_features < needed or (fitted is not None and block.n_features != needed):
            raise InputError(
                f"the rows have {block.n_features} features, but the scaling was fitted on {needed}: give the columns "
                "of the training data"
            )
        if self.impute != "keep":
            block = _filled(block, self.fill)
        if not self.log1p and self.scale == "none":
            return block
        if self.shift is not None and isinstance(block.rows, CsrRows):
            block = block.with_X(as_dense(block.X))
        rows = _logged(block, self.log1p, None)
        values = rows.values
        if self.shift is not None:
            values -= self.shift
        if self.scale == "unit-row":  # rows of zeros do not change
            with np.errstate(over="ignore"):
                squares = row_squares(rows)
            if not np.isfinite(squares).all():
                raise InputError("the length of a row overflows: scale the features first (`scale: maxabs`)")
            length = np.sqrt(np.where(squares > 0, squares, 1.0))
            divisors = np.repeat(length, np.diff(rows.offsets)) if isinstance(rows, CsrRows) else length[:, np.newaxis]
            np.divide(values, divisors, out=values, casting="same_kind")
        elif self.factor is not None:
            values *= self.factor[rows.indices] if isinstance(rows, CsrRows) else self.factor
        return replace(block, rows=rows)

    def to_json(self) -> Any:
        """Return the preprocessor as JSON values."""
        return to_jsonable(self, Preprocessor)

    def check(self, n_features: int) -> None:
        """Raise an InputError unless a preprocessor from a file fits rows with this number of features.

        It must have all arrays that its scaling and imputation need.
        """
        needed = (self.scale not in ("none", "unit-row"), self.scale in CENTRING)
        if (self.factor is not None, self.shift is not None) != needed:
            raise InputError(
                f"the preprocessor is damaged: its shift or factor is missing, or not one of scale {self.scale!r}"
            )
        if (self.fill is None) != (self.impute in WITHOUT_FILL):
            raise InputError(
                f"the preprocessor is damaged: impute {self.impute!r} and its values to fill in contradict each other"
            )
        arrays = [array for array in (self.shift, self.factor, self.fill) if array is not None]
        if any(len(array) != n_features for array in arrays) or any(i >= n_features for i in self.log1p):
            raise InputError(f"the preprocessor is damaged: it was not made for {n_features} features")


AS_READ = Preprocessor((), "none", None, None)
"""A preprocessor that does not change the features."""


def fit_preprocessor(
    each: EachBlock,
    feature_names: Sequence[str],
    *,
    log1p: Literal["numeric"] | list[str] | None,
    scale: Scale,
    categories: Mapping[str, Sequence[str]],
    impute: Impute = "refuse",
) -> Preprocessor:
    """Fit the preprocessing to the training rows, which are read at most twice.

    Parameters
    ----------
    each : EachBlock
        Calls a function on each block of the training rows. The statistics are merged in this order.
    feature_names : sequence of str
        The names of the features.
    log1p : "numeric", list of str or None
        Features that are transformed by log(1 + x). ``"numeric"`` means all features that are not 0/1 features of a category.
    scale : str
        ``none``; ``standard`` (mean 0, variance 1); ``minmax`` (from 0 to 1); ``maxabs`` (largest absolute value 1);
        ``unit-row`` (each row has Euclidean length 1; rows of zeros do not change). A constant column gets the factor 1.
    categories : mapping of str to sequence of str
        The categories of each categorical column, as in `Schema`.
    impute : str
        What replaces missing values, before all other steps: ``refuse`` (nothing); ``keep`` (they stay missing, for a feature
        map that accepts them; with ``scale="none"``); ``mean``; ``median``, which is approximate
        (`aucdist.data.column_statistics.MEDIAN_ERROR`). Zeros of sparse rows are values, and not missing.

    Returns
    -------
    Preprocessor

    Raises
    ------
    InputError
        If a feature in log1p is unknown, a value is missing, has no log(1 + x), or is missing in all rows, sparse rows would
        have to be centred, or a column cannot be scaled.
    """
    if log1p == "numeric":
        chosen = set(feature_names).difference(category_features(categories))
    else:
        chosen = set(log1p or ())
        for name in log1p or ():
            if name not in feature_names:
                raise unknown("feature in `log1p`:", name, feature_names)
    columns = tuple(i for i, name in enumerate(feature_names) if name in chosen)
    fill = None
    if impute == "keep" and scale != "none":
        raise InputError(
            f"`impute: keep` leaves missing values to a feature map, which bins the features as they are: use `scale: none`, "
            f"not {scale!r}"
        )
    if impute not in WITHOUT_FILL:
        statistics = functools.reduce(operator.add, each(STATISTICS[impute].of))
        fill = statistics.fill()
        _check_finite(
            fill, feature_names, "it is missing in every training row, or too large; leave out its column with `drop`"
        )
    if scale in ("none", "unit-row"):
        return Preprocessor(columns, scale, None, None, impute, fill)
    # Values that overflow raise an error below.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        statistics = functools.reduce(
            operator.add, each(functools.partial(_moments, tuple(feature_names), columns, scale, fill))
        )
        if statistics.weight == 0:
            raise InputError("there are no rows to fit the scaling on: give at least one")
        ranges, shift = statistics.ranges, None
        if scale == "standard":
            shift, spread = statistics.mean, statistics.deviation
        elif scale == "minmax":
            shift, spread = ranges.low, np.where(ranges.constant, 1.0, ranges.high - ranges.low)
        else:
            spread = np.where(ranges.largest == 0, 1.0, ranges.largest)
        factor = 1.0 / spread
    for array in (shift, factor + spread):  # an infinite spread gives a factor of 0
        if array is not None:
            _check_finite(
                array, feature_names, "its values are too large or too small to be scaled; use log1p or `none`"
            )
    return Preprocessor(columns, scale, shift, factor, impute, fill)


def _moments(
    names: tuple[str, ...], columns: tuple[int, ...], scale: str, fill: ndarray | None, block: Block
) -> Moments:
    if scale in CENTRING and isinstance(block.rows, CsrRows):
        raise InputError(
            f"scale {scale!r} would subtract a number from every zero of sparse rows; use `maxabs` or `unit-row`, or "
            "read the data with `layout: dense`"
        )
    return moments(_logged(_filled(block, fill, names), columns, names))


def _filled(block: Block, fill: ndarray | None, names: Sequence[str] | None = None) -> Block:
    """Return the block without missing values."""
    if fill is not None:
        return replace(block, rows=filled(block.rows, fill))
    if (place := first_missing(block.rows)) is not None:
        i, j = place
        raise InputError(
            f"feature {names[j] if names else j} of row {block.row_id[i]} (counted from 0) is missing; give `impute: mean` or "
            "`impute: median`, or leave the row or the feature out"
        )
    return block


def _check_finite(values: ndarray, names: Sequence[str], reason: str) -> None:
    if not np.isfinite(values).all():
        raise InputError(f"feature {names[int(np.argmin(np.isfinite(values)))]!r}: {reason}")


def _logged(block: Block, columns: tuple[int, ...], names: Sequence[str] | None) -> Rows:
    """Return a copy of the rows with log(1 + x) in the columns."""
    rows, positions = block.rows._replace(values=block.rows.values.copy()), list(columns)
    if not positions:
        return rows
    at = np.isin(rows.indices, positions) if isinstance(rows, CsrRows) else (slice(None), positions)
    x = rows.values[at]
    if (x <= -1).any():
        wrong = np.zeros(rows.values.shape, dtype=bool)
        wrong[at] = x <= -1
        k = int(np.argmax(wrong))
        (i, j), value = entry_at(rows, k), rows.values.reshape(-1)[k]
        raise InputError(
            f"feature {names[j] if names else j} of row {block.row_id[i]} (counted from 0) is {value:g}, but log1p needs values "
            "above -1; name the features that have them, or leave log1p out"
        )
    rows.values[at] = np.log1p(x)
    return rows
