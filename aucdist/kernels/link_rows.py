"""Passes over rows for link functions: value and gradient in one pass, curvatures, second moments, slopes along a move."""

import numpy as np

from aucdist.kernels.compiling import kernel
from aucdist.kernels.link_functions import curvature, loss_and_slope, probability, shape_terms, slope_of
from aucdist.kernels.rows import BATCH, add_sums, project, sums_for, table_axpys, table_dot, table_of


@kernel
def probabilities(terms, scores, above, below):
    """Write the probability at each score, and its complement."""
    for i in range(scores.shape[0]):
        above[i], below[i] = probability(terms, scores[i])


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
    of_weights, picked, found = mixed[:-1], np.empty(BATCH, np.uint64), np.zeros(3)
    sums = sums_for(rows, of_weights)
    _shape_rows(rows, y, weight, table_of(rows, w), bias, xi, np.empty(BATCH), picked, np.empty(BATCH), sums, found)
    add_sums(rows, sums, of_weights)
    mixed[-1] += found[2]
    return float(found[0]), float(found[1])


@kernel
def _shape_rows(rows, y, weight, table, bias, xi, scores, picked, coefs, sums, found):
    for first in range(0, y.shape[0], scores.shape[0]):
        end = min(first + scores.shape[0], y.shape[0])
        for i in range(first, end):
            scores[i - first] = table_dot(rows, i, table) + bias
        n_held = _shape_derivatives(scores, first, end, y, weight, xi, picked, coefs, found)
        table_axpys(rows, picked, coefs, n_held, sums)


@kernel
def _shape_derivatives(scores, first, end, y, weight, xi, picked, coefs, found):
    """Add the derivatives of the rows from first to end; return how many rows were picked, those of a weight above 0."""
    n_held = 0
    for i in range(first, end):
        if weight[i] == 0.0:
            continue
        one, two, both = shape_terms(xi, scores[i - first], y[i] > 0)
        found[0] += weight[i] * one
        found[1] += weight[i] * two
        found[2] += weight[i] * both
        picked[n_held], coefs[n_held] = i, weight[i] * both
        n_held += 1
    return n_held
