"""What a search is told, checked before any work starts."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from aucdist.errors import InputError
from flows.compute.cache import Cache
from flows.config.base import NAME, Strict
from flows.config.cluster import ClusterConfig, NoCluster, refuse_report
from flows.config.data import DataConfig
from flows.config.loading import load_config
from flows.config.s3 import S3Config
from flows.train.config import ModelConfig, refuse_kernels


class Spread(Strict):
    """Numbers spread evenly on a log scale."""

    first: float = Field(gt=0)
    last: float = Field(gt=0)
    number: int = Field(ge=2, le=1000)

    def values(self) -> list[float]:
        """Return the numbers, to four digits."""
        return [float(f"{v:.4g}") for v in np.geomspace(self.first, self.last, self.number)]


class FoldsConfig(Strict):
    """How the training rows are cut into folds."""

    number: int = Field(default=5, ge=2, description="Folds")
    repeats: int = Field(default=1, ge=1, description="Partitions into folds, each by another seed")
    seed: int = Field(default=0, ge=0, description="Decides, with the row's number, which fold a row is in")
    groups: str | None = Field(
        default=None, description="A column: rows with the same value stay together. It is taken out of the features"
    )
    time: str | None = Field(
        default=None,
        description="A column: each fold trains on what came before and is scored on what came next. Taken out, too",
    )
    duplicates: Literal["apart", "together"] = Field(
        default="apart", description="Whether rows with equal features stay together in one fold"
    )

    @model_validator(mode="after")
    def _go_together(self) -> "FoldsConfig":
        if self.time is not None and self.repeats > 1:
            raise InputError("`repeats` has no use with `time`: there is only one order")
        if self.groups is not None and self.duplicates == "together":
            raise InputError("give either `groups` or `duplicates: together`")
        if self.groups is not None and self.groups == self.time:
            raise InputError("`groups` and `time` name the same column")
        return self


class HalvingConfig(Strict):
    """Successive halving: all settings get few passes, the better ones of them more."""

    first_passes: int = Field(default=10, ge=1, description="Passes that every setting gets")
    factor: int = Field(
        default=3, ge=2, description="From rung to rung so many times the passes, and as much fewer settings"
    )


class CvConfig(Strict):
    """One search."""

    name: str = Field(pattern=NAME, description="Names the run folder and the folder of the kept tasks")
    data: DataConfig = Field(
        description="The folds are cut from its training rows; test rows are scored once, in the end"
    )
    model: ModelConfig = Field(default_factory=ModelConfig, description="What is fitted where the grid says nothing")
    grid: dict[str, list[Any] | Spread] = Field(
        description="Values by parameter, a list or {first, last, number} on a log scale; all combinations are tried"
    )
    folds: FoldsConfig = Field(default_factory=FoldsConfig)
    metric: str = Field(default="auc", description="What is compared; names in `_loss` are the better the smaller")
    rule: Literal["best", "one-se"] = Field(
        default="best", description="`one-se`: the largest lam whose mean is within one standard error of the best"
    )
    nested: int | None = Field(
        default=None, ge=2, description="Folds of each fold's training rows: the score is then that of choosing by them"
    )
    halving: HalvingConfig | None = Field(default=None, description="Gives settings that do badly fewer passes")
    placement: Literal["auto", "tasks", "masks"] = Field(
        default="auto",
        description="`tasks`: each fold is one task with rows of its own. `masks`: the rows stay in their blocks and the "
        "folds take turns on all workers. `auto`: by the size of the data. All give the same numbers",
    )
    cluster: ClusterConfig = Field(default_factory=NoCluster, description="Where it runs")
    blocks: int | None = Field(
        default=None, ge=1, description="Blocks the rows are dealt out to; by default one per 64 MiB"
    )
    cache: Cache = Field(
        default="auto",
        description="Whether rows stay in the workers' memory or are read again for every pass of the last fit",
    )
    output: str = Field(default="runs", min_length=1, description="Folder or URL below which everything is kept")
    performance_report: bool = Field(
        default=False, description="Whether the run folder gets Dask's own report on its cluster, dask-report.html"
    )
    s3: S3Config = Field(default_factory=S3Config, description="How s3:// URLs are reached")

    @model_validator(mode="after")
    def _can_be_done(self) -> "CvConfig":
        for name, values in self.grid.items():
            if isinstance(values, Spread):
                self.grid[name] = values.values()
        points = self.points
        if self.performance_report:
            refuse_report(self.cluster)
        if self.rule == "one-se" and "lam" not in self.grid:
            raise InputError("rule `one-se` takes the largest lam that is good enough: the grid needs `lam`")
        if self.nested is not None and self.halving is not None:
            raise InputError("give either `nested` or `halving`")
        _refuse_impossible(self.model.built, points, self.metric, self.placement)
        return self

    @property
    def points(self) -> list[dict[str, Any]]:
        """All settings of the grid, each accepted by the estimator."""
        from aucdist.search.grid import points_of

        return points_of(self.model.built, self.grid)  # type: ignore[arg-type]  # spreads are lists by now


def _refuse_impossible(estimator: Any, points: Sequence[dict[str, Any]], metric: str, placement: str) -> None:
    """Refuse kernels, a metric that needs probabilities from a model without them, and masks where the solver copies rows."""
    from sklearn.base import clone

    from aucdist.metrics.measures import find_measure

    measure = find_measure(metric)
    for point in points:
        model = clone(estimator).set_params(**point)
        refuse_kernels(model)
        if measure.needs == "probability" and not hasattr(model, "predict_proba"):
            raise InputError(
                f"metric {metric!r} needs probabilities, but {type(model).__name__} with {point} gives scores only: "
                "take auc, average_precision or g_mean, or a model with predict_proba"
            )
        if placement == "masks" and not reads_in_place(model):
            able = ", ".join(name for name, solver in model.solvers.items() if solver.ignores_zero_weight) or "none"
            raise InputError(
                f"placement `masks` needs a solver that ignores rows of weight 0 (of {type(model).__name__}: {able}) and no "
                "calibration: take `tasks`"
            )


def reads_in_place(model: Any) -> bool:
    """Tell whether a model's solver leaves rows of weight 0 alone, so that a fold needs no rows of its own."""
    return bool(model.ignores_zero_weight)


def load_cv(config: str, settings: Sequence[str] = (), output: str | None = None) -> CvConfig:
    """Read the configuration of a search, a path or a name in ``configs/cv``: see `flows.config.loading.load_config`."""
    return load_config(CvConfig, "cv", config, settings, output)
