"""Epochs of stochastic gradient steps for the univariate exponential and square losses; a step costs the row's non-zeros."""

import numpy as np

from aucdist.kernels.compiling import kernel
from aucdist.kernels.rows import row_axpy, row_dot
from aucdist.kernels.square_epochs import SMALLEST_SCALE


@kernel
def univariate_epoch(rows, order, y, factors, exponential, eta, lam, w, bias):
    """Take one gradient step per entry of `order` along ``factor * loss(y (w.x + bias)) + lam/2 |w|^2``.

    `rows`: DenseRows or CsrRows.
    `order`: of shape (n_steps,), int64.
    `y`: of shape (n_rows,), int8.
    `factors`: of shape (n_rows,), float64.
    `exponential`, bool: whether the loss of a margin m is ``exp(-m)``; otherwise it is ``(1 - m)^2``.
    `eta` and `lam`: float.
    `w`, of shape (n_features,), float64: updated.
    `bias`: float.
    Returns the bias after the last step.
    """
    scale, shrink = 1.0, 1.0 - eta * lam
    for t in range(order.shape[0]):
        i = order[t]
        margin = y[i] * (scale * row_dot(rows, i, w) + bias)
        slope = -np.exp(-margin) if exponential else -2.0 * (1.0 - margin)
        step = -eta * factors[i] * slope * y[i]
        scale *= shrink
        if abs(scale) < SMALLEST_SCALE:
            w *= scale
            scale = 1.0
        row_axpy(rows, i, step / scale, w)
        bias += step
    w *= scale
    return bias
