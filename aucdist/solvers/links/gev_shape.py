"""The shape xi of the GEV link by maximum a posteriori: section 2.1 of Fu & Liu (2018).

Weights and shape have standard normal priors, the labels the link's likelihood. In turn the weights take a Newton step and the
shape a scoring step, each halved until the posterior rises. When the shape moves the weights follow to first order, which the
paper's do not: that saves rounds where shape and weights can make up for each other. Divided by the number of rows the weights'
part is the likelihood objective of `link_problem` with lam = 1 / n_samples, so the same code takes the step. An intercept that is
not penalised has a flat prior. The weights in the end are a by-product, from which the fit at that shape starts.

As the priors are of a fixed width, features should be of a like scale, such as standardised ones; sample weights count rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary
from aucdist.kernels.link_rows import shape_rows
from aucdist.objectives.links import LEAST_XI, Link, LinkLoss
from aucdist.solvers.links.problem import LinkProblem, Point
from aucdist.solvers.links.solvers import Counted, descend, hessian_solver

FIRST_XI = 0.1
"""Where the paper starts."""
SETTLED = 1e-3
MOST_SHAPE_HALVINGS = 6


@dataclass(frozen=True, eq=False)
class Shape:
    """What is known of the shape after a round.

    Attributes
    ----------
    xi : float
    theta : ndarray of shape (n_features + 1,), float64
        Weights and intercept that go with it.
    log_posterior : float
        But for a constant.
    """

    xi: float
    theta: np.ndarray
    log_posterior: float

    def row(self) -> dict[str, float]:
        """Return the numbers of a trace."""
        return {"xi": self.xi, "log_posterior": self.log_posterior}


def map_shape(
    blocks: Blocks, *, fit_intercept: bool, penalise_intercept: bool, most_xi: float, settled: float = SETTLED
) -> Iterator[Shape]:
    """Look for the mode of the posterior of weights and shape, by steps in turn.

    Parameters
    ----------
    blocks : Blocks
    fit_intercept, penalise_intercept : bool
    most_xi : float
        The shape stays from -1 to here.
    settled : float
        End when a round raises the logarithm of the posterior by no more: a posterior is flat on a scale of 1.

    Yields
    ------
    Shape
        After each round. A round takes six passes or so: value and gradient, Hessian, step, and the shape's derivatives and step.
    """
    xi = FIRST_XI
    weight = blocks.weight_pos + blocks.weight_neg
    problem = LinkProblem(blocks.without_memory(), _likelihood(xi), 1.0 / weight, fit_intercept, penalise_intercept)
    point = problem.evaluate(problem.origin())
    level = -np.inf
    while True:
        solver, _ = hessian_solver(problem, point)
        problem, point, xi = _move_shape(problem, point, xi, most_xi, solver)
        found = descend(problem, point, solver(-point.gradient)[0])
        point = point if found is None else found[0]
        before, level = level, -weight * point.primal - 0.5 * xi * xi
        yield Shape(xi, point.theta, level)
        if level - before <= settled:
            return


def _likelihood(xi: float) -> LinkLoss:
    return LinkLoss(Link("gev", xi), "likelihood")


def _move_shape(
    problem: LinkProblem, point: Point, xi: float, most_xi: float, solver: Counted
) -> tuple[LinkProblem, Point, float]:
    """Take a scoring step in xi at which the posterior rises, if there is one: with the weights following, else without."""
    weight = problem.weight
    told = problem.blocks.reduce(shape_derivatives, point.theta, xi)
    both = told["both"] / weight
    both[-1] *= problem.fit_intercept
    follow = -solver(both)[0]
    # On xi when the weights may follow, and when they stay; that of the prior is 1.
    alone = told["information"] + 1.0
    informations = (max(alone + weight * float(both @ follow), 1.0), max(alone, 1.0))
    reached = point.primal + 0.5 * xi * xi / weight
    for way, information in zip((follow, np.zeros_like(follow)), informations, strict=True):
        step = -(told["slope"] + xi) / information
        for _ in range(MOST_SHAPE_HALVINGS):
            wanted = min(max(xi + step, LEAST_XI), most_xi)
            moved = replace(problem, loss=_likelihood(wanted))
            there = moved.evaluate(point.theta + (wanted - xi) * way)
            if there.primal + 0.5 * wanted * wanted / weight < reached:
                return moved, there, wanted
            step *= 0.5
    return problem, point, xi


def shape_derivatives(block: Block, memory: object, theta: np.ndarray, xi: float) -> tuple[object, Summary]:
    """Add up the derivative of minus the log-likelihood by xi, and its expected second derivatives by xi and all others."""
    w, bias = np.ascontiguousarray(theta[:-1]), float(theta[-1])
    both = np.zeros(len(theta))
    slope, information = shape_rows(block.rows, block.y, block.weights(), w, bias, xi, both)
    return memory, {"slope": slope, "information": information, "both": both}
