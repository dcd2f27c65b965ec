"""Link functions, row by row: probability, loss, slope and curvature of one score.

There are three links: the generalized extreme value distribution (shape xi, location 0, scale 1), the logistic distribution and
the normal distribution. The complementary log-log link is the first one with xi = 0, where score and label change their signs.

The generalized extreme value distribution function is ``exp(-t)`` at the score u, where ``a = 1 + xi u`` and ``t = a ** (-1 /
xi)``, or ``t = exp(-u)`` at xi = 0. If a is 0 or less, u is outside of the support: t is infinite below it (for xi > 0), and 0
above it (for xi < 0).
"""

import math
from typing import NamedTuple

import numpy as np

from aucdist.kernels.compiling import kernel

GEV, LOGIT, PROBIT = 0, 1, 2
NO_SHAPE = 1e-200
"""A shape xi that is smaller in size counts as 0. It does not change any t by a unit in the last place, and products with it
would lose digits."""
GRID = (0.0, 0.5, 5)
"""The intervals of the table of GEV's calibrated loss for small t: start, width and number."""
LOG_GRID = (0.875, 1.0, 6)
"""The intervals of the table of GEV's calibrated loss for large t, in log t: start, width and number."""
DEGREE = 13
"""Degree of the polynomial on each interval, with which the tables are accurate to a few units in the last place."""
FAR_TAIL = 4.0
"""From this many standard deviations on, the normal tail is computed by a continued fraction."""
ROOT_HALF = math.sqrt(0.5)
LOG_ROOT_TAU = 0.5 * math.log(2.0 * math.pi)


class Terms(NamedTuple):
    """A link and its loss in the form that the kernels take.

    Attributes
    ----------
    kind : int
        GEV, LOGIT or PROBIT.
    sign : float
        -1 if score and label change sign, else 1.
    xi : float
        Shape of GEV; 0 for the other links.
    mean : float
        Mean of the distribution.
    near, far : ndarray of shape (n_intervals, DEGREE + 1), float64
        Only for GEV: the tables of `near_part` and `far_part`, one polynomial per interval in a variable from -1 to 1.
    likelihood : bool
        Whether the loss is minus the log-likelihood; otherwise it is the calibrated loss.
    """

    kind: int
    sign: float
    xi: float
    mean: float
    near: np.ndarray
    far: np.ndarray
    likelihood: bool


inlined = kernel(inline="always")
"""Decorator that inlines a function into its caller's loop. A call would count references to the arrays of `Terms` on every row,
and the loop could not be specialised for each link. Inlined, value and gradient take 0.5 to 0.9 of the time, slopes along a
move 0.2
to 0.7."""


@inlined
def gev_place(xi, u):
    """Return a, t and -log t of a score. Outside of the support, a is 0, and t is infinite or 0."""
    if abs(xi) < NO_SHAPE:
        return 1.0, math.exp(-u) if u > -709.0 else math.inf, u
    z = xi * u
    if z <= -1.0:
        return (0.0, math.inf, -math.inf) if xi > 0.0 else (0.0, 0.0, math.inf)
    minus_log_t = math.log1p(z) / xi
    return 1.0 + z, math.exp(-minus_log_t) if minus_log_t > -709.0 else math.inf, minus_log_t


@inlined
def normal_tail(x):
    """Return 1/M - x and M, where M is Mills' ratio (normal tail over density) at x >= FAR_TAIL, by its continued fraction."""
    n = int(200.0 / x) + 10
    rest = x
    for k in range(n, 1, -1):
        rest = x + k / rest
    return 1.0 / rest, 1.0 / (x + 1.0 / rest)


@inlined
def probability(terms, u):
    """Return the probability at score u and its complement, each with full relative precision."""
    s = terms.sign * u
    if terms.kind == GEV:
        t = gev_place(terms.xi, s)[1]
        above, below = math.exp(-t), -math.expm1(-t)
    elif terms.kind == LOGIT:
        small = math.exp(-abs(s))
        high, low = 1.0 / (1.0 + small), small / (1.0 + small)
        above, below = (high, low) if s > 0.0 else (low, high)
    else:
        above, below = 0.5 * math.erfc(-ROOT_HALF * s), 0.5 * math.erfc(ROOT_HALF * s)
    return (above, below) if terms.sign > 0.0 else (below, above)


@kernel
def write_probabilities(terms, scores, above, below):
    """Write the probability at each score, and its complement."""
    for i in range(scores.shape[0]):
        above[i], below[i] = probability(terms, scores[i])


@inlined
def loss_and_slope(terms, u, positive):
    """Return the loss of a row with score u, and its derivative by u. An infinite loss has derivative 0."""
    s = terms.sign * u
    is_one = positive == (terms.sign > 0.0)
    if terms.kind == GEV:
        loss, slope = gev_likelihood(terms.xi, s, is_one) if terms.likelihood else gev_loss(terms, s, is_one)
    elif terms.kind == LOGIT:
        m = -s if is_one else s  # the loss rises with m for both classes
        small = math.exp(-abs(m))
        loss = max(m, 0.0) + math.log1p(small)
        rise = (1.0 if m > 0.0 else small) / (1.0 + small)
        slope = -rise if is_one else rise
    else:
        m = -s if is_one else s
        loss, rise = normal_likelihood(m) if terms.likelihood else normal_loss(m)
        slope = -rise if is_one else rise
    return loss, terms.sign * slope


@inlined
def slope_of(terms, u, positive):
    """Return the derivative of the loss. For the calibrated loss, and for the logistic link, it is g - y."""
    if terms.kind == LOGIT or not terms.likelihood:
        above, below = probability(terms, u)
        return -below if positive else above
    s = terms.sign * u
    is_one = positive == (terms.sign > 0.0)
    if terms.kind == GEV:
        return terms.sign * gev_likelihood(terms.xi, s, is_one)[1]
    rise = normal_likelihood(-s if is_one else s)[1]
    return -rise if is_one else rise


@inlined
def curvature(terms, u, positive):
    """Return the second derivative of the loss.

    For the likelihood of GEV with xi > 0, which is not convex, return its expectation.
    """
    s = terms.sign * u
    is_one = positive == (terms.sign > 0.0)
    if terms.kind == LOGIT:
        small = math.exp(-abs(s))
        return small / (1.0 + small) ** 2
    if terms.kind == PROBIT:
        if not terms.likelihood:
            return math.exp(-0.5 * s * s - LOG_ROOT_TAU)
        m = -s if is_one else s
        if m > FAR_TAIL:
            rest, mills = normal_tail(m)
            return rest / mills
        rise = normal_likelihood(m)[1]
        return rise * (rise - m)
    return gev_curvature(terms.xi, s, is_one, terms.likelihood)


@inlined
def normal_loss(m):
    """Return the mean of ``max(0, m + X)``, where X is standard normal, and its derivative."""
    density = math.exp(-0.5 * m * m - LOG_ROOT_TAU)
    if m < -FAR_TAIL:
        rest, mills = normal_tail(-m)
        return density * rest * mills, density * mills
    rise = 0.5 * math.erfc(-ROOT_HALF * m)
    return m * rise + density, rise


@inlined
def normal_likelihood(m):
    """Return minus the logarithm of the normal tail above m, and its derivative."""
    if m > FAR_TAIL:
        mills = normal_tail(m)[1]
        return 0.5 * m * m + LOG_ROOT_TAU - math.log(mills), 1.0 / mills
    density = math.exp(-0.5 * m * m - LOG_ROOT_TAU)
    if m < 0.0:
        other = 0.5 * math.erfc(-ROOT_HALF * m)
        return -math.log1p(-other), density / (1.0 - other)
    tail = 0.5 * math.erfc(ROOT_HALF * m)
    return -math.log(tail), density / tail


@inlined
def gev_loss(terms, u, is_one):
    """Return the calibrated loss and its slope.

    If X has the distribution of the link, the loss is the mean of ``max(0, u - X)`` for a negative row and of ``max(0, X - u)``
    for a positive one. The two differ by u minus the mean of X. In terms of t, the first is the incomplete gamma function
    ``Gamma(-xi, t)``, and a series gives its complement, the second. Each of them is read from a table where it has no
    cancellation."""
    a, t, minus_log_t = gev_place(terms.xi, u)
    if t < GRID[1] * GRID[2]:
        above = a * t * tabulated(terms.near, t / GRID[1])
        below = above + u - terms.mean
    else:
        part = math.exp(-t) if t < 745.0 else 0.0
        below = part * a / t * tabulated(terms.far, (-minus_log_t - LOG_GRID[0]) / LOG_GRID[1]) if part > 0.0 else 0.0
        above = below - u + terms.mean
    return (above, math.expm1(-t)) if is_one else (below, math.exp(-t))


@inlined
def tabulated(table, position):
    """Return the value of a table at a position, in units of its intervals."""
    k = int(position)
    x, coefs = 2.0 * (position - k) - 1.0, table[k]
    total = coefs[DEGREE]
    for j in range(DEGREE - 1, -1, -1):
        total = total * x + coefs[j]
    return total


@kernel
def near_part(xi, t):
    """Return the loss of a positive row over a t, for t up to 2.5: the sum of ``(-1)^(k+1) t^(k-1) / (k! (k - xi))``, k >= 1."""
    total, power = 0.0, 1.0
    for k in range(1, 31):
        total += power / (k - xi)
        power *= -t / (k + 1.0)
    return total


@kernel
def far_part(xi, t):
    """Return the loss of a negative row times exp(t) t / a: ``Gamma(-xi, t) exp(t) t^(1 + xi)``, by Legendre's fraction."""
    n = int(110.0 / t) + 4
    rest = t + xi + (2 * n + 1)
    for k in range(n, 0, -1):
        rest = t + xi + (2 * k - 1) - k * (k + xi) / rest
    return t / rest


@inlined
def gev_likelihood(xi, u, is_one):
    """Return minus the log-likelihood of a row, and its derivative by the score."""
    a, t, minus_log_t = gev_place(xi, u)
    if is_one:
        return (t, -t / a) if t < math.inf and a > 0.0 else (t, 0.0)
    if a == 0.0:
        return (0.0, 0.0) if t > 0.0 else (math.inf, 0.0)
    if t < 1e-4:  # the probability of a negative row is t (1 - t/2 + t^2/6 - ...)
        return minus_log_t + t * (0.5 - t / 24.0), (1.0 - 0.5 * t + t * t / 12.0) / a
    if t > 700.0:
        return 0.0, 0.0
    loss = -math.log1p(-math.exp(-t)) if t > 1.0 else -math.log(-math.expm1(-t))
    return loss, t / (a * math.expm1(t))


@kernel
def gev_curvature(xi, u, is_one, likelihood):
    """Return the second derivative of the loss. For the likelihood with xi > 0, return its expectation over the label."""
    a, t, _ = gev_place(xi, u)
    if a == 0.0 or (t > 700.0 and not (likelihood and is_one and xi <= 0.0)):
        return 0.0
    if not likelihood:
        return t * math.exp(-t) / a
    if is_one and xi <= 0.0:
        return (1.0 + xi) * t / (a * a) if t < math.inf else 0.0
    # t / (exp(t) - 1), with its limit 1 at t = 0.
    ratio = t / math.expm1(t) if t > 0.0 else 1.0
    if xi > 0.0:
        return t * ratio / (a * a)
    # The two terms nearly cancel if t is small. Then the series t/2 - t^2/6 replaces their difference.
    less_one = t / -math.expm1(-t) - 1.0 if t > 1e-4 else t * (0.5 + t / 12.0)
    return ratio * (less_one - xi) / (a * a)


@kernel
def shape_terms(xi, u, positive):
    """Return the derivative of minus the log-likelihood of a row by xi, and its second derivatives by xi and by xi and the score.

    As in `gev_curvature`, the second derivatives are expectations if xi > 0.
    """
    a, t, _ = gev_place(xi, u)
    if a == 0.0 or (t > 700.0 and not positive):
        return 0.0, 0.0, 0.0
    m, bend = log_t_by_shape(xi, u, a)
    # t / (exp(t) - 1), with its limit 1 at t = 0.
    ratio = t / math.expm1(t) if 0.0 < t < 700.0 else (1.0 if t == 0.0 else 0.0)
    if xi > 0.0:
        return (t * m if positive else -ratio * m), t * ratio * m * m, -t * ratio * m / a
    if positive:
        return t * m, t * (m * m + bend), t * (u / a - m) / a
    less_one = t / -math.expm1(-t) - 1.0 if t > 1e-4 else t * (0.5 + t / 12.0)
    return -ratio * m, ratio * (less_one * m * m - bend), -ratio * (less_one * m + u / a) / a


@kernel
def log_t_by_shape(xi, u, a):
    """Return the first and the second derivative of log t by xi."""
    z = xi * u
    if abs(z) >= 0.1:
        log = math.log1p(z)
        return (log - z / a) / (xi * xi), ((2.0 * z + z * z / a) / a - 2.0 * log) / (xi * xi * xi)
    first, second = 0.0, 0.0
    for k in range(18, 0, -1):
        first = first * -z + k / (k + 1.0)
        second = second * -z + k * (k + 1.0) / (k + 2.0)
    return first * u * u, -second * u * u * u
