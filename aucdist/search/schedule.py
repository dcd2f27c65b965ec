"""The schedule of a search: which settings are fitted on which folds, and which of them are fitted again with more passes."""

import math
from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

from aucdist.estimators.base import BlockClassifier
from aucdist.metrics.measures import Measure
from aucdist.search.choice import Result, Row
from aucdist.search.grid import Point, paths_of
from aucdist.search.splits import Fold


class Halving(NamedTuple):
    """Successive halving: all settings get few passes, the better ones more, and so on.

    Attributes
    ----------
    first_passes : int
        The passes that every setting gets first.
    factor : int
        From rung to rung the passes are multiplied by it, and the number of settings is divided by it.
    """

    first_passes: int
    factor: int


class FitJob(NamedTuple):
    """Settings to fit one after the other on a fold."""

    fold: Fold
    points: tuple[Point, ...]
    max_passes: int


Schedule = Generator[list[FitJob], list[list[Result]], list[Row]]


def search_schedule(
    estimator: BlockClassifier,
    points: Sequence[Point],
    folds: Sequence[Fold],
    measure: Measure,
    halving: Halving | None = None,
) -> Schedule:
    """Return the schedule of fitting the settings on the folds, a generator of jobs.

    With `halving` (Jamieson & Talwalkar, "Non-stochastic Best Arm Identification", AISTATS 2016, the passes being the
    resource), each rung keeps the best ``ceil(n / factor)`` settings and gives them `factor` times the passes, until one is
    left or the estimator's own `max_passes` are reached; those that are left are fitted with these in the end.

    Parameters
    ----------
    measure : Measure
        Which settings are better, for `halving`.

    Yields
    ------
    list of FitJob
        To be answered with their results: for each job those of its points, as `aucdist.search.fold.score_path` returns them, or
        with an ``error`` in place of a ``value``.

    Returns
    -------
    list of Row
        For each point the results of its last rung.
    """
    rows: dict[int, Row] = {}
    alive, passes = list(range(len(points))), estimator.max_passes
    if halving is not None:
        rung = halving.first_passes
        while len(alive) > 1 and rung < passes:
            rows |= yield from _rung(estimator, points, alive, folds, rung)
            alive = _survivors(rows, alive, measure, math.ceil(len(alive) / halving.factor))
            rung *= halving.factor
    rows |= yield from _rung(estimator, points, alive, folds, passes)
    return [rows[i] for i in range(len(points))]


def _rung(
    estimator: BlockClassifier, points: Sequence[Point], alive: list[int], folds: Sequence[Fold], passes: int
) -> Generator[list[FitJob], list[list[Result]], dict[int, Row]]:
    paths = [[alive[i] for i in path] for path in paths_of(estimator, [points[i] for i in alive])]
    jobs = [FitJob(fold, tuple(points[i] for i in path), passes) for fold in folds for path in paths]
    answers = yield jobs
    found: dict[int, list[Result]] = {i: [] for i in alive}
    path_of_job = [path for _ in folds for path in paths]
    for path, results in zip(path_of_job, answers, strict=True):
        for i, result in zip(path, results, strict=True):
            found[i].append(result)
    return {i: Row(points[i], tuple(results), passes) for i, results in found.items()}


def _survivors(rows: dict[int, Row], alive: list[int], measure: Measure, n: int) -> list[int]:
    """Return the n best settings, in the order of the grid; those that failed come last."""

    def rank(i: int) -> tuple[bool, float, int]:
        mean = rows[i].mean
        return mean is None, -measure.sign * (mean or 0.0), i

    return sorted(sorted(alive, key=rank)[:n])


def run_schedules(
    schedules: Sequence[Schedule], answer: Callable[[list[FitJob]], list[list[Result]]]
) -> list[list[Row]]:
    """Run several schedules side by side: the jobs that all of them wait for are answered together.

    Parameters
    ----------
    schedules : sequence of generators from `search_schedule`
    answer : callable
        Takes jobs and returns the results of each.

    Returns
    -------
    list of list of Row
        The rows that each schedule returned.
    """
    done: dict[int, list[Row]] = {}
    asked = {i: next(one) for i, one in enumerate(schedules)}
    while asked:
        found = iter(answer([job for jobs in asked.values() for job in jobs]))
        answers = {i: [next(found) for _ in jobs] for i, jobs in asked.items()}
        asked = {}
        for i, results in answers.items():
            try:
                asked[i] = schedules[i].send(results)
            except StopIteration as end:
                done[i] = end.value
    return [done[i] for i in range(len(schedules))]
