"""A concave quadratic over a simplex, by an active-set method: systems solved anew for few points, a factor for many.

Numba's time to compile a kernel grows with the number of its statements, most of all with those on whole arrays: slices, sums
and `np.linalg.solve` once made this the longest part of a first fit. So here are plain loops, and the arrays are made by Python.

**Many points.** The entries that are not 0, the *free* ones, change one at a time. Be ``K = U'U`` the part of ``H + c ee'``
that belongs to them, e being ones, and Y the solution of ``U'Y = [a, e]``. Then a step takes the price of the sum, and one
triangular solve, ``U x = Y [1, -price]``. A new entry is a new column of U, and one that leaves is taken out by Givens
rotations of the rows below it (Golub & Van Loan, "Matrix Computations", 4th ed., section 6.5). The rows of Y below it are
solved for anew: rotated, they would keep the rounding of entries that nearly coincided. What c adds to the objective is a
constant, since the sum is. Without it K would be singular as soon as there is one entry more than H has dimensions, which is
usual; with it only points that are affinely dependent make it so. It is as large as H and a are: with a smaller one the sum
would be lost beside a.
"""

import numpy as np

from aucdist.kernels.compiling import kernel

RIDGE = 1e-12
"""A share of the mean of the diagonal, added to it: points that nearly coincide make the system singular."""

FEW_POINTS = 64
"""Up to so many the systems of an active set are solved anew; of more a factor follows it."""

NEAR = 1e-8
"""A sum that is off by more shows that rounding has spoilt the factor, as where H and a lie far apart."""


def maximise(H, a, b):
    """Maximise ``a'b - b'Hb / 2`` over b >= 0 with a sum of 1.

    `H`, of shape (n, n), float64: positive semi-definite.
    `a`: of shape (n,), float64.
    `b`, of shape (n,), float64: a feasible start; overwritten by the outcome.
    Raises ZeroDivisionError if a system is singular.
    """
    n, start = len(a), b.copy()
    if n > FEW_POINTS:
        _by_factor(H, a, b)
        if abs(b.sum() - 1.0) <= NEAR:
            return
        b[:] = start
    free, n_free = _free_entries(start)
    if not _maximise((H, a, _ridge(H), 0.0), b, free, n_free, np.empty((n + 1, n + 1)), np.empty(n + 1)):
        raise ZeroDivisionError("singular system")


def _by_factor(H, a, b):
    n, (free, n_free) = len(a), _free_entries(b)
    ridge = _ridge(H)
    c = ridge / RIDGE
    size = float(np.abs(a).max())
    if not size <= 8.0 * c:
        c = size
    problem, factor = (H, a, ridge, c), (np.zeros((n, n)), np.zeros((n, 2)), np.zeros(n))
    for k in range(n_free):
        _append(problem, free, k, factor)
    _maximise_by_factor(problem, b, free, n_free, factor)


def _free_entries(b):
    start, free = np.flatnonzero(b > 0.0), np.empty(len(b), dtype=np.int64)
    free[: len(start)] = start
    return free, len(start)


def _ridge(H):
    trace = float(np.cumsum(H.diagonal())[-1])
    # This much is lost to rounding in H anyhow. H may be 0.
    return RIDGE * (trace if trace > 0.0 else 1.0) / len(H)


@kernel(error_model="numpy")
def _maximise(problem, b, free, n_free, A, x):
    """Improve b until no entry that is 0 would gain by rising; return False where a system is singular.

    `free`, of shape (n,), int64: which entries may be above 0, the first `n_free` of them; reordered.
    `A`, of shape (n + 1, n + 1), and `x`, of shape (n + 1,), float64: workspace.
    """
    for _ in range(10 * b.shape[0] + 100):
        # The maximiser with only the free entries non-zero and no sign constraint, then the price of the sum.
        _write_system(problem, free, n_free, A, x)
        if not _solve_in_place(A, x, n_free + 1):
            return False
        if _move_to_boundary(b, free, n_free, x):
            left = 0
            for k in range(n_free):
                if b[free[k]] > 0.0:
                    free[left] = free[k]
                    left += 1
            n_free = left
            continue
        if not _gains_by_one_more(problem, b, free, n_free, x, x[n_free]):
            return True
        n_free += 1
    return True


@kernel(error_model="numpy")
def _gains_by_one_more(problem, b, free, n_free, x, price):
    """Let b be x, and write the entry that would gain most by rising from 0 behind the free ones; return whether it gains."""
    (H, a, _, c), value, gain = problem, 0.0, -np.inf
    for i in range(a.shape[0]):
        b[i] = -1.0  # not free
    for k in range(n_free):
        b[free[k]] = x[k]
        value += a[free[k]] * x[k]
    for i in range(a.shape[0]):
        if b[i] < 0.0:
            b[i] = 0.0
            reduced = a[i] - price - c
            for k in range(n_free):
                reduced -= H[i, free[k]] * x[k]
            if reduced > gain:
                free[n_free], gain = i, reduced
    return gain > 1e-10 * abs(value)


@kernel(error_model="numpy")
def _write_system(problem, free, n_free, A, x):
    """Write the optimality conditions over the free entries, and their sum, as the system ``A y = x``."""
    H, a, ridge, _ = problem
    for k in range(n_free):
        for j in range(n_free):
            A[k, j] = H[free[k], free[j]]
        A[k, k] += ridge
        A[k, n_free] = A[n_free, k] = 1.0
        x[k] = a[free[k]]
    A[n_free, n_free], x[n_free] = 0.0, 1.0


@kernel(error_model="numpy")
def _move_to_boundary(b, free, n_free, x):
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

    The solution is in x; A is used up.
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


# ---- many points: the factor -------------------------------------------------------------------------------------------


@kernel(error_model="numpy")
def _maximise_by_factor(problem, b, free, n_free, factor):
    """Improve b until no entry that is 0 would gain by rising, or rounding has spoilt the factor.

    `problem`: H, a, the ridge and c, which is 0 without a factor.
    `factor`: U in the upper triangle of an array of shape (n, n), float64; Y, of shape (n, 2), the solution of ``U'Y = [a, e]``;
        and workspace of shape (n,).
    """
    a, (U, Y, x) = problem[1], factor
    for _ in range(10 * a.shape[0] + 100):
        square, price = 0.0, -1.0
        for k in range(n_free):
            price += Y[k, 1] * Y[k, 0]
            square += Y[k, 1] * Y[k, 1]
        if square == 0.0:
            return
        price /= square
        _solve(price, n_free, U, Y, x)
        if _move_to_boundary(b, free, n_free, x):
            lowest = n_free
            for k in range(n_free - 1, -1, -1):
                if not b[free[k]] > 0.0:
                    _remove(free, n_free, k, U)
                    n_free, lowest = n_free - 1, k
            for k in range(lowest, n_free):
                _write_row(a, free, k, U, Y)
            continue
        if not _gains_by_one_more(problem, b, free, n_free, x, price):
            return
        _append(problem, free, n_free, factor)
        n_free += 1


@kernel(error_model="numpy")
def _append(problem, free, k, factor):
    """Let the factor grow by the entry ``free[k]``: its column of U, and its row of Y. The inner loop runs along a row of U."""
    (H, a, ridge, c), (U, Y, x), i = problem, factor, free[k]
    for j in range(k):
        x[j] = H[i, free[j]] + c
    rest = H[i, i] + c + ridge
    for j in range(k):
        r = x[j] / U[j, j]
        for m in range(j + 1, k):
            x[m] -= r * U[j, m]
        U[j, k] = r
        rest -= r * r
    U[k, k] = np.sqrt(rest if rest > 0.25 * ridge else ridge)  # less than the ridge is rounding
    _write_row(a, free, k, U, Y)


@kernel(error_model="numpy")
def _write_row(a, free, k, U, Y):
    """Solve for a row of Y, given those above it."""
    Y[k, 0], Y[k, 1] = a[free[k]], 1.0
    for j in range(k):
        Y[k, 0] -= U[j, k] * Y[j, 0]
        Y[k, 1] -= U[j, k] * Y[j, 1]
    Y[k, 0] /= U[k, k]
    Y[k, 1] /= U[k, k]


@kernel(error_model="numpy")
def _remove(free, n_free, p, U):
    """Take the p-th of the free entries out of the factor; the rows of Y from there on are no longer its."""
    for k in range(p, n_free - 1):
        free[k] = free[k + 1]
    for j in range(n_free):
        for m in range(max(p, j - 1), n_free - 1):
            U[j, m] = U[j, m + 1]
    # Now each row from p on has an entry left of its diagonal in the row below.
    for q in range(p, n_free - 1):
        top, below = U[q, q], U[q + 1, q]
        size = np.sqrt(top * top + below * below)
        cosine, sine = top / size, below / size
        for m in range(q, n_free - 1):
            u, v = U[q, m], U[q + 1, m]
            U[q, m] = cosine * u + sine * v
            U[q + 1, m] = cosine * v - sine * u


@kernel(error_model="numpy")
def _solve(price, n_free, U, Y, x):
    """Write the free entries whose sum is 1 to x, by back substitution."""
    for k in range(n_free):
        x[k] = Y[k, 0] - Y[k, 1] * price
    for k in range(n_free - 1, -1, -1):
        # Four sums side by side, which do not wait for each other.
        s0 = s1 = s2 = s3 = 0.0
        m = k + 1
        while m + 4 <= n_free:
            s0 += U[k, m] * x[m]
            s1 += U[k, m + 1] * x[m + 1]
            s2 += U[k, m + 2] * x[m + 2]
            s3 += U[k, m + 3] * x[m + 3]
            m += 4
        while m < n_free:
            s0 += U[k, m] * x[m]
            m += 1
        x[k] = (x[k] - ((s0 + s1) + (s2 + s3))) / U[k, k]
