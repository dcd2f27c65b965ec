"""What a run has found: the object that ``--json`` prints, and the details that go beside it."""

import math
import platform
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from aucdist.metrics.auc import auc, average_precision, confusion, g_mean
from aucdist.metrics.counts import ScoreCounts
from flows.train.stages import Opened, Scored

PACKAGES = ("aucdist", "numpy", "scipy", "numba", "scikit-learn", "pandas", "pyarrow", "dask", "distributed")


@dataclass(frozen=True, eq=False)
class Trained:
    """A fitted estimator with what it was fitted on and how its scores fall."""

    config: Any  # of a training run or of a search
    opened: Opened
    estimator: Any
    scored: Scored
    seconds: dict[str, float]


def result_of(trained: Trained, run: str) -> dict[str, Any]:
    """Return the object that ``aucdist train --json`` prints; scripts rely on its keys.

    Rows and classes are those of the training rows: it is over their pairs that the certificate speaks.
    """
    estimator, opened, seconds = trained.estimator, trained.opened, trained.seconds
    proof = estimator.certificate_
    test, interval = trained.scored.test, trained.scored.interval
    return jsonable(
        {
            "run": run,
            "estimator": type(estimator).__name__,
            "solver": estimator.solver,
            "n_samples": opened.train.n_samples,
            "n_features": opened.train.n_features,
            "n_pos": opened.n_pos,
            "n_neg": opened.train.n_samples - opened.n_pos,
            "metrics": {
                "train_auc": auc(trained.scored.train),
                "test_auc": None if test is None else auc(test),
                "test_auc_interval": None if interval is None else [interval.low, interval.high],
            },
            "certificate": {
                "primal": proof.primal,
                "dual": proof.dual,
                "relative_gap": proof.relative_gap,
                "status": proof.status.value,
            },
            "passes": estimator.n_passes_,
            "seconds": {
                "data": sum(seconds.get(stage, 0.0) for stage in ("open data", "survey", "split and scale", "place")),
                "fit": seconds["fit"],
                "evaluate": seconds["evaluate"],
            },
        }
    )


def details_of(trained: Trained) -> dict[str, Any]:
    """Return what ``metrics.json`` holds beyond that object."""
    threshold = trained.estimator.threshold_
    parts = {"train": trained.scored.train, "test": trained.scored.test}
    return jsonable(
        {
            "name": trained.config.name,
            "data": {"name": trained.opened.name, "fingerprint": trained.opened.fingerprint},
            "threshold": threshold,
            "details": {part: _detail(counts, threshold) for part, counts in parts.items() if counts is not None},
            "interval": None if trained.scored.interval is None else asdict(trained.scored.interval),
            "versions": versions(),
        }
    )


def _detail(counts: ScoreCounts, threshold: float) -> dict[str, Any]:
    table = confusion(counts, threshold)
    return {
        "n_pos": counts.n_pos,
        "n_neg": counts.n_neg,
        "average_precision": average_precision(counts),
        "g_mean": g_mean(table),
        "confusion": table,
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that decide the result."""
    return {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}}


def jsonable(value: Any) -> Any:
    """Return the value in types of JSON; a number that is not finite becomes null, for JSON has none."""
    if isinstance(value, dict):
        return {str(k): jsonable(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(v) for v in value]
    if isinstance(value, np.generic):
        return jsonable(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
