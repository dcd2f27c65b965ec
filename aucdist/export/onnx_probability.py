"""From scores to probabilities in an ONNX graph."""

from collections.abc import Sequence

import numpy as np

from aucdist.errors import InputError
from aucdist.export.onnx_graph import Graph
from aucdist.export.probability_terms import ABOVE, BELOW, FRACTION, MOST, NEAR, ROOT_TAU
from aucdist.kernels.link_functions import NO_SHAPE
from aucdist.objectives.links import Link
from aucdist.objectives.probability_maps import IsotonicMap, LinkMap, ProbabilityMap


def probability_of(graph: Graph, found: ProbabilityMap, score: str) -> str:
    """Return the probabilities of the positive class, of shape (rows,), given the scores.

    Raises InputError for a map of another kind than those of `aucdist.objectives.probability_maps`.
    """
    one = graph.constant(1.0)
    if isinstance(found, LinkMap):
        scaled = graph.add("Mul", score, graph.constant(found.slope))
        p, q = _link(graph, found.link, graph.add("Add", scaled, graph.constant(found.offset)), one)
    elif isinstance(found, IsotonicMap):
        p = _interpolated(graph, found, score)
        q = graph.add("Sub", one, p)
    else:
        raise InputError(f"probabilities by {type(found).__name__} cannot be exported")
    weighted = graph.add("Mul", p, graph.constant(found.odds))
    return graph.add("Div", weighted, graph.add("Add", weighted, q))


def _link(graph: Graph, link: Link, u: str, one: str) -> tuple[str, str]:
    """Return the probability of a link and its complement."""
    if link.name == "logit":
        return graph.add("Sigmoid", u), graph.add("Sigmoid", graph.add("Neg", u))
    if link.name == "probit":
        tail = _tail(graph, graph.add("Abs", u))
        above, rest = graph.add("Greater", u, graph.constant(0.0)), graph.add("Sub", one, tail)
        return graph.add("Where", above, rest, tail), graph.add("Where", above, tail, rest)
    t = graph.add("Exp", u) if link.name == "cloglog" else _gev(graph, link.xi, u, one)
    survives = graph.add("Exp", graph.add("Neg", t))
    # For small t its complement has no digits left: then t itself is nearer.
    small = graph.add("Less", t, graph.constant(1e-8))
    dies = graph.add("Where", small, t, graph.add("Sub", one, survives))
    return (dies, survives) if link.name == "cloglog" else (survives, dies)


def _gev(graph: Graph, xi: float, u: str, one: str) -> str:
    """Return ``(1 + xi u) ** (-1 / xi)``, and its limits where there is none."""
    if abs(xi) < NO_SHAPE:
        return graph.add("Exp", graph.add("Neg", u))
    inside = graph.add("Add", one, graph.add("Mul", u, graph.constant(xi)))
    there = graph.add("Greater", inside, graph.constant(0.0))
    logged = graph.add("Log", graph.add("Where", there, inside, one))
    t = graph.add("Exp", graph.add("Div", logged, graph.constant(-xi)))
    return graph.add("Where", there, t, graph.constant(np.inf if xi > 0 else 0.0))


def _tail(graph: Graph, x: str) -> str:
    """Return the upper tail of the normal distribution at x of 0 or more; no operator has it in double precision."""
    density = graph.add("Exp", graph.add("Mul", graph.add("Mul", x, x), graph.constant(-0.5)))
    near = graph.add("Div", _polynomial(graph, ABOVE, x), _polynomial(graph, BELOW, x))
    fraction = graph.add("Add", x, graph.constant(FRACTION[0]))
    for numerator in FRACTION[1:]:
        fraction = graph.add("Add", x, graph.add("Div", graph.constant(numerator), fraction))
    far = graph.add("Div", graph.constant(1.0 / ROOT_TAU), fraction)
    tail = graph.add("Mul", density, graph.add("Where", graph.add("Less", x, graph.constant(NEAR)), near, far))
    return graph.add("Where", graph.add("Greater", x, graph.constant(MOST)), graph.constant(0.0), tail)


def _polynomial(graph: Graph, coefs: Sequence[float], x: str) -> str:
    found = graph.constant(coefs[0])
    for coef in coefs[1:]:
        found = graph.add("Add", graph.add("Mul", found, x), graph.constant(coef))
    return found


def _interpolated(graph: Graph, found: IsotonicMap, score: str) -> str:
    """Return the probability between the points of a calibration: the first, and what each piece adds up to the score."""
    widths, rises = np.diff(found.scores), np.diff(found.probabilities)
    there = rises > 0
    if not there.any():
        return graph.add("Add", graph.add("Mul", score, graph.constant(0.0)), graph.constant(found.probabilities[0]))
    widths, rises, starts = widths[there], rises[there], found.scores[:-1][there]
    beyond = graph.add("Sub", graph.column(score), graph.constant(starts))
    share = graph.add("Div", beyond, graph.constant(np.where(widths > 0, widths, 1.0)))
    share = graph.add("Min", graph.add("Max", share, graph.constant(0.0)), graph.constant(1.0))
    reached = graph.as_double(graph.add("GreaterOrEqual", beyond, graph.constant(0.0)))
    share = graph.add("Where", graph.constant(widths > 0, np.bool_), share, reached)
    total = graph.vector(graph.add("MatMul", share, graph.constant(rises[:, np.newaxis])))
    return graph.add("Add", total, graph.constant(found.probabilities[0]))
