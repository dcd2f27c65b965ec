"""The schedule of a search: which settings are fitted on which folds, and which of them are fitted again with more passes."""

import itertools
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple

from sklearn.base import clone

from aucdist.errors import InputError, unknown
from aucdist.estimators.base import BlockClassifier
from aucdist.estimators.with_solver import PREFIX, moved, solver_of
from aucdist.metrics.measures import Measure
from aucdist.search.choice import CLEAR, Point, Result, Row, complexity_of, errors_behind
from aucdist.search.folds import Fold


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
    """Settings to fit one after the other on a fold; `n_always` as of `aucdist.search.fold.score_path`."""

    fold: Fold
    points: tuple[Point, ...]
    max_passes: int
    n_always: int | None = None


FIRST_LAMS = 3
"""The number of values of lam that are tried for each map. A smaller lam takes more passes than all those before it and
is rarely the best, so it is tried only if the one before is the best so far."""
FEWEST_FOLDS = 3
"""The smallest number of folds. The standard error of a difference over fewer folds is too uncertain."""
LOST = 1.0
"""From two folds on, a map is dropped if it is this many standard errors of the difference behind the best one."""
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
            # Those that failed come last.
            ranked = sorted(alive, key=lambda i: (rows[i].mean is None, -measure.sign * (rows[i].mean or 0.0), i))
            alive = sorted(ranked[: math.ceil(len(alive) / halving.factor)])
            rung *= halving.factor
    rows |= yield from _rung(estimator, points, alive, folds, passes)
    return [rows[i] for i in range(len(points))]


def race_schedule(
    estimator: BlockClassifier, points: Sequence[Point], folds: Sequence[Fold], measure: Measure, n_first: int
) -> Schedule:
    """Return the schedule of a race of feature maps over the folds, a generator of jobs.

    After every `n_first` folds the better half of the maps, rounded down, goes on, and at least two, but from two folds on none
    that is `LOST` standard errors behind. The simplest of the maps that are hardly worse than the best one also goes on, because
    the rule ``simplest`` may choose it. Each map goes on along lam up to the value after its best one so far. On the first folds
    it goes along lam as far as it gets better, and landmarks of half the width are tried if those of the full width are among the
    two best maps. Where no map that is left can be fitted on a fold, the best one that left comes back. The race ends where one
    map is left after `FEWEST_FOLDS` folds.

    Parameters
    ----------
    points : sequence of dict
        Those of a map, which differ in lam alone, are in the order of lam, the largest first.
    measure : Measure
        Which settings are better.

    Yields
    ------
    list of FitJob
        As `search_schedule` does.

    Returns
    -------
    list of Row
        For each point its results on the folds of the race; those of folds that it was not fitted on are empty.
    """
    results: dict[int, list[Result]] = {i: [{} for _ in folds] for i in range(len(points))}
    maps: dict[str, list[int]] = {}
    for i, point in enumerate(points):
        maps.setdefault(repr({name: value for name, value in point.items() if name != "lam"}), []).append(i)
    racing, left = list(maps.values()), list[list[int]]()
    narrow = (
        [own for own in racing if _map_of(points[own[0]]).get("sigma") == "half-median"] if n_first < len(folds) else []
    )
    racing = [own for own in racing if own not in narrow]
    # A job with several values of lam ends where they get worse. Else the first ones are fitted, and then one more at a time.
    first = None if len(paths_of(estimator, points)) == len(maps) else FIRST_LAMS
    alive = {i for own in racing for i in own[:first]}
    for n in range(n_first, len(folds) + n_first, n_first):

        def value(i: int, n: int = n) -> float:
            seen = results[i][:n]
            complete = all("value" in result for result in seen)
            return measure.sign * math.fsum(result["value"] for result in seen) if complete else -math.inf

        while True:
            for k, fold in enumerate(folds[:n]):
                if missing := [i for i in sorted(alive) if not results[i][k]]:
                    n_always = FIRST_LAMS if k == 0 and n == n_first else None
                    rung = yield from _rung(estimator, points, missing, [fold], estimator.max_passes, n_always)
                    for i, row in rung.items():
                        results[i][k] = row.results[0]
                    alive = {i for i in alive if results[i][k]}
            racing.sort(key=lambda own: -max(map(value, own)))
            if left and max(map(value, racing[0])) == -math.inf:
                racing.append(left.pop())
                alive |= {i for i in racing[-1] if results[i][0]}
                continue
            best = [max(own, key=value) for own in racing]
            seen = [Row(points[i], tuple(results[i][:n]), 0) for i in best]
            behind = [errors_behind(row.values, seen[0].values, measure) if row.complete else math.inf for row in seen]
            near_top = [k for k, errors in enumerate(behind) if errors <= CLEAR]
            simplest = min(near_top, key=lambda k: complexity_of(points[best[k]]), default=0)
            n_better = max(2, len(racing) // 2)
            stay = [k for k in range(len(racing)) if k == simplest or (k < n_better and (n == 1 or behind[k] <= LOST))]
            better = [racing[k] for k in stay]
            if n == n_first and narrow and any(_map_of(points[own[0]]).get("map") == "nystroem" for own in racing[:2]):
                racing, alive, narrow = racing + narrow, alive.union(*(own[:first] for own in narrow)), []
                continue
            near = {i for k in stay for i in racing[k][: racing[k].index(best[k]) + 2]}
            if near <= alive or n > n_first:
                break
            alive |= near
        left += reversed([own for own in racing if own not in better])
        racing, alive = better, near & alive
        if len(racing) == 1 and n >= FEWEST_FOLDS:
            break
    return [Row(point, tuple(results[i][:n]), estimator.max_passes) for i, point in enumerate(points)]


def _rung(
    estimator: BlockClassifier,
    points: Sequence[Point],
    alive: list[int],
    folds: Sequence[Fold],
    passes: int,
    n_always: int | None = None,
) -> Generator[list[FitJob], list[list[Result]], dict[int, Row]]:
    paths = [[alive[i] for i in path] for path in paths_of(estimator, [points[i] for i in alive])]
    jobs = list(itertools.product(folds, paths))
    answers = yield [FitJob(fold, tuple(points[i] for i in path), passes, n_always) for fold, path in jobs]
    by_point: dict[int, list[Result]] = {i: [] for i in alive}
    for (_, path), results in zip(jobs, answers, strict=True):
        for i, result in zip(path, results, strict=True):
            by_point[i].append(result)
    return {i: Row(points[i], tuple(results), passes) for i, results in by_point.items()}


def run_schedules(
    schedules: Sequence[Schedule], answer: Callable[[list[FitJob]], list[list[Result]]]
) -> list[list[Row]]:
    """Run several schedules side by side: the jobs that all of them wait for are answered together.

    Parameters
    ----------
    schedules : sequence of generators from `search_schedule` or `race_schedule`
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
        answered = iter(answer([job for jobs in asked.values() for job in jobs]))
        answers = {i: [next(answered) for _ in jobs] for i, jobs in asked.items()}
        asked = {}
        for i, results in answers.items():
            try:
                asked[i] = schedules[i].send(results)
            except StopIteration as end:
                done[i] = end.value
    return [done[i] for i in range(len(schedules))]


def points_of(estimator: BlockClassifier, grid: Mapping[str, Sequence[Any]]) -> list[Point]:
    """Return all combinations of the grid's values, each accepted by the estimator.

    A feature map may name directions, as in ``{"map": "bins", "monotone": "auto"}``: these are the estimator's `monotone` then.

    Parameters
    ----------
    estimator : BlockClassifier
        Its own parameters hold where the grid says nothing.
    grid : mapping of str to sequence
        Values by parameter.

    Raises
    ------
    InputError
        For an empty grid, an unknown parameter, or a value that the estimator refuses.
    """
    if not grid:
        raise InputError("the grid is empty: name a parameter and its values, such as lam: [1e-4, 1e-3, 1e-2]")
    allowed = estimator.get_params()
    for name, values in grid.items():
        # Whether the solver has its parameter is known at a point, which may name another solver.
        if name not in allowed and not name.startswith(PREFIX):
            if (error := moved(name, estimator.solvers)) is not None:
                raise error
            raise unknown(f"parameter of {type(estimator).__name__} in the grid", name, allowed)
        if len(values) == 0:
            raise InputError(f"the grid has no values for {name}: give some, or leave it out")
        if len(set(map(repr, values))) < len(values):
            raise InputError(f"the grid has a value of {name} twice: remove one of them")
    points = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    if "monotone" in allowed and any("monotone" in _map_of(point) for point in points):
        points = [_with_directions(point, estimator.monotone) for point in points]
    for point in points:
        clone(estimator).set_params(**point).check_parameters()
    return points


def _map_of(point: Point) -> Mapping[str, Any]:
    features = point.get("features")
    return features if isinstance(features, Mapping) else {}


def _with_directions(point: Point, otherwise: Any) -> Point:
    """Return a point whose directions are a parameter of their own; the others get those of the grid, or the estimator's."""
    features = dict(_map_of(point))
    if "monotone" not in features:
        return {"monotone": otherwise} | point
    return point | {"monotone": features.pop("monotone"), "features": features}


def paths_of(estimator: BlockClassifier, points: Sequence[Point]) -> list[list[int]]:
    """Return the positions of the points that one task fits together: along lam where the solver has a path, else each alone.

    Returns
    -------
    list of list of int
        Each position once. Where several points are fitted together they differ in lam alone.
    """
    paths: dict[str, list[int]] = {}
    for i, point in enumerate(points):
        solver = solver_of(point.get("solver", estimator.solver), estimator.solvers)
        key = {name: value for name, value in point.items() if name != "lam" or not hasattr(solver, "path")}
        paths.setdefault(repr(sorted(key.items())), []).append(i)
    return list(paths.values())
