"""What a run is told: the models behind the YAML files and behind the form that Prefect shows.

Everything is checked here, before any work starts: keys, types, the estimator and its parameters.
"""

from functools import cached_property
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from aucdist.data.catalog import find
from aucdist.data.source import ClassName, Source
from aucdist.errors import InputError, unknown
from flows.cache import Cache
from flows.checkpoints import CheckpointConfig
from flows.clusters import ClusterConfig as ClusterConfig
from flows.clusters import NoCluster as NoCluster
from flows.observer import refuse_report
from flows.strict import Strict as Strict

NAME = r"^[A-Za-z0-9][A-Za-z0-9._+-]*$"


Named = TypeVar("Named", "DataRef", "TestConfig")


def _in_catalog(config: Named) -> Named:
    """Return the configuration if the data set it names is in the catalog."""
    if config.name is not None:
        find(config.name)
    return config


class DataRef(Strict):
    """A data set: a name from the catalog, or a source written out."""

    name: str | None = Field(default=None, description="A data set of the catalog (see `aucdist data list`)")
    source: Source | None = Field(default=None, description="A source written out, where the catalog has none")

    @model_validator(mode="after")
    def _one_of_both(self) -> "DataRef":
        if (self.name is None) == (self.source is None):
            raise InputError("give either `name` (a data set of the catalog) or `source`")
        return _in_catalog(self)


class TestConfig(Strict):
    """Rows kept for the test: a fraction of the data, or a data set of their own."""

    __test__ = False  # not a test class, whatever pytest thinks of the name

    fraction: float | None = Field(default=None, gt=0, lt=1, description="Share of each class kept for the test")
    seed: int = Field(default=0, ge=0, description="Seed of the split; used with `fraction`")
    name: str | None = Field(default=None, description="A data set of the catalog, encoded like the training data")
    source: Source | None = Field(default=None, description="A source written out, encoded like the training data")

    @model_validator(mode="after")
    def _one_of_three(self) -> "TestConfig":
        given = [key for key in ("fraction", "name", "source") if getattr(self, key) is not None]
        if len(given) != 1:
            raise InputError("give exactly one of `fraction`, `name` and `source`")
        if "seed" in self.model_fields_set and given != ["fraction"]:
            raise InputError("`seed` belongs to `fraction`; a test set of its own is taken as it is")
        return _in_catalog(self)

    @model_serializer(mode="wrap")
    def _with_a_seed_only_for_a_fraction(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        found: dict[str, Any] = dump(self)
        if self.fraction is None:
            found.pop("seed", None)  # else what is written could not be read again
        return found


class DataConfig(DataRef):
    """The training data, how its rows are encoded, and what is kept for the test."""

    positive: ClassName | list[ClassName] | None = Field(
        default=None, description="Overrides the catalog's positive class: `minority`, a class, or a list of classes"
    )
    direct: bool = Field(
        default=False,
        description="Whoever works on the rows reads them from the files, part by part, and no row goes through this process: "
        "for files that are larger than its memory. Rows keep the order of the files. Shards are always read so",
    )
    test: TestConfig | None = Field(default=None, description="Without it there is no test AUC")
    impute: Literal["refuse", "mean", "median"] = Field(
        default="refuse",
        description="What stands in for missing numbers (of a source with `missing: keep`), learnt from the training rows; the "
        "median within 0.1 %",
    )
    log1p: Literal["numeric"] | list[str] | None = Field(
        default=None, description="Features to put through log(1 + x): `numeric` (all that are not one-hot), or names"
    )
    scale: Literal["none", "standard", "minmax", "maxabs", "unit-row"] = Field(
        default="none", description="Scaling, fitted on the training rows"
    )


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


class S3Config(Strict):
    """How S3 is reached. Without it the environment decides, as for other programs.

    There is no place for a secret here: credentials are found in the environment, the profile, the identity of the pod or
    machine, or a Prefect block. The workers of a cluster that is running already have their own environment.
    """

    endpoint: str | None = Field(default=None, description="URL of a server that is not AWS's")
    region: str | None = Field(default=None, description="Such as eu-central-1")
    profile: str | None = Field(default=None, description="A profile of the AWS configuration files")
    block: str | None = Field(
        default=None,
        pattern=r"^(aws-credentials|secret)/[a-z0-9-]+$",
        description="A Prefect block with credentials: aws-credentials/<name>, or secret/<name> with the same keys in JSON",
    )
    anonymous: list[str] = Field(default=[], description="Buckets that are read without credentials")
    requester_pays: list[str] = Field(default=[], description="Buckets whose owner lets the reader pay")

    @model_validator(mode="after")
    def _one_identity(self) -> "S3Config":
        if self.profile is not None and self.block is not None:
            raise InputError("give either `profile` or `block`: both name credentials")
        return self


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
