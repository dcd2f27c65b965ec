"""Rows of uint8 codes, each of which stands for basis functions that share one table.

A code is the number of the cell in which a value lies: a bin of a feature, a cell of the grid of an interaction, or a leaf of a
tree. Basis functions are constant in a cell, so ``X = C A``. C has a 1 for each code of a row, and A, the `CodeBasis`, has the
value of every basis function in every cell. Then ``X w = C (A w)`` and ``X'c = A' (C'c)``. To score rows, a table of ``A w`` is
computed first, and each row adds up its entries. To add up rows, they are added to a table of cells, and A' is applied at the
end. So the n_features values of a row are never computed.
"""

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from aucdist.kernels.compiling import kernel


class CodeBasis(NamedTuple):
    """The values of all basis functions in all cells: the matrix A of shape (n_cells, n_features).

    ``A = R E``. E is sparse and has the increment of each function at each cell. R takes running sums over the cells of a code,
    so that a step function, which is 1 from some cell on, is one entry of E.

    Attributes
    ----------
    starts : ndarray of shape (n_codes + 1,), int64
        The first cell of each code: it has ``starts[j + 1] - starts[j]`` cells, 256 at most.
    widths : ndarray of shape (n_codes,), int64
        0 if a code's cells are not summed. Otherwise they form a grid whose rows have this many cells, and sums run along
        the rows, then down the columns. A code of one feature has a grid of one row.
    offsets : ndarray of shape (n_cells + 1,), int64
        Row c of E is ``values[offsets[c]:offsets[c + 1]]``.
    columns : ndarray of shape (n_nonzero,), int32
        The basis function of each value. A function with values in cells of several codes is their sum over the cells of a row.
    values : ndarray of shape (n_nonzero,), float64
        The increments of the basis functions.
    n_features : int
        Number of basis functions.
    """

    starts: np.ndarray
    widths: np.ndarray
    offsets: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    n_features: int


class BinRows(NamedTuple):
    """Rows as codes of cells.

    Attributes
    ----------
    codes : ndarray of shape (n_samples, n_codes), uint8
        The codes, C-contiguous. Each code must be below the number of cells of its column, because kernels do not check this.
    basis : CodeBasis
        The matrix that converts codes to features.
    """

    codes: np.ndarray
    basis: CodeBasis


# ---- tables -----------------------------------------------------------------------------------------------------------


@kernel(_nrt=True)
def expand(basis, w):
    """Return ``A w``, a table of the score of each cell, float64 of shape (n_cells,)."""
    n_cells = basis.offsets.shape[0] - 1
    table = np.empty(n_cells)
    for c in range(n_cells):
        total = 0.0
        for k in range(basis.offsets[c], basis.offsets[c + 1]):
            total += basis.values[k] * w[basis.columns[k]]
        table[c] = total
    for j in range(basis.widths.shape[0]):
        width, first, end = basis.widths[j], basis.starts[j], basis.starts[j + 1]
        if width > 0:
            for c in range(first, end):
                if (c - first) % width != 0:
                    table[c] += table[c - 1]
            for c in range(first + width, end):
                table[c] += table[c - width]
    return table


@kernel
def fold_columns(basis, tables, out):
    """Add ``A' tables`` to out, float64 of shape (n_features, n). The tables, of shape (n_cells, n), are overwritten."""
    n = tables.shape[1]
    for j in range(basis.widths.shape[0]):
        width, first, end = basis.widths[j], basis.starts[j], basis.starts[j + 1]
        if width > 0:
            for c in range(end - 1, first + width - 1, -1):
                for i in range(n):
                    tables[c - width, i] += tables[c, i]
            for c in range(end - 1, first, -1):
                if (c - first) % width != 0:
                    for i in range(n):
                        tables[c - 1, i] += tables[c, i]
    for c in range(tables.shape[0]):
        for k in range(basis.offsets[c], basis.offsets[c + 1]):
            column, value = basis.columns[k], basis.values[k]
            for i in range(n):
                out[column, i] += value * tables[c, i]


# ---- rows and tables --------------------------------------------------------------------------------------------------


@register_jitable(inline="always")
def code_dot(rows, i, w):
    """Return the sum of the table w over the cells of row i."""
    row, starts = rows.codes[i], rows.basis.starts
    # There are four independent sums, because each addition to a single sum would have to wait for the previous one.
    m = row.shape[0]
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for j in range(0, m - m % 4, 4):
        s0 += w[np.uint64(starts[j]) + np.uint64(row[j])]
        s1 += w[np.uint64(starts[j + 1]) + np.uint64(row[j + 1])]
        s2 += w[np.uint64(starts[j + 2]) + np.uint64(row[j + 2])]
        s3 += w[np.uint64(starts[j + 3]) + np.uint64(row[j + 3])]
    for j in range(m - m % 4, m):
        s0 += w[np.uint64(starts[j]) + np.uint64(row[j])]
    return (s0 + s1) + (s2 + s3)


@kernel
def add_codes(codes, starts, rows, coefs, n, table):
    """Add ``coefs[k]`` to the cells of row ``which[k]``, uint64, k = 0..n-1."""
    m, whole = np.uint64(codes.shape[1]), n - n % 2
    for k in range(0, whole, 2):
        a, b, row, other = coefs[k], coefs[k + 1], codes[rows[k]], codes[rows[k + 1]]
        for j in range(m):
            first = np.uint64(starts[j])
            table[first + np.uint64(row[j])] += a
            table[first + np.uint64(other[j])] += b
    for k in range(whole, n):
        a, row = coefs[k], codes[rows[k]]
        for j in range(m):
            table[np.uint64(starts[j]) + np.uint64(row[j])] += a


@kernel
def code_moments(rows, coefs, out):
    """Add the sum of ``coefs[i] c_i c_i'`` to the lower triangle of out, where c_i has a 1 for each cell of row i.

    Parameters
    ----------
    rows : BinRows
        The rows.
    coefs : ndarray of shape (n_samples,), float64
        The coefficient of each row.
    out : ndarray of shape (n_cells, n_cells), float64
        The sums are added to it.
    """
    codes, starts = rows.codes, rows.basis.starts
    for i in range(coefs.shape[0]):
        if coefs[i] != 0.0:
            row = codes[i]
            for j in range(row.shape[0]):
                into = out[starts[j] + row[j]]
                for k in range(j + 1):
                    into[starts[k] + row[k]] += coefs[i]


@kernel
def window_moments(rows, low, high, weights, sums, out):
    """Add the sum of ``weights[i] c_i s_i'`` to out, where s_i is the sum of ``weights[j] c_j`` over the partners j of row i.

    Parameters
    ----------
    rows : BinRows
        The n rows i, followed by the rows that are their partners. c_i has a 1 for each cell of row i.
    low, high : ndarray of shape (n,), int64
        The partners of row i are numbered low[i] to high[i] - 1, and there is at least one. Both arrays ascend.
    weights : ndarray of shape (n_samples,), float64
        The weights of all rows.
    sums : ndarray of shape (n_cells,), float64
        Workspace for s_i, filled with zeros.
    out : ndarray of shape (n_cells, n_cells), float64
        The sums are added to it.
    """
    codes, starts, n = rows.codes, rows.basis.starts, low.shape[0]
    n_codes, n_cells = codes.shape[1], sums.shape[0]
    first, end = n, n
    for i in range(n):
        while end < n + high[i]:
            for j in range(n_codes):
                sums[starts[j] + codes[end, j]] += weights[end]
            end += 1
        while first < n + low[i]:
            for j in range(n_codes):
                sums[starts[j] + codes[first, j]] -= weights[first]
            first += 1
        for j in range(n_codes):
            into = out[starts[j] + codes[i, j]]
            for cell in range(n_cells):
                into[cell] += weights[i] * sums[cell]


# ---- codes of values --------------------------------------------------------------------------------------------------


@kernel
def search_index(values, table):
    """Divide the range of the values into equal intervals and write where each begins, so that searches start near their results.

    Parameters
    ----------
    values : ndarray of shape (n_values,), float64
        The values, ascending.
    table : ndarray of shape (n_intervals + 1,), integers
        Output: the number of values below the lower edge of each interval. The last entry is n_values.

    Returns
    -------
    low, scale : float
        A number v lies in interval ``(v - low) * scale``.
    """
    n_cells = table.shape[0] - 1
    low = values[0]
    width = values[-1] - low
    scale = n_cells / width if width > 0.0 and n_cells / width < np.inf else 0.0
    r = 0
    for c in range(n_cells):
        while r < values.shape[0] and (values[r] - low) * scale < c:
            r += 1
        table[c] = r
    table[n_cells] = values.shape[0]
    return low, scale


class Edges(NamedTuple):
    """The edges of a column's cells, and where a search among them starts.

    Attributes
    ----------
    at : ndarray of shape (n_edges + n_compared,), float64
        At most 255 edges, ascending, followed by infinities, with which values are also compared.
    table : ndarray
        What `search_index` wrote.
    low, scale : float
        What `search_index` returned.
    n_compared : int
        The most edges that lie in one place of the table, if that has more than one; else all are compared.
    """

    at: np.ndarray
    table: np.ndarray
    low: float
    scale: float
    n_compared: int


SEARCH_PLACES = 2048
"""The number of entries of the table that gives the start of the search for an edge."""
MAX_COMPARED = 8
"""If an entry of the table has more edges than this, as in columns with long tails, the search compares all edges. The processor
compares 63 edges as vectors in a quarter of the time of a search whose branches it cannot predict."""


def edges_of(edges: np.ndarray) -> Edges:
    """Prepare ascending edges for `encode_column`."""
    table = np.zeros(SEARCH_PLACES + 1, dtype=np.uint8)
    low, scale = search_index(edges, table) if len(edges) else (0.0, 0.0)
    n_compared = int(np.diff(table).max())
    if n_compared > MAX_COMPARED or scale == 0.0:  # the scale is 0 if the range of the edges overflows
        table, n_compared = table[:2], 0
    return Edges(np.append(edges, np.full(n_compared, np.inf)), table, low, scale, n_compared)


@kernel
def encode_column(values, edges, first, out):
    """Write the code of each value, and return the number of missing values.

    The code is `first` plus the number of edges below the value, or 0 if the value is missing.

    Parameters
    ----------
    values : ndarray of shape (n_samples,), float32 or float64
        The values of a column.
    edges : Edges
        The edges of its bins.
    first : int
        1 if missing values have the code 0, otherwise 0.
    out : ndarray of shape (n_samples,), uint8
        Output: the codes.

    Returns
    -------
    int
    """
    at, table, low, scale, n_compared = edges
    last, n_missing = np.float64(table.shape[0] - 2), 0
    for i in range(values.shape[0]):
        x, below = np.float64(values[i]), 0
        if last == 0.0:
            for k in range(at.shape[0]):
                below += at[k] < x
        else:
            # Rounding is monotone, so edges in earlier places are below x and edges in later places are not.
            start = np.uint64(table[np.uint64(min(max(0.0, (x - low) * scale), last))])
            for k in range(start, start + np.uint64(n_compared)):
                below += at[k] < x
            below += start
        is_missing = np.isnan(x)
        n_missing += is_missing
        out[i] = 0 if is_missing else first + below
    return n_missing


ROWS_AT_ONCE = 4096
RARE = 3
"""If fewer than one code in `RARE` differs from the most frequent code of a column, the rows with other codes are listed."""


def interaction_histograms(codes, coefs, shape):
    """Return the sums of two coefficients of the rows in the cells of all pairs of columns.

    Most rows have the same code of a 0/1 feature. Only the rows with another code are then added up. The cells of the most
    frequent code get the sums of the other column minus these.

    Parameters
    ----------
    codes : ndarray of shape (n_samples, m), uint8
        Codes below `shape`. Contiguous columns are read fastest.
    coefs : ndarray of shape (2, n_samples), float64
        The coefficients of the rows.
    shape : int
        The number of cells of a column.

    Returns
    -------
    ndarray of shape (2, m (m - 1) / 2, shape * shape), float64
        The pair (a, b) with b < a is at position ``a (a - 1) / 2 + b``, and its cell (u, v) at ``u * shape + v``.
    """
    n, m = codes.shape
    counts = np.array([np.bincount(column, minlength=shape) for column in codes.T])
    common, n_other = counts.argmax(axis=1), n - counts.max(axis=1)
    listed = RARE * n_other < n
    others = [np.flatnonzero(codes[:, a] != common[a]) if listed[a] else np.zeros(0, np.int64) for a in range(m)]
    starts = np.cumsum([0, *map(len, others)])
    a, b = np.tril_indices(m, -1)
    rarer = np.where(n_other[a] <= n_other[b], a, b)
    sums = np.zeros((2, len(a), shape * shape))
    rarer_bin = np.where(listed[rarer], rarer, -1)
    _add_pairs(codes, coefs, shape, rarer_bin, np.concatenate(others), starts, starts[:-1].copy(), sums)
    if not listed.any():
        return sums

    single_histograms = np.array([[np.bincount(column, coef, shape) for column in codes.T] for coef in coefs])
    cells = sums.reshape(2, -1, shape, shape)
    for first, other, axis in ((a, b, 2), (b, a, 3)):
        at = np.flatnonzero((rarer == first) & listed[first])
        rest = single_histograms[:, other[at]] - cells[:, at].sum(axis=axis)
        (cells if axis == 2 else cells.swapaxes(2, 3))[:, at, common[first[at]]] = rest
    return sums


@kernel
def _add_pairs(codes, coefs, shape, listed, others, starts, last, sums):
    """Add the coefficients of the rows to the cells of all pairs; of a column in `listed`, those of the rows in `others` alone.

    Parameters
    ----------
    listed : ndarray of shape (m (m - 1) / 2,), int
        A column for each pair, or -1.
    others, starts
        The rows of column c are ``others[starts[c] : starts[c + 1]]``, in their order.
    last
        ``starts[:-1]``; changed.
    """
    n, m = codes.shape
    # One pair and one part of the rows are processed at a time, so that both stay in the cache. This is six times as fast as
    # going row by row.
    for start in range(0, n, ROWS_AT_ONCE):
        stop, at = min(start + ROWS_AT_ONCE, n), 0
        for a in range(1, m):
            for b in range(a):
                c, first, second = listed[at], sums[0, at], sums[1, at]
                if c < 0:
                    for i in range(start, stop):
                        cell = codes[i, a] * shape + codes[i, b]
                        first[cell] += coefs[0, i]
                        second[cell] += coefs[1, i]
                else:
                    k = last[c]
                    while k < starts[c + 1] and others[k] < stop:
                        i = others[k]
                        cell = codes[i, a] * shape + codes[i, b]
                        first[cell] += coefs[0, i]
                        second[cell] += coefs[1, i]
                        k += 1
                at += 1
        for c in range(m):
            while last[c] < starts[c + 1] and others[last[c]] < stop:
                last[c] += 1


LIGHTGBM_ZERO = 1e-35
"""If zeros are missing values, LightGBM treats numbers up to this size as 0."""


@kernel
def leaf_codes(values, starts, splits, codes):
    """Write the leaf of each row in each tree.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_features)
        c-contiguous, float32 or float64.
    starts, splits
        The arrays of `aucdist.maps.leaves.Forest`, in the order below. They are not checked here.
    codes : ndarray of shape (n_samples, n_trees), uint8
        The leaves are written to it.
    """
    features, thresholds, missing, default_left, left, right = splits
    for i in range(values.shape[0]):
        for tree in range(starts.shape[0] - 1):
            node = starts[tree]
            while node >= 0:
                x = np.float64(values[i, features[node]])
                kind = missing[node]
                if kind != 2 and np.isnan(x):
                    x = 0.0
                if (kind == 1 and abs(x) <= LIGHTGBM_ZERO) or (kind == 2 and np.isnan(x)):
                    to_left = default_left[node]
                else:
                    to_left = x <= thresholds[node]
                node = left[node] if to_left else right[node]
            codes[i, tree] = -1 - node
