"""Estimate the shape xi of the GEV link by its posterior: section 2 of Fu & Liu (2018).

**Maximum a posteriori** (section 2.1). Weights and shape have standard normal priors, and the labels have the likelihood of the
link. The weights take a Newton step and the shape a Fisher scoring step in turn, each halved until the posterior rises. When
the shape moves, the weights follow to first order. The paper leaves them where they are; following saves rounds where a change
of the weights can compensate for the shape. Divided by the number of rows, the weights' part of the posterior is the likelihood
objective of `aucdist.papers.gev.problem` with lam = 1 / n_samples, so the same code takes the step. An intercept that is not
penalised has a flat prior. The final weights are a by-product, and the fit with the estimated shape starts from them. The
priors have a fixed width, so the features should be on one scale, for example standardised. Sample weights count as numbers of
rows.

**Empirical Bayes** (section 2.2). Weights and shape have normal priors of variance 1, whose means the EM algorithm estimates.
Given the means, Metropolis-Hastings chains sample weights and shape from the posterior, and the means of the samples are the
next means. The result is the mean of xi; the mean of the weights is a by-product. As in the paper there are 10 rounds, with 10
000 samples in the first and 20 000 in the last. Differences from the paper: the samples of a round come from several chains,
each with its own seed, which continue from round to round. The covariance of the proposals is the inverse information at the
mode, times 2.38^2 over the number of unknowns (Roberts, Gelman & Gilks, 1997). A chain needs all rows, so all rows are gathered
once, and the chains run where the fit was called, as many at the same time as there are blocks. The method is meant for small
data: see `MAX_VALUES` and `MAX_FEATURES`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy import ndarray

from aucdist.data.block import Block, as_dense
from aucdist.engine.blocks import Blocks, Summary, all_rows, block_seed
from aucdist.engine.steps import in_threads
from aucdist.errors import InputError
from aucdist.papers.epochs import LabelledRows
from aucdist.papers.gev.kernels import MetropolisSamples, Proposals, information_rows, metropolis, shape_slopes
from aucdist.papers.gev.problem import LinkProblem, LinkRound
from aucdist.papers.gev.solvers import CountedSolve, backtrack, hessian_solver
from aucdist.parameters import frozen
from aucdist.probability.links import MIN_XI, Link, LinkLoss

FIRST_XI = 0.1
"""The initial shape, as in the paper."""
SETTLED = 1e-3
MAX_SHAPE_HALVINGS = 6

N_CHAINS = 4
N_ROUNDS = 10
N_SAMPLES = 10_000
SKIPPED = 0.1
"""The burn-in: additional samples at the start of each round that are discarded, as a share of the samples of a
chain."""
MAX_FEATURES = 100
MAX_VALUES = 5_000_000


@frozen
class ShapeEstimate:
    """The estimate of the shape after a round.

    Parameters
    ----------
    xi : float
        The shape.
    theta : ndarray of shape (n_features + 1,), float64
        Weights and intercept for this shape, or their means.
    measures : dict of str to float
        The other entries of the round in the trace, see `map_shape` and `bayes_shape`.
    """

    xi: float
    theta: ndarray
    measures: dict[str, float]


def map_shape(
    blocks: Blocks, *, fit_intercept: bool, penalise_intercept: bool, most_xi: float, settled: float = SETTLED
) -> Iterator[ShapeEstimate]:
    """Maximise the posterior of weights and shape by alternating steps.

    A round takes about six passes: value and gradient, Hessian, step, and the derivatives and the step of the shape.

    Parameters
    ----------
    blocks : Blocks
        The rows.
    fit_intercept : bool
        Whether there is an intercept.
    penalise_intercept : bool
        Whether the intercept has a prior like a weight.
    most_xi : float
        The upper limit of the shape. The lower limit is -1.
    settled : float
        The iteration ends when a round raises the log-posterior by at most this.

    Yields
    ------
    ShapeEstimate
        The mode of the posterior after each round. Its `measures` have `log_posterior`, the logarithm of the posterior up to a
        constant.
    """
    xi = FIRST_XI
    weight = blocks.weight_pos + blocks.weight_neg
    problem = LinkProblem(blocks.without_memory(), _likelihood(xi), 1.0 / weight, fit_intercept, penalise_intercept)
    point = problem.evaluate(problem.origin())
    level = -np.inf
    while True:
        solver = hessian_solver(problem, point)
        problem, point, xi = _move_shape(problem, point, xi, most_xi, solver)
        point = backtrack(problem, point, solver(-point.gradient)[0]) or point
        before, level = level, -weight * point.primal - 0.5 * xi * xi
        yield ShapeEstimate(xi, point.theta, {"log_posterior": level})
        if level - before <= settled:
            return


def _likelihood(xi: float) -> LinkLoss:
    return LinkLoss(Link("gev", xi), "likelihood")


def _move_shape(
    problem: LinkProblem, point: LinkRound, xi: float, most_xi: float, solver: CountedSolve
) -> tuple[LinkProblem, LinkRound, float]:
    """Return problem, point and xi after a scoring step that raises the posterior, or unchanged if none does.

    The step is tried with the weights following xi first, and then with fixed weights.
    """
    weight = problem.weight
    derivatives = problem.blocks.sum(shape_derivatives, point.theta, xi)
    mixed = derivatives["mixed"] / weight
    mixed[-1] *= problem.fit_intercept
    follow = -solver(mixed)[0]
    # The information on xi if the weights follow, and if they are fixed. The prior contributes 1.
    fixed = derivatives["information"] + 1.0
    informations = (max(fixed + weight * float(mixed @ follow), 1.0), max(fixed, 1.0))
    reached = point.primal + 0.5 * xi * xi / weight
    for direction, information in zip((follow, np.zeros_like(follow)), informations, strict=True):
        step = -(derivatives["slope"] + xi) / information
        for _ in range(MAX_SHAPE_HALVINGS):
            trial_xi = min(max(xi + step, MIN_XI), most_xi)
            moved = replace(problem, loss=_likelihood(trial_xi))
            trial_point = moved.evaluate(point.theta + (trial_xi - xi) * direction)
            if trial_point.primal + 0.5 * trial_xi * trial_xi / weight < reached:
                return moved, trial_point, trial_xi
            step *= 0.5
    return problem, point, xi


def shape_derivatives(block: Block, theta: ndarray, xi: float) -> Summary:
    """Return the derivative of minus the log-likelihood by xi, and its expected second derivatives by xi and each weight."""
    scores, totals = block.scores(theta[:-1]) + theta[-1], np.zeros(3)
    shape_slopes(block.y, block.weights(), xi, scores, totals)
    slope, information, mixed = totals.tolist()
    return {"slope": slope, "information": information, "mixed": np.append(block.sums(scores), mixed)}


def bayes_shape(
    blocks: Blocks, mode: ndarray, *, fit_intercept: bool, penalise_intercept: bool, most_xi: float, seed: int,
    n_rounds: int = N_ROUNDS, n_samples: int = N_SAMPLES,
) -> Iterator[ShapeEstimate]:  # fmt: skip
    """Estimate the means of the priors by maximum marginal likelihood.

    Parameters
    ----------
    blocks : Blocks
        The rows.
    mode : ndarray of shape (n_features + 2,), float64
        Weights, intercept and xi to start from: the mode of the posterior if the means of the priors are 0.
    fit_intercept : bool
        Whether there is an intercept.
    penalise_intercept : bool
        Whether the intercept has a prior like a weight. Otherwise, its prior is flat.
    most_xi : float
        The upper limit of xi in the samples. The lower limit is -1.
    seed : int
        The seed of the chains.
    n_rounds : int, default=N_ROUNDS
        The number of rounds of EM.
    n_samples : int, default=N_SAMPLES
        The number of samples in the first round. The last round has twice as many.

    Yields
    ------
    ShapeEstimate
        The means after each round of EM. Its `measures` have `log_likelihood`, the mean log-likelihood of the samples;
        `acceptance`, the share of accepted proposals; and `effective_samples`, the effective sample size for the mean of xi.

    Raises
    ------
    InputError
        If there are too many features or rows.
    """
    n, d = blocks.n_samples, blocks.n_features
    if d > MAX_FEATURES or n * (d + 2) > MAX_VALUES:
        raise InputError(
            f"xi='bayes' needs all rows in one place, and is for up to {MAX_FEATURES} features and {MAX_VALUES:,} values. There "
            f"are {n:,} rows of {d} features: use xi='map', which has no such limit"
        )
    data = all_rows(blocks)
    precision = np.ones(blocks.n_features + 2)
    precision[-2] = fit_intercept and penalise_intercept
    means = np.zeros(len(precision))
    # The steps are proposed by the scaled covariance of the normal approximation at the mode.
    score_factors, shape_factors = np.empty(data.n_samples), np.empty(data.n_samples)
    rows = LabelledRows.of(data)
    information_rows(rows, mode, score_factors, shape_factors)
    X = as_dense(data.X)
    scores = np.column_stack([X * score_factors[:, np.newaxis], score_factors, shape_factors])
    # The small diagonal is for an intercept with a flat prior and no information.
    information = scores.T @ scores + np.diag(precision + 1e-3)
    fitted = np.ones(len(precision), dtype=bool)
    fitted[-2] = fit_intercept
    inside, factor = np.ix_(fitted, fitted), np.zeros_like(information)
    factor[inside] = 2.38 / np.sqrt(fitted.sum()) * np.linalg.cholesky(np.linalg.inv(information[inside]))
    positions: Sequence[ndarray] = [mode] * N_CHAINS
    for number, size in enumerate(np.linspace(n_samples, 2 * n_samples, n_rounds)):
        proposals, n_of_chain = Proposals(means, precision, factor, MIN_XI, most_xi), max(1, round(size / N_CHAINS))
        starts = [(position, block_seed(seed, number, chain)) for chain, position in enumerate(positions)]
        run = partial(run_chain, rows, proposals, n_of_chain, starts)
        positions, samples, accepted = zip(*in_threads(run, N_CHAINS, min(blocks.n_blocks, N_CHAINS)), strict=True)
        taken = N_CHAINS * n_of_chain
        means = np.sum([chain.total for chain in samples], axis=0) / taken
        measures = {
            "log_likelihood": float(np.mean([chain.levels.mean() for chain in samples])),
            "acceptance": sum(accepted) / (taken + N_CHAINS * _skipped(n_of_chain)),
            "effective_samples": sum(effective_size(chain.shapes) for chain in samples),
        }
        yield ShapeEstimate(float(means[-1]), means[:-1], measures)


def effective_size(samples: ndarray) -> float:
    """Return the effective sample size of a chain, by Geyer's initial positive sequence (1992).

    Parameters
    ----------
    samples : ndarray of shape (n_samples,), float64
        The samples of one chain, in their order.
    """
    n = len(samples)
    centred = samples - samples.mean()
    spectrum = np.fft.rfft(centred, 2 * n)
    covariances = np.fft.irfft(spectrum * spectrum.conj())[:n]
    if covariances[0] <= 0.0:
        return 1.0
    pairs = covariances[: n // 2 * 2].reshape(-1, 2).sum(axis=1) / covariances[0]
    negative = np.flatnonzero(pairs <= 0.0)
    last = negative[0] if len(negative) else len(pairs)
    return float(n / max(2.0 * pairs[:last].sum() - 1.0, 1.0 / n))


def _skipped(n_samples: int) -> int:
    return round(SKIPPED * n_samples)


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def run_chain(
    rows: LabelledRows, proposals: Proposals, n_samples: int, starts: Sequence[tuple[ndarray, int]], chain: int
) -> tuple[ndarray, MetropolisSamples, int]:
    """Continue a chain from its position, with its seed, and return its last position, samples and accepted steps."""
    start, seed = starts[chain]
    position, samples = start.copy(), MetropolisSamples(np.zeros(len(start)), *np.empty((2, n_samples)))
    n_accepted = metropolis(rows, proposals, seed, _skipped(n_samples), position, samples)
    return position, samples, n_accepted
