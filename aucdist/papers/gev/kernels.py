"""Passes over rows for link functions: value and gradient, curvatures, second moments, slopes along a move, Markov chains."""

import math

import numpy as np

from aucdist.kernels.compiling import kernel
from aucdist.kernels.link_functions import curvature, gev_likelihood, loss_and_slope, shape_terms, slope_of
from aucdist.kernels.random import fill_normal, u64, uniform01
from aucdist.kernels.rows import BATCH, add_sums, project, row_dot, sums_for, table_axpys, table_dot, table_of

# Links are kernels of scores, which know no rows: they are compiled once, not again for each kind of rows.


def evaluate_rows(rows, y, weight, w, bias, terms, at_a_time, gradients, sums):
    """Sum losses and gradients of all rows, separately for each class, in one pass over the rows.

    `rows`: DenseRows, CsrRows or BinRows.
    `y`: of shape (n_rows,), int8.
    `weight`, of shape (n_rows,), float64: rows of weight 0 are ignored, even if their loss is infinite.
    `w`: of shape (n_features,), float64.
    `bias`: float.
    `terms`: Terms.
    `at_a_time`, int: so many rows are scored at a time, and then added while they are still in the cache.
    `gradients`, of shape (2, n_features), float64: the gradients of the negative and of the positive rows are added to
        it.
    `sums`, of shape (2, 3), float64: for each class the sums of losses, slopes, and slopes times scores are added to
        it.
    """
    totals, picked = sums_for(rows, gradients), np.empty((2, at_a_time), np.uint64)
    scores, coefs, n_held = np.empty(at_a_time), np.empty((2, at_a_time)), np.empty(2, np.int64)
    _evaluate_rows(rows, y, weight, table_of(rows, w), bias, terms, scores, picked, coefs, n_held, totals, sums)
    for c in range(2):
        add_sums(rows, totals[c], gradients[c])


@kernel
def _evaluate_rows(rows, y, weight, table, bias, terms, scores, picked, coefs, n_held, totals, sums):
    for first in range(0, y.shape[0], scores.shape[0]):
        end = min(first + scores.shape[0], y.shape[0])
        for i in range(first, end):
            scores[i - first] = table_dot(rows, i, table) + bias
        _losses_and_slopes(scores, first, end, y, weight, terms, picked, coefs, n_held, sums)
        for c in range(2):
            table_axpys(rows, picked[c], coefs[c], n_held[c], totals[c])


@kernel
def _losses_and_slopes(scores, first, end, y, weight, terms, picked, coefs, n_held, sums):
    """Add the losses of the rows from first to end to the sums; pick those of each class whose slope is not 0."""
    n_held[0], n_held[1] = 0, 0
    for i in range(first, end):
        if weight[i] == 0.0:
            continue
        c = 1 if y[i] > 0 else 0
        score = scores[i - first]
        loss, slope = loss_and_slope(terms, score, c == 1)
        sums[c, 0] += weight[i] * loss
        sums[c, 1] += weight[i] * slope
        sums[c, 2] += weight[i] * slope * score
        picked[c, n_held[c]] = i
        coefs[c, n_held[c]] = weight[i] * slope
        n_held[c] += coefs[c, n_held[c]] != 0.0


def curvatures(rows, y, weight, w, bias, terms, out):
    """Write each row's weight times the curvature of its loss into out, float64 of shape (n_rows,)."""
    project(rows, w, out)
    _curvatures(y, weight, bias, terms, out)


@kernel
def _curvatures(y, weight, bias, terms, out):
    """Replace scores without the bias by weighted curvatures."""
    for i in range(out.shape[0]):
        out[i] = weight[i] * curvature(terms, out[i] + bias, y[i] > 0)


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


@kernel
def slopes_along_move(scores, moves, y, weight, terms, steps, out):
    """Add the derivative of the loss along a move, at several steps, to out, float64 of shape (n_steps,)."""
    for i in range(scores.shape[0]):
        if weight[i] != 0.0 and moves[i] != 0.0:
            for k in range(steps.shape[0]):
                out[k] += weight[i] * moves[i] * slope_of(terms, scores[i] + steps[k] * moves[i], y[i] > 0)


def shape_rows(rows, y, weight, w, bias, xi, mixed):
    """Sum the derivatives of minus the log-likelihood by the shape over the rows.

    Parameters
    ----------
    rows, y, weight, w, bias, xi
    mixed : ndarray of shape (n_features + 1,), float64
        The expected second derivatives by xi and each weight, and by xi and the intercept, are added to it.

    Returns
    -------
    slope, information : float
        The derivative of minus the log-likelihood by xi, and its expected second derivative.
    """
    of_weights, picked, totals = mixed[:-1], np.empty(BATCH, np.uint64), np.zeros(3)
    sums = sums_for(rows, of_weights)
    _shape_rows(rows, y, weight, table_of(rows, w), bias, xi, np.empty(BATCH), picked, np.empty(BATCH), sums, totals)
    add_sums(rows, sums, of_weights)
    mixed[-1] += totals[2]
    return float(totals[0]), float(totals[1])


@kernel
def _shape_rows(rows, y, weight, table, bias, xi, scores, picked, coefs, sums, totals):
    for first in range(0, y.shape[0], scores.shape[0]):
        end = min(first + scores.shape[0], y.shape[0])
        for i in range(first, end):
            scores[i - first] = table_dot(rows, i, table) + bias
        n_held = _shape_derivatives(scores, first, end, y, weight, xi, picked, coefs, totals)
        table_axpys(rows, picked, coefs, n_held, sums)


@kernel
def _shape_derivatives(scores, first, end, y, weight, xi, picked, coefs, totals):
    """Add the derivatives of the rows from first to end; return how many rows were picked, those of a weight above 0."""
    n_held = 0
    for i in range(first, end):
        if weight[i] == 0.0:
            continue
        slope, information, mixed = shape_terms(xi, scores[i - first], y[i] > 0)
        totals[0] += weight[i] * slope
        totals[1] += weight[i] * information
        totals[2] += weight[i] * mixed
        picked[n_held], coefs[n_held] = i, weight[i] * mixed
        n_held += 1
    return n_held


@kernel
def log_likelihood(rows, y, weight, w, bias, xi):
    """Return the log-likelihood of all rows; minus infinity if a label has probability 0."""
    total = 0.0
    for i in range(y.shape[0]):
        if weight[i] == 0.0:
            continue
        total -= weight[i] * gev_likelihood(xi, row_dot(rows, i, w) + bias, y[i] > 0)[0]
        if total == -np.inf:
            break
    return total


@kernel(_nrt=True)
def metropolis(
    rows, y, weight, means, precision, factor, least_xi, most_xi, seed, n_skipped, position, total, shapes, levels
):
    """Run a Metropolis-Hastings chain whose proposals are ``position + factor @ z``, z standard normal.

    `rows`, `y` and `weight`: all rows of the data set.
    `means` and `precision`, of shape (n_features + 2,), float64: mean and precision of the normal prior of weights,
        intercept and xi; precision 0 means a flat prior.
    `factor`, of shape (n_features + 2, n_features + 2), float64: lower triangular; a row of zeros keeps the entry
        fixed.
    `least_xi` and `most_xi`, float: limits of xi.
    `seed`, int: result of `engine.blocks.block_seed`.
    `n_skipped`, int: burn-in: steps before the first sample.
    `position`, of shape (n_features + 2,), float64: the start of the chain; updated to its end.
    `total`, of shape (n_features + 2,), float64: the sum of the samples is added to it.
    `shapes` and `levels`, of shape (n_samples,), float64: written: xi and the log-likelihood of each sample.
    Returns number of accepted steps, burn-in included.
    """
    size = position.shape[0]
    n_accepted, d = 0, size - 2
    state = u64(seed)
    z, trial = np.empty(size), np.empty(size)
    level = log_likelihood(rows, y, weight, position[:d], position[d], position[d + 1])
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
            trial_level = log_likelihood(rows, y, weight, trial[:d], trial[d], trial[d + 1])
            if math.log(1.0 - u) < trial_level + trial_prior - level - log_prior:
                position[:] = trial
                level, log_prior = trial_level, trial_prior
                n_accepted += 1
        if step >= 0:
            total += position
            shapes[step], levels[step] = position[d + 1], level
    return n_accepted


@kernel
def information_rows(rows, y, weight, w, bias, xi, of_score, of_shape):
    """Write two factors for each row; their products are the row's expected information on score and shape."""
    for i in range(y.shape[0]):
        score = row_dot(rows, i, w) + bias
        # The slopes of a negative row times sqrt(exp(t) - 1), where t is the loss of a positive row.
        t = gev_likelihood(xi, score, True)[0]
        root = math.sqrt(weight[i] * math.expm1(t)) if t < 700.0 else 0.0
        of_score[i] = root * gev_likelihood(xi, score, False)[1]
        of_shape[i] = root * shape_terms(xi, score, False)[0]
