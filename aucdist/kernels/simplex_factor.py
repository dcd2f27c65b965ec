"""The active-set method of `aucdist.kernels.simplex` for many points: on a Cholesky factor that follows the active set.

The entries that are not 0, the *free* ones, change one at a time. Be ``K = U'U`` the part of ``H + c EE'`` that belongs to them,
E the indicators of the components, and Y the solution of ``U'Y = [a, E]``. Then a step takes the prices of the components'
sums, from a system of the size of the components, and one triangular solve, ``U x = Y [1, -prices]``. A new entry is a new
column of U, and one that leaves is taken out by Givens rotations of the rows below it (Golub & Van Loan, "Matrix
Computations", 4th ed., section 6.5). The rows of Y below it are solved for anew: rotated, they would keep the rounding of
entries that nearly coincided.

What c adds to the objective is a constant, since the sums of the components are. Without it K would be singular as soon as a
component has one entry more than H has dimensions, which is usual; with it only points that are affinely dependent make it so.
It is as large as H and a are: with a smaller one the sums of the components would be lost beside a.

Where H and a lie too far apart for a factor, as of columns that were not scaled, the plain method solves its systems anew.
"""

import numpy as np

from aucdist.kernels import simplex
from aucdist.kernels.compiling import kernel
from aucdist.kernels.simplex import RIDGE, _ridge, _solve_in_place, move_to_boundary

NEAR = 1e-8
"""Components whose sums are off by more show that rounding has spoilt the factor."""


class Maximiser:
    """Maximises ``a'b - b'Hb / 2`` over b >= 0 with a sum of 1 in each component, for one `a` after another.

    The factor stays: where the next call starts from the maximiser of the last, no system is solved anew.

    `H`, of shape (n, n), float64: positive semi-definite.
    `component`, of shape (n,), int64: numbers 0 .. n_components - 1, each present.
    `n_components`: int.
    """

    def __init__(self, H, component, n_components):
        n = len(H)
        self._problem = H, component, n_components, _ridge(H)
        self._c = _ridge(H) / RIDGE
        self._free, self._n_free = np.empty(n, dtype=np.int64), 0
        self._work = (
            np.zeros((n, n)),
            np.zeros((n, n_components + 1)),
            np.zeros((n_components, n_components)),
            np.zeros(n_components),
            np.zeros(n),
        )

    def maximise(self, a, b):
        """Overwrite b, float64 of shape (n,), a feasible start, by the maximiser for a, of the same shape.

        Raises ZeroDivisionError if a system is singular.
        """
        start = b.copy()
        self._factorise(a, b)
        self._n_free = _maximise(*self._problem, self._c, a, b, self._free, self._n_free, *self._work)
        H, component, n_components, _ = self._problem
        if not np.abs(np.bincount(component, b, minlength=n_components) - 1.0).max() <= NEAR:
            self._n_free = 0
            b[:] = start
            simplex.maximise(H, a, component, n_components, b)

    def slopes(self, a, b):
        """Return how the maximiser b changes when `a` grows by a little of the given one and no entry becomes or leaves 0.

        `a` and `b`, of shape (n,), float64: the direction, and a maximiser.
        Returns ndarray of shape (n,), float64: zero where b is 0.
        Raises ZeroDivisionError if the system is singular.
        """
        self._factorise(a, b)
        x, n_free = self._work[-1], self._n_free
        if not _solve(self._problem[1], self._problem[2], 0.0, self._free, n_free, *self._work):
            return simplex.slopes(self._problem[0], a, *self._problem[1:3], b)
        found = np.zeros(len(b))
        found[self._free[:n_free]] = x[:n_free]
        return found

    def _factorise(self, a, b):
        """Let the factor be that of the entries of b above 0, and the right-hand side a."""
        start = np.flatnonzero(b > 0.0)
        known = self._n_free if np.array_equal(np.sort(self._free[: self._n_free]), start) else 0
        size = float(np.abs(a).max())
        if not size <= 8.0 * self._c:
            self._c, known = size, 0
        if known == 0:
            self._free[: len(start)] = start
        self._n_free = len(start)
        U, Y, _, _, x = self._work
        for k in range(known, len(start)):
            _append(*self._problem, self._c, a, self._free, k, U, Y, x)
        if known:
            _forward(a, self._free, known, U, Y, x)


@kernel(error_model="numpy")
def _maximise(H, component, n_components, ridge, c, a, b, free, n_free, U, Y, S, prices, x):
    """Improve b until no entry that is 0 would gain by rising; return how many are free then; 0 for a singular system.

    `H`, `component` and `n_components`: as of `Maximiser`.
    `ridge` and `c`, float: added to the diagonal, and to all entries of H of one component.
    `a` and `b`, of shape (n,), float64: as of `Maximiser.maximise`.
    `free`, of shape (n,), int64: the entries of b above 0 come first, `n_free` of them; overwritten.
    `n_free`: int.
    `U`, of shape (n, n), float64: the factor in its upper triangle.
    `Y`, of shape (n, n_components + 1), float64: the solution of ``U'Y = [a, E]``.
    `S`, `prices` and `x`, of shape (n_components, n_components), (n_components,), (n,), float64: workspace.
    """
    n = a.shape[0]
    for _ in range(10 * n + 100):
        # The maximiser with only the free entries non-zero and no sign constraint, then the price of each component's sum.
        if not _solve(component, n_components, 1.0, free, n_free, U, Y, S, prices, x):
            return 0
        if move_to_boundary(b, free, n_free, x):
            lowest = n_free
            for k in range(n_free - 1, -1, -1):
                if not b[free[k]] > 0.0:
                    _remove(free, n_free, k, U)
                    n_free, lowest = n_free - 1, k
            for k in range(lowest, n_free):
                _write_row(component, n_components, a, free, k, U, Y)
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
                reduced = a[i] - prices[component[i]] - c
                for k in range(n_free):
                    reduced -= H[i, free[k]] * x[k]
                if reduced > gain:
                    free[n_free], gain = i, reduced
        if not gain > 1e-10 * abs(value) / n_components:
            return n_free
        _append(H, component, n_components, ridge, c, a, free, n_free, U, Y, x)
        n_free += 1
    return n_free


@kernel(error_model="numpy")
def _append(H, component, n_components, ridge, c, a, free, k, U, Y, x):
    """Let the factor grow by the entry ``free[k]``: its column of U, and its row of Y. The inner loop runs along a row of U."""
    i = free[k]
    for j in range(k):
        x[j] = H[i, free[j]]
        if component[free[j]] == component[i]:
            x[j] += c
    rest = H[i, i] + c + ridge
    for j in range(k):
        r = x[j] / U[j, j]
        for m in range(j + 1, k):
            x[m] -= r * U[j, m]
        U[j, k] = r
        rest -= r * r
    U[k, k] = np.sqrt(rest if rest > 0.25 * ridge else ridge)  # less than the ridge is rounding
    _write_row(component, n_components, a, free, k, U, Y)


@kernel(error_model="numpy")
def _write_row(component, n_components, a, free, k, U, Y):
    """Solve for a row of Y, given those above it."""
    i = free[k]
    for g in range(n_components + 1):
        Y[k, g] = a[i] if g == 0 else (1.0 if g == component[i] + 1 else 0.0)
    for j in range(k):
        for g in range(n_components + 1):
            Y[k, g] -= U[j, k] * Y[j, g]
    for g in range(n_components + 1):
        Y[k, g] /= U[k, k]


@kernel(error_model="numpy")
def _forward(a, free, n_free, U, Y, x):
    """Let the first column of Y be that of another right-hand side."""
    for j in range(n_free):
        x[j] = a[free[j]]
    for j in range(n_free):
        r = x[j] / U[j, j]
        for m in range(j + 1, n_free):
            x[m] -= r * U[j, m]
        Y[j, 0] = r


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
def _solve(component, n_components, total, free, n_free, U, Y, S, prices, x):
    """Write the free entries whose sum in each component is `total` to x, and the prices; return False for a singular system."""
    for g in range(n_components):
        prices[g] = -total
        for h in range(n_components):
            S[g, h] = 0.0
    for k in range(n_free):
        for g in range(n_components):
            prices[g] += Y[k, g + 1] * Y[k, 0]
            for h in range(n_components):
                S[g, h] += Y[k, g + 1] * Y[k, h + 1]
    if not _solve_in_place(S, prices, n_components):
        return False
    for k in range(n_free):
        x[k] = Y[k, 0]
        for g in range(n_components):
            x[k] -= Y[k, g + 1] * prices[g]
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
    return True
