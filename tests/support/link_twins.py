"""Slow twins of the link functions, in mpmath with 60 digits."""

import functools

import mpmath as mp
import numpy as np

DIGITS = 60


def precise(function):
    @functools.wraps(function)
    def at_many_digits(*args):
        with mp.workdps(DIGITS):
            return function(*args)

    return at_many_digits


def place(xi, u):
    """Return a and t of the GEV distribution."""
    xi, u = mp.mpf(xi), mp.mpf(u)
    if xi == 0:
        return mp.mpf(1), mp.exp(-u)
    a = 1 + xi * u
    if a <= 0:
        return mp.mpf(0), mp.inf if xi > 0 else mp.mpf(0)
    return a, mp.exp(-mp.log1p(xi * u) / xi)


@precise
def gev(xi, u):
    """Return the probability and its complement."""
    t = place(xi, u)[1]
    return (mp.exp(-t), -mp.expm1(-t)) if t < mp.inf else (mp.mpf(0), mp.mpf(1))


@precise
def gev_mean(xi):
    if abs(xi) < 1e-20:  # two terms of the series
        return mp.euler + (mp.euler**2 / 2 + mp.pi**2 / 12) * mp.mpf(xi)
    return (mp.gamma(1 - mp.mpf(xi)) - 1) / mp.mpf(xi)


@precise
def gev_loss(xi, u, positive):
    """Return the mean of max(0, u - X), or of max(0, X - u)."""
    xi = 0.0 if abs(xi) < 1e-80 else xi  # the same in 60 digits
    t = place(xi, u)[1]
    if t == mp.inf:
        below = mp.mpf(0)
    elif t == 0:
        below = mp.mpf(u) - gev_mean(xi)
    else:
        below = mp.gammainc(-mp.mpf(xi), t)
    return below - u + gev_mean(xi) if positive else below


def probability(link, u):
    """Return what each link says of a score, plainly."""
    name, xi = link
    if name == "gev":
        return float(gev(xi, u)[0])
    if name == "logit":
        return float(1 / (1 + mp.exp(-u)))
    if name == "probit":
        return float(mp.ncdf(u))
    return float(1 - mp.exp(-mp.exp(u)))


def pools(values, pos, neg):
    """Return the share of positives in each score's segment of the ROC hull, by pooling neighbours by hand."""
    groups = [[[i], p, n] for i, (p, n) in enumerate(zip(pos, neg, strict=True))]
    merged = []
    for group in groups:
        merged.append(group)
        while len(merged) > 1 and merged[-2][1] * (merged[-1][1] + merged[-1][2]) >= merged[-1][1] * (
            merged[-2][1] + merged[-2][2]
        ):
            last = merged.pop()
            merged[-1] = [merged[-1][0] + last[0], merged[-1][1] + last[1], merged[-1][2] + last[2]]
    out = np.empty(len(values))
    for members, p, n in merged:
        out[members] = p / (p + n)
    return out
