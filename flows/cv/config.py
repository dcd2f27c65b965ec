"""Configuration of a search: the model behind the files in ``configs/cv`` and behind the form of the Prefect flow."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from aucdist.errors import InputError, Json
from flows.config.loading import (
    AtLeastOne,
    AtLeastTwo,
    BelowOne,
    CountOption,
    Gap,
    Natural,
    Positive,
    Rate,
    Strict,
)
from flows.config.model import check_estimator
from flows.train.config import AuditGroups, RunConfig, RunOptions

if TYPE_CHECKING:
    from aucdist.metrics.named import Metric


class LogSpace(Strict):
    """Numbers that are evenly spaced on a log scale."""

    first: Positive
    """The first number."""
    last: Positive
    """The last number, which may be smaller than the first."""
    number: int = Field(ge=2, le=1000)
    """How many numbers there are, including the first and the last."""

    def values(self) -> list[float]:
        """Return the numbers, rounded to four digits."""
        return [float(f"{v:.4g}") for v in np.geomspace(self.first, self.last, self.number)]


class FoldsConfig(Strict):
    """How the training rows are divided into folds."""

    number: AtLeastTwo = 5
    """The number of folds."""
    repeats: AtLeastOne = 1
    """The number of partitions into folds, each with another seed."""
    seed: Natural = 0
    """The seed. Together with the id of a row it decides which fold the row is in."""
    groups: str | None = None
    """A column: rows with the same value are in the same fold. The column is not used as a feature."""
    time: str | None = None
    """A column: each fold trains on earlier rows and is scored on the next ones. The column is not used as a feature.
    """
    gap_rows: Natural = 0
    """With `time`: the number of rows before the held-out rows of a fold that are left out of training. Rows of the
    same time are left out together."""
    gap_time: Gap = 0.0
    """With `time`, in the unit of its column: the minimum time between the last training row and the first held-out row,
    for example the number of days after which a label is known."""
    duplicates: Literal["apart", "together"] = "apart"
    """Whether rows with equal features are always in the same fold (`together`) or may be in different ones
    (`apart`)."""

    def _check(self) -> None:
        if self.time is not None and self.repeats > 1:
            raise InputError(
                "`repeats` has no effect with `time`, because there is only one order: leave `repeats` out"
            )
        if self.time is None and (self.gap_rows or self.gap_time):
            raise InputError("`gap_rows` and `gap_time` need `time`: the column that says which rows come first")
        if self.groups is not None and self.duplicates == "together":
            raise InputError("`groups` and `duplicates: together` are both given: leave one of them out")
        if self.groups is not None and self.groups == self.time:
            raise InputError("`groups` and `time` name the same column: name two different columns")


class HalvingConfig(Strict):
    """Successive halving: all settings get few passes, and the better ones get more."""

    first_passes: AtLeastOne = 10
    """The number of passes that every setting gets."""
    factor: AtLeastTwo = 3
    """From one stage to the next, the number of passes is multiplied by this and the number of settings is divided by
    it."""


class CvConfig(RunConfig):
    """One search."""

    grid: dict[str, list[Any] | LogSpace] = Field(examples=[{"lam": [1e-3, 1e-2]}])
    """The values of each parameter: a list, or {first, last, number} on a log scale. All combinations are tried."""
    folds: FoldsConfig = Field(default_factory=FoldsConfig)
    """How the training rows are divided for the search."""
    metric: str = "auc"
    """The score by which settings are compared. The page about cross-validation lists the metrics and what each of them
    needs. With several classes it is the mean over the classes. Smaller is better for costs and for names that end in
    `_loss`. With groups, the default is `group_auc`. With grades and `features: auto`, it is `group_ndcg` with `k: 10`."""
    max_fpr: Rate = None
    """The largest false positive rate, for a metric that needs it."""
    min_tpr: BelowOne = None
    """The smallest true positive rate, for a metric that needs it."""
    min_precision: Rate = None
    """The smallest precision, for a metric that needs it."""
    min_recall: Rate = None
    """The smallest recall, for a metric that needs it."""
    # This is a number of rows. `aucdist.metrics` also accepts a total weight, but the weights of held-out rows are not known
    # here.
    k: CountOption = None
    """The number of rows with the highest scores that count, for a metric that needs it: of all held-out rows, or of each
    group."""
    rule: Literal["best", "one-se", "simplest"] = "best"
    """`best` takes the best mean. `one-se` takes the largest lam whose mean is within one standard error of the best.
    `simplest` takes the simplest feature map that is not clearly worse than the best setting: the mean difference over
    the folds is at most half its standard error. It is the default with `features: auto` over all pairs."""
    nested: AtLeastTwo | None = None
    """The number of inner folds of the training rows of each fold, which choose the parameters. The score then accounts
    for the choice, so it is not optimistic."""
    halving: HalvingConfig | None = None
    """Successive halving: settings with low scores are dropped after few passes."""
    audit: AuditGroups | None = None
    """The groups of test rows for `aucdist audit`."""
    checkpoint: None = None
    """A search has no checkpoints. The key may be null, so that the `config.yaml` of a training run can be searched."""
    placement: Literal["auto", "tasks", "masks"] = "auto"
    """Where the fits of folds run on a cluster. `tasks`: each fit is a task of one worker, which has all rows. `masks`:
    the rows are distributed over the workers, which all take part in each fit. `auto` decides by the size of the data and
    the memory of the workers. The results are the same with all three."""

    def _check(self) -> None:
        super()._check()
        for name, values in self.grid.items():
            if isinstance(values, LogSpace):
                self.grid[name] = values.values()
        from sklearn.base import clone

        # The maps in the grid are tried in place of `auto`.
        if self.model.chooses_features and "features" in self.grid:
            self.model = self.model.with_parameters({"features": None})
        settings = self.settings
        if self.model.chooses_features:
            from aucdist.pairs.top_negatives import trained_max_fpr

            if "rule" not in self.model_fields_set and trained_max_fpr(self.model.built, 1) is None:
                self.rule = "simplest"
            if self.model.search_options.metric:
                raise InputError("the search already has a `metric`: remove `metric` from `features: auto`")
        elif self.rule == "simplest" and "features" not in self.grid:
            raise InputError(
                "rule `simplest` takes the simplest feature map that is good enough: the grid needs `features`"
            )
        if self.rule == "one-se" and "lam" not in self.grid:
            raise InputError("rule `one-se` takes the largest lam that is good enough: the grid needs `lam`")
        if self.nested and self.halving:
            raise InputError("`nested` and `halving` cannot be used together: remove one of them")
        metric = self.named_metric
        for setting in settings:
            model = clone(self.model.built).set_params(**setting)
            check_estimator(model, missing=self.data.impute == "keep" and not self.model.chooses_features)
            if metric.needs == "probability" and not hasattr(model, "predict_proba"):
                raise InputError(
                    f"metric {metric.name!r} needs probabilities, but {type(model).__name__} with {setting} gives scores only: "
                    "use auc, average_precision or g_mean, or a model with predict_proba"
                )

    def with_candidates(
        self, size: Mapping[str, int], note: Callable[[str], None], grouped: bool, lowest_grade: float | None
    ) -> "CvConfig":
        """Return the search. If the model has `features: auto`, the feature maps to try are added to its grid.

        If no metric is given, the default depends on the rows. With groups it is the metric of the pairs within groups, and with
        `features: auto` it is the result of `aucdist.search.auto.default_metric`.

        Parameters
        ----------
        size : mapping of str to int
            ``n_pos``, ``n_neg`` and ``n_features`` of the training rows. For several classes, these are the numbers of the
            smallest class.
        note : callable
            Called with a sentence about each map that cannot be tried.
        grouped : bool
            Whether rows have groups.
        lowest_grade : float or None
            The lowest grade, or None if labels are not grades.
        """
        by_default = "metric" not in self.model_fields_set
        if not self.model.chooses_features:
            in_groups = by_default and (grouped or lowest_grade is not None)
            return self.model_copy(update={"metric": "group_auc"}) if in_groups else self
        from aucdist.pairs.top_negatives import trained_max_fpr
        from aucdist.search.auto import candidates, default_metric

        model = self.model.built
        maps = candidates(
            model, **size, missing=self.data.impute == "keep", grouped=grouped, readable=self.model.search_options.readable,
            note=note,
        )  # fmt: skip
        changes = {"model": self.model.with_parameters({"features": None}), "grid": {**self.grid, "features": maps}}
        if by_default:
            changes |= default_metric(trained_max_fpr(model, size["n_neg"]), grouped=grouped, lowest_grade=lowest_grade)
        return self.model_copy(update=changes)

    @property
    def named_metric(self) -> "Metric":
        """The metric with its parameters."""
        from aucdist.metrics.named import PARAMETERS, find_metric

        parameters = {name: getattr(self, name, None) for name in PARAMETERS}
        if self.metric == "expected_cost":
            if self.operating_point is None or self.operating_point.cost is None:
                raise InputError(
                    "metric 'expected_cost' needs `operating_point.cost`: what false positives and misses cost"
                )
            parameters |= self.operating_point.cost.model_dump()
        return find_metric(self.metric, **parameters)

    @property
    def settings(self) -> list[Json]:
        """All settings of the grid. The estimator accepts each of them."""
        from aucdist.search.schedule import settings_of_grid

        return settings_of_grid(self.model.built, self.grid)  # type: ignore[arg-type]  # each LogSpace is a list by now


class CvOptions(RunOptions):
    """The options of `aucdist cv`."""

    folder, config_class = "cv", CvConfig
