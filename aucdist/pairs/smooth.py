"""Minimise smooth losses over all positive-negative pairs by L-BFGS.

Minimises ``P(w) = lam/2 |w|^2 + mean over all pairs of loss(w.(x_i - x_j))``, where a pair weighs w_i w_j if rows have
weights. The value and the gradient are exact: they are computed from the sorted scores of the anchors, the rows of the
smaller class (`aucdist.pairs.problem`). Because P is a mean over very many pairs, it is smooth enough for
L-BFGS (`aucdist.solvers.lbfgs`) even if the second derivative of the loss jumps.

**When to stop.** If the loss is convex, P is strongly convex because of its penalty. With the gradient g, no weights
have an objective below ``P(w) - |g|^2 / (2 lam)``, which is the lower bound. A loss that is not convex is the
difference of two convex functions. If the second one is replaced by its tangents at w, the result is a convex function
that is nowhere below P and equals it at w, with the same gradient. So ``|g|^2 / (2 lam)`` bounds what a step of the
convex-concave procedure (Yuille & Rangarajan, 2003) could gain from w. It says nothing about other weights, and the fit
ends at a stationary point when it is small. Over a cone of signs it is the largest decrease of
``g.(v - w) + lam/2 |v - w|^2`` below 0 in the cone, at the projection of ``w - g / lam``.

**The smoothed ramp** (`PairRamp`) is a smoothed version of 1 minus the step that the AUC counts, with a width of 1 on either
side. As the weights grow, the mean approaches 1 - AUC. Unlike with a hinge, it does not matter by how much a pair is in the
wrong order. But P is not convex: there is no lower bound, and the result is a stationary point, which depends on the start.
After Herschtal & Raskutti, "Optimising area under the ROC curve using gradient descent" (ICML 2004), who smooth the step with a
sigmoid. The departures from the paper are a piecewise quadratic instead of the sigmoid, with which the sum over all pairs takes
a sort and no sample of pairs; a penalty, which decides how wide the smoothing is; and L-BFGS. The ramp is the difference of two
convex functions, ``h(1 - m) + h(-1 - m) - 2 h(-m)`` with h(t) = max(0, t)^2 / 2.

**Over the highest-scoring negatives**, the partial AUC itself, the objective is the loss of
`aucdist.pairs.top_negatives` with the ramp in place of the hinge. A pair in the wrong order costs 1, whatever
its margin, so positives that no weights can rank at the top hardly count. If the minimum of the hinge collapses to
w = 0, there may still be good weights. The certified minimum of the hinge over the same negatives, and that over all
pairs, are each improved by a few steps, and the fit continues from the better one. For each choice of negatives the
objective has the majorant above. The largest of these is convex, is nowhere below the objective, equals it at w, and
has the gradient of the current choice among its slopes there, so the same bound holds. But if scores tie at the
boundary, the objective has a corner, where the bound may stay above `tol` although no step decreases the objective. The
fit then ends as ``max-steps``.
"""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy import ndarray

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks
from aucdist.errors import InputError
from aucdist.pairs.cutting_planes import minimise_hinge
from aucdist.pairs.loss import HINGE, RAMP, PairLoss
from aucdist.pairs.penalty import L2
from aucdist.pairs.problem import PairObjective, PairProblem, rounding_of_pairs
from aucdist.pairs.top_negatives import TOP_CONSTRAINTS, CountedNegatives
from aucdist.parameters import frozen
from aucdist.solvers import lbfgs, sample
from aucdist.solvers.base import Round, Solver, solve
from aucdist.solvers.lbfgs import Point
from aucdist.solvers.rounding import higher
from aucdist.solvers.signs import project_onto_cone

SAMPLE_GAP_OF_RAMP = 1e-2
"""The tolerance of the fit to a sample."""

START_GAP = 0.01
"""The fit starts at the minimum of the hinge, which is certified to this relative gap."""
START_PASSES = 200
"""The largest number of passes for this minimum."""

FIRST_ROUNDS = 10
"""Each start is improved by this many steps before the better one is chosen."""


@frozen
class MajorantRound(Round):
    """A round, and the amount by which a convex majorant could still decrease.

    Attributes
    ----------
    majorant_gap : float
        ``|gradient|^2 / (2 lam)`` as a share of the objective. If the loss is convex, it is the relative gap.
    """

    majorant_gap: float


class SmoothPairProblem(PairProblem):
    """The objective of a smooth loss with an L2 penalty, over all pairs or those of the highest-scoring negatives.

    Parameters
    ----------
    blocks : Blocks
        The rows, of both classes.
    objective : PairObjective
        The objective. If only a part of the negatives counts, the loss must decrease with the margin.
    """

    def __init__(self, blocks: Blocks, objective: PairObjective):
        if not isinstance(objective.penalty, L2):
            raise InputError(
                f"L-BFGS minimises smooth losses with the penalty 'l2', not with {objective.penalty.name!r}: leave `penalty` out"
            )
        negatives = CountedNegatives(blocks, objective.top_negatives)
        self.rounding = rounding_of_pairs(blocks, objective.groups)
        super().__init__(blocks, objective.loss, objective.groups, negatives)
        self.lam, self.signs = objective.penalty.lam, objective.penalty.signs
        self.weight_error = negatives.weight_error(blocks, self.rounding)

    def evaluate(self, w: ndarray) -> Point:
        """Return the value and the gradient of the objective at w. If all negatives count, this takes three reductions."""
        total, slopes = self.sweep(w)
        value = float(total / self.pair_weight) + 0.5 * self.lam * float(w @ w)
        return Point(w, value, self.gradient(slopes) + self.lam * w)

    def errors(self, point: Point) -> tuple[float, float]:
        """Return bounds on the rounding errors of the objective, and of the lower bound that the gradient gives if it is convex.

        The slope of a pair is at most 1 plus its scores, and changes with them at a rate of at most 1, both times the curvature
        of the loss. The sums contain squares.
        """
        rounding, size, rate = self.rounding, 1.0 + 2.0 * self.rounding.largest_score(point.w), self.loss.curvature
        pair_score_error = 2.0 * rounding.score(point.w)
        value_error = rate * (pair_score_error * size + 2.0 * rounding.over_rows * (1.0 + size * size))
        value_error += rounding.penalty(point.w, point.value)
        slope_error = rate * (2.0 * pair_score_error + 4.0 * rounding.over_rows * size) * rounding.largest
        share_error = rate * self.weight_error * size * size  # rounding of the share with which the boundary rows count
        dual_error = value_error + rounding.half_square(point.gradient, slope_error) / self.lam
        return value_error + share_error, dual_error + share_error

    def majorant_gap(self, point: Point) -> float:
        """Return by how much a convex majorant could decrease from a point within the cone, as a share of the objective."""
        if self.signs is None:
            return float(point.gradient @ point.gradient) / (2.0 * self.lam * point.value)
        direction = project_onto_cone(point.w - point.gradient / self.lam, self.signs) - point.w
        return -float(point.gradient @ direction + 0.5 * self.lam * (direction @ direction)) / point.value


def pair_lbfgs(
    blocks: Blocks, objective: PairObjective, start: ndarray | None = None, *, tol: float = 0.0
) -> Iterator[MajorantRound]:
    """Minimise by L-BFGS. Use it for losses without corners. The pairwise hinge has corners, so `AllPairs` minimises it.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be there.
    objective : PairObjective
        With an L2 penalty; an InputError refuses others.
    start : ndarray of shape (n_features,), optional
        By default the solution over a sample; for small data zero, or if a fraction of the negatives counts the better of two
        certified minima of the hinge.
    tol : float
        For a loss that is not convex: end if no convex majorant that touches the objective at the weights is lower anywhere by
        more than this share.

    Yields
    ------
    MajorantRound
        The weights, which improve from round to round. Each point that was evaluated is a pass. The dual value is 0 if the loss
        is not convex.
    """
    passes, from_hinge = 0, False

    def on_sample(drawn: Block) -> Iterator[Round]:
        """Return the rounds over a sample."""
        return pair_lbfgs(*objective.on_sample(blocks, drawn), tol=SAMPLE_GAP_OF_RAMP)

    if start is None:
        last, passes = sample.solve_on_sample(
            blocks, on_sample, SAMPLE_GAP_OF_RAMP if objective.loss.convex else 0.0, objective.n_groups_with_pairs
        )
        start = None if last is None else last.w
        from_hinge = last is None and objective.top_negatives is not None
    problem = SmoothPairProblem(blocks, objective)
    if from_hinge:
        minima, passes = hinge_minima(blocks, objective)
        results = []
        for w in minima:
            *_, last = itertools.islice(pair_descent(problem, problem.evaluate(w), tol=tol, passes=1), FIRST_ROUNDS)
            results.append(last)
            passes += last.passes
        start = min(results, key=lambda last: last.primal).w
    first = problem.evaluate(
        np.zeros(blocks.n_features) if start is None else project_onto_cone(start.astype(np.float64), problem.signs)
    )
    yield from pair_descent(problem, first, tol=tol, passes=passes + 1)


def hinge_minima(blocks: Blocks, objective: PairObjective) -> tuple[list[ndarray], int]:
    """Return the minima of the hinge over the highest-scoring negatives and over all pairs, and the number of passes for both.

    A minimum at w = 0 is left out, unless both are at 0. The first one is at 0 if these negatives cannot be separated from the
    positives.
    """
    minima, passes = [], 0
    for top_negatives in (objective.top_negatives, None):
        rounds = minimise_hinge(blocks, replace(objective, loss=HINGE, top_negatives=top_negatives))
        solution = solve(rounds, tol=START_GAP, max_passes=START_PASSES)
        minima.append(solution.w)
        passes += solution.passes
    return [w for w in minima if w.any()] or minima[:1], passes


def pair_descent(problem: SmoothPairProblem, point: Point, *, tol: float, passes: int) -> Iterator[MajorantRound]:
    """Minimise by L-BFGS from a point that took `passes` passes. Rounds and `tol` are those of `pair_lbfgs`."""
    bound, convex = (0.0, 0.0), problem.loss.convex
    for better, n_tries in lbfgs.descend(problem.evaluate, point, problem.signs):
        passes, gap = passes + n_tries, problem.majorant_gap(better)
        value_error, dual_error = problem.errors(better)
        if convex:
            bound = higher(bound, (better.value * (1.0 - gap), dual_error))
        yield MajorantRound(
            better.w, better.value, bound[0], passes, gap, stationary=not convex and gap <= tol,
            primal_error=value_error, dual_error=bound[1],
        )  # fmt: skip


class PairLBFGS(Solver):
    """L-BFGS for a smooth loss of pairs, over all pairs or over those of the highest-scoring negatives.

    A subclass has its own `loss` and `objective`, and sets `accepts_groups` if the loss supports pairs within groups.

    Attributes
    ----------
    loss : PairLoss
        The loss.
    """

    name = "lbfgs"
    loss: ClassVar[PairLoss]
    takes = tuple(TOP_CONSTRAINTS)
    uses_tol = accepts_signs = ignores_zero_weight = accepts_codes = True

    def rounds(
        self, blocks: Blocks, lam: float, start: ndarray | None = None, *, tol: float = 0.0, **options: Any
    ) -> Iterator[MajorantRound]:
        """Yield the rounds of a fit, each with better weights than the one before.

        Parameters
        ----------
        blocks : Blocks
            The rows, of both classes.
        lam : float
            The regularisation strength.
        start : ndarray of shape (n_features,), optional
            The weights to start from.
        tol : float, default=0.0
            As for `pair_lbfgs`.
        **options
            As for `PairObjective.of`.

        Yields
        ------
        MajorantRound
        """
        return pair_lbfgs(blocks, PairObjective.of(blocks, lam, self.loss, **options), start, tol=tol)


class RampLBFGS(PairLBFGS):
    """L-BFGS to a stationary point of the mean of the smoothed ramp."""

    objective, loss = "pairwise ramp", RAMP
    takes = (*PairLBFGS.takes, "group_weight", "grade_weight")
    accepts_groups = True
