"""Configuration of a training run: the model behind the files in ``configs/train`` and behind the form of the Prefect flow.

Keys, types, the estimator and its parameters are all checked here, before any work starts.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Optional
from warnings import catch_warnings

from pydantic import Field, PrivateAttr

from aucdist.engine.workers import has_bokeh, no_bokeh
from aucdist.errors import InputError
from flows.config.cluster import CheckpointConfig, ClusterConfig, NoCluster, S3Option
from flows.config.data import CacheMode, DataConfig, DataFileOptions, check_keys_for_classes, is_yaml, source_from_name
from flows.config.loading import (
    CountOption,
    FileOptions,
    Name,
    NameArgument,
    Names,
    PathOrUrl,
    Strict,
    UrlOption,
    config_of,
    parse_yaml,
)
from flows.config.model import AUTO, THRESHOLD_SHARE, ModelConfig, OperatingPointConfig, ShapesConfig, check_estimator

if TYPE_CHECKING:
    from flows.init.run import Description


class AuditGroups(Strict):
    """What `aucdist audit` reports on."""

    groups: Names
    """Columns whose values define groups of test rows, such as sex or region. They need not be features."""


class RunConfig(Strict):
    """What a training run and a search have in common."""

    # Set if the configuration was made for a data file.
    _described: Optional["Description"] = PrivateAttr(default=None)

    name: Name
    """The name of the run folder, of the Prefect run, and of the cached results of a search."""
    data: DataConfig
    """The training rows and the test rows. A search divides the training rows into folds, and scores the test rows
    once, at the end."""
    model: ModelConfig = Field(default_factory=ModelConfig)
    """The estimator and its parameters. For a search, these are the ones that are not in the grid."""
    operating_point: OperatingPointConfig | None = None
    """The target that sets the threshold. By default, `LinkClassifier` predicts the positive class above a
    probability of 0.5, and ranking estimators take the threshold with the largest G-mean on the training rows. With a
    feature map, out-of-fold scores set it if there are fewer than 1,000 rows of a class."""
    shapes: ShapesConfig = Field(default_factory=ShapesConfig)
    """Additional fits for the report: a band around the shapes, and what `monotone` costs."""
    baselines: bool = True
    """Whether logistic regression, and LightGBM if it is installed, are fitted to the same rows and shown in the
    report. This is not done for several classes, for rows on workers, for fewer than 100 rows, and for more than 16
    million values."""
    cluster: ClusterConfig = Field(default_factory=NoCluster)
    """Where the run computes."""
    blocks: CountOption = None
    """The number of blocks that the rows are divided into. By default there is one for each 64 MiB."""
    cache: CacheMode = "auto"
    """Whether the rows of the fit stay in the memory of the workers or are streamed, from copies on the local disk."""
    output: PathOrUrl = "runs"
    """The folder or URL below which the run folder is made, and where results of a search are cached."""
    performance_report: bool = False
    """Whether the run folder gets dask-report.html, Dask's own report on the cluster."""
    s3: S3Option
    """How s3:// URLs are reached."""

    def _check(self) -> None:
        if self.performance_report:
            if self.cluster.kind == "none":
                raise InputError(
                    "performance_report is about a cluster, but `cluster` is none: name one, or leave performance_report out"
                )
            if self.cluster.kind == "local" and not has_bokeh():
                raise InputError(no_bokeh("here"))
        if self.data.of_each:
            check_keys_for_classes(self)
        data, point = self.data, self.operating_point
        if point is None:
            return
        if data.test is None or data.test.time is None:
            point.requirement(None)
        # Training rows are held out for a guarantee, unless the configuration asks for threshold rows or out-of-fold scores.
        stated = point.out_of_fold and "out_of_fold" in point.model_fields_set
        if data.threshold_rows is None:
            if point.confidence is not None and not stated:
                data.threshold_rows = THRESHOLD_SHARE
        elif stated:
            raise InputError(
                "give only one of `data.threshold_rows` and `out_of_fold`: both set the threshold on held-out rows"
            )
        if data.threshold_rows is not None:
            point.out_of_fold = False


class TrainConfig(RunConfig):
    """One training run."""

    audit: AuditGroups | None = None
    """The groups of test rows for `aucdist audit`."""
    checkpoint: CheckpointConfig | None = None
    """The checkpoints of the fit, from which a run that was killed resumes. By default there are none."""

    def _check(self) -> None:
        super()._check()
        model, chooses = self.model.built, self.model.chooses_features
        check_estimator(model, missing=self.data.impute == "keep" and not chooses)
        if self.shapes.compare_free and getattr(model, "monotone", None) is None and not chooses:
            raise InputError(
                "shapes: `compare_free` compares with a fit without `monotone`, but the model has none: leave `compare_free` out"
            )
        if self.shapes.halves is not None and self.model.map_name not in ("bins", AUTO):
            raise InputError(
                f"shapes: `halves` are for models of bins, and `features` is {self.model.map_name!r}: use `features: bins`"
            )
        if self.data.of_each and self.audit is not None:
            raise InputError("audit is for two classes: leave `audit` out, or set `positive` to one class")
        if self.checkpoint is not None and model.resolved_solver.is_random and model.random_state is None:
            raise InputError(
                f"checkpoint: solver {model.resolved_solver.name!r} draws random numbers, and a fit that resumes has to draw "
                "the same ones: give model.random_state"
            )


class RunOptions(FileOptions, DataFileOptions):
    """The options of a command that writes a run folder, and whose argument may also be a file of data."""

    config_class: ClassVar[type[RunConfig]]

    config: NameArgument
    """A YAML file, the name of one that comes with the project, or a file of data. For a file of data, the
    configuration is made as by `aucdist init`."""
    output: UrlOption = None
    """The folder or URL below which the run folder is made. By default it is the one that the configuration names, or
    otherwise `runs`."""

    def load(self) -> Any:
        """Return the configuration of the file. For a data file, a configuration is made and stored in the run folder."""
        options = [key for key in DataFileOptions.model_fields if getattr(self, key) is not None]
        if options and is_yaml(self.config):
            raise InputError(f"--{options[0]} is for a file of data: change keys of {self.config} with --set")
        path = Path(self.config)
        if not options and (is_yaml(self.config) or not path.suffix or not ("://" in self.config or path.exists())):
            return super().load()
        from flows.init.run import SOURCE_PREFIX, propose

        of_source = [
            setting.removeprefix(SOURCE_PREFIX) for setting in self.settings if setting.startswith(SOURCE_PREFIX)
        ]
        name, source = source_from_name(
            self.config, of_source, labelled=False, label=self.label, positive=self.positive
        )
        source = source.pinned()  # so that the fit uses the same rows that are described here
        with catch_warnings(action="ignore"):  # the fit repeats the warnings for all rows
            described = propose(name, source, time=self.time, groups=self.groups)
        raw = parse_yaml(described.text, self.config)
        raw["data"]["source"]["source"] = source.source  # the YAML text lacks the password
        rest = [setting for setting in self.settings if not setting.startswith(SOURCE_PREFIX)]
        config = config_of(self.config_class, raw, self.config, Path(), rest, self.output)
        config._described = described
        return config


class TrainOptions(RunOptions):
    """The options of `aucdist train`."""

    folder, config_class = "train", TrainConfig
