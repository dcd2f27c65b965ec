"""The optimised cutting plane method over all positive-negative pairs, with its certificate.

Minimises ``P(w) = lam/2 |w|^2 + mean over all pairs of max(0, 1 - w.(x_i - x_j))``, a pair weighing w_i w_j where rows have
weights.

After Franc & Sonnenburg, "Optimized Cutting Plane Algorithm for Large-Scale Risk Minimization" (JMLR 10, 2009), carried
over to pairs. Departures: the sum over pairs goes through the sorted scores of the anchors, the rows of the smaller class
(`aucdist.solvers.pairs.anchors`); the rows of the larger class are divided into groups, each with its own cuts, which saves
rounds where the classes are very unequal; the next target is the bundle's minimiser near the best point (a proximal term whose
weight depends on the steps of the line search), which saves rounds where many pairs make the objective smooth; the line search
takes the zero of a chord of the exact derivative at a few steps, all of them from one reduction.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary, without_rows
from aucdist.kernels.pair_groups import slopes_along_in_groups
from aucdist.kernels.rows import accumulate, accumulate_each
from aucdist.solvers.base import Round
from aucdist.solvers.cone import project
from aucdist.solvers.pairs.anchors import Anchors, anchors_along
from aucdist.solvers.pairs.bundle import Bundle
from aucdist.solvers.pairs.grouped_anchors import AnchorGroups
from aucdist.solvers.pairs.groups import PairGroups
from aucdist.solvers.pairs.hinge import HINGE
from aucdist.solvers.pairs.loss import CutPairLoss
from aucdist.solvers.pairs.objective import rounding_of_pairs
from aucdist.solvers.pairs.problem import PairMemory, PairProblem, sort_and_score
from aucdist.solvers.rounding import EPS, higher

BEYOND = 0.03
"""The next cut is taken this share of the rest of the way beyond the line search's point (Franc & Sonnenburg's mu, 0.1)."""

STEPS = np.array([0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.45, 0.65, 0.9, 1.3])
"""The steps at which the line search takes the derivative, in units of the way to the target."""

TOO_SHORT, LONG = 0.05, 0.3
"""A line search that ends below the first shows that the target was too far off; above the second, that it could be further."""

FEW_ROWS, SHARE_OF_ROWS, ROWS_BY_GAP = 2_000, 1 / 25, 10.0
"""The line search uses a sample of the rows with active pairs: at least so many, so large a share, and so many over the gap."""

PATIENCE = 100
"""Passes without any bound above 0 after which cuts that differ by rounding only end the fit."""

MAX_GROUPS = 24

ANCHORS_ON_LINE, FEW_GROUPS = 50_000, 200
"""Within groups the line search uses all groups where anchors are at most so many; else some, but not fewer than so many."""


@dataclass(frozen=True, eq=False)
class AllPairsMemory(PairMemory):
    """What a block keeps; `scores` are those at the bundle's point, the end of the line search.

    Attributes
    ----------
    best, trial : ndarray of shape (n_others,), float64
        Scores of the larger class at the best point, and where the last cut was taken.
    """

    best: np.ndarray
    trial: np.ndarray


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def sort_at_start(
    block: Block, memory: None, w: np.ndarray, sign: int, n_groups: int, pair_groups: PairGroups | None = None
) -> tuple[AllPairsMemory, Summary]:
    """Sort the rows by class and score them at the start, which is the best point so far."""
    scored, summary = sort_and_score(block, memory, w, sign, n_groups, pair_groups)
    return AllPairsMemory(**vars(scored), best=scored.scores, trial=scored.scores), summary


@without_rows
def slopes_on_line(
    block: int,
    memory: AllPairsMemory,
    loss: CutPairLoss,
    steps: np.ndarray,
    stride: int,
    anchors: tuple[np.ndarray, ...],
) -> tuple[AllPairsMemory, Summary]:
    """Return the loss's derivative at steps of the way from the best point to the bundle's, and the weight of the rows used."""
    slopes = np.zeros(len(steps))
    loss.add_slopes_along(memory.best, memory.scores, memory.weights, steps, stride, anchors, slopes)
    return memory, {"slopes": slopes, "weight": memory.weights[::stride].sum()}


@without_rows
def slopes_in_groups(
    block: int,
    memory: AllPairsMemory,
    loss: CutPairLoss,
    steps: np.ndarray,
    stride: int,
    anchors: tuple[np.ndarray, ...],
) -> tuple[AllPairsMemory, Summary]:
    """Do what `slopes_on_line` does over the pairs within groups; the weight is that of the pairs used."""
    slopes, weight = np.zeros(len(steps)), 0.0
    for part, runs in enumerate(memory.runs):
        mine = slice(memory.ends[part], memory.ends[part + 1])
        ends = memory.best[mine], memory.scores[mine], memory.weights[mine]
        weight += slopes_along_in_groups(*ends, *runs, steps, stride, *anchors, slopes)
    return memory, {"slopes": slopes, "weight": weight}


def cut_groups(
    block: Block, memory: AllPairsMemory, loss: CutPairLoss, step: float, anchors: Anchors
) -> tuple[AllPairsMemory, Summary]:
    """Take a cut for each group at a step of the way; its gradient so far holds the larger class's part only."""
    scores = memory.scores - memory.best
    scores *= step
    scores += memory.best
    n_groups = len(memory.ends) - 1
    coefs = np.empty(len(scores))
    tally = np.array([loss.new_tally(anchors.n_places) for _ in range(n_groups)])
    heights, total = np.zeros(n_groups), 0.0
    gradients = np.zeros((n_groups, block.n_features))
    for g in range(n_groups):
        mine = slice(memory.ends[g], memory.ends[g + 1])
        facing = memory.facing(anchors, g)
        heights[g], of_group = loss.cut(scores[mine], memory.weights[mine], facing, coefs[mine], tally[g])
        total += of_group
        accumulate(block.rows, memory.others[mine], coefs[mine], gradients[g])
    summary = {"loss": total, "heights": heights, "tally": tally, "gradients": gradients}
    return replace(memory, trial=scores), {**summary, "rows": np.count_nonzero(coefs)}


def finish_cuts(
    block: Block, memory: AllPairsMemory, coefs: np.ndarray, offsets: np.ndarray, keep: bool
) -> tuple[AllPairsMemory, Summary]:
    """Add the anchors' part of the gradients; with `keep`, where the cut was taken becomes the best point."""
    gradients = np.zeros((len(coefs), block.n_features))
    mine = coefs[:, offsets[block.index] : offsets[block.index + 1]]
    accumulate_each(block.rows, memory.anchors, mine, gradients)
    return replace(memory, best=memory.trial if keep else memory.best), {"gradients": gradients}


# ---- rounds: run by the client ----------------------------------------------------------------------------------------


def number_of_groups(n_anchors: int, n_others: int, n_features: int) -> int:
    """Return how many cuts to take per round.

    More cuts need fewer rounds, but each costs a pass over the anchors' rows, a histogram over the anchors and a gradient. So the
    cuts cost at most half as much as the larger class, and their gradients take at most a megabyte. Small data have one group, so
    that a row of weight 2 is the same as two rows.
    """
    return max(1, min(MAX_GROUPS, n_others // max(2 * n_anchors, 4000), 2**17 // (n_anchors + n_features)))


def number_of_parts(groups: PairGroups, n_features: int) -> int:
    """Return how many cuts to take per round over the pairs within groups; see `number_of_groups`."""
    few, many = sorted((groups.n_pos, groups.n_neg))
    return number_of_groups(few + groups.n_groups, many, n_features)


class CuttingPlanes(PairProblem):
    """The best point and the cuts so far: `rounds` for one lam after another start from them.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be there.
    start : ndarray of shape (n_features,) or None
        Zero by default.
    loss : CutPairLoss, default=HINGE
    signs : ndarray of shape (n_features,), int8, optional
        Of the weights, see `aucdist.solvers.cone`: the minimum, the bound and all points are those of this cone.
    groups : PairGroups, optional
        Where pairs are within groups.
    """

    loss: CutPairLoss

    def __init__(
        self,
        blocks: Blocks,
        start: np.ndarray | None,
        loss: CutPairLoss = HINGE,
        *,
        signs: np.ndarray | None = None,
        groups: PairGroups | None = None,
    ):
        self.signs = signs
        self.rounding = rounding_of_pairs(blocks, groups)
        self.n_groups = self.groups_of(blocks) if groups is None else number_of_parts(groups, blocks.n_features)
        self.bundle = self.new_bundle(blocks.n_features)
        self.best_loss, self.gap = np.inf, 1.0
        self.w = np.zeros(blocks.n_features) if start is None else project(start.astype(np.float64), signs)
        self.best_error = self.target_error = self.rounding.score(self.w)
        super().__init__(blocks, loss, groups)

    def groups_of(self, blocks: Blocks) -> int:
        """Return how many cuts to take per round."""
        n_anchors = min(blocks.n_pos, blocks.n_neg)
        return number_of_groups(n_anchors, blocks.n_samples - n_anchors, blocks.n_features)

    def sort_rows(self) -> Summary:
        """Sort the rows by class and group, and score them at the start."""
        summary = self.blocks.reduce(sort_at_start, self.w, self.sign, self.n_groups, self.groups)
        self.best_scores = np.concatenate(summary["scores"])
        return summary

    @property
    def primal(self) -> float:
        """The objective at the best point."""
        return self.best_loss + self.penalty(self.w)

    @property
    def primal_error(self) -> float:
        """A bound on the rounding error of `primal`: of the scores, two to a pair, and of the sums."""
        of_pairs = self.rounding.pair_hinge(self.w, self.best_loss, self.best_error)
        return of_pairs + self.rounding.penalty(self.w, self.penalty(self.w))

    def penalty(self, w: np.ndarray) -> float:
        """Return the penalty of the weights."""
        return 0.5 * self.lam * float(w @ w)

    def is_stuck(self, dual: float, passes: int) -> bool:
        """Return whether gradients are so long, as of unscaled columns, that rounding hides which combination is short."""
        return passes >= PATIENCE and dual <= 0.0 and self.bundle.resolution(self.lam) > self.primal

    def dual_error(self, w: np.ndarray) -> float:
        """Return a bound on the rounding error of the bundle's bound, where w is the combination's weights."""
        height, n_points = self.bundle.height, self.bundle.n_points
        share = self.rounding.over_rows + EPS * n_points
        slope_error = self.rounding.combination(2.0 * height, extra=2 * n_points)
        return share * height + self.rounding.half_square(self.lam * w, slope_error) / self.lam

    def rounds(self, lam: float) -> Iterator[Round]:
        """Solve for lam, from the best point and the cuts so far."""
        self.lam = lam
        dual, error, passes, nulls = -np.inf, 0.0, 0, 0
        if self.bundle.n_points == 0:
            self.take_cuts(0.0, self.best_scores, self.w)
            passes = 1
        mu = self.weight_at_start()
        while True:
            target, bound = self.bundle.best_combination(lam)
            dual, error = higher((dual, error), (bound, self.dual_error(target)))
            yield Round(
                self.w.copy(), self.primal, dual, passes, primal_error=self.primal_error, dual_error=error,
                stuck=self.is_stuck(dual, passes),
            )  # fmt: skip
            if mu > 0.0:
                target = self.bundle.proximal_point(lam, self.w, mu)
            self.gap = (self.primal - dual) / self.primal
            step = self._advance(target)
            nulls = nulls + 1 if step == STEPS[0] else 0
            if step > LONG or nulls > 2:
                # The target may be further off; or three line searches found no descent, and a nearer target would not
                # correct the bundle.
                mu = 0.5 * mu
            elif step < TOO_SHORT:
                mu = max(2.0 * mu, lam)
            passes += 1

    def weight_at_start(self) -> float:
        """Return the weight of the first target's proximal term: 0, until a line search ends early."""
        return 0.0

    def score(self, w: np.ndarray) -> np.ndarray:
        """Score all rows at w, the end of the way that starts at the best point, and return the anchors' scores."""
        self.target_error = self.rounding.score(w)
        return super().score(w)

    def _advance(self, target: np.ndarray) -> float:
        """Walk towards the target, take the cuts a little beyond, and return the step walked."""
        at_target = self.score(target)
        way = target - self.w
        step = self._line_search(at_target, way)
        if self.signs is not None:
            step = min(
                step, 1.0
            )  # points beyond the target may lie outside the cone; between two of its points none does
        beyond = step + BEYOND * (1.0 - step)
        scores = self.best_scores + beyond * (at_target - self.best_scores)
        self.take_cuts(beyond, scores, self.w + beyond * way)
        return step

    def _line_search(self, at_target: np.ndarray, way: np.ndarray) -> float:
        """Return the step that about minimises the objective along the way."""
        wanted = max(FEW_ROWS, ROWS_BY_GAP / max(self.gap, 1e-12))
        stride = max(1, int(self.active_rows // max(wanted, SHARE_OF_ROWS * self.blocks.n_samples)))
        slopes = self._slopes_of_loss(at_target, wanted, stride) + self.lam * (self.w @ way + STEPS * (way @ way))
        if slopes[0] >= 0:
            return float(STEPS[0])
        if slopes[-1] <= 0:
            return float(STEPS[-1])
        k = int(np.argmax(slopes > 0))
        return float(STEPS[k - 1] + (STEPS[k] - STEPS[k - 1]) * slopes[k - 1] / (slopes[k - 1] - slopes[k]))

    def _slopes_of_loss(self, at_target: np.ndarray, wanted: float, stride: int) -> np.ndarray:
        """Return the derivative of the loss at `STEPS`, from about `wanted` rows."""
        if self.groups is not None:
            return self._slopes_in_groups(at_target, stride)
        # The anchors are sent for each step, however many rows there are; a fifth as many of them are as precise as the rows.
        some = max(1, int(len(self.weights) // max(FEW_ROWS, wanted / 5)))
        start = self.best_scores[::some]
        change = at_target[::some] - start
        points = start + STEPS[:, np.newaxis] * change
        weights = np.stack([self.counting_weights(scores, self.weights[::some]) for scores in points])
        return self.slopes_at_steps(stride, anchors_along(points, weights, change)) / weights.sum(axis=1)

    def _slopes_in_groups(self, at_target: np.ndarray, stride: int) -> np.ndarray:
        """Return the derivative of the loss at `STEPS`, from the pairs of some rows, in some groups where anchors are many."""
        assert self.groups is not None
        assert self.anchor_groups is not None
        every = max(1, min(len(self.weights) // ANCHORS_ON_LINE, self.groups.n_groups // FEW_GROUPS))
        codes = self.anchor_groups.codes
        some = np.flatnonzero(codes % every == 0)
        change = (at_target - self.best_scores)[some]
        points = self.best_scores[some] + STEPS[:, np.newaxis] * change
        anchors = AnchorGroups(codes[some], self.groups.n_groups).along(points, self.weights[some], change)
        found = self.blocks.reduce(slopes_in_groups, self.loss, STEPS, max(1, stride // every), anchors)
        if not found["weight"]:  # of so few rows that none of them was used
            found = self.blocks.reduce(slopes_in_groups, self.loss, STEPS, 1, anchors)
        slopes: np.ndarray = found["slopes"] / found["weight"]
        return slopes

    def take_cuts(self, step: float, scores: np.ndarray, w: np.ndarray) -> float:
        """Give the bundle one point per group, the tangent's height and gradient, and keep w if it is the best so far.

        Parameters
        ----------
        step : float
            Where w lies on the way from the best point to the one scored last.
        scores : ndarray of shape (n_anchors,), float64
            The anchors', at w.
        w : ndarray of shape (n_features,), float64

        Returns
        -------
        float
            The objective at w.
        """
        weights = self.counting_weights(scores, self.weights)
        anchors, order = self.sort_anchors(scores, weights)
        error = self._error_on_the_way(step, w)
        taken = self.cut_at(step, anchors)
        value, keep = self.keep_if_best(float(taken["loss"] / self.mass), w, scores, error)
        self.active_rows = taken["rows"]
        coefs = self.loss.anchor_slopes(taken["tally"], anchors, weights, order)
        rest = self.blocks.reduce(finish_cuts, coefs, self.offsets, keep)
        gradients = (taken["gradients"] + rest["gradients"]) * (self.sign / self.mass)
        self.add_points(taken, gradients)
        return value

    def keep_if_best(self, loss: float, w: np.ndarray, scores: np.ndarray, error: float) -> tuple[float, bool]:
        """Take w for the best point if its objective is the lowest; return the objective, and whether it is.

        Parameters
        ----------
        loss : float
        w : ndarray of shape (n_features,), float64
        scores : ndarray of float64
            What the client has of the anchors' scores at w.
        error : float
            A bound on the rounding error of a score.
        """
        value = loss + self.penalty(w)
        keep = value < self.primal
        if keep:
            self.best_loss, self.w, self.best_scores, self.best_error = loss, w, scores, error
        return value, keep

    def new_bundle(self, n_features: int) -> Bundle:
        """Return an empty bundle."""
        return Bundle(self.n_groups, n_features, signs=self.signs)

    def add_points(self, taken: Summary, gradients: np.ndarray) -> None:
        """Add the cuts to the bundle: their heights are in the summary of `cut_at`."""
        self.bundle.add(taken["heights"] / self.mass, gradients)

    def counting_weights(self, scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return how much each anchor weighs at these scores, float64 of shape (n_anchors,); here its own weight."""
        return weights

    def cut_at(self, step: float, anchors: Anchors) -> Summary:
        """Let the blocks take cuts at a step of the way; the summary is that of `cut_groups`."""
        return self.blocks.reduce(cut_groups, self.loss, step, anchors)

    def slopes_at_steps(self, stride: int, along: tuple[np.ndarray, ...]) -> np.ndarray:
        """Return the derivative of the loss at `STEPS`, by the step, as a mean over the larger class's rows."""
        found = self.blocks.reduce(slopes_on_line, self.loss, STEPS, stride, along)
        slopes: np.ndarray = found["slopes"] / found["weight"]
        return slopes

    def _error_on_the_way(self, step: float, w: np.ndarray) -> float:
        """Return a bound on the errors of scores taken at a step of the way: those of both ends, and of the sums of both."""
        of_ends = abs(1.0 - step) * self.best_error + abs(step) * self.target_error
        return of_ends + 4.0 * EPS * (self.rounding.reach(self.w) + self.rounding.reach(w))
