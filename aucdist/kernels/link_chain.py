"""A Metropolis-Hastings chain over the weights and the shape of the GEV link."""

import math

import numpy as np

from aucdist.kernels.compiling import kernel
from aucdist.kernels.link_functions import gev_likelihood, shape_terms
from aucdist.kernels.random import u64, uniform01
from aucdist.kernels.rows import row_dot


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


@kernel
def standard_normals(state, out):
    """Write independent standard normal numbers by the Box-Muller transform, and return the next state of the generator."""
    for k in range(0, out.shape[0], 2):
        state, u = uniform01(state)
        state, v = uniform01(state)
        radius = math.sqrt(-2.0 * math.log(1.0 - u))
        out[k] = radius * math.cos(2.0 * math.pi * v)
        if k + 1 < out.shape[0]:
            out[k + 1] = radius * math.sin(2.0 * math.pi * v)
    return state


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
        state = standard_normals(state, z)
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
