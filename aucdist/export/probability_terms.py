"""The normal distribution function by what every system has: sums, products, quotients and exp."""

NEAR = 7.071067811865475
"""From so many standard deviations on, the continued fraction takes over from the quotient of polynomials."""
MOST = 37.0
"""Beyond it the tail is taken for 0."""
ABOVE = (
    3.52624965998911e-02, 0.700383064443688, 6.37396220353165, 33.912866078383, 112.079291497871, 221.213596169931,
    220.206867912376,
)  # fmt: skip
BELOW = (
    8.83883476483184e-02, 1.75566716318264, 16.064177579207, 86.7807322029461, 296.564248779674, 637.333633378831,
    793.826512519948, 440.413735824752,
)  # fmt: skip
"""Of the quotient ``ABOVE / BELOW``, the highest power first: algorithm 5666 of Hart et al., "Computer Approximations" (1968).
Times ``exp(-x^2 / 2)`` it is the upper tail at x from 0 to `NEAR`. Both ways the error is below 1e-15, and below 1e-8 of the
tail."""
FRACTION = (0.65, 4.0, 3.0, 2.0, 1.0)
"""Of the tail's continued fraction ``x + 1/(x + 2/(x + 3/(x + 4/(x + 0.65))))``, the innermost first."""
ROOT_TAU = 2.5066282746310002
