"""The course of a search: which settings are to be fitted on which cuts, and what comes next when the results are in."""

import math
from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

from aucdist.estimators.base import BlockClassifier
from aucdist.metrics.measures import Measure
from aucdist.search.choice import Result, Row
from aucdist.search.grid import Point, paths_of
from aucdist.search.splits import Fold


class Halving(NamedTuple):
    """Successive halving: all settings get few passes, the better ones of them more, and so on.

    Attributes
    ----------
    first_passes : int
        What every setting gets.
    factor : int
        By so much the passes grow from rung to rung, and the settings become fewer.
    """

    first_passes: int
    factor: int


class Job(NamedTuple):
    """Settings to fit one after the other on a cut.

    Attributes
    ----------
    cut : Cut
    points : tuple of dict
    max_passes : int
    """

    cut: Fold
    points: tuple[Point, ...]
    max_passes: int


Schedule = Generator[list[Job], list[list[Result]], list[Row]]


def course(
    estimator: BlockClassifier,
    points: Sequence[Point],
    cuts: Sequence[Fold],
    measure: Measure,
    halving: Halving | None = None,
) -> Schedule:
    """Try the settings on the cuts.

    With `halving` (Jamieson & Talwalkar, "Non-stochastic Best Arm Identification", AISTATS 2016, the passes being the
    resource), each rung keeps the best ``ceil(n / factor)`` settings and gives them `factor` times the passes, until one is
    left or the estimator's own `max_passes` are reached; those that are left are fitted with these in the end.

    Parameters
    ----------
    estimator : BlockClassifier
    points : sequence of dict
    cuts : sequence of Cut
    measure : Measure
        What is better, for `halving`.
    halving : Halving, optional

    Yields
    ------
    list of Job
        To be answered by their results: for each job those of its points, as `aucdist.search.fold.score_path` gives them, or
        with an ``error`` in place of a ``value``.

    Returns
    -------
    list of Row
        For each point, what its last rung found.
    """
    rows: dict[int, Row] = {}
    alive, passes = list(range(len(points))), estimator.max_passes
    if halving is not None:
        rung = halving.first_passes
        while len(alive) > 1 and rung < passes:
            rows |= yield from _rung(estimator, points, alive, cuts, rung)
            alive = _survivors(rows, alive, measure, math.ceil(len(alive) / halving.factor))
            rung *= halving.factor
    rows |= yield from _rung(estimator, points, alive, cuts, passes)
    return [rows[i] for i in range(len(points))]


def _rung(
    estimator: BlockClassifier, points: Sequence[Point], alive: list[int], cuts: Sequence[Fold], passes: int
) -> Generator[list[Job], list[list[Result]], dict[int, Row]]:
    paths = [[alive[i] for i in path] for path in paths_of(estimator, [points[i] for i in alive])]
    jobs = [Job(cut, tuple(points[i] for i in path), passes) for cut in cuts for path in paths]
    answers = yield jobs
    found: dict[int, list[Result]] = {i: [] for i in alive}
    places = [path for _ in cuts for path in paths]
    for path, results in zip(places, answers, strict=True):
        for i, result in zip(path, results, strict=True):
            found[i].append(result)
    return {i: Row(points[i], tuple(results), passes) for i, results in found.items()}


def _survivors(rows: dict[int, Row], alive: list[int], measure: Measure, n: int) -> list[int]:
    """Return the n best settings, in the order of the grid; those that failed come last."""

    def rank(i: int) -> tuple[bool, float, int]:
        mean = rows[i].mean
        return mean is None, -measure.sign * (mean or 0.0), i

    return sorted(sorted(alive, key=rank)[:n])


def run(courses: Sequence[Schedule], answer: Callable[[list[Job]], list[list[Result]]]) -> list[list[Row]]:
    """Run several courses side by side: the jobs that all of them wait for are answered together.

    Parameters
    ----------
    courses : sequence of generators from `course`
    answer : callable
        Takes jobs and returns the results of each.

    Returns
    -------
    list of list of Row
        What each course returned.
    """
    done: dict[int, list[Row]] = {}
    asked = {i: next(one) for i, one in enumerate(courses)}
    while asked:
        found = iter(answer([job for jobs in asked.values() for job in jobs]))
        answers = {i: [next(found) for _ in jobs] for i, jobs in asked.items()}
        asked = {}
        for i, results in answers.items():
            try:
                asked[i] = courses[i].send(results)
            except StopIteration as end:
                done[i] = end.value
    return [done[i] for i in range(len(courses))]
