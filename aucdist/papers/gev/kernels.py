"""Kernels of the link solvers: value and gradient, curvatures, second moments, slopes along a move, and Markov chains."""

import math
from typing import NamedTuple

import numpy as np

from aucdist.kernels.compiling import kernel
from aucdist.kernels.random import fill_normal, u64, uniform01
from aucdist.kernels.rows import add_sums, row_dot, sums_for, table_axpys, table_dot, table_of
from aucdist.probability.link_kernels import curvature, gev_likelihood, loss_and_slope, shape_terms, slope_of

# Links are kernels of scores and not of rows, so that they are compiled once instead of for each representation of rows.


def evaluate_rows(data, theta, terms, at_a_time, gradients, sums):
    """Sum losses and gradients of all rows, separately for each class, in one pass over the rows.

    Parameters
    ----------
    data : LabelledRows
        Rows of weight 0 are ignored, even if their loss is infinite.
    theta : ndarray of shape (n_features + 1,), float64
        Weights and intercept.
    terms : Terms
        The link and the loss.
    at_a_time : int
        The number of rows that are scored at a time, and then added while they are still in the cache.
    gradients : ndarray of shape (2, n_features), float64
        The gradients of the negative and of the positive rows are added to it.
    sums : ndarray of shape (2, 3), float64
        For each class the sums of losses, slopes, and slopes times scores are added to it.
    """
    totals = sums_for(data.rows, gradients)
    # Workspace: the scores of some rows, the rows that are added with their coefficients, and their number in each class.
    picked, coefs = np.empty((2, at_a_time), np.uint64), np.empty((2, at_a_time))
    work = np.empty(at_a_time), picked, coefs, np.empty(2, np.int64)
    _evaluate_rows(data, (table_of(data.rows, theta[:-1]), theta[-1]), terms, work, totals, sums)
    for c in range(2):
        add_sums(data.rows, totals[c], gradients[c])


@kernel
def _evaluate_rows(data, line, terms, work, totals, sums):
    (rows, y, weight), (table, bias), (scores, picked, coefs, n_held) = data, line, work
    for first in range(0, y.shape[0], scores.shape[0]):
        end = min(first + scores.shape[0], y.shape[0])
        for i in range(first, end):
            scores[i - first] = table_dot(rows, i, table) + bias
        _losses_and_slopes(y[first:end], weight[first:end], first, terms, work, sums)
        for c in range(2):
            table_axpys(rows, picked[c], coefs[c], n_held[c], totals[c])


@kernel
def _losses_and_slopes(y, weight, first, terms, work, sums):
    """Add the losses of some rows to the sums of their classes, and write the numbers of the rows whose slope is not 0."""
    scores, picked, coefs, n_held = work
    n_held[0], n_held[1] = 0, 0
    for i in range(y.shape[0]):
        if weight[i] == 0.0:
            continue
        c = 1 if y[i] > 0 else 0
        score = scores[i]
        loss, slope = loss_and_slope(terms, score, c == 1)
        slope *= weight[i]
        sums[c, 0] += weight[i] * loss
        sums[c, 1] += slope
        sums[c, 2] += slope * score
        picked[c, n_held[c]], coefs[c, n_held[c]] = first + i, slope
        n_held[c] += slope != 0.0


@kernel
def curvatures(y, weight, terms, out):
    """Replace scores by each row's weight times the curvature of its loss."""
    for i in range(out.shape[0]):
        out[i] = weight[i] * curvature(terms, out[i], y[i] > 0)


@kernel
def sparse_moments(rows, coefs, out):
    """Add the sum of ``coefs[i] x_i x_i'`` over CSR rows to the lower triangle of out."""
    for i in range(coefs.shape[0]):
        start, end = rows.offsets[i], rows.offsets[i + 1]
        for j in range(start, end):
            a = coefs[i] * rows.values[j]
            row = out[rows.indices[j]]
            for k in range(start, j + 1):
                row[rows.indices[k]] += a * rows.values[k]


class ScoresAlong(NamedTuple):
    """The scores of a block's rows and their change along a move, with labels and weights."""

    scores: np.ndarray
    moves: np.ndarray
    y: np.ndarray
    weight: np.ndarray


@kernel
def slope_along_move(along, terms, step):
    """Return the derivative of the loss along a move at a step."""
    (scores, moves, y, weight), total = along, 0.0
    for i in range(scores.shape[0]):
        if weight[i] != 0.0 and moves[i] != 0.0:
            total += weight[i] * moves[i] * slope_of(terms, scores[i] + step * moves[i], y[i] > 0)
    return total


@kernel
def shape_slopes(y, weight, xi, scores, totals):
    """Replace scores by the expected second derivatives of minus the weighted log-likelihood by the shape and the score.

    Parameters
    ----------
    totals : ndarray of shape (3,), float64
        The sums of the derivatives by the shape, of the expected second derivatives, and of those above are added to it.
    """
    for i in range(scores.shape[0]):
        if weight[i] == 0.0:
            scores[i] = 0.0
            continue
        slope, information, mixed = shape_terms(xi, scores[i], y[i] > 0)
        totals[0] += weight[i] * slope
        totals[1] += weight[i] * information
        scores[i] = weight[i] * mixed
        totals[2] += scores[i]


@kernel
def log_likelihood(data, position):
    """Return the log-likelihood of all rows. It is minus infinity if a label has probability 0.

    Parameters
    ----------
    position : ndarray of shape (n_features + 2,), float64
        Weights, intercept and xi.
    """
    (rows, y, weight), d, total = data, position.shape[0] - 2, 0.0
    for i in range(y.shape[0]):
        if weight[i] == 0.0:
            continue
        score = row_dot(rows, i, position) + position[d]
        total -= weight[i] * gev_likelihood(position[d + 1], score, y[i] > 0)[0]
        if total == -np.inf:
            break
    return total


class Proposals(NamedTuple):
    """The prior, and the steps that `metropolis` proposes.

    Attributes
    ----------
    means, precision : ndarray of shape (n_features + 2,), float64
        Mean and precision of the normal prior of weights, intercept and xi; precision 0 means a flat prior.
    factor : ndarray of shape (n_features + 2, n_features + 2), float64
        Lower triangular; a row of zeros keeps the entry fixed.
    least_xi, most_xi : float
        Limits of xi.
    """

    means: np.ndarray
    precision: np.ndarray
    factor: np.ndarray
    least_xi: float
    most_xi: float


class MetropolisSamples(NamedTuple):
    """The output arrays of `metropolis`.

    Attributes
    ----------
    total : ndarray of shape (n_features + 2,), float64
        The sum of the samples is added to it.
    shapes, levels : ndarray of shape (n_samples,), float64
        xi and the log-likelihood of each sample.
    """

    total: np.ndarray
    shapes: np.ndarray
    levels: np.ndarray


@kernel(_nrt=True)
def metropolis(data, proposals, seed, n_skipped, position, samples):
    """Run a Metropolis-Hastings chain with proposals ``position + factor @ z``, where z is standard normal.

    Parameters
    ----------
    data : LabelledRows
        All rows of the data set.
    proposals : Proposals
        The prior and the proposals.
    seed : int
        A result of `aucdist.engine.blocks.block_seed`.
    n_skipped : int
        The burn-in: the number of steps before the first sample.
    position : ndarray of shape (n_features + 2,), float64
        The start of the chain, which is updated to its end.
    samples : MetropolisSamples
        Output.

    Returns
    -------
    int
        The number of accepted steps, including those of the burn-in.
    """
    (means, precision, factor, least_xi, most_xi), (total, shapes, levels) = proposals, samples
    size = position.shape[0]
    n_accepted, d = 0, size - 2
    state = u64(seed)
    z, trial = np.empty(size), np.empty(size)
    level = log_likelihood(data, position)
    log_prior = -0.5 * np.sum(precision * (position - means) ** 2)
    for step in range(-n_skipped, shapes.shape[0]):
        state = fill_normal(state, z)
        state, u = uniform01(state)
        for j in range(size):
            trial[j] = position[j]
            for k in range(j + 1):
                trial[j] += factor[j, k] * z[k]
        if least_xi <= trial[d + 1] <= most_xi:
            trial_prior = -0.5 * np.sum(precision * (trial - means) ** 2)
            trial_level = log_likelihood(data, trial)
            if math.log(1.0 - u) < trial_level + trial_prior - level - log_prior:
                position[:] = trial
                level, log_prior = trial_level, trial_prior
                n_accepted += 1
        if step >= 0:
            total += position
            shapes[step], levels[step] = position[d + 1], level
    return n_accepted


@kernel
def information_rows(data, position, score_factors, shape_factors):
    """Compute two factors for each row, whose products are the row's expected information about score and shape."""
    (rows, y, weight), d = data, position.shape[0] - 2
    for i in range(y.shape[0]):
        score, xi = row_dot(rows, i, position) + position[d], position[d + 1]
        # These are the slopes of a negative row times sqrt(exp(t) - 1), where t is the loss of a positive row.
        t = gev_likelihood(xi, score, True)[0]
        root = math.sqrt(weight[i] * math.expm1(t)) if t < 700.0 else 0.0
        score_factors[i] = root * gev_likelihood(xi, score, False)[1]
        shape_factors[i] = root * shape_terms(xi, score, False)[0]
