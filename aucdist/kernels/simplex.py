"""A concave quadratic over a product of simplexes, by an active-set method."""

import numpy as np
from numba import njit

RIDGE = 1e-12
"""Of the mean of the diagonal, added to it: points that nearly coincide make the system singular."""


@njit(nogil=True, cache=True)
def maximise(H, a, group, n_groups, b):
    """Maximise ``a'b - b'Hb / 2`` over b >= 0 with a sum of 1 in each group.

    Small systems come one after another, a few dozen for each call: between them an interpreter would take most of the time.

    Parameters
    ----------
    H : ndarray of shape (n, n), float64
        Positive semi-definite.
    a : ndarray of shape (n,), float64
    group : ndarray of shape (n,), int64
        Numbers 0 .. n_groups - 1, each present.
    n_groups : int
    b : ndarray of shape (n,), float64
        A feasible start; overwritten by the outcome.
    """
    n = len(a)
    free, n_free = np.empty(n, dtype=np.int64), 0
    trace = 0.0
    for i in range(n):
        trace += H[i, i]
        if b[i] > 0:
            free[n_free] = i
            n_free += 1
    # This much is lost to rounding in H anyhow. H may be 0.
    ridge = RIDGE * (trace if trace > 0.0 else 1.0) / n
    for _ in range(10 * n + 100):
        solution = _stationary(H, a, group, free[:n_free], n_groups, ridge)
        if (solution[:n_free] >= 0).all():
            b[:] = 0.0
            value = 0.0
            for k in range(n_free):
                b[free[k]] = solution[k]
                value += a[free[k]] * solution[k]
            entering, gain = _best_outside(H, a, group, free[:n_free], solution, b)
            if not gain > 1e-10 * abs(value) / n_groups:
                return
            free[n_free] = entering
            n_free += 1
        else:
            n_free = _step_to_edge(b, free, n_free, solution)


@njit(nogil=True, cache=True)
def _stationary(H, a, group, free, n_groups, ridge):
    """Return the maximiser with only the free ones non-zero and no sign constraint, then the price of each group's sum."""
    n = len(free)
    system, right = np.zeros((n + n_groups, n + n_groups)), np.ones(n + n_groups)
    for i in range(n):
        for j in range(n):
            system[i, j] = H[free[i], free[j]]
        system[i, i] += ridge
        system[i, n + group[free[i]]] = 1.0
        system[n + group[free[i]], i] = 1.0
        right[i] = a[free[i]]
    _solve_in_place(system, right)
    return right


@njit(nogil=True, cache=True)
def _solve_in_place(A, x):
    """Solve ``A y = x`` by Gaussian elimination with row pivots; both are overwritten, x by the solution.

    In plain loops: `np.linalg.solve` inside a kernel takes several seconds to compile, which is most of a first fit. The inner
    loop runs along a row, so that it is vectorised.
    """
    n = len(x)
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
            raise ZeroDivisionError("singular system")
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


@njit(nogil=True, cache=True)
def _best_outside(H, a, group, free, solution, b):
    """Return who is not free and would gain most, and what; -inf where all are free."""
    n, best, gain = len(free), 0, -np.inf
    is_free = np.zeros(len(a), dtype=np.bool_)
    for k in range(n):
        is_free[free[k]] = True
    for i in range(len(a)):
        if not is_free[i]:
            reduced = a[i] - solution[n + group[i]]
            for k in range(n):
                reduced -= H[i, free[k]] * solution[k]
            if reduced > gain:
                best, gain = i, reduced
    return best, gain


@njit(nogil=True, cache=True)
def _step_to_edge(b, free, n_free, target):
    """Move b towards the target until the first entry reaches zero; keep who is still free, and return how many."""
    limit, first = np.inf, 0
    for k in range(n_free):
        if target[k] < 0:
            now = b[free[k]]
            if now / (now - target[k]) < limit:
                limit, first = now / (now - target[k]), k
    left = 0
    for k in range(n_free):
        i = free[k]
        moved = 0.0 if k == first else max(b[i] + limit * (target[k] - b[i]), 0.0)
        b[i] = moved
        if moved > 0.0:
            free[left] = i
            left += 1
    return left
