"""Random rows of codes, and the slow way to the matrix that they stand for."""

import numpy as np

from aucdist.kernels.codes import BinRows, CodeBasis


def basis_of(matrices, widths):
    """Return the basis of one matrix E for each code, each of shape (n_cells, n_functions), and its widths."""
    sizes = [len(E) for E in matrices]
    rows, firsts = [], np.concatenate(([0], np.cumsum([E.shape[1] for E in matrices])))
    for E, first in zip(matrices, firsts, strict=False):
        rows += [[(first + p, v) for p, v in enumerate(row) if v != 0.0] for row in E]
    entries = [entry for row in rows for entry in row]
    return CodeBasis(
        np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        np.array(widths, dtype=np.int64),
        np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int64),
        np.array([p for p, _ in entries], dtype=np.int32),
        np.array([v for _, v in entries], dtype=np.float64),
        int(firsts[-1]),
    )


def random_codes(n, seed, kinds=("steps", "one-hot", "grid", "hats", "single")):
    """Return rows with a code of each kind, in random order."""
    r = np.random.default_rng(seed)
    matrices, widths, codes = [], [], []
    for kind in r.permutation(np.array(kinds)):
        k = int(r.integers(2, 7))
        if kind == "grid":
            rows, width = int(r.integers(2, 4)), k
            E = np.zeros((rows * width, (rows - 1) * (width - 1)))
            at = [i * width + j for i in range(1, rows) for j in range(1, width)]
            E[at, np.arange(len(at))] = r.random() + 0.5
        elif kind == "steps":
            width = k
            E = np.vstack([np.zeros((1, k - 1)), np.eye(k - 1)]) * (r.random() + 0.5)
            E = np.column_stack([r.normal(size=k), E])
        elif kind == "hats":
            width, E = 0, r.normal(size=(k, 2)) * (r.random((k, 2)) < 0.7)
        else:
            width = 0
            E = np.eye(k) if kind == "one-hot" else r.normal(size=(k, 1))
        matrices.append(E)
        widths.append(width)
        codes.append(r.integers(0, len(E), n))
    return BinRows(np.ascontiguousarray(np.stack(codes, axis=1).astype(np.uint8)), basis_of(matrices, widths))


def slow_matrix(rows):
    """Return the matrix of basis functions, cell by cell, by the definition of running sums."""
    basis, n_cells = rows.basis, len(rows.basis.offsets) - 1
    E = np.zeros((n_cells, basis.n_features))
    for c in range(n_cells):
        for k in range(basis.offsets[c], basis.offsets[c + 1]):
            E[c, basis.columns[k]] += basis.values[k]
    A = np.zeros_like(E)
    for j, width in enumerate(basis.widths):
        first, end = basis.starts[j], basis.starts[j + 1]
        for c in range(first, end):
            for other in range(first, end):
                if width == 0:
                    below = c == other
                else:
                    (row, column), (a, b) = divmod(c - first, width), divmod(other - first, width)
                    below = a <= row and b <= column
                A[c] += below * E[other]
    X = np.zeros((len(rows.codes), basis.n_features))
    for i, row in enumerate(rows.codes):
        X[i] = sum(A[basis.starts[j] + code] for j, code in enumerate(row))
    return X
