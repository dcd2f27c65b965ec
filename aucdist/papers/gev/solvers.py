"""Solvers for link functions: Lipschitz steps, Newton's method, and gradient descent with a bisection for the step length."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy import ndarray
from scipy.sparse import diags_array

from aucdist.data.block import Block, column_squares, elementwise
from aucdist.engine.blocks import Blocks, LocalBlocks, Summary, without_rows
from aucdist.errors import InputError
from aucdist.papers.gev.kernels import ScoresAlong, slope_along_move
from aucdist.papers.gev.problem import MAX_FEATURES, LinkProblem, LinkRound, curvature_of
from aucdist.parameters import SWITCH, keyword_parameters
from aucdist.probability.links import LinkLoss
from aucdist.solvers import sample
from aucdist.solvers.base import Solver
from aucdist.solvers.rounding import higher

SAMPLE_GAP = 1e-2
"""The relative gap to which the fit on a sample is solved."""
ABOVE_NOISE = 3.0
"""The smallest lam for the fit on a sample, in units of `sample.noise`."""
MAX_HALVINGS = 40
MAX_PRODUCTS = 100
"""The largest number of products of the Hessian and a vector in a step of Newton's method by conjugate gradients."""
MIN_CURVATURE = 1e-12
"""The curvature that is added for an intercept without a penalty, in case no row has any curvature left."""

N_BISECTIONS = 9

CountedSolve = Callable[[ndarray], tuple[ndarray, int]]
"""A function that solves a linear system, and returns the solution and the number of passes."""


def check_curvature(loss: LinkLoss) -> float:
    """Return the bound on the curvature of a loss.

    Raises
    ------
    InputError
        If the curvature has no bound.
    """
    if loss.largest_curvature is None:
        raise InputError(
            f"solver 'lipschitz' needs a loss whose curvature has a bound, and the likelihood of {loss.link.name} has none: "
            "use solver='newton' or 'gradient', or loss='calibrated'"
        )
    return loss.largest_curvature


def _start_point(problem: LinkProblem, start: ndarray | None) -> LinkRound:
    """Return the start, or the origin if the loss at the start is infinite, with the number of passes."""
    if start is not None:
        point = problem.evaluate(problem.inside(start.astype(np.float64)))
        if np.isfinite(point.primal):
            return point
    return replace(problem.evaluate(problem.origin()), passes=1 if start is None else 2)


def backtrack(problem: LinkProblem, point: LinkRound, move: ndarray) -> LinkRound | None:
    """Return the first lower point at 1, 1/2, 1/4, ... of a move, or None if there is none.

    Each point that is tried takes a pass.

    If rounding makes the values equal, the point with the shorter gradient counts as lower.
    """
    slope = float(point.gradient @ move)
    for n_tries in range(1, MAX_HALVINGS + 1):
        trial = problem.evaluate(problem.inside(point.theta + move))
        if problem.signs is not None:
            slope = float(point.gradient @ (trial.theta - point.theta))
        if trial.primal <= point.primal + 1e-4 * slope and trial.primal < point.primal:
            return replace(trial, passes=n_tries)
        same = abs(trial.primal - point.primal) <= 1e-14 * point.primal
        if same and trial.gradient_norm < point.gradient_norm:
            return replace(trial, passes=n_tries)
        move, slope = 0.5 * move, 0.5 * slope
        if same and n_tries > 1:
            return None
    return None


# ---- Lipschitz steps --------------------------------------------------------------------------------------------------


def absolute_moments(block: Block) -> Summary:
    """Return the diagonal matrix that bounds the second moments: the sum of each row's absolute values times their sum."""
    size = replace(block, rows=elementwise(block.rows, np.abs))
    reach = block.weights() * (size.scores(np.ones(block.n_features)) + 1.0)
    return np.append(size.sums(reach), reach.sum())


# ---- Newton's steps ---------------------------------------------------------------------------------------------------


def hessian_solver(problem: LinkProblem, point: LinkRound) -> CountedSolve:
    """Return a function that solves ``Hessian x = b`` at a point, after one pass.

    Up to `MAX_FEATURES` features, the function uses a Cholesky factor. With more features it uses conjugate gradients, which
    are more accurate the shorter the gradient at the point is.
    """
    if problem.blocks.n_features <= MAX_FEATURES:
        moments = problem.second_moments(point.theta)
        moments[-1, -1] += MIN_CURVATURE
        solve = problem.solver(moments, fixed=problem.fixed(point))
        return lambda b: (solve(b), 0)
    from scipy.sparse.linalg import LinearOperator, cg  # imported here, because loading is slow and few fits need it

    blocks, penalty = problem.blocks.without_memory(), problem.penalty
    diagonal = blocks.reduce(keep_curvatures, point.theta, problem.loss) / problem.weight + penalty
    diagonal[-1] += MIN_CURVATURE
    tolerance, free = min(0.1, np.sqrt(point.gradient_norm)), 1.0 - problem.fixed(point)

    def solve_by_products(b: ndarray) -> tuple[ndarray, int]:
        """Return x, whose entries are 0 where `free` is 0, as those of b must be, and the number of Hessian products."""
        n_products = 0

        def product(direction: ndarray) -> ndarray:
            """Return the second derivative times a direction, and count the products."""
            nonlocal n_products
            n_products += 1
            loss_product: ndarray = blocks.reduce(hessian_product, direction) / problem.weight
            loss_product[-1] *= problem.fit_intercept
            return free * (loss_product + penalty * direction)

        hessian = LinearOperator((len(b), len(b)), product, dtype=np.float64)
        x, _ = cg(hessian, b, rtol=tolerance, maxiter=MAX_PRODUCTS, M=diags_array(1.0 / diagonal))
        return x, n_products

    return solve_by_products


def keep_curvatures(block: Block, memory: object, theta: ndarray, loss: LinkLoss) -> tuple[ndarray, Summary]:
    """Keep the rows' curvatures at theta, and return the diagonal of the Hessian of the losses."""
    curved = curvature_of(block, theta, loss)
    return curved, np.append(column_squares(block.rows, curved), curved.sum())


def hessian_product(block: Block, memory: ndarray, direction: ndarray) -> Summary:
    """Return the product of the Hessian of the losses and a vector."""
    coefs = memory * (block.scores(direction[:-1]) + direction[-1])
    return np.append(block.sums(coefs), coefs.sum())


class LinkSolver(Solver):
    """A solver for the losses of links. A subclass yields the points that it reaches."""

    objective = "link"
    accepts_codes = True

    def rounds(
        self,
        blocks: Blocks,
        lam: float,
        start: ndarray | None = None,
        *,
        gradient_tol: float = 0.0,
        **objective: Any,
    ) -> Iterator[LinkRound]:
        """Yield the best weights so far.

        Parameters
        ----------
        lam : float
            The regularisation strength, which is the paper's lambda divided by n_samples.
        start : ndarray of shape (n_features + 1,), optional
            Weights and intercept to start from. By default the weights are 0, with the best intercept for these.
        gradient_tol : float
            For a loss that is not convex, a point with a gradient of at most this length is stationary.
        **objective
            As for `LinkProblem`. Only `Newton` accepts signs.

        Yields
        ------
        LinkRound
        """
        problem, bound = LinkProblem(blocks.without_memory(), lam=lam, **objective), (0.0, 0.0)
        for point in self.points(problem, start):
            bound = higher(bound, (point.dual, point.dual_error))
            yield replace(point, dual=bound[0], dual_error=bound[1], stationary=point.gradient_norm <= gradient_tol)

    @abstractmethod
    def points(self, problem: LinkProblem, start: ndarray | None) -> Iterator[LinkRound]:
        """Yield the best point so far, with the lower bound of the newest point and the passes so far.

        Parameters
        ----------
        problem : LinkProblem
            The objective.
        start : ndarray of shape (n_features + 1,) or None
            The weights and the intercept to start from.

        Yields
        ------
        LinkRound
        """


class Newton(LinkSolver):
    """Newton's method with a backtracking line search. It is deterministic. Use it by default.

    Up to `MAX_FEATURES` features, a round computes the Hessian and its Cholesky factor. With more features, conjugate gradients
    compute the step, with one pass for each iteration. They are more accurate the shorter the gradient is. If the loss is
    convex and the data are large, the fit starts from the solution for a sample (`aucdist.solvers.sample`). The likelihood of
    GEV with xi > 0 is not convex. For it, the expected Hessian replaces the Hessian (Fisher scoring), and the result is a
    stationary point.

    If signs of weights are restricted, a weight does not move while it is 0 and the gradient would give it the wrong sign, and
    steps are projected onto the cone (Bertsekas, SIAM J. Control Optim. 20, 1982). A round takes one pass for value and
    gradient, and one for the Hessian.
    """

    name = "newton"
    accepts_signs = True

    def points(self, problem: LinkProblem, start: ndarray | None) -> Iterator[LinkRound]:
        """Yield the point after each step.

        If lam is so small that the weights would fit the noise of a sample, the sample gets a larger lam. Otherwise, the steps
        from its solution would have to be halved many times.

        Parameters
        ----------
        problem : LinkProblem
            The objective.
        start : ndarray of shape (n_features + 1,) or None
            The weights and the intercept to start from.

        Yields
        ------
        LinkRound
        """

        def on_sample(drawn: Block) -> Iterator[LinkRound]:
            """Return the rounds over a sample."""
            lam = max(problem.lam, ABOVE_NOISE * sample.noise(drawn))
            return Newton().rounds(
                LocalBlocks([drawn]), lam, loss=problem.loss, fit_intercept=problem.fit_intercept,
                penalise_intercept=problem.penalise_intercept, signs=problem.signs,
            )  # fmt: skip

        passes = 0
        if start is None and problem.loss.convex:
            known, passes = sample.solve_on_sample(problem.blocks, on_sample, SAMPLE_GAP)
            start = np.append(known.w, known.intercept) if isinstance(known, LinkRound) else None
        point: LinkRound | None = _start_point(problem, start)
        while point is not None:
            passes += point.passes
            yield replace(point, passes=passes)
            move, solve_passes = hessian_solver(problem, point)(-point.gradient)
            passes += 1 + solve_passes
            point = backtrack(problem, point, move)


@keyword_parameters(momentum=SWITCH)
class Lipschitz(LinkSolver):
    """Steps by the inverse of one fixed upper bound on all Hessians: algorithm 1 of Fu & Liu (2018).

    The matrix is L times the second moments of the rows, plus the penalty, where L bounds the curvature of the loss. No step
    can raise the objective. The moments take one reduction and are factorised once. After that, each round is one reduction of
    n_features numbers. Beyond `MAX_FEATURES` features, the diagonal matrix of ``sum over rows of |x_ij| sum over k of |x_ik|``
    replaces the moments. It is also an upper bound, but gives shorter steps. The moments count as one pass, and each round as
    one. It needs a loss whose curvature has a bound: any calibrated loss, and the likelihoods of logit and probit.

    Parameters
    ----------
    momentum : bool, default=True
        Whether to add Nesterov momentum, restarted when a step turns back (O'Donoghue and Candes, 2015), which takes a third to a
        fifth of the rounds. Without it, this is the published algorithm.
    """

    name = "lipschitz"

    momentum: bool = True

    def check_for(self, estimator: Any) -> None:
        """Check that the curvature of the loss of an estimator has a bound.

        Parameters
        ----------
        estimator : LinkClassifier
            The estimator that has this solver.

        Raises
        ------
        InputError
            If it has none.
        """
        check_curvature(estimator.loss_at(0.0))

    def points(self, problem: LinkProblem, start: ndarray | None) -> Iterator[LinkRound]:
        """Yield the best point so far, with the lower bound of the newest point.

        Parameters
        ----------
        problem : LinkProblem
            The objective.
        start : ndarray of shape (n_features + 1,) or None
            The weights and the intercept to start from.

        Yields
        ------
        LinkRound
        """
        curvature = check_curvature(problem.loss)
        if problem.blocks.n_features <= MAX_FEATURES:
            step = problem.solver(curvature * problem.second_moments(None))
        else:
            bound = problem.blocks.sum(absolute_moments) / problem.weight
            diagonal = curvature * bound + problem.penalty

            def step(gradient: ndarray) -> ndarray:
                """Return the step along the gradient, each weight with its own length."""
                return gradient / diagonal

        before = problem.origin() if start is None else start.astype(np.float64)
        here, age, passes = before, 1.0, 1
        best: LinkRound | None = None
        while True:
            point, passes = problem.evaluate(here), passes + 1
            best = point if best is None or point.primal < best.primal else best
            yield replace(best, dual=point.dual, dual_error=point.dual_error, passes=passes)
            after = here - step(point.gradient)
            if np.array_equal(after, here):
                return
            if point.gradient @ (after - before) > 0.0:
                age = 1.0
            older, age = age, 0.5 + np.sqrt(0.25 + age * age)
            here = after + (older - 1.0) / age * (after - before) if self.momentum else after
            before = after


class Gradient(LinkSolver):
    """Steepest descent with a line search by bisection, with which Fu & Liu (2018) compare their method.

    A round takes two passes: one for the scores and their change, and one for value and gradient.
    """

    name = "gradient"

    def points(self, problem: LinkProblem, start: ndarray | None) -> Iterator[LinkRound]:
        """Yield the point after each step.

        Parameters
        ----------
        problem : LinkProblem
            The objective.
        start : ndarray of shape (n_features + 1,) or None
            The weights and the intercept to start from.

        Yields
        ------
        LinkRound
        """
        point: LinkRound | None = _start_point(problem, start)
        length, passes = 1.0, 0
        while point is not None:
            passes += point.passes
            yield replace(point, passes=passes)
            move = -point.gradient
            length = bisect_length(problem, point, move, length)
            passes += 1
            point = backtrack(problem, point, move * length)


def bisect_length(problem: LinkProblem, point: LinkRound, move: ndarray, length: float) -> float:
    """Return the multiple of a move at which the objective starts to rise, given a first guess of it."""
    problem.blocks.reduce(keep_scores_along, point.theta, move)
    penalty = problem.penalty

    def rises(step: float) -> bool:
        """Return whether the objective rises along the line at a step."""
        loss_slope = problem.blocks.reduce(loss_slope_at, step, problem.loss) / problem.weight
        return bool(loss_slope + (penalty * point.theta) @ move + step * float((penalty * move) @ move) >= 0.0)

    low, high = 0.0, length / 8.0
    while not rises(high):
        low, high = high, 2.0 * high
    for _ in range(N_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if rises(middle) else (middle, high)
    return 0.5 * (low + high)


def keep_scores_along(block: Block, memory: object, theta: ndarray, move: ndarray) -> tuple[ScoresAlong, Summary]:
    """Keep the scores at theta and their change along the move."""
    scores, moves = (block.scores(vector[:-1]) + vector[-1] for vector in (theta, move))
    return ScoresAlong(scores, moves, block.y, block.weights()), {}


@without_rows
def loss_slope_at(number: int, memory: ScoresAlong, step: float, loss: LinkLoss) -> Summary:
    """Return the derivative of the loss along the move at a step."""
    return slope_along_move(memory, loss.terms, step)
