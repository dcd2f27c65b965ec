"""The smoothed ramp over the highest-scoring negatives: the partial AUC itself, by L-BFGS.

Minimises ``lam/2 |w|^2 + max over u of (1/(n_pos q)) sum_j u_j sum_i ramp(w.(x_i - x_j))``, u in [0, 1] with a sum of q =
beta n_neg: the loss of `aucdist.solvers.pairs.share` with the ramp of `aucdist.solvers.pairs.ramp` in place of the hinge. A
pair that is lost costs 1, by however much, so positives that no weights can rank among the first hardly count. So where the
hinge's minimum collapses to w = 0 there may still be good weights.

**Start.** The result depends on it. The certified minimum of the hinge over the same negatives, and that over all pairs, are each
improved by a few steps; the better one goes on.

**When to stop.** For each u the objective is the difference of two convex functions, and has the majorant of
`aucdist.solvers.pairs.smooth`. The largest of these over all u is convex, lies nowhere below the objective, touches it at w, and
has the gradient of the present u among its slopes there. So the majorant gap says the same as without u. But where scores tie at
the boundary the objective has a corner, and there it may stay above `tol` although no step goes lower: the fit then ends as
``finished``.
"""

import itertools
from collections.abc import Iterator
from dataclasses import asdict, replace

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, LocalBlocks, Summary, without_rows
from aucdist.solvers import sample
from aucdist.solvers.base import Round, Solver, solve
from aucdist.solvers.cone import project_onto_cone
from aucdist.solvers.lbfgs import Point
from aucdist.solvers.pairs.all_pairs import AllPairs
from aucdist.solvers.pairs.anchors import Anchors, one_run
from aucdist.solvers.pairs.groups import pair_groups, refuse_share
from aucdist.solvers.pairs.loss import PairLoss
from aucdist.solvers.pairs.problem import PairMemory, add_up_gradient, sweep_pairs
from aucdist.solvers.pairs.ramp import RAMP, pair_ramp
from aucdist.solvers.pairs.share import TopNegatives
from aucdist.solvers.pairs.smooth import NEAR, MajorantRound, SmoothPairProblem, descend
from aucdist.solvers.pairs.top import SHARE, Threshold, TopShare, share_of, threshold_of

START_GAP, START_PASSES = 0.01, 200
"""The relative gap to which a start is certified, and the most passes for it."""

FIRST_ROUNDS = 10
"""Each start is improved by so many steps before the better one is chosen."""


@without_rows
def sweep_top(
    block: int, memory: PairMemory, loss: PairLoss, anchors: Anchors, threshold: Threshold
) -> tuple[PairMemory, Summary]:
    """Sum the loss over the pairs of the rows above the threshold with all anchors."""
    top = np.flatnonzero(memory.scores >= threshold.score)
    scores = memory.scores[top]
    weights, found = memory.weights[top] * threshold.parts(scores), np.empty(len(top))
    slope_sums, coefs = loss.zero_slope_sums(anchors.n_gaps), np.zeros(len(memory.scores))
    total = loss.loss_and_row_slopes(scores, weights, one_run(len(top)), anchors, found, slope_sums)
    coefs[top] = found
    return replace(memory, coefs=coefs), {"loss": total, "slope_sums": slope_sums}


class TopSmoothProblem(SmoothPairProblem):
    """The objective of a smooth loss over the pairs of the highest-scoring negatives.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be there.
    loss : PairLoss
        Falling with the margin.
    """

    def __init__(self, blocks: Blocks, loss: PairLoss, lam: float, share: TopShare, signs: np.ndarray | None = None):
        super().__init__(blocks, loss, lam, signs=signs)
        self.share = TopNegatives(blocks, share, self.rounding)
        self.mass = self.share.mass

    def value_and_gradient(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the largest mean loss at w, float64 of shape (n_features,), and its gradient for the negatives that count."""
        scores = self.score(w)
        weights = self.weights
        if self.share.are_anchors:
            weights = weights * threshold_of(-scores, weights, self.share.wanted).parts(-scores)
        anchors, order = self.sort_anchors(scores, weights)
        threshold = self.share.threshold(self.blocks, None)
        if threshold is None:
            swept = self.blocks.reduce(sweep_pairs, self.loss, anchors)
        else:
            swept = self.blocks.reduce(sweep_top, self.loss, anchors, threshold)
        coefs = self.loss.anchor_slopes(swept["slope_sums"], anchors, weights, order)
        gradient = self.blocks.reduce(add_up_gradient, coefs, self.offsets)["gradient"]
        return float(swept["loss"] / self.mass), gradient * (self.sign / self.mass)

    def errors(self, point: Point) -> tuple[float, float]:
        """Return bounds on the rounding errors, with those of the parts of the rows at the boundary."""
        of_value, of_dual = super().errors(point)
        size = 1.0 + 2.0 * self.rounding.reach(point.w)
        more = self.share.part_error * size * size
        return of_value + more, of_dual + more


def top_ramp(
    blocks: Blocks, lam: float, start: np.ndarray | None = None, *, share: TopShare, tol: float = 0.0,
    signs: np.ndarray | None = None,
) -> Iterator[MajorantRound]:  # fmt: skip
    """Minimise by L-BFGS until a stationary point.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be there.
    start : ndarray of shape (n_features,), optional
        By default the better of two certified minima of the hinge.
    tol, signs
        As for `pair_lbfgs`.

    Yields
    ------
    MajorantRound
        The weights, which improve from round to round; the dual value is 0.
    """
    problem, passes = TopSmoothProblem(blocks, RAMP, lam, share, signs), 0
    if start is None:
        start, passes = _start(blocks, lam, share, signs)
    if start is not None:
        point = problem.evaluate(project_onto_cone(start.astype(np.float64), signs))
        yield from descend(problem, point, tol=tol, passes=passes + 1)
        return
    starts, passes = hinge_minima(blocks, lam, share, signs)
    tried = []
    for w in starts:
        rounds = descend(problem, problem.evaluate(w), tol=tol, passes=1)
        *_, last = itertools.islice(rounds, FIRST_ROUNDS)
        tried.append(last)
        passes += last.passes
    best = min(tried, key=lambda last: last.primal)
    yield from descend(problem, problem.evaluate(best.w), tol=tol, passes=passes + 1)


def _start(blocks: Blocks, lam: float, share: TopShare, signs: np.ndarray | None) -> tuple[np.ndarray | None, int]:
    """Return on large data the solution over a sample, and what it cost in passes; else None."""
    part = TopShare(share.weight(blocks) / blocks.weight_neg)

    def on_sample(drawn: Block) -> Iterator[Round]:
        return top_ramp(LocalBlocks([drawn]), lam, share=part, tol=NEAR, signs=signs)

    last, passes = sample.solve_on_sample(blocks, on_sample, 0.0)
    return (None if last is None else last.w), passes


def hinge_minima(
    blocks: Blocks, lam: float, share: TopShare, signs: np.ndarray | None = None
) -> tuple[list[np.ndarray], int]:
    """Return the minima of the hinge over the highest-scoring negatives and over all pairs, and how many passes both took.

    A minimum of zero, to which the first collapses where it separates nothing, is left out unless both are.
    """
    found, passes = [], 0
    for of_share in (asdict(share), {}):
        rounds = AllPairs().rounds(blocks, lam, signs=signs, **of_share)
        solution = solve(rounds, tol=START_GAP, max_passes=START_PASSES)
        found.append(solution.w)
        passes += solution.passes
    return [w for w in found if w.any()] or found[:1], passes


class RampLBFGS(Solver):
    """L-BFGS to a stationary point, over all pairs (`pair_ramp`) or over those of the highest-scoring negatives (`top_ramp`)."""

    name = "lbfgs"
    objective = "pairwise ramp"
    by_sums = True
    takes = (*SHARE, "group_weight", "grade_weight")
    groups = True
    takes_tol = True
    signs = True
    ignores_zero_weight = True
    takes_codes = True

    def rounds(
        self,
        blocks: Blocks,
        lam: float,
        start: np.ndarray | None = None,
        *,
        tol: float = 0.0,
        max_fpr: float | None = None,
        max_false_positives: int | None = None,
        signs: np.ndarray | None = None,
        group_weight: str | None = None,
        grade_weight: str | None = None,
    ) -> Iterator[MajorantRound]:
        """Yield the weights, each better than the last; see `pair_lbfgs`, `TopShare` and `pair_groups` for the keywords."""
        share, groups = share_of(max_fpr, max_false_positives), pair_groups(blocks, group_weight, grade_weight)
        if share is None:
            return pair_ramp(blocks, lam, start, tol=tol, groups=groups, signs=signs)
        refuse_share(groups)
        return top_ramp(blocks, lam, start, share=share, tol=tol, signs=signs)
