"""Configuration of keeping a model current."""

from typing import Literal

from pydantic import Field, model_validator

from aucdist.data.storage.urls import Location
from aucdist.errors import InputError
from flows.config.base import NAME, Strict
from flows.config.data import UnlabelledRef, source_of
from flows.config.loading import FileOptions
from flows.train.config import TrainConfig


class KeepCurrentConfig(Strict):
    """A model that is trained again on the newest rows, and replaced if the new model meets the condition."""

    store: Location = Field(min_length=1)
    """The model store, a folder or URL"""
    train: TrainConfig
    """The training run; its `cluster` and `s3` are those of all stages"""
    window: int | None = Field(default=None, ge=1)
    """The number of newest files of a pattern, by name, that are trained on; by default all"""
    held_out: int | None = Field(default=None, ge=1)
    """The number of newest files that are the test rows and not trained on; for a pattern, without `test`"""
    condition: Literal["better", "not-worse", "always"] = "not-worse"
    """When the version in use is replaced, as `--if` of `aucdist promote`"""
    margin: float = Field(default=0.0, ge=0.0, lt=1.0)
    """As `--margin` of `aucdist promote`"""
    keep: int | None = Field(default=None, ge=1)
    """The number of versions to keep: older ones are removed"""
    warm_start: bool = True
    """Whether the fit starts from the weights in use, if the features are the same"""
    new: UnlabelledRef | None = None
    """Rows to score and to watch with the version then in use"""
    batch: str | None = Field(default=None, pattern=NAME)
    """Names these rows; by default the name of the data set or of its first file"""
    scores: Location = Field(default="scores", min_length=1)
    """Folder or URL below which the scores of each batch are written"""

    @model_validator(mode="after")
    def _goes_together(self) -> "KeepCurrentConfig":
        if self.margin and self.condition == "always":
            raise InputError("`margin` has no effect with `condition: always`")
        if self.store.startswith("models:"):
            raise InputError(
                "`store` is a folder or URL: a registered model of MLflow is promoted by `aucdist promote`"
            )
        data = self.train.data
        if (self.held_out is None) != (data.test is not None):
            raise InputError(
                "runs are compared on rows that they were not trained on: give either `held_out`, or `train.data.test`"
            )
        if self.window is not None or self.held_out is not None:
            source = source_of(data).source
            if data.name is not None or not isinstance(source, str) or not any(c in source for c in "*?["):
                raise InputError(
                    "`window` and `held_out` choose among the files of a pattern: give `train.data.source`"
                )
        return self


class KeepCurrentOptions(FileOptions):
    """The options of `aucdist keep-current`."""

    kind, of = "keep_current", KeepCurrentConfig
