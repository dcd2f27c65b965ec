"""A concave quadratic over a product of simplexes, by an active-set method.

Numba's time to compile a kernel grows with the number of its statements, most of all with those on whole arrays: slices, sums
and `np.linalg.solve` once made this the longest part of a first fit. So here are plain loops, and the arrays are made by Python.
"""

import numpy as np

from aucdist.kernels.compiling import kernel

RIDGE = 1e-12
"""Of the mean of the diagonal, added to it: points that nearly coincide make the system singular."""


def maximise(H, a, component, n_components, b):
    """Maximise ``a'b - b'Hb / 2`` over b >= 0 with a sum of 1 in each component.

    Small systems come one after another, a few dozen for each call: between them an interpreter would take most of the time.

    `H`, of shape (n, n), float64: positive semi-definite.
    `a`: of shape (n,), float64.
    `component`, of shape (n,), int64: numbers 0 .. n_components - 1, each present.
    `n_components`: int.
    `b`, of shape (n,), float64: a feasible start; overwritten by the outcome.
    Raises ZeroDivisionError if a system is singular.
    """
    n = len(a)
    start, free = np.flatnonzero(b > 0.0), np.empty(n, dtype=np.int64)
    free[: len(start)] = start
    A, x = np.empty((n + n_components, n + n_components)), np.empty(n + n_components)
    if not _maximise(H, a, component, n_components, _ridge(H), b, free, len(start), A, x):
        raise ZeroDivisionError("singular system")


def slopes(H, a, component, n_components, b):
    """Return how the maximiser changes when `a` grows by a little of the given one and no entry becomes or leaves 0.

    `H`, `component` and `n_components`: as for `maximise`.
    `a`, of shape (n,), float64: the direction.
    `b`, of shape (n,), float64: a maximiser.
    Returns ndarray of shape (n,), float64: zero where b is 0.
    Raises ZeroDivisionError if the system is singular.
    """
    free = np.flatnonzero(b > 0.0)
    n_equations = len(free) + n_components
    A, x = np.empty((n_equations, n_equations)), np.empty(n_equations)
    _write_system(H, a, component, n_components, _ridge(H), free, len(free), A, x)
    x[len(free) :] = 0.0
    if not _solve_in_place(A, x, n_equations):
        raise ZeroDivisionError("singular system")
    found = np.zeros(len(b))
    found[free] = x[: len(free)]
    return found


def _ridge(H):
    trace = float(np.cumsum(H.diagonal())[-1])
    # This much is lost to rounding in H anyhow. H may be 0.
    return RIDGE * (trace if trace > 0.0 else 1.0) / len(H)


@kernel(error_model="numpy")
def _maximise(H, a, component, n_components, ridge, b, free, n_free, A, x):
    """Improve b until no entry that is 0 would gain by rising; return False where a system is singular.

    `H`, `a`, `component`, `n_components` and `b`: as for `maximise`.
    `ridge`, float: added to the diagonal.
    `free`, of shape (n,), int64: the entries of b above 0 come first, `n_free` of them; overwritten.
    `n_free`: int.
    `A`, of shape (n + n_components, n + n_components), float64: workspace.
    `x`, of shape (n + n_components,), float64: workspace.
    """
    n = a.shape[0]
    for _ in range(10 * n + 100):
        # The maximiser with only the free entries non-zero and no sign constraint, then the price of each component's sum.
        _write_system(H, a, component, n_components, ridge, free, n_free, A, x)
        if not _solve_in_place(A, x, n_free + n_components):
            return False
        if move_to_boundary(b, free, n_free, x):
            left = 0
            for k in range(n_free):
                if b[free[k]] > 0.0:
                    free[left] = free[k]
                    left += 1
            n_free = left
            continue
        value, gain = 0.0, -np.inf
        for i in range(n):
            b[i] = -1.0  # not free
        for k in range(n_free):
            b[free[k]] = x[k]
            value += a[free[k]] * x[k]
        for i in range(n):
            if b[i] < 0.0:
                b[i] = 0.0
                reduced = a[i] - x[n_free + component[i]]
                for k in range(n_free):
                    reduced -= H[i, free[k]] * x[k]
                if reduced > gain:
                    free[n_free], gain = i, reduced
        if not gain > 1e-10 * abs(value) / n_components:
            return True
        n_free += 1
    return True


@kernel(error_model="numpy")
def _write_system(H, a, component, n_components, ridge, free, n_free, A, x):
    """Write the optimality conditions over the free entries, and the sums of the components, as the system ``A y = x``."""
    m = n_free + n_components
    for k in range(m):
        x[k] = 1.0
        for j in range(m):
            A[k, j] = 0.0
    for k in range(n_free):
        i = free[k]
        for j in range(n_free):
            A[k, j] = H[i, free[j]]
        A[k, k] += ridge
        j = n_free + component[i]
        A[k, j] = 1.0
        A[j, k] = 1.0
        x[k] = a[i]


@kernel(error_model="numpy")
def move_to_boundary(b, free, n_free, x):
    """Where x is not feasible, move b towards it until the first entry reaches 0, and return True."""
    limit, first = np.inf, -1
    for k in range(n_free):
        if not x[k] >= 0.0:
            now = b[free[k]]
            if first < 0 or now / (now - x[k]) < limit:
                limit, first = now / (now - x[k]), k
    if first < 0:
        return False
    for k in range(n_free):
        i = free[k]
        b[i] = 0.0 if k == first else max(b[i] + limit * (x[k] - b[i]), 0.0)
    return True


@kernel(error_model="numpy")
def _solve_in_place(A, x, n):
    """Solve ``A y = x`` for the first n of each by Gaussian elimination with row pivots; return False if A is singular.

    Both are overwritten, x by the solution. The inner loop runs along a row, so that it is vectorised.
    """
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[pivot, k]):
                pivot = i
        if pivot != k:
            for j in range(k, n):
                A[k, j], A[pivot, j] = A[pivot, j], A[k, j]
            x[k], x[pivot] = x[pivot], x[k]
        if A[k, k] == 0.0:
            return False
        for i in range(k + 1, n):
            factor = A[i, k] / A[k, k]
            if factor != 0.0:
                for j in range(k + 1, n):
                    A[i, j] -= factor * A[k, j]
                x[i] -= factor * x[k]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            x[k] -= A[k, j] * x[j]
        x[k] /= A[k, k]
    return True
