"""The optimised cutting plane method over all positive-negative pairs, with its certificate.

Minimises ``P(w) = lam/2 |w|^2 + mean over all pairs of max(0, 1 - w.(x_i - x_j))``, a pair weighing w_i w_j where rows have
weights.

After Franc & Sonnenburg, "Optimized Cutting Plane Algorithm for Large-Scale Risk Minimization" (JMLR 10, 2009), carried
over to pairs. Departures: the sweep over pairs goes through the sorted scores of the smaller class (`kernels.pairs`); the
rows of the larger class are dealt into groups, each with its own cuts, which saves rounds where the classes are lopsided;
the line search takes the zero of a chord of the exact derivative at a few steps, all of them from one reduction.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary
from aucdist.kernels.pairs import cut, guide, hinge_sum, slopes_along
from aucdist.kernels.rows import accumulate, accumulate_by_group, project
from aucdist.solvers.base import Round
from aucdist.solvers.simplex import Bundle

BEYOND = 0.1
"""The next cut is taken this share of the way from the best point to the bundle's: Franc & Sonnenburg's mu."""

STEPS = np.array([0.02, 0.05, 0.1, 0.2, 0.35, 0.6, 0.9, 1.3])
"""Where the line search looks, in units of the way to the bundle's point."""

MAX_GROUPS = 16

MAX_CELLS = 2**16
"""Of the table that guides a search: what stays in a core's second-level cache."""


@dataclass(frozen=True)
class Memory:
    """What a block keeps: its rows by class, and scores of the larger class (mirrored where the negatives are the smaller)."""

    anchors: np.ndarray
    others: np.ndarray
    weights: np.ndarray
    group: np.ndarray
    best: np.ndarray
    candidate: np.ndarray
    trials: tuple[np.ndarray, ...] = ()


@dataclass(frozen=True)
class Anchors:
    """The smaller class at one point or at several (then with a leading axis), as the kernels want it."""

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
        order = np.argsort(scores, kind="stable")
        ascending = scores[order]
        table = np.empty(min(4 * len(scores), MAX_CELLS) + 1, dtype=np.int32)
        low, scale = guide(ascending, table)
        below, score_below = _running(weights[order]), _running(weights[order] * ascending)
        return cls(ascending, table, np.asarray(low), np.asarray(scale), below, score_below, order)

    @classmethod
    def stack(cls, points: list["Anchors"]) -> "Anchors":
        """Put several points into one, along a leading axis."""
        return cls(*(np.stack([getattr(p, f.name) for p in points]) for f in fields(cls)))

    def search(self) -> tuple[np.ndarray, ...]:
        """Return what a search needs, in the kernels' order."""
        return self.scores, self.table, self.low[()], self.scale[()]


def _running(values: np.ndarray) -> np.ndarray:
    """Return the running sums, starting with 0."""
    out = np.zeros(len(values) + 1)
    np.cumsum(values, out=out[1:])
    return out


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def begin(block: Block, memory: Memory | None, w: np.ndarray, sign: int, n_groups: int) -> tuple[Memory, Summary]:
    """Sort the rows by class and score them at the start."""
    smaller = block.y == sign
    anchors, others = np.flatnonzero(smaller), np.flatnonzero(~smaller)
    weight = block.weights()
    scores = np.empty(block.n_samples)
    project(block.rows, sign * w, scores)
    at_start = scores[others]
    # By row id, so that the cuts do not depend on how the rows lie in blocks.
    memory = Memory(anchors, others, weight[others], block.row_id[others] % n_groups, at_start, at_start, (at_start,))
    return memory, {"scores": [scores[anchors]], "weights": [weight[anchors]]}


def look(block: Block, memory: Memory, w: np.ndarray, sign: int) -> tuple[Memory, Summary]:
    """Score the rows at the bundle's point."""
    scores = np.empty(block.n_samples)
    project(block.rows, sign * w, scores)
    return replace(memory, candidate=scores[memory.others]), {"scores": [scores[memory.anchors]]}


def search(
    block: Block, memory: Memory, steps: np.ndarray, anchors: Anchors, change_below: np.ndarray
) -> tuple[Memory, Summary]:
    """Derivative of the hinge sum along the way from the best point to the bundle's."""
    slopes = np.zeros(len(steps))
    slopes_along(
        memory.best,
        memory.candidate,
        memory.weights,
        steps,
        *anchors.search(),
        anchors.weight_below,
        change_below,
        slopes,
    )
    return memory, {"slopes": slopes}


def evaluate(block: Block, memory: Memory, step: float, anchors: Anchors) -> tuple[Memory, Summary]:
    """Exact hinge sum at a step of the way; the scores there are kept as the first trial."""
    scores = memory.best + step * (memory.candidate - memory.best)
    total = hinge_sum(scores, memory.weights, *anchors.search(), anchors.weight_below, anchors.score_below)
    return replace(memory, trials=(scores,)), {"hinge": total}


def cut_here(
    block: Block, memory: Memory, step: float | None, anchors: Anchors, n_groups: int
) -> tuple[Memory, Summary]:
    """Take the cuts at a step of the way (None: at the best point), and the part of their gradients owed to the larger class."""
    scores = memory.best if step is None else memory.best + step * (memory.candidate - memory.best)
    coefs = np.empty(len(scores))
    histogram = np.zeros((n_groups, len(anchors.scores) + 1))
    active = np.zeros(n_groups)
    total = cut(
        scores, memory.weights, memory.group, *anchors.search(), anchors.weight_below, anchors.score_below,
        coefs, histogram, active,
    )  # fmt: skip
    gradients = np.zeros((n_groups, block.n_features))
    accumulate_by_group(block.rows, memory.others, coefs, memory.group, gradients)
    memory = replace(memory, trials=(*memory.trials, scores))
    return memory, {"hinge": total, "active": active, "histogram": histogram, "gradients": gradients}


def finish_cut(
    block: Block, memory: Memory, coefs: np.ndarray, offsets: np.ndarray, keep: int | None
) -> tuple[Memory, Summary]:
    """Add the anchors' part of the gradients, and make the trial numbered `keep` the best point (None: the old one stays)."""
    mine = coefs[:, offsets[block.index] : offsets[block.index + 1]]
    gradients = np.zeros((len(coefs), block.n_features))
    for g in range(len(coefs)):
        accumulate(block.rows, memory.anchors, mine[g], gradients[g])
    best = memory.best if keep is None else memory.trials[keep]
    return replace(memory, best=best, trials=()), {"gradients": gradients}


# ---- rounds: run by the client ----------------------------------------------------------------------------------------


def all_pairs(blocks: Blocks, lam: float, start: np.ndarray | None = None) -> Iterator[Round]:
    """Solve by cutting planes over all pairs.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be there.
    lam : float
    start : ndarray of shape (n_features,), optional
        Where to begin; zero by default.

    Yields
    ------
    Round
        The best weights so far, their exact objective, the best bound so far.
    """
    return _AllPairs(blocks, lam, start).rounds()


def number_of_groups(n_anchors: int, n_others: int, n_features: int) -> int:
    """Return how many cuts to take per round.

    More cuts mean fewer rounds, but each costs a walk over the anchors' rows, a histogram over the anchors and a gradient:
    never more than the larger class itself costs, and no more than a few megabytes on the wire. Small data get one, so that
    a row of weight 2 is two rows.
    """
    return max(1, min(MAX_GROUPS, n_others // max(n_anchors, 2000), 2**20 // (n_anchors + n_features)))


class _AllPairs:
    def __init__(self, blocks: Blocks, lam: float, start: np.ndarray | None):
        self.blocks = blocks.fresh()
        self.lam = lam
        self.sign = 1 if blocks.n_pos <= blocks.n_neg else -1
        self.total = blocks.weight_pos * blocks.weight_neg
        n_anchors = min(blocks.n_pos, blocks.n_neg)
        self.n_groups = number_of_groups(n_anchors, blocks.n_samples - n_anchors, blocks.n_features)
        self.bundle = Bundle(self.n_groups, blocks.n_features, lam)
        self.w = np.zeros(blocks.n_features) if start is None else start.astype(np.float64)
        begun = self.blocks.reduce(begin, self.w, self.sign, self.n_groups)
        self.offsets = np.cumsum([0] + [len(part) for part in begun["scores"]])
        self.anchors = np.concatenate(begun["scores"])
        self.weights = np.concatenate(begun["weights"])

    def rounds(self) -> Iterator[Round]:
        here = Anchors.at(self.anchors, self.weights)
        taken = self.blocks.reduce(cut_here, None, here, self.n_groups)
        self.primal = self._objective(taken["hinge"], self.w)
        self._add_cut(taken, here, keep=None)
        dual, passes = -np.inf, 1
        while True:
            target, bound = self.bundle.solve()
            dual = max(dual, bound)
            yield Round(self.w.copy(), self.primal, dual, passes)
            self._advance(target)
            passes += 1

    def _advance(self, target: np.ndarray) -> None:
        """Look at the bundle's point, walk towards it, and take the cuts a little beyond."""
        seen = np.concatenate(self.blocks.reduce(look, target, self.sign)["scores"])
        way = target - self.w
        step = self._line_search(seen, way)
        beyond = step + BEYOND * (1.0 - step)
        there = Anchors.at(self.anchors + step * (seen - self.anchors), self.weights)
        cut_at = Anchors.at(self.anchors + beyond * (seen - self.anchors), self.weights)
        value = self._objective(self.blocks.reduce(evaluate, step, there)["hinge"], self.w + step * way)
        taken = self.blocks.reduce(cut_here, beyond, cut_at, self.n_groups)
        value_beyond = self._objective(taken["hinge"], self.w + beyond * way)
        keep = None
        if min(value, value_beyond) < self.primal:
            keep, chosen = (0, step) if value <= value_beyond else (1, beyond)
            self.primal = min(value, value_beyond)
            self.w = self.w + chosen * way
            self.anchors = self.anchors + chosen * (seen - self.anchors)
        self._add_cut(taken, cut_at, keep)

    def _line_search(self, seen: np.ndarray, way: np.ndarray) -> float:
        """Return the step that about minimises the objective along the way."""
        change = seen - self.anchors
        points = [Anchors.at(self.anchors + step * change, self.weights) for step in STEPS]
        change_below = np.stack([_running((self.weights * change)[p.order]) for p in points])
        slopes = self.blocks.reduce(search, STEPS, Anchors.stack(points), change_below)["slopes"]
        slopes = slopes / self.total + self.lam * (self.w @ way + STEPS * (way @ way))
        if slopes[0] >= 0:
            return float(STEPS[0])
        if slopes[-1] <= 0:
            return float(STEPS[-1])
        k = int(np.argmax(slopes > 0))
        return float(STEPS[k - 1] + (STEPS[k] - STEPS[k - 1]) * slopes[k - 1] / (slopes[k - 1] - slopes[k]))

    def _objective(self, hinge: float, w: np.ndarray) -> float:
        return float(hinge / self.total + 0.5 * self.lam * (w @ w))

    def _add_cut(self, taken: Summary, anchors: Anchors, keep: int | None) -> None:
        """Give the bundle one point per group: the active pairs' weight and gradient."""
        above = np.cumsum(taken["histogram"][:, ::-1], axis=1)[:, ::-1][:, 1:]
        coefs = np.empty_like(above)
        coefs[:, anchors.order] = -above * self.weights[anchors.order]
        rest = self.blocks.reduce(finish_cut, coefs, self.offsets, keep)
        gradients = (taken["gradients"] + rest["gradients"]) * (self.sign / self.total)
        self.bundle.add(taken["active"] / self.total, gradients)
