"""Solvers of link functions: Lipschitz steps, Newton's method, and gradient descent with a bisection for the step."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, LocalBlocks, Summary, without_rows
from aucdist.errors import InputError
from aucdist.kernels.link_rows import along
from aucdist.kernels.rows import accumulate, project
from aucdist.objectives.links import LinkLoss
from aucdist.solvers import sample
from aucdist.solvers.links.problem import (
    MOST_FEATURES,
    LinkProblem,
    LinkRound,
    Point,
    Solve,
    curvature_of,
)

NEAR = 1e-2
"""The gap to which a sample is solved."""
ABOVE_NOISE = 3.0
"""The sample's lam, in units of `sample.noise`, at least."""
MOST_HALVINGS = 40
LEAST_CURVATURE = 1e-12
"""Of an intercept without a penalty, where no row has any curvature left."""
LOOKS = 3
"""Trips of the bisection; each takes seven steps at once, which is three halvings."""

Counted = Callable[[np.ndarray], tuple[np.ndarray, int]]


def lipschitz(
    blocks: Blocks, lam: float, start: np.ndarray | None = None, *, loss: LinkLoss, fit_intercept: bool = True,
    penalise_intercept: bool = False, momentum: bool = True, gradient_tol: float = 0.0,
) -> Iterator[LinkRound]:  # fmt: skip
    """Step by the inverse of one fixed matrix, which bounds all Hessians: algorithm 1 of Fu & Liu (2018).

    The matrix is L times the second moments of the rows, plus the penalty, where L bounds the curvature of the loss: no step
    can raise the objective. The moments take one reduction, its Cholesky factor is taken once, and from then on
    a round is one reduction of n_features numbers. Beyond `MOST_FEATURES` features the moments are bounded in turn by the
    diagonal matrix of ``sum over rows of |x_ij| sum over k of |x_ik|``: a true bound as well, but shorter steps.

    Parameters
    ----------
    blocks : Blocks
    lam : float
        The paper's lambda over n_samples.
    start : ndarray of shape (n_features + 1,), optional
        Weights and intercept. By default no weights, and the intercept that fits best without any.
    loss : LinkLoss
        With a bound on its curvature: any calibrated loss, and the likelihoods of logit and probit.
    fit_intercept, penalise_intercept : bool
        The paper's x carries a 1 that is penalised like the others.
    momentum : bool
        Steps are taken from a point farther on, by Nesterov's rule, which begins anew when a step turns back (O'Donoghue and
        Candes, 2015): at the same cost a third to a fifth of the rounds. Without it this is the algorithm as published.
    gradient_tol : float
        A gradient at most so long is none: for a loss that is not convex.

    Yields
    ------
    LinkRound
        The best weights so far. The moments count as a pass, then each round.

    Raises
    ------
    InputError
        If the curvature of the loss has no bound.
    """
    curvature = loss.largest_curvature
    if curvature is None:
        raise InputError(
            f"solver='lipschitz' needs a loss of bounded curvature, which the likelihood of {loss.link.name} is not: "
            "take loss='calibrated', or solver='newton' or 'gradient'"
        )
    problem = LinkProblem(blocks.fresh(), loss, lam, fit_intercept, penalise_intercept)
    step = _fixed_step(problem, curvature)
    before = problem.origin() if start is None else start.astype(np.float64)
    here, age, passes = before, 1.0, 1
    best: Point | None = None
    bound: Point | None = None
    while True:
        point, passes = problem.evaluate(here), passes + 1
        best = point if best is None or point.primal < best.primal else best
        bound = point if bound is None else _higher(bound, point)
        yield _round(best, bound, passes, gradient_tol)
        after = here - step(point.gradient)
        if np.array_equal(after, here):
            return
        if point.gradient @ (after - before) > 0.0:
            age = 1.0
        older, age = age, 0.5 + np.sqrt(0.25 + age * age)
        here = after + (older - 1.0) / age * (after - before) if momentum else after
        before = after


def newton(
    blocks: Blocks, lam: float, start: np.ndarray | None = None, *, loss: LinkLoss, fit_intercept: bool = True,
    penalise_intercept: bool = False, gradient_tol: float = 0.0,
) -> Iterator[LinkRound]:  # fmt: skip
    """Newton's method; a step that would not lower the objective enough is halved until it does.

    Up to `MOST_FEATURES` features a round takes the Hessian and its Cholesky factor. Beyond, conjugate gradients solve for the
    step, a pass each, as exactly as the length of the gradient deserves. Where the loss is convex and the data are large, the
    start is the solution over a sample (`aucdist.solvers.sample`). The likelihood of GEV with xi > 0 is not convex: there
    the Hessian's expectation takes its place (Fisher scoring), and the outcome is a stationary point.

    Parameters
    ----------
    blocks, lam, start, loss, fit_intercept, penalise_intercept, gradient_tol
        As in `lipschitz`; any loss.

    Yields
    ------
    LinkRound
        A pass for value and gradient, and one for the Hessian.
    """
    problem = LinkProblem(blocks.fresh(), loss, lam, fit_intercept, penalise_intercept)
    passes_before = 0
    if start is None and loss.convex:
        start, passes_before = _near(problem)
    point, passes = _first(problem, start)
    bound, passes = point, passes + passes_before
    while True:
        yield _round(point, bound, passes, gradient_tol)
        solver, cost = hessian_solver(problem, point)
        move, more = solver(-point.gradient)
        found = descend(problem, point, move)
        if found is None:
            return
        point, n_tries = found
        passes, bound = passes + cost + more + n_tries, _higher(bound, point)


def _near(problem: LinkProblem) -> tuple[np.ndarray | None, int]:
    """Return where to begin on large data, and the passes it took to find: the solution over a sample.

    The sample gets a larger lam where this one is so small that weights would follow its chance: from there Newton's steps
    would have to be halved again and again.
    """

    def rounds(drawn: Block) -> Iterator[LinkRound]:
        return newton(
            LocalBlocks([drawn]), max(problem.lam, ABOVE_NOISE * sample.noise(drawn)), loss=problem.loss,
            fit_intercept=problem.fit_intercept, penalise_intercept=problem.penalise_intercept,
        )  # fmt: skip

    known, passes = sample.begin(problem.blocks, rounds, NEAR)
    return np.append(known.w, known.intercept) if isinstance(known, LinkRound) else None, passes


def gradient(
    blocks: Blocks, lam: float, start: np.ndarray | None = None, *, loss: LinkLoss, fit_intercept: bool = True,
    penalise_intercept: bool = False, gradient_tol: float = 0.0,
) -> Iterator[LinkRound]:  # fmt: skip
    """Steepest descent; where the objective turns up again along the gradient is found by bisection.

    The paper's rival. The steps that are tried need the scores alone, and seven are tried in one reduction.

    Parameters
    ----------
    blocks, lam, start, loss, fit_intercept, penalise_intercept, gradient_tol
        As in `lipschitz`; any loss.

    Yields
    ------
    LinkRound
        Two passes: for the scores and how they move, and for value and gradient.
    """
    problem = LinkProblem(blocks.fresh(), loss, lam, fit_intercept, penalise_intercept)
    point, passes = _first(problem, start)
    bound, length = point, 1.0
    while True:
        yield _round(point, bound, passes, gradient_tol)
        move = -point.gradient
        length = _bisected(problem, point, move, length)
        found = descend(problem, point, move * length)
        if found is None:
            return
        point, n_tries = found
        passes, bound = passes + 1 + n_tries, _higher(bound, point)


def _first(problem: LinkProblem, start: np.ndarray | None) -> tuple[Point, int]:
    """Return where to begin, and the passes it took: at the start, unless the loss is infinite there."""
    if start is not None:
        point = problem.evaluate(start.astype(np.float64))
        if np.isfinite(point.primal):
            return point, 1
    return problem.evaluate(problem.origin()), 1 if start is None else 2


def _round(point: Point, lowest: Point, passes: int, gradient_tol: float) -> LinkRound:
    theta, slope = point.theta, point.gradient_norm
    return LinkRound(
        theta[:-1].copy(), point.primal, lowest.dual, passes, float(theta[-1]), slope, stationary=slope <= gradient_tol,
        primal_error=point.primal_error, dual_error=lowest.dual_error,
    )  # fmt: skip


def _higher(known: Point, found: Point) -> Point:
    """Return the point whose lower bound says more."""
    return found if found.dual - found.dual_error > known.dual - known.dual_error else known


def descend(problem: LinkProblem, point: Point, move: np.ndarray) -> tuple[Point, int] | None:
    """Return the first of the points at 1, 1/2, 1/4, ... of a move that is lower, and how many were tried; None if none is.

    Where the values can no longer be told apart, a shorter gradient is what counts.
    """
    slope = float(point.gradient @ move)
    for n_tries in range(1, MOST_HALVINGS + 1):
        found = problem.evaluate(point.theta + move)
        if found.primal <= point.primal + 1e-4 * slope and found.primal < point.primal:
            return found, n_tries
        same = abs(found.primal - point.primal) <= 1e-14 * point.primal
        if same and found.gradient_norm < point.gradient_norm:
            return found, n_tries
        move, slope = 0.5 * move, 0.5 * slope
        if same and n_tries > 1:
            return None
    return None


# ---- Lipschitz steps --------------------------------------------------------------------------------------------------


def _fixed_step(problem: LinkProblem, curvature: float) -> Solve:
    if problem.blocks.n_features <= MOST_FEATURES:
        return problem.solver(curvature * problem.second_moments(None))
    bound = problem.blocks.reduce(absolute_moments)["bound"] / problem.weight
    diagonal = curvature * bound + problem.penalty
    return lambda slope: slope / diagonal


def absolute_moments(block: Block, memory: object) -> tuple[object, Summary]:
    """Add up the diagonal that bounds the second moments: each row's absolute values, and a 1, times their sum."""
    size = abs(block.X)
    reach = block.weights() * (np.asarray(size.sum(axis=1, dtype=np.float64)).ravel() + 1.0)
    return memory, {"bound": np.append(size.T @ reach, reach.sum())}


# ---- Newton's steps ---------------------------------------------------------------------------------------------------


def hessian_solver(problem: LinkProblem, point: Point) -> tuple[Counted, int]:
    """Return the function that solves ``Hessian x = b`` at a point, and the passes it took to make it.

    What it returns is x and the passes that took. Up to `MOST_FEATURES` features a Cholesky factor gives x, beyond that
    conjugate gradients, the less exactly the longer the point's gradient is.
    """
    if problem.blocks.n_features <= MOST_FEATURES:
        moments = problem.second_moments(point.theta)
        moments[-1, -1] += LEAST_CURVATURE
        solve = problem.solver(moments)
        return lambda b: (solve(b), 0), 1
    blocks, penalty = problem.blocks.fresh(), problem.penalty
    diagonal = blocks.reduce(remember_curvature, point.theta, problem.loss)["diagonal"] / problem.weight + penalty
    diagonal[-1] += LEAST_CURVATURE
    share = min(0.1, np.sqrt(point.gradient_norm))
    return lambda b: _conjugate_gradients(problem, blocks, diagonal, b, share), 1


def _conjugate_gradients(
    problem: LinkProblem, blocks: Blocks, diagonal: np.ndarray, b: np.ndarray, share: float, most: int = 100
) -> tuple[np.ndarray, int]:
    """Solve until the rest is at most that share of b; the blocks hold the curvatures."""
    x, rest, n_products = np.zeros_like(b), b, 0
    z = rest / diagonal
    way, old = z, float(rest @ z)
    while n_products < most and np.linalg.norm(rest) > share * np.linalg.norm(b):
        product = blocks.reduce(curved_product, way)["product"] / problem.weight + problem.penalty * way
        product[-1] *= problem.fit_intercept
        n_products += 1
        step = old / float(way @ product)
        x, rest = x + step * way, rest - step * product
        z = rest / diagonal
        new = float(rest @ z)
        way, old = z + new / old * way, new
    return x, n_products


def remember_curvature(block: Block, memory: object, theta: np.ndarray, loss: LinkLoss) -> tuple[np.ndarray, Summary]:
    """Keep the rows' curvatures; the diagonal of their second moments."""
    curved = curvature_of(block, theta, loss)
    X = block.X
    squares = X.multiply(X).T @ curved if hasattr(X, "multiply") else np.einsum("ij,ij,i->j", X, X, curved)
    return curved, {"diagonal": np.append(squares, curved.sum())}


def curved_product(block: Block, memory: np.ndarray, way: np.ndarray) -> tuple[np.ndarray, Summary]:
    """The second moments times a vector."""
    scores, product = np.empty(block.n_samples), np.zeros(block.n_features)
    project(block.rows, np.ascontiguousarray(way[:-1]), scores)
    coefs = memory * (scores + way[-1])
    accumulate(block.rows, np.arange(block.n_samples), coefs, product)
    return memory, {"product": np.append(product, coefs.sum())}


# ---- bisection --------------------------------------------------------------------------------------------------------


def _bisected(problem: LinkProblem, point: Point, move: np.ndarray, length: float) -> float:
    """Return the length of a move at which the objective begins to rise, found from a guess."""
    problem.blocks.reduce(look, point.theta, move)
    penalty = problem.penalty

    def slopes(steps: np.ndarray) -> np.ndarray:
        of_loss = problem.blocks.reduce(slopes_along, steps, problem.loss)["slopes"] / problem.weight
        of_penalty: np.ndarray = (penalty * point.theta) @ move + steps * float((penalty * move) @ move)
        return of_loss + of_penalty

    doubled = length * 2.0 ** np.arange(-3, 4)
    rises = np.flatnonzero(slopes(doubled) >= 0.0)
    while len(rises) == 0:
        doubled = doubled * 64.0
        rises = np.flatnonzero(slopes(doubled) >= 0.0)
    high = float(doubled[rises[0]])
    low = float(doubled[rises[0] - 1]) if rises[0] > 0 else 0.0
    for _ in range(LOOKS):
        inside = np.linspace(low, high, 9)
        rises = np.flatnonzero(slopes(inside[1:-1]) >= 0.0)
        first = int(rises[0]) if len(rises) else 7
        low, high = float(inside[first]), float(inside[first + 1])
    return 0.5 * (low + high)


@dataclass(frozen=True, eq=False)
class Seen:
    """What a block keeps while steps are tried: scores, how they move, labels and weights of its rows."""

    scores: np.ndarray
    moves: np.ndarray
    y: np.ndarray
    weight: np.ndarray


def look(block: Block, memory: object, theta: np.ndarray, move: np.ndarray) -> tuple[Seen, Summary]:
    """Keep the scores, and how they move."""
    kept = np.empty((2, block.n_samples))
    for k, vector in enumerate((theta, move)):
        project(block.rows, np.ascontiguousarray(vector[:-1]), kept[k])
        kept[k] += vector[-1]
    return Seen(kept[0], kept[1], block.y, block.weights()), {}


@without_rows
def slopes_along(block: int, memory: Seen, steps: np.ndarray, loss: LinkLoss) -> tuple[Seen, Summary]:
    """The derivative of the loss along the move, at several steps."""
    out = np.zeros(len(steps))
    along(memory.scores, memory.moves, memory.y, memory.weight, loss.terms, steps, out)
    return memory, {"slopes": out}
