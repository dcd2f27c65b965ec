"""TPAUC, OPAUC and the univariate methods: a gradient step for each row, without a pair.

TPAUC is after Luan & Gao, "Two-pass AUC optimization" (2018), for ``lam/2 |w|^2 + mean pairwise square``: one pass for the class
means, then one gradient step for each row along its own part of the objective, as written and corrected in
`aucdist.papers.tpauc.moments`. The paper prints the factor 1 / n_class in place of n_samples / n_class, which almost removes the
rows' own terms; ``factor="print"`` keeps the printed one.

OPAUC is after Gao, Jin, Zhu & Zhou, "One-pass AUC optimization" (ICML 2013), for the same objective: each row is paired with
all earlier rows of the other class by their mean and covariance. The paper halves the square, so its step with eta and lam is
the step here with eta/2 and 2 lam. Up to `MAX_FEATURES` features the covariances are full matrices. Beyond, random projections
sketch them; the paper projects on Gaussian vectors, this module on random signs, which give the same mean and a smaller
variance. Further epochs keep the statistics of the first. Each block keeps the statistics of its own rows.

The univariate methods, with which the paper compares the pairwise square, rank by losses of single rows,
weighted by class. They are after Kotlowski, Dembczynski & Huellermeier, "Bipartite ranking through minimization of univariate
loss" (ICML 2011). For a loss of margins, ``exp(-m)`` or ``(1 - m)^2``, they minimise::

    P(w) = lam/2 |w|^2 + min over b of 1/2 mean over positives of loss(w.x + b) + 1/2 mean over negatives of loss(-w.x - b)

The bias b does not change the order of the rows, so it stays inside the solver. The minimum over b has a closed form, which
makes P strongly convex in w and certified by its gradient: for the square it is the pairwise square, up to scale; for the
exponential it is the root of the mean over pairs of ``exp(-w.(x_i - x_j))``. `UnivariateLBFGS` is not of the paper:
it minimises the same exponential objective to a tolerance.

The order of the rows is drawn anew for each epoch. Several blocks are averaged by `aucdist.papers.epochs`.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from numpy import ndarray

from aucdist.data.block import Block, row_squares
from aucdist.engine.blocks import Blocks, Summary, block_seed
from aucdist.errors import InputError
from aucdist.kernels.rows import accumulate
from aucdist.papers.epochs import Epoch, LabelledRows, epochs, random_order
from aucdist.papers.tpauc.descent import certified_round, moments_of_pairs, within_class_covariance
from aucdist.papers.tpauc.exact import MAX_FEATURES
from aucdist.papers.tpauc.kernels import (
    FullStatistics,
    SketchedStatistics,
    SquareTerms,
    UnivariateSteps,
    opauc_full,
    opauc_sketched,
    square_epoch,
    univariate_epoch,
)
from aucdist.papers.tpauc.moments import (
    FACTORS,
    VALUE_AT_ZERO,
    PairMoments,
    PerClass,
    lower_bound,
    products_with,
    row_factors,
    squared_distances,
)
from aucdist.parameters import OneOf, above_0, count, keyword_parameters
from aucdist.solvers.base import Round, Solver
from aucdist.solvers.lbfgs import Point, descend
from aucdist.solvers.rounding import Rounding, higher

SKETCH_RANK = 50
"""The default rank of OPAUC's sketch, as in its paper."""

Evaluate = Callable[[ndarray, int], Round]
"""``evaluate(w, passes)`` returns the round of the weights w, by one pass that does not count."""


@keyword_parameters(eta=above_0(optional=True), epochs=count())
class EpochSolver(Solver):
    """An algorithm that takes one step for each row and epoch. It ends after its epochs, usually above `tol`.

    Parameters
    ----------
    eta : float or None, default=None
        The step length. None takes a short one, with which steps along the square cannot diverge. For features scaled to [-1,
        1], usual values to try are 2^-10 to 2^2.
    epochs : int, default=1
        How many times each row is used.
    """

    is_random = True
    passes_before = 0
    """The number of passes before the first epoch."""
    has_bias = False
    """Whether the last weight is an intercept, which is not part of the rounds."""

    eta: float | None = None
    epochs: int = 1

    @abstractmethod
    def prepare(self, blocks: Blocks, lam: float, seed: int) -> tuple[Evaluate, Epoch]:
        """Return the function that evaluates weights, and the steps of an epoch. Both may use the memories of the blocks.

        Parameters
        ----------
        blocks : Blocks
            The rows, of both classes.
        lam : float
            The regularisation strength.
        seed : int
            The seed of what is drawn once.

        Returns
        -------
        evaluate : callable
        epoch : Epoch
        """

    def rounds(self, blocks: Blocks, lam: float, start: ndarray | None = None, *, seed: int) -> Iterator[Round]:
        """Yield the start, and then the weights after each epoch, with their exact objective and its lower bound.

        Only the passes of the algorithm are counted. Computing the objective takes additional passes.

        Parameters
        ----------
        blocks : Blocks
            The rows, of both classes.
        lam : float
            The regularisation strength.
        start : ndarray of shape (n_features,), optional
            The weights to start from.
        seed : int
            The seed of the order of the rows.

        Yields
        ------
        Round
        """
        blocks = blocks.without_memory()
        evaluate, epoch = self.prepare(blocks, lam, seed)
        d, passes = blocks.n_features, self.passes_before
        w = np.zeros(d + self.has_bias)
        if start is None:
            yield Round(w[:d], VALUE_AT_ZERO, 0.0, passes)
        else:
            w[:d] = start
            yield evaluate(w[:d], passes)
        for number, summary in enumerate(islice(epochs(blocks, epoch, w, seed), self.epochs), start=1):
            yield evaluate(summary["w"][:d], passes + number)


# ---- TPAUC ------------------------------------------------------------------------------------------------------------


def prepare_steps(
    block: Block, memory: None, moments: PairMoments, n_samples: int, factor: str
) -> tuple[tuple[ndarray, ...], Summary]:
    """Prepare the gradient steps of the block's rows, which are the first four fields of `SquareTerms`.

    Return the largest curvature of a row's own term. `moments` and `n_samples` are those of all rows.
    """
    products = products_with(block, moments.means)
    products = np.column_stack([products, -2.0 * (products[:, 1] - products[:, 0])])
    factors = 2.0 * row_factors(block, moments.weights, n_samples, factor)
    curvature = factors * squared_distances(block, moments.means, products)
    basis = np.vstack([moments.means, -2.0 * moments.difference])
    return (factors, products, basis, basis @ basis.T), [float(curvature.max(initial=0.0))]


def two_pass_epoch(
    block: Block, memory: tuple[Any, ...], w: ndarray, seed: int, eta: float, lam: float
) -> tuple[Any, ndarray, Summary]:
    """Take one gradient step for each row, in a random order. This is an `Epoch`."""
    order, reached = random_order(seed, block.n_samples), np.empty_like(w)
    square_epoch(block.rows, order, block.y, SquareTerms(*memory, eta, lam, len(order)), w, reached)
    return memory, reached, {}


@keyword_parameters(factor=OneOf(FACTORS))
class TPAUC(EpochSolver):
    """Two passes: one for the class means, then one gradient step per row and epoch. See `aucdist.papers.tpauc.online`.

    Parameters
    ----------
    factor : {"corrected", "print"}, default="corrected"
        ``"corrected"`` gives the rows' own terms the factor with which their mean is the objective. ``"print"`` gives them the
        factor that the paper prints, for comparison.
    eta, epochs
        As for `EpochSolver`.
    """

    name = "tpauc"
    objective = "pairwise square"
    passes_before = 1

    factor: str = "corrected"

    def prepare(self, blocks: Blocks, lam: float, seed: int) -> tuple[Evaluate, Epoch]:
        """Return the function that evaluates weights, and the steps of an epoch.

        The default step length is 1 over the largest curvature.

        Parameters
        ----------
        blocks, lam, seed
            As for `EpochSolver.prepare`.

        Returns
        -------
        evaluate : callable
        epoch : Epoch
        """
        moments = moments_of_pairs(blocks)
        largest = blocks.reduce(prepare_steps, moments, blocks.n_samples, self.factor)
        eta = self.eta or 1.0 / (max(largest) + 2.0 * float(moments.difference @ moments.difference) + lam)
        return lambda w, n: certified_round(blocks, moments, w, lam, n), partial(two_pass_epoch, eta=eta, lam=lam)


# ---- OPAUC ------------------------------------------------------------------------------------------------------------


def one_pass_epoch(
    block: Block, memory: Any, w: ndarray, seed: int, rates: tuple[float, float], sketch: tuple[int | None, int]
) -> tuple[FullStatistics | SketchedStatistics, ndarray, Summary]:
    """Take one step for each row in a random order, from the statistics so far. This is an `Epoch`.

    Parameters
    ----------
    block : Block
        The rows.
    memory : object
        The memory of the block.
    w : ndarray
        The weights.
    seed : int
        The seed of the random numbers.
    rates : tuple (float, float)
        eta and lam.
    sketch : tuple (int or None, int)
        The rank of the sketches of covariances, or None for full covariances, and the seed of the signs of the sketches.
    """
    d, statistics, (rank, sketch_seed) = block.n_features, memory, sketch
    if memory is not None:
        statistics = type(memory)(*(part.copy() for part in memory))
    elif rank is None:
        statistics = FullStatistics(np.zeros(2), np.zeros((2, d)), np.zeros((2, d, d)))
    else:
        draws, m = np.array([block_seed(sketch_seed, 0, block.index)], dtype=np.uint64), 2 * (1 + rank)
        statistics = SketchedStatistics(draws, np.zeros((d, m)), np.zeros(m), np.zeros((m, m)))
    data, order = LabelledRows.of(block), random_order(seed, block.n_samples)
    if rank is None:
        opauc_full(data, order, rates, statistics, w)
    else:
        opauc_sketched(data, row_squares(block.rows), order, rates, statistics, w)
    return statistics, w, {}


def longest_row(block: Block) -> Summary:
    """Return the largest weight times squared length of a row."""
    return [float((block.weights() * row_squares(block.rows)).max(initial=0.0))]


@keyword_parameters(rank=count(words=("full",), optional=True))
class OPAUC(EpochSolver):
    """One pass: one gradient step per row and epoch, from the means and covariances so far. See `aucdist.papers.tpauc.online`.

    Parameters
    ----------
    rank : int, "full" or None, default=None
        The rank to which covariances are sketched. ``"full"`` keeps full covariances. None means full covariances up to 1000
        features, and rank 50 with more.
    eta, epochs
        As for `EpochSolver`.
    """

    name = "opauc"
    objective = "pairwise square"

    rank: int | str | None = None

    def prepare(self, blocks: Blocks, lam: float, seed: int) -> tuple[Evaluate, Epoch]:
        """Return the function that evaluates weights, and the steps of an epoch.

        The distance of a row to a class mean is at most twice the length of the longest row, and a covariance is at most its
        squared length. So steps of the default length cannot diverge.

        Parameters
        ----------
        blocks, lam, seed
            As for `EpochSolver.prepare`.

        Returns
        -------
        evaluate : callable
        epoch : Epoch

        Raises
        ------
        InputError
            If ``rank="full"`` and there are too many features for full covariances.
        """
        d, rank = blocks.n_features, self.rank
        if isinstance(rank, str) and d > MAX_FEATURES:
            raise InputError(
                f"rank='full' keeps two matrices of {d} x {d} numbers; it is for up to {MAX_FEATURES} features. Leave rank out "
                "for a sketch, or use solver='tpauc' or 'exact', which need neither"
            )
        if rank is None:
            rank = SKETCH_RANK if d > MAX_FEATURES else "full"
        moments = moments_of_pairs(blocks)
        eta = self.eta or 1.0 / (10.0 * max(blocks.sum(longest_row)) + lam)
        epoch = partial(one_pass_epoch, rates=(eta, lam), sketch=(None if isinstance(rank, str) else rank, seed))
        return lambda w, n: certified_round(blocks, moments, w, lam, n), epoch


def univariate_epoch_of(
    block: Block,
    memory: None,
    w: ndarray,
    seed: int,
    row_factor: Callable[[Block], ndarray],
    steps: UnivariateSteps,
) -> tuple[None, ndarray, Summary]:
    """Take one step along the loss of each row, in a random order. The last weight is the bias. This is an `Epoch`."""
    factors, order = 0.5 * row_factor(block), random_order(seed, block.n_samples)
    univariate_epoch(block.rows, order, block.y, factors, steps, w)
    return None, w, {}


class UniExp(EpochSolver):
    """Online gradient descent along the exponential loss, with one step per row and epoch (Kotlowski and others, ICML 2011).

    Parameters
    ----------
    eta, epochs
        As for `EpochSolver`.
    """

    name = "uni-exp"
    objective = "univariate"
    has_bias = True
    exponential = True

    def prepare(self, blocks: Blocks, lam: float, seed: int) -> tuple[Evaluate, Epoch]:
        """Return the function that evaluates weights, and the steps of an epoch.

        For the square loss, the default step length is 1 over the largest curvature of a row's loss, so that steps cannot
        diverge. The exponential loss has no largest curvature, because it grows with negative margins. Its default is a quarter
        of that length.

        Parameters
        ----------
        blocks, lam, seed
            As for `EpochSolver.prepare`.

        Returns
        -------
        evaluate : callable
        epoch : Epoch
        """
        problem, n = UnivariateProblem(blocks, lam, exponential=self.exponential), blocks.n_samples
        weights = blocks.weight_neg, blocks.weight_pos
        factor = 4.0 if self.exponential else 1.0
        eta = self.eta or 1.0 / (factor * max(blocks.sum(largest_curvature, weights, n)) + lam)
        steps = UnivariateSteps(self.exponential, eta, lam)
        row_factor = partial(row_factors, weights=weights, n_samples=n)
        epoch = partial(univariate_epoch_of, row_factor=row_factor, steps=steps)
        return lambda w, passes: problem.round(problem.evaluate(w), passes), epoch


class UniSqu(UniExp):
    """Online gradient descent along the square loss, with one step per row and epoch (Kotlowski and others, ICML 2011).

    Parameters
    ----------
    eta, epochs
        As for `EpochSolver`.
    """

    name = "uni-squ"
    exponential = False


class UnivariateLBFGS(Solver):
    """L-BFGS on the exponential loss until the gap is at most `tol`. Each round uses all rows."""

    name = "lbfgs"
    objective = "univariate"
    accepts_codes = True

    def rounds(self, blocks: Blocks, lam: float, start: ndarray | None = None) -> Iterator[Round]:
        """Yield the rounds of a fit, each with better weights than the one before. Each point that is evaluated takes a pass.

        Parameters
        ----------
        blocks : Blocks
            The rows, of both classes.
        lam : float
            The regularisation strength.
        start : ndarray of shape (n_features,), optional
            The weights to start from. If the losses there overflow, the fit starts from zero.

        Yields
        ------
        Round
        """
        problem, zero, passes = UnivariateProblem(blocks, lam, exponential=True), np.zeros(blocks.n_features), 1
        first, bound = problem.evaluate(zero if start is None else start.astype(np.float64)), (0.0, 0.0)
        if not np.isfinite(first.value):
            first, passes = problem.evaluate(zero), 2
        for point, n_tries in descend(problem.evaluate, first):
            passes += n_tries
            newest = problem.round(point, passes)
            bound = higher(bound, (newest.dual, newest.dual_error))
            yield replace(newest, dual=bound[0], dual_error=bound[1])


def largest_curvature(block: Block, weights: PerClass, n_samples: int) -> Summary:
    """Return the largest curvature of a row's square loss. `weights` and `n_samples` are those of all rows."""
    factors = row_factors(block, weights, n_samples)
    return [float((factors * (1.0 + row_squares(block.rows))).max(initial=0.0))]


# ---- value and gradient -----------------------------------------------------------------------------------------------


class UnivariateProblem:
    """The objective P of a univariate loss, exponential or square."""

    def __init__(self, blocks: Blocks, lam: float, *, exponential: bool):
        self.blocks, self.lam, self.rounding = blocks, lam, Rounding.of(blocks)
        self.moments = None if exponential else moments_of_pairs(blocks)

    def evaluate(self, w: ndarray) -> Point:
        """Return weights with their objective and its gradient. Neither is finite if the weights have diverged."""
        with np.errstate(all="ignore"):
            value, slope = self._loss(w)
            return Point(w, value + 0.5 * self.lam * float(w @ w), slope + self.lam * w)

    def _loss(self, w: ndarray) -> tuple[float, ndarray]:
        """Return the mean loss minimised over b, and its gradient, exactly and in one pass."""
        blocks, moments = self.blocks, self.moments
        if moments is not None:
            variance, covariance_w = within_class_covariance(blocks, moments, w)
            miss = 1.0 - 0.5 * float(w @ moments.difference)
            return 0.5 * variance + miss * miss, covariance_w - miss * moments.difference
        # The minimum over b is the root of the product of the mean losses of the classes.
        sums = blocks.sum(_exponential_sums, w, (blocks.weight_neg, blocks.weight_pos))
        value = float(np.sqrt(sums["pos"] * sums["neg"]))
        return value, 0.5 * value * (sums["slope_pos"] / sums["pos"] + sums["slope_neg"] / sums["neg"])

    def round(self, point: Point, passes: int) -> Round:
        """Return a point with the lower bound that its gradient gives, and bounds on the rounding errors of both.

        For the exponential, the relative error is that of the score and of the sum. For the square, the error is a share of a
        score, which is at most 1 plus the root of the value. So it is at most twice as large.
        """
        w, primal, lam, rounding = point.w, point.value, self.lam, self.rounding
        with np.errstate(all="ignore"):
            value = primal - 0.5 * lam * float(w @ w)
            relative = 4.0 * (rounding.score(w) + rounding.over_rows * (1.0 + rounding.largest_score(w)))
            primal_error = relative * (1.0 + value) + rounding.penalty(w, primal)
            slope_error = (2.0 * relative * (1.0 + value)) * rounding.largest
            dual_error = primal_error + rounding.half_square(point.gradient, slope_error) / lam
            bound = lower_bound(primal, point.gradient, lam)
        return Round(w, primal, bound, passes, primal_error=primal_error, dual_error=dual_error)


def _exponential_sums(block: Block, w: ndarray, weights: PerClass) -> Summary:
    scores, share = block.scores(w), row_factors(block, weights, 1)
    summary: Summary = {}
    for name, label in (("neg", -1), ("pos", 1)):
        class_rows = np.flatnonzero(block.y == label)
        with np.errstate(over="ignore"):
            losses = share[class_rows] * np.exp(-label * scores[class_rows])
        slope = np.zeros(block.n_features)
        accumulate(block.rows, class_rows, -label * losses, slope)
        summary |= {name: losses.sum(), f"slope_{name}": slope}
    return summary
