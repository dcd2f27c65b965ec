"""The suite `pairwise`: the solvers over all pairs."""

import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.data.shards.sharding import simulate
from aucdist.engine.blocks import LocalBlocks
from aucdist.metrics import roc_auc_score
from aucdist.pairs.cutting_planes import AllPairs
from aucdist.solvers.base import solve
from benchmarks.common import Row, read_train_and_test, seconds_of
from benchmarks.pair_steps import pair_steps
from benchmarks.square import compare_square

LAMS = {"kddcup99": (1e-2, 1e-3, 1e-4, 1e-5), "a9a": (1e-2, 1e-3, 1e-4), "news20": (1e-2, 1e-3, 1e-4)}
SIMULATED = (1e-2, 1e-3, 1e-4)
PROTOTYPE = {
    "kddcup99": {1e-2: (32, 2.0), 1e-3: (65, 4.6), 1e-4: (114, 10.4), 1e-5: (209, 37)},
    "a9a": {1e-2: (11, 0.1), 1e-3: (23, 0.1), 1e-4: (69, 1.2)},
    "news20": {1e-2: (28, 0.2), 1e-3: (67, 0.6), 1e-4: (250, 5)},
    "simulated 581012 x 54": {1e-2: (8, 0.6), 1e-3: (22, 1.9), 1e-4: (54, 6.6)},
}
"""Passes and seconds of the first prototype, on another machine, by data and lam."""


def pairwise(slow_peers: bool) -> Iterator[Row]:
    """Compare certified fits with their peers, and single steps and products with minimal implementations."""
    yield from _compare_fits(slow_peers)
    yield from pair_steps()
    yield from compare_square()


def _compare_fits(slow_peers: bool) -> Iterator[Row]:
    """Time all-pairs to a certified gap of 1e-3, the prototype, and the peers on the same split and scaling."""
    for name, lams in LAMS.items():
        train, test = read_train_and_test(name)
        yield from _our_fits(name, train, test, lams)
        yield from _peer_fits(name, train, test, slow_peers)
    block = simulate(581_012, 54, 0.18, seed=0)
    w = np.ones(54)
    product = statistics.median(seconds_of(lambda: block.X @ w) for _ in range(7))
    for row in _our_fits("simulated 581012 x 54", block, None, SIMULATED):
        yield {**row, "times X @ w": row["seconds"] / product}


def _our_fits(name: str, train: Block, test: Block | None, lams: tuple[float, ...]) -> Iterator[Row]:
    # These very rows warm up, by a whole fit: kernels are compiled for each form of rows, whole ones or sparse, of either
    # precision, and some of them only in late passes.
    solve(AllPairs().rounds(LocalBlocks([train]), lams[0]), tol=1e-3, max_passes=500)
    for lam in lams:
        start = time.perf_counter()
        solution = solve(AllPairs().rounds(LocalBlocks([train]), lam), tol=1e-3, max_passes=500)
        seconds = time.perf_counter() - start
        passes, prototype_seconds = PROTOTYPE[name][lam]
        yield {
            "data": name, "system": "all-pairs", "lam": lam, "seconds": seconds, "passes": solution.passes,
            "relative gap": solution.certificate.relative_gap,
            "test AUC": None if test is None else roc_auc_score(test.y, test.X @ solution.w),
            "passes of the prototype": passes, "seconds of the prototype": prototype_seconds,
        }  # fmt: skip


def _peer_fits(name: str, train: Block, test: Block, slow: bool) -> Iterator[Row]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    peers: dict[str, Any] = {"LogisticRegression(lbfgs)": LogisticRegression(max_iter=1000)}
    if slow:
        peers["LogisticRegression(liblinear)"] = LogisticRegression(solver="liblinear", max_iter=1000)
        peers["LinearSVC(hinge, dual)"] = LinearSVC(loss="hinge", dual=True, random_state=0)
        peers["LinearSVC(squared hinge, balanced)"] = LinearSVC(class_weight="balanced", dual=False)
    for system, peer in peers.items():
        start = time.perf_counter()
        peer.fit(train.X, train.y)
        seconds = time.perf_counter() - start
        yield {
            "data": name, "system": system, "seconds": seconds,
            "test AUC": roc_auc_score(test.y, peer.decision_function(test.X)),
        }  # fmt: skip
