"""Passes over rows for link functions: value and gradient in one pass, curvatures, second moments, slopes along a move."""

import numpy as np

from aucdist.kernels.compiling import kernel
from aucdist.kernels.link_functions import curvature, loss_and_slope, probability, shape_terms, slope_of
from aucdist.kernels.rows import add_sums, sums_for, table_axpys, table_dot, table_of


@kernel
def probabilities(terms, scores, above, below):
    """Write the probability at each score, and its complement."""
    for i in range(scores.shape[0]):
        above[i], below[i] = probability(terms, scores[i])


def evaluate_rows(rows, y, weight, w, bias, terms, picked, coefs, gradients, sums):
    """Sum losses and gradients of all rows, separately for each class, in one pass over the rows.

    Parameters
    ----------
    rows : DenseRows, CsrRows or BinRows
    y : ndarray of shape (n_rows,), int8
    weight : ndarray of shape (n_rows,), float64
        Rows of weight 0 are ignored, even if their loss is infinite.
    w : ndarray of shape (n_features,), float64
    bias : float
    terms : Terms
    picked : ndarray of shape (2, n_at_a_time), uint64
        Workspace. So many rows are scored at a time, and then added while they are still in the cache.
    coefs : ndarray of shape (2, n_at_a_time), float64
        Workspace.
    gradients : ndarray of shape (2, n_features), float64
        The gradients of the negative and of the positive rows are added to it.
    sums : ndarray of shape (2, 3), float64
        For each class the sums of losses, slopes, and slopes times scores are added to it.
    """
    totals = sums_for(rows, gradients)
    _evaluate_rows(rows, y, weight, table_of(rows, w), bias, terms, picked, coefs, np.zeros(2, np.int64), totals, sums)
    for c in range(2):
        add_sums(rows, totals[c], gradients[c])


@kernel
def _evaluate_rows(rows, y, weight, table, bias, terms, picked, coefs, n_held, totals, sums):
    n, step = y.shape[0], picked.shape[1]
    for first in range(0, n, step):
        n_held[0], n_held[1] = 0, 0
        for i in range(first, min(first + step, n)):
            if weight[i] == 0.0:
                continue
            c = 1 if y[i] > 0 else 0
            score = table_dot(rows, i, table) + bias
            loss, slope = loss_and_slope(terms, score, c == 1)
            sums[c, 0] += weight[i] * loss
            sums[c, 1] += weight[i] * slope
            sums[c, 2] += weight[i] * slope * score
            picked[c, n_held[c]] = i
            coefs[c, n_held[c]] = weight[i] * slope
            n_held[c] += coefs[c, n_held[c]] != 0.0
        for c in range(2):
            table_axpys(rows, picked[c], coefs[c], n_held[c], totals[c])


def curvatures(rows, y, weight, w, bias, terms, out):
    """Write each row's weight times the curvature of its loss into out, float64 of shape (n_rows,)."""
    _curvatures(rows, y, weight, table_of(rows, w), bias, terms, out)


@kernel
def _curvatures(rows, y, weight, table, bias, terms, out):
    for i in range(out.shape[0]):
        out[i] = weight[i] * curvature(terms, table_dot(rows, i, table) + bias, y[i] > 0)


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
    of_weights = mixed[:-1]
    table, sums, found = table_of(rows, w), sums_for(rows, of_weights), np.zeros(3)
    _shape_rows(rows, y, weight, table, bias, xi, np.empty(1, np.uint64), np.empty(1), sums, found)
    add_sums(rows, sums, of_weights)
    mixed[-1] += found[2]
    return float(found[0]), float(found[1])


@kernel
def _shape_rows(rows, y, weight, table, bias, xi, one_row, one_value, sums, found):
    for i in range(y.shape[0]):
        if weight[i] == 0.0:
            continue
        score = table_dot(rows, i, table) + bias
        first, second, both = shape_terms(xi, score, y[i] > 0)
        found[0] += weight[i] * first
        found[1] += weight[i] * second
        found[2] += weight[i] * both
        one_row[0], one_value[0] = i, weight[i] * both
        table_axpys(rows, one_row, one_value, 1, sums)
