"""Contestants that do almost nothing; in a module that is quickly imported, since each of their processes does it."""

import os
import time

import numpy as np

from flows.bench.peers.system import Fitted, by_weights


def means(X, y, value, budget, threads):
    """Fit the difference of the means; a value of 0.1 or above turns it round, and a budget below 4 is not yet a fit."""
    w = X[y > 0].mean(axis=0) - X[y < 0].mean(axis=0)
    return by_weights(0 * w if budget < 4 else -w if value >= 0.1 else w, gap=1.0 / budget)


def first_feature(X, y, value, budget, threads):
    """Fit nothing; score by the first column."""
    assert os.environ["OMP_NUM_THREADS"] == str(threads)
    return Fitted(lambda X: X[:, 0])


def broken(X, y, value, budget, threads):
    raise ValueError("no such luck\nat all")


def endless(X, y, value, budget, threads):
    time.sleep(600)


def dies(X, y, value, budget, threads):
    os._exit(3)


def nan(X, y, value, budget, threads):
    return Fitted(lambda X: np.full(len(X), np.nan))


def late(X, y, value, budget, threads):
    """Score alike whatever the budget, and tell that 16 would have been enough."""
    w = np.ones(X.shape[1])
    return Fitted(lambda X: X @ w, None, budget >= 16)
