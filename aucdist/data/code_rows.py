"""Sums over rows of codes that take the matrix of their basis functions, and the same functions of all kinds of rows."""

import weakref
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from aucdist.data.block import as_csr, n_columns, n_rows
from aucdist.kernels.codes import BinRows, CodeBasis, add_codes, code_moments
from aucdist.kernels.rows import CsrRows, DenseRows, Rows, accumulate, project

_MATRICES: dict[int, sp.csr_matrix] = {}
"""By the number of the values of a basis, for as long as these are in memory."""


def basis_matrix(basis: CodeBasis) -> sp.csr_matrix:
    """Return the values of all basis functions in all cells, an array of shape (n_cells, n_features), float64.

    The matrix of a basis is made once: each Newton step asks for it, and making it took longer than the step.
    """
    key = id(basis.values)
    if key not in _MATRICES:
        weakref.finalize(basis.values, _MATRICES.pop, key, None)
        _MATRICES[key] = _matrix_of_basis(basis)
    return _MATRICES[key]


def _matrix_of_basis(basis: CodeBasis) -> sp.csr_matrix:
    n_cells = len(basis.offsets) - 1
    matrix = sp.csr_matrix((basis.values, basis.columns, basis.offsets), (n_cells, basis.n_features))
    parts = []
    for first, end, width in zip(basis.starts[:-1], basis.starts[1:], basis.widths, strict=True):
        part = matrix[first:end]
        if width:
            # Running sums over a grid of cells, along its rows and down its columns.
            part = sp.csr_matrix(np.kron(np.tri((end - first) // width), np.tri(width))) @ part
        parts.append(part)
    return sp.csr_matrix(sp.vstack(parts)) if parts else matrix


def matrix_of(rows: BinRows) -> sp.csr_matrix:
    """Return rows of codes as the matrix of their basis functions, float64 of shape (n_samples, n_features)."""
    n, m = rows.codes.shape
    cells = (rows.codes + rows.basis.starts[:-1]).ravel()
    ones = sp.csr_matrix((np.ones(n * m), cells, np.arange(n + 1) * m), (n, len(rows.basis.offsets) - 1))
    matrix = sp.csr_matrix(ones @ basis_matrix(rows.basis))
    matrix.sort_indices()
    return matrix


def matrix_of_rows(rows: Rows) -> np.ndarray | sp.csr_matrix:
    """Return rows as a matrix of their features, float64 of shape (n_samples, n_features)."""
    if isinstance(rows, BinRows):
        return matrix_of(rows)
    return as_csr(rows).astype(np.float64) if isinstance(rows, CsrRows) else rows.values.astype(np.float64, copy=False)


def elementwise(rows: Rows, function: Callable[[np.ndarray], np.ndarray]) -> Rows:
    """Return the rows with a function of each of their values, one that is 0 at 0."""
    if not isinstance(rows, BinRows):
        return rows._replace(values=function(rows.values.astype(np.float64)))
    basis, matrix = rows.basis, basis_matrix(rows.basis)
    changed = CodeBasis(
        basis.starts, np.zeros_like(basis.widths), matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32),
        function(matrix.data), basis.n_features,
    )  # fmt: skip
    return BinRows(rows.codes, changed)


def column_squares(rows: Rows, coefs: np.ndarray) -> np.ndarray:
    """Return the sum of ``coefs[i] * x_ij ** 2`` over the rows, float64 of shape (n_features,)."""
    out = np.zeros(n_columns(rows))
    accumulate(elementwise(rows, np.square), np.arange(len(coefs)), coefs, out)
    return out


def row_squares(rows: Rows) -> np.ndarray:
    """Return the squared Euclidean length of each row, float64 of shape (n_samples,)."""
    if isinstance(rows, DenseRows):  # without a copy of all values
        return np.einsum("ij,ij->i", rows.values, rows.values, dtype=np.float64)
    out = np.empty(n_rows(rows))
    project(elementwise(rows, np.square), np.ones(n_columns(rows)), out)
    return out


def code_histogram(rows: BinRows, coefs: np.ndarray) -> np.ndarray:
    """Return the sum of the coefficients of the rows in each cell, float64 of shape (n_cells,)."""
    out = np.zeros(len(rows.basis.offsets) - 1)
    add_codes(rows.codes, rows.basis.starts, np.arange(len(coefs)), coefs, len(coefs), out)
    return out


def second_moments(rows: BinRows, coefs: np.ndarray, *, centred: bool = False) -> np.ndarray:
    """Return the sum of ``coefs[i] x_i x_i'``, float64 of shape (n_features, n_features).

    `coefs`: of shape (n_samples,), float64.
    `centred`: take x_i less the mean that the coefficients give.
    """
    n_cells = len(rows.basis.offsets) - 1
    cells = np.zeros((n_cells, n_cells))
    code_moments(rows, coefs, cells)
    cells = np.tril(cells) + np.tril(cells, -1).T
    if centred and (total := coefs.sum()) != 0.0:
        histogram = np.diag(cells).copy()
        cells -= np.outer(histogram, histogram / total)
    A = basis_matrix(rows.basis)
    return np.asarray(A.T @ (A.T @ cells).T)
