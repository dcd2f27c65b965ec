"""The progress of a search, as an observer sees it: finished jobs, the best setting so far, and the time left."""

import time

import numpy as np

from aucdist.metrics.measures import find_measure
from aucdist.report.text import parameters_text
from aucdist.search.choice import Result
from aucdist.search.folds import Fold
from aucdist.search.schedule import FitJob
from flows.progress.console import RunObserver, Tasks


class SearchProgress:
    """Reports the jobs of a search to an observer."""

    def __init__(self, observer: RunObserver, metric: str):
        self._observer, self._metric = observer, metric
        self._values: dict[str, list[float]] = {}
        self._n_failed = 0

    def start(self, total: int, cached: list[tuple[FitJob, list[Result]]]) -> None:
        """Report that jobs start, some of which have cached results."""
        for job, results in cached:
            self._record(job, results)
        self._total, self._left = total, total - len(cached)
        self._start, self._finished = time.monotonic(), 0
        self._report(None)

    def finish(self, job: FitJob, results: list[Result], failed: bool) -> None:
        """Report that a job is finished."""
        self._record(job, results)
        self._finished, self._left = self._finished + 1, self._left - 1
        self._n_failed += failed
        self._report((time.monotonic() - self._start) / self._finished * self._left)

    def _record(self, job: FitJob, results: list[Result]) -> None:
        for point, result in zip(job.points, results, strict=True):
            if "value" in result and job.fold.inner is None:
                text = parameters_text(point)
                self._values.setdefault(text, []).append(result["value"])

    def _report(self, seconds_left: float | None) -> None:
        sign = find_measure(self._metric).sign
        means = {text: (len(values), sign * float(np.mean(values))) for text, values in self._values.items()}
        best = max(means, key=lambda text: means[text], default=None)
        text = "" if best is None else f"best so far {self._metric} {abs(means[best][1]):.4f} at {best}"
        self._observer.tasks(Tasks(self._total - self._left, self._total, self._n_failed, text, seconds_left))


def fold_text(fold: Fold) -> str:
    """Return a fold as users count them: from 1."""
    inner = "" if fold.inner is None else f", inner fold {fold.inner + 1}"
    return f"{fold.fold + 1} of repeat {fold.repeat + 1}{inner}"
