"""The solver ``all-pairs``: Newton steps and cutting planes for the pairwise hinge over all or the highest-scoring negatives.

Minimises ``P(w) = penalty(w) + mean over the pairs that count of max(0, 1 - w.(x_i - x_j))``, where a pair weighs w_i
w_j if rows have weights. The problem has three parts, each of which has variants:

* The penalty, and the signs that weights may have (`aucdist.pairs.penalty`).
* The negatives that count (`aucdist.pairs.top_negatives`): all of them, or those with the highest scores.
* What the blocks get about the anchors, which are the rows of the smaller class: their scores (`aucdist.pairs.cuts`), or counts
  in cells of scores if there are many anchors (`aucdist.pairs.cell_cuts`).

A round computes a cut, which is the tangent of the loss at a point. A cut is a dual point as well. The best combination of
all cuts (`aucdist.pairs.bundle`) gives the lower bound, which decides when to stop. The methods differ in the point where
the next cut is computed.

**Newton steps** (`aucdist.pairs.newton`) are used for an L2 penalty. The next cut is computed at the minimum of a quadratic
model of a smoothed loss. The cuts are tangents of the smoothed loss, and the smoothing becomes weaker with the gap.
Newton steps take a third of the passes of cutting planes or less, because a mean over very many pairs is almost smooth.

**Cutting planes** are used if Newton steps no longer close the gap, or if all negatives count and there are fewer rows than
features. A few thousand rows then carry no information about most directions, and conjugate gradients took four times the
passes on news20. The method is that of Franc & Sonnenburg, "Optimized Cutting Plane Algorithm for Large-Scale Risk
Minimization" (JMLR 10, 2009), adapted to pairs. It departs from the paper in three points. The sum over pairs is computed from
the sorted scores of the anchors. The next target is the bundle's minimiser near the best point, by a proximal term whose weight
depends on the steps of the line search. The line search uses the zero of the derivative over sampled rows. If there are few
rows, or few rows that may be among the highest-scoring ones, an interior-point method finishes the fit
(`aucdist.pairs.few_rows`).

**Proximal steps** are used for penalties that are not differentiable. Such a penalty sets weights to 0, but a point between two
others has the nonzero weights of both, so there is no line search. A round computes a cut at the minimiser of the lower model
of all cuts plus the penalty and ``mu/2 |w - c|^2``, where c is the best point so far. The weight mu depends on how well the
model predicted the value (after Kiwiel, "Proximity control in bundle methods for convex nondifferentiable minimization",
Mathematical Programming 46, 1990)."""

import bisect
import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy import ndarray

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks
from aucdist.pairs.bundle import Bundle
from aucdist.pairs.cell_cuts import CellCuts
from aucdist.pairs.cuts import Cut, PairCuts
from aucdist.pairs.few_rows import MAX_ROWS, MAX_VALUES, FewRows
from aucdist.pairs.newton import (
    FIRST_HALF_WIDTH,
    FIRST_HALF_WIDTH_AT_ZERO,
    HALF_WIDTH_OF_PLANES,
    MIN_HALF_WIDTH,
    DrawnRows,
    Pairs,
    RowSample,
    newton_step,
    step_to_zero,
)
from aucdist.pairs.penalty import L2
from aucdist.pairs.problem import PairObjective
from aucdist.pairs.top_negatives import TOP_CONSTRAINTS
from aucdist.solvers import sample
from aucdist.solvers.base import Round, Solver
from aucdist.solvers.rounding import higher
from aucdist.solvers.signs import project_onto_cone

MAX_ANCHORS = 2**16
"""Up to this number of rows of the smaller class, their exact scores are sent to the blocks. With more rows, cells of
scores are sent."""

SAMPLE_GAP = 0.03
"""The relative gap to which the fit to a sample is solved. The optimum of the sample is about this far from that of all
rows."""

MIN_NOISE = 0.01
"""If lam is below this share of `sample.noise`, the weights of the sample fit its noise, and zero is the better
start."""

SHARE_OF_GAP = 0.1
"""Smoothing may cause this share of the gap. With shares of 0.3, 0.1 and 0.05, a9a at lam 1e-5 takes 20, 13 and 10 passes. But
with 0.05, separable rows with cells of anchors take 24 passes instead of 7, and a9a at lam 1e-4 with 5 % of the negatives takes
337 instead of 50."""

NARROWING = 0.1
"""From one pass to the next, the width of the band is multiplied by at least this factor."""

STEP_TOO_LONG = 0.3
"""If the line search ends below this share of a Newton step, the step was too long, and the next one is damped more."""

STEP_SAFE = 0.7
"""If the line search ends above this share of a Newton step, the next one is damped less."""

MODEL_MISMATCH = 0.5
"""Other rows are drawn after a short step, or if the slope at the end of a step is more than this share of the slope at
its start. The rows that were drawn then do not stand for all rows."""

STALL_ROUNDS = 16
"""The number of rounds over which the solver compares the gap, to find out whether a method has stalled. With 8 or 20 rounds, a9a
with 5 % of the negatives takes 101 to 150 passes; with 12 or 16 it takes 62."""

STALL_SHARE = 0.5
"""Newton steps have stalled if the gap is above this share of the gap before these rounds. Cutting planes then go on."""

UNCHANGED_ROUNDS = 3
"""The band around the cutoff also becomes narrower if this many rounds of cutting planes have not changed the
gap."""

STALL_SHARE_OF_PLANES = 0.8
"""Cutting planes have stalled if the gap is above this share of the gap before these rounds. The interior-point method then goes
on."""

ROWS_PER_ROUND = 10
"""The interior-point method starts only after one round of cutting planes for every `ROWS_PER_ROUND` rows, because a step of it
costs more with more rows."""

CUT_OVERSHOOT = 0.03
"""The next cut is taken beyond the point of the line search, by this share of the rest of the way (mu of Franc and
Sonnenburg, 0.1)."""

SEARCH_STEPS = (0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.45, 0.65, 0.9, 1.3)
"""The steps among which a line search between cuts finds the zero of the derivative, in units of the distance to the target."""

TARGET_TOO_FAR = 0.05
"""If a line search ends below this share of the distance to the target, the target was too far away."""

TARGET_TOO_NEAR = 0.3
"""If a line search ends above this share of the distance to the target, the next target may be farther away."""

PATIENCE = 100
"""The number of passes without a bound above 0 after which a fit ends, because its cuts differ only by rounding."""

NO_DESCENT = 1e-4
"""Weights of 0 rank nothing. So they are the answer only if no others are better by more than this share, or after `PATIENCE`
passes. On covtype with 5 % of the negatives, weights of 0 are within a gap of 0.001, and after one more pass the partial AUC is
0.60."""

SUFFICIENT_DECREASE_SHARE = 0.5
"""For penalties with corners: if at least this share of the predicted decrease was reached, the next point may be
farther off."""

POINTS_TOO_CLOSE = 0.03
"""If the predicted decrease is less than this share of the gap, the points are too close together."""

MAX_NULL_STEPS = 4
"""After this many rounds with hardly a decrease, the next points are chosen closer."""


class CuttingPlanes:
    """The current point and the cuts so far. `rounds` can be called for one value of lam after another, and starts from them.

    Parameters
    ----------
    blocks : Blocks
        The rows, of both classes.
    objective : PairObjective
        The objective with the loss `PairHinge`. If it has groups, the scores of all anchors are sent, however many there are.
        `rounds` sets the penalty's lam.
    start : ndarray of shape (n_features,) or None
        The weights to start from, by default 0.
    passes_before : int, default=0
        The passes that led to the start. Rounds count them as well.

    Attributes
    ----------
    cuts : PairCuts
        Computes cuts.
    best : Cut
        The cut with the lowest objective.
    bundle : Bundle
        The lower bound of all cuts.
    gap : float
        The relative gap of the last round; 1 before the first.
    value : float
        The objective at the last cut.
    smoothing_gap, cutoff_gap : float
        How far the tangent of the last cut is below the loss where the cut was taken, and how much of this is due to negatives
        that count in part.
    """

    def __init__(
        self, blocks: Blocks, objective: PairObjective, start: ndarray | None = None, *, passes_before: int = 0
    ):
        self.penalty = objective.penalty
        w = np.zeros(blocks.n_features)
        if start is not None:
            w = project_onto_cone(start.astype(np.float64), self.penalty.signs)
        in_cells = objective.groups is None and min(blocks.n_pos, blocks.n_neg) > MAX_ANCHORS
        self.cuts = CellCuts(blocks, objective, w) if in_cells else PairCuts(blocks, objective, w)
        self.rounding, self.negatives = self.cuts.rounding, self.cuts.negatives
        self.samples = DrawnRows(self.cuts)
        self.bundle = Bundle(blocks.n_features)
        self.best = self.cuts.current
        few_features = blocks.n_features <= blocks.n_pos + blocks.n_neg
        self._second_order = isinstance(self.penalty, L2) and (self.negatives.is_top_only or few_features)
        self._passes_before, self._n_taken, self._n_taken_before, self.gap = passes_before, 0, 0, 1.0
        self.value, self.smoothing_gap, self.cutoff_gap = np.inf, 0.0, 0.0
        self._unchanged, self._bound = 0, (0.0, 0.0)

    def value_at(self, point: Cut) -> float:
        """Return the objective at a point, or an upper bound that exceeds it by at most the slack of the point."""
        return point.loss + self.penalty.value(point.w)

    def rounds(self, lam: float) -> Iterator[Round]:
        """Return the rounds for a value of lam, which continue from the current point and the cuts so far."""
        return itertools.chain.from_iterable(self._methods(lam))

    def _methods(self, lam: float) -> Iterator[Iterator[Round]]:
        """Yield the rounds of one method after another. When a method stalls, the next one continues."""
        self.penalty, self._n_taken_before = self.penalty.with_lam(lam), self._n_taken
        self.gap, self._unchanged = 1.0, 0
        self._bound = 0.0, 0.0  # the objective is never below 0
        if self._second_order:
            self.cuts.pair_half_width = FIRST_HALF_WIDTH if self.cuts.current.w.any() else FIRST_HALF_WIDTH_AT_ZERO
        if self.negatives.is_top_only and not self.penalty.has_corners:
            self.cuts.cutoff_width = self.cuts.pair_half_width or HALF_WIDTH_OF_PLANES
        if self.bundle.n_points == 0 or self._second_order:
            self.best = replace(self.cuts.current, loss=np.inf)
            self.accept(self.cuts.cut(0.0, self.cuts.current.w, self.gap_left), move_anyway=True)
        if self.penalty.has_corners:
            yield self._proximal_steps()
            return
        if self._second_order:
            yield self._newton_steps()
        yield self._line_searches()

    @property
    def gap_left(self) -> float:
        """The current gap of the objective."""
        return min(self.gap, 1.0) * self.value_at(self.best)

    def _round(self, bound: float, w: ndarray) -> Round:
        """Return the round of the best point so far, with the lower bound of the bundle and the weights where it is attained."""
        gap_before, passes = self.gap, self._n_taken - self._n_taken_before
        best, rounding, cuts = self.best, self.rounding, self.cuts
        bound_error = self.penalty.bound_error(bound, w, self.bundle, rounding, cuts.weight_error)
        dual, error = self._bound = higher(self._bound, (bound, bound_error))
        primal = self.value_at(best)
        self.gap = (primal - dual) / primal
        self._unchanged = self._unchanged + 1 if self.gap == gap_before else 0
        # The objective is rounded in the scores of pairs, in sums, and in the shares with which negatives count.
        largest = rounding.largest_score(best.w)
        sum_error = rounding.pair_hinge(best.w, best.loss, best.score_error) + rounding.penalty(
            best.w, self.penalty.value(best.w)
        )
        primal_error = sum_error + cuts.value_error(largest) + cuts.weight_error * (1.0 + best.loss + 2.0 * largest)
        # Gradients may be so large, such as those of unscaled columns, that rounding errors hide any descent. Then either no
        # combination of them is short, or neither primal nor dual value has changed for many passes.
        stuck = (
            passes >= PATIENCE
            and not self.penalty.has_corners
            and (self._unchanged >= PATIENCE // 2 if dual > 0.0 else self.bundle.resolution(self.penalty.lam) > primal)
        )
        return Round(
            best.w.copy(), primal, dual, self._passes_before + passes, primal_error=primal_error,
            dual_error=error, slack=best.slack, stuck=stuck,
            unsettled=self.gap > NO_DESCENT and passes < PATIENCE and not best.w.any(),
        )  # fmt: skip

    def _newton_steps(self) -> Iterator[Round]:
        """Yield the round so far, and then compute a cut at the end of a Newton step, until these steps stall."""
        damping, step_was_poor, gaps = 0.0, False, list[float]()
        while True:
            target, bound = self.bundle.best_combination(self.penalty)
            yield self._round(bound, target)
            gaps.append(self.gap * self.value_at(self.best))
            if has_stalled(gaps, STALL_SHARE):
                return
            cuts, penalty = self.cuts, self.penalty
            w, h, before = cuts.current.w, cuts.pair_half_width, self.value_at(cuts.current)
            for_step, for_search = self.samples.for_band(h, anew=step_was_poor)
            gradient = cuts.current.gradient + penalty.lam * w
            last_widths = h, cuts.cutoff_width
            if self.negatives.is_top_only:
                self._narrow_band()  # before the step, because `gradient_change` corrects the gradient for the narrower band
            pairs = Pairs(for_step, h, cuts.cutoff_width)
            if self.negatives.is_top_only:
                gradient += pairs.gradient_change()
            move = newton_step(pairs, gradient, w, penalty, damping)
            cuts.score(w + move)
            step, first = self._line_search(for_search, move, last_widths)
            if step < STEP_TOO_LONG:
                damping = max(4.0 * damping, 1e-4)
                if self.gap >= 1.0 and not self.negatives.is_top_only:  # the start was far from the minimum
                    cuts.pair_half_width = max(cuts.pair_half_width, HALF_WIDTH_OF_PLANES)
            elif step > STEP_SAFE:
                damping = damping / 8.0 if damping > 1e-7 else 0.0
            if not self.negatives.is_top_only:
                self._narrow_band()
            worst = before + self.smoothing_gap
            while not self.accept(cuts.cut(step, w + step * move, self.gap_left), move_anyway=True, worst=worst):
                step *= 0.2
                worst = worst if step > 1e-3 else np.inf
            slope = float(cuts.current.gradient @ move) + penalty.slope_along(w, move, step)
            step_was_poor = step < STEP_TOO_LONG or abs(slope) > MODEL_MISMATCH * abs(first)

    def _line_searches(self) -> Iterator[Round]:
        """Yield the round so far, and then compute a cut slightly beyond the end of a line search."""
        cuts, n_without_descent, gaps, interior_points = self.cuts, 0, list[float](), self._interior_points()
        # If few negatives count, the first cuts are informative only near w. If the minimum is near 0, the bundle's minimiser
        # is then a thousand times too long, and most passes would be spent on returning from it.
        mu = self._first_weight() if self.negatives.is_top_only and not cuts.current.w.any() else 0.0
        # Cuts of the unsmoothed hinge work as well here. The cutoff stays soft: with a hard one, a cut says little about the
        # next point, and fits of leaves to 1 % of the negatives took all passes.
        cuts.pair_half_width = 0.0
        while True:
            enough = len(gaps) * ROWS_PER_ROUND > cuts.n_anchors + cuts.n_larger
            if self.negatives.is_top_only or (enough and has_stalled(gaps, STALL_SHARE_OF_PLANES)):
                yield from interior_points  # the generator is exhausted after its first use
            target, bound = self.bundle.best_combination(self.penalty)
            yield self._round(bound, target)
            gaps.append(self.gap * self.value_at(self.best))
            self._narrow_band()
            if self._unchanged >= UNCHANGED_ROUNDS and self.gap < 1.0:
                cuts.cutoff_width *= 0.25
            cuts.cutoff_width = cuts.cutoff_width if cuts.cutoff_width > MIN_HALF_WIDTH else 0.0
            if mu > 0.0:
                target = self.bundle.proximal_point(self.penalty, cuts.current.w, mu)
            move = target - cuts.current.w
            cuts.score(target)
            _, for_search = self.samples.for_band(HALF_WIDTH_OF_PLANES, anew=False)
            step = self._line_search(for_search, move)[0]
            overshot = step + CUT_OVERSHOOT * (1.0 - step)
            self.accept(cuts.cut(overshot, cuts.current.w + overshot * move, self.gap_left))
            n_without_descent = n_without_descent + 1 if step == SEARCH_STEPS[0] else 0
            if step > TARGET_TOO_NEAR or n_without_descent > 2:
                # The target may be farther away, or three line searches found no descent. A nearer target would not correct
                # the bundle.
                mu = 0.5 * mu
            elif step < TARGET_TOO_FAR:
                mu = max(2.0 * mu, self.penalty.lam)

    @functools.cached_property
    def _few_rows(self) -> FewRows:
        """All rows at the client, for each value of lam that needs them."""
        return FewRows(self.cuts)

    def _interior_points(self) -> Iterator[Round]:
        """Yield a round for each point of the interior-point method (`few_rows`), if few rows are in pairs that count."""
        cuts, penalty, w, n_chosen = self.cuts, self.penalty, self.best.w, 0
        few = self.negatives.is_top_only or cuts.n_anchors + cuts.n_larger <= MAX_ROWS
        n_values = cuts.blocks.n_samples * cuts.blocks.ranges.width
        if not few or n_values > MAX_VALUES or not isinstance(penalty, L2) or penalty.signs is not None:
            return
        while n_chosen < (n_rows := self._few_rows.choose(w)):
            n_chosen = n_rows
            for w, offset, gradient in self._few_rows.solve(penalty.lam):
                cuts.score(w)
                self.accept(cuts.cut(1.0, w, self.gap_left))
                self.bundle.add(offset, gradient)
                target, bound = self.bundle.best_combination(penalty)
                yield self._round(bound, target)

    def _proximal_steps(self) -> Iterator[Round]:
        """Yield the round so far, and then compute a cut at the bundle's minimiser near the best point."""
        mu, null_steps = self._first_weight() or self.penalty.lam, 0
        while True:
            target, model, bound = self.bundle.proximal_combination(self.penalty, self.cuts.current.w, mu)
            yield self._round(bound, target)
            before = self.value_at(self.cuts.current)
            predicted = before - model
            self.cuts.score(target)
            self.accept(self.cuts.cut(1.0, target, self.gap_left))
            decrease = before - self.value
            null_steps = null_steps + 1 if decrease < 0.1 * SUFFICIENT_DECREASE_SHARE * predicted else 0
            if decrease >= SUFFICIENT_DECREASE_SHARE * predicted or predicted < POINTS_TOO_CLOSE * self.gap * before:
                mu *= 0.5
            elif null_steps == MAX_NULL_STEPS:
                mu, null_steps = 2.0 * mu, 0

    def _narrow_band(self) -> None:
        """Narrow the bands of pairs and of the cutoff until each accounts for at most a fixed share of the gap."""
        allowed = SHARE_OF_GAP * min(self.gap, 1.0) * self.value_at(self.best)

        def narrowed(width: float, part: float) -> float:
            """Return the width of a band that accounts for this part of the gap."""
            if not (width > 0.0 and part > 0.0):
                return width
            return max(width * min(1.0, max(NARROWING, allowed / part)), MIN_HALF_WIDTH)

        cuts = self.cuts
        cuts.pair_half_width = narrowed(cuts.pair_half_width, self.smoothing_gap - self.cutoff_gap)
        cuts.cutoff_width = narrowed(cuts.cutoff_width, self.cutoff_gap)

    def _first_weight(self) -> float:
        """Return the weight mu with which a first step along the gradient would about halve the objective."""
        return self.penalty.steepest_square(self.cuts.current.gradient) / self.value_at(self.cuts.current)

    def _line_search(
        self, sample: RowSample, move: ndarray, last_widths: tuple[float, float] | None = None
    ) -> tuple[float, float]:
        """Return the step that nearly minimises the objective along a line, and the slope at the current point.

        If signs of weights are restricted, the step is at most 1.

        Parameters
        ----------
        sample : RowSample
            The sampled rows.
        move : ndarray of shape (n_features,)
            The direction.
        last_widths : tuple (float, float), optional
            The widths of both bands at the last cut, if the bands are narrower now.

        Returns
        -------
        step, slope : float
        """
        current, penalty, widths = self.cuts.current, self.penalty, (self.cuts.pair_half_width, self.cuts.cutoff_width)
        slope_of_penalty = functools.partial(penalty.slope_along, current.w, move)
        along = sample.slope_along(move, *widths)
        if widths == (0.0, 0.0):
            # The derivative of the unsmoothed hinge has jumps. Secant steps across a jump would take cuts on its two sides in
            # turn, so the sign of the derivative is looked up on a fixed grid.
            slope = functools.cache(lambda t: along(t) + slope_of_penalty(t))
            k = bisect.bisect_right(SEARCH_STEPS, 0.0, key=slope)
            step = SEARCH_STEPS[min(k, len(SEARCH_STEPS) - 1)]
            if 0 < k < len(SEARCH_STEPS):
                low, high = SEARCH_STEPS[k - 1 : k + 1]
                step = low + (high - low) * slope(low) / (slope(low) - slope(high))
            return step if penalty.signs is None else min(step, 1.0), slope(SEARCH_STEPS[0])
        initial_slope, sample_slope = float(current.gradient @ move) + slope_of_penalty(0.0), along(0.0)
        if last_widths is not None and last_widths != widths:
            initial_slope += sample_slope - sample.slope_along(move, *last_widths)(0.0)
        if not initial_slope < 0.0:
            return 0.0, initial_slope
        # The sample has its own minimum, so only the change of its derivative is used.
        offset = initial_slope - sample_slope - slope_of_penalty(0.0)
        step = step_to_zero(lambda t: along(t) + slope_of_penalty(t) + offset, initial_slope)
        # Points beyond the target may lie outside the cone of signs. The cone is convex, so points before the target lie
        # inside.
        return step if penalty.signs is None else min(step, 1.0), initial_slope

    def accept(self, cut: Cut, *, move_anyway: bool = False, worst: float = np.inf) -> bool:
        """Add a cut to the bundle, unless its objective is above `worst`, and return whether it was added.

        The current point moves to the point of the cut if the objective is lower there, or in any case with `move_anyway`.

        Returns
        -------
        bool
            If it is False, only `value` has changed: it is the objective of the refused cut.
        """
        self.value = self.value_at(cut)
        if self.value > worst:
            return False
        better = self.value < self.value_at(self.cuts.current)
        cut = self.cuts.finish(cut, move_anyway or better)
        if self.value < self.value_at(self.best):
            self.best = cut
        self.smoothing_gap = cut.loss - (cut.offset + float(cut.gradient @ cut.w))
        self.cutoff_gap = max(cut.loss - cut.counted_loss, 0.0) if self.negatives.is_top_only else 0.0
        self._n_taken += 1
        self.samples.move_scores(cut.step if move_anyway or better else 0.0)
        self.bundle.add(cut.offset, cut.gradient)
        return True


def has_stalled(gaps: Sequence[float], share: float) -> bool:
    """Return whether the last `STALL_ROUNDS` rounds failed to reduce the gap (primal minus dual value) to this share of it."""
    return len(gaps) > STALL_ROUNDS and gaps[-1] > share * gaps[-1 - STALL_ROUNDS]


class AllPairs(Solver):
    """Newton steps and cutting planes over all pairs. This solver is deterministic. Use it by default.

    `aucdist.pairs.top_negatives` describes fits for the partial AUC. With an L2 penalty, a fit of large data starts at the
    solution for a sample (`aucdist.solvers.sample`). The solver has no parameters of its own.
    """

    name = "all-pairs"
    objective = "pairwise hinge"
    takes = ("penalty", *TOP_CONSTRAINTS, "group_weight", "grade_weight")
    accepts_groups = accepts_signs = ignores_zero_weight = accepts_codes = True

    def rounds(self, blocks: Blocks, lam: float, start: ndarray | None = None, **options: Any) -> Iterator[Round]:
        """Return the rounds of a fit, each with the best weights and the best lower bound so far.

        Parameters
        ----------
        blocks : Blocks
            The rows, of both classes.
        lam : float
            The regularisation strength.
        start : ndarray of shape (n_features,), optional
            The weights to start from.
        **options
            As for `PairObjective.of`.

        Returns
        -------
        iterator of Round
        """
        return minimise_hinge(blocks, PairObjective.of(blocks, lam, **options), start)

    def path(self, blocks: Blocks, **options: Any) -> CuttingPlanes:
        """Return an object that solves for one value of lam after another.

        Parameters
        ----------
        blocks : Blocks
            The rows, of both classes.
        **options
            As for `rounds`.

        Returns
        -------
        CuttingPlanes
        """
        return CuttingPlanes(blocks, PairObjective.of(blocks, 1.0, **options))


def minimise_hinge(blocks: Blocks, objective: PairObjective, start: ndarray | None = None) -> Iterator[Round]:
    """Return the rounds of `CuttingPlanes`. Without a start, a fit of large data starts from the solution for a sample."""
    # `yield from` is avoided, because each step of the solver would be one call deeper.
    return itertools.chain.from_iterable(_after_sample(blocks, objective, start))


def _after_sample(blocks: Blocks, objective: PairObjective, start: ndarray | None) -> Iterator[Iterator[Round]]:
    """Solve for a sample if there is one, and yield the rounds over all rows."""
    penalty, top_negatives = objective.penalty, objective.top_negatives
    part = 1.0 if top_negatives is None else top_negatives.weight(blocks) / blocks.weight_neg

    def on_sample(drawn: Block) -> Iterator[Round] | None:
        """Return the rounds over the sample, or None if lam is so small that the weights would fit the noise of the sample."""
        # Only `part` of the sampled negatives counts, so the noise is larger by 1 / part.
        if penalty.lam < MIN_NOISE * sample.noise(drawn) / part:
            return None
        return minimise_hinge(*objective.on_sample(blocks, drawn))

    passes = 0
    if start is None and not penalty.has_corners:
        last, passes = sample.solve_on_sample(blocks, on_sample, SAMPLE_GAP, objective.n_groups_with_pairs)
        start = None if last is None else last.w
    yield CuttingPlanes(blocks, objective, start, passes_before=passes).rounds(penalty.lam)
