"""Where a descent on the margin-mean objective stands: what its solvers share, for plain rows and for rows of a Gram matrix.

The objective and its lower bound are those of `aucdist.objectives.margin_mean`, without the term that is the same for all w.
With `gram` the blocks' rows hold inner products with all rows, in the order of the blocks, and the weights are the rows'
coefficients alpha; what is then |w|^2 is alpha' G alpha. A `KernelBlock` finds such rows when they are needed.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary
from aucdist.kernels.rows import accumulate, project
from aucdist.kernels.zeroth_order import HINGE, losses_at
from aucdist.objectives.kernel_block import KernelBlock
from aucdist.objectives.margin_mean import class_factors
from aucdist.solvers.base import Round
from aucdist.solvers.pairs.bundle import maximise
from aucdist.solvers.rounding import EPS, SLACK, Rounding, higher

MOVES = 64
"""Directions of a round, at most about so many: terms of a score's move."""

MAX_CUTS = 60
"""Dual points remembered."""


@dataclass(frozen=True, eq=False)
class Memory:
    """What a block keeps.

    Attributes
    ----------
    index : int
        The block's.
    y : ndarray of shape (n_rows,), int8
    share : ndarray of shape (n_rows,), float64
        Of the row in the mean over all rows.
    pull : ndarray of shape (n_rows,), float64
        y times the class's factor D.
    centre : ndarray of shape (n_rows,), float64
        With `gram`: the rows' products with c.
    scores : ndarray of shape (n_rows,), float64
        At the weights.
    first : int or None
        With `gram`: the place of the block's first row among all.
    moves : ndarray of shape (n_rows, n_directions), float64, or None
        Products with a round's directions.
    slopes : ndarray of shape (n_rows, n_directions), float64, or None
        Of the rows' losses along these, at the weights.
    """

    index: int
    y: np.ndarray
    share: np.ndarray
    pull: np.ndarray
    centre: np.ndarray
    scores: np.ndarray
    first: int | None = None
    moves: np.ndarray | None = None
    slopes: np.ndarray | None = None

    @property
    def own(self) -> slice:
        """Where the block's rows are among all."""
        assert self.first is not None
        return slice(self.first, self.first + len(self.y))

    @property
    def weight(self) -> np.ndarray:
        """The rows' weights, 1 in the mean over the block."""
        total = self.share.sum()
        return self.share * (len(self.share) / total) if total > 0 else self.share


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def begin(
    block: Block, memory: None, weights: tuple[float, float], offsets: np.ndarray | None
) -> tuple[Memory, Summary]:
    """Find the rows' shares, and the block's part of c. `weights` is what all negatives and all positives weigh."""
    share = block.weights() / sum(weights)
    pull = block.y * np.where(block.y > 0, *class_factors(*weights)[::-1])
    first = None if offsets is None else int(offsets[block.index])
    zeros = np.zeros(block.n_samples)
    made = Memory(block.index, block.y, share, pull, zeros, zeros, first)
    return made, {"centre": combined(block, made, share * pull)}


def centred(block: Block, memory: Memory, centre: np.ndarray) -> tuple[Memory, Summary]:
    """Keep the rows' products with c."""
    return replace(memory, centre=products(block, centre)), {}


def place(block: Block, memory: Memory, w: np.ndarray, *told: Any) -> tuple[Memory, Summary]:
    """Move to the weights w, and `tell` about them."""
    return tell(block, replace(memory, scores=products(block, w)), *told)


def scored(block: Block, memory: Memory, vector: np.ndarray) -> tuple[Memory, Summary]:
    """Send the rows' products with a vector."""
    return memory, {"products": [products(block, vector)]}


def tell(block: Block, memory: Memory, loss: int, lam1: float, away: np.ndarray | None) -> tuple[Memory, Summary]:
    """Tell the mean loss where the weights are, and the dual point there. `away` is alpha - lam1 c with `gram`, else None."""
    losses = np.empty(len(memory.share))
    margins = memory.y * memory.scores
    losses_at(loss, margins, losses)
    below = memory.share * (margins < 1.0)
    told = {
        "loss": float(memory.share @ losses),
        "active": float(below.sum()),
        "cut": combined(block, memory, below * memory.y),
    }
    if away is not None:
        told["square"] = float(away[memory.own] @ (memory.scores - lam1 * memory.centre))
    return memory, told


def combined(block: Block, memory: Memory, coefs: np.ndarray) -> Any:
    """Return the sum of the rows with these coefficients; with `gram` the coefficients, a list that lengthens as it merges."""
    if memory.first is not None:
        return [coefs]
    out = np.zeros(block.n_features)
    accumulate(block.rows, np.arange(block.n_samples), coefs, out)
    return out


def products(block: Block, vector: np.ndarray) -> np.ndarray:
    """Return the rows' products with a vector."""
    if isinstance(block, KernelBlock):
        return block.times(vector)
    out = np.empty(block.n_samples)
    project(block.rows, vector, out)
    return out


# ---- rounds: run by the client ----------------------------------------------------------------------------------------


class LowerBound:
    """Dual points, each with its height and the vector that its square is taken of, and the best convex combination of them.

    Parameters
    ----------
    size : int
        Of the vectors.
    """

    def __init__(self, size: int):
        self._heights, self._b, self._born = np.zeros(MAX_CUTS), np.zeros(MAX_CUTS), np.zeros(MAX_CUTS, dtype=np.int64)
        self._vectors, self._gram = np.zeros((MAX_CUTS, size)), np.zeros((MAX_CUTS, MAX_CUTS))
        self._added = 0

    def add(self, height: float, vector: np.ndarray, image: np.ndarray) -> float:
        """Add a point and return the bound; `image` is the vector, or with a Gram matrix what it makes of the vector."""
        k, n = self._place(), min(self._added + 1, MAX_CUTS)
        self._vectors[k], self._heights[k], self._born[k] = vector, height, self._added
        across = self._vectors[:n] @ image
        # Equal points would make the system singular; this makes the bound lower, so that it is one still.
        across[k] += 1e-12 * abs(height)
        self._gram[k, :n] = self._gram[:n, k] = across
        self._added += 1
        gram, heights = self._gram[:n, :n], self._heights[:n]
        b = maximise(gram, heights, np.zeros(n, dtype=np.int64), self._b[:n])
        self._b[:n] = b
        return float(b @ heights - 0.5 * b @ gram @ b)

    def _place(self) -> int:
        """Return where the next point goes: once all places are taken, where the oldest is that has no weight, or the least."""
        if self._added < MAX_CUTS:
            self._b[self._added] = 0.0 if self._added else 1.0
            return self._added
        k = int(np.lexsort((self._born, self._b))[0])
        self._b[k] = 0.0
        self._b /= self._b.sum()
        return k


class Problem:
    """The objective and where a descent on it stands, at first at 0.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be there.
    lam1, lam2 : float
    loss : int
        Of `aucdist.kernels.zeroth_order`.
    gram : bool
        Whether the rows are those of a Gram matrix.

    Attributes
    ----------
    blocks : Blocks
        With memories of their own.
    centre : ndarray of shape (size,), float64
        c; size is n_features, and with `gram` n_samples.
    w : ndarray of shape (size,), float64
    cut : ndarray of shape (size,), float64
        The last dual point's vector: the mean of y x, 0 for rows whose margins are not below 1.
    """

    def __init__(self, blocks: Blocks, lam1: float, lam2: float, *, loss: int = HINGE, gram: bool = False):
        # A Gaussian kernel's values are at most 1.
        self.rounding = Rounding.of_ones(blocks) if gram else Rounding.of(blocks)
        self.blocks, self.lam1, self.lam2, self.loss, self.gram = blocks.fresh(), lam1, lam2, loss, gram
        sizes = [info.n_samples for info in blocks.infos]
        offsets = np.cumsum([0, *sizes]) if gram else None
        self.centre = self._joined(self.blocks.reduce(begin, (blocks.weight_neg, blocks.weight_pos), offsets)["centre"])
        if gram:
            self.blocks.reduce(centred, self.centre)
        self.w = np.zeros(len(self.centre))
        self._bound, self._points, self._number = (0.0, 0.0), LowerBound(len(self.centre)), 0

    def asked(self) -> tuple[int, float, np.ndarray | None]:
        """Return what `tell` needs to know."""
        return self.loss, self.lam1, self.w - self.lam1 * self.centre if self.gram else None

    def round(self, told: Summary, passes: float) -> Round:
        """Return the round of what the blocks told at `w`."""
        away = self.w - self.lam1 * self.centre
        square = told["square"] if self.gram else float(away @ away)
        primal = float(0.5 * square + self.lam2 * told["loss"])
        self.cut = self._joined(told["cut"])
        if self.loss == HINGE:
            self._raise_bound(told["active"])
        # The optimum can be 0, of which the gap would be no share.
        least = float(np.finfo(np.float64).tiny)
        return Round(
            self.w.copy(), max(primal, least), max(self._bound[0], least), math.ceil(passes),
            primal_error=self._primal_error(primal, float(told["loss"])), dual_error=self._bound[1],
        )  # fmt: skip

    def _primal_error(self, primal: float, loss: float) -> float:
        """Return a bound on the rounding error of the objective. Scores are sums of moves, and c is a weighted sum of rows."""
        self._number += 1
        rounding, moves = self.rounding, EPS * (self._number + SLACK) * MOVES
        score = rounding.score(self.w) + moves * rounding.reach(self.w)
        of_loss = self.lam2 * (score + 2.0 * rounding.over_rows * loss)
        return of_loss + self._square_error(self.w - self.lam1 * self.centre, self.lam1)

    def _square_error(self, v: np.ndarray, total: float) -> float:
        """Return a bound on the error of |v|^2 / 2, where sums of rows in v have coefficients that add up to at most `total`."""
        rounding = self.rounding
        if self.gram:
            size = float(np.abs(v).sum())
            return 2.0 * (rounding.over_rows + rounding.over_columns) * size * size
        # The coefficients of c add up to at most 1 in each class.
        return rounding.half_square(v, 2.0 * rounding.combination(2.0 * total))

    def _raise_bound(self, active: float) -> None:
        image = self._joined(self.blocks.reduce(scored, self.cut)["products"]) if self.gram else self.cut
        height = self.lam2 * (active - self.lam1 * float(self.centre @ image))
        bound = self._points.add(height, self.lam2 * self.cut, self.lam2 * image)
        self._bound = higher(self._bound, (bound, self._bound_error(active)))

    def _bound_error(self, active: float) -> float:
        """Return a bound on the rounding error of the best combination's value, whose heights are no worse than this one's."""
        rounding, lam1, lam2 = self.rounding, self.lam1, self.lam2
        if self.gram:
            across = 2.0 * (rounding.over_rows + rounding.over_columns) * float(np.abs(self.centre).sum())
        else:
            slope_error = rounding.combination(1.0)
            across = float(2.0 * np.abs(self.centre) @ slope_error + slope_error @ slope_error)
            across += float(np.abs(self.cut) @ (2.0 * slope_error))
        return lam2 * (rounding.over_rows * active + lam1 * across) + lam2**2 * self._square_error(self.cut, 0.5)

    def _joined(self, parts: Any) -> np.ndarray:
        return np.concatenate(parts) if self.gram else parts
