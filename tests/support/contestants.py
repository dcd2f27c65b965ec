"""Contestants that do almost nothing, in a module that each of their processes imports quickly."""

import os
import time

import numpy as np
from benchmarks.peers.system import FittedModel, linear_model


def means(X, y, value, budget, threads):
    """Fit the difference of the means; a value of 0.1 or more reverses it, and with a budget below 4 the weights are 0."""
    w = X[y > 0].mean(axis=0) - X[y < 0].mean(axis=0)
    return linear_model(0 * w if budget < 4 else -w if value >= 0.1 else w, gap=1.0 / budget)


def first_feature(X, y, value, budget, threads):
    """Fit nothing; score by the first column."""
    assert os.environ["OMP_NUM_THREADS"] == str(threads)
    return FittedModel(lambda X: X[:, 0])


def broken(X, y, value, budget, threads):
    raise ValueError("no such luck\nat all")


def endless(X, y, value, budget, threads):
    time.sleep(600)


def dies(X, y, value, budget, threads):
    os._exit(3)


def nan(X, y, value, budget, threads):
    return FittedModel(lambda X: np.full(len(X), np.nan))


def late(X, y, value, budget, threads):
    """Return the same scores for every budget, and report the end from a budget of 16 on."""
    w = np.ones(X.shape[1])
    return FittedModel(lambda X: X @ w, None, budget >= 16)


def slow_to_fit(X, y, value, budget, threads):
    """Take longer than a second for all rows of a split, which are 400 in the tests."""
    return _slowly(X, len(X) == 400)


def slow_to_choose(X, y, value, budget, threads):
    """Take longer than a second for two of three folds of 400 rows."""
    return _slowly(X, 260 < len(X) < 280)


def _slowly(X, slow):
    if slow:
        time.sleep(1.1)
    return FittedModel(lambda X: X[:, 0])
