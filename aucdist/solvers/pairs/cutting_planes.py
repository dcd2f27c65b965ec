"""The solver ``all-pairs``: Newton steps and cutting planes for the pairwise hinge, with or without a fraction of the negatives.

Minimises ``P(w) = penalty(w) + mean over the pairs that count of max(0, 1 - w.(x_i - x_j))``, where a pair weighs w_i
w_j if rows have weights. The problem has three parts, each of which has variants:

* the penalty and the cone of signs (`aucdist.solvers.pairs.penalty`);
* which negatives count (`aucdist.solvers.pairs.top_negatives`): all, or the highest-scoring ones;
* what is sent to the blocks of the anchors, the rows of the smaller class: their scores (`aucdist.solvers.pairs.cuts`),
  or cells of scores if there are many (`aucdist.solvers.pairs.cell_cuts`).

A round takes a cut, which is the tangent of the loss at a point. A cut is a dual point as well. The best combination of
all cuts (`aucdist.solvers.pairs.bundle`) is the lower bound, which decides when to stop. The methods differ in where
the next cut is taken.

**Newton steps** (`aucdist.solvers.pairs.newton`), for an L2 penalty: the next cut is taken at the minimum of a
quadratic model of a smoothed loss. The cuts are those of the smoothed loss, whose band becomes narrower with the gap.
Newton steps take a third of the passes of cutting planes or less, because a mean over very many pairs is almost smooth.

**Cutting planes** are used if Newton steps no longer close the gap, or if all negatives count and there are fewer rows
than features. A few thousand rows then contain nothing about most directions, and conjugate gradients took four times
the passes on news20.
The method is that of Franc & Sonnenburg, "Optimized Cutting Plane Algorithm for Large-Scale Risk Minimization" (JMLR
10, 2009), adapted to pairs. It departs from the paper in three points: the sum over pairs is computed from the sorted
scores of the anchors; the next target is the bundle's minimiser near the best point (a proximal term whose weight
depends on the steps of the line search); the line search takes the zero of the derivative over the drawn rows. If there
are few rows in all, an interior-point method finishes the fit (`aucdist.solvers.pairs.few_rows`).

**Proximal steps** are used for a penalty with corners. Such a penalty leaves features out, but a point between two
others has the features of both, so there is no line search. A round takes a cut at the minimiser of the lower model of
all cuts plus penalty and ``mu/2 |w - c|^2``, where c is the best point so far. The weight mu depends on how well the
model predicted the value (after Kiwiel, "Proximity control in bundle methods for convex nondifferentiable
minimization", Mathematical Programming 46, 1990).
"""

import bisect
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks
from aucdist.solvers import sample
from aucdist.solvers.base import Round, Solver
from aucdist.solvers.pairs.bundle import Bundle
from aucdist.solvers.pairs.cell_cuts import CellCuts
from aucdist.solvers.pairs.cuts import PairCuts
from aucdist.solvers.pairs.few_rows import MOST_ROWS, MOST_VALUES, FewRows
from aucdist.solvers.pairs.newton import (
    NARROWEST,
    START,
    WIDE,
    WIDEST,
    Sample,
    SampleAt,
    newton_step,
    step_to_zero,
)
from aucdist.solvers.pairs.objective import PairObjective, rounding_of_pairs
from aucdist.solvers.pairs.top_negatives import TOP_PARAMETERS, CountedNegatives
from aucdist.solvers.rounding import EPS, higher
from aucdist.solvers.signs import project_onto_cone

MOST_ANCHORS = 2**16
"""Up to this number of rows of the smaller class, their exact scores are sent to the blocks. With more rows, cells of
scores are sent."""

NEAR = 0.03
"""The relative gap to which the fit to a sample is solved. The optimum of the sample is about this far from that of all
rows."""

LEAST_NOISE = 0.01
"""If lam is below this share of `sample.noise`, the weights of the sample fit its noise, and zero is the better
start."""

SHARE_OF_GAP, NARROWING = 0.1, 0.1
"""Smoothing may cause this share of the gap, and the band becomes narrower by at most the second factor from pass to
pass. With shares of 0.3, 0.1 and 0.05, a9a at lam 1e-5 takes 20, 13 and 10 passes. But with 0.05, separable rows with
cells of anchors take 24 passes instead of 7, and a9a at lam 1e-4 with 5 % of the negatives takes 337 instead of 50."""

SHORT, LONG = 0.3, 0.7
"""A Newton step that ends before the first number was too long, and the next one is damped more. Beyond the second
number, damping decreases."""

ASTRAY = 0.5
"""Other rows are drawn after a short step, or if the slope at the end of a step is more than this share of the slope at
its start. The rows that were drawn then do not stand for all rows."""

PATIENT, FALLEN = 16, 0.5
"""A method has stalled if the first number of its rounds have not reduced what is left of the objective to the second
number, as a share. The solver then changes from Newton steps to cutting planes. With 8 or 20 steps, a9a with 5 % of the
negatives takes 101 to 150 passes; with 12 or 16 it takes 62."""

UNCHANGED = 3
"""The band around the threshold also becomes narrower if this many rounds of cutting planes have not changed the
gap."""

SLOW, ROWS_PER_ROUND = 0.8, 10
"""From cutting planes to the interior-point method the share is the first number, and there must have been a line search for
each this many rows, because the cost of its steps grows with the number of rows."""

BEYOND = 0.03
"""The next cut is taken beyond the point of the line search, by this share of the rest of the way (mu of Franc and
Sonnenburg, 0.1)."""

STEPS = (0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.45, 0.65, 0.9, 1.3)
"""The steps among which a line search between cuts finds the zero of the derivative, in units of the distance to the target."""

TOO_SHORT, FAR = 0.05, 0.3
"""A line search that ends below the first number shows that the target was too far off. One that ends above the second
shows that the target could be farther."""

PATIENCE = 100
"""The number of passes without a bound above 0 after which a fit ends, because its cuts differ only by rounding."""

NO_DESCENT = 1e-4
"""Weights of 0 rank nothing. So they are the answer only if no others are better by more than this share, or after `PATIENCE`
passes. On covtype with 5 % of the negatives, weights of 0 are within a gap of 0.001, and after one more pass the partial AUC is
0.60."""

PREDICTED = 0.5
"""For penalties with corners: if at least this share of the predicted decrease was reached, the next point may be
farther off."""

CLOSE = 0.03
"""If the predicted decrease is less than this share of the gap, the points are too close together."""

MOST_NULL_STEPS = 4
"""After this many rounds with hardly a decrease, the next points are chosen closer."""


@dataclass(frozen=True, eq=False)
class Point:
    """Weights, the mean loss there or an upper bound that exceeds it by at most `slack`, and a bound on the error of a score."""

    w: np.ndarray
    loss: float
    slack: float
    error: float


class CuttingPlanes:
    """The present point and the cuts so far: `rounds` for one lam after another start from them.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be there.
    objective : PairObjective
        With the loss `PairHinge`. Where it has groups, scores of anchors are exact, however many. `rounds` sets the penalty's
        lam.
    start : ndarray of shape (n_features,) or None
        Zero by default.
    kind : type, optional
        `PairCuts` or `CellCuts`; by default by the number of anchors.
    second_order : bool, optional
        Whether to take Newton steps; by default with an L2 penalty, unless all negatives count and there are more features
        than rows.

    Attributes
    ----------
    here, best : Point
        The present point, and that of the lowest objective.
    cuts : PairCuts
    bundle : Bundle
    """

    def __init__(
        self, blocks: Blocks, objective: PairObjective, start: np.ndarray | None = None, *,
        kind: type[PairCuts] | None = None, second_order: bool | None = None,
    ):  # fmt: skip
        self.penalty, groups = objective.penalty, objective.groups
        self.rounding = rounding_of_pairs(blocks, groups)
        self.negatives = CountedNegatives(blocks, objective.subset, self.rounding)
        if groups is not None:
            kind = PairCuts
        elif kind is None:
            kind = CellCuts if min(blocks.n_pos, blocks.n_neg) > MOST_ANCHORS else PairCuts
        w = np.zeros(blocks.n_features)
        if start is not None:
            w = project_onto_cone(start.astype(np.float64), self.penalty.signs)
        self.cuts = kind(blocks, self.negatives, w, groups=groups)
        self.sample = Sample(self.cuts)
        self.bundle = Bundle(blocks.n_features)
        self.here = self.best = Point(w, np.inf, 0.0, self.rounding.score(w))
        self.scores = self._at_target = self.cuts.first_scores
        self._target_error = 0.0
        if second_order is None:
            few_features = blocks.n_features <= blocks.n_pos + blocks.n_neg
            second_order = not self.penalty.has_corners and (self.negatives.is_top_only or few_features)
        self._second_order = second_order
        self._half_width, self._width, self._n_taken, self.gap = 0.0, 0.0, 0, 1.0

    def objective(self, point: Point) -> float:
        """Return the objective at a point, or a number above it by its slack at most."""
        return point.loss + self.penalty.value(point.w)

    def error_at(self, point: Point) -> float:
        """Return a bound on the rounding error of `objective`: of the scores, two to a pair, of the sums, of the rows' parts."""
        reach = self.rounding.reach(point.w)
        of_pairs = self.rounding.pair_hinge(point.w, point.loss, point.error)
        of_sums = of_pairs + self.rounding.penalty(point.w, self.penalty.value(point.w)) + self.cuts.value_error(reach)
        return of_sums + self.negatives.part_error * (1.0 + point.loss + 2.0 * reach)

    def bound_error(self, bound: float, w: np.ndarray) -> float:
        """Return a bound on the rounding error of the bundle's bound, where w is the combination's weights."""
        return self.penalty.bound_error(bound, w, self.bundle, self.rounding, self.negatives.part_error)

    def rounds(self, lam: float) -> Iterator[Round]:
        """Solve for lam, from the present point and the cuts so far."""
        self.penalty, before = self.penalty.at(lam), self._n_taken
        self.gap = 1.0
        if self._second_order:
            self._half_width = START if self.here.w.any() else WIDEST
        if self.negatives.is_top_only and not self.penalty.has_corners:
            self._width = self._half_width or WIDE
        if self.bundle.n_points == 0 or self._second_order:
            self.best = replace(self.here, loss=np.inf)
            self.add_cut(0.0, self.here.w, follow=True)
        if self.penalty.has_corners:
            walk = self._proximal_steps()
        else:
            walk = self._newton_steps() if self._second_order else self._line_searches()
        dual, error = 0.0, 0.0  # the objective is never below 0
        self._unchanged = 0
        for bound, w in walk:
            gap_before = self.gap
            dual, error = higher((dual, error), (bound, self.bound_error(bound, w)))
            primal, passes = self.objective(self.best), self._n_taken - before
            self.gap = (primal - dual) / primal
            self._unchanged = self._unchanged + 1 if self.gap == gap_before else 0
            yield Round(
                self.best.w.copy(), primal, dual, passes, primal_error=self.error_at(self.best), dual_error=error,
                slack=self.best.slack, stuck=self._is_stuck(dual, passes),
                unsettled=self.gap > NO_DESCENT and passes < PATIENCE and not self.best.w.any(),
            )  # fmt: skip

    def _newton_steps(self) -> Iterator[tuple[float, np.ndarray]]:
        """Yield the bundle's bound and the weights it comes from, and then take a cut at the end of a Newton step."""
        damping, astray, gaps = 0.0, False, list[float]()
        while True:
            target, bound = self.bundle.best_combination(self.penalty)
            yield bound, target
            gaps.append(self.gap * self.objective(self.best))
            if has_stalled(gaps, FALLEN):
                break
            w, h, penalty, before = self.here.w, self._half_width, self.penalty, self.objective(self.here)
            for_step, for_search = self.sample.at(w, self.scores, h, self.cut, anew=astray)
            gradient = self.gradient + penalty.lam * w
            widths = h, self._width
            if self.negatives.is_top_only:
                self._narrow_band()  # before the step, which looks ahead
            pairs = for_step.pairs(h, self._width)
            if self.negatives.is_top_only:
                gradient += pairs.ahead()
            move = newton_step(pairs, gradient, w, penalty, damping, is_dense=self.sample.is_dense)
            self.score(w + move)
            step, first = self._line_search(for_search, move, widths)
            if step < SHORT:
                damping = max(4.0 * damping, 1e-4)
                if self.gap >= 1.0 and not self.negatives.is_top_only:  # the start was not near the minimum
                    self._half_width = max(self._half_width, WIDE)
            elif step > LONG:
                damping = damping / 8.0 if damping > 1e-7 else 0.0
            if not self.negatives.is_top_only:
                self._narrow_band()
            worst = before + self.smoothing_gap
            while not self.add_cut(step, w + step * move, follow=True, worst=worst):
                step *= 0.2
                worst = worst if step > 1e-3 else np.inf
            slope = float(self.gradient @ move) + penalty.slope_along(w, move, step)
            astray = step < SHORT or abs(slope) > ASTRAY * abs(first)
        yield from self._line_searches()

    def _line_searches(self) -> Iterator[tuple[float, np.ndarray]]:
        """Yield the bundle's bound and the weights it comes from, and then take cuts beyond the end of a line search."""
        # Where few negatives count, the first cuts say little about weights far off: where the minimum is near 0, the bundle's
        # minimiser is a thousand times too long, and it costs most of the passes to come back from there.
        mu = self._first_weight() if self.negatives.is_top_only and not self.here.w.any() else 0.0
        n_without_descent, gaps, interior_points = 0, list[float](), self._interior_points()
        # Cuts of the hinge itself are as good here. Negatives go on counting in part near the threshold: where a whole negative
        # counts or does not, one cut says little about the next point, and leaves with 1 % of the negatives took all passes.
        self._half_width = 0.0
        while True:
            if has_stalled(gaps, SLOW) and len(gaps) * ROWS_PER_ROUND > self.cuts.n_anchors + self.cuts.n_others:
                yield from interior_points  # of which there are none the second time
            target, bound = self.bundle.best_combination(self.penalty)
            yield bound, target
            gaps.append(self.gap * self.objective(self.best))
            self._narrow_band()
            if self._unchanged >= UNCHANGED and self.gap < 1.0:
                self._width *= 0.25
            self._width = self._width if self._width > NARROWEST else 0.0
            if mu > 0.0:
                target = self.bundle.proximal_point(self.penalty, self.here.w, mu)
            move = target - self.here.w
            self.score(target)
            _, for_search = self.sample.at(self.here.w, self.scores, WIDE, self.cut, anew=False)
            step = self._line_search(for_search, move)[0]
            beyond = step + BEYOND * (1.0 - step)
            self.add_cut(beyond, self.here.w + beyond * move)
            n_without_descent = n_without_descent + 1 if step == STEPS[0] else 0
            if step > FAR or n_without_descent > 2:
                # The target may be further off; or three line searches found no descent, and a nearer target would not
                # correct the bundle.
                mu = 0.5 * mu
            elif step < TOO_SHORT:
                mu = max(2.0 * mu, self.penalty.lam)

    @functools.cached_property
    def _few_rows(self) -> FewRows:
        """All rows at the client, and their products, for each value of lam that needs them."""
        return FewRows(self.cuts.blocks, self.cuts.groups, self.cuts.mass)

    def _interior_points(self) -> Iterator[tuple[float, np.ndarray]]:
        """Go from point to point of `aucdist.solvers.pairs.few_rows` if there are few rows, and yield as the other methods do."""
        cuts, penalty = self.cuts, self.penalty
        n_values = cuts.blocks.n_samples * cuts.blocks.ranges.width
        few = cuts.n_anchors + cuts.n_others <= MOST_ROWS and n_values <= MOST_VALUES
        if not few or penalty.signs is not None or self.negatives.is_top_only:
            return
        for w, height, gradient in self._few_rows.solve(penalty.lam):
            self.score(w)
            self.add_cut(1.0, w)
            self.bundle.add(height, gradient)
            target, bound = self.bundle.best_combination(penalty)
            yield bound, target

    def _proximal_steps(self) -> Iterator[tuple[float, np.ndarray]]:
        """Yield the bundle's bound and the weights it comes from, and then take cuts there."""
        mu, null_steps = self._first_weight() or self.penalty.lam, 0
        while True:
            target, model, bound = self.bundle.proximal_combination(self.penalty, self.here.w, mu)
            yield bound, target
            before = self.objective(self.here)
            predicted = before - model
            self.score(target)
            self.add_cut(1.0, target)
            decrease = before - self.value
            null_steps = null_steps + 1 if decrease < 0.1 * PREDICTED * predicted else 0
            if decrease >= PREDICTED * predicted or predicted < CLOSE * self.gap * before:
                mu *= 0.5
            elif null_steps == MOST_NULL_STEPS:
                mu, null_steps = 2.0 * mu, 0

    def _narrow_band(self) -> None:
        """Narrow the bands of pairs and of the threshold until each accounts for at most a fixed share of the gap."""
        allowed = SHARE_OF_GAP * min(self.gap, 1.0) * self.objective(self.best)

        def narrowed(width: float, part: float) -> float:
            """Return the width of a band that accounts for this part of the gap."""
            if not (width > 0.0 and part > 0.0):
                return width
            return max(width * min(1.0, max(NARROWING, allowed / part)), NARROWEST)

        self._half_width = narrowed(self._half_width, self.smoothing_gap - self.threshold_gap)
        self._width = narrowed(self._width, self.threshold_gap)

    def _first_weight(self) -> float:
        """Return the weight mu with which a first step along the gradient would about halve the objective."""
        return self.penalty.steepest_square(self.gradient) / self.objective(self.here)

    def _is_stuck(self, dual: float, passes: int) -> bool:
        """Return whether gradients are so long, as those of unscaled columns, that rounding errors hide any descent.

        Then either no combination of them is short, or neither primal nor dual value has changed for many passes.
        """
        if self.penalty.has_corners or passes < PATIENCE:
            return False
        if dual > 0.0:
            return self._unchanged >= PATIENCE // 2
        return self.bundle.resolution(self.penalty.lam) > self.objective(self.best)

    def score(self, w: np.ndarray) -> None:
        """Score all rows at w, the end of the line that starts at the present point."""
        self._at_target, self._target_error = self.cuts.score(w), self.rounding.score(w)

    def _line_search(
        self, sample: SampleAt, move: np.ndarray, widths: tuple[float, float] | None = None
    ) -> tuple[float, float]:
        """Return the step that nearly minimises the objective along the line, at most 1 within a cone, and the slope here.

        `widths`: those of both bands at the last cut, where they are narrower now.
        """
        w, penalty, along = self.here.w, self.penalty, sample.slope_along(move, self._half_width, self._width)
        if self._half_width == 0.0 and self._width == 0.0:
            # Of the hinge itself the derivative jumps: a chord over a jump takes cuts on both of its sides in turn.
            slope = functools.cache(lambda t: along(t) + penalty.slope_along(w, move, t))
            k = bisect.bisect_right(STEPS, 0.0, key=slope)  # the slope rises along the line
            step = STEPS[min(k, len(STEPS) - 1)]
            if 0 < k < len(STEPS):
                low, high = STEPS[k - 1 : k + 1]
                step = low + (high - low) * slope(low) / (slope(low) - slope(high))
            return step if penalty.signs is None else min(step, 1.0), slope(STEPS[0])
        first, of_sample = float(self.gradient @ move) + penalty.slope_along(w, move, 0.0), along(0.0)
        if widths is not None and widths != (self._half_width, self._width):
            first += of_sample - sample.slope_along(move, *widths)(0.0)
        if not first < 0.0:
            return 0.0, first
        # The drawn rows have a minimum of their own: only how the derivative changes is taken from them.
        offset = first - of_sample - penalty.slope_along(w, move, 0.0)
        step = step_to_zero(lambda t: along(t) + penalty.slope_along(w, move, t) + offset, first)
        # Points beyond the target may lie outside the cone; between two of its points none does.
        return step if penalty.signs is None else min(step, 1.0), first

    def add_cut(self, step: float, w: np.ndarray, *, follow: bool = False, worst: float = np.inf) -> bool:
        """Take a cut, the tangent's height and gradient, give it to the bundle, and go to w if it is better.

        Parameters
        ----------
        step : float
            Where w lies on the way from the present point to the one scored last.
        w : ndarray of shape (n_features,), float64
        follow : bool, default=False
            Whether to go to w in any case.
        worst : float
            If the objective at w is larger, nothing is done.

        Returns
        -------
        bool
            Whether a cut was taken.
        """
        # The errors of scores at a step of the way: those of both ends, and of the sums of both.
        here, reach = self.here, self.rounding.reach
        error = abs(1.0 - step) * here.error + abs(step) * self._target_error + 4.0 * EPS * (reach(here.w) + reach(w))
        scores = self.scores + step * (self._at_target - self.scores)
        gap = min(self.gap, 1.0) * self.objective(self.best)
        cut = self.cuts.cut_at(step, scores, gap, self._half_width, self._width)
        point = Point(w, cut.loss, cut.slack, error)
        self.value = self.objective(point)
        if self.value > worst:
            return False
        better = self.value < self.objective(here)
        if self.value < self.objective(self.best):
            self.best = point
        gradient = self.cuts.finish(cut, follow or better)
        if follow or better:
            self.here, self.cut, self.gradient = point, cut, gradient
            self.scores = self._at_target = scores
        self.smoothing_gap = cut.loss - (cut.height + float(gradient @ w))
        self.threshold_gap = max(cut.loss - cut.counted_loss, 0.0) if self.negatives.is_top_only else 0.0
        self._n_taken += 1
        self.sample.follow(step if follow or better else 0.0)
        self.bundle.add(cut.height, gradient)
        return True


def has_stalled(gaps: Sequence[float], share: float) -> bool:
    """Return whether the last `PATIENT` rounds have not reduced the gap, primal minus dual value, to a share of it."""
    return len(gaps) > PATIENT and gaps[-1] > share * gaps[-1 - PATIENT]


class AllPairs(Solver):
    """Newton steps and cutting planes over all pairs. It is deterministic, and the solver to use by default.

    See `aucdist.solvers.pairs.top_negatives` for the partial AUC. With an L2 penalty a fit of large data starts at
    the solution over a sample (`aucdist.solvers.sample`). It has no parameters of its own.
    """

    name = "all-pairs"
    objective = "pairwise hinge"
    takes = ("penalty", *TOP_PARAMETERS, "group_weight", "grade_weight")
    groups = True
    ignores_zero_weight = True
    takes_codes = True
    signs = True

    def rounds(self, blocks: Blocks, lam: float, start: np.ndarray | None = None, **options: Any) -> Iterator[Round]:
        """Yield the best weights so far, their objective, the best bound so far; see `PairObjective.of` for the options."""
        return minimise_hinge(blocks, PairObjective.of(blocks, lam, **options), start)

    def path(self, blocks: Blocks, **options: Any) -> CuttingPlanes:
        """Return the cutting planes, which solve for one lam after another; options as of `rounds`."""
        return CuttingPlanes(blocks, PairObjective.of(blocks, 1.0, **options))


def minimise_hinge(blocks: Blocks, objective: PairObjective, start: np.ndarray | None = None) -> Iterator[Round]:
    """Yield the rounds of `CuttingPlanes`, from the solution over a sample where the data are large and there is no start."""
    penalty, subset, passes = objective.penalty, objective.subset, 0
    part = 1.0 if subset is None else subset.weight(blocks) / blocks.weight_neg

    def on_sample(drawn: Block) -> Iterator[Round] | None:
        """Return the rounds over the sample; None where lam is so small that its weights would fit noise."""
        # So much smaller is the sample of the negatives that count.
        if penalty.lam < LEAST_NOISE * sample.noise(drawn) / part:
            return None
        return minimise_hinge(*objective.on_sample(blocks, drawn))

    if start is None and not penalty.has_corners:
        last, passes = sample.solve_on_sample(blocks, on_sample, NEAR, objective.n_to_draw)
        start = None if last is None else last.w
    for state in CuttingPlanes(blocks, objective, start).rounds(penalty.lam):
        yield replace(state, passes=passes + state.passes)
