"""TPAUC and OPAUC: a gradient step of the pairwise square for each row, without a pair.

TPAUC is after Luan & Gao, "Two-pass AUC optimization" (2018), for ``lam/2 |w|^2 + mean pairwise square``: one pass for the class
means, then one gradient step for each row along its own part of the objective, as written and corrected in
`aucdist.papers.tpauc.moments`. The paper prints the factor 1 / n_class in place of n_samples / n_class, which almost removes the
rows' own terms; ``factor="print"`` keeps the printed one.

OPAUC is after Gao, Jin, Zhu & Zhou, "One-pass AUC optimization" (ICML 2013), for the same objective: each row is paired with
all earlier rows of the other class by their mean and covariance. The paper halves the square, so its step with eta and lam is
the step here with eta/2 and 2 lam. Up to `MOST_FEATURES` features the covariances are full matrices. Beyond, random projections
sketch them; the paper projects on Gaussian vectors, this module on random signs, which give the same mean and a smaller
variance. Further epochs keep the statistics of the first. Each block keeps the statistics of its own rows.

The order of the rows is drawn anew for each epoch. Several blocks are averaged by `aucdist.papers.epochs`.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from aucdist.data.block import Block, row_squares
from aucdist.engine.blocks import Blocks, Summary, block_seed
from aucdist.errors import InputError
from aucdist.papers.epochs import Epoch, LabelledRows, epochs, random_order
from aucdist.papers.tpauc.descent import certified_round, moments_of
from aucdist.papers.tpauc.exact import MOST_FEATURES
from aucdist.papers.tpauc.kernels import (
    FullStatistics,
    SketchedStatistics,
    SquareTerms,
    opauc_full,
    opauc_sketched,
    square_epoch,
)
from aucdist.papers.tpauc.moments import (
    FACTORS,
    VALUE_AT_ZERO,
    products_with,
    row_factors,
    squared_distances,
)
from aucdist.parameters import Constraints, OneOf, above_0, count
from aucdist.solvers.base import Round, Solver
from aucdist.solvers.rounding import Rounding

RANK = 50
"""The default rank of OPAUC's sketch, as in its paper."""

Evaluate = Callable[[np.ndarray, int], Round]
"""``evaluate(w, passes)`` returns the round of the weights w, by one pass that does not count."""


@dataclass(kw_only=True, eq=False, repr=False)
class EpochSolver(Solver):
    """An algorithm of one step for each row and epoch, which ends after its epochs, and usually above `tol`.

    Parameters
    ----------
    eta : float or None, default=None
        The steps' length. None takes one that is sure not to diverge for the square, and is short; trying 2^-10 to 2^2 on
        features scaled to [-1, 1] is usual.
    epochs : int, default=1
        How many times each row is taken.
    """

    random = True
    passes_before: ClassVar[int] = 0
    """The passes before the first epoch."""
    has_bias: ClassVar[bool] = False
    """Whether the last of the weights that the steps move is an intercept, which no round shows."""
    _parameter_constraints: ClassVar[Constraints] = {"eta": above_0(optional=True), "epochs": count()}

    eta: float | None = None
    epochs: int = 1

    @abstractmethod
    def prepare(self, blocks: Blocks, lam: float, seed: int) -> tuple[Evaluate, Blocks, Epoch]:
        """Return what evaluates weights, the blocks with the memory of the epochs, and the steps of an epoch."""

    def rounds(self, blocks: Blocks, lam: float, start: np.ndarray | None = None, *, seed: int) -> Iterator[Round]:
        """Yield the start, then the weights after each epoch, with their exact objective and its lower bound.

        Only the passes of the algorithm are counted; evaluating the objective takes additional passes.
        """
        evaluate, own, epoch = self.prepare(blocks, lam, seed)
        d, passes = blocks.n_features, self.passes_before
        w = np.zeros(d + self.has_bias)
        if start is None:
            yield Round(w[:d], VALUE_AT_ZERO, 0.0, passes)
        else:
            w[:d] = start
            yield evaluate(w[:d], passes)
        for number, summary in enumerate(islice(epochs(own, epoch, w, seed), self.epochs), start=1):
            yield evaluate(summary["w"][:d], passes + number)


# ---- TPAUC ------------------------------------------------------------------------------------------------------------


def prepare_steps(
    block: Block, memory: None, means: np.ndarray, weights: tuple[float, float], n_samples: int, factor: str
) -> tuple[tuple[np.ndarray, ...], Summary]:
    """Prepare the gradient steps of the block's rows: the first four of `SquareTerms`.

    Return the largest curvature of a row's own term. `weights` and `n_samples` are those of all rows, the negative class first.
    """
    difference = means[1] - means[0]
    products = products_with(block, means)
    products = np.column_stack([products, -2.0 * (products[:, 1] - products[:, 0])])
    factors = 2.0 * row_factors(block.y, block.weights(), *weights, n_samples, factor)
    curvature = factors * squared_distances(block, means, products)
    basis = np.vstack([means, -2.0 * difference])
    return (factors, products, basis, basis @ basis.T), {"largest": [float(curvature.max(initial=0.0))]}


@dataclass(frozen=True)
class TwoPassEpoch:
    """One gradient step for each row, in a random order."""

    eta: float
    lam: float

    def __call__(
        self, block: Block, memory: tuple[Any, ...], w: np.ndarray, seed: int
    ) -> tuple[Any, np.ndarray, Summary]:
        """Take the steps; parameters and returns as of `Epoch`."""
        order, reached = random_order(seed, block.n_samples), np.empty_like(w)
        terms = SquareTerms(*memory, self.eta, self.lam, len(order))
        square_epoch(block.rows, order, block.y, terms, w, reached)
        return memory, reached, {}


@dataclass(kw_only=True, eq=False, repr=False)
class TPAUC(EpochSolver):
    """Two passes: one for the class means, then one gradient step per row and epoch. See `aucdist.papers.tpauc.online`.

    Parameters
    ----------
    factor : {"corrected", "print"}, default="corrected"
        ``"corrected"`` gives the rows' own terms the factor that makes their mean the objective; ``"print"`` gives them the one
        printed, for comparison.
    class_means : array-like of shape (2, n_features) or None, default=None
        The class means to step with, the negative class first. None takes them in a first pass.
    eta, epochs
        As of `EpochSolver`.
    """

    name = "tpauc"
    objective = "pairwise square"
    passes_before = 1
    _parameter_constraints: ClassVar[Constraints] = {**EpochSolver._parameter_constraints, "factor": OneOf(FACTORS)}

    factor: str = "corrected"
    class_means: Any = None

    def prepare(self, blocks: Blocks, lam: float, seed: int) -> tuple[Evaluate, Blocks, Epoch]:
        """Return what evaluates weights, the blocks, and the steps, whose length is 1 over the largest curvature of a row."""
        moments, rounding, own = moments_of(blocks), Rounding.of(blocks), blocks.without_memory()
        means = moments.means if self.class_means is None else np.asarray(self.class_means, dtype=np.float64)
        if means.shape != moments.means.shape or not np.isfinite(means).all():
            raise InputError(
                f"class_means has shape {means.shape}; two rows of {blocks.n_features} finite numbers are needed, the negative "
                "class first"
            )
        prepared = own.reduce(prepare_steps, means, moments.weights, blocks.n_samples, self.factor)
        difference = means[1] - means[0]
        eta = (
            1.0 / (max(prepared["largest"]) + 2.0 * float(difference @ difference) + lam)
            if self.eta is None
            else self.eta
        )
        return lambda w, n: certified_round(blocks, moments, w, lam, rounding, n), own, TwoPassEpoch(eta, lam)


# ---- OPAUC ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OnePassEpoch:
    """One step for each row in a random order, from the statistics so far.

    `rank`: to which they are sketched; None for full covariances.
    `sketch_seed`: of the signs of the sketches.
    """

    eta: float
    lam: float
    rank: int | None
    sketch_seed: int

    def __call__(
        self, block: Block, memory: Any, w: np.ndarray, seed: int
    ) -> tuple[FullStatistics | SketchedStatistics, np.ndarray, Summary]:
        """Take the steps; parameters and returns as of `Epoch`."""
        d, statistics = block.n_features, memory
        if memory is not None:
            statistics = type(memory)(*(part.copy() for part in memory))
        elif self.rank is None:
            statistics = FullStatistics(np.zeros(2), np.zeros((2, d)), np.zeros((2, d, d)))
        else:
            draws, m = np.array([block_seed(self.sketch_seed, 0, block.index)], dtype=np.uint64), 2 * (1 + self.rank)
            statistics = SketchedStatistics(draws, np.zeros((d, m)), np.zeros(m), np.zeros((m, m)))
        data, order, rates = LabelledRows.of(block), random_order(seed, block.n_samples), (self.eta, self.lam)
        if self.rank is None:
            opauc_full(data, order, rates, statistics, w)
        else:
            opauc_sketched(data, row_squares(block.rows), order, rates, statistics, w)
        return statistics, w, {}


def longest_row(block: Block) -> Summary:
    """Return the largest weight times squared length of a row."""
    return {"largest": [float((block.weights() * row_squares(block.rows)).max(initial=0.0))]}


@dataclass(kw_only=True, eq=False, repr=False)
class OPAUC(EpochSolver):
    """One pass: one gradient step per row and epoch, from the means and covariances so far. See `aucdist.papers.tpauc.online`.

    Parameters
    ----------
    rank : int, "full" or None, default=None
        The rank to which covariances are sketched, or whole ones; None is whole up to 1000 features, and 50 beyond.
    eta, epochs
        As of `EpochSolver`.
    """

    name = "opauc"
    objective = "pairwise square"
    _parameter_constraints: ClassVar[Constraints] = {
        **EpochSolver._parameter_constraints,
        "rank": count(words=("full",), optional=True),
    }

    rank: int | str | None = None

    def prepare(self, blocks: Blocks, lam: float, seed: int) -> tuple[Evaluate, Blocks, Epoch]:
        """Return what evaluates weights, the blocks, and the steps.

        Full covariances are refused of too many features. The distance of a row to a class mean is at most twice the longest
        row, and a covariance is at most its squared length, so that the default length cannot diverge.
        """
        d, rank = blocks.n_features, self.rank
        if isinstance(rank, str) and d > MOST_FEATURES:
            raise InputError(
                f"rank='full' keeps two matrices of {d} x {d} numbers; it is for up to {MOST_FEATURES} features. Leave rank out "
                "for a sketch, or use solver='tpauc' or 'exact', which need neither"
            )
        if rank is None:
            rank = RANK if d > MOST_FEATURES else "full"
        moments, rounding, own = moments_of(blocks), Rounding.of(blocks), blocks.without_memory()
        eta = 1.0 / (10.0 * max(own.sum(longest_row)["largest"]) + lam) if self.eta is None else self.eta
        epoch = OnePassEpoch(eta, lam, None if isinstance(rank, str) else rank, seed)
        return lambda w, n: certified_round(blocks, moments, w, lam, rounding, n), own, epoch
