"""Configuration of watching: the model behind the options of the command and behind the form of the Prefect flow."""

from typing import Annotated

from pydantic import Field, model_validator

from aucdist.data.storage.urls import Location
from aucdist.errors import InputError
from flows.config.base import NAME, Cli, Strict
from flows.config.cluster import ClusterConfig, NoCluster, S3Config
from flows.config.data import UnlabelledRef


class WatchConfig(Strict):
    """A batch of rows to compare with the training rows of a model, or labels of a batch."""

    model: Annotated[Location, Cli(place=1)] = Field(min_length=1)
    """A model store, or store@3, or a run folder, or a model: a folder or URL"""
    data: Annotated[UnlabelledRef | None, Cli(place=2, data=True)] = None
    """The rows of the batch; they need no label"""
    scores: Annotated[Location | None, Cli(metavar="URL")] = Field(default=None, min_length=1)
    """Scores of these rows by `aucdist score`; by default they are scored"""
    labels: Annotated[Location | None, Cli(metavar="FILE")] = Field(default=None, min_length=1)
    """Labels of a batch: a Parquet or CSV file with `row_id` and the label"""
    batch: Annotated[str | None, Cli(metavar="NAME")] = Field(default=None, pattern=NAME)
    """Names the batch; by default the data, or the last batch for labels"""
    state: Annotated[Location | None, Cli(metavar="URL")] = Field(default=None, min_length=1)
    """Folder or URL of what was watched so far; by default `watch` in the store"""
    cluster: Annotated[ClusterConfig, Cli()] = Field(default_factory=NoCluster)
    """Where it runs"""
    s3: S3Config = Field(default_factory=S3Config)
    """How s3:// URLs are reached"""

    @model_validator(mode="after")
    def _something_to_do(self) -> "WatchConfig":
        if self.data is None and self.labels is None:
            raise InputError("nothing to watch: name the rows of a batch, or give --labels of one that was watched")
        if self.data is None and self.scores is not None:
            raise InputError("`scores` belong to the rows of a batch, and none are named")
        return self
