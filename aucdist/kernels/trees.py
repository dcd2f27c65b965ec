"""The leaves that rows reach in trees."""

import numpy as np

from aucdist.kernels.compiling import kernel

ZERO = 1e-35
"""LightGBM takes numbers up to this for 0 where zeros are missing values."""


@kernel
def leaf_codes(values, starts, features, thresholds, missing, default_left, left, right, codes):
    """Write the leaf of each row in each tree.

    `values`, of shape (n_samples, n_features): c-contiguous, float32 or float64.
    `starts`, `features`, `thresholds`, `missing`, `default_left`, `left` and `right`: as of
        `aucdist.maps.forest.Forest`; they are not checked here.
    `codes`: of shape (n_samples, n_trees), uint8.
    """
    for i in range(values.shape[0]):
        for tree in range(starts.shape[0] - 1):
            node = starts[tree]
            while node >= 0:
                x = np.float64(values[i, features[node]])
                kind = missing[node]
                if kind != 2 and np.isnan(x):
                    x = 0.0
                if (kind == 1 and abs(x) <= ZERO) or (kind == 2 and np.isnan(x)):
                    to_left = default_left[node]
                else:
                    to_left = x <= thresholds[node]
                node = left[node] if to_left else right[node]
            codes[i, tree] = -1 - node
