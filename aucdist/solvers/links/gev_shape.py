"""Estimate the shape xi of the GEV link by maximum a posteriori: section 2.1 of Fu & Liu (2018).

Weights and shape have standard normal priors, and the labels have the likelihood of the link. The weights take a Newton step
and the shape a Fisher scoring step in turn, each halved until the posterior rises. When the shape moves, the weights follow to
first order. The paper leaves them where they are; following saves rounds where a change of the weights can compensate for the
shape. Divided by the number of rows, the weights' part of the posterior is the likelihood objective of
`aucdist.solvers.links.problem` with lam = 1 / n_samples, so the same code takes the step. An intercept that is not penalised
has a flat prior. The final weights are a by-product, and the fit with the estimated shape starts from them.

The priors have a fixed width, so the features should be on one scale, for example standardised. Sample weights count as numbers
of rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary
from aucdist.kernels.link_rows import shape_rows
from aucdist.objectives.links import LEAST_XI, Link, LinkLoss
from aucdist.solvers.links.problem import LinkPoint, LinkProblem
from aucdist.solvers.links.solvers import CountedSolve, backtrack, hessian_solver

FIRST_XI = 0.1
"""The initial shape, as in the paper."""
SETTLED = 1e-3
MOST_SHAPE_HALVINGS = 6


@dataclass(frozen=True, eq=False)
class GEVShape:
    """The estimate of the shape after a round.

    Attributes
    ----------
    theta : ndarray of shape (n_features + 1,), float64
        Weights and intercept for this shape.
    log_posterior : float
        Logarithm of the posterior, up to a constant.
    """

    xi: float
    theta: np.ndarray
    log_posterior: float

    def row(self) -> dict[str, float]:
        """Return shape and log-posterior as a row of the trace."""
        return {"xi": self.xi, "log_posterior": self.log_posterior}


def map_shape(
    blocks: Blocks, *, fit_intercept: bool, penalise_intercept: bool, most_xi: float, settled: float = SETTLED
) -> Iterator[GEVShape]:
    """Maximise the posterior of weights and shape by alternating steps.

    Parameters
    ----------
    most_xi : float
        Upper limit of the shape; the lower limit is -1.
    settled : float
        The iteration ends when a round raises the log-posterior by at most this.

    Yields
    ------
    GEVShape
        The estimate after each round. A round takes about six passes: value and gradient, Hessian, step, and the derivatives and
        the step of the shape.
    """
    xi = FIRST_XI
    weight = blocks.weight_pos + blocks.weight_neg
    problem = LinkProblem(blocks.without_memory(), _likelihood(xi), 1.0 / weight, fit_intercept, penalise_intercept)
    point = problem.evaluate(problem.origin())
    level = -np.inf
    while True:
        solver, _ = hessian_solver(problem, point)
        problem, point, xi = _move_shape(problem, point, xi, most_xi, solver)
        found = backtrack(problem, point, solver(-point.gradient)[0])
        point = point if found is None else found[0]
        before, level = level, -weight * point.primal - 0.5 * xi * xi
        yield GEVShape(xi, point.theta, level)
        if level - before <= settled:
            return


def _likelihood(xi: float) -> LinkLoss:
    return LinkLoss(Link("gev", xi), "likelihood")


def _move_shape(
    problem: LinkProblem, point: LinkPoint, xi: float, most_xi: float, solver: CountedSolve
) -> tuple[LinkProblem, LinkPoint, float]:
    """Return problem, point and xi after a scoring step that raises the posterior, or unchanged if none does.

    The step is tried with the weights following xi first, and then with fixed weights.
    """
    weight = problem.weight
    derivatives = problem.blocks.reduce(shape_derivatives, point.theta, xi)
    mixed = derivatives["mixed"] / weight
    mixed[-1] *= problem.fit_intercept
    follow = -solver(mixed)[0]
    # The information on xi if the weights follow, and if they are fixed. The prior contributes 1.
    fixed = derivatives["information"] + 1.0
    informations = (max(fixed + weight * float(mixed @ follow), 1.0), max(fixed, 1.0))
    reached = point.primal + 0.5 * xi * xi / weight
    for direction, information in zip((follow, np.zeros_like(follow)), informations, strict=True):
        step = -(derivatives["slope"] + xi) / information
        for _ in range(MOST_SHAPE_HALVINGS):
            wanted = min(max(xi + step, LEAST_XI), most_xi)
            moved = replace(problem, loss=_likelihood(wanted))
            there = moved.evaluate(point.theta + (wanted - xi) * direction)
            if there.primal + 0.5 * wanted * wanted / weight < reached:
                return moved, there, wanted
            step *= 0.5
    return problem, point, xi


def shape_derivatives(block: Block, memory: object, theta: np.ndarray, xi: float) -> tuple[object, Summary]:
    """Return the derivative of minus the log-likelihood by xi, and its expected second derivatives by xi and each weight."""
    w, bias = np.ascontiguousarray(theta[:-1]), float(theta[-1])
    mixed = np.zeros(len(theta))
    slope, information = shape_rows(block.rows, block.y, block.weights(), w, bias, xi, mixed)
    return memory, {"slope": slope, "information": information, "mixed": mixed}
