"""The least and the greatest value of each column."""

import numpy as np

from aucdist.kernels.compiling import kernel


@kernel
def dense_ranges(values, there, low, high):
    """Lower `low` and raise `high` to the values of the rows that are there; a value that is not a number is passed over.

    `values`: of shape (n_samples, n_features), float32 or float64.
    `there`: of shape (n_samples,), bool.
    `low` and `high`, of shape (n_features,), of the type of `values`: changed in place.
    """
    for i in range(values.shape[0]):
        if there[i]:
            row = values[i]
            for j in range(row.shape[0]):
                x = row[j]
                low[j] = x if x < low[j] else low[j]
                high[j] = x if x > high[j] else high[j]


@kernel
def csr_ranges(values, indices, offsets, there, low, high, stored):
    """Do the same for the values that sparse rows store, count them by column, and return the most that a row has.

    `values`, `indices` and `offsets`: of `CsrRows`.
    `there`: of shape (n_samples,), bool.
    `low` and `high`, of shape (n_features,), of the type of `values`: changed in place.
    `stored`, of shape (n_features,), int64: added to.
    """
    most = 0
    for i in range(there.shape[0]):
        if there[i]:
            most = max(most, offsets[i + 1] - offsets[i])
            for k in range(np.uint64(offsets[i]), np.uint64(offsets[i + 1])):
                x, j = values[k], np.uint32(indices[k])
                low[j] = x if x < low[j] else low[j]
                high[j] = x if x > high[j] else high[j]
                stored[j] += 1
    return most
