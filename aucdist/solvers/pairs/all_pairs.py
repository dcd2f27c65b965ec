"""The optimised cutting plane method over all positive-negative pairs, with its certificate.

Minimises ``P(w) = lam/2 |w|^2 + mean over all pairs of max(0, 1 - w.(x_i - x_j))``, a pair weighing w_i w_j where rows have
weights.

After Franc & Sonnenburg, "Optimized Cutting Plane Algorithm for Large-Scale Risk Minimization" (JMLR 10, 2009), carried
over to pairs. Departures: the sweep over pairs goes through the sorted scores of the smaller class (`kernels.pairs`); the
rows of the larger class are dealt into groups, each with its own cuts, which saves rounds where the classes are lopsided; the
next point to look at is the bundle's minimiser near the best point (a proximal term whose weight follows the line search's
steps), which saves rounds where many pairs make the objective smooth; the line
search takes the zero of a chord of the exact derivative at a few steps, all of them from one reduction; on large data the
start is the solution over a sample (`aucdist.solvers.sample`), where the first cut bounds the optimum from nearby.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, LocalBlocks, Summary, without_rows
from aucdist.kernels.pairs import cut, guide, slopes_along
from aucdist.kernels.rows import accumulate, accumulate_each, project
from aucdist.solvers import sample
from aucdist.solvers.base import Round
from aucdist.solvers.pairs.bundle import Bundle
from aucdist.solvers.rounding import EPS, Rounding, higher

BEYOND = 0.03
"""The next cut is taken this share of the rest of the way beyond the line search's point (Franc & Sonnenburg's mu, 0.1)."""

STEPS = np.array([0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.45, 0.65, 0.9, 1.3])
"""Where the line search looks, in units of the way to the bundle's point."""

TOO_SHORT, LONG = 0.05, 0.3
"""Line searches that end below or above these tell that the bundle's points lie too far off, or could lie further."""

FEW_ROWS, SHARE_OF_ROWS, ROWS_BY_GAP = 2_000, 1 / 80, 10.0
"""The line search looks at a sample of the rows with active pairs: so many at least, so large a share, so many over the gap."""

NEAR = 0.03
"""The gap to which a sample is solved: its own optimum is as far from that over all rows."""

LEAST_NOISE = 0.01
"""A sample whose lam is below this share of `sample.noise` is solved by weights so much its own that cuts at zero are better."""

PATIENCE = 100
"""Passes without any bound above 0 after which cuts that rounding cannot tell apart end the fit."""

MAX_GROUPS = 24

MAX_CELLS = 2**16
"""Of the table that guides a search: what stays in a core's second-level cache."""


@dataclass(frozen=True)
class Memory:
    """What a block keeps: its rows by class, and scores of the larger class (mirrored where the negatives are the smaller).

    Attributes
    ----------
    anchors, others : ndarray of int64
        Positions of the rows of the smaller and of the larger class; these lie group by group.
    weights, best, candidate, trial : ndarray of float64
        Of the others: weights, and scores at the best point, at the bundle's, and where the last cut was taken.
    ends : ndarray of shape (n_groups + 1,), int64
        Where each group begins and ends in `others`.
    """

    anchors: np.ndarray
    others: np.ndarray
    weights: np.ndarray
    ends: np.ndarray
    best: np.ndarray
    candidate: np.ndarray
    trial: np.ndarray


@dataclass(frozen=True)
class Anchors:
    """The smaller class at one point, as the kernels want it."""

    scores: np.ndarray
    table: np.ndarray
    low: np.ndarray
    scale: np.ndarray
    weight_below: np.ndarray
    score_below: np.ndarray
    order: np.ndarray

    @classmethod
    def at(cls, scores: np.ndarray, weights: np.ndarray) -> "Anchors":
        """Sort the anchors by score."""
        order = np.argsort(scores)
        ascending = scores[order]
        table = np.empty(min(2 * len(scores), MAX_CELLS) + 1, dtype=np.int32)
        low, scale = guide(ascending, table)
        below, score_below = running(weights[order]), running(weights[order] * ascending)
        return cls(ascending, table, np.asarray(low), np.asarray(scale), below, score_below, order)

    def search(self) -> tuple[np.ndarray, ...]:
        """Return what a search needs, in the kernels' order."""
        return self.scores, self.table, self.low[()], self.scale[()]


def running(values: np.ndarray) -> np.ndarray:
    """Return the running sums, starting with 0."""
    out = np.zeros(len(values) + 1)
    np.cumsum(values, out=out[1:])
    return out


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def begin(block: Block, memory: Memory | None, w: np.ndarray, sign: int, n_groups: int) -> tuple[Memory, Summary]:
    """Sort the rows by class and score them at the start."""
    weight = block.weights()
    there = weight > 0  # rows outside a fold stay in the block, and weigh nothing
    anchors, others = (np.flatnonzero(there & (block.y == label)) for label in (sign, -sign))
    # By row id, so that the cuts do not depend on how the rows lie in blocks.
    group = block.row_id[others] % n_groups
    others = others[np.argsort(group, kind="stable")]
    ends = np.concatenate(([0], np.cumsum(np.bincount(group, minlength=n_groups))))
    scores = np.empty(block.n_samples)
    project(block.rows, sign * w, scores)
    at_start = scores[others]
    memory = Memory(anchors, others, weight[others], ends, at_start, at_start, at_start)
    return memory, {"scores": [scores[anchors]], "weights": [weight[anchors]]}


def look(block: Block, memory: Memory, w: np.ndarray, sign: int) -> tuple[Memory, Summary]:
    """Score the rows at the bundle's point."""
    scores = np.empty(block.n_samples)
    project(block.rows, sign * w, scores)
    return replace(memory, candidate=scores[memory.others]), {"scores": [scores[memory.anchors]]}


@without_rows
def search(
    block: int, memory: Memory, steps: np.ndarray, stride: int, along: tuple[np.ndarray, ...]
) -> tuple[Memory, Summary]:
    """Derivative of the hinge sum along the way from the best point to the bundle's, and the weight of the rows looked at."""
    slopes = np.zeros(len(steps))
    slopes_along(memory.best, memory.candidate, memory.weights, steps, stride, *along, slopes)
    return memory, {"slopes": slopes, "weight": memory.weights[::stride].sum()}


def cut_here(block: Block, memory: Memory, step: float, anchors: Anchors) -> tuple[Memory, Summary]:
    """Take the cuts at a step of the way; their gradients so far hold the larger class's part only."""
    scores = memory.candidate - memory.best
    scores *= step
    scores += memory.best
    n_groups = len(memory.ends) - 1
    coefs = np.empty(len(scores))
    histogram = np.zeros((n_groups, len(anchors.scores) + 1))
    active, hinge = np.zeros(n_groups), 0.0
    gradients = np.zeros((n_groups, block.n_features))
    for g in range(n_groups):
        mine = slice(memory.ends[g], memory.ends[g + 1])
        active[g], of_group = cut(
            scores[mine], memory.weights[mine], *anchors.search(), anchors.weight_below, anchors.score_below,
            coefs[mine], histogram[g],
        )  # fmt: skip
        hinge += of_group
        accumulate(block.rows, memory.others[mine], coefs[mine], gradients[g])
    told = {"hinge": hinge, "active": active, "histogram": histogram, "gradients": gradients}
    return replace(memory, trial=scores), {**told, "rows": np.count_nonzero(coefs)}


def finish_cut(
    block: Block, memory: Memory, coefs: np.ndarray, offsets: np.ndarray, keep: bool
) -> tuple[Memory, Summary]:
    """Add the anchors' part of the gradients; with `keep`, where the cut was taken becomes the best point."""
    gradients = np.zeros((len(coefs), block.n_features))
    mine = coefs[:, offsets[block.index] : offsets[block.index + 1]]
    accumulate_each(block.rows, memory.anchors, mine, gradients)
    return replace(memory, best=memory.trial if keep else memory.best), {"gradients": gradients}


# ---- rounds: run by the client ----------------------------------------------------------------------------------------


def all_pairs(blocks: Blocks, lam: float, start: np.ndarray | None = None) -> Iterator[Round]:
    """Solve by cutting planes over all pairs.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be there.
    lam : float
    start : ndarray of shape (n_features,), optional
        Where to begin; by default at the solution over a sample, on small data and with a small lam at zero.

    Yields
    ------
    Round
        The best weights so far, their exact objective, the best bound so far.
    """
    passes = 0
    if start is None:
        known, passes = sample.begin(blocks, lambda drawn: _on_sample(drawn, lam), NEAR)
        start = None if known is None else known.w
    for state in AllPairs(blocks, start).rounds(lam):
        yield replace(state, passes=passes + state.passes)


def _on_sample(drawn: Block, lam: float) -> Iterator[Round] | None:
    return all_pairs(LocalBlocks([drawn]), lam) if lam >= LEAST_NOISE * sample.noise(drawn) else None


def number_of_groups(n_anchors: int, n_others: int, n_features: int) -> int:
    """Return how many cuts to take per round.

    More cuts mean fewer rounds, but each costs a walk over the anchors' rows, a histogram over the anchors and a gradient:
    never more than half of what the larger class itself costs, and no more than a megabyte on the wire. Small data get one,
    so that a row of weight 2 is two rows.
    """
    return max(1, min(MAX_GROUPS, n_others // max(2 * n_anchors, 4000), 2**17 // (n_anchors + n_features)))


class AllPairs:
    """Best point, cuts, and what both need: one after another, `rounds` of several lam go on from them.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be there.
    start : ndarray of shape (n_features,) or None
        Where to begin; zero by default.
    """

    def __init__(self, blocks: Blocks, start: np.ndarray | None):
        n_anchors = min(blocks.n_pos, blocks.n_neg)
        # The anchors' weights and scores, and the weights of the rows that each is active with, are running sums.
        self.rounding = Rounding.of(blocks, running=2 * n_anchors)
        self.blocks = blocks.without_memory()
        self.sign = 1 if blocks.n_pos <= blocks.n_neg else -1
        self.total = blocks.weight_pos * blocks.weight_neg
        self.n_groups = number_of_groups(n_anchors, blocks.n_samples - n_anchors, blocks.n_features)
        self.bundle = Bundle(self.n_groups, blocks.n_features)
        self.hinge = np.inf
        self.w = np.zeros(blocks.n_features) if start is None else start.astype(np.float64)
        self.score_error = self.seen_error = self.rounding.score(self.w)
        begun = self.blocks.reduce(begin, self.w, self.sign, self.n_groups)
        self.offsets = np.cumsum([0] + [len(part) for part in begun["scores"]])
        self.anchors = np.concatenate(begun["scores"])
        self.weights = np.concatenate(begun["weights"])

    @property
    def primal(self) -> float:
        """The objective at the best point."""
        return self.hinge + self.penalty(self.w)

    @property
    def primal_error(self) -> float:
        """A bound on the rounding error of `primal`: of the scores, two to a pair, and of the sums."""
        of_pairs = self.rounding.pair_hinge(self.w, self.hinge, self.score_error)
        return of_pairs + self.rounding.penalty(self.w, self.penalty(self.w))

    def penalty(self, w: np.ndarray) -> float:
        """Return what the weights cost."""
        return 0.5 * self.lam * float(w @ w)

    def is_stuck(self, dual: float, passes: int) -> bool:
        """Tell whether gradients are so long, as of unscaled columns, that rounding hides which combination of them is short."""
        return passes >= PATIENCE and dual <= 0.0 and self.bundle.resolution(self.lam) > self.primal

    def dual_error(self, w: np.ndarray) -> float:
        """Return a bound on the rounding error of the bundle's bound, where w is the combination's weights."""
        active, n_points = self.bundle.active, self.bundle.n_points
        share = self.rounding.over_rows + EPS * n_points
        slope_error = self.rounding.combination(2.0 * active, extra=2 * n_points)
        return share * active + self.rounding.half_square(self.lam * w, slope_error) / self.lam

    def rounds(self, lam: float) -> Iterator[Round]:
        """Solve for lam, from the best point and the cuts there are."""
        self.lam = lam
        dual, error, passes, mu, nulls = -np.inf, 0.0, 0, 0.0, 0
        if self.bundle.n_points == 0:
            self.take_cut(0.0, self.anchors, self.w)
            passes = 1
        while True:
            target, bound = self.bundle.solve(lam)
            dual, error = higher((dual, error), (bound, self.dual_error(target)))
            yield Round(
                self.w.copy(), self.primal, dual, passes, primal_error=self.primal_error, dual_error=error,
                stuck=self.is_stuck(dual, passes),
            )  # fmt: skip
            if mu > 0.0:
                target = self.bundle.near(lam, self.w, mu)
            step = self._advance(target, (self.primal - dual) / self.primal)
            nulls = nulls + 1 if step == STEPS[0] else 0
            if step > LONG or nulls > 2:
                # Room to go; or no way down thrice, and closer targets would leave the bundle as wrong as it is.
                mu = 0.5 * mu
            elif step < TOO_SHORT:
                mu = max(2.0 * mu, lam)
            passes += 1

    def _advance(self, target: np.ndarray, gap: float) -> float:
        """Look at the target, walk towards it, take the cuts a little beyond, and return the step walked."""
        seen = self.look_at(target)
        way = target - self.w
        step = self._line_search(seen, way, gap)
        beyond = step + BEYOND * (1.0 - step)
        self.take_cut(beyond, self.anchors + beyond * (seen - self.anchors), self.w + beyond * way)
        return step

    def _line_search(self, seen: np.ndarray, way: np.ndarray, gap: float) -> float:
        """Return the step that about minimises the objective along the way."""
        wanted = max(FEW_ROWS, ROWS_BY_GAP / max(gap, 1e-12))
        stride = max(1, int(self.active_rows // max(wanted, SHARE_OF_ROWS * self.blocks.n_samples)))
        # The anchors travel, once for each step, however many rows there are; a fifth of them tells as much as the rows do.
        some = max(1, int(len(self.anchors) // max(FEW_ROWS, wanted / 5)))
        anchors, weights = self.anchors[::some], self.weights[::some]
        change = seen[::some] - anchors
        points = [Anchors.at(anchors + step * change, weights) for step in STEPS]
        parts = [(*p.search(), p.weight_below, running((weights * change)[p.order])) for p in points]
        along = tuple(np.stack(part) for part in zip(*parts, strict=True))
        found = self.blocks.reduce(search, STEPS, stride, along)
        slopes = found["slopes"] / (found["weight"] * weights.sum())
        slopes += self.lam * (self.w @ way + STEPS * (way @ way))
        if slopes[0] >= 0:
            return float(STEPS[0])
        if slopes[-1] <= 0:
            return float(STEPS[-1])
        k = int(np.argmax(slopes > 0))
        return float(STEPS[k - 1] + (STEPS[k] - STEPS[k - 1]) * slopes[k - 1] / (slopes[k - 1] - slopes[k]))

    def look_at(self, w: np.ndarray) -> np.ndarray:
        """Score all rows at w, the end of the way that starts at the best point, and return the anchors' scores."""
        self.seen_error = self.rounding.score(w)
        return np.concatenate(self.blocks.reduce(look, w, self.sign)["scores"])

    def take_cut(self, step: float, scores: np.ndarray, w: np.ndarray) -> float:
        """Give the bundle one point per group, the active pairs' weight and gradient, and keep w if it is the best so far.

        Parameters
        ----------
        step : float
            Where w lies on the way from the best point to the one looked at last.
        scores : ndarray of shape (n_anchors,), float64
            The anchors', at w.
        w : ndarray of shape (n_features,), float64

        Returns
        -------
        float
            The objective at w.
        """
        anchors = Anchors.at(scores, self.weights)
        error = self._error_on_the_way(step, w)
        taken = self.blocks.reduce(cut_here, step, anchors)
        hinge = float(taken["hinge"] / self.total)
        value = hinge + self.penalty(w)
        keep = value < self.primal
        if keep:
            self.hinge, self.w, self.anchors, self.score_error = hinge, w, scores, error
        self.active_rows = taken["rows"]
        above = np.cumsum(taken["histogram"][:, ::-1], axis=1)[:, ::-1][:, 1:]
        coefs = np.empty_like(above)
        coefs[:, anchors.order] = -above * self.weights[anchors.order]
        rest = self.blocks.reduce(finish_cut, coefs, self.offsets, keep)
        gradients = (taken["gradients"] + rest["gradients"]) * (self.sign / self.total)
        self.bundle.add(taken["active"] / self.total, gradients)
        return value

    def _error_on_the_way(self, step: float, w: np.ndarray) -> float:
        """Return a bound on the errors of scores taken at a step of the way: those of both ends, and of the sums of both."""
        of_ends = abs(1.0 - step) * self.score_error + abs(step) * self.seen_error
        return of_ends + 4.0 * EPS * (self.rounding.reach(self.w) + self.rounding.reach(w))
