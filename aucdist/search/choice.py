"""The results of each setting over the folds, the choice of a setting, an interval of its score, and a summary."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from aucdist.errors import Json, RunError
from aucdist.kernels.random import hash_ids
from aucdist.maps import expander_of
from aucdist.metrics.compare import LEVEL, Difference, corrected_t_test, t_test
from aucdist.metrics.groups import GroupMetric
from aucdist.metrics.intervals import zero_event_interval
from aucdist.metrics.named import NAMED_METRICS, Metric
from aucdist.search.folds import Folds, SearchedClasses
from aucdist.solvers.base import REACHED

MAX_BUNDLES = 1024
"""The largest number of bundles of groups. The groups of a bundle are drawn together. The error of a variance from this many
bundles is 4 %."""
SEED = 0
"""The seed by which groups are assigned to bundles."""
SECOND_METRIC = "average_precision"
"""The metric that decides if the AUC does not. In five folds of a table with 852 positives, bins with interactions had an AUC
of 0.8889 and 0.558 by this metric, and leaves had 0.8971 and 0.572."""
CLEAR_SE = 0.5
"""The number of standard errors from which on a difference is clear. On 98 sets, the rule ``simplest`` has a mean AUC
of 0.9281 with this value and of 0.9240 with 1. Taking the best mean has 0.9252."""
MIN_FOLDS = 3
"""The smallest number of folds for a standard error of a difference. With fewer folds it is too uncertain, and gets a lower
bound."""
MIN_ERROR_OF_LACK = 0.05
"""This lower bound, as a share of the distance of the best setting from a perfect value. On two folds of a table with 852
positives, leaves were 0.0001 behind bins with interactions on each fold, and were dropped because both differences were equal."""

Rule = Literal["best", "one-se", "simplest"]
Setting = Json
"""The values of some parameters."""
FoldScore = Json
"""The result of a setting on a fold, see `aucdist.search.fold_scores.score_settings`."""
Shares = Mapping[str, Sequence[float]]
"""For each bundle, the sum of the weighted values of its groups and the sum of their weights, both divided by the sum
of all weights."""


def group_shares(measured: GroupMetric) -> dict[str, list[float]]:
    """Return the contributions of the groups of a fold to its metric, summed up within bundles of groups."""
    bundle = hash_ids(np.asarray(measured.groups, dtype=np.int64), SEED) % np.uint64(MAX_BUNDLES)
    keys, at = np.unique(bundle, return_inverse=True)
    weight = measured.weights / measured.weights.sum()
    value, mass = np.bincount(at, weight * measured.values), np.bincount(at, weight)
    return {str(key): [a, b] for key, a, b in zip(keys.tolist(), value.tolist(), mass.tolist(), strict=True)}


def mean_group_shares(results: Sequence[FoldScore]) -> dict[str, list[float]] | None:
    """Return the contribution of each bundle of groups to the mean over folds. Return None without groups, or with one bundle."""
    if not all("groups" in result for result in results):
        return None
    total = dict[str, list[float]]()
    for result in results:
        for key, (value, mass) in result["groups"].items():
            a, b = total.get(key, (0.0, 0.0))
            total[key] = [a + value / len(results), b + mass / len(results)]
    return total if len(total) > 1 else None


def standard_error(shares: Shares) -> float:
    """Return the standard error of a mean over folds."""
    values, weights = np.array(list(shares.values())).T
    # This is the contribution of each bundle to the deviation of the mean.
    deviations, n = values - _mean(shares) * weights, len(shares)
    return float(np.sqrt(n / (n - 1) * (deviations @ deviations)))


def corrected_groups_test(shares: Shares, test_over_train: float) -> Difference | None:
    """Test a mean over folds against 0.

    The degrees of freedom of Student's t are the number of bundles minus one. The variance is multiplied by ``2 +
    test_over_train``, because the training rows of the folds overlap (see `aucdist.metrics.compare.corrected_t_test`).

    Parameters
    ----------
    shares : mapping
        What `mean_group_shares` returned.
    test_over_train : float
        The number of held-out rows divided by that of training rows.

    Returns
    -------
    Difference or None
        None if there is no spread.
    """
    value, error = _mean(shares), standard_error(shares) * math.sqrt(2.0 + test_over_train)
    if error <= 1e-15 * abs(value) or error == 0.0:
        return None
    return t_test(value, error, len(shares) - 1, "corrected-groups")


def _mean(shares: Shares) -> float:
    return math.fsum(value for value, _ in shares.values())


@dataclass(frozen=True)
class SettingScores:
    """A setting with its results over the folds.

    Attributes
    ----------
    results : tuple of dict
        For each fold, ``value`` and more, or ``error``: see `aucdist.search.fold_scores.score_settings`.
    max_passes : int
        The largest number of passes of each fit.
    """

    parameters: Setting
    results: tuple[FoldScore, ...]
    max_passes: int

    @property
    def values(self) -> list[float | None]:
        """The value of each fold, or None if the fold failed."""
        return [result.get("value") for result in self.results]

    @property
    def errors(self) -> list[str]:
        """The distinct error messages."""
        return list(dict.fromkeys(result["error"] for result in self.results if "error" in result))

    @property
    def complete(self) -> bool:
        """Whether all folds have a value, because none failed and the setting was not dropped from a race."""
        return all("value" in result for result in self.results)

    @property
    def mean(self) -> float | None:
        """The mean over the folds. It is None if a fold has no value, because means over fewer folds are not comparable."""
        return float(np.mean(self.values)) if self.complete else None  # type: ignore[arg-type]

    @property
    def deviation(self) -> float | None:
        """Standard deviation over the folds (n - 1)."""
        return float(np.std(self.values, ddof=1)) if self.complete else None  # type: ignore[arg-type]

    @cached_property
    def shares(self) -> dict[str, list[float]] | None:
        """The contributions of groups to the mean, see `mean_group_shares`. None without groups, or if a fold failed."""
        return mean_group_shares(self.results)

    @property
    def standard_error(self) -> float | None:
        """The standard deviation divided by the square root of the number of folds.

        Within groups, it is the standard error over groups.
        """
        if (shares := self.shares) is not None:
            return standard_error(shares)
        return None if self.deviation is None else self.deviation / math.sqrt(len(self.results))

    def summary(self) -> Json:
        """Return the setting and its results as in the JSON of a search."""
        weighted = [result["weighted"] for result in self.results if "weighted" in result]
        kept = [result["features_kept"] for result in self.results if "features_kept" in result]
        return (
            {
                "parameters": self.parameters,
                "mean": self.mean,
                "deviation": self.deviation,
                "standard_error": self.standard_error,
                "folds": self.values,
                "max_passes": self.max_passes,
                "passes": sum(result.get("passes", 0) for result in self.results),
                "not_converged": sum(result.get("status", "converged") not in REACHED for result in self.results),
                "errors": self.errors,
            }
            | ({"weighted": float(np.mean(weighted))} if weighted and self.complete else {})
            | ({"features_kept": kept} if kept else {})
        )


def choose(rows: Sequence[SettingScores], metric: Metric, rule: Rule) -> int:
    """Return the position of the chosen setting.

    ``best`` is the setting with the best mean. Among settings with equal means, it is the one with the larger lam, and then the
    earlier one. ``one-se`` is the setting with the largest lam whose mean is within one standard error of the best mean. Among
    settings with equal lam, it is the one with the better mean (Breiman, Friedman, Olshen & Stone, Classification and
    Regression Trees, 1984, section 3.4.3). ``simplest`` is the simplest feature map, at its best lam, that is not clearly worse
    than the best setting: the mean difference over the folds is at most `CLEAR_SE` standard errors of the differences. Paired
    differences remove effects that a fold has on all maps. Settings whose average precision is clearly worse than the best one
    are excluded as well.

    Parameters
    ----------
    rows : sequence of SettingScores
        All settings. Settings whose fits had fewer passes than others are not candidates, and neither are settings that failed.
        Settings that collapsed on all folds are candidates only if there are no others.
    rule : {"best", "one-se", "simplest"}
        The rule of the choice.

    Raises
    ------
    RunError
        If every setting failed.
    """
    passes = max(row.max_passes for row in rows)
    means = {
        i: metric.sign * row.mean for i, row in enumerate(rows) if row.max_passes == passes and row.mean is not None
    }
    # Weights near 0 may rank the rows of the folds, but the fit to all rows may have weights of 0, which rank nothing.
    means = {i: mean for i, mean in means.items() if not all(r.get("collapsed") for r in rows[i].results)} or means
    if not means:
        raise RunError(f"every setting failed; the first error: {next(e for row in rows for e in row.errors)}")
    lam = [row.parameters.get("lam", 0.0) for row in rows]
    best = max(means, key=lambda i: (means[i], lam[i], -i))
    if rule == "best":
        return best
    if rule == "one-se":
        near = [i for i in means if means[i] >= means[best] - (rows[best].standard_error or 0.0)]
        return max(near, key=lambda i: (lam[i], means[i], -i))
    near = [i for i in means if errors_behind(rows[i].values, rows[best].values, metric) <= CLEAR_SE]
    seconds = {i: [result.get(SECOND_METRIC) for result in rows[i].results] for i in near}
    if not any(None in values for values in seconds.values()):
        best = max(near, key=lambda i: float(np.mean(seconds[i])))  # type: ignore[arg-type]
        near = [i for i in near if errors_behind(seconds[i], seconds[best], NAMED_METRICS[SECOND_METRIC]) <= CLEAR_SE]
    return min(near, key=lambda i: (complexity_of(rows[i].parameters), -means[i], -lam[i], i))


def complexity(features: Any, monotone: Any = None) -> tuple[float, int, int]:
    """Return a key that orders feature maps from the simplest to the most complex. `features` is as in a configuration.

    None comes first, and then maps by their `complexity`. A map with monotonic constraints comes just before the same map
    without them.
    """
    expander = expander_of(features)
    first, second, third = (0, 0, 0) if expander is None else expander.complexity
    return (first - 0.5 * (monotone is not None), second, third)


def complexity_of(setting: Setting) -> tuple[float, int, int]:
    """Return the key of the feature map of a setting: see `complexity`."""
    return complexity(setting.get("features"), setting.get("monotone"))


def errors_behind(values: Sequence[float | None], best: Sequence[float | None], metric: Metric) -> float:
    """Return how far a setting is behind the best one: the mean difference over the folds divided by its standard error."""
    best_values = np.array(best, dtype=float)
    differences = metric.sign * (best_values - np.array(values, dtype=float))
    n, mean = len(differences), float(differences.mean())
    error = float(differences.std(ddof=1)) / math.sqrt(n) if n > 1 else 0.0
    if n < MIN_FOLDS:
        error = max(
            error, MIN_ERROR_OF_LACK * abs((metric.largest if metric.sign > 0 else 0.0) - float(best_values.mean()))
        )
    return mean / error if error > 0.0 else math.copysign(math.inf, mean) if mean else 0.0


def interval(
    values: Sequence[float], metric: Metric, test_over_train: float, fewest: int, shares: Shares | None = None
) -> tuple[float, float] | None:
    """Return a 95 % interval of the mean over folds, by the corrected resampled t-test or by the variance of groups.

    Parameters
    ----------
    values : sequence of float
        The value of each fold.
    metric : Metric
        The metric. If it is a share, the interval is clipped to 0 and 1.
    test_over_train : float
        The number of held-out rows divided by that of training rows.
    fewest : int
        The number of rows of the smaller class, or of groups. It is used if all values are equal, so that no variance can be
        estimated. A share then gets the bound of `aucdist.metrics.ranking.auc_interval` for this case.
    shares : mapping, optional
        The contributions of groups to the mean. The interval is then that of `corrected_groups_test`.

    Returns
    -------
    tuple (float, float) or None
        None if there is no estimate.
    """
    groups_test = shares and corrected_groups_test(shares, test_over_train)
    test = groups_test or corrected_t_test(values, test_over_train)
    if test.method == "exact-bound":
        return zero_event_interval(test.value, fewest, LEVEL) if metric.largest == 1.0 else None
    return max(test.low, 0.0), min(test.high, metric.largest)


def search_summary(
    rows: Sequence[SettingScores], folds: Folds, metric: Metric, rule: Rule, classes: SearchedClasses | None = None,
    nested: Sequence[Json] | None = None,
) -> Json:  # fmt: skip
    """Choose a setting, and return the results of all settings under the keys of ``aucdist cv --json``.

    With `nested`, the score is the mean over the settings that the folds chose for themselves. Otherwise it is the mean of the
    chosen setting, which is optimistic.

    Parameters
    ----------
    rows : sequence of SettingScores
        All settings.
    rule : {"best", "one-se", "simplest"}
        See `choose`.
    classes : SearchedClasses, optional
        For several classes, over which the scores are means.
    nested : sequence of dict, optional
        For each fold the ``parameters`` that its training rows chose (None if the choice failed), and their ``value``.

    Raises
    ------
    RunError
        If every setting failed.
    """
    chosen = rows[choose(rows, metric, rule)]
    results, values = chosen.results, chosen.values
    if nested is not None:
        settings, values = [row.parameters for row in rows], [choice["value"] for choice in nested]
        results = tuple(
            {} if choice["parameters"] is None else rows[settings.index(choice["parameters"])].results[k]
            for k, choice in enumerate(nested)
        )
    known = [value for value in values if value is not None]
    score = float(np.mean(known)) if len(known) == len(values) else None
    test_over_train = float(np.mean([held_out / n_train for n_train, held_out in map(folds.sizes, folds.outer())]))
    fewest, shares = folds.fewest if classes is None else int(classes.n_rows.min()), mean_group_shares(results)
    summary = {
        "best": chosen.parameters,
        "score": score,
        "interval": None if score is None else interval(known, metric, test_over_train, fewest, shares),
        "metric": metric.name,
        "rule": rule,
        "test_over_train": test_over_train,
        "table": [row.summary() for row in rows],
        "nested": nested,
    }
    if classes is not None:
        summary["of_classes"] = summary_of_classes(classes, results, rows, metric, rule, test_over_train)
    return summary if shares is None else summary | {"groups": shares}


def summary_of_classes(
    classes: SearchedClasses,
    chosen: Sequence[FoldScore],
    rows: Sequence[SettingScores],
    metric: Metric,
    rule: Rule,
    test_over_train: float,
) -> Json:
    """Return the scores of each class over the folds, and their weighted mean.

    Parameters
    ----------
    chosen : sequence of dict
        For each fold the result of the chosen setting, as `aucdist.search.fold_scores.score_settings` returned it.
    rows : sequence of SettingScores
        All settings.
    rule : {"best", "one-se", "simplest"}
        The rule of the choice, see `choose`.
    test_over_train : float
        The number of held-out rows divided by that of training rows.

    Returns
    -------
    dict
        ``topics``, ``weighted``, ``weighted_interval``, ``left_out``, and ``rows``: for each class ``name``, ``n_pos``, ``mean``,
        ``deviation``, ``interval``, ``folds``, and under ``alone`` the setting that this class alone would have chosen on these
        folds, with its mean. Means and intervals are None if a fold failed.
    """
    complete = all("classes" in result for result in chosen)
    weighted = [result["weighted"] for result in chosen] if complete else []
    class_summaries = []
    for k, (name, n) in enumerate(zip(classes.sets.names(), classes.n_rows.tolist(), strict=True)):
        values = [result["classes"][k] for result in chosen] if complete else []
        about = {"name": name, "n_pos": n, "folds": values, "alone": _class_choice(rows, k, metric, rule)}
        class_summaries.append(about | _mean_and_interval(values, metric, test_over_train, n))
    mean = _mean_and_interval(weighted, metric, test_over_train, int(classes.n_rows.min()))
    return {
        "topics": not classes.sets.exclusive,
        "weighted": mean["mean"],
        "weighted_interval": mean["interval"],
        "left_out": list(classes.left_out),
        "rows": class_summaries,
    }


def _mean_and_interval(values: Sequence[float], metric: Metric, test_over_train: float, fewest: int) -> Json:
    if not values:
        return {"mean": None, "deviation": None, "interval": None}
    return {
        "mean": float(np.mean(values)),
        "deviation": float(np.std(values, ddof=1)),
        "interval": interval(values, metric, test_over_train, fewest),
    }


def _class_choice(rows: Sequence[SettingScores], k: int, metric: Metric, rule: Rule) -> Json | None:
    """Return the setting that the class at position `k` alone would have chosen, and its mean."""
    class_results = [
        replace(row, results=tuple({**r, "value": r["classes"][k]} if "value" in r else r for r in row.results))
        for row in rows
    ]
    try:
        best = class_results[choose(class_results, metric, rule)]
    except RunError:
        return None
    return {"parameters": best.parameters, "mean": best.mean}
