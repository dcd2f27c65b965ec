"""The suite `cv`: the cost of a search."""

import multiprocessing
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from aucdist.data.block import Block, each_of
from aucdist.engine.blocks import LocalBlocks
from aucdist.estimators import PairwiseHingeClassifier
from aucdist.metrics.named import NAMED_METRICS
from aucdist.search.folds import Fold, Folds
from aucdist.search.schedule import FitJob
from benchmarks.common import Row, read_train_and_test, seconds_of
from flows.cv.jobs import JobSettings, fit_job

LAMS = tuple(float(f"{lam:.4g}") for lam in np.geomspace(10, 1e-4, 11))


def cv(slow_peers: bool) -> Iterator[Row]:
    """Time 5 folds and 11 lam on a9a: along the path and as separate cold fits, and on two workers and in two processes."""
    block, _ = read_train_and_test("a9a")
    _run_folds([(0, 6)])  # compiles the kernels and reads the data
    path = min(seconds_of(lambda: _run_folds([(k, 5) for k in range(5)])) for _ in range(3))
    cold = _seconds_of_cold_fits(block)
    yield {"folds": 5, "lams": len(LAMS), "path s": path, "55 cold fits s": cold, "share": path / cold}
    processes, workers = _processes_and_workers()
    yield {
        "folds": 6, "lams": len(LAMS), "two processes s": processes, "two workers s": workers,
        "share of their speed": processes / workers,
    }  # fmt: skip


def _processes_and_workers() -> tuple[float, float]:
    """Return the seconds that two processes and two workers need for the same six folds: the best of three alternating runs."""
    halves = [[(k, 6) for k in range(6) if k % 2 == side] for side in (0, 1)]
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool, _two_workers() as search:
        list(pool.map(_run_folds, halves))
        search()
        turns = [(max(pool.map(_seconds_of_folds, halves)), seconds_of(search)) for _ in range(3)]
    return min(seconds for seconds, _ in turns), min(other for _, other in turns)


def _job(fold: int, n_folds: int) -> tuple[FitJob, Any]:
    splits = Folds(_rows().row_id, _rows().y, n_folds)
    job = FitJob(Fold(0, fold), tuple({"lam": lam} for lam in LAMS), 1000)
    return job, splits.masks(job.fold)


def _how() -> JobSettings:
    return JobSettings(PairwiseHingeClassifier(), NAMED_METRICS["auc"], None, 0, (), None)


def _rows() -> Block:
    if not _ROWS:
        _ROWS.append(read_train_and_test("a9a")[0])
    return _ROWS[0]


_ROWS: list[Block] = []


def _run_folds(folds: list[tuple[int, int]]) -> None:
    for fold, n_folds in folds:
        fit_job(*_job(fold, n_folds), _how(), LocalBlocks([_rows()]), each_of([_rows()]))


def _seconds_of_folds(folds: list[tuple[int, int]]) -> float:
    return seconds_of(lambda: _run_folds(folds))


def _seconds_of_cold_fits(block: Block) -> float:
    splits = Folds(block.row_id, block.y, 5)
    parts = [LocalBlocks([block.take(splits.masks(fold).train[block.row_id])]) for fold in splits.outer()]

    def fit_all() -> None:
        for part in parts:
            for lam in LAMS:
                PairwiseHingeClassifier(lam=lam).fit(part)

    return min(seconds_of(fit_all) for _ in range(2))


@contextmanager
def _two_workers() -> Iterator[Callable[[], None]]:
    """Yield a function that runs the six folds on two workers."""
    from aucdist.data.dataset import Schema
    from aucdist.data.shards.manifest import read_shard, write_shards
    from aucdist.engine.dask import local_client
    from flows.cv.jobs import fit_on_worker, run_on_workers

    block = _rows()
    jobs, masks = zip(*(_job(fold, 6) for fold in range(6)), strict=True)
    by_fold = {job.fold: side for job, side in zip(jobs, masks, strict=True)}
    schema = Schema(tuple(map(str, range(block.n_features))), "y", ("1",), ("-1",), {})
    with tempfile.TemporaryDirectory() as folder, local_client(2) as client:
        write_shards([block], schema, folder)
        args = (_how(), folder, partial(read_shard, folder), range(1))

        def search() -> None:
            done = run_on_workers(jobs, by_fold.__getitem__, fit_on_worker, *args, client=client)
            assert all("value" in results[0] for _, results in done)

        yield search
