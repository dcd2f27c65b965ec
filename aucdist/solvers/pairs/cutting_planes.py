"""The optimised cutting plane method over positive-negative pairs, with its certificate.

Minimises ``P(w) = penalty(w) + mean over the pairs that count of max(0, 1 - w.(x_i - x_j))``, a pair weighing w_i w_j where rows
have weights. The problem has parts, each of which may be another one:

* the penalty and the cone of signs (`aucdist.solvers.pairs.penalty`);
* which negatives count (`aucdist.solvers.pairs.share`): all, or the highest-scoring ones;
* how the anchors, the rows of the smaller class, reach the blocks: their scores (`aucdist.solvers.pairs.cuts`), or cells of them
  where they are many (`aucdist.solvers.pairs.cell_cuts`), or those of a row's group (`aucdist.solvers.pairs.group_cuts`).

After Franc & Sonnenburg, "Optimized Cutting Plane Algorithm for Large-Scale Risk Minimization" (JMLR 10, 2009), carried
over to pairs. Departures: the sum over pairs goes through the sorted scores of the anchors; the rows of the larger class are
divided into components, each with its own cuts, which saves rounds where the classes are very unequal; the next target is the
bundle's minimiser near the best point (a proximal term whose weight depends on the steps of the line search), which saves rounds
where many pairs make the objective smooth; the line search takes the zero of a chord of the exact derivative at a few steps, all
of them from one reduction.

A penalty with corners leaves features out, and a point between two others has the features of both. So there is no line search
then: a round takes cuts at the minimiser of their lower model plus penalty and ``mu/2 |w - c|^2``, c being the best point so far.
The weight mu depends on how well the model predicted the value (after Kiwiel, "Proximity control in bundle methods for convex
nondifferentiable minimization", Mathematical Programming 46, 1990).
"""

from collections.abc import Iterator

import numpy as np

from aucdist.engine.blocks import Blocks
from aucdist.solvers.base import Round
from aucdist.solvers.cone import project_onto_cone
from aucdist.solvers.pairs.cell_cuts import CellCuts
from aucdist.solvers.pairs.cuts import PairCuts
from aucdist.solvers.pairs.group_cuts import GroupCuts
from aucdist.solvers.pairs.groups import PairGroups, refuse_share
from aucdist.solvers.pairs.hinge import HINGE
from aucdist.solvers.pairs.loss import CutPairLoss
from aucdist.solvers.pairs.objective import rounding_of_pairs
from aucdist.solvers.pairs.penalty import L2, Penalty
from aucdist.solvers.pairs.share import AllNegatives, TopNegatives
from aucdist.solvers.pairs.top import TopShare
from aucdist.solvers.rounding import EPS, higher

MOST_ANCHORS = 2**16
"""Of more rows in the smaller class, cells are sent; up to here their scores, which are exact."""

BEYOND = 0.03
"""The next cut is taken this share of the rest of the way beyond the line search's point (Franc & Sonnenburg's mu, 0.1)."""

STEPS = np.array([0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.45, 0.65, 0.9, 1.3])
"""The steps at which the line search takes the derivative, in units of the way to the target."""

TOO_SHORT, LONG = 0.05, 0.3
"""A line search that ends below the first shows that the target was too far off; above the second, that it could be further."""

TOO_SHORT_OF_TOP, LONG_OF_TOP = 0.02, 0.12
"""The same where few negatives count: the loss has more corners, and targets farther off take fewer passes."""

FEW_ROWS, SHARE_OF_ROWS, ROWS_BY_GAP = 2_000, 1 / 25, 10.0
"""The line search uses a sample of the rows with active pairs: at least so many, so large a share, and so many over the gap."""

FINEST = 8.0
"""At most so many times as many rows, twice as many after each cut that found no lower value: a sample has its own minimum."""

PATIENCE = 100
"""Passes without any bound above 0 after which cuts that differ by rounding only end the fit."""

PREDICTED = 0.5
"""Penalties with corners: if at least this share of the predicted decrease was reached, the next point may be farther off."""

CLOSE = 0.03
"""If the predicted decrease is less than this share of the gap, the points are too close together."""

MOST_NULL_STEPS = 4
"""After so many rounds with hardly a decrease, the points come closer."""


class CuttingPlanes:
    """The best point and the cuts so far: `rounds` for one lam after another start from them.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be there.
    start : ndarray of shape (n_features,) or None
        Zero by default.
    penalty : Penalty, default=L2()
        Its signs hold for all points, and for the minimum and the bound. `rounds` sets its lam.
    share : TopShare or None, default=None
        Which negatives count; None for all.
    loss : CutPairLoss, default=HINGE
        Falling with the margin, so that the negatives of the highest scores have the largest sums.
    groups : PairGroups, optional
        Where pairs are within groups; all negatives count, and scores of anchors are exact, however many.
    kind : type, optional
        `PairCuts` or `CellCuts`; by default by the number of anchors.

    Attributes
    ----------
    w : ndarray of shape (n_features,), float64
        The best point.
    cuts : PairCuts
    bundle : Bundle
    """

    def __init__(
        self, blocks: Blocks, start: np.ndarray | None = None, *, penalty: Penalty | None = None, share: TopShare | None = None,
        loss: CutPairLoss = HINGE, groups: PairGroups | None = None, kind: type[PairCuts] | None = None,
    ):  # fmt: skip
        self.penalty = L2() if penalty is None else penalty
        self.rounding = rounding_of_pairs(blocks, groups)
        self.share = AllNegatives(blocks) if share is None else TopNegatives(blocks, share, self.rounding)
        w = (
            np.zeros(blocks.n_features)
            if start is None
            else project_onto_cone(start.astype(np.float64), self.penalty.signs)
        )
        if groups is not None:
            refuse_share(groups if share is not None else None)
            kind = GroupCuts
        elif kind is None:
            kind = CellCuts if min(blocks.n_pos, blocks.n_neg) > MOST_ANCHORS else PairCuts
        self.cuts = kind(blocks, loss, self.share, w, sparse=self.penalty.has_corners, groups=groups)
        self.bundle = self.share.new_bundle(self.cuts.n_components, blocks.n_features)
        self.w, self.best_scores = w, self.cuts.first_scores
        self.best_loss, self.slack, self.gap = np.inf, 0.0, 1.0
        self.best_error = self.target_error = self.rounding.score(w)
        self._softness, self._n_taken, self._fineness = 1.0, 0, 1.0

    @property
    def primal(self) -> float:
        """The objective at the best point, or above it by `slack` at most."""
        return self.best_loss + self.penalty.value(self.w)

    @property
    def primal_error(self) -> float:
        """A bound on the rounding error of `primal`: of the scores, two to a pair, of the sums, and of the parts of rows."""
        reach = self.rounding.reach(self.w)
        of_pairs = self.rounding.pair_hinge(self.w, self.best_loss, self.best_error)
        of_sums = of_pairs + self.rounding.penalty(self.w, self.penalty.value(self.w)) + self.cuts.value_error(reach)
        return of_sums + self.share.part_error * (1.0 + self.best_loss + 2.0 * reach)

    def bound_error(self, bound: float, w: np.ndarray) -> float:
        """Return a bound on the rounding error of the bundle's bound, where w is the combination's weights."""
        bundle = self.bundle
        return self.penalty.bound_error(bound, bundle.height, w, bundle.n_points, self.rounding, self.share.part_error)

    def rounds(self, lam: float, towards: np.ndarray | None = None) -> Iterator[Round]:
        """Solve for lam, from the best point and the cuts so far; a first line search goes towards a point, if one is given."""
        self.penalty, before = self.penalty.at(lam), self._n_taken
        if self.bundle.n_points == 0:
            self.take_cuts(0.0, self.best_scores, self.w)
        if towards is not None:
            self._advance(towards)
        walk = self._proximal_steps() if self.penalty.has_corners else self._line_searches()
        dual, error, left = 0.0, 0.0, np.inf  # the objective is nowhere below 0
        for bound, w in walk:
            dual, error = higher((dual, error), (bound, self.bound_error(bound, w)))
            left_before, left = left, self.primal - dual
            self.gap = left / self.primal
            # A cut below the loss may leave the bundle's minimiser where it is; a hard one does not.
            self._softness = min(1.0, 4.0 * self._softness) if left < left_before else 0.25 * self._softness
            passes = self._n_taken - before
            yield Round(
                self.w.copy(), self.primal, dual, passes, primal_error=self.primal_error, dual_error=error, slack=self.slack,
                stuck=self._is_stuck(dual, passes),
            )  # fmt: skip

    def _line_searches(self) -> Iterator[tuple[float, np.ndarray]]:
        """Yield the bundle's bound and the weights it comes from, and then take cuts beyond the end of a line search."""
        # Where few negatives count, the first cuts say little about weights far off: where the minimum is near 0, the bundle's
        # minimiser is a thousand times too long, and it costs most of the passes to come back from there.
        mu = self._first_weight() if self.share.is_part and not self.w.any() else 0.0
        too_short, long = (TOO_SHORT_OF_TOP, LONG_OF_TOP) if self.share.is_part else (TOO_SHORT, LONG)
        nulls = 0
        while True:
            target, bound = self.bundle.best_combination(self.penalty)
            yield bound, target
            if mu > 0.0:
                target = self.bundle.proximal_point(self.penalty, self.w, mu)
            step = self._advance(target)
            nulls = nulls + 1 if step == STEPS[0] else 0
            if step > long or nulls > 2:
                # The target may be further off; or three line searches found no descent, and a nearer target would not
                # correct the bundle.
                mu = 0.5 * mu
            elif step < too_short:
                mu = max(2.0 * mu, self.penalty.lam)

    def _proximal_steps(self) -> Iterator[tuple[float, np.ndarray]]:
        """Yield the bundle's bound and the weights it comes from, and then take cuts there."""
        mu, null_steps = self._first_weight() or self.penalty.lam, 0
        while True:
            target, model, bound = self.bundle.proximal_combination(self.penalty, self.w, mu)
            yield bound, target
            before = self.primal
            predicted = before - model
            decrease = before - self.take_cuts(1.0, self.score(target), target)
            null_steps = null_steps + 1 if decrease < 0.1 * PREDICTED * predicted else 0
            if decrease >= PREDICTED * predicted or predicted < CLOSE * self.gap * before:
                mu *= 0.5
            elif null_steps == MOST_NULL_STEPS:
                mu, null_steps = 2.0 * mu, 0

    def _first_weight(self) -> float:
        """Return the weight mu with which a first step along the gradient would about halve the objective."""
        return self.penalty.steepest_square(self.bundle.newest_gradient()) / self.primal

    def _is_stuck(self, dual: float, passes: int) -> bool:
        """Return whether gradients are so long, as of unscaled columns, that rounding hides which combination is short."""
        if self.penalty.has_corners or passes < PATIENCE or dual > 0.0:
            return False
        return self.bundle.resolution(self.penalty.lam) > self.primal

    def score(self, w: np.ndarray) -> np.ndarray:
        """Score all rows at w, the end of the way that starts at the best point; return what the client has of the anchors'."""
        self.target_error = self.rounding.score(w)
        return self.cuts.score(w)

    def _advance(self, target: np.ndarray) -> float:
        """Walk towards the target, take the cuts a little beyond, and return the step walked."""
        at_target = self.score(target)
        way = target - self.w
        step = self._line_search(at_target, way)
        if self.penalty.signs is not None:
            step = min(
                step, 1.0
            )  # points beyond the target may lie outside the cone; between two of its points none does
        beyond = step + BEYOND * (1.0 - step)
        scores = self.best_scores + beyond * (at_target - self.best_scores)
        self.take_cuts(beyond, scores, self.w + beyond * way)
        return step

    def _line_search(self, at_target: np.ndarray, way: np.ndarray) -> float:
        """Return the step that about minimises the objective along the way."""
        wanted = max(FEW_ROWS, self._fineness * ROWS_BY_GAP / max(self.gap, 1e-12))
        stride = max(1, int(self.active_rows // max(wanted, SHARE_OF_ROWS * self.cuts.blocks.n_samples)))
        # The anchors are sent for each step, however many rows there are; a fifth as many of them are as precise as the rows.
        some = max(1, int(len(self.cuts.weights) // max(FEW_ROWS, wanted / 5)))
        slopes = self.cuts.slopes_at(STEPS, self.best_scores, at_target, stride, some)
        slopes += self.penalty.slopes_along(self.w, way, STEPS)
        if slopes[0] >= 0:
            return float(STEPS[0])
        if slopes[-1] <= 0:
            return float(STEPS[-1])
        k = int(np.argmax(slopes > 0))
        return float(STEPS[k - 1] + (STEPS[k] - STEPS[k - 1]) * slopes[k - 1] / (slopes[k - 1] - slopes[k]))

    def take_cuts(self, step: float, scores: np.ndarray, w: np.ndarray) -> float:
        """Give the bundle one point per component, the tangent's height and gradient, and keep w if it is the best so far.

        Parameters
        ----------
        step : float
            Where w lies on the way from the best point to the one scored last.
        scores : ndarray of float64
            What the client has of the anchors' scores at w.
        w : ndarray of shape (n_features,), float64

        Returns
        -------
        float
            The objective at w.
        """
        # The errors of scores at a step of the way: those of both ends, and of the sums of both.
        of_ends = abs(1.0 - step) * self.best_error + abs(step) * self.target_error
        error = of_ends + 4.0 * EPS * (self.rounding.reach(self.w) + self.rounding.reach(w))
        cut = self.cuts.take(step, scores, min(self.gap, 1.0) * self.primal, self._softness)
        value = cut.loss + self.penalty.value(w)
        keep = value < self.primal
        if keep:
            self.best_loss, self.slack, self.w, self.best_scores, self.best_error = (
                cut.loss,
                cut.slack,
                w,
                scores,
                error,
            )
        self._fineness = max(1.0, 0.5 * self._fineness) if keep else min(FINEST, 2.0 * self._fineness)
        self.active_rows = cut.n_rows
        self._n_taken += 1
        self.bundle.add(cut.heights, self.cuts.finish(cut, keep), cut.shares)
        return value
