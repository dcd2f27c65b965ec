"""Blocks of rows in memory, in the form that the kernels read, and sums over rows of any layout."""

import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy import ndarray

from aucdist.errors import InputError
from aucdist.kernels.codes import BinRows, CodeBasis, add_codes, code_moments, fold_columns, window_moments
from aucdist.kernels.rows import CsrRows, DenseRows, Rows, accumulate, project
from aucdist.parameters import check_weights, frozen

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
ROW_COLUMNS: dict[str, Any] = {
    "weight": np.float64,
    "group": np.int64,
    "grade": np.float64,
    "cost": np.float64,
    "code": np.int32,
}
"""The optional values of rows besides features, label and id, with their types. Each is an attribute of a `Block` and a column of
a shard."""
_MATRIX_CACHE: dict[Any, Any] = {}
"""The matrices made from a basis, by the identity of its values. They are kept as long as these values are in memory."""


@frozen
class Block:
    """A block of rows: their features, labels, weights and row ids. Treat it as read-only.

    Attributes
    ----------
    rows : DenseRows, CsrRows or BinRows
        The rows of X in float32 or float64, or as codes of a feature map.
    y : ndarray of shape (n_samples,), int8
        Labels, -1 or +1. A block with one class or no rows is legal.
    row_id : ndarray of shape (n_samples,), int64
        The number of each row in the whole data set. It decides folds and splits, whatever block the row is in.
    weight : ndarray of shape (n_samples,), float64, or None
        Sample weights; None means one each.
    index : int
        The number of the block in its data set. Summaries are merged in this order, and seeds depend on it.
    group : ndarray of shape (n_samples,), int64, or None
        Rows with the same number, in whatever blocks, belong to one group, such as a user or a query. A pair is then two rows
        of one group (`aucdist.pairs.groups`).
    grade : ndarray of shape (n_samples,), float64, or None
        The relevance of each row, if it has more than two values. `y` is then +1 for rows above the lowest grade.
    cost : ndarray of shape (n_samples,), float64, or None
        The cost of a wrong decision on each row, at least 0. Thresholds use it (`aucdist.metrics.decisions`), but fits do not.
    code : ndarray of shape (n_samples,), int32, or None
        If each class is fitted against the rest, the number of the row's set of classes: see
        `aucdist.data.label_sets.LabelSets`. `y` is then not used.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.data.block import Block
    >>> block = Block.of(np.array([[1.0, 0.0], [2.0, 3.0], [4.0, 5.0]]), np.array([1, -1, -1]))
    >>> block.n_samples, block.n_pos, block.n_features
    (3, 1, 2)
    >>> block.scores(np.array([1.0, -1.0]))
    array([ 1., -1., -1.])
    """

    rows: Rows
    y: ndarray
    row_id: ndarray
    weight: ndarray | None = None
    index: int = 0
    group: ndarray | None = None
    grade: ndarray | None = None
    cost: ndarray | None = None
    code: ndarray | None = None

    @classmethod
    def of(
        cls,
        X: Any,
        y: ndarray,
        *,
        row_id: ndarray | None = None,
        index: int = 0,
        **row_columns: ndarray | None,
    ) -> "Block":
        """Make a block from a matrix and labels. Only arrays of another type or layout are copied.

        Parameters
        ----------
        X : ndarray or scipy sparse matrix or array of shape (n_samples, n_features)
            float32 stays float32; every other type becomes float64.
        y : array of shape (n_samples,)
            Labels, -1 or +1.
        row_id, index
            As the attributes. By default, ``row_id`` is 0, 1, 2, ...
        **row_columns
            Further attributes with a value for each row, as in `ROW_COLUMNS`.

        Returns
        -------
        Block

        Raises
        ------
        InputError
            If the lengths differ, a label is neither -1 nor +1, or a weight is negative, not finite, or too large or too
            small for products of weights.
        """
        rows = as_rows(X)
        n = n_rows(rows)
        y = np.asarray(y)
        if y.shape != (n,):
            raise InputError(f"X has {n} rows, but y has shape {y.shape}: give one label for each row, of shape ({n},)")
        if not ((y == 1) | (y == -1)).all():
            raise InputError(
                "the labels of a block must be -1 or +1: convert them, as in np.where(y == positive, 1, -1)"
            )
        ids = np.arange(n, dtype=np.int64) if row_id is None else np.asarray(row_id, dtype=np.int64)
        sides = {
            name: np.ascontiguousarray(values, dtype=ROW_COLUMNS[name])
            for name, values in row_columns.items()
            if values is not None
        }
        for name, values in {"row id": ids, **sides}.items():
            if values.shape != (n,):
                raise InputError(
                    f"X has {n} rows, but the {name}s have shape {values.shape}: give one {name} for each row, of shape ({n},)"
                )
        if "weight" in sides:
            check_weights(sides["weight"])
        return cls(rows, y.astype(np.int8), ids, index=index, **sides)

    def scores(self, w: ndarray) -> ndarray:
        """Return X w, float64 of shape (n_samples,)."""
        out = np.empty(self.n_samples)
        project(self.rows, w, out)
        return out

    def sums(self, coefs: ndarray) -> ndarray:
        """Return X' times a coefficient for each row, float64 of shape (n_features,)."""
        out = np.zeros(self.n_features)
        accumulate(self.rows, np.arange(self.n_samples), coefs, out)
        return out

    @property
    def label(self) -> ndarray:
        """The label of each row. With several classes, it is the index of the row's set of classes."""
        return self.y if self.code is None else self.code

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return len(self.y)

    @property
    def n_pos(self) -> int:
        """Number of positive rows."""
        return int((self.y == 1).sum())

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return n_columns(self.rows)

    @property
    def X(self) -> ndarray | sp.csr_matrix:
        """The rows as a NumPy array or a ``csr_matrix``.

        Raises
        ------
        InputError
            If the rows are codes, because their matrix may be many times as large (`aucdist.data.block.matrix_of`).
        """
        if isinstance(self.rows, BinRows):
            raise InputError(
                "this solver does not support rows that a feature map has encoded as bin numbers: fit it to the output of "
                "the map's `transform(X)`"
            )
        if isinstance(self.rows, CsrRows):
            return as_csr(self.rows)
        return self.rows.values

    def weights(self) -> ndarray:
        """Return the sample weights. They are ones if the block has no weights."""
        return np.ones(self.n_samples) if self.weight is None else self.weight

    def take(self, chosen: ndarray, *, index: int = 0) -> "Block":
        """Return a block of the rows `chosen`, which are positions or a mask, in that order."""
        chosen = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        return replace(self, rows=rows_at(self.rows, chosen), index=index, **self._labels(chosen))

    def between(self, start: int, stop: int, *, index: int = 0) -> "Block":
        """Return a block of the rows from position `start` up to `stop`. Their features are not copied."""
        at = slice(start, stop)
        if isinstance(self.rows, BinRows):
            rows: Rows = BinRows(self.rows.codes[at], self.rows.basis)
        elif isinstance(self.rows, CsrRows):
            offsets = self.rows.offsets[start : stop + 1]
            stored = slice(offsets[0], offsets[-1])
            rows = CsrRows(
                self.rows.values[stored], self.rows.indices[stored], offsets - offsets[0], self.rows.n_features
            )
        else:
            rows = DenseRows(self.rows.values[at])
        return replace(self, rows=rows, index=index, **self._labels(at))

    def _labels(self, at: Any) -> dict[str, Any]:
        """Return the labels, ids, weights and groups of some rows."""
        named = {name: getattr(self, name) for name in ("y", "row_id", *ROW_COLUMNS)}
        return {name: None if values is None else values[at] for name, values in named.items()}

    def with_X(self, X: Any) -> "Block":
        """Return the same rows with other features."""
        rows = as_rows(X)
        if n_rows(rows) != self.n_samples:
            raise InputError(
                f"the block has {self.n_samples} rows, but the new features have {n_rows(rows)}: give all rows features"
            )
        return replace(self, rows=rows)


class Columns:
    """The columns of a block, by their numbers, as in ``Columns(block)[j]``. Sparse rows are sorted by columns once."""

    def __init__(self, block: Block):
        X: Any = block.X
        self._X = X.tocsc() if sp.issparse(X) else X

    def __getitem__(self, j: int) -> ndarray:
        """Return a column, float64 of shape (n_samples,)."""
        return as_dense(self._X[:, [j]]).ravel().astype(np.float64, copy=False)


EachBlock = Callable[[Callable[[Block], Any]], Iterable[Any]]
"""Calls a function on each block of some rows, wherever they are read, and returns the results in order."""


def each_of(blocks: Iterable[Block]) -> EachBlock:
    """Return a function that calls another function on each of these blocks."""
    return lambda function: map(function, blocks)


def as_rows(X: Any) -> Rows:
    """Return X in the form that kernels read: C-contiguous dense, or CSR with int32 indices and int64 offsets."""
    if sp.issparse(X):
        csr = X.tocsr()
        if not csr.has_canonical_format:
            csr = csr.copy()
            csr.sum_duplicates()
        values = csr.data if csr.dtype in FLOATS else csr.data.astype(np.float64)
        indices, offsets = csr.indices.astype(np.int32, copy=False), csr.indptr.astype(np.int64, copy=False)
        return CsrRows(np.ascontiguousarray(values), indices, offsets, int(csr.shape[1]))
    dense = np.asarray(X)
    if dense.ndim != 2:
        raise InputError(
            f"X must have 2 dimensions (rows, features); got {dense.ndim}. Use X.reshape(-1, 1) for one feature"
        )
    return DenseRows(np.ascontiguousarray(dense, dtype=dense.dtype if dense.dtype in FLOATS else np.float64))


def unmasked(X: Any) -> Any:
    """Return rows with NaN for masked entries. Otherwise, scikit-learn would use the values below the mask."""
    if isinstance(X, np.ma.MaskedArray) and X.dtype.kind in "biuf":
        return np.ma.filled(X.astype(np.result_type(X.dtype, np.float32)), np.nan)
    return X


def as_dense(X: Any) -> ndarray:
    """Return a matrix, sparse or not, as an array."""
    return np.asarray(X.toarray() if sp.issparse(X) else X)


def as_csr(rows: CsrRows) -> sp.csr_matrix:
    """Return CSR rows as a matrix that shares their arrays."""
    return sp.csr_matrix((rows.values, rows.indices, rows.offsets), (len(rows.offsets) - 1, rows.n_features))


def n_rows(rows: Rows) -> int:
    """Return the number of rows."""
    if isinstance(rows, CsrRows):
        return len(rows.offsets) - 1
    return len(rows.codes if isinstance(rows, BinRows) else rows.values)


def n_columns(rows: Rows) -> int:
    """Return the number of columns. For codes, it is the number of basis functions."""
    if isinstance(rows, BinRows):
        return int(rows.basis.n_features)
    return int(rows.n_features if isinstance(rows, CsrRows) else rows.values.shape[1])


def rows_at(rows: Rows, positions: ndarray) -> Rows:
    """Return the rows at these positions, in that order."""
    if isinstance(rows, BinRows):
        return BinRows(rows.codes.take(positions, axis=0), rows.basis)
    if isinstance(rows, CsrRows):
        return as_rows(as_csr(rows)[positions])
    return DenseRows(rows.values.take(positions, axis=0))  # `take` is several times as fast as indexing


def concatenate_columns(parts: Iterable[tuple[ndarray | None, ...]]) -> tuple[Any, ...]:
    """Concatenate a column of blocks, or return None if the blocks do not have it, for each of several columns."""
    return tuple(None if part[0] is None else np.concatenate(part) for part in zip(*parts, strict=True))


def stacked(blocks: Sequence[Block]) -> Block:
    """Return the rows of blocks with the same layout as one block, with their ids and weights."""
    if len(blocks) == 1:
        return blocks[0]
    weighted = any(block.weight is not None for block in blocks)
    joined: dict[str, Any] = {}
    for name in ("y", "row_id", *ROW_COLUMNS):
        column_of_blocks = [
            block.weights() if weighted and name == "weight" else getattr(block, name) for block in blocks
        ]
        joined[name] = None if any(values is None for values in column_of_blocks) else np.concatenate(column_of_blocks)
    parts = [block.rows for block in blocks]
    rows: Rows
    if isinstance(parts[0], BinRows):
        rows = BinRows(np.concatenate([part.codes for part in parts]), parts[0].basis)
    elif isinstance(parts[0], CsrRows):
        rows = as_rows(sp.vstack([as_csr(part) for part in parts], format="csr"))
    else:
        rows = DenseRows(np.concatenate([part.values for part in parts]))
    return Block(rows, **joined)


def into_blocks(block: Block, n_blocks: int) -> list[Block]:
    """Divide the rows among blocks, each class separately, so that every block gets its share of positives.

    The row numbered r within its class goes to block r mod n_blocks, and rows keep their order. With one block, the rows do not
    change.
    """
    dealt = np.empty(block.n_samples, dtype=np.int64)
    for label in (-1, 1):
        class_rows = block.y == label
        dealt[class_rows] = np.arange(class_rows.sum()) % n_blocks
    if n_blocks == 1:
        return [replace(block, index=0)]
    return [block.take(dealt == b, index=b) for b in range(n_blocks)]


def _cached_matrix(make: Callable[..., Any]) -> Callable[..., Any]:
    """Cache the matrix that a function computes from a basis.

    Each Newton step needs it, and computing it may take longer than the step.
    """

    def made(basis: CodeBasis, *options: Any) -> Any:
        """Return the matrix of a basis, from the cache if it was computed before. The cache ends with the basis."""
        key = id(basis.values), make, *options
        if key not in _MATRIX_CACHE:
            weakref.finalize(basis.values, _MATRIX_CACHE.pop, key, None)
            _MATRIX_CACHE[key] = make(basis, *options)
        return _MATRIX_CACHE[key]

    return made


@_cached_matrix
def basis_matrix(basis: CodeBasis) -> sp.csr_matrix:
    """Return the values of all basis functions in all cells, float64 of shape (n_cells, n_features)."""
    cells = np.arange(len(basis.offsets) - 1)
    starts, widths = (np.repeat(values, np.diff(basis.starts)) for values in (basis.starts[:-1], basis.widths))
    rows, columns = np.divmod(cells - starts, np.maximum(widths, 1))
    matrix = sp.csr_matrix((basis.values, basis.columns, basis.offsets), (len(cells), basis.n_features))
    # The running sums over a grid of cells go along its rows and then down its columns. Codes of width 0 are not summed.
    for before, stride in ((columns, np.minimum(widths, 1)), (np.where(widths, rows, 0), widths)):
        ends = np.append(0, np.cumsum(before + 1))
        steps = np.arange(ends[-1]) - np.repeat(ends[1:] - 1, before + 1)  # -before, ..., 0
        indices = np.repeat(cells, before + 1) + steps * np.repeat(stride, before + 1)
        matrix = sp.csr_matrix((np.ones(len(steps)), indices, ends), (len(cells), len(cells))) @ matrix
    return matrix


@_cached_matrix
def _change_basis(basis: CodeBasis, function: Callable[[ndarray], ndarray]) -> CodeBasis:
    """Apply a function with f(0) = 0 to all values of a basis, and return the new basis.

    A step from 0 to a value becomes a step to the function of that value. Only codes of one feature have a basis function with
    several steps. Its new steps are the differences of the function between the old values.
    """
    values, columns = function(basis.values), basis.columns
    summed = np.repeat(np.repeat(basis.widths > 0, np.diff(basis.starts)), np.diff(basis.offsets))
    several = np.flatnonzero(summed & (np.bincount(columns[summed], minlength=basis.n_features) > 1)[columns])
    several = several[np.argsort(columns[several], kind="stable")]
    for steps in np.split(several, np.flatnonzero(np.diff(columns[several])) + 1):
        values[steps] = np.diff(function(basis.values[steps].cumsum()), prepend=0.0)
    return basis._replace(values=values)


def matrix_of(rows: BinRows) -> sp.csr_matrix:
    """Return rows of codes as the matrix of their basis functions, float64 of shape (n_samples, n_features)."""
    n, m = rows.codes.shape
    cells = (rows.codes + rows.basis.starts[:-1]).ravel()
    ones = sp.csr_matrix((np.ones(n * m), cells, np.arange(n + 1) * m), (n, len(rows.basis.offsets) - 1))
    matrix = sp.csr_matrix(ones @ basis_matrix(rows.basis))
    matrix.sort_indices()
    return matrix


def matrix_of_rows(rows: Rows) -> ndarray | sp.csr_matrix:
    """Return rows as a matrix of their features, float64 of shape (n_samples, n_features)."""
    if isinstance(rows, BinRows):
        return matrix_of(rows)
    return as_csr(rows).astype(np.float64) if isinstance(rows, CsrRows) else rows.values.astype(np.float64, copy=False)


def elementwise(rows: Rows, function: Callable[[ndarray], ndarray]) -> Rows:
    """Apply a function with f(0) = 0 to each value of the rows."""
    if not isinstance(rows, BinRows):
        return rows._replace(values=function(rows.values.astype(np.float64, copy=False)))
    return BinRows(rows.codes, _change_basis(rows.basis, function))


def column_squares(rows: Rows, coefs: ndarray) -> ndarray:
    """Return the sum of ``coefs[i] * x_ij ** 2`` over the rows, float64 of shape (n_features,)."""
    out = np.zeros(n_columns(rows))
    accumulate(elementwise(rows, np.square), np.arange(len(coefs)), coefs, out)
    return out


def row_squares(rows: Rows) -> ndarray:
    """Return the squared Euclidean length of each row, float64 of shape (n_samples,)."""
    if isinstance(rows, DenseRows):  # avoids a copy of all values
        return np.einsum("ij,ij->i", rows.values, rows.values, dtype=np.float64)
    out = np.empty(n_rows(rows))
    project(elementwise(rows, np.square), np.ones(n_columns(rows)), out)
    return out


def code_histogram(rows: BinRows, coefs: ndarray) -> ndarray:
    """Return the sum of the coefficients of the rows in each cell, float64 of shape (n_cells,)."""
    out = np.zeros(len(rows.basis.offsets) - 1)
    add_codes(rows.codes, rows.basis.starts, np.arange(len(coefs)), coefs, len(coefs), out)
    return out


def outer_products(rows: BinRows, coefs: ndarray, *, centred: bool = False) -> ndarray:
    """Return the sum of ``coefs[i] x_i x_i'``, float64 of shape (n_features, n_features).

    Parameters
    ----------
    rows : BinRows
        The rows x_i.
    coefs : ndarray of shape (n_samples,), float64
        The coefficients.
    centred : bool, default=False
        Whether to subtract from each x_i the mean that is weighted by the coefficients.
    """
    cells = _moments_of_cells(rows, coefs)
    if centred and (total := coefs.sum()) != 0.0:
        histogram = np.diag(cells).copy()
        cells -= np.outer(histogram, histogram / total)
    return _of_features(rows.basis, cells)


def pair_moments(rows: BinRows, low: ndarray, high: ndarray, weights: ndarray, pair_weights: ndarray) -> ndarray:
    """Return the sum of ``w_i w_j (x_i - x_j)(x_i - x_j)'`` over pairs, float64 of shape (n_features, n_features).

    Parameters
    ----------
    rows, low, high, weights
        The rows, and which of them are partners, as in `aucdist.kernels.codes.window_moments`.
    pair_weights : ndarray of shape (n_samples,), float64
        The weight of each row's pairs.
    """
    cells = _moments_of_cells(rows, pair_weights)
    across = np.zeros(cells.shape)
    window_moments(rows, low, high, weights, np.zeros(len(cells)), across)
    return _of_features(rows.basis, cells - (across + across.T))


def _moments_of_cells(rows: BinRows, coefs: ndarray) -> ndarray:
    n_cells = len(rows.basis.offsets) - 1
    lower = np.zeros((n_cells, n_cells))
    code_moments(rows, coefs, lower)
    cells = lower + lower.T
    np.fill_diagonal(cells, lower.diagonal())
    return cells


def _of_features(basis: CodeBasis, cells: ndarray) -> ndarray:
    """Return ``A' cells A``, where A has the values of the basis functions in the cells, and `cells` is symmetric."""
    for _ in range(2):
        out = np.zeros((basis.n_features, cells.shape[1]))
        fold_columns(basis, cells, out)
        cells = np.ascontiguousarray(out.T)
    return cells
