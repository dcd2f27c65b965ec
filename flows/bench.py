"""`aucdist bench`: our figures beside the peers', side by side in one process on this machine."""

import platform
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from aucdist.data.block import Block, place
from aucdist.data.simulate import simulate
from aucdist.engine.blocks import Blocks, LocalBlocks, Summary
from aucdist.errors import unknown
from aucdist.kernels.rows import accumulate, project
from aucdist.metrics import roc_auc_score
from aucdist.solvers.all_pairs import all_pairs
from aucdist.solvers.base import solve

LAMS = {"kddcup99": (1e-2, 1e-3, 1e-4, 1e-5), "a9a": (1e-2, 1e-3, 1e-4), "news20": (1e-2, 1e-3, 1e-4)}
SIMULATED = (1e-2, 1e-3, 1e-4)
Say = Callable[[str], None]


def bench(suite: str, *, slow_peers: bool, say: Say) -> pd.DataFrame:
    """Run a suite with one BLAS thread, and return its table.

    Parameters
    ----------
    suite : {"pairwise", "engine", "workers"}
    slow_peers : bool
        Also run the peers that take minutes.
    say : callable
        Hears each row as it comes.

    Raises
    ------
    InputError
        For an unknown suite, or data that are not there.
    """
    from threadpoolctl import threadpool_limits

    if suite not in SUITES:
        raise unknown("suite", suite, SUITES)
    say(
        f"{platform.machine()}, Python {platform.python_version()}, one thread; kernels compiled before the clock starts"
    )
    rows = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers that stop at max_iter are shown for what they reached
        for row in SUITES[suite](slow_peers):
            say("  ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()))
            rows.append(row)
    return pd.DataFrame(rows)


def pairwise(slow_peers: bool) -> Iterator[dict[str, Any]]:
    """all-pairs to a certified gap of 1e-3, beside what one would use instead, on the same split and scaling."""
    warm = simulate(2000, 5, 0.2, seed=0)
    solve(all_pairs(LocalBlocks([warm]), 1e-2), tol=1e-3, max_passes=5)
    for name, lams in LAMS.items():
        train, test = _real(name)
        yield from _ours(name, train, test, lams)
        yield from _peers(name, train, test, slow_peers)
    block = simulate(581_012, 54, 0.18, seed=0)
    w = np.ones(54)
    product = statistics.median(_seconds(lambda: block.X @ w) for _ in range(7))
    for row in _ours("simulated 581012 x 54", block, None, SIMULATED):
        yield {**row, "times X @ w": row["seconds"] / product}


def _ours(name: str, train: Block, test: Block | None, lams: tuple[float, ...]) -> Iterator[dict[str, Any]]:
    for lam in lams:
        start = time.perf_counter()
        found = solve(all_pairs(LocalBlocks([train]), lam), tol=1e-3, max_passes=500)
        seconds = time.perf_counter() - start
        yield {
            "data": name, "system": "all-pairs", "lam": lam, "seconds": seconds, "passes": found.passes,
            "relative gap": found.certificate.relative_gap,
            "test AUC": None if test is None else roc_auc_score(test.y, test.X @ found.w),
        }  # fmt: skip


def _peers(name: str, train: Block, test: Block, slow: bool) -> Iterator[dict[str, Any]]:
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


def engine(slow_peers: bool) -> Iterator[dict[str, Any]]:
    """What a reduction costs by itself: 16 blocks on two worker processes, a step that does nothing."""
    from functools import partial

    from aucdist.engine.dask import DaskBlocks, local_client

    def timed(name: str, blocks: Blocks, *args: Any) -> dict[str, Any]:
        for _ in range(10):
            blocks.reduce(_nothing, *args)
        seconds = [_seconds(lambda: blocks.reduce(_nothing, *args)) for _ in range(100)]
        return {"engine": name, "ms per reduction (median of 100)": 1e3 * statistics.median(seconds)}

    yield timed("LocalBlocks", LocalBlocks(place(_small(), 16)))
    with local_client(2) as client:
        blocks = DaskBlocks.load(client, partial(_small_block, 16), 16)
        yield timed("DaskBlocks, no arguments", blocks)
        yield timed("DaskBlocks, 1 MB of arguments", blocks, np.zeros(2**17))


def workers(slow_peers: bool) -> Iterator[dict[str, Any]]:
    """Two workers against one on 4 million rows, beside what two processes reach on products with X and nothing else."""
    from functools import partial

    from aucdist.engine.dask import DaskBlocks, local_client

    n_blocks, load = 16, partial(_simulated_block, 250_000)
    seconds: dict[tuple[str, int], float] = {}
    for n_workers in (1, 2):
        with local_client(n_workers) as client:
            blocks = DaskBlocks.load(client, load, n_blocks)
            blocks.reduce(_products, 1)
            seconds["products", n_workers] = _seconds(partial(blocks.reduce, _products, 30))
            solve(all_pairs(blocks, 1e-3), tol=1.0, max_passes=2)
            found: list[int] = []
            seconds["fit", n_workers] = _seconds(partial(_note_passes, blocks, found))
        yield {
            "workers": n_workers, "rows": 250_000 * n_blocks, "passes": found[0],
            "fit s": seconds["fit", n_workers], "30 products s": seconds["products", n_workers],
        }  # fmt: skip
    gain = {what: seconds[what, 1] / seconds[what, 2] for what in ("fit", "products")}
    yield {
        "fit, 1 over 2 workers": gain["fit"],
        "products, 1 over 2": gain["products"],
        "share": gain["fit"] / gain["products"],
    }


def _note_passes(blocks: Blocks, found: list[int]) -> None:
    found.append(solve(all_pairs(blocks, 1e-3), tol=1e-3, max_passes=100).passes)


def _simulated_block(rows: int, index: int) -> Block:
    return simulate(rows, 54, 0.02, seed=0, index=index)


def _products(block: Block, memory: None, times: int) -> tuple[None, Summary]:
    w, out, back = np.ones(block.n_features), np.empty(block.n_samples), np.zeros(block.n_features)
    every = np.arange(block.n_samples)
    for _ in range(times):
        project(block.rows, w, out)
        accumulate(block.rows, every, out, back)
    return None, {"total": float(back.sum())}


def _small() -> Block:
    return simulate(1600, 4, 0.1, seed=0)


def _small_block(n_blocks: int, index: int) -> Block:
    return place(_small(), n_blocks)[index]


def _nothing(block: Block, memory: None, *args: Any) -> tuple[None, Summary]:
    return None, {"n": block.n_samples}


def _real(name: str) -> tuple[Block, Block]:
    from flows.loading import load_train
    from flows.stages import open_data

    opened = open_data(load_train(name, [], None).data)
    assert opened.test is not None
    return opened.train, opened.test


def _seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


SUITES: dict[str, Callable[[bool], Iterator[dict[str, Any]]]] = {
    "pairwise": pairwise,
    "engine": engine,
    "workers": workers,
}
