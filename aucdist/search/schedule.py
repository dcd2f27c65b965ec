"""The schedule of a search: which settings are fitted on which folds, and which of them are fitted again with more passes."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from sklearn.base import clone

from aucdist.errors import InputError
from aucdist.estimators.base import BlockClassifier
from aucdist.estimators.with_solver import solver_of
from aucdist.metrics.named import Metric
from aucdist.search.choice import CLEAR_SE, MIN_FOLDS, FoldScore, Setting, SettingScores, complexity_of, errors_behind
from aucdist.search.folds import Fold

FIRST_LAMS = 3
"""The number of values of lam that are tried for each map. A smaller lam takes more passes than all those before it and
is rarely the best, so it is tried only if the one before is the best so far."""
DROP_FROM_SECOND_FOLD = 1.0
"""After two or more folds, a map is dropped if it is this many standard errors of the difference behind the best one."""
DROP_AFTER_FIRST_FOLD = 5.0
"""After a single fold, a map is dropped if it is this many standard errors of the difference behind the best one. This changed no
choice on the folds of 18 tables, and saved a quarter of the fits on tables of 10,000 rows."""


class FitJob(NamedTuple):
    """Settings to fit one after the other on a fold. `n_always` is as for `aucdist.search.fold_scores.score_settings`."""

    fold: Fold
    settings: tuple[Setting, ...]
    max_passes: int
    n_always: int | None = None


RunJobs = Callable[[list[FitJob]], list[list[FoldScore]]]
"""A function that takes jobs and returns the results of each job, one for each of its settings: that of
`aucdist.search.fold_scores.score_settings`, or an ``error``."""


def fit_settings(
    estimator: BlockClassifier,
    settings: Sequence[Setting],
    sets: Sequence[Sequence[Fold]],
    max_passes: int,
    run_jobs: RunJobs,
) -> list[list[SettingScores]]:
    """Fit all settings on all folds, in jobs that run together, and return the results for each set of folds."""
    paths = paths_of(estimator, settings)
    jobs = [
        FitJob(fold, tuple(settings[i] for i in path), max_passes) for folds in sets for fold in folds for path in paths
    ]
    results_of_jobs, tables = iter(run_jobs(jobs)), []
    for folds in sets:
        results: list[list[FoldScore]] = [[] for _ in settings]
        for _, path in itertools.product(folds, paths):
            for i, result in zip(path, next(results_of_jobs), strict=True):
                results[i].append(result)
        tables.append(
            [SettingScores(setting, tuple(s), max_passes) for setting, s in zip(settings, results, strict=True)]
        )
    return tables


def halve(
    estimator: BlockClassifier, settings: Sequence[Setting], folds: Sequence[Fold], metric: Metric, run_jobs: RunJobs,
    halving: tuple[int, int],
) -> list[SettingScores]:  # fmt: skip
    """Run successive halving, and return the results of each setting from the last stage that it reached.

    The method is that of Jamieson & Talwalkar, "Non-stochastic Best Arm Identification" (AISTATS 2016), where passes are the
    resource. Each stage keeps the best ``ceil(n / factor)`` settings and gives them ``factor`` times the passes, until one is
    left or the estimator's own `max_passes` are reached. The settings that are left are fitted with `max_passes`.

    Parameters
    ----------
    estimator : BlockClassifier
        The unfitted estimator.
    settings : sequence of Setting
        The settings to compare.
    folds : sequence of Fold
        The folds.
    metric : Metric
        The metric that compares settings.
    run_jobs : RunJobs
        Runs jobs and returns their results.
    halving : tuple (int, int)
        The passes of the first stage, and the factor.
    """
    rows = dict[int, SettingScores]()
    alive, (passes, factor) = list(range(len(settings))), halving
    while True:
        passes = estimator.max_passes if len(alive) == 1 else min(passes, estimator.max_passes)
        (table,) = fit_settings(estimator, [settings[i] for i in alive], [folds], passes, run_jobs)
        rows |= zip(alive, table, strict=True)
        if passes == estimator.max_passes:
            return [rows[i] for i in range(len(settings))]
        # Settings that failed come last.
        ranked = sorted(alive, key=lambda i: (rows[i].mean is None, -metric.sign * (rows[i].mean or 0.0), i))
        alive = sorted(ranked[: math.ceil(len(alive) / factor)])
        passes *= factor


class RacingMap:
    """A feature map in a race: its settings, which differ only in lam, the largest first, and their results on the folds.

    Attributes
    ----------
    results : list of list of dict
        For each setting, its results on the first folds.
    n_tried : int
        The number of settings that are fitted, from the largest lam on.
    best_index : int
        The position of the best setting so far.
    row : SettingScores
        The results of this setting.
    value : float
        The mean of these results, with a sign that makes larger values better.
    errors_behind_best : float
        How far the map is behind the best map, in standard errors.
    """

    def __init__(self, settings: list[Setting], estimator: BlockClassifier):
        self.settings, self.estimator, self.errors_behind_best = settings, estimator, math.inf
        self.results: list[list[FoldScore]] = [[] for _ in settings]
        # A job with several values of lam ends if they get worse. Otherwise, the first few are fitted, and then one more each
        # time.
        self.n_tried = len(settings) if len(paths_of(estimator, settings)) == 1 else min(FIRST_LAMS, len(settings))

    def jobs(self, fold: Fold, k: int) -> list[FitJob]:
        """Return the jobs that remain on a fold, which is the one at position k."""
        settings, n_always = [self.settings[i] for i in self._missing(k)], FIRST_LAMS if k == 0 else None
        paths = paths_of(self.estimator, settings)
        return [FitJob(fold, tuple(settings[i] for i in path), self.estimator.max_passes, n_always) for path in paths]

    def take(self, k: int, results: list[FoldScore]) -> None:
        """Add the results of these jobs. From the first setting without a result on, no setting is fitted any more."""
        for i, result in zip(self._missing(k), results, strict=True):
            self.results[i] += [result] if result else []
        self.n_tried = sum(len(setting_results) > k for setting_results in self.results[: self.n_tried])

    def rank(self, metric: Metric) -> None:
        """Choose the best setting on the folds so far."""
        rows = [
            SettingScores(self.settings[i], tuple(self.results[i]), self.estimator.max_passes)
            for i in range(self.n_tried)
        ]
        values = [-math.inf if row.mean is None else metric.sign * row.mean for row in rows]
        self.value = max(values)
        self.best_index = values.index(self.value)
        self.row = rows[self.best_index]

    def _missing(self, k: int) -> list[int]:
        return [i for i in range(self.n_tried) if len(self.results[i]) == k]


def race(
    estimator: BlockClassifier, settings: Sequence[Setting], folds: Sequence[Fold], metric: Metric, n_first: int,
    run_jobs: RunJobs,
) -> list[SettingScores]:  # fmt: skip
    """Run a race of feature maps over the folds, and return the results of each setting, which are empty if it was not fitted.

    After every `n_first` folds, the better half of the maps stays in the race, at least two. Maps that are
    `DROP_FROM_SECOND_FOLD` standard errors behind the best one are dropped, or `DROP_AFTER_FIRST_FOLD` of them after a single
    fold. The simplest of the maps that are hardly worse than the best one also stays, because the rule ``simplest`` may choose
    it. On the first folds, smaller values of lam are tried as long as the map gets better. On the next folds, each map is
    fitted up to the value of lam after its best one so far, and later up to its best one. Landmarks of half the width are tried
    if those of the full width are among the two best maps. If none of the remaining maps can be fitted on a fold, the best
    dropped map returns. The race ends if one map is left after `MIN_FOLDS` folds.

    Parameters
    ----------
    settings : sequence of dict
        The settings. Those of a map, which differ only in lam, follow each other, from the largest lam to the smallest.
    metric : Metric
        The metric by which settings are compared.
    """
    by_map = itertools.groupby(settings, lambda setting: setting | {"lam": None})
    maps = [RacingMap(list(settings), estimator) for _, settings in by_map]
    narrow = [racing_map for racing_map in maps if n_first < len(folds) and _sigma(racing_map) == "half-median"]
    racing, dropped, n = [racing_map for racing_map in maps if racing_map not in narrow], list[RacingMap](), 0

    def fit(racing_maps: list[RacingMap]) -> None:
        """Fit maps on the folds so far, and rank all maps in the race."""
        for k, fold in enumerate(folds[:n]):
            jobs = [(racing_map, racing_map.jobs(fold, k)) for racing_map in racing_maps]
            results = iter(run_jobs([job for _, map_jobs in jobs for job in map_jobs]))
            for racing_map, map_jobs in jobs:
                racing_map.take(k, [result for _ in map_jobs for result in next(results)])
        for racing_map in racing_maps:
            racing_map.rank(metric)
        further = [
            racing_map
            for racing_map in racing_maps
            if n == n_first and racing_map.best_index + 1 == racing_map.n_tried < len(racing_map.settings)
        ]
        for racing_map in further:
            racing_map.n_tried += 1
        if further:
            fit(further)
        racing.sort(key=lambda racing_map: -racing_map.value)

    while n < len(folds) and (len(racing) > 1 or n < MIN_FOLDS):
        n = min(n + n_first, len(folds))
        fit(racing)
        if n == n_first and "median" in map(_sigma, racing[:2]):
            racing += narrow
            fit(narrow)
        while not racing[0].row.complete and dropped:
            racing.append(dropped.pop())
            fit(racing[-1:])
        best, n_better = racing[0].row, max(2, len(racing) // 2)
        most = DROP_AFTER_FIRST_FOLD if n == 1 else DROP_FROM_SECOND_FOLD
        for racing_map in racing:
            row = racing_map.row
            racing_map.errors_behind_best = errors_behind(row.values, best.values, metric) if row.complete else math.inf
        near = [racing_map for racing_map in racing if racing_map.errors_behind_best <= CLEAR_SE]
        simplest = min(near, key=lambda racing_map: complexity_of(racing_map.settings[0]), default=racing[0])
        stay = [
            racing_map
            for rank, racing_map in enumerate(racing)
            if racing_map is simplest or (rank < n_better and racing_map.errors_behind_best <= most)
        ]
        dropped += [racing_map for racing_map in reversed(racing) if racing_map not in stay]
        racing = stay
        for racing_map in racing:
            racing_map.n_tried = min(racing_map.n_tried, racing_map.best_index + 1 + (n == n_first))
    return [
        SettingScores(setting, tuple(results + [{}] * (n - len(results))), estimator.max_passes)
        for racing_map in maps
        for setting, results in zip(racing_map.settings, racing_map.results, strict=True)
    ]


def _sigma(racing_map: RacingMap) -> Any:
    return _map_of(racing_map.settings[0]).get("sigma")


def settings_of_grid(estimator: BlockClassifier, grid: Mapping[str, Sequence[Any]]) -> list[Setting]:
    """Return all combinations of the values of a grid, after checking that the estimator accepts them.

    A feature map may have directions, as in ``{"map": "bins", "monotone": "auto"}``. They become the parameter `monotone` of the
    estimator.

    Parameters
    ----------
    estimator : BlockClassifier
        The estimator, whose parameters are used unless the grid has them.
    grid : mapping of str to sequence
        The values of each parameter.

    Raises
    ------
    InputError
        If the grid is empty, a parameter is unknown, or the estimator does not accept a value.
    """
    if not grid:
        raise InputError("the grid is empty: name a parameter and its values, such as lam: [1e-4, 1e-3, 1e-2]")
    for name, values in grid.items():
        if len(values) == 0:
            raise InputError(f"the grid has no values for {name}: give some, or leave {name} out")
        if len(set(map(repr, values))) < len(values):
            raise InputError(f"the grid has a value of {name} twice: remove one of them")
    settings = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    if "monotone" in estimator.get_params() and any("monotone" in _map_of(setting) for setting in settings):
        for k, setting in enumerate(settings):  # directions are a separate parameter
            features = dict(_map_of(setting))
            if "monotone" in features:
                settings[k] = setting | {"monotone": features.pop("monotone"), "features": features}
            else:  # the directions are those of the grid or of the estimator
                settings[k] = {"monotone": estimator.monotone} | setting
    for setting in settings:
        clone(estimator).set_params(**setting).check_parameters()
    return settings


def _map_of(setting: Setting) -> Mapping[str, Any]:
    features = setting.get("features")
    return features if isinstance(features, Mapping) else {}


def paths_of(estimator: BlockClassifier, settings: Sequence[Setting]) -> list[list[int]]:
    """Return the positions of the settings that one task fits together: along lam if the solver has a path, otherwise one each.

    Returns
    -------
    list of list of int
        Each position occurs once. Settings that are fitted together differ only in lam.
    """
    paths = dict[str, list[int]]()
    for i, setting in enumerate(settings):
        solver = solver_of(setting.get("solver", estimator.solver), estimator.solvers)
        key = setting | {"lam": None} if hasattr(solver, "path") else setting
        paths.setdefault(repr(sorted(key.items())), []).append(i)
    return list(paths.values())
