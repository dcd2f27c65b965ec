"""What a run is told: the models behind the YAML files and behind the form that Prefect shows.

Everything is checked here, before any work starts: keys, types, the estimator and its parameters.
"""

from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from aucdist.errors import InputError, unknown
from flows.compute.cache import Cache
from flows.config.base import NAME
from flows.config.base import Strict as Strict
from flows.config.checkpoint import CheckpointConfig
from flows.config.cluster import ClusterConfig, NoCluster, refuse_report
from flows.config.data import DataConfig
from flows.config.s3 import S3Config


class ModelConfig(BaseModel):
    """The estimator and its parameters. What is left out takes the estimator's own default."""

    model_config = ConfigDict(extra="allow")  # parameters of one estimator alone; checked against it below

    estimator: str = Field(default="PairwiseHingeClassifier", description="What is minimised")
    solver: str | None = Field(default=None, description="How it is minimised")
    lam: float | None = Field(default=None, description="Weight of the penalty")
    tol: float | None = Field(default=None, description="Stop when the certified relative gap is at most this")
    max_passes: int | None = Field(default=None, description="Stop after this many passes over the data")
    random_state: int | None = Field(default=None, description="Seed of what is random")

    @model_validator(mode="after")
    def _estimator_takes_them(self) -> "ModelConfig":
        _ = self.built
        return self

    @cached_property
    def built(self) -> Any:
        """An unfitted estimator with these parameters."""
        from aucdist.estimators import ESTIMATORS  # here, because it loads scikit-learn and Numba

        if self.estimator not in ESTIMATORS:
            raise unknown("estimator", self.estimator, ESTIMATORS)
        estimator = ESTIMATORS[self.estimator]()
        allowed = estimator.get_params()
        of_its_own = self.model_extra or {}  # where null may be a choice of its own, as `sampler: null` is
        given = {k: v for k, v in self.model_dump(exclude={"estimator"}).items() if v is not None or k in of_its_own}
        for key in given:
            if key not in allowed:
                raise unknown(f"parameter of {self.estimator}", key, allowed)
        estimator.set_params(**given)
        estimator.check_parameters()  # the ranges too, before the data is read
        return estimator


def refuse_kernels(model: Any) -> None:
    """Refuse an estimator that is not linear: what a run folder keeps of a model is weights of features.

    Raises
    ------
    InputError
        Saying what to do instead.
    """
    kernel = getattr(model, "kernel", "linear")
    if kernel != "linear":
        raise InputError(
            f"model: kernel is {kernel!r}, with which there are no weights of features, and those are what a run folder keeps. "
            f"Take `kernel: linear`, or fit it in Python: {type(model).__name__}(kernel={kernel!r}).fit(X, y)"
        )


class TrainConfig(Strict):
    """One training run."""

    name: str = Field(pattern=NAME, description="Names the run folder and the Prefect run")
    data: DataConfig
    model: ModelConfig = Field(default_factory=ModelConfig, description="What is fitted")
    cluster: ClusterConfig = Field(default_factory=NoCluster, description="Where it runs")
    blocks: int | None = Field(
        default=None, ge=1, description="Blocks the rows are dealt out to; by default one per 64 MiB"
    )
    cache: Cache = Field(
        default="auto", description="Whether rows stay in the workers' memory or are read again for every pass"
    )
    output: str = Field(default="runs", min_length=1, description="Folder or URL below which the run folder is made")
    checkpoint: CheckpointConfig | None = Field(
        default=None, description="Checkpoints of the fit, from which a run that was killed goes on; by default none"
    )
    performance_report: bool = Field(
        default=False, description="Whether the run folder gets Dask's own report on its cluster, dask-report.html"
    )
    s3: S3Config = Field(default_factory=S3Config, description="How s3:// URLs are reached")

    @model_validator(mode="after")
    def _can_be_reported(self) -> "TrainConfig":
        if self.performance_report:
            refuse_report(self.cluster)
        return self

    @model_validator(mode="after")
    def _can_be_kept(self) -> "TrainConfig":
        refuse_kernels(self.model.built)
        return self

    @model_validator(mode="after")
    def _can_be_repeated(self) -> "TrainConfig":
        model = self.model.built
        if self.checkpoint is not None and model.solvers[model.solver].random and model.random_state is None:
            raise InputError(
                f"checkpoint: solver {model.solver!r} draws random numbers, and a fit that goes on has to draw them again: give "
                "model.random_state"
            )
        return self
