"""Scaling of features, fitted on the training rows by statistics that merge over blocks."""

import functools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from aucdist.data.block import Block, n_rows
from aucdist.errors import InputError, unknown
from aucdist.kernels.rows import CsrRows, Rows

SCALES = ("none", "standard", "minmax", "maxabs", "unit-row")
CENTRING = ("standard", "minmax")
CHUNK = 4096  # rows that are turned into float64 at a time


@dataclass(frozen=True, eq=False)
class Moments:
    """Statistics of each column, which merge by ``+``. They are float64 whatever the data are.

    Attributes
    ----------
    count : int
        Number of rows.
    mean, m2 : ndarray of shape (n_features,)
        The mean, and the sum of squared distances to it.
    low, high : ndarray of shape (n_features,)
        The least and the greatest value; inf and -inf where there are no rows.
    """

    count: int
    mean: np.ndarray
    m2: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def __add__(self, other: "Moments") -> "Moments":
        """Return the statistics of both sets of rows (pairwise update of Chan, Golub and LeVeque)."""
        if 0 in (self.count, other.count):
            return self if other.count == 0 else other
        count = self.count + other.count
        delta = other.mean - self.mean
        return Moments(
            count,
            self.mean + delta * (other.count / count),
            self.m2 + other.m2 + delta * delta * (self.count * other.count / count),
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )


def moments(rows: Rows) -> Moments:
    """Return the statistics of the columns."""
    n = n_rows(rows)
    if isinstance(rows, CsrRows):
        return _csr_moments(rows, n) if n else _no_moments(rows.n_features)
    parts = (_dense_moments(rows.values[i : i + CHUNK]) for i in range(0, n, CHUNK))
    return functools.reduce(operator.add, parts, _no_moments(rows.values.shape[1]))


def _no_moments(d: int) -> Moments:
    return Moments(0, np.zeros(d), np.zeros(d), np.full(d, np.inf), np.full(d, -np.inf))


def _dense_moments(part: np.ndarray) -> Moments:
    x = part.astype(np.float64)
    mean = x.mean(axis=0)
    return Moments(len(x), mean, ((x - mean) ** 2).sum(axis=0), x.min(axis=0), x.max(axis=0))


def _csr_moments(rows: CsrRows, n: int) -> Moments:
    d, x = rows.n_features, rows.values.astype(np.float64)
    zeros = n - np.bincount(rows.indices, minlength=d)
    mean = np.bincount(rows.indices, x, minlength=d) / n
    m2 = np.bincount(rows.indices, (x - mean[rows.indices]) ** 2, minlength=d) + zeros * mean**2
    low, high = np.where(zeros, 0.0, np.inf), np.where(zeros, 0.0, -np.inf)
    np.minimum.at(low, rows.indices, x)
    np.maximum.at(high, rows.indices, x)
    return Moments(n, mean, m2, low, high)


@dataclass(frozen=True, eq=False)
class Preprocessor:
    """What is done to the features of every row: log(1 + x), then (x - shift) * factor or rows of length one.

    Attributes
    ----------
    log1p : tuple of int
        The columns put through log(1 + x).
    scale : str
        One of `SCALES`.
    shift, factor : ndarray of shape (n_features,), float64, or None
        None does nothing.
    """

    log1p: tuple[int, ...]
    scale: str
    shift: np.ndarray | None
    factor: np.ndarray | None

    def transform(self, block: Block) -> Block:
        """Return the block with its features scaled, in the type they had.

        Sparse rows that have to be centred, because the training rows were dense, become dense like those.

        Raises
        ------
        InputError
            If the block has another number of features, or a value that has no log(1 + x).
        """
        needed = max(self.log1p, default=-1) + 1 if self.factor is None else len(self.factor)
        if block.n_features < needed or (self.factor is not None and block.n_features != needed):
            raise InputError(f"{block.n_features} features, but the scaling was fitted on {needed}")
        if not self.log1p and self.scale == "none":
            return block
        if self.shift is not None and isinstance(block.rows, CsrRows):
            block = block.with_X(sp.csr_matrix(block.X).toarray())
        rows = _logged(block, self.log1p, None)
        values = rows.values
        if self.shift is not None:
            values -= self.shift
        if self.scale == "unit-row":
            _make_unit(rows)
        elif self.factor is not None:
            values *= self.factor[rows.indices] if isinstance(rows, CsrRows) else self.factor
        return replace(block, rows=rows)

    def to_json(self) -> dict[str, Any]:
        """Return the preprocessor in types of JSON."""
        return {
            "log1p": list(self.log1p),
            "scale": self.scale,
            "shift": None if self.shift is None else self.shift.tolist(),
            "factor": None if self.factor is None else self.factor.tolist(),
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "Preprocessor":
        """Make a preprocessor from what `to_json` returned.

        Raises
        ------
        InputError
            If the scaling is none that is known.
        KeyError, TypeError, ValueError
            If the content is not that of a preprocessor.
        """
        if content["scale"] not in SCALES:
            raise unknown("scale", content["scale"], SCALES)
        shift, factor = (
            None if content[key] is None else np.array(content[key], dtype=np.float64) for key in ("shift", "factor")
        )
        return cls(tuple(int(i) for i in content["log1p"]), content["scale"], shift, factor)


def fit_preprocessor(
    blocks: Sequence[Block],
    feature_names: Sequence[str],
    *,
    log1p: Literal["numeric"] | list[str] | None,
    scale: str,
    categories: Mapping[str, Sequence[str]],
) -> Preprocessor:
    """Learn the scaling from the training rows.

    Parameters
    ----------
    blocks : sequence of Block
        The training rows; their statistics merge in this order.
    feature_names : sequence of str
    log1p : "numeric", list of str or None
        Features to put through log(1 + x) first; ``"numeric"`` means all that are not 0/1 features of a category.
    scale : str
        ``none``; ``standard`` (mean 0, variance 1); ``minmax`` (from 0 to 1); ``maxabs`` (largest size 1);
        ``unit-row`` (each row of Euclidean length 1; rows of zeros stay). A constant column gets the factor 1.
    categories : mapping of str to sequence of str
        As in the schema.

    Raises
    ------
    InputError
        If a name is unknown, a value has no log(1 + x), sparse rows would have to be centred, or a column cannot be scaled.
    """
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    columns = _log1p_columns(log1p, feature_names, categories)
    if scale in CENTRING and any(isinstance(block.rows, CsrRows) for block in blocks):
        raise InputError(
            f"scale {scale!r} would subtract a number from every zero of sparse rows; use `maxabs` or `unit-row`, or "
            "read the data with `layout: dense`"
        )
    if scale in ("none", "unit-row"):
        return Preprocessor(columns, scale, None, None)
    if not any(block.n_samples for block in blocks):
        raise InputError("there are no rows to fit the scaling on")
    with np.errstate(
        over="ignore", divide="ignore", invalid="ignore"
    ):  # what is beyond floating point is refused below
        total = functools.reduce(operator.add, (moments(_logged(block, columns, feature_names)) for block in blocks))
        shift, factor = _scaling(total, scale)
    for array in (shift, factor):
        if array is not None and not np.isfinite(array).all():
            bad = feature_names[int(np.argmin(np.isfinite(array)))]
            raise InputError(
                f"feature {bad!r}: its values are too large or too small to scale them; use log1p or `none`"
            )
    return Preprocessor(columns, scale, shift, factor)


def _log1p_columns(
    log1p: str | list[str] | None, names: Sequence[str], categories: Mapping[str, Sequence[str]]
) -> tuple[int, ...]:
    if log1p is None:
        return ()
    if log1p == "numeric":
        one_hot = {f"{name}={value}" for name, values in categories.items() for value in values}
        return tuple(i for i, name in enumerate(names) if name not in one_hot)
    if isinstance(log1p, str):
        raise unknown("value of log1p", log1p, ["numeric", "a list of features"])
    position = {name: i for i, name in enumerate(names)}
    for name in log1p:
        if name not in position:
            raise unknown("feature in log1p", name, names)
    return tuple(sorted({position[name] for name in log1p}))


def _scaling(total: Moments, scale: str) -> tuple[np.ndarray | None, np.ndarray]:
    """Return shift and factor. Where a factor is beyond floating point, it is not finite."""
    if scale == "standard":
        shift, spread = total.mean, np.sqrt(total.m2 / total.count)
    elif scale == "minmax":
        shift, spread = total.low, total.high - total.low
    else:
        shift, spread = None, np.maximum(np.abs(total.low), np.abs(total.high))
    # By the values themselves: rounding leaves a constant column a variance just above zero.
    constant = spread == 0 if scale == "maxabs" else total.low == total.high
    factor = 1.0 / np.where(constant, 1.0, spread)
    return shift, np.where(factor > 0, factor, np.inf)


def _logged(block: Block, columns: tuple[int, ...], names: Sequence[str] | None) -> Rows:
    """Return a copy of the rows with log(1 + x) in the columns."""
    rows, which = block.rows._replace(values=block.rows.values.copy()), list(columns)
    if not which:
        return rows
    at = np.isin(rows.indices, which) if isinstance(rows, CsrRows) else (slice(None), which)
    x = rows.values[at]
    if (x <= -1).any():
        raise _no_logarithm(block, which, names)
    rows.values[at] = np.log1p(x)
    return rows


def _no_logarithm(block: Block, which: list[int], names: Sequence[str] | None) -> InputError:
    """Return the error that names the first value that has no log(1 + x)."""
    rows = block.rows
    if isinstance(rows, CsrRows):
        k = np.flatnonzero(np.isin(rows.indices, which) & (rows.values <= -1))[0]
        i, j, value = np.searchsorted(rows.offsets, k, "right") - 1, rows.indices[k], rows.values[k]
    else:
        i, place = np.argwhere(rows.values[:, which] <= -1)[0]
        j, value = which[place], rows.values[i, which[place]]
    return InputError(
        f"feature {names[j] if names else j} of row {block.row_id[i]} (from 0) is {value:g}, but log1p needs values above -1; "
        "name the features that have them, or leave log1p out"
    )


def _make_unit(rows: Rows) -> None:
    """Scale every row to Euclidean length one; rows of zeros stay."""
    if isinstance(rows, CsrRows):
        of = np.repeat(np.arange(n_rows(rows)), np.diff(rows.offsets))
        with np.errstate(over="ignore"):
            squares = rows.values.astype(np.float64) ** 2
        length = _lengths(np.bincount(of, squares, minlength=n_rows(rows)))
        np.divide(rows.values, length[of], out=rows.values, casting="same_kind")
    else:
        length = _lengths(np.einsum("ij,ij->i", rows.values, rows.values, dtype=np.float64))
        np.divide(rows.values, length[:, None], out=rows.values, casting="same_kind")


def _lengths(squares: np.ndarray) -> np.ndarray:
    if not np.isfinite(squares).all():
        raise InputError("a row is too long for floating point; scale its features before (`maxabs`)")
    return np.sqrt(np.where(squares > 0, squares, 1.0))
