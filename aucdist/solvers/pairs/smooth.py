"""Losses of pairs that have no corners, over all positive-negative pairs, by L-BFGS.

Minimises ``P(w) = lam/2 |w|^2 + mean over all pairs of loss(w.(x_i - x_j))``, a pair weighing w_i w_j where rows have weights.
The value and the gradient are exact, by the sorted scores of the anchors, the rows of the smaller class
(`aucdist.solvers.pairs.problem`). As a mean over very many pairs P looks smooth to L-BFGS (`aucdist.solvers.lbfgs`) even where
the loss's second derivative jumps.

**When to stop.** Where the loss is convex, P is strongly convex by its penalty, so no weights take it below ``P(w) - |g|^2 / (2
lam)``, g being its gradient: that is the lower bound. Where the loss is not convex, it is the difference of two convex
functions. With the tangents at w in place of the second one, P becomes a convex function that lies nowhere below it and touches
it at w, with the same gradient. So the same figure says what a step of the convex-concave procedure (Yuille & Rangarajan, 2003)
could gain from w; it says nothing of other weights, and the fit ends at a stationary point where it is small. Over a cone of
signs it is the most that ``g.(v - w) + lam/2 |v - w|^2`` falls below 0 in the cone, at the projection of ``w - g / lam``.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, LocalBlocks
from aucdist.solvers import lbfgs, sample
from aucdist.solvers.base import Round
from aucdist.solvers.cone import project_onto_cone
from aucdist.solvers.lbfgs import Point
from aucdist.solvers.pairs.groups import PairGroups
from aucdist.solvers.pairs.loss import PairLoss
from aucdist.solvers.pairs.objective import rounding_of_pairs
from aucdist.solvers.pairs.problem import PairProblem
from aucdist.solvers.rounding import higher

NEAR = 1e-2
"""The tolerance of the fit to a sample."""


@dataclass(frozen=True)
class MajorantRound(Round):
    """A round, and by how much a convex majorant could still decrease.

    Attributes
    ----------
    majorant_gap : float
        ``|gradient|^2 / (2 lam)`` as a share of the objective; the relative gap itself if the loss is convex.
    """

    majorant_gap: float


class SmoothPairProblem(PairProblem):
    """The objective of a smooth loss over all pairs.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be there.
    signs : ndarray of shape (n_features,), int8, optional
        Of the weights, see `aucdist.solvers.cone`.
    """

    def __init__(
        self, blocks: Blocks, loss: PairLoss, lam: float, groups: PairGroups | None = None, signs: np.ndarray | None = None
    ):  # fmt: skip
        super().__init__(blocks, loss, groups)
        self.rounding, self.lam, self.signs = rounding_of_pairs(blocks, groups), lam, signs

    def evaluate(self, w: np.ndarray) -> Point:
        """Return value and gradient of the objective at w."""
        value, gradient = self.value_and_gradient(w)
        return Point(w, value + 0.5 * self.lam * float(w @ w), gradient + self.lam * w)

    def errors(self, point: Point) -> tuple[float, float]:
        """Return bounds on the rounding errors of the objective, and of the bound that the gradient gives for a convex one.

        A slope of a pair is at most 1 plus its scores, and changes with them at a rate of at most 1; the sums hold squares.
        """
        rounding, size = self.rounding, 1.0 + 2.0 * self.rounding.reach(point.w)
        apart = 2.0 * rounding.score(point.w)
        of_value = apart * size + 2.0 * rounding.over_rows * (1.0 + size * size)
        of_value += rounding.penalty(point.w, point.value)
        of_slope = (2.0 * apart + 4.0 * rounding.over_rows * size) * rounding.largest
        return of_value, of_value + rounding.half_square(point.gradient, of_slope) / self.lam

    def majorant_gap(self, point: Point) -> float:
        """Return by how much a convex majorant could decrease from a point within the cone, as a share of the objective."""
        if self.signs is None:
            return float(point.gradient @ point.gradient) / (2.0 * self.lam * point.value)
        way = project_onto_cone(point.w - point.gradient / self.lam, self.signs) - point.w
        return -float(point.gradient @ way + 0.5 * self.lam * (way @ way)) / point.value


def pair_lbfgs(
    blocks: Blocks,
    lam: float,
    start: np.ndarray | None = None,
    *,
    loss: PairLoss,
    tol: float = 0.0,
    groups: PairGroups | None = None,
    signs: np.ndarray | None = None,
) -> Iterator[MajorantRound]:
    """Minimise by L-BFGS. Use it for losses without corners; the pairwise hinge has corners, and `AllPairs`.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be there.
    start : ndarray of shape (n_features,), optional
        By default the solution over a sample; zero for small data.
    tol : float
        For a loss that is not convex: end if no convex majorant that touches the objective at the weights is lower anywhere by
        more than this share.
    groups : PairGroups, optional
        Where pairs are within groups.
    signs : ndarray of shape (n_features,), int8, optional
        Of the weights, see `aucdist.solvers.cone`.

    Yields
    ------
    MajorantRound
        The weights, which improve from round to round. Each point that was evaluated is a pass. The dual value is 0 if the loss
        is not convex.
    """

    def on_sample(drawn: Block) -> Iterator[Round]:
        rows = LocalBlocks([drawn])
        within = None if groups is None else groups.of(rows)
        return pair_lbfgs(rows, lam, loss=loss, tol=NEAR, groups=within, signs=signs)

    passes = 1
    if start is None:
        n_groups = None if groups is None else groups.n_to_draw
        last, more = sample.solve_on_sample(blocks, on_sample, NEAR if loss.convex else 0.0, n_groups)
        start, passes = (None if last is None else last.w), passes + more
    problem = SmoothPairProblem(blocks, loss, lam, groups, signs)
    first = problem.evaluate(
        np.zeros(blocks.n_features) if start is None else project_onto_cone(start.astype(np.float64), signs)
    )
    yield from descend(problem, first, tol=tol, passes=passes)


def descend(problem: SmoothPairProblem, point: Point, *, tol: float, passes: int) -> Iterator[MajorantRound]:
    """Minimise by L-BFGS from a point that `passes` passes led to; rounds and `tol` are those of `pair_lbfgs`."""
    bound, convex = (0.0, 0.0), problem.loss.convex
    for found, n_tries in lbfgs.descend(problem.evaluate, point, problem.signs):
        passes, gap = passes + n_tries, problem.majorant_gap(found)
        of_value, of_dual = problem.errors(found)
        if convex:
            bound = higher(bound, (found.value * (1.0 - gap), of_dual))
        yield MajorantRound(
            found.w, found.value, bound[0], passes, gap, stationary=not convex and gap <= tol,
            primal_error=of_value, dual_error=bound[1],
        )  # fmt: skip
