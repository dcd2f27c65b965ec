"""Part of the suite `pairwise`: steps over pairs against those of a minimal dual coordinate descent."""

from collections.abc import Iterator

import numba
import numpy as np

from aucdist.data.shards.sharding import simulate
from aucdist.papers.sdcd.kernels import ENTRY, AscentSteps, PairPlaces, PairRows, draw_any, draw_in_order, dual_steps
from benchmarks.common import Row, fastest

LAM = 1e-3
BATCH = 4096
"""Pairs sampled at a time."""


def pair_steps() -> Iterator[Row]:
    """Time n_samples steps over pairs, with their sampling, and one sweep over the rows in the dual of the hinge loss."""
    block = simulate(581_012, 54, 0.18, seed=0)
    n, squares, order = block.n_samples, np.einsum("ij,ij->i", block.X, block.X), np.random.default_rng(0)
    positions = order.permutation(n)
    plain = fastest(
        lambda: _plain_sweep(block.X, block.y.astype(float), squares, positions, 1.0, np.zeros(n), np.zeros(54))
    )
    yield {"data": "simulated 581012 x 54", "system": "plain hinge dual loop (fastmath), a sweep", "seconds": plain}
    positive, negative = np.flatnonzero(block.y > 0), np.flatnonzero(block.y < 0)
    rows = PairRows(block.take(positive).rows, block.rows, len(negative), 1)
    for name, sample in (("sdcd", draw_any), ("sdcd-perm", draw_in_order)):
        ours = fastest(lambda sample=sample: _pair_sweep(sample, rows, negative, n))  # type: ignore[misc]
        yield {
            "data": "simulated 581012 x 54", "system": f"{name}, as many pairs", "seconds": ours,
            "share of the plain loop's speed": plain / ours,
        }  # fmt: skip


def _pair_sweep(sample: numba.core.dispatcher.Dispatcher, rows: PairRows, which: np.ndarray, n_steps: int) -> None:
    n_minority, w = rows.minority.values.shape[0], np.zeros(rows.majority.values.shape[1])
    table, pairs, used = np.zeros(2**21, ENTRY), np.empty((BATCH, 3), np.int64), 0
    before, bounds = np.array([0, n_minority * len(which)]), np.array([0, len(which)])
    places = PairPlaces(before, bounds, np.array([0]), np.array([n_minority]), which)
    scale, never = LAM * n_minority * rows.n_majority, np.empty(0)
    for first in range(0, n_steps, BATCH):
        sample(7, first, places, pairs)
        _, used, _ = dual_steps(rows, pairs, AscentSteps(scale, 1.0, 0.0, used, 2**20), table, w, never)


@numba.njit(nogil=True, fastmath=True)
def _plain_sweep(X, y, squares, order, bound, dual, w):  # type: ignore[no-untyped-def]
    for i in order:
        margin = 0.0
        for f in range(w.shape[0]):
            margin += X[i, f] * w[f]
        new = min(max(dual[i] + (1.0 - y[i] * margin) / squares[i], 0.0), bound)
        move = (new - dual[i]) * y[i]
        if move != 0.0:
            dual[i] = new
            for f in range(w.shape[0]):
                w[f] += move * X[i, f]
