"""From scores to probabilities in SQL."""

from collections.abc import Callable

import numpy as np

from aucdist.errors import InputError
from aucdist.export.probability_terms import ABOVE, BELOW, FRACTION, MOST, NEAR, ROOT_TAU
from aucdist.export.sql_parts import case, number, polynomial
from aucdist.kernels.link_functions import NO_SHAPE
from aucdist.objectives.links import Link
from aucdist.objectives.probability_maps import IsotonicMap, LinkMap, ProbabilityMap


def probability_stages(
    found: ProbabilityMap | None, score: str, alias: Callable[[str], str], add: Callable[[str, dict[str, str]], None]
) -> str | None:
    """Add the stages of the probability to a query.

    `found`: that of the model.
    `score`: the name of the score in the query; the name is one of the stages that follow, too.
    `alias` and `add`: those of the query, `aucdist.export.sql.Query`.
    Returns the expression of the probability of the positive class where the score is not NULL; None if the model gives
        none.
    Raises InputError for a map of another kind than those of `aucdist.objectives.probability_maps`.
    """
    if found is None:
        return None
    p, q = alias("p"), alias("q")
    if isinstance(found, LinkMap):
        u = alias("u")
        add("linked", {score: score, u: f"{number(found.slope)} * {score} + {number(found.offset)}"})
        t = alias("t")
        add("part", {score: score, u: u, t: _inner(found.link, u)})
        above, below = _both(found.link, u, t)
        add("probable", {score: score, p: above, q: below})
    elif isinstance(found, IsotonicMap):
        add("probable", {score: score, p: _interpolated(found, score)})
        q = f"({number(1.0)} - {p})"
    else:
        raise InputError(f"probabilities by {type(found).__name__} cannot be exported")
    return f"{number(found.odds)} * {p} / ({number(found.odds)} * {p} + {q})"


def _exp(x: str) -> str:
    """Return exp(x) for x within the range of floating point, and its ends beyond: some systems refuse to overflow."""
    return f"EXP({case([(f'{x} > 7E2', '7E2'), (f'{x} < -7E2', '-7E2')], x)})"


def _inner(link: Link, u: str) -> str:
    """Return what both the probability and its complement are made of."""
    if link.name == "logit":
        return _exp(u)
    if link.name == "cloglog":
        return _exp(u)
    if link.name == "probit":
        return _tail(f"ABS({u})")
    if abs(link.xi) < NO_SHAPE:
        return _exp(f"(-{u})")
    inside = f"({number(1.0)} + {number(link.xi)} * {u})"
    outside = "7E2" if link.xi > 0 else "0E0"
    return case([(f"{inside} <= 0", outside)], _exp(f"(-LN({inside}) / {number(link.xi)})"))


def _both(link: Link, u: str, t: str) -> tuple[str, str]:
    """Return the probability and its complement."""
    one = number(1.0)
    if link.name == "logit":
        return f"{t} / ({one} + {t})", f"{one} / ({one} + {t})"
    if link.name == "probit":
        return case([(f"{u} > 0", f"{one} - {t}")], t), case([(f"{u} > 0", t)], f"{one} - {t}")
    survives = _exp(f"(-{t})")
    # For small t its complement has no digits left: then t itself is nearer.
    dies = case([(f"{t} < 1E-8", t)], f"{one} - {survives}")
    return (dies, survives) if link.name == "cloglog" else (survives, dies)


def _tail(x: str) -> str:
    """Return the upper tail of the normal distribution at x of 0 or more."""
    density = _exp(f"(-{x} * {x} / 2E0)")
    fraction = f"({x} + {number(FRACTION[0])})"
    for numerator in FRACTION[1:]:
        fraction = f"({x} + {number(numerator)} / {fraction})"
    quotient = f"{polynomial(ABOVE, x)} / {polynomial(BELOW, x)}"
    far = f"{density} / {fraction} / {number(ROOT_TAU)}"
    return case([(f"{x} > {number(MOST)}", number(0.0)), (f"{x} < {number(NEAR)}", f"{density} * {quotient}")], far)


def _interpolated(found: IsotonicMap, score: str) -> str:
    """Return the probability between the points of a calibration."""
    x, p = found.scores, found.probabilities
    cases = [(f"{score} < {number(x[0])}", number(p[0]))]
    for k in np.flatnonzero(np.diff(x) > 0):
        # A step that is too steep for floating point is a step.
        with np.errstate(over="ignore"):
            slope = (p[k + 1] - p[k]) / (x[k + 1] - x[k])
        rises = slope != 0 and np.isfinite(slope)
        line = f"{number(p[k])} + {number(slope)} * ({score} - {number(x[k])})" if rises else number(p[k])
        cases.append((f"{score} < {number(x[k + 1])}", line))
    return case(cases, number(p[-1]))
