"""The suite `shapes`: bins and pairs beside boosted trees and an explainable boosting machine on a million rows.

The rows are simulated: `SHAPED` features have a shape each, `PAIRS` pairs of others an interaction, and the rest say nothing.
Every system has its defaults, and is fitted in a process of its own, which is ended at `LIMIT`.
"""

# The peers are optional, and some have no type annotations.
# mypy: disable-error-code="import-not-found,import-untyped"

import multiprocessing
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np
import psutil

from aucdist.estimators import PairwiseHingeClassifier
from aucdist.estimators.base import BlockClassifier
from aucdist.metrics import average_precision_score, roc_auc_score
from benchmarks.common import Row, chosen_names

ROWS, TEST_ROWS, FEATURES = 1_000_000, 200_000, 50
FEW = 20_000
SHAPED, PAIRS = 20, 10
RATE = 0.05
"""The mean chance of a row to be positive is near this."""
SEED = 4201
LIMIT = 3600.0
"""Seconds for a system, its rows included."""
CONDITIONS = f"simulated rows, {TEST_ROWS} of them held out, seed {SEED}; settings are every system's defaults"

SHAPES = (
    np.tanh,
    lambda x: np.sin(2.0 * x),
    lambda x: np.abs(x) - 0.8,
    lambda x: np.where(x > 0.5, 1.0, -0.45),
    lambda x: 0.5 * (x * x - 1.0),
)


def simulated_rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return standard normal rows, float32 of shape (n, FEATURES), and labels -1 and +1 that a logistic model of shapes draws."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, FEATURES), dtype=np.float32)
    score = np.full(n, np.log(RATE / (1.0 - RATE)) - 1.0)
    for j in range(SHAPED):
        score += 0.4 * SHAPES[j % len(SHAPES)](X[:, j])
    for j in range(PAIRS):
        score += 0.4 * X[:, SHAPED + 2 * j] * X[:, SHAPED + 2 * j + 1]
    return X, np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-score)), 1, -1)


PACKAGES = {
    "linear": "",
    "bins": "",
    "bins + 10 pairs": "",
    "HistGradientBoosting": "",
    "LightGBM": "lightgbm",
    "EBM": "interpret",
}
"""The systems, and the package beyond ours and scikit-learn that each needs."""
SLOW = ("EBM",)


def model_of(name: str, threads: int) -> Any:
    """Return the unfitted model of a system."""
    if name == "HistGradientBoosting":
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(random_state=0)
    if name == "LightGBM":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_jobs=threads, random_state=0, verbosity=-1)
    if name == "EBM":
        from interpret.glassbox import ExplainableBoostingClassifier

        return ExplainableBoostingClassifier(n_jobs=threads)
    features = {"linear": None, "bins": {"map": "bins"}, "bins + 10 pairs": {"map": "bins", "interactions": 10}}[name]
    return PairwiseHingeClassifier(features=features, n_jobs=threads)


def shapes(slow_peers: bool, only: str | None = None, threads: int = 1) -> Iterator[Row]:
    """Yield a row for each system.

    Parameters
    ----------
    slow_peers : bool
        Also the explainable boosting machine.
    only : str, optional
        Names of systems, separated by commas.
    threads : int
        Of each system that takes such a number.

    Raises
    ------
    InputError
        For another name.
    """
    known = [name for name in PACKAGES if slow_peers or name not in SLOW]
    for name in chosen_names(only, known, "system"):
        yield measured(name, threads, LIMIT)


def measured(system: str, threads: int, limit: float) -> Row:
    """Fit a system in a new process, for so many seconds at most, and return its row."""
    row: Row = {"system": system, "rows": ROWS, "features": FEATURES, "threads": threads}
    package = PACKAGES[system]
    if package and find_spec(package) is None:
        return row | {"note": f"{package} is not installed"}
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=fit_and_score, args=(there, system, threads, (ROWS, TEST_ROWS)))
    process.start()
    there.close()
    measures: Row = {"note": f"not done in {limit:g} s"}
    if here.poll(limit):
        with suppress(EOFError):
            measures = {"note": "its process ended"}
            measures = here.recv()
    end(process)
    return row | measures


def end(process: BaseProcess) -> None:
    """End a process and those that it has started: once it has sent its row it may wait for its own workers for ever."""
    with suppress(psutil.NoSuchProcess):
        for child in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                child.kill()
    process.kill()
    process.join()


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of those that it has started."""
    this = psutil.Process()
    used = [process.cpu_times() for process in (this, *this.children(recursive=True))]
    return float(sum(times.user + times.system for times in used))


def fit_and_score(result: Connection, name: str, threads: int, rows: tuple[int, int]) -> None:
    """Fit a system, ours after a fit of few rows, which compiles, and send its seconds and areas: the work of a process."""
    warnings.simplefilter("ignore")
    model = model_of(name, threads)
    if isinstance(model, BlockClassifier):
        model_of(name, threads).fit(*simulated_rows(FEW, SEED + 2))
    X, y = simulated_rows(rows[0], SEED)
    cpu, start = cpu_seconds(), time.perf_counter()
    model.fit(X, y)
    seconds, cpu = time.perf_counter() - start, cpu_seconds() - cpu
    measures: Row = {"positives": int((y > 0).sum()), "seconds": seconds, "CPU s": cpu}
    X, y = simulated_rows(rows[1], SEED + 1)
    scores = model.decision_function(X) if hasattr(model, "decision_function") else model.predict_proba(X)[:, 1]
    measures |= {"AUC": roc_auc_score(y, scores), "PR-AUC": average_precision_score(y, scores)}
    result.send(measures)
